"""Gravity demand and routes, and the same by scipy's Dijkstra with whole matrices: a work of `benchmarks/peers`."""

import numba
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

import scenarios
from simulator.experiment.assembly.city import build_city
from simulator.traffic.paths import ShortestPaths

SCALE_S = 600.0
_ROWS = 400


def case(trips):
    """Return links, origins, uniform numbers that select the destinations, and how much each node attracts."""
    links = build_city(scenarios.load("grid20", overrides=["roads.rows=105", "roads.columns=105"])).roads.links
    rng, nodes = np.random.default_rng(1), len(links.first_out) - 1
    origin = rng.integers(0, nodes, trips, dtype=np.int32)
    return links, origin, rng.random(trips), rng.uniform(0.5, 1.5, nodes)


def ours(links, origin, share, mass):
    """Draw the destinations and find the routes with trees that grow once."""
    paths = ShortestPaths(links)
    destination = paths.draw_destinations(origin, share, mass, SCALE_S)
    return destination, paths.routes(origin, destination)


def reference(links, origin, share, mass):
    """Do the same from a matrix of times and one of predecessors for each block of origins."""
    nodes = len(links.first_out) - 1
    graph = csr_array((links.free_flow_s, (links.from_node, links.to_node)), shape=(nodes, nodes))
    destination, lengths = np.empty_like(origin), np.empty(len(origin), dtype=np.int64)
    parts = []
    order = np.argsort(origin, kind="stable")
    distinct = np.unique(origin)
    for start in range(0, len(distinct), _ROWS):
        block = distinct[start : start + _ROWS]
        times, before = dijkstra(graph, indices=block, return_predecessors=True)
        first = np.searchsorted(origin[order], [*block, block[-1] + 1])
        for row, begin, end in zip(range(len(block)), first[:-1], first[1:], strict=True):
            chosen = order[begin:end]
            weight = mass * np.exp(-times[row] / SCALE_S)
            weight[block[row]] = 0.0
            total = np.cumsum(weight)
            destination[chosen] = np.searchsorted(total, share[chosen] * total[-1], side="right")
            parts.append(_trace(before[row], block[row], destination[chosen]))
            lengths[chosen] = parts[-1][0]
    return destination, lengths


@numba.njit(cache=False)
def _trace(before, origin, destinations):
    """Return the number of links of each route, and the nodes of all of them, each in reverse."""
    count = np.zeros(len(destinations), dtype=np.int64)
    for trip, end in enumerate(destinations):
        node = end
        while node != origin:
            node = before[node]
            count[trip] += 1
    nodes = np.empty(count.sum(), dtype=np.int32)
    place = 0
    for end in destinations:
        node = end
        while node != origin:
            nodes[place] = node
            node = before[node]
            place += 1
    return count, nodes
