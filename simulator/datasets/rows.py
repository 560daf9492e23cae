"""Strict reading of the rows of a text file: every fault names file, row and rule."""

import csv
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from simulator.files.compressed_io import TABLE_TIMES, opened
from simulator.files.errors import InputError
from simulator.files.messages import rows_in_words
from simulator.files.text_table import numbers_in

_UNREADABLE = (ValueError, pd.errors.ParserWarning)
_SHOWN = 80


@dataclass(frozen=True, eq=False, repr=False)
class DatasetRows:
    """The rows of a file, with every field as text.

    Parameters
    ----------
    file
        Path, for messages.
    frame
        Text in every column, None where the file has no value. Rows are numbered from 1, without the header.
    """

    file: Path
    frame: pd.DataFrame

    @classmethod
    def from_file(
        cls,
        file: Path,
        *,
        separator: str = ",",
        names: Sequence[str] | None = None,
        needed: Sequence[str] = (),
        quoted: bool = True,
        nothing: Sequence[str] = ("",),
    ) -> "DatasetRows":
        """Read a text file, plain or compressed; a byte order mark is skipped.

        Parameters
        ----------
        file
            The file.
        separator
            Character between fields.
        names
            Names of the columns, for a file without a header.
        needed
            Columns that a header must name.
        quoted
            Whether quotation marks enclose fields; if not, they are ordinary characters.
        nothing
            Texts that mean a missing value.

        Raises
        ------
        InputError
            If the file cannot be read, has no rows, has a row with more fields than columns, or lacks a column.
        """
        how: dict[str, Any] = {"header": 0} if names is None else {"header": None, "names": list(names)}
        try:
            with opened(file, lines=True, times=TABLE_TIMES) as stream, warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.ParserWarning)
                frame = pd.read_csv(
                    stream,
                    sep=separator,
                    dtype="str",
                    index_col=False,
                    encoding="utf-8-sig",
                    quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
                    keep_default_na=False,
                    na_values=list(nothing),
                    skip_blank_lines=False,
                    **how,
                )
        except pd.errors.EmptyDataError:
            raise InputError([f"{file}: it is empty"]) from None
        except InputError:
            raise
        except _UNREADABLE as error:
            said = " ".join(str(error).split())
            raise InputError([f"{file}: cannot be read as a table: {said}"]) from None
        frame = frame.astype(object).where(frame.notna(), None)
        if absent := [column for column in needed if column not in frame.columns]:
            known = ", ".join(repr(str(column))[:_SHOWN] for column in list(frame.columns)[:30])
            raise InputError(f"{file}: no column {column!r}; its columns are {known}" for column in absent)
        if frame.empty:
            raise InputError([f"{file}: it holds no rows"])
        return cls(file, frame)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.frame)

    def numbers(
        self,
        column: str,
        *,
        at_least: float = -np.inf,
        at_most: float = np.inf,
        whole: bool = False,
        empty: bool = False,
    ) -> npt.NDArray[np.float64]:
        """Read a column of numbers.

        Parameters
        ----------
        column
            Name of the column.
        at_least, at_most
            Bounds, inclusive.
        whole
            Whether the numbers must be whole.
        empty
            Whether missing values are allowed; they become NaN.

        Returns
        -------
        ndarray
            float64, shape (rows,).

        Raises
        ------
        InputError
            If a value is not a number, is not finite, or is out of bounds.
        """
        numbers = numbers_in(self.frame[column]).to_numpy(dtype=np.float64, na_value=np.nan)
        wrong = ~np.isfinite(numbers)
        if empty:
            wrong &= self.frame[column].notna().to_numpy()
        bounds = f", {at_least:g} to {at_most:g}" if at_most < np.inf else f", {at_least:g} or more"
        self.refuse(column, wrong, f"a {'whole' if whole else 'finite'} number{bounds if at_least > -np.inf else ''}")
        with np.errstate(invalid="ignore"):
            outside = (numbers < at_least) | (numbers > at_most) | (whole & (numbers % 1 != 0) & ~np.isnan(numbers))
        self.refuse(column, outside, f"a {'whole' if whole else 'finite'} number{bounds}")
        return numbers

    def integers(self, column: str, *, at_least: int = 0) -> npt.NDArray[np.int64]:
        """Read a column of whole numbers, int64, below 2**53; see `numbers`."""
        return self.numbers(column, at_least=at_least, at_most=2**53, whole=True).astype(np.int64)

    def places(self, lon: str, lat: str, *, empty: bool = False) -> dict[str, npt.NDArray[np.float64]]:
        """Read longitudes and latitudes, degrees, as columns ``lon`` and ``lat``."""
        return {
            "lon": self.numbers(lon, at_least=-180, at_most=180, empty=empty),
            "lat": self.numbers(lat, at_least=-90, at_most=90, empty=empty),
        }

    def texts(self, column: str, *, empty: bool = False) -> "pd.Series[Any]":
        """Read a column of texts; if `empty`, missing values are allowed and become None."""
        if not empty:
            self.refuse(column, self.frame[column].isna().to_numpy(), "text")
        return self.frame[column]

    def times(self, column: str, *, form: str, zone: str | None = None) -> "pd.Series[Any]":
        """Read a column of times.

        Parameters
        ----------
        column
            Name of the column.
        form
            Format as for `pandas.to_datetime`, or "ISO8601".
        zone
            "UTC" if the times have a zone; they are converted to UTC.

        Raises
        ------
        InputError
            If a value does not have that format.
        """
        times = pd.to_datetime(self.frame[column], format=form, errors="coerce", utc=zone is not None)
        written = "a time, as 2010-10-12T00:21:28Z" if form == "ISO8601" else f"a time in the form {form}"
        self.refuse(column, times.isna().to_numpy(), written)
        return times

    def refuse(self, column: str, wrong: npt.NDArray[np.bool_], rule: str) -> None:
        """Raise an error if any row of a column breaks a rule.

        Raises
        ------
        InputError
            If any row does; the message names the first such rows and the first value.
        """
        if wrong.any():
            value = self.frame[column].iloc[int(np.flatnonzero(wrong)[0])]
            got = "nothing" if value is None else repr(str(value)[:_SHOWN])
            raise InputError([f"{self.file}: {rows_in_words(wrong)}: {column} must be {rule}, got {got}"])
