"""Path interpolation: the route of a vehicle between matched fixes."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanisms.kernel import compiled
from simulator.roads import RoadNetwork
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.routes import Routes
from simulator.traffic.trace.fixes import Tracks
from simulator.traffic.trips import Trips

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
LinkArray = npt.NDArray[np.int32]

DETOUR = 3.0
"""A path is plausible if it is no longer than this factor times the straight line plus four matching distances."""

_STRAIGHT, _ALONG, _WAY, _JUMP = 0, 1, 2, 3


def lay_ways(
    tracks: Tracks, roads: RoadNetwork, link: LinkArray, fraction: FloatArray, *, most_m: float
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
    legs = _Legs.sort(tracks, roads, xy, link, fraction, most_m=most_m)
    first, time_s, at, place, on_link, leaves, comes, known, going = _lay(
        tracks.first,
        tracks.time_s,
        tracks.known,
        tracks.going_mps,
        link,
        fraction,
        legs.kind,
        legs.route,
        (legs.routes.offsets, legs.routes.links),
        legs.metres,
        roads.links.length_m,
    )
    places = xy[place]
    placed = on_link >= 0
    places[placed] = roads.locate(on_link[placed], leaves[placed])
    recorded = _recorded(tracks, time_s, at)
    laid = Tracks(first, time_s, places, known, recorded, going, on_link, leaves, comes)
    return laid, int(np.count_nonzero(legs.kind == _JUMP))


@dataclass(frozen=True, eq=False)
class _Legs:
    """Leg from each fix: its kind, its row in `routes`, and the length of its path in metres."""

    kind: npt.NDArray[np.int8]
    route: IntArray
    routes: Routes
    metres: FloatArray

    @classmethod
    def sort(
        cls,
        tracks: Tracks,
        roads: RoadNetwork,
        xy: FloatArray,
        link: LinkArray,
        fraction: FloatArray,
        *,
        most_m: float,
    ) -> "_Legs":
        links, length = roads.links, roads.links.length_m
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
        origin, destination = links.to_node[link[over]], links.from_node[follow[over]]
        pairs, which = np.unique(np.stack([origin, destination], axis=1), axis=0, return_inverse=True)
        routes, row, route_m = _routes(roads, pairs)
        which = which.reshape(-1)
        way = (1.0 - fraction[over]) * length[link[over]] + route_m[which] + later[over] * length[follow[over]]
        likely = way <= DETOUR * straight[over] + 4.0 * most_m
        kind[over] = np.where(likely, _WAY, _JUMP)
        metres[over] = np.where(likely, way, straight[over])
        route = np.full(len(link), -1, dtype=np.int64)
        route[over] = row[which]
        return cls(kind, route, routes, metres)


def _routes(roads: RoadNetwork, pairs: npt.NDArray[np.int32]) -> tuple[Routes, IntArray, FloatArray]:
    """Return routes between pairs of nodes, each pair's row (-1: no route needed), and metres (inf: no path)."""
    metres = np.zeros(len(pairs))
    row = np.full(len(pairs), -1, dtype=np.int64)
    apart = np.flatnonzero(pairs[:, 0] != pairs[:, 1])
    paths = ShortestPaths(roads.links, through=roads.through)
    for block in paths.blocks(pairs[apart, 0]):
        mine = apart[np.isin(pairs[apart, 0], block)]
        times = paths.times(block)
        metres[mine] = np.where(np.isfinite(times[np.searchsorted(block, pairs[mine, 0]), pairs[mine, 1]]), 0.0, np.inf)
    wanted = apart[np.isfinite(metres[apart])]
    origin, destination = (np.ascontiguousarray(pairs[wanted, end]) for end in (0, 1))
    routes = Routes(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32))
    if len(wanted):
        routes = paths.routes(Trips(origin, destination, np.zeros(len(wanted), dtype=np.int32)))
        row[wanted] = np.arange(len(wanted))
        metres[wanted] = np.add.reduceat(roads.links.length_m[routes.links], routes.offsets[:-1])
    return routes, row, metres


def _recorded(tracks: Tracks, time_s: FloatArray, at: IntArray) -> npt.NDArray[np.float32]:
    """Return recorded speeds at waypoints, interpolated by time between fixes."""
    after = np.minimum(at + 1, len(tracks.time_s) - 1)
    lasts = np.where(tracks.known[at], tracks.time_s[after] - tracks.time_s[at], 1.0)
    share = np.where(tracks.known[at], (time_s - tracks.time_s[at]) / lasts, 0.0)
    between = tracks.recorded_mps[at] * (1.0 - share) + tracks.recorded_mps[after] * share
    return np.where(share > 0.0, between, tracks.recorded_mps[at]).astype(np.float32)


@compiled
def _lay(
    first: IntArray,
    time_s: FloatArray,
    known: npt.NDArray[np.bool_],
    straight_mps: npt.NDArray[np.float32],
    link: LinkArray,
    fraction: FloatArray,
    kind: npt.NDArray[np.int8],
    route: IntArray,
    routes: tuple[IntArray, LinkArray],
    metres: FloatArray,
    length_m: FloatArray,
) -> tuple[
    IntArray,
    FloatArray,
    IntArray,
    IntArray,
    LinkArray,
    FloatArray,
    FloatArray,
    npt.NDArray[np.bool_],
    npt.NDArray[np.float32],
]:
    """Compute the waypoints of every fix: the fix itself, and the ends of links on the path from it."""
    offsets, route_links = routes
    total = len(link)
    for i in range(len(link)):
        if kind[i] == 3:
            total += 2
        elif kind[i] == 2:
            total += 1 + (offsets[route[i] + 1] - offsets[route[i]] if route[i] >= 0 else 0)
    new_first = np.empty_like(first)
    time, at, place = np.empty(total), np.empty(total, dtype=np.int64), np.empty(total, dtype=np.int64)
    on, leaves, comes = np.empty(total, dtype=np.int32), np.zeros(total), np.zeros(total)
    is_known, going = np.empty(total, dtype=np.bool_), np.zeros(total, dtype=np.float32)
    w = 0
    for v in range(len(first) - 1):
        new_first[v] = w
        for i in range(first[v], first[v + 1]):
            time[w], at[w], place[w], on[w], is_known[w] = time_s[i], i, i, link[i], known[i]
            going[w] = straight_mps[i]
            leaves[w] = comes[w] = fraction[i]
            lasts = time_s[i + 1] - time_s[i] if known[i] else 1.0
            if kind[i] != 0:
                going[w] = metres[i] / lasts
            if kind[i] == 1:
                comes[w] = fraction[i + 1]
            elif kind[i] == 3:
                # Two waypoints at half time: the vehicle is at the first fix before it, and at the second fix after it.
                for fix in (i, i + 1):
                    w += 1
                    time[w], at[w], place[w], on[w], is_known[w] = time_s[i] + 0.5 * lasts, i, fix, link[fix], True
                    leaves[w] = comes[w] = fraction[fix]
                    going[w] = going[w - 1]
            elif kind[i] == 2:
                comes[w] = 1.0
                walked = (1.0 - fraction[i]) * length_m[link[i]]
                begin, end = (offsets[route[i]], offsets[route[i] + 1]) if route[i] >= 0 else (0, 0)
                for leg in range(begin, end + 1):
                    w += 1
                    final = leg == end
                    onto = link[i + 1] if final else route_links[leg]
                    share = walked / metres[i] if metres[i] > 0 else 1.0
                    time[w], at[w], place[w], on[w], is_known[w] = time_s[i] + min(share, 1.0) * lasts, i, i, onto, True
                    leaves[w], comes[w] = 0.0, fraction[i + 1] if final else 1.0
                    going[w] = going[w - 1]
                    walked += length_m[onto]
            w += 1
    new_first[len(first) - 1] = w
    return new_first, time, at, place, on, leaves, comes, is_known, going
