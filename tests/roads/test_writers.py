"""Networks are equal after writing and reading; no partial files, no overwriting without request."""

import geopandas as gpd
import pytest
from hypothesis import HealthCheck, given, settings
from read_roads import read_geopackage
from small_networks import graphs, same_network

from simulator.files.errors import InputError
from simulator.formats.geo import geopackage
from simulator.formats.geo.geopackage import write_geopackage
from simulator.roads import RoadNetwork, build_grid


@pytest.fixture
def grid():
    return build_grid(rows=3, columns=4, spacing_x_m=120.5, spacing_y_m=80, speed_mps=13.9, lanes=2, one_way=True)


def written(network, folder):
    """Write the network and read it again."""
    write_geopackage(network, folder / "roads.gpkg", overwrite=True)
    return read_geopackage(folder / "roads.gpkg")


@pytest.mark.slow
@given(graph=graphs())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_round_trip_of_any_graph(tmp_path, graph):
    network = RoadNetwork.from_graph(graph)
    same_network(network, written(network, tmp_path))


def test_round_trip_of_a_network_with_a_dead_end(grid, tmp_path):
    graph = grid.graph.copy()
    graph.add_node("dead end", x=0.0, y=-50.0)
    graph.add_edge((0, 0), "dead end", length_m=50.0, speed_mps=5.0, lanes=1, capacity_vph=900.0)
    network = RoadNetwork.from_graph(graph)
    same_network(network, written(network, tmp_path))


def test_written_layers_have_matching_geometry(grid, tmp_path):
    write_geopackage(grid, tmp_path / "roads.gpkg")
    links = gpd.read_file(tmp_path / "roads.gpkg", layer="links")
    nodes = gpd.read_file(tmp_path / "roads.gpkg", layer="nodes")
    assert len(links) == len(grid.links)
    assert len(nodes) == len(grid.node_names)
    assert links.geometry.length.to_numpy() == pytest.approx(grid.links.length_m)
    lon, lat = nodes.to_crs("EPSG:4326").union_all().centroid.coords[0]
    assert (lon, lat) == pytest.approx((-74.0, 40.7), abs=0.01)


class TestOutputPath:
    def test_overwrites_only_on_request(self, grid, tmp_path):
        file = tmp_path / "deep" / "r.gpkg"
        write_geopackage(grid, file)
        before = file.read_bytes()
        with pytest.raises(InputError, match="overwrite"):
            write_geopackage(grid, file)
        assert file.read_bytes() == before
        write_geopackage(grid, file, overwrite=True)
        assert [*file.parent.iterdir()] == [file]

    def test_file_as_parent_folder_is_refused(self, grid, tmp_path):
        (tmp_path / "file").write_text("mine", encoding="utf-8")
        with pytest.raises(InputError, match="file"):
            write_geopackage(grid, tmp_path / "file" / "r.gpkg")
        assert [path.name for path in tmp_path.iterdir()] == ["file"]

    def test_failed_write_leaves_no_files(self, grid, tmp_path, monkeypatch):
        def full_disk(*_, **__):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("pyogrio.write_dataframe", full_disk)
        with pytest.raises(InputError, match="No space left"):
            write_geopackage(grid, tmp_path / "r.gpkg")
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
        write_geopackage(RoadNetwork.from_graph(graph), tmp_path / "r.gpkg")
    assert list(tmp_path.iterdir()) == []


def test_equal_networks_give_equal_files(grid, tmp_path):
    for name in ("a.gpkg", "b.gpkg"):
        write_geopackage(grid, tmp_path / name, remarks=["streets: left out 4 edges", "streets: ä <b>"])
    assert (tmp_path / "a.gpkg").read_bytes() == (tmp_path / "b.gpkg").read_bytes()
    raw = geopackage.read_geopackage(tmp_path / "a.gpkg")
    assert raw.remarks == ["streets: left out 4 edges", "streets: ä <b>"]


def test_geopackage_without_roads_is_refused(tmp_path):
    gpd.GeoDataFrame({"a": [1]}, geometry=gpd.points_from_xy([0], [0]), crs=32618).to_file(tmp_path / "a.gpkg")
    with pytest.raises(InputError, match="layer nodes: cannot be read"):
        read_geopackage(tmp_path / "a.gpkg")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (b"a,b\n1,2\n", "does not begin with the header of an SQLite database"),
        (None, "no such file"),
    ],
)
def test_file_that_is_no_database_is_refused(content, message, tmp_path):
    if content is not None:
        (tmp_path / "a.gpkg").write_bytes(content)
    with pytest.raises(InputError, match=f"a.gpkg: .*{message}"):
        read_geopackage(tmp_path / "a.gpkg")
