"""Shortest paths on the road graph: travel times, destinations by gravity, and routes, from one tree per origin."""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

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
_KEPT_BYTES = 1 << 27
"""Maximum size of trees kept between demand and routing, so that each grows once: 128 MiB."""
_RING = 1024
"""Buckets of the calendar in whose order places are found; times further ahead are in the last one."""
_LANES = 32
"""Trees that grow at once: one more costs half a nanosecond an arc, the order of places 20 to 40 a place for all."""
_NEAR = 128
"""Trees that grow at once begin at the places next in time: from places further apart, they have other orders."""
_WINDOW = 64
"""Places whose times are made final before those of the next ones."""
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

    Its nodes are the places of a `TurnGraph`. The arcs that leave a node are those from `first_out` on, and the arcs
    that enter it, by ascending number, those from `first_in` on, with the nodes, times and links of these.
    """

    first_out: Int32Array
    to_node: Int32Array
    time: IntArray
    through: Mask
    first_in: Int32Array
    from_in: Int32Array
    time_in: IntArray
    link_in: Int32Array
    shift: int


Tree: TypeAlias = npt.NDArray[Any]
"""(places,), uint8 or int32: by which of the arcs that enter it a path comes to a place, from 1; 0 where none does."""


class _Order(NamedTuple):
    """The places in the order of travel time from an origin.

    `time` is that of a path and nearly the shortest, `dirty` marks by rank the places whose time became shorter late.
    """

    place: Int32Array
    rank: Int32Array
    time: IntArray
    dirty: Mask


class _Origins(NamedTuple):
    """Some origins, and where the trips of each begin and end among all trips in the order of their origins."""

    place: Int32Array
    begin: IntArray
    end: IntArray

    def of(self, rows: IntArray) -> "_Origins":
        return _Origins(self.place[rows], self.begin[rows], self.end[rows])


class ShortestPaths:
    """Shortest-time trees of a network, one for each origin.

    Origins near each other have trees that differ little. So the nodes are put into the order of travel time from one
    origin, by a calendar of buckets (Dial 1969), and in this order the times from it and from up to 31 origins near it
    grow at once; a node whose times become shorter later is visited again. On a grid of 11,025 nodes it takes 1.05 to
    1.25 visits of each node, in which vector instructions compare the times from 8 origins. That is three to four times
    as fast as one tree after another. Threads grow the trees of different origins.

    Of several shortest paths, each node is reached by the one whose last link has the lowest id; so routes depend
    neither on the order of the search nor on the number of threads, and a route's rest is the route from there. A route
    may begin or end at a node that is closed to through traffic (a zone's centroid), but never passes through it.

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
        self._tree_dtype = np.uint8 if np.diff(first_in).max(initial=0) < 256 else np.int32
        self._graph = _Graph(
            turns.first_out,
            turns.to_place,
            time,
            turns.through,
            first_in,
            turns.from_place[entering],
            time[entering],
            turns.link[entering],
            max(0, int(np.log2(np.median(time))) - 1) if len(time) else 0,
        )
        # Of the trees kept, for each origin its row or -1, and the trees.
        self._kept = np.full(self._places, -1, dtype=np.int32), np.empty((1, 0), dtype=self._tree_dtype)
        self._link_dtype = link_dtype(len(links))

    @classmethod
    def of(cls, roads: RoadNetwork) -> "ShortestPaths":
        """Return the paths of a network by free-flow times, with its closed nodes and banned turns."""
        return cls(roads.links, through=roads.through, banned=roads.banned_turns)

    @cached_property
    def all_joined(self) -> bool:
        """Whether a path leads from every node to every other; False also where finding out would take a search."""
        graph = self._turns
        open_ = graph.through[graph.from_place] & graph.through[graph.to_place]
        ends = (graph.from_place[open_], graph.to_place[open_])
        if self._places < _FEW_PLACES and _all_reached(*ends, self._places) and _all_reached(*ends[::-1], self._places):
            return True
        joined = scipy.sparse.csr_array((np.ones(len(ends[0])), ends), shape=(self._places, self._places))
        part = scipy.sparse.csgraph.connected_components(joined, connection="strong")[1]
        core = (part == np.bincount(part[graph.through], minlength=1).argmax()) & graph.through
        entered, left = core.copy(), core.copy()
        entered[graph.to_place[core[graph.from_place]]] = True
        left[graph.from_place[core[graph.to_place]]] = True
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
        distinct, row = np.unique(origins, return_inverse=True)
        times = np.empty((len(distinct), self.nodes))

        def write(rows: IntArray, units: IntArray) -> None:
            units = units[: self.nodes, : len(rows)].T
            times[rows] = np.where(units < _NEVER, units * self._unit_s, np.inf)

        self._grow(distinct, write)
        return times[row]

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
        units_of = np.empty(len(origin), dtype=np.int64)
        order, origins = _grouped(origin)

        def read(rows: IntArray, units: IntArray) -> None:
            for lane, (_, begin, end) in enumerate(zip(*origins.of(rows), strict=True)):
                units_of[order[begin:end]] = units[destination[order[begin:end]], lane]

        self._grow(origins.place, read)
        return np.where(units_of < _NEVER, units_of * self._unit_s, np.inf)

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
        order, origins = _grouped(origin)
        keep = len(origins.place) * self._places * np.dtype(self._tree_dtype).itemsize <= _KEPT_BYTES
        trees = np.zeros((len(origins.place) if keep else 0, self._places), dtype=self._tree_dtype)
        drawn, share, rate = np.empty(len(origin), dtype=np.int32), share[order], self._unit_s / scale_s

        def draw(rows: IntArray, units: IntArray) -> None:
            _draw(units, origins.of(rows), mass, rate, share, drawn)
            if keep:
                _mark(self._graph, units, origins.of(rows), drawn, trees, rows)

        self._grow(origins.place, draw)
        if keep:
            row = np.full(self._places, -1, dtype=np.int32)
            row[origins.place] = np.arange(len(origins.place))
            self._kept = row, trees
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
        order, origins = _grouped(origin)
        lengths, ends = np.zeros(len(origin), dtype=np.int64), destination[order]
        parts: list[tuple[IntArray, npt.NDArray[Any]]] = []

        def trace(some: _Origins, trees: Tree, of: IntArray) -> None:
            count, links = _trace(self._graph, some, ends, trees, of)
            chosen = order[np.concatenate([np.arange(*ends) for ends in zip(*some[1:], strict=True)])]
            lengths[chosen] = count
            parts.append((chosen, links.astype(self._link_dtype)))

        def grow(rows: IntArray, units: IntArray) -> None:
            trees, of = np.zeros((len(rows), self._places), dtype=self._tree_dtype), np.arange(len(rows))
            _mark(self._graph, units, origins.of(rows), ends, trees, of)
            trace(origins.of(rows), trees, of)

        row, trees = self._kept
        at = row[origins.place].astype(np.int64)
        if (at >= 0).all() and trees[row[origin], destination].all():
            self._in_threads(len(at), lambda rows: trace(origins.of(rows), trees, at[rows]))
        else:
            self._grow(origins.place, grow)
        found = np.maximum(lengths, 0)
        offsets = np.zeros(len(origin) + 1, dtype=np.int64)
        np.cumsum(found, out=offsets[1:])
        links = np.empty(offsets[-1], dtype=self._link_dtype)
        for chosen, traced in parts:
            count = found[chosen]
            copy_rows(traced, np.cumsum(count) - count, count, links, offsets[chosen])
        return lengths, Routes(offsets, links)

    def _grow(self, origins: Int32Array, work: Callable[[IntArray, IntArray], None]) -> None:
        """Find the times from distinct origins, and call `work` for a few at a time, in threads.

        It is called with their indices, (n,) int64, and the times to all places, whole units, (places, n or more).
        """
        graph, places = self._graph, self._places
        lanes = min(_LANES, max(1, _BLOCK_CELLS // places))

        def grow(rows: IntArray) -> None:
            waiting = np.full(places, -1, dtype=np.int64)
            waiting[origins[rows]] = rows
            place, rank = np.empty((2, places), dtype=np.int32)
            order = _Order(place, rank, np.empty(places, dtype=np.int64), np.empty(places, dtype=np.bool_))
            after, head = np.empty(len(graph.time), dtype=np.int32), np.empty(_RING, dtype=np.int32)
            room = np.empty(places * lanes, dtype=np.int64)
            for origin in origins[rows].tolist():
                if waiting[origin] < 0:
                    continue
                near = order.place[: min(_NEAR, _explore(graph, origin, order, after, head))]
                chosen = near[waiting[near] >= 0][:lanes]
                width = min(lanes, -(-len(chosen) // 8) * 8) if len(chosen) > 1 else 1  # whole vectors
                units = room[: places * width].reshape(places, -1)
                _settle(graph, chosen, order, units)
                work(waiting[chosen], units)
                waiting[chosen] = -1

        self._in_threads(len(origins), grow)

    @staticmethod
    def _in_threads(origins: int, work: Callable[[IntArray], Any]) -> None:
        """Call `work` for the indices of some origins after another, in as many threads as numba may use."""
        threads = numba.get_num_threads()
        shares = [rows for rows in np.array_split(np.arange(origins), 2 * threads) if len(rows)]
        if threads == 1 or len(shares) < 2:
            for rows in shares:
                work(rows)
            return
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, shares))


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


def _grouped(origin: Int32Array) -> tuple[IntArray, _Origins]:
    """Return the trips in the order of their origins, and the distinct origins."""
    order = np.argsort(origin, kind="stable")
    distinct, first = np.unique(origin[order], return_index=True)
    bounds = np.append(first, len(origin)).astype(np.int64)
    return order, _Origins(distinct.astype(np.int32), bounds[:-1], bounds[1:])


@compiled
def _explore(graph: _Graph, origin: int, found: _Order, after: Int32Array, head: Int32Array) -> int:
    """Write the order of all places from an origin, and return how many can be reached.

    `head` has the first arc of each bucket, and `after` the next one; an arc is in a bucket at most once, so the search
    ends.
    """
    order, rank, time, dirty = found
    time[:], rank[:], head[:], dirty[:] = _NEVER, -1, -1, False
    time[origin] = 0
    place, reached, waiting, bucket = np.int64(origin), 0, 0, 0
    while place >= 0:
        rank[place], order[reached] = reached, place
        reached += 1
        if graph.through[place] or place == origin:
            for out in range(graph.first_out[place], graph.first_out[place + 1]):
                end, then = graph.to_node[out], time[place] + graph.time[out]
                if then < time[end]:
                    time[end] = then
                    if rank[end] >= 0:
                        dirty[rank[end]] = True
                    at = min(then >> graph.shift, bucket + _RING - 1) % _RING
                    after[out], head[at] = head[at], out
                    waiting += 1
        place = np.int64(-1)
        while waiting > 0 and place < 0:
            first = head[bucket % _RING]
            if first < 0:
                bucket += 1
                continue
            head[bucket % _RING] = after[first]
            waiting -= 1
            if rank[graph.to_node[first]] < 0:
                place = np.int64(graph.to_node[first])
    last = reached
    for other in range(len(rank)):
        if rank[other] < 0:
            rank[other], order[last] = last, other
            last += 1
    return reached


@compiled
def _settle(graph: _Graph, origins: Int32Array, found: _Order, time: IntArray) -> None:  # noqa: C901, PLR0912 - one
    """Find the shortest times from some origins near each other, of which the first has `found` the order of places.

    They are written to `time`, (places, origins or more). Places are visited in their order while one of their times
    has become shorter since their last visit. Those of a window are final, as far as paths within it go, before the
    next ones are visited; so the visits of a window are at most those of Bellman and Ford's method, and the loop ends.
    Both loops over origins become vector instructions.
    """
    order, rank, label, dirty = found
    places, lanes = time.shape
    for place in range(places):
        time[place, 0] = label[place]
        for lane in range(1, lanes):
            time[place, lane] = _NEVER
    for lane in range(1, len(origins)):
        origin = origins[lane]
        time[origin, lane] = 0
        dirty[rank[origin]] = True
        if not graph.through[origin]:  # its own paths alone leave it
            for out in range(graph.first_out[origin], graph.first_out[origin + 1]):
                end = graph.to_node[out]
                time[end, lane] = min(time[end, lane], graph.time[out])
                dirty[rank[end]] = True
    begin, stop = 0, min(_WINDOW, places)
    while begin < places:
        back = stop
        for at in range(begin, stop):
            place = order[at]
            if dirty[at] and graph.through[place]:
                here = time[place]
                for out in range(graph.first_out[place], graph.first_out[place + 1]):
                    there, longer, shorter = time[graph.to_node[out]], graph.time[out], False
                    for lane in range(len(here)):
                        shorter |= here[lane] + longer < there[lane]
                    if shorter:
                        for lane in range(len(here)):
                            there[lane] = min(here[lane] + longer, there[lane])
                        again = rank[graph.to_node[out]]
                        dirty[again] = True
                        if again <= at and again < back:
                            back = again
            dirty[at] = False
        begin = back
        if back == stop:
            stop = min(stop + _WINDOW, places)


@compiled
def _draw(  # noqa: C901, PLR0912 - loops over what is in the cache
    time: IntArray, origins: _Origins, mass: FloatArray, rate: float, share: FloatArray, drawn: Int32Array
) -> None:
    """Draw the destinations of the trips from some origins.

    exp x is written out, to one unit in the last place: 2^k times a polynomial of what is left of x without k ln 2. So
    vector instructions find it for all origins, in two fifths of the time of the library's function.
    """
    lanes = time.shape[1]
    summed = np.empty((len(mass), lanes))
    nearest, total = np.full(lanes, _NEVER), np.zeros(lanes)
    for lane in range(len(origins.place)):
        time[origins.place[lane], lane] = _NEVER
    # Times are relative to the nearest other node, so that a small scale cannot underflow every weight to 0.
    for node in range(len(mass)):
        here = time[node]
        for lane in range(lanes):
            nearest[lane] = min(nearest[lane], here[lane])
    for node in range(len(mass)):
        here, sums, of_node = time[node], summed[node], mass[node]
        for lane in range(lanes):
            x = max(rate * (nearest[lane] - here[lane]), -1400.0)
            k = x * 1.4426950408889634 + 6755399441055744.0 - 6755399441055744.0  # rounded: 1.5 · 2^52
            x = x - k * 0.6931471803691238 - k * 1.9082149292705877e-10
            y = 1.0 + x * (1 / 10) * (1.0 + x * (1 / 11) * (1.0 + x * (1 / 12) * (1.0 + x * (1 / 13))))
            y = 1.0 + x * (1 / 6) * (1.0 + x * (1 / 7) * (1.0 + x * (1 / 8) * (1.0 + x * (1 / 9) * y)))
            y = 1.0 + x * (1.0 + x * (1 / 2) * (1.0 + x * (1 / 3) * (1.0 + x * (1 / 4) * (1.0 + x * (1 / 5) * y))))
            half = np.int64(k) >> 1  # 2^k in two factors, as it may be below the least normal number
            y *= np.int64((half + 1023) << 52).view(np.float64)
            y *= np.int64((np.int64(k) - half + 1023) << 52).view(np.float64)
            sums[lane] = of_node * y if here[lane] < _NEVER else 0.0
        for lane in range(lanes):
            total[lane] += sums[lane]
            sums[lane] = total[lane]
    for lane in range(len(origins.place)):
        if total[lane] == 0.0:
            for node in range(len(mass)):
                total[lane] += 1.0 if time[node, lane] < _NEVER else 0.0
                summed[node, lane] = total[lane]
        time[origins.place[lane], lane] = 0
        for trip in range(origins.begin[lane], origins.end[lane]):
            value, low, high = share[trip] * total[lane], 0, len(mass)
            while low < high:
                middle = (low + high) // 2
                if summed[middle, lane] <= value:
                    low = middle + 1
                else:
                    high = middle
            drawn[trip] = low


@compiled
def _mark(graph: _Graph, time: IntArray, origins: _Origins, destination: Int32Array, trees: Tree, of: IntArray) -> None:
    """Write the arcs of the paths of some origins' trips to their trees, `of` each; of equal ones the first."""
    for lane in range(len(origins.place)):
        origin, tree = origins.place[lane], trees[of[lane]]
        for trip in range(origins.begin[lane], origins.end[lane]):
            place = destination[trip]
            while 0 <= place < len(tree) and place != origin and tree[place] == 0 and time[place, lane] < _NEVER:
                for at in range(graph.first_in[place], graph.first_in[place + 1]):
                    before = graph.from_in[at]
                    arrives = time[before, lane] + graph.time_in[at] == time[place, lane]
                    if arrives and (graph.through[before] or before == origin):
                        tree[place], place = at - graph.first_in[place] + 1, before
                        break
                else:
                    break


@compiled
def _trace(
    graph: _Graph, origins: _Origins, destination: Int32Array, trees: Tree, of: IntArray
) -> tuple[IntArray, Int32Array]:
    """Return the number of links of each trip's route, -1 without a path, and the links of all routes.

    Routes are found from their ends, so the last one is written first, at the end of the links.
    """
    done = np.sum(origins.end - origins.begin)
    count, links = np.empty(done, dtype=np.int64), np.empty(32 * done, dtype=np.int32)
    first = len(links)
    for at in range(len(of) - 1, -1, -1):
        origin, tree = origins.place[at], trees[of[at]]
        for trip in range(origins.end[at] - 1, origins.begin[at] - 1, -1):
            place, last = destination[trip], first
            while place != origin and tree[place] > 0:
                if first == 0:
                    first = len(links)
                    last += first
                    longer = np.empty(2 * first, dtype=np.int32)
                    for link in range(first):
                        longer[first + link] = links[link]
                    links = longer
                first -= 1
                arc = graph.first_in[place] + tree[place] - 1
                links[first], place = graph.link_in[arc], graph.from_in[arc]
            done -= 1
            count[done] = last - first if place == origin else -1
    return count, links[first:]
