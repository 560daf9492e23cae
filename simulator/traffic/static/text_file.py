"""Text file of rows: opened, unpacked and read as text, within bounds."""

import bz2
import codecs
import csv
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from simulator.traffic.errors import TrafficError

MOST_NBYTES = 8 * 2**30
"""Bytes of text beyond which a file is surely not meant, or is made to fill the memory."""
MOST_COLUMNS = 100_000
LONGEST_ROW = 1 << 20
_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_UNREADABLE = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, csv.Error, pa.ArrowException)


class _TooMuchError(ValueError):
    """More text than a file may unpack to."""


class _Limited(io.RawIOBase):
    """Reads on to a limit, and refuses to read beyond."""

    def __init__(self, inner: BinaryIO, most: int) -> None:
        super().__init__()
        self._inner, self._left, self._most = inner, most, most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # what BufferedReader hands in
        chunk = self._inner.read(len(buffer))
        self._left -= len(chunk)
        if self._left < 0:
            raise _TooMuchError(f"it unpacks to more than {self._most:,} bytes")
        buffer[: len(chunk)] = chunk
        return len(chunk)


def read_frame(
    file: str | Path,
    *,
    separator: str | None,
    header: bool,
    wanted: Sequence[str | int],
    most_nbytes: int = MOST_NBYTES,
) -> tuple[pd.DataFrame, list[str]]:
    """Read some columns of a file of rows as text.

    Parameters
    ----------
    file
        Its suffix says what it is: ``.parquet``, ``.arff``, and anything else is text, ``.gz``, ``.bz2`` and ``.xz``
        unpacked first.
    separator
        Between columns; if None, a tab where the suffix is ``.tsv``, else a comma.
    header
        Whether the first line names the columns; else they are called "1", "2", …
    wanted
        Columns to read, by name or by number from 1.
    most_nbytes
        More than that is refused, unpacked.

    Returns
    -------
    tuple
        The columns wanted, under the names of the file, as text, NA where the file holds nothing, or as the Parquet
        file has them; and the names of all columns.

    Raises
    ------
    TrafficError
        If the file cannot be read, holds no row, or lacks a column that is wanted.
    """
    path = Path(file)
    kind = "Parquet" if path.suffix.lower() == ".parquet" else "a table"
    try:
        if kind == "Parquet":
            return _parquet(path, str(file), wanted)
        return _text(path, str(file), separator=separator, header=header, wanted=wanted, most=most_nbytes)
    except FileNotFoundError:
        raise TrafficError([f"{file}: no such file"]) from None
    except TrafficError:
        raise
    except _UNREADABLE as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise TrafficError([f"{file}: cannot be read as {kind}: {said}"]) from error


def _parquet(path: Path, file: str, wanted: Sequence[str | int]) -> tuple[pd.DataFrame, list[str]]:
    stored = pq.ParquetFile(path)
    names = [str(name) for name in stored.schema_arrow.names]
    chosen = [names[place] for place in _places(wanted, names, file)]
    if stored.metadata.num_rows == 0:
        raise TrafficError([f"{file}: it holds no rows"])
    table = stored.read(columns=chosen)
    for place, field in enumerate(table.schema):
        if pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type):
            table = table.set_column(place, field.name, table[place].cast(pa.string()))
    return table.to_pandas(ignore_metadata=True), names


def _text(
    path: Path, file: str, *, separator: str | None, header: bool, wanted: Sequence[str | int], most: int
) -> tuple[pd.DataFrame, list[str]]:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind = next((suffix for suffix in reversed(suffixes) if suffix not in _OPENERS), "")
    opener = _OPENERS.get(suffixes[-1] if suffixes else "", Path.open)
    opened: BinaryIO = opener(path, "rb")
    with opened, io.BufferedReader(_Limited(opened, most)) as stream:
        names, quote = None, '"'
        body: BinaryIO = stream
        if kind == ".arff":
            names, quote, header = _arff_header(stream, file), "'", False
            body = io.BytesIO(b"".join(line for line in stream if line.strip() and not line.startswith(b"%")))
        between = separator or ("\t" if kind == ".tsv" else ",")
        start = body.readline(LONGEST_ROW)
        if not start.strip():
            raise TrafficError([f"{file}: it is empty" if names is None else f"{file}: it holds no rows"])
        if len(start) == LONGEST_ROW or start.count(between.encode()) >= MOST_COLUMNS:
            raise TrafficError([f"{file}: its first row is too long to be one of a table"])
        first = next(csv.reader([start.decode("utf-8-sig")], delimiter=between, quotechar=quote))
        if names is None:
            names = [name.strip() for name in first] if header else [str(i) for i in range(1, len(first) + 1)]
        if len(names) == 1 and len(set(wanted)) > 1:
            said = f"all values are in one column, which begins {start.decode('utf-8-sig').strip()[:40]!r}"
            raise TrafficError([f"{file}: {said}: is it separated by {between!r}? Say by what with separator"])
        chosen = sorted(set(_places(wanted, names, file)))
        if header and not body.peek(1):  # type: ignore[attr-defined]  # only ARFF is not buffered, and has no header
            raise TrafficError([f"{file}: it holds no rows"])
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
        raise TrafficError([f"{file}: it holds no rows"])
    return table.rename_columns([names[i] for i in chosen]).to_pandas(), names


class _Replayed(io.RawIOBase):
    """A stream whose first line, already read, comes first."""

    def __init__(self, start: bytes, rest: BinaryIO) -> None:
        super().__init__()
        self._start, self._rest = start, rest

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        start, self._start = self._start, b""
        return start or self._rest.read(size)


def _arff_header(stream: BinaryIO, file: str) -> list[str]:
    """Read on to the data, and return the names of the attributes."""
    names: list[str] = []
    while line := stream.readline(LONGEST_ROW):
        words = line.decode("utf-8-sig").strip()
        if words.lower().startswith("@attribute"):
            rest = words[len("@attribute") :].strip()
            quote = rest[:1]
            quoted = quote in ("'", '"') and quote in rest[1:]
            names.append(rest[1 : rest.index(quote, 1)] if quoted else (rest.split() or [""])[0])
        elif words.lower() == "@data" and names:
            return names
    raise TrafficError([f"{file}: it has no @data after @attribute: is it ARFF?"])


def _places(wanted: Sequence[str | int], names: Sequence[str], file: str) -> list[int]:
    """Return which columns are wanted, from 0."""
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
        raise TrafficError(faults)
    return places
