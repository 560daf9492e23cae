"""Recordings in XML and JSON: SUMO's floating-car data, GPX tracks, and timed paths."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd

from simulator.files.compressed_io import JSON_TIMES, opened
from simulator.files.errors import InputError
from simulator.files.messages import counted_by
from simulator.files.tables import Table, recognized
from simulator.files.xml_elements import TEXT, elements_of
from simulator.formats.recordings.fixes import Source, TraceOptions, checked_fixes, stem_of
from simulator.formats.recordings.trace_tables import fixes_of_sumo, types_in_words

_BATCH = 100_000
_SUMO_COLUMNS = ("line", "vehicle_id", "timestep_time", "vehicle_x", "vehicle_y", "vehicle_speed")


def read_sumo_fcd(file: Path, options: TraceOptions) -> Source:
    """Read SUMO's XML, one element after another; x and y are degrees, or metres of the network in the options.

    Persons and containers are left out and counted; vehicles of several types are counted by type.

    Raises
    ------
    InputError
        If the file is not such a document, or a value in it is invalid.
    """
    parts: list[pd.DataFrame] = []
    rows: list[tuple[Any, ...]] = []
    time, others = None, Counter[str]()
    kinds: dict[str | None, str | None] = {}
    for element in elements_of(file, root="fcd-export", ends=False):
        name, attributes = element.local_name, element.attributes or {}
        if name == "timestep":
            time = attributes.get("time")
        elif name == "vehicle":
            kinds[attributes.get("id")] = attributes.get("type")
            rows.append((element.line, attributes.get("id"), time, *map(attributes.get, ("x", "y", "speed"))))
        elif name in {"person", "container"}:
            others[name] += 1
        if len(rows) == _BATCH:
            parts.append(_columns(rows))
            rows.clear()
    frame = pd.concat([*parts, _columns(rows)] if rows or not parts else parts, ignore_index=True)
    left_out = [f"{file}: left out places of others than vehicles: {counted_by(others)}"] if others else []
    notes = (*left_out, *types_in_words(str(file), kinds))
    table = Table.from_frame(frame, title=str(file), number=frame["line"].to_numpy(), unit="line")
    return fixes_of_sumo(table, options, notes=notes)


def _columns(rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    """Return rows of the columns `_SUMO_COLUMNS`; numbers take a tenth of the memory that their texts take."""
    frame = pd.DataFrame(rows, columns=_SUMO_COLUMNS, dtype="object")
    numbers = {name: recognized(frame[name]) for name in _SUMO_COLUMNS[2:]}
    return frame.astype({"line": "int64", "vehicle_id": "str"}).assign(**numbers)


def read_gpx(file: Path, options: TraceOptions) -> Source:
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
    stem, several = stem_of(file), len({number for number, _, _ in points}) > 1
    columns = {"time": "time", "lon": "lon", "lat": "lat", "speed_mps": "speed"}
    frame = pd.DataFrame({role: [point.get(name) for _, _, point in points] for role, name in columns.items()}).assign(
        vehicle=[f"{stem}/{number}" if several else stem for number, _, _ in points]
    )
    own = TraceOptions(time_zone=options.time_zone)
    table = Table.from_frame(frame, title=str(file), number=lines, unit="line")
    made = checked_fixes(table, own, ascending=True, unnamed=True)
    return made.in_pieces([segment for _, segment, _ in points])


def read_json_paths(file: Path, options: TraceOptions) -> Source:
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
    rows: list[tuple[int, str, Any, Any, Any]] = []
    for number, item in enumerate(items, 1):
        try:
            named, path, stamps = _kepler(item) if kepler else _deck(item)
            vehicle = f"trip {number}" if named is None else str(named)
            rows += [(number, vehicle, moment, at[0], at[1]) for at, moment in zip(path, stamps, strict=True)]
        except (LookupError, TypeError, AttributeError, ValueError):
            form = (
                "a LineString whose points are [longitude, latitude, altitude, time]"
                if kepler
                else "a path of places [longitude, latitude] and as many timestamps, or waypoints with both"
            )
            raise InputError([f"{file}: path {number}: must be {form}"]) from None
    if not rows:
        raise InputError([f"{file}: it holds no point of a path"])
    frame = pd.DataFrame(rows, columns=["path", "vehicle", "time", "lon", "lat"])
    table = Table.from_frame(frame, title=str(file), number=frame["path"].to_numpy(), unit="path")
    own = TraceOptions(time_unit_s=options.time_unit_s)
    unnamed = not kepler or all(_kepler(item)[0] is None for item in items)
    made = checked_fixes(table, own, ascending=True, unnamed=unnamed)
    return made.in_pieces(made.fixes.index)


_Path = tuple[Any, list[Any], list[Any]]
"""The name of a vehicle or None, its places and its times."""


def _deck(item: Any) -> _Path:
    if "waypoints" in item:
        points = item["waypoints"]
        return None, [point["coordinates"] for point in points], [point["timestamp"] for point in points]
    return None, item["path"], item["timestamps"]


def _kepler(item: Any) -> _Path:
    points = item["geometry"]["coordinates"]
    if item["geometry"]["type"] != "LineString":
        raise ValueError
    return (item.get("properties") or {}).get("vehicle"), points, [point[3] for point in points]
