"""Reader of SUMO route files: vehicles, trips and flows with their edges and departure times."""

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from simulator.files.errors import InputError
from simulator.files.xml_elements import Element, elements_of
from simulator.traffic import FloatArray, IntArray
from simulator.traffic.trips import too_many


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
    where: str


class Courses:
    """Distinct courses of some files, by number."""

    def __init__(self) -> None:
        self._all: list[Course | RouteDistribution | RouteReference] = []
        self._known: dict[tuple[object, bool], int] = {}
        self._named: dict[str, int] = {}
        self._referred: dict[str, int] = {}

    def number(self, edges: str | tuple[str, ...], *, given: bool, where: str) -> int:
        """Return the number of a course; a string holds edge ids separated by blanks.

        Raises
        ------
        InputError
            If it has no edge.
        """
        known = self._known.get((edges, given))
        if known is not None:
            return known
        ids = tuple(edges.split()) if isinstance(edges, str) else edges
        if not ids:
            raise InputError([f"{where}: a route must have at least one edge"])
        self._known[edges, given] = self.add(Course(ids, given, where))
        return len(self._all) - 1

    def add(self, course: Course | RouteDistribution | RouteReference) -> int:
        """Add a new course, choice or reference, and return its number."""
        self._all.append(course)
        return len(self._all) - 1

    def refer(self, name: str, *, where: str) -> int:
        """Return the number of a reference to a route by name."""
        if name not in self._referred:
            self._referred[name] = self.add(RouteReference(name, where))
        return self._referred[name]

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
        InputError
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
        raise InputError([f"{first.where}: distributions of routes must not refer to one another in a circle"])

    def _one_step(
        self, course: Course | RouteDistribution | RouteReference, vehicles: int, rng: np.random.Generator
    ) -> IntArray:
        if isinstance(course, RouteReference):
            if course.name not in self._named:
                raise InputError([f"{course.where}: there is no route with the id {course.name!r}"])
            return np.full(vehicles, self._named[course.name], dtype=np.int32)
        if isinstance(course, RouteDistribution):
            share = np.array(course.weights) / sum(course.weights)
            return np.array(course.options, dtype=np.int32)[rng.choice(len(share), size=vehicles, p=share)]
        raise TypeError("a Course is not a reference to another course")


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
    return number(text)


def number(text: str) -> float | None:
    """Read a finite number; return None for any other text."""
    try:
        value = float(text) if "_" not in text else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


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
        count = read_number(attributes, "number", math.inf, where)
        if math.isfinite(count) and not count.is_integer():
            raise InputError([f"{where}: number must be whole, got {attributes['number']!r}"])
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


def read_number(attributes: Mapping[str, str], key: str, default: float, where: str) -> float:
    """Read a number, 0 or more, of a flow's attributes; "begin" and "end" may be clock times.

    Raises
    ------
    InputError
        If the attribute is anything else.
    """
    if key not in attributes:
        return default
    value = seconds(attributes[key]) if key in {"begin", "end"} else number(attributes[key])
    if value is None or value < 0:
        raise InputError([f"{where}: {key} must be a number, 0 or more, got {attributes[key]!r}"])
    return value


def _rate(key: str, text: str, where: str) -> tuple[str, float]:
    """Return the kind and rate of a flow."""
    poisson = _POISSON.fullmatch(text) if key == "period" else None
    value = number(poisson[1] if poisson else text)
    most = 1.0 if key == "probability" else math.inf
    if value is None or not 0 < value <= most:
        within = "from above 0 to 1" if key == "probability" else "above 0"
        raise InputError([f"{where}: {key} must be a number {within}, got {text!r}"])
    if poisson:
        return "poisson", value
    if key in {"vehsPerHour", "perHour"}:
        return "period", _HOUR_S / value
    return key, value


Attributes = Mapping[str, str]

_ROOTS = ("routes", "additional", "add", "routes-alternatives")
_WITHOUT_TIME = ("triggered", "containerTriggered", "split", "now")
_AT_THE_BEGIN = -1.0
_UNSUPPORTED_ENDS = {
    "fromTaz": "zones (fromTaz, toTaz)",
    "toTaz": "zones (fromTaz, toTaz)",
    "fromJunction": "junctions (fromJunction, toJunction)",
    "toJunction": "junctions (fromJunction, toJunction)",
    "viaJunctions": "junctions (fromJunction, toJunction)",
}
_NOT_VEHICLES = ("person", "personFlow", "container", "containerFlow")


@dataclass
class SumoFile:
    """Content of one or more route files.

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
    """

    ids: list[str] = field(default_factory=list)
    depart_s: list[float] = field(default_factory=list)
    course: list[int] = field(default_factory=list)
    courses: Courses = field(default_factory=Courses)
    flows: list[SumoFlow] = field(default_factory=list)
    unhandled: Counter[str] = field(default_factory=Counter)

    @classmethod
    def read(cls, files: Iterable[str | Path]) -> "SumoFile":
        """Read route files (and additional files with routes), plain or gzipped.

        Raises
        ------
        InputError
            If a file cannot be read, is not a route file, uses an id twice, or has an invalid time or route.
        """
        held = cls()
        known: set[str] = set()
        for file in files:
            _Reading(held, str(file), known).run()
        return held


class _Reading:
    """One pass through one file."""

    def __init__(self, held: SumoFile, file: str, known: set[str]) -> None:
        self._held, self._file, self._known = held, file, known
        self._open: list[str] = []
        self._vehicle: Element | None = None
        self._course: int | None = None
        self._options: list[tuple[int, float]] | None = None
        self._holder: Element | None = None
        self._interval: Attributes = {}

    def run(self) -> None:
        empty = True
        for element in elements_of(self._file):
            if element.attributes is None:
                self._open.pop()
                self._end(element)
                continue
            if empty and element.name not in _ROOTS:
                rule = f"the outermost element must be one of {', '.join(_ROOTS)}"
                raise InputError([f"{self._at(element)}: {rule}, got {element.name!r}"])
            empty = False
            self._begin(element, element.attributes)
            self._open.append(element.name)

    def _at(self, element: Element) -> str:
        return f"{self._file}: line {element.line}"

    def _begin(self, element: Element, attributes: Attributes) -> None:
        match element.name:
            case "vehicle" | "trip" | "flow" if self._vehicle is None:
                self._vehicle, self._course = element, None
            case "route":
                self._route(element, attributes)
            case "routeDistribution":
                self._holder, self._options = element, []
                self._listed(element, attributes)
            case "interval":
                self._interval = attributes
            case "include":
                self._held.unhandled["an <include> of another file: name that file too"] += 1
            case name if name in _NOT_VEHICLES:
                self._held.unhandled[f"a {name}, which is not a road vehicle"] += 1
            case _:
                pass  # types, stops, parameters: they do not affect routes and departures

    def _route(self, element: Element, attributes: Attributes) -> None:
        where = self._at(element)
        if "edges" not in attributes and "refId" in attributes:
            course = self._held.courses.refer(attributes["refId"], where=where)
        elif "edges" not in attributes:
            raise InputError([f"{where}: a route must have edges, got {', '.join(attributes) or 'nothing'}"])
        else:
            course = self._held.courses.number(attributes["edges"], given=True, where=where)
        if self._options is not None:
            self._options.append((course, self._weight(attributes.get("probability", "1"), where)))
        elif self._vehicle is not None:
            self._course = course
        if "id" in attributes and self._vehicle is None:
            self._held.courses.define(attributes["id"], course, where=where)

    def _listed(self, element: Element, attributes: Attributes) -> None:
        """Read the routes that a distribution names in its attributes."""
        names = attributes.get("routes", "").split()
        weights = attributes.get("probabilities", "").split() or ["1"] * len(names)
        where = self._at(element)
        if len(weights) != len(names):
            raise InputError([f"{where}: probabilities must be as many as routes, {len(names)}, got {len(weights)}"])
        if self._options is not None:
            for name, weight in zip(names, weights, strict=True):
                self._options.append((self._held.courses.refer(name, where=where), self._weight(weight, where)))

    def _weight(self, text: str, where: str) -> float:
        weight = number(text)
        if weight is None or weight < 0:
            raise InputError([f"{where}: probability must be a number, 0 or more, got {text!r}"])
        return weight

    def _end(self, element: Element) -> None:
        if element.name == "routeDistribution" and self._holder is not None and self._options is not None:
            self._close_distribution(self._holder, self._options)
        elif element.name == "interval":
            self._interval = {}
        elif self._vehicle is not None and element.name == self._vehicle.name and self._vehicle_closes():
            begun, self._vehicle = self._vehicle, None
            self._take(begun, begun.attributes or {})

    def _vehicle_closes(self) -> bool:
        return not any(name in {"vehicle", "trip", "flow"} for name in self._open)

    def _close_distribution(self, holder: Element, options: list[tuple[int, float]]) -> None:
        where, attributes = self._at(holder), holder.attributes or {}
        self._holder = self._options = None
        if not options or sum(weight for _, weight in options) <= 0:
            raise InputError([f"{where}: a distribution must have a route with a probability above 0"])
        last = attributes.get("last")
        if self._vehicle is not None and last is not None and last.isdecimal() and int(last) < len(options):
            self._course = options[int(last)][0]  # a router's alternatives: use the one it chose
            return
        choice = RouteDistribution(
            tuple(course for course, _ in options), tuple(weight for _, weight in options), where
        )
        course = self._held.courses.add(choice)
        if self._vehicle is not None:
            self._course = course
        elif "id" in attributes:
            self._held.courses.define(attributes["id"], course, where=where)

    def _take(self, element: Element, attributes: Attributes) -> None:
        """Store a vehicle, trip or flow, or count the reason against it."""
        where, kind = self._at(element), element.name
        name = attributes.get("id")
        if not name:
            raise InputError([f"{where}: a {kind} must have an id"])
        if name in self._known:
            raise InputError([f"{where}: {kind} {name!r}: another vehicle, trip or flow has this id"])
        self._known.add(name)
        course = self._course_of(attributes, f"{where}: {kind} {name!r}")
        if course is None:
            return
        if kind == "flow":
            flow = SumoFlow.from_attributes(
                name, course, {**self._interval, **attributes}, where=f"{where}: flow {name!r}"
            )
            self._held.flows.append(flow)
            return
        depart = attributes.get("depart", "").strip()
        if depart in _WITHOUT_TIME:
            self._held.unhandled[f"departs on an event instead of at a time (depart={depart!r})"] += 1
            return
        leaves = _AT_THE_BEGIN if depart == "begin" else seconds(depart)
        if leaves is None or (leaves < 0 and depart != "begin"):
            raise InputError([f"{where}: {kind} {name!r}: depart must be seconds, 0 or more, got {depart!r}"])
        self._held.ids.append(name)
        self._held.depart_s.append(leaves)
        self._held.course.append(course)

    def _course_of(self, attributes: Attributes, where: str) -> int | None:
        if self._course is not None:
            return self._course
        if "route" in attributes:
            return self._held.courses.refer(attributes["route"], where=where)
        if "from" in attributes and "to" in attributes:
            ends = itertools.chain([attributes["from"]], attributes.get("via", "").split(), [attributes["to"]])
            return self._held.courses.number(tuple(ends), given=False, where=where)
        for key, words in _UNSUPPORTED_ENDS.items():
            if key in attributes:
                self._held.unhandled[f"travels between {words}"] += 1
                return None
        raise InputError([f"{where} must have a route, or from and to"])
