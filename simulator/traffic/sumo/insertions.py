"""Upper bound on the vehicles that SUMO's files insert, and the edges that they depart from and arrive at."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from simulator.files.xml_elements import Element, elements_of
from simulator.traffic.demand.sumo_file import number, seconds
from simulator.traffic.errors import TrafficError
from simulator.traffic.trips import MOST_VEHICLES, too_many

_HOUR_S = 3600.0
_NEVER_MORE = 1e-12
"""Probability that a Poisson flow has more vehicles than the maximum assumed for it."""
_DEEPEST = 16
_CARRIED = ("vehicle", "trip", "flow", "route", "routeDistribution")
_INCLUDING = {"include": "href", "rerouter": "file", "variableSpeedSign": "file"}
"""Elements that make SUMO read another file, and the attribute that names the file."""
_LATER = ("triggered", "containerTriggered", "split")


@dataclass(frozen=True)
class Insertions:
    """Vehicles that may depart.

    Attributes
    ----------
    most
        Maximum number of vehicles in the whole run.
    unscheduled
        Ids of vehicles that depart upon another event, such as the arrival of a passenger: their actual departure is
        taken as the scheduled one.
    files
        Given files that hold vehicles, trips, flows or routes.
    included
        Files that they include, at any depth.
    """

    most: int
    unscheduled: frozenset[str]
    files: tuple[Path, ...] = ()
    included: tuple[Path, ...] = ()

    @classmethod
    def read(
        cls, files: Iterable[Path], *, begin_s: float, end_s: float, step_s: float, scale: float = 1.0
    ) -> "Insertions":
        """Count the vehicles, trips and flows of route and additional files, plain or gzipped.

        Flows with a rate count the vehicles that fit between their begin and end, or the run's end. Random flows count
        the number that is exceeded in one case of 10¹². A person's trip counts as the car it may need.

        Parameters
        ----------
        files
            Route files and additional files; the files they include are read too.
        begin_s, end_s
            Begin and end of the run, in SUMO's time.
        step_s
            SUMO's step.
        scale
            Number of copies of each vehicle.

        Raises
        ------
        TrafficError
            If a file cannot be read, a time or rate in it is invalid, or there are no vehicles or too many.
        """
        reading = _Reading(begin_s, end_s, step_s)
        listed = list(files)
        carriers = tuple(file for file in listed if reading.run(file, 0))
        named = ", ".join(map(str, listed))
        if reading.vehicles == 0:
            within = f"from second {begin_s:g} to {math.floor(1000 * end_s) / 1000:.10g} of SUMO's time"
            raise TrafficError([f"{named}: no vehicle, trip or flow that departs within the run, {within}"])
        most = math.ceil(reading.vehicles * math.ceil(scale * reading.type_scale))
        if fault := too_many(most):
            raise TrafficError([f"{named}: {fault}"])
        return cls(most, frozenset(reading.unscheduled), carriers, tuple(dict.fromkeys(reading.included)))


def refuse_connection(element: Element, file: Path) -> None:
    """Check that an element names no output of the form ``host:port``, to which SUMO would connect.

    Raises
    ------
    TrafficError
        If the element names such an output.
    """
    attributes = element.attributes or {}
    names = [name for name in ("file", "dest", "output") if name in attributes]
    if element.name == "param" and attributes.get("key", "").endswith("file"):
        names.append("value")
    for name in names:
        if attributes[name].find(":") > 1:
            rule = "must be a file: SUMO takes it for a host and port, and connects"
            raise TrafficError([f"{file}: line {element.line}: {name} {rule}, got {attributes[name]!r}"])


class _Reading:
    def __init__(self, begin_s: float, end_s: float, step_s: float) -> None:
        self._begin_s, self._end_s, self._step_s = begin_s, end_s, step_s
        self._persons = 1
        self.vehicles = 0
        self.type_scale = 1.0
        self.unscheduled: list[str] = []
        self.included: list[Path] = []

    def run(self, file: Path, depth: int) -> bool:
        """Read a file and the files it includes; return whether it holds vehicles or routes."""
        if depth > _DEEPEST:
            raise TrafficError([f"{file}: is included more than {_DEEPEST} files deep"])
        carries, self._persons = False, 1
        interval: Mapping[str, str] = {}
        for element in elements_of(file):
            if element.attributes is None:
                if element.name == "interval":
                    interval = {}
                elif element.name == "personFlow":
                    self._persons = 1
                continue
            refuse_connection(element, file)
            carries |= element.name in _CARRIED
            if element.name == "interval":
                interval = element.attributes
            elif (named := element.attributes.get(_INCLUDING.get(element.name, ""))) is not None:
                self.included.append(file.parent / named)
                carries |= self.run(self.included[-1], depth + 1)
            else:
                self._count(element.name, {**interval, **element.attributes}, f"{file}: line {element.line}")
        return carries

    def _count(self, name: str, attributes: Mapping[str, str], where: str) -> None:
        match name:
            case "vehicle" | "trip":
                self._one(attributes)
            case "flow":
                self.vehicles += self._of_flow(attributes, where)
            case "personFlow":
                self._persons = self._of_flow(attributes, where)
            case "personTrip":
                self.vehicles += self._persons
            case "vType" if "scale" in attributes:
                self.type_scale = max(self.type_scale, self._read(attributes, "scale", 1.0, where))
            case _:
                pass

    def _one(self, attributes: Mapping[str, str]) -> None:
        depart = attributes.get("depart", "")
        if depart in _LATER:
            self.unscheduled.append(attributes.get("id", ""))
        leaves_s = seconds(depart)
        # SUMO skips vehicles that depart before its begin; it reports any other unreadable departure itself.
        if leaves_s is None or self._begin_s <= leaves_s <= self._end_s or leaves_s < 0:
            self.vehicles += 1

    def _of_flow(self, attributes: Mapping[str, str], where: str) -> int:
        begin_s = max(self._begin_s, self._read(attributes, "begin", self._begin_s, where))
        end_s = min(self._end_s, self._read(attributes, "end", self._end_s, where))
        stretch_s = max(0.0, end_s - begin_s)
        counts = []
        if "number" in attributes:
            counts.append(self._read(attributes, "number", 0.0, where))
        counts += [
            stretch_s * self._read(attributes, key, 0.0, where) / _HOUR_S + 2
            for key in ("vehsPerHour", "perHour")
            if key in attributes
        ]
        if "probability" in attributes:
            self._read(attributes, "probability", 0.0, where)
            counts.append(stretch_s / min(self._step_s, 1.0) + 2)
        if "period" in attributes:
            counts.append(self._by_period(attributes["period"].strip(), stretch_s, where))
        fewest = min(counts, default=0.0)
        if fault := too_many(fewest):
            raise TrafficError([f"{where}: {fault}"])
        return math.ceil(fewest)

    def _by_period(self, text: str, stretch_s: float, where: str) -> float:
        by_chance = text.startswith("exp(") and text.endswith(")")
        value = number(text[4:-1]) if by_chance else seconds(text)
        if value is None or value <= 0:
            raise TrafficError([f"{where}: period must be above 0, or exp(a rate), got {text!r}"])
        if by_chance:
            from scipy import stats  # noqa: PLC0415  slow to import, for this kind of flow only

            mean = stretch_s * value
            # One more for a vehicle that departs as the flow begins; scipy has no quantiles for extremely large means.
            return mean if mean > MOST_VEHICLES else float(stats.poisson.isf(_NEVER_MORE, mean)) + 1
        return stretch_s / value + 2

    @staticmethod
    def _read(attributes: Mapping[str, str], key: str, default: float, where: str) -> float:
        if key not in attributes:
            return default
        text = attributes[key]
        value = seconds(text) if key in {"begin", "end"} else number(text)
        if value is None or value < 0:
            raise TrafficError([f"{where}: {key} must be a number, 0 or more, got {text!r}"])
        return value


UNKNOWN = -1
Ends = Callable[[str], tuple[tuple[float, float], tuple[float, float]]]
"""Function from an edge to its start and end points, in SUMO's coordinates."""


class Edges:
    """Numbering of the edges that trips name, with their links and end points.

    Parameters
    ----------
    driven
        The network's edges, by SUMO's id.
    link_of
        The city's link of each edge that is part of the city.
    """

    def __init__(self, driven: Collection[str], link_of: Mapping[str, int]) -> None:
        self._driven, self._link_of = driven, link_of
        self._number: dict[str, int] = {}
        self._ends: list[tuple[float, float, float, float]] = []
        self._links: list[int] = []

    def number(self, edge: str, ends: Ends) -> int:
        """Return the edge's number, -1 if the network has no such edge; `ends` is called the first time."""
        known = self._number.get(edge)
        if known is None:
            if edge not in self._driven:
                return UNKNOWN
            (x0, y0), (x1, y1) = ends(edge)
            known = self._number[edge] = len(self._ends)
            self._ends.append((x0, y0, x1, y1))
            self._links.append(self.link(edge))
        return known

    def link(self, edge: str) -> int:
        """Return the city's link of an edge; -1 if it is not part of the city, or is within a junction."""
        return self._link_of.get(edge, -1)

    def starts(self, numbers: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Return the links and start points of edges, in SUMO's coordinates; -1 and NaN for number -1."""
        return self._take(numbers, slice(0, 2))

    def finishes(self, numbers: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Return the links and end points of edges, in SUMO's coordinates; -1 and NaN for number -1."""
        return self._take(numbers, slice(2, 4))

    def _take(
        self, numbers: npt.NDArray[np.int32], which: slice
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        # Number -1 selects the last row, which holds NaN.
        ends = np.array([*self._ends, (np.nan,) * 4], dtype=np.float64)
        links = np.array([*self._links, -1], dtype=np.int32)
        return links[numbers], ends[numbers, which]
