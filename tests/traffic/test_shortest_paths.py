"""Shortest paths by buckets: the same as networkx's, whatever the links' times, and gravity's law from their trees."""

import itertools
import os
from pathlib import Path

import networkx as nx
import numba
import numpy as np
import pytest
from read_roads import read_tntp
from roads_by_hand import chain, routes_of
from scipy import stats
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from zoned_roads import roads_of

from simulator.roads import RoadNetwork
from simulator.traffic.paths import NoPathError, ShortestPaths
from simulator.traffic.routes import link_dtype


def random_roads(rng, nodes=30, links=90, *, parallel=False):
    graph = nx.MultiDiGraph(crs="EPSG:32618")
    for node in range(nodes):
        graph.add_node(node, x=float(rng.uniform(0, 1000)), y=float(rng.uniform(0, 1000)))
    for _ in range(links):
        start, end = rng.choice(nodes, 2, replace=False)
        if parallel or not graph.has_edge(start, end):
            graph.add_edge(start, end, length_m=100.0, speed_mps=10.0, lanes=1, capacity_vph=1800.0)
    return RoadNetwork.from_graph(graph)


def draw_times(rng, links, kind):
    """Return times in seconds: few values with many ties, or values over many orders of magnitude."""
    if kind == "ties":
        return rng.integers(1, 4, links).astype(float)
    if kind == "wide":
        return 10.0 ** rng.uniform(-3, 6, links)
    return np.where(rng.random(links) < 0.1, 1e9, rng.uniform(1, 60, links))  # closed links


def reference(links, time_s, through):
    """Return all shortest times, found by networkx on a graph in which closed nodes cannot be passed."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(links.first_out) - 1))
    for start, end, time in zip(links.from_node.tolist(), links.to_node.tolist(), time_s.tolist(), strict=True):
        known = graph.get_edge_data(start, end, {"weight": np.inf})["weight"]
        graph.add_edge(start, end, weight=min(time, known))
    times = np.full((len(graph), len(graph)), np.inf)
    for origin in graph:
        kept = [node for node in graph if through[node] or node == origin]
        inner = nx.single_source_dijkstra_path_length(graph.subgraph(kept), origin)
        times[origin, list(inner)] = list(inner.values())
        for node in set(graph) - set(kept):
            reached = [
                times[origin, before] + graph[before][node]["weight"]
                for before in graph.predecessors(node)
                if before in inner
            ]
            times[origin, node] = min(reached, default=np.inf)
    return times


@pytest.mark.parametrize("kind", ["ties", "wide", "closed"])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("closed", [False, True])
def test_times_and_routes_are_those_of_networkx(kind, seed, closed):
    rng = np.random.default_rng([seed, closed])
    links = random_roads(rng, parallel=seed % 2 == 0).links
    time_s = draw_times(rng, len(links.to_node), kind)
    nodes = len(links.first_out) - 1
    through = rng.random(nodes) < (0.7 if closed else 1.0)
    paths = ShortestPaths(links, through=through, time_s=time_s)
    expected = reference(links, time_s, through)
    every = np.arange(nodes, dtype=np.int32)
    near = {"rtol": 1e-9, "atol": 1e-4 if kind == "closed" else 1e-7}
    np.testing.assert_allclose(paths.times(every), expected, **near)
    origin, destination = (ends.astype(np.int32) for ends in np.nonzero(np.isfinite(expected) & (expected > 0)))
    routes = paths.routes(origin, destination)
    routes.check_connected(links)
    np.testing.assert_array_equal(links.from_node[routes.first], origin)
    np.testing.assert_array_equal(links.to_node[routes.last], destination)
    driven = np.add.reduceat(time_s[routes.links], routes.offsets[:-1])
    np.testing.assert_allclose(driven, expected[origin, destination], **near)
    inner = np.concatenate([links.to_node[routes.of(trip)[:-1]] for trip in range(len(routes))])
    assert through[inner].all()
    lost = np.argwhere(~np.isfinite(expected))
    if len(lost):
        with pytest.raises(NoPathError, match=f"no path leads from node {lost[0][0]} to node {lost[0][1]}"):
            paths.routes(lost[:1, 0].astype(np.int32), lost[:1, 1].astype(np.int32))


def test_closed_intermediate_node_removes_the_path():
    roads = roads_of([(1, 2), (2, 3), (3, 2), (2, 1)], closed=[2])
    paths = ShortestPaths(roads.links, through=roads.through)
    assert paths.times(np.array([0, 1], dtype=np.int32)).tolist() == [[0.0, 10.0, np.inf], [10.0, 0.0, 10.0]]
    with pytest.raises(NoPathError) as told:
        paths.routes(np.array([0], dtype=np.int32), np.array([2], dtype=np.int32))
    assert (told.value.origin, told.value.destination) == (0, 2)
    with pytest.raises(ValueError, match="trip 1 that goes nowhere"):
        paths.routes(np.array([0, 2], dtype=np.int32), np.array([1, 2], dtype=np.int32))


def test_no_route_of_anaheim_passes_through_a_centroid():
    folder = Path(os.environ.get("CROWDVEIL_DATA", "no such folder"), "tntp", "Anaheim")
    if not folder.is_dir():
        pytest.skip("set CROWDVEIL_DATA to a folder with tntp/Anaheim to read it")
    files = {"network": folder / "Anaheim_net.tntp", "nodes": folder / "anaheim_nodes.geojson"}
    roads, _ = read_tntp(**files, length_m=0.3048, time_s=60.0)
    assert np.count_nonzero(~roads.through) == 38
    zones = np.flatnonzero(~roads.through).astype(np.int32)
    origin, destination = (ends.ravel() for ends in np.meshgrid(zones, zones))
    apart = origin != destination

    def inside(paths):
        routes = paths.routes(origin[apart], destination[apart])
        within = np.ones(len(routes.links), dtype=bool)
        within[routes.offsets[1:] - 1] = False
        return roads.links.to_node[routes.links[within]]

    assert not np.isin(inside(ShortestPaths(roads.links, through=roads.through)), zones).any()
    assert np.isin(inside(ShortestPaths(roads.links)), zones).any()  # without the rule some would


def test_of_equal_paths_the_one_whose_last_link_has_the_lowest_id_is_taken_and_its_rest_stays_the_route():
    rng = np.random.default_rng(3)
    links = random_roads(rng, 40, 200, parallel=True).links
    # Times without an exact binary form: their sums in another order would differ in the last digit.
    time_s = rng.choice([35.97122302158273, 17.3], len(links.to_node))
    paths = ShortestPaths(links, time_s=time_s)
    times = paths.times(np.arange(40, dtype=np.int32))
    for origin, destination in itertools.permutations(range(40), 2):
        if np.isfinite(times[origin, destination]):
            route = paths.routes(np.array([origin], np.int32), np.array([destination], np.int32)).of(0)
            entering = np.flatnonzero(links.to_node == destination)
            arriving = times[origin, links.from_node[entering]] + time_s[entering]
            assert route[-1] == entering[np.isclose(arriving, times[origin, destination], rtol=1e-9)].min()
            if len(route) > 1:
                rest = paths.routes(links.to_node[route[:1]], np.array([destination], np.int32)).of(0)
                assert rest.tolist() == route[1:].tolist()


@pytest.mark.parametrize("threads", [1, 2])
def test_routes_depend_neither_on_threads_nor_on_kept_trees(threads):
    rng = np.random.default_rng(9)
    links = random_roads(rng, 300, 1500).links
    origin = rng.integers(300, size=4000).astype(np.int32)
    mass, share = rng.random(300), rng.random(4000)
    fresh = ShortestPaths(links)
    drawn = fresh.draw_destinations(origin, share, mass, 30.0)
    ok = drawn < 300
    kept_routes = fresh.routes(origin[ok], drawn[ok])
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(min(threads, before))
        again = ShortestPaths(links)
        np.testing.assert_array_equal(again.draw_destinations(origin, share, mass, 30.0), drawn)
        own = ShortestPaths(links).routes(origin[ok], drawn[ok])  # grows its own trees, only as far as needed
    finally:
        numba.set_num_threads(before)
    np.testing.assert_array_equal(own.links, kept_routes.links)
    np.testing.assert_array_equal(own.offsets, kept_routes.offsets)


@pytest.mark.parametrize("scale_s", [3.0, 40.0, 1e-3])
def test_destinations_have_the_law_of_gravity(scale_s):
    rng = np.random.default_rng(4)
    links = random_roads(rng, 20, 60).links
    time_s = draw_times(rng, len(links.to_node), "ties")
    through = rng.random(20) < 0.8
    paths = ShortestPaths(links, through=through, time_s=time_s)
    mass = np.where(rng.random(20) < 0.2, 0.0, rng.random(20))
    times = reference(links, time_s, through)
    np.fill_diagonal(times, np.inf)
    trips, worst = 40_000, []
    for origin in range(20):
        reached = np.isfinite(times[origin])
        drawn = paths.draw_destinations(np.full(trips, origin, np.int32), rng.random(trips), mass, scale_s)
        if not reached.any():
            assert (drawn == 20).all()
            continue
        weight = np.where(reached, mass * np.exp(-(times[origin] - times[origin].min()) / scale_s), 0.0)
        law = weight / weight.sum() if weight.sum() > 0 else reached / reached.sum()
        found = np.bincount(drawn, minlength=20)
        assert found[law == 0].sum() == 0
        common = law * trips >= 5
        observed, expected = found[common], law[common] * trips
        if common.sum() > 1:
            worst.append(
                stats.chisquare(
                    np.append(observed, trips - observed.sum() + 1e-9),
                    np.append(expected, trips - expected.sum() + 1e-9),
                ).pvalue
            )
    assert min(worst, default=1.0) > 1e-3 / max(1, len(worst))


@pytest.mark.parametrize("kind", ["ties", "wide"])
def test_times_of_origins_that_grow_together_are_those_of_scipy(kind):
    rng = np.random.default_rng(6)
    links = random_roads(rng, 400, 1400).links
    time_s = draw_times(rng, len(links), kind)
    expected = dijkstra(csr_array((time_s, (links.from_node, links.to_node)), shape=(400, 400)))
    origins = rng.permutation(400).astype(np.int32)[:350]
    paths = ShortestPaths(links, time_s=time_s)
    np.testing.assert_allclose(paths.times(origins), expected[origins], rtol=1e-9, atol=1e-7)
    np.testing.assert_array_equal(paths.times(origins[[5, 5]]), paths.times(origins)[[5, 5]])


def test_an_even_draw_where_no_node_has_a_mass():
    rng = np.random.default_rng(2)
    links = random_roads(rng, 12, 60).links
    drawn = ShortestPaths(links).draw_destinations(np.zeros(9000, np.int32), rng.random(9000), np.zeros(12), 60.0)
    found = np.bincount(drawn, minlength=12)
    assert found[0] == 0
    assert stats.chisquare(found[found > 0]).pvalue > 1e-3


def test_route_links_take_two_bytes_where_that_suffices():
    assert link_dtype(65_535) == np.uint16
    assert link_dtype(65_536) == np.int32
    rng = np.random.default_rng(1)
    links = random_roads(rng, 400, 2000).links
    routes = ShortestPaths(links).routes(np.zeros(50, np.int32), rng.integers(1, 200, 50).astype(np.int32))
    assert routes.links.itemsize == 2


def test_many_parallel_links_enter_a_node():
    """A tree is kept by the rank of each node's entering link in one byte, if no node has more than 255."""
    graph = nx.MultiDiGraph(crs="EPSG:32618")
    graph.add_nodes_from((node, {"x": float(node), "y": 0.0}) for node in range(3))
    for key in range(300):
        for start, end in ((0, 1), (1, 2), (2, 0)):
            speed = 5.0 if key == 280 else 1.0
            graph.add_edge(start, end, length_m=10.0, speed_mps=speed, lanes=1, capacity_vph=1800.0)
    links = RoadNetwork.from_graph(graph).links
    paths = ShortestPaths(links)
    paths.draw_destinations(np.array([0, 1, 2], np.int32), np.array([0.1, 0.5, 0.9]), np.ones(3), 60.0)
    routes = paths.routes(np.array([0], np.int32), np.array([2], np.int32))
    assert links.speed_mps[routes.links].tolist() == [5.0, 5.0]


def test_a_route_with_a_gap_is_refused_by_vehicle():
    links = chain({"length_m": 100.0}, {"length_m": 100.0}, {"length_m": 100.0}).links
    with pytest.raises(ValueError, match="route of vehicle 1: link 0 does not lead to link 2"):
        routes_of([[0, 1, 2], [0, 2], [0, 1]]).check_connected(links)
