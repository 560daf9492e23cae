"""Roads read from SUMO networks."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from read_roads import read_sumo_net

from simulator.files.errors import InputError
from simulator.files.messages import texts_of
from simulator.roads.sumo_frame import NetFrame

sumolib = pytest.importorskip("sumolib", reason="SUMO networks are read by sumolib")

UTM = "+proj=utm +zone=32 +ellps=WGS84 +datum=WGS84 +units=m +no_defs"
LOCATION = (
    '<location netOffset="-600000.00,-4900000.00" convBoundary="0,0,300,100" origBoundary="0,0,300,100" '
    f'projParameter="{UTM}"/>'
)
NOWHERE = '<location netOffset="0,0" convBoundary="0,0,300,100" origBoundary="0,0,300,100" projParameter="!"/>'
ONLY_BUS = 'allow="bus"'


def lane(edge, index, *, speed=13.89, length=100.0, shape="0,0 100,0", more=""):
    return f'<lane id="{edge}_{index}" index="{index}" speed="{speed}" length="{length}" shape="{shape}" {more}/>'


def edge(name, start, end, *lanes, more=""):
    lines = "\n  ".join(lanes or [lane(name, 0)])
    return f'<edge id="{name}" from="{start}" to="{end}" priority="1" {more}>\n  {lines}\n</edge>'


def junction(name, x=0.0, y=0.0):
    return f'<junction id="{name}" type="priority" x="{x}" y="{y}" incLanes="" intLanes="" shape="0,0 1,1"/>'


JUNCTIONS = (junction("A"), junction("B", 100), junction("C", 200, 50))
EDGES = (
    edge(
        "AB",
        "A",
        "B",
        lane("AB", 0, more=ONLY_BUS),
        lane("AB", 1, speed=10, shape="0,-2 50,8 100,-2"),
        lane("AB", 2, speed=12, shape="0,2 50,12 100,2"),
        more='type="highway.primary"',
    ),
    edge("BA", "B", "A"),
    edge("BC", "B", "C", lane("BC", 0, length=130.5)),
    edge("bus", "C", "B", lane("bus", 0, more=ONLY_BUS)),
    '<edge id=":B_0" function="internal"><lane id=":B_0_0" index="0" speed="5" length="3" shape="0,0 1,1"/></edge>',
)
CONNECTIONS = (
    '<connection from="AB" to="BC" fromLane="1" toLane="0" dir="s" state="M"/>',
    '<connection from="AB" to="BA" fromLane="0" toLane="0" dir="t" state="M"/>',
)


def net(*parts, location=LOCATION):
    body = "\n".join((location, *(parts or (*EDGES, *JUNCTIONS, *CONNECTIONS))))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<net version="1.20">\n{body}\n</net>\n'


@pytest.fixture
def write(tmp_path):
    def _write(text, name="small.net.xml"):
        path = tmp_path / name
        content = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return _write


def links_by_sumo_edge(roads):
    return {data["sumo_edge"]: data["link"] for *_, data in roads.graph.edges(data=True)}


def faults_of(path, **more):
    with pytest.raises(InputError) as caught:
        read_sumo_net(path, **more)
    return caught.value.faults


@pytest.mark.parametrize("name", ["small.net.xml", "small.net.xml.gz"])
def test_edges_become_links_in_the_projection_of_the_file(write, name):
    path = write(net(), name)
    roads, _ = read_sumo_net(path)
    assert roads.crs.to_epsg() == 32632
    assert roads.node_names == ["A", "B", "C"]
    np.testing.assert_allclose(
        roads.node_xy, [[600_000, 4_900_000], [600_100, 4_900_000], [600_200, 4_900_050]], atol=1e-6
    )
    by_edge = links_by_sumo_edge(roads)
    assert sorted(by_edge) == ["AB", "BA", "BC"]
    ab = by_edge["AB"]
    assert (roads.links.length_m[ab], roads.links.lanes[ab], roads.links.speed_mps[ab]) == (100.0, 2, 12.0)
    assert roads.links.length_m[by_edge["BC"]] == 130.5
    data = roads.graph.edges["A", "B", "AB"]
    assert (data["class"], data["sumo_edge"], data["link"]) == ("highway.primary", "AB", ab)
    assert "class" not in roads.graph.edges["B", "A", "BA"]
    middle = roads.locate([ab], 0.5)
    np.testing.assert_allclose(middle, [[600_050, 4_900_008]], atol=1e-6)  # bent, as the middle lane
    assert NetFrame.from_file(path).to_city([[5.0, 7.0]]).tolist() == [[600_005.0, 4_900_007.0]]


def test_another_vehicle_class_uses_other_lanes(write):
    roads, report = read_sumo_net(write(net()), vehicle_class="bus")
    by_edge = links_by_sumo_edge(roads)
    assert sorted(by_edge) == ["AB", "BA", "BC", "bus"]
    assert roads.links.lanes[by_edge["AB"]] == 3
    assert not any("which have no lane" in note for note in texts_of(report.notes()))


def test_several_classes_have_the_lanes_of_all_and_their_own_movements(write):
    to_bus = '<connection from="BC" to="bus" fromLane="0" toLane="0" dir="t" state="M"/>'
    path = write(net(*EDGES, *JUNCTIONS, *CONNECTIONS, to_bus))
    roads, report = read_sumo_net(path, vehicle_class=["passenger", "bus"])
    by_edge = links_by_sumo_edge(roads)
    assert sorted(by_edge) == ["AB", "BA", "BC", "bus"]
    assert roads.links.lanes[by_edge["AB"]] == 3
    rows = roads.movements[roads.movements["allowed"]].set_index(["from_link", "to_link"])
    assert rows.loc[(by_edge["AB"], by_edge["BC"]), ["from_lane", "classes"]].tolist() == [1, None]
    assert rows.loc[(by_edge["AB"], by_edge["BA"]), ["from_lane", "classes"]].tolist() == [0, "bus"]
    closed = {tuple(turn) for turn in roads.banned_turns.tolist()}
    assert closed == {tuple(turn) for turn in roads.banned_to(["bus"]).tolist()}
    only_bus = {(by_edge["AB"], by_edge["BA"]), (by_edge["BC"], by_edge["bus"])}
    assert {tuple(turn) for turn in roads.banned_to(["bus", "passenger"]).tolist()} == closed | only_bus
    assert not any("which have no lane" in note for note in texts_of(report.notes()))


def test_unsupported_features_are_noted(write):
    """Of AB-BC, AB-BA and BA-AB only AB-BC is connected for cars; no car returns from the end of BC."""
    _, report = read_sumo_net(write(net()))
    notes = "\n".join(texts_of(report.notes()))
    assert "left out 1 of 4 edges, which have no lane for vehicle class 'passenger'" in notes
    assert "the file does not connect 2 of 3 turns from link to link" in notes
    assert "kept what is outside the largest part in which every node can be reached" in notes
    assert "1 of 3 links, 0.1 km" in notes


def test_strong_component_is_kept_on_request(write):
    roads, report = read_sumo_net(write(net()), keep="strong")
    assert sorted(links_by_sumo_edge(roads)) == ["AB", "BA"]
    assert "kept the 2 nodes and 2 links" in texts_of(report.notes())[-1]


def test_roads_without_return_path_are_kept_by_default(write):
    path = write(net(edge("AB", "A", "B"), *JUNCTIONS))
    roads, report = read_sumo_net(path)
    assert len(roads.links) == report.loss.links == 1
    assert "no two nodes are connected in both directions" in faults_of(path, keep="strong")[0]


def test_network_without_projection_is_placed_at_the_anchor(write):
    path = write(net(*EDGES, *JUNCTIONS, location=NOWHERE))
    roads, report = read_sumo_net(path, anchor=(11.3, 44.5))
    np.testing.assert_allclose(roads.to_wgs84(roads.node_xy[:1]), [[11.3, 44.5]], atol=1e-9)
    np.testing.assert_allclose(roads.node_xy[1], [100.0, 0.0])
    assert "it states no location; it was taken as transverse Mercator about 11.3, 44.5" in texts_of(report.notes())[1]
    nowhere, _ = read_sumo_net(path)
    np.testing.assert_allclose(nowhere.to_wgs84(nowhere.node_xy[:1]), [[0.0, 0.0]], atol=1e-9)


def test_net_frame_refuses_projections_not_in_metres():
    for projection, message in (
        ("+proj=longlat +datum=WGS84", "must be projected, in metres"),
        ("+proj=utm +zone=99", "not a coordinate system pyproj knows: '+proj=utm +zone=99'"),
        ("rubbish", "not a coordinate system pyproj knows: 'rubbish'"),
    ):
        with pytest.raises(InputError, match="projParameter of location") as caught:
            NetFrame.from_location({"projParameter": projection, "netOffset": "0,0"})
        assert message in caught.value.faults[0]
    for offset in ("0", "a,b", "0,inf", ""):
        with pytest.raises(InputError, match="netOffset of location must be two numbers"):
            NetFrame.from_location({"projParameter": UTM, "netOffset": offset})
    with pytest.raises(InputError, match="anchor must be a longitude"):
        NetFrame.from_location({"projParameter": "!"}, anchor=(0.0, 90.0))


def test_parallel_edges_are_kept_and_loops_dropped(write):
    path = write(net(*EDGES, edge("AB2", "A", "B"), edge("AA", "A", "A"), *JUNCTIONS))
    roads, report = read_sumo_net(path)
    assert roads.graph.number_of_edges("A", "B") == 2
    assert any(note.endswith("left out 1 edge from a junction to itself: AA") for note in texts_of(report.notes()))


def test_truncated_uncompressed_or_missing_file_is_refused(write, tmp_path):
    whole = gzip.compress(net().encode())
    assert "cannot be read" in faults_of(write(whole[:-30], "cut.net.xml").rename(tmp_path / "cut.net.xml.gz"))[0]
    assert "cannot be read" in faults_of(write(net(), "plain.net.xml").rename(tmp_path / "plain.net.xml.gz"))[0]
    assert "no such file" in faults_of(tmp_path / "none.net.xml")[0]
    assert "cannot be read" in faults_of(tmp_path)[0]


@pytest.mark.parametrize(("written", "left"), [('lefthand="true"', True), ('lefthand="0"', False), ("", False)])
def test_the_side_that_the_network_states_is_read(write, written, left):
    roads, _ = read_sumo_net(write(net().replace("<net ", f"<net {written} ")))
    assert roads.side.left is left


def test_an_unknown_vehicle_class_is_refused(write):
    (fault,) = faults_of(write(net()), vehicle_class="hovercraft")
    assert fault.startswith("vehicle_class must be one of SUMO's")


def chain(length, *, cut=0.0):
    """A road of two edges of 100 m between junctions, whose shapes end `cut` metres before them."""
    shapes = {"AB": (cut, 100 - cut), "BC": (100 + cut, 200 - cut)}
    lanes = {name: lane(name, 0, length=length, shape=f"{a},0 {b},0") for name, (a, b) in shapes.items()}
    edges = [edge(name, *name, lanes[name]) for name in shapes]
    return net(*edges, junction("A"), junction("B", 100), junction("C", 200))


@pytest.mark.parametrize(
    ("length", "cut", "warned"),
    [(70, 15, False), (10_000, 0, True), (30.48, 0, True)],
)
def test_lengths_unlike_their_shapes_give_a_warning(write, length, cut, warned):
    found = texts_of(read_sumo_net(write(chain(length, cut=cut)))[1].warnings)
    assert all("the shape of a link is, in the median" in message for message in found)
    assert bool(found) == warned


REAL = ["acosta/acosta_buslanes", "pasubio/pasubio_buslanes", "cologne8/cologne8"]


@pytest.mark.parametrize("name", REAL)
def test_real_networks_equal_sumolib(name):
    path = Path(os.environ.get("CROWDVEIL_DATA", "no such folder"), "sumo", f"{name}.net.xml.gz")
    if not path.is_file():
        pytest.skip(f"set CROWDVEIL_DATA to a folder with sumo/{name}.net.xml.gz to read it")
    theirs = sumolib.net.readNet(str(path))
    open_to_cars = [edge for edge in theirs.getEdges() if edge.allows("passenger")]
    roads, report = read_sumo_net(path)
    ends = {node.getID() for edge in open_to_cars for node in (edge.getFromNode(), edge.getToNode())}
    assert set(roads.node_names) == ends
    assert set(links_by_sumo_edge(roads)) == {edge.getID() for edge in open_to_cars}
    assert roads.total_length_m == pytest.approx(sum(edge.getLength() for edge in open_to_cars), rel=1e-12)
    assert report.link_rows == len(theirs.getEdges())
    assert report.warnings == ()
    by_edge = links_by_sumo_edge(roads)
    for ours in open_to_cars:
        link = by_edge[ours.getID()]
        assert roads.links.lanes[link] == sum(lane.allows("passenger") for lane in ours.getLanes())
        assert roads.node_names[roads.links.to_node[link]] == ours.getToNode().getID()
        at_start, at_end = roads.locate([link, link], [0.0, 1.0])
        for place, point in ((at_start, ours.getShape()[0]), (at_end, ours.getShape()[-1])):
            lon, lat = theirs.convertXY2LonLat(*point)
            np.testing.assert_allclose(roads.to_wgs84([place]), [[lon, lat]], atol=1e-7)
