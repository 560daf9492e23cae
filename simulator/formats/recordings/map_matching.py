"""Map matching: the link of each fix by distance and direction, and the paths between fixes."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
import shapely

from simulator.arrays import FloatArray, Int32Array, IntArray
from simulator.files.messages import counted
from simulator.formats.recordings.hidden_markov import match_hmm
from simulator.roads import RoadNetwork
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.recording import Tracks
from simulator.traffic.routes import Routes

DETOUR = 3.0
"""A path is plausible if it is no longer than this factor times the straight line plus four matching distances."""

_STRAIGHT, _ALONG, _PATH, _JUMP = 0, 1, 2, 3


def interpolate_paths(
    tracks: Tracks, roads: RoadNetwork, link: Int32Array, fraction: FloatArray, *, most_m: float
) -> tuple[Tracks, int]:
    """Join matched fixes by paths that are shortest in free-flow time, driven at constant speed.

    If no path is plausible, and between a matched and an unmatched fix, a vehicle is at the fix that is nearer in time.
    Between two unmatched fixes it is on the straight line.

    Parameters
    ----------
    tracks
        Tracks with straight legs.
    roads
        Roads, in the coordinate system of the tracks.
    link, fraction
        Link and fraction of every fix; link -1 if no link.
    most_m
        Maximum distance of a fix from its link, metres.

    Returns
    -------
    tuple
        Tracks with a waypoint at the end of each link, and the number of known legs without a plausible path.
    """
    on = link >= 0
    xy = tracks.xy.copy()
    xy[on] = roads.locate(link[on], fraction[on])
    kind, metres, route, routes = _classify_legs(tracks, roads, xy, link, fraction, most_m=most_m)
    # Waypoints of each fix: itself, and the ends of the links on the path from it. A jump has two at half time: the
    # vehicle is at the first fix before it, and at the second fix after it.
    number = np.select([kind == _JUMP, kind == _PATH], [3, 2 + np.append(np.diff(routes.offsets), 0)[route]], 1)
    ends = np.cumsum(number)
    at = np.repeat(np.arange(len(link)), number)
    nth = np.arange(len(at)) - np.repeat(ends - number, number)
    after = np.minimum(at + 1, len(link) - 1)
    added, last, on_path = nth > 0, (nth > 0) & (nth == number[at] - 1), kind[at] == _PATH
    place = np.where(last & ~on_path, after, at)
    on_link = np.where(last, link[after], link[at])
    between = on_path & added & ~last
    on_link[between] = routes.links[routes.offsets[route[at[between]]] + nth[between] - 1]
    leaves = np.where(on_path & added, 0.0, fraction[place])
    comes = np.where((last & on_path) | (kind[at] == _ALONG), fraction[after], fraction[place])
    comes[on_path & ~last] = 1.0
    driven = np.where(added, 1.0, 1.0 - fraction[at]) * roads.links.length_m[on_link]
    walked = np.append(0.0, pd.Series(driven).groupby(at).cumsum())[:-1]
    share = np.where(on_path, 1.0, 0.5)
    moving = on_path & (metres[at] > 0)
    share[moving] = np.minimum(walked[moving] / metres[at[moving]], 1.0)
    lasts = np.where(tracks.known, np.append(np.diff(tracks.time_s), 0.0), 1.0)
    time_s = tracks.time_s[at] + np.where(added, share, 0.0) * lasts[at]
    going = np.where(kind == _STRAIGHT, tracks.going_mps, metres / lasts).astype(np.float32)[at]
    places = xy[place]
    placed = on_link >= 0
    places[placed] = roads.locate(on_link[placed], leaves[placed])
    first = np.append(0, ends)[tracks.first]
    known, recorded = added | tracks.known[at], _recorded(tracks, time_s, at)
    laid = Tracks(first, time_s, places, known, recorded, going, on_link, leaves, comes)
    return laid, int(np.count_nonzero(kind == _JUMP))


def _classify_legs(
    tracks: Tracks, roads: RoadNetwork, xy: FloatArray, link: Int32Array, fraction: FloatArray, *, most_m: float
) -> tuple[npt.NDArray[np.int8], FloatArray, IntArray, Routes]:
    """Return the leg from each fix: its kind, the length of its path in metres, and its row in the routes; and those.

    A leg within one link, and one between fixes that are not matched, has row -1. Paths have allowed turns only.
    """
    length = roads.links.length_m
    follow = np.append(link[1:], -1)
    later = np.append(fraction[1:], 0.0)
    straight = np.append(np.hypot(*np.diff(xy, axis=0).T), 0.0)
    kind = np.full(len(link), _STRAIGHT, dtype=np.int8)
    both = tracks.known & (link >= 0) & (follow >= 0)
    kind[tracks.known & ((link >= 0) != (follow >= 0))] = _JUMP
    ahead = (later - fraction) * np.where(both, length[link], 0.0)
    along = both & (link == follow) & (ahead >= -most_m)
    kind[along] = _ALONG
    metres = np.where(along, np.abs(ahead), straight)
    over = np.flatnonzero(both & ~along)
    pairs, which = np.unique(np.stack([link[over], follow[over]], axis=1), axis=0, return_inverse=True)
    reached, routes = ShortestPaths.of(roads).between(*pairs.T)
    row = np.repeat(np.arange(len(pairs)), np.diff(routes.offsets))
    route_m = np.where(reached, np.bincount(row, length[routes.links], len(pairs)), np.inf)
    which = which.reshape(-1)
    path_m = (1.0 - fraction[over]) * length[link[over]] + route_m[which] + later[over] * length[follow[over]]
    likely = path_m <= DETOUR * straight[over] + 4.0 * most_m
    kind[over] = np.where(likely, _PATH, _JUMP)
    metres[over] = np.where(likely, path_m, straight[over])
    route = np.full(len(link), -1, dtype=np.int64)
    route[over] = which
    return kind, metres, route, routes


def _recorded(tracks: Tracks, time_s: FloatArray, at: IntArray) -> npt.NDArray[np.float32]:
    """Return recorded speeds at waypoints, interpolated by time between fixes."""
    after = np.minimum(at + 1, len(tracks.time_s) - 1)
    lasts = np.where(tracks.known[at], tracks.time_s[after] - tracks.time_s[at], 1.0)
    share = np.where(tracks.known[at], (time_s - tracks.time_s[at]) / lasts, 0.0)
    between = tracks.recorded_mps[at] * (1.0 - share) + tracks.recorded_mps[after] * share
    return np.where(share > 0.0, between, tracks.recorded_mps[at]).astype(np.float32)


TIE_M = 1.0
"""Links whose distances to a fix differ by at most this count as equally near, as the two directions of a street."""

_BLOCK = 200_000
_REACH_M = 0.5
_MOVED_M = 0.5


def match_nearest(tracks: Tracks, roads: RoadNetwork, *, most_m: float) -> tuple[Int32Array, FloatArray]:
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
    lines = roads.shapes.lines()
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
    vehicle = np.repeat(np.arange(tracks.vehicles), np.diff(tracks.first))
    unit = pd.DataFrame(np.where(moved[:, None], step / np.where(moved, metres, 1.0)[:, None], np.nan))
    before = unit.groupby(vehicle).ffill().groupby(vehicle).shift()
    after = unit.groupby(vehicle).bfill()
    return before.fillna(0.0).to_numpy(), after.fillna(0.0).to_numpy()


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
        direction. "hmm": all fixes of a vehicle together, by a hidden Markov model.
    most_m
        A fix further than this from every link, metres, stays where it was recorded, on no link.
    noise_m
        For "hmm": standard deviation of recorded places, metres.
    """

    method: str
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
    """
    if matching.method == "nearest":
        link, fraction = match_nearest(tracks, roads, most_m=matching.most_m)
    else:
        link, fraction = match_hmm(tracks, roads, most_m=matching.most_m, noise_m=matching.noise_m, detour=DETOUR)
    laid, joined = interpolate_paths(tracks, roads, link, fraction, most_m=matching.most_m)
    lost = int(np.count_nonzero(link < 0))
    of_all = counted(len(link), "fix is", "fixes are")
    matched = (
        f"trace: {len(link) - lost:,} of {of_all} matched to roads ({matching.method}); {lost:,} with "
        f"no road within {matching.most_m:g} m left where recorded"
    )
    notes = [matched]
    if joined:
        notes.append(
            f"trace: {counted(joined, 'leg between fixes has', 'legs between fixes have')} no likely route over the "
            "roads, or an end off them: the vehicle is taken to be at the nearer of the two in time"
        )
    return laid, notes
