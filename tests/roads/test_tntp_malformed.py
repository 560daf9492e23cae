"""Invalid TNTP files: an InputError that names file, line and rule, for any content."""

import pytest
from read_roads import read_tntp
from small_networks import tntp_network, tntp_nodes

from simulator.files.errors import InputError
from simulator.formats.tntp.files import read_flows

UNITS = {"length_m": 1000.0, "time_s": 60.0}


def faults(tmp_path, network=None, nodes=None, **more):
    """Write both files, text or bytes, and return the faults."""
    for name, content, usual in (("net.tntp", network, tntp_network), ("node.tntp", nodes, tntp_nodes)):
        written = usual() if content is None else content
        (tmp_path / name).write_bytes(written if isinstance(written, bytes) else written.encode())
    with pytest.raises(InputError) as caught:
        read_tntp(network=tmp_path / "net.tntp", nodes=tmp_path / "node.tntp", **(UNITS | more))
    return str(caught.value)


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
