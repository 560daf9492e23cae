"""Invalid GMNS folders: an InputError that names file, rows and rule, for any content."""

import contextlib
import gzip

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from read_roads import read_gmns
from small_networks import GMNS_LINE, GMNS_LINKS, GMNS_NODES, gmns_links, write_gmns_text

from simulator.files.errors import InputError


@pytest.fixture
def folder(tmp_path):
    return write_gmns_text(tmp_path / "gmns")


SWAPPED = "node_id,x_coord,y_coord\n1,42.36,-171.10\n2,42.36,-171.09\n3,42.37,-171.09\n"


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        pytest.param(
            {"nodes": None}, "must hold a table of nodes: one of node.csv, node.csv.gz, node.parquet", id="no nodes"
        ),
        pytest.param({"links": None}, "must hold a table of links", id="no links"),
        pytest.param({"nodes": ""}, "node.csv: it is empty", id="empty"),
        pytest.param({"nodes": "node_id,x_coord,y_coord\n"}, "node.csv: it holds no rows", id="no rows"),
        pytest.param({"nodes": GMNS_NODES.replace(",", " ")}, "is it separated by commas?", id="blanks"),
        pytest.param(
            {"nodes": GMNS_NODES + "1,-71.1,42.4,\n"},
            "rows 1, 4: node_id (column 'node_id') must be an identifier no other",
            id="node twice",
        ),
        pytest.param(
            {"nodes": GMNS_NODES + ",-71.1,42.4,\n"},
            "row 4: node_id (column 'node_id') must be an identifier",
            id="no id",
        ),
        pytest.param(
            {"nodes": GMNS_NODES.replace("42.37", "north")},
            "row 3: y_coord (column 'y_coord') must be a finite number, got 'north'",
            id="word",
        ),
        pytest.param({"nodes": GMNS_NODES.replace("42.37", "1e999")}, "row 3: y_coord", id="infinite"),
        pytest.param(
            {"nodes": SWAPPED},
            "node.csv: rows 1, 2, 3: coordinates must be a longitude and a latitude from -90 to 90",
            id="swapped",
        ),
        pytest.param(
            {"links": gmns_links(("b,2,3", "b,2,9"))},
            "link.csv: row 2: to_node_id (column 'to_node_id') must be in the node table, got '9'",
            id="no such node",
        ),
        pytest.param(
            {"links": gmns_links(("\nb,", "\na,"))},
            "rows 1, 2: link_id (column 'link_id') must be an identifier no other row has",
            id="link twice",
        ),
        pytest.param(
            {"links": gmns_links((",true,", ",maybe,"))},
            "row 3: directed (column 'directed') must be true or false, got 'maybe'",
            id="maybe",
        ),
        pytest.param(
            {"links": gmns_links((",830,", ",-830,"))},
            "row 1: length (column 'length') must be a finite number, 0 or more",
            id="negative",
        ),
        pytest.param(
            {"links": gmns_links((",830,", ",far,"))},
            "row 1: length (column 'length') must be a finite number, 0 or more, got 'far'",
            id="far",
        ),
        pytest.param(
            {"links": gmns_links((",36,2,", ",36,1.5,"))},
            "row 1: lanes (column 'lanes') must be a whole number",
            id="lanes",
        ),
        pytest.param(
            {"links": gmns_links((",36,2,", ",36,1e12,"))},
            "row 1: lanes (column 'lanes') must be a whole number, 0 to 10000",
            id="many lanes",
        ),
        pytest.param(
            {
                "links": gmns_links(
                    (",auto", ",walk"), ("walk;auto", "walk"), ("b,2,3,0,1115,residential,,,,", "b,2,3,0,9,,,,,bus")
                )
            },
            "the road network is empty: no link can be used",
            id="no roads",
        ),
        pytest.param(
            {"links": gmns_links().replace(",allowed_uses", ",geometry").replace(",auto", ",POINT (1 2)")},
            "rows 1, 3, 4: geometry (column 'geometry') must be a LINESTRING",
            id="point",
        ),
        pytest.param(
            {"links": gmns_links().replace(",allowed_uses", ",geometry").replace(",auto", ",LINESTRING (1 2")},
            "rows 1, 3, 4: geometry (column 'geometry') must be a LINESTRING",
            id="wkt cut",
        ),
        pytest.param(
            {"links": gmns_links().replace(",allowed_uses", ",geometry_id").replace(",auto", ",9")},
            "links name a geometry_id, and",
            id="no geometry table",
        ),
        pytest.param(
            {
                "links": gmns_links().replace(",allowed_uses", ",geometry_id").replace(",auto", ",9"),
                "geometry": "geometry_id,geometry\n8,\n",
            },
            "must be one of",
            id="no such geometry",
        ),
        pytest.param(
            {"links": gmns_links().replace(",allowed_uses", ",crowdveil_key").replace(",auto", ",{")},
            "must be JSON",
            id="own column",
        ),
    ],
)
def test_invalid_gmns_tables_are_refused(tmp_path, tables, message):
    with pytest.raises(InputError) as caught:
        read_gmns(write_gmns_text(tmp_path / "g", **tables))
    assert message in str(caught.value)


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
        ({"crs": "EPSG:3435"}, "must be within the area of use of"),
        ({"project_to": 4326}, "project_to: crs must be projected"),
    ],
)
def test_invalid_arguments_are_refused(folder, argument, message):
    with pytest.raises(InputError, match=message):
        read_gmns(folder, **argument)


@given(data=st.data())
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_tables_raise_only_input_errors(data, tmp_path):
    geometry = f'geometry_id,geometry\n9,"{GMNS_LINE}"\n'
    shaped = GMNS_LINKS.replace(",allowed_uses", ",geometry_id").replace(",auto\n", ",9\n", 1)
    config = "long_length,speed,crs\nmile,mph,4326\n"
    whole = {"node": GMNS_NODES, "link": shaped, "geometry": geometry, "config": config}
    chosen = data.draw(st.sampled_from(sorted(whole)))
    raw = bytearray(whole[chosen].encode())
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(raw)))
        raw[at : at + data.draw(st.integers(0, 3))] = data.draw(
            st.binary(max_size=3) | st.sampled_from([b"1e999", b'"', b"-", b",", b"\n"])
        )
    raw = raw[: data.draw(st.integers(0, len(raw)))]
    folder = write_gmns_text(tmp_path / "g", nodes=None, links=None)
    for name, text in whole.items():
        (folder / f"{name}.csv").write_bytes(bytes(raw) if name == chosen else text.encode())
    with contextlib.suppress(InputError):
        read_gmns(folder)
