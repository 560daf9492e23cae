"""Tables, polygons and graphs given in Python: the run of the same data in files, and files beside what is saved."""

import geopandas as gpd
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import shapely

import crowdveil as cv
from simulator.experiment.assembly.roads import build_roads

CRS = "EPSG:32632"
SIDE = 5


def town() -> "nx.MultiDiGraph[int]":
    """Return a square grid of streets, 200 m apart, with the attributes of a road graph."""
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph(crs=CRS)
    for node in range(SIDE * SIDE):
        graph.add_node(node, x=500_000.0 + 200.0 * (node % SIDE), y=5_000_000.0 + 200.0 * (node // SIDE))
    for a, b in nx.grid_2d_graph(SIDE, SIDE).to_directed().edges:
        start, end = a[0] * SIDE + a[1], b[0] * SIDE + b[1]
        graph.add_edge(start, end, length_m=200.0, speed_mps=8.0, lanes=1, capacity_vph=900.0)
    return graph


def districts() -> gpd.GeoDataFrame:
    """Return four quarters of the town and its surroundings."""
    west, south = 500_000.0 - 130.0, 5_000_000.0 - 130.0
    shapes = [
        shapely.box(west + 530.0 * x, south + 530.0 * y, west + 530.0 * (x + 1), south + 530.0 * (y + 1))
        for y in range(2)
        for x in range(2)
    ]
    return gpd.GeoDataFrame({"name": ["SW", "SE", "NW", "NE"]}, geometry=shapes, crs=CRS)


def trips() -> pd.DataFrame:
    """Return trips between nodes of the town."""
    rng = np.random.default_rng(4)
    pairs = rng.integers(SIDE * SIDE, size=(300, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    departure_s = rng.uniform(0.0, 500.0, len(pairs)).round(1)
    return pd.DataFrame({"origin": pairs[:, 0], "destination": pairs[:, 1], "departure_s": departure_s})


def scenario_of(roads, cells, table) -> cv.Scenario:
    """Return a scenario with these roads, polygons and trips, in memory or as files."""
    columns = {"origin": "origin", "destination": "destination", "departure_s": "departure_s"}
    return cv.Scenario(
        scenario={"name": "town", "duration_s": 900, "seed": 3},
        roads=roads,
        cells={"kind": "zones", "file": cells, "name": "name"},
        traffic={"demand": "trips", "trips": table, "trip_columns": columns},
        campaigns=[{"start_s": 300, "every_s": 120, "queries": 3}],
        mechanisms=[{"kind": "no_privacy"}, {"kind": "sampling_privacy", "sampling": 0.4}],
    )


@pytest.fixture(scope="module")
def in_memory():
    return scenario_of(cv.roads_of(town()), districts(), trips())


def test_data_in_memory_give_the_tables_of_data_in_files(in_memory, tmp_path):
    districts().to_file(tmp_path / "districts.gpkg", driver="GPKG")
    trips().to_csv(tmp_path / "trips.csv", index=False)
    in_files = scenario_of(cv.roads_of(town()), tmp_path / "districts.gpkg", tmp_path / "trips.csv")
    found, expected = cv.run(in_memory), cv.run(in_files)
    assert found.estimates["truth"].sum() > 0
    for table in ("estimates", "rounds", "scores", "claims"):
        pd.testing.assert_frame_equal(getattr(found, table), getattr(expected, table))
    assert found.cells["name"].tolist() == ["SW", "SE", "NW", "NE"]


def test_a_saved_run_has_its_data_beside_it_and_runs_again(in_memory, tmp_path):
    result = cv.run(in_memory, out=tmp_path / "run")
    text = (tmp_path / "run" / "scenario.toml").read_text(encoding="utf-8")
    assert "crowdveil-" not in text, "no file of the temporary folder is named"
    stored = sorted(path.name for path in (tmp_path / "run" / "data").rglob("*.parquet"))
    assert len(stored) == 2
    assert len([*(tmp_path / "run" / "data").rglob("roads.gpkg")]) == 1
    moved = (tmp_path / "run").rename(tmp_path / "moved")
    again = cv.run(cv.load(moved).scenario)
    pd.testing.assert_frame_equal(again.estimates, result.estimates)
    assert all(str(tmp_path) not in name for name in result.facts["data"])


def test_data_in_memory_are_allowed_in_untrusted_scenarios(in_memory):
    assert cv.scenarios.load(in_memory, untrusted=True) == in_memory


def test_a_changed_table_changes_the_scenario(in_memory):
    fewer = in_memory.with_({"traffic.trips": trips().head(50)})
    assert fewer != in_memory
    assert cv.run(fewer).record.vehicles == 50
    assert in_memory.with_({"traffic.trips": trips()}) == in_memory


def test_graphs_that_are_no_roads_are_refused():
    graph = town()
    graph.edges[0, 1, 0]["length_m"] = -5.0
    with pytest.raises(ValueError, match=r"edge .*length_m must be .*-5"):
        cv.roads_of(graph)


def osm_graph(kind=nx.MultiDiGraph, **more):
    """Return a graph as OSMnx makes it, of streets around a square and one across."""
    graph = kind(crs="EPSG:4326", simplified=True)
    for node, (x, y) in {1: (9.000, 45.0), 2: (9.003, 45.0), 3: (9.003, 45.003), 4: (9.000, 45.003)}.items():
        graph.add_node(node, x=x, y=y)
    for start, end in [(1, 2), (2, 3), (3, 4), (4, 1), (1, 3)]:
        data = {"highway": "residential", "length": 250.0, "oneway": False} | more
        graph.add_edge(start, end, **data)
        if graph.is_directed():
            graph.add_edge(end, start, **data)
    return graph


def roads_in(graph):
    pytest.importorskip("osmnx", reason="graphs of OSMnx are read by osmnx")
    roads, _ = build_roads(cv.scenarios.load("tiny").with_({"roads": cv.roads_of(graph)}))
    return roads


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph], ids=lambda kind: kind.__name__)
def test_a_graph_of_any_kind_without_osmid_has_the_defaults_by_class(kind):
    roads = roads_in(osm_graph(kind, name=float("nan"), maxspeed=None))
    assert len(roads.links) == 10, "five streets in both directions"
    assert set(roads.links.speed_mps.round(3)) == {round(30 / 3.6, 3)}
    assert not any("name" in data for *_, data in roads.graph.edges(data=True)), "nan is no name"


def test_an_undirected_edge_is_one_way_where_it_says_so():
    graph = osm_graph(nx.Graph)
    graph.edges[1, 3].update({"oneway": "-1", "from": 3, "to": 1})
    assert {(1, 3), (3, 1)} & {ends[:2] for ends in roads_in(graph).graph.edges} == {(1, 3)}
    graph.edges[1, 3].update({"oneway": True})
    assert {(1, 3), (3, 1)} & {ends[:2] for ends in roads_in(graph).graph.edges} == {(3, 1)}
    del graph.edges[1, 3]["from"]
    with pytest.raises(ValueError, match=r"edge \(1, 3\).*DiGraph"):
        cv.roads_of(graph)


def test_the_shape_of_an_undirected_edge_leads_from_its_first_node():
    graph = osm_graph(nx.Graph)
    graph.edges[1, 3]["geometry"] = shapely.LineString([(9.003, 45.003), (9.001, 45.002), (9.0, 45.0)])
    roads = roads_in(graph)
    for start, end, data in roads.graph.edges(data=True):
        if {start, end} == {1, 3}:
            begin = shapely.Point(roads.graph.nodes[start]["x"], roads.graph.nodes[start]["y"])
            assert begin.distance(shapely.Point(data["geometry"].coords[0])) < 1.0


def test_undirected_and_simple_graphs_of_osmnx_are_taken():
    osmnx = pytest.importorskip("osmnx", reason="its own conversions")
    graph = osm_graph(osmid=5)
    for _, _, data in graph.edges(data=True):
        data["reversed"] = False
    expected = roads_in(graph).links.length_m.sum()
    for converted in (osmnx.convert.to_undirected(graph), osmnx.convert.to_digraph(graph)):
        assert roads_in(converted).links.length_m.sum() == pytest.approx(expected)


def test_a_road_graph_of_any_kind_is_taken_without_missing_names():
    simple = nx.Graph(town())
    for number, (_, _, data) in enumerate(simple.edges(data=True)):
        data["name"] = [None, float("nan"), pd.NA, "High Street"][number % 4]
    roads, _ = build_roads(cv.scenarios.load("tiny").with_({"roads": cv.roads_of(simple)}))
    assert len(roads.links) == town().number_of_edges()
    assert {data.get("name") for *_, data in roads.graph.edges(data=True)} == {None, "High Street"}


@pytest.mark.parametrize(
    ("graph", "rule"),
    [
        (object(), "networkx"),
        (nx.Graph(), "crs of the graph is missing"),
        (nx.path_graph(3), "crs"),
        (nx.DiGraph(crs="EPSG:4326"), "empty"),
    ],
    ids=["no graph", "nothing", "no places", "no edges"],
)
def test_a_graph_that_cannot_be_roads_is_refused_with_the_remedy(graph, rule):
    with pytest.raises(ValueError, match=rule):
        cv.roads_of(graph)


def test_zones_may_be_a_geoseries(in_memory):
    cells = {"kind": "zones", "file": districts().geometry}
    found = cv.run(in_memory.with_({"cells": cells}))
    expected = cv.run(in_memory.with_({"cells": cells | {"file": districts()[["geometry"]]}}))
    pd.testing.assert_frame_equal(found.estimates, expected.estimates)
    assert found.cells["name"].tolist() == ["1", "2", "3", "4"]
