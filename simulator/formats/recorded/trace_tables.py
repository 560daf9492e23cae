"""Recordings in tables: text with or without a header, and Parquet."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from simulator.files.errors import InputError
from simulator.files.messages import counted
from simulator.files.tables import Table, TextFormat, check_parquet, column_names, comparable_name, find_columns
from simulator.formats.recorded.fixes import Source, TraceOptions, checked_fixes, numbers_of, stem_of
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
    table = Table.from_file(file, format_=options.text, text=(), identifiers=text, keep_blank=True)
    # The header is the first line that is not blank; a quoted field that spans several lines counts as one line.
    frame = table.frame.set_axis(table.number + 1).dropna(how="all")
    return _fixes_of_table(frame, options, file, place_word="line")


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
    text = TextFormat(",", ".")
    table = Table.from_file(
        file, format_=text, header=GEOLIFE, text=("date", "clock"), keep_blank=True, skip=_HEAD_LINES
    )
    frame = table.frame.set_axis(table.number + _HEAD_LINES).dropna(how="all")
    frame["time"] = frame["date"] + " " + frame["clock"]
    folder = file.absolute().parent
    user = folder.parent.name if folder.name.lower() == "trajectory" else folder.name
    own = TraceOptions({"time": "time"}, one_vehicle_a_file=True, time_zone=options.time_zone or "UTC")
    source = checked_fixes(frame, own, source=str(file), vehicle=user, place_word="line", unnamed=False)
    return source.in_pieces(int(source.fixes["time_s"].iloc[0]))


def _fixes_without_header(
    file: Path, options: TraceOptions, separator: str, names: Sequence[str], *, identifiers: Sequence[str] = ()
) -> Source:
    text = TextFormat(separator, ".")
    table = Table.from_file(
        file, format_=text, header=names, text=identifiers, identifiers=identifiers, keep_blank=True
    )
    frame = table.frame.set_axis(table.number).dropna(how="all")
    return checked_fixes(
        frame, options, source=str(file), vehicle=stem_of(file).removeprefix("new_"), place_word="line"
    )


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
    try:
        stored = pq.ParquetFile(file)
        check_parquet(stored, file)
        frame = _points(file) if b"geo" in (stored.schema_arrow.metadata or {}) else pd.read_parquet(file)
        for field in stored.schema_arrow:
            if pa.types.is_nested(field.type):  # lists and structures are neither numbers, times nor names
                frame = frame.drop(columns=field.name, errors="ignore")
            elif field.name in frame and (pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type)):
                frame[field.name] = frame[field.name].str.decode("utf-8")
    except FileNotFoundError:
        raise InputError([f"{file}: no such file"]) from None
    except InputError:
        raise
    # Of pyproj and of pandas, whose own facts in the file are damaged: RuntimeError, and AttributeError.
    except (OSError, ValueError, TypeError, LookupError, RuntimeError, AttributeError, pa.ArrowException) as error:
        why = " ".join(str(error).split())
        raise InputError([f"{file}: cannot be read as Parquet: {why}"]) from None
    if frame.index.names != [None]:
        frame = frame.reset_index()
    return _fixes_of_table(frame.set_axis(range(1, len(frame) + 1)), options, file, place_word="row")


def _points(file: Path) -> pd.DataFrame:
    import geopandas as gpd  # noqa: PLC0415 - heavy, and most Parquet has no geometry

    frame = gpd.read_parquet(file)
    points = frame.geometry
    if frame.crs is None or not (points.geom_type == "Point").all():
        raise ValueError("its geometry must be points in a known coordinate system")
    degrees = points.to_crs("EPSG:4326")
    return pd.DataFrame(frame.drop(columns=points.name)).assign(lon=degrees.x.to_numpy(), lat=degrees.y.to_numpy())


def _fixes_of_table(frame: pd.DataFrame, options: TraceOptions, file: Path, *, place_word: str) -> Source:
    """Convert a table whose index numbers its lines or rows: SUMO's floating-car data, taxi trips, or any other."""
    names = set(frame.columns)
    sumo = {"timestep_time", "vehicle_id"} <= names or (
        {"time", "id", "x", "y", "speed"} <= names and not names.isdisjoint({"lane", "edge"})
    )
    of_file: dict[str, Any] = {"source": str(file), "place_word": place_word}
    if options.columns:
        return checked_fixes(frame, options, vehicle=stem_of(file), **of_file)
    if sumo:
        return fixes_of_sumo(frame, options, **of_file)
    plain = set(map(comparable_name, frame.columns))
    if {"polyline", "timestamp"} <= plain:
        return _fixes_of_polylines(frame, options, **of_file)
    ends = [find_columns(frame.columns.tolist(), end) for end in _TRIP_ENDS]
    if all(len(end) == len(_TRIP_ENDS[0]) for end in ends):
        return _fixes_of_taxi_trips(frame, ends, options, **of_file)
    if plain >= _ZONES:
        rule = "its trips are between taxi zones (PULocationID, DOLocationID) and have no places"
        raise InputError([f"{file}: {rule}: files up to June 2016 have them"])
    return checked_fixes(frame, options, vehicle=stem_of(file), **of_file)


_TRIP_ENDS: tuple[Mapping[str, Sequence[str]], ...] = tuple(
    {
        "time": [f"{prefix}{end}_datetime" for prefix in ("", "tpep_", "lpep_", "trip_")],
        "lon": [f"{end}_longitude", f"{other}_lon"],
        "lat": [f"{end}_latitude", f"{other}_lat"],
    }
    for end, other in (("pickup", "start"), ("dropoff", "end"))
)
"""Columns of both ends of New York's taxi trips: those of 2010 to June 2016, and those of 2009."""
_ZONES = {"pulocationid", "dolocationid"}
"""Columns of New York's taxi trips since July 2016."""


def _fixes_of_taxi_trips(
    frame: pd.DataFrame, ends: Sequence[Mapping[str, str]], options: TraceOptions, *, source: str, place_word: str
) -> Source:
    """Convert pick-ups and drop-offs to fixes; the vehicle is the medallion, else the trip's id, else the row.

    Raises
    ------
    InputError
        If values are invalid.
    """
    known = {"taxi": ["medallion", "taxi_id", "vehicle_id"], "trip": ["id", "trip_id"]}
    names = find_columns(frame.columns.tolist(), known)
    vehicle = frame.get(names.get("taxi", names.get("trip")), frame.index.map(f"{place_word} {{}}".format))
    halves = [
        pd.DataFrame({role: frame[column] for role, column in end.items()}, index=frame.index).assign(vehicle=vehicle)
        for end in ends
    ]
    # Both ends of a trip are adjacent, so that the order of a taxi's times is checked as in the file.
    both = pd.concat(halves).sort_index(kind="stable")
    own = replace(options, columns={}, crs=None, one_vehicle_a_file=False)
    notes = () if "taxi" in names else (f"{source}: no column names the taxi, so every trip is a vehicle of its own",)
    return checked_fixes(both, own, source=source, place_word=place_word, notes=notes)


_PORTO_STEP_S = 15


def _fixes_of_polylines(frame: pd.DataFrame, options: TraceOptions, *, source: str, place_word: str) -> Source:
    """Convert Porto's taxi trips: a row has the time of its first place, and a JSON list of places 15 s apart.

    A taxi's trips are separate pieces of its recording.

    Raises
    ------
    InputError
        If a list of places or another value is invalid.
    """
    names = find_columns(
        frame.columns.tolist(), {"vehicle": ["taxi_id", "trip_id"], "time": ["timestamp"], "path": ["polyline"]}
    )
    rows: list[tuple[Any, int, Any, Any]] = []
    for row, written in frame[names["path"]].items():
        try:
            rows += [(row, place, lon, lat) for place, (lon, lat) in enumerate(json.loads(written))]
        except (TypeError, ValueError, RecursionError):
            rule = f"POLYLINE must be a list of places [longitude, latitude], got {str(written)[:60]!r}"
            raise InputError([f"{source}: {place_word} {row}: {rule}"]) from None
    places = pd.DataFrame(rows, columns=["row", "place", "lon", "lat"]).set_index("row")
    trips = frame.rename(columns={names[role]: role for role in ("vehicle", "time") if role in names})
    if "vehicle" not in trips:
        raise InputError([f"{source}: vehicle: TAXI_ID or TRIP_ID must be a column"])
    start_s = numbers_of(trips["time"])
    fixes = places.join(trips[["vehicle"]].assign(start=start_s))
    fixes["time"] = fixes.pop("start") + _PORTO_STEP_S * fixes["place"]
    fixes = fixes.iloc[np.lexsort((fixes["place"], fixes.index, fixes["time"] - _PORTO_STEP_S * fixes["place"]))]
    empty = len(trips) - fixes.index.nunique()
    notes = (f"{source}: left out {counted(empty, 'trip')} without a place",) if empty else ()
    own = TraceOptions(time_unit_s=options.time_unit_s)
    made = checked_fixes(fixes.drop(columns="place"), own, source=source, place_word=place_word, notes=notes)
    return made.in_pieces(made.fixes.index)


def fixes_of_sumo(
    frame: pd.DataFrame, options: TraceOptions, *, source: str, place_word: str, notes: tuple[str, ...] = ()
) -> Source:
    """Convert SUMO's table to fixes; x and y are longitude and latitude, or metres of the network in the options.

    A timestep without vehicles is a row without a vehicle; such rows, and rows of persons, are left out.

    Raises
    ------
    InputError
        If columns or values are invalid.
    """
    named = "vehicle_" if "vehicle_id" in frame.columns else ""
    columns = {role: f"{named}{column}" for role, column in (("vehicle", "id"), ("x", "x"), ("y", "y"))}
    if f"{named}speed" in frame.columns:
        columns["speed_mps"] = f"{named}speed"
    columns["time"] = "timestep_time" if "timestep_time" in frame.columns else "time"
    faults = [f"{source}: no column {name!r}" for name in columns.values() if name not in frame.columns]
    if faults:
        raise InputError(faults)
    x, y = (numbers_of(frame[columns[role]]) for role in "xy")
    empty = frame[columns["vehicle"]].isna().to_numpy() & np.isnan(x) & np.isnan(y)
    if empty.all():
        raise InputError([f"{source}: it holds no vehicle"])
    if options.crs is not None:
        raise InputError([f"{source}: crs cannot be the system of x and y: {IN_NET_METRES}"])
    metres = (np.abs(x[~empty]) > 180).any() and (np.abs(y[~empty]) > 90).any()
    if metres and options.net is None:
        raise InputError([f"{source}: x and y look like metres: {IN_NET_METRES}"])
    if options.net is not None and (metres or options.net_stated):
        place = transform(options.net.crs, WGS84, options.net.to_city(np.column_stack((x, y))))
        frame = frame.assign(**{columns["x"]: place[:, 0], columns["y"]: place[:, 1]})
    columns["lon"], columns["lat"] = columns.pop("x"), columns.pop("y")
    own = TraceOptions(columns, time_unit_s=options.time_unit_s or 1.0)
    recorded = frame[~empty]
    return checked_fixes(recorded, own, source=source, place_word=place_word, ascending=True, notes=notes)
