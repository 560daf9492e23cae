"""Paths: shortest-time trees on the road graph, and routes from them."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from mechanisms.compiled import compiled
from simulator.arrays import FloatArray, Int32Array, IntArray, Mask
from simulator.roads.network import Links
from simulator.traffic.routes import Routes, copy_rows

_BLOCK_CELLS = 1 << 22
"""Maximum number of distance matrix entries computed at once: 32 MiB of float64."""

_KEEP_CELLS = 1 << 25
"""Maximum number of predecessors cached between demand and routing, to compute each tree once: 128 MiB of int32."""


class NoPathError(ValueError):
    """Error raised when no path connects two nodes.

    Attributes
    ----------
    origin, destination
        Indices of the two nodes.
    """

    def __init__(self, origin: int, destination: int) -> None:
        self.origin, self.destination = origin, destination
        super().__init__(f"no path leads from node {origin} to node {destination}")


class ShortestPaths:
    """Shortest-time trees of a network by `scipy.sparse.csgraph`, one row per origin.

    Of parallel links between two nodes, routes use the quickest; among equally quick links, the lowest id. A route may
    begin or end at a node that is closed to through traffic (a zone's centroid), but never passes through it.

    Parameters
    ----------
    links
        The compiled network.
    through
        (nodes,) bool: whether routes may pass through a node; by default, through every node.
    time_s
        (links,) float64, above 0: seconds to cross each link; by default, the free-flow times.

    Attributes
    ----------
    nodes
        Number of nodes.
    """

    def __init__(
        self,
        links: Links,
        *,
        through: Mask | None = None,
        time_s: FloatArray | None = None,
    ) -> None:
        self.nodes = len(links.first_out) - 1
        time = links.free_flow_s if time_s is None else time_s
        order = np.lexsort((np.arange(len(time)), time, links.to_node, links.from_node))
        first = np.ones(len(order), dtype=bool)
        ends = np.stack([links.from_node[order], links.to_node[order]])
        first[1:] = np.any(ends[:, 1:] != ends[:, :-1], axis=0)
        self._quickest = order[first].astype(np.int32)
        ends = ends[:, first]
        self._row_start = np.searchsorted(ends[0], np.arange(self.nodes + 1)).astype(np.int32)
        self._to = ends[1]
        # A node closed to through traffic keeps its incoming links. Its outgoing links start at an added twin node,
        # which has no incoming links and where the node's own trips begin. So no tree passes through the node, and the
        # other nodes cost no more than before.
        closed = np.empty(0, dtype=np.int64) if through is None else np.flatnonzero(~through)
        self._start = np.arange(self.nodes, dtype=np.int32)
        self._start[closed] = self.nodes + np.arange(len(closed), dtype=np.int32)
        size = self.nodes + len(closed)
        self._graph = csr_array(
            (time[self._quickest], (self._start[ends[0]], ends[1])), shape=(size, size), dtype=np.float64
        )
        self._kept: dict[int, Int32Array] = {}

    @cached_property
    def all_joined(self) -> bool:
        """Whether a path leads from every node to every other."""
        # The twin of a node closed to through traffic has no incoming link, so there are at least two components.
        parts, _ = connected_components(self._graph, connection="strong")
        return bool(parts == 1)

    def blocks(self, origins: Int32Array) -> Iterator[Int32Array]:
        """Split the distinct `origins` into blocks whose distance matrices fit into memory."""
        distinct = np.unique(origins)
        rows = max(1, _BLOCK_CELLS // self.nodes)
        for start in range(0, len(distinct), rows):
            yield distinct[start : start + rows]

    def times(self, origins: Int32Array) -> FloatArray:
        """Return shortest times in seconds, (origins, nodes) float64; inf where there is no path."""
        times, before = self._grow(origins)
        if (len(self._kept) + len(origins)) * self.nodes <= _KEEP_CELLS:
            self._kept.update(zip(origins.tolist(), before, strict=True))
        return times

    def reached(self, origin: Int32Array, destination: Int32Array) -> Mask:
        """Return whether a path leads from each origin to the destination of the same index, (trips,) bool."""
        found = np.empty(len(origin), dtype=np.bool_)
        for block, chosen, row in self._by_block(origin):
            found[chosen] = np.isfinite(self.times(block)[row, destination[chosen]])
        return found

    def _by_block(self, origin: Int32Array) -> Iterator[tuple[Int32Array, IntArray, IntArray]]:
        """Yield each block of origins, the trips from it, and the row of each of those trips in the block."""
        by_origin = np.argsort(origin, kind="stable")
        for block in self.blocks(origin):
            begin = np.searchsorted(origin, block[0], sorter=by_origin)
            chosen = by_origin[begin : np.searchsorted(origin, block[-1], "right", sorter=by_origin)]
            yield block, chosen, np.searchsorted(block, origin[chosen]).astype(np.int64)

    def _before(self, origins: Int32Array) -> Int32Array:
        """Return predecessors, (origins, nodes) int32, from the cache where possible."""
        if all(origin in self._kept for origin in origins.tolist()):
            return np.stack([self._kept[origin] for origin in origins.tolist()])
        return self._grow(origins)[1]

    def _grow(self, origins: Int32Array) -> tuple[FloatArray, Int32Array]:
        """Return times and predecessors, (origins, nodes) each, without the twins."""
        times, before = dijkstra(self._graph, indices=self._start[origins], return_predecessors=True)
        times, before = times[:, : self.nodes], before[:, : self.nodes].astype(np.int32, copy=False)
        if len(self._graph.indptr) - 1 > self.nodes:
            # Only the twin that is the tree's root occurs in a tree; a path back to its own node counts as no movement.
            before = np.where(before >= self.nodes, origins[:, None], before)
            times[np.arange(len(origins)), origins] = 0.0
        return times, before

    def routes(self, origin: Int32Array, destination: Int32Array) -> Routes:
        """Return the shortest-time route from each origin to the destination of the same index, (trips,) int32 each.

        Raises
        ------
        NoPathError
            If no path leads from some trip's origin to its destination.
        ValueError
            If a trip has equal origin and destination: there is no shortest route from a node to itself.
        """
        nowhere = np.flatnonzero(origin == destination)
        if len(nowhere):
            raise ValueError(f"destination must differ from origin, received trip {nowhere[0]} that goes nowhere")
        lengths = np.zeros(len(origin), dtype=np.int64)
        parts: list[tuple[IntArray, IntArray, Int32Array]] = []
        for block, chosen, row in self._by_block(origin):
            before, ends = self._before(block), destination[chosen]
            count = _count_links(before, row, origin[chosen], ends)
            if np.any(count < 0):
                lost = int(chosen[np.flatnonzero(count < 0)[0]])
                raise NoPathError(int(origin[lost]), int(destination[lost]))
            lengths[chosen] = count
            traced = _trace_back(before, row, ends, count, self._row_start, self._to, self._quickest)
            parts.append((chosen, count, traced))
        offsets = np.zeros(len(origin) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        links = np.empty(offsets[-1], dtype=np.int32)
        for chosen, count, traced in parts:
            copy_rows(traced, np.cumsum(count) - count, count, links, offsets[chosen])
        return Routes(offsets, links)


@compiled
def _count_links(before: Int32Array, row: IntArray, origin: Int32Array, destination: Int32Array) -> IntArray:
    count = np.empty(len(row), dtype=np.int64)
    for i in range(len(row)):
        node = destination[i]
        steps = 0
        while node != origin[i]:
            node = before[row[i], node]
            if node < 0:
                steps = -1
                break
            steps += 1
        count[i] = steps
    return count


@compiled
def _trace_back(
    before: Int32Array,
    row: IntArray,
    destination: Int32Array,
    count: IntArray,
    row_start: Int32Array,
    to: Int32Array,
    quickest: Int32Array,
) -> Int32Array:
    links = np.empty(count.sum(), dtype=np.int32)
    end = 0
    for i in range(len(row)):
        end += count[i]
        node = destination[i]
        for at in range(end - 1, end - count[i] - 1, -1):
            previous = before[row[i], node]
            edge = row_start[previous]
            while to[edge] != node:
                edge += 1
            links[at] = quickest[edge]
            node = previous
    return links
