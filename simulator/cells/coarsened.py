"""A partition whose cells are the blocks of another."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import geopandas as gpd
import numpy as np
import shapely

from simulator.cells.division import check_level

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyproj
    from numpy.typing import ArrayLike, NDArray

    from simulator.cells.partition import Partition


class Coarsened:
    """The blocks of a level of another partition, as cells.

    Parameters
    ----------
    cells
        The partition that is merged.
    level
        How often, 0 or more.

    Raises
    ------
    CellsError
        If the level is negative.
    """

    def __init__(self, cells: Partition, level: int) -> None:
        self.base, self.level = cells, check_level(level)
        self._block = cells.coarsened(self.level)
        self._cell_of_base = np.concatenate(([0], self._block + 1)).astype(np.int32)

    @property
    def kind(self) -> str:
        """The kind of the cells that are merged."""
        return self.base.kind

    @property
    def crs(self) -> pyproj.CRS:
        """The projected coordinate system, in metres."""
        return self.base.crs

    @cached_property
    def count(self) -> int:
        """How many blocks."""
        return int(self._block.max()) + 1

    @cached_property
    def names(self) -> list[str]:
        """The name of the one cell of a block; of several, the first's and how many more."""
        names, sizes = self.base.names, np.bincount(self._block)
        first = np.unique(self._block, return_index=True)[1]
        return [
            names[cell] if size == 1 else f"{names[cell]} +{size - 1}"
            for cell, size in zip(first.tolist(), sizes.tolist(), strict=True)
        ]

    def cell_of(self, xy: ArrayLike) -> NDArray[np.int32]:
        """Say in which block each place is: shape (n, 2) metres to (n,) int32, 0 for outside."""
        return np.asarray(self._cell_of_base[self.base.cell_of(xy)])

    @property
    def knows_links(self) -> bool:
        """Whether the cells that are merged are of links."""
        return bool(getattr(self.base, "knows_links", False))

    def cell_of_link(self, link: NDArray[np.integer]) -> NDArray[np.int32]:
        """Say in which block each link is, of cells that know links; (n,) int32."""
        return np.asarray(self._cell_of_base[self.base.cell_of_link(link)])  # type: ignore[attr-defined]  # of those

    @property
    def knows_names(self) -> bool:
        """Whether the cells that are merged are of named places."""
        return bool(getattr(self.base, "knows_names", False))

    def cell_named(self, names: Sequence[str]) -> NDArray[np.int32]:
        """Say in which block each named place is, of cells that know names; (n,) int32."""
        return np.asarray(self._cell_of_base[self.base.cell_named(names)])  # type: ignore[attr-defined]  # of those

    def coarsened(self, level: int) -> NDArray[np.int64]:
        """Merge further: the blocks of ``level`` levels above, (V,) int64."""
        coarser = self.base.coarsened(self.level + check_level(level))
        merged = np.zeros(self.count, dtype=np.int64)
        merged[self._block] = coarser
        return merged

    def polygons(self) -> gpd.GeoDataFrame:
        """Draw the blocks: the union of their cells.

        Returns
        -------
        GeoDataFrame
            Columns ``cell`` (1 … V), ``name``, ``geometry``; in ``crs``.
        """
        geometries = np.asarray(self.base.polygons().geometry.array, dtype=object)
        order = np.argsort(self._block, kind="stable")
        groups = np.split(geometries[order], np.flatnonzero(np.diff(self._block[order])) + 1)
        united = [group[0] if len(group) == 1 else shapely.union_all(group) for group in groups]
        cells = np.arange(1, self.count + 1, dtype=np.int32)
        return gpd.GeoDataFrame({"cell": cells, "name": self.names}, geometry=united, crs=self.crs)

    def __repr__(self) -> str:
        """Say how many blocks, of what."""
        return f"Coarsened({self.count} blocks, level {self.level} of {self.base!r})"
