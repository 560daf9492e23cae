"""Gravity demand and routes of 500,000 trips, beside the same by scipy's Dijkstra with whole matrices, in one run."""

import argparse
import statistics
import time

import numba
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from timing import spread

import scenarios
from simulator.experiment.assembly.city import build_city
from simulator.traffic.paths import ShortestPaths

SCALE_S = 600.0
_ROWS = 400


def case(trips, side=105, scenario=None):
    """Return links, origins, uniform numbers that select the destinations, and how much each node attracts."""
    sized = [f"roads.rows={side}", f"roads.columns={side}"]
    links = build_city(scenarios.load(scenario or "grid20", overrides=() if scenario else sized)).roads.links
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


def main() -> None:
    """Measure both, and print the ratio of each pair of repetitions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trips", type=int, default=500_000)
    parser.add_argument("--side", type=int, default=105, help="crossings a side of the grid")
    parser.add_argument("--scenario", help="a scenario with roads to use instead of a grid")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--threads", type=int, help="threads of ours; default: all cores")
    chosen = parser.parse_args()
    if chosen.threads:
        numba.set_num_threads(chosen.threads)
    links, origin, share, mass = case(chosen.trips, chosen.side, chosen.scenario)
    nodes = len(mass)
    ours(links, origin[:1000], share[:1000], mass)
    reference(links, origin[:1000], share[:1000], mass)
    fast, slow, equal = [], [], []
    for _ in range(chosen.repetitions):
        began = time.perf_counter()
        destination, routes = ours(links, origin, share, mass)
        middle = time.perf_counter()
        theirs, lengths = reference(links, origin, share, mass)
        fast.append(middle - began)
        slow.append(time.perf_counter() - middle)
        equal.append(float(np.mean(destination == theirs)))
    print(f"{nodes:,} nodes, {len(links):,} links, {chosen.trips:,} trips, {numba.get_num_threads()} threads")
    print(f"trees that grow once: {spread(fast, unit='s')}")
    print(f"scipy's matrices    : {spread(slow, unit='s')}")
    print(f"ratio               : {spread([b / a for a, b in zip(fast, slow, strict=True)], digits=1)}")
    print(f"equal destinations  : {statistics.median(equal):.6f} of the trips")
    size = routes.nbytes / len(routes.links)
    print(
        f"memory              : {size:.2f} bytes a link of a route, row index included; mean {lengths.mean():.0f} links"
    )


if __name__ == "__main__":
    main()
