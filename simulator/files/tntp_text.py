"""Text files of the Transportation Networks test problems (TNTP), whose tables of roads, trips and flows are alike.

``<NAME> value`` lines, ``<END OF METADATA>``, then rows. A ``~`` begins a comment.
"""

from __future__ import annotations

import codecs
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from simulator.files.compressed_io import JSON_TIMES, TABLE_TIMES, begin_of, opened, raw_lines
from simulator.files.errors import InputError
from simulator.files.messages import SHOWN_ROWS, numbers_in_words
from simulator.files.tables import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

SHOWN = 60
_END = "END OF METADATA"
_TAG = re.compile(r"<([^<>]*)>(.*)", re.DOTALL)
_WHOLE = re.compile(r"\+?\d{1,18}(\.0*)?")


@dataclass(frozen=True)
class Line:
    """A line with content.

    Parameters
    ----------
    number
        Its number in the file, from 1; blank lines and comments counted.
    text
        Its text, without comment and surrounding blanks, never empty.
    """

    number: int
    text: str


@dataclass(frozen=True)
class Metadata:
    """The metadata of a file, which precede its rows.

    Parameters
    ----------
    file
        Path as the user gave it; used in messages.
    values
        Name, in capitals with single blanks and without brackets, to the line whose text is the value.
    """

    file: str
    values: Mapping[str, Line]

    def has(self, name: str) -> bool:
        """Return whether a name has a value."""
        return name in self.values

    def whole(self, name: str, *, at_least: int = 0) -> int:
        """Read a whole number; no memory is allocated by its size.

        Parameters
        ----------
        name
            Name of the value, such as ``NUMBER OF ZONES``.
        at_least
            The smallest number allowed.

        Raises
        ------
        InputError
            If it is missing, not a whole number, or smaller than `at_least`.
        """
        line = self._line(name)
        if not _WHOLE.fullmatch(line.text) or (number := int(line.text.split(".")[0])) < at_least:
            raise self._fault(name, f"a whole number, {at_least} or more", line)
        return number

    def number(self, name: str) -> float:
        """Read a number, such as ``TOTAL OD FLOW``.

        Raises
        ------
        InputError
            If it is missing, or not a finite number, 0 or more.
        """
        line = self._line(name)
        number = finite_number(line.text)
        if number is None or number < 0:
            raise self._fault(name, "a finite number, 0 or more", line)
        return number

    def _line(self, name: str) -> Line:
        if name not in self.values:
            known = ", ".join(f"<{other}>" for other in self.values) or "none"
            raise InputError([f"{self.file}: <{name}> is missing; its metadata are {known}"])
        return self.values[name]

    def _fault(self, name: str, rule: str, line: Line) -> InputError:
        return InputError([f"{self.file}: line {line.number}: <{name}> must be {rule}, got {shown(line.text)}"])


def lines_of(file: str | Path) -> Iterator[Line]:
    """Yield the lines of a text file that have content.

    Parameters
    ----------
    file
        Plain text or gzipped, whatever its name. Only one line is kept in memory at a time.

    Yields
    ------
    Line
        Lines without comments; blank lines are left out.

    Raises
    ------
    InputError
        If the file cannot be read within the limits of `simulator.files.compressed_io`, or is not text.
    """
    for number, raw in enumerate(raw_lines(Path(file), times=TABLE_TIMES), start=1):
        if b"\0" in raw:
            raise InputError([f"{file}: line {number}: must be text (UTF-8 or ASCII), got a zero byte"])
        # Names in comments may be in another encoding; the numbers, which alone are read, are ASCII in all of them.
        text = raw.decode("utf-8-sig" if number == 1 else "utf-8", errors="replace")
        text = text.partition("~")[0] if not text.lstrip().startswith("<") else text
        if text := text.strip():
            yield Line(number, text)


def json_of(file: str | Path) -> str | None:
    """Read a file completely, if it begins like JSON.

    Parameters
    ----------
    file
        Plain text or gzipped, whatever its name.

    Returns
    -------
    str or None
        None for a file that begins with neither ``{`` nor ``[``.

    Raises
    ------
    InputError
        If the file cannot be read within the limits of `simulator.files.compressed_io`, or is not UTF-8.
    """
    path = Path(file)
    if not begin_of(path).removeprefix(codecs.BOM_UTF8).lstrip().startswith((b"{", b"[")):
        return None
    with opened(path, times=JSON_TIMES) as stream:
        return stream.read().decode("utf-8-sig")


def read_metadata(lines: Iterator[Line], *, file: str) -> Metadata:
    """Read the metadata, and leave the iterator at the first row after them.

    Parameters
    ----------
    lines
        Lines as yielded by :func:`lines_of`.
    file
        The file's name for messages.

    Returns
    -------
    Metadata
        Every ``<NAME> value`` before ``<END OF METADATA>``.

    Raises
    ------
    InputError
        If the file is empty, the end of the metadata is missing, or a line among them has another form or repeats a
        name.
    """
    values: dict[str, Line] = {}
    for line in lines:
        if (tag := _TAG.match(line.text)) is None:
            rule = f"must have the form <NAME> value, before <{_END}>"
            raise InputError([f"{file}: line {line.number}: {rule}; got {shown(line.text)}"])
        name, value = " ".join(tag[1].upper().split()), tag[2].strip()
        if name == _END:
            return Metadata(file, values)
        if name in values:
            rule = f"<{name}> must occur only once; line {values[name].number} is the other"
            raise InputError([f"{file}: line {line.number}: {rule}"])
        values[name] = Line(line.number, value)
    if not values:
        raise InputError([f"{file}: it is empty"])
    raise InputError([f"{file}: <{_END}> is missing: the file ends within its metadata"])


def finite_number(text: str) -> float | None:
    """Read a number in the notation of these files; None if the text is not a number, or not finite."""
    try:
        number = float(text) if "_" not in text else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def shown(text: str) -> str:
    """Quote a text from a file, at most its first 60 characters."""
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}…")


def table_of(
    rows: Iterable[tuple[int, Sequence[str]]], names: Sequence[str], *, file: str, rule: str, unit: str = "line"
) -> Table:
    """Make a table of rows of text; a row without a value for each column is left out and noted as a fault.

    Parameters
    ----------
    rows
        Number of each row in the file, and its values.
    names
        Names of the columns.
    file
        The file's name for messages.
    rule
        What each row must have.
    unit
        What numbers count: "line" or "feature".

    Returns
    -------
    Table
        The rows, perhaps none; its `check` raises the faults.
    """
    fitting: list[tuple[int, Sequence[str]]] = []
    others: list[tuple[int, Sequence[str]]] = []
    for number, values in rows:
        (fitting if len(values) == len(names) else others).append((number, values))
    frame = pd.DataFrame([values for _, values in fitting], columns=list(names), dtype="str")
    table = Table.from_frame(frame, title=file, number=[number for number, _ in fitting], unit=unit)
    if others:
        got = others[0][1]
        fault = row_fault(
            [number for number, _ in others], f"{rule}; got {len(got)}: {shown(' '.join(got))}", unit=unit
        )
        table.broken.append(f"{file}: {fault}")
    return table


def row_fault(numbers: Sequence[int], fault: str, *, unit: str = "line") -> str:
    """Return a fault with the numbers of the rows that have it, at most the first 20."""
    return f"{numbers_in_words(numbers[:SHOWN_ROWS], total=len(numbers), unit=unit)}: {fault}"


def fields_of(lines: Iterable[Line]) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the fields of each line, without a semicolon at its end."""
    for line in lines:
        yield line.number, line.text.removesuffix(";").split()
