"""Links by interval, exported for SUMO, GMNS tools and QGIS, and read again."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest

import crowdveil as cv
from simulator.files.errors import InputError
from simulator.files.xml_elements import elements_of
from simulator.pages.exports.geopackage import write_geopackage
from simulator.pages.exports.link_tables import write_edge_data, write_link_performance


@pytest.fixture(scope="module")
def result():
    return cv.run("tiny", overrides={"report.link_interval_s": 70, "scenario.start": "07:58"})


@pytest.fixture(scope="module")
def named(result):
    """The run on roads whose source has ids that XML must escape."""
    ids = [f'edge "{link}" <&' for link in result.roads["link"]]
    return result.with_tables(roads=result.roads.assign(source_id=ids))


def edges_of(file):
    rows, begin = [], np.nan
    for element in elements_of(file, root="meandata", ends=False):
        if element.name == "interval":
            begin = float(element.attributes["begin"])
        elif element.name == "edge":
            rows.append({"begin": begin, **element.attributes})
    return pd.DataFrame(rows)


def test_edge_data_have_the_volumes_and_speeds_of_each_interval(result, named, tmp_path):
    write_edge_data(result, tmp_path / "numbers.xml", overwrite=False)
    write_edge_data(named, tmp_path / "named.xml", overwrite=False)
    links = result.links.sort_values(["from_s", "link"], kind="stable").reset_index(drop=True)
    edges, ids = edges_of(tmp_path / "numbers.xml"), edges_of(tmp_path / "named.xml")["id"]
    assert edges["id"].astype(int).tolist() == links["link"].tolist()
    assert ids.tolist() == [f'edge "{link}" <&' for link in links["link"]]
    assert edges["begin"].tolist() == links["from_s"].tolist()
    for name, column in (("entered", "entered"), ("left", "left"), ("speed", "mean_speed_mps")):
        np.testing.assert_allclose(edges[name].astype(float), links[column], atol=0.005)
    np.testing.assert_allclose(edges["sampledSeconds"].astype(float).sum(), links["occupied_s"].sum(), rtol=1e-4)
    assert (edges["traveltime"].isna() == (links["left"] == 0)).all()
    np.testing.assert_allclose(
        edges["waitingTime"].astype(float), links["queue_vehicles"] * (links["to_s"] - links["from_s"]), atol=0.005
    )


def test_sumolib_reads_the_edge_data(result, tmp_path):
    sumolib = pytest.importorskip("sumolib")
    write_edge_data(result, tmp_path / "edges.xml", overwrite=False)
    intervals = [*sumolib.xml.parse(str(tmp_path / "edges.xml"), "interval")]
    assert sum(int(edge.left) for interval in intervals for edge in interval.edge) == result.record.link_crossings


def test_link_performance_has_minutes_and_km_per_hour(named, tmp_path):
    write_link_performance(named, tmp_path / "link_performance.csv", overwrite=False)
    table, links = pd.read_csv(tmp_path / "link_performance.csv"), named.links
    assert table["link_id"].tolist() == [f'edge "{link}" <&' for link in links["link"]]
    assert set(table["time_period"]) >= {"0758:00_0759:10", "0802:40_0803:00"}
    np.testing.assert_allclose(table["travel_time"] * 60, links["travel_time_s"], rtol=1e-4)
    np.testing.assert_allclose(table["speed"] / 3.6, links["mean_speed_mps"], rtol=1e-4)
    assert table["volume"].tolist() == links["left"].tolist()
    assert gpd.GeoSeries.from_wkt(table["geometry"]).geom_type.eq("LineString").all()


def test_a_geopackage_has_the_links_with_their_own_ids_and_times(named, tmp_path):
    write_geopackage(named, tmp_path / "run.gpkg", overwrite=False)
    layer = gpd.read_file(tmp_path / "run.gpkg", layer="links")
    links = named.links
    assert layer["source_id"].tolist() == [f'edge "{link}" <&' for link in links["link"]]
    lasts = (layer["until"] - layer["time"]).dt.total_seconds()
    np.testing.assert_allclose(lasts, links["to_s"] - links["from_s"])
    np.testing.assert_allclose(layer["volume_vph"], links["left"] / lasts * 3600)
    shapes = named.roads.set_index("link").geometry
    assert all(shape.equals(shapes[link]) for link, shape in zip(layer["link"], layer.geometry, strict=True))


def test_a_run_without_links_by_interval_says_how_to_get_them(tmp_path):
    for write in (write_edge_data, write_link_performance):
        with pytest.raises(InputError, match=r"no links by interval; .*--set report\.link_interval_s=300"):
            write(cv.run("tiny"), tmp_path / "file", overwrite=False)


def test_roads_keep_the_ids_classes_and_names_of_their_source(tmp_path):
    folder = tmp_path / "gmns"
    folder.mkdir()
    (folder / "node.csv").write_text("node_id,x_coord,y_coord\n1,11.30,44.50\n2,11.31,44.50\n3,11.31,44.51\n")
    streets = [f"{a}{b},{a},{b},true,{'North' if a == 1 else ''},primary" for a, b in ((1, 2), (2, 3), (3, 1))]
    head = "link_id,from_node_id,to_node_id,directed,name,facility_type"
    (folder / "link.csv").write_text("\n".join([head, *streets]) + "\n")
    given = {"roads": {"source": "gmns", "path": str(folder), "crs": "EPSG:4326"}, "report.link_interval_s": 60}
    roads = cv.run("tiny", overrides=given).roads
    assert roads["source_id"].tolist() == ["12", "23", "31"]
    assert roads["class"].tolist() == ["primary"] * 3
    assert roads["name"].fillna("").tolist() == ["North", "", ""]
    assert cv.run("tiny").roads["source_id"].isna().all()
