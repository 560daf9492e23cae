"""Attributes of a graph as columns of a table, and back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from simulator.roads.errors import RoadsError
from simulator.roads.tupled import tupled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

IN_JSON = "_json"
"""Ends the name of a column of JSON: of an attribute that is not a number, text or a truth throughout."""


def to_columns(rows: Sequence[Mapping[str, Any]], *, reserved: frozenset[str], what: str) -> dict[str, pd.Series[Any]]:
    """Make a column of every attribute that any row has.

    Parameters
    ----------
    rows
        Attributes of each node or link; None, NaN or a missing one becomes nothing.
    reserved
        Names of columns the table has anyway; attributes must not be called so.
    what
        "node" or "link", for messages.

    Returns
    -------
    dict
        Columns by name, each of ``len(rows)`` values: whole numbers, numbers, truths, text, or JSON under a name that
        ends in ``_json``.

    Raises
    ------
    RoadsError
        If attributes are called as a column of the table, or alike but for case, or hold what JSON cannot.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    faults = [
        f"{what}s: attribute {name!r} cannot be written: its name is no text" for name in names if not _text(name)
    ]
    lower = [name.lower() for name in names if _text(name)]
    faults += [
        f"{what}s: attribute {name!r} cannot be written: the table has a column of that name, or another attribute "
        "differs from it in case only"
        for name in names
        if _text(name) and (name.lower() in reserved or lower.count(name.lower()) > 1 or name.lower().endswith(IN_JSON))
    ]
    if faults:
        raise RoadsError(faults)
    columns = {}
    for name in names:
        values = [row.get(name) for row in rows]
        if all(value is None for value in values):
            continue
        dtype = _dtype(values)
        if dtype is None:
            columns[f"{name}{IN_JSON}"] = _column([in_json(value, name, what) for value in values], "string")
        else:
            columns[name] = _column(values, dtype)
    return columns


def from_rows(rows: Sequence[dict[str, Any]], *, file: str) -> list[dict[str, Any]]:
    """Make attributes of rows again: what is None is not there, and JSON is read.

    Parameters
    ----------
    rows
        Column to value.
    file
        Named in messages.

    Returns
    -------
    list of dict
        Attributes of each row; lists of JSON as tuples, so that they can be keys.

    Raises
    ------
    RoadsError
        Naming file and row, if a column that ends in ``_json`` holds none.
    """
    read: list[dict[str, Any]] = []
    for number, row in enumerate(rows, start=1):
        data = {}
        for name, value in row.items():
            if value is None:
                continue
            if not name.endswith(IN_JSON):
                data[name] = value
                continue
            try:
                data[name.removesuffix(IN_JSON)] = tupled(json.loads(value))
            except (TypeError, ValueError, RecursionError):
                raise RoadsError([f"{file}: row {number}: {name} must be JSON, got {str(value)[:60]!r}"]) from None
        read.append(data)
    return read


def plain(value: object) -> object:
    """Turn numpy's scalars into Python's."""
    return value.item() if isinstance(value, np.generic) else value


def _text(name: object) -> bool:
    return isinstance(name, str) and bool(name)


def _dtype(values: Sequence[object]) -> str | None:
    """Choose the type of a column; None where only JSON will do."""
    there: list[Any] = [plain(value) for value in values if value is not None]
    kinds = {type(value) for value in there}
    if kinds == {bool}:
        return "boolean"
    if kinds == {int} and all(abs(value) < 2**63 for value in there):
        return "Int64"
    if kinds == {float} or (
        kinds == {int, float} and all(abs(value) <= 2**53 for value in there if type(value) is int)
    ):
        return "float64"
    if kinds == {str} and all(_writable(value) for value in there):
        return "string"
    return None


def _writable(text: str) -> bool:
    """Say whether text can stand in a file: half a character, or a zero, cannot."""
    try:
        return b"\0" not in text.encode("utf-8")
    except UnicodeEncodeError:
        return False


def _column(values: Sequence[object], dtype: str) -> pd.Series[Any]:
    return pd.Series([plain(value) for value in values], dtype=dtype)


def _plainly(value: object) -> object:
    """Write numpy's scalars within lists; of anything else JSON says that it cannot."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not JSON")


def in_json(value: object, name: str, what: str) -> str | None:
    """Write a value as JSON, None as nothing.

    Raises
    ------
    RoadsError
        If JSON has no such value.
    """
    if value is None:
        return None
    try:
        return json.dumps(plain(value), default=_plainly)
    except (TypeError, ValueError) as error:
        raise RoadsError([f"{what}s: attribute {name!r} cannot be written as JSON, got {value!r}"]) from error
