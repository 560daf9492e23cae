"""Streets read from OpenStreetMap's formats: a small town, by hand."""

from __future__ import annotations

import bz2
import gzip
import itertools
import os
from itertools import groupby
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from osm_town import LINKS, NODES, WAYS, write_pbf, xml
from read_roads import read_osm

import crowdveil as cv
from simulator.experiment.assembly.roads import build_roads
from simulator.files.errors import InputError
from simulator.files.messages import counted, texts_of
from simulator.formats.osm_tags import open_to_cars

ox = pytest.importorskip("osmnx", reason="OpenStreetMap is read by osmium and osmnx")
pytest.importorskip("osmium", reason="OpenStreetMap is read by osmium and osmnx")


@pytest.fixture
def write(tmp_path):
    """Write a town in the format given by the suffix."""

    def _write(name="town.osm", **town):
        path = tmp_path / name
        if name.endswith(".pbf"):
            return write_pbf(path, **town)
        text = xml(**town).encode()
        packed = gzip.compress(text) if name.endswith(".gz") else bz2.compress(text) if name.endswith(".bz2") else text
        path.write_bytes(packed)
        return path

    return _write


def edge(roads, start, end, road_class=None):
    found = [
        data
        for data in roads.graph.get_edge_data(start, end).values()
        if road_class is None or data["class"] == road_class
    ]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("name", ["town.osm", "town.osm.gz", "town.osm.bz2", "town.osm.pbf"])
def test_a_town_in_every_format(write, name):
    roads, report = read_osm(write(name))
    assert sorted(roads.node_names) == [1, 2, 3, 6]
    assert roads.crs.to_epsg() == 32635
    counted = {}
    for start, end in roads.graph.edges():
        counted[str(start), str(end)] = counted.get((str(start), str(end)), 0) + 1
    assert counted == LINKS
    for start, end in ((1, 2), (2, 1)):
        data = edge(roads, start, end, "primary")
        assert (data["lanes"], data["capacity_vph"], data["osm_ways"]) == (2, 1500.0, "10")
        assert data["speed_mps"] == pytest.approx(60 / 3.6)
    assert edge(roads, 3, 6)["speed_mps"] == pytest.approx(40 / 3.6)
    assert edge(roads, 6, 3)["speed_mps"] == pytest.approx(50 / 3.6)
    assert edge(roads, 1, 3)["speed_mps"] == pytest.approx(30 * 1609.344 / 3600)
    assert edge(roads, 2, 1, "living_street")["osm_ways"] == "15"
    notes = "\n".join(texts_of(report.notes()))
    assert "links lead from junction to junction; 3 nodes between them are points of their geometry" in notes
    assert (
        "speed_mps taken by class of road in 2 of 8 links: living_street 15 km/h (1), residential 30 km/h (1)" in notes
    )
    assert "lanes taken by class of road in 4 of 8 links: tertiary 1 (2)" in notes
    assert "capacity_vph taken by class of road in 8 of 8 links: residential 600 (3)" in notes
    lon_lat = roads.to_wgs84(roads.node_xy)
    np.testing.assert_allclose(lon_lat, [NODES[node] for node in roads.node_names], atol=1e-7)


def roads_in(graph):
    """Return the roads that a graph becomes in a scenario, and the notes on them."""
    return build_roads(cv.scenarios.load("tiny").with_({"roads": cv.roads_of(graph)}))


@pytest.mark.parametrize("simplify", [True, False])
def test_graph_of_osmnx_is_the_same_town(write, simplify):
    """OSMnx keeps every way: reading drops those that are no streets."""
    graph = ox.graph_from_xml(write(), simplify=simplify, retain_all=True)
    if simplify:
        graph.remove_edges_from([e for e in graph.edges(keys=True) if graph.edges[e]["osmid"] in (14, 16)])
    ours, _ = read_osm(write())
    theirs, notes = roads_in(graph)
    assert theirs.total_length_m == pytest.approx(ours.total_length_m, rel=1e-9)
    assert edge(theirs, 1, 2)["lanes"] == 2
    if not simplify:
        assert sorted(theirs.graph.edges()) == sorted(ours.graph.edges())
        assert "left out 4 edges that are not open to cars" in texts_of(notes)[0]
        np.testing.assert_allclose(np.sort(theirs.links.capacity_vph), np.sort(ours.links.capacity_vph))


def test_projected_graph_keeps_its_crs(write):
    graph = ox.project_graph(ox.graph_from_xml(write(), simplify=False), to_crs="EPSG:3067")
    roads, _ = roads_in(graph)
    assert roads.crs.to_epsg() == 3067
    ours, _ = read_osm(write())
    np.testing.assert_allclose(
        np.sort(roads.to_wgs84(roads.node_xy), axis=0), np.sort(ours.to_wgs84(ours.node_xy), axis=0), atol=1e-6
    )


def test_a_crs_may_be_chosen_but_must_be_in_metres(write):
    roads, _ = read_osm(write(), crs="EPSG:3067")
    assert roads.crs.to_epsg() == 3067
    with pytest.raises(InputError, match="crs must be projected, in metres"):
        read_osm(write(), crs="EPSG:4326")


def test_loop_is_split_in_two_at_one_node_for_both_directions(write):
    """A cul-de-sac: from 6 through 20, 21, 22 and back to 6."""
    nodes = NODES | {20: (24.956, 60.175), 21: (24.957, 60.176), 22: (24.956, 60.177)}
    ways = WAYS | {20: ((6, 20, 21, 22, 6), {"highway": "residential"})}
    roads, report = read_osm(write(nodes=nodes, ways=ways))
    middle = next(iter(set(roads.node_names) - {1, 2, 3, 6}))
    assert middle in {20, 21, 22}
    assert roads.graph.number_of_edges(6, middle) == roads.graph.number_of_edges(middle, 6) == 2
    assert "cut 2 links from a junction to itself in two" in "\n".join(texts_of(report.notes()))
    around = [nodes[node] for node in (6, 20, 21, 22, 6)]
    on_globe = sum(ox.distance.great_circle(a[1], a[0], b[1], b[0]) for a, b in itertools.pairwise(around))
    both = sum(data["length_m"] for start, end, data in roads.graph.edges(data=True) if middle in (start, end))
    assert both == pytest.approx(2 * on_globe, rel=1e-6)


def test_a_ring_road_without_junctions_is_kept(write):
    ways = {1: ((1, 2, 3, 4, 1), {"highway": "residential", "oneway": "yes"})}
    roads, _ = read_osm(write(ways=ways))
    assert sorted(roads.graph.edges()) == [(1, 2), (2, 3), (3, 4), (4, 1)]


def test_way_is_split_where_a_node_is_missing(write):
    ways = WAYS | {30: ((2, 999, 3, 6), {"highway": "tertiary"})}
    roads, report = read_osm(write(ways=ways))
    assert "streets refer to 1 node that the file does not contain, and are cut there" in "\n".join(
        texts_of(report.notes())
    )
    assert roads.graph.number_of_edges(3, 6) == 2  # this stretch occurs in two ways
    assert roads.graph.number_of_edges(2, 3) == 1


def test_nodes_at_one_position_are_merged(write):
    """Zero metres between 2 and 20 and between 20 and 21: without them 2-3 would be a gap."""
    nodes = NODES | {20: NODES[2], 21: NODES[2]}
    ways = WAYS | {11: ((2, 20, 21, 3), {"highway": "residential", "oneway": "yes"})}
    roads, report = read_osm(write(nodes=nodes, ways=ways))
    plain, _ = read_osm(write("plain.osm"))
    assert sorted(roads.graph.edges()) == sorted(plain.graph.edges())
    assert roads.total_length_m == pytest.approx(plain.total_length_m)
    assert "merged 2 nodes with the neighbour along a way at the same place" in "\n".join(texts_of(report.notes()))


def test_streets_without_return_path_are_dropped_and_counted(write):
    nodes = NODES | {40: (24.96, 60.18)}
    ways = WAYS | {40: ((6, 40), {"highway": "residential", "oneway": "yes"})}
    roads, report = read_osm(write(nodes=nodes, ways=ways))
    assert 40 not in roads.node_names
    assert (report.loss.nodes, report.loss.links) == (1, 1)
    assert "left out 0.6 km of streets" in "\n".join(texts_of(report.notes()))


def test_deleted_elements_and_reversible_ways(write):
    """JOSM marks by `action`, and leaves `visible`."""
    deleted = [
        '<node id="70" lat="0" lon="0" action="delete"/>',
        "<way id='71' action='delete' visible='true'><nd ref='6'/><nd ref='3'/><tag k='highway' v='road'/></way>",
        '<way id="10" visible="false"><nd ref="1"/></way>',
    ]
    ways = WAYS | {13: ((3, 6), {"highway": "tertiary", "oneway": "reversible"})}
    roads, report = read_osm(write(ways=ways, more=deleted))
    assert roads.graph.number_of_edges(6, 3) == 1
    assert "1 way whose direction changes with the hour taken as open in both directions" in "\n".join(
        texts_of(report.notes())
    )


def test_reading_changes_no_settings_and_uses_no_network(write, monkeypatch):
    def refuse(*_args, **_more):
        raise AssertionError("reading a file went to the network")

    monkeypatch.setattr("socket.socket.connect", refuse)
    before = {name: repr(value) for name, value in vars(ox.settings).items()}
    read_osm(write())
    read_osm(write("town.osm.pbf"))
    assert {name: repr(value) for name, value in vars(ox.settings).items()} == before


def test_ways_before_their_nodes_are_read(tmp_path):
    lines = xml().splitlines()
    nodes = [line for line in lines if line.startswith("<node")]
    ways = [line for line in lines if line.startswith("<way")]
    (tmp_path / "town.osm").write_text("\n".join([*lines[:2], *ways, *nodes, "</osm>"]), encoding="utf-8")
    assert len(read_osm(tmp_path / "town.osm")[0].links) == 8


def faults_of(path):
    with pytest.raises(InputError) as caught:
        read_osm(path)
    return caught.value.faults


def test_many_faults_are_reported_up_to_a_limit(write):
    faults = faults_of(write(nodes=NODES | {1: (24.9, 99.0), 2: (199.0, 60.0)}))
    assert ["node 1:" in faults[0], "node 2:" in faults[1], len(faults)] == [True, True, 2]
    crowd = dict.fromkeys(range(1000), (24.9, 99.0))
    faults = faults_of(write(nodes=crowd, ways={1: (tuple(crowd), {"highway": "residential"})}))
    assert len(faults) == 21
    assert "reading stopped here" in faults[-1]


def test_files_that_contradict_their_suffix_are_refused(write, tmp_path):
    assert "the name must end in one of .osm, .osm.bz2" in faults_of(write("town.xml"))[0]
    assert "no such file" in faults_of(tmp_path / "none.osm")[0]
    assert "no such file" in faults_of(tmp_path / "none.osm.pbf")[0]
    for suffix in (".gz", ".bz2"):
        packed = write(f"town.osm{suffix}").read_bytes()
        for name, content in ((f"plain.osm{suffix}", xml().encode()), (f"cut.osm{suffix}", packed[:-20])):
            (tmp_path / name).write_bytes(content)
            assert "cannot be read" in faults_of(tmp_path / name)[0]
    (tmp_path / "folder.osm").mkdir()
    assert "cannot be read" in faults_of(tmp_path / "folder.osm")[0]
    assert "cannot be read as OpenStreetMap's PBF" in faults_of(write().rename(tmp_path / "xml.osm.pbf"))[0]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_several_streams_in_a_file_and_packed_files_of_any_name_are_read(tmp_path, pack):
    """Programs that compress in parallel write many streams."""
    whole = xml().encode()
    (tmp_path / "town.osm").write_bytes(pack(whole[:300]) + pack(whole[300:]))
    assert len(read_osm(tmp_path / "town.osm")[0].links) == 8


osmium = pytest.importorskip("osmium", reason="OpenStreetMap is read by osmium and osmnx")

STREETS = {
    f"{name}{link}" for name in ("motorway", "trunk", "primary", "secondary", "tertiary") for link in ("", "_link")
} | {"unclassified", "residential", "living_street", "road"}


def real(name):
    path = Path(os.environ.get("CROWDVEIL_DATA", "no such folder"), "osm_extracts", name)
    if not path.is_file():
        pytest.skip(f"set CROWDVEIL_DATA to a folder with osm_extracts/{name} to read it")
    return path


def strong_and_simple(graph):
    """The largest strongly connected part, merged by OSMnx, with only lengths on its edges."""
    plain = nx.MultiDiGraph(crs="epsg:4326")
    plain.add_nodes_from((node, {"x": data["x"], "y": data["y"]}) for node, data in graph.nodes(data=True))
    plain.add_edges_from((start, end, {"length": data["length"]}) for start, end, data in graph.edges(data=True))
    return ox.simplify_graph(ox.truncate.largest_component(plain, strongly=True), remove_rings=False)


def assert_same(roads, report, theirs):
    """Nodes and links agree except for loops, which are split in two; lengths to the millimetre of rounding."""
    loops = nx.number_of_selfloops(theirs)
    cut = f"cut {counted(loops, 'link')} from a junction to itself in two"
    assert [note.endswith(cut) for note in texts_of(report.notes()) if "from a junction to itself" in note] == [
        True
    ] * bool(loops)
    added = set(roads.node_names) - set(theirs)
    assert set(theirs) <= set(roads.node_names)
    assert len(added) <= loops
    assert len(roads.links) == theirs.number_of_edges() + loops
    total = sum(length for *_, length in theirs.edges(data="length"))
    assert roads.total_length_m == pytest.approx(total, rel=1e-6)


@pytest.mark.parametrize("name", ["West-Oakland.osm.bz2", pytest.param("Helsinki.osm.pbf", marks=pytest.mark.slow)])
def test_streets_equal_the_network_of_osmnx(name, tmp_path):
    """OSMnx reads XML only, and none that lacks nodes: ways are cut there before."""
    path = real(name)
    known = {element.id for element in osmium.FileProcessor(str(path), osmium.osm.NODE)}
    with osmium.SimpleWriter(str(tmp_path / "map.osm")) as writer:
        for element in osmium.FileProcessor(str(path), osmium.osm.NODE | osmium.osm.WAY):
            if element.is_node():
                writer.add_node(element)
            elif open_to_cars(dict(element.tags)):
                pieces = groupby((node.ref for node in element.nodes), known.__contains__)
                for number, nodes in enumerate([list(nodes) for within, nodes in pieces if within]):
                    writer.add_way(element.replace(id=element.id + number * 10**12, nodes=nodes))
    theirs = ox.graph_from_xml(tmp_path / "map.osm", simplify=False, retain_all=True)
    roads, report = read_osm(path)
    assert_same(roads, report, strong_and_simple(theirs))
    assert {data["class"] for *_, data in roads.graph.edges(data=True)} <= STREETS
    everything = theirs.number_of_edges()
    simple = strong_and_simple(theirs)
    points = len(ox.truncate.largest_component(theirs, strongly=True)) - len(simple)
    assert f"junction; {points:,} nodes between them are points of their geometry" in "\n".join(
        texts_of(report.notes())
    )
    assert report.loss.links == everything - ox.truncate.largest_component(theirs, strongly=True).number_of_edges()
