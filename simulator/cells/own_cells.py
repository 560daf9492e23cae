"""A user's own cells: what a class of cells must have, and the partition that it becomes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import shapely

from simulator.cells.coarsening import DrawnCells
from simulator.cells.partition import points_of
from simulator.cells.road_segments import numbered
from simulator.files.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import geopandas as gpd
    import pyproj
    from numpy.typing import ArrayLike, NDArray

_SHOWN = 5


@runtime_checkable
class OwnCells(Protocol):
    """Cells of a user's own: `cell_of` and `polygons`, and optionally `names`.

    The constructor may have any of the parameters ``bounds`` (x_min, y_min, x_max and y_max of the city, metres),
    ``crs`` (`pyproj.CRS` of the city, in metres) and ``roads`` (`RoadNetwork`, or None), and parameters of its own,
    which are keys of ``[cells]``. An attribute ``names`` has the names of the cells, of length V.
    """

    def cell_of(self, xy: NDArray[np.float64], /) -> ArrayLike:
        """Return the cell of each point.

        Parameters
        ----------
        xy
            Metres in the city's coordinate system, shape (n, 2), n ≥ 0.

        Returns
        -------
        array_like of int
            1 … V, or 0 for outside and for NaN; shape (n,). It depends on the point alone.
        """
        ...

    def polygons(self) -> gpd.GeoDataFrame | Sequence[shapely.Geometry]:
        """Return the polygons of the cells 1 … V in order, at least one; V is their number.

        Returns
        -------
        GeoDataFrame or sequence of shapely.Polygon or shapely.MultiPolygon
            A frame without a coordinate system, and a sequence, are in that of the city.
        """
        ...


class UserPartition(DrawnCells):
    """Partition of a user's cells, whose answers are checked.

    Parameters
    ----------
    own
        The user's cells.
    kind
        The name of their kind.
    crs
        Projected coordinate system of the city, metres.

    Raises
    ------
    InputError
        If the polygons or the names cannot be used.
    """

    def __init__(self, own: OwnCells, *, kind: str, crs: pyproj.CRS) -> None:
        self._own, self.kind, self.crs = own, kind, crs
        self.shapes = _shapes_of(own.polygons(), crs)
        self.names = numbered(names_of(own, len(self.shapes)))

    def cell_of(self, xy: ArrayLike) -> NDArray[np.int32]:
        """Return the cell of each point: shape (n, 2), metres, to (n,) int32, 1 … V, or 0 for outside and for NaN.

        Raises
        ------
        ValueError
            If the points are not pairs.
        InputError
            If the user's answer has another shape or type, or numbers outside 0 … V, or places NaN in a cell.
        """
        points = points_of(xy)
        cells = np.asarray(self._own.cell_of(points.copy()))
        if fault := answer_fault(cells, points, self.count):
            raise InputError([f"{self.kind}: cell_of must return {fault}"], key="cells")
        return cells.astype(np.int32)

    def __repr__(self) -> str:
        """Describe the kind and the number of cells."""
        return f"UserPartition({self.count} cells, {self.kind})"


def answer_fault(cells: NDArray[Any], points: NDArray[np.float64], count: int) -> str:
    """Return what an answer of `cell_of` must be and is not; "" for a correct answer.

    Parameters
    ----------
    cells
        The answer.
    points
        The points, shape (n, 2).
    count
        Number of cells, V.
    """
    if cells.shape != (len(points),):
        return f"one number for each point, shape {(len(points),)}, got shape {cells.shape}"
    if not np.issubdtype(cells.dtype, np.integer) and len(cells):
        return f"whole numbers of an integer type, got {cells.dtype}"
    wrong = (cells < 0) | (cells > count)
    if wrong.any():
        return f"0 to {count}, as there are {count} polygons, got {cells[wrong][0]}"
    inside = (cells > 0) & np.isnan(points).any(axis=1)
    return f"0 for NaN, got {cells[inside][0]}" if inside.any() else ""


def names_of(cells: object, count: int) -> list[str]:
    """Return the names of a user's cells, or their numbers if it has none; raise `InputError` unless they are V."""
    given = getattr(cells, "names", None)
    names = [str(cell) for cell in range(1, count + 1)] if given is None else [str(name) for name in given]
    if len(names) != count:
        raise InputError([f"names must be as many as the polygons, {count}, got {len(names)}"])
    return names


def _shapes_of(polygons: Any, crs: pyproj.CRS) -> NDArray[np.object_]:
    if hasattr(polygons, "geometry"):
        frame = polygons.geometry
        polygons = frame.to_numpy() if frame.crs is None else frame.to_crs(crs).to_numpy()
    listed = list(polygons)
    if not listed:
        raise InputError(["polygons must return at least one polygon, got none"])
    rule = "must be a polygon or multipolygon that is valid, finite and not empty"
    faults = [f"polygon {cell} {rule}, got {_word(shape)}" for cell, shape in enumerate(listed, 1) if _is_wrong(shape)]
    if faults:
        raise InputError(faults[:_SHOWN])
    shapes = np.empty(len(listed), dtype=object)
    shapes[:] = listed
    return shapes


def _is_wrong(shape: object) -> bool:
    if not isinstance(shape, shapely.Polygon | shapely.MultiPolygon) or shape.is_empty:
        return True
    return not (shape.is_valid and np.isfinite(shape.bounds).all())


def _word(shape: object) -> str:
    return shapely.is_valid_reason(shape) if isinstance(shape, shapely.Geometry) else type(shape).__name__
