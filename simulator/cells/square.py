"""Partition into squares."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyproj
import shapely

from mechanisms.compiled import compiled
from simulator.cells.coarsening import check_level, pieces
from simulator.cells.partition import LARGEST_COUNT, frame_of, points_of, window_faults
from simulator.files.errors import InputError, positive_faults

if TYPE_CHECKING:
    import geopandas as gpd
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False, repr=False)
class SquareGrid:
    """Squares in rows, numbered row by row from the south-west; built by :meth:`build_over`.

    A square includes its west and south sides; the last column also includes its east side, and the last row its
    north side. Squares at the boundary end at ``extent``.

    Parameters
    ----------
    crs
        Projected coordinate system, metres.
    size_m
        Side of a square, metres.
    west_m, south_m
        West side of the first column and south side of the first row, metres.
    columns, rows
        Number of columns and of rows; ``columns * rows`` cells, up to 2³¹ - 1.
    extent
        The rectangle that is divided, all its sides included: (x_min, y_min, x_max, y_max) in metres.
    """

    crs: pyproj.CRS
    size_m: float
    west_m: float
    south_m: float
    columns: int
    rows: int
    extent: tuple[float, float, float, float]

    kind = "square"

    @classmethod
    def build_over(
        cls,
        bounds: tuple[float, float, float, float],
        *,
        size_m: float,
        crs: object,
        within: tuple[float, float, float, float] | None = None,
    ) -> SquareGrid:
        """Cover roads with squares.

        Parameters
        ----------
        bounds
            Extent of the roads: (x_min, y_min, x_max, y_max) in metres. It may have no width or no height.
        size_m
            Side of a square, metres.
        crs
            Projected coordinate system of the bounds.
        within
            Divide only this window, in metres, from its south-west corner; all else is outside. Squares at
            its north and east boundary are cut off there. If None, the squares are centred over
            ``bounds``.

        Returns
        -------
        SquareGrid
            The fewest rows and columns that cover the bounds, or the window; at least one of each.

        Raises
        ------
        InputError
            If a number is out of range, the window does not intersect the bounds, or there are more than 2³¹ - 1
            squares.
        """
        if faults := positive_faults(size_m=size_m) + window_faults(bounds, within):
            raise InputError(faults)
        x_min, y_min, x_max, y_max = bounds if within is None else within
        columns, rows = pieces(x_max - x_min, size_m), pieces(y_max - y_min, size_m)
        count = columns * rows
        if count > LARGEST_COUNT:
            raise InputError([f"size_m = {size_m:g} makes {count:,} cells, more than {LARGEST_COUNT:,}"])
        if within is not None:
            west, south, extent = x_min, y_min, within
        else:
            width, height = columns * size_m, rows * size_m
            west, south = (x_min + x_max - width) / 2, (y_min + y_max - height) / 2
            extent = (min(west, x_min), min(south, y_min), max(west + width, x_max), max(south + height, y_max))
        return cls(
            crs=pyproj.CRS.from_user_input(crs),
            size_m=float(size_m),
            west_m=float(west),
            south_m=float(south),
            columns=columns,
            rows=rows,
            extent=(float(extent[0]), float(extent[1]), float(extent[2]), float(extent[3])),
        )

    @property
    def count(self) -> int:
        """Number of cells, V."""
        return self.columns * self.rows

    @cached_property
    def names(self) -> list[str]:
        """Name of each cell: row from the south and column from the west, both from 1, as in "r2c5"."""
        return [f"r{row}c{column}" for row in range(1, self.rows + 1) for column in range(1, self.columns + 1)]

    def cell_of(self, xy: ArrayLike) -> NDArray[np.int32]:
        """Return the square of each point; shapes, units and errors as `Partition.cell_of`."""
        places = points_of(xy)
        sides = (self.west_m, self.south_m, self.size_m)
        return np.asarray(_cell_of(places, sides, (self.columns, self.rows), self.extent))

    def coarsened(self, level: int) -> NDArray[np.int64]:
        """Merge squares into blocks of 2^level by 2^level from the south-west corner; boundary blocks may have fewer.

        Parameters
        ----------
        level
            How many times the side of a square is doubled, 0 or more.

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
        row, column = np.divmod(np.arange(self.count, dtype=np.int64), self.columns)
        across = ((self.columns - 1) >> level) + 1
        return (row >> level) * across + (column >> level)

    def polygons(self) -> gpd.GeoDataFrame:
        """Return the squares as polygons.

        Returns
        -------
        GeoDataFrame
            Columns ``cell`` (1 … V), ``name``, ``geometry``; in ``crs``.
        """
        x = _edges(self.west_m, self.size_m, self.columns, self.extent[0], self.extent[2])
        y = _edges(self.south_m, self.size_m, self.rows, self.extent[1], self.extent[3])
        row, column = np.divmod(np.arange(self.count), self.columns)
        squares = shapely.box(x[column], y[row], x[column + 1], y[row + 1])
        return frame_of(self.names, squares, self.crs)

    def __repr__(self) -> str:
        """Describe the number of squares and their size."""
        return f"SquareGrid({self.count} cells: {self.rows} rows, {self.columns} columns of {self.size_m:g} m)"


def _edges(start: float, size_m: float, count: int, first: float, last: float) -> NDArray[np.float64]:
    """Return the sides of the squares along one axis, equal to those in :func:`_cell_of`; shape (count + 1,)."""
    edges = start + size_m * np.arange(count + 1, dtype=np.float64)
    edges[0], edges[-1] = first, last
    return edges


@compiled
def _cell_of(
    xy: NDArray[np.float64],
    sides: tuple[float, float, float],
    shape: tuple[int, int],
    extent: tuple[float, float, float, float],
) -> NDArray[np.int32]:
    """Return the square of each point; comparison with the square's sides corrects rounding errors of the quotient."""
    west, south, size = sides
    columns, rows = shape
    x_min, y_min, x_max, y_max = extent
    cells = np.zeros(len(xy), dtype=np.int32)
    for i in range(len(xy)):
        x, y = xy[i, 0], xy[i, 1]
        if x_min <= x <= x_max and y_min <= y <= y_max:
            column = int(np.floor((x - west) / size))
            row = int(np.floor((y - south) / size))
            column += int(x >= west + size * (column + 1)) - int(x < west + size * column)
            row += int(y >= south + size * (row + 1)) - int(y < south + size * row)
            column = min(max(column, 0), columns - 1)
            row = min(max(row, 0), rows - 1)
            cells[i] = row * columns + column + 1
    return cells
