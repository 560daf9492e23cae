"""Rows: those rows of a table that count, their columns known by our names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from simulator.files.counted import counted
from simulator.files.row_words import numbers_in_words
from simulator.files.text_table import numbers_in, read_frame
from simulator.traffic.errors import TrafficError

NOTHING = ("", "na", "nan", "null", "none", "n/a", "\\n", "?")
"""What stands for nothing where a number is due, in lower case."""
SHOWN = 20
LARGEST_WHOLE = 2.0**53


@dataclass(frozen=True)
class FileFormat:
    """How a file of rows is written.

    Attributes
    ----------
    separator
        Between columns; None for what its suffix says.
    header
        Whether the first line names the columns.
    where
        By column, what it must hold for a row to count: any of these.
    """

    separator: str | None = None
    header: bool = True
    where: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a file.

    Attributes
    ----------
    file
        As the user gave it; named in messages.
    frame
        Columns of the file by our names; text, or what a Parquet file holds.
    headings
        Our name of a column to the file's.
    number
        (rows,) int64: each row's number in the file, from 1, header not counted.
    chosen
        (rows,) bool: which rows are as `where` wants them.
    """

    file: str
    frame: pd.DataFrame
    headings: Mapping[str, str]
    number: npt.NDArray[np.int64]
    chosen: npt.NDArray[np.bool_]

    @classmethod
    def from_file(cls, file: str | Path, *, columns: Mapping[str, str | int], format_: FileFormat) -> Self:
        """Read the columns that are mapped.

        Parameters
        ----------
        file
            Its suffix says what it is, as in `read_frame`.
        columns
            Our name of a column to the file's name or number.
        format_
            How it is written, and which rows count.

        Raises
        ------
        TrafficError
            If the file cannot be read, lacks a column, holds no row, or none that counts.
        """
        filters: dict[str | int, tuple[Any, ...]] = {
            column if format_.header else _number(column, str(file)): values for column, values in format_.where.items()
        }
        if not format_.header and (named := [name for name in columns.values() if isinstance(name, str)]):
            words = "columns of a file without header are known by number"
            raise TrafficError(f"{file}: {words}, not by name, got {name!r}" for name in named)
        wanted = [*columns.values(), *filters]
        read, names = read_frame(
            file, separator=format_.separator, header=format_.header, wanted=wanted, error=TrafficError
        )
        headings = {ours: _heading(column, names) for ours, column in columns.items()}
        chosen = np.ones(len(read), dtype=bool)
        for column, values in filters.items():
            chosen &= _holds(read[_heading(column, names)], values)
        if not chosen.any():
            wishes = ", ".join(f"{column} = {' or '.join(map(repr, values))}" for column, values in filters.items())
            raise TrafficError([f"{file}: of its {counted(len(read), 'row')}, none has {wishes}"])
        frame = pd.DataFrame({ours: read[heading] for ours, heading in headings.items()})
        return cls(str(file), frame, headings, np.arange(1, len(read) + 1), chosen)

    def __len__(self) -> int:
        return len(self.frame)

    def has(self, name: str) -> bool:
        """Whether a column of this name is mapped."""
        return name in self.headings

    def kept(self, keep: npt.NDArray[np.bool_]) -> Self:
        """Return these rows alone, (rows,) bool, under the numbers they have in the file."""
        if keep.all():
            return self
        return type(self)(self.file, self.frame[keep], self.headings, self.number[keep], self.chosen[keep])

    def numbers(self, name: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Read a column as numbers.

        Returns
        -------
        tuple
            (rows,) float64, NaN where there is none; and (rows,) bool, where something stands that is no number.
        """
        column = self.frame[name]
        if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
            values = column.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
            wrong = np.isinf(values)
            values[wrong] = np.nan
            return values, wrong
        numbers = numbers_in(column).to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
        odd = ~np.isfinite(numbers)
        wrong = odd.copy()
        missing = column[odd].isna() | column[odd].astype("str").str.strip().str.lower().isin(NOTHING)
        wrong[odd] = ~missing.to_numpy(dtype=bool)
        numbers[odd] = np.nan
        return numbers, wrong

    def texts(self, name: str) -> "pd.Series[str]":
        """Read a column as text, surrounding blanks cut off; NA where nothing stands."""
        column = self.frame[name]
        whole = pd.api.types.is_float_dtype(column) and column.dropna().between(-LARGEST_WHOLE, LARGEST_WHOLE).all()
        if whole and (column.dropna() % 1 == 0).all():
            column = column.astype("Int64")  # names that are numbers, beside nothing
        text: pd.Series[str] = column.astype("string").str.strip()
        return text.mask(text == "")

    def fault(self, name: str, wrong: npt.NDArray[np.bool_], rule: str) -> str:
        """Say in which rows a column breaks a rule, of at least one, with the first value received."""
        where = np.flatnonzero(wrong)
        value = self.frame[name].iloc[int(where[0])]
        said = "nothing" if pd.isna(value) else repr(value)
        return f"{self.file}: {self.words(wrong)}: {name} (column {self.headings[name]!r}) {rule}, got {said}"

    def words(self, chosen: npt.NDArray[np.bool_]) -> str:
        """Name rows by their numbers in the file, the first 20 of many."""
        numbers = self.number[chosen]
        return numbers_in_words(numbers[:SHOWN].tolist(), total=len(numbers))


def _number(column: str, file: str) -> int:
    if column.isascii() and column.isdigit() and 0 < int(column[:9]) < 10**8:
        return int(column)
    raise TrafficError([f"{file}: columns of a file without header are known by number, got {column!r} in where"])


def _heading(column: str | int, names: list[str]) -> str:
    return names[column - 1] if isinstance(column, int) else column


def _holds(column: "pd.Series[Any]", values: tuple[Any, ...]) -> npt.NDArray[np.bool_]:
    """Say which rows hold one of the values: numbers compared as numbers, all else as text."""
    found = np.zeros(len(column), dtype=bool)
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    others = [str(value) if isinstance(value, str) else str(value).lower() for value in values]
    if numbers:
        found |= numbers_in(column).isin(numbers).to_numpy(dtype=bool)
    text = column.astype("string").str.strip()
    if any(isinstance(value, bool) for value in values):
        found |= text.str.lower().isin(others).to_numpy(dtype=bool)
    found |= text.isin([value for value in values if isinstance(value, str)]).to_numpy(dtype=bool)
    return found
