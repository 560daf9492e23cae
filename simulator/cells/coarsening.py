"""Coarsening: cells merged into blocks, level by level, and partitions whose cells are such blocks."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import shapely

from simulator.cells.partition import frame_of
from simulator.files.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import geopandas as gpd
    import pyproj
    from numpy.typing import ArrayLike, NDArray

    from simulator.cells.partition import Partition


_SLACK = 1e-9
_LARGEST = 1e18
_LARGEST_LEVEL = 62  # bounds the shift of int64 indices, which is undefined from 64 bits on


def pieces(length: float, size: float) -> int:
    """Return the number of pieces that cover a length.

    Parameters
    ----------
    length
        0 or more, in any unit.
    size
        Length of a piece, above 0, in the same unit.

    Returns
    -------
    int
        At least 1 and at most 10¹⁸. If the length exceeds a whole number of pieces by no more than a rounding error,
        one part in 10⁹, that whole number is returned.
    """
    ratio = min(length / size, _LARGEST)
    nearest = round(ratio)
    return max(1, nearest) if abs(ratio - nearest) <= _SLACK * max(1, nearest) else math.ceil(ratio)


def check_level(level: int) -> int:
    """Return how many times the side of a cell is doubled; raise `InputError` unless it is 0 or more."""
    if level < 0:
        raise InputError([f"level must be at least 0, got {level!r}"])
    return min(level, _LARGEST_LEVEL)


class Coarsened:
    """The blocks of a level of another partition, as cells.

    Parameters
    ----------
    cells
        The partition whose cells are merged.
    level
        How many times the cells are merged, 0 or more.

    Raises
    ------
    InputError
        If the level is negative.
    """

    def __init__(self, cells: Partition, level: int) -> None:
        self.base, self.level = cells, check_level(level)
        self._block = cells.coarsened(self.level)
        self._cell_of_base = np.concatenate(([0], self._block + 1)).astype(np.int32)

    @property
    def kind(self) -> str:
        """Kind of the cells that are merged."""
        return self.base.kind

    @property
    def crs(self) -> pyproj.CRS:
        """The projected coordinate system, in metres."""
        return self.base.crs

    @cached_property
    def count(self) -> int:
        """Number of blocks."""
        return int(self._block.max()) + 1

    @cached_property
    def names(self) -> list[str]:
        """Name of each block: its first cell, plus the number of its other cells if it has any."""
        names, sizes = self.base.names, np.bincount(self._block)
        first = np.unique(self._block, return_index=True)[1]
        return [
            names[cell] if size == 1 else f"{names[cell]} +{size - 1}"
            for cell, size in zip(first.tolist(), sizes.tolist(), strict=True)
        ]

    def cell_of(self, xy: ArrayLike) -> NDArray[np.int32]:
        """Return the block of each point: shape (n, 2), metres, to (n,) int32, 0 for outside."""
        return np.asarray(self._cell_of_base[self.base.cell_of(xy)])

    @property
    def maps_links(self) -> bool:
        """Whether the cells that are merged consist of links."""
        return bool(getattr(self.base, "maps_links", False))

    def cell_of_link(self, link: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return the block of each link, if the cells consist of links; (n,) link ids to (n,) int32."""
        return np.asarray(self._cell_of_base[self.base.cell_of_link(link)])  # type: ignore[attr-defined]  # if `maps_links`

    @property
    def maps_names(self) -> bool:
        """Whether the cells that are merged are named places."""
        return bool(getattr(self.base, "maps_names", False))

    def cell_named(self, names: Sequence[str]) -> NDArray[np.int32]:
        """Return the block of each named place, if the cells are named places; (n,) int32."""
        return np.asarray(self._cell_of_base[self.base.cell_named(names)])  # type: ignore[attr-defined]  # if `maps_names`

    def coarsened(self, level: int) -> NDArray[np.int64]:
        """Return the block of each cell after ``level`` further levels of merging, (V,) int64."""
        coarser = self.base.coarsened(self.level + check_level(level))
        merged = np.zeros(self.count, dtype=np.int64)
        merged[self._block] = coarser
        return merged

    def polygons(self) -> gpd.GeoDataFrame:
        """Return the blocks as geometries: the unions of their cells.

        Returns
        -------
        GeoDataFrame
            Columns ``cell`` (1 … V), ``name``, ``geometry``; in ``crs``.
        """
        geometries = np.asarray(self.base.polygons().geometry.array, dtype=object)
        order = np.argsort(self._block, kind="stable")
        groups = np.split(geometries[order], np.flatnonzero(np.diff(self._block[order])) + 1)
        united = [group[0] if len(group) == 1 else shapely.union_all(group) for group in groups]
        return frame_of(self.names, united, self.crs)

    def __repr__(self) -> str:
        """Describe the number of blocks, their level and the merged partition."""
        return f"Coarsened({self.count} blocks, level {self.level} of {self.base!r})"


_LEAST_M = 1.0


def blocks_of(
    middles: NDArray[np.float64], *, corner: tuple[float, float], spacing_m: float, level: int
) -> NDArray[np.int64]:
    """Merge cells whose centres lie in the same square with a side of ``spacing_m`` · 2^level.

    Parameters
    ----------
    middles
        Centres of the cells 1 … V in order, metres, shape (V, 2).
    corner
        South-west corner of the first square, metres.
    spacing_m
        Side of a square of level 0, metres.
    level
        How many times the side is doubled, 0 or more; at 0 each cell is a block.

    Returns
    -------
    ndarray
        The block of each cell, 0 … blocks - 1, row by row from the south-west; int64, shape (V,). A square of a level
        consists of four squares of the level before, so each block of a level lies within one block of the next.

    Raises
    ------
    InputError
        If the level is negative.
    """
    level = check_level(level)
    if level == 0:
        return np.arange(len(middles), dtype=np.int64)
    squares = np.floor((middles - np.asarray(corner)) / spacing_m).astype(np.int64)[:, ::-1] >> level
    return np.unique(squares, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def merge_neighbours(middles: NDArray[np.float64], level: int) -> NDArray[np.int64]:
    """Merge cells without an order of their own by `blocks_of`: squares start at the south-west corner of all centres.

    Parameters
    ----------
    middles
        Centres of the cells 1 … V in order, metres, shape (V, 2), V ≥ 1.
    level
        How many times the side of a square is doubled, 0 or more. At 0 each cell is a block. The side before doubling
        is `spacing_of`: the side of a square with the area of the centres' extent per cell. Cells laid out in a row are
        merged two, four, eight … neighbours at a time.

    Returns
    -------
    ndarray
        As of `blocks_of`.

    Raises
    ------
    InputError
        If the level is negative.
    """
    west, south = middles.min(axis=0).tolist()
    return blocks_of(middles, corner=(west, south), spacing_m=spacing_of(middles), level=level)


def spacing_of(middles: NDArray[np.float64]) -> float:
    """Return the approximate spacing of points: the side of a square with the area of their extent per point.

    Parameters
    ----------
    middles
        The points, metres, shape (V, 2), V ≥ 1.

    Returns
    -------
    float
        Metres, at least 1; for points on a line, the length of the line divided by their number.
    """
    width, height = (middles.max(axis=0) - middles.min(axis=0)).tolist()
    return float(max(np.sqrt(width * height / len(middles)), max(width, height) / len(middles), _LEAST_M))


class DrawnCells:
    """Cells with a geometry each, and no order of their own: their number, blocks and geometries.

    Attributes
    ----------
    crs : pyproj.CRS
        Projected coordinate system, metres.
    names : list of str
        Name of each cell.
    shapes : (V,) of object
        Geometry of each cell, in ``crs``.
    """

    crs: pyproj.CRS
    names: list[str]
    shapes: NDArray[np.object_]

    @property
    def count(self) -> int:
        """Number of cells, V."""
        return len(self.names)

    @property
    def middles(self) -> NDArray[np.float64]:
        """Centroids of the cells, metres, (V, 2)."""
        return shapely.get_coordinates(shapely.centroid(self.shapes))

    def coarsened(self, level: int) -> NDArray[np.int64]:
        """Merge cells whose middles lie in the same square, as `merge_neighbours`; (V,) int64."""
        return merge_neighbours(self.middles, level)

    def polygons(self) -> gpd.GeoDataFrame:
        """Return the geometries.

        Returns
        -------
        GeoDataFrame
            Columns ``cell`` (1 … V), ``name``, ``geometry``; in ``crs``.
        """
        return frame_of(self.names, self.shapes, self.crs)

    @cached_property
    def _tree(self) -> shapely.STRtree:
        return shapely.STRtree(self.shapes)
