"""Cells of stations, locations and road segments: by distance, by name, by link, or in a row without a map."""

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from partition_cases import CRS, links, places

from simulator.cells import NamedPlaces, RoadSegments
from simulator.cells.road_segments import numbered, pairs_of
from simulator.files.errors import InputError


def test_stations_with_a_radius():
    xy = np.array([[0.0, 0.0], [100.0, 0.0], [100.0, 0.0], [1000.0, 0.0]])
    cells = NamedPlaces.build("stations", ["a", "b", "twin", "c"], xy, crs=CRS, radius_m=80.0)
    asked = [(0, 0), (49, 0), (51, 0), (180, 0), (181, 0), (1000, 80), (1000, 81), (np.nan, 1)]
    assert cells.cell_of(asked).tolist() == [1, 1, 2, 2, 0, 4, 0, 0]
    assert not cells.maps_names
    assert (cells.polygons().geometry.geom_type == "Point").all()


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 20), radius_m=st.floats(1, 400))
def test_nearest_station_equals_brute_force(seed, n, radius_m):
    rng = np.random.default_rng(seed)
    xy = rng.integers(0, 40, size=(n, 2)) * 20.0  # so that some share a position
    cells = NamedPlaces.build("stations", [str(i) for i in range(n)], xy, crs=CRS, radius_m=radius_m)
    asked = rng.uniform(-200, 1000, size=(50, 2))
    away = np.hypot(*(asked[:, None, :] - xy).transpose(2, 0, 1))
    found = cells.cell_of(asked)
    near = away.min(axis=1) <= radius_m
    assert ((found > 0) == near).all()
    chosen = found[near] - 1
    np.testing.assert_allclose(away[near, chosen], away[near].min(axis=1))
    spots = [tuple(place) for place in xy.tolist()]
    assert all(spots.index(spots[i]) == i for i in chosen.tolist())  # the first of those at one position


def test_locations_are_found_by_name_at_any_position():
    xy = np.zeros((3, 2))
    cells = NamedPlaces.build("locations", ["7", "5", "9"], xy, crs=CRS, radius_m=1.0, labels={"5": "the park"})
    assert cells.maps_names
    assert cells.names == ["7", "the park", "9"]
    assert cells.cell_named(["5", "5", "none", "7", "the park"]).tolist() == [2, 2, 0, 1, 0]


def test_row_of_squares_merges_two_neighbours_per_level():
    xy = np.column_stack([(np.arange(5) + 0.5) * 1000.0, np.full(5, 500.0)])
    cells = NamedPlaces.build("locations", list("abcde"), xy, crs=CRS, radius_m=1.0, side_m=1000.0)
    assert [cells.coarsened(level).tolist() for level in (0, 1, 2, 3)] == [
        [0, 1, 2, 3, 4],
        [0, 0, 1, 1, 2],
        [0, 0, 0, 0, 1],
        [0, 0, 0, 0, 0],
    ]
    drawn = cells.polygons()
    assert drawn.geometry.area.tolist() == [1e6] * 5
    assert drawn.union_all().area == 5e6
    assert cells.cell_of([(10, 10), (999, 999), (4999, 1), (5001, 1)]).tolist() == [1, 1, 5, 0]


def test_all_faults_of_named_places_are_reported_together():
    xy = np.array([[0.0, 0.0], [np.nan, 0.0]])
    with pytest.raises(InputError) as caught:
        NamedPlaces.build("stations", ["a", "a"], xy, crs=CRS, radius_m=-1.0, labels={"b": "x"})
    assert len(caught.value.faults) == 4
    with pytest.raises(InputError, match="there is no place, and so no cell"):
        NamedPlaces.build("stations", [], np.empty((0, 2)), crs=CRS, radius_m=1.0)


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
