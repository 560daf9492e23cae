"""Recordings in tables: text with or without a header, and Parquet."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from simulator.cells.zones import read_features
from simulator.files.errors import InputError
from simulator.files.messages import counted, counted_by
from simulator.files.tables import Table, TextFormat, column_names, comparable_name, find_columns
from simulator.formats.recordings.fixes import Source, TraceOptions, checked_fixes, in_degrees, stem_of
from simulator.roads.projection import WGS84, transform

T_DRIVE = ("vehicle", "time", "lon", "lat")
CABSPOTTING = ("lat", "lon", "occupied", "time")
GEOLIFE = ("lat", "lon", "zero", "altitude_ft", "days", "date", "clock")
_HEAD_LINES = 6

IN_NET_METRES = (
    "SUMO writes metres of its network, from whose projection an offset was taken off (netOffset): give the network as "
    'traffic.net = "FILE.net.xml", or let SUMO write --fcd-output.geo'
)


def read_csv(file: Path, options: TraceOptions) -> Source:
    """Read a table with a header.

    SUMO's floating-car data and taxi trips (pick-up and drop-off, or a polyline, in one row) are recognised by their
    columns.
    """
    names = column_names(file, format_=options.text)
    if twice := [name for name in names if f"{name}.1" in names]:
        raise InputError([f"{file}: line 1: columns must differ in name, but {twice[0]!r} occurs twice"])
    text = [name for name in names if _may_name_a_vehicle(name)]
    table = Table.from_file(file, format_=options.text, text=(), identifiers=text, skip_blank_lines=False)
    # The header is the first line that is not blank; a quoted field that spans several lines counts as one line.
    return _fixes_of_table(_lines(table, before=1), options)


def _lines(table: Table, *, before: int = 0) -> Table:
    """Return the rows that are not blank, numbered by their lines; `before` lines precede the first row."""
    table = replace(table, number=table.number + before, unit="line", renamed=False)
    return table.kept(table.frame.notna().any(axis=1).to_numpy())


def read_tdrive(file: Path, options: TraceOptions) -> Source:
    """Read the T-Drive format: vehicle, time, longitude, latitude, separated by commas, without a header."""
    own = replace(options, columns={}, crs=None, one_vehicle_a_file=False)
    return _fixes_without_header(file, own, ",", T_DRIVE, identifiers=["vehicle"])


def read_cabspotting(file: Path, options: TraceOptions) -> Source:
    """Read the cabspotting format: latitude, longitude, occupied, seconds since 1970, one file per cab.

    A cab is named after its file, without the prefix ``new_``.
    """
    own = TraceOptions(time_unit_s=options.time_unit_s, one_vehicle_a_file=True)
    return _fixes_without_header(file, own, " ", CABSPOTTING)


def read_geolife(file: Path, options: TraceOptions) -> Source:
    """Read the GeoLife format: six lines of a head, and latitude, longitude, 0, altitude, days, date and time in GMT.

    The vehicle is the user after whom the folder is named, as in ``000/Trajectory/20081023025304.plt``. A user's files
    are separate pieces of the recording.
    """
    layout: dict[str, Any] = {"names": GEOLIFE, "skiprows": _HEAD_LINES, "skip_blank_lines": False}
    table = Table.from_file(file, format_=TextFormat(",", "."), text=("date", "clock"), **layout)
    table = _lines(table, before=_HEAD_LINES)
    frame = table.frame.assign(time=table.frame["date"] + " " + table.frame["clock"])
    table = Table.from_frame(frame, title=str(file), number=table.number, unit=table.unit)
    folder = file.absolute().parent
    user = folder.parent.name if folder.name.lower() == "trajectory" else folder.name
    own = TraceOptions({"time": "time"}, one_vehicle_a_file=True, time_zone=options.time_zone or "UTC")
    source = checked_fixes(table, own, vehicle=user, unnamed=False)
    return source.in_pieces(int(source.fixes["time_s"].iloc[0]))


def _fixes_without_header(
    file: Path, options: TraceOptions, separator: str, names: Sequence[str], *, identifiers: Sequence[str] = ()
) -> Source:
    layout: dict[str, Any] = {"names": names, "skip_blank_lines": False, "format_": TextFormat(separator, ".")}
    table = Table.from_file(file, text=identifiers, identifiers=identifiers, **layout)
    return checked_fixes(_lines(table), options, vehicle=stem_of(file).removeprefix("new_"))


def _may_name_a_vehicle(column: str) -> bool:
    """Return whether a column is read as text, so that the name 007 stays 007."""
    name = column.lower()
    return name not in {"x", "y", "t", "ts", "epoch", "velocity"} and not any(
        word in name for word in ("time", "date", "utc", "lon", "lng", "lat", "speed", "_x", "_y")
    )


def read_parquet(file: Path, options: TraceOptions) -> Source:
    """Read a table, SUMO's floating-car data, or points (GeoParquet), which are converted to longitude and latitude.

    Raises
    ------
    InputError
        If the file is not Parquet, or its columns are invalid.
    """
    table = replace(Table.from_file(file), renamed=False)
    if b"geo" in (pq.read_schema(file).metadata or {}):
        import geopandas as gpd  # noqa: PLC0415 - heavy, and most Parquet has no geometry

        try:
            frame = in_degrees(gpd.read_parquet(file), str(file))
        except InputError:
            raise
        # Of pyproj and of pandas, whose own facts in the file are damaged: RuntimeError, and AttributeError.
        except (OSError, ValueError, TypeError, LookupError, RuntimeError, AttributeError, pa.ArrowException) as error:
            why = " ".join(str(error).split())
            raise InputError([f"{file}: cannot be read as Parquet: {why}"]) from None
        frame = frame if frame.index.names == [None] else frame.reset_index()
        table = Table.from_frame(frame, title=str(file))
    return _fixes_of_table(table, options)


def read_points(file: Path, options: TraceOptions) -> Source:
    """Read points of a GeoPackage or Shapefile, which are converted to longitude and latitude."""
    frame = in_degrees(read_features(file, None), str(file))
    return _fixes_of_table(Table.from_frame(frame, title=str(file)), options)


def _fixes_of_table(table: Table, options: TraceOptions) -> Source:
    """Convert a table: SUMO's floating-car data, taxi trips, or any other."""
    names, vehicle = set(table.names), stem_of(Path(table.file))
    sumo = {"timestep_time", "vehicle_id"} <= names or (
        {"time", "id", "x", "y", "speed"} <= names and not names.isdisjoint({"lane", "edge"})
    )
    if options.columns:
        return checked_fixes(table, options, vehicle=vehicle)
    if sumo:
        return fixes_of_sumo(table, options)
    plain = set(map(comparable_name, names))
    if {"polyline", "timestamp"} <= plain:
        return _fixes_of_polylines(table, options)
    ends = [find_columns(table.names, end) for end in _TRIP_ENDS]
    if all(len(end) == len(_TRIP_ENDS[0]) for end in ends):
        return _fixes_of_taxi_trips(table, ends, options)
    if plain >= _ZONES:
        rule = "its trips are between taxi zones (PULocationID, DOLocationID) and have no places"
        raise InputError([f"{table.file}: {rule}: files up to June 2016 have them"])
    return checked_fixes(table, options, vehicle=vehicle)


_TRIP_ENDS: tuple[Mapping[str, Sequence[str]], ...] = tuple(
    {
        "time": [f"{prefix}{end}_datetime" for prefix in ("", "tpep_", "lpep_", "trip_")],
        "lon": [f"{end}_longitude", f"{other}_lon"],
        "lat": [f"{end}_latitude", f"{other}_lat"],
    }
    for end, other in (("pickup", "start"), ("dropoff", "end"))
)
"""Columns of both ends of New York's taxi trips: the columns of 2010 to June 2016, and the columns of 2009."""
_ZONES = {"pulocationid", "dolocationid"}
"""Columns of New York's taxi trips since July 2016."""


def _fixes_of_taxi_trips(table: Table, ends: Sequence[Mapping[str, str]], options: TraceOptions) -> Source:
    """Convert pick-ups and drop-offs to fixes; the vehicle is the medallion, else the trip's id, else the row.

    Raises
    ------
    InputError
        If values are invalid.
    """
    known = {"taxi": ["medallion", "taxi_id", "vehicle_id"], "trip": ["id", "trip_id"]}
    names, frame = find_columns(table.names, known), table.frame.set_axis(table.number)
    vehicle = frame.get(names.get("taxi", names.get("trip")), frame.index.map(f"{table.unit} {{}}".format))
    halves = [
        pd.DataFrame({role: frame[column] for role, column in end.items()}, index=frame.index).assign(vehicle=vehicle)
        for end in ends
    ]
    # Both ends of a trip are adjacent, so that the order of a taxi's times is checked as in the file.
    both = pd.concat(halves).sort_index(kind="stable")
    own = replace(options, columns={}, crs=None, one_vehicle_a_file=False)
    file, no_taxi = table.file, "no column names the taxi, so every trip is a vehicle of its own"
    notes = () if "taxi" in names else (f"{file}: {no_taxi}",)
    return checked_fixes(Table.from_frame(both, title=file, number=both.index, unit=table.unit), own, notes=notes)


_PORTO_STEP_S = 15


def _fixes_of_polylines(table: Table, options: TraceOptions) -> Source:
    """Convert Porto's taxi trips: a row has the time of its first place, and a JSON list of places 15 s apart.

    A taxi's trips are separate pieces of its recording.

    Raises
    ------
    InputError
        If a list of places or another value is invalid.
    """
    known = {"vehicle": ["taxi_id", "trip_id"], "time": ["timestamp"], "path": ["polyline"]}
    table = replace(table, columns=find_columns(table.names, known))
    if not table.has("vehicle"):
        raise InputError([f"{table.file}: vehicle: TAXI_ID or TRIP_ID must be a column"])
    rows: list[tuple[Any, int, Any, Any]] = []
    for row, written in zip(table.number.tolist(), table.column("path"), strict=True):
        try:
            rows += [(row, place, lon, lat) for place, (lon, lat) in enumerate(json.loads(written))]
        except (TypeError, ValueError, RecursionError):
            rule = f"POLYLINE must be a list of places [longitude, latitude], got {str(written)[:60]!r}"
            raise InputError([f"{table.file}: {table.unit} {row}: {rule}"]) from None
    places = pd.DataFrame(rows, columns=["row", "place", "lon", "lat"]).set_index("row")
    trips = {"vehicle": table.column("vehicle").array, "start": table.numbers("time")}
    fixes = places.join(pd.DataFrame(trips, index=table.number))
    fixes["time"] = fixes["start"] + _PORTO_STEP_S * fixes["place"]
    fixes = fixes.iloc[np.lexsort((fixes["place"], fixes.index, fixes["start"]))]
    empty = len(table) - fixes.index.nunique()
    notes = (f"{table.file}: left out {counted(empty, 'trip')} without a place",) if empty else ()
    made = checked_fixes(
        Table.from_frame(fixes, title=table.file, number=fixes.index, unit=table.unit),
        TraceOptions(time_unit_s=options.time_unit_s),
        notes=notes,
    )
    return made.in_pieces(made.fixes.index)


def fixes_of_sumo(table: Table, options: TraceOptions, *, notes: tuple[str, ...] = ()) -> Source:
    """Convert SUMO's table to fixes; x and y are longitude and latitude, or metres of the network in the options.

    A timestep without vehicles is a row without a vehicle; such rows, and rows of persons, are left out.

    Raises
    ------
    InputError
        If columns or values are invalid.
    """
    named = "vehicle_" if "vehicle_id" in table.names else ""
    columns = {role: f"{named}{column}" for role, column in (("vehicle", "id"), ("x", "x"), ("y", "y"))}
    if f"{named}speed" in table.names:
        columns["speed_mps"] = f"{named}speed"
    columns["time"] = "timestep_time" if "timestep_time" in table.names else "time"
    if faults := [f"{table.file}: no column {name!r}" for name in columns.values() if name not in table.names]:
        raise InputError(faults)
    table = replace(table, columns=columns)
    x, y = table.numbers("x"), table.numbers("y")
    present = table.column("vehicle").notna().to_numpy() | ~np.isnan(x) | ~np.isnan(y)
    if not present.any():
        raise InputError([f"{table.file}: it holds no vehicle"])
    if options.crs is not None:
        raise InputError([f"{table.file}: crs cannot be the system of x and y: {IN_NET_METRES}"])
    metres = (np.abs(x[present]) > 180).any() and (np.abs(y[present]) > 90).any()
    if metres and options.net is None:
        raise InputError([f"{table.file}: x and y look like metres: {IN_NET_METRES}"])
    if options.net is not None and (metres or options.net_stated):
        lon, lat = transform(options.net.crs, WGS84, options.net.to_city(np.column_stack((x, y)))).T
        table = replace(table, frame=table.frame.assign(**{columns["x"]: lon, columns["y"]: lat}))
    if f"{named}type" in table.names:
        notes += types_in_words(
            table.file, dict(zip(table.column("vehicle"), table.frame[f"{named}type"], strict=True))
        )
    columns["lon"], columns["lat"] = columns.pop("x"), columns.pop("y")
    own = TraceOptions(columns, time_unit_s=options.time_unit_s or 1.0)
    return checked_fixes(table.kept(present), own, ascending=True, notes=notes)


def types_in_words(file: str, kinds: Mapping[Any, Any]) -> tuple[str, ...]:
    """Return a note with the number of vehicles of each type, from the type by vehicle, if there are several types."""
    by_type = Counter(str(kind) for kind in kinds.values() if not pd.isna(kind))
    return (f"{file}: vehicles by type, all taken: {counted_by(by_type)}",) if len(by_type) > 1 else ()
