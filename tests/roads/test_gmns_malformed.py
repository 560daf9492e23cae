"""Invalid GMNS folders: an InputError that names file, rows and rule, for any content."""

import gzip

import pytest
from read_roads import read_gmns
from small_networks import GMNS_LINKS, GMNS_NODES, write_gmns_text

from simulator.files.errors import InputError


@pytest.fixture
def folder(tmp_path):
    return write_gmns_text(tmp_path / "gmns")


def test_swapped_coordinates_are_detected_by_link_lengths(tmp_path):
    side = 8
    nodes = [
        (f"{row}-{column}", -71.1 + column * 0.01, 42.3 + row * 0.01) for row in range(side) for column in range(side)
    ]
    rows = [(f"{a}-{b}", f"{a}-{b + 1}", 825) for a in range(side) for b in range(side - 1)]
    rows += [(f"{a}-{b}", f"{a + 1}-{b}", 1111) for a in range(side - 1) for b in range(side)]
    table = "from_node_id,to_node_id,directed,length\n" + "".join(f"{a},{b},0,{length}\n" for a, b, length in rows)
    for swapped in (False, True):
        text = "node_id,x_coord,y_coord\n"
        text += "".join(f"{node},{y},{x}\n" if swapped else f"{node},{x},{y}\n" for node, x, y in nodes)
        folder = write_gmns_text(tmp_path / f"g{swapped}", nodes=text, links=table)
        if not swapped:
            assert len(read_gmns(folder)[0].links) == 2 * len(rows)
            continue
        with pytest.raises(
            InputError, match=r"node\.csv: rows 1, 2, .*: x_coord must be longitude and y_coord latitude"
        ):
            read_gmns(folder)


def test_two_files_of_one_table(folder):
    (folder / "node.csv.gz").write_bytes(gzip.compress(GMNS_NODES.encode()))
    with pytest.raises(InputError, match=r"must hold one table of node, got node\.csv, node\.csv\.gz"):
        read_gmns(folder)


def test_truncated_gzip_and_missing_folder_are_refused(folder, tmp_path):
    (folder / "link.csv").unlink()
    (folder / "link.csv.gz").write_bytes(gzip.compress(GMNS_LINKS.encode())[:-15])
    with pytest.raises(InputError, match=r"link\.csv\.gz: cannot be read: it is incomplete"):
        read_gmns(folder)
    with pytest.raises(InputError, match="no such folder"):
        read_gmns(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ({"length_m": 0.0}, "length_m must be a finite number above 0"),
        ({"default_speed_mps": 0.0}, "speed_mps must be a finite number above 0"),
        ({"default_lanes": 0}, "lanes must be a finite number above 0"),
        ({"capacity_vph": float("nan")}, "capacity_vph must be a finite number above 0"),
        ({"crs": "nowhere"}, "crs: not a coordinate system"),
        ({"crs": "[" * 100_000}, "crs: not a coordinate system"),
        ({"crs": "EPSG:3435"}, "must be within the area of use of"),
        ({"project_to": 4326}, "project_to: crs must be projected"),
    ],
)
def test_invalid_arguments_are_refused(folder, argument, message):
    with pytest.raises(InputError, match=message):
        read_gmns(folder, **argument)
