"""Reader of SUMO route files: vehicles and trips with their edges and departures, and the elements that SUMO draws."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

from simulator.files.errors import InputError
from simulator.files.times import seconds
from simulator.files.tntp_text import finite_number
from simulator.files.xml_elements import elements_of
from simulator.formats.sumo.attributes import VehicleType, VehicleTypes, read_number
from simulator.traffic.trips import MOST_VEHICLES, too_many


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


_HOUR_S = 3600.0
_NEVER_MORE = 1e-12
"""Probability that a random flow has more vehicles than the maximum assumed for it."""


def most_of_flow(attributes: Mapping[str, str], *, begin_s: float, end_s: float, step_s: float, where: str) -> int:
    """Return the maximum number of vehicles of a flow within a run.

    A flow with a rate has those that fit between its begin and end, or the run's. A random flow has the number that it
    exceeds in one case of 10¹².

    Parameters
    ----------
    attributes
        Attributes of a <flow> or <personFlow>.
    begin_s, end_s
        Begin and end of the run, in SUMO's time.
    step_s
        SUMO's step.
    where
        File and line, for messages.

    Raises
    ------
    InputError
        If a time, number or rate is invalid, or there are too many vehicles.
    """
    begin_s = max(begin_s, read_number(attributes, "begin", begin_s, where))
    end_s = min(end_s, read_number(attributes, "end", end_s, where))
    stretch_s = max(0.0, end_s - begin_s)
    counts = [read_number(attributes, "number", 0.0, where)] if "number" in attributes else []
    for key in ("vehsPerHour", "perHour"):
        if key in attributes:
            per_hour = read_number(attributes, key, 0.0, where)
            counts.append(_most_by_period(_HOUR_S / per_hour if per_hour else math.inf, stretch_s))
    if "probability" in attributes:
        counts.append(_most_by_probability(read_number(attributes, "probability", 0.0, where), stretch_s, step_s))
    if "period" in attributes:
        counts.append(_most_by_period_text(attributes["period"].strip(), stretch_s, where))
    fewest = min(counts, default=0.0)
    if fault := too_many(fewest):
        raise InputError([f"{where}: {fault}"])
    return math.ceil(fewest)


def _most_by_probability(per_second: float, stretch_s: float, step_s: float) -> float:
    from scipy import stats  # noqa: PLC0415  slow to import, for random flows only

    # SUMO draws once a step. Steps longer than a second have fewer draws of the same mean, and so vary less.
    each_s = min(step_s, 1.0)
    draws = stretch_s / each_s + 2
    if draws > MOST_VEHICLES:
        return stretch_s * per_second
    return float(stats.binom.isf(_NEVER_MORE, math.ceil(draws), min(per_second * each_s, 1.0))) + 1


def _most_by_period(period_s: float, stretch_s: float) -> float:
    # SUMO leaves out parts of a millisecond.
    whole_s = math.floor(1000 * period_s) / 1000 if math.isfinite(period_s) else period_s
    return stretch_s / (whole_s or period_s) + 2


def _most_by_period_text(text: str, stretch_s: float, where: str) -> float:
    by_chance = text.startswith("exp(") and text.endswith(")")
    value = finite_number(text[4:-1]) if by_chance else seconds(text)
    if value is None or value <= 0:
        raise InputError([f"{where}: period must be above 0, or exp(a rate), got {text!r}"])
    if by_chance:
        from scipy import stats  # noqa: PLC0415  slow to import, for random flows only

        mean = stretch_s * value
        # One more for a vehicle that departs as the flow begins; scipy has no quantiles for extremely large means.
        return mean if mean > MOST_VEHICLES else float(stats.poisson.isf(_NEVER_MORE, mean)) + 1
    return _most_by_period(value, stretch_s)


_ROOTS = ("routes", "additional", "add", "routes-alternatives")
_ROUTES = ("route", "routeDistribution")
_ZONES = ("taz", "tazSource", "tazSink")
_UNITS = ("vehicle", "trip", "flow", *_ROUTES, *_ZONES)
_NOT_VEHICLES = ("person", "personFlow", "container", "containerFlow")
_MOST_EDGES = 1_000_000
_WITHOUT_TIME = ("triggered", "containerTriggered", "split", "now")
_AT_THE_BEGIN = -1.0
_DRAWN_ENDS = ("fromTaz", "toTaz", "fromJunction", "toJunction")
_TIMES = ("depart", "begin", "end", "number", "period", "vehsPerHour", "perHour", "probability")
_PLACES = ("from", "to", "via", *_DRAWN_ENDS, "viaJunctions", "route", "routes", "probabilities", "refId")
_WRITTEN = ("id", "edges", "repeat", "weight", "type", *_TIMES, *_PLACES)
"""Attributes that affect routes and departures; lanes, positions and speeds do not."""


class Node(NamedTuple):
    """An element with its children; only children named in `_UNITS` are kept."""

    name: str
    attributes: Mapping[str, str]
    where: str
    children: list["Node"]

    def xml(self) -> str:
        """Return the element as text, with the attributes of `_WRITTEN`."""
        written = (f" {key}={quoteattr(value)}" for key, value in self.attributes.items() if key in _WRITTEN)
        return f"<{self.name}{''.join(written)}>{''.join(child.xml() for child in self.children)}</{self.name}>"


class Vehicle(NamedTuple):
    """A vehicle: its id; its departure in seconds of the files, below 0 for the begin of the run; and its course."""

    name: str
    depart_s: float
    course: Course


class SumoFile:
    """Content of one or more route files (and additional files with routes), plain or gzipped.

    Parameters
    ----------
    files
        The files.

    Attributes
    ----------
    vehicles
        Vehicles and trips with their own routes or edges, in the order of the files.
    drawn
        What SUMO has to draw: flows; and vehicles and trips between zones or junctions, or by a distribution of routes.
    unhandled
        Number of elements that are not simulated, by reason.

    Raises
    ------
    InputError
        If a file cannot be read, is not a route file, uses an id twice, or has an invalid time or route.
    """

    def __init__(self, files: Iterable[str | Path]) -> None:
        self.vehicles: list[Vehicle] = []
        self.drawn: list[Node] = []
        self.unhandled: Counter[str] = Counter()
        self._types = VehicleTypes()
        self._type_of: dict[str, str] = {}
        self._listed: list[tuple[str, float, Course | str]] = []
        self._ids: set[str] = set()
        self._named: dict[str, Course | None] = {}
        self._used: dict[str, str] = {}
        self._parts: list[Node] = []
        for file in files:
            self._read(str(file))
        self._resolve()

    def types_of(self, vehicle: str) -> tuple[tuple[VehicleType, ...], tuple[float, ...]]:
        """Return the types that a vehicle may have, and their weights, by its id.

        A vehicle of a flow has the flow's id, a dot and a number.
        """
        return self._types.of(self._type_of[vehicle if vehicle in self._type_of else vehicle.rpartition(".")[0]])

    def drawn_by_class(self, only: str | None) -> list[Node]:
        """Return what SUMO has to draw, with its vehicle class as its type, or one for all."""
        classes = [only or self.types_of(node.attributes["id"])[0][0].vehicle_class for node in self.drawn]
        return [
            node._replace(attributes={**node.attributes, "type": name})
            for node, name in zip(self.drawn, classes, strict=True)
        ]

    def xml(self) -> str:
        """Return the routes and zones of the files, as elements of a file of SUMO's."""
        return "".join(node.xml() for node in sorted(self._parts, key=lambda node: node.name == "routeDistribution"))

    def _read(self, file: str) -> None:
        outer: list[Node] = []
        for name, attributes, line in elements_of(file):
            if attributes is None:
                self._types.end(name)
                self._end(outer.pop(), outer)
                continue
            node = Node(name, attributes, f"{file}: line {line}", [])
            self._types.add(name, attributes, node.where)
            if not outer and name not in _ROOTS:
                raise InputError(
                    [f"{node.where}: the outermost element must be one of {', '.join(_ROOTS)}, got {name!r}"]
                )
            if name == "include":
                self.unhandled["an <include> of another file: name that file too"] += 1
            elif name in _NOT_VEHICLES:
                self.unhandled[f"a {name}, which is not a road vehicle"] += 1
            # Stops and parameters do not affect routes and departures.
            elif name in _UNITS and outer and outer[-1].name in _UNITS:
                outer[-1].children.append(node)
            outer.append(node)

    def _end(self, node: Node, outer: list[Node]) -> None:
        """Read an element that has ended, unless it is a part of one that has not."""
        if node.name not in _UNITS or any(one.name in _UNITS for one in outer):
            return
        if node.name in _ZONES:
            self._parts.append(node)
        elif node.name in _ROUTES:
            self._define(node)
        else:
            interval = next((one.attributes for one in reversed(outer) if one.name == "interval"), {})
            self._vehicle(node._replace(attributes={**interval, **node.attributes}))

    def _define(self, node: Node) -> None:
        """Store a route or a distribution of routes under its name."""
        name = node.attributes.get("id", "")
        if name in self._named:
            raise InputError([f"{node.where}: another route has the id {name!r}"])
        self._named[name] = _course(node) if node.name == "route" else None
        self._parts.append(node)

    def _vehicle(self, node: Node) -> None:
        """Store a vehicle, trip or flow, or count the reason against it."""
        attributes, kind = node.attributes, node.name
        if not (name := attributes.get("id")):
            raise InputError([f"{node.where}: a {kind} must have an id"])
        where = f"{node.where}: {kind} {name!r}"
        if name in self._ids:
            raise InputError([f"{where}: another vehicle, trip or flow has this id"])
        self._ids.add(name)
        self._type_of[name] = attributes.get("type", "")
        course = _course_of(node, where)
        if isinstance(course, str):
            self._used.setdefault(course, where)
        if kind == "flow":
            self.drawn.append(node._replace(where=where))
            return
        depart = attributes.get("depart", "").strip()
        if depart in _WITHOUT_TIME:
            self.unhandled[f"departs on an event instead of at a time (depart={depart!r})"] += 1
            return
        leaves = _AT_THE_BEGIN if depart == "begin" else seconds(depart)
        if leaves is None or (leaves < 0 and depart != "begin"):
            raise InputError([f"{where}: depart must be seconds, 0 or more, got {depart!r}"])
        if course is None:
            self.drawn.append(node._replace(where=where))
        else:
            self._listed.append((name, leaves, course))

    def _resolve(self) -> None:
        """Replace the names of routes; a vehicle that names a distribution is left for SUMO to draw."""
        for name, where in self._used.items():
            if name not in self._named:
                raise InputError([f"{where}: there is no route with the id {name!r}"])
        for name, leaves, listed in self._listed:
            course = self._named[listed] if isinstance(listed, str) else listed
            if course is not None:
                self.vehicles.append(Vehicle(name, leaves, course))
            else:
                depart = "begin" if leaves < 0 else f"{leaves:.3f}"
                attributes = {"id": name, "depart": depart, "route": str(listed)}
                self.drawn.append(Node("vehicle", attributes, f"vehicle {name!r}", []))


def _course(route: Node) -> Course:
    """Return the edges of a route, repetitions included."""
    attributes, where = route.attributes, route.where
    if "edges" not in attributes:
        raise InputError([f"{where}: a route must have edges, got {', '.join(attributes) or 'nothing'}"])
    edges = attributes["edges"]
    if not edges.strip():
        raise InputError([f"{where}: a route must have at least one edge"])
    times = 1 + int(read_number(attributes, "repeat", 0.0, where, whole=True))
    if times * len(edges.split()) > _MOST_EDGES:
        rule = f"a route must have at most {_MOST_EDGES:,} edges, repetitions included"
        raise InputError([f"{where}: {rule}, got repeat = {attributes['repeat']}"])
    return Course(" ".join([edges] * times), given=True, where=where)


def _course_of(node: Node, where: str) -> Course | str | None:
    """Return the course of a vehicle, trip or flow, or the name of its route; None if SUMO has to draw it."""
    attributes = node.attributes
    for route in reversed(node.children):
        if route.name == "routeDistribution":
            options, last = route.children, route.attributes.get("last", "")
            # A router's alternatives: use the one it chose.
            return _course(options[int(last)]) if last.isdecimal() and int(last) < len(options) else None
        return route.attributes["refId"] if "refId" in route.attributes else _course(route)
    if "route" in attributes:
        return attributes["route"]
    if "from" in attributes and "to" in attributes:
        edges = (attributes["from"], *attributes.get("via", "").split(), attributes["to"])
        return Course(edges, given=False, where=where)
    if not attributes.keys().isdisjoint(_DRAWN_ENDS):
        return None
    raise InputError([f"{where} must have a route, or from and to"])
