"""SUMO's plain XML, built into a network by the real netconvert."""

import os
import subprocess
import sys
from pathlib import Path

import networkx as nx
import pytest
import shapely

from simulator.formats.roads.sumo_plain import write_sumo_plain
from simulator.roads import RoadNetwork, build_grid

sumo = pytest.importorskip("sumo", reason="netconvert comes with the extra 'sumo'")


@pytest.fixture
def convert(tmp_path, monkeypatch):
    """Write a network, run netconvert on it, and read the result by sumolib."""
    monkeypatch.setenv("SUMO_HOME", sumo.SUMO_HOME)
    sumolib = pytest.importorskip("sumolib", reason="reading a SUMO network needs sumolib")

    def call(network):
        write_sumo_plain(network, tmp_path / "plain")
        netconvert = Path(sumo.SUMO_HOME, "bin", "netconvert.exe" if sys.platform == "win32" else "netconvert")
        done = subprocess.run(
            [netconvert, "-c", "roads.netccfg"],
            cwd=tmp_path / "plain",
            env=dict(os.environ, SUMO_HOME=sumo.SUMO_HOME),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "Error" not in done.stderr
        return sumolib.net.readNet(str(tmp_path / "plain" / "roads.net.xml"))

    return call


def bent():
    """Two nodes, two parallel links of which one is bent, and one link back; a class name with a space."""
    graph = nx.MultiDiGraph(crs="EPSG:32618")
    graph.add_node("a b", x=583_960.0, y=4_507_523.0)
    graph.add_node("ä", x=584_260.0, y=4_507_523.0)
    road = {"lanes": 2, "capacity_vph": 1700.5, "class": "high street"}
    bend = shapely.LineString([(583_960, 4_507_523), (584_100, 4_507_600), (584_260, 4_507_523)])
    graph.add_edge("a b", "ä", "x", length_m=310.0, speed_mps=13.5, **road)
    graph.add_edge("a b", "ä", "y", length_m=400.0, speed_mps=8.25, geometry=bend, **road)
    graph.add_edge("ä", "a b", 0, length_m=305.0, speed_mps=22.0, **road)
    return RoadNetwork.from_graph(graph)


GRID = {"rows": 3, "columns": 4, "spacing_x_m": 200, "spacing_y_m": 150, "speed_mps": 13.9, "lanes": 2}


@pytest.mark.parametrize("make", [pytest.param(lambda: build_grid(**GRID), id="grid"), pytest.param(bent, id="bent")])
def test_every_link_becomes_an_edge(convert, make):
    network = make()
    net = convert(network)
    edges = {int(edge.getID()): edge for edge in net.getEdges()}
    assert sorted(edges) == list(range(len(network.links)))
    assert len(net.getNodes()) == len(network.node_names)
    for link, edge in edges.items():
        assert edge.getLength() == pytest.approx(network.links.length_m[link], abs=0.01)
        assert edge.getSpeed() == pytest.approx(network.links.speed_mps[link], abs=0.01)
        assert edge.getLaneNumber() == network.links.lanes[link]
        assert float(edge.getParam("capacity_vph")) == network.links.capacity_vph[link]
    ends = {(edge.getFromNode().getID(), edge.getToNode().getID()) for edge in edges.values()}
    assert len(ends) == len({(start, end) for start, end, _ in network.graph.edges})


def test_geographic_positions_are_preserved(convert):
    network = bent()
    net = convert(network)
    for node in net.getNodes():
        lon, lat = net.convertXY2LonLat(*node.getCoord())
        assert abs(network.to_wgs84(network.node_xy) - (lon, lat)).max(axis=1).min() < 1e-6


def test_bent_geometry_is_preserved(convert):
    edges = convert(bent()).getEdges()
    assert sorted(len(edge.getShape()) for edge in edges) == [2, 2, 3]
