"""SUMO's floating-car data in XML (``--fcd-output``)."""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from simulator.files.counted import counted
from simulator.files.xml_elements import elements_of
from simulator.traffic.errors import TrafficError
from simulator.traffic.trace.fixes import Fixes
from simulator.traffic.trace.sumo_tables import WITHOUT_GEO
from simulator.traffic.trace.tables import Reading, check, to_wgs84
from simulator.traffic.trace.times import Times

_OTHERS = frozenset(["person", "container"])


class _Rows:
    """Gathers vehicles while a document goes by."""

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


def read_sumo_fcd(file: Path, reading: Reading) -> list[Fixes]:
    """Read a document of SUMO's, one element after another; x and y are degrees unless a system of metres is given.

    Persons and containers are left out.

    Raises
    ------
    TrafficError
        If the file is not such a document, or its clock goes back.
    """
    rows = _Rows(file, reading.time_unit_s or 1.0)
    for element in elements_of(file, error=TrafficError):
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
