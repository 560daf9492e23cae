"""Files of the Transportation Networks test problems (TNTP): lines, metadata and faults.

All its text files have the same structure: ``<NAME> value`` lines, ``<END OF METADATA>``, then rows. A ``~`` begins a
comment.
"""

from __future__ import annotations

import codecs
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from simulator.files.compressed_io import JSON_TIMES, TABLE_TIMES, begin_of, opened, raw_lines
from simulator.files.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
        rule = f"a whole number, {at_least} or more"
        if not _WHOLE.fullmatch(line.text):
            raise self._fault(name, rule, line)
        number = int(line.text.split(".")[0])
        if number < at_least:
            raise self._fault(name, rule, line)
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
        text = text.strip()
        if text:
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
        tag = _TAG.match(line.text)
        if tag is None:
            rule = f"must have the form <NAME> value, as long as <{_END}> has not come"
            raise InputError([f"{file}: line {line.number}: {rule}; got {shown(line.text)}"])
        name, value = " ".join(tag[1].upper().split()), tag[2].strip()
        if name == _END:
            return Metadata(file, values)
        if name in values:
            rule = f"<{name}> must stand there once; line {values[name].number} has it too"
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


MOST_SHOWN = 20


@dataclass
class Faults:
    """Collects the faults of the lines of a file.

    Parameters
    ----------
    file
        The file's name, given in every message.
    """

    file: str
    _said: list[str] = field(default_factory=list)

    def add(self, place: str, rule: str) -> None:
        """Add a fault.

        Parameters
        ----------
        place
            Where it is, such as "line 12".
        rule
            What is wrong there.

        Raises
        ------
        InputError
            With all faults so far, as soon as there are 20: further faults are likely to be of the same kind.
        """
        self._said.append(f"{self.file}: {place}: {rule}")
        if len(self._said) == MOST_SHOWN:
            self._said.append(f"{self.file}: there may be more faults; the first {MOST_SHOWN} are shown")
            self.check()

    def check(self) -> None:
        """Raise all faults added so far.

        Raises
        ------
        InputError
            If there are any.
        """
        if self._said:
            raise InputError(self._said)
