"""Rows of a table of data owners: selection, and number of owners per row."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from simulator.arrays import IntArray, Mask
from simulator.files.errors import InputError
from simulator.files.messages import counted
from simulator.files.tables import FileFormat, Table, numbers_in
from simulator.traffic.trips import too_many

NUMBERS = ("lon", "lat", "x", "y", "count", "time")
_WHOLE = 1e-9


def read_rows(
    file: str | Path, *, columns: Mapping[str, str | int], format_: FileFormat, numbers: Collection[str] = NUMBERS
) -> tuple[Table, Mask]:
    """Read the mapped columns of a file.

    Parameters
    ----------
    file
        File to read; its suffix determines the format, as in `Table.from_file`.
    columns
        Map from our name of a column to the file's name or number.
    format_
        Format of the file, and which rows are used.
    numbers
        Our names of the columns that hold numbers or times; all others identify something.

    Returns
    -------
    tuple
        The mapped columns: text, or the types of a Parquet file (`where` followed by a column's name is a filter); and
        (rows,) bool: rows that satisfy `where`, at least one.

    Raises
    ------
    InputError
        If the file cannot be read, lacks a column, or holds no row to use.
    """
    if not format_.header and (named := [name for name in columns.values() if isinstance(name, str)]):
        words = "columns of a file without header are known by number"
        raise InputError(f"{file}: {words}, not by name, got {name!r}" for name in named)
    filters = {f"where {column}": column if format_.header else _number(column, str(file)) for column in format_.where}
    wanted = {**columns, **filters}
    names = wanted.keys() - set(numbers)
    header = 0 if format_.header else None
    table = Table.from_file(file, columns=wanted, text=tuple(wanted), identifiers=names, format_=format_, header=header)
    chosen = np.ones(len(table), dtype=bool)
    for name, values in zip(filters, format_.where.values(), strict=True):
        chosen &= _holds(table.column(name), values)
    if not chosen.any():
        conditions = ", ".join(f"{column} = {' or '.join(map(repr, to))}" for column, to in format_.where.items())
        raise InputError([f"{file}: of its {counted(len(table), 'row')}, none has {conditions}"])
    return table, chosen


def _number(column: str, file: str) -> int:
    if column.isascii() and column.isdigit() and 0 < int(column[:9]) < 10**8:
        return int(column)
    raise InputError([f"{file}: columns of a file without header are known by number, got {column!r} in where"])


def _holds(column: "pd.Series[Any]", values: tuple[Any, ...]) -> Mask:
    """Return which rows hold one of the values: numbers are compared as numbers, all other values as text."""
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    truths = [str(value).lower() for value in values if isinstance(value, bool)]
    text = column.astype("string").str.strip()
    found = text.isin([value for value in values if isinstance(value, str)]) | text.str.lower().isin(truths)
    if numbers:
        found |= numbers_in(column).isin(numbers)
    return found.to_numpy(dtype=bool)


def without_duplicates(table: Table, rows: pd.DataFrame, *, rule: str | None) -> tuple[Mask, list[str]]:
    """Select among rows with the same place, period, time and owner.

    Parameters
    ----------
    table
        Rows to use.
    rows
        The `site`, `arrive_s` (NaN if the file has no times) and `count` (1 if it has none) of each.
    rule
        "refuse", "first", "last", "greatest" or "sum"; None for "refuse" if rows have counts, else "sum".

    Returns
    -------
    tuple
        (rows,) bool: rows to keep; and notes.

    Raises
    ------
    InputError
        If there are duplicates and the rule refuses them.
    """
    everything = np.ones(len(table), dtype=bool)
    distinct_by = [name for name in ("period", "time", "owner") if table.has(name)]
    if not table.has("count") and not distinct_by:
        return everything, []  # only the owners' places are known
    frame = pd.DataFrame({"site": rows["site"].array})
    for name in distinct_by:
        frame[name] = rows["arrive_s"].array if name == "time" else table.categories(name)
    repeated = frame.duplicated(keep="first").to_numpy()
    if not repeated.any():
        return everything, []
    alike = " and ".join(["place", *distinct_by])
    rule = rule or ("refuse" if table.has("count") else "sum")
    number = f"{counted(int(repeated.sum()), 'row')} of the same {alike} as an earlier one"
    if rule == "refuse":
        missing = "" if distinct_by else "; name the column that distinguishes rows of a place as columns.period"
        request = f"{table.file}: {number}: {table.rows_in_words(repeated)}; state how to treat them: duplicates = "
        raise InputError([f'{request}"first", "last", "greatest" or "sum"{missing}'])
    if rule == "sum":
        return everything, [f"{table.file}: {number}: each counts"]
    order = np.argsort(-rows["count"].to_numpy(), kind="stable") if rule == "greatest" else np.arange(len(table))
    keep = np.empty(len(table), dtype=bool)
    keep[order] = ~frame.iloc[order].duplicated(keep="last" if rule == "last" else "first").to_numpy()
    return keep, [f"{table.file}: {number}: the {rule} of each counts"]


def owners_of(table: Table, rows: pd.DataFrame, *, fractions: str) -> tuple[IntArray, list[str]]:
    """Return the number of owners each row stands for.

    Parameters
    ----------
    table, rows
        Rows, as for `without_duplicates`.
    fractions
        "refuse", or "nearest": the total of each place and time is rounded, halves to even, and the last row takes the
        remainder.

    Returns
    -------
    tuple
        (rows,) int64; and notes.

    Raises
    ------
    InputError
        If counts are not whole and `fractions` is "refuse", or there are too many owners.
    """
    count = rows["count"].to_numpy()
    if fault := too_many(float(count.sum())):
        hint = "choose rows with where or window, or take a part of them"
        raise InputError([f"{table.file}: a vehicle is a data owner: {fault}; {hint}"])
    broken = np.abs(count - np.rint(count)) > _WHOLE
    if not broken.any():
        return np.rint(count).astype(np.int64), []
    if fractions == "refuse":
        raise InputError(table.faults("count", broken, 'whole; or take the nearest, fractions = "nearest"'))
    keys = ["arrive_s", "site"] if table.has("time") else ["site"]
    # Rounding the running total of each place gives whole numbers that add up to the rounded total.
    running = rows.groupby(keys)["count"].cumsum().round(6).round()
    whole = running.groupby([rows[key] for key in keys]).diff().fillna(running).to_numpy().astype(np.int64)
    counts = counted(int(broken.sum()), "count is", "counts are")
    return whole, [f"{table.file}: {counts} not whole: the total of each place is rounded"]
