"""Square cells over a city: every point has one cell, and boundaries are at the documented positions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shapely import Point

from simulator.cells import GeographicGrid, Partition, SquareGrid
from simulator.files.errors import InputError

CRS = "EPSG:32618"


def squares(bounds, size_m, within=None):
    return SquareGrid.build_over(bounds, size_m=size_m, crs=CRS, within=within)


def test_six_squares_are_numbered_from_the_south_west():
    """An extent of 300 by 200 m in squares of 100 m."""
    grid = squares((1000.0, 0.0, 1300.0, 200.0), 100.0)
    assert (grid.columns, grid.rows, grid.count) == (3, 2, 6)
    middles = [(1050, 50), (1150, 50), (1250, 50), (1050, 150), (1150, 150), (1250, 150)]
    cells = grid.cell_of(middles)
    assert cells.dtype == np.int32
    assert cells.tolist() == [1, 2, 3, 4, 5, 6]
    assert grid.names == ["r1c1", "r1c2", "r1c3", "r2c1", "r2c2", "r2c3"]
    assert isinstance(grid, Partition)
    assert repr(grid) == "SquareGrid(6 cells: 2 rows, 3 columns of 100 m)"


def test_shared_sides_belong_to_the_east_and_north_cell():
    grid = squares((0.0, 0.0, 300.0, 200.0), 100.0)
    on_sides = [(0, 0), (100, 0), (300, 0), (0, 100), (100, 100), (0, 200), (300, 200), (100, 200)]
    assert grid.cell_of(on_sides).tolist() == [1, 2, 3, 4, 5, 4, 6, 5]


def test_points_outside_have_cell_zero():
    grid = squares((0.0, 0.0, 300.0, 200.0), 100.0)
    beyond = np.nextafter(300.0, np.inf)
    places = [(-1e-9, 50), (beyond, 50), (50, -1e-9), (50, 200.1), (math.nan, 50), (50, math.inf)]
    assert grid.cell_of(places).tolist() == [0] * 6


def test_squares_are_centred_and_cover_more_than_the_extent():
    """250 m need three squares of 100 m, which extend 25 m beyond each end."""
    grid = squares((0.0, 0.0, 250.0, 100.0), 100.0)
    assert (grid.columns, grid.rows) == (3, 1)
    assert grid.extent == (-25.0, 0.0, 275.0, 100.0)
    assert grid.cell_of([(-25, 0), (74.9, 0), (75, 0), (275, 0)]).tolist() == [1, 1, 2, 3]


@pytest.mark.parametrize("width", [500.0, 500.0000001, 499.9999999])
def test_rounding_adds_no_column(width):
    grid = squares((0.0, 0.0, width, width), 250.0)
    assert (grid.columns, grid.rows) == (2, 2)
    assert grid.cell_of([(0.0, 0.0), (width, width)]).tolist() == [1, 4]
    assert squares((0.0, 0.0, 500.001, 500.0), 250.0).columns == 3


@pytest.mark.parametrize(
    ("bounds", "shape"),
    [((0.0, 7.0, 1000.0, 7.0), (1, 4)), ((7.0, 0.0, 7.0, 1000.0), (4, 1)), ((7.0, 7.0, 7.0, 7.0), (1, 1))],
)
def test_straight_highway_lies_in_the_middle_of_one_row(bounds, shape):
    grid = squares(bounds, 250.0)
    assert (grid.rows, grid.columns) == shape
    assert grid.cell_of([bounds[:2], bounds[2:]]).tolist() == [1, grid.count]
    if shape[0] == 1:
        assert (grid.extent[1], grid.extent[3]) == (-118.0, 132.0)


def test_only_the_window_is_divided():
    """A window of 250 by 100 m: its last square is cut at the window's end."""
    grid = squares((0.0, -10.0, 5000.0, 10.0), 100.0, within=(1000.0, -50.0, 1250.0, 50.0))
    assert (grid.columns, grid.rows) == (3, 1)
    places = [(999.9, 0), (1000, 0), (1100, 0), (1249.9, 0), (1250, 0), (1250.1, 0), (1100, 50.1)]
    assert grid.cell_of(places).tolist() == [0, 1, 2, 3, 3, 0, 0]
    assert grid.polygons().geometry.area.tolist() == [100.0 * 100.0, 100.0 * 100.0, 50.0 * 100.0]


coordinates = st.floats(-1e4, 1e4)
spans = st.floats(0, 3e3)


@given(coordinates, coordinates, spans, spans, st.floats(100, 5e3), st.floats(0, 1), st.floats(0, 1))
def test_point_lies_in_the_one_cell_whose_polygon_covers_it(x, y, width, height, size_m, east, north):
    """Its cell's polygon covers the point; any other covering polygon shares that side."""
    bounds = (x, y, x + width, y + height)
    grid = squares(bounds, size_m)
    place = Point(min(x + east * width, bounds[2]), min(y + north * height, bounds[3]))
    (cell,) = grid.cell_of([(place.x, place.y)]).tolist()
    assert 1 <= cell <= grid.count
    polygons = grid.polygons().geometry
    assert polygons[cell - 1].covers(place)
    covering = np.flatnonzero(polygons.covers(place)) + 1
    assert cell == covering.max()  # a shared side belongs to the cell north and east of it
    if len(covering) > 1:
        assert polygons[cell - 1].boundary.covers(place)


@given(st.floats(0.01, 1e3), st.integers(1, 400), coordinates)
def test_each_cell_begins_exactly_at_its_side(size_m, columns, west):
    """At a drawn side the next cell begins; one floating-point step before it the previous cell ends."""
    grid = squares((west, 0.0, west + size_m * columns, size_m), size_m)
    sides = grid.polygons().geometry.bounds["minx"].to_numpy()[: grid.columns]
    middle = np.full(len(sides), size_m / 2)
    np.testing.assert_array_equal(grid.cell_of(np.column_stack((sides, middle))), np.arange(1, grid.columns + 1))
    before = np.nextafter(sides, -np.inf)
    np.testing.assert_array_equal(grid.cell_of(np.column_stack((before, middle))), np.arange(grid.columns))


def test_cells_do_not_depend_on_memory_layout():
    grid = squares((0.0, 0.0, 300.0, 200.0), 100.0)
    places = np.random.default_rng(3).uniform(-50, 350, (1000, 2))
    cells = grid.cell_of(places)
    assert set(cells.tolist()) == set(range(7))
    np.testing.assert_array_equal(grid.cell_of(np.asfortranarray(places)), cells)
    np.testing.assert_array_equal(grid.cell_of(places[::-1])[::-1], cells)


def test_all_invalid_arguments_are_reported_together():
    with pytest.raises(InputError) as caught:
        squares((0.0, 0.0, -1.0, math.nan), 0.0, within=(5.0, 0.0, 5.0, 1.0))
    assert [fault.split()[0] for fault in caught.value.faults] == ["size_m", "bounds", "within"]
    with pytest.raises(InputError, match=r"within must overlap the roads, whose bounds are \(0.0, 0.0, 9.0, 9.0\)"):
        squares((0.0, 0.0, 9.0, 9.0), 1.0, within=(10.0, 0.0, 11.0, 9.0))


@pytest.mark.parametrize(("size_m", "count"), [(0.001, "100,000,000,000,000"), (1e-300, "")])
def test_more_cells_than_int32_are_refused(size_m, count):
    with pytest.raises(InputError, match=rf"size_m = {size_m:g} makes {count}.* cells, more than 2,147,483,647"):
        squares((0.0, 0.0, 1e4, 1e4), size_m)


MANHATTAN = (583_000.0, 4_506_000.0, 592_000.0, 4_526_000.0)


def test_coarsened_blocks_of_five_by_three_squares():
    grid = SquareGrid.build_over((0.0, 0.0, 500.0, 300.0), size_m=100.0, crs=CRS)
    assert grid.coarsened(0).tolist() == list(range(15))
    first = grid.coarsened(1)
    assert first.dtype == np.int64
    assert first.reshape(3, 5).tolist() == [[0, 0, 1, 1, 2], [0, 0, 1, 1, 2], [3, 3, 4, 4, 5]]
    assert grid.coarsened(2).reshape(3, 5).tolist() == [[0, 0, 0, 0, 1]] * 3
    assert grid.coarsened(3).tolist() == [0] * 15
    assert grid.coarsened(10**6).tolist() == [0] * 15


def assert_nested(grid, levels):
    finer = grid.coarsened(0)
    np.testing.assert_array_equal(finer, np.arange(grid.count))
    for level in range(1, levels + 1):
        blocks = grid.coarsened(level)
        assert blocks.shape == (grid.count,)
        assert set(blocks.tolist()) == set(range(blocks.max() + 1))  # dense
        pairs = np.unique(np.stack([finer, blocks], axis=1), axis=0)
        assert len(pairs) == finer.max() + 1  # each finer block lies in one coarser one
        assert np.bincount(blocks).max() <= 4**level * (1 if grid.kind == "square" else 1.5)
        finer = blocks


@given(columns=st.integers(1, 40), rows=st.integers(1, 40))
def test_square_blocks_are_consecutive_and_nested(columns, rows):
    grid = SquareGrid.build_over((0.0, 0.0, 100.0 * columns, 100.0 * rows), size_m=100.0, crs=CRS)
    assert_nested(grid, 6)


def test_geographic_blocks_are_consecutive_nested_and_compact():
    grid = GeographicGrid.build_over(MANHATTAN, crs=CRS)
    assert_nested(grid, 4)
    west, south, east, north = grid.square.rectangles(grid.identifiers).T
    lon, lat = (west + east) / 2, (south + north) / 2
    height = grid.square.size_degrees
    width = height / np.cos(np.radians(lat.mean()))
    for level in (1, 2, 3):
        blocks = grid.coarsened(level)
        for middle, size in ((lat, height), (lon, width)):
            low, high = np.full(blocks.max() + 1, np.inf), np.full(blocks.max() + 1, -np.inf)
            np.minimum.at(low, blocks, middle)
            np.maximum.at(high, blocks, middle)
            assert (high - low).max() <= 2**level * size


def test_geographic_blocks_far_from_the_origin_are_connected():
    """74° west of the origin nearly each row starts one column further on; blocks must stay connected."""
    grid = GeographicGrid.build_over(MANHATTAN, crs=CRS)
    assert np.diff(grid.first_column).sum() > 0.5 * len(grid.first_column)
    blocks = grid.coarsened(2)
    merged = grid.polygons().dissolve(blocks).geometry.buffer(0.5)
    whole = np.bincount(blocks) >= 4**2 / 2  # the boundary of the city cuts other blocks into irregular shapes
    assert np.count_nonzero(whole) > 100
    assert (merged[whole].geom_type == "Polygon").all()  # connected
