"""Rows of a GMNS link table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.roads.errors import RoadsError
from simulator.roads.gmns.tables import duplicated, numbers_of, own_values, texts_of
from simulator.roads.node_ids import node_ids
from simulator.roads.read_report import DroppedRows
from simulator.roads.schema import MOST_LANES
from simulator.roads.usable_rows import usable_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from simulator.roads.table import Table

COLUMNS = ("from_node_id", "to_node_id")
OPTIONAL = (
    "link_id",
    "directed",
    "geometry_id",
    "geometry",
    "dir_flag",
    "length",
    "facility_type",
    "capacity",
    "free_speed",
    "lanes",
    "allowed_uses",
)
_YES = frozenset({"1", "1.0", "true", "t", "yes", "y"})
_NO = frozenset({"0", "0.0", "false", "f", "no", "n"})
_RESERVED = frozenset({"length_m", "lanes", "capacity_vph", "geometry", "link"})


@dataclass(frozen=True, eq=False, repr=False)
class GmnsLinks:
    """Links in the order of their rows, in the units of the file.

    Parameters
    ----------
    table
        The rows.
    from_row, to_row
        Node rows each link leads from and to, shape (links,).
    usable
        Links that are roads for the modes asked for, from one node to another, shape (links,).
    two_way
        Undirected links: one road for each direction, shape (links,).
    dir_flag
        1 where the geometry runs from the first node to the last, -1 where against it, 0 where nobody says.
    numbers
        ``length``, ``free_speed``, ``lanes``, ``capacity`` (per lane), NaN where there is none, each of shape (links,).
    classes
        ``facility_type``, None where the table holds nothing.
    own
        Attributes from columns of our own.
    dropped
        Rows that are not usable, by reason.
    undirected_unsaid
        Rows that do not say whether they are directed, and are taken as directed.
    """

    table: Table
    from_row: NDArray[np.int64]
    to_row: NDArray[np.int64]
    usable: NDArray[np.bool_]
    two_way: NDArray[np.bool_]
    dir_flag: NDArray[np.int64]
    numbers: dict[str, NDArray[np.float64]]
    classes: list[str | None]
    own: list[dict[str, Any]]
    dropped: tuple[DroppedRows, ...]
    undirected_unsaid: int

    @classmethod
    def from_table(cls, table: Table, nodes: dict[str, int], *, modes: Sequence[str]) -> GmnsLinks:
        """Check a link table.

        Parameters
        ----------
        table
            With ``from_node_id`` and ``to_node_id``, and any of the optional columns.
        nodes
            Row of each node by identifier.
        modes
            Links whose ``allowed_uses`` name one of these are roads; those that name none are too.

        Returns
        -------
        GmnsLinks
            Every row, at least one of them usable.

        Raises
        ------
        RoadsError
            Naming file, rows, rule and value: an unknown node, a ``link_id`` twice there, a value that is none of its
            column's; or no link that can be used.
        """
        faults = []
        ends = []
        for name in COLUMNS:
            rows = np.array([nodes.get(node or "", -1) for node in node_ids(table.values(name))], dtype=np.int64)
            faults += table.faults(name, rows < 0, "in the node table")
            ends.append(rows)
        if table.has("link_id"):
            ids = node_ids(table.values("link_id"))
            faults += table.faults("link_id", np.array([identifier is None for identifier in ids]), "an identifier")
            faults += table.faults("link_id", duplicated(ids), "an identifier no other row has")
        directed = [None if text is None else text.lower() for text in texts_of(table, "directed")]
        junk = np.array([text is not None and text not in _YES | _NO for text in directed])
        faults += table.faults("directed", junk, "true or false")
        flags = texts_of(table, "dir_flag")
        known = {None: 0, "1": 1, "1.0": 1, "+1": 1, "-1": -1, "-1.0": -1, "0": 0, "0.0": 0}
        faults += table.faults("dir_flag", np.array([flag not in known for flag in flags]), "1, -1 or 0")
        numbers = {}
        for name in ("length", "free_speed", "lanes", "capacity"):
            numbers[name], said = numbers_of(table, name)
            faults += said
        lanes = numbers["lanes"]
        with np.errstate(invalid="ignore"):
            odd = np.isfinite(lanes) & (lanes >= 0) & ((lanes % 1 != 0) | (lanes > MOST_LANES))
        faults += table.faults("lanes", odd, f"a whole number, 0 … {MOST_LANES:,}")
        own, own_faults = own_values(table, _RESERVED)
        if faults + own_faults:
            raise RoadsError(faults + own_faults)
        usable, dropped = _usable(table, ends[0] == ends[1], modes)
        return cls(
            table=table,
            from_row=ends[0],
            to_row=ends[1],
            usable=usable,
            two_way=np.array([text in _NO for text in directed]),
            dir_flag=np.array([known[flag] for flag in flags], dtype=np.int64),
            numbers=numbers,
            classes=texts_of(table, "facility_type"),
            own=own,
            dropped=dropped,
            undirected_unsaid=sum(text is None for text in directed),
        )


def _usable(
    table: Table, loops: NDArray[np.bool_], modes: Sequence[str]
) -> tuple[NDArray[np.bool_], tuple[DroppedRows, ...]]:
    """Leave out what is no road for any of the modes, and what leads nowhere."""
    wanted = {mode.lower() for mode in modes}
    forbidden = np.array([_forbids(uses, wanted) for uses in texts_of(table, "allowed_uses")])
    reasons = {
        f"allowed_uses names none of {', '.join(modes)}": forbidden,
        "it leads from a node to itself": loops,
    }
    return usable_rows(reasons, file=table.file, what="link")


def _forbids(uses: str | None, wanted: set[str]) -> bool:
    """Say whether a list of uses, by commas or semicolons, names none that is wanted; an empty one allows all."""
    named = {use.strip().lower() for use in re.split(r"[;,|]", uses or "")} - {""}
    return bool(named) and named.isdisjoint(wanted)
