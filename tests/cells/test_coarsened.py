"""Cells merged into blocks: independent of device positions, each block within one block of the next level."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.cells import GeographicGrid, SquareGrid
from simulator.files.errors import InputError

CRS = "EPSG:32618"
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


@pytest.mark.parametrize("size_miles", [0.15, 0.5])
def test_geographic_blocks_are_consecutive_nested_and_compact(size_miles):
    grid = GeographicGrid.build_over(MANHATTAN, crs=CRS, size_miles=size_miles)
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


@pytest.mark.parametrize("build", ["square", "geographic"])
def test_a_negative_level_is_refused(build):
    if build == "square":
        grid = SquareGrid.build_over((0.0, 0.0, 500.0, 300.0), size_m=100.0, crs=CRS)
    else:
        grid = GeographicGrid.build_over(MANHATTAN, crs=CRS)
    with pytest.raises(InputError, match="level must be at least 0, got -1"):
        grid.coarsened(-1)
