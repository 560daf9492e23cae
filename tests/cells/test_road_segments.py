"""Cells that are road segments: by link, by nearest segment, and with both directions of a street merged."""

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from partition_cases import CRS, links, places

from simulator.cells import RoadSegments
from simulator.cells.road_segments import numbered, pairs_of
from simulator.files.errors import InputError


def lines(*ends):
    out = np.empty(len(ends), dtype=object)
    out[:] = [shapely.LineString(points) for points in ends]
    return out


CROSS = lines([(0, 0), (100, 0)], [(100, 0), (0, 0)], [(50, 10), (50, 200)], [(300, 0), (400, 0)])


def test_nearest_segment_of_given_points():
    cells = RoadSegments.build(
        CROSS, cell_of_links=np.array([1, 1, 2, 0], np.int32), names=["street", "avenue"], crs=CRS, within_m=20.0
    )
    asked = [(10, 0), (10, 19.9), (10, 20.1), (50, 5), (50, 6), (55, 100), (71, 100), (350, 0), (np.nan, 0)]
    assert cells.cell_of(asked).tolist() == [1, 1, 0, 1, 2, 2, 0, 0, 0]  # (50, 5) is equally near to both
    assert cells.cell_of_link(np.array([3, 2, 1, 0, 0])).tolist() == [0, 2, 1, 1, 1]
    drawn = cells.polygons()
    assert drawn.geometry.geom_type.tolist() == ["LineString", "LineString"]
    assert drawn["name"].tolist() == ["street", "avenue"]


def test_both_directions_of_a_divided_road_are_drawn():
    apart = lines([(0, 0), (100, 0)], [(100, 4), (0, 4)])
    cells = RoadSegments.build(apart, cell_of_links=np.array([1, 1], np.int32), names=["a"], crs=CRS, within_m=3.0)
    assert cells.polygons().geometry.geom_type.tolist() == ["MultiLineString"]
    assert cells.cell_of([(50, 6.9), (50, 7.1), (50, -2.9)]).tolist() == [1, 0, 1]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), within_m=st.floats(1, 300))
def test_nearest_segment_equals_brute_force(seed, within_m):
    roads = links(seed=seed, n=25)
    cells = RoadSegments.build(
        roads, cell_of_links=np.arange(1, 26, dtype=np.int32), names=["x"] * 25, crs=CRS, within_m=within_m
    )
    xy = places(60, seed=seed)
    away = np.array([[line.distance(shapely.Point(place)) for line in roads] for place in xy])
    expected = np.where(away.min(axis=1) <= within_m, away.argmin(axis=1) + 1, 0)
    np.testing.assert_array_equal(cells.cell_of(xy), expected)


def test_opposite_links_are_one_road():
    from_, to = np.array([0, 1, 1, 2]), np.array([1, 0, 2, 1])
    roads = lines([(0, 0), (1, 0)], [(1, 0), (0, 0)], [(1, 0), (2, 0)], [(2, 0), (1, 0)])
    assert pairs_of(from_, to, roads).tolist() == [0, 0, 1, 1]


def test_parallel_links_pair_with_the_nearest_opposite_link():
    from_, to = np.array([0, 0, 0, 1, 1]), np.array([1, 1, 1, 0, 0])
    roads = lines(
        [(0, 0), (5, 9), (10, 0)],
        [(0, 0), (5, -9), (10, 0)],
        [(0, 0), (10, 0)],
        [(10, 0), (5, -10), (0, 0)],
        [(10, 0), (5, 10), (0, 0)],
    )
    assert pairs_of(from_, to, roads).tolist() == [0, 1, 2, 1, 0]


def test_two_links_in_one_direction_are_two_roads():
    roads = lines([(0, 0), (1, 0)], [(0, 0), (0.5, 1), (1, 0)])
    assert pairs_of(np.array([0, 0]), np.array([1, 1]), roads).tolist() == [0, 1]


def test_repeated_names_are_numbered():
    assert numbered(["a", "b", "a", "a", "a #2", "b"]) == ["a", "b", "a #3", "a #4", "a #2", "b #2"]


def test_invalid_road_segments_are_refused():
    with pytest.raises(InputError) as caught:
        RoadSegments.build(CROSS, cell_of_links=np.zeros(4, np.int32), names=[], crs=CRS, within_m=0.0)
    assert caught.value.faults == ["within_m must be a finite number above 0, got 0.0", "no road is a cell"]
