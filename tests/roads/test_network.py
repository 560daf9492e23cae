"""The graph schema, its compilation, and vehicle positions."""

from __future__ import annotations

import math
from dataclasses import replace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from shapely import LineString

from simulator.files.errors import InputError
from simulator.files.messages import texts_of
from simulator.roads import RoadNetwork, build_grid
from simulator.roads.connectivity import largest_strong_component
from simulator.roads.raw_network import Defaults, RawNetwork, build, column_of

EDGE = {"length_m": 10.0, "speed_mps": 5.0, "lanes": 1, "capacity_vph": 1800.0}
with np.errstate(invalid="ignore"):
    NOWHERE = LineString([(0, 0), (math.nan, 1)])


def graph_of(nodes, edges, crs="EPSG:32618"):
    graph = nx.MultiDiGraph(crs=crs)
    graph.add_nodes_from((node, {"x": float(x), "y": float(y)}) for node, (x, y) in nodes.items())
    graph.add_edges_from((start, end, EDGE | data) for start, end, data in edges)
    return graph


def pair(**data):
    return graph_of({"a": (0, 0), "b": (10, 0)}, [("a", "b", data), ("b", "a", {})])


def test_compilation_sorts_links_and_keeps_the_given_graph():
    graph = graph_of(
        {"z": (0, 0), "a": (10, 0)},
        [("a", "z", {"length_m": 3.0}), ("z", "a", {"length_m": 1.0}), ("z", "a", {"length_m": 2.0})],
    )
    roads = RoadNetwork.from_graph(graph)
    assert roads.node_names == ["z", "a"]
    np.testing.assert_array_equal(roads.links.length_m, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(roads.links.first_out, [0, 2, 3])
    assert roads.graph["z"]["a"][1]["link"] == 1
    assert "link" not in graph["z"]["a"][0]
    assert repr(roads) == "RoadNetwork(2 nodes, 3 links, 0.0 km, crs 'WGS 84 / UTM zone 18N')"


def test_parallel_edges_ascend_by_key_numbers_before_text():
    graph = graph_of({0: (0, 0), 1: (10, 0)}, [(1, 0, {})])
    for key in ("b", 10, "a", 9):
        graph.add_edge(0, 1, key=key, **EDGE)
    roads = RoadNetwork.from_graph(graph)
    keys = {data["link"]: key for _, _, key, data in roads.graph.out_edges(0, keys=True, data=True)}
    assert keys == {0: 9, 1: 10, 2: "a", 3: "b"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"length_m": -3.0}, r"edge \('a', 'b', 0\): length_m must be a finite number above 0, got -3.0"),
        ({"speed_mps": "30 mph"}, "speed_mps must be a finite number above 0, got '30 mph'"),
        ({"capacity_vph": math.inf}, "capacity_vph must be a finite number above 0, got inf"),
        ({"lanes": 0}, "lanes must be a whole number, 1 or more, got 0"),
        ({"lanes": 1.5}, "lanes must be a whole number, 1 or more, got 1.5"),
        ({"lanes": True}, "lanes must be a whole number, 1 or more, got True"),
        ({"geometry": "LINESTRING (0 0, 1 1)"}, "geometry must be a LineString"),
        ({"geometry": LineString()}, "geometry must be a LineString with points"),
        ({"geometry": NOWHERE}, "geometry must have finite coordinates"),
    ],
)
def test_edge_attribute_out_of_range_is_refused(data, message):
    with pytest.raises(InputError, match=message) as caught:
        RoadNetwork.from_graph(pair(**data))
    assert len(caught.value.faults) == 1


def test_all_faults_of_a_graph_are_reported_together():
    graph = pair()
    del graph["a"]["b"][0]["speed_mps"]
    graph.nodes["a"]["x"] = math.nan
    del graph.nodes["b"]["y"]
    graph.add_edge("b", "b", **EDGE)
    graph.graph["crs"] = "EPSG:4326"
    with pytest.raises(InputError) as caught:
        RoadNetwork.from_graph(graph)
    assert caught.value.faults == [
        "crs must be projected, in metres, got 'WGS 84' in units: degree",
        "node 'a': x must be a finite number of metres, got nan",
        "node 'b': y is missing",
        "edge ('a', 'b', 0): speed_mps is missing",
        "edge ('b', 'b', 0): a road from a node to itself cannot be part of a route",
    ]
    assert str(caught.value).splitlines() == caught.value.faults


@pytest.mark.parametrize(
    ("crs", "message"),
    [(None, "crs is missing"), ("nowhere", "'nowhere'"), ("EPSG:2263", "US survey foot")],
)
def test_a_crs_must_be_projected_in_metres(crs, message):
    with pytest.raises(InputError, match=message):
        RoadNetwork.from_graph(graph_of({0: (0, 0), 1: (1, 0)}, [(0, 1, {})], crs=crs))


def test_invalid_road_graph_is_refused():
    with pytest.raises(InputError, match=r"must be a networkx\.MultiDiGraph, got DiGraph"):
        RoadNetwork.from_graph(nx.DiGraph())
    with pytest.raises(InputError, match="is empty: it has no edge"):
        RoadNetwork.from_graph(nx.MultiDiGraph(crs="EPSG:32618"))


def test_geometries_may_end_off_the_nodes_and_extend_the_bounds():
    graph = graph_of(
        {0: (0, 0), 1: (10, 0)},
        [
            (0, 1, {"geometry": LineString([(1, 2), (5, 9), (9, 2)])}),
            (1, 0, {"geometry": LineString([(8, -3), (1, -3)])}),
        ],
    )
    roads = RoadNetwork.from_graph(graph)
    np.testing.assert_array_equal(roads.locate([0, 0, 1, 1], [0.0, 1.0, 0.0, 1.0]), [(1, 2), (9, 2), (8, -3), (1, -3)])
    assert roads.bounds == (0.0, -3.0, 10.0, 9.0)


@given(
    st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=2, max_size=6).filter(
        lambda points: len(set(points)) > 1
    ),
    st.floats(0, 1),
)
def test_locate_agrees_with_shapely(points, fraction):
    line = LineString(points)
    graph = graph_of({0: points[0], 1: points[-1]}, [(0, 1, {"geometry": line}), (0, 1, {}), (1, 0, {})])
    roads = RoadNetwork.from_graph(graph)
    expected = line.interpolate(fraction, normalized=True)
    np.testing.assert_allclose(roads.locate([0], [fraction])[0], (expected.x, expected.y), atol=1e-9)


def test_locate_broadcasts_the_fraction_and_accepts_no_vehicles():
    roads = build_grid(rows=1, columns=2, spacing_x_m=10, spacing_y_m=1, speed_mps=1, lanes=1)
    np.testing.assert_array_equal(roads.locate([0, 1], 0.25), [(2.5, 0.0), (7.5, 0.0)])
    assert roads.locate([], []).shape == (0, 2)


@pytest.mark.parametrize(
    ("link", "fraction", "message"),
    [
        ([2], [0.5], "link must be 0 … 1, got 2 … 2"),
        ([-1], [0.5], "link must be 0 … 1, got -1"),
        ([0.0], [0.5], "link must be whole numbers"),
        ([0], [1.01], "fraction must be 0 … 1, got 1.01"),
        ([0], [math.nan], "fraction must be 0 … 1, got nan"),
    ],
)
def test_locate_refuses_positions_off_the_links(link, fraction, message):
    roads = build_grid(rows=1, columns=2, spacing_x_m=10, spacing_y_m=1, speed_mps=1, lanes=1)
    with pytest.raises(ValueError, match=message):
        roads.locate(link, fraction)


def test_largest_strong_component_and_its_loss():
    """A triangle a b c, a pair d e, and a dead end f."""
    nodes = {name: (place, 0) for place, name in enumerate("fedcba")}
    ring = [("a", "b", {}), ("b", "c", {}), ("c", "a", {})]
    rest = [("c", "d", {"length_m": 5.0}), ("d", "e", {}), ("e", "d", {}), ("a", "f", {"length_m": 2.5})]
    graph = graph_of(nodes, ring + rest)
    part, loss = largest_strong_component(graph)
    assert list(part) == ["c", "b", "a"]
    assert (loss.nodes, loss.links, loss.length_m) == (3, 4, 27.5)
    assert graph.number_of_nodes() == 6


def test_first_of_two_equal_components_is_kept():
    graph = graph_of(
        dict.fromkeys("cdab", (0, 0)),
        [("a", "b", {}), ("b", "a", {}), ("c", "d", {}), ("d", "c", {})],
    )
    assert list(largest_strong_component(graph)[0]) == ["c", "d"]


def test_roads_without_a_cycle_are_an_empty_network():
    graph = graph_of({0: (0, 0), 1: (1, 0)}, [(0, 1, {})])
    with pytest.raises(InputError, match="no two nodes are connected in both directions"):
        largest_strong_component(graph)


NODES = pd.DataFrame({"node": column_of(["a", "b", "c"]), "x": [5e5, 501e3, 501e3], "y": [46e5, 46e5, 4601e3]})
LINKS = pd.DataFrame(
    {
        "from": [0, 1, 2],
        "to": [1, 2, 0],
        "length": [1.5, np.nan, 0.0],
        "speed": [36.0, 0.0, np.nan],
        "lanes": [2.0, np.nan, 1.0],
        "two_way": [True, False, False],
        "shape": column_of([None, shapely.LineString([(501e3, 4601e3), (502e3, 4601e3), (501e3, 46e5)]), None]),
        "direction": [1, 0, 1],
        "class": column_of(["residential", "motorway", None]),
        "toll": column_of([None, 3.5, None]),
    }
)
RAW = RawNetwork(nodes=NODES, links=LINKS, crs="EPSG:32618", file="town", length_m=1000.0, speed_mps=1 / 3.6)


def test_units_directions_and_lengths_are_those_of_the_tables():
    roads, report = build(RAW)
    assert roads.node_names == ["a", "b", "c"]
    assert sorted(roads.graph.edges()) == [("a", "b"), ("b", "a"), ("b", "c"), ("c", "a")]
    by_ends = {(start, end): data for start, end, data in roads.graph.edges(data=True)}
    assert by_ends["a", "b"]["length_m"] == by_ends["b", "a"]["length_m"] == 1500.0
    assert by_ends["b", "c"]["length_m"] == pytest.approx(1000 + 2**0.5 * 1000)  # that of its shape
    assert by_ends["c", "a"]["length_m"] == pytest.approx(2**0.5 * 1000)  # straight
    assert by_ends["b", "c"]["geometry"].coords[0] == (501e3, 46e5)  # reversed: the file does not state a direction
    assert by_ends["a", "b"]["speed_mps"] == pytest.approx(10.0)
    assert {ends: data.get("toll") for ends, data in by_ends.items() if "toll" in data} == {("b", "c"): 3.5}
    assert (report.link_rows, report.links, report.loss.links) == (3, 4, 0)
    assert "town: speed_mps taken as 13.9 m/s in 2 of 3 links" in texts_of(report.notes())
    assert RAW.movements.empty
    assert RAW.signals.empty


def test_defaults_of_the_class_of_road_come_first_where_a_format_has_them():
    roads, report = build(replace(RAW, defaults=Defaults(speed_mps=5.0, by_class=True)))
    by_ends = {(start, end): data for start, end, data in roads.graph.edges(data=True)}
    assert by_ends["b", "c"]["speed_mps"] == pytest.approx(120 / 3.6)
    assert by_ends["b", "c"]["lanes"] == 2
    assert by_ends["c", "a"]["speed_mps"] == 5.0
    assert any("speed_mps taken by class of road in 2 of 3 links" in note for note in texts_of(report.notes()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"crs": "EPSG:4326"}, "town: crs must be projected, in metres"),
        ({"length_m": 1.6e308}, "town: row 0: length_m must be a finite number above 0, and comes out as inf"),
        ({"defaults": Defaults(capacity_vph=0.0)}, "capacity_vph must be a finite number above 0"),
        ({"links": LINKS.assign(key=column_of(["x"] * 3), to=1, **{"from": 0})}, "row 1: key must be one that no"),
        ({"links": LINKS[:2].assign(two_way=False)}, "no two nodes are connected in both directions"),
    ],
)
def test_tables_that_make_no_network_are_refused(change, message):
    with pytest.raises(InputError) as caught:
        build(replace(RAW, **change))
    assert message in caught.value.faults[0]
