"""A table file, read completely, whose columns are accessed by the names of this project."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from simulator.files.compressed_io import TABLE_TIMES, opened
from simulator.files.messages import rows_in_words
from simulator.files.text_table import check_parquet, numbers_in
from simulator.roads.errors import RoadsError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

_UNREADABLE = (OSError, ValueError, pd.errors.ParserWarning, pa.ArrowException)


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """A table file and the names of its columns.

    Rows are numbered from 1, the header of a CSV file not counted.

    Parameters
    ----------
    file
        Path as the user gave it; used in messages.
    frame
        The rows, under the file's own column names.
    columns
        The project's name of each mapped column to the file's name.
    """

    file: str
    frame: pd.DataFrame
    columns: Mapping[str, str]

    @classmethod
    def from_file(cls, file: str | Path, *, columns: Mapping[str, str], ids: Sequence[str]) -> Table:
        """Read a CSV file, plain or gzipped, or a Parquet file.

        Parameters
        ----------
        file
            Its suffix gives its format: ``.csv``, ``.csv.gz`` or ``.parquet``.
        columns
            The project's name of each column to the file's name.
        ids
            The project's names of the columns whose values are identifiers; they are read from CSV as text, so that
            none loses a digit.

        Returns
        -------
        Table
            A table with at least one row.

        Raises
        ------
        RoadsError
            If the file cannot be read, holds no row, or lacks mapped columns (all of these are named).
        """
        frame = _read(Path(file), text=[columns[name] for name in ids])
        absent = {name: column for name, column in columns.items() if column not in frame.columns}
        if absent:
            known = ", ".join(map(repr, frame.columns))
            hint = "; is it separated by commas?" if len(frame.columns) == 1 else ""
            raise RoadsError(
                f"{file}: no column {column!r} for {name}; its columns are {known}{hint}"
                for name, column in absent.items()
            )
        # If two columns have the same name, pandas renames the second to "name.1".
        twice = {column: name for name, column in columns.items() if f"{column}.1" in frame.columns}
        if twice:
            raise RoadsError(
                f"{file}: two columns are called {column!r}: which of them is {name}?" for column, name in twice.items()
            )
        if frame.empty:
            raise RoadsError([f"{file}: it holds no rows"])
        return cls(str(file), frame, dict(columns))

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.frame)

    def has(self, name: str) -> bool:
        """Return whether a column of this name is mapped."""
        return name in self.columns

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Read a column as numbers.

        Parameters
        ----------
        name
            The project's name of a mapped column.

        Returns
        -------
        ndarray
            float64, shape (rows,); NaN where there is no number.
        """
        column = self.frame[self.columns[name]]
        if column.dtype == "object":
            column = pd.Series(self.values(name), dtype="object")
        numbers = numbers_in(column)
        return numbers.to_numpy(dtype=np.float64, na_value=np.nan)

    def texts(self, name: str) -> list[str | None]:
        """Read a column as text.

        Parameters
        ----------
        name
            The project's name of a mapped column.

        Returns
        -------
        list of str or None
            One item per row, None where the file has no value.
        """
        return [None if value is None else str(value) for value in self.values(name)]

    def values(self, name: str) -> list[object]:
        """Read a column without conversion.

        Parameters
        ----------
        name
            The project's name of a mapped column.

        Returns
        -------
        list
            One scalar per row: None where the file has no value, text for a value that is not a scalar (a list of
            lanes).
        """
        return [_scalar(value) for value in self.frame[self.columns[name]].to_list()]

    def faults(self, name: str, wrong: NDArray[np.bool_], rule: str) -> list[str]:
        """Return a fault that names the rows in which a column breaks a rule.

        Parameters
        ----------
        name
            The project's name of a mapped column.
        wrong
            The rows that break the rule, bool, shape (rows,).
        rule
            What values of the column must be.

        Returns
        -------
        list of str
            Empty, or one sentence that names file, rows, rule and the first value received.
        """
        if not wrong.any():
            return []
        column = self.columns[name]
        first = self.texts(name)[int(np.flatnonzero(wrong)[0])]
        value = "NaN or nothing" if first is None else repr(first)
        return [f"{self.file}: {rows_in_words(wrong)}: {name} (column {column!r}) must be {rule}, got {value}"]


def column_names(file: Path) -> list[str]:
    """Return the file's own names of a table's columns.

    Parameters
    ----------
    file
        As for :meth:`Table.from_file`.

    Returns
    -------
    list of str
        Empty if the file cannot be read; reading it completely then raises the error.
    """
    try:
        if file.name.lower().endswith(".parquet"):
            return [str(name) for name in pq.read_schema(file).names]
        with opened(file, error=RoadsError, lines=True) as stream:
            return [str(name) for name in pd.read_csv(stream, nrows=0, index_col=False).columns]
    except _UNREADABLE:
        return []


def _read(file: Path, *, text: Sequence[str]) -> pd.DataFrame:
    """Read a file by its suffix; every error of the reader becomes a `RoadsError` with one sentence."""
    name = file.name.lower()
    try:
        if name.endswith(".parquet"):
            check_parquet(pq.ParquetFile(file), file, error=RoadsError)
            frame = pd.read_parquet(file)
            return frame if frame.index.names == [None] else frame.reset_index()
        if name.endswith((".csv", ".csv.gz")):
            with opened(file, error=RoadsError, lines=True, times=TABLE_TIMES) as stream, warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.ParserWarning)
                return pd.read_csv(stream, dtype=dict.fromkeys(text, "str"), index_col=False, low_memory=False)
    except FileNotFoundError:
        raise RoadsError([f"{file}: no such file"]) from None
    except RoadsError:
        raise
    except pd.errors.EmptyDataError:
        raise RoadsError([f"{file}: it is empty"]) from None
    except pd.errors.ParserWarning:
        raise RoadsError([f"{file}: cannot be read as CSV: its rows hold more values than its header names"]) from None
    except _UNREADABLE as error:
        kind = "Parquet" if name.endswith(".parquet") else "CSV"
        raise RoadsError([f"{file}: cannot be read as {kind}: {str(error).strip()}"]) from error
    raise RoadsError([f"{file}: the name must end in .csv, .csv.gz or .parquet"])


def _scalar(value: Any) -> object:
    """Return a scalar as it is, None for a missing one, and any other value as text."""
    if not pd.api.types.is_scalar(value):
        return str(value)
    return None if pd.isna(value) else value
