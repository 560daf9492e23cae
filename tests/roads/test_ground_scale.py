"""Planes whose metres are not those on the ground are replaced, whatever the source of roads or places."""

import numpy as np
import pandas as pd
import pytest
from pyproj import CRS, Geod, Transformer
from read_roads import read_gmns, read_osm, read_tables

import scenarios
from simulator.experiment.assembly.roads import build_roads
from simulator.files.errors import InputError
from simulator.files.messages import texts_of
from simulator.formats.geo.geopackage import write_geopackage
from simulator.formats.recordings.owners import OwnerOptions, read_owners
from simulator.roads.network import RoadNetwork
from simulator.roads.projection import scale_error, true_plane

BLOCK = np.array([[11.50, 48.10], [11.51, 48.10], [11.51, 48.11], [11.50, 48.11]])
"""A block of Munich, degrees; north is 2 degrees off that of UTM, so that its extent there is some per cent greater."""
ENDS = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2), (3, 0), (0, 3)]
GEOD = Geod(ellps="WGS84")
OFF = ["EPSG:3857", "EPSG:4087", "ESRI:54009"]
TRUE = ["EPSG:32632", "EPSG:32633", "EPSG:3035"]


def in_plane(crs, lonlat=BLOCK):
    return np.column_stack(Transformer.from_crs("EPSG:4326", crs, always_xy=True).transform(*lonlat.T))


def ground_m(lonlat=BLOCK):
    return sum(GEOD.inv(*lonlat[a], *lonlat[b])[2] for a, b in ENDS)


def tables(folder, crs, lonlat=BLOCK):
    x, y = in_plane(crs, lonlat).T
    pd.DataFrame({"id": range(4), "x": x, "y": y}).to_csv(folder / "n.csv", index=False)
    pd.DataFrame(ENDS, columns=["a", "b"]).to_csv(folder / "e.csv", index=False)
    columns = {"node": "id", "x": "x", "y": "y", "from": "a", "to": "b"}
    return read_tables(nodes=folder / "n.csv", edges=folder / "e.csv", columns=columns, crs=crs)


@pytest.mark.parametrize("crs", OFF)
def test_lengths_of_tables_are_those_on_the_ground(crs, tmp_path):
    roads, report = tables(tmp_path, crs)
    assert roads.total_length_m == pytest.approx(ground_m(), rel=2e-3)
    assert roads.crs == CRS("EPSG:32632")
    (note,) = report.remarks
    assert "projected to 'WGS 84 / UTM zone 32N'" in note
    assert CRS(crs).name in note
    assert np.allclose(roads.to_wgs84(roads.node_xy), BLOCK, atol=1e-6)


@pytest.mark.parametrize("crs", TRUE)
def test_planes_true_to_the_ground_are_kept(crs, tmp_path):
    roads, report = tables(tmp_path, crs)
    assert roads.crs == CRS(crs)
    assert report.remarks == []
    assert np.array_equal(roads.node_xy, in_plane(crs))


def test_web_mercator_is_kept_at_the_equator(tmp_path):
    roads, report = tables(tmp_path, "EPSG:3857", BLOCK - np.array([0.0, 48.1]))
    assert (roads.crs, report.remarks) == (CRS("EPSG:3857"), [])


def test_gmns_and_openstreetmap_and_geopackage_are_replaced_too(tmp_path):
    x, y = in_plane("EPSG:3857").T
    pd.DataFrame({"node_id": range(4), "x_coord": x, "y_coord": y}).to_csv(tmp_path / "node.csv", index=False)
    links = pd.DataFrame(ENDS, columns=["from_node_id", "to_node_id"]).assign(link_id=range(8), directed=1)
    links.to_csv(tmp_path / "link.csv", index=False)
    for project_to in (None, "EPSG:3857"):
        gmns, report = read_gmns(tmp_path, crs="EPSG:3857", project_to=project_to)
        assert gmns.total_length_m == pytest.approx(ground_m(), rel=2e-3)
        assert any("projected to" in note for note in report.remarks)
    points = "".join(f'<node id="{i + 1}" lon="{x}" lat="{y}"/>' for i, (x, y) in enumerate(BLOCK))
    ways = "".join(
        f'<way id="{i}"><nd ref="{a + 1}"/><nd ref="{b + 1}"/><tag k="highway" v="residential"/></way>'
        for i, (a, b) in enumerate(ENDS[::2], 9)
    )
    (tmp_path / "block.osm").write_text(f'<osm version="0.6">{points}{ways}</osm>')
    osm, osm_report = read_osm(tmp_path / "block.osm", crs="EPSG:3857")
    west, south, east, north = osm.bounds
    assert (east - west, north - south) == (pytest.approx(745, rel=0.06), pytest.approx(1112, rel=0.06))
    assert any("projected to" in note for note in osm_report.remarks)

    graph = osm.graph.copy()  # as a program of the user's own may write it
    for (_, data), place in zip(graph.nodes(data=True), in_plane("EPSG:3857", osm.to_wgs84(osm.node_xy)), strict=True):
        data["x"], data["y"] = place.tolist()
    for *_, data in graph.edges(data=True):
        data.pop("geometry", None)
    graph.graph["crs"] = "EPSG:3857"
    write_geopackage(RoadNetwork.from_graph(graph), tmp_path / "block.gpkg")
    roads = {"source": "geopackage", "path": str(tmp_path / "block.gpkg")}
    read, notes = build_roads(scenarios.load("tiny").with_({"roads": roads}))
    assert read.crs == CRS("EPSG:32632")
    assert "projected to" in notes[0].text
    assert np.allclose(read.bounds, osm.bounds, atol=0.1)


def test_data_owners_in_a_plane_are_measured_on_the_ground(tmp_path):
    x, y = in_plane("EPSG:3857").T
    pd.DataFrame({"x": x, "y": y}).to_csv(tmp_path / "owners.csv", index=False)
    owners = read_owners(tmp_path / "owners.csv", OwnerOptions({"x": "x", "y": "y"}, crs="EPSG:3857"))
    west, south, east, north = owners.bounds
    assert (east - west, north - south) == (pytest.approx(745, rel=0.06), pytest.approx(1112, rel=0.06))
    assert any("projected to" in note for note in texts_of(owners.notes()))


def test_the_scale_is_that_of_a_geodesic():
    assert scale_error(CRS("EPSG:3857"), BLOCK) == pytest.approx(1 - np.cos(np.radians(48.105)), abs=3e-3)
    assert abs(scale_error(CRS("EPSG:32632"), BLOCK)) < 5e-4
    assert scale_error(CRS("EPSG:3857"), np.array([[0.0, np.inf]])) == 0.0
    assert true_plane(CRS("EPSG:32632"), BLOCK, what="f") == (CRS("EPSG:32632"), [])


def test_coordinates_far_outside_their_system_are_refused(tmp_path):
    with pytest.raises(InputError, match="is it the crs of this file"):
        tables(tmp_path, "EPSG:32632", BLOCK + np.array([80.0, 0.0]))
