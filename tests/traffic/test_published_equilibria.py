"""Published equilibria: if network, trips, units and closed nodes are read correctly, they are equilibria here too."""

import os
from pathlib import Path

import numpy as np
import pytest
from equilibrium import Bpr, OdPairs, PublishedFlows, find_equilibrium, read_flows, relative_gap
from read_roads import read_tntp

from simulator.formats.trip_files import read_trip_table
from simulator.traffic.demand.trip_table import TripZones

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
    np.testing.assert_allclose(bpr.time_s(published.volume), published.cost * unit_s, rtol=1e-9)


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
