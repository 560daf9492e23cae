"""Fixes (recorded positions) of one source, converted from a table whose columns are given or recognised by name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyproj

from simulator.files.compressed_io import unpacked_name
from simulator.files.errors import InputError
from simulator.files.tables import RECOGNIZED, Table, TextFormat, comparable_name, find_columns, listed
from simulator.files.times import timed
from simulator.formats.column_names import FIX_NAMES, MPS_PER_UNIT
from simulator.roads.projection import WGS84, coordinates, transform

if TYPE_CHECKING:
    from simulator.roads.sumo_frame import NetFrame


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
    table: Table,
    options: TraceOptions,
    *,
    vehicle: str = "",
    ascending: bool = False,
    notes: Sequence[str] = (),
    unnamed: bool | None = None,
) -> Source:
    """Convert a table with one fix per row.

    Parameters
    ----------
    table
        Table of fixes; it numbers the lines, rows or paths of the source.
    options
        Options for reading the table.
    vehicle
        Name of the vehicle, if the table is of one vehicle.
    ascending, notes, unnamed
        As in `Source`; `unnamed` is by default whether the table is of one vehicle.

    Raises
    ------
    InputError
        If columns are missing or not recognised, or any value in them is invalid, with every broken rule.
    """
    if not len(table):
        raise InputError([f"{table.file}: it holds no rows"])
    columns, unused = _find_columns(table, options)
    table = replace(table, columns=columns, renamed=any(ours != name for ours, name in columns.items()))
    one = options.one_vehicle_a_file
    names = pd.Categorical([vehicle]).repeat(len(table)) if one else table.categories("vehicle")
    if not one:
        table.refuse("vehicle", names.isna(), "the name of a vehicle")
    lon, lat = coordinates(table, ("lon", "lat") if options.crs is None else ("x", "y"))
    if options.crs is not None:
        known = np.isfinite(lon) & np.isfinite(lat)
        lon, lat = transform(options.crs, WGS84, np.column_stack((lon, lat))).T
        table.refuse("x", known & ~(np.isfinite(lon) & np.isfinite(lat)), "with y, a place on earth")
    speed = next((role for role in MPS_PER_UNIT if table.has(role)), "speed_mps")
    speed_mps = table.checked_numbers(speed, at_least=0, optional=True) * MPS_PER_UNIT[speed]
    times, repeated = timed(
        table, options.time_zone, names.codes, unit_s=options.time_unit_s, written=options.time_format
    )
    table.check()
    fixes = {"vehicle": names, "time_s": times.seconds, "lon": lon, "lat": lat, "speed_mps": speed_mps, "piece": 0}
    return Source(
        table.file,
        pd.DataFrame(fixes, index=table.number),
        times.calendar,
        times.naive,
        table.unit,
        ascending,
        (*notes, *unused, *(f"{table.file}: {note}" for note in repeated)),
        one if unnamed is None else unnamed,
    )


def in_degrees(points: Any, source: str) -> pd.DataFrame:
    """Convert a GeoDataFrame of points to a table with `lon` and `lat` in place of its geometry.

    Raises
    ------
    InputError
        If it has other geometries than points, or its coordinate system is unknown.
    """
    places = points.geometry
    if points.crs is None or not (places[~(places.isna() | places.is_empty)].geom_type == "Point").all():
        raise InputError([f"{source}: its geometry must be points in a known coordinate system"])
    degrees = places.to_crs(WGS84)
    return pd.DataFrame(points.drop(columns=places.name)).assign(lon=degrees.x.to_numpy(), lat=degrees.y.to_numpy())


def are_fixes(names: Sequence[str]) -> bool:
    """Return whether columns of vehicle, time and place are all found by their names."""
    return len(find_columns(names, {role: FIX_NAMES[role] for role in ("vehicle", "time", "lon", "lat")})) == 4


def stem_of(file: Path) -> str:
    """Return a file's name without ``.gz`` and its suffix: the vehicle's name, if each file is one vehicle."""
    return Path(unpacked_name(file)).stem


def _find_columns(table: Table, options: TraceOptions) -> tuple[dict[str, str], list[str]]:
    """Select columns as given by the user, and by their names otherwise; return them by role, and notes.

    Raises
    ------
    InputError
        With one message per column that does not exist or is not recognised.
    """
    source, seen, given = table.file, table.names, options.columns
    places = ("x", "y") if options.crs is not None else ("lon", "lat")
    wanted = (*(() if options.one_vehicle_a_file else ("vehicle",)), "time", *places)
    speeds = () if given.keys() & MPS_PER_UNIT.keys() else MPS_PER_UNIT
    found = find_columns(seen, {role: FIX_NAMES[role] for role in (*wanted, *speeds)}, given=given)
    faults = [
        f"{source}: no column {column!r} for {role}; its columns are {listed(seen)}"
        for role, column in given.items()
        if column not in seen
    ]
    for role in wanted:
        if role not in found:
            common = {name for likely in FIX_NAMES[role] for name in likely}
            alike = [name for name in seen if comparable_name(name) in common and name not in found.values()]
            why = f"columns {listed(alike)} are all candidates" if alike else "no column has a known name for it"
            rule = f"{why}; its columns are {listed(seen)}; name one in traffic.columns{_hint(role, seen)}"
            faults.append(f"{source}: {role}: {rule}")
    if faults:
        raise InputError(faults)
    unit = [name for name in seen if comparable_name(name) in {"speed", "velocity"} and name not in found.values()]
    if not unit or not found.keys().isdisjoint(MPS_PER_UNIT):
        return found, []
    rule = "states no unit of speed and is left out: name it as speed_mps, speed_kph or speed_mph"
    return found, [f"{source}: column {unit[0]!r} {rule}"]


def _hint(role: str, seen: Sequence[str]) -> str:
    if len(seen) == 1:
        return '; is it separated by something else than ",", ";", tab or "|"?'
    if role in {"lon", "lat"} and {"x", "y"} <= set(map(comparable_name, seen)):
        return "; for places in metres give traffic.crs"
    return "; or is there one file per vehicle: one_vehicle_a_file = true?" if role == "vehicle" else ""
