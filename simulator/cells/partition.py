"""What every partition of a city into cells can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import geopandas as gpd
    import numpy as np
    import pyproj
    from numpy.typing import ArrayLike, NDArray

LARGEST_COUNT = 2**31 - 1


@runtime_checkable
class Partition(Protocol):
    """Cells 1 … ``count`` of a city; 0 is outside all of them.

    Ids are dense, so an array of length V + 1 holds a number for each cell and, first, for outside.
    """

    @property
    def kind(self) -> str:
        """What kind of cells, in one word."""
        ...

    @property
    def count(self) -> int:
        """How many cells, V."""
        ...

    @property
    def names(self) -> list[str]:
        """One name a cell, of length V; cell v is called ``names[v - 1]``."""
        ...

    @property
    def crs(self) -> pyproj.CRS:
        """The projected coordinate system, in metres, of the places asked about."""
        ...

    def cell_of(self, xy: ArrayLike) -> NDArray[np.int32]:
        """Say in which cell each place is.

        Parameters
        ----------
        xy
            Metres in ``crs``, shape (n, 2).

        Returns
        -------
        ndarray
            1 … V, or 0 for outside, NaN included; int32, shape (n,).
        """
        ...

    def coarsened(self, level: int) -> NDArray[np.int64]:
        """Merge cells into blocks of 2^level by 2^level.

        Parameters
        ----------
        level
            How often the side of a cell is doubled, 0 or more.

        Returns
        -------
        ndarray
            The block of each cell 1 … V in order, 0 … blocks - 1; int64, shape (V,). Each block of a level lies
            within one of the next. It hangs on the city alone, never on who is where.
        """
        ...

    def polygons(self) -> gpd.GeoDataFrame:
        """Draw the cells.

        Returns
        -------
        GeoDataFrame
            Columns ``cell`` (1 … V, ascending), ``name``, ``geometry``; in ``crs``.
        """
        ...
