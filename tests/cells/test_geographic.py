"""The papers' 32-bit global grid, and the part of it that covers a city."""

from __future__ import annotations

import math

import numpy as np
import pyproj
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.cells import GeographicGrid, GlobalSquare, Partition
from simulator.files.errors import InputError

MANHATTAN = (583_000.0, 4_506_000.0, 592_000.0, 4_526_000.0)
EARTH_RADIUS_MILES = 6_371_008.8 / 1609.344


def bounds_about(lon, lat, *, half_m, crs):
    x, y = pyproj.Transformer.from_crs("EPSG:4326", crs, always_xy=True).transform(lon, lat)
    return x - half_m, y - half_m, x + half_m, y + half_m


def test_cell_arithmetic_of_the_papers():
    """9,500 / 0.15 = 63,333.3…: 63,334 cells per side, about 4 billion in total, which fit 32 bits."""
    square = GlobalSquare()
    assert square.side == 63_334
    assert square.total == 63_334**2 == 4_011_195_556 < 2**32
    assert square.total * 0.15**2 == pytest.approx(9500**2, rel=1e-4)  # "90 million square miles"


def test_cell_area_of_the_papers_holds_at_every_latitude():
    """On the sphere a cell between parallels and meridians has R² Δλ (sin φ₂ - sin φ₁)."""
    square = GlobalSquare()
    identifiers = square.global_id(np.zeros(5), [-60.0, 0.0, 40.7, 48.9, 60.0])
    west, south, east, north = np.radians(square.rectangles(identifiers)).T
    area = EARTH_RADIUS_MILES**2 * (east - west) * (np.sin(north) - np.sin(south))
    np.testing.assert_allclose(area, 0.0225, rtol=1e-3)
    np.testing.assert_allclose(area, area[1], rtol=1e-9)  # equal everywhere: the width is that of the row's middle
    np.testing.assert_allclose((north - south) * EARTH_RADIUS_MILES, 0.15, rtol=1e-9)


def test_cells_around_the_origin():
    """The origin is the south-west corner of the cell in the middle row and column."""
    square = GlobalSquare()
    middle = 31_667 * 63_334 + 31_667
    step = 0.15 / EARTH_RADIUS_MILES * 180 / math.pi
    lon = [0.0, step * 0.999, step * 1.001, -1e-9, 0.0, 0.0]
    lat = [0.0, 0.0, 0.0, 0.0, -1e-9, step * 1.001]
    expected = [middle, middle, middle + 1, middle - 1, middle - 63_334, middle + 63_334]
    assert square.global_id(lon, lat).tolist() == expected


def test_points_outside_the_square_have_identifier_minus_one():
    square = GlobalSquare()
    lon = [0.0, 0.0, 139.7, 0.0, math.nan, math.inf]
    lat = [68.7, 68.8, 35.7, -68.8, 0.0, 0.0]
    identifiers = square.global_id(lon, lat)
    assert identifiers.dtype == np.int64
    assert (identifiers >= 0).tolist() == [True, False, False, False, False, False]
    assert set(identifiers[1:].tolist()) == {-1}
    assert GlobalSquare(origin=(139.7, 35.7)).global_id(139.7, 35.7) == 31_667 * 63_334 + 31_667


def test_square_may_cross_the_antimeridian():
    square = GlobalSquare(origin=(179.99, -17.0))
    near, across = square.global_id([179.99, -179.99], [-17.0, -17.0]).tolist()
    step = square.size_degrees / math.cos(math.radians(17.0))
    assert across - near == math.floor(0.02 / step)


@given(st.floats(-68, 68), st.floats(-60, 60), st.sampled_from([0.15, 0.2, 1.0, 7.0]))
def test_point_lies_in_the_rectangle_of_its_identifier(lat, lon, size_miles):
    square = GlobalSquare(size_miles=size_miles)
    west, south, east, north = square.rectangles([int(square.global_id(lon, lat))])[0]
    assert west - 1e-9 <= lon <= east + 1e-9
    assert south - 1e-9 <= lat <= north + 1e-9


@pytest.mark.parametrize(("size_miles", "side"), [(0.5, 19_000), (0.145, 65_518), (10_000.0, 1)])
def test_cell_size_determines_cells_per_side(size_miles, side):
    assert GlobalSquare(size_miles=size_miles).side == side


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size_miles": 0.1449}, "size_miles = 0.1449 divides .* into more cells than 32-bit numbers can count"),
        ({"size_miles": 1e-300}, "more cells than 32-bit numbers"),
        ({"size_miles": 0.0}, "size_miles must be a finite number above 0, got 0.0"),
        ({"size_miles": math.nan}, "size_miles must be a finite number above 0, got nan"),
        ({"origin": (0.0, 91.0)}, r"origin must be a longitude .*, got \(0.0, 91.0\)"),
    ],
)
def test_invalid_square_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        GlobalSquare(**arguments)


def test_a_citys_cells_ascend_and_are_named_by_identifier():
    city = GeographicGrid.build_over(MANHATTAN, crs="EPSG:32618")
    assert isinstance(city, Partition)
    assert len(city.names) == city.count == len(city.identifiers)
    assert (np.diff(city.identifiers) > 0).all()
    assert city.names == [str(identifier) for identifier in city.identifiers]
    # 9 by 20 km in cells of 0.0225 square miles, plus a boundary of at most one cell on each side
    inner = 9 * 20 / (0.0225 * 1.609344**2)
    assert inner <= city.count <= inner * 1.1
    # the ellipsoid and the projection are within 1 % of the sphere
    np.testing.assert_allclose(city.polygons().geometry.area, 0.0225 * 1609.344**2, rtol=0.01)
    with pytest.raises(InputError, match="bounds must be finite"):
        GeographicGrid.build_over((0.0, 0.0, math.nan, 1.0), crs="EPSG:32618")


@pytest.mark.parametrize(
    ("bounds", "crs", "size_miles", "origin"),
    [
        (MANHATTAN, "EPSG:32618", 0.15, (0.0, 0.0)),
        (MANHATTAN, "EPSG:32618", 3.0, (0.0, 0.0)),
        ((580_000.0, 4_506_000.0, 580_000.0, 4_526_000.0), "EPSG:32618", 0.15, (0.0, 0.0)),
        ((583_000.0, 4_506_000.0, 583_000.0, 4_506_000.0), "EPSG:32618", 0.15, (0.0, 0.0)),
        ((200_000.0, 7_200_000.0, 230_000.0, 7_215_000.0), "EPSG:32631", 0.15, (10.0, 30.0)),
        # about 30° E, 62° N in a polar projection: the boundary is at 30° to meridians and parallels
        ((1_551_000.0, -2_686_000.0, 1_591_000.0, -2_646_000.0), "EPSG:3995", 0.15, (30.0, 40.0)),
        ((780_000.0, 8_100_000.0, 830_000.0, 8_140_000.0), "EPSG:32760", 0.3, (175.0, -20.0)),
    ],
)
def test_points_in_the_extent_have_the_cell_of_their_coordinates(bounds, crs, size_miles, origin):
    """Random points, and points every 0.5 m along the boundary, which may cut only a corner off a cell."""
    city = GeographicGrid.build_over(bounds, crs=crs, size_miles=size_miles, origin=origin)
    xy = np.random.default_rng(11).uniform(bounds[:2], bounds[2:], (20_000, 2))
    x, y = np.arange(bounds[0], bounds[2], 0.5), np.arange(bounds[1], bounds[3], 0.5)
    rim = [np.column_stack((x, np.full(len(x), side))) for side in bounds[1::2]]
    rim += [np.column_stack((np.full(len(y), side), y)) for side in bounds[::2]]
    xy = np.concatenate((xy, *rim))
    cells = city.cell_of(xy)
    assert cells.dtype == np.int32
    assert cells.min() >= 1
    assert cells.max() <= city.count
    lon, lat = pyproj.Transformer.from_crs(crs, "EPSG:4326", always_xy=True).transform(*xy.T)
    np.testing.assert_array_equal(city.identifiers[cells - 1], city.square.global_id(lon, lat))


@pytest.mark.parametrize(
    ("lon", "lat", "crs"), [(139.7, 35.7, "EPSG:32654"), (0.0, 68.75, "EPSG:32631"), (18.9, 69.65, "EPSG:32634")]
)
def test_city_outside_the_square_is_refused_with_a_hint_on_the_origin(lon, lat, crs):
    """The second city crosses the square's northern side at 68.74°."""
    bounds = bounds_about(lon, lat, half_m=2_000.0, crs=crs)
    with pytest.raises(InputError, match=r"outside the square of 9,500 miles .*: set cells\.origin"):
        GeographicGrid.build_over(bounds, crs=crs)
    city = GeographicGrid.build_over(bounds, crs=crs, origin=(lon, lat))
    assert city.cell_of([((bounds[0] + bounds[2]) / 2, (bounds[1] + bounds[3]) / 2)])[0] > 0


def test_city_across_the_edge_of_the_square_is_refused():
    """At 75° north a parallel is shorter than the square: opposite the origin its two sides meet."""
    bounds = bounds_about(180.0, 75.0, half_m=3_000.0, crs="EPSG:3413")
    with pytest.raises(InputError, match=r"crosses the edge of the square .*set cells\.origin"):
        GeographicGrid.build_over(bounds, crs="EPSG:3413", origin=(0.0, 60.0))
