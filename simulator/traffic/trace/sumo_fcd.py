"""Readers of SUMO's floating-car data (``--fcd-output``) in XML, CSV and Parquet."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from simulator.files.messages import counted
from simulator.files.xml_elements import elements_of
from simulator.traffic.errors import TrafficError
from simulator.traffic.trace.fixes import Fixes
from simulator.traffic.trace.tables import TraceOptions, check, fixes_of, numbers_of, to_wgs84
from simulator.traffic.trace.times import Times

WITHOUT_GEO = "x and y look like metres: let SUMO write --fcd-output.geo, or give the system they are in as traffic.crs"

_PLAIN = {"time", "id", "x", "y", "speed"}


def is_sumo(seen: Sequence[str]) -> bool:
    """Return whether columns are those of ``sumo --fcd-output``, with or without the names of their elements."""
    return {"timestep_time", "vehicle_id"} <= set(seen) or (
        set(seen) >= _PLAIN and not {"lane", "edge"}.isdisjoint(seen)
    )


def fixes_of_sumo(
    frame: pd.DataFrame, reading: TraceOptions, *, source: str, place: npt.NDArray[np.int64], place_word: str
) -> Fixes:
    """Convert SUMO's table to fixes; x and y are longitude and latitude unless a system in metres is given.

    A timestep without vehicles is a row without a vehicle; such rows, and rows of persons, are left out.

    Raises
    ------
    TrafficError
        If columns or values are invalid.
    """
    named = "vehicle_" if "vehicle_id" in frame.columns else ""
    time = "timestep_time" if "timestep_time" in frame.columns else "time"
    columns = {role: f"{named}{column}" for role, column in (("vehicle", "id"), ("x", "x"), ("y", "y"))}
    if f"{named}speed" in frame.columns:
        columns["speed_mps"] = f"{named}speed"
    faults = [f"{source}: no column {name!r}" for name in [*columns.values(), time] if name not in frame.columns]
    if faults:
        raise TrafficError(faults)
    x, y = (numbers_of(frame[columns[role]]) for role in "xy")
    empty = frame[columns["vehicle"]].isna().to_numpy() & np.isnan(x) & np.isnan(y)
    if empty.all():
        raise TrafficError([f"{source}: it holds no vehicle"])
    metres = bool((np.abs(x[~empty]) > 180).any() and (np.abs(y[~empty]) > 90).any())
    if reading.crs is None:
        if metres:
            raise TrafficError([f"{source}: {WITHOUT_GEO}"])
        columns["lon"], columns["lat"] = columns.pop("x"), columns.pop("y")
    own = TraceOptions({**columns, "time": time}, crs=reading.crs, time_unit_s=reading.time_unit_s or 1.0)
    there = frame[~empty]
    return fixes_of(there, own, source=source, vehicle="", place=place[~empty], place_word=place_word, ascending=True)


_OTHERS = frozenset(["person", "container"])


class _Rows:
    """Collector of vehicles while a document is parsed."""

    def __init__(self, file: Path, unit_s: float) -> None:
        self._file, self._unit_s = file, unit_s
        self._time, self._last = float("nan"), float("-inf")
        self.codes: dict[str, int] = {}
        self.vehicle: list[int] = []
        self.time: list[float] = []
        self.x: list[float] = []
        self.y: list[float] = []
        self.speed: list[float] = []
        self.line: list[int] = []
        self.others = 0
        self.root = ""

    def started(self, name: str, attributes: Mapping[str, str], line: int) -> None:
        if name == "vehicle" and self.root:
            self._vehicle(attributes, line)
        elif name == "timestep":
            self._time = self._number(attributes, "time", "timestep", line) * self._unit_s
            if self._time < self._last:
                rule = f"time must not go back, got {self._time:g} s after {self._last:g} s"
                raise TrafficError([f"{self._file}: line {line}: timestep: {rule}"])
            self._last = self._time
        elif name in _OTHERS:
            self.others += 1
        if not self.root:
            self.root = name
            if name != "fcd-export":
                rule = f"the outermost element must be fcd-export, got {name}"
                raise TrafficError([f"{self._file}: line {line}: {rule}"])

    def _vehicle(self, attributes: Mapping[str, str], line: int) -> None:
        if math.isnan(self._time):  # no timestep yet
            raise TrafficError([f"{self._file}: line {line}: vehicle must be within a timestep"])
        if "id" not in attributes:
            raise TrafficError([f"{self._file}: line {line}: vehicle must have an id"])
        self.vehicle.append(self.codes.setdefault(attributes["id"], len(self.codes)))
        self.time.append(self._time)
        self.x.append(self._number(attributes, "x", "vehicle", line))
        self.y.append(self._number(attributes, "y", "vehicle", line))
        self.speed.append(self._number(attributes, "speed", "vehicle", line) if "speed" in attributes else float("nan"))
        self.line.append(line)

    def _number(self, attributes: Mapping[str, str], name: str, element: str, line: int) -> float:
        text = attributes.get(name)
        try:
            number = float(text or "")
        except ValueError:
            number = float("nan")
        if not np.isfinite(number):
            got = "nothing" if text is None else repr(text[:40])
            raise TrafficError([f"{self._file}: line {line}: {element}: {name} must be a number, got {got}"])
        return number


def read_sumo_fcd(file: Path, reading: TraceOptions) -> list[Fixes]:
    """Read SUMO's XML, one element after another; x and y are degrees unless a system in metres is given.

    Persons and containers are left out.

    Raises
    ------
    TrafficError
        If the file is not such a document, or its times go back.
    """
    rows = _Rows(file, reading.time_unit_s or 1.0)
    for element in elements_of(file):
        if element.attributes is not None:
            rows.started(element.local_name, element.attributes, element.line)
    if not rows.vehicle:
        raise TrafficError([f"{file}: it holds no vehicle"])
    x, y = np.array(rows.x), np.array(rows.y)
    if reading.crs is not None:
        x, y = to_wgs84(x, y, reading.crs)
    elif (np.abs(x) > 180).any() and (np.abs(y) > 90).any():
        raise TrafficError([f"{file}: {WITHOUT_GEO}"])
    fixes = Fixes(
        str(file),
        np.array(rows.vehicle, dtype=np.int32),
        list(rows.codes),
        Times(np.array(rows.time), calendar=bool(np.median(rows.time) >= 1e8)),
        x,
        y,
        np.array(rows.speed),
        np.array(rows.line, dtype=np.int64),
        "line",
        ascending=True,
        notes=(f"{file}: left out {counted(rows.others, 'place')} of persons and containers",) if rows.others else (),
    )
    check(fixes)
    return [fixes]
