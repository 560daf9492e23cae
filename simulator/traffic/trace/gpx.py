"""GPX tracks, by gpxpy."""

from datetime import UTC
from pathlib import Path
from typing import Any

import numpy as np

from simulator.extras import import_extra
from simulator.files.unpacked import opened
from simulator.files.xml_elements import elements_of
from simulator.traffic.errors import TrafficError
from simulator.traffic.trace.fixes import Fixes
from simulator.traffic.trace.source import stem
from simulator.traffic.trace.tables import Reading, check
from simulator.traffic.trace.times import Times


def read_gpx(file: Path, reading: Reading) -> list[Fixes]:  # noqa: ARG001 - a GPX file says all of it itself
    """Read the tracks of a GPX file, a vehicle each, named as the file, and numbered where there are several.

    Routes and waypoints have no moment for every point, and are left out.

    Raises
    ------
    TrafficError
        If the file is no GPX, or a point of a track has no time.
    """
    gpxpy = import_extra("gpxpy", needed=f"{file}: reading GPX needs gpxpy", extra="traces", error=TrafficError)
    elements = elements_of(file, error=TrafficError)
    lines = [element.line for element in elements if element.local_name == "trkpt" and not element.ends]
    with opened(file, error=TrafficError) as stream:
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
    """Return seconds since 1970, UTC where a moment names no zone; NaN where there is none."""
    if time is None:
        return float("nan")
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return float(aware.timestamp())
