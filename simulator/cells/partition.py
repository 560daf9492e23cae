"""`Partition`, the interface of a division of the city into cells, and the conversion of points to an array."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyproj
import shapely

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import geopandas as gpd
    from numpy.typing import ArrayLike, NDArray

LARGEST_COUNT = 2**31 - 1
_MARGIN_M = 0.01
"""Width by which a rectangle is widened before points are placed on its boundary, so that its edges lie inside."""


@runtime_checkable
class Partition(Protocol):
    """Cells 1 … ``count`` of a city; 0 is outside all of them.

    Ids are dense, so an array of length V + 1 holds one number for outside, at index 0, and one for each cell.
    """

    @property
    def kind(self) -> str:
        """Kind of the cells, in one word."""
        ...

    @property
    def count(self) -> int:
        """Number of cells, V."""
        ...

    @property
    def names(self) -> list[str]:
        """Names of the cells, of length V; the name of cell v is ``names[v - 1]``."""
        ...

    @property
    def crs(self) -> pyproj.CRS:
        """The projected coordinate system, in metres, of the points passed to `cell_of`."""
        ...

    def cell_of(self, xy: ArrayLike) -> NDArray[np.int32]:
        """Return the cell of each point.

        Parameters
        ----------
        xy
            Metres in ``crs``, shape (n, 2).

        Returns
        -------
        ndarray
            1 … V, or 0 for outside and for NaN; int32, shape (n,).

        Raises
        ------
        ValueError
            If the points are not pairs.
        """
        ...

    def coarsened(self, level: int) -> NDArray[np.int64]:
        """Merge cells into blocks of 2^level by 2^level.

        Parameters
        ----------
        level
            How many times the side of a cell is doubled, 0 or more.

        Returns
        -------
        ndarray
            The block of each cell 1 … V in order, 0 … blocks - 1; int64, shape (V,). Each block of a level lies
            within one block of the next. The blocks depend on the city alone, never on the positions of devices.
        """
        ...

    def polygons(self) -> gpd.GeoDataFrame:
        """Return the cells as geometries.

        Returns
        -------
        GeoDataFrame
            Columns ``cell`` (1 … V, ascending), ``name``, ``geometry``; in ``crs``.
        """
        ...


@runtime_checkable
class LinkCells(Protocol):
    """Cells that consist of links of the roads, so that a vehicle's link determines its cell."""

    @property
    def maps_links(self) -> bool:
        """Whether the cells consist of links."""
        ...

    def cell_of(self, xy: ArrayLike) -> NDArray[np.int32]:
        """Return the cell of each point, for vehicles whose link is not known; as in `Partition`."""
        ...

    def cell_of_link(self, link: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return the cell of each link, 0 for none; (n,) link ids to (n,) int32."""
        ...


@runtime_checkable
class NameCells(Protocol):
    """Cells that are named places, so that the name of a device's place determines its cell."""

    @property
    def maps_names(self) -> bool:
        """Whether the cells are named places."""
        ...

    def cell_named(self, names: Sequence[str]) -> NDArray[np.int32]:
        """Return the cell of each name, 0 for none; (n,) int32."""
        ...


def points_of(xy: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return points as an array of pairs of coordinates.

    Parameters
    ----------
    xy
        Points, shape (n, 2).

    Returns
    -------
    numpy.ndarray
        The same points, (n, 2) float64, contiguous.

    Raises
    ------
    ValueError
        If the points are not pairs.
    """
    points = np.ascontiguousarray(xy, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"xy must be of shape (n, 2), got {points.shape}")
    return points


def first_match(
    xy: npt.ArrayLike, match: Callable[[NDArray[np.object_]], NDArray[np.int64]], *, count: int
) -> NDArray[np.int32]:
    """Return the first cell that matches each point.

    Parameters
    ----------
    xy
        Points, shape (n, 2).
    match
        Maps shapely points to pairs of a point's index and a cell's, from 0, shape (2, pairs), as an STRtree does.
    count
        Number of cells, V.

    Returns
    -------
    ndarray
        1 … V, or 0 for points without a match and for NaN; int32, shape (n,).

    Raises
    ------
    ValueError
        If the points are not pairs.
    """
    places = points_of(xy)
    cells = np.full(len(places), count + 1, dtype=np.int32)
    located = np.flatnonzero(np.isfinite(places).all(axis=1))
    point, cell = match(np.asarray(shapely.points(places[located]), dtype=object))
    np.minimum.at(cells, located[point], cell.astype(np.int32) + 1)
    cells[cells > count] = 0
    return cells


def window_faults(
    bounds: tuple[float, float, float, float], within: tuple[float, float, float, float] | None
) -> list[str]:
    """Return the faults of an extent (x_min, y_min, x_max, y_max) in metres, and of a window that must meet it."""
    faults = []
    if not np.isfinite(bounds).all() or bounds[0] > bounds[2] or bounds[1] > bounds[3]:
        faults.append(f"bounds must be finite, x_min ≤ x_max and y_min ≤ y_max, got {bounds}")
    if within is not None:
        if not np.isfinite(within).all() or within[0] >= within[2] or within[1] >= within[3]:
            faults.append(f"within must be finite, x_min < x_max and y_min < y_max, got {within}")
        elif within[0] > bounds[2] or within[2] < bounds[0] or within[1] > bounds[3] or within[3] < bounds[1]:
            faults.append(f"within must overlap the roads, whose bounds are {bounds}, got {within}")
    return faults


def lonlat_of(xy: NDArray[np.float64], crs: pyproj.CRS) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return longitude and latitude of points in a reference system, WGS84 degrees; (n, 2) to (n,) and (n,)."""
    # pyproj converts an array of one number to a number, which numpy has deprecated: a single point is sent twice.
    sent = xy.repeat(2, axis=0) if len(xy) == 1 else xy
    lon, lat = _to_wgs84(crs).transform(sent[:, 0], sent[:, 1])
    return lon[: len(xy)], lat[: len(xy)]


@cache
def _to_wgs84(crs: pyproj.CRS) -> pyproj.Transformer:
    return pyproj.Transformer.from_crs(crs, "EPSG:4326", always_xy=True)


def frame_of(names: Sequence[str], shapes: object, crs: object) -> gpd.GeoDataFrame:
    """Return a frame with the columns ``cell`` (1 … V), ``name`` and ``geometry``."""
    import geopandas as gpd  # noqa: PLC0415 - slow to import

    cells = np.arange(1, len(names) + 1, dtype=np.int32)
    return gpd.GeoDataFrame({"cell": cells, "name": names}, geometry=shapes, crs=crs)


def boundary_points(
    bounds: tuple[float, float, float, float], *, points_along: Callable[[float], int]
) -> NDArray[np.float64]:
    """Return points along the boundary of a rectangle widened by 1 cm, in order and closed.

    Parameters
    ----------
    bounds
        x_min, y_min, x_max and y_max, metres.
    points_along
        Number of points on a side, from its length in metres; at least 2.

    Returns
    -------
    ndarray
        The points, metres, float64, shape (n, 2).
    """
    x_min, y_min, x_max, y_max = (*(low - _MARGIN_M for low in bounds[:2]), *(high + _MARGIN_M for high in bounds[2:]))
    x = np.linspace(x_min, x_max, points_along(x_max - x_min))
    y = np.linspace(y_min, y_max, points_along(y_max - y_min))
    around_x = np.concatenate((x, np.full(len(y), x_max), x[::-1], np.full(len(y), x_min)))
    around_y = np.concatenate((np.full(len(x), y_min), y, np.full(len(x), y_max), y[::-1]))
    return np.column_stack((around_x, around_y))
