"""Fixes (recorded positions) of one source, converted from a table whose columns are given or recognised by name."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyproj
from pyproj.exceptions import CRSError

from simulator.arrays import FloatArray
from simulator.files.compressed_io import unpacked_name
from simulator.files.errors import InputError
from simulator.files.messages import SHOWN_ROWS, numbers_in_words
from simulator.files.tables import (
    RECOGNIZED,
    TextFormat,
    comparable_name,
    find_columns,
    identifiers,
    listed,
    numbers_in,
)
from simulator.formats.recorded.times import LATEST_S, MIXED_ZONES, TIME_RULE, Times
from simulator.roads.projection import WGS84, transform

if TYPE_CHECKING:
    from numpy.typing import NDArray

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


_NOTHING = ("", "na", "n/a", "nan", "null", "none", "-")
"""Texts, in lower case, of a speed that was not recorded."""


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
class Source:
    """Fixes of one file, or of a table given from Python, in their original order; every value is valid.

    Attributes
    ----------
    name
        Name of the file, for the beginning of messages.
    fixes
        One row per fix: `vehicle` (text, categorical), `time_s`, `lon`, `lat` (WGS84 degrees), `speed_mps` (NaN where
        not recorded), and `piece`, the piece of its vehicle's recording, such as a segment of a track: between two
        pieces the vehicle's way is not recorded. The index is the number of the fix's line, row or path in the source.
    calendar
        Whether times are dates.
    naive
        Whether times name no time zone and are taken as UTC.
    place_word
        What the index numbers: "line", "row" or "path".
    ascending
        Whether the format guarantees ascending times.
    notes
        Notes on what was left out while reading.
    unnamed
        Whether the source names no vehicles: each of its tracks, or each file, is taken as one.
    """

    name: str
    fixes: pd.DataFrame
    calendar: bool
    naive: bool
    place_word: str
    ascending: bool = False
    notes: tuple[str, ...] = ()
    unnamed: bool = False

    def in_pieces(self, piece: Any) -> "Source":
        """Return the same source with the piece of each fix, (fixes,) int64 or one number for all."""
        return replace(self, fixes=self.fixes.assign(piece=piece))


def checked_fixes(
    frame: pd.DataFrame, options: TraceOptions, *, source: str, place_word: str, vehicle: str = "", **about: Any
) -> Source:
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
    about
        `ascending`, `notes` and `unnamed` of the source.

    Raises
    ------
    InputError
        If columns are missing or not recognised, or any value in them is invalid, with every broken rule.
    """
    by_role, unused = _find_columns(frame.columns, options, source)
    if frame.empty:
        raise InputError([f"{source}: it holds no rows"])
    axes = [frame[by_role[role]] for role in (("lon", "lat") if options.crs is None else ("x", "y"))]
    lon, lat = map(numbers_of, axes)
    if options.crs is not None:
        lon, lat = transform(options.crs, WGS84, np.column_stack((lon, lat))).T
    speed = next((role for role in METRES_PER_SECOND if role in by_role), None)
    speed_mps = numbers_of(frame[by_role[speed]]) * METRES_PER_SECOND[speed] if speed else np.nan
    one = options.one_vehicle_a_file
    names = pd.Categorical([vehicle]).repeat(len(frame)) if one else identifiers(frame[by_role["vehicle"]])
    columns = {"vehicle": names, "lon": lon, "lat": lat, "speed_mps": speed_mps, "piece": 0}
    fixes = pd.DataFrame(columns, index=frame.index)
    stamps = frame[by_role["time"]]
    times = Times.from_column(stamps, unit_s=options.time_unit_s, written=options.time_format)
    times, repeated = times.in_zone(options.time_zone, pd.factorize(fixes["vehicle"])[0].astype(np.int32))
    fixes["time_s"] = times.seconds
    given = frame[by_role[speed]] if speed else pd.Series(np.nan, index=frame.index)
    if faults := [f"{source}: {fault}" for fault in _faults(fixes, times, stamps, axes, given, place_word)]:
        raise InputError(faults)
    about = {"unnamed": one, **about}
    about["notes"] = (*about.get("notes", ()), *unused, *(f"{source}: {note}" for note in repeated))
    return Source(source, fixes, times.calendar, times.naive, place_word, **about)


def _faults(
    fixes: pd.DataFrame,
    times: Times,
    stamps: "pd.Series[Any]",
    axes: "Sequence[pd.Series[Any]]",
    speeds: "pd.Series[Any]",
    place_word: str,
) -> Iterator[str]:
    """Yield the faults of individual fixes: lines or rows, rule, and first value in the given columns."""
    lon, lat, speed_mps, seconds = (fixes[name].to_numpy() for name in ("lon", "lat", "speed_mps", "time_s"))
    high = np.abs(lat) > 90
    swapped = high & (np.abs(lat) <= 180) & (np.abs(lon) <= 90)
    hint = "; longitude and latitude look swapped" if high.any() and swapped.sum() * 2 > high.sum() else ""
    for wrong, rule, columns in (
        (fixes["vehicle"].isna().to_numpy(), "vehicle must have a name", ()),
        (~np.isfinite(seconds), f"time must be {TIME_RULE}", (stamps,)),
        (times.without_zone, MIXED_ZONES, (stamps,)),
        (np.abs(seconds) >= LATEST_S, "time must be within the years to 9999, in seconds since 1970", (seconds,)),
        (~(np.isfinite(lon) & np.isfinite(lat)), "lon and lat must be numbers", axes),
        (high, f"lat must be -90 … 90 degrees{hint}", (lat,)),
        (np.abs(lon) > 180, "lon must be -180 … 180 degrees", (lon,)),
        (speed_mps < 0, "speed must not be below 0", (speed_mps,)),
        (_not_numbers(speeds, speed_mps), "speed must be a number, or nothing", (speeds,)),
    ):
        if wrong.any():
            received = [_quoted(column[wrong]) for column in columns]
            got = f", got {' and '.join(received)}" if received else ""
            places = fixes.index[wrong]
            rows = numbers_in_words(places[:SHOWN_ROWS].tolist(), total=len(places), unit=place_word)
            yield f"{rows}: {rule}{got}"


def _not_numbers(column: "pd.Series[Any]", numbers: FloatArray) -> "NDArray[np.bool_]":
    """Return where a column states something that is no finite number."""
    missing = column.isna() | column.astype(str).str.strip().str.lower().isin(_NOTHING)
    return (~missing).to_numpy() & ~np.isfinite(numbers)


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
    seen, given = [str(name) for name in columns], options.columns
    places = ("x", "y") if options.crs is not None else ("lon", "lat")
    wanted = (*(() if options.one_vehicle_a_file else ("vehicle",)), "time", *places)
    speeds = () if given.keys() & METRES_PER_SECOND.keys() else METRES_PER_SECOND
    found = find_columns(seen, {role: _KNOWN[role] for role in (*wanted, *speeds)}, given=given)
    faults = [
        f"{source}: no column {column!r} for {role}; its columns are {listed(seen)}"
        for role, column in given.items()
        if column not in seen
    ]
    for role in wanted:
        if role not in found:
            common = {name for likely in _KNOWN[role] for name in likely}
            alike = [name for name in seen if comparable_name(name) in common and name not in found.values()]
            why = f"columns {listed(alike)} are all candidates" if alike else "no column has a known name for it"
            rule = f"{why}; its columns are {listed(seen)}; name one in traffic.columns{_hint(role, seen)}"
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
