"""Roads drawn as lines in GeoJSON, Shapefiles and GeoPackages."""

from __future__ import annotations

import zipfile

import geopandas as gpd
import numpy as np
import pytest
import shapely

from simulator.files.errors import InputError
from simulator.files.messages import texts_of
from simulator.formats.geo.lines import read_lines
from simulator.roads.raw_network import build

CRS = "EPSG:32632"
WEST, SOUTH = 600_000.0, 5_500_000.0


def frame(*lines, **columns):
    """Lines by their metres from a corner."""
    shapes = [shapely.LineString(np.add(line, (WEST, SOUTH))) for line in lines]
    return gpd.GeoDataFrame(columns, geometry=shapes, crs=CRS)


STREET = ((0, 0), (100, 0), (200, 0))
AVENUE = ((100, -100), (100, 0), (100, 100))
BRIDGE = ((50, 100), (50, -100))
TOWN = (STREET, AVENUE, BRIDGE, ((50, -100), (100, -100)), ((50, 100), (100, 100.6)))


def read(path, table, **more):
    table.to_file(path)
    return build(read_lines(path, **more))


def links_of(roads):
    """From, to and length of each link, in metres from the corner."""
    metres = (roads.node_xy - (WEST, SOUTH)).round().astype(int)
    ends = zip(metres[roads.links.from_node].tolist(), metres[roads.links.to_node].tolist(), strict=True)
    return {(*a, *b): round(length) for (a, b), length in zip(ends, roads.links.length_m, strict=True)}


@pytest.mark.parametrize("name", ["town.geojson", "town.gpkg", "town.shp"])
def test_lines_are_cut_at_common_vertices_and_joined_at_close_ends(tmp_path, name):
    """The bridge crosses the street without a common vertex; its northern end is 0.6 m off, and joined."""
    roads, report = read(tmp_path / name, frame(*TOWN, lanes=[4, 2, 2, 2, 2]))
    assert links_of(roads)[(0, 0, 100, 0)] == links_of(roads)[(100, 0, 0, 0)] == 100
    assert len(roads.links) == 2 * 7
    assert (50, 0) not in {link[:2] for link in links_of(roads)}
    assert sorted(roads.links.lanes.tolist()) == [1] * 10 + [2] * 4  # both directions are counted
    words = "5 lines (0 one-way along, 0 against, 5 two-way); cut at common vertices into 7 pieces"
    assert words in "\n".join(texts_of(report.notes()))
    apart, _ = read(tmp_path / name, frame(*TOWN), join_m=0.1)
    assert len(apart.links) == 2 * 7
    assert len(apart.node_names) == len(roads.node_names) + 1


def test_a_zipped_shapefile_in_degrees_gives_the_same_roads(tmp_path):
    plain, _ = read(tmp_path / "town.gpkg", frame(*TOWN))
    frame(*TOWN).to_crs("EPSG:4326").to_file(tmp_path / "town.shp")
    with zipfile.ZipFile(tmp_path / "town.zip", "w") as packed:
        for part in tmp_path.glob("town.[sdp]*"):
            packed.write(part, part.name)
    roads, _ = build(read_lines(tmp_path / "town.zip"))
    assert roads.crs.to_epsg() == 32632
    assert links_of(roads) == links_of(plain)
    (tmp_path / "broken.zip").write_bytes(b"PK nothing")
    with pytest.raises(InputError, match="cannot be unpacked"):
        read_lines(tmp_path / "broken.zip")


RING = (((0, 0), (100, 0)), ((100, 0), (100, 80)), ((0, 0), (100, 80)))


def test_one_way_lines_by_usual_and_by_stated_values(tmp_path):
    roads, _ = read(tmp_path / "ring.geojson", frame(*RING, oneway=["F", "yes", "T"]))
    assert set(links_of(roads)) == {(0, 0, 100, 0), (100, 0, 100, 80), (100, 80, 0, 0)}
    given = {"columns": {"oneway": "richtung"}, "along": ["hin"], "against": ["her"]}
    roads, _ = read(tmp_path / "ring.geojson", frame(*RING, richtung=["Hin", "beide", "her"]), **given)
    assert set(links_of(roads)) == {(0, 0, 100, 0), (100, 0, 100, 80), (100, 80, 100, 0), (100, 80, 0, 0)}


def test_columns_units_and_capacities_of_whole_lines(tmp_path):
    table = frame(*RING, tempo=[50, 30, 30], spuren=[2, 1, 1], kap=[3600, 900, 900], km=[0.2, 0.1, 0.2], oneway="yes")
    table.geometry = [table.geometry[0], table.geometry[1], table.geometry[2].reverse()]
    columns = {"speed_kph": "tempo", "lanes": "spuren", "capacity_total_vph": "kap", "length_km": "km"}
    roads, _ = read(tmp_path / "ring.geojson", table, columns=columns)
    np.testing.assert_allclose(roads.links.speed_mps * 3.6, [50, 30, 30])
    np.testing.assert_array_equal(roads.links.capacity_vph, [1800, 900, 900])
    np.testing.assert_allclose(roads.links.length_m, [200, 100, 200])
    with pytest.raises(InputError, match="no column 'v'; its columns are 'tempo', 'spuren', 'kap', 'km', 'oneway'"):
        read_lines(tmp_path / "ring.geojson", columns={"speed_kph": "v"})


def test_openstreetmap_lines_keep_what_cars_may_use_and_streets_drawn_twice_once(tmp_path):
    """OSMnx writes a two-way street once in each direction, and with oneway False."""
    there = [*RING, ((0, 0), (50, 40))]
    table = frame(
        *there, *(line[::-1] for line in RING), highway=[*["residential"] * 3, "footway", *["residential"] * 3]
    )
    roads, report = read(tmp_path / "osm.geojson", table.assign(oneway=False, maxspeed=["30 mph"] * 7))
    assert len(roads.links) == 6
    np.testing.assert_allclose(roads.links.speed_mps, 30 * 0.44704)
    np.testing.assert_array_equal(roads.links.capacity_vph, 600)
    assert [(one.reason, one.rows) for one in report.dropped] == [
        ("its class is not one of those kept", (4,)),
        ("it is two-way, and drawn before", (5, 6, 7)),
    ]


def test_a_shapefile_without_a_system_needs_one(tmp_path):
    frame(*TOWN).to_file(tmp_path / "town.shp")
    (tmp_path / "town.prj").unlink()
    with pytest.raises(InputError, match="the file states no coordinate system") as caught:
        read_lines(tmp_path / "town.shp")
    assert caught.value.key == "roads.crs"
    assert build(read_lines(tmp_path / "town.shp", crs=CRS))[0].crs.to_epsg() == 32632


def test_web_mercator_is_measured_on_the_ground(tmp_path):
    roads, report = read(tmp_path / "town.geojson", frame(*TOWN).to_crs("EPSG:3857"))
    assert links_of(roads)[(0, 0, 100, 0)] == 100
    assert not report.warnings


def test_values_of_oneway_that_are_not_known_are_counted(tmp_path):
    _, report = read(tmp_path / "ring.geojson", frame(*RING, oneway=["perhaps", "no", "Perhaps"]))
    assert "taken as two-way: perhaps (2)" in "\n".join(texts_of(report.notes()))
    _, report = read(tmp_path / "known.geojson", frame(*RING, oneway=["yes", "B", "no"]))
    assert "taken as two-way" not in "\n".join(texts_of(report.notes()))
