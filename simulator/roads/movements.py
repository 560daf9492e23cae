"""Movements over junctions and the green windows of their signals, as tables that follow the links of a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from numpy.typing import NDArray

MOVEMENT_COLUMNS = {
    "node": "object",
    "from_link": "int64",
    "to_link": "int64",
    "from_lane": "int64",
    "to_lane": "int64",
    "allowed": "bool",
    "turn": "object",
    "right_of_way": "object",
    "signal": "object",
    "group": "int64",
    "length_m": "float64",
    "speed_mps": "float64",
    "place": "int64",
    "yields_to": "object",
    "classes": "object",
}
"""Columns of movements. A row is a way from a lane of a link to a lane of the next link, over `node`.

Lanes are counted from the edge of the road, from 0: from the right, or from the left where traffic drives on the left;
-1 if the source does not state them, for any lane. `allowed` is False if no vehicle may make the turn. `turn` is one of
`TURNS` and `right_of_way` one of `RIGHTS_OF_WAY`, or None if unknown; at a signal, the right of way holds while the
signal is off. `signal` is the key of the signal, or None; `group` is the number of a group of it that has green at the
same times, or -1 if unknown. At a node that has rows, every turn that vehicles can make by its links has one; at other
nodes all turns are open.

`length_m` is the length of the path over the junction and `speed_mps` the speed allowed on it, NaN if unknown. `place`
is the number of the movement among those at its node, or -1 if unknown. `yields_to` is a tuple of the places at the
same node to which it yields unless a signal protects it, or None if unknown; a place that no row has belongs to a
movement for other vehicles, or to a link that the network does not have. `classes` has the vehicle classes to which the
movement is open, separated by blanks, or None if it is open to all.
"""
SIGNAL_COLUMNS = {
    "signal": "object",
    "group": "int64",
    "from_s": "float64",
    "to_s": "float64",
    "protected": "bool",
    "cycle_s": "float64",
    "offset_s": "float64",
    "actuated": "bool",
}
"""Columns of signals. A row is a green window of a group, seconds of the cycle; windows of a group do not overlap.

A signal may control several nodes. Second 0 of the cycle is at simulated time `offset_s`, and every `cycle_s` seconds
later. While `protected` is False, vehicles that have green yield to conflicting movements. If `actuated`, vehicles
change the times, and the table's times are nominal.
"""
TURNS = ("straight", "slight_left", "left", "slight_right", "right", "u_turn")
RIGHTS_OF_WAY = ("priority", "yield", "stop", "all_way_stop", "equal", "zipper")
"""What vehicles do at the junction; "equal" for priority of the vehicle from the right (in traffic on
the left, from the left), "zipper" for taking turns."""
_UNKNOWN = {"int64": -1, "float64": np.nan, "bool": True, "object": None}
UNKNOWN = {n: _UNKNOWN[kind] for n, kind in MOVEMENT_COLUMNS.items() if n not in {"node", "from_link", "to_link"}}
"""Values of a movement that mean that they are unknown, or not stated."""


def movement_table(rows: Iterable[Mapping[str, Any]] = ()) -> pd.DataFrame:
    """Return rows as a table with the columns and types of `MOVEMENT_COLUMNS`; what a row lacks is unknown."""
    return _table((UNKNOWN | {**row} for row in rows), MOVEMENT_COLUMNS)


def signal_table(rows: Iterable[Mapping[str, Any]] = ()) -> pd.DataFrame:
    """Return rows as a table with the columns and types of `SIGNAL_COLUMNS`."""
    return _table(rows, SIGNAL_COLUMNS)


def _table(rows: Iterable[Mapping[str, Any]], types: Mapping[str, str]) -> pd.DataFrame:
    listed = list(rows)
    return pd.DataFrame({name: pd.Series([row[name] for row in listed], dtype=kind) for name, kind in types.items()})


def is_open_to(movements: pd.DataFrame, vehicle_class: str) -> NDArray[np.bool_]:
    """Return whether each movement is open to a vehicle class, (movements,) bool."""
    listed = movements["classes"].tolist()
    return np.array([names is None or vehicle_class in names.split() for names in listed], dtype=np.bool_)


def are_places(value: object) -> bool:
    """Return whether a value of ``yields_to`` is unknown or a tuple of places."""
    return value is None or (isinstance(value, tuple) and all(type(place) is int and place >= 0 for place in value))


def unnamed_turns(links: pd.DataFrame, movements: Iterable[Mapping[str, Any]]) -> list[tuple[int, int, int]]:
    """List the turns from link to link that movements do not name.

    Parameters
    ----------
    links
        Links, as in :class:`~simulator.roads.raw_network.RawNetwork`.
    movements
        Rows of `MOVEMENT_COLUMNS`.

    Returns
    -------
    list of tuple of int
        Row of the node, label of the first link and of the second, in the order of the links.
    """
    named = {(row["node"], row["from_link"], row["to_link"]) for row in movements}
    two_way = links["two_way"] if "two_way" in links else [False] * len(links)
    leaving: dict[int, list[int]] = {}
    arriving = []
    for link, start, end, both in zip(links.index.tolist(), links["from"], links["to"], two_way, strict=True):
        for begin, last in ((start, end), (end, start)) if both else ((start, end),):
            leaving.setdefault(begin, []).append(link)
            arriving.append((last, link))
    turns = ((node, link, following) for node, link in arriving for following in leaving.get(node, ()))
    return [turn for turn in turns if turn not in named]


def renumbered(
    movements: pd.DataFrame,
    signals: pd.DataFrame,
    *,
    nodes: Mapping[Hashable, int],
    arriving: Mapping[tuple[int, Hashable], int],
    leaving: Mapping[tuple[int, Hashable], int],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Make the tables of a network from the tables of its files.

    Parameters
    ----------
    movements, signals
        As in :class:`~simulator.roads.raw_network.RawNetwork`, with the key of each node.
    nodes
        Key of each node of the network to its index.
    arriving, leaving
        Label of a link in the files, and the node at which it ends (arriving) or begins (leaving), to its id in the
        network. A two-way link has two entries in each.

    Returns
    -------
    movements : pandas.DataFrame
        Those whose two links are in the network, by their ids and sorted by them, with the index of each node.
    signals : pandas.DataFrame
        The groups that control one of these movements.
    """
    node = movements["node"].tolist()
    ids = {
        name: [of.get(key, -1) for key in zip(movements[name].tolist(), node, strict=True)]
        for name, of in (("from_link", arriving), ("to_link", leaving))
    }
    kept = movements.assign(node=[nodes.get(key, -1) for key in node], **ids)
    kept = kept[(kept["from_link"] >= 0) & (kept["to_link"] >= 0)]
    kept = kept.sort_values(["from_link", "to_link", "from_lane", "to_lane"], kind="stable", ignore_index=True)
    controlled = set(zip(kept["signal"], kept["group"], strict=True))
    groups = zip(signals["signal"], signals["group"], strict=True)
    wanted = np.array([group in controlled for group in groups], dtype=np.bool_)
    green = signals[wanted].sort_values(
        ["signal", "group", "from_s"], key=lambda column: column.map(str) if column.name == "signal" else column
    )
    return kept.astype({"node": "int64"}), green.reset_index(drop=True)
