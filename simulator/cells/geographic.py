"""The papers' discretisation of latitude and longitude into 32-bit identifiers, and a city's cells in it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyproj
import shapely

from simulator.cells.coarsening import check_level, pieces
from simulator.cells.partition import LARGEST_COUNT, boundary_points, frame_of, lonlat_of, points_of, window_faults
from simulator.files.errors import InputError, positive_faults

if TYPE_CHECKING:
    import geopandas as gpd
    from numpy.typing import ArrayLike, NDArray

EARTH_RADIUS_M = 6_371_008.8
MILE_M = 1609.344
SQUARE_MILES = 9500.0
LARGEST_TOTAL = 2**32
_METRES_PER_DEGREE = EARTH_RADIUS_M * math.pi / 180


@dataclass(frozen=True)
class GlobalSquare:
    """A square of 9,500 × 9,500 miles on a sphere, divided into cells with one identifier each.

    A row is a band of latitude ``size_miles`` high. The columns of a row have the same width at the latitude of the
    row's middle, so all cells have the same area, and columns of neighbouring rows are not aligned. The
    identifier is row · side + column, from 0 in the south-west. At 0.15 miles there are 63,334 cells per side,
    4,011,195,556 in all, which 32 bits can distinguish.

    Parameters
    ----------
    size_miles
        Height of a row and width of a cell, miles of 1,609.344 m; the sphere's radius is 6,371,008.8 m.
    origin
        Longitude and latitude of the middle of the square, degrees.

    Raises
    ------
    InputError
        If the size is not above 0, the origin is not on Earth, or identifiers would need more than 32 bits.

    References
    ----------
    Sampling Privacy, section 4 and figure 1: "using a 32 bit identifier provides 4 billion possible
    locations, which covers a 9,500 x 9,500 mile square with 0.15 mile sections". The papers do not specify the
    projection; bands of latitude are this implementation's interpretation.
    """

    size_miles: float = 0.15
    origin: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        """Check the size and the origin."""
        faults = []
        lon, lat = self.origin
        if not (-180 <= lon <= 180 and -90 <= lat <= 90):
            faults.append(f"origin must be a longitude in [-180, 180] and a latitude in [-90, 90], got {self.origin}")
        if wrong_size := positive_faults(size_miles=self.size_miles):
            faults += wrong_size
        elif self.total > LARGEST_TOTAL:
            faults.append(
                f"size_miles = {self.size_miles:g} divides 9,500 × 9,500 miles into more cells than 32-bit numbers "
                f"can count,  {LARGEST_TOTAL:,}"
            )
        if faults:
            raise InputError(faults)

    @cached_property
    def side(self) -> int:
        """Number of cells along each side of the square."""
        return pieces(SQUARE_MILES, self.size_miles)

    @property
    def total(self) -> int:
        """Number of cells in the whole square; identifiers are 0 … total - 1."""
        return self.side**2

    @cached_property
    def size_degrees(self) -> float:
        """Height of a row, degrees of latitude."""
        return self.size_miles * MILE_M / _METRES_PER_DEGREE

    def row_of(self, lat: ArrayLike) -> NDArray[np.int64]:
        """Return the row of each latitude.

        Parameters
        ----------
        lat
            Degrees, finite, shape (n,).

        Returns
        -------
        ndarray
            0 … side - 1 within the square, below or above outside it; int64, shape (n,).
        """
        bands = (np.asarray(lat, dtype=np.float64) - self.origin[1]) / self.size_degrees
        return np.floor(bands).astype(np.int64) + self.side // 2

    def column_of(self, lon: ArrayLike, row: ArrayLike) -> NDArray[np.int64]:
        """Return the column of each longitude in its row.

        Parameters
        ----------
        lon
            Degrees, finite, shape (n,); interpreted as at most 180° east or west of the origin.
        row
            Rows as returned by :meth:`row_of`, shape (n,).

        Returns
        -------
        ndarray
            0 … side - 1 within the square, below or above outside it; int64, shape (n,).
        """
        east = np.asarray(lon, dtype=np.float64) - self.origin[0]
        east = np.where(east >= 180, east - 360, np.where(east < -180, east + 360, east))
        steps = east * self._shrink(row) / self.size_degrees
        return np.floor(steps).astype(np.int64) + self.side // 2

    def global_id(self, lon: ArrayLike, lat: ArrayLike) -> NDArray[np.int64]:
        """Return the identifier of the cell of each point.

        Parameters
        ----------
        lon, lat
            WGS84 degrees, shape (n,).

        Returns
        -------
        ndarray
            Identifiers 0 … total - 1, or -1 outside the square and for NaN; int64, shape (n,).
        """
        lon, lat = np.broadcast_arrays(np.asarray(lon, dtype=np.float64), np.asarray(lat, dtype=np.float64))
        on_earth = (np.abs(lon) <= 360) & (np.abs(lat) <= 90)
        row = self.row_of(np.where(on_earth, lat, self.origin[1]))
        column = self.column_of(np.where(on_earth, lon, self.origin[0]), row)
        inside = on_earth & (row >= 0) & (row < self.side) & (column >= 0) & (column < self.side)
        return np.where(inside, row * self.side + column, -1)

    def rectangles(self, identifiers: ArrayLike) -> NDArray[np.float64]:
        """Return the meridians and parallels that bound each cell.

        Parameters
        ----------
        identifiers
            0 … total - 1, shape (n,).

        Returns
        -------
        ndarray
            Degrees (west, south, east, north), float64, shape (n, 4).
        """
        row, column = np.divmod(np.asarray(identifiers, dtype=np.int64), self.side)
        half = self.side // 2
        width = self.size_degrees / self._shrink(row)
        west = self.origin[0] + (column - half) * width
        south = self.origin[1] + (row - half) * self.size_degrees
        north = self.origin[1] + (row + 1 - half) * self.size_degrees
        return np.column_stack((west, south, self.origin[0] + (column + 1 - half) * width, north))

    def _shrink(self, row: ArrayLike) -> NDArray[np.float64]:
        """Length of a degree of longitude at the middle of each row, as a share of one at the equator."""
        middle = self.origin[1] + (np.asarray(row) - self.side // 2 + 0.5) * self.size_degrees
        return np.maximum(np.cos(np.radians(middle)), 1e-9)


_SAMPLES_PER_CELL = 50


@dataclass(frozen=True, eq=False, repr=False)
class GeographicGrid:
    """The cells of a :class:`GlobalSquare` that intersect a city; built by :meth:`build_over`.

    Cells are numbered 1 … V by ascending global identifier, and the identifier is a cell's name, so that a
    cell has the same name in the partitions of all cities.

    Parameters
    ----------
    crs
        Projected coordinate system of the city, metres.
    square
        The discretisation.
    first_row
        The southernmost row that intersects the city.
    first_column
        For each row from there on, the first column that intersects the city; int64, shape (rows,).
    offset
        For each row, the number of cells in the rows before, int64, shape (rows + 1,); the last is V.
    """

    crs: pyproj.CRS
    square: GlobalSquare
    first_row: int
    first_column: NDArray[np.int64]
    offset: NDArray[np.int64]

    kind = "geographic"

    @classmethod
    def build_over(
        cls,
        bounds: tuple[float, float, float, float],
        *,
        crs: object,
        size_miles: float = 0.15,
        origin: tuple[float, float] = (0.0, 0.0),
    ) -> GeographicGrid:
        """Select the cells that intersect a rectangle.

        Parameters
        ----------
        bounds
            Extent of the roads: (x_min, y_min, x_max, y_max) in metres.
        crs
            Projected coordinate system of the bounds.
        size_miles
            Size of a cell, miles.
        origin
            Longitude and latitude of the middle of the square of 9,500 miles, degrees.

        Returns
        -------
        GeographicGrid
            In each row, the cells from the first to the last that intersect the rectangle. A few rows have one more
            cell, whose corner is metres away from the rectangle.

        Raises
        ------
        InputError
            If a part of the rectangle lies outside the square, or an argument is out of range.
        """
        square = GlobalSquare(size_miles=float(size_miles), origin=(float(origin[0]), float(origin[1])))
        if faults := window_faults(bounds, None):
            raise InputError(faults)
        projected = pyproj.CRS.from_user_input(crs)
        step_m = size_miles * MILE_M / _SAMPLES_PER_CELL
        around = boundary_points(bounds, points_along=lambda length_m: int(length_m / step_m) + 2)
        lon, lat = lonlat_of(around, projected)
        outside = square.global_id(lon, lat) < 0
        if outside.any():
            where = int(np.flatnonzero(outside)[0])
            reach = f"longitude {lon[where]:.4f}, latitude {lat[where]:.4f}"
            raise InputError([f"the city reaches {reach}, outside the square of {_set_origin(square)}"])
        rows, columns = _cells_along(square, lon, lat)
        first_row = int(rows.min())
        count = int(rows.max()) - first_row + 1
        first, last = np.full(count, square.side), np.full(count, -1)
        np.minimum.at(first, rows - first_row, columns)
        np.maximum.at(last, rows - first_row, columns)
        offset = np.concatenate(([0], np.cumsum(last - first + 1)))
        if (last - first).max() > square.side // 2:
            raise InputError([f"the city crosses the edge of the square of {_set_origin(square)}"])
        if offset[-1] > LARGEST_COUNT:
            fault = f"size_miles = {size_miles:g} makes {offset[-1]:,} cells, more than {LARGEST_COUNT:,}"
            raise InputError([fault])
        return cls(crs=projected, square=square, first_row=first_row, first_column=first, offset=offset)

    @property
    def count(self) -> int:
        """Number of cells, V."""
        return int(self.offset[-1])

    @cached_property
    def identifiers(self) -> NDArray[np.int64]:
        """Global identifier of each cell, ascending, int64, shape (V,)."""
        row = np.repeat(np.arange(len(self.first_column)), np.diff(self.offset))
        column = np.arange(self.count) - self.offset[row] + self.first_column[row]
        return (row + self.first_row) * self.square.side + column

    @cached_property
    def names(self) -> list[str]:
        """Global identifier of each cell, as text."""
        return [str(identifier) for identifier in self.identifiers.tolist()]

    def cell_of(self, xy: ArrayLike) -> NDArray[np.int32]:
        """Return the cell of each point; shapes, units and errors as `Partition.cell_of`."""
        identifier = self.square.global_id(*lonlat_of(points_of(xy), self.crs))
        row, column = np.divmod(identifier, self.square.side)
        row -= self.first_row
        inside = (identifier >= 0) & (row >= 0) & (row < len(self.first_column))
        row = np.where(inside, row, 0)
        cell = self.offset[row] + column - self.first_column[row]
        inside &= (column >= self.first_column[row]) & (cell < self.offset[row + 1])
        return np.where(inside, cell + 1, 0).astype(np.int32)

    def coarsened(self, level: int) -> NDArray[np.int64]:
        """Merge cells into blocks of 2^level rows, as wide as 2^level cells in the city's middle row.

        Columns of neighbouring rows are not aligned, so the sides of blocks are meridians. A cell belongs to the
        block that contains its centre, and some rows of a block have one cell more or less than 2^level.

        Parameters
        ----------
        level
            How many times the size of a cell is doubled, 0 or more; at 0 each cell is a block.

        Returns
        -------
        ndarray
            The block of each cell 1 … V in order, 0 … blocks - 1, row by row; int64, shape (V,). Each block of a
            level lies within one block of the next.

        Raises
        ------
        InputError
            If the level is negative.
        """
        level = check_level(level)
        if level == 0:
            return np.arange(self.count, dtype=np.int64)
        row = self.identifiers // self.square.side
        west, _, east, _ = self.square.rectangles(self.identifiers).T
        middle = self.first_row + len(self.first_column) // 2
        column = self.square.column_of((west + east) / 2, np.full_like(row, middle))
        # The middle row may be narrower than others, so columns may lie slightly outside the square.
        blocks = np.stack([row >> level, column >> level], axis=1)
        return np.unique(blocks, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)

    def polygons(self) -> gpd.GeoDataFrame:
        """Return the cells as polygons with four corners.

        A side along a parallel is a straight line; at 0.15 miles the deviation is millimetres.

        Returns
        -------
        GeoDataFrame
            Columns ``cell`` (1 … V), ``name``, ``geometry``; in ``crs``.
        """
        west, south, east, north = self.square.rectangles(self.identifiers).T
        return frame_of(self.names, shapely.box(west, south, east, north), "EPSG:4326").to_crs(self.crs)

    def __repr__(self) -> str:
        """Describe the number of cells, their size and the centre of the square."""
        size, origin = self.square.size_miles, self.square.origin
        return f"GeographicGrid({self.count} cells of {size:g} miles, square about {origin})"


def _set_origin(square: GlobalSquare) -> str:
    return f"9,500 miles about {square.origin}: set cells.origin = [longitude, latitude] nearer to it"


def _cells_along(
    square: GlobalSquare, lon: NDArray[np.float64], lat: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows and columns through which a closed line of closely spaced points passes.

    Between two points, the line may cross the corner of a cell that contains neither. Therefore the columns of both
    points are added to the rows of both.
    """
    row = square.row_of(lat)
    rows = np.concatenate((row, row[1:], row[:-1]))
    columns = square.column_of(np.concatenate((lon, lon[:-1], lon[1:])), rows)
    return rows, columns
