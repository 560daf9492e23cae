"""Readers of traces in GPX, Parquet, GeoParquet, deck.gl's trips and kepler.gl's trip layer."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from simulator.files.compressed_io import JSON_TIMES, opened
from simulator.files.extras import import_extra
from simulator.files.text_table import check_parquet
from simulator.files.xml_elements import elements_of
from simulator.traffic.errors import TrafficError
from simulator.traffic.trace.fixes import Fixes
from simulator.traffic.trace.sumo_fcd import fixes_of_sumo, is_sumo
from simulator.traffic.trace.tables import TraceOptions, check, fixes_of
from simulator.traffic.trace.text import stem
from simulator.traffic.trace.times import Times


def read_gpx(file: Path, reading: TraceOptions) -> list[Fixes]:  # noqa: ARG001 - a GPX file says all of it itself
    """Read the tracks of a GPX file, one vehicle per track, named after the file, and numbered if there are several.

    Routes and waypoints do not have a time for every point, and are left out.

    Raises
    ------
    TrafficError
        If the file is not GPX, or a point of a track has no time.
    """
    gpxpy = import_extra("gpxpy", needed=f"{file}: reading GPX needs gpxpy", extra="traces")
    elements = elements_of(file)
    lines = [element.line for element in elements if element.local_name == "trkpt" and not element.ends]
    with opened(file) as stream:
        content = stream.read()
    try:
        tracks = gpxpy.parse(content).tracks
    except (gpxpy.gpx.GPXException, ValueError, TypeError, AttributeError, LookupError) as error:
        raise TrafficError([f"{file}: cannot be read as GPX: {error}"]) from None
    points = [(number, point) for number, track in enumerate(tracks, 1) for s in track.segments for point in s.points]
    if not points:
        raise TrafficError([f"{file}: it holds no point of a track"])
    if len(lines) != len(points):
        lines = list(range(1, len(points) + 1))
    zoned = np.array([point.time is not None and point.time.tzinfo is not None for _, point in points])
    several = len({number for number, _ in points}) > 1
    fixes = Fixes.from_lists(
        str(file),
        [f"{stem(file)}/{number}" if several else stem(file) for number, _ in points],
        Times(
            np.array([_seconds(point.time) for _, point in points]),
            calendar=True,
            naive=not zoned.any(),
            zoned=zoned,
        ),
        [point.longitude for _, point in points],
        [point.latitude for _, point in points],
        speed_mps=[np.nan if point.speed is None else point.speed for _, point in points],
        place=lines,
        place_word="line",
    )
    check(fixes)
    return [fixes]


def _seconds(time: Any) -> float:
    """Return seconds since 1970, UTC if the time names no zone; NaN if there is no time."""
    if time is None:
        return float("nan")
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return float(aware.timestamp())


def read_parquet(file: Path, reading: TraceOptions) -> list[Fixes]:
    """Read a table, SUMO's floating-car data, or points (GeoParquet), which are converted to longitude and latitude.

    Raises
    ------
    TrafficError
        If the file is not Parquet, or its columns are invalid.
    """
    try:
        stored = pq.ParquetFile(file)
        check_parquet(stored, file)
        frame = _points(file) if b"geo" in (stored.schema_arrow.metadata or {}) else pd.read_parquet(file)
    except FileNotFoundError:
        raise TrafficError([f"{file}: no such file"]) from None
    except TrafficError:
        raise
    except (OSError, ValueError, TypeError, LookupError, pa.ArrowException) as error:
        why = " ".join(str(error).split())
        raise TrafficError([f"{file}: cannot be read as Parquet: {why}"]) from None
    if frame.index.names != [None]:
        frame = frame.reset_index()
    place = np.arange(1, len(frame) + 1, dtype=np.int64)
    if is_sumo(list(frame.columns)) and not reading.columns:
        return [fixes_of_sumo(frame, reading, source=str(file), place=place, place_word="row")]
    return [fixes_of(frame, reading, source=str(file), vehicle=stem(file), place=place, place_word="row")]


def _points(file: Path) -> pd.DataFrame:
    import geopandas as gpd  # noqa: PLC0415 - heavy, and most Parquet has no geometry

    frame = gpd.read_parquet(file)
    points = frame.geometry
    if frame.crs is None or not (points.geom_type == "Point").all():
        raise ValueError("its geometry must be points in a known coordinate system")
    degrees = points.to_crs("EPSG:4326")
    plain = pd.DataFrame(frame.drop(columns=points.name))
    return plain.drop(columns=["lon", "lat"], errors="ignore").assign(
        lon=degrees.x.to_numpy(), lat=degrees.y.to_numpy()
    )


TimedPath = tuple[str, Sequence[Any], Sequence[Any]]
"""Name of a vehicle, its places [lon, lat …] and its times."""


class _BrokenError(Exception):
    """Error with the rule that a path breaks."""


def read_json_paths(file: Path, reading: TraceOptions) -> list[Fixes]:
    """Read timed paths in JSON, one vehicle per path.

    deck.gl: a list of ``{"path": [[lon, lat], …], "timestamps": […]}`` or ``{"waypoints": [{"coordinates",
    "timestamp"}, …]}``. kepler.gl: GeoJSON LineStrings whose points are [lon, lat, altitude, time]; a property
    ``vehicle`` names the vehicle, and features with the same name belong to the same vehicle.

    Raises
    ------
    TrafficError
        If the file is not JSON of these forms; messages give a path's number, from 1.
    """
    try:
        with opened(file, times=JSON_TIMES) as stream:
            content = json.load(stream)
    except TrafficError:
        raise
    except (ValueError, RecursionError) as error:
        why = "it nests too deeply" if isinstance(error, RecursionError) else str(error)
        if isinstance(error, json.JSONDecodeError):
            why = f"line {error.lineno}: {error.msg}"
        raise TrafficError([f"{file}: must be JSON: {why}"]) from None
    kepler = isinstance(content, dict)
    items = content.get("features") if kepler else content
    if not isinstance(items, list) or not items:
        raise TrafficError([f"{file}: must be a list of paths with timestamps, or a GeoJSON FeatureCollection"])
    names: list[str] = []
    times: list[float] = []
    places: list[tuple[float, float]] = []
    place: list[int] = []
    for number, item in enumerate(items, 1):
        try:
            for vehicle, at, moment in _kepler(number, item) if kepler else _deck(number, item):
                names.append(vehicle)
                places.append((_number(at, 0), _number(at, 1)))
                times.append(float(moment) if isinstance(moment, int | float) else float("nan"))
                place.append(number)
        except (_BrokenError, OverflowError) as error:
            raise TrafficError([f"{file}: path {number}: {error}"]) from None
    if not names:
        raise TrafficError([f"{file}: it holds no point of a path"])
    lon, lat = np.array(places, dtype=np.float64).T
    moments = Times.from_numbers(np.array(times), unit_s=reading.time_unit_s)
    fixes = Fixes.from_lists(str(file), names, moments, lon, lat, place=place, place_word="path")
    check(fixes)
    return [fixes]


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
    properties = item.get("properties")
    named = properties.get("vehicle") if isinstance(properties, dict) else None
    vehicle = f"trip {number}" if named is None else str(named)
    points = geometry.get("coordinates")
    if not isinstance(points, list) or any(not isinstance(point, list) or len(point) < 4 for point in points):
        raise _BrokenError("points must be [longitude, latitude, altitude, time]")
    yield from ((vehicle, point, point[3]) for point in points)


def _number(at: Any, index: int) -> float:
    if not isinstance(at, list) or len(at) < 2 or isinstance(at[index], bool):
        raise _BrokenError("places must be [longitude, latitude]")
    return float(at[index]) if isinstance(at[index], int | float) else float("nan")
