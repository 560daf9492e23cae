"""Recordings in XML and JSON: SUMO's floating-car data, GPX tracks, and timed paths."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from simulator.files.compressed_io import JSON_TIMES, opened
from simulator.files.errors import InputError
from simulator.files.messages import counted
from simulator.files.tntp_text import finite_number
from simulator.files.xml_elements import TEXT, Element, elements_of
from simulator.formats.recorded.fixes import Fixes, TraceOptions, stem_of
from simulator.formats.recorded.trace_tables import fixes_of_sumo

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
    return fixes_of_sumo(frame, options, source=str(file), place_word="line", notes=notes)


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
    stem, several = stem_of(file), len({number for number, _, _ in points}) > 1
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
    frame = pd.DataFrame(rows, columns=["path", "vehicle", "time", "lon", "lat"]).set_index("path")
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
