"""Shortest paths on the road graph: travel times, destinations by gravity, and routes, from one tree per origin."""

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
import scipy

from mechanisms.compiled import compiled
from simulator.arrays import FloatArray, Int32Array, IntArray, LinkIds, Mask
from simulator.roads.network import Links, RoadNetwork
from simulator.traffic.routes import Routes, copy_rows, link_dtype

_BLOCK_CELLS = 1 << 22
"""Maximum number of travel times computed at once: 32 MiB of float64."""
_KEPT_CELLS = 1 << 27
"""Maximum number of nodes of trees kept between demand and routing, so that each grows once: 128 MiB of uint8."""
_RING = 1024
"""Buckets of the calendar of a growing tree; times further ahead wait in one list."""
_NO_LINK = 255
_FEW_PLACES = 1 << 15
"""Below this, a search in Python is faster than to import scipy.sparse, a fifteenth of the CPU time of `tiny`."""
_NEVER = np.int64(2**62)
_FINEST = 30
"""Travel times are added as whole numbers of at least 2^-30 s, so that sums are exact and equal paths are equal."""


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


class TurnGraph(NamedTuple):
    """Graph whose paths are the routes without banned turns: places, and arcs between them.

    The first places are the nodes of the network, and without banned turns there are no others. A node with banned
    turns only begins and ends paths. To pass it, a path enters another place of the node: one for each link after which
    a turn is banned, with arcs of the links that may follow, and one for all other links that enter the node. Every
    link that enters the node has an arc to the node and one to that place. So the search needs no rules for turns.

    Attributes
    ----------
    nodes
        Number of nodes.
    node
        (places,) int32: node of each place.
    through
        (places,) bool: whether a path may pass through a place.
    first_out
        Index of the first arc from each place, and at the end the number of arcs; int32, (places + 1,).
    from_place, to_place, link
        (arcs,) int32: the places that an arc joins, and its link. They ascend by place, then by link.
    after
        (links,) int32: place from which a route continues after each link.
    """

    nodes: int
    node: Int32Array
    through: Mask
    first_out: Int32Array
    from_place: Int32Array
    to_place: Int32Array
    link: Int32Array
    after: Int32Array

    @classmethod
    def build(cls, links: Links, through: Mask | None = None, banned: Int32Array | None = None) -> "TurnGraph":
        """Build the graph; the parameters are as in `ShortestPaths`."""
        nodes, number = len(links.first_out) - 1, np.arange(len(links), dtype=np.int32)
        node = np.arange(nodes, dtype=np.int32)
        through = np.ones(nodes, dtype=np.bool_) if through is None else through
        if banned is None or not len(banned):
            return cls(nodes, node, through, links.first_out, links.from_node, links.to_node, number, links.to_node)
        entering, of_turn = np.unique(banned[:, 0], return_inverse=True)
        split = np.unique(links.to_node[entering])
        passing = node.copy()
        passing[split] = nodes + len(entering) + np.arange(len(split))
        after = passing[links.to_node]
        after[entering] = nodes + np.arange(len(entering))
        node = np.concatenate([node, links.to_node[entering], split])
        through = through[node]
        through[split] = False
        degree = np.diff(links.first_out)[node]
        place = np.repeat(np.arange(len(node), dtype=np.int32), degree)
        link = np.arange(len(place)) - np.repeat(np.cumsum(degree) - degree, degree) + links.first_out[node[place]]
        shut = (nodes + of_turn.ravel()) * len(links) + banned[:, 1]
        open_ = ~np.isin(place.astype(np.int64) * len(links) + link, shut)
        place, link = place[open_], link[open_].astype(np.int32)
        passed = np.flatnonzero(after[link] != links.to_node[link])
        from_place, over = np.append(place, place[passed]), np.append(link, link[passed])
        to_place = np.append(links.to_node[link], after[link[passed]])
        order = np.lexsort((over, from_place))
        from_place = from_place[order]
        first_out = np.searchsorted(from_place, np.arange(len(node) + 1)).astype(np.int32)
        return cls(nodes, node, through, first_out, from_place, to_place[order], over[order], after)

    def before(self, links: LinkIds) -> tuple[IntArray, Int32Array]:
        """Return the places from which each of some links may be entered after another link.

        Returns
        -------
        row : numpy.ndarray
            (found,) int64, ascending: index in `links`. Each occurs at least once.
        place : numpy.ndarray
            (found,) int32.
        """
        passed = np.ones(len(self.node), dtype=np.bool_)
        passed[self.node[self.nodes :]] = False
        arcs = np.flatnonzero(passed[self.from_place])
        pairs = np.unique(np.stack([self.link[arcs], self.from_place[arcs]]), axis=1)
        first, last = np.searchsorted(pairs[0], links), np.searchsorted(pairs[0], links, "right")
        row = np.repeat(np.arange(len(links)), last - first)
        at = np.arange(len(row)) - np.repeat(np.cumsum(last - first) - last, last - first)
        return row, pairs[1][at]


class _Graph(NamedTuple):
    """The graph as the compiled functions need it: times are whole units, and a bucket is 2^`shift` of them.

    Its nodes are the places of a `TurnGraph`, and its links the arcs; `link` is the link of each arc.
    """

    first_out: Int32Array
    from_node: Int32Array
    to_node: Int32Array
    link: Int32Array
    time: IntArray
    through: Mask
    first_in: Int32Array
    links_in: Int32Array
    rank_in: npt.NDArray[np.uint8]
    shift: int


class _Trees(NamedTuple):
    """Trees kept: for each origin its row or -1, and for each place the rank of its arc among those that enter it."""

    row: Int32Array
    rank: npt.NDArray[np.uint8]


class ShortestPaths:
    """Shortest-time trees of a network, one for each origin.

    A tree grows in the order of travel time by a calendar of buckets (Dial 1969; within a bucket labels are corrected,
    as in Meyer and Sanders 2003), which is four to six times as fast as a Fibonacci heap on networks of 10,000 nodes.
    Trees of different origins grow in parallel threads. Of several shortest paths, each node is reached by the one
    whose last link has the lowest id; so routes depend neither on the order of the search nor on the number of threads,
    and a route's rest is the route from there. A route may begin or end at a node that is closed to through traffic (a
    zone's centroid), but never passes through it.

    No route has a banned turn; see `TurnGraph`. Where turns are banned, the rest of a route is the route from there
    only for a vehicle that comes by the same link, and of equally short paths those whose last link leaves a node
    without banned turns come first. Origins and destinations are nodes; an origin may also be a place of `after`, from
    which a route goes on by the turns that are allowed after a link.

    Parameters
    ----------
    links
        The compiled network.
    through
        (nodes,) bool: whether routes may pass through a node; by default, through every node.
    banned
        (turns, 2) int32: pairs of links that no route has one after the other; by default, none.
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
        banned: Int32Array | None = None,
        time_s: FloatArray | None = None,
    ) -> None:
        self._turns = turns = TurnGraph.build(links, through, banned)
        self.nodes, self._places = turns.nodes, len(turns.node)
        time_s = links.free_flow_s if time_s is None else time_s
        longest = float(time_s.max(initial=1.0)) * self._places
        self._unit_s = 2.0 ** -min(_FINEST, 61 - math.ceil(math.log2(longest)))
        time = np.maximum(np.rint(time_s / self._unit_s), 1.0).astype(np.int64)[turns.link]
        entering = np.argsort(turns.to_place, kind="stable").astype(np.int32)
        first_in = np.searchsorted(turns.to_place[entering], np.arange(self._places + 1)).astype(np.int32)
        rank = np.empty(len(time), dtype=np.int64)
        rank[entering] = np.arange(len(time)) - first_in[turns.to_place[entering]]
        self._keepable = bool(len(rank) == 0 or rank.max() < _NO_LINK)
        self._graph = _Graph(
            turns.first_out,
            turns.from_place,
            turns.to_place,
            turns.link,
            time,
            turns.through,
            first_in,
            entering,
            np.minimum(rank, _NO_LINK).astype(np.uint8),
            max(0, int(np.log2(np.median(time))) - 1) if len(time) else 0,
        )
        self._kept: _Trees | None = None
        self._link_dtype = link_dtype(len(links))

    @classmethod
    def of(cls, roads: RoadNetwork) -> "ShortestPaths":
        """Return the paths of a network by free-flow times, with its closed nodes and banned turns."""
        return cls(roads.links, through=roads.through, banned=roads.banned_turns)

    @cached_property
    def all_joined(self) -> bool:
        """Whether a path leads from every node to every other; False also where finding out would take a search."""
        graph = self._graph
        open_ = graph.through[graph.from_node] & graph.through[graph.to_node]
        ends = (graph.from_node[open_], graph.to_node[open_])
        if self._places < _FEW_PLACES and _all_reached(*ends, self._places) and _all_reached(*ends[::-1], self._places):
            return True
        joined = scipy.sparse.csr_array((np.ones(len(ends[0])), ends), shape=(self._places, self._places))
        part = scipy.sparse.csgraph.connected_components(joined, connection="strong")[1]
        core = (part == np.bincount(part[graph.through], minlength=1).argmax()) & graph.through
        entered, left = core.copy(), core.copy()
        entered[graph.to_node[core[graph.from_node]]] = True
        left[graph.from_node[core[graph.to_node]]] = True
        return bool((entered & left)[: self.nodes].all())

    def after(self, links: LinkIds) -> Int32Array:
        """Return for each of some links the place from which routes go on after it, an origin for the other methods."""
        return self._turns.after[links]

    def blocks(self, origins: Int32Array) -> Iterator[Int32Array]:
        """Split the distinct `origins` into blocks whose matrices of travel times fit into memory."""
        distinct = np.unique(origins)
        rows = max(1, _BLOCK_CELLS // self._places)
        for start in range(0, len(distinct), rows):
            yield distinct[start : start + rows]

    def times(self, origins: Int32Array) -> FloatArray:
        """Return shortest times in seconds, (origins, nodes) float64; inf where there is no path."""
        return self._times(origins, self.nodes)

    def _times(self, origins: Int32Array, places: int) -> FloatArray:
        """Return shortest times to the first `places` places."""
        times = np.empty((len(origins), places))

        def grow(low: int, high: int) -> None:
            _times(self._graph, origins[low:high], self._unit_s, times[low:high])

        self._in_threads(len(origins), grow)
        return times

    def reached(self, origin: Int32Array, destination: Int32Array) -> Mask:
        """Return whether a path leads from each origin to the destination of the same index, (trips,) bool."""
        return np.isfinite(self._pair_times(origin, destination))

    def between(self, first: LinkIds, last: LinkIds) -> tuple[Mask, Routes]:
        """Find the shortest-time paths between links: from the end of `first` to the start of `last`, by allowed turns.

        Parameters
        ----------
        first, last
            (pairs,) link ids.

        Returns
        -------
        reached : numpy.ndarray
            (pairs,) bool: whether there is a path.
        routes : Routes
            The links between, a row for each pair; it is empty if there are none, or no path.
        """
        pair, place = self._turns.before(last)
        time = self._pair_times(self.after(first)[pair], place)
        order = np.lexsort((time, pair))
        best = order[np.unique(pair, return_index=True)[1]]
        lengths, routes = self._routes(self.after(first), place[best])
        return lengths >= 0, routes

    def _pair_times(self, origin: Int32Array, destination: Int32Array) -> FloatArray:
        """Return the shortest time from each origin to the place of the same index, seconds; inf without a path."""
        found = np.empty(len(origin))
        order = np.argsort(origin, kind="stable")
        for block in self.blocks(origin):
            begin = np.searchsorted(origin, block[0], sorter=order)
            chosen = order[begin : np.searchsorted(origin, block[-1], "right", sorter=order)]
            row = np.searchsorted(block, origin[chosen])
            found[chosen] = self._times(block, self._places)[row, destination[chosen]]
        return found

    def draw_destinations(self, origin: Int32Array, share: FloatArray, mass: FloatArray, scale_s: float) -> Int32Array:
        """Draw a destination j for each origin i with probability ∝ mass_j · exp(−t_ij / scale), j ≠ i.

        If no node that can be reached has a mass, it is drawn evenly from those that can be reached.

        Parameters
        ----------
        origin
            (trips,) int32.
        share
            (trips,) float64 in [0, 1), one random number per trip, at which its distribution is inverted.
        mass
            (nodes,) float64, not negative.
        scale_s
            Seconds, above 0.

        Returns
        -------
        numpy.ndarray
            (trips,) int32; the number of nodes where no other node can be reached.
        """
        order, starts, distinct = _grouped(origin)
        keep = self._keepable and len(distinct) * self._places <= _KEPT_CELLS
        kept = np.empty((len(distinct) if keep else 0, self._places), dtype=np.uint8)
        drawn = np.empty(len(origin), dtype=np.int32)

        def draw(low: int, high: int) -> None:
            of_trips = slice(starts[low], starts[high])
            drawn[of_trips] = _draw(
                self._graph,
                distinct[low:high],
                starts[low : high + 1] - starts[low],
                share[order[of_trips]],
                mass,
                scale_s / self._unit_s,
                kept[low:high],
            )

        self._in_threads(len(distinct), draw)
        if keep:
            row = np.full(self._places, -1, dtype=np.int32)
            row[distinct] = np.arange(len(distinct))
            self._kept = _Trees(row, kept)
        destination = np.empty(len(origin), dtype=np.int32)
        destination[order] = drawn
        return destination

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
        lengths, routes = self._routes(origin, destination)
        lost = np.flatnonzero(lengths < 0)
        if len(lost):
            raise NoPathError(int(self._turns.node[origin[lost[0]]]), int(destination[lost[0]]))
        return routes

    def _routes(self, origin: Int32Array, destination: Int32Array) -> tuple[IntArray, Routes]:
        """Return the number of links between places, (trips,) int64, -1 without a path; and the routes."""
        order, starts, distinct = _grouped(origin)
        row, kept = self._kept or _Trees(np.full(self._places, -1, np.int32), np.empty((0, self._places), np.uint8))
        lengths = np.zeros(len(origin), dtype=np.int64)
        parts: dict[int, tuple[int, npt.NDArray[Any]]] = {}

        def trace(low: int, high: int) -> None:
            chosen = order[starts[low] : starts[high]]
            bounds = starts[low : high + 1] - starts[low]
            count, traced = _trace(self._graph, distinct[low:high], bounds, destination[chosen], row, kept)
            lengths[chosen] = count
            parts[low] = (high, traced.astype(self._link_dtype))

        self._in_threads(len(distinct), trace)
        found = np.maximum(lengths, 0)
        offsets = np.zeros(len(origin) + 1, dtype=np.int64)
        np.cumsum(found, out=offsets[1:])
        links = np.empty(offsets[-1], dtype=self._link_dtype)
        for low in sorted(parts):
            high, traced = parts.pop(low)
            chosen = order[starts[low] : starts[high]]
            count = found[chosen]
            copy_rows(traced, np.cumsum(count) - count, count, links, offsets[chosen])
        return lengths, Routes(offsets, links)

    @staticmethod
    def _in_threads(origins: int, work: Callable[[int, int], None]) -> None:
        """Call `work` for ranges of origins that cover all of them, in as many threads as numba may use."""
        threads = min(numba.get_num_threads(), os.cpu_count() or 1)
        chunk = max(16, -(-origins // (8 * threads)))
        ranges = [(low, min(low + chunk, origins)) for low in range(0, origins, chunk)]
        if threads == 1 or len(ranges) < 2:
            for low, high in ranges:
                work(low, high)
            return
        with ThreadPoolExecutor(threads) as pool:
            for done in [pool.submit(work, low, high) for low, high in ranges]:
                done.result()


def _all_reached(start: Int32Array, end: Int32Array, places: int) -> bool:
    """Return whether links lead from the first of some places to every other, with a search in Python."""
    onto: list[list[int]] = [[] for _ in range(places)]
    for place, other in zip(start.tolist(), end.tolist(), strict=True):
        onto[place].append(other)
    seen, waiting = {0}, [0]
    while waiting:
        new = [place for place in onto[waiting.pop()] if place not in seen]
        seen.update(new)
        waiting += new
    return len(seen) == places


def _grouped(origin: Int32Array) -> tuple[IntArray, IntArray, Int32Array]:
    """Return the trips ordered by origin, where each origin's trips start in that order, and the distinct origins."""
    order = np.argsort(origin, kind="stable")
    distinct, first = np.unique(origin[order], return_index=True)
    return order, np.append(first, len(origin)).astype(np.int64), distinct.astype(np.int32)


@compiled
def _grow(  # noqa: C901, PLR0912, PLR0915 - one loop; calls inside it would take most of the time
    graph: _Graph,
    origin: int,
    wanted: Mask,
    left: int,
    time: IntArray,
    link: Int32Array,
    calendar: Int32Array,
    head: Int32Array,
) -> None:
    """Grow the tree of an origin: the time to each node, and the link by which it is reached, -1 for none.

    `wanted` marks nodes; growth ends once `left` of them are reached, if `left` is above 0. `head` has the first node
    of each bucket, at last those further ahead; `calendar` for each node the next and the previous node of its bucket,
    and its bucket or -1. They are written out here: a call for each change would take longer than the change.
    """
    first_out, to_node, time_of, through = graph.first_out, graph.to_node, graph.time, graph.through
    shift = graph.shift
    after, before, bucket = calendar[0], calendar[1], calendar[2]
    time[:] = _NEVER
    link[:] = -1
    head[:] = -1
    bucket[:] = -1
    time[origin] = 0
    head[0], after[origin], before[origin], bucket[origin] = origin, -1, -1, 0
    alive, far, current = 1, 0, 0
    limited = left > 0
    while alive + far > 0:
        if alive == 0:  # all that is left is further ahead than the calendar reaches: go to the first of it
            node, nearest = head[_RING], _NEVER
            while node >= 0:
                nearest = min(nearest, time[node])
                node = after[node]
            current = int(nearest) >> shift
            node = head[_RING]
            head[_RING] = -1
            alive, far = 0, 0
            while node >= 0:
                following = after[node]
                at = time[node] >> shift
                place = at % _RING if at < current + _RING else _RING
                after[node], before[node], bucket[node] = head[place], -1, place
                if head[place] >= 0:
                    before[head[place]] = node
                head[place] = node
                alive += place != _RING
                far += place == _RING
                node = following
        here = current % _RING
        while head[here] >= 0:
            node = head[here]
            head[here] = after[node]
            if after[node] >= 0:
                before[after[node]] = -1
            bucket[node] = -1
            alive -= 1
            if limited and wanted[node]:
                wanted[node] = False
                left -= 1
            if not through[node] and node != origin:
                continue
            now = time[node]
            for out in range(first_out[node], first_out[node + 1]):
                end = to_node[out]
                then = now + time_of[out]
                if then < time[end]:
                    time[end], link[end] = then, out
                    at = then >> shift
                    place = at % _RING if at < current + _RING else _RING
                    old = bucket[end]
                    if old == place:
                        continue
                    if old >= 0:
                        if before[end] >= 0:
                            after[before[end]] = after[end]
                        else:
                            head[old] = after[end]
                        if after[end] >= 0:
                            before[after[end]] = before[end]
                        alive -= old != _RING
                        far -= old == _RING
                    after[end], before[end], bucket[end] = head[place], -1, place
                    if head[place] >= 0:
                        before[head[place]] = end
                    head[place] = end
                    alive += place != _RING
                    far += place == _RING
                elif then == time[end] and out < link[end]:
                    link[end] = out
        if limited and left == 0:
            return
        current += 1


@compiled
def _times(graph: _Graph, origins: Int32Array, unit_s: float, times: FloatArray) -> None:
    nodes = len(graph.first_in) - 1
    calendar, head = np.empty((3, nodes), dtype=np.int32), np.empty(_RING + 1, dtype=np.int32)
    link, none = np.empty(nodes, dtype=np.int32), np.zeros(nodes, dtype=np.bool_)
    time = np.empty(nodes, dtype=np.int64)
    for row in range(len(origins)):
        _grow(graph, origins[row], none, 0, time, link, calendar, head)
        for node in range(times.shape[1]):
            times[row, node] = time[node] * unit_s if time[node] < _NEVER else np.inf


@compiled
def _draw(
    graph: _Graph,
    origins: Int32Array,
    starts: IntArray,
    share: FloatArray,
    mass: FloatArray,
    scale: float,
    kept: npt.NDArray[np.uint8],
) -> Int32Array:
    """Draw the destinations of each origin's trips, and keep the trees if `kept` has rows for them."""
    nodes = len(graph.first_in) - 1
    calendar, head = np.empty((3, nodes), dtype=np.int32), np.empty(_RING + 1, dtype=np.int32)
    link, none = np.empty(nodes, dtype=np.int32), np.zeros(nodes, dtype=np.bool_)
    time, summed = np.empty(nodes, dtype=np.int64), np.empty(len(mass))
    drawn = np.empty(len(share), dtype=np.int32)
    for row in range(len(origins)):
        origin = origins[row]
        _grow(graph, origin, none, 0, time, link, calendar, head)
        if len(kept):
            for node in range(nodes):
                kept[row, node] = _NO_LINK if link[node] < 0 else graph.rank_in[link[node]]
        # Times are relative to the nearest other node, so that a small scale cannot underflow every weight to 0.
        time[origin] = _NEVER
        nearest = time[: len(mass)].min()
        total = 0.0
        for node in range(len(mass)):
            if mass[node] > 0.0 and time[node] < _NEVER:
                total += mass[node] * np.exp((nearest - time[node]) / scale)
            summed[node] = total
        if total == 0.0:
            for node in range(len(mass)):
                total += 1.0 if time[node] < _NEVER else 0.0
                summed[node] = total
        for trip in range(starts[row], starts[row + 1]):
            drawn[trip] = np.searchsorted(summed, share[trip] * total, side="right")
    return drawn


@compiled
def _trace(  # noqa: C901, PLR0912 - a call for each route would take most of the time
    graph: _Graph,
    origins: Int32Array,
    starts: IntArray,
    destination: Int32Array,
    row_kept: Int32Array,
    kept: npt.NDArray[np.uint8],
) -> tuple[IntArray, Int32Array]:
    """Return the number of links of each trip's route, -1 without a path, and the links of all routes."""
    nodes = len(graph.first_in) - 1
    calendar, head = np.empty((3, nodes), dtype=np.int32), np.empty(_RING + 1, dtype=np.int32)
    link, wanted = np.empty(nodes, dtype=np.int32), np.zeros(nodes, dtype=np.bool_)
    time = np.empty(nodes, dtype=np.int64)
    count = np.empty(len(destination), dtype=np.int64)
    links = np.empty(64 * len(destination), dtype=np.int32)
    end = 0
    for row in range(len(origins)):
        origin = origins[row]
        if row_kept[origin] >= 0:
            link[:] = -1
            for trip in range(starts[row], starts[row + 1]):  # only the nodes of the routes
                node = destination[trip]
                while node != origin and link[node] < 0:
                    rank = kept[row_kept[origin], node]
                    if rank == _NO_LINK:
                        break
                    link[node] = graph.links_in[graph.first_in[node] + rank]
                    node = graph.from_node[link[node]]
        else:
            left = 0
            for trip in range(starts[row], starts[row + 1]):
                left += not wanted[destination[trip]]
                wanted[destination[trip]] = True
            _grow(graph, origin, wanted, left, time, link, calendar, head)
            for trip in range(starts[row], starts[row + 1]):
                wanted[destination[trip]] = False
        for trip in range(starts[row], starts[row + 1]):
            node = destination[trip]
            steps = 0
            while node != origin and link[node] >= 0:
                node = graph.from_node[link[node]]
                steps += 1
            count[trip] = steps if node == origin else -1
            if node != origin:
                continue
            if end + steps > len(links):
                longer = np.empty(2 * (end + steps), dtype=np.int32)
                longer[:end] = links[:end]
                links = longer
            end += steps
            node = destination[trip]
            for at in range(end - 1, end - steps - 1, -1):
                links[at] = graph.link[link[node]]
                node = graph.from_node[link[node]]
    return count, links[:end]
