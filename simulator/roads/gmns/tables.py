"""Tables of a GMNS folder, under the specification's column names."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from simulator.files.errors import InputError
from simulator.files.tables import Table, column_names
from simulator.roads.node_ids import tupled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

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
