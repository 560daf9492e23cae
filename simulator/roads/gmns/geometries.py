"""Shapes of GMNS links: well-known text or binary, in the link table or in a geometry table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import shapely

from simulator.files.errors import InputError
from simulator.roads.gmns.tables import duplicated, find_table, open_table, texts_of
from simulator.roads.node_ids import node_ids

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from shapely.geometry.base import BaseGeometry

    from simulator.files.tables import Table
    from simulator.roads.projection import Projection


@dataclass(frozen=True, eq=False, repr=False)
class Geometries:
    """The line of each link, if it has one, in the coordinates of the file.

    Parameters
    ----------
    lines
        LineString or None, object, shape (links,).
    in_parts
        Links whose shape consists of parts that do not join to one line, and is left out; bool, shape (links,).
    """

    lines: NDArray[np.object_]
    in_parts: NDArray[np.bool_]

    @classmethod
    def from_links(cls, table: Table, folder: Path) -> Geometries:
        """Read the geometry of every link from its row, or from the row of the geometry table that it names.

        Parameters
        ----------
        table
            The link table; ``geometry`` and ``geometry_id`` are optional.
        folder
            The folder of the network.

        Returns
        -------
        Geometries
            The geometries of all rows.

        Raises
        ------
        InputError
            If a geometry is not a line, or a ``geometry_id`` is not in the geometry table or is there twice; it names
            file, rows and value.
        """
        values = _values(table)
        ids = node_ids(texts_of(table, "geometry_id"))
        file = find_table(folder, "geometry")
        wanted = [own is None and identifier is not None for own, identifier in zip(values, ids, strict=True)]
        if not any(wanted) or (file is None and not table.has("geometry_id")):
            return cls(*_lines(table, values))
        if file is None:
            raise InputError([f"{table.file}: links name a geometry_id, and {folder} has no geometry table"])
        shapes = open_table(file, required=("geometry_id", "geometry"))
        shape_ids = node_ids(texts_of(shapes, "geometry_id"))
        missing = np.array([identifier is None for identifier in shape_ids])
        faults = shapes.faults("geometry_id", missing, "an identifier")
        faults += shapes.faults("geometry_id", duplicated(shape_ids), "an identifier no other row has")
        rows = {identifier: row for row, identifier in enumerate(shape_ids)}
        unknown = np.array([need and identifier not in rows for need, identifier in zip(wanted, ids, strict=True)])
        faults += table.faults("geometry_id", unknown, f"one of {file}")
        if faults:
            raise InputError(faults)
        lines, in_parts = _lines(table, values)
        shared, shared_in_parts = _lines(shapes, _values(shapes))
        for link, (need, identifier) in enumerate(zip(wanted, ids, strict=True)):
            if need:
                lines[link], in_parts[link] = shared[rows[identifier]], shared_in_parts[rows[identifier]]
        return cls(lines, in_parts)

    def projected(self, projection: Projection) -> Geometries:
        """Project every line to metres; a line that cannot be projected becomes None.

        Parameters
        ----------
        projection
            The projection of the network.

        Returns
        -------
        Geometries
            The same lines in metres.
        """
        lines = self.lines.copy()
        there = np.flatnonzero([line is not None for line in lines])
        if len(there):
            xy, of = shapely.get_coordinates(lines[there], return_index=True)
            metres = projection.metres(xy)
            lost = np.unique(of[~np.isfinite(metres).all(axis=1)])
            lines[there] = shapely.set_coordinates(lines[there], np.where(np.isfinite(metres), metres, 0.0))
            lines[there[lost]] = None
        return Geometries(lines, self.in_parts)


def _values(table: Table) -> list[object]:
    """Read the geometry column: stripped text, bytes, or None."""
    if not table.has("geometry"):
        return [None] * len(table)
    frame = table.frame[table.columns["geometry"]]
    if any(isinstance(value, bytes) for value in frame):
        return [value if isinstance(value, bytes) else None for value in frame]
    return list(texts_of(table, "geometry"))


def _lines(table: Table, values: Sequence[object]) -> tuple[NDArray[np.object_], NDArray[np.bool_]]:
    """Convert text or bytes to lines, and return which shapes have parts that do not join."""
    lines = np.full(len(values), None, dtype=object)
    wrong, in_parts = np.zeros(len(values), dtype=np.bool_), np.zeros(len(values), dtype=np.bool_)
    for row, value in enumerate(values):
        if value is None:
            continue
        shape = _shape(value)
        if isinstance(shape, shapely.MultiLineString):
            parts = shape.geoms
            shape = parts[0] if len(parts) == 1 else shapely.line_merge(shape, directed=True)
            in_parts[row] = not isinstance(shape, shapely.LineString) and not shape.is_empty
        elif not isinstance(shape, shapely.LineString):
            wrong[row] = shape is None or not shape.is_empty
            continue
        if not np.isfinite(shapely.get_coordinates(shape)).all():
            wrong[row] = True
        elif isinstance(shape, shapely.LineString) and not shape.is_empty:
            lines[row] = shapely.LineString(shapely.get_coordinates(shape))
    faults = table.faults("geometry", wrong, "a LINESTRING in well-known text, with finite coordinates")
    if faults:
        raise InputError(faults)
    return lines, in_parts


def _shape(value: object) -> BaseGeometry | None:
    """Read one shape; None if the value is not a shape."""
    try:
        if isinstance(value, bytes):
            return shapely.from_wkb(value, on_invalid="raise")
        return shapely.from_wkt(str(value), on_invalid="raise")
    except (shapely.errors.GEOSException, shapely.errors.ShapelyError, TypeError, ValueError):
        return None
