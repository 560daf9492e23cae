"""Reader of tables: delimited text and Parquet, plain or compressed, with the columns mapped to our names.

The separator of columns, and decimal commas, are recognized here for every table of text; see `TextFormat`.

A caller reads a table, reads its columns with the rules that their values must satisfy, and then calls `Table.check`,
which raises all faults found so far at once, each with file, rows, column, rule and first value.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from simulator.files.compressed_io import BUFFER_BYTES, TABLE_TIMES, opened
from simulator.files.errors import InputError
from simulator.files.messages import SHOWN_ROWS, numbers_in_words
from simulator.files.resources import shortage

if TYPE_CHECKING:
    from io import BufferedReader

    from numpy.typing import ArrayLike, NDArray

MOST_COLUMNS = 100_000
LONGEST_NUMBER = 400
"""Number of digits from which every number is infinite as a double."""
MOST_EXACT = 2**53
"""Doubles hold every whole number up to this one."""
NAMELESS = "Unnamed: "
"""How pandas names a column without a name, such as one created by a comma at the end of each line."""
_DESCRIPTIVE = re.compile(
    r"id$|(^|[\W_])(idx|index|fid|key|lon|lng|lat|longitude|latitude|x|y)([\W_]|$)", re.IGNORECASE
)
"""Names of columns that identify or locate a row and count nothing."""
_VALUE, _OBJECT = 32, 120
"""Bytes of memory per value of a Parquet file, including intermediate copies: of a number, and of text or a list."""
_SHOWN_COLUMNS = 20
_SAMPLE_LINES, _SAMPLE_ROWS = 5, 1000
NOTHING = ("", "na", "nan", "null", "none", "n/a", "#n/a", "#na", "<na>", "-nan", "\\n", "?", "-")
"""Texts that mark a missing number, in lower case; in a column of identifiers they are names like any other."""
_NOTHING_WRITTEN = {written for text in NOTHING for written in (text, text.upper(), text.title(), "NaN", "-NaN")}
_COMMA_NUMBER = r"[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+)(?:,\d+)?(?:[eE][+-]?\d+)?"
"""Pattern of numbers in a table with decimal commas, whose points group digits."""
_COMMA_OR_GROUP = r"[+-]?[1-9]\d{0,2},\d{3}"
"""Pattern of numbers whose comma may be decimal, or group thousands."""
_UNREADABLE: tuple[type[Exception], ...] = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError, pa.ArrowException),
)
"""Errors of pandas and pyarrow for a file that cannot be read; they raise almost any where its metadata are damaged."""


@dataclass(frozen=True)
class TextFormat:
    """How a table of text is written.

    Attributes
    ----------
    separator
        Character between columns; None to recognize tab, semicolon, bar or comma by the first lines.
    decimal
        "." or ","; None to recognize decimal commas: numbers with one comma, in columns that hold numbers. A file is
        refused if its commas may also group thousands, as in 1,234.
    """

    separator: str | None = None
    decimal: str | None = None


RECOGNIZED = TextFormat()


@dataclass(frozen=True)
class FileFormat(TextFormat):
    """How a table is written, and which of its rows are used.

    Attributes
    ----------
    header
        Whether the first line names the columns.
    where
        Map from a column to its permitted values: rows with other values are not used.
    """

    header: bool = True
    where: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Rows of a file whose columns are accessed by our names.

    Attributes
    ----------
    file
        Path as the user gave it; used in messages.
    frame
        The mapped columns, under the file's own names.
    columns
        Map from our name of each column to the file's.
    names
        Names of all columns of the file.
    number
        Number of each row in the file, from 1, a header not counted; int64, shape (rows,).
    unit
        What `number` counts: "row" or "line".
    renamed
        Whether messages name the file's column beside ours.
    unread
        Names of the columns of the file that are not mapped and hold numbers only.
    broken
        Faults of the columns read so far, which `check` raises.
    """

    file: str
    frame: pd.DataFrame
    columns: Mapping[str, str]
    names: Sequence[str]
    number: NDArray[np.int64]
    unit: str = "row"
    renamed: bool = True
    unread: Sequence[str] = ()
    broken: list[str] = field(default_factory=list)

    @classmethod
    def from_file(
        cls,
        file: str | Path,
        *,
        columns: Mapping[str, str | int] | Sequence[str] | None = None,
        text: Collection[str] | None = None,
        identifiers: Collection[str] = (),
        format_: TextFormat = RECOGNIZED,
        **layout: Any,
    ) -> Table:
        """Read a file.

        Parameters
        ----------
        file
            The file. Its suffix gives its format: ``.parquet``, and delimited text for any other. Text may be
            compressed by gzip, bzip2 or xz, and may begin with a byte order mark.
        columns
            Map from our name of each column to the file's name, or to its number from 1. Or the names of columns that
            are accessed by their own names; if None, all columns of the file.
        text
            Our names of the columns of a text file that are read as text, such as identifiers, so that none loses a
            digit; in all others, numbers and truth values are recognized. None if all columns are read as text.
            In a Parquet file, binary values of the columns named here become text.
        identifiers
            Our names of further columns that are read as text, in which only an empty field is missing: a node may be
            called NA.
        format_
            Separator and decimal sign of a text file.
        **layout
            How the lines of a text file are arranged: `header`, `names`, `skiprows` and `skip_blank_lines` of
            `pandas.read_csv`. Columns of a file without header or names are named "1", "2", …

        Returns
        -------
        Table
            At least one row.

        Raises
        ------
        InputError
            If the file cannot be read, needs more memory than is available, holds no row, has a row with more values
            than columns, or lacks mapped columns (all of these are named).
        """
        path = Path(file)
        renamed = isinstance(columns, Mapping)
        if columns is not None and not isinstance(columns, Mapping):
            columns = {name: name for name in columns}
        kind = "Parquet" if path.suffix.lower() == ".parquet" else "a table"
        text = None if text is None and not identifiers else {*(text or ()), *identifiers}
        try:
            if kind == "Parquet":
                frame, names, mapped, unread = _read_parquet(path, columns)
                for name in mapped if text is None else text:
                    if frame[mapped[name]].dtype == "object":
                        frame[mapped[name]] = frame[mapped[name]].map(_decoded, na_action="ignore")
            else:
                frame, names, mapped, unread = _read_text(path, columns, text, identifiers, format_, layout)
        except FileNotFoundError:
            raise InputError([f"{file}: no such file"]) from None
        except InputError:
            raise
        except pd.errors.EmptyDataError:
            raise InputError([f"{file}: it is empty"]) from None
        except _UNREADABLE as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise InputError([f"{file}: cannot be read as {kind}: {reason}"]) from None
        if frame.empty:
            raise InputError([f"{file}: it holds no rows"])
        number = np.arange(1, len(frame) + 1, dtype=np.int64)
        return cls(str(file), frame, mapped, names, number, renamed=renamed, unread=unread)

    @classmethod
    def from_frame(
        cls, frame: pd.DataFrame, *, title: str, number: ArrayLike | None = None, unit: str = "row"
    ) -> Table:
        """Return the rows of a data frame, whose index is not used; `number` and `unit` are as in `Table`."""
        names = [str(name) for name in frame.columns]
        numbers = np.arange(1, len(frame) + 1) if number is None else np.asarray(number, dtype=np.int64)
        frame = frame.set_axis(pd.Index(names, dtype="object"), axis=1).reset_index(drop=True)
        return cls(title, frame, dict(zip(names, names, strict=True)), names, numbers, unit, renamed=False)

    def __len__(self) -> int:
        return len(self.frame)

    def has(self, name: str) -> bool:
        """Return whether a column of this name is mapped."""
        return name in self.columns

    def kept(self, keep: NDArray[np.bool_]) -> Table:
        """Return the rows selected by `keep`, bool, shape (rows,); they keep their numbers in the file."""
        return self if keep.all() else replace(self, frame=self.frame[keep], number=self.number[keep])

    def column(self, name: str) -> pd.Series[Any]:
        """Return a mapped column as it was read, shape (rows,)."""
        return self.frame[self.columns[name]]

    def texts(self, name: str) -> list[str | None]:
        """Return a column as text without surrounding blanks, one item per row; None where it is missing or blank.

        If the column is not mapped, all are None.
        """
        if not self.has(name):
            return [None] * len(self)
        code, texts = _distinct_texts(self.column(name))
        last_none = [*texts, None]
        return [last_none[place] for place in code.tolist()]

    def identifiers(self, name: str) -> list[str]:
        """Return a column of identifiers, one item per row, as `categories` does; "" where there is none.

        If the column is not mapped, all are "".
        """
        return _one_by_one(self.categories(name)) if self.has(name) else [""] * len(self)

    def categories(self, name: str) -> pd.Categorical:
        """Return a mapped column of identifiers by the function `identifiers`.

        Raises
        ------
        InputError
            If a whole number is written both with and without decimals beside other identifiers, as 1, 1.0 and A.
        """
        found = identifiers(self.column(name))
        texts = found.categories
        whole = {text.partition(".")[0] for text in texts if "." in text and _WHOLE_FLOAT.fullmatch(text)}
        if twice := whole & {*texts}:
            both_ways = np.isin(texts.map(lambda text: text.partition(".")[0]), [*twice])[found.codes]
            rule = "written in one way, with decimals or without, where others are no whole numbers"
            raise InputError(self.faults(name, both_ways & (found.codes >= 0), rule))
        return found

    def unique_identifiers(self, name: str) -> list[str]:
        """Return a mapped column of `identifiers`, and note rows without one or with another row's identifier."""
        names = self.identifiers(name)
        column = pd.Series(names, dtype="object")
        missing = (column == "").to_numpy(dtype=np.bool_)
        self.refuse(name, missing, "an identifier")
        self.refuse(name, column.duplicated(keep=False).to_numpy() & ~missing, "an identifier no other row has")
        return names

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column as numbers, which may be infinite.

        Returns
        -------
        ndarray
            float64, shape (rows,); NaN where there is no number, and everywhere if the column is not mapped.
        """
        if not self.has(name) or self.column(name).dtype.kind in "bmM":  # truth values, durations and dates
            return np.full(len(self), np.nan)
        return numbers_in(self.column(name)).to_numpy(dtype=np.float64, na_value=np.nan)

    def optional_numbers(self, name: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return a mapped column as numbers, NaN where there is none, and which values are no finite numbers."""
        numbers = self.numbers(name)
        wrong = ~np.isfinite(numbers)
        return np.where(wrong, np.nan, numbers), self.stated(name, wrong)

    def stated(self, name: str, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which of some rows, both bool, shape (rows,), hold a value in a mapped column, be it a wrong one."""
        given = self.column(name)[rows]
        missing = given.isna() | given.astype("str").str.strip().str.lower().isin(NOTHING)
        stated = rows.copy()
        stated[rows] = ~missing.to_numpy(dtype=np.bool_)
        return stated

    def checked_numbers(
        self,
        name: str,
        *,
        at_least: float = -np.inf,
        at_most: float = np.inf,
        whole: bool = False,
        optional: bool = False,
    ) -> NDArray[np.float64]:
        """Return a column as numbers, and note the rows in which it breaks a rule.

        Parameters
        ----------
        name
            Our name of the column.
        at_least, at_most
            Bounds, inclusive.
        whole
            Whether the numbers must be whole.
        optional
            Whether values may be missing.

        Returns
        -------
        ndarray
            float64, shape (rows,); NaN where a value is missing or breaks the rule.
        """
        if optional and not self.has(name):
            return self.numbers(name)
        numbers, wrong = self.optional_numbers(name)
        wrong |= np.isnan(numbers) & (not optional)
        kind = "a whole number" if whole else "a finite number"
        bounds = f", {at_least:g} to {at_most:g}" if at_most < MOST_EXACT else f", {at_least:g} or more"
        bounds = bounds if at_least > -np.inf else ""
        wrong |= (numbers < at_least) | (numbers > at_most) | (whole & (numbers % 1 != 0) & ~np.isnan(numbers))
        self.refuse(name, wrong, kind + bounds)
        return np.where(wrong, np.nan, numbers)

    def integers(self, name: str, *, at_least: int = 0, at_most: int = MOST_EXACT) -> NDArray[np.int64]:
        """Return a column as whole numbers, int64, shape (rows,), and note rows with any other value, for which 0."""
        numbers = self.checked_numbers(name, at_least=at_least, at_most=at_most, whole=True)
        return np.nan_to_num(numbers).astype(np.int64)

    def faults(self, name: str, wrong: NDArray[np.bool_], rule: str) -> list[str]:
        """Return a fault that names the rows in which a column breaks a rule.

        Parameters
        ----------
        name
            Our name of a mapped column.
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
        value = self.column(name).iloc[int(np.flatnonzero(wrong)[0])]
        missing = pd.api.types.is_scalar(value) and pd.isna(value)
        received = "NaN or nothing" if missing else repr(str(value)[:60])
        column = f" (column {self.columns[name]!r})" if self.renamed else ""
        return [f"{self.file}: {self.rows_in_words(wrong)}: {name}{column} must be {rule}, got {received}"]

    def refuse(self, name: str, wrong: NDArray[np.bool_], rule: str) -> None:
        """Note the fault of the rows in which a column breaks a rule, if there are any; see `faults`."""
        self.broken.extend(self.faults(name, wrong, rule))

    def refuse_unread(self, ignored: Collection[str], *, remedy: str) -> None:
        """Note a fault if columns of numbers are neither read nor ignored, except identifiers and coordinates.

        Parameters
        ----------
        ignored
            Names of columns, as in the file, that need not be read.
        remedy
            What to do about them, with ``{0}`` for the list of their names.
        """
        wrong = [name for name in self.unread if name not in ignored and not _DESCRIPTIVE.search(name)]
        wrong = [name for name in wrong if not name.startswith(NAMELESS)]
        if wrong:
            named = f"column {wrong[0]!r} holds" if len(wrong) == 1 else f"columns {', '.join(map(repr, wrong))} hold"
            self.broken.append(f"{self.file}: {named} numbers that are not read: {remedy.format(json.dumps(wrong))}")

    def check(self) -> None:
        """Raise the faults noted so far.

        Raises
        ------
        InputError
            If there are any.
        """
        if self.broken:
            raise InputError(self.broken)

    def rows_in_words(self, chosen: NDArray[np.bool_]) -> str:
        """Return rows, at least one, by their numbers in the file, with at most the first 20."""
        numbers = np.unique(self.number[chosen])  # several rows may come from one line, or one path
        return numbers_in_words(numbers[:SHOWN_ROWS].tolist(), total=len(numbers), unit=self.unit)


def column_names(file: Path, *, format_: TextFormat = RECOGNIZED) -> list[str]:
    """Return the names of a table's columns; none if the file cannot be read, which `Table.from_file` reports.

    Parameters
    ----------
    file, format_
        As for `Table.from_file`.
    """
    try:
        if file.suffix.lower() == ".parquet":
            return _parquet_names(pq.read_schema(file))
        with opened(file, lines=True) as stream:
            separator = _separator(stream, file, format_)
            return [str(name) for name in pd.read_csv(stream, sep=separator, nrows=0, index_col=False).columns]
    except _UNREADABLE:
        return []


def find_columns(
    names: Sequence[str],
    spellings: Mapping[str, Sequence[str | Collection[str]]],
    *,
    given: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Find columns by their common names.

    Parameters
    ----------
    names
        Names of the columns of a file.
    spellings
        Map from our name of each column to its names in files, the most likely first; in place of one name, several
        that are equally likely. All are compared as `comparable_name` writes them.
    given
        Map from our name to the file's, for columns that are known already.

    Returns
    -------
    dict
        Map from our name to the file's, for the columns given and found; a column of the file is found once. Where
        several columns have equally likely names, none is found.
    """
    header: dict[str, list[str]] = {}
    for name in names:
        header.setdefault(comparable_name(name), []).append(name)
    columns = {**given}
    for ours, likely in spellings.items():
        for alike in () if ours in columns else likely:
            equal = [alike] if isinstance(alike, str) else alike
            having = (name for one in equal for name in header.get(comparable_name(one), ()))
            free = [name for name in having if name not in columns.values()]
            if free and (len(free) == 1 or isinstance(alike, str)):
                columns[ours] = free[0]
            if free:
                break
    return columns


def listed(names: Sequence[str]) -> str:
    """Return the names of columns for a message: at most the first 20, and of each at most 60 characters."""
    shown = ", ".join(repr(name[:60]) for name in names[:_SHOWN_COLUMNS])
    return shown + (f" … ({len(names):,} in all)" if len(names) > _SHOWN_COLUMNS else "")


def comparable_name(name: object) -> str:
    """Return the name of a column in lower case, without blanks and signs."""
    return re.sub(r"[\W_]+", "", str(name).lower())


_WHOLE_FLOAT = re.compile(r"-?\d+(?:\.0+)?")
"""Pattern of whole numbers, also of those that are written as floats."""


def identifiers(values: Iterable[Any]) -> pd.Categorical:
    """Read identifiers, of vehicles, nodes, links, zones or places, as text without surrounding white space.

    A column of whole numbers in which some are missing is often stored as floats. So where every value of a column is
    a whole number, the identifiers are written without decimals: 7 for 7.0, also beside 7. In any other column, text
    is kept as it is, also 7.0; leading zeros always are, so that 007 and 7 differ. Therefore a table has the same
    identifiers in text and in Parquet, and two tables of the same numbers agree.

    Parameters
    ----------
    values
        A column, or other values, such as attributes of nodes.

    Returns
    -------
    pandas.Categorical
        Text, with the categories in the order of the first value of each; NaN (code -1) where there is no identifier.
    """
    code, texts = _distinct_texts(values if isinstance(values, pd.Series) else pd.Series([*values], dtype="object"))
    if all(_WHOLE_FLOAT.fullmatch(text) for text in texts if text):
        texts = [text and text.partition(".")[0] for text in texts]
    again, names = pd.factorize(np.array([*texts, None], dtype="object"))
    return pd.Categorical.from_codes(again[code], pd.Index(names, dtype="object"))


def identifier_list(values: Iterable[Any]) -> list[str]:
    """Return `identifiers` one by one; "" where there is none."""
    return _one_by_one(identifiers(values))


def _one_by_one(found: pd.Categorical) -> list[str]:
    names = [*found.categories, ""]
    return [names[place] for place in found.codes.tolist()]


def _distinct_texts(column: pd.Series[Any]) -> tuple[NDArray[np.intp], list[str | None]]:
    """Return distinct values as text without surrounding blanks, None if blank, and which each row has; -1 for none."""
    try:
        code, found = pd.factorize(column)
    except TypeError:  # lists, which Parquet may hold
        code, found = pd.factorize(column.map(str, na_action="ignore"))
    return code, [str(_decoded(value)).strip() or None for value in found.tolist()]


def recognized(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column of text as numbers, if all of its values are numbers."""
    try:
        return pd.to_numeric(column)
    except (ValueError, OverflowError):
        return column


def numbers_in(column: pd.Series) -> pd.Series:
    """Return a column's numbers: NaN where a value is not a number, infinity where it is too large for a double."""
    try:
        return pd.to_numeric(column, errors="coerce")
    except (OverflowError, TypeError):  # whole numbers of any length, and lists
        return pd.to_numeric(column.astype("str").str.slice(0, LONGEST_NUMBER), errors="coerce")


def check_parquet(stored: pq.ParquetFile, file: str | Path, *, columns: Collection[str] | None = None) -> None:
    """Compare the memory that a Parquet file's rows need with the memory available; only its metadata are read.

    Parameters
    ----------
    stored
        The opened file.
    file
        Name of the file, for the message.
    columns
        Columns to be read; all columns if None.

    Raises
    ------
    InputError
        If the rows need more memory than is available.
    """
    rows = stored.metadata.num_rows
    fields = [field for field in stored.schema_arrow if columns is None or field.name in columns]
    each = sum(_VALUE if pa.types.is_primitive(field.type) else _OBJECT for field in fields)
    # The metadata give the size of strings and lists, except of those that are encoded by a dictionary.
    groups = (stored.metadata.row_group(place) for place in range(stored.metadata.num_row_groups))
    needed = rows * each + sum(group.total_byte_size for group in groups)
    if reason := shortage(needed, to=f"read its {rows:,} rows"):
        raise InputError([f"{file}: {reason}"])


_Columns = Mapping[str, str | int] | None
_Read = tuple[pd.DataFrame, list[str], dict[str, str], list[str]]
"""The mapped columns, the names of all columns, the file's name of each mapped one, and unmapped columns of numbers."""


def _read_parquet(file: Path, columns: _Columns) -> _Read:
    stored = pq.ParquetFile(file)
    names = _parquet_names(stored.schema_arrow)
    mapped = _headings(columns, names, file, ",")
    check_parquet(stored, file, columns=mapped.values())
    stored_names = set(stored.schema_arrow.names)
    frame = pd.read_parquet(file, columns=[name for name in dict.fromkeys(mapped.values()) if name in stored_names])
    used = set(mapped.values())
    types = {field.name: field.type for field in stored.schema_arrow if field.name not in used}
    numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    unread = [name for name, type_ in types.items() if any(is_kind(type_) for is_kind in numeric)]
    return (frame if frame.index.names == [None] else frame.reset_index()), names, mapped, unread


def _parquet_names(schema: pa.Schema) -> list[str]:
    """Return the names of a file's columns, and of a pandas index that is stored as a range and not as a column."""
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    ranges = [level["name"] for level in index if isinstance(level, dict) and level.get("name")]
    return [str(name) for name in (*schema.names, *ranges)]


def _read_text(
    file: Path,
    columns: _Columns,
    text: Collection[str] | None,
    identifiers: Collection[str],
    format_: TextFormat,
    layout: Mapping[str, Any],
) -> _Read:
    """Read delimited text by pandas, with the options `layout`; `NOTHING` is missing except in `identifiers`."""
    how: dict[str, Any] = {"na_values": [""], "keep_default_na": False, **layout}
    wanted = [(columns or {}).get(name, name) for name in text or ()]
    with opened(file, lines=True, times=TABLE_TIMES) as stream, warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        separator = _separator(stream, file, format_)
        # pandas takes a number for the position of a column, from 0. Numbers of a table that may have decimal commas
        # are read as text first, so that 1.234 is not taken for less than 2 beside 12,5.
        types = {column - 1 if isinstance(column, int) else column: "str" for column in wanted}
        how["dtype"] = "str" if text is None or separator in _OTHER_SEPARATORS else types
        try:
            frame = pd.read_csv(stream, sep=separator, index_col=False, encoding="utf-8-sig", low_memory=False, **how)
        except pd.errors.ParserWarning:
            rule = "its rows hold more values than its header names"
            hint = f"; are its columns separated by {separator!r}, and its numbers written with decimal points?"
            raise InputError([f"{file}: cannot be read as a table: {rule}{hint}"]) from None
    names = [str(name + 1 if isinstance(name, int) else name) for name in frame.columns]
    frame.columns = pd.Index(names)
    mapped = _headings(columns, names, file, separator)
    unread = [name for name in names if name not in mapped.values() and _is_numeric(frame[name])]
    frame = frame[list(dict.fromkeys(mapped.values()))].copy()
    kept = {mapped[name] for name in identifiers}
    texts = [name for name in frame if pd.api.types.is_string_dtype(frame[name]) and name not in kept]
    frame[texts] = frame[texts].mask(frame[texts].isin(_NOTHING_WRITTEN))
    for name, column in _with_points(frame[texts], file, format_.decimal).items():
        frame[name] = column
    as_text = set(texts) if text is None else {mapped[name] for name in text}
    for name in set(texts) - as_text:
        frame[name] = recognized(frame[name])
    return frame, names, mapped, unread


def _is_numeric(column: pd.Series[Any]) -> bool:
    """Return whether a column holds numbers, and nothing else but missing values."""
    if column.dtype.kind in "biuf":
        return column.dtype.kind != "b" and bool(column.notna().any())
    given = column[column.notna() & ~column.isin(_NOTHING_WRITTEN)]
    pattern = rf"{_COMMA_NUMBER}|[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
    parts = (given.head(_SAMPLE_ROWS), given)  # most columns of text show in their first rows that they are
    return len(given) > 0 and all(bool(part.astype("str").str.strip().str.fullmatch(pattern).all()) for part in parts)


def _with_points(frame: pd.DataFrame, file: Path, decimal: str | None) -> dict[str, pd.Series[Any]]:
    """Return the columns of numbers of a file with decimal commas, with decimal points and without grouping points.

    Raises
    ------
    InputError
        If all commas may also group thousands, and `decimal` is not given.
    """
    comma = {name: frame[name].str.contains(",", regex=False, na=False) for name in frame}
    if decimal == "." or (decimal is None and not any(has_comma.any() for has_comma in comma.values())):
        return {}
    columns, ambiguous = {}, None
    for name, has_comma in comma.items():
        text = frame[name].str.strip()
        fits, points = text.str.fullmatch(_COMMA_NUMBER, na=False), text.str.contains(".", regex=False, na=False)
        # A column in which points are decimal is left as it is, and its numbers with commas are refused.
        if (points & ~fits).any() or 2 * int(fits.sum()) <= int(text.notna().sum()):
            continue
        with_points = text.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
        columns[str(name)] = frame[name].where(~fits, with_points)
        numbers = text[fits & has_comma]
        if not numbers.str.fullmatch(_COMMA_OR_GROUP).all():
            decimal = ","
        elif len(numbers) and ambiguous is None:
            ambiguous = (name, numbers.iloc[0])
    if decimal is None and ambiguous is not None:
        rule = f"the comma of {ambiguous[1]!r} in column {ambiguous[0]!r} may be decimal, or group thousands"
        raise InputError([f'{file}: {rule}: give decimal = ",", or write numbers without commas'])
    return columns if decimal == "," else {}


_OTHER_SEPARATORS = ("\t", ";", "|")


def _separator(stream: BufferedReader, file: Path, format_: TextFormat) -> str:
    """Return the separator of a file, recognized by its first lines if it is not given.

    Raises
    ------
    InputError
        If the first line has too many columns, before memory is allocated for each.
    """
    begin = stream.peek().removeprefix(b"\xef\xbb\xbf")
    lines = [line for line in re.split(rb"[\r\n]+", begin, maxsplit=_SAMPLE_LINES + 1) if line.strip()]
    head = [line.decode(errors="replace") for line in lines[:_SAMPLE_LINES]] or [""]
    if (separator := format_.separator) is None:
        complete = head if len(lines) == 1 or len(lines) > len(head) else head[:-1]
        counts = {mark: {_fields(line, mark) for line in complete} for mark in (*_OTHER_SEPARATORS, ",")}
        even = [mark for mark, numbers in counts.items() if len(numbers) == 1 and numbers != {1}]
        # A comma may also be decimal, and so the other characters come first.
        separator = even[0] if even else max((",", *_OTHER_SEPARATORS), key=lambda mark: _fields(head[0], mark))
    if len(lines[0] if lines else b"") >= BUFFER_BYTES or head[0].count(separator) >= MOST_COLUMNS:
        raise InputError([f"{file}: its first row is too long for a table"])
    return separator


def _fields(line: str, separator: str) -> int:
    """Count the fields of a line, whose separators within quotation marks do not count."""
    return re.sub(r'"[^"]*"', "", line).count(separator) + 1


def _headings(columns: _Columns, names: Sequence[str], file: Path, separator: str) -> dict[str, str]:
    """Return the file's name of each mapped column, and report all columns that are absent or ambiguous."""
    if columns is None:
        return {name: name for name in names}
    mapped, faults = {}, []
    hint = f"; is it separated by {'commas' if separator == ',' else repr(separator)}?" if len(names) == 1 else ""
    for ours, column in columns.items():
        if isinstance(column, int):
            if column > len(names):
                faults.append(f"{file}: no column {column} for {ours}; it has {len(names)}")
            else:
                mapped[ours] = names[column - 1]
        elif column not in names:
            faults.append(f"{file}: no column {column!r} for {ours}; its columns are {listed(names)}{hint}")
        # If two columns have the same name, pandas renames the second to "name.1".
        elif names.count(column) > 1 or f"{column}.1" in names:
            faults.append(f"{file}: two columns are called {column!r}: which of them is {ours}?")
        else:
            mapped[ours] = column
    if faults:
        raise InputError(faults)
    return mapped


def _decoded(value: Any) -> Any:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
