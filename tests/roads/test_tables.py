"""Roads read from node and edge tables."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from read_roads import read_tables

from simulator.files.errors import InputError
from simulator.files.messages import texts_of
from simulator.roads.schema import node_keys

COLUMNS = {"node": "id", "lon": "lon", "lat": "lat", "from": "src", "to": "dst", "length_m": "len"}
SPEEDS = {"speed_mps": "mps", "speed_mph": "mph", "speed_kph": "kph"}


@pytest.fixture
def write(tmp_path):
    """Write a table, or text, under a name and return its path."""

    def _write(name, table):
        path = tmp_path / name
        if isinstance(table, bytes):
            path.write_bytes(table)
        elif isinstance(table, str):
            path.write_text(table, encoding="utf-8")
        elif name.endswith(".parquet"):
            table.to_parquet(path)
        else:
            table.to_csv(path, index=False)
        return path

    return _write


def nodes(**changes):
    """Three nodes in Manhattan."""
    table = {"id": [1, 2, 3], "lon": [-73.99, -73.989, -73.988], "lat": [40.75, 40.751, 40.752]}
    return pd.DataFrame(table | changes)


def edges(*rows, **changes):
    """A ring of the three nodes, and more rows."""
    table = pd.DataFrame([(1, 2, 100.0), (2, 3, 200.0), (3, 1, 300.0), *rows], columns=["src", "dst", "len"])
    return table.assign(**changes)


def read(write, node_table, edge_table, *, columns=None, **more):
    names = COLUMNS | (columns or {})
    return read_tables(
        nodes=write("nodes.csv", node_table), edges=write("edges.csv", edge_table), columns=names, **more
    )


def faults_of(write, node_table, edge_table, **more):
    with pytest.raises(InputError) as caught:
        read(write, node_table, edge_table, **more)
    return caught.value.faults


def test_ring_of_three_nodes(write):
    roads, report = read(write, nodes(), edges())
    assert roads.node_names == [1, 2, 3]
    np.testing.assert_array_equal(roads.links.length_m, [100.0, 200.0, 300.0])
    np.testing.assert_array_equal(roads.links.speed_mps, 13.9)
    np.testing.assert_array_equal(roads.links.lanes, 1)
    assert roads.crs.to_epsg() == 32618
    np.testing.assert_allclose(roads.to_wgs84(roads.node_xy), nodes()[["lon", "lat"]], atol=1e-9)
    assert texts_of(report.notes()) == []


@pytest.mark.parametrize(
    ("lon", "lat", "epsg"),
    [
        ([2.29, 2.30, 2.31], [48.85, 48.86, 48.87], 32631),
        ([151.2, 151.21, 151.22], [-33.86, -33.87, -33.88], 32756),
        ([179.99, -179.99, -179.98], [-16.8, -16.81, -16.82], 32701),
    ],
)
def test_positions_are_projected_to_their_utm_zone(write, lon, lat, epsg):
    """The last case crosses the meridian of 180 degrees; its middle is just east of it."""
    roads, _ = read(write, nodes(lon=lon, lat=lat), edges())
    assert roads.crs.to_epsg() == epsg
    across = roads.node_xy[1] - roads.node_xy[0]
    assert np.hypot(*across) < 3_000


def test_pole_has_no_utm_zone_but_accepts_a_crs(write):
    table = nodes(lat=[86.0, 86.001, 86.002])
    assert "no UTM zone about longitude -73.9890, latitude 86.0010; set crs" in faults_of(write, table, edges())[0]
    roads, _ = read(write, table, edges(), crs="EPSG:32661")
    assert roads.crs.to_epsg() == 32661


def test_planar_coordinates_need_a_crs(write):
    table = pd.DataFrame({"id": [1, 2, 3], "x": [0.0, 30.0, 0.0], "y": [0.0, 0.0, 40.0]})
    columns = {"node": "id", "x": "x", "y": "y", "from": "src", "to": "dst"}
    files = {"nodes": write("n.csv", table), "edges": write("e.csv", edges())}
    roads, _ = read_tables(**files, columns=columns, crs="EPSG:32618")
    np.testing.assert_array_equal(roads.links.length_m, [30.0, 50.0, 40.0])  # straight lines: no geometry is given
    with pytest.raises(InputError, match="crs: not a coordinate system"):
        read_tables(**files, columns=columns)
    with pytest.raises(InputError, match="crs must be projected, in metres"):
        read_tables(**files, columns=columns, crs="EPSG:4326")


def test_unusable_rows_are_dropped_by_number_and_reason(write):
    more = [(1, 9, 50.0), (2, 2, 50.0), (1, 3, 0.0), (1, 3, -4.0), (1, 3, None), (None, 3, 5.0)]
    table = edges(*more, (3, 2, 50.0), (3, 2, 60.0)).astype({"src": "Int64"})
    table["mps"] = [10.0] * 9 + [-1.0, 20.0]
    roads, report = read(write, nodes(), table, columns={"speed_mps": "mps"})
    prefix = report.links_file
    assert texts_of(report.notes())[len(texts_of(report.warnings)) :] == [
        f"{prefix}: dropped rows 4, 9: from or to is not in the node file",
        f"{prefix}: dropped row 5: it leads from a node to itself",
        f"{prefix}: dropped rows 6, 7, 8: length_m is not a number above 0",
        f"{prefix}: dropped row 10: its speed is negative",
    ]
    assert (report.link_rows, report.links) == (11, 4)
    np.testing.assert_array_equal(roads.links.length_m, [100.0, 200.0, 300.0, 60.0])


def test_at_most_twenty_dropped_rows_are_listed(write):
    _, report = read(write, nodes(), edges(*[(1, 1, 5.0)] * 31))
    (dropped,) = report.dropped
    assert (dropped.rows, dropped.total) == (tuple(range(4, 24)), 31)
    assert "22, 23 … (31 in all): it leads from a node to itself" in texts_of(report.notes())[0]


def test_edge_between_nodes_at_one_position_is_dropped_without_length(write):
    table = nodes(lon=[-73.99, -73.98, -73.98], lat=[40.75, 40.76, 40.76])
    columns = {name: column for name, column in COLUMNS.items() if name != "length_m"}
    files = {"nodes": write("n.csv", table), "edges": write("e.csv", edges((2, 1, 0.0)))}
    _, report = read_tables(**files, columns=columns)
    assert report.dropped[0].rows == (2,)
    assert "same place" in report.dropped[0].reason
    assert (report.loss.nodes, report.nodes) == (1, 2)


def test_each_row_uses_its_first_positive_speed(write):
    table = edges((1, 3, 50.0), (2, 1, 50.0))
    table["mps"] = [20.0, np.nan, 0.0, np.nan, np.nan]
    table["mph"] = [10.0, 25.0, np.nan, np.inf, np.nan]
    table["kph"] = [10.0, 25.0, 36.0, 54.0, np.nan]
    roads, report = read(write, nodes(), table, columns=SPEEDS, default_speed_mps=7.0)
    by_length = {(length, speed) for length, speed in zip(roads.links.length_m, roads.links.speed_mps, strict=True)}
    assert by_length == {(100.0, 20.0), (200.0, 25 * 0.44704), (300.0, 10.0), (50.0, 15.0), (50.0, 7.0)}
    assert texts_of(report.notes())[len(texts_of(report.warnings)) :] == [
        f"{report.links_file}: speed_mps taken as 7 m/s in 1 of 5 rows"
    ]


def test_unusable_lanes_and_capacity_get_counted_defaults(write):
    table = edges((1, 3, 50.0), (2, 1, 50.0), kind=["a", None, "b", "c", "d"])
    table["lanes"] = ["2", "['2', '3']", "", "1.5", "3.0"]
    table["cap"] = [900.0, -1.0, 0.0, np.nan, 1200.0]
    columns = {"lanes": "lanes", "capacity_vph": "cap", "class": "kind"}
    roads, report = read(write, nodes(), table, columns=columns, default_lanes=4, capacity_vph=1500.0)
    np.testing.assert_array_equal(roads.links.lanes, [2, 4, 3, 2, 4])
    np.testing.assert_array_equal(roads.links.capacity_vph, [900.0, 1500.0, 1200.0, 1500.0, 1500.0])
    assert [(filled.name, filled.total) for filled in report.defaults] == [("lanes", 2), ("capacity_vph", 3)]
    assert roads.graph[1][2][0]["class"] == "a"
    assert "class" not in roads.graph[2][3][0]


def test_csv_gzip_and_parquet_agree(write):
    node_table, edge_table = nodes(lon=[-73.99 + 1 / 3e5, -73.98, -73.97]), edges((1, 3, 1 / 3))
    edge_table["lanes"] = [2, 1, 3, 2]
    read_networks = []
    for suffix in (".csv", ".csv.gz", ".parquet"):
        network, _ = read_tables(
            nodes=write("nodes" + suffix, node_table),
            edges=write("edges" + suffix, edge_table),
            columns=COLUMNS | {"lanes": "lanes"},
        )
        read_networks.append(network)
    first, *others = read_networks
    for other in others:
        assert other.node_names == first.node_names
        np.testing.assert_allclose(other.node_xy, first.node_xy, rtol=1e-15)
        for name in first.links.__dataclass_fields__:
            np.testing.assert_allclose(getattr(other.links, name), getattr(first.links, name), rtol=1e-15)


def test_parquet_index_and_list_columns_are_read(tmp_path):
    edge_table = edges(lanes=[[2], [2, 3], [1]])
    edge_table.to_parquet(tmp_path / "edges.parquet")
    nodes().set_index("id").to_parquet(tmp_path / "nodes.parquet")
    _, report = read_tables(
        nodes=tmp_path / "nodes.parquet",
        edges=tmp_path / "edges.parquet",
        columns=COLUMNS | {"lanes": "lanes"},
    )
    assert report.defaults[0].total == 3
    assert texts_of(report.notes())[0].endswith("lanes taken as 1 in 3 of 3 rows")


@pytest.mark.parametrize(("node_type", "edge_type"), [("int64", "float64"), ("float64", "str"), ("Int64", "object")])
def test_identifiers_match_across_column_types(write, node_type, edge_type):
    large = 12_699_200_001
    table = nodes(id=[1, 2, large]).astype({"id": node_type})
    ring = edges().replace({"src": {3: large}, "dst": {3: large}}).astype({"src": edge_type, "dst": edge_type})
    roads, report = read_tables(nodes=write("n.parquet", table), edges=write("e.parquet", ring), columns=COLUMNS)
    assert roads.node_names == [1, 2, large]
    assert report.dropped == ()


def test_nodes_are_numbered_if_all_of_their_identifiers_are_whole_numbers():
    assert node_keys(["0", "-3", "12"]) == [0, -3, 12]
    assert node_keys(["0", "07"]) == ["0", "07"]
    assert node_keys(["1", "9" * 5_000]) == ["1", "9" * 5_000]


def test_all_invalid_nodes_are_reported(write):
    table = nodes(id=[1, 1, None], lon=[-73.99, np.nan, 181.0], lat=["x", 40.76, -91.0])
    faults = faults_of(write, table, edges())
    file = str(Path(faults[0].split(":", maxsplit=1)[0]))
    assert Path(file).name == "nodes.csv"
    assert [fault.removeprefix(f"{file}: ") for fault in faults] == [
        "row 3: node (column 'id') must be an identifier, got NaN or nothing",
        "rows 1, 2: node (column 'id') must be an identifier no other row has, got '1.0'",
        "row 2: lon (column 'lon') must be a finite number, got NaN or nothing",
        "row 1: lat (column 'lat') must be a finite number, got 'x'",
        "row 3: lon (column 'lon') must be degrees from -180 to 180, got '181.0'",
        "row 3: lat (column 'lat') must be degrees from -90 to 90, got '-91.0'",
    ]


def test_infinite_coordinates_are_refused(write):
    (fault,) = faults_of(write, nodes(lat=[40.75, np.inf, 40.77]), edges())
    assert "row 2: lat (column 'lat') must be a finite number, got 'inf'" in fault


def test_missing_columns_of_both_files_are_named_together(write):
    columns = {"lat": "latitude", "length_m": "metres", "lanes": "n"}
    faults = faults_of(write, nodes(), edges(), columns=columns)
    assert [fault.split(": ", maxsplit=1)[1] for fault in faults] == [
        "no column 'latitude' for lat; its columns are 'id', 'lon', 'lat'",
        "no column 'metres' for length_m; its columns are 'src', 'dst', 'len'",
        "no column 'n' for lanes; its columns are 'src', 'dst', 'len'",
    ]


def test_faults_of_both_files_are_reported_together(tmp_path):
    with pytest.raises(InputError) as caught:
        read_tables(nodes=tmp_path / "n.csv", edges=tmp_path / "e.csv", columns=COLUMNS)
    assert [fault.split(": ")[1] for fault in caught.value.faults] == ["no such file"] * 2


def test_the_strong_component_and_its_loss_are_reported(write):
    table = nodes(id=[1, 2, 3]).iloc[[0, 1, 2, 2]].assign(id=[1, 2, 3, 4])
    roads, report = read(write, table, edges((3, 4, 2500.0)))
    assert roads.node_names == [1, 2, 3]
    assert (report.loss.nodes, report.loss.links, report.loss.length_m) == (1, 1, 2500.0)
    (note,) = texts_of(report.notes())
    assert note.startswith("kept the 3 nodes and 3 links of the largest part in which every node can be reached from")
    assert note.endswith("left out 1 node and 1 link, 2.5 km")


def test_empty_network_is_refused_with_the_reason(write):
    (fault,) = faults_of(write, nodes(), edges().assign(len=0.0))
    assert "the road network is empty: no edge can be used (rows 1, 2, 3: length_m is not" in fault
    (fault,) = faults_of(write, nodes(), edges().iloc[:2])
    assert "no two nodes are connected in both directions" in fault


def test_manhattan_drive_graph():
    """The real drive graph: 8 self-loops; `maxspeed` is in mph where it is known."""
    folder = Path(os.environ.get("CROWDVEIL_DATA", "")) / "osm_drive_graphs"
    if "CROWDVEIL_DATA" not in os.environ or not (folder / "manhattan_nodes.csv.gz").exists():
        pytest.skip("set CROWDVEIL_DATA to a folder with osm_drive_graphs/manhattan_nodes.csv.gz to read it")
    columns = {"node": "idx", "lat": "lat", "lon": "lon", "from": "src", "to": "dst", "length_m": "length"}
    columns |= {"speed_mph": "maxspeed", "speed_kph": "speed_kph", "lanes": "lanes", "class": "highway"}
    roads, report = read_tables(
        nodes=folder / "manhattan_nodes.csv.gz", edges=folder / "manhattan_edges.csv.gz", columns=columns
    )
    assert (report.node_rows, report.link_rows) == (4607, 9880)
    assert [dropped.rows for dropped in report.dropped] == [(3792, 4193, 8031, 8061, 8151, 8641, 8930, 9555)]
    assert report.nodes + report.loss.nodes == 4607
    assert report.links + report.loss.links == 9880 - 8
    assert report.nodes > 4500
    assert roads.crs.to_epsg() == 32618
    # row 1 has maxspeed 25; row 2 has none, and speed_kph 50
    assert roads.graph[1][1302][0]["speed_mps"] == pytest.approx(25 * 0.44704)
    assert roads.graph[1][2][0]["speed_mps"] == pytest.approx(50 / 3.6)
    straight = np.hypot(*(roads.node_xy[roads.links.to_node] - roads.node_xy[roads.links.from_node]).T)
    assert np.median(roads.links.length_m / straight) == pytest.approx(1.0, abs=0.005)


@pytest.mark.parametrize("name", ["NA", "null", "nan"])
def test_a_node_may_be_called_na_in_tables_with_decimal_commas(write, name):
    ids = ["1", "2", name]
    tables = [nodes(id=ids), edges().replace({"src": {3: name}, "dst": {3: name}}).astype({"src": str, "dst": str})]
    written = [table.to_csv(index=False, sep=";", decimal=",") for table in tables]
    network, _ = read(write, *written)
    same, _ = read(write, nodes(), edges())
    assert network.node_names == ids
    assert network.links.length_m.tolist() == same.links.length_m.tolist()
    np.testing.assert_array_equal(network.node_xy, same.node_xy)
