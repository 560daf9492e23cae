"""What vehicles do on lanes and at junctions, in whole numbers: the arrays and rules that both engines share.

Newell's simplified car-following, vehicle by vehicle, on the lanes of a road, with signals and gap acceptance where
lanes meet. Times are integers, in 1/1024 of a tick.

Sources: G. F. Newell, "A simplified car-following theory: a lower order model", Transportation Research B 36 (2002);
for fair merging P. Goyal et al., "Start-time fair queueing", IEEE/ACM Trans. Networking 5 (1997).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mechanisms.compiled import compiled

if TYPE_CHECKING:
    from simulator.arrays import FloatArray, Int32Array

VEHICLE_LENGTH_M = 7.5
"""Road length occupied by a standing vehicle, gap included (the usual value in MATSim and SUMO)."""

FRACTION_BITS = 10
ONE_TICK = 1 << FRACTION_BITS
"""Units of time in a tick: times are integers in 1/1024 tick."""

_LEAST_PASS_BITS = 5

MOST_TICKS = 1 << 20
"""Ticks that a run may have, 12 days of seconds: times have 32 bits."""
NEVER = MOST_TICKS << FRACTION_BITS
"""A time that no run reaches."""
LONG_AGO = -NEVER

MOST_AHEAD = 63
"""Passes after which a vehicle that cannot cross yet tries again at the latest."""

CONTESTED_PASSES = 4
"""Passes for which a link stays contested after the next attempt of a vehicle that it held. With 3, merges of several
lanes depend on the numbering of links; with 4 to 64 they do not, and more passes take more time in a jam."""

_HALF_WORD, _WORD_BITS = 1 << 31, (1 << 32) - 1

FREE, FULL, RED, GAP = 0, 1, 2, 3
"""What held a vehicle at the end of its lane last: nothing, a full lane ahead, a signal, or a conflicting movement."""

PERMISSIVE, PROTECTED, CLEARING = 1, 2, 3
"""Right of a green window: yield to conflicting movements, need not yield, or vehicles inside the junction leave it."""


STOP, ALL_WAY = 1, 2
"""Control of a movement whose every vehicle stops: it yields like others, or all approaches take turns."""

FIRST_COME, SAME_RIGHT, NO_CONFLICT = 1, 2, 3
"""How a movement treats another one that it looks at, if it does not simply yield to it. FIRST_COME: both yield, and
the vehicle that is ready first goes. SAME_RIGHT: both have the same right of way, and a vehicle that a third movement
holds is not waited for. NO_CONFLICT: their paths do not meet."""


class Rules(NamedTuple):
    """Constants of driving that all vehicles share, in 1/1024 tick unless stated."""

    impatience: int
    """Wait after which any gap is accepted, until which it shrinks in proportion; 0 if it does not shrink."""
    clearance: int
    """Time for which a conflicting vehicle that passed keeps the junction."""
    all_way: tuple[int, ...]
    """The five headways at an all-way stop; see `Driving`."""
    all_way_clearance: int
    """Time for which a vehicle that passed an all-way stop keeps it."""
    start_loss: int
    """Time lost by the first vehicle that a signal or a conflicting movement has held."""
    loss_kept: int
    """The loss of each vehicle that follows, in 1/1024 of the loss of the vehicle before it."""
    entry_loss: int
    """Time lost by a vehicle that starts its trip from standing."""
    other_lane: int
    """Cost, in 1/1024 of a full lane, of a lane from which the route three links ahead needs a change of lanes."""
    pass_bits: int
    """In a pass over all lanes, all that is due by its moment happens. Passes are 2 to the power of this apart: a tick,
    or a part of it if the headway of a lane is less. So about one vehicle enters a lane in a pass, and all who wait
    for it have their turns."""
    stuck_passes: int
    """Passes after which a blocked vehicle is forced on; -1 for never."""
    rotation_passes: int
    """Passes that a cycle of full lanes waits before its first vehicles move on together."""

    @property
    def passes(self) -> int:
        """Passes in a tick."""
        return ONE_TICK >> self.pass_bits


class Gaps(NamedTuple):
    """Critical gaps and follow-up times, where the road to yield to has one, two, or more lanes a direction."""

    critical_s: tuple[float, float, float]
    follow_up_s: tuple[float, float, float]


HCM_GAPS = {
    "major": Gaps((4.1, 4.1, 5.3), (2.2, 2.2, 3.1)),
    "right": Gaps((6.2, 6.9, 7.1), (3.3, 3.3, 3.9)),
    "straight": Gaps((6.5, 6.5, 6.5), (4.0, 4.0, 4.0)),
    "left": Gaps((7.1, 7.5, 6.4), (3.5, 3.5, 3.8)),
    "signal": Gaps((4.5, 4.5, 4.5), (2.5, 2.5, 2.5)),
}
"""Base critical headways and follow-up headways of the Highway Capacity Manual: turns from the major road, turns and
straight movements from the minor road (7th edition, Exhibits 20-17 and 20-18), turns at permissive green (Chapter 31).

A vehicle enters if the next one to which it yields comes no earlier than the critical gap after it; the next vehicle of
its lane can enter a follow-up time later. With a Poisson flow v of those, a queue discharges at the capacity
v exp(-v t_c) / (1 - exp(-v t_f)) (J. Harders 1968; Equation 20-18).
"""


@compiled
def slower(vehicle: int | np.int64, link: int | np.int64, pace: FloatArray, length_m: FloatArray, free: int) -> int:
    """Return how much longer than `free` a vehicle takes for a link; parameters as in `LinkPhysics`."""
    return max(0, int(length_m[link] * pace[vehicle] + 0.5) - free) if len(pace) else 0


@dataclass(frozen=True)
class Driving:
    """How vehicles drive, in seconds, metres and metres per second.

    The defaults hold for SUMO's passenger cars as measured with SUMO 1.28 (saturation flows of straight and turning
    lanes, start-up at signals, gaps at permissive green).

    Parameters
    ----------
    slack_mps
        How much slower than the speed of the link a free vehicle drives on average, but at most half as fast.
    spacing_m
        Length of a vehicle and the gap before it in a standing queue.
    reaction_s
        Time headway at speed u is ``reaction_s + spacing_m / u``; None takes it from the capacity of each link.
    entry_loss_s, start_loss_s, loss_kept
        Loss at the start of a trip; of the first vehicle that a signal or a conflicting movement held; and the share of
        it that each vehicle that follows has.
    green_lost_s, yellow_used_s, clearing_s
        Time at the start of green in which no vehicle goes; at the start of yellow in which vehicles still go; and
        after a permissive green in which vehicles inside the junction leave it.
    gaps
        Critical gaps and follow-up times of movements that yield; see `HCM_GAPS`.
    impatience_s, clearance_s
        As in `Rules`.
    all_way_s
        Times between two vehicles of a lane at an all-way stop, if no other approach has a vehicle there; if one has,
        whose path does not meet theirs; if one has whose path does; if two have; and if three or more have. The
        defaults are the base saturation headways of the Highway Capacity Manual (6th edition, Exhibit 21-15, one lane).
    acceleration_mps2, deceleration_mps2
        For the time that a turn slower than the link takes longer.
    across
        The side of turns that cross oncoming traffic: "left", or "right" where traffic drives on the left.
    """

    slack_mps: float = 0.0
    spacing_m: float = VEHICLE_LENGTH_M
    reaction_s: float | None = None
    entry_loss_s: float = 0.0
    start_loss_s: float = 1.2
    loss_kept: float = 0.6
    green_lost_s: float = 1.5
    yellow_used_s: float = 1.0
    clearing_s: float = 3.5
    gaps: dict[str, Gaps] = field(default_factory=lambda: HCM_GAPS)
    impatience_s: float = 0.0
    clearance_s: float = 1.0
    all_way_s: tuple[float, float, float, float, float] = (3.9, 4.7, 5.8, 7.0, 9.6)
    acceleration_mps2: float = 2.6
    deceleration_mps2: float = 4.5
    across: str = "left"

    def speed_of(self, limit_mps: Any) -> Any:
        """Return the mean speed of free vehicles at a speed limit, m/s, a number or an array."""
        return np.maximum(limit_mps - self.slack_mps, limit_mps / 2)

    def rules(self, *, step_s: float, stuck_s: float | None, headway: int) -> Rules:
        """Return the constants in the units of a run with steps of `step_s`, and `headway` as the least of all lanes.

        Raises
        ------
        ValueError
            If `stuck_s` is negative.
        """
        if stuck_s is not None and not stuck_s >= 0:
            raise ValueError(f"stuck_s must be at least 0, received {stuck_s!r}")

        pass_bits = max(_LEAST_PASS_BITS, min(FRACTION_BITS, headway.bit_length() - 1))
        passes = ONE_TICK >> pass_bits

        def units(seconds: float) -> int:
            return round(seconds / step_s * ONE_TICK)

        return Rules(
            impatience=units(self.impatience_s),
            clearance=units(self.clearance_s),
            all_way=tuple(map(units, self.all_way_s)),
            # The least time for each of those that take turns, so that it does not make the headways longer.
            all_way_clearance=units(min(self.all_way_s[several] / several for several in (2, 3, 4))),
            start_loss=units(self.start_loss_s),
            loss_kept=round(self.loss_kept * ONE_TICK),
            entry_loss=units(self.entry_loss_s),
            other_lane=round(0.3 * ONE_TICK),
            pass_bits=pass_bits,
            stuck_passes=-1 if stuck_s is None else math.ceil(stuck_s / step_s - 1e-9) * passes,
            rotation_passes=max(1, math.ceil(30.0 / step_s)) * passes,
        )


SUMO_GAPS = {  # and by right of way
    "major": Gaps((5.7, 5.7, 5.7), (2.6, 2.6, 2.6)),
    "right": Gaps((7.0, 7.0, 7.0), (2.9, 2.9, 2.9)),
    "straight": Gaps((5.7, 5.7, 5.7), (2.5, 2.5, 2.5)),
    "left": Gaps((5.7, 5.7, 5.7), (2.6, 2.6, 2.6)),
    "signal": Gaps((9.0, 9.0, 9.0), (2.0, 2.0, 2.0)),
    "stop": Gaps((5.8, 5.8, 5.8), (6.3, 6.3, 6.3)),
    "equal": Gaps((6.6, 6.6, 6.6), (2.5, 2.5, 2.5)),
}
SUMO_DRIVING = Driving(
    slack_mps=0.65,
    reaction_s=1.37,
    entry_loss_s=2.0,
    gaps=SUMO_GAPS,
    impatience_s=180.0,
    clearing_s=2.0,
    all_way_s=(6.4, 6.4, 6.7, 6.9, 7.6),
)
"""Driving on networks of SUMO, whose links state no capacity.

SUMO's drivers dawdle: with its default sigma of 0.5 and steps of 1 s they drive 0.65 m/s slower than they might.

Gaps are fitted to the flows of SUMO 1.28 at a crossing of two roads with one lane and 13.89 m/s (at a permissive green
of 42 in 90 s) beside Poisson flows of 0 to 1,200 veh/h; right turns also at 8.33 m/s, where their gaps are shorter, and
to occupancy. SUMO does not tell a turn from a road with priority from others that yield.
"""


@compiled
def entry_slot(last_in: int, headway: int, count: int, storage: int, hole: int, exit_before: int) -> int:
    """Return the first time at which a lane can take one more vehicle; `NEVER` while it is full.

    It is one headway after the last vehicle that entered, and not before the hole has arrived that the vehicle
    `storage` places ahead left behind (Newell 2002, eq. 2).

    Parameters
    ----------
    last_in
        When the last vehicle entered.
    headway, storage, hole
        Of the lane; see `LANE`.
    count
        Vehicles on it.
    exit_before
        When the vehicle `storage` places ahead of the next one left; `LONG_AGO` if there was none.
    """
    if count >= storage:
        return NEVER
    return max(last_in + headway, exit_before + hole)


@compiled
def green_at(time: int, windows: Int32Array, first: int, last: int, cycle: int, offset: int) -> tuple[int, int]:
    """Return the first time from `time` on at which a signal lets vehicles go, and the right of that window.

    Parameters
    ----------
    windows
        (windows, 3) int32: begin and end in the cycle, right (`PERMISSIVE`, `PROTECTED`, `CLEARING`); a movement's
        windows are `first` … `last` − 1, ascending. With none, the signal is always red.
    cycle, offset
        Length of the cycle, and a time at which it begins.
    """
    if first == last:
        return NEVER, PERMISSIVE
    phase = (time - offset) % cycle
    for window in range(first, last):
        if phase < windows[window, 1]:
            return time + max(windows[window, 0] - phase, 0), windows[window, 2]
    return time + cycle - phase + windows[first, 0], windows[first, 2]


@compiled
def accepted_gap(gap: int, waited: int, impatience: int) -> int:
    """Return the gap that a vehicle accepts after a wait: it shrinks to nothing at `impatience`, 0 for never."""
    return gap if waited <= 0 or impatience == 0 else gap - gap * min(waited, impatience) // impatience


@compiled
def gap_begin(time: int, ready: int, passed: int, follow_up: int) -> int:
    """Return when the gap began that a vehicle can use at `time`; the next of its lane may follow `follow_up` later.

    It is when it was ready, or when the last of those to which it yields has `passed`: also if it then waits, for less
    than `follow_up`, until that one has cleared the junction or the lane ahead has a place. Otherwise it is `time`.
    """
    begin = max(ready, passed)
    return begin if begin > time - follow_up else time


@compiled
def lead(served: int, virtual: int, stride: int, lanes: int) -> int:
    """Return how far the tag of a queue is ahead of the clock of the lane that it wants to enter.

    Queues share a lane that is not enough for all of them by start-time fair queueing. Each vehicle that enters raises
    the tag of its queue by a stride, and the clock of the lane to its own tag. Of the queues whose vehicles could enter
    at one time the one with the least lead goes first. A queue that was away for long is treated as if it had missed
    one turn on each lane of the link, and a queue far ahead waits no longer than that.

    Parameters
    ----------
    served, virtual
        The tag of the queue and the clock of the lane, whole numbers modulo 2³².
    stride
        By how much the tag rises for each vehicle, in proportion to 1 / capacity.
    lanes
        Lanes of the link to enter.
    """
    most = stride * lanes
    return max(-most, min(most, ((served - virtual + _HALF_WORD) & _WORD_BITS) - _HALF_WORD))


@compiled
def next_headway(headway: int, waited: int, entry: int, last_in: int, between: int) -> int:
    """Return how long after a vehicle that entered a contested lane the next one of its queue may follow.

    Queues and lanes whose headways differ would lose capacity each time that another queue takes a slot just before
    they are ready. So a queue that waited for the headway after a vehicle of another queue makes up for the wait, by
    half of its own headway at most. Movements that yield have no such credit: they follow by their follow-up time.

    Parameters
    ----------
    headway
        Of the queue.
    waited
        How long after it was ready the vehicle crossed.
    entry
        When it enters the lane.
    last_in, between
        When the last vehicle, of another queue, entered the lane; and the headway of the lane.
    """
    return headway - min(waited, headway >> 1) if entry == last_in + between else headway


@compiled
def lane_cost(count: int, storage: int, delay: int, change: int) -> int:
    """Return the cost of a lane that a vehicle may enter: its filling, the delay of its slot, and of a later change."""
    return count * ONE_TICK // storage + 4 * max(delay, 0) + change


@compiled
def next_visit(time: int, at: int, pass_bits: int) -> int:
    """Return the pass in which a vehicle that may cross at `time` tries again, at the earliest that after pass `at`."""
    return max(at + 1, min((time + (1 << pass_bits) - 1) >> pass_bits, at + MOST_AHEAD))
