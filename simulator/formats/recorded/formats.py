"""Readers of traces: delimited text, T-Drive, cabspotting, Parquet, GPX, SUMO's floating-car data and timed paths."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from simulator.files.compressed_io import JSON_TIMES, opened, unpacked_name
from simulator.files.errors import InputError
from simulator.files.messages import counted
from simulator.files.tables import Table, TextFormat, check_parquet, column_names, comparable_name
from simulator.files.tntp_text import finite_number
from simulator.files.xml_elements import TEXT, Element, elements_of, root_of
from simulator.formats.recorded.fixes import Fixes, TraceOptions, numbers_of
from simulator.formats.recorded.times import Times
from simulator.roads.projection import WGS84, transform

T_DRIVE = ("vehicle", "time", "lon", "lat")
CABSPOTTING = ("lat", "lon", "occupied", "time")

IN_NET_METRES = (
    "SUMO writes metres of its network, from whose projection an offset was taken off (netOffset): give the network as "
    'traffic.net = "FILE.net.xml", or let SUMO write --fcd-output.geo'
)

_BY_NAME: Mapping[str, str] = {
    ".parquet": "parquet",
    ".geoparquet": "parquet",
    ".pq": "parquet",
    ".gpx": "gpx",
    ".json": "json",
    ".geojson": "json",
}


def format_of(file: Path) -> str:
    """Return a file's format, recognised by its name, and if that is not sufficient, by its beginning.

    Raises
    ------
    InputError
        If the format is not recognised.
    """
    name = unpacked_name(file).lower()
    by_name = next((kind for ends, kind in _BY_NAME.items() if name.endswith(ends)), None)
    if by_name is not None:
        return by_name
    first = _first_line(file)
    line = first.lstrip()
    if name.endswith(".xml") or line.startswith("<"):
        # SUMO's reader reports the fault of any other XML file.
        return "gpx" if root_of(file) == "gpx" else "sumo"
    if line.startswith(("[", "{")):
        return "json"
    words, values = line.split(), line.split(",")
    if len(words) == 4 and None not in map(finite_number, words) and words[2] in {"0", "1"}:
        return "cabspotting"
    if len(values) == 4 and None not in map(finite_number, values[2:]) and _is_time(values[1]):
        return "tdrive"
    if name.endswith((".csv", ".tsv", ".txt")):
        return "csv"
    rule = f"its format cannot be recognised by its name or by {first[:60]!r}: state it in traffic.format"
    raise InputError([f"{file}: {rule}"])


def _first_line(file: Path, *, most_nbytes: int = 1 << 16) -> str:
    """Return the first line of a text file that is not blank, at most 64 KiB.

    Raises
    ------
    InputError
        If the file cannot be read or has no such line.
    """
    with opened(file) as stream:
        text = stream.read(most_nbytes).decode("utf-8-sig", errors="replace")
    line = next((line for line in text.splitlines() if line.strip()), None)
    if line is None:
        raise InputError([f"{file}: it is empty"])
    return line


def _is_time(text: str) -> bool:
    return bool(np.isfinite(Times.from_column(pd.Series([text])).seconds[0]))


def _stem(file: Path) -> str:
    """Return a file's name without ``.gz`` and its suffix: the vehicle's name, if each file is one vehicle."""
    return Path(unpacked_name(file)).stem


def read_csv(file: Path, options: TraceOptions) -> Fixes:
    """Read a table with a header.

    SUMO's floating-car data and taxi trips (pick-up and drop-off in one row) are recognised by their columns.
    """
    names = column_names(file, format_=options.text)
    if twice := [name for name in names if f"{name}.1" in names]:
        raise InputError([f"{file}: line 1: columns must differ in name, but {twice[0]!r} occurs twice"])
    text = [name for name in names if _may_name_a_vehicle(name)]
    table = Table.from_file(file, format_=options.text, text=(), identifiers=text, keep_blank=True)
    # The header is the first line that is not blank; a quoted field that spans several lines counts as one line.
    frame = table.frame.set_axis(table.number + 1).dropna(how="all")
    if not options.columns and _holds_taxi_trips(frame):
        return _fixes_of_taxi_trips(frame, options, source=str(file))
    return _fixes_of_table(frame, options, file, place_word="line")


def read_tdrive(file: Path, options: TraceOptions) -> Fixes:
    """Read the T-Drive format: vehicle, time, longitude, latitude, separated by commas, without a header."""
    own = replace(options, columns={}, crs=None, one_vehicle_a_file=False)
    return _fixes_without_header(file, own, ",", T_DRIVE, identifiers=["vehicle"])


def read_cabspotting(file: Path, options: TraceOptions) -> Fixes:
    """Read the cabspotting format: latitude, longitude, occupied, seconds since 1970, one file per cab.

    A cab is named after its file, without the prefix ``new_``.
    """
    own = TraceOptions(time_unit_s=options.time_unit_s, one_vehicle_a_file=True)
    return _fixes_without_header(file, own, " ", CABSPOTTING)


def _fixes_without_header(
    file: Path, options: TraceOptions, separator: str, names: Sequence[str], *, identifiers: Sequence[str] = ()
) -> Fixes:
    text = TextFormat(separator, ".")
    table = Table.from_file(
        file, format_=text, header=names, text=identifiers, identifiers=identifiers, keep_blank=True
    )
    frame = table.frame.set_axis(table.number).dropna(how="all")
    return Fixes.from_frame(
        frame, options, source=str(file), vehicle=_stem(file).removeprefix("new_"), place_word="line"
    )


def _may_name_a_vehicle(column: str) -> bool:
    """Return whether a column is read as text, so that the name 007 stays 007."""
    name = column.lower()
    return name not in {"x", "y", "t", "ts", "epoch", "velocity"} and not any(
        word in name for word in ("time", "date", "utc", "lon", "lng", "lat", "speed", "_x", "_y")
    )


def read_parquet(file: Path, options: TraceOptions) -> Fixes:
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


def _fixes_of_table(frame: pd.DataFrame, options: TraceOptions, file: Path, *, place_word: str) -> Fixes:
    """Convert a table whose index numbers its lines or rows: SUMO's floating-car data, or any other."""
    names = set(frame.columns)
    sumo = {"timestep_time", "vehicle_id"} <= names or (
        {"time", "id", "x", "y", "speed"} <= names and not names.isdisjoint({"lane", "edge"})
    )
    if sumo and not options.columns:
        return _fixes_of_sumo(frame, options, source=str(file), place_word=place_word)
    return Fixes.from_frame(frame, options, source=str(file), vehicle=_stem(file), place_word=place_word)


_ENDS = ("pickup", "dropoff")


def _holds_taxi_trips(frame: pd.DataFrame) -> bool:
    """Return whether the columns are those of pick-ups and drop-offs, as in New York's taxi trips."""
    return {f"{end}{axis}" for end in _ENDS for axis in ("longitude", "latitude")} <= set(map(comparable_name, frame))


def _fixes_of_taxi_trips(frame: pd.DataFrame, options: TraceOptions, *, source: str) -> Fixes:
    """Convert pick-ups and drop-offs to fixes; the vehicle is the medallion, else the trip's id, else the line.

    Raises
    ------
    InputError
        If columns or values are invalid.
    """
    by_plain = {comparable_name(name): name for name in frame.columns}

    def named(*names: str) -> str | None:
        return next((by_plain[name] for name in names if name in by_plain), None)

    moments = [named(f"{end}datetime", f"tpep{end}datetime", f"lpep{end}datetime") for end in _ENDS]
    if frame.empty or None in moments:
        why = "it holds no rows" if frame.empty else "pickup_datetime and dropoff_datetime must be columns"
        raise InputError([f"{source}: {why}"])
    taxi = named("medallion", "taxiid", "vehicleid")
    trip = taxi or named("id", "tripid")
    vehicle = frame.index.map("line {}".format) if trip is None else frame[trip]
    ends = [
        pd.DataFrame(
            {
                "vehicle": vehicle,
                "time": frame[moment],
                "lon": frame[by_plain[f"{end}longitude"]],
                "lat": frame[by_plain[f"{end}latitude"]],
            },
            index=frame.index,
        )
        for end, moment in zip(_ENDS, moments, strict=True)
    ]
    # Both ends of a trip are adjacent, so that the order of a taxi's times is checked as in the file.
    both = pd.concat(ends).sort_index(kind="stable")
    own = replace(options, columns={}, crs=None, one_vehicle_a_file=False)
    notes = () if taxi else (f"{source}: no column names the taxi, so every trip is a vehicle of its own",)
    return Fixes.from_frame(both, own, source=source, place_word="line", notes=notes)


def _fixes_of_sumo(
    frame: pd.DataFrame, options: TraceOptions, *, source: str, place_word: str, notes: tuple[str, ...] = ()
) -> Fixes:
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
    return Fixes.from_frame(recorded, own, source=source, place_word=place_word, ascending=True, notes=notes)


_SUMO_COLUMNS = ("vehicle_id", "timestep_time", "vehicle_x", "vehicle_y", "vehicle_speed")


def read_sumo_fcd(file: Path, options: TraceOptions) -> Fixes:
    """Read SUMO's XML, one element after another; x and y are degrees, or metres of the network in the options.

    Persons and containers are left out.

    Raises
    ------
    InputError
        If the file is not such a document, or its times go back.
    """
    unit_s = options.time_unit_s or 1.0
    rows: list[tuple[str, float, float, float, float]] = []
    lines: list[int] = []
    time, others, root = math.nan, 0, ""
    for element in elements_of(file):
        name, attributes = element.local_name, element.attributes
        if attributes is None:
            continue
        if not root and name != "fcd-export":
            raise _sumo_fault(file, element, f"the outermost element must be fcd-export, got {name}")
        root = "fcd-export"
        if name == "vehicle":
            if math.isnan(time):
                raise _sumo_fault(file, element, "vehicle must be within a timestep")
            if "id" not in attributes:
                raise _sumo_fault(file, element, "vehicle must have an id")
            x, y = _sumo_number(file, element, "x"), _sumo_number(file, element, "y")
            speed = _sumo_number(file, element, "speed") if "speed" in attributes else math.nan
            rows.append((attributes["id"], time, x, y, speed))
            lines.append(element.line)
        elif name == "timestep":
            before, time = time, _sumo_number(file, element, "time")
            if time < before:
                rule = f"time must not go back, got {time * unit_s:g} s after {before * unit_s:g} s"
                raise _sumo_fault(file, element, f"timestep: {rule}")
        elif name in {"person", "container"}:
            others += 1
    frame = pd.DataFrame(rows, columns=_SUMO_COLUMNS, index=lines)
    notes = (f"{file}: left out {counted(others, 'place')} of persons and containers",) if others else ()
    return _fixes_of_sumo(frame, options, source=str(file), place_word="line", notes=notes)


def _sumo_number(file: Path, element: Element, name: str) -> float:
    text = (element.attributes or {}).get(name)
    value = None if text is None else finite_number(text)
    if value is None:
        got = "nothing" if text is None else repr(text[:40])
        raise _sumo_fault(file, element, f"{element.local_name}: {name} must be a number, got {got}")
    return value


def _sumo_fault(file: Path, element: Element, rule: str) -> InputError:
    return InputError([f"{file}: line {element.line}: {rule}"])


def read_gpx(file: Path, options: TraceOptions) -> Fixes:
    """Read the tracks of a GPX file, one vehicle per track, named after the file, and numbered if there are several.

    Between two segments of a track the receiver was off or had no signal: they are separate pieces of the recording.
    Routes and waypoints do not have a time for every point, and are left out.

    Raises
    ------
    InputError
        If the file is not GPX, or a point of a track has no time.
    """
    points: list[tuple[int, int, dict[str, str]]] = []
    lines: list[int] = []
    track = segment = 0
    extended = False
    point: dict[str, str] | None = None
    for element in elements_of(file, root="gpx", texts=("time", "speed")):
        name, attributes = element.local_name, element.attributes
        track += name == "trk" and not element.ends
        segment += name == "trkseg" and not element.ends
        if name == "trkpt" and attributes is not None:
            point = {**attributes}
            points.append((track, segment, point))
            lines.append(element.line)
        elif name == "trkpt":
            point = None
        elif name == "extensions":  # they repeat names, in units of their own
            extended = not element.ends
        elif name == TEXT and point is not None and not extended:
            point.update(attributes or {})
    if not points:
        raise InputError([f"{file}: it holds no point of a track"])
    stem, several = _stem(file), len({number for number, _, _ in points}) > 1
    columns = {"time": "time", "lon": "lon", "lat": "lat", "speed_mps": "speed"}
    frame = pd.DataFrame(
        {role: [point.get(name) for _, _, point in points] for role, name in columns.items()}, index=lines
    ).assign(vehicle=[f"{stem}/{number}" if several else stem for number, _, _ in points])
    own = TraceOptions(time_zone=options.time_zone)
    fixes = Fixes.from_frame(frame, own, source=str(file), place_word="line", ascending=True)
    return replace(fixes, piece=np.array([segment for _, segment, _ in points]), unnamed=True)


class _BrokenError(Exception):
    """Error with the rule that a path breaks."""


def read_json_paths(file: Path, options: TraceOptions) -> Fixes:
    """Read timed paths in JSON, one vehicle per path.

    deck.gl: a list of ``{"path": [[lon, lat], …], "timestamps": […]}`` or ``{"waypoints": [{"coordinates",
    "timestamp"}, …]}``. kepler.gl: GeoJSON LineStrings whose points are [lon, lat, altitude, time]; a property
    ``vehicle`` names the vehicle, and features with the same name are separate pieces of the same vehicle's recording.

    Raises
    ------
    InputError
        If the file is not JSON of these forms; messages give a path's number, from 1.
    """
    try:
        with opened(file, times=JSON_TIMES) as stream:
            content = json.load(stream)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        why = "it nests too deeply" if isinstance(error, RecursionError) else str(error)
        if isinstance(error, json.JSONDecodeError):
            why = f"line {error.lineno}: {error.msg}"
        raise InputError([f"{file}: must be JSON: {why}"]) from None
    kepler = isinstance(content, dict)
    items = content.get("features") if kepler else content
    if not isinstance(items, list) or not items:
        raise InputError([f"{file}: must be a list of paths with timestamps, or a GeoJSON FeatureCollection"])
    rows: list[tuple[int, str, float, float, float]] = []
    for number, item in enumerate(items, 1):
        try:
            rows += [
                (number, vehicle, _number(moment), *_lon_lat(at))
                for vehicle, at, moment in (_kepler(number, item) if kepler else _deck(number, item))
            ]
        except (_BrokenError, OverflowError) as error:
            raise InputError([f"{file}: path {number}: {error}"]) from None
    if not rows:
        raise InputError([f"{file}: it holds no point of a path"])
    frame = pd.DataFrame(rows, columns=["path", *T_DRIVE]).set_index("path")
    own = TraceOptions(time_unit_s=options.time_unit_s)
    fixes = Fixes.from_frame(frame, own, source=str(file), place_word="path", ascending=True)
    return replace(fixes, piece=fixes.place, unnamed=not any(map(_vehicle_of, items)) if kepler else True)


def _deck(number: int, item: Any) -> Iterator[tuple[str, Any, Any]]:
    if not isinstance(item, dict):
        raise _BrokenError("must be a table with path and timestamps")
    path, stamps = item.get("path"), item.get("timestamps")
    waypoints = item.get("waypoints")
    if isinstance(waypoints, list) and all(isinstance(point, dict) for point in waypoints):
        path = [point.get("coordinates") for point in waypoints]
        stamps = [point.get("timestamp") for point in waypoints]
    if not isinstance(path, list) or not isinstance(stamps, list):
        raise _BrokenError("must have a path and its timestamps")
    if len(path) != len(stamps):
        raise _BrokenError(f"must have as many timestamps as places, got {len(stamps):,} for {len(path):,}")
    yield from ((f"trip {number}", at, moment) for at, moment in zip(path, stamps, strict=True))


def _kepler(number: int, item: Any) -> Iterator[tuple[str, Any, Any]]:
    geometry = item.get("geometry") if isinstance(item, dict) else None
    if not isinstance(geometry, dict) or geometry.get("type") != "LineString":
        raise _BrokenError("must be a feature with a LineString")
    named = _vehicle_of(item)
    vehicle = f"trip {number}" if named is None else str(named)
    points = geometry.get("coordinates")
    if not isinstance(points, list) or any(not isinstance(point, list) or len(point) < 4 for point in points):
        raise _BrokenError("points must be [longitude, latitude, altitude, time]")
    yield from ((vehicle, point, point[3]) for point in points)


def _vehicle_of(feature: Mapping[str, Any]) -> Any:
    properties = feature.get("properties")
    return properties.get("vehicle") if isinstance(properties, dict) else None


def _lon_lat(at: Any) -> tuple[float, float]:
    if not isinstance(at, list) or len(at) < 2 or isinstance(at[0], bool) or isinstance(at[1], bool):
        raise _BrokenError("places must be [longitude, latitude]")
    return _number(at[0]), _number(at[1])


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else math.nan
