"""Fixes (recorded positions) of one source, converted from a table whose columns are given or recognised by name."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyproj
from pyproj.exceptions import CRSError

from simulator.arrays import FloatArray, Int32Array, IntArray, Mask
from simulator.files.compressed_io import unpacked_name
from simulator.files.errors import InputError
from simulator.files.messages import SHOWN_ROWS, numbers_in_words
from simulator.files.tables import RECOGNIZED, TextFormat, comparable_name, numbers_in
from simulator.formats.recorded.times import LATEST_S, MIXED_ZONES, TIME_RULE, Times
from simulator.roads.projection import WGS84, transform

if TYPE_CHECKING:
    from simulator.roads.sumo_frame import NetFrame

METRES_PER_SECOND: Mapping[str, float] = {"speed_mps": 1.0, "speed_kph": 1 / 3.6, "speed_mph": 1609.344 / 3600}
"""Metres per second per unit of a speed column, by our name of the column."""

_KNOWN: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "vehicle": (
        (
            "vehicle", "vehicleid", "vehid", "veh", "taxi", "taxiid", "cab", "cabid", "car", "carid", "bus", "busid",
            "medallion", "device", "deviceid", "driver", "driverid", "trajectory", "trajectoryid", "trajid",
        ),
        ("trip", "tripid", "object", "objectid", "user", "userid", "uid", "oid"),
        ("id", "name"),
    ),
    "time": (
        (
            "time", "timestamp", "datetime", "dateandtime", "gpstime", "unixtime", "unixtimestamp", "utc",
            "timesteptime", "times", "timesec", "seconds",
        ),
        ("t", "ts", "epoch", "date"),
    ),
    "lon": (("lon", "lng", "long", "longitude"), ("x", "vehiclex")),
    "lat": (("lat", "latitude"), ("y", "vehicley")),
    "x": (("x", "vehiclex", "easting"),),
    "y": (("y", "vehicley", "northing"),),
    "speed_mps": (("speedmps", "speedms", "vehiclespeed"),),
    "speed_kph": (("speedkph", "speedkmh"),),
    "speed_mph": (("speedmph",),),
}  # fmt: skip
"""Map from our name of a column to its common names, as `comparable_name` writes them, the most reliable first."""


@dataclass(frozen=True)
class TraceOptions:
    """Options for reading trace files.

    Attributes
    ----------
    columns
        For tables: map from our names (vehicle, time, lon, lat or x, y, speed_mps or speed_kph or speed_mph) to the
        file's. Other columns are recognised by their common names.
    crs
        Coordinate system of columns x and y, in metres; None if places are longitudes and latitudes.
    time_unit_s
        Seconds per unit of numeric times; None for seconds, or for dates, the unit that their size implies.
    one_vehicle_a_file
        For tables: whether each is of one vehicle, named after its file.
    time_format
        Format of times in text, as for `strptime`; None for ISO 8601, or numbers.
    net
        Of SUMO's floating-car data: the frame of the network in whose metres x and y are.
    net_stated
        Whether they certainly are in it; if not, x and y in the range of degrees are longitudes and latitudes.
    text
        Separator and decimal sign of tables.
    time_zone
        Time zone of times that name none; None for UTC.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    crs: pyproj.CRS | None = None
    time_unit_s: float | None = None
    one_vehicle_a_file: bool = False
    time_format: str | None = None
    net: "NetFrame | None" = None
    net_stated: bool = True
    text: TextFormat = RECOGNIZED
    time_zone: str | None = None


@dataclass(frozen=True, eq=False)
class Fixes:
    """Fixes of one file, or of a table given from Python, in their original order; every value is valid.

    Attributes
    ----------
    source
        Name of the file, for the beginning of messages.
    vehicle
        (n,) int32, index into `names`; -1 where the source names no vehicle.
    names
        Names of the vehicles.
    times
        (n,) seconds.
    lon, lat
        (n,) float64, WGS84 degrees.
    speed_mps
        (n,) float64, NaN where no speed was recorded.
    place
        (n,) int64: number of each fix's line, row or path in the source.
    place_word
        "line", "row" or "path".
    ascending
        Whether the format guarantees ascending times.
    notes
        Notes on what was left out while reading.
    piece
        (n,) int64: piece of the recording of each fix, such as a segment of a track; between two pieces a vehicle's way
        is not recorded. None if a vehicle's fixes are one piece.
    unnamed
        Whether the source names no vehicles: each of its tracks, or each file, is taken as one.
    """

    source: str
    vehicle: Int32Array
    names: Sequence[str]
    times: Times
    lon: FloatArray
    lat: FloatArray
    speed_mps: FloatArray
    place: IntArray
    place_word: str = "row"
    ascending: bool = False
    notes: tuple[str, ...] = ()
    piece: IntArray | None = None
    unnamed: bool = False

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        options: TraceOptions,
        *,
        source: str,
        place_word: str,
        vehicle: str = "",
        ascending: bool = False,
        notes: tuple[str, ...] = (),
    ) -> "Fixes":
        """Convert a table with one fix per row.

        Parameters
        ----------
        frame
            Table of fixes; its index numbers the lines or rows of the source.
        options
            Options for reading the table.
        source
            The file's name.
        place_word
            What the index numbers: "line", "row" or "path".
        vehicle
            Name of the vehicle, if the table is of one vehicle.
        ascending
            Whether the format guarantees ascending times.
        notes
            Notes on what was left out before.

        Raises
        ------
        InputError
            If columns are missing or not recognised, or any value in them is invalid, with every broken rule.
        """
        by_role, unused = _find_columns(frame.columns, options, source)
        if frame.empty:
            raise InputError([f"{source}: it holds no rows"])
        codes, names = np.zeros(len(frame), dtype=np.int32), [vehicle]
        if not options.one_vehicle_a_file:
            codes, names = _vehicles_of(frame[by_role["vehicle"]])
        axes = [frame[by_role[role]] for role in (("lon", "lat") if options.crs is None else ("x", "y"))]
        lon, lat = map(numbers_of, axes)
        if options.crs is not None:
            lon, lat = transform(options.crs, WGS84, np.column_stack((lon, lat))).T
        speed = next((role for role in METRES_PER_SECOND if role in by_role), None)
        stamps = frame[by_role["time"]]
        times = Times.from_column(stamps, unit_s=options.time_unit_s, written=options.time_format)
        times, repeated = times.in_zone(options.time_zone, codes)
        fixes = cls(
            source,
            codes,
            names,
            times,
            lon,
            lat,
            numbers_of(frame[by_role[speed]]) * METRES_PER_SECOND[speed] if speed else np.full(len(frame), np.nan),
            frame.index.to_numpy(dtype=np.int64),
            place_word,
            ascending,
            (*notes, *unused, *(f"{source}: {note}" for note in repeated)),
            unnamed=options.one_vehicle_a_file,
        )
        if faults := list(fixes._faults(stamps, axes)):
            raise InputError(faults)
        return fixes

    def __len__(self) -> int:
        return len(self.vehicle)

    def where(self, chosen: Mask) -> str:
        """Return the source and the lines or rows of some fixes, at most the first 20."""
        places = self.place[chosen]
        return (
            f"{self.source}: {numbers_in_words(places[:SHOWN_ROWS].tolist(), total=len(places), unit=self.place_word)}"
        )

    def _faults(self, stamps: "pd.Series[Any]", axes: "Sequence[pd.Series[Any]]") -> Iterator[str]:
        """Yield the faults of individual fixes: source, lines or rows, rule, and first value in the given columns."""
        high = np.abs(self.lat) > 90
        swapped = high & (np.abs(self.lat) <= 180) & (np.abs(self.lon) <= 90)
        hint = "; longitude and latitude look swapped" if high.any() and swapped.sum() * 2 > high.sum() else ""
        with np.errstate(invalid="ignore"):
            backwards = self.speed_mps < 0
        seconds = self.times.seconds
        for wrong, rule, columns in (
            (self.vehicle < 0, "vehicle must have a name", ()),
            (~np.isfinite(seconds), f"time must be {TIME_RULE}", (stamps,)),
            (self.times.without_zone, MIXED_ZONES, (stamps,)),
            (np.abs(seconds) >= LATEST_S, "time must be within the years to 9999, in seconds since 1970", (seconds,)),
            (~(np.isfinite(self.lon) & np.isfinite(self.lat)), "lon and lat must be numbers", axes),
            (high, f"lat must be -90 … 90 degrees{hint}", (self.lat,)),
            (np.abs(self.lon) > 180, "lon must be -180 … 180 degrees", (self.lon,)),
            (backwards, "speed must not be below 0", (self.speed_mps,)),
        ):
            if wrong.any():
                received = [_quoted(column[wrong]) for column in columns]
                yield f"{self.where(wrong)}: {rule}{', got ' + ' and '.join(received) if received else ''}"


def system_of(crs: object | None) -> pyproj.CRS | None:
    """Return the coordinate system named by `crs`; None if `crs` is None.

    Raises
    ------
    InputError
        If it names no coordinate system.
    """
    try:
        return None if crs is None else pyproj.CRS.from_user_input(crs)
    except CRSError as error:
        raise InputError([f"crs must name a coordinate system, got {crs!r}: {error}"]) from None


def stem_of(file: Path) -> str:
    """Return a file's name without ``.gz`` and its suffix: the vehicle's name, if each file is one vehicle."""
    return Path(unpacked_name(file)).stem


def numbers_of(column: "pd.Series[Any]") -> FloatArray:
    """Return a column as numbers, NaN where there is no finite number."""
    if column.dtype.kind not in "iuf":
        column = numbers_in(column)
    numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _quoted(values: "pd.Series[Any] | FloatArray") -> str:
    """Quote the first of some values as it is in the table, or a number computed from it."""
    if isinstance(values, np.ndarray):
        return f"{values[0]:.12g}"
    first = values.iloc[0]
    return "nothing" if pd.isna(first) else repr(str(first)[:60])


def _find_columns(columns: "pd.Index[Any]", options: TraceOptions, source: str) -> tuple[dict[str, str], list[str]]:
    """Select columns as given by the user, and by their names otherwise; return them by role, and notes.

    Raises
    ------
    InputError
        With one message per column that does not exist or is not recognised.
    """
    seen = [str(name) for name in columns]
    faults = [
        f"{source}: no column {column!r} for {role}; its columns are {_listed(seen)}"
        for role, column in options.columns.items()
        if column not in seen
    ]
    places = ("x", "y") if options.crs is not None else ("lon", "lat")
    wanted = (*(() if options.one_vehicle_a_file else ("vehicle",)), "time", *places)
    found = {role: column for role, column in options.columns.items() if role in _KNOWN}
    for role in (*wanted, *METRES_PER_SECOND):
        if role in found or (role in METRES_PER_SECOND and not found.keys().isdisjoint(METRES_PER_SECOND)):
            continue
        free = [name for name in seen if name not in found.values()]
        named = ([name for name in free if comparable_name(name) in names] for names in _KNOWN[role])
        candidates = next(filter(None, named), [])
        if len(candidates) == 1:
            found[role] = candidates[0]
        elif role in wanted:
            many = (
                f"columns {_listed(candidates)} are all candidates"
                if candidates
                else "no column has a known name for it"
            )
            rule = f"{many}; its columns are {_listed(seen)}; name one in traffic.columns{_hint(role, seen)}"
            faults.append(f"{source}: {role}: {rule}")
    if faults:
        raise InputError(faults)
    unit = [name for name in seen if comparable_name(name) in {"speed", "velocity"} and name not in found.values()]
    if not unit or not found.keys().isdisjoint(METRES_PER_SECOND):
        return found, []
    rule = "states no unit of speed and is left out: name it as speed_mps, speed_kph or speed_mph"
    return found, [f"{source}: column {unit[0]!r} {rule}"]


def _hint(role: str, seen: Sequence[str]) -> str:
    if len(seen) == 1:
        return '; is it separated by something else than ",", ";", tab or "|"?'
    if role in {"lon", "lat"} and {"x", "y"} <= set(map(comparable_name, seen)):
        return "; for places in metres give traffic.crs"
    return "; or is there one file per vehicle: one_vehicle_a_file = true?" if role == "vehicle" else ""


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:60]) for name in names[:20])
    return shown + (f" … ({len(names)} in all)" if len(names) > 20 else "")


def _vehicles_of(column: "pd.Series[Any]") -> tuple[Int32Array, list[str]]:
    """Return a column's vehicles as indices of their names, -1 if empty, and the names; a float 7.0 is vehicle 7."""
    codes, found = pd.factorize(column, use_na_sentinel=True)
    names = [str(int(name)) if isinstance(name, float) and name.is_integer() else str(name).strip() for name in found]
    blank = np.array([not name for name in [*names, "-"]], dtype=bool)
    return np.where(blank[codes], -1, codes).astype(np.int32), names
