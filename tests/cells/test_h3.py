"""H3 cells: a complete cover, named and located by h3 itself."""

import sys

import h3
import numpy as np
import pyproj
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from partition_cases import BOUNDS, CRS, places

from simulator.cells import HexagonGrid
from simulator.files import resources
from simulator.files.errors import InputError

TO_DEGREES = pyproj.Transformer.from_crs(CRS, "EPSG:4326", always_xy=True)


@pytest.mark.parametrize("resolution", [0, 5, 7, 9, 10])
def test_points_have_the_cell_that_h3_gives(resolution):
    grid = HexagonGrid.build_over(BOUNDS, resolution=resolution, crs=CRS)
    xy = places(3000, margin_m=0.0)
    names = np.array(["outside", *grid.names])[grid.cell_of(xy)]
    lon, lat = TO_DEGREES.transform(*xy.T)
    assert names.tolist() == [h3.latlng_to_cell(y, x, resolution) for x, y in zip(lon, lat, strict=True)]
    assert grid.names == sorted(grid.names)
    assert all(h3.get_resolution(name) == resolution for name in grid.names[:20])


def test_window_contains_exactly_the_cells_that_intersect_it():
    whole = HexagonGrid.build_over(BOUNDS, resolution=9, crs=CRS)
    window = (585_000.0, 4_508_000.0, 586_000.0, 4_509_500.0)
    part = HexagonGrid.build_over(BOUNDS, resolution=9, crs=CRS, within=window)
    assert set(part.names) < set(whole.names)
    drawn = whole.polygons()
    meets = drawn[drawn.intersects(shapely.box(*window))]["name"]
    assert set(meets) <= set(part.names)
    assert len(part.names) <= len(meets) + 2  # a corner missed by a centimetre counts as an intersection
    xy = places(3000)
    both = whole.cell_of(xy), part.cell_of(xy)
    known = both[1] > 0
    assert np.array(whole.names)[both[0][known] - 1].tolist() == np.array(part.names)[both[1][known] - 1].tolist()


def test_blocks_are_the_parent_cells_of_h3():
    grid = HexagonGrid.build_over(BOUNDS, resolution=9, crs=CRS)
    for level in (1, 2, 5, 9):
        blocks = grid.coarsened(level)
        parents = [h3.cell_to_parent(name, 9 - level) for name in grid.names]
        assert len(set(zip(blocks.tolist(), parents, strict=True))) == len(set(parents)) == blocks.max() + 1
    assert grid.coarsened(10).tolist() == [0] * grid.count


@settings(max_examples=40, deadline=None)
@given(lon=st.floats(-179.9, 179.9), lat=st.floats(-75, 75), resolution=st.integers(0, 12), size=st.floats(0, 3000))
def test_points_in_any_bounds_have_a_cell(lon, lat, resolution, size):
    crs = pyproj.CRS.from_proj4(f"+proj=tmerc +lon_0={lon} +lat_0={lat} +datum=WGS84 +units=m")
    size = min(size, 50 * h3.average_hexagon_edge_length(resolution, unit="m"))
    if abs(lon) > 150:  # near the antimeridian cells may lie across it
        return
    grid = HexagonGrid.build_over((0.0, 0.0, size, size / 2), resolution=resolution, crs=crs)
    corners = np.array([[0, 0], [size, 0], [0, size / 2], [size, size / 2], [size / 2, size / 4]])
    assert (grid.cell_of(corners) > 0).all()


def test_a_city_across_the_antimeridian_is_refused():
    crs = pyproj.CRS.from_proj4("+proj=tmerc +lon_0=180 +lat_0=-17 +datum=WGS84 +units=m")
    with pytest.raises(InputError, match="crosses the antimeridian"):
        HexagonGrid.build_over((-1e4, 0.0, 1e4, 1e4), resolution=7, crs=crs)


WRONG = {
    "resolution must be 0 … 15, got 16": {"resolution": 16},
    "resolution must be 0 … 15, got -1": {"resolution": -1},
    "bounds must be finite": {"bounds": (0.0, 0.0, np.nan, 1.0)},
    "within must be finite, x_min < x_max": {"within": (5.0, 0.0, 5.0, 1.0)},
    "within must overlap the roads": {"within": (0.0, 0.0, 1.0, 1.0)},
    "cells of resolution = 15 is about": {"resolution": 15},
    "choose a coarser resolution, or a part of the city with bounds": {"resolution": 15},
}


@pytest.mark.parametrize("words", WRONG)
def test_invalid_hexagon_arguments_are_refused(words, monkeypatch):
    monkeypatch.setattr(resources, "available_nbytes", lambda: 2e8)
    given_ = {"bounds": BOUNDS, "resolution": 9, **WRONG[words]}
    with pytest.raises(InputError) as caught:
        HexagonGrid.build_over(given_.pop("bounds"), crs=CRS, **given_)
    assert words in caught.value.faults[0]


def test_missing_package_h3_is_refused_with_an_install_hint(monkeypatch):
    monkeypatch.setitem(sys.modules, "h3.api.numpy_int", None)
    with pytest.raises(InputError, match=r"needs the package h3: pip install 'crowdveil\[h3\]'"):
        HexagonGrid.build_over(BOUNDS, resolution=9, crs=CRS)
