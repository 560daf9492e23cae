"""Partition into named places: stations, locations, categories."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import shapely

from simulator.cells.coarsening import blocks_of, merge_neighbours
from simulator.cells.partition import frame_of, points_of
from simulator.files.errors import InputError, positive_faults

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import geopandas as gpd
    import pyproj
    from numpy.typing import ArrayLike, NDArray
    from scipy.spatial import KDTree


@dataclass(frozen=True, eq=False, repr=False)
class NamedPlaces:
    """Places with one name each; built by :meth:`build`.

    Parameters
    ----------
    kind
        "stations", whose cells are their surroundings, or "locations", to which devices are also assigned by name.
    crs
        Projected coordinate system, metres.
    keys
        The name of each place in the data, shape (V,).
    names
        The name to show, one per cell.
    xy
        Position of each place, metres, shape (V, 2).
    radius_m
        A point is in the cell of the nearest place (the first of equally near ones) within this distance, metres.
    side_m
        If places have no coordinates of their own: the side of the squares that represent them, metres; else None.
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
        """Build cells from places.

        Parameters
        ----------
        kind
            "stations" or "locations".
        keys
            The name of each place in the data; names must be unique.
        xy
            Position of each place, metres, finite, shape (V, 2).
        crs
            Projected coordinate system.
        radius_m
            Maximum distance of a device from its place, metres.
        labels
            Names to show in place of some keys.
        side_m
            Side of the squares that represent places without coordinates, metres; ``xy`` holds their centres.

        Returns
        -------
        NamedPlaces
            In the order given.

        Raises
        ------
        InputError
            If there is no place, a coordinate is missing, names repeat, a label is for an unknown place, or the radius
            is not a finite number above 0.
        """
        faults = []
        if not len(keys):
            faults.append("there is no place, and so no cell")
        if repeated := [key for key, again in pd.Series(keys, dtype="object").value_counts().items() if again > 1]:
            faults.append(f"names must differ, got {repeated[0]!r} more than once")
        if unknown := [label for label in labels or {} if label not in set(keys)]:
            faults.append(f"labels: there is no place {unknown[0]!r} among the cells")
        lost = ~np.isfinite(xy).all(axis=1)
        if lost.any():
            faults.append(f"place {keys[int(np.flatnonzero(lost)[0])]!r} is outside the area of the coordinate system")
        faults += positive_faults(radius_m=radius_m)
        if faults:
            raise InputError(faults)
        names = [(labels or {}).get(key, key) for key in keys]
        return cls(kind, crs, list(keys), names, np.asarray(xy, dtype=np.float64), float(radius_m), side_m)

    @property
    def count(self) -> int:
        """Number of cells, V."""
        return len(self.keys)

    @property
    def maps_names(self) -> bool:
        """Whether a device whose place is known by name is in the cell of that name, whatever its position."""
        return self.kind == "locations"

    def cell_named(self, names: Sequence[str]) -> NDArray[np.int32]:
        """Return the cell of each name in the data, 0 for none; (n,) int32."""
        places: pd.Index[Any] = pd.Index(self.keys, dtype="object")
        return np.asarray(places.get_indexer(pd.Index(list(names), dtype="object")) + 1, np.int32)

    def cell_of(self, xy: ArrayLike) -> NDArray[np.int32]:
        """Return the cell of each point: the nearest place within the radius, or the square around it.

        Shapes, units and errors are as in `Partition.cell_of`.
        """
        places = points_of(xy)
        cells = np.zeros(len(places), dtype=np.int32)
        located = np.isfinite(places).all(axis=1)
        if self.side_m is not None:
            away, nearest = self._tree.query(places[located], p=np.inf)
            within = away <= self.side_m / 2
        else:
            away, nearest = self._tree.query(places[located])
            within = away <= self.radius_m
        cells[located] = np.where(within, self._first_at[nearest] + 1, 0)
        return cells

    def coarsened(self, level: int) -> NDArray[np.int64]:
        """Merge places in the same square, as `merge_neighbours`; squares in a row as `blocks_of`; (V,) int64."""
        if self.side_m is not None:
            return blocks_of(self.xy, corner=(0.0, 0.0), spacing_m=self.side_m, level=level)
        return merge_neighbours(self.xy, level)

    def polygons(self) -> gpd.GeoDataFrame:
        """Return the places as points, or as squares if they have no coordinates of their own.

        Returns
        -------
        GeoDataFrame
            Columns ``cell`` (1 … V), ``name``, ``geometry``; in ``crs``.
        """
        if self.side_m is None:
            shapes = shapely.points(self.xy)
        else:
            x, y = self.xy.T
            half = self.side_m / 2
            shapes = shapely.box(x - half, y - half, x + half, y + half)
        return frame_of(self.names, shapes, self.crs)

    @cached_property
    def _tree(self) -> KDTree:
        from scipy.spatial import KDTree  # noqa: PLC0415  slow to import, for these cells only

        return KDTree(self.xy)

    @cached_property
    def _first_at(self) -> NDArray[np.int64]:
        """Index of the first place with the same coordinates as each, (V,): the tree returns any of them."""
        _, first, inverse = np.unique(self.xy, axis=0, return_index=True, return_inverse=True)
        return np.asarray(first[inverse.reshape(-1)], dtype=np.int64)

    def __repr__(self) -> str:
        """Describe the number and kind of the places, and their size."""
        near = "squares in a row" if self.side_m is not None else f"within {self.radius_m:g} m"
        return f"NamedPlaces({self.count} {self.kind}, {near})"
