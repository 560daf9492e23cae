"""Static assignment: equilibria computed by hand, and the relative gap."""

import os
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from equilibrium import Bpr, OdPairs, PublishedFlows, find_equilibrium, load_shortest, read_flows, relative_gap
from hypothesis import given, settings
from hypothesis import strategies as st
from read_roads import read_tntp
from verification import compared

from simulator.files.errors import InputError
from simulator.formats.trip_files import read_trip_table
from simulator.roads import RoadNetwork, build_grid
from simulator.traffic.demand.trip_table import TripZones

PLAIN = {"length_m": 1000.0, "speed_mps": 10.0, "lanes": 1, "capacity_vph": 1000.0}


def roads_of(*edges, closed=()):
    """Links (from, to, free-flow s, capacity an hour, b, power)."""
    graph = nx.MultiDiGraph(crs="EPSG:32618")
    nodes = sorted({node for edge in edges for node in edge[:2]})
    graph.add_nodes_from((node, {"x": 1000.0 * i, "y": 50.0 * i * i}) for i, node in enumerate(nodes))
    for node in closed:
        graph.nodes[node]["through"] = False
    for start, end, free, capacity, b, power in edges:
        bpr = {"free_flow_s": free, "capacity_total_vph": capacity, "bpr_b": b, "bpr_power": power}
        graph.add_edge(start, end, **PLAIN, **bpr)
    return RoadNetwork.from_graph(graph)


def pairs_of(roads, *trips):
    index = {name: node for node, name in enumerate(roads.node_names)}
    origin, destination, number = zip(*trips, strict=True)
    return OdPairs.summed(
        np.array([index[node] for node in origin], np.int32),
        np.array([index[node] for node in destination], np.int32),
        np.array(number, dtype=float),
    )


TWO_WAYS = (
    (1, 2, 600.0, 1000.0, 1.0, 1.0),
    (2, 4, 1.0, 1e9, 0.0, 1.0),
    (1, 3, 900.0, 2000.0, 1.0, 1.0),
    (3, 4, 1.0, 1e9, 0.0, 1.0),
)


def test_two_routes_have_equal_travel_time():
    """600 (1 + v / 1000) = 900 (1 + (3000 − v) / 2000): v = 1650 / 1.05."""
    roads = roads_of(*TWO_WAYS)
    bpr = Bpr.from_network(roads, hours=1.0)
    found = find_equilibrium(bpr, pairs_of(roads, (1, 4, 3000)), links=roads.links, gap=1e-9)
    assert found.gap <= 1e-9
    quick = 1650.0 / 1.05
    np.testing.assert_allclose(found.volume, [quick, 3000 - quick, quick, 3000 - quick], rtol=1e-6)


def test_little_traffic_uses_only_the_faster_route():
    roads = roads_of(*TWO_WAYS)
    bpr = Bpr.from_network(roads, hours=1.0)
    found = find_equilibrium(bpr, pairs_of(roads, (1, 4, 400)), links=roads.links)
    assert found.volume.tolist() == [400, 0, 400, 0]
    assert (found.gap, found.iterations) == (0.0, 0)


def test_capacity_hours_scale_the_travel_time():
    roads = roads_of(*TWO_WAYS)
    volume = np.array([1000.0, 0.0, 0.0, 0.0])
    assert Bpr.from_network(roads, hours=1.0).time_s(volume)[0] == pytest.approx(1200)
    assert Bpr.from_network(roads, hours=2.0).time_s(volume)[0] == pytest.approx(900)


def test_braess():
    """Braess's network: in equilibrium all six units use the new link and take 92 each instead of 83."""
    roads = roads_of(
        (1, 2, 1e-6, 1.0, 1e7, 1.0),
        (1, 3, 50.0, 50.0, 1.0, 1.0),
        (2, 3, 10.0, 10.0, 1.0, 1.0),
        (2, 4, 50.0, 50.0, 1.0, 1.0),
        (3, 4, 1e-6, 1.0, 1e7, 1.0),
    )
    bpr = Bpr.from_network(roads, hours=1.0)
    pairs = pairs_of(roads, (1, 4, 6))
    found = find_equilibrium(bpr, pairs, links=roads.links, gap=1e-10)
    np.testing.assert_allclose(found.volume, [4, 2, 2, 2, 4], atol=1e-4)
    assert float(found.volume @ bpr.time_s(found.volume)) / 6 == pytest.approx(92, abs=1e-3)


def test_relative_gap_of_one_route():
    """All 1,000 trips on a route of 1,201 s where another takes 901: a gap of 300 / 901."""
    roads = roads_of(*TWO_WAYS)
    bpr, pairs = Bpr.from_network(roads, hours=1.0), pairs_of(roads, (1, 4, 1000))
    gap = relative_gap(np.array([1000.0, 0.0, 1000.0, 0.0]), bpr, pairs, links=roads.links)
    assert gap == pytest.approx(300 / 901)


def test_route_through_a_zone_is_closed():
    """Node 2 is a centroid: trips may end there, and those to 4 go around; without this rule the problem differs."""
    roads = roads_of(*TWO_WAYS, closed=(2,))
    bpr, pairs = Bpr.from_network(roads, hours=1.0), pairs_of(roads, (1, 4, 100), (1, 2, 7))
    found = find_equilibrium(bpr, pairs, links=roads.links, through=roads.through)
    assert found.volume.tolist() == [7, 100, 0, 100]
    assert found.gap == 0.0
    assert relative_gap(found.volume, bpr, pairs, links=roads.links) > 0.3


def test_roads_without_bpr_functions_are_refused():
    roads = build_grid(rows=2, columns=2, spacing_x_m=100, spacing_y_m=100, speed_mps=10, lanes=1, anchor=(0, 0))
    with pytest.raises(InputError, match="no BPR function"):
        Bpr.from_network(roads, hours=1.0)


def test_zero_travel_time_and_zero_capacity():
    roads = roads_of((1, 2, 0.0, 0.0, 0.15, 4.0), (2, 3, 60.0, 100.0, 0.0, 0.0))
    bpr = Bpr.from_network(roads, hours=1.0)
    found = find_equilibrium(bpr, pairs_of(roads, (1, 3, 50)), links=roads.links)
    assert found.volume.tolist() == [50, 50]
    assert np.isfinite(bpr.time_s(found.volume)).all()
    assert np.isfinite(bpr.slope(np.zeros(2))).all()


def test_extreme_numbers_stay_finite():
    roads = roads_of((1, 2, 5.0, 1e-300, 10.0, 40.0), (1, 2, 6.0, 1e-200, 10.0, 40.0))
    bpr = Bpr.from_network(roads, hours=1.0)
    found = find_equilibrium(bpr, pairs_of(roads, (1, 2, 1e6)), links=roads.links, iterations=5)
    assert np.isfinite(found.volume).all()
    assert np.isfinite(found.gap)
    assert np.isfinite(bpr.slope(found.volume)).all()


def test_extreme_power_is_refused():
    with pytest.raises(InputError, match="link from 1 to 2: bpr_power must be at most 50, got 400"):
        Bpr.from_network(roads_of((1, 2, 5.0, 10.0, 1.0, 400.0)), hours=1.0)


@settings(max_examples=30, deadline=None)
@given(
    side=st.integers(2, 4),
    seed=st.integers(0, 2**32),
    busy=st.floats(0.1, 3.0),
    power=st.sampled_from([1.0, 2.0, 4.0]),
)
def test_equilibrium_of_any_grid_keeps_every_trip(side, seed, busy, power):
    rng = np.random.default_rng(seed)
    grid = build_grid(
        rows=side, columns=side, spacing_x_m=300.0, spacing_y_m=200.0, speed_mps=10.0, lanes=1, anchor=(0.0, 0.0)
    )
    links, nodes = grid.links, side * side
    bpr = Bpr(
        links.free_flow_s, rng.uniform(50, 500, len(links)), np.full(len(links), 0.15), np.full(len(links), power)
    )
    pairs = OdPairs.summed(
        rng.integers(nodes, size=20).astype(np.int32),
        rng.integers(nodes, size=20).astype(np.int32),
        rng.uniform(0, 300, size=20) * busy,
    )
    if not len(pairs):
        return
    found = find_equilibrium(bpr, pairs, links=links, gap=1e-3)
    assert found.gap <= 1e-3
    assert found.gap == pytest.approx(relative_gap(found.volume, bpr, pairs, links=links), abs=1e-12)
    assert (found.volume >= 0).all()
    out = np.bincount(links.from_node, weights=found.volume, minlength=nodes)
    into = np.bincount(links.to_node, weights=found.volume, minlength=nodes)
    departing = np.bincount(pairs.origin, weights=pairs.trips, minlength=nodes)
    arriving = np.bincount(pairs.destination, weights=pairs.trips, minlength=nodes)
    np.testing.assert_allclose(out - into, departing - arriving, atol=1e-6)
    # Any other loading of the same trips is no closer to equilibrium: its gap is not below 0.
    other = load_shortest(rng.uniform(1, 2, len(links)), pairs, links=links)
    assert relative_gap(other, bpr, pairs, links=links) >= -1e-12


def test_slope_is_the_derivative_of_travel_time():
    rng = np.random.default_rng(1)
    bpr = Bpr(rng.uniform(10, 90, 8), rng.uniform(100, 900, 8), rng.uniform(0.1, 1, 8), rng.uniform(0, 5, 8))
    volume, step = rng.uniform(50, 1500, 8), 1e-3
    by_differences = (bpr.time_s(volume + step) - bpr.time_s(volume - step)) / (2 * step)
    np.testing.assert_allclose(bpr.slope(volume), by_differences, rtol=1e-5, atol=1e-9)


class TestPublishedFlows:
    def table(self, *rows):
        return pd.DataFrame(rows, columns=["from", "to", "volume", "cost"])

    def test_rows_are_matched_to_links(self):
        roads = roads_of(*TWO_WAYS)
        flows = PublishedFlows.matched(
            self.table((3, 4, 30.0, 1.0), (1, 2, 10.0, 2.0), (2, 4, 20.0, 3.0), (1, 3, 40.0, 4.0), (9, 4, 1.0, 1.0)),
            roads,
            file="f",
        )
        assert flows.volume.tolist() == [10, 40, 20, 30]
        assert flows.cost.tolist() == [2, 4, 3, 1]
        assert flows.left_out == 1

    def test_parallel_links_are_matched_in_file_order(self):
        roads = roads_of((1, 2, 5.0, 10.0, 0.0, 1.0), (1, 2, 6.0, 10.0, 0.0, 1.0))
        flows = PublishedFlows.matched(self.table((1, 2, 3.0, 5.0), (1, 2, 4.0, 6.0)), roads, file="f")
        assert flows.volume.tolist() == [3, 4]

    def test_flows_of_another_network_are_refused(self):
        roads = roads_of(*TWO_WAYS)
        with pytest.raises(InputError) as caught:
            PublishedFlows.matched(self.table((1, 2, 3.0, 5.0), (1, 2, 3.0, 5.0), (4, 1, 3.0, 5.0)), roads, file="f")
        assert "f: a flow from node 1 to node 2, but there is no further link between them" in caught.value.faults
        assert "f: a flow from node 4 to node 1, but there is no further link between them" in caught.value.faults
        assert "f: no flow for the link from node 2 to node 4" in caught.value.faults


CITIES = {
    "SiouxFalls": ("SiouxFalls_node.tntp", 500.0, 36.0, 360_600.0),
    "Anaheim": ("anaheim_nodes.geojson", 0.3048, 60.0, 104_694.4),
}


def read(city):
    nodes, length_m, time_s, trips = CITIES[city]
    folder = Path(os.environ.get("CROWDVEIL_DATA", "no such folder"), "tntp", city)
    if not (folder / f"{city}_flow.tntp").is_file():
        pytest.skip(f"set CROWDVEIL_DATA to a folder with tntp/{city}/{city}_flow.tntp to read it")
    roads, _ = read_tntp(network=folder / f"{city}_net.tntp", nodes=folder / nodes, length_m=length_m, time_s=time_s)
    table = read_trip_table(folder / f"{city}_trips.tntp", columns={})
    zones = TripZones.named_by(table.places, roads)
    node = zones.nodes[zones.find(table.places)]
    pairs = OdPairs.summed(node[table.origin], node[table.destination], table.trips)
    assert pairs.total == pytest.approx(trips, abs=0.01)
    published = PublishedFlows.matched(read_flows(folder / f"{city}_flow.tntp"), roads, file=city)
    return roads, Bpr.from_network(roads, hours=1.0), pairs, published, time_s


@pytest.mark.parametrize("city", sorted(CITIES))
def test_published_flows_are_in_equilibrium_at_published_costs(city):
    roads, bpr, pairs, published, unit_s = read(city)
    gap = relative_gap(published.volume, bpr, pairs, links=roads.links, through=roads.through)
    assert abs(gap) < 1e-12
    ours, theirs = bpr.time_s(published.volume), published.cost * unit_s
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    compared("equilibrium", ours, theirs, allowed=1e-9 * theirs)


@pytest.mark.parametrize("city", sorted(CITIES))
def test_assignment_finds_the_published_flows(city):
    roads, bpr, pairs, published, _ = read(city)
    found = find_equilibrium(bpr, pairs, links=roads.links, through=roads.through, gap=1e-4)
    assert found.gap <= 1e-4
    assert np.corrcoef(found.volume, published.volume)[0, 1] > 0.999


def test_published_flows_need_closed_zones():
    """The published flows of Anaheim are far from equilibrium if centroids may be passed."""
    roads, bpr, pairs, published, _ = read("Anaheim")
    assert relative_gap(published.volume, bpr, pairs, links=roads.links) > 0.05


def test_volumes_of_two_hours_need_twice_the_capacity():
    roads, bpr, pairs, published, _ = read("SiouxFalls")
    twice = OdPairs(pairs.origin, pairs.destination, 2 * pairs.trips)
    links, through = roads.links, roads.through
    of_two_hours = Bpr.from_network(roads, hours=2.0)
    assert abs(relative_gap(2 * published.volume, of_two_hours, twice, links=links, through=through)) < 1e-12
    assert relative_gap(2 * published.volume, bpr, twice, links=links, through=through) > 0.001
