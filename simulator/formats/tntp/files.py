"""Nodes of the Transportation Networks test problems (TNTP): text, or GeoJSON points."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from simulator.files.errors import InputError
from simulator.files.tntp_text import (
    fields_of,
    json_of,
    lines_of,
    table_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from simulator.files.tables import Table

_IDENTIFIERS = ("id", "node", "node_id", "nodeid")
_LETTER = re.compile(r"[A-Za-z]")


@dataclass(frozen=True, eq=False, repr=False)
class TntpNodes:
    """The positions of the nodes of a network, in the order of their numbers and the units of the file.

    Parameters
    ----------
    table
        The rows: lines or features.
    node
        Node numbers, ascending, int64, shape (nodes,).
    xy
        East (or longitude) and north (or latitude), finite, shape (nodes, 2).
    """

    table: Table
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
        text = json_of(file)
        table = _node_lines(file) if text is None else _features(text, str(file))
        node = table.integers("node", at_least=1)
        table.refuse("node", pd.Series(node).duplicated(keep=False).to_numpy() & (node > 0), "in one row only")
        xy = np.column_stack([table.checked_numbers(name) for name in ("x", "y")])
        table.check()
        if not len(table):
            raise InputError([f"{file}: it holds no node"])
        order = np.argsort(node)
        table = replace(table, frame=table.frame.iloc[order], number=table.number[order])
        return cls(table, node[order], xy[order])


_NODE = ("node", "x", "y")


def _node_lines(file: str | Path) -> Table:
    """Read rows of text; a first line that begins with a letter is a header."""
    lines = lines_of(file)
    first = next(lines, None)
    if first is None:
        raise InputError([f"{file}: it is empty"])
    rows = lines if _LETTER.match(first.text) else chain((first,), lines)
    rule = f"a node must have 3 fields ({' '.join(_NODE)}), separated by blanks or tabs"
    return table_of(fields_of(rows), _NODE, file=str(file), rule=rule)


def _features(text: str, file: str) -> Table:
    """Read GeoJSON points from a feature collection or a list of features."""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError([f"{file}: cannot be read as GeoJSON: {error}"]) from None
    features = read.get("features") if isinstance(read, dict) else read
    if not isinstance(features, list):
        raise InputError([f'{file}: GeoJSON must have a list of "features"'])
    rule = "must have a Point as its geometry, with a number of the node and two coordinates"
    return table_of(enumerate(map(_feature, features), start=1), _NODE, file=file, rule=rule, unit="feature")


def _feature(feature: Any) -> list[str]:
    """Return the node number and the coordinates of a feature; nothing if it is no point."""
    feature = feature if isinstance(feature, dict) else {}
    properties, geometry = feature.get("properties"), feature.get("geometry")
    named = {key.lower(): value for key, value in properties.items()} if isinstance(properties, dict) else {}
    identifier = next((named[key] for key in _IDENTIFIERS if key in named), feature.get("id"))
    point = geometry.get("coordinates") if isinstance(geometry, dict) and geometry.get("type") == "Point" else None
    return [str(value) for value in (identifier, *point[:2])] if isinstance(point, list) and len(point) > 1 else []
