"""Matching by a hidden Markov model of a vehicle's whole way, by leuvenmapmatching."""

from typing import Any

import numpy as np
import numpy.typing as npt

from simulator.extras import import_extra
from simulator.roads import RoadNetwork
from simulator.traffic.errors import TrafficError
from simulator.traffic.trace.tracks import Tracks

FloatArray = npt.NDArray[np.float64]
LinkArray = npt.NDArray[np.int32]

_LATTICE_WIDTH = 10
"""Ways kept alive at each fix: more is slower and seldom better."""


def match_hmm(tracks: Tracks, roads: RoadNetwork, *, most_m: float, noise_m: float) -> tuple[LinkArray, FloatArray]:
    """Match vehicle by vehicle, in pieces without a long silence.

    Of P. Newson and J. Krumm, "Hidden Markov map matching through noise and sparseness" (ACM SIGSPATIAL 2009), in
    leuvenmapmatching's form. It is written in Python, and slow: some hundreds of fixes a second.

    Parameters
    ----------
    tracks
        Straight ones.
    roads
        In whose system they are.
    most_m
        No link further away is matched.
    noise_m
        Standard deviation of recorded places.

    Returns
    -------
    tuple
        Link, (fixes,) int32, -1 where none; fraction of its geometry, (fixes,) float64.

    Raises
    ------
    TrafficError
        If leuvenmapmatching is not installed.
    """
    needed = 'match = "hmm" needs leuvenmapmatching'
    matching = "leuvenmapmatching.matcher.distance"
    distance = import_extra(matching, needed=needed, extra="traces", error=TrafficError)
    from simulator.traffic.trace.segment_map import SegmentMap  # noqa: PLC0415 - needs the same extra

    roads_map = SegmentMap(roads)
    link = np.full(len(tracks.xy), -1, dtype=np.int32)
    fraction = np.zeros(len(link))
    matcher = distance.DistanceMatcher(
        roads_map,
        max_dist=most_m,
        max_dist_init=most_m,
        obs_noise=noise_m,
        obs_noise_ne=4.0 * noise_m,
        dist_noise=4.0 * noise_m,
        max_lattice_width=_LATTICE_WIDTH,
        non_emitting_states=True,
    )
    ends = np.flatnonzero(~tracks.known) + 1
    start = 0
    for end in ends.tolist():
        while start < end:
            start = _match_from(matcher, roads_map, tracks.xy, start, end, link, fraction)
    return link, fraction


def _match_from(
    matcher: Any,
    roads_map: Any,
    xy: FloatArray,
    start: int,
    end: int,
    link: LinkArray,
    fraction: FloatArray,
) -> int:
    """Match fixes `start` to `end` as far as one way goes; return where to go on."""
    path = [(float(x), float(y)) for x, y in xy[start:end]]
    if len(path) == 1:
        near = roads_map.edges_closeto(path[0], max_dist=matcher.max_dist)
        if near:
            link[start], fraction[start] = roads_map.place(near[0][1], near[0][3], near[0][6])
        return end
    matcher.match(path)
    best = matcher.lattice_best or []
    reached = start
    for state in best:
        if state.obs_ne == 0 and state.edge_m.l2 is not None:
            fix = start + state.obs
            link[fix], fraction[fix] = roads_map.place(state.edge_m.l1, state.edge_m.l2, state.edge_m.ti)
            reached = max(reached, fix)
    return reached + 1
