"""Real extracts of OpenStreetMap, compared with OSMnx and pyrosm."""

from __future__ import annotations

import os
from pathlib import Path

import networkx as nx
import pytest

from simulator.files.messages import counted, texts_of
from simulator.roads.readers.osm import read_osm

ox = pytest.importorskip("osmnx", reason="OpenStreetMap is read by osmnx and pyrosm")
pyrosm = pytest.importorskip("pyrosm", reason="OpenStreetMap is read by osmnx and pyrosm")

STREETS = {
    f"{name}{link}" for name in ("motorway", "trunk", "primary", "secondary", "tertiary") for link in ("", "_link")
} | {"unclassified", "residential", "living_street", "road"}
BUNDLED = Path(pyrosm.__file__).parent / "data" / "test.osm.pbf"


def real(name):
    path = Path(os.environ.get("CROWDVEIL_DATA", "no such folder"), "osm_extracts", name)
    if not path.is_file():
        pytest.skip(f"set CROWDVEIL_DATA to a folder with osm_extracts/{name} to read it")
    return path


def bundled():
    if not BUNDLED.is_file():
        pytest.skip("this pyrosm has no data/test.osm.pbf")
    return BUNDLED


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


def test_west_oakland_equals_the_network_of_osmnx():
    path = real("West-Oakland.osm.bz2")
    theirs = ox.graph_from_xml(path, simplify=False, retain_all=True)
    no_street = [
        edge
        for edge in theirs.edges(keys=True)
        if theirs.edges[edge].get("highway") not in STREETS or theirs.edges[edge].get("access") in {"no", "private"}
    ]
    theirs.remove_edges_from(no_street)
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


@pytest.mark.parametrize("which", ["Helsinki.osm.pbf", "bundled"])
def test_pbf_equals_the_network_of_pyrosm(which):
    path = bundled() if which == "bundled" else real(which)
    osm = pyrosm.OSM(str(path))
    nodes, edges = osm.get_network(network_type="driving", nodes=True)
    theirs = osm.to_graph(nodes, edges, graph_type="networkx", simplify=False, retain_all=True)
    kinds = {data["highway"] for *_, data in theirs.edges(data=True)}
    theirs.remove_edges_from([edge for edge in theirs.edges(keys=True) if theirs.edges[edge]["highway"] not in STREETS])
    roads, report = read_osm(path)
    assert_same(roads, report, strong_and_simple(theirs))
    assert {data["class"] for *_, data in roads.graph.edges(data=True)} <= kinds & STREETS


def test_helsinki_speeds_and_lanes_equal_its_tags():
    """Nearly all of its streets have a limit of 30 or 40 km/h."""
    roads, report = read_osm(real("Helsinki.osm.pbf"))
    tagged = [data for *_, data in roads.graph.edges(data=True) if data["class"] == "secondary"]
    assert {round(data["speed_mps"] * 3.6) for data in tagged} <= set(range(30, 41))
    assert 1 <= roads.links.lanes.min() <= roads.links.lanes.max() <= 4
    text = "\n".join(texts_of(report.notes()))
    assert f"capacity_vph taken by class of road in {len(roads.links)} of {len(roads.links)} links" in text
