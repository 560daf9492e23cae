"""Files of the Transportation Networks test problems (TNTP): metadata, nodes and published flows.

All text files have the same structure: ``<NAME> value`` lines, ``<END OF METADATA>``, then rows. A ``~`` begins a
comment. Nodes may also be GeoJSON points.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from simulator.files.compressed_io import JSON_TIMES, TABLE_TIMES, begin_of, opened, raw_lines
from simulator.files.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

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


_IDENTIFIERS = ("id", "node", "node_id", "nodeid")
_LETTER = re.compile(r"[A-Za-z]")


@dataclass(frozen=True, eq=False, repr=False)
class TntpNodes:
    """The positions of the nodes of a network, in the units of the file.

    Parameters
    ----------
    file
        Path as the user gave it.
    places
        Location of each node in the file, such as "line 12" or "feature 12".
    node
        Node numbers, all different, int64, shape (nodes,).
    xy
        East (or longitude) and north (or latitude), finite, shape (nodes, 2).
    """

    file: str
    places: list[str]
    node: NDArray[np.int64]
    xy: NDArray[np.float64]

    @classmethod
    def from_file(cls, file: str | Path) -> TntpNodes:
        """Read a node file; its beginning determines whether it is read as GeoJSON.

        Parameters
        ----------
        file
            Text with a row ``node x y ;`` for each node, with or without a header; or GeoJSON points with a number in
            ``id``, ``node``, ``node_id`` or ``nodeid``, in any case. Plain or gzipped.

        Returns
        -------
        TntpNodes
            At least one node.

        Raises
        ------
        InputError
            If a row does not have three fields, a value is not a number, a node occurs twice, or there is no node; it
            names file, line or feature, rule and value.
        """
        name = str(file)
        faults = Faults(name)
        text = json_of(file)
        rows = _text_rows(file, faults) if text is None else _features(text, faults)
        seen: dict[int, str] = {}
        xy = []
        for place, node, x, y in rows:
            if node in seen:
                faults.add(place, f"node {node} must occur only once; {seen[node]} is the other")
            seen[node] = place
            xy.append((x, y))
        faults.check()
        if not seen:
            raise InputError([f"{name}: it holds no node"])
        return cls(name, list(seen.values()), np.fromiter(seen, np.int64, len(seen)), np.array(xy, dtype=np.float64))

    def where(self, chosen: NDArray[np.bool_]) -> str:
        """Return the location of the first chosen node in the file, and the number of further ones.

        Parameters
        ----------
        chosen
            Mask of the chosen rows, bool, shape (nodes,); at least one.

        Returns
        -------
        str
            Text such as "line 4", or "line 4 and 17 more".
        """
        rows = np.flatnonzero(chosen)
        more = f" and {len(rows) - 1:,} more" if len(rows) > 1 else ""
        return f"{self.places[int(rows[0])]}{more}"

    def __len__(self) -> int:
        """Count the nodes."""
        return len(self.node)


_Row = tuple[str, int, float, float]


def _text_rows(file: str | Path, faults: Faults) -> Iterator[_Row]:
    """Read rows of text; a first line that begins with a letter is a header."""
    lines = lines_of(file)
    first = next(lines, None)
    if first is None:
        raise InputError([f"{file}: it is empty"])
    if not _LETTER.match(first.text):
        yield from _text_row(first, faults)
    for line in lines:
        yield from _text_row(line, faults)


def _text_row(line: Line, faults: Faults) -> Iterator[_Row]:
    fields = line.text.removesuffix(";").split()
    place = f"line {line.number}"
    if len(fields) != 3:
        rule = "a node must have 3 fields (node x y), separated by blanks or tabs"
        faults.add(place, f"{rule}; got {len(fields)}: {shown(line.text)}")
        return
    values = [finite_number(text) for text in fields]
    yield from _checked(place, values, fields, faults)


def _features(text: str, faults: Faults) -> Iterator[_Row]:
    """Read GeoJSON points from a feature collection or a list of features."""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError([f"{faults.file}: cannot be read as GeoJSON: {error}"]) from None
    features = read.get("features") if isinstance(read, dict) else read
    if not isinstance(features, list):
        raise InputError([f'{faults.file}: GeoJSON must have a list of "features"'])
    for number, feature in enumerate(features, start=1):
        yield from _feature(f"feature {number}", feature, faults)


def _feature(place: str, feature: Any, faults: Faults) -> Iterator[_Row]:
    feature = feature if isinstance(feature, dict) else {}
    properties, geometry = feature.get("properties"), feature.get("geometry")
    named = {key.lower(): value for key, value in properties.items()} if isinstance(properties, dict) else {}
    identifier = next((named[key] for key in _IDENTIFIERS if key in named), feature.get("id"))
    point = geometry.get("coordinates") if isinstance(geometry, dict) and geometry.get("type") == "Point" else None
    if not isinstance(point, list) or len(point) < 2:
        faults.add(place, "must have a Point as its geometry, with two coordinates")
        return
    raw = [identifier, *point[:2]]
    numbers = [None if isinstance(value, bool) else finite_number(str(value)) for value in raw]
    yield from _checked(place, numbers, [str(value) for value in raw], faults)


def _checked(place: str, values: list[float | None], texts: list[str], faults: Faults) -> Iterator[_Row]:
    """Yield the row if its node number and two coordinates are valid, else add a fault."""
    node, x, y = values
    if node is None or not node.is_integer() or not 1 <= node < 2**53:
        faults.add(place, f"a node must be a whole number, 1 or more, got {shown(texts[0])}")
    elif x is None or y is None:
        wrong = texts[1] if x is None else texts[2]
        faults.add(place, f"a coordinate must be a finite number, got {shown(wrong)}")
    else:
        yield place, int(node), x, y


NAMES = {
    "from": ("from", "tail", "init_node", "init", "a"),
    "to": ("to", "head", "term_node", "term", "b"),
    "volume": ("volume", "flow", "vol"),
    "cost": ("cost", "time", "travel_time"),
}
"""The project's names of the columns to the names used in files, in any case."""


def read_flows(file: str | Path) -> pd.DataFrame:
    """Read the flows of a published user equilibrium.

    Parameters
    ----------
    file
        A file with rows ``from to volume cost``, plain or gzipped; with or without metadata before them, with or
        without a header (such as ``From To Volume Cost`` or ``Tail Head Volume Cost``), with or without colons and
        semicolons.

    Returns
    -------
    pandas.DataFrame
        ``from``, ``to``: int64 nodes; ``volume``: vehicles in the period to which the trips refer; ``cost``: the
        generalised cost of the link, in the unit of the network's free-flow times. In the order of the file.

    Raises
    ------
    InputError
        If the file has no flow, a row does not have four fields, a node is not a whole number, or a volume or cost is
        not a finite number, 0 or more; it names file, line, rule and value.
    """
    name = str(file)
    faults = Faults(name)
    order = list(NAMES)
    rows: list[tuple[int, int, float, float]] = []
    for line in _after_metadata(file):
        fields = line.text.replace(":", " ").replace(";", " ").split()
        if not rows and fields and finite_number(fields[0]) is None:
            order = _header(line, fields, faults)
            continue
        row = _row(line, dict(zip(order, fields, strict=False)), len(fields), faults)
        if row is not None:
            rows.append(row)
    faults.check()
    if not rows:
        raise InputError([f"{name}: it holds no flow"])
    table = pd.DataFrame(rows, columns=list(NAMES))
    return table.astype({"from": "int64", "to": "int64", "volume": "float64", "cost": "float64"})


def _after_metadata(file: str | Path) -> Iterator[Line]:
    """Yield the rows; metadata before them, if any, are skipped because nothing in them is used."""
    lines = lines_of(file)
    first = next(lines, None)
    if first is None:
        raise InputError([f"{file}: it is empty"])
    if first.text.startswith("<"):
        if "END OF METADATA" not in first.text.upper():
            read_metadata(lines, file=str(file))
    else:
        yield first
    yield from lines


def _header(line: Line, fields: list[str], faults: Faults) -> list[str]:
    """Return the project's names of the columns in the order of the header."""
    order = []
    for name in fields:
        known = [ours for ours, theirs in NAMES.items() if name.lower() in theirs]
        order.append(known[0] if known else name)
    absent = [ours for ours in NAMES if order.count(ours) != 1]
    if absent:
        rule = f"the header must name from, to, volume and cost once each; missing or repeated: {', '.join(absent)}"
        faults.add(f"line {line.number}", f"{rule}; got {shown(line.text)}")
        faults.check()
    return order


def _row(line: Line, fields: dict[str, str], count: int, faults: Faults) -> tuple[int, int, float, float] | None:
    place = f"line {line.number}"
    if count != len(fields) or not all(name in fields for name in NAMES):
        rule = "a flow must have the fields from, to, volume and cost, separated by blanks or tabs"
        faults.add(place, f"{rule}; got {count}: {shown(line.text)}")
        return None
    values = []
    for name in NAMES:
        number = finite_number(fields[name])
        is_node = name in ("from", "to")
        if number is None or number < 0 or (is_node and not (number.is_integer() and number < 2**53)):
            rule = "a whole number" if is_node else "a finite number, 0 or more"
            faults.add(place, f"{name} must be {rule}, got {shown(fields[name])}")
            return None
        values.append(number)
    return int(values[0]), int(values[1]), values[2], values[3]
