"""Nearest: each fix on the link nearest to it, that which runs the vehicle's way among equals."""

import numpy as np
import numpy.typing as npt
import shapely

from simulator.roads import RoadNetwork
from simulator.traffic.trace.tracks import Tracks

FloatArray = npt.NDArray[np.float64]
LinkArray = npt.NDArray[np.int32]

TIE_M = 1.0
"""Links whose distances to a fix differ by no more are equally near: the two directions of a street are."""

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
    """Match fix by fix.

    Parameters
    ----------
    tracks
        Straight ones.
    roads
        In whose system they are.
    most_m
        No link further away is matched.

    Returns
    -------
    tuple
        Link, (fixes,) int32, -1 where none; fraction of its geometry, (fixes,) float64.
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
        # The best of each fix comes first: the way it goes, then the nearest, then the lowest link.
        order = np.lexsort((candidate, apart, -np.round(agrees, 6), fix))
        best = order[np.unique(fix[order], return_index=True)[1]]
        length = shapely.length(on[best])
        link[start + fix[best]] = candidate[best]
        fraction[start + fix[best]] = np.where(length > 0, along[best] / np.where(length > 0, length, 1.0), 0.0)
    return link, np.clip(fraction, 0.0, 1.0)


def _courses(tracks: Tracks) -> tuple[FloatArray, FloatArray]:
    """Return unit vectors of how each fix is come to and left, (fixes, 2); 0 where nobody knows.

    A vehicle that stands keeps the course it had, or that it leaves with where it had none.
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
    """Return the unit vector each line runs in at a distance along it, (n, 2); 0 of a line without length."""
    ahead = shapely.get_coordinates(shapely.line_interpolate_point(lines, along + _REACH_M))
    back = shapely.get_coordinates(shapely.line_interpolate_point(lines, np.maximum(along - _REACH_M, 0.0)))
    step = ahead - back
    metres = np.hypot(step[:, 0], step[:, 1])[:, None]
    return np.divide(step, metres, out=np.zeros_like(step), where=metres > 0)
