"""Connections and programs of signals of a SUMO network, as tables of movements and green windows."""

from __future__ import annotations

from contextlib import suppress
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.files.errors import InputError
from simulator.roads.movements import movement_table, signal_table, unnamed_turns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pandas as pd

_TURNS = {
    "s": "straight",
    "L": "slight_left",
    "l": "left",
    "R": "slight_right",
    "r": "right",
    "t": "u_turn",
    "T": "u_turn",
}
_RIGHTS_OF_WAY = {
    "M": "priority",
    "O": "priority",
    "m": "yield",
    "o": "yield",
    "s": "stop",
    "w": "all_way_stop",
    "=": "equal",
    "Z": "zipper",
}
_PROTECTED = {"G": True, "O": True, "g": False, "o": False, "s": False}
"""States of a phase in which vehicles may drive, and whether without yielding."""
IGNORING = "ignoring"
"""SUMO's class of vehicles that may use every lane; here, every lane that some road vehicle may use."""
_NOT_ON_ROADS = {
    "pedestrian", "wheelchair", "tram", "rail", "rail_urban", "rail_electric", "rail_fast", "subway", "cable_car",
    "ship", "aircraft", "drone",
}  # fmt: skip
"""SUMO's classes of those who do not drive on roads."""
_UNREGULATED = ("unregulated", "traffic_light_unregulated")
"""Types of junctions at which SUMO lets no vehicle yield, and for which it writes no priorities."""


class InternalLanes:
    """Lanes within the junctions of a network, which sumolib leaves out."""

    def __init__(self) -> None:
        self._values: dict[str, tuple[float, float]] = {}
        self._following: dict[str, str] = {}
        self.left_hand = False
        """Whether traffic drives on the left."""

    def add(self, name: str, attributes: Mapping[str, str]) -> None:
        """Note the root, and an element that is an internal lane or connects one; faulty ones are unknown."""
        if name == "net":
            self.left_hand = attributes.get("lefthand", "").lower() in ("true", "1", "yes", "on", "t", "x")
        elif name == "lane" and attributes.get("id", "").startswith(":"):
            with suppress(KeyError, ValueError):
                length_m, speed_mps = float(attributes["length"]), float(attributes["speed"])
                if 0 <= length_m < np.inf and 0 < speed_mps < np.inf:
                    self._values[attributes["id"]] = length_m, speed_mps
        elif name == "connection" and attributes["from"].startswith(":"):
            self._following[f"{attributes['from']}_{attributes.get('fromLane')}"] = attributes.get("via", "")

    def path(self, lane: str) -> dict[str, float]:
        """Return the length and the least speed of the lanes from one on; nothing if one of them is unknown."""
        passed: list[str] = []
        while lane:
            if lane in passed or lane not in self._values:
                return {}
            passed.append(lane)
            lane = self._following.get(lane, "")
        if not passed:
            return {}
        lengths_m, speeds_mps = zip(*(self._values[lane] for lane in passed), strict=True)
        return {"length_m": sum(lengths_m), "speed_mps": min(speeds_mps)}


def usable_lanes(edge: Any, classes: Sequence[str]) -> list[Any]:
    """Return the lanes of an edge that one of the vehicle classes may use, from the edge of the road."""
    return [lane for lane in edge.getLanes() if any(_allows(lane, name) for name in classes)]


def _allows(lane: Any, vehicle_class: str) -> bool:
    if vehicle_class == IGNORING:
        return not lane.getPermissions() <= _NOT_ON_ROADS
    return bool(lane.allows(vehicle_class))


def movements_of(
    links: Sequence[Any], table: pd.DataFrame, classes: Sequence[str], rows: Mapping[str, int], internal: InternalLanes
) -> tuple[pd.DataFrame, int, int]:
    """Make the table of movements of the edges that became links.

    Parameters
    ----------
    links
        The edges of sumolib.
    table
        Their links, in the same order.
    classes
        SUMO's vehicle classes; a link has the lanes that one of them may use.
    rows
        Id of a junction to its row.
    internal
        The lanes within junctions.

    Returns
    -------
    movements : pandas.DataFrame
        A row for each connection of two lanes, and one, not allowed, for each turn without a connection.
    closed, turns : int
        Numbers of turns from link to link without a connection, and of all turns.
    """
    number = {edge.getID(): link for link, edge in enumerate(links)}
    lane_of = {lane.getID(): place for edge in links for place, lane in enumerate(usable_lanes(edge, classes))}
    priorities: dict[Any, dict[str, Any]] = {}
    for junction in dict.fromkeys(edge.getToNode() for edge in links):
        priorities |= _priorities(junction)
    found = [
        {
            "node": rows[edge.getToNode().getID()],
            "from_link": link,
            "to_link": number[following.getID()],
            "from_lane": lane_of[connection.getFromLane().getID()],
            "to_lane": lane_of[connection.getToLane().getID()],
            "allowed": True,
            "turn": _TURNS.get(connection.getDirection()),
            "right_of_way": _RIGHTS_OF_WAY.get(connection.getState()),
            "signal": connection.getTLSID() or None,
            "group": connection.getTLLinkIndex(),
            **internal.path(connection.getViaLaneID()),
            "classes": None if len(allowed) == len(classes) else " ".join(allowed),
            **priorities.get(connection, {}),
        }
        for link, edge in enumerate(links)
        for following, connections in edge.getOutgoing().items()
        if following.getID() in number
        for connection in connections
        if (allowed := [name for name in classes if _is_open(connection, name)])
    ]
    unnamed = unnamed_turns(table, found)
    closed = [{"node": node, "from_link": a, "to_link": b, "allowed": False} for node, a, b in unnamed]
    connected = len({(row["from_link"], row["to_link"]) for row in found})
    return movement_table([*found, *closed]), len(closed), len(closed) + connected


def _is_open(connection: Any, vehicle_class: str) -> bool:
    ends = (connection.getFromLane(), connection.getToLane())
    return connection.allows(vehicle_class) and all(_allows(lane, vehicle_class) for lane in ends)


def _priorities(junction: Any) -> dict[Any, dict[str, Any]]:
    """Return place and priority of each connection of a junction, whatever its vehicle class.

    SUMO numbers connections by the order of the junction's lanes. The last letter of a ``response`` is for number 0.
    """
    lanes = {lane.getID(): lane for edge in junction.getIncoming() for lane in edge.getLanes()}
    connections = [
        connection
        for lane in junction._incLanes  # noqa: SLF001 - sumolib's getLinkIndex() searches them for each connection
        if lane in lanes
        for connection in lanes[lane].getOutgoing()
    ]
    responses = junction._prohibits  # noqa: SLF001 - sumolib has no other access
    free = () if junction.getType() in _UNREGULATED else None
    return {
        connection: {
            "place": place,
            "yields_to": tuple(at for at, letter in enumerate(reversed(responses[place])) if letter == "1")
            if place in responses
            else free,
        }
        for place, connection in enumerate(connections)
    }


def signals_of(net: Any, file: str) -> pd.DataFrame:
    """Make the table of green windows of the programs of a network.

    Parameters
    ----------
    net
        A network of sumolib, with the program of each signal that was loaded last.
    file
        Its file, in messages.

    Returns
    -------
    pandas.DataFrame
        Windows of every group, which is a link index in SUMO. A signal whose program has no phases is off and has none.

    Raises
    ------
    InputError
        If a duration is negative or not finite, an offset is not finite, a cycle has no length, or the states of phases
        differ in length or lack one for a connection.
    """
    faults, windows = [], []
    for signal in net.getTrafficLights():
        groups = max((index for *_, index in signal.getConnections()), default=-1) + 1
        for program in signal.getPrograms().values():
            found = list(_faults(program, groups))
            faults += [f"{file}: signal {signal.getID()!r}: {fault}" for fault in found]
            if not found:
                windows += [{"signal": signal.getID()} | window for window in _windows(program)]
    if faults:
        raise InputError(faults)
    return signal_table(windows)


def _faults(program: Any, groups: int) -> Iterator[str]:
    name, phases = f"program {program._id!r}", program.getPhases()  # noqa: SLF001 - sumolib has no other access
    if not np.isfinite(program.getOffset()):
        yield f"{name}: offset must be a finite number, got {program.getOffset()}"
    for number, phase in enumerate(phases):
        if not 0 <= phase.duration < np.inf:
            yield f"{name}: phase {number}: duration must be a finite number of at least 0, got {phase.duration}"
        if len(phase.state) != len(phases[0].state) or len(phase.state) < groups:
            wanted = max(groups, len(phases[0].state))
            yield f"{name}: phase {number}: state must have {wanted} letters, got {len(phase.state)}"
    if phases and not any(phase.duration for phase in phases):
        yield f"{name}: the durations of its phases must not all be 0"


def _windows(program: Any) -> Iterator[dict[str, Any]]:
    """Yield the green windows of each group: successive phases with the same right are one window."""
    phases = [phase for phase in program.getPhases() if phase.duration > 0]
    ends = list(accumulate(phase.duration for phase in phases))
    for group in range(len(phases[0].state) if phases else 0):
        rights = [_PROTECTED.get(phase.state[group]) for phase in phases]
        begin_s = 0.0
        for right, following, end_s in zip(rights, [*rights[1:], None], ends, strict=True):
            if right == following and end_s < ends[-1]:
                continue
            if right is not None:
                yield {
                    "group": group,
                    "from_s": begin_s,
                    "to_s": end_s,
                    "protected": right,
                    "cycle_s": ends[-1],
                    "offset_s": program.getOffset(),
                    "actuated": program.getType() != "static",
                }
            begin_s = end_s
