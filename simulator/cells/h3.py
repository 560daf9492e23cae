"""Partition into cells of the global grid H3."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import pyproj
import shapely

from simulator.cells.coarsening import check_level
from simulator.cells.partition import boundary_points, frame_of, lonlat_of, points_of, window_faults
from simulator.files.errors import InputError
from simulator.files.extras import import_extra
from simulator.files.resources import shortage

if TYPE_CHECKING:
    import geopandas as gpd
    from numpy.typing import ArrayLike, NDArray

FINEST = 15
_CELL_NBYTES = 300
"""Bytes of memory per cell while H3 selects the cells: its identifier as a Python string and as a number."""
_CORNERS_A_SIDE = 64


@dataclass(frozen=True, eq=False, repr=False)
class HexagonGrid:
    """The cells of H3 that intersect a city; built by :meth:`build_over`.

    Cells are numbered 1 … V by ascending H3 index, and the index is a cell's name, so that a cell has the same
    name in the partitions of all cities. All but twelve of the globe's cells are hexagons, and a cell's children do
    not exactly fill it. A block of cells is the cell that H3 calls their parent, drawn as the cells it consists of.

    Parameters
    ----------
    crs
        Projected coordinate system of the city, metres.
    resolution
        H3's resolution, 0 … 15.
    identifiers
        H3 indices, ascending, uint64, shape (V,).

    References
    ----------
    h3geo.org; Uber's h3-py, version 4.
    """

    crs: pyproj.CRS
    resolution: int
    identifiers: NDArray[np.uint64]

    kind = "h3"

    @classmethod
    def build_over(
        cls,
        bounds: tuple[float, float, float, float],
        *,
        resolution: int,
        crs: object,
        within: tuple[float, float, float, float] | None = None,
    ) -> HexagonGrid:
        """Select the cells that intersect a rectangle.

        Parameters
        ----------
        bounds
            Extent of the roads: (x_min, y_min, x_max, y_max) in metres. It may have no width or no height.
        resolution
            0 … 15.
        crs
            Projected coordinate system of the bounds.
        within
            Select only the cells that intersect this window, in metres; all others are outside.

        Returns
        -------
        HexagonGrid
            At least one cell.

        Raises
        ------
        InputError
            If h3 is not installed, an argument is out of range, or memory does not suffice for the cells.
        """
        faults = []
        if not 0 <= resolution <= FINEST:
            faults.append(f"resolution must be 0 … {FINEST}, got {resolution!r}")
        faults += window_faults(bounds, within)
        if faults:
            raise InputError(faults)
        h3 = _h3()
        window = bounds if within is None else within
        projected = pyproj.CRS.from_user_input(crs)
        x_min, y_min, x_max, y_max = window
        wide, high = x_max - x_min, y_max - y_min
        side = h3.average_hexagon_edge_length(resolution, unit="m")
        # A rectangle intersects the cells of its area and those along its boundary.
        about = wide * high / h3.average_hexagon_area(resolution, unit="m^2") + 2 * (wide + high) / side
        if fault := shortage(about * _CELL_NBYTES, to=f"list about {about:,.0f} cells of resolution = {resolution}"):
            raise InputError([f"{fault}; or choose a coarser resolution, or a part of the city with bounds"])
        lon, lat = lonlat_of(boundary_points(window, points_along=lambda _: _CORNERS_A_SIDE), projected)
        if not (np.isfinite(lon).all() and np.isfinite(lat).all()):
            outside = "a part of the city is outside the area of its coordinate system"
            raise InputError([f"{outside}: H3 needs longitude and latitude"])
        if np.ptp(lon) > 180:
            raise InputError(["the city crosses the antimeridian, where H3 cells cannot be chosen"])
        shape = h3.LatLngPoly(list(zip(lat.tolist(), lon.tolist(), strict=True)))
        chosen = h3.h3shape_to_cells_experimental(shape, resolution, contain="overlap")
        identifiers = np.unique(np.asarray(chosen, dtype=np.uint64))
        return cls(projected, resolution, identifiers)

    @property
    def count(self) -> int:
        """Number of cells, V."""
        return len(self.identifiers)

    @cached_property
    def names(self) -> list[str]:
        """H3 index of each cell, as text."""
        return [f"{identifier:x}" for identifier in self.identifiers.tolist()]

    def cell_of(self, xy: ArrayLike) -> NDArray[np.int32]:
        """Return the cell of each point; shapes, units and errors as `Partition.cell_of`.

        It finds about a million cells per second.
        """
        places = points_of(xy)
        cells = np.zeros(len(places), dtype=np.int32)
        located = np.asarray(np.isfinite(places).all(axis=1))
        lon, lat = lonlat_of(places[located], self.crs)
        reached = np.isfinite(lon) & np.isfinite(lat)
        located[located] = reached
        lon, lat = lon[reached], lat[reached]
        indices = np.fromiter(
            map(_h3().latlng_to_cell, lat.tolist(), lon.tolist(), repeat(self.resolution)), np.uint64, len(lat)
        )
        place = np.minimum(np.searchsorted(self.identifiers, indices), self.count - 1)
        cells[located] = np.where(self.identifiers[place] == indices, place + 1, 0)
        return cells

    def coarsened(self, level: int) -> NDArray[np.int64]:
        """Merge cells into their parents ``level`` resolutions up; beyond resolution 0, into one block.

        Parameters
        ----------
        level
            How many resolutions coarser, 0 or more. A parent has about seven times the area of its child, and a side
            about 2.6 times as long.

        Returns
        -------
        ndarray
            The block of each cell 1 … V in order, 0 … blocks - 1, by ascending H3 index; int64, shape (V,). Each
            block of a level lies within one block of the next.

        Raises
        ------
        InputError
            If the level is negative.
        """
        level = check_level(level)
        if level > self.resolution:
            return np.zeros(self.count, dtype=np.int64)
        parents = np.fromiter(
            map(_h3().cell_to_parent, self.identifiers.tolist(), repeat(self.resolution - level)), np.uint64, self.count
        )
        return np.unique(parents, return_inverse=True)[1].reshape(-1).astype(np.int64)

    def polygons(self) -> gpd.GeoDataFrame:
        """Return the cells as polygons.

        Returns
        -------
        GeoDataFrame
            Columns ``cell`` (1 … V), ``name``, ``geometry``; in ``crs``.
        """
        corners = [_h3().cell_to_boundary(identifier) for identifier in self.identifiers.tolist()]
        sizes = np.array([len(corner) for corner in corners])
        lat_lon = np.array([point for corner in corners for point in corner], dtype=np.float64)
        rings = shapely.linearrings(lat_lon[:, ::-1], indices=np.repeat(np.arange(self.count), sizes))
        return frame_of(self.names, shapely.polygons(rings), "EPSG:4326").to_crs(self.crs)

    def __repr__(self) -> str:
        """Describe the number of cells and their resolution."""
        return f"HexagonGrid({self.count} cells of H3 resolution {self.resolution})"


def _h3() -> Any:
    return import_extra("h3.api.numpy_int", needed='kind = "h3" needs the package h3', extra="h3")
