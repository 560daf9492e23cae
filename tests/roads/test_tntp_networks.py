"""How the numbers, nodes and zones of TNTP networks are read."""

import gzip
import json
import os
import re
from functools import cache
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from read_roads import read_tntp
from small_networks import PLACES, RING, ROWS, tntp_network, tntp_nodes

from simulator.files.errors import InputError
from simulator.files.messages import texts_of
from simulator.roads.connectivity import largest_part_for_trips


@pytest.fixture
def read(tmp_path):
    """Write both files and read the network in them, lengths in km and times in minutes."""

    def call(network=None, nodes=None, **more):
        (tmp_path / "net.tntp").write_text(tntp_network() if network is None else network, encoding="utf-8")
        (tmp_path / "node.tntp").write_text(tntp_nodes() if nodes is None else nodes, encoding="utf-8")
        files = {"network": tmp_path / "net.tntp", "nodes": tmp_path / "node.tntp"}
        return read_tntp(**(files | {"length_m": 1000.0, "time_s": 60.0} | more))

    return call


def test_link_attributes(read):
    network, _ = read()
    data = network.graph.edges[1, 3, 0]
    assert data["length_m"] == 1000
    assert data["speed_mps"] == pytest.approx(1000 / 120)
    assert (data["lanes"], data["capacity_vph"], data["capacity_total_vph"]) == (2, 1800, 3600)
    rest = {"bpr_b": 0.15, "bpr_power": 4, "free_flow_s": 120, "toll": 0, "class": "1"}
    assert rest.items() <= data.items()
    half = network.graph.edges[3, 4, 0]
    assert (half["lanes"], half["capacity_vph"]) == (1, 900)


def test_capacities_of_several_hours_and_wider_lanes(read):
    network, _ = read(capacity_hours=2, capacity_vph=600)
    data = network.graph.edges[1, 3, 0]
    assert (data["lanes"], data["capacity_vph"], data["capacity_total_vph"]) == (3, 600, 1800)


def test_lanes_are_rounded_to_nearest(read):
    network, _ = read(capacity_vph=2000)  # 1.8 lanes
    data = network.graph.edges[1, 3, 0]
    assert (data["lanes"], data["capacity_vph"], data["capacity_total_vph"]) == (2, 1800, 3600)


def test_zones_and_centroids(read):
    network, report = read()
    zones = {node: data.get("zone") for node, data in network.graph.nodes(data=True)}
    assert zones == {1: 1, 2: 2} | dict.fromkeys((3, 4, 5))
    assert network.through.tolist() == [False, False, True, True, True]
    assert report.lost_zones == ()


def test_zones_are_passable_if_the_first_through_node_is_1(read):
    network, _ = read(tntp_network(first=1))
    assert network.through.all()


def test_all_nodes_may_be_zones_that_no_route_passes(read):
    with pytest.raises(InputError, match="5 nodes that no route may pass"):
        read(tntp_network(first=6))


def test_state_plane_feet_are_projected_to_the_given_crs(read):
    feet = np.array([[690309, 1976022], [683649, 1973025], [693306, 1963368], [686313, 1958373], [696636, 1946718]])
    places = [(node, *place) for node, place in enumerate(feet.tolist(), 1)]
    network, _ = read(nodes=tntp_nodes(places), crs="EPSG:3435", project_to="EPSG:26916")
    assert network.crs.to_epsg() == 26916
    across = network.node_xy[1] - network.node_xy[0]
    assert np.hypot(*across) == pytest.approx(np.hypot(*(feet[1] - feet[0])) * 0.3048006, rel=1e-3)


def test_zero_length_and_zero_time_get_defaults(read):
    rows = ((1, 3, 3600, 0, 0), *ROWS[1:], *RING)
    network, report = read(tntp_network(rows=rows))
    data = network.graph.edges[1, 3, 0]
    here = [(network.graph.nodes[node]["x"], network.graph.nodes[node]["y"]) for node in (1, 3)]
    assert data["length_m"] == pytest.approx(((here[0][0] - here[1][0]) ** 2 + (here[0][1] - here[1][1]) ** 2) ** 0.5)
    assert (data["speed_mps"], data["free_flow_s"]) == (13.9, 0)
    notes = "\n".join(texts_of(report.notes()))
    assert "length_m taken as the straight distance between its nodes in 1 of 7 links" in notes
    assert "speed_mps taken as 13.9 m/s in 1 of 7 links" in notes


def test_zero_length_at_one_position_becomes_1_m(read):
    places = [*PLACES[:2], (3, *PLACES[0][1:]), *PLACES[3:]]
    rows = ((1, 3, 3600, 0, 2), *ROWS[1:], *RING)
    network, report = read(tntp_network(rows=rows), tntp_nodes(places))
    assert network.graph.edges[1, 3, 0]["length_m"] == 1
    assert network.graph.edges[1, 3, 0]["speed_mps"] == pytest.approx(1 / 120)
    assert any("taken as 1 m in 1 of 7 links" in note for note in texts_of(report.notes()))


def test_zero_and_unlimited_capacity(read):
    rows = ((1, 3, 0, 1, 2), (3, 1, 1e12, 1, 2), *ROWS[2:], *RING)
    network, report = read(tntp_network(rows=rows))
    assert (network.graph.edges[1, 3, 0]["lanes"], network.graph.edges[1, 3, 0]["capacity_vph"]) == (1, 1800)
    assert (network.graph.edges[3, 1, 0]["lanes"], network.graph.edges[3, 1, 0]["capacity_vph"]) == (1000, 1e9)
    notes = "\n".join(texts_of(report.notes()))
    assert "capacity_vph taken as 1800 vehicles/h/lane" in notes
    assert "a capacity too high for a road) taken as 1,000 in 1 of 7 links" in notes


def test_zone_without_exit_is_dropped_and_named(read):
    network, report = read(tntp_network(rows=(*ROWS[:3], *RING)))
    assert 2 not in network.graph
    assert report.lost_zones == (2,)
    (note,) = (note for note in texts_of(report.notes()) if "1 zone cannot be reached, or cannot be left" in note)
    assert note.endswith(": 2")


def test_gzip_geojson_and_other_header_styles(read, tmp_path):
    usual, _ = read()
    with gzip.open(tmp_path / "net.tntp.gz", "wt") as packed:
        packed.write(tntp_network(end=""))
    features = [
        {"type": "Feature", "properties": {"NODE": node}, "geometry": {"type": "Point", "coordinates": [x, y]}}
        for node, x, y in PLACES
    ]
    for nodes in (
        json.dumps({"type": "FeatureCollection", "features": features}),
        tntp_nodes(PLACES[::-1], "NodeID  Xcoord  Ycoord", ""),
        "\n".join(f"{node} {x} {y}" for node, x, y in PLACES),
        "\ufeff" + tntp_nodes(header="node\tX\tY").replace("\n", "\r\n"),
    ):
        file = tmp_path / ("n.geojson" if nodes.startswith("{") else "n.tntp")
        file.write_text(nodes, encoding="utf-8", newline="")
        other, _ = read_tntp(network=tmp_path / "net.tntp.gz", nodes=file, length_m=1000, time_s=60)
        assert list(other.graph.nodes(data=True)) == list(usual.graph.nodes(data=True))
        assert list(other.graph.edges(data=True)) == list(usual.graph.edges(data=True))


def test_numbers_that_no_link_uses_need_no_coordinates(tmp_path):
    """As in Winnipeg's network, which counts 148 to 159; also in the middle, and of a zone."""
    links = [(1, 2), (2, 1), (2, 5), (5, 2), (5, 7), (7, 5), (7, 1), (1, 7)]
    rows = [(a, b, 1800, 0.9, 1) for a, b in links]
    (tmp_path / "net").write_text(tntp_network(zones=4, nodes=9, first=1, rows=rows))
    places = [(7, 10.0, 50.008), (1, 10.0, 50.0), (5, 10.01, 50.008), (2, 10.01, 50.0)]
    (tmp_path / "node").write_text(tntp_nodes(places))
    roads, report = read_tntp(network=tmp_path / "net", nodes=tmp_path / "node", length_m=1000.0, time_s=60.0)
    assert roads.node_names == [1, 2, 5, 7]
    assert sorted((start, end) for start, end, _ in roads.graph.edges) == sorted(links)
    lonlat = dict(zip(roads.node_names, roads.to_wgs84(roads.node_xy).tolist(), strict=True))
    assert all(lonlat[node] == pytest.approx((lon, lat), abs=1e-7) for node, lon, lat in places)
    assert [roads.graph.nodes[node].get("zone") for node in roads.node_names] == [1, 2, None, None]
    assert any("5 numbers up to <NUMBER OF NODES>" in remark for remark in report.remarks)


def test_a_network_without_coordinates_is_read(tmp_path):
    """Lengths, times and what is connected are those of the file; a length of 0 has no distance to be taken from."""
    rows = [(1, 2, 1800, 0.9, 1), (2, 1, 1800, 0.9, 1), (2, 5, 1800, 0, 1), (5, 2, 1800, 0.7, 2)]
    (tmp_path / "net").write_text(tntp_network(zones=2, nodes=9, first=1, rows=rows))
    roads, report = read_tntp(network=tmp_path / "net", nodes=None, length_m=1000.0, time_s=60.0)
    assert roads.node_names == [1, 2, 5]
    lengths = {(start, end): data["length_m"] for start, end, data in roads.graph.edges(data=True)}
    assert lengths == {(1, 2): 900.0, (2, 1): 900.0, (2, 5): 1.0, (5, 2): 700.0}
    assert any("no file of nodes" in warning for warning in texts_of(report.warnings))
    assert len(np.unique(roads.node_xy, axis=0)) == 3


def test_implausible_units_give_a_warning_if_a_crs_is_stated(read):
    """If none is stated, the coordinates themselves are in doubt, and the network is refused."""
    _, report = read(length_m=1e-3, crs="EPSG:4326")
    assert "check the unit of length" in texts_of(report.notes())[0]
    with pytest.raises(InputError, match="no coordinate system is stated"):
        read(length_m=1e-3)
    _, fine = read()
    assert not any("check" in note for note in texts_of(fine.notes()))


def closed_graph(edges, closed):
    graph = nx.MultiDiGraph()
    graph.add_edges_from((start, end, {"length_m": 1.0}) for start, end in edges)
    nx.set_node_attributes(graph, dict.fromkeys(closed, False), "through")
    return graph


class TestLargestPartForTrips:
    """The part that is kept if routes may not pass every node."""

    def test_towns_joined_only_by_a_centroid_are_separate(self):
        towns = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "b"), ("x", "y"), ("y", "x")]
        joined = [("c", "z"), ("z", "c"), ("z", "x"), ("x", "z")]
        kept, loss = largest_part_for_trips(closed_graph(towns + joined, "z"))
        assert set(kept) == {"a", "b", "c", "z"}
        assert (loss.nodes, loss.links) == (2, 4)

    def test_slip_road_to_a_centroid_is_kept(self):
        edges = [("a", "b"), ("b", "a"), ("b", "off"), ("off", "z"), ("z", "on"), ("on", "a"), ("b", "lost")]
        kept, loss = largest_part_for_trips(closed_graph(edges, "z"))
        assert set(kept) == {"a", "b", "off", "z", "on"}
        assert loss.nodes == 1

    def test_centroids_around_one_crossing(self):
        edges = [(zone, "x") for zone in "abc"] + [("x", zone) for zone in "ab"]
        assert set(largest_part_for_trips(closed_graph(edges, "abc"))[0]) == {"a", "b", "x"}

    def test_network_of_centroids_only_is_empty(self):
        with pytest.raises(InputError, match="the road network is empty"):
            largest_part_for_trips(closed_graph([("a", "b"), ("b", "a")], "ab"))


def refused(read, **more):
    """Return what a network is refused with."""
    with pytest.raises(InputError) as caught:
        read(**more)
    return str(caught.value)


def test_positions_outside_the_area_of_use_are_refused(read):
    message = refused(read, crs="EPSG:3435")
    assert "node.tntp: lines 2, 3, 4, 5, 6: coordinates must be within the area of use of" in message
    assert "unknown" in refused(read, crs="unknown")
    assert "project_to: crs must be projected, in metres" in refused(read, project_to="EPSG:4326")


@pytest.mark.parametrize("name", ["zones", "nodes", "links", "first"])
def test_huge_header_number_allocates_no_memory(read, name):
    resource = pytest.importorskip("resource", reason="this system does not tell a process's memory")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    network = tntp_network(**{name: 10**12})
    if name == "nodes":  # numbers that no link uses are no fault
        assert "999,999,999,995 numbers" in read(network)[1].remarks[0]
    else:
        assert "1,000,000,000,000" in refused(read, network=network)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_a_file_of_one_fault_a_line_names_the_first_twenty(read):
    (message,) = refused(read, network=tntp_network(rows=[(1, 1, 1, 1, 1)] * 1000)).splitlines()
    assert "26, 27 … (1,000 in all): term_node must be another node than init_node, got '1'" in message


def test_faults_of_both_files_are_reported_together(read, tmp_path):
    message = refused(read, network="", nodes="")
    assert "net.tntp: it is empty" in message
    assert "node.tntp: it is empty" in message
    with pytest.raises(InputError, match="no such file"):
        read_tntp(network=tmp_path / "a", nodes=tmp_path / "b", length_m=1000.0, time_s=60.0)


ROOT = Path(os.environ.get("CROWDVEIL_DATA", "no such folder"), "tntp")
needs_data = pytest.mark.skipif(
    not ROOT.is_dir(), reason="CROWDVEIL_DATA names no folder with tntp: real data is not part of the project"
)
MILE, FOOT, MINUTE = 1609.344, 0.3048, 60.0
BERLIN = "+proj=tmerc +lat_0=52.5 +lon_0=13.35 +to_meter=1609.344 +datum=WGS84"
"""A system for places in miles; where on the globe they belong is not published."""
NETWORKS = {
    "SiouxFalls": ("SiouxFalls_net.tntp", "SiouxFalls_node.tntp", {"length_m": MILE, "time_s": 36.0}),
    "SiouxFalls by GeoJSON": (
        "SiouxFalls_net.tntp",
        "SiouxFallsCoordinates.geojson",
        {"length_m": MILE, "time_s": 36.0},
    ),
    "Anaheim": ("Anaheim_net.tntp", "anaheim_nodes.geojson", {"length_m": FOOT, "time_s": MINUTE}),
    "Chicago-Sketch": (
        "ChicagoSketch_net.tntp",
        "ChicagoSketch_node.tntp",
        {"length_m": MILE, "time_s": MINUTE, "crs": "EPSG:26771"},
    ),
    "Berlin-Mitte-Center": (
        "berlin-mitte-center_net.tntp",
        "berlin-mitte-center_node.tntp",
        {"length_m": 1.0, "time_s": 1.0, "crs": BERLIN},
    ),
}
ZONES = {"SiouxFalls": (24, 0), "Anaheim": (38, 38), "Chicago-Sketch": (387, 0)}
"""Zones and closed nodes of the networks in which every node can be reached."""
by_name = pytest.mark.parametrize("name", sorted(NETWORKS))


def files(name):
    network, nodes, units = NETWORKS[name]
    folder = ROOT / name.split(" ")[0]
    return folder / network, folder / nodes, units


@cache
def published(name):
    network, nodes, units = files(name)
    return read_tntp(network=network, nodes=nodes, **units)


def parsed(path):
    """Rows of a network file as plain numbers: every row after the metadata that starts with a digit."""
    text = path.read_text(encoding="utf-8").split("<END OF METADATA>")[1]
    rows = [line.replace(";", " ").split() for line in text.splitlines() if re.match(r"\s*\d", line)]
    return np.array(rows, dtype=np.float64)


def places(path):
    """Map each node number to x and y."""
    if path.suffix == ".geojson":
        features = json.loads(path.read_text(encoding="utf-8"))["features"]
        return {f["properties"]["id"]: f["geometry"]["coordinates"][:2] for f in features}
    rows = [line.replace(";", " ").split() for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    return {int(row[0]): [float(row[1]), float(row[2])] for row in rows if row}


@needs_data
@by_name
def test_published_networks_equal_plain_parsing(name):
    network_file, nodes_file, units = files(name)
    network, report = published(name)
    rows, where = parsed(network_file), places(nodes_file)
    assert (report.link_rows, report.node_rows) == (len(rows), len(where))
    assert report.links + report.loss.links == len(rows)
    assert report.nodes + report.loss.nodes == len(where)
    if name in ZONES:
        zones, closed = ZONES[name]
        assert (report.loss.nodes, report.lost_zones) == (0, ())
        assert sum("zone" in data for _, data in network.graph.nodes(data=True)) == zones
        assert (~network.through).sum() == closed
    given = rows[:, 3] > 0
    kept = {(start, end) for start, end, _ in network.graph.edges}
    here = np.array([(int(a), int(b)) in kept for a, b in rows[:, :2]])
    assert here.sum() == report.links
    lengths = np.array([network.graph.edges[int(a), int(b), 0]["length_m"] for a, b in rows[here & given, :2]])
    assert lengths == pytest.approx(rows[here & given, 3] * units["length_m"], rel=1e-12)
    if given.all():
        total = network.total_length_m + report.loss.length_m
        assert total == pytest.approx(rows[:, 3].sum() * units["length_m"], rel=1e-12)
    timed = here & (rows[:, 4] > 0)
    seconds = [network.links.free_flow_s[network.graph.edges[int(a), int(b), 0]["link"]] for a, b in rows[timed, :2]]
    assert seconds == pytest.approx(rows[timed, 4] * units["time_s"], rel=1e-9)
    capacity = [
        network.graph.edges[int(a), int(b), 0]["lanes"] * network.graph.edges[int(a), int(b), 0]["capacity_vph"]
        for a, b in rows[here, :2]
    ]
    assert capacity == pytest.approx(rows[here, 2], rel=1e-12)


@needs_data
def test_chicago_position_and_lengths_are_plausible():
    network, report = published("Chicago-Sketch")
    assert network.crs.to_epsg() == 32616
    lon, lat = network.to_wgs84(np.median(network.node_xy, axis=0)[None])[0]
    assert (lon, lat) == pytest.approx((-87.8, 41.9), abs=0.2)
    links = network.links
    straight = np.hypot(*(network.node_xy[links.to_node] - network.node_xy[links.from_node]).T)
    assert np.median(links.length_m / straight) == pytest.approx(1, abs=0.05)
    assert any("speed_mps taken as 13.9 m/s in 774 of 2,950 links" in note for note in texts_of(report.notes()))


@needs_data
def test_chicago_in_another_datum_gives_a_warning():
    network_file, nodes_file, units = files("Chicago-Sketch")
    _, report = read_tntp(network=network_file, nodes=nodes_file, **(units | {"crs": "EPSG:3435"}))
    assert "is outside the area of use of 'NAD83 / Illinois East (ftUS)'" in texts_of(report.notes())[0]
