"""`Partition`: the interface of a division of the city into cells, and the points whose cells are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

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


@runtime_checkable
class LinkCells(Protocol):
    """Cells that are links of the roads, so that a vehicle's link says its cell."""

    @property
    def knows_links(self) -> bool:
        """Whether they are."""
        ...

    def cell_of(self, xy: ArrayLike) -> NDArray[np.int32]:
        """Say in which cell each place is, of vehicles whose link is not known; as `Partition` has it."""
        ...

    def cell_of_link(self, link: NDArray[np.integer]) -> NDArray[np.int32]:
        """Say in which cell each link is, 0 for none; (n,) link ids to (n,) int32."""
        ...


@runtime_checkable
class NameCells(Protocol):
    """Cells that are named places, so that the name of somebody's place says the cell."""

    @property
    def knows_names(self) -> bool:
        """Whether they are."""
        ...

    def cell_named(self, names: Sequence[str]) -> NDArray[np.int32]:
        """Say which cell each name is, 0 for none; (n,) int32."""
        ...


def points_of(xy: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return points as an array of pairs of coordinates.

    Parameters
    ----------
    xy
        Shape (n, 2).

    Returns
    -------
    numpy.ndarray
        The same, (n, 2) float64, contiguous.

    Raises
    ------
    ValueError
        If the points are not pairs.
    """
    points = np.ascontiguousarray(xy, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"xy must be of shape (n, 2), got {points.shape}")
    return points
