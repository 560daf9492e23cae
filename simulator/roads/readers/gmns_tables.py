"""Tables of a GMNS folder: columns of the specification, rows of nodes, and shapes of links."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from simulator.files.errors import InputError, both
from simulator.files.tables import Table, column_names, find_columns
from simulator.roads.readers.tables import unique_ids
from simulator.roads.schema import node_ids, node_keys, tupled

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from simulator.files.tables import Table
    from simulator.roads.projection import Projection

SUFFIXES = (".csv", ".csv.gz", ".parquet")
OWN_PREFIX = "crowdveil_"
"""Prefix of the columns that this project adds, which GMNS allows: JSON values for which GMNS has no column."""
_DBASE_LENGTH = 10


def find_table(folder: Path, name: str) -> Path | None:
    """Find the file of a table.

    Parameters
    ----------
    folder
        The folder of the network.
    name
        Name of the table, such as "node".

    Returns
    -------
    Path or None
        ``name.csv``, ``name.csv.gz`` or ``name.parquet``; None if there is none.

    Raises
    ------
    InputError
        If there are several.
    """
    found = [folder / f"{name}{suffix}" for suffix in SUFFIXES if (folder / f"{name}{suffix}").is_file()]
    if len(found) > 1:
        files = ", ".join(path.name for path in found)
        raise InputError([f"{folder}: a GMNS folder must hold one table of {name}, got {files}"])
    return found[0] if found else None


def open_table(file: Path, *, required: Sequence[str], optional: Sequence[str] = ()) -> Table:
    """Read a table whose columns have the names of GMNS.

    Case does not matter, and a name may be cut to 10 characters, as in shapefiles. CSV is read as text, so that no
    identifier loses a digit and every number is read exactly.

    Parameters
    ----------
    file
        The table.
    required, optional
        Columns that it must have and may have.

    Returns
    -------
    Table
        At least one row; the columns of `optional` that the file has, and every column that this project adds.

    Raises
    ------
    InputError
        If it cannot be read, holds no row, or lacks required columns.
    """
    names = column_names(file)
    known = {name: (name, name[:_DBASE_LENGTH]) for name in (*required, *optional)}
    columns = {name: name for name in required} | find_columns(names, known)
    columns |= {name: name for name in names if name.startswith(OWN_PREFIX)}
    return Table.from_file(file, columns=columns, text=columns.keys() - {"geometry"})


def own_values(table: Table, reserved: frozenset[str]) -> list[dict[str, Any]]:
    """Read the columns that this project adds, and note the rows whose values are not JSON.

    Parameters
    ----------
    table
        Any table.
    reserved
        Attributes for which GMNS has columns; they are not read from added columns.

    Returns
    -------
    list of dict
        Attribute to value, one dict per row; lists as tuples.
    """
    values: list[dict[str, Any]] = [{} for _ in range(len(table))]
    for column in table.columns:
        name = column.removeprefix(OWN_PREFIX)
        if not column.startswith(OWN_PREFIX) or not name or name in reserved:
            continue
        wrong = np.zeros(len(table), dtype=np.bool_)
        for row, text in enumerate(table.texts(column)):
            if text is None:
                continue
            try:
                values[row][name] = tupled(json.loads(text))
            except (ValueError, RecursionError):
                wrong[row] = True
        table.refuse(column, wrong, "JSON")
    return values


NODE_COLUMNS = ("node_id", "x_coord", "y_coord")
NODE_OPTIONAL = ("zone_id",)
_RESERVED = frozenset({"x", "y"})


@dataclass(frozen=True, eq=False, repr=False)
class GmnsNodes:
    """Nodes in the order of their rows.

    Parameters
    ----------
    table
        The rows.
    rows
        Row of an identifier, as :func:`~simulator.roads.schema.node_ids` writes it.
    keys
        Key of each node in the graph: whole numbers, if all identifiers are.
    xy
        Coordinates in the units of the file, finite, float64, shape (nodes, 2).
    data
        Attributes of each node other than its position.
    """

    table: Table
    rows: dict[str, int]
    keys: list[Hashable]
    xy: NDArray[np.float64]
    data: list[dict[str, Any]]

    @classmethod
    def from_table(cls, table: Table) -> GmnsNodes:
        """Check a node table.

        Parameters
        ----------
        table
            A table with ``node_id``, ``x_coord``, ``y_coord`` and optionally ``zone_id``.

        Returns
        -------
        GmnsNodes
            Every row.

        Raises
        ------
        InputError
            If an identifier is missing or occurs twice, or a coordinate is not a finite number; it names file, rows
            and value.
        """
        known = unique_ids(table, "node_id")
        xy = np.column_stack([table.checked_numbers(name) for name in ("x_coord", "y_coord")])
        own = own_values(table, _RESERVED)
        table.check()
        keys = node_keys(known)
        if all("node" in values for values in own) and len({values["node"] for values in own}) == len(own):
            keys = [values["node"] for values in own]
        zones = node_ids(table.texts("zone_id"))
        numbered = iter(node_keys([zone for zone in zones if zone is not None]))
        data = []
        for zone, values in zip(zones, own, strict=True):
            extra = {name: value for name, value in values.items() if name != "node"}
            data.append(extra if zone is None else {"zone": next(numbered)} | extra)
        return cls(table, {identifier: row for row, identifier in enumerate(known)}, keys, xy, data)


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
        ids = node_ids(table.texts("geometry_id"))
        file = find_table(folder, "geometry")
        wanted = np.array([own is None and name is not None for own, name in zip(values, ids, strict=True)])
        if not wanted.any() or (file is None and not table.has("geometry_id")):
            return cls(*_lines(table, values))
        if file is None:
            raise InputError([f"{table.file}: links name a geometry_id, and {folder} has no geometry table"])
        shapes = open_table(file, required=("geometry_id", "geometry"))
        rows = {identifier: row for row, identifier in enumerate(unique_ids(shapes, "geometry_id"))}
        at = np.array([rows.get(identifier or "", -1) for identifier in ids], dtype=np.int64)
        table.refuse("geometry_id", wanted & (at < 0), f"one of {file}")
        both(shapes.check, table.check)
        lines, in_parts = _lines(table, values)
        shared, shared_in_parts = _lines(shapes, _values(shapes))
        return cls(np.where(wanted, shared[at], lines), np.where(wanted, shared_in_parts[at], in_parts))

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
        present = np.flatnonzero([line is not None for line in lines])
        if len(present):
            xy, of = shapely.get_coordinates(lines[present], return_index=True)
            metres = projection.metres(xy)
            lost = np.unique(of[~np.isfinite(metres).all(axis=1)])
            lines[present] = shapely.set_coordinates(lines[present], np.where(np.isfinite(metres), metres, 0.0))
            lines[present[lost]] = None
        return Geometries(lines, self.in_parts)


def _values(table: Table) -> list[object]:
    """Read the geometry column: stripped text, bytes, or None."""
    if not table.has("geometry"):
        return [None] * len(table)
    frame = table.frame[table.columns["geometry"]]
    if any(isinstance(value, bytes) for value in frame):
        return [value if isinstance(value, bytes) else None for value in frame]
    return list(table.texts("geometry"))


def _lines(table: Table, values: Sequence[object]) -> tuple[NDArray[np.object_], NDArray[np.bool_]]:
    """Convert text or bytes to lines, and return which shapes have parts that do not join."""
    read = shapely.from_wkb if any(isinstance(value, bytes) for value in values) else shapely.from_wkt
    shapes = read(np.array(values, dtype=object), on_invalid="ignore")
    several = shapely.get_type_id(shapes) == shapely.GeometryType.MULTILINESTRING
    shapes[several] = [
        shape.geoms[0] if len(shape.geoms) == 1 else shapely.line_merge(shape, directed=True)
        for shape in shapes[several]
    ]
    empty, is_line = shapely.is_empty(shapes), shapely.get_type_id(shapes) == shapely.GeometryType.LINESTRING
    given = np.array([value is not None for value in values])
    wrong = given & ~several & ~is_line & ~empty
    xy, of = shapely.get_coordinates(shapes, return_index=True)
    wrong[of[~np.isfinite(xy).all(axis=1)]] = True
    table.refuse("geometry", wrong, "a LINESTRING in well-known text, with finite coordinates")
    table.check()
    lines = shapely.force_2d(shapes)
    lines[~is_line | empty] = None
    return lines, several & ~is_line & ~empty
