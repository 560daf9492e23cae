"""What a network does not state about its junctions: lanes of turns, paths, priorities and signal programs, by default.

Traffic is on the right in what follows. Where it drives on the left (:mod:`simulator.roads.driving_side`), a mirrored
network is completed, so that left and right change places in all rules. The defaults are:

Turns
    All, but those that the network does not allow and those at a node that no route passes through. A turn by less than
    45 degrees is straight, if it is the straightest of its link; others are to a side. A turn back to the node from
    which the link comes is a U-turn from 135 degrees on.
Lanes
    Right turns from the rightmost lane, left turns and U-turns from the leftmost, straight from all lanes; but where a
    link has three lanes or more, the lane of left turns is for them only, and from four lanes on so is the lane of
    right turns. Without a straight turn, right and left turns share the lanes. A vehicle keeps to its side of the road;
    straight movements reach all lanes of the next link.
Path
    An arc from the end of a lane to the begin of the next. Where links meet at the node itself, they contain the
    junction, and the length of the path is 0. Its speed is the mean of both links' speeds, and on paths above 1 m at
    most sqrt(5.5 m/s^2 times radius), where the radius is 0.8 m more than the length over the angle beyond 15 degrees.
    It is the rule of SUMO's netconvert (``junctions.limit-turn-speed``), after A. Odhams and D. Cole, Models of Driver
    Speed Choice in Curves (2004).
Priority
    Of two movements whose paths cross or merge into a lane, a U-turn yields; else the movement from the link with less
    right of way yields; else the movement that has the other on its right. But between links that face each other, and
    between links of 49 km/h or more, a turn yields to a straight movement, and a left turn to a right turn, before
    that. Right of way follows the network's signs, or else the class of road, then speed, then lanes. Where three links
    of 49 km/h or more are equal in these, the two that continue each other have right of way over the third. At signals
    all links are equal. From this speed on netconvert makes such junctions.
Signals
    A signal without any times has two phases, one for approaches along the main road of its junction and one for all
    others: 40 s of green each, then 3 s of yellow and 2 s of red for all. A cycle has 90 s and begins at 0 s. Movements
    that yield to another one of their phase are not protected. If no approach crosses the main road, as at crossings of
    pedestrians, it keeps green. Approaches without signal yield to those with one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import shapely

from simulator.files.messages import Note, counted
from simulator.roads.class_defaults import CLASS_DEFAULTS
from simulator.roads.movements import MOVEMENT_COLUMNS, signal_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simulator.roads.network import RoadNetwork

HEADING_M = 10.0
_STRAIGHT_DEG, _BACK_DEG, _BEND_DEG = 45.0, 135.0, 15.0
_LANE_M, _CORNER_M = 3.2, 4.0
"""Width of a lane, and distance of a junction's border from the crossing road, as in SUMO."""
_GAP_M = 1.0
_TURN_MPS2 = 5.5
_GREEN_S, _BETWEEN_S = 40.0, 5.0
_PRIORITY_MPS = 49 / 3.6
_SIGN_RANKS = {"priority": 3, "zipper": 3, "equal": 2, "all_way_stop": 2, "yield": 1, "stop": 0}


def complete_junctions(roads: RoadNetwork) -> tuple[pd.DataFrame, pd.DataFrame, list[Note]]:
    """Complete the movements and signals of a network by the defaults of this module.

    Parameters
    ----------
    roads
        Any network.

    Returns
    -------
    movements : pandas.DataFrame
        Columns of :data:`~simulator.roads.movements.MOVEMENT_COLUMNS`, sorted by ``node`` and ``place``. A row is a
        movement that vehicles may make, from a lane of a link to a lane of the next: ``from_lane`` and ``to_lane`` are
        never -1, ``turn``, ``right_of_way``, ``length_m``, ``speed_mps``, ``place`` and ``yields_to`` always known, and
        ``allowed`` is always True. ``group`` is -1 where there is no signal.
    signals : pandas.DataFrame
        The network's signals, and the programs of those that have none.
    notes : list of Note
        How many of what were taken by default.
    """
    movements, signals, notes = _completed(_mirrored(roads) if roads.side.left else roads)
    if roads.side.left:
        movements["turn"] = movements["turn"].map(lambda turn: _IMAGES.get(turn, turn))
    if notes and roads.side.why:
        notes.append(Note("driving_side", f"junctions: {roads.side}"))
    return movements, signals, notes


def _completed(roads: RoadNetwork) -> tuple[pd.DataFrame, pd.DataFrame, list[Note]]:
    """Complete the movements and signals of a network on which traffic drives on the right."""
    lines = roads.shapes.lines()
    arriving = headings_deg(lines, -HEADING_M, shapely.length(lines))
    leaving = headings_deg(lines, 0.0, HEADING_M)
    rows = _lanes(roads, _turns(roads, arriving, leaving))
    unknown = rows[["length_m", "speed_mps"]].isna().any(axis=1)
    ends = _Ends(roads, rows, arriving, leaving)
    length_m, speed_mps = ends.paths(rows["angle"].to_numpy())
    rows["length_m"] = rows["length_m"].fillna(pd.Series(length_m))
    rows["speed_mps"] = rows["speed_mps"].fillna(pd.Series(speed_mps))
    signalled = np.bincount(rows["node"], rows["signal"].notna(), len(roads.node_names)) > 0
    rank = _ranks(roads, rows, arriving)
    priority = _yield(roads, rows, ends, np.where(signalled[rows["node"]], rows["signal"].notna(), rank))
    rows["right_of_way"] = rows["right_of_way"].fillna(pd.Series(_rights(rows, rank), dtype="object"))
    signals, planned = _plans(roads, rows, rank, arriving)
    counts = (
        (int(rows["laneless"].sum()), "lane of a turn", "lanes of turns"),
        (int(unknown.sum()), "path over a junction", "paths over junctions"),
        (priority, "priority of a movement", "priorities of movements"),
        (planned, "signal program of 90 s", "signal programs of 90 s"),
    )
    words = ", ".join(counted(number, one, several) for number, one, several in counts if number)
    notes = [Note("junction_defaults", f"junctions: by default, {words}")] if words else []
    return rows[[*MOVEMENT_COLUMNS]].astype(MOVEMENT_COLUMNS | {"node": "int64"}), signals, notes


_IMAGES = {"left": "right", "right": "left", "slight_left": "slight_right", "slight_right": "slight_left"}


def _mirrored(roads: RoadNetwork) -> RoadNetwork:
    """Return a network on which traffic drives on the left as one on which it drives on the right, west for east."""
    west, shapes = np.array([-1.0, 1.0]), roads.shapes
    points = {name: getattr(shapes, name) * west + 0.0 for name in ("start_xy", "end_xy", "vertices")}
    return replace(
        roads,
        node_xy=roads.node_xy * west + 0.0,
        shapes=replace(shapes, **points),
        movements=roads.movements.assign(turn=roads.movements["turn"].map(lambda turn: _IMAGES.get(turn, turn))),
    )


def headings_deg(
    lines: NDArray[np.object_], from_m: float | NDArray[np.float64], to_m: float | NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the direction from one place along each line to another, degrees counter-clockwise from east."""
    begin, end = (shapely.get_coordinates(shapely.line_interpolate_point(lines, at)) for at in (from_m, to_m))
    return np.asarray(np.degrees(np.arctan2(*(end - begin).T[::-1])))


def _wrapped(angle: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return angles from -180 to 180 degrees."""
    return (angle + 180) % 360 - 180


def _turns(roads: RoadNetwork, arriving: NDArray[np.float64], leaving: NDArray[np.float64]) -> pd.DataFrame:
    """Return all open turns with the values of the network's movements, a row for each pair of lanes it states."""
    links = roads.links
    number = np.diff(links.first_out)[links.to_node]
    before = np.repeat(np.arange(len(links)), number)
    after = np.arange(len(before)) - np.repeat(np.cumsum(number) - number, number)
    after += links.first_out[links.to_node[before]]
    angle = _wrapped(leaving[after] - arriving[before])
    node = links.to_node[before]
    back = (links.to_node[after] == links.from_node[before]) & (np.abs(angle) > _BACK_DEG)
    turns = pd.DataFrame({"node": node, "from_link": before, "to_link": after, "angle": angle, "back": back})
    known = roads.movements.drop(columns="node")
    stated = np.zeros(len(roads.node_names), dtype=np.bool_)
    stated[roads.movements["node"].to_numpy(dtype=np.int64)] = True
    turns = turns.merge(known, how="left", on=["from_link", "to_link"])
    is_open = np.where(stated[turns["node"]], turns["allowed"].eq(True), roads.through[turns["node"]])  # noqa: FBT003
    return turns[is_open].reset_index(drop=True)


_RIGHT, _STRAIGHT, _LEFT, _BACK = range(4)
_NAMES = np.array(["right", "straight", "left", "u_turn"], dtype=object)
_SIDES = {"slight_right": _RIGHT, "right": _RIGHT, "straight": _STRAIGHT, "slight_left": _LEFT, "left": _LEFT}


def _lanes(roads: RoadNetwork, turns: pd.DataFrame) -> pd.DataFrame:
    """Classify turns, and make a row for each lane where the network states none."""
    link, angle = turns["from_link"].to_numpy(), turns["angle"].to_numpy()
    links = len(roads.links)
    deviation = np.where(turns["back"], 180.0, np.abs(angle))
    least = np.full(links, 180.0)
    np.minimum.at(least, link, deviation)
    straight = (deviation <= least[link]) & (deviation < _STRAIGHT_DEG)
    side = np.select([turns["back"], straight, angle < 0], [_BACK, _STRAIGHT, _RIGHT], _LEFT)
    stated = turns["turn"].map(_SIDES | {"u_turn": _BACK})
    side = stated.fillna(pd.Series(side)).to_numpy(dtype=np.int64)
    has = np.zeros((4, links), dtype=np.bool_)
    has[side, link] = True
    right, straight, left = has[:_BACK, link]
    lanes, after = (roads.links.lanes[turns[name].to_numpy()].astype(np.int64) for name in ("from_link", "to_link"))
    half = (lanes + 1) // 2
    first = np.select(
        [side == _STRAIGHT, side == _RIGHT, straight, right],
        [right & (lanes > 3), 0, lanes - 1, np.minimum(half, lanes - 1)],
        0,
    )
    last = np.select(
        [side == _STRAIGHT, side != _RIGHT, straight, left],
        [lanes - 1 - (left & (lanes > 2)), lanes - 1, 0, half - 1],
        lanes - 1,
    )
    # Beside other turns, a U-turn has no lane of its own.
    first = np.where((side == _BACK) & (right | straight | left), lanes - 1, first)
    lane = turns["from_lane"].fillna(-1).to_numpy(dtype=np.int64)
    laneless = lane < 0
    width = last - first + 1
    copies = np.where(laneless, np.where(side == _STRAIGHT, np.maximum(width, after), width), 1)
    row = np.repeat(np.arange(len(turns)), copies)
    place = np.arange(len(row)) - np.repeat(np.cumsum(copies) - copies, copies)
    lane = np.where(laneless[row], first[row] + np.minimum(place, width[row] - 1), lane[row])
    to_lane = turns["to_lane"].fillna(-1).to_numpy(dtype=np.int64)[row]
    ahead = np.where(laneless[row], place, lane - first[row])
    from_left = after[row] - lanes[row] + lane
    kept = np.select([side[row] == _RIGHT, side[row] == _STRAIGHT], [lane, ahead], from_left)
    to_lane = np.where(to_lane < 0, np.clip(kept, 0, after[row] - 1), to_lane)
    rows = turns.iloc[row].reset_index(drop=True)
    rows["side"], rows["laneless"] = side[row], laneless[row]
    rows["turn"] = rows["turn"].fillna(pd.Series(_NAMES[rows["side"]], dtype="object"))
    rows["from_lane"], rows["to_lane"], rows["allowed"] = lane, to_lane, True
    rows["group"] = rows["group"].fillna(-1).astype(np.int64)
    rows["place"] = rows["place"].fillna(-1).astype(np.int64)
    rows["signal"] = rows["signal"].astype(object).where(rows["signal"].notna(), None)
    return rows.sort_values(["node", "place", "from_link", "from_lane", "angle", "to_lane"], ignore_index=True)


class _Ends:
    """Points at which movements begin and end, by lane, relative to their node, metres."""

    def __init__(
        self, roads: RoadNetwork, rows: pd.DataFrame, arriving: NDArray[np.float64], leaving: NDArray[np.float64]
    ) -> None:
        links, shapes = roads.links, roads.shapes
        centred = _two_way(roads)
        width_m = links.lanes * _LANE_M * np.where(centred, 2, 1)
        reach_m = np.zeros(len(roads.node_names))
        for node in (links.from_node, links.to_node):
            np.maximum.at(reach_m, node, width_m / 2 + _CORNER_M)
        points = []
        for end, heading, xy, node, back in (
            ("from", arriving, shapes.end_xy, links.to_node, -1),
            ("to", leaving, shapes.start_xy, links.from_node, 1),
        ):
            link, lane = rows[f"{end}_link"].to_numpy(), rows[f"{end}_lane"].to_numpy()
            ahead = np.column_stack((np.cos(np.radians(heading)), np.sin(np.radians(heading))))
            base = xy - roads.node_xy[node]
            near = np.hypot(*base.T) < _GAP_M
            base = np.where(near[:, None], back * reach_m[node, None] * ahead, base)
            to_right = np.column_stack((ahead[:, 1], -ahead[:, 0]))[link]
            offset_m = (np.where(centred[link], links.lanes[link], links.lanes[link] / 2) - lane - 0.5) * _LANE_M
            points.append(base[link] + to_right * offset_m[:, None])
        self.begin, self.end = points
        before, after = rows["from_link"].to_numpy(), rows["to_link"].to_numpy()
        self.has_path = np.hypot(*(shapes.start_xy[after] - shapes.end_xy[before]).T) > _GAP_M
        self.mean_mps = (links.speed_mps[before] + links.speed_mps[after]) / 2

    def paths(self, angle: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return length and speed of the path of each movement."""
        half = np.radians(np.maximum(np.abs(angle), 1.0)) / 2
        arc_m = np.hypot(*(self.end - self.begin).T) * half / np.sin(half)
        bend = np.radians(np.maximum(np.abs(angle) - _BEND_DEG, 1e-9))
        limit_mps = np.where(arc_m > _GAP_M, np.sqrt(_TURN_MPS2 * (arc_m / bend + _LANE_M / 4)), np.inf)
        return np.where(self.has_path, arc_m, 0.0), np.minimum(self.mean_mps, limit_mps)

    def around(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the directions of the points from the node, degrees counter-clockwise."""
        begin, end = (np.degrees(np.arctan2(*points.T[::-1])) for points in (self.begin, self.end))
        return begin, end


def _two_way(roads: RoadNetwork) -> NDArray[np.bool_]:
    """Return whether each link shares its line with one of the other direction."""
    links, shapes = roads.links, roads.shapes
    nodes = len(roads.node_names)
    keys = links.from_node.astype(np.int64) * nodes + links.to_node
    at = np.searchsorted(keys, links.to_node.astype(np.int64) * nodes + links.from_node)
    other = np.minimum(at, len(keys) - 1)
    found = keys[other] == links.to_node.astype(np.int64) * nodes + links.from_node
    near_m = np.hypot(*(shapes.start_xy[other] - shapes.end_xy).T)
    return np.asarray(found & (near_m < _GAP_M))


def _ranks(roads: RoadNetwork, rows: pd.DataFrame, arriving: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the right of way of the link of each row; comparable at a node only."""
    known = {name: -number for number, name in enumerate(CLASS_DEFAULTS)}
    classes = np.zeros(len(roads.links))
    for *_, data in roads.edges:
        classes[data["link"]] = known.get(str(data.get("class")).removeprefix("highway."), np.nan)
    if np.isnan(classes).any():
        classes[:] = 0
    links = roads.links
    by_link = 1e4 * classes + 10 * np.round(links.speed_mps) + links.lanes
    signs = rows["right_of_way"].map(_SIGN_RANKS).fillna(-1).to_numpy()
    by_sign = np.full(len(links), -1.0)
    np.maximum.at(by_sign, rows["from_link"].to_numpy(), signs)
    signed = np.zeros(len(roads.node_names), dtype=np.bool_)
    signed[rows["node"].to_numpy()[signs >= 0]] = True
    by_link -= 0.5 * _aside(roads, np.unique(rows["from_link"]), by_link, arriving)
    return np.where(signed[rows["node"]], by_sign[rows["from_link"]], by_link[rows["from_link"]])


def _aside(
    roads: RoadNetwork, approaches: NDArray[np.int64], rank: NDArray[np.float64], arriving: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return the links that end at the side of a road, where three links of the same rank meet."""
    links = roads.links
    node = links.to_node[approaches]
    best = np.full(len(roads.node_names), -np.inf)
    np.maximum.at(best, node, rank[approaches])
    top = approaches[(rank[approaches] == best[node]) & (links.speed_mps[approaches] >= _PRIORITY_MPS)]
    node = links.to_node[top]
    top = top[np.bincount(node, minlength=len(best))[node] == 3]
    three = top[np.argsort(links.to_node[top], kind="stable")].reshape(-1, 3)
    heading = arriving[three]
    bends = np.column_stack(
        [180 - np.abs(_wrapped(heading[:, (k + 1) % 3] - heading[:, (k + 2) % 3])) for k in range(3)]
    )
    aside = np.zeros(len(links), dtype=np.bool_)
    aside[three[np.arange(len(three)), np.argmin(bends, axis=1)]] = True
    return aside


def _yield(roads: RoadNetwork, rows: pd.DataFrame, ends: _Ends, rank: NDArray[np.float64]) -> int:
    """Fill ``place`` and ``yields_to`` of rows, which are sorted by node; return the number filled in."""
    node = rows["node"].to_numpy()
    sizes = np.bincount(node, minlength=len(roads.node_names))
    first = (np.cumsum(sizes) - sizes)[node]
    place = rows["place"].to_numpy()
    repeated = rows.duplicated(["node", "place"]).to_numpy()
    renumbered = np.bincount(node, (place < 0) | repeated, len(sizes))[node] > 0
    place = np.where(renumbered, np.arange(len(rows)) - first, place)
    fast = roads.links.speed_mps[rows["from_link"].to_numpy()] >= _PRIORITY_MPS
    before, after = _conflicts(rows, ends, (rank, fast), (first, sizes[node]))
    order = np.argsort(before, kind="stable")
    others = place[after[order]].tolist()
    stops = np.cumsum(np.bincount(before, minlength=len(rows))).tolist()
    made = [tuple(sorted(others[begin:stop])) for begin, stop in zip([0, *stops], stops, strict=False)]
    given = rows["yields_to"].tolist()
    kept = [isinstance(value, tuple) and not new for value, new in zip(given, renumbered.tolist(), strict=True)]
    rows["yields_to"] = pd.Series(
        [old if keep else new for old, new, keep in zip(given, made, kept, strict=True)], dtype="object"
    )
    rows["place"] = place
    return len(rows) - sum(kept)


def _conflicts(
    rows: pd.DataFrame,
    ends: _Ends,
    approach: tuple[NDArray[np.float64], NDArray[np.bool_]],
    node_rows: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return pairs of rows of a node; the first row yields to the second.

    `approach` has the rank of each row and whether its link is fast, `node_rows` the first row at its node and their
    number.
    """
    (rank, fast), (first, size) = approach, node_rows
    later = first + size - np.arange(len(rows)) - 1
    a = np.repeat(np.arange(len(rows)), later)
    b = a + 1 + np.arange(len(a)) - np.repeat(np.cumsum(later) - later, later)
    link, to_link, to_lane = (rows[name].to_numpy() for name in ("from_link", "to_link", "to_lane"))
    apart = link[a] != link[b]
    a, b = a[apart], b[apart]
    begin, end = ends.around()
    merge = (to_link[a] == to_link[b]) & (to_lane[a] == to_lane[b])
    span = (end[a] - begin[a]) % 360
    cross = (((begin[b] - begin[a]) % 360) < span) != (((end[b] - begin[a]) % 360) < span)
    meet = merge | cross & (to_link[a] != to_link[b])
    a, b = a[meet], b[meet]
    side = rows["side"].to_numpy()
    turned = (begin[b] - begin[a]) % 360
    by_turn = (np.abs(turned - 180) < _STRAIGHT_DEG) | (fast[a] & fast[b])
    straight = 1 * (side == _STRAIGHT)
    rights = [
        (side[b] == _BACK) * 1 - (side[a] == _BACK),
        np.sign(rank[a] - rank[b]),
        by_turn * (straight[a] - straight[b]),
        by_turn * np.sign(side[b] - side[a]),
        np.where(turned < 180, -1, 1),
    ]
    leads = np.select([right != 0 for right in rights], rights)
    return np.where(leads < 0, a, b), np.where(leads < 0, b, a)


def _rights(rows: pd.DataFrame, rank: NDArray[np.float64]) -> NDArray[np.object_]:
    """Return the right of way of each row by its rank: equal, or priority or yield."""
    best = pd.Series(rank).groupby(rows["node"]).transform("max")
    same = pd.Series(rank).groupby(rows["node"]).transform("min") == best
    return np.select([same, rank == best], ["equal", "priority"], "yield").astype(object)


def _plans(
    roads: RoadNetwork, rows: pd.DataFrame, rank: NDArray[np.float64], arriving: NDArray[np.float64]
) -> tuple[pd.DataFrame, int]:
    """Return all signals, with programs for those that have no times; fill their groups in rows."""
    timed = set(roads.signals["signal"])
    planned = rows["signal"].notna() & ~rows["signal"].isin(timed) & (rows["group"] < 0)
    if not planned.any():
        return roads.signals, 0
    signal_of = rows[planned].drop_duplicates("node").set_index("node")["signal"]
    near = rows[rows["node"].isin(signal_of.index)]
    heading = arriving[near["from_link"].to_numpy()]
    near = near.assign(
        plan=near["node"].map(signal_of), heading=heading, rank=rank[near.index], tilt=np.abs(_wrapped(2 * heading))
    )
    main = near.sort_values(["rank", "tilt"], ascending=[False, True], kind="stable").groupby("plan")["heading"].first()
    near["across"] = np.abs(_wrapped(2 * (heading - near["plan"].map(main).to_numpy()))) > 2 * _STRAIGHT_DEG
    crossed = near.groupby("plan")["across"].any().to_dict()
    group = near[planned[near.index]]
    phase = dict(zip(zip(group["node"], group["place"], strict=True), group["across"], strict=True))
    permissive = [
        any(phase.get((node, other)) == own for other in yields)
        for node, yields, own in zip(group["node"], group["yields_to"], group["across"], strict=True)
    ]
    rows.loc[group.index, "group"] = 2 * group["across"] + np.array(permissive)
    cycle_s = 2 * (_GREEN_S + _BETWEEN_S)
    program: list[dict[str, Any]] = []
    groups = rows.loc[group.index, ["signal", "group"]].drop_duplicates().sort_values("group", kind="stable")
    for signal, number in groups.itertuples(index=False):
        begin_s = number // 2 * (_GREEN_S + _BETWEEN_S)
        from_s, to_s = (begin_s, begin_s + _GREEN_S) if crossed[signal] else (0.0, cycle_s)
        window = {"signal": signal, "group": number, "from_s": from_s, "to_s": to_s, "protected": number % 2 == 0}
        program.append(window | {"cycle_s": cycle_s, "offset_s": 0.0, "actuated": False})
    made = signal_table(program)
    return (made if roads.signals.empty else pd.concat([roads.signals, made], ignore_index=True)), len(main)
