"""Node files of TNTP networks: text, or GeoJSON points."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.files.errors import InputError
from simulator.roads.tntp.metadata import Faults, finite_number, json_of, lines_of, shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from simulator.roads.tntp.metadata import Line

_IDENTIFIERS = ("id", "node", "node_id", "nodeid")
_HEADER = re.compile(r"[A-Za-z]")


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
        rows = _text(file, faults) if text is None else _features(text, faults)
        seen: dict[int, str] = {}
        xy = []
        for place, node, x, y in rows:
            if node in seen:
                faults.add(place, f"node {node} must be there once; {seen[node]} has it too")
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


def _text(file: str | Path, faults: Faults) -> Iterator[_Row]:
    """Read rows of text; a first line that begins with a letter is a header."""
    lines = lines_of(file)
    first = next(lines, None)
    if first is None:
        raise InputError([f"{file}: it is empty"])
    if not _HEADER.match(first.text):
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
    said = [identifier, *point[:2]]
    numbers = [None if isinstance(value, bool) else finite_number(str(value)) for value in said]
    yield from _checked(place, numbers, [str(value) for value in said], faults)


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
