"""Partition into named places: stations, locations, categories."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import geopandas as gpd
import numpy as np
import pandas as pd
import shapely

from simulator.cells.coarsening import blocks_of, spacing_of
from simulator.cells.errors import CellsError
from simulator.cells.partition import points_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyproj
    from numpy.typing import ArrayLike, NDArray
    from scipy.spatial import KDTree


@dataclass(frozen=True, eq=False, repr=False)
class NamedPlaces:
    """Places with a name each; made by :meth:`build`.

    Parameters
    ----------
    kind
        "stations", whose cells are what is near them, or "locations", which are known by name too.
    crs
        Projected coordinate system, metres.
    keys
        The name of each place in the data, shape (V,).
    names
        The name to show, one a cell.
    xy
        Where each is, metres, shape (V, 2).
    radius_m
        A place is at the nearest of them, of equally near ones the first, no further off than this.
    side_m
        Where places have no coordinates of their own: the side of the squares they are laid out as; else None.
    """

    kind: str
    crs: pyproj.CRS
    keys: list[str]
    names: list[str]
    xy: NDArray[np.float64]
    radius_m: float
    side_m: float | None = None

    @classmethod
    def build(
        cls,
        kind: str,
        keys: Sequence[str],
        xy: NDArray[np.float64],
        *,
        crs: pyproj.CRS,
        radius_m: float,
        labels: Mapping[str, str] | None = None,
        side_m: float | None = None,
    ) -> NamedPlaces:
        """Make cells of places.

        Parameters
        ----------
        kind
            "stations" or "locations".
        keys
            The name of each place in the data; no two alike.
        xy
            Where each is, metres, finite, shape (V, 2).
        crs
            Projected coordinate system.
        radius_m
            How far off its place somebody may be, metres.
        labels
            What to call some of them instead.
        side_m
            The side of the squares that stand for places without coordinates, ``xy`` being their middles.

        Returns
        -------
        NamedPlaces
            In the order given.

        Raises
        ------
        CellsError
            If there is no place, a coordinate is missing, names repeat, or a label is of a place that is not there.
        """
        faults = []
        if not len(keys):
            faults.append("there is no place to be a cell")
        if repeated := [key for key, again in pd.Series(keys, dtype="object").value_counts().items() if again > 1]:
            faults.append(f"names must differ, got {repeated[0]!r} more than once")
        if unknown := [label for label in labels or {} if label not in set(keys)]:
            faults.append(f"labels: there is no place {unknown[0]!r} among the cells")
        lost = ~np.isfinite(xy).all(axis=1)
        if lost.any():
            faults.append(
                f"place {keys[int(np.flatnonzero(lost)[0])]!r} lies where the coordinate system does not reach"
            )
        if not 0 < radius_m < np.inf:
            faults.append(f"radius_m must be a finite number above 0, got {radius_m!r}")
        if faults:
            raise CellsError(faults)
        names = [(labels or {}).get(key, key) for key in keys]
        return cls(kind, crs, list(keys), names, np.asarray(xy, dtype=np.float64), float(radius_m), side_m)

    @property
    def count(self) -> int:
        """How many cells, V."""
        return len(self.keys)

    @property
    def knows_names(self) -> bool:
        """Whether somebody whose place is known by name is in the cell of that name, wherever it is."""
        return self.kind == "locations"

    def cell_named(self, names: Sequence[str]) -> NDArray[np.int32]:
        """Say which cell each name of the data is, 0 for none; (n,) int32."""
        known: pd.Index[Any] = pd.Index(self.keys, dtype="object")
        return np.asarray(known.get_indexer(pd.Index(list(names), dtype="object")) + 1, np.int32)

    def cell_of(self, xy: ArrayLike) -> NDArray[np.int32]:
        """Say at which place each is: the nearest within the radius; where places are squares, the one it is in.

        Parameters
        ----------
        xy
            Metres in ``crs``, shape (n, 2).

        Returns
        -------
        ndarray
            1 … V, or 0 for outside, NaN included; int32, shape (n,).

        Raises
        ------
        ValueError
            If the places are not pairs.
        """
        places = points_of(xy)
        cells = np.zeros(len(places), dtype=np.int32)
        known = np.isfinite(places).all(axis=1)
        if self.side_m is not None:
            away, nearest = self._tree.query(places[known], p=np.inf)
            within = away <= self.side_m / 2
        else:
            away, nearest = self._tree.query(places[known])
            within = away <= self.radius_m
        cells[known] = np.where(within, self._first_at[nearest] + 1, 0)
        return cells

    def coarsened(self, level: int) -> NDArray[np.int64]:
        """Merge places that lie in one square; squares lie from the south-west corner of all places.

        Parameters
        ----------
        level
            How often the side of a square is doubled, 0 or more. At 0 a cell is a block; before that, a square is
            as large as each place would have of their extent. Places laid out in a row are merged two, four, eight …
            neighbours at a time.

        Returns
        -------
        ndarray
            The block of each cell 1 … V in order, 0 … blocks - 1; int64, shape (V,). Each block of a level lies
            within one of the next.

        Raises
        ------
        CellsError
            If the level is negative.
        """
        if self.side_m is not None:
            return blocks_of(self.xy, corner=(0.0, 0.0), spacing_m=self.side_m, level=level)
        west, south = self.xy.min(axis=0).tolist()
        return blocks_of(self.xy, corner=(west, south), spacing_m=spacing_of(self.xy), level=level)

    def polygons(self) -> gpd.GeoDataFrame:
        """Draw the places: points, or squares where they have no coordinates of their own.

        Returns
        -------
        GeoDataFrame
            Columns ``cell`` (1 … V), ``name``, ``geometry``; in ``crs``.
        """
        cells = np.arange(1, self.count + 1, dtype=np.int32)
        if self.side_m is None:
            shapes = shapely.points(self.xy)
        else:
            x, y = self.xy.T
            half = self.side_m / 2
            shapes = shapely.box(x - half, y - half, x + half, y + half)
        return gpd.GeoDataFrame({"cell": cells, "name": self.names}, geometry=shapes, crs=self.crs)

    @cached_property
    def _tree(self) -> KDTree:
        from scipy.spatial import KDTree  # noqa: PLC0415  slow to import, for these cells only

        return KDTree(self.xy)

    @cached_property
    def _first_at(self) -> NDArray[np.int64]:
        """The first place at the coordinates of each, (V,): of places at one spot the tree returns any."""
        _, first, inverse = np.unique(self.xy, axis=0, return_index=True, return_inverse=True)
        return np.asarray(first[inverse.reshape(-1)], dtype=np.int64)

    def __repr__(self) -> str:
        """Say how many places."""
        near = "squares in a row" if self.side_m is not None else f"within {self.radius_m:g} m"
        return f"NamedPlaces({self.count} {self.kind}, {near})"
