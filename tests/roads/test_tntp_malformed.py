"""Invalid TNTP files: an InputError that names file, line and rule, for any content."""

import contextlib
import gzip
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from read_roads import read_tntp
from small_networks import PLACES, RING, ROWS, tntp_network, tntp_nodes

from simulator.files.errors import InputError
from simulator.formats.roads.tntp_files import read_flows

UNITS = {"length_m": 1000.0, "time_s": 60.0}


def faults(tmp_path, network=None, nodes=None, **more):
    """Write both files, text or bytes, and return the faults."""
    for name, content, usual in (("net.tntp", network, tntp_network), ("node.tntp", nodes, tntp_nodes)):
        written = usual() if content is None else content
        (tmp_path / name).write_bytes(written if isinstance(written, bytes) else written.encode())
    with pytest.raises(InputError) as caught:
        read_tntp(network=tmp_path / "net.tntp", nodes=tmp_path / "node.tntp", **(UNITS | more))
    return str(caught.value)


LINE_OF_ROW_1 = 8


@pytest.mark.parametrize(
    ("network", "message"),
    [
        pytest.param("", "net.tntp: it is empty", id="empty"),
        pytest.param(
            tntp_network().replace("<NUMBER OF ZONES> 2\n", ""), "<NUMBER OF ZONES> is missing", id="no zones"
        ),
        pytest.param(
            tntp_network().replace("<END OF METADATA>", ""), "line 8: must have the form <NAME> value", id="no end"
        ),
        pytest.param("<NUMBER OF NODES> 5\n", "<END OF METADATA> is missing", id="only metadata"),
        pytest.param(
            tntp_network(nodes="five"), "line 2: <NUMBER OF NODES> must be a whole number, 2 or more", id="word"
        ),
        pytest.param(tntp_network(nodes="-5"), "line 2: <NUMBER OF NODES> must be a whole number", id="negative"),
        pytest.param(tntp_network(zones=9), "line 1: <NUMBER OF ZONES> is 9, more than the 5 nodes", id="zones"),
        pytest.param(tntp_network(first=7), "line 3: <FIRST THRU NODE> is 7", id="first through"),
        pytest.param(tntp_network(links=9), "line 4: <NUMBER OF LINKS> is 9, and 7 usable rows follow", id="links"),
        pytest.param(tntp_network(rows=()), "line 4: the road network is empty", id="no links"),
        pytest.param(
            tntp_network(extra="<NUMBER OF NODES> 5\n"), "line 5: <NUMBER OF NODES> must occur only once", id="twice"
        ),
        pytest.param(
            tntp_network().replace("\t", ","), "lines 8, 9, 10, 11, 12, 13, 14: a link must have 10 fields", id="commas"
        ),
        pytest.param(
            tntp_network(rows=((1, 1, 1, 1, 1), *ROWS, *RING)),
            f"line {LINE_OF_ROW_1}: term_node must be another node than init_node, got '1'",
            id="self-loop",
        ),
        pytest.param(
            tntp_network(rows=(*ROWS, *RING, (6, 1, 1, 1, 1))), "line 15: init_node must be a node, 1 … 5", id="node 6"
        ),
        pytest.param(
            tntp_network(rows=((1.5, 2, 1, 1, 1), *ROWS, *RING)), "line 8: init_node must be a node", id="node 1.5"
        ),
        pytest.param(
            tntp_network(rows=((1, 2, 1, -1, 1), *ROWS, *RING)),
            "line 8: length must be a finite number, 0 or more, got '-1'",
            id="length -1",
        ),
        pytest.param(
            tntp_network(rows=((1, 2, "nan", 1, 1), *ROWS, *RING)),
            "line 8: capacity must be a finite number",
            id="nan",
        ),
        pytest.param(
            tntp_network(rows=((1, 2, 1, 1e308, 1e-308), *ROWS, *RING)),
            "line 8: length_m must be a finite number above 0, and comes out as inf",
            id="too long",
        ),
        pytest.param(tntp_network()[:-3], "line 14: all rows must end in ';', or none", id="cut after a number"),
        pytest.param(tntp_network()[:-16], "line 14: a link must have 10 fields", id="cut within a row"),
        pytest.param(tntp_network().encode("utf-16"), "line 1: must be text (UTF-8 or ASCII)", id="utf-16"),
        pytest.param(gzip.compress(tntp_network().encode())[:-20], "net.tntp: cannot be read", id="gzip cut"),
        pytest.param(b"\x1f\x8b" + bytes(range(200)), "net.tntp: cannot be read", id="no gzip"),
        pytest.param(gzip.compress(bytes(17 * 2**20)), "line 1: a line must not be longer", id="gzip of zeros"),
    ],
)
def test_invalid_network_files_are_refused(tmp_path, network, message):
    assert message in faults(tmp_path, network)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        pytest.param("", "node.tntp: it is empty", id="empty"),
        pytest.param("Node X Y ;\n", "node.tntp: it holds no node", id="header alone"),
        pytest.param(tntp_nodes((*PLACES, PLACES[2])), "lines 4, 7: node must be in one row only, got '3'", id="twice"),
        pytest.param(tntp_nodes(PLACES[:4]), "use others; without coordinates: 5", id="one missing"),
        pytest.param(tntp_nodes((*PLACES, (6, 0, 0))), "line 7: nodes must be 1 … 5", id="one more"),
        pytest.param(tntp_nodes(((1, "x", 2), *PLACES[1:])), "line 2: x must be a finite number, got 'x'", id="word"),
        pytest.param(
            tntp_nodes((("one", 1, 2), *PLACES[1:])),
            "line 2: node must be a whole number, 1 or more, got 'one'",
            id="node one",
        ),
        pytest.param(
            tntp_nodes(((1, "inf", 2), *PLACES[1:])), "line 2: x must be a finite number, got 'inf'", id="infinite"
        ),
        pytest.param(tntp_nodes().replace("\t", ","), "lines 2, 3, 4, 5, 6: a node must have 3 fields", id="commas"),
        pytest.param(
            tntp_nodes([(node, y, x) for node, x, y in PLACES]),
            "lines 2, 3, 4, 5, 6: coordinates must be a longitude and a latitude from -90 to 90 (are the two swapped?)",
            id="swapped",
        ),
        pytest.param("{", "cannot be read as GeoJSON", id="json cut"),
        pytest.param("[" * 100_000, "cannot be read as GeoJSON", id="json deep"),
        pytest.param("{}", 'GeoJSON must have a list of "features"', id="json of nothing"),
        pytest.param('{"features": [1]}', "feature 1: must have a Point", id="no feature"),
        pytest.param(
            json.dumps({"features": [{"properties": {}, "geometry": {"type": "Point", "coordinates": [1, 2]}}]}),
            "feature 1: node must be a whole number, 1 or more, got 'None'",
            id="no id",
        ),
    ],
)
def test_invalid_node_files_are_refused(tmp_path, nodes, message):
    assert message in faults(tmp_path, nodes=nodes)


def test_positions_outside_the_area_of_use_are_refused(tmp_path):
    message = faults(tmp_path, crs="EPSG:3435")
    assert "node.tntp: lines 2, 3, 4, 5, 6: coordinates must be within the area of use of" in message
    assert "unknown" in faults(tmp_path, crs="unknown")
    assert "project_to: crs must be projected, in metres" in faults(tmp_path, project_to="EPSG:4326")


def test_swapped_coordinates_are_detected_by_link_lengths(tmp_path):
    # Twelve by twelve streets of a town at 60° east, 10° north: swapped, they are stretched in one direction only.
    side, step = 12, 0.01
    places = [
        (1 + row * side + column, 60 + column * step, 10 + row * step) for row in range(side) for column in range(side)
    ]
    ends = [(node, node + side) for node in range(1, side * (side - 1) + 1)]
    ends += [(node, node + 1) for node in range(1, side * side) if node % side]
    across = {1: 1096.0, side: 1106.0}
    rows = [(a, b, 900, across[b - a], 1) for start, end in ends for a, b in ((start, end), (end, start)) if b > a]
    rows += [(b, a, capacity, length, time) for a, b, capacity, length, time in rows]
    network = tntp_network(zones=2, nodes=side * side, first=1, rows=rows)
    (tmp_path / "n").write_text(network, encoding="utf-8")
    (tmp_path / "p").write_text(tntp_nodes(places), encoding="utf-8")
    good, _ = read_tntp(network=tmp_path / "n", nodes=tmp_path / "p", length_m=1, time_s=60)
    assert len(good.links) == len(rows)
    swapped = tntp_nodes([(node, y, x) for node, x, y in places])
    assert "x must be longitude and y latitude" in faults(tmp_path, network, swapped, length_m=1)


@pytest.mark.parametrize("name", ["zones", "nodes", "links", "first"])
def test_huge_header_number_allocates_no_memory(tmp_path, name):
    resource = pytest.importorskip("resource", reason="this system does not tell a process's memory")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if name == "nodes":  # numbers that no link uses are no fault
        faults(tmp_path, "", tntp_nodes())
        (tmp_path / "net.tntp").write_text(tntp_network(nodes=10**12), encoding="utf-8")
        _, report = read_tntp(network=tmp_path / "net.tntp", nodes=tmp_path / "node.tntp", **UNITS)
        assert "999,999,999,995 numbers" in report.remarks[0]
    else:
        assert "1,000,000,000,000" in faults(tmp_path, tntp_network(**{name: 10**12}))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_a_file_of_one_fault_a_line_names_the_first_twenty(tmp_path):
    (message,) = faults(tmp_path, tntp_network(rows=[(1, 1, 1, 1, 1)] * 1000)).splitlines()
    assert "26, 27 … (1,000 in all): term_node must be another node than init_node, got '1'" in message


def test_faults_of_both_files_are_reported_together(tmp_path):
    message = faults(tmp_path, "", "")
    assert "net.tntp: it is empty" in message
    assert "node.tntp: it is empty" in message


def test_missing_files_are_refused(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_tntp(network=tmp_path / "a", nodes=tmp_path / "b", **UNITS)
    with pytest.raises(InputError, match="cannot be read"):
        read_flows(tmp_path)


@given(data=st.data())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_files_raise_only_input_errors(data, tmp_path):
    places = json.dumps(
        {
            "features": [
                {"properties": {"id": node}, "geometry": {"type": "Point", "coordinates": [x, y]}}
                for node, x, y in PLACES
            ]
        }
    )
    flows = "From To Volume Cost\n1 3 4494.6 6.0\n3 1 8119.0 4.0\n"
    whole = [tntp_network().encode(), tntp_nodes().encode(), places.encode(), flows.encode()]
    chosen = data.draw(st.integers(0, len(whole) - 1))
    raw = bytearray(whole[chosen])
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(raw)))
        raw[at : at + data.draw(st.integers(0, 3))] = data.draw(
            st.binary(max_size=3) | st.sampled_from([b"1e999", b"~", b"-"])
        )
    raw = raw[: data.draw(st.integers(0, len(raw)))]
    packed = gzip.compress(bytes(raw)) if data.draw(st.booleans()) else bytes(raw)
    (tmp_path / "damaged").write_bytes(packed)
    (tmp_path / "net").write_bytes(whole[0])
    (tmp_path / "node").write_bytes(whole[1])
    files = {"network": tmp_path / "net", "nodes": tmp_path / "node"}
    with contextlib.suppress(InputError):
        if chosen == 3:
            read_flows(tmp_path / "damaged")
        else:
            read_tntp(**(files | {"network" if chosen == 0 else "nodes": tmp_path / "damaged"}), **UNITS)
