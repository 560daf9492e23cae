"""Reading of selected columns of a table file as text: delimited text, ARFF or Parquet."""

import codecs
import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import pandas as pd
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from simulator.files.compressed_io import LONGEST_BYTES, TABLE_TIMES, opened, unpacked_name
from simulator.files.errors import InputError
from simulator.files.memory import shortage

MOST_COLUMNS = 100_000
LONGEST_NUMBER = 400
"""Number of digits from which every number is infinite as a double."""
_VALUE, _OBJECT = 32, 120
"""Bytes of memory per value of a Parquet file, including intermediate copies: of a number, and of text or a list."""
_UNREADABLE = (OSError, ValueError, csv.Error, pa.ArrowException)


def numbers_in(column: pd.Series) -> pd.Series:
    """Return a column's numbers: NaN where a value is not a number, infinity where it is too large for a double."""
    try:
        return pd.to_numeric(column, errors="coerce")
    except OverflowError:
        return pd.to_numeric(column.astype("str").str.slice(0, LONGEST_NUMBER), errors="coerce")


def read_frame(
    file: str | Path,
    *,
    separator: str | None,
    header: bool,
    wanted: Sequence[str | int],
) -> tuple[pd.DataFrame, list[str]]:
    """Read some columns of a file of rows as text.

    Parameters
    ----------
    file
        The file. Its suffix determines its format: ``.parquet``, ``.arff``, and text for any other, decompressed as by
        `opened`.
    separator
        Character between columns; if None, a tab where the suffix is ``.tsv``, else a comma.
    header
        Whether the first line names the columns; else they are named "1", "2", …
    wanted
        Columns to read, by name or by number from 1.

    Returns
    -------
    tuple
        The columns wanted, under their names in the file: as text, NA where the file has no value, or with the types
        of the Parquet file; and the names of all columns.

    Raises
    ------
    InputError
        If the file cannot be read, has no rows, or lacks a column that is wanted.
    """
    path = Path(file)
    kind = "Parquet" if path.suffix.lower() == ".parquet" else "a table"
    try:
        if kind == "Parquet":
            return _parquet(path, str(file), wanted)
        return _text(path, str(file), separator=separator, header=header, wanted=wanted)
    except FileNotFoundError:
        raise InputError([f"{file}: no such file"]) from None
    except InputError:
        raise
    except _UNREADABLE as fault:
        said = " ".join(str(fault).split()) or type(fault).__name__
        raise InputError([f"{file}: cannot be read as {kind}: {said}"]) from fault


def _parquet(path: Path, file: str, wanted: Sequence[str | int]) -> tuple[pd.DataFrame, list[str]]:
    stored = pq.ParquetFile(path)
    names = [str(name) for name in stored.schema_arrow.names]
    chosen = [names[place] for place in _places(wanted, names, file)]
    if stored.metadata.num_rows == 0:
        raise InputError([f"{file}: it holds no rows"])
    check_parquet(stored, file, columns=chosen)
    table = stored.read(columns=chosen)
    for place, field in enumerate(table.schema):
        if pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type):
            table = table.set_column(place, field.name, table[place].cast(pa.string()))
    return table.to_pandas(ignore_metadata=True), names


def check_parquet(stored: pq.ParquetFile, file: str | Path, *, columns: Sequence[str] | None = None) -> None:
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
    if said := shortage(needed, to=f"read its {rows:,} rows"):
        raise InputError([f"{file}: {said}"])


def _text(
    path: Path,
    file: str,
    *,
    separator: str | None,
    header: bool,
    wanted: Sequence[str | int],
) -> tuple[pd.DataFrame, list[str]]:
    kind = Path(unpacked_name(path)).suffix.lower()
    with opened(path, lines=True, times=TABLE_TIMES) as stream:
        names, quote = None, '"'
        body: BinaryIO = stream
        if kind == ".arff":
            names, quote, header = _arff_header(stream, file), "'", False
            body = io.BytesIO(b"".join(line for line in stream if line.strip() and not line.startswith(b"%")))
        between = separator or ("\t" if kind == ".tsv" else ",")
        start = body.readline(LONGEST_BYTES)
        if not start.strip():
            raise InputError([f"{file}: it is empty" if names is None else f"{file}: it holds no rows"])
        if len(start) == LONGEST_BYTES or start.count(between.encode()) >= MOST_COLUMNS:
            raise InputError([f"{file}: its first row is too long to be one of a table"])
        first = next(csv.reader([start.decode("utf-8-sig")], delimiter=between, quotechar=quote))
        if names is None:
            names = [name.strip() for name in first] if header else [str(i) for i in range(1, len(first) + 1)]
        if len(names) == 1 and len(set(wanted)) > 1:
            said = f"all values are in one column, which begins {start.decode('utf-8-sig').strip()[:40]!r}"
            raise InputError([f"{file}: {said}: is it separated by {between!r}? Say by what with separator"])
        chosen = sorted(set(_places(wanted, names, file)))
        if header and not body.peek(1):  # type: ignore[attr-defined]  # only ARFF is not buffered, and has no header
            raise InputError([f"{file}: it holds no rows"])
        table = arrow_csv.read_csv(
            body if header else _Replayed(start.removeprefix(codecs.BOM_UTF8), body),
            read_options=arrow_csv.ReadOptions(column_names=[str(i) for i in range(len(names))], use_threads=False),
            parse_options=arrow_csv.ParseOptions(delimiter=between, quote_char=quote),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=[str(i) for i in chosen],
                column_types={str(i): pa.string() for i in chosen},
                null_values=["", "?"] if kind == ".arff" else [""],
                strings_can_be_null=True,
            ),
        )
    if not len(table):
        raise InputError([f"{file}: it holds no rows"])
    return table.rename_columns([names[i] for i in chosen]).to_pandas(), names


class _Replayed(io.RawIOBase):
    """A stream that starts with a line that was already read from it."""

    def __init__(self, start: bytes, rest: BinaryIO) -> None:
        super().__init__()
        self._start, self._rest = start, rest

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        start, self._start = self._start, b""
        return start or self._rest.read(size)


def _arff_header(stream: BinaryIO, file: str) -> list[str]:
    """Read the header up to the data, and return the names of the attributes."""
    names: list[str] = []
    while line := stream.readline(LONGEST_BYTES):
        words = line.decode("utf-8-sig").strip()
        if words.lower().startswith("@attribute"):
            rest = words[len("@attribute") :].strip()
            quote = rest[:1]
            quoted = quote in ("'", '"') and quote in rest[1:]
            names.append(rest[1 : rest.index(quote, 1)] if quoted else (rest.split() or [""])[0])
        elif words.lower() == "@data" and names:
            return names
    raise InputError([f"{file}: it has no @data after @attribute: is it ARFF?"])


def _places(wanted: Sequence[str | int], names: Sequence[str], file: str) -> list[int]:
    """Return the indices of the wanted columns, from 0."""
    faults, places = [], []
    for column in wanted:
        if isinstance(column, int):
            if column > len(names):
                faults.append(f"{file}: no column {column}; it has {len(names)}")
            places.append(column - 1)
        elif column in names:
            places.append(names.index(column))
            if (again := names.count(column)) > 1:
                faults.append(f"{file}: {again} columns are called {column!r}: say which by its number, from 1")
        else:
            shown = ", ".join(map(repr, names[:50])) + (" …" if len(names) > 50 else "")
            faults.append(f"{file}: no column {column!r}; its columns are {shown}")
    if faults:
        raise InputError(faults)
    return places
