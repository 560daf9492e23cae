"""Synthetic demand, departure profiles and gravity between zones, compared with theory and with a solver."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from roads_by_hand import network
from scipy import optimize, stats
from zoned_roads import random_roads, ring, roads_of

from simulator.files.errors import InputError
from simulator.roads import RoadNetwork, build_grid
from simulator.traffic.clock import Clock
from simulator.traffic.demand.synthetic import (
    Interval,
    draw_departures,
    draw_gravity,
    draw_trips,
    draw_uniform,
    read_profile,
    within_run,
)
from simulator.traffic.demand.trip_table import TripZones
from simulator.traffic.demand.zone_gravity import ZoneMasses, gravity_table
from simulator.traffic.paths import ShortestPaths

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


def written(tmp_path, text):
    file = tmp_path / "profile.csv"
    file.write_text(text)
    return file


def test_profile_hours_may_be_unsorted(tmp_path):
    profile = read_profile(written(tmp_path, "hour,vehicles\n8,300\n7,100\n9,0\n"))
    assert profile == (Interval(25200.0, 28800.0, 0.25), Interval(28800.0, 32400.0, 0.75))


def test_column_names_ignore_case_and_blanks(tmp_path):
    assert read_profile(written(tmp_path, "Hour, Share\n7,3\n")) == (Interval(25200.0, 28800.0, 1.0),)
    assert read_profile(written(tmp_path, "FROM_S,To_s,Trips\n0,60,3\n")) == (Interval(0.0, 60.0, 1.0),)


def test_profile_windows_from_parquet(tmp_path):
    file = tmp_path / "profile.parquet"
    pd.DataFrame({"from_s": [0, 100], "to_s": [50, 200], "share": [0.5, 1.5]}).to_parquet(file)
    assert read_profile(file) == (Interval(0.0, 50.0, 0.25), Interval(100.0, 200.0, 0.75))


def test_profile_is_cut_to_the_run():
    profile = (Interval(0.0, 100.0, 0.4), Interval(100.0, 200.0, 0.4), Interval(900.0, 1000.0, 0.2))
    assert within_run(profile, begin_s=50.0, duration_s=100.0) == [
        Interval(0.0, 50.0, 0.2),
        Interval(50.0, 100.0, 0.2),
    ]
    assert within_run(profile, begin_s=2000.0, duration_s=100.0) == []


def test_departures_from_a_profile(tmp_path):
    profile = read_profile(written(tmp_path, "hour,share\n0,1\n1,3\n"))
    windows = within_run(profile, begin_s=1800.0, duration_s=3600.0)
    leave = draw_departures(20_000, windows, duration_s=3600.0, rng=np.random.default_rng(1))
    assert stats.binomtest(int((leave < 1800).sum()), 20_000, 0.25).pvalue > LEVEL
    assert leave.max() < 3600


def masses(production, attraction, names=None):
    names = names or [str(i + 1) for i in range(len(production))]
    return ZoneMasses("zones.csv", names, np.array(production, dtype=float), np.array(attraction, dtype=float))


def spread(zones, roads, *, scale_s=60.0, constraint="doubly"):
    """The trip matrix, and the table."""
    paths = ShortestPaths(roads.links, through=roads.through)
    table = gravity_table(zones, roads, paths, scale_s=scale_s, constraint=constraint)
    matrix = np.zeros((len(zones.names), len(zones.names)))
    matrix[table.origin, table.destination] = table.trips
    return matrix, table


@given(st.integers(0, 10_000), st.floats(5.0, 1e4))
def test_doubly_constrained_gravity_has_both_sums_and_its_form(seed, scale_s):
    rng = np.random.default_rng(seed)
    # No zone has more than half of the total: then a matrix without trips inside zones with both sums exists.
    zones = masses(rng.uniform(10, 15, 8), rng.uniform(20, 30, 8))
    roads = ring(8)
    matrix, table = spread(zones, roads, scale_s=scale_s)
    np.testing.assert_allclose(matrix.sum(axis=1), zones.production, rtol=1e-8)
    factor = zones.production.sum() / zones.attraction.sum()
    np.testing.assert_allclose(matrix.sum(axis=0), zones.attraction * factor, rtol=1e-8)
    assert (np.diag(matrix) == 0).all()
    time = ShortestPaths(roads.links).times(np.arange(8, dtype=np.int32))
    # T_ij exp(t_ij / s) = x_i y_j: so every 2 × 2 of it, the diagonal left out, has one ratio.
    level = np.log(matrix + np.eye(8)) + time / scale_s
    for i, j, k, m in ((0, 1, 2, 3), (4, 5, 6, 7), (1, 6, 3, 0)):
        assert level[i, k] - level[i, m] == pytest.approx(level[j, k] - level[j, m], abs=1e-6)
    assert f"attractions are scaled by {factor:.6g}" in table.notes[0]


def test_doubly_constrained_gravity_maximises_entropy():
    zones, roads = masses([30, 20, 25, 25], [20, 30, 30, 20]), ring(4)
    matrix, _ = spread(zones, roads, scale_s=15.0)
    time = ShortestPaths(roads.links).times(np.arange(4, dtype=np.int32))
    apart = ~np.eye(4, dtype=bool)

    def loss(trips):
        return float(np.sum(trips * (np.log(np.maximum(trips, 1e-12)) - 1 + time[apart] / 15.0)))

    def margins(trips):
        whole = np.zeros((4, 4))
        whole[apart] = trips
        return np.concatenate([whole.sum(axis=1) - zones.production, (whole.sum(axis=0) - zones.attraction)[:3]])

    found = optimize.minimize(
        loss,
        np.full(12, 100 / 12),
        constraints={"type": "eq", "fun": margins},
        bounds=[(1e-9, None)] * 12,
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(matrix[apart], found.x, rtol=1e-3)


def test_singly_constrained_gravity_keeps_productions():
    zones, roads = masses([100, 0, 50, 10], [1, 2, 0, 4]), ring(4)
    matrix, table = spread(zones, roads, scale_s=20.0, constraint="singly")
    time = ShortestPaths(roads.links).times(np.arange(4, dtype=np.int32))
    weight = np.exp(-time / 20.0) * zones.attraction
    np.fill_diagonal(weight, 0.0)
    expected = zones.production[:, None] * weight / weight.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(matrix, expected, rtol=1e-12)
    assert table.notes == []


def test_zone_times_are_means_over_connected_node_pairs():
    graph = random_roads(3, nodes=12, degree=2).graph
    for node, data in graph.nodes(data=True):
        data["zone"] = int(node) % 4
    roads = RoadNetwork.from_graph(graph)
    zones = TripZones.of_zones(roads)
    paths = ShortestPaths(roads.links, through=roads.through)
    chosen = np.array([3, 0, 1], dtype=np.int32)
    found = zones.mean_times(chosen, paths)
    times = paths.times(np.arange(12, dtype=np.int32))
    np.fill_diagonal(times, np.inf)
    for row, a in enumerate(chosen.tolist()):
        for column, b in enumerate(chosen.tolist()):
            block = times[np.ix_(zones.nodes_of(a), zones.nodes_of(b))]
            known = block[np.isfinite(block)]
            assert found[row, column] == pytest.approx(known.mean() if len(known) else np.inf)


@pytest.mark.parametrize(
    ("zones", "words"),
    [
        (masses([1, 1], [1, 1], ["1", "9"]), "zone '9' is no node of the roads, which have 4"),
        (masses([9, 1, 1, 1], [9, 1, 1, 1]), "row 1: zone 1 produces 9 and attracts 9 of 12 trips, and no table"),
        (masses([5, 2, 3], [5, 2, 3]), "no table of trips between different zones was found that has both sums"),
        (masses([5, 0, 0, 0], [5, 0, 0, 0]), "row 1: zone 1 produces 5 and attracts 5 of 5 trips, and no table"),
    ],
)
def test_infeasible_zone_masses_are_refused(zones, words):
    with pytest.raises(InputError) as caught:
        spread(zones, ring(4))
    assert words in "\n".join(caught.value.faults)


def test_disconnected_zones_are_refused():
    roads = roads_of([(1, 2), (2, 1), (2, 3), (4, 3), (3, 4)])
    with pytest.raises(InputError) as caught:
        spread(masses([1, 1, 1], [1, 1, 1], ["1", "2", "3"]), roads)
    assert "row 3: zone 3 produces trips, and no path leads from it to a zone" in caught.value.faults[0]


def test_zone_masses_are_read(tmp_path):
    file = tmp_path / "zones.csv"
    file.write_text("Zone_ID,Productions,attraction\n7,3,4\nA,5,6\n")
    read = ZoneMasses.read(file)
    assert read.names == ["7", "A"]
    assert (read.production.tolist(), read.attraction.tolist()) == ([3.0, 5.0], [4.0, 6.0])
