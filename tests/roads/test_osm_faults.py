"""OpenStreetMap files that cannot be used."""

from __future__ import annotations

import bz2
import gzip
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from osm_town import NODES, WAYS, node_line, way_lines, write_pbf, xml
from read_roads import read_osm

from simulator.files.errors import InputError

ox = pytest.importorskip("osmnx", reason="OpenStreetMap is read by osmium and osmnx")
pytest.importorskip("osmium", reason="OpenStreetMap is read by osmium and osmnx")


@pytest.fixture
def write(tmp_path):
    def _write(content, name="town.osm"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return _write


def faults_of(path, **more):
    with pytest.raises(InputError) as caught:
        read_osm(path, **more)
    return caught.value.faults


def town(**changed):
    """The town with some nodes moved; node 1 is in line 3."""
    return xml(nodes=NODES | {int(node.removeprefix("n")): place for node, place in changed.items()})


XML = "cannot be read as OpenStreetMap's XML"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "it is empty", id="empty"),
        pytest.param("PK\x03\x04", f"{XML}: XML parsing error at line 1", id="zip"),
        pytest.param("<gpx/>", f"{XML}: Unknown top-level element: gpx", id="gpx"),
        pytest.param('<osmChange version="0.6"/>', "must be a map, and is a file of changes", id="changes"),
        pytest.param(xml()[:-30], f"{XML}: XML parsing error at line 18", id="cut"),
        pytest.param('<!DOCTYPE osm [<!ENTITY a "b">]><osm/>', f"{XML}: XML entities are not supported", id="entity"),
        pytest.param('<?xml version="1.0" encoding="no"?><osm/>', "unknown encoding", id="encoding"),
        pytest.param("<osm/>", f"{XML}: Can not read file without version", id="no version"),
        pytest.param(
            town(n1=(24.94, 91.0)),
            "node 1: lon must be degrees from -180 to 180 and lat from -90 to 90, got 24.94 and 91 (are lat and lon",
            id="lat",
        ),
        pytest.param(town(n1=(181.0, 60.0)), "node 1: lon must be degrees from -180 to 180", id="lon"),
        pytest.param(town(n2=(float("nan"), 60.0)), f"{XML}: wrong format for coordinate: 'nan'", id="nan"),
        pytest.param(xml(more=[node_line(1, 24.94, 60.17)]), "node 1 occurs twice", id="node twice"),
        pytest.param(xml(more=['<way id="10"/>']), "way 10 occurs twice", id="way twice"),
        pytest.param(xml(more=['<node id="x" lat="1" lon="1"/>']), f"{XML}: illegal id: 'x'", id="id"),
        pytest.param(
            xml(more=['<node id="77"/>', way_lines(78, (1, 77), WAYS[11][1])]), "node 77: lon must be", id="nowhere"
        ),
        pytest.param(xml(more=['<way id="77"><nd ref="a"/></way>']), f"{XML}: illegal id: 'a'", id="ref"),
        pytest.param('<osm version="0.6"/>', "the road network is empty: it holds no street", id="nothing"),
        pytest.param(
            xml(ways={14: WAYS[14]}),
            "the road network is empty: of its 1 way, none is a street open to cars",
            id="feet",
        ),
        pytest.param(
            xml(ways={1: ((1,), WAYS[11][1])}), "the road network is empty: no street connects two nodes", id="one node"
        ),
        pytest.param(
            xml(ways={1: ((1, 1, 1), WAYS[11][1])}),
            "the road network is empty: no street connects two nodes",
            id="one place",
        ),
        pytest.param(
            xml(nodes={99: (24.0, 60.0)}),
            "the road network is empty: left out 2 of 7 ways, which are not streets open to cars; "
            "streets refer to 7 nodes",
            id="no nodes",
        ),
        pytest.param(xml(ways={11: WAYS[11]}), "no two nodes are connected in both directions", id="no way back"),
    ],
)
def test_invalid_xml_is_refused(write, text, message):
    path = write(text)
    (fault,) = faults_of(path)
    assert message in fault
    assert fault.startswith(str(path))


def test_many_faults_are_reported_up_to_a_limit(write):
    faults = faults_of(write(town(n1=(24.9, 99.0), n2=(199.0, 60.0))))
    assert ["node 1:" in faults[0], "node 2:" in faults[1], len(faults)] == [True, True, 2]
    crowd = dict.fromkeys(range(1000), (24.9, 99.0))
    faults = faults_of(write(xml(nodes=crowd, ways={1: (tuple(crowd), {"highway": "residential"})})))
    assert len(faults) == 21
    assert "reading stopped here" in faults[-1]


def test_pole_has_no_utm_zone_but_accepts_a_crs(write):
    polar = {node: (lon, lat + 26) for node, (lon, lat) in NODES.items()}
    assert "no UTM zone about longitude" in faults_of(write(xml(nodes=polar)))[0]
    roads, _ = read_osm(write(xml(nodes=polar)), crs="EPSG:5041")
    assert len(roads.links) == 8


def test_files_that_contradict_their_suffix_are_refused(write, tmp_path):
    assert "the name must end in one of .osm, .osm.bz2" in faults_of(write(xml(), "town.xml"))[0]
    assert "no such file" in faults_of(tmp_path / "none.osm")[0]
    assert "no such file" in faults_of(tmp_path / "none.osm.pbf")[0]
    for suffix, pack in (("gz", gzip.compress), ("bz2", bz2.compress)):
        assert "cannot be read" in faults_of(write(xml(), f"plain.osm.{suffix}"))[0]
        assert "cannot be read" in faults_of(write(pack(xml().encode())[:-20], f"cut.osm.{suffix}"))[0]
    folder = tmp_path / "folder.osm"
    folder.mkdir()
    assert "cannot be read" in faults_of(folder)[0]
    assert "cannot be read as OpenStreetMap's PBF" in faults_of(write(xml(), "xml.osm.pbf"))[0]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_several_streams_in_a_file_and_packed_files_of_any_name_are_read(write, pack):
    """Programs that compress in parallel write many streams."""
    whole = xml().encode()
    roads, _ = read_osm(write(pack(whole[:300]) + pack(whole[300:]), "town.osm"))
    assert len(roads.links) == 8


def blob(kind, content, *, header_bytes=None, size=None, raw_size=None):
    """One blob of a PBF file; its stated sizes may be wrong."""
    packed = zlib.compress(content)
    body = b"\x10" + number(len(content) if raw_size is None else raw_size) + b"\x1a" + number(len(packed)) + packed
    header = b"\x0a" + number(len(kind)) + kind + b"\x18" + number(len(body) if size is None else size)
    return struct.pack(">I", len(header) if header_bytes is None else header_bytes) + header + body


def number(value):
    written = b""
    while value > 127:
        written += bytes([value & 127 | 128])
        value >>= 7
    return written + bytes([value])


HEADER = blob(b"OSMHeader", b"\x22\x0eOsmSchema-V0.6\x22\x0aDenseNodes")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "it is empty", id="empty"),
        pytest.param(b"\x00\x00", "", id="two bytes"),
        pytest.param(b"\xff" * 40, "invalid BlobHeader size", id="noise"),
        pytest.param(blob(b"OSMData", b""), "", id="no header"),
        pytest.param(blob(b"OSMHeader", b"", size=2**30), "invalid blob size: 1073741824", id="1 GB"),
        pytest.param(blob(b"OSMHeader", b"", size=9999), "", id="too long"),
        pytest.param(blob(b"OSMHeader", b"", header_bytes=60000), "", id="header"),
        pytest.param(HEADER + blob(b"OSMData", b"a", raw_size=2), "", id="raw size"),
        pytest.param(HEADER + blob(b"OSMData", b"\0" * (33 * 2**20)), "illegal blob size", id="bomb"),
        pytest.param(HEADER + blob(b"OSMData", b"")[:-3] + b"abc", "", id="checksum"),
        pytest.param(blob(b"OSMHeader", b"\xff" * 30), "", id="content"),
        pytest.param(HEADER + blob(b"OSMData", b"\xff" * 30), "", id="data"),
        pytest.param(struct.pack(">I", 2) + b"\x0a\x7f", "", id="field"),
        pytest.param(struct.pack(">I", 1) + b"\x0b", "", id="wire type"),
        pytest.param(struct.pack(">I", 11) + b"\x80" * 11, "", id="number"),
        pytest.param(struct.pack(">I", 1) + b"\x80", "", id="short number"),
        pytest.param(struct.pack(">I", 2) + b"\x18\x00", "", id="no type"),
    ],
)
def test_invalid_pbf_is_refused(write, content, message):
    path = write(content, "town.osm.pbf")
    (fault,) = faults_of(path)
    assert message in fault
    assert fault.startswith(f"{path}: it is empty" if not content else f"{path}: cannot be read as OpenStreetMap's PBF")


def test_pbf_without_streets_is_refused(tmp_path):
    path = write_pbf(tmp_path / "feet.osm.pbf", ways={14: WAYS[14]})
    assert "the road network is empty: of its 1 way, none is a street open to cars" in faults_of(path)[0]


GRAPHML = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{}</graphml>'
CRS = '<key id="d0" for="graph" attr.name="crs" attr.type="string"/><key id="x" for="node" attr.name="x" attr.type='
KEYS = CRS + '"string"/><key id="y" for="node" attr.name="y" attr.type="string"/>'


def graphml(nodes="", *, crs="epsg:4326", directed="directed"):
    return GRAPHML.format(f'{KEYS}<graph edgedefault="{directed}"><data key="d0">{crs}</data>{nodes}</graph>')


ONE = '<node id="1"><data key="x">{}</data><data key="y">{}</data></node>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "it is empty", id="empty"),
        pytest.param("<gexf/>", "line 1: the file must begin with <graphml>, got <gexf>", id="gexf"),
        pytest.param("<!DOCTYPE graphml><graphml/>", "must not declare a document type", id="document type"),
        pytest.param(GRAPHML.format(""), "OSMnx cannot read it as its GraphML", id="no graph"),
        pytest.param(graphml(directed="undirected"), "its edges must be directed", id="undirected"),
        pytest.param(graphml(), "the road network is empty: the graph has no nodes", id="no nodes"),
        pytest.param(graphml(ONE.format(24, 60)), "the road network is empty: the graph has no edges", id="no edges"),
        pytest.param(graphml(crs="mars"), "crs of the graph: not a coordinate system pyproj knows: 'mars'", id="crs"),
        pytest.param(graphml('<node id="1"/>'), "node 1: x must be a finite number", id="nowhere"),
        pytest.param(graphml(ONE.format(24, 99)), "node 1: y must be a finite number, in degrees at most 90", id="lat"),
        pytest.param(graphml(ONE.format("nan", 60)), "node 1: x must be a finite number", id="nan"),
        pytest.param(graphml(ONE.format("east", 60)), "OSMnx cannot read it as its GraphML", id="text"),
    ],
)
def test_invalid_graphml_is_refused(write, text, message):
    path = write(text, "town.graphml")
    fault = faults_of(path)[0]
    assert message in fault
    assert fault.startswith(str(path))


@st.composite
def damaged(draw, whole):
    """A file damaged in up to four places."""
    content = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content) - 1))
        how = draw(st.sampled_from(["cut", "byte", "drop", "again"]))
        if how == "cut":
            content = content[: at + 1]
        elif how == "byte":
            content[at] = draw(st.one_of(st.integers(0, 255), st.sampled_from(list(b'<>"&=-9.;x/ '))))
        elif how == "drop" and len(content) > 60:
            del content[at : at + draw(st.integers(1, 40))]
        else:
            content[at:at] = content[at : at + draw(st.integers(1, 60))]
    return bytes(content)


def network_or_fault(path):
    try:
        roads, report = read_osm(path)
    except InputError as error:
        assert error.faults  # noqa: PT017 - either a network or an InputError
    else:
        assert len(roads.links) == report.links > 0


@given(content=damaged(xml().encode()))
@settings(max_examples=150, deadline=None)
def test_damaged_osm_xml_raises_only_input_errors(content, tmp_path_factory):
    path = tmp_path_factory.mktemp("xml") / "town.osm"
    path.write_bytes(content)
    network_or_fault(path)


@pytest.fixture(scope="module")
def whole_files(tmp_path_factory):
    """The town as PBF and as GraphML."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "town.osm").write_text(xml(), encoding="utf-8")
    ox.save_graphml(ox.graph_from_xml(folder / "town.osm", simplify=False), folder / "town.graphml")
    return write_pbf(folder / "town.osm.pbf").read_bytes(), (folder / "town.graphml").read_bytes()


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_damaged_pbf_raises_only_input_errors(data, whole_files, tmp_path_factory):
    path = Path(tmp_path_factory.mktemp("pbf"), "town.osm.pbf")
    path.write_bytes(data.draw(damaged(whole_files[0])))
    network_or_fault(path)


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_damaged_pbf_content_raises_only_input_errors(data, tmp_path_factory):
    """Compressed again, so that sizes and checksums are correct."""
    content = data.draw(damaged(b"\x0a\x05\x0a\x00\x0a\x01a\x12\x08\x12\x06\x0a\x00\x42\x00\x4a\x00" * 2))
    path = Path(tmp_path_factory.mktemp("pbf"), "town.osm.pbf")
    path.write_bytes(HEADER + blob(b"OSMData", content))
    network_or_fault(path)


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_damaged_graphml_raises_only_input_errors(data, whole_files, tmp_path_factory):
    path = Path(tmp_path_factory.mktemp("graphml"), "town.graphml")
    path.write_bytes(data.draw(damaged(whole_files[1])))
    network_or_fault(path)
