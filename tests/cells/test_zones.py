"""Zones: polygons from a frame or a file as cells, which point is in which, and files that are refused."""

import geopandas as gpd
import pytest
import shapely
from partition_cases import CRS, places, zones

from simulator.cells import Zones
from simulator.files.errors import InputError

SQUARES = [shapely.box(x, y, x + 100.0, y + 100.0) for y in (0.0, 100.0) for x in (0.0, 100.0)]
FORMATS = {"geojson": "GeoJSON", "gpkg": "GPKG", "shp": "ESRI Shapefile", "parquet": ""}


def frame_of(shapes, **columns) -> gpd.GeoDataFrame:
    return gpd.GeoDataFrame(columns, geometry=shapes, crs=CRS)


def write(frame: gpd.GeoDataFrame, path) -> None:
    driver = FORMATS[path.suffix[1:]]
    if not driver:
        frame.to_parquet(path)
    else:
        (frame.to_crs("EPSG:4326") if driver == "GeoJSON" else frame).to_file(path, driver=driver)


def test_a_point_is_in_the_first_zone_that_contains_it():
    cells, xy = zones(), places(3_000)
    expected = [
        next((cell for cell, shape in enumerate(cells.shapes, 1) if shape.intersects(shapely.Point(point))), 0)
        for point in xy
    ]
    assert cells.cell_of(xy).tolist() == expected
    assert len(set(expected)) == cells.count + 1


def test_common_boundaries_belong_to_the_first_zone():
    cells, notes = Zones.build(frame_of(SQUARES), name=None, crs=CRS)
    assert notes == []
    assert cells.names == ["1", "2", "3", "4"]
    assert cells.cell_of([(100.0, 50.0), (50.0, 100.0), (100.0, 100.0), (150.0, 100.0)]).tolist() == [1, 1, 1, 2]


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_gives_the_same_cells(suffix, tmp_path):
    made = zones()
    path = tmp_path / f"districts.{suffix}"
    write(frame_of(made.shapes, district=made.names), path)
    read, notes = Zones.read(path, name="district", layer=None, crs=CRS)
    assert notes == []
    assert read.names == made.names
    xy = places(2_000, seed=9)
    # GeoJSON is rounded to 7 decimals of a degree, about 1 cm: of 2,000 random points none is that close to a boundary.
    assert read.cell_of(xy).tolist() == made.cell_of(xy).tolist()


def test_names_that_repeat_are_numbered():
    cells, _ = Zones.build(frame_of(SQUARES, name=["north", "south", "north", "north"]), name="name", crs=CRS)
    assert cells.names == ["north", "south", "north #2", "north #3"]


def test_zones_that_overlap_are_refused_and_slivers_are_not():
    shifted = [SQUARES[0], shapely.affinity.translate(SQUARES[0], 40.0, 0.0)]
    with pytest.raises(InputError, match="zones '1' and '2' overlap, by 60% of the smaller one"):
        Zones.build(frame_of(shifted), name=None, crs=CRS)
    slivers = [SQUARES[0], shapely.affinity.translate(SQUARES[1], -0.5, 0.0)]
    cells, _ = Zones.build(frame_of(slivers), name=None, crs=CRS)
    assert cells.cell_of([(99.8, 50.0), (101.0, 50.0)]).tolist() == [1, 2]


def test_an_invalid_boundary_is_repaired_with_a_note():
    bow_tie = shapely.Polygon([(0, 0), (100, 100), (100, 0), (0, 100)])
    cells, notes = Zones.build(frame_of([bow_tie]), name=None, crs=CRS)
    assert notes == ["cells: 1 zone with an invalid boundary repaired, the first '1': Self-intersection[50 50]"]
    assert cells.cell_of([(10.0, 50.0), (90.0, 50.0), (50.0, 10.0)]).tolist() == [1, 1, 0]


def test_rows_without_a_geometry_are_left_out_with_a_note():
    cells, notes = Zones.build(frame_of([SQUARES[0], None, shapely.Polygon()], id=[7, 8, 9]), name="id", crs=CRS)
    assert cells.names == ["7"]
    assert notes == ["cells: 2 zones without a geometry left out"]


@pytest.mark.parametrize(
    ("frame", "name", "message"),
    [
        (frame_of([]), None, "there is no zone, and so no cell"),
        (frame_of([shapely.Point(0, 0)]), None, "zone '1' must be a polygon"),
        (frame_of(SQUARES, code=[1, 2, 3, 4]), "id", "name: there is no column 'id'; there are code"),
        (frame_of(SQUARES).set_crs(None, allow_override=True), None, "the zones have no coordinate system"),
    ],
)
def test_frames_that_are_no_zones_are_refused(frame, name, message):
    with pytest.raises(InputError, match=message):
        Zones.build(frame, name=name, crs=CRS)


def test_files_that_are_not_what_their_name_says_are_refused(tmp_path):
    # GDAL would follow this description to another file.
    disguised = tmp_path / "zones.geojson"
    layer = "<OGRVRTLayer name='x'><SrcDataSource>/etc/passwd</SrcDataSource></OGRVRTLayer>"
    disguised.write_text(f"<OGRVRTDataSource>{layer}</OGRVRTDataSource>")
    with pytest.raises(InputError, match=r"zones\.geojson: is not GeoJSON"):
        Zones.read(disguised, name=None, layer=None, crs=CRS)
    cut = tmp_path / "cut.gpkg"
    cut.write_bytes(b"SQLite format 3\x00" + bytes(200))
    with pytest.raises(InputError, match=r"cut\.gpkg: cannot be read as GPKG"):
        Zones.read(cut, name=None, layer=None, crs=CRS)
    other = tmp_path / "zones.kml"
    other.write_text("")
    with pytest.raises(InputError, match=r"zones\.kml: must be GeoJSON \(\.geojson, \.json\), GeoPackage"):
        Zones.read(other, name=None, layer=None, crs=CRS)


def test_a_geopackage_with_several_layers_needs_the_name_of_one(tmp_path):
    path = tmp_path / "city.gpkg"
    frame_of(SQUARES).to_file(path, layer="districts", driver="GPKG")
    frame_of(SQUARES[:2]).to_file(path, layer="parks", driver="GPKG")
    with pytest.raises(InputError, match=r"layer: city\.gpkg has several; name one of districts, parks"):
        Zones.read(path, name=None, layer=None, crs=CRS)
    with pytest.raises(InputError, match=r"layer: city\.gpkg has no layer 'roads'; it has districts, parks"):
        Zones.read(path, name=None, layer="roads", crs=CRS)
    assert Zones.read(path, name=None, layer="parks", crs=CRS)[0].count == 2


def test_names_stored_as_floats_because_one_is_missing_are_whole_numbers():
    cells, _ = Zones.build(frame_of(SQUARES, id=[7.0, None, 9.0, 10.0]), name="id", crs=CRS)
    assert cells.names == ["7", "no name", "9", "10"]
