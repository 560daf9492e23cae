"""Gravity from zones: compared with its definition and with a solver, and infeasible masses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize
from zoned_roads import random_roads, ring, roads_of

from simulator.files.errors import InputError
from simulator.traffic.demand.trip_table import TripZones
from simulator.traffic.demand.zone_gravity import ZoneMasses, gravity_table
from simulator.traffic.paths import ShortestPaths


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


def test_small_scale_sends_all_trips_to_the_nearest_zone():
    matrix, _ = spread(masses([7, 7, 7], [1, 1, 1]), roads_of(
        [(1, 2), (2, 1), (2, 3, {"length_m": 500.0}), (3, 2, {"length_m": 500.0})]
    ), scale_s=1e-3, constraint="singly")  # fmt: skip
    np.testing.assert_allclose(matrix, [[0, 7, 0], [7, 0, 0], [0, 7, 0]])


def test_zone_times_are_means_over_connected_node_pairs():
    roads = random_roads(3, nodes=12, degree=2)
    for node, data in roads.graph.nodes(data=True):
        data["zone"] = int(node) % 4
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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("zone,production\n1,2\n", "no column 'attraction' for attraction"),
        (
            "zone,production,attraction\n1,2,3\n1,2,3\n",
            "rows 1, 2: zone (column 'zone') must be an identifier no other",
        ),
        ("zone,production,attraction\n1,-2,3\n", "row 1: production (column 'production') must be a finite number"),
        ("zone,production,attraction\n,2,3\n", "row 1: zone (column 'zone') must be an identifier, got NaN or nothing"),
        ("zone,production,attraction\n1,0,3\n2,0,1\n", "the productions must sum to more than 0"),
        ("zone,production,attraction\n1,1e308,3\n2,1e308,1\n", "and to a finite number, got inf"),
    ],
)
def test_zone_mass_faults(tmp_path, text, words):
    file = tmp_path / "zones.csv"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        ZoneMasses.read(file)
    assert words in "\n".join(caught.value.faults)
    assert str(file) in caught.value.faults[0]
