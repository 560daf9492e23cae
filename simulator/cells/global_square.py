"""The papers' discretisation of latitude and longitude into 32-bit identifiers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from simulator.cells.division import pieces
from simulator.cells.errors import CellsError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

EARTH_RADIUS_M = 6_371_008.8
MILE_M = 1609.344
SQUARE_MILES = 9500.0
LARGEST_TOTAL = 2**32
_METRES_PER_DEGREE = EARTH_RADIUS_M * math.pi / 180


@dataclass(frozen=True)
class GlobalSquare:
    """A square of 9,500 × 9,500 miles on a sphere, divided into cells with one identifier each.

    A row is a band of latitude ``size_miles`` high. The columns of a row are as wide at the latitude of the
    row's middle, so all cells have the same area, and columns of neighbouring rows do not line up. The
    identifier is row · side + column, from 0 in the south-west. At 0.15 miles there are 63,334 cells a side,
    4,011,195,556 in all, which 32 bits can tell apart.

    Parameters
    ----------
    size_miles
        Height of a row and width of a cell, miles of 1,609.344 m; the sphere's radius is 6,371,008.8 m.
    origin
        Longitude and latitude of the middle of the square, degrees.

    Raises
    ------
    CellsError
        If the size is not above 0, the origin is not on Earth, or identifiers would need more than 32 bits.

    References
    ----------
    Sampling Privacy, section 4 and figure 1: "using a 32 bit identifier provides 4 billion possible
    locations, which covers a 9,500 x 9,500 mile square with 0.15 mile sections". The papers leave the
    projection open; bands of latitude are this implementation's reading.
    """

    size_miles: float = 0.15
    origin: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        """Check the size and the origin."""
        faults = []
        lon, lat = self.origin
        if not (-180 <= lon <= 180 and -90 <= lat <= 90):
            faults.append(f"origin must be a longitude in [-180, 180] and a latitude in [-90, 90], got {self.origin}")
        if not 0 < self.size_miles < math.inf:
            faults.append(f"size_miles must be a finite number above 0, got {self.size_miles!r}")
        elif self.total > LARGEST_TOTAL:
            faults.append(
                f"size_miles = {self.size_miles:g} divides 9,500 × 9,500 miles into more cells than 32 bits "
                f"can tell apart, {LARGEST_TOTAL:,}"
            )
        if faults:
            raise CellsError(faults)

    @cached_property
    def side(self) -> int:
        """Cells along each side of the square."""
        return pieces(SQUARE_MILES, self.size_miles)

    @property
    def total(self) -> int:
        """Cells in the whole square; identifiers are 0 … total - 1."""
        return self.side**2

    @cached_property
    def size_degrees(self) -> float:
        """Height of a row, degrees of latitude."""
        return self.size_miles * MILE_M / _METRES_PER_DEGREE

    def row_of(self, lat: ArrayLike) -> NDArray[np.int64]:
        """Say in which row each latitude is.

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
        """Say in which column of its row each longitude is.

        Parameters
        ----------
        lon
            Degrees, finite, shape (n,); taken as at most half a turn east or west of the origin.
        row
            As :meth:`row_of` gives them, shape (n,).

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
        """Say which cell of the square each place is in.

        Parameters
        ----------
        lon, lat
            WGS84 degrees, shape (n,).

        Returns
        -------
        ndarray
            Identifiers 0 … total - 1, or -1 outside the square, NaN included; int64, shape (n,).
        """
        lon, lat = np.broadcast_arrays(np.asarray(lon, dtype=np.float64), np.asarray(lat, dtype=np.float64))
        known = (np.abs(lon) <= 360) & (np.abs(lat) <= 90)
        row = self.row_of(np.where(known, lat, self.origin[1]))
        column = self.column_of(np.where(known, lon, self.origin[0]), row)
        inside = known & (row >= 0) & (row < self.side) & (column >= 0) & (column < self.side)
        return np.where(inside, row * self.side + column, -1)

    def rectangles(self, identifiers: ArrayLike) -> NDArray[np.float64]:
        """Bound cells by meridians and parallels.

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
