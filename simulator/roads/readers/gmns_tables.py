"""Tables of a GMNS folder: columns of the specification, rows of nodes, and shapes of links."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import shapely

from simulator.files.errors import InputError
from simulator.files.tables import Table, column_names
from simulator.roads.schema import node_ids, node_keys, tupled

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from shapely.geometry.base import BaseGeometry

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
    known = {name.strip().lower(): name for name in reversed(names)}
    columns = {}
    for name in (*required, *optional):
        given = known.get(name, known.get(name[:_DBASE_LENGTH]) if len(name) > _DBASE_LENGTH else None)
        if given is not None or name in required:
            columns[name] = name if given is None else given
    columns |= {name: name for name in names if name.startswith(OWN_PREFIX)}
    return Table.from_file(file, columns=columns, text=columns.keys() - {"geometry"})


def numbers_of(table: Table, name: str, *, rule: str = "a finite number, 0 or more") -> tuple[Any, list[str]]:
    """Read a column of numbers, 0 or more, and report other values.

    Parameters
    ----------
    table
        A table with or without the column.
    name
        Name of the column.
    rule
        What a value must be, for messages.

    Returns
    -------
    numbers : ndarray
        float64, shape (rows,); NaN where the table has no value.
    faults : list of str
        Empty, or one sentence that names the rows with other values.
    """
    numbers = np.full(len(table), np.nan)
    if not table.has(name):
        return numbers, []
    wrong = np.zeros(len(table), dtype=np.bool_)
    for row, value in enumerate(table.values(name)):
        if value is None or (isinstance(value, str) and not value.strip()):
            continue
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        numbers[row] = number
        wrong[row] = not (math.isfinite(number) and number >= 0) or "_" in str(value)
    return numbers, table.faults(name, wrong, rule)


def texts_of(table: Table, name: str) -> list[str | None]:
    """Read a column of text: None where the value is missing or blank, or if there is no such column."""
    if not table.has(name):
        return [None] * len(table)
    return [None if value is None or not value.strip() else value.strip() for value in table.texts(name)]


def own_values(table: Table, reserved: frozenset[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """Read the columns that this project adds.

    Parameters
    ----------
    table
        Any table.
    reserved
        Attributes for which GMNS has columns; they are not read from added columns.

    Returns
    -------
    values : list of dict
        Attribute to value, one dict per row; lists as tuples.
    faults : list of str
        One sentence for each column with values that are not JSON, naming the rows.
    """
    values: list[dict[str, Any]] = [{} for _ in range(len(table))]
    faults: list[str] = []
    for column in table.columns:
        name = column.removeprefix(OWN_PREFIX)
        if not column.startswith(OWN_PREFIX) or not name or name in reserved:
            continue
        wrong = np.zeros(len(table), dtype=np.bool_)
        for row, text in enumerate(texts_of(table, column)):
            if text is None:
                continue
            try:
                values[row][name] = tupled(json.loads(text))
            except (ValueError, RecursionError):
                wrong[row] = True
        faults += table.faults(column, wrong, "JSON")
    return values, faults


def duplicated(values: Sequence[object]) -> NDArray[np.bool_]:
    """Return which values occur more than once, bool, shape (n,); None does not count as a value."""
    column = pd.Series(list(values), dtype="object")
    return np.asarray(column.duplicated(keep=False).to_numpy(dtype=np.bool_) & column.notna().to_numpy(dtype=np.bool_))


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
        ids = node_ids(table.values("node_id"))
        faults = table.faults("node_id", np.array([identifier is None for identifier in ids]), "an identifier")
        faults += table.faults("node_id", duplicated(ids), "an identifier no other row has")
        xy = np.empty((len(table), 2))
        for axis, name in enumerate(("x_coord", "y_coord")):
            xy[:, axis] = [_number(value) for value in table.values(name)]
            faults += table.faults(name, ~np.isfinite(xy[:, axis]), "a finite number")
        own, own_faults = own_values(table, _RESERVED)
        if faults + own_faults:
            raise InputError(faults + own_faults)
        known = [str(identifier) for identifier in ids]
        keys = node_keys(known)
        if all("node" in values for values in own) and len({values["node"] for values in own}) == len(own):
            keys = [values["node"] for values in own]
        zones = node_ids(texts_of(table, "zone_id"))
        numbered = iter(node_keys([zone for zone in zones if zone is not None]))
        data = []
        for zone, values in zip(zones, own, strict=True):
            extra = {name: value for name, value in values.items() if name != "node"}
            data.append(extra if zone is None else {"zone": next(numbered)} | extra)
        return cls(table, {identifier: row for row, identifier in enumerate(known)}, keys, xy, data)


def _number(value: object) -> float:
    """Read a number; NaN if the value is not a number."""
    try:
        return float(value) if "_" not in str(value) else np.nan  # type: ignore[arg-type]  # caught below
    except (TypeError, ValueError, OverflowError):
        return np.nan


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
