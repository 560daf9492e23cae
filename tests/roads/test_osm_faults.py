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
from osm_town import NODES, WAYS, node_line, write_pbf, xml

from simulator.files.errors import InputError
from simulator.roads.readers.osm import read_osm

ox = pytest.importorskip("osmnx", reason="OpenStreetMap is read by osmnx and pyrosm")
pytest.importorskip("pyrosm", reason="OpenStreetMap is read by osmnx and pyrosm")


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "it is empty", id="empty"),
        pytest.param("PK\x03\x04", "line 1: not well-formed XML", id="zip"),
        pytest.param("<gpx/>", "line 1: the file must begin with <osm>, got <gpx>", id="gpx"),
        pytest.param("<osmChange/>", "the file must begin with <osm>, got <osmChange>", id="changes"),
        pytest.param(xml()[:-30], "not well-formed XML", id="cut"),
        pytest.param('<!DOCTYPE osm [<!ENTITY a "b">]><osm/>', "line 1: must not declare a document type", id="entity"),
        pytest.param(
            '<?xml version="1.0" encoding="no"?><osm/>',
            "its declared encoding cannot be read: unknown encoding",
            id="encoding",
        ),
        pytest.param(
            town(n1=(24.94, 91.0)),
            "line 3: lat of <node> must be degrees from -90 to 90, got '91.0' (are lat",
            id="lat",
        ),
        pytest.param(town(n1=(181.0, 60.0)), "line 3: lon of <node> must be degrees from -180 to 180", id="lon"),
        pytest.param(town(n2=(float("nan"), 60.0)), "line 4: lon of <node> must be degrees", id="nan"),
        pytest.param(xml(more=[node_line(1, 24.94, 60.17)]), "line 18: node 1 occurs twice", id="node twice"),
        pytest.param(xml(more=['<way id="10"/>']), "line 18: way 10 occurs twice", id="way twice"),
        pytest.param(xml(more=['<node id="x" lat="1" lon="1"/>']), "id of <node> must be a whole number", id="id"),
        pytest.param(
            xml(more=['<node lat="1" lon="1"/>']), "id of <node> must be a whole number, got None", id="no id"
        ),
        pytest.param(
            xml(more=['<node id="77"/>']), "lon of <node> must be degrees from -180 to 180, got None", id="nowhere"
        ),
        pytest.param(
            xml(more=['<way id="77"><nd ref="a"/></way>']), "ref of <nd> must be a whole number, got 'a'", id="ref"
        ),
        pytest.param("<osm/>", "the road network is empty: it holds no street", id="nothing"),
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
def test_invalid_xml_is_refused_by_line(write, text, message):
    path = write(text)
    fault = faults_of(path)[0]
    assert message in fault
    assert fault.startswith(str(path))


def test_many_faults_are_reported_up_to_a_limit(write):
    faults = faults_of(write(town(n1=(24.9, 99.0), n2=(999.0, 60.0))))
    assert ["line 3" in faults[0], "line 4" in faults[1], len(faults)] == [True, True, 2]
    crowd = dict.fromkeys(range(1000), (24.9, 99.0))
    faults = faults_of(write(xml(nodes=crowd)))
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
    assert "is this a .osm.pbf?" in faults_of(write(xml(), "xml.osm.pbf"))[0]


@pytest.mark.parametrize("kind", ["gz", "bz2"])
def test_decompression_bomb_is_refused_before_it_fills_memory(write, kind):
    endless = b"<osm>" + b" " * (40 * 2**20)
    packed = gzip.compress(endless) if kind == "gz" else bz2.compress(endless)
    assert "must have a tag in every" in faults_of(write(packed, f"bomb.osm.{kind}"))[0]


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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "the file is empty", id="empty"),
        pytest.param(b"\x00\x00", "a header must have at most 65,536 bytes, but it states 0", id="two bytes"),
        pytest.param(b"\xff" * 40, "a header must have at most 65,536 bytes, but it states 4,294,967,295", id="noise"),
        pytest.param(blob(b"OSMData", b""), "its type must be OSMHeader, got 'OSMData'", id="no header"),
        pytest.param(
            blob(b"OSMHeader", b"", size=2**30), "at most 33,554,432 bytes, but it states 1,073,741,824", id="1 GB"
        ),
        pytest.param(blob(b"OSMHeader", b"", size=9999), "of the 9,999 bytes announced", id="too long"),
        pytest.param(blob(b"OSMHeader", b"", header_bytes=60000), "of the 60,000 bytes announced", id="header"),
        pytest.param(
            blob(b"OSMHeader", b"a", raw_size=2), "it decompresses to 1 bytes, but it states 2", id="raw size"
        ),
        pytest.param(
            blob(b"OSMHeader", b"\0" * (33 * 2**20)), "must decompress to at most 33,554,432 bytes", id="bomb"
        ),
        pytest.param(blob(b"OSMHeader", b"")[:-3] + b"abc", "its content cannot be decompressed", id="checksum"),
        pytest.param(blob(b"OSMHeader", b"\xff" * 30), "pyrosm cannot read it", id="content"),
        pytest.param(struct.pack(">I", 2) + b"\x0a\x7f", "a field of 127 bytes does not fit into the 2", id="field"),
        pytest.param(struct.pack(">I", 1) + b"\x0b", "it is not a protocol buffer: wire type 3", id="wire type"),
        pytest.param(struct.pack(">I", 11) + b"\x80" * 11, "a number has more than 10 bytes", id="number"),
        pytest.param(struct.pack(">I", 1) + b"\x80", "a number is cut short", id="short number"),
        pytest.param(struct.pack(">I", 2) + b"\x18\x00", "its header lacks a type or a size", id="no type"),
    ],
)
def test_invalid_pbf_is_refused_by_blob(write, content, message):
    path = write(content, "town.osm.pbf")
    fault = faults_of(path)[0]
    assert message in fault
    assert fault.startswith(str(path))


def test_pbf_without_streets_is_refused(tmp_path):
    path = write_pbf(tmp_path / "feet.osm.pbf", ways={14: WAYS[14]})
    assert "the road network is empty: it holds no street" in faults_of(path)[0]


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
    header = blob(b"OSMHeader", b"\x22\x0eOsmSchema-V0.6\x22\x0aDenseNodes")
    path = Path(tmp_path_factory.mktemp("pbf"), "town.osm.pbf")
    path.write_bytes(header + blob(b"OSMData", content))
    network_or_fault(path)


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_damaged_graphml_raises_only_input_errors(data, whole_files, tmp_path_factory):
    path = Path(tmp_path_factory.mktemp("graphml"), "town.graphml")
    path.write_bytes(data.draw(damaged(whole_files[1])))
    network_or_fault(path)
