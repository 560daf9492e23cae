"""Map matching by a hidden Markov model of a vehicle's whole path, with leuvenmapmatching."""

from typing import Any

import numpy as np
import shapely
from leuvenmapmatching.map.inmem import InMemMap
from leuvenmapmatching.matcher.distance import DistanceMatcher

from simulator.arrays import FloatArray, Int32Array
from simulator.roads import RoadNetwork
from simulator.traffic.recording import Tracks

_LATTICE_WIDTH = 10
"""Number of candidate paths kept at each fix: more are slower and seldom better."""


def match_hmm(tracks: Tracks, roads: RoadNetwork, *, most_m: float, noise_m: float) -> tuple[Int32Array, FloatArray]:
    """Match the fixes of each vehicle to links, separately for each sequence of known legs.

    The method of P. Newson and J. Krumm, "Hidden Markov map matching through noise and sparseness" (ACM SIGSPATIAL
    2009), as implemented by leuvenmapmatching. It is written in Python, and slow: some hundreds of fixes per second.

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

    Returns
    -------
    tuple
        Link, (fixes,) int32, -1 if no link; fraction of its geometry, (fixes,) float64.

    """
    roads_map = SegmentMap(roads)
    link = np.full(len(tracks.xy), -1, dtype=np.int32)
    fraction = np.zeros(len(link))
    matcher = DistanceMatcher(
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
    link: Int32Array,
    fraction: FloatArray,
) -> int:
    """Match fixes from `start`, before `end`, as far as one path leads; return the fix to continue with."""
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


Point = tuple[float, float]


class SegmentMap(InMemMap):  # type: ignore[misc]  # the library has no types
    """Map of links split at their bends, so that every segment is straight and belongs to one link.

    Parameters
    ----------
    roads
        Links. If two straight links join the same nodes, the later one is split in the middle, because the library
        identifies a segment by its end nodes.
    """

    def __init__(self, roads: RoadNetwork) -> None:
        graph: dict[int, tuple[Point, list[int]]] = {
            node: ((float(x), float(y)), []) for node, (x, y) in enumerate(roads.node_xy)
        }
        super().__init__("roads", use_latlon=False, graph=graph)
        self._segments: dict[tuple[int, int], tuple[int, float, float]] = {}
        ends: list[tuple[int, int]] = []
        for link in range(len(roads.links)):
            chain, shares = self._chain(roads, link)
            for a, b, from_share, to_share in zip(chain, chain[1:], shares, shares[1:], strict=False):
                graph[a][1].append(b)
                self._segments[a, b] = (link, from_share, to_share)
                ends.append((a, b))
        self._ends = ends
        self._tree = shapely.STRtree([shapely.LineString([graph[a][0], graph[b][0]]) for a, b in ends])

    def _chain(self, roads: RoadNetwork, link: int) -> tuple[list[int], list[float]]:
        """Return the nodes of a link, with new nodes at its bends, and the fractions at which they are."""
        shapes, start, end = roads.shapes, int(roads.links.from_node[link]), int(roads.links.to_node[link])
        bend = int(shapes.polyline[link])
        inner: list[tuple[float, Point]] = []
        if bend >= 0:
            vertices = slice(int(shapes.first_vertex[bend]) + 1, int(shapes.first_vertex[bend + 1]) - 1)
            places = zip(shapes.milestones[vertices].tolist(), shapes.vertices[vertices].tolist(), strict=True)
            inner = [(share, (x, y)) for share, (x, y) in places]
        elif start == end or (start, end) in self._segments:
            x, y = ((shapes.start_xy[link] + shapes.end_xy[link]) / 2).tolist()
            inner = [(0.5, (x, y))]
        bends = range(len(self.graph), len(self.graph) + len(inner))
        self.graph.update({node: (place, []) for node, (_, place) in zip(bends, inner, strict=True)})
        return [start, *bends, end], [0.0, *(share for share, _ in inner), 1.0]

    def edges_closeto(self, loc: Point, max_dist: float | None = None, max_elmt: int | None = None) -> list[Any]:
        """Return the segments within a distance, nearest first."""
        point = shapely.Point(loc[:2])
        found = self._tree.query(point, predicate="dwithin", distance=np.inf if max_dist is None else max_dist)
        near = []
        for index in found.tolist():
            a, b = self._ends[index]
            segment_start, segment_end = self.graph[a][0], self.graph[b][0]
            distance, at, share = self.distance_point_to_segment(loc, segment_start, segment_end)
            near.append((distance, a, segment_start, b, segment_end, at, share))
        near.sort(key=lambda segment: (segment[0], segment[1], segment[3]))
        return near[:max_elmt]

    def place(self, a: int, b: int, share: float) -> tuple[int, float]:
        """Return the link and fraction of a place on the segment between two nodes."""
        link, begins, ends = self._segments[a, b]
        return link, begins + (ends - begins) * min(max(float(share), 0.0), 1.0)
