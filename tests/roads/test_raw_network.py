"""Networks made of two tables, as any reader of a format returns them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import shapely

from simulator.files.errors import InputError
from simulator.files.messages import texts_of
from simulator.roads.raw_network import Defaults, RawNetwork, build, column_of

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
