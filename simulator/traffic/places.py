"""Places of vehicles on their lanes, by Newell's trajectories.

Between two moments the engines move no vehicle along a lane: its place follows from when it entered, and from when the
vehicles before it left (Newell 2002, eq. 3).
"""

import math
from typing import NamedTuple, TypeAlias

import numpy as np

from mechanisms.compiled import compiled, inner
from simulator.arrays import FloatArray, Int32Array, IntArray, Mask, StateArray
from simulator.traffic.engine import State
from simulator.traffic.kernel import Records, unread
from simulator.traffic.physics import slower

_WAITING, _ON_ROAD = int(State.WAITING), int(State.ON_ROAD)
_ROUNDING = 1e-9


class LanePlaces(NamedTuple):
    """Every departed vehicle at a moment.

    Attributes
    ----------
    state
        (departed,) uint8, a `State`.
    link, lane
        (departed,) int32: the link it is on, waits to enter or ended its trip on; its lane, -1 off the road.
    entry, longer
        (departed,) int32: when it entered the lane and what it lost then; and how much longer than others it takes for
        the lane, which is part of `entry`; in 1/1024 tick.
    fraction, past
        (departed,) float64: its place on the lane, over the length, now and one headway of the lane ago.
    """

    state: StateArray
    link: Int32Array
    lane: Int32Array
    entry: Int32Array
    longer: Int32Array
    fraction: FloatArray
    past: FloatArray

    @classmethod
    def arrived(cls, link: Int32Array) -> "LanePlaces":
        """Return arrived vehicles at the ends of links, (departed,), as rows in which the others are then written."""
        size = len(link)
        state, lane = np.full(size, State.ARRIVED, dtype=np.uint8), np.full(size, -1, dtype=np.int32)
        entry, longer = np.zeros((2, size), dtype=np.int32)
        return cls(state, link, lane, entry, longer, np.ones(size), np.ones(size))


Driving: TypeAlias = tuple[Records, Records, Int32Array, FloatArray, FloatArray, FloatArray]
"""`lanes`, `vehicles` and `exits` as in `kernel.advance`; `spacing`, `pace` and `length_m` as in `LinkPhysics`."""
Rows: TypeAlias = tuple[StateArray, Int32Array, Int32Array, Int32Array, Int32Array, FloatArray, FloatArray]
"""The columns of `LanePlaces` as a plain tuple, a slice of it: numba takes longer to recognise a named one."""


class Trajectories(NamedTuple):
    """Vehicles on lanes, by lane, then in the order in which they are on it.

    Attributes
    ----------
    lane
        (vehicles,) int32: number of the lane; -1 for a vehicle that none holds.
    begin_s
        (vehicles,) float64, seconds: when it begins to drive freely; its entry and what it loses then.
    free_s
        (vehicles,) float64, seconds: the time that it takes for the lane when nothing holds it.
    exit_s
        (vehicles,) float64, seconds: when it leaves the end of the lane; infinite for one that is still there.
    spacing, wave_s
        (lanes,) float64: the distance of vehicles in a standing queue, over the length of the lane; and the time after
        which a vehicle repeats the motion of the one ahead, seconds.
    """

    lane: Int32Array
    begin_s: FloatArray
    free_s: FloatArray
    exit_s: FloatArray
    spacing: FloatArray
    wave_s: FloatArray


@compiled
def lane_positions(
    time: int,
    before: int,
    entries: Int32Array,
    longer: Int32Array,
    exits: Int32Array,
    free: int,
    wave: float,
    spacing: float,
    fraction: FloatArray,
    past: FloatArray,
) -> None:
    """Write where the vehicles of a lane are and were, by Newell's trajectories, as fractions of its length.

    A vehicle drives freely from its entry on, and never closer than its spacing to the place where the vehicle ahead
    was one wave time earlier (Newell 2002, eq. 3). So it is at most k spacings before the end, for the largest k such
    that none of the j-th vehicles ahead, j = 1 … k, had left j wave times ago. It does not overtake a slower one ahead.

    Parameters
    ----------
    time, before
        Two moments.
    entries
        (vehicles,) int32: when they entered, and what they lost then, the first of the queue first.
    longer
        (vehicles,) int32: how much longer than the free-flow time they take; `entries` are later by this.
    exits
        (exits,) int32: when the vehicles before them left, the last one first.
    free
        Free-flow time of the lane.
    wave
        Time after which a vehicle repeats the motion of the one ahead.
    spacing
        Distance in a standing queue over the length of the lane.
    fraction, past
        (vehicles,) float64: places at `time` and at `before`, to be written.
    """
    for places, moment in ((fraction, time), (past, before)):
        gone, slowest = 0, 1.0
        for i in range(len(entries)):
            while gone < len(exits) and exits[gone] > moment - (i + gone + 1) * wave:
                gone += 1
            slowest = min(slowest, (moment - entries[i] + longer[i]) / (free + longer[i]))
            places[i] = max(0.0, min(slowest, 1.0 - (i + gone) * spacing))


@compiled
def passing_times(driven: Trajectories, first: int, last: int, fraction: float) -> FloatArray:
    """Return when vehicles pass a place within their lanes: the moment from which `lane_positions` has them beyond it.

    A vehicle passes it at the end of its free driving to there, but not before the vehicle ahead, and not before k wave
    times after the k-th vehicle ahead left the lane, where k spacings are the distance to the end, rounded up. Vehicles
    that leave sooner than a wave time one after another have moved up before: then the j-th one, j < k, lets it pass.

    Parameters
    ----------
    driven
        All vehicles.
    first, last
        Those asked for are `first` … `last` − 1, all of one or more lanes.
    fraction
        The place, over the length of the lane; more than 0 and less than 1.
    """
    passed = np.empty(last - first)
    for at in range(first, last):
        lane, time = driven.lane[at], driven.begin_s[at] + fraction * driven.free_s[at]
        if lane >= 0:
            k = math.ceil((1.0 - fraction) / driven.spacing[lane] - _ROUNDING)
            if at - k >= first and driven.lane[at - k] == lane:
                released = driven.exit_s[at - k] + k * driven.wave_s[lane]
                while k > 0 and driven.exit_s[at - k] < released and time < released:
                    k -= 1
                    released = min(released, driven.exit_s[at - k] + k * driven.wave_s[lane])
                time = max(time, released)
            if at > first and driven.lane[at - 1] == lane:
                time = max(time, passed[at - 1 - first])
        passed[at - first] = min(time, driven.exit_s[at])
    return passed


@compiled
def places_at(driven: Trajectories, rows: IntArray, moments_s: FloatArray) -> FloatArray:
    """Return where vehicles are on their lanes, as fractions of the length: (places,) float64, as `lane_positions`.

    Parameters
    ----------
    driven
        All vehicles.
    rows, moments_s
        (places,) int64 and float64: a vehicle each, and a moment at which it has entered; after its exit it is at 1.
    """
    found = np.empty(len(rows))
    for i in range(len(rows)):
        at, time, place, k = rows[i], moments_s[i], 1.0, 0
        lane = driven.lane[at]
        while driven.exit_s[at] > time:  # for each vehicle that may still hold this one; the first is itself
            begin, free = driven.begin_s[at - k], driven.free_s[at - k]
            if driven.exit_s[at - k] > time and time < begin + free:
                place = min(place, max(0.0, (time - begin) / free))
            k += 1
            if lane < 0 or at < k or driven.lane[at - k] != lane:
                break
            if driven.exit_s[at - k] <= time - k * driven.wave_s[lane]:
                break
            place = min(place, max(0.0, 1.0 - k * driven.spacing[lane]))
        found[i] = place
    return found


@compiled
def queued_from(driven: Trajectories, least_s: float) -> FloatArray:
    """Return since when each vehicle is behind its free driving: (vehicles,) float64; its exit if it never is.

    It joins the queue where it first comes to the end of the lane, to a place that the vehicles ahead do not let it
    pass yet, or to a slower vehicle. One that leaves without delay never did; delays of up to `least_s` are rounding.
    """
    joined = driven.exit_s.copy()
    for at in range(len(joined)):
        lane, begin, free = driven.lane[at], driven.begin_s[at], driven.free_s[at]
        if lane < 0 or joined[at] <= begin + free + least_s:
            continue
        joined[at], released = begin + free, driven.exit_s[at]
        k = 1
        while at >= k and driven.lane[at - k] == lane:
            lead = begin - driven.begin_s[at - k]
            released = min(released, driven.exit_s[at - k] + k * driven.wave_s[lane])
            if released <= begin:  # as are those further ahead
                break
            reached = begin + max(0.0, 1.0 - k * driven.spacing[lane]) * free
            if released > reached + least_s:
                joined[at] = min(joined[at], reached)
            longer = driven.free_s[at - k] - free
            if longer > least_s and driven.exit_s[at - k] > begin:
                joined[at] = min(joined[at], begin + max(0.0, free * lead / longer))
            k += 1
    return joined


@inner
def _write_lane(at: int, first: int, count: int, row: int, driving: Driving, time: int, found: Rows) -> None:
    """Write the places of vehicles `first` … `count` − 1 of a lane's queue from `row` on, or to their own rows for −1.

    Those behind them have no bearing on their places.
    """
    lanes, vehicles, exits, spacing, pace, length_m = driving
    state, link, where, entry, longer, fraction, past = found
    lane = lanes[at]
    members = np.empty(count, dtype=np.int64)
    vehicle = np.int64(lane.head)
    for i in range(count):
        members[i] = vehicle
        vehicle = np.int64(vehicles[vehicle].next)
    entries, slow = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.int32)
    for i in range(count):
        entries[i] = vehicles[members[i]].entry
        slow[i] = slower(members[i], lane.link, pace, length_m, lane.free)
    recent = np.empty(lane.storage, dtype=np.int32)
    for i in range(lane.storage):
        place = lane.oldest - 1 - i
        recent[i] = exits[lane.exits + (place if place >= 0 else place + lane.storage)]
    now, ago = np.empty(count), np.empty(count)
    wave = lane.hole / lane.storage
    lane_positions(time, time - lane.headway, entries, slow, recent, lane.free, wave, spacing[at], now, ago)
    for i in range(first, count):
        to = members[i] if row < 0 else row + i - first
        state[to] = _ON_ROAD
        link[to] = lane.link
        where[to] = at
        entry[to] = entries[i]
        longer[to] = slow[i]
        fraction[to] = now[i]
        past[to] = ago[i]


@compiled
def survey(driving: Driving, time: int, found: Rows, links: Mask) -> None:
    """Write the state and place of each vehicle on a lane at the present moment; the others are not changed.

    If `links`, (links,) bool, are given, write those on their lanes only, in rows one after another.
    """
    lanes, row = driving[0], 0 if len(links) else -1
    for at in range(len(lanes)):
        if lanes[at].count > 0 and (row < 0 or links[lanes[at].link]):
            _write_lane(at, 0, lanes[at].count, row, driving, time, found)
            row += lanes[at].count if row >= 0 else 0


@compiled
def survey_some(trips: IntArray, links: Records, driving: Driving, time: int, found: Rows) -> None:
    """Write the state and place of those of some trips, (n,), that are on a lane of their link; `found` has n rows."""
    lanes, vehicles = driving[0], driving[1]
    for row in range(len(trips)):
        link = links[found[1][row]]
        for at in range(link.first_lane, link.first_lane + link.lanes):
            vehicle, count = np.int64(lanes[at].head), 1
            while vehicle >= 0 and vehicle != trips[row]:
                vehicle = np.int64(vehicles[vehicle].next)
                count += 1
            if vehicle >= 0:
                _write_lane(at, count - 1, count, row, driving, time, found)
                break


@compiled
def survey_waiting(trips: Records, vehicles: Records, state: StateArray, link: Int32Array) -> None:
    """Write the state and link, (departed,), of each vehicle that waits to enter."""
    for at in range(len(trips)):
        vehicle = np.int64(trips[at].head)
        while vehicle >= 0:
            state[vehicle] = _WAITING
            link[vehicle] = at
            vehicle = np.int64(vehicles[vehicle].next)


@compiled
def positions(vehicles: Records, cursor: Int32Array, trips: IntArray, bits: int) -> Int32Array:
    """Return the position in its row of the link each of some trips is on, waits to enter, or ended on: (n,) int32.

    The cursor is ahead of the vehicle by the number of turns left in its word.
    """
    at = np.empty(len(trips), dtype=np.int32)
    for i in range(len(trips)):
        at[i] = cursor[trips[i]] - 1 - unread(vehicles[trips[i]].turns, bits)
    return at
