"""Stations and locations: by distance, by name, or in a row if there is no map."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from partition_cases import CRS

from simulator.cells import NamedPlaces
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
