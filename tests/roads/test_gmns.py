"""How the tables of GMNS folders become a road network."""

import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import shapely
from read_roads import read_gmns
from small_networks import GMNS_LINE, GMNS_LINKS, GMNS_NODES, gmns_links, gmns_links_with_shape, write_gmns_text

from simulator.files.errors import InputError
from simulator.files.messages import texts_of


@pytest.fixture
def folder(tmp_path):
    return write_gmns_text(tmp_path / "gmns")


def notes_of(folder, **more):
    return "\n".join(texts_of(read_gmns(folder, **more)[1].notes()))


def test_gmns_attributes_and_zones(folder):
    network, report = read_gmns(folder)
    data = network.graph.edges[1, 2, 0]
    assert (data["length_m"], data["lanes"], data["capacity_vph"], data["class"]) == (830, 2, 1500, "primary")
    assert data["speed_mps"] == pytest.approx(10)
    assert [network.graph.nodes[node].get("zone") for node in (1, 2, 3)] == [7, None, 8]
    assert network.crs.to_epsg() == 32619
    assert report.node_rows == 3
    assert report.link_rows == 4


def test_undirected_link_becomes_two_links_with_class_defaults(folder):
    network, report = read_gmns(folder)
    there, back = network.graph.edges[2, 3, 0], network.graph.edges[3, 2, 0]
    assert there["length_m"] == back["length_m"] == 1115
    assert there["speed_mps"] == pytest.approx(30 / 3.6)
    assert (there["lanes"], there["capacity_vph"]) == (1, 600)
    notes = "\n".join(texts_of(report.notes()))
    assert "1 undirected link became a road for each direction" in notes
    assert "speed_mps taken by class of road in 1 of 3 links: residential" in notes


def test_only_links_of_the_given_modes_are_read(folder):
    assert "dropped row 4: allowed_uses names none of auto, a, all, car, c" in notes_of(folder)
    walkers, _ = read_gmns(folder, modes=("WALK",))
    assert set(walkers.graph.edges) == {(1, 3, 0), (3, 1, 0), (2, 3, 0), (3, 2, 0)}


def test_units_from_arguments_and_config_table(tmp_path):
    config = "long_length,speed,crs\nmile,mph,4326\n"
    said = write_gmns_text(tmp_path / "said", config=config)
    asked = write_gmns_text(tmp_path / "asked")
    one, _ = read_gmns(said)
    other, _ = read_gmns(asked, length_m=1609.344, speed_mps=0.44704, crs="EPSG:4326")
    assert one.links.length_m.tolist() == other.links.length_m.tolist()
    assert one.links.speed_mps.tolist() == other.links.speed_mps.tolist()
    assert one.graph.edges[1, 2, 0]["speed_mps"] == pytest.approx(36 * 0.44704)
    both, report = read_gmns(said, length_m=1.0)
    assert both.graph.edges[1, 2, 0]["length_m"] == 830
    assert any("long_length is mile, but the scenario's unit is used" in note for note in texts_of(report.notes()))


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("speed\nknots\n", "config.csv: row 1: speed must be one of"),
        ("speed\nmph\nmph\n", "config.csv: a config table must have one row, got 2"),
        ("crs\nnowhere\n", "crs: not a coordinate system pyproj knows"),
        ("speed\n", "config.csv: it holds no rows"),
    ],
)
def test_invalid_config_tables_are_refused(tmp_path, config, said):
    with pytest.raises(InputError) as caught:
        read_gmns(write_gmns_text(tmp_path / "g", config=config))
    assert said in str(caught.value)


BACK = "LINESTRING (-71.09 42.36, -71.095 42.365, -71.1 42.36)"


@pytest.mark.parametrize(
    ("wkt", "flag", "where"),
    [
        (GMNS_LINE, "1", "link"),
        (GMNS_LINE, "1", "table"),
        (BACK, "-1", "table"),
        (BACK, "", "link"),
        ("MULTILINESTRING ((-71.095 42.365, -71.09 42.36), (-71.1 42.36, -71.095 42.365))", "1", "link"),
        ("LINESTRING Z (-71.1 42.36 3, -71.095 42.365 4, -71.09 42.36 5)", "1", "link"),
    ],
)
def test_geometry_runs_from_first_to_last_node(tmp_path, wkt, flag, where):
    head, *rows = GMNS_LINKS.splitlines()
    columns = "geometry,dir_flag" if where == "link" else "geometry_id,dir_flag"
    values = [f'"{wkt}",{flag}' if where == "link" else f"9,{flag}", ",1", ",1", ",1"]
    table = "\n".join([f"{head},{columns}", *(f"{row},{value}" for row, value in zip(rows, values, strict=True))])
    others = {} if where == "link" else {"geometry": f'geometry_id,geometry\n9,"{wkt}"\n'}
    network, _ = read_gmns(write_gmns_text(tmp_path / "g", links=table, **others))
    shape = network.graph.edges[1, 2, 0]["geometry"]
    assert shapely.get_num_points(shape) == 3
    ends = [network.node_xy[network.node_names.index(node)] for node in (1, 2)]
    assert shape.coords[0] == pytest.approx(tuple(ends[0]))
    assert shape.coords[-1] == pytest.approx(tuple(ends[1]))
    assert "geometry" not in network.graph.edges[3, 1, 0]


def test_parts_that_do_not_join_are_drawn_straight(tmp_path):
    parts = "MULTILINESTRING ((-71.1 42.36, -71.096 42.364), (-71.094 42.364, -71.09 42.36))"
    columns = ["geometry", f'"{parts}"', "", "", ""]
    table = "\n".join(f"{row},{value}" for row, value in zip(GMNS_LINKS.splitlines(), columns, strict=True))
    network, report = read_gmns(write_gmns_text(tmp_path / "g", links=table))
    assert "geometry" not in network.graph.edges[1, 2, 0]
    assert "1 link has a shape of parts that do not join" in "\n".join(texts_of(report.notes()))


def test_reverse_link_has_reversed_geometry(tmp_path):
    network, _ = read_gmns(write_gmns_text(tmp_path / "g", links=gmns_links_with_shape((",1,830,", ",0,830,"))))
    there, back = network.graph.edges[1, 2, 0]["geometry"], network.graph.edges[2, 1, 0]["geometry"]
    assert back.coords[:] == there.coords[::-1]


def test_missing_lengths_come_from_geometry_or_distance(tmp_path):
    links = gmns_links_with_shape((",830,", ",,"), (",1115,", ",0,"))
    network, report = read_gmns(write_gmns_text(tmp_path / "g", links=links))
    data = network.graph.edges[1, 2, 0]
    assert data["length_m"] == pytest.approx(data["geometry"].length)
    a, b = (network.node_xy[network.node_names.index(node)] for node in (2, 3))
    assert network.graph.edges[2, 3, 0]["length_m"] == pytest.approx(np.hypot(*(a - b)))
    notes = "\n".join(texts_of(report.notes()))
    assert "taken as the length of its shape in 1 of 4 links" in notes
    assert "taken as the straight distance between its nodes in 1 of 4 links" in notes


def test_parallel_links_loops_and_unreachable_nodes(tmp_path):
    add = "e,1,2,1,900,,,36,1,\nf,2,2,1,10,,,36,1,\ng,3,4,1,900,,,36,1,\n"
    network, report = read_gmns(
        write_gmns_text(tmp_path / "g", nodes=GMNS_NODES + "4,-71.08,42.37,9\n", links=GMNS_LINKS + add)
    )
    assert network.graph.number_of_edges(1, 2) == 2
    assert 4 not in network.graph
    assert report.lost_zones == (9,)
    notes = "\n".join(texts_of(report.notes()))
    assert "1 link connects the same nodes in the same direction as another" in notes
    assert "dropped row 6: it leads from a node to itself" in notes


def test_parquet_gzip_truncated_names_and_byte_order_mark(folder, tmp_path):
    usual, _ = read_gmns(folder)
    (tmp_path / "p").mkdir()
    (tmp_path / "c").mkdir()
    pd.read_csv(folder / "node.csv").to_parquet(tmp_path / "p" / "node.parquet")
    pd.read_csv(folder / "link.csv").to_parquet(tmp_path / "p" / "link.parquet")
    cut = GMNS_LINKS.replace("from_node_id", "FROM_NODE_").replace("facility_type", "facility_t")
    cut = cut.replace("allowed_uses", "allowed_us").replace(",,", ", ,")
    with gzip.open(tmp_path / "c" / "link.csv.gz", "wt", encoding="utf-8-sig") as packed:
        packed.write(cut)
    (tmp_path / "c" / "node.csv").write_text("\ufeff" + GMNS_NODES, encoding="utf-8")
    for other in (tmp_path / "p", tmp_path / "c"):
        network, _ = read_gmns(other)
        assert list(network.graph.nodes(data=True)) == list(usual.graph.nodes(data=True))
        assert list(network.graph.edges(data=True)) == list(usual.graph.edges(data=True))


def test_implausible_capacity_and_shape_give_warnings(tmp_path):
    notes = notes_of(write_gmns_text(tmp_path / "g", links=gmns_links_with_shape((",1500,", ",15000,"))))
    assert "capacity is above 3,000 vehicles/h per lane in 1 of 3 links" in notes
    assert "the shape of a link is, in the median, 1.67 times as long as its stated length" in notes


def test_nodes_links_and_zones_may_be_called_na_or_have_leading_zeros(tmp_path):
    named = GMNS_NODES.replace("\n2,", "\nNA,").replace("42.36,7", "42.36,null").replace("\n3,", "\n03,")
    changes = (("a,1,2", "NA,1,NA"), ("2,3", "NA,03"), ("c,3,1", "c,03,1"), ("1,3,1", "1,03,1"))
    network, _ = read_gmns(write_gmns_text(tmp_path, nodes=named.replace(",8", ",08"), links=gmns_links(*changes)))
    assert network.node_names == ["1", "NA", "03"]
    assert [data.get("zone") for _, data in network.graph.nodes(data=True)] == ["null", None, "08"]


# Coordinates that are not degrees, without a stated coordinate system.
PLANAR_NODES = "node_id,x_coord,y_coord\n1,1500000,1000000\n2,1500300,1000000\n3,1500300,1000400\n"
PLANAR_LINKS = "from_node_id,to_node_id,directed,length,free_speed\n1,2,1,300,36\n2,3,1,400,36\n3,1,1,0,36\n"


@pytest.mark.parametrize("unit_m", [1.0, 0.3048])
def test_planar_coordinates_have_the_unit_of_lengths(unit_m, tmp_path):
    roads, report = read_gmns(write_gmns_text(tmp_path / "g", PLANAR_NODES, PLANAR_LINKS), length_m=unit_m)
    np.testing.assert_allclose(roads.links.length_m, np.array([300, 400, 500]) * unit_m)
    corners = np.array([[1500000, 1000000], [1500300, 1000000], [1500300, 1000400]]) * unit_m
    np.testing.assert_allclose(roads.node_xy, corners, atol=1e-6)
    np.testing.assert_allclose(roads.to_wgs84(roads.node_xy).mean(axis=0), 0.0, atol=0.01)
    assert any(
        "node.csv: the coordinates are not degrees and no crs is given, so the map is placed at" in warning
        for warning in texts_of(report.warnings)
    )


def test_unstated_units_are_noted(tmp_path):
    folder = write_gmns_text(tmp_path / "g", PLANAR_NODES, PLANAR_LINKS)
    notes = "\n".join(texts_of(read_gmns(folder)[1].notes()))
    assert "states the unit of length: taken as metres" in notes
    assert "states the unit of free_speed: taken as km/h" in notes
    assert "states the unit" not in "\n".join(texts_of(read_gmns(folder, length_m=1.0, speed_mps=0.3)[1].notes()))


def test_stated_crs_is_used(tmp_path):
    roads, report = read_gmns(
        write_gmns_text(tmp_path / "g", PLANAR_NODES, PLANAR_LINKS), crs="EPSG:3735", length_m=0.3048
    )
    assert roads.to_wgs84(roads.node_xy)[:, 1].min() > 40
    assert not any("not degrees" in note for note in texts_of(report.notes()))


def test_planar_position_among_degrees_is_refused(tmp_path):
    nodes = "node_id,x_coord,y_coord\n1,-84.1,40.7\n2,-84.1,40.71\n3,1500300,1000400\n"
    with pytest.raises(InputError, match=r"node\.csv: row 3: .*for another system, set crs"):
        read_gmns(write_gmns_text(tmp_path / "g", nodes, PLANAR_LINKS))


ONE_BLANK = PLANAR_LINKS.replace(",1,300,", ",,300,")
ALL_BLANK = ONE_BLANK.replace(",1,400,", ",,400,").replace("3,1,1,0,", "3,1,,0,")


@pytest.mark.parametrize(
    ("links", "message"),
    [
        (ONE_BLANK, "1 of 3 links does not state whether it is one-way: taken as one-way"),
        (ALL_BLANK, "3 of 3 links do not state whether they are one-way: taken as one-way"),
    ],
)
def test_missing_direction_and_missing_crs_are_noted(links, message, tmp_path):
    _, report = read_gmns(write_gmns_text(tmp_path / "g", PLANAR_NODES, links))
    assert any(note.endswith(message) for note in texts_of(report.notes()))
    assert 'set roads.crs, for example crs = "EPSG:32618"' in report.warnings[0].text


MILES = (
    "link_id,from_node_id,to_node_id,length,free_speed,lanes,capacity,VDF_fftt1\n"
    "1,1,2,0.52,30,1,900,1.04\n2,2,3,0.69,30,1,900,1.38\n3,3,1,0.87,40,1,900,1.305\n"
)
"""Miles and mph, with minutes that prove them."""


@pytest.mark.parametrize(
    ("speed", "proved"), [(1609.344 / 3600, True), (1 / 3.6, False), (1.0, False)], ids=["mph", "kph", "mps"]
)
def test_stated_times_prove_or_contradict_units(tmp_path, speed, proved):
    folder = write_gmns_text(tmp_path, links=MILES)
    _, report = read_gmns(folder, length_m=1609.344, speed_mps=speed, crs="EPSG:4326")
    warned = [note.text for note in report.warnings if "VDF_fftt1" in note.text]
    assert ("times in min" in "".join(report.remarks)) == proved
    assert bool(warned) != proved
    assert proved or 'roads.length_unit = "mi" and roads.speed_unit = "mph"' in warned[0]


def test_times_in_traffic_contradict_nothing(tmp_path):
    links = MILES.replace("VDF_fftt1", "travel_time").replace("1.04", "9").replace("1.38", "2")
    _, report = read_gmns(write_gmns_text(tmp_path, links=links), length_m=1609.344, speed_mps=0.44704)
    assert not any("travel_time" in note.text for note in report.warnings)


@pytest.mark.parametrize(
    ("length", "speed", "length_m", "speed_mps"),
    [
        ("vdf_length_mi", "vdf_free_speed_mph", 1609.344, 0.44704),
        ("length_in_mile", "free_speed_in_mph", 1609.344, 0.44704),
        ("Length_Km", "vdf_free_speed_kmph", 1000.0, 1 / 3.6),
    ],
)
def test_columns_that_name_their_units_are_read(tmp_path, length, speed, length_m, speed_mps):
    scale = 1609.344 / length_m
    rows = [f"{a},{b},{scale * miles:.5f},30,x" for a, b, miles in ((1, 2, 0.52), (2, 3, 0.69), (3, 1, 0.87))]
    head = f"from_node_id,to_node_id,{length},{speed},VDF_alpha1"
    network, report = read_gmns(write_gmns_text(tmp_path, links="\n".join([head, *rows])))
    assert network.graph.edges[1, 2, 0]["length_m"] == pytest.approx(0.52 * 1609.344, rel=1e-4)
    assert network.graph.edges[1, 2, 0]["speed_mps"] == pytest.approx(30 * speed_mps)
    remarks = "\n".join(report.remarks)
    assert "link.csv: columns not read: 'VDF_alpha1'" in remarks
    assert "states the unit" not in remarks


def test_a_unit_that_is_stated_belongs_to_the_column_of_the_specification(tmp_path):
    links = "from_node_id,to_node_id,length,length_mi\n1,2,830,9\n2,3,1115,9\n3,1,1400,9\n"
    folder = write_gmns_text(tmp_path, links=links)
    assert read_gmns(folder, length_m=1.0)[0].graph.edges[1, 2, 0]["length_m"] == 830
    named, report = read_gmns(folder, crs="EPSG:4326")
    assert named.graph.edges[1, 2, 0]["length_m"] == pytest.approx(9 * 1609.344)
    assert "length is column 'length_mi', in mi" in "".join(report.remarks)


DRAWN_NODES = "node_id,x_coord,y_coord,zone_id\n1,0,0,7\n2,20,0,\n3,10,8,8\n"


def test_coordinates_of_a_drawing_are_refused_with_the_way_without_them(tmp_path):
    links = gmns_links((",830,", ",10,"), (",1115,", ",12,"), (",1400,", ",14,"))
    folder = write_gmns_text(tmp_path, nodes=DRAWN_NODES, links=links)
    with pytest.raises(InputError, match=r'roads\.coordinates = "none", with cells\.kind'):
        read_gmns(folder)
    for nodes in (DRAWN_NODES, "node_id,zone_id\n1,7\n2,\n3,8\n"):
        network, report = read_gmns(write_gmns_text(tmp_path, nodes=nodes, links=links), coordinates="none")
        assert network.graph.edges[1, 2, 0]["length_m"] == 10
        assert [network.graph.nodes[node].get("zone") for node in (1, 2, 3)] == [7, None, 8]
        assert [note.code for note in report.warnings] == ["no_places"]
        assert len(np.unique(network.node_xy, axis=0)) == 3


@pytest.mark.parametrize(("old", "new"), [("1000,36,1,walk", "0,36,1,walk"), ("1000,36,1,walk", "1000,36,0,walk")])
def test_closed_links_are_left_out_and_counted(tmp_path, old, new):
    network, report = read_gmns(write_gmns_text(tmp_path, links=gmns_links((old, new))), keep="all")
    assert set(network.graph.edges) == {(1, 2, 0), (2, 3, 0), (3, 2, 0)}
    assert [one.total for one in report.dropped if "is 0: closed" in one.reason] == [1]


def test_a_column_of_zeros_states_nothing(tmp_path):
    links = gmns_links((",1500,", ",0,"), (",1000,", ",0,"))
    network, _ = read_gmns(write_gmns_text(tmp_path, links=links))
    assert network.graph.edges[3, 1, 0]["capacity_vph"] > 0


def test_identifiers_with_and_without_decimals_are_the_same(tmp_path):
    """A tool that keeps whole numbers as floats wrote the nodes, and another one the links."""
    nodes = GMNS_NODES.replace("\n1,", "\n1.0,").replace("\n3,", "\n3.0,")
    network, _ = read_gmns(write_gmns_text(tmp_path, nodes=nodes))
    assert network.node_names == [1, 2, 3]


def test_two_files_of_one_table_are_refused(folder):
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
        ({"crs": "[" * 100_000}, "crs: not a coordinate system"),
        ({"crs": "EPSG:3435"}, "must be within the area of use of"),
        ({"project_to": 4326}, "project_to: crs must be projected"),
    ],
)
def test_invalid_arguments_are_refused(folder, argument, message):
    with pytest.raises(InputError, match=message):
        read_gmns(folder, **argument)


ROOT = Path(os.environ.get("CROWDVEIL_DATA", "no such folder"), "gmns")
pytestmark = pytest.mark.skipif(
    not ROOT.is_dir(), reason="CROWDVEIL_DATA names no folder with gmns: real data is not part of the project"
)
LIMA = {"crs": "EPSG:3735", "length_m": 0.3048, "speed_mps": 0.44704}
"""Ohio's southern State Plane zone in feet, where Lima's coordinates are Lima; lengths in feet, speeds in mph."""


@pytest.fixture(scope="module")
def lima():
    return read_gmns(ROOT / "Lima", **LIMA)


@pytest.fixture(scope="module")
def cambridge():
    return read_gmns(ROOT / "Cambridge_Multimodal_Network")


def test_lima_just_north_of_its_zone(lima):
    network, report = lima
    links = pd.read_csv(ROOT / "Lima" / "link.csv.gz")
    nodes = pd.read_csv(ROOT / "Lima" / "node.csv")
    assert (report.node_rows, report.link_rows) == (len(nodes), len(links))
    assert (len(network.node_names), len(network.links)) == (len(nodes), len(links))
    assert network.total_length_m == pytest.approx(links["length"].sum() * 0.3048, rel=1e-12)
    edge = links.set_index(["from_node_id", "to_node_id"])
    for start, end, data in network.graph.edges(data=True):
        row = edge.loc[start, end]
        assert data["speed_mps"] == pytest.approx(row["free_speed"] * 0.44704)
        stated = row["lanes"], row["capacity"], row["facility_type"]
        assert (data["lanes"], data["capacity_vph"], data["class"]) == stated
    assert network.graph.nodes[5]["zone"] == nodes.set_index("node_id").loc[5, "zone_id"]
    lon, lat = network.to_wgs84(np.median(network.node_xy, axis=0)[None])[0]
    assert (lon, lat) == pytest.approx((-84.1, 40.74), abs=0.05)
    assert report.warnings == ()


def test_lima_geometries_start_at_their_nodes(lima):
    network, report = lima
    starts = np.array([shapely.get_point(data["geometry"], 0).coords[0] for *_, data in network.graph.edges(data=True)])
    nodes = np.array([(network.graph.nodes[a]["x"], network.graph.nodes[a]["y"]) for a, _ in network.graph.edges()])
    assert np.hypot(*(starts - nodes).T).max() < 1
    assert not any("direction in which they run" in note for note in texts_of(report.notes()))


def test_cambridge_by_car(cambridge):
    network, report = cambridge
    links = pd.read_csv(ROOT / "Cambridge_Multimodal_Network" / "link.csv.gz")
    cars = links[links["allowed_us"].str.contains("auto")]
    assert len(network.links) + report.loss.links == len(cars)
    assert network.total_length_m + report.loss.length_m == pytest.approx(cars["length"].sum(), rel=1e-12)
    assert [dropped.total for dropped in report.dropped] == [len(links) - len(cars)]
    assert set(network.links.lanes.tolist()) <= set(cars["lanes"].astype(int))


def test_cambridge_lengths_and_capacities_give_warnings(cambridge):
    found_warnings = texts_of(cambridge[1].warnings)
    mercator = "check the unit; lengths measured in Web Mercator are too long by such a factor"
    assert any(f"0.739 times as long as its stated length: {mercator}" in warning for warning in found_warnings)
    assert any(
        "capacity is above 3,000 vehicles/h per lane in 1,885 of 1,885 links" in warning for warning in found_warnings
    )
