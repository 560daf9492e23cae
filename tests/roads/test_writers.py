"""Networks are equal after writing and reading; no partial files, no overwriting without request."""

import os
from pathlib import Path

import geopandas as gpd
import networkx as nx
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from read_roads import read_geopackage, read_geoparquet, read_gmns
from small_networks import graphs, same_network

from simulator.files.errors import InputError
from simulator.formats.roads.geo_files import write_geopackage, write_geoparquet
from simulator.formats.roads.gmns_writer import write_gmns
from simulator.formats.roads.sumo_plain import write_sumo_plain
from simulator.roads import RoadNetwork, build_grid

FORMATS = {
    "geopackage": (write_geopackage, read_geopackage, "roads.gpkg"),
    "geoparquet": (write_geoparquet, read_geoparquet, "roads"),
    "gmns": (write_gmns, lambda folder: read_gmns(folder)[0], "roads"),
}
by_format = pytest.mark.parametrize("name", sorted(FORMATS))


@pytest.fixture
def grid():
    return build_grid(rows=3, columns=4, spacing_x_m=120.5, spacing_y_m=80, speed_mps=13.9, lanes=2, one_way=True)


def written(name, network, folder):
    """Write the network and read it again."""
    write, read, path = FORMATS[name]
    write(network, folder / path, overwrite=True)
    return read(folder / path)


@pytest.mark.slow
@by_format
@given(graph=graphs())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_round_trip_of_any_graph(name, tmp_path, graph):
    network = RoadNetwork.from_graph(graph)
    same_network(network, written(name, network, tmp_path))


@by_format
def test_round_trip_of_a_grid_with_its_own_crs(name, grid, tmp_path):
    same_network(grid, written(name, grid, tmp_path))


@by_format
def test_round_trip_of_a_network_with_a_dead_end(name, grid, tmp_path):
    graph = grid.graph.copy()
    graph.add_node("dead end", x=0.0, y=-50.0)
    graph.add_edge((0, 0), "dead end", length_m=50.0, speed_mps=5.0, lanes=1, capacity_vph=900.0)
    network = RoadNetwork.from_graph(graph)
    same_network(network, written(name, network, tmp_path))


def test_written_gmns_can_be_read_without_its_dead_end(grid, tmp_path):
    graph = grid.graph.copy()
    graph.add_node("dead end", x=0.0, y=-50.0)
    graph.add_edge((0, 0), "dead end", length_m=50.0, speed_mps=5.0, lanes=1, capacity_vph=900.0)
    write_gmns(RoadNetwork.from_graph(graph), tmp_path / "g")
    strong, report = read_gmns(tmp_path / "g", keep="strong")
    assert "dead end" not in strong.graph
    assert (report.loss.nodes, report.loss.links) == (1, 1)


@pytest.mark.fast_cases(1)
@by_format
def test_round_trip_of_lima(name, tmp_path):
    folder = Path(os.environ.get("CROWDVEIL_DATA", "no such folder"), "gmns", "Lima")
    if not folder.is_dir():
        pytest.skip("CROWDVEIL_DATA names no folder with gmns/Lima: real data is not part of the project")
    lima, _ = read_gmns(folder, crs="EPSG:3735", length_m=0.3048, speed_mps=0.44704)
    assert len(lima.links) > 6000
    same_network(lima, written(name, lima, tmp_path))


def test_written_layers_have_matching_geometry(grid, tmp_path):
    write_geopackage(grid, tmp_path / "roads.gpkg")
    links = gpd.read_file(tmp_path / "roads.gpkg", layer="links")
    nodes = gpd.read_file(tmp_path / "roads.gpkg", layer="nodes")
    assert len(links) == len(grid.links)
    assert len(nodes) == len(grid.node_names)
    assert links.geometry.length.to_numpy() == pytest.approx(grid.links.length_m)
    lon, lat = nodes.to_crs("EPSG:4326").union_all().centroid.coords[0]
    assert (lon, lat) == pytest.approx((-74.0, 40.7), abs=0.01)


def test_written_gmns_states_its_units(grid, tmp_path):
    write_gmns(grid, tmp_path / "g")
    config = pd.read_csv(tmp_path / "g" / "config.csv")
    links = pd.read_csv(tmp_path / "g" / "link.csv")
    assert config.loc[0, ["long_length", "speed"]].tolist() == ["m", "km/h"]
    assert links["free_speed"].to_numpy() == pytest.approx(13.9 * 3.6)
    assert links["length"].to_numpy() == pytest.approx(grid.links.length_m)
    assert (links["capacity"] == 1800).all()


def test_edited_gmns_speed_is_read(tmp_path):
    graph = nx.MultiDiGraph(crs="EPSG:32618")
    graph.add_node(0, x=0.0, y=0.0)
    graph.add_node(1, x=100.0, y=0.0)
    for ends in ((0, 1), (1, 0)):
        graph.add_edge(*ends, length_m=100.0, speed_mps=0.1 + 0.2, lanes=1, capacity_vph=1800.0)
    write_gmns(RoadNetwork.from_graph(graph), tmp_path / "g")
    table = pd.read_csv(tmp_path / "g" / "link.csv")
    table["free_speed"] = 36
    table.to_csv(tmp_path / "g" / "link.csv", index=False)
    assert read_gmns(tmp_path / "g")[0].links.speed_mps == pytest.approx([10, 10])


@pytest.mark.parametrize(
    ("write", "path"),
    [
        pytest.param(write_geopackage, "r.gpkg", id="geopackage"),
        pytest.param(write_geoparquet, "r", id="geoparquet"),
        pytest.param(write_gmns, "r", id="gmns"),
        pytest.param(write_sumo_plain, "r", id="sumo"),
    ],
)
class TestOutputPath:
    def test_overwrites_only_on_request(self, write, path, grid, tmp_path):
        write(grid, tmp_path / "deep" / path)
        before = {file: file.read_bytes() for file in (tmp_path / "deep").rglob("*") if file.is_file()}
        with pytest.raises(InputError, match="overwrite"):
            write(grid, tmp_path / "deep" / path)
        assert {file: file.read_bytes() for file in (tmp_path / "deep").rglob("*") if file.is_file()} == before
        write(grid, tmp_path / "deep" / path, overwrite=True)
        assert {file for file in (tmp_path / "deep").rglob("*") if file.is_file()} == set(before)

    def test_keeps_other_files_of_a_folder(self, write, path, grid, tmp_path):
        write(grid, tmp_path / path)
        if (tmp_path / path).is_dir():
            (tmp_path / path / "notes.txt").write_text("mine", encoding="utf-8")
            write(grid, tmp_path / path, overwrite=True)
            assert (tmp_path / path / "notes.txt").read_text(encoding="utf-8") == "mine"

    def test_file_as_parent_folder_is_refused(self, write, path, grid, tmp_path):
        (tmp_path / "file").write_text("mine", encoding="utf-8")
        with pytest.raises(InputError, match="file"):
            write(grid, tmp_path / "file" / path)
        assert [path.name for path in tmp_path.iterdir()] == ["file"]

    def test_failed_write_leaves_no_network_files(self, write, path, grid, tmp_path, monkeypatch):
        def full_disk(*_, **__):
            raise OSError(28, "No space left on device")

        for method in (
            "pyogrio.write_dataframe",
            "geopandas.GeoDataFrame.to_parquet",
            "pandas.DataFrame.to_csv",
            "xml.etree.ElementTree.ElementTree.write",
        ):
            monkeypatch.setattr(method, full_disk)
        with pytest.raises(InputError, match="No space left"):
            write(grid, tmp_path / path)
        assert list(tmp_path.iterdir()) == []


def test_geopackage_needs_its_suffix(grid, tmp_path):
    with pytest.raises(InputError, match=r"must end in \.gpkg"):
        write_geopackage(grid, tmp_path / "roads.shp")


@pytest.mark.parametrize(
    ("attribute", "value", "rule"),
    [
        ("straight", 1, "has a column of that name"),
        ("Length_m", 1.0, "differs from it in case"),
        ("tag", {1}, "cannot be written as JSON"),
    ],
)
def test_unsupported_attributes_are_refused(attribute, value, rule, grid, tmp_path):
    graph = grid.graph.copy()
    next(iter(graph.edges(data=True)))[2][attribute] = value
    with pytest.raises(InputError, match=rule):
        write_geoparquet(RoadNetwork.from_graph(graph), tmp_path / "r")
    assert list(tmp_path.iterdir()) == []


def test_equal_networks_give_equal_files(grid, tmp_path):
    for name in ("a.gpkg", "b.gpkg"):
        write_geopackage(grid, tmp_path / name, remarks=["streets: left out 4 edges", "streets: ä <b>"])
    assert (tmp_path / "a.gpkg").read_bytes() == (tmp_path / "b.gpkg").read_bytes()
    raw = geo_files.read_geopackage(tmp_path / "a.gpkg")
    assert raw.remarks == ["streets: left out 4 edges", "streets: ä <b>"]
