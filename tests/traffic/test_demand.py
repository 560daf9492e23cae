"""Demand and routes compared with theory and with another implementation."""

import networkx as nx
import numpy as np
import pytest
from roads_by_hand import chain, network
from scipy import stats
from zoned_roads import roads_of

from simulator.roads import build_grid
from simulator.traffic.clock import Clock
from simulator.traffic.demand.synthetic import Interval, draw_departures, draw_gravity, draw_trips, draw_uniform
from simulator.traffic.paths import NoPathError, ShortestPaths
from simulator.traffic.trips import Trips

LEVEL = 1e-6


@pytest.fixture(scope="module")
def roads():
    return build_grid(
        rows=5,
        columns=4,
        spacing_x_m=300.0,
        spacing_y_m=80.0,
        speed_mps=10.0,
        lanes=1,
        avenue_lanes=3,
        one_way=True,
        anchor=(0.0, 0.0),
    )


def pairs_drawn(paths, vehicles, seed):
    origin, destination = draw_uniform(vehicles, paths=paths, rng=np.random.default_rng(seed))
    return np.bincount(origin * paths.nodes + destination, minlength=paths.nodes**2)


def test_uniform_demand_is_uniform_over_ordered_pairs(roads):
    paths = ShortestPaths(roads.links)
    assert paths.all_joined
    pairs = pairs_drawn(paths, 60_000, seed=1)
    same = np.arange(len(pairs)) % (paths.nodes + 1) == 0
    assert pairs[same].sum() == 0
    assert stats.chisquare(pairs[~same]).pvalue > LEVEL


def test_uniform_demand_draws_only_connected_pairs():
    roads = roads_of([(0, 1), (1, 2), (2, 1), (1, 3), (2, 4), (4, 2), (4, 5)], closed=[4])
    paths = ShortestPaths(roads.links, through=roads.through)
    assert not paths.all_joined
    time = paths.times(np.arange(6, dtype=np.int32))
    joined = (np.isfinite(time) & (time > 0)).ravel()
    assert joined.tolist()[:6] == [False, True, True, True, True, False]
    pairs = pairs_drawn(paths, 40_000, seed=8)
    assert pairs[~joined].sum() == 0
    assert stats.chisquare(pairs[joined]).pvalue > LEVEL


def test_uniform_demand_on_one_way_roads_terminates():
    paths = ShortestPaths(chain(*[{"length_m": 100.0}] * 5).links)
    origin, destination = draw_uniform(3000, paths=paths, rng=np.random.default_rng(2))
    assert (origin < destination).all()


def test_gravity_demand_follows_its_formula(roads):
    links, scale = roads.links, 45.0
    paths = ShortestPaths(links)
    n = 200_000
    origin, destination = draw_gravity(n, links=links, paths=paths, scale_s=scale, rng=np.random.default_rng(2))
    mass = np.bincount(links.from_node, weights=links.length_m * links.lanes)
    time = paths.times(np.arange(paths.nodes, dtype=np.int32))
    weight = mass * np.exp(-time / scale)
    np.fill_diagonal(weight, 0.0)
    distribution = (mass / mass.sum())[:, None] * weight / weight.sum(axis=1, keepdims=True)
    seen = np.bincount(origin * paths.nodes + destination, minlength=paths.nodes**2)
    assert seen[distribution.ravel() == 0].sum() == 0
    assert stats.chisquare(seen[distribution.ravel() > 0], n * distribution[distribution > 0].ravel()).pvalue > LEVEL


def test_gravity_with_a_tiny_scale_chooses_the_nearest_destination(roads):
    paths = ShortestPaths(roads.links)
    origin, destination = draw_gravity(500, links=roads.links, paths=paths, scale_s=1e-3, rng=np.random.default_rng(2))
    time = paths.times(np.arange(paths.nodes, dtype=np.int32))
    np.fill_diagonal(time, np.inf)
    np.testing.assert_allclose(time[origin, destination], time.min(axis=1)[origin])


def test_gravity_gives_no_mass_to_nodes_without_exit():
    # The path from 1 to 2 ends there: no link leaves 2, so it has no mass.
    roads = network(
        {0: (0.0, 0.0), 1: (1.0, 0.0), 2: (2.0, 0.0)},
        [(0, 1, {"length_m": 100.0}), (1, 2, {"length_m": 100.0})],
    )
    paths = ShortestPaths(roads.links)
    origin, destination = draw_gravity(200, links=roads.links, paths=paths, scale_s=60.0, rng=np.random.default_rng(2))
    assert set(zip(origin.tolist(), destination.tolist(), strict=True)) == {(0, 1), (1, 2)}


@pytest.mark.parametrize(
    ("departures", "distribution"),
    [
        ("uniform", stats.uniform(0, 900)),
        ("peak", stats.beta(4, 4, scale=900)),
    ],
)
def test_departures_follow_their_distribution(departures, distribution):
    leave = draw_departures(50_000, departures, duration_s=900.0, rng=np.random.default_rng(3))
    assert leave.min() >= 0
    assert leave.max() < 900
    assert stats.kstest(leave, distribution.cdf).pvalue > LEVEL


def test_departures_from_a_table():
    table = [Interval(0.0, 100.0, 0.75), Interval(300.0, 400.0, 0.25)]
    leave = draw_departures(40_000, table, duration_s=900.0, rng=np.random.default_rng(4))
    first = int((leave < 100).sum())
    assert stats.binomtest(first, 40_000, 0.75).pvalue > LEVEL
    assert ((leave >= 300) & (leave < 400)).sum() == 40_000 - first


def test_trips_are_numbered_by_departure(roads):
    trips = draw_trips(
        1000,
        links=roads.links,
        paths=ShortestPaths(roads.links),
        demand="gravity",
        gravity_scale_s=60.0,
        departures="peak",
        duration_s=100.0,
        clock=Clock(0.5),
        rng=np.random.default_rng(5),
    )
    assert (np.diff(trips.departure_tick) >= 0).all()
    assert trips.departure_tick.max() < 200


def test_trip_without_movement_has_no_shortest_path(roads):
    with pytest.raises(ValueError, match="trip 1 that goes nowhere"):
        ShortestPaths(roads.links).routes(np.array([0, 2], dtype=np.int32), np.array([1, 2], dtype=np.int32))


def test_routes_are_as_short_as_those_of_networkx(roads):
    rng = np.random.default_rng(6)
    origin, destination = draw_uniform(400, paths=ShortestPaths(roads.links), rng=rng)
    trips = Trips.from_unsorted(origin, destination, np.arange(400))
    routes = ShortestPaths(roads.links).routes(trips.origin, trips.destination)
    routes.check_connected(roads.links)
    np.testing.assert_array_equal(roads.links.from_node[routes.first], trips.origin)
    np.testing.assert_array_equal(roads.links.to_node[routes.last], trips.destination)
    for u, v, data in roads.graph.edges(data=True):
        data["time"] = data["length_m"] / data["speed_mps"]
        assert u != v
    for vehicle in range(0, 400, 7):
        names = roads.node_names[trips.origin[vehicle]], roads.node_names[trips.destination[vehicle]]
        shortest = nx.shortest_path_length(roads.graph, *names, weight="time")
        assert roads.links.free_flow_s[routes.of(vehicle)].sum() == pytest.approx(shortest)


def test_fastest_of_parallel_links_is_used():
    roads = network(
        {0: (0.0, 0.0), 1: (100.0, 0.0)},
        [
            (0, 1, {"length_m": 300.0}),
            (0, 1, {"length_m": 100.0}),
            (0, 1, {"length_m": 100.0}),
            (1, 0, {"length_m": 100.0}),
        ],
    )
    routes = ShortestPaths(roads.links).routes(np.array([0], dtype=np.int32), np.array([1], dtype=np.int32))
    assert routes.of(0).tolist() == [1]


def test_missing_path_raises_an_error():
    roads = chain({"length_m": 100.0}, {"length_m": 100.0})
    with pytest.raises(NoPathError, match="no path leads from node 2 to node 0"):
        ShortestPaths(roads.links).routes(np.array([2], dtype=np.int32), np.array([0], dtype=np.int32))
