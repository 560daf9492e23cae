"""The lanes of a network and the movements between them, as arrays of whole numbers for the engines."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from simulator.roads.movements import is_open_to
from simulator.traffic.physics import (
    ALL_WAY,
    CLEARING,
    FIRST_COME,
    LONG_AGO,
    NEVER,
    NO_CONFLICT,
    ONE_TICK,
    PERMISSIVE,
    PROTECTED,
    SAME_RIGHT,
    STOP,
    Driving,
    Rules,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from simulator.arrays import FloatArray, Int32Array
    from simulator.files.messages import Note
    from simulator.roads.network import Links
    from simulator.traffic.clock import Clock
    from simulator.traffic.trips import VehicleClasses

LANE = np.dtype(
    [
        ("head", np.int32),  # first vehicle of the queue, -1 if empty
        ("tail", np.int32),
        ("count", np.int32),
        ("oldest", np.int32),  # place in `exits` of the oldest exit that is kept, which the next one replaces
        ("last_in", np.int32),  # when the last vehicle entered
        ("discharge", np.int32),  # when the next vehicle may leave
        ("storage", np.int32),
        ("free", np.int32),  # time to drive it when it is empty
        ("headway", np.int32),
        ("hole", np.int32),  # time from an exit until the place is free at the entry
        ("exits", np.int32),  # where its last `storage` exit times begin in the array of all
        ("critical", np.int32),  # with fewer vehicles, no hole delays an entry
        ("first_out", np.int32),  # first link that leaves its end
        ("first_movement", np.int32),  # its movement onto the i-th of these links is this + i; -1 for plain ones
        ("virtual", np.int32),  # clock of start-time fair queueing; see `lead`
        ("link", np.int32),
    ]
)
assert LANE.itemsize == 64  # noqa: S101  # one cache line; a failure here is a bug, not a user error

HELD = np.dtype(
    [
        ("vehicle", np.int32),  # the first vehicle of the lane, which the next fields are about; -1 for none
        ("ready_since", np.int32),  # when it could first leave
        ("why", np.int16),  # what held it last: FREE, FULL, RED or GAP
        ("of_class", np.int16),  # class and turns of a vehicle for which lanes ahead were preferred last
        ("full_pass", np.int32),  # last pass in which all lanes ahead of it were full
        ("full_lane", np.int32),  # one of them
        ("blocked_since", np.int32),  # pass from which it has been blocked by full lanes, -1 if it is not
        ("not_before", np.int32),  # it crosses no earlier: the link ahead was closed, or the junction was not free
        ("next_claim", np.int32),  # another lane whose first vehicle wants to enter the same link in this pass, or -1
        ("loss", np.int32),  # time lost by the last vehicle that left, for the next one's share of it
        ("served", np.int32),  # tag of the lane, if it has no movements; see `MOVEMENT`
        ("served_onto", np.int32),  # the link that this tag is about
        ("entered_from", np.int32),  # the lane from which a vehicle entered this one last while the link was contested
        ("turns", np.uint64),
        ("preferred", np.uint64),  # lanes of the next link that lead on for these turns
    ]
)
"""State of a lane that is touched only for vehicles that are held, or choose a lane."""

MOVEMENT = np.dtype(
    [
        ("crossing", np.int32),  # time on the junction
        ("headway", np.int32),
        ("stride", np.int32),  # increase of the tag for each vehicle
        ("served", np.int32),  # tag of start-time fair queueing; see `lead`
        ("window_first", np.int32),  # green windows; -1 without a signal
        ("window_last", np.int32),
        ("cycle", np.int32),
        ("offset", np.int32),
        ("foe_first", np.int32),
        ("foes", np.int16),
        ("control", np.int16),  # STOP or ALL_WAY, or 0
        ("gap", np.int32),  # shortest gap before a conflicting vehicle that is accepted at first
        ("follow_up", np.int32),  # in place of the headway, if it yields
        ("last_pass", np.int32),
        ("lane", np.int32),
        ("onto_lanes", np.uint64),  # lanes of the next link that it leads to, a bit each
    ]
)
assert MOVEMENT.itemsize == 64  # noqa: S101  # as `LANE`

LINK = np.dtype(
    [
        ("first_lane", np.int32),
        ("first_out", np.int32),
        ("first_turn", np.int32),  # the lanes for the i-th link at its end are `turn_lanes[:, this + i]`, from i = 1 on
        ("lanes", np.int16),
        ("closed", np.int8),
        ("starts", np.int8),  # whether a trip wants to enter in this pass
        ("contested", np.int32),  # until this pass, who enters is decided after all that are due in a pass have come
        ("first_claim", np.int32),  # a lane whose first vehicle wants to enter in this pass, -1 for none
        ("unused", np.int32),  # so that a record lies in half a cache line
        ("next_link", np.int32),  # another link with claims; -1 for none, `NO_CLAIMS` if this one has none
    ]
)

ENTRY = np.dtype(
    [
        ("head", np.int32),  # queue of trips that wait to enter a link
        ("tail", np.int32),
        ("served", np.int32),  # as in `MOVEMENT`, of the trips
        ("stride", np.int32),
    ]
)
NO_CLAIMS = -2
"""`next_link` of a link that nobody wants to enter in this pass."""

ALL_LANES = np.uint64(2**64 - 1)
_CONTROLS = {"stop": STOP, "all_way_stop": ALL_WAY}
_MINOR = ("yield", "stop", "all_way_stop", "equal")
_MINOR_WEIGHT = 4
"""A movement that must yield has this fraction of the turns of others where both enter one link."""


@dataclass(frozen=True, eq=False)
class LinkPhysics:
    """The lanes of a network with nothing on them, their movements and signals.

    A link that has movements is one queue for each lane. Another link is one queue for all its lanes, with their total
    capacity and storage.

    Attributes
    ----------
    lanes
        (lanes,) `LANE` records, by link, then from the edge of the road.
    links, entries
        (links,) `LINK` and `ENTRY` records.
    movements
        `MOVEMENT` records, of links with a queue for each lane.
    windows
        (windows, 3) int32: green windows; see `green_at`.
    foes
        (pairs, 3) int32: a movement to yield to, its lane, and what is owed to it: `FIRST_COME`, `SAME_RIGHT` or
        `NO_CONFLICT`, or 0 for the right of way.
    turn_lanes
        (classes, link and turn) uint64: lanes from which a turn is allowed, a bit each. The first of a link has the
        lanes on which a trip may end.
    turn_reach
        (link and turn, 1 + lanes) uint64: the lanes of the next link to which a turn leads from each lane that allows
        it, a bit each, all bits if these are all its lanes; and those to which it leads from the i-th lane.
    vehicle_class, pace
        (vehicles,) uint8: the class of each vehicle, a row of `turn_lanes`; and (vehicles,) float64: the least time
        that it takes for a metre, in 1/1024 tick. They are empty if vehicles do not differ.
    length_m
        (links,) float64.
    free
        (links,) int32: free-flow time, in 1/1024 tick.
    speed_mps
        (links,) float64: speed of a free vehicle.
    spacing
        (lanes,) float64: distance of vehicles in a standing queue, over the length of the queue's lanes.
    rules
        The constants of driving.
    notes
        What was taken by default.
    left_hand
        Whether traffic drives on the left: lanes are counted from there.
    classes
        What vehicles differ in; None if all are alike.
    """

    lanes: npt.NDArray[np.void]
    links: npt.NDArray[np.void]
    entries: npt.NDArray[np.void]
    movements: npt.NDArray[np.void]
    windows: Int32Array
    foes: Int32Array
    turn_lanes: npt.NDArray[np.uint64]
    turn_reach: npt.NDArray[np.uint64]
    vehicle_class: npt.NDArray[np.uint8]
    pace: FloatArray
    length_m: FloatArray
    free: Int32Array
    speed_mps: FloatArray
    spacing: FloatArray
    rules: Rules
    notes: tuple[Note, ...] = ()
    left_hand: bool = False
    classes: VehicleClasses | None = None

    def held(self) -> npt.NDArray[np.void]:
        """Return (lanes,) `HELD` records of lanes whose vehicles nothing holds."""
        held = np.zeros(len(self.lanes), dtype=HELD)
        for name in ("vehicle", "blocked_since", "served_onto", "entered_from"):
            held[name] = -1
        held["full_pass"] = -2
        return held

    @classmethod
    def build(
        cls,
        links: Links,
        clock: Clock,
        *,
        stuck_s: float | None = None,
        movements: pd.DataFrame | None = None,
        signals: pd.DataFrame | None = None,
        driving: Driving | None = None,
        classes: VehicleClasses | None = None,
        start_s: float = 0.0,
        notes: Sequence[Note] = (),
    ) -> LinkPhysics:
        """Compute the arrays of a network.

        Parameters
        ----------
        links
            The links.
        clock
            Its ticks are the unit of time.
        stuck_s
            Seconds after which a blocked vehicle is forced onto a full lane; None for never.
        movements, signals
            Tables of `simulator.roads.movements`, whose lanes, lengths and rights are complete; None for networks in
            which every lane leads everywhere and nothing holds a vehicle but a full link.
        driving
            How vehicles drive.
        classes
            What vehicles differ in; by default, all are alike.
        start_s
            Time of tick 0 on the clock of the signals.
        notes
            What was taken by default, for the report.

        Raises
        ------
        ValueError
            If `stuck_s` is negative, or a link has more than 64 lanes with movements of their own.
        """
        driving = driving or Driving()
        builder = _Builder(links, driving, clock.step_s, classes.names if classes else ())
        builder.add_lanes(movements)
        least = int(builder.lanes["headway"].min(initial=ONE_TICK))
        rules = driving.rules(step_s=clock.step_s, stuck_s=stuck_s, headway=least)
        if movements is not None and len(movements):
            builder.add_movements(movements, signals, start_s=start_s)
        return cls(
            builder.lanes,
            builder.links,
            builder.entries,
            builder.movements,
            np.array(builder.windows, dtype=np.int32).reshape(-1, 3),
            np.array(builder.foes, dtype=np.int32).reshape(-1, 3),
            builder.turn_lanes,
            builder.turn_reach,
            *builder.vehicles(classes),
            links.length_m,
            builder.units(links.length_m / builder.speed_mps),
            builder.speed_mps,
            builder.spacing,
            rules,
            tuple(notes),
            driving.across == "right",
            classes,
        )

    def __len__(self) -> int:
        return len(self.links)


class _Builder:
    def __init__(self, links: Links, driving: Driving, step_s: float, classes: Sequence[str]) -> None:
        self._roads, self._driving, self._step_s, self._classes = links, driving, step_s, classes
        self.speed_mps = driving.speed_of(links.speed_mps)
        moving_s = driving.spacing_m / self.speed_mps
        if driving.reaction_s is None:
            self._headway_s = 3600.0 / links.capacity_vph
            self._reaction_s = np.maximum(self._headway_s - moving_s, 0.0)
        else:
            self._reaction_s = np.full(len(links), driving.reaction_s)
            self._headway_s = moving_s + driving.reaction_s
        self.windows: list[tuple[int, int, int]] = []
        self._windows_at: dict[tuple[tuple[int, int, int], ...], int] = {}
        self.foes: list[tuple[int, int, int]] = []
        self._at_node: dict[int, list[int]] = defaultdict(list)
        self.movements = np.zeros(0, dtype=MOVEMENT)

    def units(self, seconds: Any) -> Any:
        """Convert seconds to 1/1024 tick, at least 1."""
        return np.clip(np.rint(np.asarray(seconds) / self._step_s * ONE_TICK), 1, NEVER).astype(np.int32)

    def vehicles(self, classes: VehicleClasses | None) -> tuple[npt.NDArray[np.uint8], FloatArray]:
        """Return the class and the pace of each vehicle; none if all vehicles have the same."""
        if classes is None:
            return np.zeros(0, dtype=np.uint8), np.zeros(0)
        of = classes.of if len(self.turn_lanes) > 1 else classes.of[:0]
        top_mps = self._driving.speed_of(classes.speed_mps)
        pace = ONE_TICK / (self._step_s * top_mps)
        return of, pace if top_mps.min(initial=np.inf) < self.speed_mps.max(initial=0.0) else pace[:0]

    def add_lanes(self, movements: pd.DataFrame | None) -> None:
        """Make a queue for each lane of the links that have movements, and one for all lanes of the others."""
        roads, size = self._roads, len(self._roads)
        by_lane = np.zeros(size, dtype=np.bool_)
        if movements is not None:
            by_lane[movements["from_link"].unique()] = True
        queues = np.where(by_lane, roads.lanes, 1)
        if queues.max(initial=0) > 64:
            raise ValueError(f"a link may have at most 64 lanes with movements of their own, got {queues.max()}")
        wide = np.where(by_lane, 1, roads.lanes)  # lanes of a queue
        link = np.repeat(np.arange(size), queues)
        headway = self.units(self._headway_s / wide)
        free = self.units(roads.length_m / self.speed_mps)
        headway, free = headway[link], free[link]
        first = np.concatenate([[0], np.cumsum(queues)[:-1]])
        waits_m = self._waits_m(movements, first, len(link))
        places = ((roads.length_m * wide)[link] + waits_m) / self._driving.spacing_m
        within = 1e-9 * np.maximum(1.0, places)
        # Where vehicles wait on the junction too, the last one needs no more than its front there.
        storage = np.where(waits_m > 0, np.ceil(places - within), np.floor(places + within))
        storage = np.maximum(storage, 1).astype(np.int64)
        hole = np.clip(storage * headway - free, 0, NEVER // 2)
        lanes = np.zeros(len(link), dtype=LANE)
        for name in ("head", "tail", "first_movement"):
            lanes[name] = -1
        lanes["last_in"] = LONG_AGO
        for name, values in (("storage", storage), ("free", free), ("headway", headway), ("hole", hole)):
            lanes[name] = values
        lanes["exits"] = np.concatenate([[0], np.cumsum(storage)[:-1]])
        # On a lane that is full with fewer vehicles, every entry waits for an exit. Two vehicles may have left in a
        # pass when an earlier entry is decided.
        critical = lanes["free"] // lanes["headway"]
        lanes["critical"] = np.where(critical < lanes["storage"], np.maximum(critical - 2, 0), 0)
        lanes["first_out"] = roads.first_out[roads.to_node][link]
        lanes["link"] = link
        self.lanes, self._by_lane = lanes, by_lane
        self.spacing = self._driving.spacing_m / (roads.length_m * wide)[link]
        records = np.zeros(size, dtype=LINK)
        records["first_lane"] = first
        records["lanes"] = queues
        records["contested"] = records["first_claim"] = -1
        records["next_link"] = NO_CLAIMS
        records["first_out"] = roads.first_out[roads.to_node]
        self.entries = np.zeros(size, dtype=ENTRY)
        self.entries["head"] = self.entries["tail"] = -1
        self.entries["stride"] = headway[first] // queues
        turns = (roads.first_out[roads.to_node + 1] - roads.first_out[roads.to_node]).astype(np.int64)
        records["first_turn"] = np.concatenate([[0], np.cumsum(turns + 1)[:-1]])
        self.links, self._turns = records, turns
        self.turn_lanes = np.full((1, (turns + 1).sum()), ALL_LANES)
        self.turn_reach = np.full((self.turn_lanes.shape[1], 1 + queues.max(initial=0)), ALL_LANES)

    def _waits_m(self, movements: pd.DataFrame | None, first: npt.NDArray[np.int64], size: int) -> FloatArray:
        """Return on how many metres of junction vehicles wait for each of `size` lanes, on the shortest path to it.

        A vehicle counts on a lane from its crossing on. Junctions at which another movement crosses or merges are kept
        clear, but not before a lane that is shorter than a vehicle: a vehicle reaches over several such lanes.
        """
        waits_m = np.full(size, np.inf)
        if movements is not None:
            table = movements[movements["allowed"]]
            node, place, yields = (table[name].tolist() for name in ("node", "place", "yields_to"))
            leading = {(at, other) for at, others in zip(node, yields, strict=True) for other in others or ()}
            ways = zip(node, place, yields, strict=True)
            alone = [not others and (at, number) not in leading for at, number, others in ways]
            onto, lane = table["to_link"].to_numpy(), table["to_lane"].to_numpy()
            kept = ~np.array(alone, dtype=np.bool_) & (self._roads.length_m[onto] >= self._driving.spacing_m)
            length_m = np.where(kept, 0.0, table["length_m"].fillna(0.0))
            by_lane = np.isin(onto, movements["from_link"].unique())
            np.minimum.at(waits_m, first[onto] + np.where(by_lane, lane, 0), length_m)
        return np.where(np.isfinite(waits_m), waits_m, 0.0)

    def add_movements(self, table: pd.DataFrame, signals: pd.DataFrame | None, *, start_s: float) -> None:
        """Make the movements of the links with a queue for each lane."""
        lanes, turns = self.lanes, self._turns[self.lanes["link"]]
        moving = self._by_lane[lanes["link"]]
        per_lane = np.where(moving, turns, 0)
        lanes["first_movement"] = np.where(moving, np.concatenate([[0], np.cumsum(per_lane)[:-1]]), -1)
        self.movements = movements = np.zeros(per_lane.sum(), dtype=MOVEMENT)
        movements["lane"] = np.repeat(np.arange(len(lanes)), per_lane)
        movements["window_first"] = movements["window_last"] = -1
        movements["cycle"] = 1
        movements["last_pass"] = LONG_AGO
        movements["headway"] = movements["stride"] = lanes["headway"][movements["lane"]]
        movements["onto_lanes"] = ALL_LANES
        self._permit(table[table["allowed"]])
        onto: dict[int, int] = defaultdict(int)
        rows_of: dict[int, list[Any]] = defaultdict(list)
        rows: Iterable[Any] = table[table["allowed"]].itertuples(index=False)
        for row in rows:
            link, turn = self.links[row.from_link], row.to_link - self.links["first_out"][row.from_link]
            lane = int(link["first_lane"]) + row.from_lane
            at = int(lanes["first_movement"][lane]) + turn
            onto[at] |= 1 << row.to_lane
            rows_of[at].append(row)
        for at, mask in onto.items():
            lane = lanes[movements["lane"][at]]
            turn = at - int(lane["first_movement"])
            reach = self.turn_reach[self.links["first_turn"][lane["link"]] + 1 + turn]
            reach[1 + movements["lane"][at] - self.links["first_lane"][lane["link"]]] = mask
            every = (1 << int(self.links["lanes"][lane["first_out"] + turn])) - 1
            if mask & every != every:
                reach[0] &= np.uint64(mask)
        groups = self._green_windows(signals)
        by_place: dict[tuple[int, int], set[int]] = defaultdict(set)
        for at, ways in rows_of.items():
            movements["onto_lanes"][at] = onto[at]
            self._at_node[ways[0].node].append(at)
            for row in ways:
                by_place[row.node, row.place].add(at)
            self._add_movement(movements[at], ways[0], groups, start_s)
        yields = {at: self._yields(at, ways, by_place) for at, ways in rows_of.items()}
        for at in sorted(yields):
            owed = self._owed(at, yields, rows_of)
            movements["foe_first"][at], movements["foes"][at] = len(self.foes), len(owed)
            self.foes += [(foe, int(movements["lane"][foe]), owed[foe]) for foe in sorted(owed)]
            self._set_gap(movements[at], rows_of[at][0], [rows_of[foe][0].from_link for foe in owed])

    def _permit(self, table: pd.DataFrame) -> None:
        """Write the lanes that each class may use: the lanes of the movements that are open to it.

        A trip may end on a lane from which, or onto which, one leads. A class to which no movement of a turn is open
        takes it from the lanes of all.
        """
        first, begin = self.links["first_turn"], self.links["first_out"]
        before, after = table["from_link"].to_numpy(), table["to_link"].to_numpy()
        turn = first[before] + 1 + after - begin[before]
        leaves, enters = (np.uint64(1) << table[f"{end}_lane"].to_numpy(dtype=np.uint64) for end in ("from", "to"))
        everyone = np.zeros(self.turn_lanes.shape[1], dtype=np.uint64)
        np.bitwise_or.at(everyone, turn, leaves)
        everyone[everyone == 0] = ALL_LANES
        masks = np.zeros((len(self._classes), len(everyone)), dtype=np.uint64)
        if table["classes"].isna().all() or not self._classes:
            self.turn_lanes[0] = everyone
            return
        for mask, is_open in zip(masks, (is_open_to(table, name) for name in self._classes), strict=True):
            np.bitwise_or.at(mask, turn[is_open], leaves[is_open])
            np.bitwise_or.at(mask, first[before[is_open]], leaves[is_open])
            np.bitwise_or.at(mask, first[after[is_open]], enters[is_open])
        self.turn_lanes = np.where(masks == 0, everyone, masks)

    def _add_movement(self, record: Any, row: Any, groups: dict[Any, Any], start_s: float) -> None:
        driving = self._driving
        before, after = self.speed_mps[row.from_link], self.speed_mps[row.to_link]
        length_m = row.length_m if row.length_m > 0 else 0.0
        inside = driving.speed_of(row.speed_mps) if row.speed_mps > 0 else np.inf
        turning = min(before, after, inside) if length_m > 0 else before
        slower = before - turning
        slowing_s = slower**2 / (2 * before) * (1 / driving.acceleration_mps2 + 1 / driving.deceleration_mps2)
        record["crossing"] = round((length_m / turning + slowing_s) / self._step_s * ONE_TICK)
        if slower > 0:
            record["headway"] = self.units(self._reaction_s[row.from_link] + driving.spacing_m / turning)
        minor = row.signal is None and row.right_of_way in _MINOR
        record["control"] = 0 if row.signal is not None else _CONTROLS.get(row.right_of_way, 0)
        record["stride"] = record["headway"] * (_MINOR_WEIGHT if minor else 1)
        if row.signal is None or not groups:
            return
        cycle_s, offset_s, windows = groups.get((row.signal, row.group), (0.0, 0.0, []))
        if cycle_s == 0.0:
            if any(signal == row.signal for signal, _ in groups):  # a group that is never green
                record["window_first"] = record["window_last"] = len(self.windows)
            return
        record["cycle"] = self.units(cycle_s)
        record["offset"] = round((offset_s - start_s) % cycle_s / self._step_s * ONE_TICK)
        across = row.turn in (driving.across, f"slight_{driving.across}", "u_turn")
        used = tuple(
            (int(self.units(begin_s)) if begin_s else 0, int(self.units(end_s)), right)
            for begin_s, end_s, right in self._used(windows, cycle_s, clears=across)
        )
        # Movements with equal windows share them, so that the cache holds the windows of many junctions.
        record["window_first"] = first = self._windows_at.setdefault(used, len(self.windows))
        if first == len(self.windows):
            self.windows += used
        record["window_last"] = first + len(used)

    def _green_windows(self, signals: pd.DataFrame | None) -> dict[Any, Any]:
        groups: dict[Any, Any] = {}
        if signals is not None:
            for row in signals.itertuples(index=False):
                _, _, windows = groups.setdefault((row.signal, row.group), (row.cycle_s, row.offset_s, []))
                windows.append((row.from_s, row.to_s, PROTECTED if row.protected else PERMISSIVE))
        return groups

    def _used(
        self, windows: list[tuple[float, float, int]], cycle_s: float, *, clears: bool
    ) -> list[tuple[float, float, int]]:
        """Return the parts of green windows in which vehicles go: some green is lost at the start, some yellow used."""
        driving, used = self._driving, []
        always = len(windows) == 1 and windows[0][1] - windows[0][0] >= cycle_s - 1e-6
        for begin_s, end_s, right in windows:
            follows = always or any(abs((end - begin_s) % cycle_s) < 1e-6 for _, end, _ in windows)
            goes_on = always or any(abs((begin - end_s) % cycle_s) < 1e-6 for begin, _, _ in windows)
            first_s = begin_s + (0.0 if follows else driving.green_lost_s)
            last_s = end_s + (0.0 if goes_on else driving.yellow_used_s)
            if last_s <= first_s:
                continue
            used.append((first_s, last_s, right))
            if clears and right == PERMISSIVE and not goes_on:
                used.append((last_s, last_s + driving.clearing_s, CLEARING))
        split = []
        for begin_s, end_s, right in used:  # at the end of the cycle
            if begin_s >= cycle_s:
                split.append((begin_s - cycle_s, end_s - cycle_s, right))
            elif end_s > cycle_s:
                split += [(begin_s, cycle_s, right), (0.0, end_s - cycle_s, right)]
            else:
                split.append((begin_s, end_s, right))
        return sorted(split)

    def _yields(self, at: int, rows: list[Any], by_place: dict[tuple[int, int], set[int]]) -> set[int]:
        lane = self.movements["lane"][at]
        foes: set[int] = set()
        for row in rows:
            if row.right_of_way != "zipper" and row.yields_to is not None:
                foes.update(*(by_place.get((row.node, place), ()) for place in row.yields_to))
        return {foe for foe in foes if self.movements["lane"][foe] != lane}

    def _owed(self, at: int, yields: dict[int, set[int]], rows_of: dict[int, list[Any]]) -> dict[int, int]:
        """Return what a movement owes to each other one that it must look at."""
        row, link = rows_of[at][0], self.lanes["link"][self.movements["lane"]]
        if self.movements["control"][at] == ALL_WAY:
            others = [foe for foe in self._at_node[row.node] if link[foe] != link[at]]
            return {foe: FIRST_COME if foe in yields[at] or at in yields[foe] else NO_CONFLICT for foe in others}
        same = {foe for foe in yields[at] if row.signal is None and rows_of[foe][0].right_of_way == row.right_of_way}
        return {foe: FIRST_COME if at in yields[foe] else SAME_RIGHT * (foe in same) for foe in yields[at]}

    def _set_gap(self, record: Any, row: Any, major: list[int]) -> None:
        """Write the critical gap and the follow-up time of a movement that yields to those from links `major`."""
        across = self._driving.across
        side = (row.turn or "straight").removeprefix("slight_").replace("u_turn", across)
        kind = side if side == "straight" else "left" if side == across else "right"
        if row.signal is not None or row.right_of_way == "priority":
            kind = "major" if row.signal is None else "signal"
        gaps = self._driving.gaps[kind]
        if row.signal is None:
            gaps = self._driving.gaps.get(row.right_of_way, gaps)
        size = min(max((int(self._roads.lanes[link]) for link in major), default=1), 3) - 1
        all_way = record["control"] == ALL_WAY  # where no gap is needed, and only turns matter
        record["gap"] = 1 if all_way else self.units(gaps.critical_s[size])
        follow_up_s = self._driving.all_way_s[0] if all_way else gaps.follow_up_s[size]
        record["follow_up"] = max(record["headway"], self.units(follow_up_s))
        if record["control"] and (all_way or not major):
            record["headway"] = record["follow_up"]
