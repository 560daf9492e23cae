"""Rows of a GMNS link table, converted to metres, metres per second, lanes and vehicles per hour and lane."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.files.messages import counted
from simulator.roads.class_defaults import class_defaults, filled_in_words
from simulator.roads.plausibility import speed_doubts
from simulator.roads.read_report import DroppedRows, FilledDefault, LinkValues, usable_rows
from simulator.roads.readers.gmns_tables import own_values
from simulator.roads.readers.tables import unique_ids
from simulator.roads.schema import MOST_LANES, node_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from simulator.files.tables import Table

LINK_COLUMNS = ("from_node_id", "to_node_id")
LINK_OPTIONAL = (
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
        Rows of the nodes from and to which each link leads, shape (links,).
    usable
        Links that are roads for the requested modes and lead from one node to another, bool, shape (links,).
    two_way
        Undirected links, which become one road for each direction, bool, shape (links,).
    dir_flag
        1 where the geometry runs from the first node to the last, -1 where it runs in the opposite direction, 0 where
        the table does not state it.
    numbers
        ``length``, ``free_speed``, ``lanes``, ``capacity`` (per lane), NaN where there is none, each of shape (links,).
    classes
        ``facility_type``, None where the table has no value.
    own
        Attributes from the columns that this project adds.
    dropped
        Rows that are not usable, by reason.
    undirected_unsaid
        Number of rows that do not state whether they are directed, and are taken as directed.
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
            A table with ``from_node_id`` and ``to_node_id``, and any of the optional columns.
        nodes
            Row of each node by identifier.
        modes
            Links whose ``allowed_uses`` name one of these are roads, and so are links whose ``allowed_uses`` are empty.

        Returns
        -------
        GmnsLinks
            Every row, at least one of them usable.

        Raises
        ------
        InputError
            If a node is unknown, a ``link_id`` occurs twice, or a value is not allowed in its column, naming file,
            rows, rule and value; or if no link can be used.
        """
        ends = []
        for name in LINK_COLUMNS:
            rows = np.array([nodes.get(node or "", -1) for node in node_ids(table.values(name))], dtype=np.int64)
            table.refuse(name, rows < 0, "in the node table")
            ends.append(rows)
        if table.has("link_id"):
            unique_ids(table, "link_id")
        directed = [None if text is None else text.lower() for text in table.texts("directed")]
        junk = np.array([text is not None and text not in _YES | _NO for text in directed])
        table.refuse("directed", junk, "true or false")
        flags = table.texts("dir_flag")
        known = {None: 0, "1": 1, "1.0": 1, "+1": 1, "-1": -1, "-1.0": -1, "0": 0, "0.0": 0}
        table.refuse("dir_flag", np.array([flag not in known for flag in flags]), "1, -1 or 0")
        numbers = {
            name: table.checked_numbers(name, at_least=0, optional=True)
            for name in ("length", "free_speed", "capacity")
        }
        numbers["lanes"] = table.checked_numbers("lanes", at_least=0, at_most=MOST_LANES, whole=True, optional=True)
        own = own_values(table, _RESERVED)
        table.check()
        usable, dropped = _usable(table, ends[0] == ends[1], modes)
        return cls(
            table=table,
            from_row=ends[0],
            to_row=ends[1],
            usable=usable,
            two_way=np.array([text in _NO for text in directed]),
            dir_flag=np.array([known[flag] for flag in flags], dtype=np.int64),
            numbers=numbers,
            classes=table.texts("facility_type"),
            own=own,
            dropped=dropped,
            undirected_unsaid=sum(text is None for text in directed),
        )


def _usable(
    table: Table, loops: NDArray[np.bool_], modes: Sequence[str]
) -> tuple[NDArray[np.bool_], tuple[DroppedRows, ...]]:
    """Leave out links that are not roads for any of the modes, and links from a node to itself."""
    wanted = {mode.lower() for mode in modes}
    forbidden = np.array([_forbids(uses, wanted) for uses in table.texts("allowed_uses")])
    reasons = {
        f"allowed_uses names none of {', '.join(modes)}": forbidden,
        "it leads from a node to itself": loops,
    }
    return usable_rows(reasons, file=table.file, what="link")


def _forbids(uses: str | None, wanted: set[str]) -> bool:
    """Return whether a list of uses, by commas or semicolons, names no wanted one; an empty list forbids nothing."""
    named = {use.strip().lower() for use in re.split(r"[;,|]", uses or "")} - {""}
    return bool(named) and named.isdisjoint(wanted)


SHORTEST_M = 1.0
"""Length of a link that has neither a length nor a shape, and whose nodes have the same position."""
MOST_LIKELY_VPH = 3000.0
"""Vehicles per hour and lane; a higher capacity is probably not stated per lane and hour."""


def link_values(
    links: GmnsLinks,
    *,
    shape_m: NDArray[np.float64],
    straight_m: NDArray[np.float64],
    length_m: float,
    speed_mps: float,
    default_speed_mps: float,
    default_lanes: int,
    capacity_vph: float,
) -> LinkValues:
    """Convert the numbers of usable links to the units of the schema and fill in missing ones.

    A length that is missing or 0 is replaced by that of the link's shape, else by the straight distance between its
    nodes if that is at least 1 m, else by 1 m. A speed, a number of lanes or a capacity that is missing or 0 is
    replaced by the default of the class of road (:mod:`simulator.roads.class_defaults`), or by the caller's default
    if the class has none.

    Parameters
    ----------
    links
        The links as read.
    shape_m
        Metres of each usable link's shape, NaN where it has none, shape (usable links,).
    straight_m
        Metres between the nodes of each usable link, shape (usable links,).
    length_m, speed_mps
        One unit of the table's lengths in metres, and of its speeds in metres per second.
    default_speed_mps, default_lanes, capacity_vph
        Defaults where the class of road has none.

    Returns
    -------
    LinkValues
        ``length_m``, ``speed_mps``, ``lanes``, ``capacity_vph`` (per lane), all above 0, in the order of the rows.
    """
    given = {name: values[links.usable] for name, values in links.numbers.items()}
    classes = [links.classes[row] for row in np.flatnonzero(links.usable).tolist()]
    with np.errstate(over="ignore"):
        metres, defaults = _lengths(given["length"] * length_m, shape_m, straight_m)
    known = [class_defaults(kind) for kind in classes]
    columns, remarks = {"length_m": metres}, []
    for ours, theirs, unit, default, shown in (
        ("speed_mps", "free_speed", speed_mps, default_speed_mps, "{:g} m/s"),
        ("lanes", "lanes", 1.0, float(default_lanes), "{:g}"),
        ("capacity_vph", "capacity", 1.0, capacity_vph, "{:g} vehicles/h"),
    ):
        values = given[theirs] * unit
        by_class = [default if taken is None else float(getattr(taken, ours)) for taken in known]
        missing = ~(values > 0)
        columns[ours] = np.where(missing, by_class, values)
        filled = [(classes[row], shown.format(by_class[row])) for row in np.flatnonzero(missing).tolist()]
        words = filled_in_words(ours, filled, links=len(classes))
        if words is not None:
            remarks.append(f"{links.table.file}: {words}")
    high = int((columns["capacity_vph"] > MOST_LIKELY_VPH).sum())
    given_mps = np.where(given["free_speed"] > 0, columns["speed_mps"], np.nan)
    doubts: list[str] = [*speed_doubts(given_mps, metres, file=links.table.file)]
    if high:
        of_all = counted(len(classes), "link")
        words = f"capacity is above {MOST_LIKELY_VPH:,.0f} vehicles/h per lane in {high:,} of {of_all}"
        doubts.append(f"{links.table.file}: {words}: is it the capacity of a whole link, or per day?")
    return LinkValues(columns, tuple(defaults), tuple(remarks), tuple(doubts))


def _lengths(
    given_m: NDArray[np.float64], shape_m: NDArray[np.float64], straight_m: NDArray[np.float64]
) -> tuple[NDArray[np.float64], list[FilledDefault]]:
    """Return lengths as given, else of shapes, else straight distances, else `SHORTEST_M`, and what was filled in."""
    metres, defaults = given_m.copy(), []
    for value, words in (
        (shape_m, "the length of its shape"),
        (np.where(straight_m >= SHORTEST_M, straight_m, np.nan), "the straight distance between its nodes"),
        (np.full(len(metres), SHORTEST_M), f"{SHORTEST_M:g} m"),
    ):
        filled = ~(metres > 0) & (value > 0)
        metres[filled] = value[filled]
        if filled.any():
            defaults.append(FilledDefault("length_m", words, int(filled.sum())))
    return metres, defaults
