"""Timed paths in JSON: deck.gl's trips, and kepler.gl's trip layer in GeoJSON."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from simulator.files.unpacked import JSON_TIMES, opened
from simulator.traffic.errors import TrafficError
from simulator.traffic.trace.fixes import Fixes
from simulator.traffic.trace.tables import Reading, check
from simulator.traffic.trace.times import Times

TimedPath = tuple[str, Sequence[Any], Sequence[Any]]
"""A vehicle, its places [lon, lat …] and its times."""


class _BrokenError(Exception):
    """Carries the rule a path breaks."""


def read_json_paths(file: Path, reading: Reading) -> list[Fixes]:
    """Read timed paths, a vehicle each.

    deck.gl: a list of ``{"path": [[lon, lat], …], "timestamps": […]}`` or ``{"waypoints": [{"coordinates",
    "timestamp"}, …]}``. kepler.gl: GeoJSON LineStrings whose points are [lon, lat, altitude, time]; a property
    ``vehicle`` names the vehicle, and features that name one alike are of one.

    Raises
    ------
    TrafficError
        If the file is no such JSON; a path is named by its number, from 1.
    """
    try:
        with opened(file, error=TrafficError, times=JSON_TIMES) as stream:
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
