"""Routes named in SUMO's files, their links in the network, and the reasons why some cannot be driven."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from simulator.roads.network import RoadNetwork
from simulator.traffic.errors import TrafficError
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.routes import Routes
from simulator.traffic.trips import Trips

IntArray = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Course:
    """Sequence of edges that a vehicle drives over.

    Attributes
    ----------
    edges
        SUMO's edge ids, in driving order.
    given
        Whether they are the whole route; otherwise they are a trip's first edge, its edges on the way, and its last
        edge.
    where
        File and line, for messages.
    """

    edges: tuple[str, ...]
    given: bool
    where: str


@dataclass(frozen=True)
class Choice:
    """Random choice among several courses, each with a weight.

    Attributes
    ----------
    options
        Numbers of courses.
    weights
        Weight of each of `options`, not negative, with a sum above 0.
    where
        File and line, for messages.
    """

    options: tuple[int, ...]
    weights: tuple[float, ...]
    where: str


@dataclass(frozen=True)
class Named:
    """Reference to the route or distribution of routes with this name, anywhere in the files."""

    name: str
    where: str


class Courses:
    """Distinct courses of some files, by number."""

    def __init__(self) -> None:
        self._all: list[Course | Choice | Named] = []
        self._known: dict[tuple[object, bool], int] = {}
        self._named: dict[str, int] = {}
        self._referred: dict[str, int] = {}

    def number(self, edges: str | tuple[str, ...], *, given: bool, where: str) -> int:
        """Return the number of a course; a string holds edge ids separated by blanks.

        Raises
        ------
        TrafficError
            If it has no edge.
        """
        known = self._known.get((edges, given))
        if known is not None:
            return known
        ids = tuple(edges.split()) if isinstance(edges, str) else edges
        if not ids:
            raise TrafficError([f"{where}: a route must have at least one edge"])
        self._known[edges, given] = self.add(Course(ids, given, where))
        return len(self._all) - 1

    def add(self, course: Course | Choice | Named) -> int:
        """Add a new course, choice or reference, and return its number."""
        self._all.append(course)
        return len(self._all) - 1

    def refer(self, name: str, *, where: str) -> int:
        """Return the number of a reference to a route by name."""
        if name not in self._referred:
            self._referred[name] = self.add(Named(name, where))
        return self._referred[name]

    def define(self, name: str, number: int, *, where: str) -> None:
        """Give a course a name.

        Raises
        ------
        TrafficError
            If another course has this name.
        """
        if name in self._named:
            raise TrafficError([f"{where}: another route has the id {name!r}"])
        self._named[name] = number

    def of(self, numbers: IntArray, *, rng: np.random.Generator) -> tuple[list[Course], IntArray]:
        """Resolve names, and draw from distributions of routes.

        Parameters
        ----------
        numbers
            (vehicles,) int32.
        rng
            Draws from distributions of routes.

        Returns
        -------
        tuple
            Courses, and (vehicles,) int32: index of the course each vehicle takes.

        Raises
        ------
        TrafficError
            If a name is not defined, or names refer to one another in a circle.
        """
        ends = numbers.copy()
        for _ in range(len(self._all) + 1):
            used = [int(number) for number in np.unique(ends)]
            open_ones = [number for number in used if not isinstance(self._all[number], Course)]
            if not open_ones:
                place = {number: at for at, number in enumerate(used)}
                renumbered = np.array([place.get(number, -1) for number in range(len(self._all))], dtype=np.int32)
                courses = [course for number in used if isinstance(course := self._all[number], Course)]
                return courses, renumbered[ends] if len(ends) else ends
            for number in open_ones:
                these = ends == number
                ends[these] = self._one_step(self._all[number], int(these.sum()), rng)
        first = self._all[open_ones[0]]
        raise TrafficError([f"{first.where}: distributions of routes must not refer to one another in a circle"])

    def _one_step(self, course: Course | Choice | Named, vehicles: int, rng: np.random.Generator) -> IntArray:
        if isinstance(course, Named):
            if course.name not in self._named:
                raise TrafficError([f"{course.where}: there is no route with the id {course.name!r}"])
            return np.full(vehicles, self._named[course.name], dtype=np.int32)
        if isinstance(course, Choice):
            share = np.array(course.weights) / sum(course.weights)
            return np.array(course.options, dtype=np.int32)[rng.choice(len(share), size=vehicles, p=share)]
        raise TypeError("a course is the end of the way")


LongArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Reason:
    """Reason why some courses cannot be driven.

    Attributes
    ----------
    words
        The rule they break.
    courses
        Their numbers.
    example
        Function that states where a course breaks the rule.
    """

    words: str
    courses: LongArray
    example: Callable[[Course], str]


@dataclass(frozen=True, eq=False)
class CourseLinks:
    """Links of every course.

    Attributes
    ----------
    offsets
        (courses + 1,) int64; course i is links[offsets[i]:offsets[i + 1]], empty where it cannot be driven.
    links
        Link ids, int32.
    reasons
        Reasons why some courses cannot be driven.
    """

    offsets: LongArray
    links: IntArray
    reasons: tuple[Reason, ...]

    @classmethod
    def build(
        cls, courses: Sequence[Course], network: RoadNetwork, *, paths: ShortestPaths | None = None
    ) -> "CourseLinks":
        """Find the links of courses, those of trips by shortest paths.

        Raises
        ------
        TrafficError
            If the network's edges carry no SUMO ids.
        """
        link_of = sumo_link_ids(network)
        start, end = network.links.from_node, network.links.to_node
        ways: list[list[int]] = []
        absent: list[int] = []
        torn: list[int] = []
        lost: list[int] = []
        for number, course in enumerate(courses):
            way = [link_of.get(edge, -1) for edge in course.edges]
            if -1 in way:
                absent.append(number)
                way = []
            elif course.given and any(end[a] != start[b] for a, b in pairwise(way)):
                torn.append(number)
                way = []
            ways.append(way)
        legs = [
            (number, int(end[a]), int(start[b]))
            for number, course in enumerate(courses)
            if not course.given
            for a, b in pairwise(ways[number])
            if a != b and end[a] != start[b]
        ]
        if legs:
            between, unreached = _shortest(legs, paths or ShortestPaths(network.links, through=network.through))
            lost = sorted(unreached)
            for number, course in enumerate(courses):
                if not course.given and ways[number]:
                    ways[number] = [] if number in unreached else _joined(ways[number], start, end, between)
        for number, course in enumerate(courses):
            if not course.given and ways[number] and not legs:
                ways[number] = _joined(ways[number], start, end, {})
        offsets = np.concatenate([[0], np.cumsum([len(way) for way in ways], dtype=np.int64)]).astype(np.int64)
        links = np.array([link for way in ways for link in way], dtype=np.int32)
        return cls(offsets, links, tuple(_reasons(absent, torn, lost, link_of, start, end)))

    def routes_of(self, course: IntArray) -> Routes:
        """Return the route of each vehicle, given the number of its course, (vehicles,) int32."""
        lengths = np.diff(self.offsets)[course]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        at = np.arange(offsets[-1], dtype=np.int64) + np.repeat(self.offsets[course] - offsets[:-1], lengths)
        return Routes(offsets, self.links[at])


def sumo_link_ids(network: RoadNetwork) -> dict[str, int]:
    """Return the link of each SUMO edge.

    Raises
    ------
    TrafficError
        If no edge of the graph carries ``sumo_edge``: the roads did not come from a SUMO network.
    """
    known = {
        str(data["sumo_edge"]): int(data["link"])
        for _, _, data in network.graph.edges(data=True)
        if data.get("sumo_edge") is not None
    }
    if not known:
        raise TrafficError(["SUMO routes need roads read from SUMO's network: these links have no SUMO edges"])
    return known


def _shortest(
    legs: Sequence[tuple[int, int, int]], paths: ShortestPaths
) -> tuple[dict[tuple[int, int], list[int]], set[int]]:
    """Return the shortest paths of the legs by pair of nodes, and the courses that have a leg without a path."""
    pairs = sorted({(a, b) for _, a, b in legs})
    origin, destination = (np.array(ends, dtype=np.int32) for ends in zip(*pairs, strict=True))
    reached = paths.reached(origin, destination)
    missing = {pair for pair, found in zip(pairs, reached.tolist(), strict=True) if not found}
    origin, destination = origin[reached], destination[reached]
    routes = paths.routes(Trips(origin, destination, np.zeros(len(origin), dtype=np.int32)))
    ends = zip(origin.tolist(), destination.tolist(), strict=True)
    between = {pair: routes.of(i).tolist() for i, pair in enumerate(ends)}
    return between, {number for number, a, b in legs if (a, b) in missing}


def _joined(way: Sequence[int], start: IntArray, end: IntArray, between: dict[tuple[int, int], list[int]]) -> list[int]:
    """Insert the links between a trip's given links; a link named twice in a row is driven once."""
    whole = [way[0]]
    for a, b in pairwise(way):
        if a != b:
            whole += between.get((int(end[a]), int(start[b])), [])
            whole.append(b)
    return whole


def _reasons(
    absent: list[int], torn: list[int], lost: list[int], link_of: dict[str, int], start: IntArray, end: IntArray
) -> list[Reason]:
    def edge(course: Course) -> str:
        return f"edge {next(edge for edge in course.edges if edge not in link_of)!r}"

    def gap(course: Course) -> str:
        a, b = next((a, b) for a, b in pairwise(course.edges) if end[link_of[a]] != start[link_of[b]])
        return f"edge {b!r} after edge {a!r}"

    def ends(course: Course) -> str:
        return f"from edge {course.edges[0]!r} to edge {course.edges[-1]!r}"

    return [
        Reason(words, np.array(courses, dtype=np.int64), example)
        for words, courses, example in (
            ("its edges are not all among the roads", absent, edge),
            ("its edges do not follow on one another", torn, gap),
            ("no path leads along its edges", lost, ends),
        )
        if courses
    ]
