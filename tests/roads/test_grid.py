"""Generated cities that can be checked by hand."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from simulator.files.errors import InputError
from simulator.roads import build_grid

STREET = {"spacing_x_m": 100.0, "spacing_y_m": 60.0, "speed_mps": 10.0, "lanes": 2}


def test_two_streets_and_three_avenues():
    """Nodes 0 1 2 in the south, 3 4 5 in the north; links ascend by (from, to)."""
    roads = build_grid(rows=2, columns=3, avenue_speed_mps=15.0, avenue_lanes=3, **STREET)
    pairs = [(0, 1), (0, 3), (1, 0), (1, 2), (1, 4), (2, 1), (2, 5)]
    pairs += [(3, 0), (3, 4), (4, 1), (4, 3), (4, 5), (5, 2), (5, 4)]
    assert list(zip(roads.links.from_node.tolist(), roads.links.to_node.tolist(), strict=True)) == pairs
    street = np.array([abs(start - end) == 1 for start, end in pairs])
    np.testing.assert_array_equal(roads.links.length_m, np.where(street, 100.0, 60.0))
    np.testing.assert_array_equal(roads.links.speed_mps, np.where(street, 10.0, 15.0))
    np.testing.assert_array_equal(roads.links.lanes, np.where(street, 2, 3))
    np.testing.assert_array_equal(roads.links.free_flow_s, np.where(street, 10.0, 4.0))
    np.testing.assert_array_equal(roads.links.capacity_vph, 1800.0)
    np.testing.assert_array_equal(roads.links.first_out, [0, 2, 5, 7, 9, 12, 14])
    np.testing.assert_array_equal(roads.node_xy, [(0, 0), (100, 0), (200, 0), (0, 60), (100, 60), (200, 60)])
    assert roads.node_names == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert roads.bounds == (0.0, 0.0, 200.0, 60.0)
    assert roads.total_length_m == 8 * 100 + 6 * 60
    for start, end, data in roads.graph.edges(data=True):
        link = data["link"]
        assert roads.node_names[roads.links.from_node[link]] == start
        assert roads.node_names[roads.links.to_node[link]] == end
        assert data["class"] == ("street" if start[0] == end[0] else "avenue")


def test_array_dtypes_of_links():
    links = build_grid(rows=2, columns=2, **STREET).links
    kinds = {name: getattr(links, name).dtype.name for name in links.__dataclass_fields__}
    whole = dict.fromkeys(("from_node", "to_node", "lanes", "first_out"), "int32")
    assert kinds == whole | dict.fromkeys(("length_m", "speed_mps", "capacity_vph"), "float64")


def test_one_row_of_two_columns_is_a_highway():
    roads = build_grid(rows=1, columns=2, **STREET)
    assert list(roads.graph.edges()) == [((0, 0), (0, 1)), ((0, 1), (0, 0))]
    assert roads.bounds == (0.0, 0.0, 100.0, 0.0)


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (2, 5), (4, 3)])
def test_one_way_avenues_alternate_and_keep_strong_connectivity(rows, columns):
    roads = build_grid(rows=rows, columns=columns, one_way=True, **STREET)
    assert nx.is_strongly_connected(roads.graph)
    for (row, column), (to_row, to_column) in roads.graph.edges():
        if column == to_column:
            assert to_row - row == (1 if column % 2 == 0 else -1)
    assert len(roads.links) == 2 * rows * (columns - 1) + (rows - 1) * columns


@pytest.mark.parametrize(("rows", "columns"), [(1, 5), (5, 1)])
def test_one_way_needs_two_rows_and_columns(rows, columns):
    with pytest.raises(InputError, match="one_way needs rows and columns of 2 or more"):
        build_grid(rows=rows, columns=columns, one_way=True, **STREET)


def test_the_anchor_is_the_south_west_corner():
    roads = build_grid(rows=2, columns=2, anchor=(2.2945, 48.8584), **STREET)
    lon, lat = roads.to_wgs84(roads.node_xy).T
    assert (lon[0], lat[0]) == pytest.approx((2.2945, 48.8584), abs=1e-9)
    # a degree of latitude is 111.2 km here, one of longitude 73.3 km
    assert lat[2] - lat[0] == pytest.approx(60 / 111_212, rel=1e-3)
    assert lon[1] - lon[0] == pytest.approx(100 / 73_350, rel=1e-3)


def test_all_arguments_out_of_range_are_reported_together():
    with pytest.raises(InputError) as caught:
        build_grid(
            rows=0,
            columns=2.5,
            spacing_x_m=-1.0,
            spacing_y_m=float("nan"),
            speed_mps=0.0,
            lanes=0,
            capacity_vph=float("inf"),
            anchor=(0.0, 91.0),
        )
    named = [fault.split()[0] for fault in caught.value.faults]
    assert named == [
        "spacing_x_m",
        "spacing_y_m",
        "speed_mps",
        "avenue_speed_mps",
        "capacity_vph",
        "rows",
        "columns",
        "lanes",
        "avenue_lanes",
        "anchor",
    ]
    with pytest.raises(InputError, match="two crossings"):
        build_grid(rows=1, columns=1, **STREET)
