"""Reader of SUMO route files: vehicles, trips and flows with their edges and departure times."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from simulator.arrays import FloatArray, Int32Array
from simulator.files.errors import InputError
from simulator.files.tntp_text import finite_number
from simulator.files.xml_elements import elements_of
from simulator.traffic.trips import too_many


@dataclass(frozen=True)
class Course:
    """Sequence of edges that a vehicle drives over.

    Attributes
    ----------
    written
        SUMO's edge ids, in driving order: separately, or in one text, separated by blanks.
    given
        Whether they are the whole route; otherwise they are a trip's first edge, its edges on the way, and its last
        edge.
    where
        File and line, for messages.
    """

    written: str | tuple[str, ...]
    given: bool
    where: str = field(compare=False)

    @property
    def edges(self) -> tuple[str, ...]:
        """SUMO's edge ids, in driving order."""
        return tuple(self.written.split()) if isinstance(self.written, str) else self.written


@dataclass(frozen=True, eq=False)
class RouteDistribution:
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
class RouteReference:
    """Reference to the route or distribution of routes with this name, anywhere in the files."""

    name: str
    where: str = field(compare=False)


class Courses:
    """Distinct courses of some files, by number."""

    def __init__(self) -> None:
        self._numbers: dict[Course | RouteDistribution | RouteReference, int] = {}
        self._named: dict[str, int] = {}

    def add(self, course: Course | RouteDistribution | RouteReference) -> int:
        """Return the number of a course, which is that of an equal one, if there is any."""
        return self._numbers.setdefault(course, len(self._numbers))

    def define(self, name: str, number: int, *, where: str) -> None:
        """Give a course a name.

        Raises
        ------
        InputError
            If another course has this name.
        """
        if name in self._named:
            raise InputError([f"{where}: another route has the id {name!r}"])
        self._named[name] = number

    def of(self, numbers: Int32Array, *, rng: np.random.Generator) -> tuple[list[Course], Int32Array]:
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
        InputError
            If a name is not defined, or names refer to one another in a circle.
        """
        ends, every = numbers.copy(), list(self._numbers)
        for _ in range(len(every) + 1):
            used, index = np.unique(ends, return_inverse=True)
            open_ones = [number for number in used.tolist() if not isinstance(every[number], Course)]
            if not open_ones:
                courses = [course for number in used.tolist() if isinstance(course := every[number], Course)]
                return courses, index.astype(np.int32)
            for number in open_ones:
                these, course = ends == number, every[number]
                if isinstance(course, RouteDistribution):
                    share = np.array(course.weights) / sum(course.weights)
                    ends[these] = np.array(course.options)[rng.choice(len(share), size=int(these.sum()), p=share)]
                elif isinstance(course, RouteReference):
                    if course.name not in self._named:
                        raise InputError([f"{course.where}: there is no route with the id {course.name!r}"])
                    ends[these] = self._named[course.name]
        where = every[open_ones[0]].where
        raise InputError([f"{where}: distributions of routes must not refer to one another in a circle"])


_CLOCK = re.compile(r"(?:(\d+):)?(\d{1,2}):([0-5]\d):([0-5]\d(?:\.\d+)?)")
_SUMOS_CLOCK = re.compile(r"(?:(\d+):)?(\d+):(\d+):(\d+(?:\.\d+)?)")
"""Pattern of SUMO's own clock times: SUMO accepts 7:0:0, and 90 minutes."""
_POISSON = re.compile(r"exp\((.+)\)")
_RATES = ("period", "vehsPerHour", "perHour", "probability")
_HOUR_S = 3600.0


def seconds(text: str, *, as_sumo: bool = True) -> float | None:
    """Read seconds, "HH:MM:SS" or "D:HH:MM:SS"; return None for any other text.

    As in SUMO, parts may have fewer digits and be larger than on a clock, unless `as_sumo` is false.
    """
    clock = (_SUMOS_CLOCK if as_sumo else _CLOCK).fullmatch(text.strip())
    if clock:
        days, hours, minutes, rest = (float(part or 0) for part in clock.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + rest
    return finite_number(text)


@dataclass(frozen=True)
class SumoFlow:
    """Flow of vehicles that depart one after the other on one course.

    Attributes
    ----------
    name
        Id of the flow; its vehicles are called name.0, name.1, …
    course
        Number of the course.
    begin_s, end_s
        Begin and end of the flow; `end_s` is infinite if the file has none.
    count
        Number of vehicles; infinite if the file has none.
    kind
        "even": `count` vehicles over the whole period; "period": one every `rate` seconds; "poisson": `rate` per second
        on average, with exponential gaps; "probability": one in each second with probability `rate`.
    rate
        See `kind`.
    where
        File and line, for messages.
    """

    name: str
    course: int
    begin_s: float
    end_s: float
    count: float
    kind: str
    rate: float
    where: str

    @classmethod
    def from_attributes(cls, name: str, course: int, attributes: Mapping[str, str], *, where: str) -> "SumoFlow":
        """Read a <flow>.

        Raises
        ------
        InputError
            If a time or rate is not a number or out of range, if there is more than one rate, or if a flow without a
            rate lacks a number of vehicles or an end.
        """
        begin = read_number(attributes, "begin", 0.0, where)
        end = read_number(attributes, "end", math.inf, where)
        count = read_number(attributes, "number", math.inf, where, whole=True)
        if end < begin:
            raise InputError([f"{where}: end must not be before begin = {begin:g}, got {attributes['end']!r}"])
        rates = [key for key in _RATES if key in attributes]
        if len(rates) > 1:
            raise InputError([f"{where}: a flow must have one of {', '.join(_RATES)}, got {' and '.join(rates)}"])
        if not rates:
            if not (math.isfinite(count) and math.isfinite(end)):
                rule = f"a flow must have one of {', '.join(_RATES)}, or number and end"
                raise InputError([f"{where}: {rule}, got {', '.join(attributes) or 'nothing'}"])
            return cls(name, course, begin, end, count, "even", 0.0, where)
        kind, rate = _rate(rates[0], attributes[rates[0]].strip(), where)
        return cls(name, course, begin, end, count, kind, rate, where)

    def departures(self, *, end_s: float, rng: np.random.Generator) -> FloatArray:
        """Return the departure times of the flow's vehicles in seconds of the file, float64, ascending.

        Parameters
        ----------
        end_s
            End of the run in the file's time: no vehicle departs after it, and it ends a flow that has no end.
        rng
            Draws the departures of random flows.

        Raises
        ------
        InputError
            If neither the flow nor the run has an end, or the flow has too many vehicles.
        """
        end = min(self.end_s, end_s)
        if not math.isfinite(end) and not (self.kind == "period" and math.isfinite(self.count)):
            raise InputError([f"{self.where}: a flow without an end needs a run that ends"])
        stretch = max(0.0, end - self.begin_s)
        expected = {
            "even": self.count,
            "period": min(
                self.count, math.ceil(stretch / self.rate) if self.rate and math.isfinite(stretch) else math.inf
            ),
            "poisson": min(self.count, stretch * self.rate),
            "probability": min(self.count, stretch),
        }[self.kind]
        if fault := too_many(expected):
            raise InputError([f"{self.where}: {fault}"])
        if self.kind == "even":
            whole = np.arange(int(self.count), dtype=np.float64)
            leave = self.begin_s + whole * ((self.end_s - self.begin_s) / max(self.count, 1.0))
            return leave[leave < end_s]
        if self.kind == "period":
            return self.begin_s + self.rate * np.arange(int(expected), dtype=np.float64)
        if self.kind == "poisson":
            # A Poisson number of uniform times has the same distribution as exponential gaps.
            leave = np.sort(self.begin_s + stretch * rng.random(rng.poisson(stretch * self.rate)))
        else:
            moments = np.arange(math.ceil(stretch), dtype=np.float64)
            leave = self.begin_s + moments[rng.random(len(moments)) < self.rate]
        return leave[: int(self.count)] if math.isfinite(self.count) else leave


def read_number(attributes: Mapping[str, str], key: str, default: float, where: str, *, whole: bool = False) -> float:
    """Read a number, 0 or more, of an element's attributes; "begin" and "end" may be clock times.

    Raises
    ------
    InputError
        If the attribute is anything else.
    """
    if key not in attributes:
        return default
    value = seconds(attributes[key]) if key in {"begin", "end"} else finite_number(attributes[key])
    if value is None or value < 0:
        raise InputError([f"{where}: {key} must be a number, 0 or more, got {attributes[key]!r}"])
    if whole and not value.is_integer():
        raise InputError([f"{where}: {key} must be whole, got {attributes[key]!r}"])
    return value


def _rate(key: str, text: str, where: str) -> tuple[str, float]:
    """Return the kind and rate of a flow."""
    poisson = _POISSON.fullmatch(text) if key == "period" else None
    value = finite_number(poisson[1] if poisson else text)
    most = 1.0 if key == "probability" else math.inf
    if value is None or not 0 < value <= most:
        within = "from above 0 to 1" if key == "probability" else "above 0"
        raise InputError([f"{where}: {key} must be a number {within}, got {text!r}"])
    if poisson:
        return "poisson", value
    if key in {"vehsPerHour", "perHour"}:
        return "period", _HOUR_S / value
    return key, value


_ROOTS = ("routes", "additional", "add", "routes-alternatives")
_ROUTES = ("route", "routeDistribution")
_MOST_EDGES = 1_000_000
_UNITS = ("vehicle", "trip", "flow", *_ROUTES)
_WITHOUT_TIME = ("triggered", "containerTriggered", "split", "now")
_AT_THE_BEGIN = -1.0
_ZONES, _JUNCTIONS = "zones (fromTaz, toTaz)", "junctions (fromJunction, toJunction)"
_UNSUPPORTED_ENDS = dict.fromkeys(("fromTaz", "toTaz"), _ZONES) | dict.fromkeys(
    ("fromJunction", "toJunction", "viaJunctions"), _JUNCTIONS
)
_NOT_VEHICLES = ("person", "personFlow", "container", "containerFlow")


class _Node(NamedTuple):
    """An element with its children, of which only those of `_UNITS` are kept."""

    name: str
    attributes: Mapping[str, str]
    where: str
    children: list["_Node"]


class SumoFile:
    """Content of one or more route files (and additional files with routes), plain or gzipped.

    Parameters
    ----------
    files
        The files.

    Attributes
    ----------
    ids
        Ids of vehicles and trips, in the order of the files.
    depart_s
        Departure of each of `ids`, seconds of the files; below 0: at the begin of the run.
    course
        Number in `courses` of each of `ids`.
    courses
        Distinct routes and trips.
    flows
        Flows of vehicles.
    unhandled
        Number of elements that are not simulated, by reason.

    Raises
    ------
    InputError
        If a file cannot be read, is not a route file, uses an id twice, or has an invalid time or route.
    """

    def __init__(self, files: Iterable[str | Path]) -> None:
        self.ids: list[str] = []
        self.depart_s: list[float] = []
        self.course: list[int] = []
        self.courses = Courses()
        self.flows: list[SumoFlow] = []
        self.unhandled: Counter[str] = Counter()
        self._known: set[str] = set()
        for file in files:
            self._read(str(file))

    def _read(self, file: str) -> None:
        outer: list[_Node] = []
        for name, attributes, line in elements_of(file):
            if attributes is None:
                self._end(outer.pop(), outer)
                continue
            node = _Node(name, attributes, f"{file}: line {line}", [])
            if not outer and name not in _ROOTS:
                raise InputError(
                    [f"{node.where}: the outermost element must be one of {', '.join(_ROOTS)}, got {name!r}"]
                )
            if name == "include":
                self.unhandled["an <include> of another file: name that file too"] += 1
            elif name in _NOT_VEHICLES:
                self.unhandled[f"a {name}, which is not a road vehicle"] += 1
            # Types, stops and parameters do not affect routes and departures.
            elif name in _UNITS and outer and outer[-1].name in _UNITS:
                outer[-1].children.append(node)
            outer.append(node)

    def _end(self, node: _Node, outer: list[_Node]) -> None:
        """Read an element that has ended, unless it is a part of one that has not."""
        if node.name not in _UNITS or any(one.name in _UNITS for one in outer):
            return
        if node.name in _ROUTES:
            self._route(node, named=True)
        else:
            interval = next((one.attributes for one in reversed(outer) if one.name == "interval"), {})
            self._vehicle(node, interval)

    def _route(self, node: _Node, *, named: bool) -> int:
        """Return the number of a route or distribution; those outside of vehicles get their names."""
        attributes, courses = node.attributes, self.courses
        if node.name == "routeDistribution":
            course = self._distribution(node, named=named)
        elif "edges" in attributes:
            if not attributes["edges"].strip():
                raise InputError([f"{node.where}: a route must have at least one edge"])
            times = 1 + int(read_number(attributes, "repeat", 0.0, node.where, whole=True))
            if times * len(attributes["edges"].split()) > _MOST_EDGES:
                rule = f"a route must have at most {_MOST_EDGES:,} edges, repetitions included"
                raise InputError([f"{node.where}: {rule}, got repeat = {attributes['repeat']}"])
            edges = " ".join([attributes["edges"]] * times)
            course = courses.add(Course(edges, given=True, where=node.where))
        elif "refId" in attributes:
            course = courses.add(RouteReference(attributes["refId"], node.where))
        else:
            raise InputError([f"{node.where}: a route must have edges, got {', '.join(attributes) or 'nothing'}"])
        if named and "id" in attributes:
            courses.define(attributes["id"], course, where=node.where)
        return course

    def _distribution(self, node: _Node, *, named: bool) -> int:
        attributes, where, courses = node.attributes, node.where, self.courses
        names = attributes.get("routes", "").split()
        listed = attributes.get("probabilities", "").split() or ["1"] * len(names)
        if len(listed) != len(names):
            raise InputError([f"{where}: probabilities must be as many as routes, {len(names)}, got {len(listed)}"])
        options = [courses.add(RouteReference(name, where)) for name in names]
        weights = [_weight(text, where) for text in listed]
        for child in node.children:
            if child.name == "route":
                options.append(self._route(child, named=named))
                weights.append(_weight(child.attributes.get("probability", "1"), child.where))
        if sum(weights) <= 0:
            raise InputError([f"{where}: a distribution must have a route with a probability above 0"])
        last = attributes.get("last", "")
        if not named and last.isdecimal() and int(last) < len(options):
            return options[int(last)]  # a router's alternatives: use the one it chose
        return courses.add(RouteDistribution(tuple(options), tuple(weights), where))

    def _vehicle(self, node: _Node, interval: Mapping[str, str]) -> None:
        """Store a vehicle, trip or flow, or count the reason against it."""
        attributes, kind = node.attributes, node.name
        routes = [self._route(child, named=False) for child in node.children if child.name in _ROUTES]
        name = attributes.get("id")
        if not name:
            raise InputError([f"{node.where}: a {kind} must have an id"])
        where = f"{node.where}: {kind} {name!r}"
        if name in self._known:
            raise InputError([f"{where}: another vehicle, trip or flow has this id"])
        self._known.add(name)
        course = routes[-1] if routes else self._course_between(attributes, where)
        if course is None:
            return
        if kind == "flow":
            self.flows.append(SumoFlow.from_attributes(name, course, {**interval, **attributes}, where=where))
            return
        depart = attributes.get("depart", "").strip()
        if depart in _WITHOUT_TIME:
            self.unhandled[f"departs on an event instead of at a time (depart={depart!r})"] += 1
            return
        leaves = _AT_THE_BEGIN if depart == "begin" else seconds(depart)
        if leaves is None or (leaves < 0 and depart != "begin"):
            raise InputError([f"{where}: depart must be seconds, 0 or more, got {depart!r}"])
        self.ids.append(name)
        self.depart_s.append(leaves)
        self.course.append(course)

    def _course_between(self, attributes: Mapping[str, str], where: str) -> int | None:
        """Return the course that a vehicle without a route of its own names, None if it is not supported."""
        if "route" in attributes:
            return self.courses.add(RouteReference(attributes["route"], where))
        if "from" in attributes and "to" in attributes:
            edges = (attributes["from"], *attributes.get("via", "").split(), attributes["to"])
            return self.courses.add(Course(edges, given=False, where=where))
        for key, words in _UNSUPPORTED_ENDS.items():
            if key in attributes:
                self.unhandled[f"travels between {words}"] += 1
                return None
        raise InputError([f"{where} must have a route, or from and to"])


def _weight(text: str, where: str) -> float:
    weight = finite_number(text)
    if weight is None or weight < 0:
        raise InputError([f"{where}: probability must be a number, 0 or more, got {text!r}"])
    return weight
