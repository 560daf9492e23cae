"""Map matching: the link of each fix, by distance and direction, and the paths between fixes."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import shapely

from simulator.files.messages import counted
from simulator.roads import RoadNetwork
from simulator.traffic.trace.fixes import Tracks
from simulator.traffic.trace.path_interpolation import lay_ways

FloatArray = npt.NDArray[np.float64]
LinkArray = npt.NDArray[np.int32]

TIE_M = 1.0
"""Links whose distances to a fix differ by at most this count as equally near, as the two directions of a street."""

_BLOCK = 200_000
_REACH_M = 0.5
_MOVED_M = 0.5


def link_lines(roads: RoadNetwork) -> npt.NDArray[np.object_]:
    """Return every link's geometry, (links,) shapely LineStrings."""
    shapes = roads.shapes
    lines = np.asarray(shapely.linestrings(np.stack([shapes.start_xy, shapes.end_xy], axis=1)))
    for link in np.flatnonzero(shapes.polyline >= 0).tolist():
        bend = shapes.polyline[link]
        lines[link] = shapely.LineString(shapes.vertices[shapes.first_vertex[bend] : shapes.first_vertex[bend + 1]])
    return lines


def match_nearest(tracks: Tracks, roads: RoadNetwork, *, most_m: float) -> tuple[LinkArray, FloatArray]:
    """Match each fix to the nearest link, by distance and direction.

    Parameters
    ----------
    tracks
        Tracks with straight legs.
    roads
        Roads, in the coordinate system of the tracks.
        most_m
        No link further away is matched.

    Returns
    -------
    tuple
        Link, (fixes,) int32, -1 if no link; fraction of its geometry, (fixes,) float64.
    """
    lines = link_lines(roads)
    tree = shapely.STRtree(lines)
    before, after = _courses(tracks)
    link = np.full(len(tracks.xy), -1, dtype=np.int32)
    fraction = np.zeros(len(link))
    for start in range(0, len(link), _BLOCK):
        points = np.asarray(shapely.points(tracks.xy[start : start + _BLOCK]))
        (near, _), distance = tree.query_nearest(points, max_distance=most_m, return_distance=True, all_matches=False)
        if len(near) == 0:
            continue
        which, candidate = tree.query(points[near], predicate="dwithin", distance=distance + TIE_M)
        fix = near[which]
        on, point = lines[candidate], points[fix]
        along = shapely.line_locate_point(on, point)
        way = _direction(on, along)
        agrees = (way * (before[start + fix] + after[start + fix])).sum(axis=1)
        apart = shapely.distance(on, point)
        # The best link of each fix comes first: by direction, then distance, then link number.
        order = np.lexsort((candidate, apart, -np.round(agrees, 6), fix))
        best = order[np.unique(fix[order], return_index=True)[1]]
        length = shapely.length(on[best])
        link[start + fix[best]] = candidate[best]
        fraction[start + fix[best]] = np.where(length > 0, along[best] / np.where(length > 0, length, 1.0), 0.0)
    return link, np.clip(fraction, 0.0, 1.0)


def _courses(tracks: Tracks) -> tuple[FloatArray, FloatArray]:
    """Return unit vectors of the directions to and from each fix, (fixes, 2); 0 where unknown.

    A standing vehicle has the direction of its last move before, and of its next move after.
    """
    step = np.zeros((len(tracks.xy), 2))
    step[:-1] = np.diff(tracks.xy, axis=0)
    metres = np.hypot(step[:, 0], step[:, 1])
    moved = tracks.known & (metres > _MOVED_M)
    unit = np.where(moved[:, None], step / np.where(moved, metres, 1.0)[:, None], 0.0)
    vehicle = np.repeat(np.arange(tracks.vehicles), np.diff(tracks.first))
    position = np.arange(len(step))
    last = np.maximum.accumulate(np.where(moved, position, -1))
    came = np.concatenate(([-1], last[:-1]))
    leaves = np.where(moved, position, len(step))
    leaves = np.minimum.accumulate(leaves[::-1])[::-1]
    return _of_same(unit, came, vehicle), _of_same(unit, leaves, vehicle)


def _of_same(unit: FloatArray, at: npt.NDArray[np.int64], vehicle: npt.NDArray[np.int64]) -> FloatArray:
    inside = (at >= 0) & (at < len(unit))
    safe = np.where(inside, at, 0)
    same = inside & (vehicle[safe] == vehicle)
    return np.where(same[:, None], unit[safe], 0.0)


def _direction(lines: npt.NDArray[np.object_], along: FloatArray) -> FloatArray:
    """Return the unit vector of each line's direction at a distance along it, (n, 2); 0 for a line without length."""
    ahead = shapely.get_coordinates(shapely.line_interpolate_point(lines, along + _REACH_M))
    back = shapely.get_coordinates(shapely.line_interpolate_point(lines, np.maximum(along - _REACH_M, 0.0)))
    step = ahead - back
    metres = np.hypot(step[:, 0], step[:, 1])[:, None]
    return np.divide(step, metres, out=np.zeros_like(step), where=metres > 0)


@dataclass(frozen=True)
class Matching:
    """Options of map matching.

    Attributes
    ----------
    method
        "nearest": each fix is matched to the nearest link; among equally near links, to the one with the fix's
        direction. "hmm": all fixes of a vehicle together, by a hidden Markov model (leuvenmapmatching).
    most_m
        A fix further than this from every link, metres, stays where it was recorded, on no link.
    noise_m
        For "hmm": standard deviation of recorded places, metres.
    """

    method: Literal["nearest", "hmm"]
    most_m: float = 50.0
    noise_m: float = 10.0


def match_trace(tracks: Tracks, roads: RoadNetwork, matching: Matching) -> tuple[Tracks, list[str]]:
    """Match fixes to links, and join them by paths on the roads.

    Parameters
    ----------
    tracks
        Tracks with straight legs: every waypoint is a fix.
    roads
        Roads, in the coordinate system of the tracks.
        matching
        Options of map matching.

    Returns
    -------
    tuple
        The tracks on the roads, and notes, one sentence each.

    Raises
    ------
    TrafficError
        If the library for map matching is not installed.
    """
    if matching.method == "nearest":
        link, fraction = match_nearest(tracks, roads, most_m=matching.most_m)
    else:
        from simulator.traffic.trace.hidden_markov import match_hmm  # noqa: PLC0415 - its library is an extra

        link, fraction = match_hmm(tracks, roads, most_m=matching.most_m, noise_m=matching.noise_m)
    laid, joined = lay_ways(tracks, roads, link, fraction, most_m=matching.most_m)
    lost = int(np.count_nonzero(link < 0))
    of_all = counted(len(link), "fix is", "fixes are")
    matched = (
        f"trace: {len(link) - lost:,} of {of_all} matched to roads ({matching.method}); {lost:,} with "
        f"no road within {matching.most_m:g} m left where recorded"
    )
    notes = [matched]
    if joined:
        notes.append(
            f"trace: {counted(joined, 'leg between fixes has', 'legs between fixes have')} no likely way over the "
            "roads, or an end off them: the vehicle is taken to be at the nearer of the two in time"
        )
    return laid, notes
