"""Map matching by a hidden Markov model: all fixes of a vehicle together."""

import numpy as np
import scipy
import shapely

from simulator.arrays import FloatArray, Int32Array, IntArray
from simulator.roads import RoadNetwork
from simulator.traffic.paths import TurnGraph
from simulator.traffic.recording import Tracks

_CANDIDATES = 12
"""Maximum number of links, the nearest ones, that a fix may be matched to."""
_BLOCK_FIXES = 10_000
_BLOCK_CELLS = 1 << 22


def match_hmm(
    tracks: Tracks, roads: RoadNetwork, *, most_m: float, noise_m: float, detour: float
) -> tuple[Int32Array, FloatArray]:
    """Match the fixes of each vehicle to links, separately for each sequence of known legs.

    The method of P. Newson and J. Krumm, "Hidden Markov map matching through noise and sparseness" (ACM SIGSPATIAL
    2009): the states of a fix are the links near it. The logarithm of a state's probability is -d²/2 for a fix d
    standard deviations from the link; the logarithm of a transition's probability is -|r - s| / (2 `noise_m`) for a
    route of r metres between fixes s metres apart. The most probable sequence of states is found by the Viterbi
    algorithm. It begins anew where no transition is possible.

    Parameters
    ----------
    tracks
        Tracks with straight legs.
    roads
        Roads, in the coordinate system of the tracks.
    most_m
        Maximum distance of a matched link, metres.
    noise_m
        Standard deviation of recorded places, metres.
    detour
        Routes longer than this factor times the straight line plus 4 `most_m` are impossible.

    Returns
    -------
    tuple
        Link, (fixes,) int32, -1 if no link; fraction of its geometry, (fixes,) float64.
    """
    link, fraction, score = _candidates(tracks.xy, roads, most_m=most_m)
    score = -0.5 * (score / noise_m) ** 2
    straight = np.append(np.hypot(*np.diff(tracks.xy, axis=0).T), 0.0)
    longest = np.where(tracks.known, detour * straight + 4.0 * most_m, -np.inf)
    before = np.full(link.shape, -1, dtype=np.int8)
    for start in range(0, len(link) - 1, _BLOCK_FIXES):
        legs = slice(start, min(start + _BLOCK_FIXES, len(link) - 1))
        later = slice(legs.start + 1, legs.stop + 1)
        metres = _route_metres(
            roads, (link[legs], fraction[legs]), (link[later], fraction[later]), longest[legs], most_m
        )
        metres[metres > longest[legs, None, None]] = np.inf
        change = np.abs(metres - straight[legs, None, None]) / (-2.0 * noise_m)
        for leg in range(len(change)):
            total = score[start + leg][:, None] + change[leg]
            best = total.argmax(axis=0)
            most = total[best, np.arange(len(best))]
            if np.isfinite(most + score[start + leg + 1]).any():
                before[start + leg + 1] = best
                score[start + leg + 1] += most
    chosen = score.argmax(axis=1)
    for fix in range(len(link) - 1, 0, -1):
        if before[fix, 0] >= 0:
            chosen[fix - 1] = before[fix, chosen[fix]]
    rows = np.arange(len(link))
    return link[rows, chosen], fraction[rows, chosen]


def _candidates(xy: FloatArray, roads: RoadNetwork, *, most_m: float) -> tuple[Int32Array, FloatArray, FloatArray]:
    """Return links near each fix, fractions nearest to it, and distances, (fixes, candidates); link -1 if fewer."""
    lines, points = roads.shapes.lines(), np.asarray(shapely.points(xy))
    fix, near = shapely.STRtree(lines).query(points, predicate="dwithin", distance=most_m)
    apart = shapely.distance(points[fix], lines[near])
    order = np.lexsort((near, apart, fix))
    fix, near, apart = fix[order], near[order], apart[order]
    rank = np.arange(len(fix)) - np.searchsorted(fix, fix)
    fix, near, apart, rank = (column[rank < _CANDIDATES] for column in (fix, near, apart, rank))
    shape = (len(xy), _CANDIDATES)
    link, fraction, distance = np.full(shape, -1, dtype=np.int32), np.zeros(shape), np.full(shape, np.inf)
    link[fix, rank], distance[fix, rank] = near, apart
    fraction[fix, rank] = shapely.line_locate_point(lines[near], points[fix], normalized=True)
    return link, fraction, distance


def _route_metres(
    roads: RoadNetwork,
    start: tuple[Int32Array, FloatArray],
    end: tuple[Int32Array, FloatArray],
    longest: FloatArray,
    most_m: float,
) -> FloatArray:
    """Return the lengths of the shortest routes from all candidates of some fixes to all of the next ones.

    A vehicle may be up to `most_m` metres back on its link, as noise may place it; such lengths are negative.

    Returns
    -------
    numpy.ndarray
        (fixes, candidates, candidates) metres; inf where no route is shorter than the `longest` of its fix, (fixes,).
    """
    links = roads.links
    (a, a_share), (b, b_share) = start, end
    possible = (a >= 0)[:, :, None] & (b >= 0)[:, None, :] & (longest >= 0)[:, None, None]
    leg, i, j = np.nonzero(possible)
    between = _metres_between(roads, a[leg, i], b[leg, j], longest[leg])
    ahead = (b_share[leg, j] - a_share[leg, i]) * links.length_m[a[leg, i]]
    over = (1.0 - a_share[leg, i]) * links.length_m[a[leg, i]] + between + b_share[leg, j] * links.length_m[b[leg, j]]
    metres = np.full(possible.shape, np.inf)
    metres[leg, i, j] = np.where((a[leg, i] == b[leg, j]) & (ahead >= -most_m), ahead, over)
    return metres


def _metres_between(roads: RoadNetwork, first: Int32Array, last: Int32Array, longest: FloatArray) -> FloatArray:
    """Return the length of the shortest path from the end of each `first` link to the start of the `last`, (pairs,).

    Paths have allowed turns only. A length above its `longest` may be inf.
    """
    turns = TurnGraph.build(roads.links, roads.through, roads.banned_turns)
    places, length_m = len(turns.node), roads.links.length_m[turns.link]
    pair, destination = turns.before(last)
    origin, longest = turns.after[first][pair], longest[pair]
    open_ = np.flatnonzero(turns.through[turns.from_place])
    # The shortest of parallel links comes first and is kept.
    open_ = open_[np.argsort(length_m[open_], kind="stable")]
    ends = turns.from_place[open_].astype(np.int64) * places + turns.to_place[open_]
    open_ = open_[np.unique(ends, return_index=True)[1]]
    joined = (turns.from_place[open_], turns.to_place[open_])
    graph = scipy.sparse.csr_array((length_m[open_], joined), shape=(places, places))
    distinct, which = np.unique(origin, return_inverse=True)
    limit = np.zeros(len(distinct))
    np.maximum.at(limit, which, longest)
    by_limit = np.argsort(limit, kind="stable")
    place: IntArray = np.empty(len(distinct), dtype=np.int64)
    place[by_limit] = np.arange(len(distinct))
    row = place[which]
    order = np.argsort(row, kind="stable")
    metres = np.empty(len(origin))
    rows = max(1, min(256, _BLOCK_CELLS // places))
    for start in range(0, len(distinct), rows):
        grown = by_limit[start : start + rows]
        found = scipy.sparse.csgraph.dijkstra(graph, indices=distinct[grown], limit=limit[grown[-1]])
        pairs = order[slice(*np.searchsorted(row, [start, start + rows], sorter=order))]
        metres[pairs] = found[row[pairs] - start, destination[pairs]]
    shortest = np.full(len(last), np.inf)
    np.minimum.at(shortest, pair, metres)
    return shortest
