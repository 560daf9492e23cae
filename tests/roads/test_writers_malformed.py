"""GeoPackages that are not road networks: an error that names file and reason."""

import geopandas as gpd
import pytest
from read_roads import read_geopackage

from simulator.files.errors import InputError
from simulator.formats.geo.geopackage import write_geopackage
from simulator.roads import build_grid


@pytest.fixture(scope="module")
def grid():
    return build_grid(rows=2, columns=2, spacing_x_m=100, spacing_y_m=100, speed_mps=10, lanes=1)


@pytest.fixture(scope="module")
def written(grid, tmp_path_factory):
    folder = tmp_path_factory.mktemp("written")
    write_geopackage(grid, folder / "roads.gpkg")
    return folder


def test_missing_files_are_refused(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_geopackage(tmp_path / "roads.gpkg")


def test_geopackage_without_roads_is_refused(tmp_path):
    gpd.GeoDataFrame({"a": [1]}, geometry=gpd.points_from_xy([0], [0]), crs=32618).to_file(tmp_path / "a.gpkg")
    with pytest.raises(InputError, match="layer nodes: cannot be read"):
        read_geopackage(tmp_path / "a.gpkg")


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "it is empty"), (b"a,b\n1,2\n", "does not begin with the header of an SQLite database")],
)
def test_file_that_is_no_database_is_refused(content, message, tmp_path):
    (tmp_path / "a.gpkg").write_bytes(content)
    with pytest.raises(InputError, match=f"a.gpkg: .*{message}"):
        read_geopackage(tmp_path / "a.gpkg")


def test_layers_of_two_crs_are_refused(written, tmp_path):
    for name, crs in (("nodes", None), ("links", "EPSG:4326")):
        frame = gpd.read_file(written / "roads.gpkg", layer=name)
        (frame if crs is None else frame.to_crs(crs)).to_file(tmp_path / "a.gpkg", layer=name)
    with pytest.raises(InputError, match=r"layer links: crs must be that of .*layer nodes, .*got 'WGS 84'"):
        read_geopackage(tmp_path / "a.gpkg")
