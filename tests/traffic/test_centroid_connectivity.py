"""Closed nodes that no route passes: compared with brute force, and on real centroids."""

import os
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from read_roads import read_tntp
from zoned_roads import random_roads, ring, roads_of

from simulator.traffic.demand.synthetic import draw_uniform
from simulator.traffic.paths import NoPathError, ShortestPaths
from simulator.traffic.trips import Trips


def brute_force(roads, origin, destination):
    """Shortest time over a graph without closed nodes other than the two ends; inf without a path."""
    graph = nx.DiGraph()
    links = roads.links
    graph.add_nodes_from(range(len(roads.node_names)))
    for u, v, time in zip(links.from_node.tolist(), links.to_node.tolist(), links.free_flow_s.tolist(), strict=True):
        if not graph.has_edge(u, v) or graph[u][v]["time"] > time:
            graph.add_edge(u, v, time=time)
    shut = [node for node in np.flatnonzero(~roads.through).tolist() if node not in {origin, destination}]
    graph.remove_nodes_from(shut)
    try:
        return nx.shortest_path_length(graph, origin, destination, weight="time")
    except nx.NetworkXNoPath:
        return np.inf


@given(st.integers(0, 10_000))
def test_times_and_routes_equal_a_search_without_closed_nodes(seed):
    roads = random_roads(seed, nodes=9, degree=3)
    count = len(roads.node_names)
    paths = ShortestPaths(roads.links, through=roads.through)
    origins = np.arange(count, dtype=np.int32)
    expected = np.array([[brute_force(roads, a, b) for b in range(count)] for a in range(count)])
    np.testing.assert_allclose(paths.times(origins), expected)
    origin, destination = np.nonzero(np.isfinite(expected) & ~np.eye(count, dtype=bool))
    reached = paths.reached(origin.astype(np.int32), destination.astype(np.int32))
    assert reached.all()
    routes = paths.routes(origin, destination)
    routes.check_connected(roads.links)
    for i in range(len(origin)):
        route = routes.of(i)
        assert roads.links.from_node[route[0]] == origin[i]
        assert roads.links.to_node[route[-1]] == destination[i]
        assert roads.through[roads.links.to_node[route[:-1]]].all()
        assert roads.links.free_flow_s[route].sum() == pytest.approx(expected[origin[i], destination[i]])


def test_open_nodes_change_no_route():
    roads = ring(7)
    drawn = draw_uniform(60, paths=ShortestPaths(roads.links), rng=np.random.default_rng(1))
    trips = Trips.from_unsorted(*drawn, np.arange(60))
    plain, told = (
        ShortestPaths(roads.links, through=through).routes(trips.origin, trips.destination)
        for through in (None, roads.through)
    )
    np.testing.assert_array_equal(plain.links, told.links)


def test_closed_intermediate_node_removes_the_path():
    roads = roads_of([(1, 2), (2, 3), (3, 2), (2, 1)], closed=[2])
    paths = ShortestPaths(roads.links, through=roads.through)
    assert paths.times(np.array([0], dtype=np.int32)).tolist() == [[0.0, 10.0, np.inf]]
    assert paths.times(np.array([1], dtype=np.int32)).tolist() == [[10.0, 0.0, 10.0]]
    with pytest.raises(NoPathError) as told:
        paths.routes(np.array([0], dtype=np.int32), np.array([2], dtype=np.int32))
    assert (told.value.origin, told.value.destination) == (0, 2)


def test_given_travel_times_change_the_route():
    roads = roads_of([("a", "b"), ("a", "c"), ("c", "b"), ("b", "a")])
    trips = Trips.from_unsorted([0], [1], [0])
    links = roads.links
    slow = np.where((links.from_node == 0) & (links.to_node == 1), 100.0, links.free_flow_s)
    assert len(ShortestPaths(links).routes(trips.origin, trips.destination).of(0)) == 1
    assert len(ShortestPaths(links, time_s=slow).routes(trips.origin, trips.destination).of(0)) == 2


def test_no_route_of_anaheim_passes_through_a_centroid():
    folder = Path(os.environ.get("CROWDVEIL_DATA", "no such folder"), "tntp", "Anaheim")
    if not folder.is_dir():
        pytest.skip("set CROWDVEIL_DATA to a folder with tntp/Anaheim to read it")
    roads, _ = read_tntp(
        network=folder / "Anaheim_net.tntp",
        nodes=folder / "anaheim_nodes.geojson",
        length_m=0.3048,
        time_s=60.0,
    )
    assert np.count_nonzero(~roads.through) == 38
    names = {int(str(name)): node for node, name in enumerate(roads.node_names)}
    zones = np.array([names[zone] for zone in range(1, 39)], dtype=np.int32)
    origin, destination = (ends.ravel() for ends in np.meshgrid(zones, zones))
    apart = origin != destination
    trips = Trips(origin[apart], destination[apart], np.zeros(apart.sum(), dtype=np.int32))
    open_ = ShortestPaths(roads.links).routes(trips.origin, trips.destination)
    kept = ShortestPaths(roads.links, through=roads.through).routes(trips.origin, trips.destination)

    def inside(routes):
        within = np.ones(len(routes.links), dtype=bool)
        within[routes.offsets[1:] - 1] = False
        return roads.links.to_node[routes.links[within]]

    assert not np.isin(inside(kept), zones).any()
    assert np.isin(inside(open_), zones).any()  # without the rule some would
