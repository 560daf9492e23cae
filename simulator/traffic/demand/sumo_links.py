"""Links of the courses that SUMO's vehicles take, and why some cannot be taken."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from simulator.roads.network import RoadNetwork
from simulator.traffic.demand.sumo_courses import Course
from simulator.traffic.errors import TrafficError
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.routes import Routes
from simulator.traffic.trips import Trips

IntArray = npt.NDArray[np.int32]
LongArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Reason:
    """Why some courses cannot be driven.

    Attributes
    ----------
    words
        The rule they break.
    courses
        Their numbers.
    example
        Says where one of them breaks it.
    """

    words: str
    courses: LongArray
    example: Callable[[Course], str]


@dataclass(frozen=True, eq=False)
class CourseLinks:
    """The links of every course.

    Attributes
    ----------
    offsets
        (courses + 1,) int64; course i is links[offsets[i]:offsets[i + 1]], empty where it cannot be driven.
    links
        Link ids, int32.
    reasons
        Why some cannot be.
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
    """Return the link of every SUMO edge.

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
    """Return the links between nodes, and the courses that have a leg without a path."""
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
    """Fill in the links between those a trip must drive; one named twice in a row is driven once."""
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
