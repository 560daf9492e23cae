"""SUMO's route files as they stand: who leaves when, on which edges."""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from simulator.files.xml_elements import Element, elements_of
from simulator.traffic.demand.sumo_courses import Choice, Courses
from simulator.traffic.demand.sumo_times import Flow, number, seconds
from simulator.traffic.errors import TrafficError

Attributes = Mapping[str, str]

_ROOTS = ("routes", "additional", "add", "routes-alternatives")
_WITHOUT_TIME = ("triggered", "containerTriggered", "split", "now")
_AT_THE_BEGIN = -1.0
_ELSEWHERE = {
    "fromTaz": "zones (fromTaz, toTaz)",
    "toTaz": "zones (fromTaz, toTaz)",
    "fromJunction": "junctions (fromJunction, toJunction)",
    "toJunction": "junctions (fromJunction, toJunction)",
    "viaJunctions": "junctions (fromJunction, toJunction)",
}
_NOT_VEHICLES = ("person", "personFlow", "container", "containerFlow")


@dataclass
class SumoFile:
    """What one or more route files hold.

    Attributes
    ----------
    ids
        Of vehicles and trips, in the order of the files.
    depart_s
        As many, seconds of the files; below 0: at the begin of the run.
    course
        As many numbers of `courses`.
    courses
        Routes and trips, each once.
    flows
        Vehicles by the stretch of time.
    unhandled
        What is not driven here and why, with how often.
    """

    ids: list[str] = field(default_factory=list)
    depart_s: list[float] = field(default_factory=list)
    course: list[int] = field(default_factory=list)
    courses: Courses = field(default_factory=Courses)
    flows: list[Flow] = field(default_factory=list)
    unhandled: Counter[str] = field(default_factory=Counter)

    @classmethod
    def read(cls, files: Iterable[str | Path]) -> "SumoFile":
        """Read route files (and additional files with routes), plain or gzipped.

        Raises
        ------
        TrafficError
            If one cannot be read, is no route file, gives an id twice, or a time or route that is none.
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
        for element in elements_of(self._file, error=TrafficError):
            if element.attributes is None:
                self._open.pop()
                self._end(element)
                continue
            if empty and element.name not in _ROOTS:
                rule = f"the outermost element must be one of {', '.join(_ROOTS)}"
                raise TrafficError([f"{self._at(element)}: {rule}, got {element.name!r}"])
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
                self._held.unhandled[f"a {name}, which is no vehicle on the road"] += 1
            case _:
                pass  # types, stops, parameters: nothing that decides who drives where and when

    def _route(self, element: Element, attributes: Attributes) -> None:
        where = self._at(element)
        if "edges" not in attributes and "refId" in attributes:
            course = self._held.courses.refer(attributes["refId"], where=where)
        elif "edges" not in attributes:
            raise TrafficError([f"{where}: a route must have edges, got {', '.join(attributes) or 'nothing'}"])
        else:
            course = self._held.courses.number(attributes["edges"], given=True, where=where)
        if self._options is not None:
            self._options.append((course, self._weight(attributes.get("probability", "1"), where)))
        elif self._vehicle is not None:
            self._course = course
        if "id" in attributes and self._vehicle is None:
            self._held.courses.define(attributes["id"], course, where=where)

    def _listed(self, element: Element, attributes: Attributes) -> None:
        """Take a distribution's routes given by name in its attributes."""
        names = attributes.get("routes", "").split()
        weights = attributes.get("probabilities", "").split() or ["1"] * len(names)
        where = self._at(element)
        if len(weights) != len(names):
            raise TrafficError([f"{where}: probabilities must be as many as routes, {len(names)}, got {len(weights)}"])
        if self._options is not None:
            for name, weight in zip(names, weights, strict=True):
                self._options.append((self._held.courses.refer(name, where=where), self._weight(weight, where)))

    def _weight(self, text: str, where: str) -> float:
        weight = number(text)
        if weight is None or weight < 0:
            raise TrafficError([f"{where}: probability must be a number, 0 or more, got {text!r}"])
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
            raise TrafficError([f"{where}: a distribution must have a route with a probability above 0"])
        last = attributes.get("last")
        if self._vehicle is not None and last is not None and last.isdecimal() and int(last) < len(options):
            self._course = options[int(last)][0]  # alternatives of a router: the one it chose
            return
        choice = Choice(tuple(course for course, _ in options), tuple(weight for _, weight in options), where)
        course = self._held.courses.add(choice)
        if self._vehicle is not None:
            self._course = course
        elif "id" in attributes:
            self._held.courses.define(attributes["id"], course, where=where)

    def _take(self, element: Element, attributes: Attributes) -> None:
        """Keep a vehicle, trip or flow, or count why not."""
        where, kind = self._at(element), element.name
        name = attributes.get("id")
        if not name:
            raise TrafficError([f"{where}: a {kind} must have an id"])
        if name in self._known:
            raise TrafficError([f"{where}: {kind} {name!r}: another vehicle, trip or flow has this id"])
        self._known.add(name)
        course = self._course_of(attributes, f"{where}: {kind} {name!r}")
        if course is None:
            return
        if kind == "flow":
            flow = Flow.from_attributes(name, course, {**self._interval, **attributes}, where=f"{where}: flow {name!r}")
            self._held.flows.append(flow)
            return
        depart = attributes.get("depart", "").strip()
        if depart in _WITHOUT_TIME:
            self._held.unhandled[f"departs when something else does (depart={depart!r})"] += 1
            return
        leaves = _AT_THE_BEGIN if depart == "begin" else seconds(depart)
        if leaves is None or (leaves < 0 and depart != "begin"):
            raise TrafficError([f"{where}: {kind} {name!r}: depart must be seconds, 0 or more, got {depart!r}"])
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
        for key, words in _ELSEWHERE.items():
            if key in attributes:
                self._held.unhandled[f"goes between {words}"] += 1
                return None
        raise TrafficError([f"{where} must have a route, or from and to"])
