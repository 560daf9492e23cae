"""Turn restrictions, signals, signs and turn lanes of OpenStreetMap, as a table of movements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import shapely

from simulator.files.messages import counted
from simulator.roads.junctions import HEADING_M, headings_deg
from simulator.roads.movements import movement_table, unnamed_turns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from simulator.formats.osm.streets import Street

    Tags = Mapping[str, str]

CONTROLS = frozenset({"traffic_signals", "stop", "give_way"})
"""Values of ``highway`` of nodes that control a junction."""
_NEAR_M = 50.0
"""A signal or sign on a link controls the junction at its end if it is at most so far from it."""
_STRAIGHT_DEG, _SLIGHT_DEG, _BACK_DEG = 30.0, 60.0, 150.0
_MOTORCARS = ("motorcar", "motor_vehicle")
_KINDS = {
    "left_turn": {"left", "slight_left"},
    "right_turn": {"right", "slight_right"},
    "straight_on": {"straight", "slight_left", "slight_right"},
    "u_turn": {"u_turn"},
}
_LANE_MARKS = {
    "through": {"straight", "slight_left", "slight_right"},
    "left": {"left", "slight_left", "u_turn"},
    "slight_left": {"slight_left", "straight"},
    "sharp_left": {"left", "u_turn"},
    "right": {"right", "slight_right"},
    "slight_right": {"slight_right", "straight"},
    "sharp_right": {"right"},
    "reverse": {"u_turn"},
}
"""Turns that a mark of ``turn:lanes`` allows; any other mark, or none, allows all."""


class Restriction(NamedTuple):
    """A turn restriction: its kind, as "no_left_turn", and the ids of its members; no node if it is over a way."""

    kind: str
    from_ways: frozenset[int]
    node: int | None
    to_ways: frozenset[int]

    @classmethod
    def from_relation(cls, relation: Any) -> Restriction | None:
        """Read a relation of pyosmium; None if it does not restrict cars at all hours."""
        tags = relation.tags
        kind = next(
            (tags[key] for key in (*(f"restriction:{by}" for by in _MOTORCARS), "restriction") if key in tags), ""
        )
        exempt = {by.strip() for by in tags.get("except", "").split(";")}
        if not kind.startswith(("no_", "only_")) or exempt.intersection(_MOTORCARS):
            return None
        via = [member for member in relation.members if member.role == "via"]
        ways = {
            role: frozenset(member.ref for member in relation.members if member.role == role and member.type == "w")
            for role in ("from", "to")
        }
        node = via[0].ref if len(via) == 1 and via[0].type == "n" else None
        return cls(kind, ways["from"], node, ways["to"])


class OsmLink(NamedTuple):
    """A link between junctions, with what its movements depend on."""

    shape: shapely.LineString
    first: Street
    last: Street
    lanes: int
    nodes: Sequence[int | None]
    """Ids of the nodes along `shape`, which may be None for the ends of a road that was split."""
    left_hand: bool = False
    """Whether traffic drives on the left."""


def movements_of(
    table: pd.DataFrame, links: Sequence[OsmLink], controls: Mapping[int, Tags], restrictions: Sequence[Restriction]
) -> tuple[pd.DataFrame, list[str]]:
    """Make the table of movements of a street network.

    Parameters
    ----------
    table
        Links, as in :class:`~simulator.roads.raw_network.RawNetwork`.
    links
        The same links, in metres.
    controls
        Tags of each node that has a signal or a sign.
    restrictions
        Turn restrictions for cars.

    Returns
    -------
    movements : pandas.DataFrame
        All turns at each node that has a signal, a sign, a restriction, the entry of a roundabout, or a link with lanes
        for turns that fit its number of lanes. The key of a signal is the id of the node.
    remarks : list of str
        A sentence with the numbers of what was read and left out; none if there is nothing.
    """
    turns = unnamed_turns(table, ())
    kind = _turn_kinds(links, turns)
    closed, unplaced = _closed(links, turns, kind, restrictions)
    controlled = [_control(link, controls) for link in links]
    lanes = [_turn_lanes(link) for link in links]
    arriving: dict[int, list[int]] = {}
    for node, link in dict.fromkeys((node, link) for node, link, _ in turns):
        arriving.setdefault(node, []).append(link)
    entries = [
        link
        for at in arriving.values()
        if any(links[link].last.roundabout for link in at)
        for link in at
        if not links[link].last.roundabout and controlled[link] is None
    ]
    for link in entries:
        controlled[link] = "give_way"
    signed = {node for node, at in arriving.items() if any(controlled[link] in _SIGNS for link in at)}
    stated = {node for node, at in arriving.items() if any(controlled[link] or lanes[link] for link in at)}
    stated |= {node for node, link, following in turns if (link, following) in closed}
    rows = []
    for node, link, following in turns:
        if node not in stated:
            continue
        control, turn = controlled[link], kind[link, following]
        row = {
            "node": node,
            "from_link": link,
            "to_link": following,
            "allowed": (link, following) not in closed,
            "turn": turn,
            "right_of_way": _SIGNS.get(control or "", "priority" if node in signed else None),
            "signal": links[link].nodes[-1] if control == "traffic_signals" else None,
        }
        rows += [row | {"from_lane": lane} for lane, allows in enumerate(lanes[link]) if turn in allows] or [row]
    signs, lost = sum(control in _SIGNS for control in controlled), "left out, not at a node of"
    counts = (
        (len(closed), "turn barred by restrictions", "turns barred by restrictions"),
        (unplaced, f"restriction {lost} its links", f"restrictions {lost} their links"),
        (len({row["signal"] for row in rows} - {None}), "junction with signals", "junctions with signals"),
        (signs - len(entries), "link with a sign", "links with a stop or give-way sign"),
        (len(entries), "entry of a roundabout", "entries of roundabouts"),
        (sum(map(bool, lanes)), "link with lanes for turns", "links with lanes for turns"),
    )
    words = ", ".join(counted(number, one, several) for number, one, several in counts if number)
    remarks = [f"junctions: {words}; routes keep to the turns, fleet and agents to the others too"] if words else []
    return movement_table(rows), remarks


_SIGNS = {"stop": "stop", "give_way": "yield", "all": "all_way_stop"}


def _turn_kinds(links: Sequence[OsmLink], turns: Sequence[tuple[int, int, int]]) -> dict[tuple[int, int], str]:
    """Classify turns by the angle between the last metres of one link and the first metres of the next."""
    shapes = np.array([link.shape for link in links], dtype=object)
    leaving = headings_deg(shapes, 0.0, HEADING_M)
    arriving = headings_deg(shapes, -HEADING_M, shapely.length(shapes))
    kinds = {}
    for _, link, following in turns:
        angle = (leaving[following] - arriving[link] + 180) % 360 - 180  # counter-clockwise
        side = "left" if angle > 0 else "right"
        if abs(angle) > _BACK_DEG and links[following].nodes[-1] == links[link].nodes[0]:
            kinds[link, following] = "u_turn"
        elif abs(angle) < _STRAIGHT_DEG:
            kinds[link, following] = "straight"
        else:
            kinds[link, following] = side if abs(angle) > _SLIGHT_DEG else f"slight_{side}"
    return kinds


def _closed(
    links: Sequence[OsmLink],
    turns: Sequence[tuple[int, int, int]],
    kind: Mapping[tuple[int, int], str],
    restrictions: Sequence[Restriction],
) -> tuple[set[tuple[int, int]], int]:
    """Return the pairs of links that restrictions bar, and the number of restrictions that no pair fits."""
    at_node: dict[int | None, list[tuple[int, int]]] = {}
    for _, link, following in turns:
        at_node.setdefault(links[link].nodes[-1], []).append((link, following))
    closed, unplaced = set(), 0
    for restriction in restrictions:
        before = [
            (link, following)
            for link, following in (at_node.get(restriction.node, ()) if restriction.node is not None else ())
            if int(links[link].last.way) in restriction.from_ways
        ]
        named = [pair for pair in before if int(links[pair[1]].first.way) in restriction.to_ways]
        # Of a way that continues over the node, both sides have its id.
        fitting = _KINDS.get(restriction.kind.partition("_")[2], set())
        named = [pair for pair in named if kind[pair] in fitting] or named
        unplaced += not named
        if restriction.kind.startswith("no_"):
            closed.update(named)
        elif named:
            only_from = {link for link, _ in named}
            closed.update(pair for pair in before if pair[0] in only_from and pair not in named)
    return closed, unplaced


def _control(link: OsmLink, controls: Mapping[int, Tags]) -> str | None:
    """Return "traffic_signals", or a key of `_SIGNS`, for the control of a link at its end; None without one."""
    length_m = link.shape.length
    found = set()
    for node, point in zip(link.nodes[1:], shapely.points(link.shape.coords[1:]), strict=True):
        if node is None or node not in controls:
            continue
        tags = controls[node]
        value = tags["highway"]
        if node == link.nodes[-1]:
            # A sign at the junction itself names no approach, unless it is one for all.
            found.add({"traffic_signals": value, "stop": "all"}.get(value))
            continue
        to_end_m = length_m - shapely.line_locate_point(link.shape, point)
        facing = tags.get("traffic_signals:direction", tags.get("direction"))
        own = "forward" if link.last.along else "backward"
        applies = facing == own if facing in ("forward", "backward") else to_end_m <= length_m / 2
        if applies and to_end_m <= _NEAR_M:
            found.add("all" if value == "stop" and tags.get("stop") == "all" else value)
    return next((value for value in ("traffic_signals", *_SIGNS) if value in found), None)


def _turn_lanes(link: OsmLink) -> list[set[str]]:
    """Return the turns that each lane allows at the end of a link, from the edge of the road; empty if unknown."""
    marks = link.last.turn_lanes.split("|") if link.last.turn_lanes else []
    if len(marks) != link.lanes:
        return []
    every = set.union(*_LANE_MARKS.values())
    return [
        set.union(*(_LANE_MARKS.get(mark.strip(), every) for mark in lane.split(";")))
        for lane in marks[:: 1 if link.left_hand else -1]
    ]
