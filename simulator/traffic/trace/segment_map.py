"""Roads as leuvenmapmatching wants them: nodes joined by straight segments, found through an index."""

from typing import Any

import numpy as np
import shapely
from leuvenmapmatching.map.inmem import InMemMap

from simulator.roads import RoadNetwork

Point = tuple[float, float]


class SegmentMap(InMemMap):  # type: ignore[misc]  # the library has no types
    """Links cut at their bends, so that every segment is straight and is of one link.

    Parameters
    ----------
    roads
        Links; where two straight ones join the same nodes the later is cut in the middle, so that the library, which
        knows a segment by its ends, can tell them apart.
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
        """Return the nodes a link goes through, new ones at its bends, and the fractions they are at."""
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
        chain, shares = [start], [0.0]
        for share, place in inner:
            node = len(self.graph)
            self.graph[node] = (place, [])
            chain.append(node)
            shares.append(share)
        return [*chain, end], [*shares, 1.0]

    def edges_closeto(self, loc: Point, max_dist: float | None = None, max_elmt: int | None = None) -> list[Any]:
        """Return the segments within a distance, nearest first."""
        point = shapely.Point(loc[:2])
        found = self._tree.query(point, predicate="dwithin", distance=np.inf if max_dist is None else max_dist)
        near = []
        for index in found.tolist():
            a, b = self._ends[index]
            here, there = self.graph[a][0], self.graph[b][0]
            distance, at, share = self.distance_point_to_segment(loc, here, there)
            near.append((distance, a, here, b, there, at, share))
        near.sort(key=lambda segment: (segment[0], segment[1], segment[3]))
        return near[:max_elmt]

    def place(self, a: int, b: int, share: float) -> tuple[int, float]:
        """Return link and fraction of a place on the segment between two nodes."""
        link, begins, ends = self._segments[a, b]
        return link, begins + (ends - begins) * min(max(float(share), 0.0), 1.0)
