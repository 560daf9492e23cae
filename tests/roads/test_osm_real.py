"""Real extracts of OpenStreetMap, compared with OSMnx."""

from __future__ import annotations

import os
from itertools import groupby
from pathlib import Path

import networkx as nx
import pytest
from read_roads import read_osm

from simulator.files.messages import counted, texts_of
from simulator.formats.osm_tags import open_to_cars

ox = pytest.importorskip("osmnx", reason="OpenStreetMap is read by osmium and osmnx")
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


def test_helsinki_speeds_and_lanes_equal_its_tags():
    """Nearly all of its streets have a limit of 30 or 40 km/h."""
    roads, report = read_osm(real("Helsinki.osm.pbf"))
    tagged = [data for *_, data in roads.graph.edges(data=True) if data["class"] == "secondary"]
    assert {round(data["speed_mps"] * 3.6) for data in tagged} <= set(range(30, 41))
    assert 1 <= roads.links.lanes.min() <= roads.links.lanes.max() <= 4
    text = "\n".join(texts_of(report.notes()))
    assert f"capacity_vph taken by class of road in {len(roads.links)} of {len(roads.links)} links" in text
