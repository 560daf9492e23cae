"""Compiled kernel of the fleet engine: vehicles in queues of lanes, crossing from one to the next at exact times.

In a pass (each tick, or more often; see `Rules`) all crossings up to its moment happen: lanes in ascending order, then
the entries of links that several may want to enter, and of trips. See `docs/why/model.md` for the rules, and
`simulator.traffic.agents` for the same rules with one process a vehicle.

These techniques make it fast, measured on the 20 × 20 grid:

- A *bitmap calendar*: one bit per lane for each of the next 64 passes, read by counting trailing zeros. It yields
  lanes in ascending order without duplicates or sorting. A visit before the first vehicle is ready changes nothing, so
  a lane whose head is due beyond the ring gets one visit before that.
- A vehicle's next turns are encoded in one 64-bit word of its record, refilled from the route every dozen links:
  most crossings do not read the route, which avoids a cache miss that would cost as much as the rest.
- One 64-byte record per lane and one 16-byte record per vehicle. Vehicles are numbered in order of departure, so that
  those on the road at the same time are adjacent in memory.
- *Prefetching*, see `_ask_ahead`: on 39,600 links with 10⁶ vehicles, two thirds of the time were waits for memory.
- Exit times are read only where a lane holds enough vehicles for a hole to delay an entry.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from mechanisms.compiled import Kernel
from mechanisms.compiled import compiled as compiled_with
from mechanisms.compiled import inner as inner_with
from simulator.arrays import FloatArray, Int32Array, IntArray, LinkIds, Mask
from simulator.traffic.lanes import ALL_LANES, NO_CLAIMS
from simulator.traffic.physics import (
    ALL_WAY,
    CONTESTED_PASSES,
    FIRST_COME,
    FRACTION_BITS,
    FREE,
    FULL,
    GAP,
    LONG_AGO,
    NEVER,
    NO_CONFLICT,
    ONE_TICK,
    PERMISSIVE,
    PROTECTED,
    RED,
    SAME_RIGHT,
    Rules,
    accepted_gap,
    entry_slot,
    gap_begin,
    green_at,
    lane_cost,
    lead,
    next_headway,
    next_visit,
    slower,
)

# Numba counts the users of each array unless functions are compiled without its memory manager: two atomic operations
# for each array of a call, a quarter of the time of a crossing with signals. So no function here makes an array.


def compiled(function: Kernel) -> Kernel:
    """Compile a function as `mechanisms.compiled.compiled` does, but without memory that it could allocate."""
    return compiled_with(function, _nrt=False)


def inner(function: Kernel) -> Kernel:
    """Compile a function that `compiled` ones alone call; the wrappers of all would take 1.3 s more to compile."""
    return inner_with(function, _nrt=False)


def compiled_inline(function: Kernel) -> Kernel:
    """Compile a function into those that call it: a quarter less time with signals, and as long to compile.

    Functions that crossings seldom call are `inner`: it takes 3 % less time with signals, and less to compile.
    """
    return inner_with(function, forceinline=True, _nrt=False)


@intrinsic
def _prefetch(typing_context: Any, records: Any, at: Any) -> Any:  # noqa: ARG001  # numba's own protocol
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        whole, byte, pointer = ir.IntType(32), ir.IntType(64), ir.IntType(8).as_pointer()
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        index = context.cast(builder, args[1], signature.args[1], types.intp)
        size = context.get_abi_sizeof(context.get_data_type(records.dtype))
        place = builder.gep(builder.bitcast(data, pointer), [builder.mul(index, ir.Constant(byte, size))])
        kind = ir.FunctionType(ir.VoidType(), [pointer, whole, whole, whole])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
        builder.call(function, [place, *(ir.Constant(whole, value) for value in (1, 3, 1))])
        return context.get_dummy_value()

    return types.void(records, at), generate


prefetch = cast("Callable[[Records, Index], None]", _prefetch)
"""Load a record into the cache, which takes effect later, while other work is done; no record needs to be there."""


@intrinsic
def _trailing_zeros(typing_context: Any, word: Any) -> Any:  # noqa: ARG001  # numba's own protocol
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


trailing_zeros = cast("Callable[[np.uint64], np.uint64]", _trailing_zeros)
"""Return the number of zero bits below the lowest set bit of a nonzero uint64; only for use in compiled code."""

Bitmap = npt.NDArray[np.uint64]
Turns = npt.NDArray[np.uint16]
Index = int | np.int64
Record = Any  # whose fields numba reads as attributes
Records = Any

VEHICLE = np.dtype([("entry", np.int32), ("next", np.int32), ("turns", np.uint64)])

COUNTS = np.dtype(
    [
        ("departed", np.int64),
        ("waiting", np.int64),
        ("on_road", np.int64),
        ("arrived", np.int64),
        ("stuck", np.int64),
        ("rotated", np.int64),
        ("crossings", np.int64),
        ("logged", np.int64),
        ("trip_time", np.int64),  # from departure to arrival, summed over those that have arrived, 1/1024 tick
        ("held", np.int64),  # counted as departed, but their vehicles are still on the way there
        ("late_head", np.int64),  # first and last of the trips that depart later than planned, -1 for none
        ("late_tail", np.int64),
    ]
)

RING = 64
"""Number of passes in the calendar, including the present one."""

TURNS_KNOWN = 4
"""Turns that the word of a vehicle holds at least when it crosses: the crossing, and three to choose its lane by."""

LOG_TIME_BITS, LOG_LANE_BITS = 31, 6
"""Bits of a log's row: the vehicle, then the time, then the lane of the link."""

_WORD = 6  # log2 of the bits in a word of a bitmap
_LOW = np.uint64(0)
_BIT = np.uint64(1)


class _Ways(NamedTuple):
    """What the choice of a lane reads, and where it keeps a lane's last preference: arrays and rules of `advance`."""

    bits: int
    lanes: Records
    held: Records
    links: Records
    turn_lanes: Bitmap
    turn_reach: Bitmap
    exits: Int32Array
    other_lane: int


class _Crossroads(NamedTuple):
    """What the right of way at a junction depends on: arrays and rules of `advance`."""

    lanes: Records
    held: Records
    movements: Records
    windows: Int32Array
    foes: Int32Array
    vehicles: Records
    low_bits: np.uint64
    rules: Rules


class _Moving(NamedTuple):
    """What changes when a vehicle enters a lane, and what its time there depends on: arrays and rules of `advance`."""

    vehicles: Records
    ring: Bitmap
    pace: FloatArray
    length_m: FloatArray
    log: IntArray
    log_every: int
    counts: Record
    pass_bits: int


def turn_bits(most_out_links: int) -> int:
    """Return the number of bits of a turn code: 0 means refill, all ones means arrive, other values are an out-link."""
    for bits in (4, 8, 16):
        if most_out_links <= (1 << bits) - 2:
            return bits
    raise ValueError(f"a node may have at most 65,534 links that leave it, received {most_out_links}")


@inner
def _set_bit(bitmap: Bitmap, at: Index) -> None:
    bitmap[at >> _WORD] |= _BIT << np.uint64(at & 63)


@inner
def _schedule(ring: Bitmap, at: Index, time: int, pass_no: int, pass_bits: int) -> None:
    """Schedule a visit of lane `at` in the first pass at or after `time`; never in the present one, `pass_no`."""
    _set_bit(ring[next_visit(time, pass_no, pass_bits) & (RING - 1)], at)


@inner
def _refill(
    vehicle: Index, cursor: Int32Array, starts: IntArray, ends: IntArray, route: LinkIds, turns: Turns, bits: int
) -> np.uint64:
    """Encode the next turns of `vehicle` in a word, the first turn in the lowest bits; the last is repeated."""
    start = starts[vehicle]
    at = start + cursor[vehicle]
    end = ends[vehicle]
    arrive = np.uint64((1 << bits) - 1)
    word = _LOW
    shift = 0
    while shift < 64:
        if at == end:
            word |= arrive << np.uint64(shift)
        else:
            word |= np.uint64(turns[route[at]]) << np.uint64(shift)
            at += 1
        shift += bits
    cursor[vehicle] = at - start
    return word


@compiled
def refill(
    turned: IntArray,
    vehicles: Records,
    cursor: Int32Array,
    starts: IntArray,
    ends: IntArray,
    route: LinkIds,
    turns: Turns,
    bits: int,
) -> None:
    """Encode the next turns of vehicles anew; `cursor` must be the position after the link that each is on."""
    for i in range(len(turned)):
        vehicle = turned[i]
        vehicles[vehicle].turns = _refill(vehicle, cursor, starts, ends, route, turns, bits)


@compiled_inline
def _slot(lane: Record, exits: Int32Array) -> int:
    """Return when `lane` can take one more vehicle, NEVER while it is full."""
    before = LONG_AGO
    if lane.critical <= lane.count < lane.storage:
        place = lane.oldest + lane.count
        if place >= lane.storage:
            place -= lane.storage
        before = exits[lane.exits + place]
    return entry_slot(lane.last_in, lane.headway, lane.count, lane.storage, lane.hole, before)


@compiled_inline
def _place(link: Record, code: np.uint64, arrive: np.uint64) -> Index:
    """Return where the lanes of `link` for a turn stand in `turn_lanes` and `turn_reach`."""
    return np.int64(link.first_turn) + (np.int64(0) if code == arrive else np.int64(code))


@compiled_inline
def _is_one(lanes: np.uint64) -> bool:
    """Return whether a set of lanes has no more than one."""
    return bool(lanes & (lanes - _BIT) == _LOW)


@inner
def _preferred(onto: Index, allowed: np.uint64, turns: np.uint64, of_class: Index, ways: _Ways) -> np.uint64:
    """Return the lanes of link `onto`, among `allowed` for the first of `turns`, that also lead on for two more."""
    bits, _, _, links, _, turn_reach, _, _ = ways
    low = np.uint64((1 << bits) - 1)
    link = links[onto]
    code = turns & low
    # With one lane there is no choice, and where all lanes lead everywhere none is preferred.
    if code == low or _is_one(allowed) or turn_reach[_place(link, code, low), 0] == ALL_LANES:
        return allowed
    turn = np.int64(code) - 1
    following = link.first_out + turn
    goal = _lanes_after(following, turns >> np.uint64(bits), of_class, ways)
    return _leading_to(goal, allowed, link, turn, turn_reach)


@compiled_inline
def _leading_to(goal: np.uint64, allowed: np.uint64, link: Record, turn: Index, turn_reach: Bitmap) -> np.uint64:
    """Return the lanes among those `allowed` whose turn leads to a lane of `goal`; all of them, if none does."""
    place = link.first_turn + 1 + turn
    if turn_reach[place, 0] & goal:
        return allowed
    best = _LOW
    for k in range(link.lanes):
        bit = _BIT << np.uint64(k)
        if allowed & bit and turn_reach[place, 1 + k] & goal:
            best |= bit
    return best if best != _LOW else allowed


@compiled_inline
def _lanes_after(at: Index, turns: np.uint64, of_class: Index, ways: _Ways) -> np.uint64:
    """Return the lanes of link `at` that allow the next two turns; the next one, if none allows both."""
    bits, _, _, links, turn_lanes, turn_reach, _, _ = ways
    low = np.uint64((1 << bits) - 1)
    link = links[at]
    code = turns & low
    place = _place(link, code, low)
    allowed: np.uint64 = turn_lanes[of_class, place]
    second = (turns >> np.uint64(bits)) & low
    if code == low or second == _LOW or turn_reach[place, 0] == ALL_LANES:
        return allowed
    turn = np.int64(code) - 1
    goal = turn_lanes[of_class, _place(links[link.first_out + turn], second, low)]
    return _leading_to(goal, allowed, link, turn, turn_reach)


@compiled_inline
def _choose(link: Record, allowed: np.uint64, preferred: np.uint64, earliest: int, ways: _Ways) -> tuple[Index, int]:
    """Return the lane of `link` that costs least for a vehicle that can be there at `earliest`, and its slot.

    If all are full, these are the first lane and NEVER.
    """
    lanes, exits = ways.lanes, ways.exits
    best, slot, least, full = -1, NEVER, NEVER, -1
    left = allowed & (ALL_LANES >> np.uint64(64 - link.lanes))
    if _is_one(left):
        best = link.first_lane + np.int64(trailing_zeros(left))
        return best, _slot(lanes[best], exits)
    while left != _LOW:
        k = np.int64(trailing_zeros(left))
        left &= left - _BIT
        lane = link.first_lane + k
        time = _slot(lanes[lane], exits)
        if time == NEVER:
            full = lane if full < 0 else full
            continue
        change = 0 if (preferred >> np.uint64(k)) & _BIT else ways.other_lane
        cost = lane_cost(lanes[lane].count, lanes[lane].storage, time - earliest, change)
        if cost < least:
            best, slot, least = lane, time, cost
    return (best, slot) if best >= 0 else (full, NEVER)


@compiled_inline
def _lane_of(
    onto: Index, at: Index, word: np.uint64, turns: np.uint64, of_class: Index, earliest: int, ways: _Ways
) -> tuple[Index, int]:
    """Return the lane of link `onto` for a vehicle whose turns from there are `turns`, and when it has a place.

    The vehicle can be there at `earliest`, and comes from lane `at`, where its turns are `word`, or starts there (-1).
    """
    bits, lanes, held, links, turn_lanes, _, exits, _ = ways
    link, low = links[onto], np.uint64((1 << bits) - 1)
    if link.lanes == 1:
        return np.int64(link.first_lane), _slot(lanes[link.first_lane], exits)
    allowed = preferred = turn_lanes[of_class, _place(link, turns & low, low)]
    # Preferences depend on turns and class alone; vehicles that are held try again, half a time for each crossing of a
    # busy grid.
    if at >= 0 and held[at].turns == word and held[at].of_class == of_class:
        preferred = held[at].preferred
    elif not _is_one(allowed):
        preferred = _preferred(onto, allowed, turns, of_class, ways)
        if at >= 0:
            memo = held[at]
            memo.turns, memo.of_class, memo.preferred = word, of_class, preferred
    return _choose(link, allowed, preferred, earliest, ways)


@compiled_inline
def _lead_of(
    at: Index, move: Index, onto: Index, clock: int, among: int, lanes: Records, held: Records, movements: Records
) -> int:
    """Return the lead of the tag of lane `at`, or of its movement, over the clock of a lane of link `onto`."""
    if move >= 0:
        return lead(movements[move].served, clock, movements[move].stride, among)
    return lead(held[at].served, clock, lanes[at].headway, among) if held[at].served_onto == onto else 0


@compiled_inline
def _not_before(ready: int, earliest: int, state: Record) -> int:
    """Return when a vehicle that was refused may cross: not before `earliest` if the junction refused it.

    Those that lanes ahead refuse keep exact times: on links that have room for one vehicle each pass would add its own.
    """
    time: int = max(ready, state.not_before)
    return max(time, earliest if state.why >= RED else time)


@compiled_inline
def _next_to_enter(  # noqa: C901, PLR0912, PLR0915  # as in the engine of agents
    onto: Index,
    earliest: int,
    now: int,
    trips: Records,
    movements: Records,
    vehicles: Records,
    departure: Int32Array,
    vehicle_class: npt.NDArray[np.uint8],
    ways: _Ways,
) -> tuple[Index, Index, int]:
    """Take the claim that is next from link `onto`; return its lane (-1: a trip), the lane to enter, and its slot.

    Whoever cannot enter in this pass is next at once. Of the others it is the first to enter, then the one with the
    least lead, then the one with the lowest number; trips are last. If a claim has no rivals, the lane to enter is not
    chosen yet, and -1.
    """
    bits, lanes, held, links, _, _, exits, _ = ways
    link, low = links[onto], np.uint64((1 << bits) - 1)
    one, before = np.int64(link.first_claim), np.int64(-1)
    if one < 0 and link.lanes == 1:
        return one, np.int64(link.first_lane), _slot(lanes[link.first_lane], exits)
    if link.starts == 0 and held[one].next_claim < 0:
        link.first_claim = -1
        return one, np.int64(-1), NEVER
    best, best_before = np.int64(-1), np.int64(-1)
    best_target: Index = np.int64(-1)
    best_slot = soonest = NEVER
    least = 0
    while one >= 0 or link.starts == 1:
        move, crossing = np.int64(-1), 0
        if one >= 0:
            lane = lanes[one]
            vehicle = np.int64(lane.head)
            # The first vehicle has changed if the one that wanted to enter has moved on in a rotation.
            ready = max(vehicles[vehicle].entry + lane.free, lane.discharge) if vehicle >= 0 else NEVER
            if ready > now:
                best, best_before, best_target = one, before, np.int64(-1)
                break
            word = vehicles[vehicle].turns
            turns = word >> np.uint64(bits)
            if lane.first_movement >= 0:
                move = lane.first_movement + np.int64(word & low) - 1
                crossing = movements[move].crossing
            if held[one].vehicle == vehicle:
                ready = _not_before(ready, earliest, held[one])
        else:
            vehicle = np.int64(trips[onto].head)
            ready = max(departure[vehicle] << FRACTION_BITS, earliest)
            word = turns = vehicles[vehicle].turns
        of_class = np.int64(vehicle_class[vehicle]) if len(vehicle_class) > 0 else np.int64(0)
        target, slot = _lane_of(onto, one, word, turns, of_class, ready + crossing, ways)
        entry, clock = max(ready + crossing, slot), lanes[target].virtual
        if entry - crossing > now:
            best, best_before, best_target, best_slot = one, before, target, slot
            break
        if one >= 0:
            ahead = _lead_of(one, move, onto, clock, link.lanes, lanes, held, movements)
        else:
            ahead = lead(trips[onto].served, clock, trips[onto].stride, link.lanes)
        if entry < soonest or (entry == soonest and (ahead < least or (ahead == least and 0 <= one < best))):
            best, best_before, best_target, best_slot = one, before, target, slot
            soonest, least = entry, ahead
        if one < 0:
            break
        before, one = one, np.int64(held[one].next_claim)
    if best < 0:
        return best, best_target, best_slot
    if best_before < 0:
        link.first_claim = held[best].next_claim
    else:
        held[best_before].next_claim = held[best].next_claim
    return best, best_target, best_slot


@compiled
def log_row(vehicle: Index, time: int, lane: Index) -> Index:
    """Return a row of the log: ascending by vehicle, then by time."""
    return (np.int64(vehicle) << (LOG_TIME_BITS + LOG_LANE_BITS)) | (np.int64(time) << LOG_LANE_BITS) | np.int64(lane)


@inner
def _enter(
    vehicle: Index, at: Index, place: Index, time: int, loss: int, lane: Record, moving: _Moving, pass_no: int
) -> None:
    """Append `vehicle` to the queue of lane number `at`, lane `place` of its link, whose record is `lane`."""
    vehicles, ring, pace, length_m, log, log_every, counts, pass_bits = moving
    mover = vehicles[vehicle]
    mover.entry = time + loss + slower(vehicle, np.int64(lane.link), pace, length_m, lane.free)
    mover.next = -1
    lane.last_in = time
    if lane.head < 0:
        lane.head = vehicle
        _schedule(ring, at, max(mover.entry + lane.free, lane.discharge), pass_no, pass_bits)
    else:
        vehicles[lane.tail].next = vehicle
    lane.tail = vehicle
    lane.count += 1
    _keep(vehicle, time, place, log, log_every, counts)


@compiled_inline
def _keep(vehicle: Index, time: int, place: Index, log: IntArray, log_every: int, counts: Record) -> None:
    """Log an entry or an arrival of a vehicle, if it is one that is logged."""
    if log.shape[0] > 0 and vehicle & (log_every - 1) == 0:
        log[counts.logged] = log_row(vehicle // log_every, time, place)
        counts.logged += 1


@inner
def _leave(
    lane: Record, mover: Record, time: int, headway: Index, onto: Index, exits: Int32Array, measured: IntArray
) -> None:
    """Remove the first vehicle, `mover`, from `lane`; it enters link `onto`, or ends its trip on it."""
    exits[lane.exits + lane.oldest] = time
    lane.oldest += 1
    if lane.oldest == lane.storage:
        lane.oldest = 0
    lane.head = mover.next
    lane.count -= 1
    lane.discharge = time + headway
    if measured.shape[0] > 0:
        measured[onto, 0] += 1
        measured[onto, 1] += max(0, time - mover.entry - lane.free)


@compiled_inline
def _foe_takes(
    movement: Record, time: int, until: int, ready: int, at: Index, pass_no: int, crossroads: _Crossroads
) -> bool:
    """Return whether a vehicle that has the right of way, and no red at `time`, could cross before `until`.

    On a lane that others share with the movement, it may follow those that nothing holds.
    """
    lanes, held, movements, windows, foes, vehicles, low_bits, _ = crossroads
    for pair in range(movement.foe_first, movement.foe_first + movement.foes):
        owed = foes[pair, 2]
        if owed == NO_CONFLICT:
            continue
        lane, state = lanes[foes[pair, 1]], held[foes[pair, 1]]
        number, theirs = np.int64(lane.head), lane.discharge
        while number >= 0:
            other = vehicles[number]
            theirs = max(other.entry + lane.free, theirs)
            if theirs >= until:
                break
            code = other.turns & low_bits
            wanted = lane.first_movement + np.int64(code) - 1
            if code == low_bits or wanted != foes[pair, 0]:
                if state.vehicle == number:
                    break
                theirs += lane.headway if code == low_bits else movements[wanted].headway
                number = np.int64(other.next)
                continue
            # Of vehicles that yield to each other in a circle, the first ready goes.
            later = theirs > ready or (theirs == ready and foes[pair, 1] > at)
            if state.vehicle == number and (
                state.full_pass >= pass_no - 1 or (state.why == GAP and (owed == SAME_RIGHT or later))
            ):
                break
            foe, right = movements[foes[pair, 0]], PROTECTED
            if foe.window_first >= 0:
                green, _ = green_at(time, windows, foe.window_first, foe.window_last, foe.cycle, foe.offset)
                if green > time:
                    break
                theirs, right = green_at(theirs, windows, foe.window_first, foe.window_last, foe.cycle, foe.offset)
                if theirs >= until:
                    break
            first_come = owed == FIRST_COME and (foe.window_first < 0 or right != PROTECTED)
            if first_come and (theirs > ready or (theirs == ready and foes[pair, 1] > at)):
                break
            return True
    return False


@inner
def _all_way_headway(movement: Record, time: int, crossroads: _Crossroads) -> int:
    """Return the time that the next vehicle of the lane follows at an all-way stop, by the other approaches in use.

    An approach is in use while a vehicle waits at its end, and for the shortest headway after one has left.
    """
    lanes, _, movements, _, foes, vehicles, low_bits, rules = crossroads
    used, met, last = 0, False, -1
    for pair in range(movement.foe_first, movement.foe_first + movement.foes):
        lane = lanes[foes[pair, 1]]
        here = movements[foes[pair, 0]].last_pass > time - rules.all_way[0]
        if lane.head >= 0 and not here:
            other = vehicles[lane.head]
            code = other.turns & low_bits
            wants = code != low_bits and lane.first_movement + np.int64(code) - 1 == foes[pair, 0]
            here = wants and other.entry + lane.free <= time
        if here:
            met = met or foes[pair, 2] != NO_CONFLICT
            used += lane.link != last
            last = lane.link
    return rules.all_way[min(used + (used > 1 or met), 4)]


@compiled_inline
def _junction(
    movement: Record, time: int, ready: int, since: int, at: Index, pass_no: int, crossroads: _Crossroads
) -> tuple[int, int, int, int]:
    """Return when a vehicle that may cross from `time` on does, or tries again, and what the junction does to it.

    Returns
    -------
    time
        Of the crossing, or of the next try.
    holds
        FREE if it crosses, else RED or GAP.
    headway
        After it, until the next vehicle of its lane can follow.
    refused
        Time before which it does not cross any more, if it is held.
    """
    _, _, movements, windows, foes, _, _, rules = crossroads
    now, right = pass_no << rules.pass_bits, PROTECTED
    if movement.window_first >= 0:
        green, right = green_at(
            time, windows, movement.window_first, movement.window_last, movement.cycle, movement.offset
        )
        if green > now:
            return green, RED, movement.headway, time
        time = green
    if movement.foes == 0 or (movement.window_first >= 0 and right == PROTECTED):
        return time, FREE, movement.headway, time
    all_way, passed = movement.control == ALL_WAY, LONG_AGO
    for pair in range(movement.foe_first, movement.foe_first + movement.foes):
        if foes[pair, 2] != NO_CONFLICT:
            passed = max(passed, movements[foes[pair, 0]].last_pass)
    time = refused = max(time, passed + (rules.all_way_clearance if all_way else rules.clearance))
    if movement.window_first >= 0:  # it may no longer be green
        time, right = green_at(
            time, windows, movement.window_first, movement.window_last, movement.cycle, movement.offset
        )
    if time > now:
        return time, GAP, movement.headway, refused
    if movement.window_first >= 0 and right != PERMISSIVE:
        return time, FREE, movement.headway, refused
    begin = gap_begin(time, ready, passed, movement.follow_up)
    until = begin + accepted_gap(movement.gap, time - since, rules.impatience)
    if _foe_takes(movement, time, until, ready, at, pass_no, crossroads):
        return now + 1, GAP, movement.headway, refused
    headway = begin + movement.follow_up - time
    if all_way:
        headway = _all_way_headway(movement, time, crossroads)
        headway = max(headway, movement.headway)
    return time, FREE, headway, refused


@inner
def _enlist(onto: Index, first: Index, last: Index, links: Records) -> tuple[Index, Index]:
    """Append link `onto` to the list of those with claims; return the first and the last of them."""
    links[onto].next_link = -1
    if first >= 0:
        links[last].next_link = onto
    return (first if first >= 0 else onto), onto


@inner
def _hold(vehicle: Index, at: Index, ready: int, why: int, held: Records) -> None:
    """Note what holds `vehicle` at the end of lane `at`."""
    state = held[at]
    if state.vehicle != vehicle:
        state.vehicle = vehicle
        state.ready_since = ready
        state.blocked_since = -1
        state.full_pass = -2
        state.not_before = LONG_AGO
    state.why = why
    if why >= RED:
        state.full_pass = -2


@inner
def _rotate(at: Index, pass_no: int, ways: _Ways, movements: Records, measured: IntArray, moving: _Moving) -> bool:
    """Move the heads of a cycle of full lanes through `at` on together; return whether there is one.

    It is the only way out of a gridlock in which every lane waits for the next one.
    """
    bits, lanes, held, links, _, _, exits, _ = ways
    vehicles, ring, _, _, _, _, counts, pass_bits = moving
    low_bits, shift = np.uint64((1 << bits) - 1), np.uint64(bits)
    length, lane = 0, at
    while True:
        state = held[lane]
        here = lanes[lane]
        if here.head < 0 or state.vehicle != here.head or state.full_pass < pass_no - 1 or length == len(lanes):
            return False
        # The route may have changed, or the link have closed, since the lane ahead was found to be full.
        code = np.int64(vehicles[here.head].turns & low_bits)
        onto = np.int64(here.first_out) + code - 1
        lane = np.int64(state.full_lane)
        length += 1
        if lane < 0 or lanes[lane].link != onto or links[onto].closed:
            return False
        if lane == at:
            break
    time = pass_no << pass_bits
    for _ in range(length):
        here = lanes[lane]
        mover = vehicles[here.head]
        if here.first_movement >= 0:
            movements[here.first_movement + np.int64(mover.turns & low_bits) - 1].last_pass = time
        ahead = np.int64(lanes[held[lane].full_lane].link)
        _leave(here, mover, time, np.int64(here.headway), ahead, exits, measured)
        mover.turns >>= shift
        lane = np.int64(held[lane].full_lane)
    for _ in range(length):
        head = np.int64(held[lane].vehicle)
        held[lane].vehicle = -1
        lane = np.int64(held[lane].full_lane)
        here = lanes[lane]
        # A vehicle that was forced onto the lane may enter it later than now.
        entry = time if here.last_in <= time else here.last_in + here.headway
        _enter(head, lane, lane - links[here.link].first_lane, entry, 0, here, moving, pass_no)
    for _ in range(length):
        here = lanes[lane]
        _schedule(ring, lane, max(vehicles[here.head].entry + here.free, here.discharge), pass_no, pass_bits)
        lane = np.int64(held[lane].full_lane)
    counts.rotated += length
    counts.crossings += length
    return True


@compiled
def unread(turns: np.uint64, bits: int) -> int:
    """Return the number of links in a turn word."""
    low_bits = np.uint64((1 << bits) - 1)
    unread = 0
    while turns & low_bits != _LOW and turns & low_bits != low_bits:
        turns >>= np.uint64(bits)
        unread += 1
    return unread


@inner
def _depart(
    trip: Index, starts: IntArray, route: LinkIds, cursor: Int32Array, entries: Records, vehicles: Records, busy: Bitmap
) -> None:
    """Append a trip to the queue of those that wait to enter its first link, which is then set in `busy`."""
    first = np.int64(route[starts[trip]])
    cursor[trip] = 1
    entry = entries[first]
    vehicles[trip].next = -1
    if entry.head < 0:
        entry.head = trip
        _set_bit(busy, first)
    else:
        vehicles[entry.tail].next = trip
    entry.tail = trip


@inner
def _plan(
    trip: Index, tick: int, planned: Int32Array, departure: Int32Array, held: Mask, vehicles: Records, counts: Record
) -> None:
    """Let a trip depart as planned, or at `tick` if that is later. These ticks ascend from call to call."""
    if tick <= planned[trip]:
        held[trip] = False
        return
    departure[trip] = tick
    vehicles[trip].next = -1
    if counts.late_head < 0:
        counts.late_head = trip
    else:
        vehicles[counts.late_tail].next = trip
    counts.late_tail = trip


@inner
def _ask_ahead(
    word: int,
    due: Bitmap,
    lanes: Records,
    movements: Records,
    links: Records,
    vehicles: Records,
    exits: Int32Array,
    cursor: Int32Array,
    starts: IntArray,
    route: LinkIds,
    bits: int,
) -> None:
    """Prefetch what visits will need of the lanes of the next word of a pass, and the first vehicles of the one after.

    Visits wait for memory one after another, these loops for many records at once.
    """
    low_bits = np.uint64((1 << bits) - 1)
    left = due[word + 2] if word + 2 < len(due) else _LOW
    while left != _LOW:
        lane = lanes[((word + 2) << _WORD) + np.int64(trailing_zeros(left))]
        prefetch(vehicles, lane.head)
        prefetch(exits, lane.exits + lane.oldest)
        left &= left - _BIT
    left = due[word + 1] if word + 1 < len(due) else _LOW
    while left != _LOW:
        lane = lanes[((word + 1) << _WORD) + np.int64(trailing_zeros(left))]
        left &= left - _BIT
        if lane.head < 0:
            continue
        mover = vehicles[lane.head]
        prefetch(vehicles, mover.next)
        code = mover.turns & low_bits
        if (mover.turns >> np.uint64((TURNS_KNOWN - 1) * bits)) & low_bits == _LOW:  # it will be refilled
            at = starts[lane.head] + cursor[lane.head]
            prefetch(route, at - TURNS_KNOWN + 1)
            prefetch(route, at + 64 // bits - TURNS_KNOWN)
        elif code != low_bits:
            prefetch(movements, lane.first_movement + np.int64(code) - 1)  # which may be no address, without harm
            prefetch(lanes, links[lane.first_out + np.int64(code) - 1].first_lane)


@compiled
def advance(  # noqa: C901, PLR0912, PLR0915  # one hot loop; function calls would slow it down
    lanes: Records,
    held: Records,
    links: Records,
    trips: Records,
    movements: Records,
    windows: Int32Array,
    foes: Int32Array,
    turn_lanes: Bitmap,
    turn_reach: Bitmap,
    vehicle_class: npt.NDArray[np.uint8],
    pace: FloatArray,
    length_m: FloatArray,
    exits: Int32Array,
    vehicles: Records,
    cursor: Int32Array,
    starts: IntArray,
    ends: IntArray,
    route: LinkIds,
    turn_codes: Turns,
    planned: Int32Array,
    departure: Int32Array,
    following: Int32Array,
    held_back: Mask,
    stop_ticks: int,
    ring: Bitmap,
    origins: Bitmap,
    counters: Records,
    measured: IntArray,
    log: IntArray,
    log_every: int,
    bits: int,
    rules: Rules,
    start: int,
    stop: int,
) -> None:
    """Move every vehicle through passes `start` … `stop` − 1.

    Parameters
    ----------
    lanes, held, links, trips, movements
        As in `LinkPhysics` (trips: its entries), with the present state.
    windows, foes, turn_lanes, turn_reach, vehicle_class, pace, length_m
        As in `LinkPhysics`.
    exits
        (total storage,) int32: the last exit times of each lane.
    vehicles
        (vehicles,) `VEHICLE` records.
    cursor
        (vehicles,) int32: position in a vehicle's row at which its next refill begins.
    starts, ends, route
        As `start`, `end` and `links` of a `RouteBook`.
    turn_codes
        (links,) uint16: the code of the turn onto each link, in less memory than its number and the first one that
        leaves the node.
    planned
        (vehicles,) int32, ascending ticks: the departures as planned.
    departure
        (vehicles,) int32: the same; the departure of a trip whose vehicle comes too late is changed.
    following, held_back, stop_ticks
        As `following`, `follows` and `stop_ticks` of `Trips`; a trip that may depart is no longer held back.
    ring
        (64, ⌈lanes / 64⌉) uint64, the calendar of passes.
    origins
        (⌈links / 64⌉,) uint64, bitmap of the links that trips wait to enter.
    counters
        (1,) `COUNTS`.
    measured
        (links, 2) int64: vehicles that have entered each link from another, or ended their trips on it, and the time
        that they lost on the link before; empty if not measured.
    log
        (rows,) int64: a `log_row` for every link entry and arrival, with room for all; empty to disable logging.
    log_every
        Only vehicles whose number is a multiple of this power of 2 are logged.
    bits, rules, start, stop
        Bits of a turn code; the constants of driving; the range of passes.
    """
    counts = counters[0]
    touring = len(following) > 0
    by_class = len(vehicle_class) > 0
    fleet = len(planned)
    low_bits = np.uint64((1 << bits) - 1)
    turn_shift = np.uint64(bits)
    last_known = np.uint64((TURNS_KNOWN - 1) * bits)
    arrive = (1 << bits) - 1
    pass_bits = rules.pass_bits
    lane_words = ring.shape[1]
    ways = _Ways(bits, lanes, held, links, turn_lanes, turn_reach, exits, rules.other_lane)
    moving = _Moving(vehicles, ring, pace, length_m, log, log_every, counts, pass_bits)
    crossroads = _Crossroads(lanes, held, movements, windows, foes, vehicles, low_bits, rules)
    for pass_no in range(start, stop):
        now = pass_no << pass_bits
        earliest = now - (1 << pass_bits) + 1  # after the last pass: for trips and those that a junction refused

        while counts.departed < fleet and planned[counts.departed] << FRACTION_BITS <= now:
            vehicle = counts.departed
            counts.departed += 1
            if touring and held_back[vehicle]:
                counts.held += 1
                continue
            _depart(vehicle, starts, route, cursor, trips, vehicles, origins)
            counts.waiting += 1
        while touring and counts.late_head >= 0 and departure[counts.late_head] << FRACTION_BITS <= now:
            vehicle = counts.late_head
            counts.late_head = vehicles[vehicle].next
            held_back[vehicle] = False
            _depart(vehicle, starts, route, cursor, trips, vehicles, origins)
            counts.held -= 1
            counts.waiting += 1

        due = ring[pass_no & (RING - 1)]
        first_link: Index = np.int64(-1)  # of those with claims
        last_link: Index = np.int64(-1)
        at: Index
        target: Index
        slot = NEVER
        for word in range(lane_words + len(origins) + 1):  # lanes, trips, and then those who claim an entry
            pending = _LOW
            if word < lane_words:
                pending = due[word]
                due[word] = _LOW
                _ask_ahead(word, due, lanes, movements, links, vehicles, exits, cursor, starts, route, bits)
            elif word < lane_words + len(origins):
                pending = origins[word - lane_words]
            while True:
                chosen, target = False, np.int64(-1)
                if pending != _LOW:
                    at = (word << _WORD) + np.int64(trailing_zeros(pending))
                    pending &= pending - _BIT
                elif word < lane_words + len(origins) or first_link < 0:
                    break
                else:
                    at = np.int64(-1)
                if at < 0 or word >= lane_words:
                    onto = np.int64(first_link) if at < 0 else at - (lane_words << _WORD)
                    link, entry = links[onto], trips[onto]
                    if at >= 0:
                        if link.closed:
                            continue
                        link.starts = 1
                        if link.contested >= pass_no:
                            if link.next_link == NO_CLAIMS:
                                first_link, last_link = _enlist(onto, first_link, last_link, links)
                            continue
                    elif link.first_claim < 0 and link.starts == 0:
                        first_link = np.int64(link.next_link)
                        link.next_link = NO_CLAIMS
                        continue
                    if link.starts == 1 and vehicles[entry.head].turns == _LOW:
                        vehicle = np.int64(entry.head)
                        vehicles[vehicle].turns = _refill(vehicle, cursor, starts, ends, route, turn_codes, bits)
                    at, target, slot = _next_to_enter(
                        onto, earliest, now, trips, movements, vehicles, departure, vehicle_class, ways
                    )
                    chosen = True
                    if at < 0:
                        vehicle = np.int64(entry.head)
                        mover, entered = vehicles[vehicle], lanes[target]
                        time = max(departure[vehicle] << FRACTION_BITS, slot, earliest)
                        if time > now:
                            link.starts = 0
                            link.contested = max(
                                link.contested, next_visit(time, pass_no, pass_bits) + CONTESTED_PASSES
                            )
                            continue
                        if link.contested >= pass_no:
                            ahead = lead(entry.served, entered.virtual, entry.stride, link.lanes)
                            entry.served = entered.virtual + ahead + entry.stride
                            entered.virtual += max(ahead, 0)
                            held[target].entered_from = -1
                        entry.head = mover.next
                        place = target - link.first_lane
                        _enter(vehicle, target, place, time, rules.entry_loss, entered, moving, pass_no)
                        counts.waiting -= 1
                        counts.on_road += 1
                        bit = _BIT << np.uint64(onto & 63)
                        if entry.head < 0:
                            origins[onto >> _WORD] &= ~bit
                            link.starts = 0
                        elif word < lane_words + len(origins):
                            pending |= bit  # the next trip may start in this pass too
                        continue
                lane = lanes[at]
                while lane.head >= 0:
                    vehicle = np.int64(lane.head)
                    mover = vehicles[vehicle]
                    ready = max(mover.entry + lane.free, lane.discharge)
                    if ready > now:
                        _schedule(ring, at, ready, pass_no, pass_bits)
                        break
                    prefetch(vehicles, mover.next)
                    turns = mover.turns
                    if (turns >> last_known) & low_bits == _LOW:
                        cursor[vehicle] -= unread(turns, bits)
                        turns = _refill(vehicle, cursor, starts, ends, route, turn_codes, bits)
                        mover.turns = turns
                    code = np.int64(turns & low_bits)
                    was_held = (ready + (1 << pass_bits) - 1) >> pass_bits < pass_no and held[at].vehicle == vehicle
                    time = ready
                    headway = lane.headway
                    plain = lane.first_movement < 0
                    onto = np.int64(lane.link)
                    if code != arrive:
                        onto = np.int64(lane.first_out) + code - 1
                        link = links[onto]
                        if link.closed:
                            _hold(vehicle, at, ready, FULL, held)
                            held[at].full_pass, held[at].full_lane, held[at].blocked_since = pass_no, -1, -1
                            held[at].not_before = now + 1
                            _schedule(ring, at, now + 1, pass_no, pass_bits)
                            break
                        if not chosen and link.contested >= pass_no:
                            held[at].next_claim = link.first_claim
                            link.first_claim = at
                            if link.next_link == NO_CLAIMS:
                                first_link, last_link = _enlist(onto, first_link, last_link, links)
                            break
                        crossing, forced = 0, 0
                        move = np.int64(-1)
                        if not plain:
                            move = np.int64(lane.first_movement) + code - 1
                            movement = movements[move]
                            headway = movement.headway
                            crossing = movement.crossing
                        since = ready
                        if was_held:
                            time, since = _not_before(ready, earliest, held[at]), held[at].ready_since
                        if target < 0:
                            of_class = np.int64(vehicle_class[vehicle]) if by_class else np.int64(0)
                            target, slot = _lane_of(
                                onto, at, turns, turns >> turn_shift, of_class, time + crossing, ways
                            )
                        entered = lanes[target]
                        if slot == NEVER:
                            link.contested = max(link.contested, pass_no + CONTESTED_PASSES)
                            _hold(vehicle, at, ready, FULL, held)
                            state = held[at]
                            state.full_pass, state.full_lane = pass_no, target
                            if state.blocked_since < 0:
                                state.blocked_since = pass_no
                            blocked = pass_no - state.blocked_since
                            if rules.stuck_passes < 0 or blocked < rules.stuck_passes:
                                turn = blocked > 0 and blocked % rules.rotation_passes == 0
                                if not turn or not _rotate(at, pass_no, ways, movements, measured, moving):
                                    _schedule(ring, at, now + 1, pass_no, pass_bits)
                                break
                            slot = max(now + crossing, entered.last_in + entered.headway)
                            forced, was_held = 1, True
                        time = max(time, slot - crossing)
                        if time > now:
                            link.contested = max(
                                link.contested, next_visit(time, pass_no, pass_bits) + CONTESTED_PASSES
                            )
                            _hold(vehicle, at, ready, FREE, held)
                            _schedule(ring, at, time, pass_no, pass_bits)
                            break
                        if not plain:
                            time, holds, headway, refused = _junction(
                                movement, time, ready, since, at, pass_no, crossroads
                            )
                            if holds != FREE:
                                _hold(vehicle, at, ready, holds, held)
                                held[at].not_before = max(held[at].not_before, refused)
                                _schedule(ring, at, time, pass_no, pass_bits)
                                break
                        if link.contested >= pass_no:
                            ahead = _lead_of(at, move, onto, entered.virtual, link.lanes, lanes, held, movements)
                            state = held[at]
                            if plain:
                                state.served, state.served_onto = entered.virtual + ahead + headway, onto
                            else:
                                movement.served = entered.virtual + ahead + movement.stride
                            entered.virtual += max(ahead, 0)
                            if held[target].entered_from != at and (plain or movement.foes == 0):
                                headway = next_headway(
                                    headway, time - ready, time + crossing, entered.last_in, entered.headway
                                )
                            held[target].entered_from = at
                        counts.stuck += forced
                        loss = 0
                        if not plain:
                            why = held[at].why if was_held else FREE
                            if why >= RED or movement.control != 0:
                                loss = rules.start_loss
                            elif why == FREE:
                                loss = held[at].loss * rules.loss_kept >> FRACTION_BITS
                            held[at].loss = loss
                            movement.last_pass = time
                    if was_held:
                        held[at].vehicle = -1
                    _leave(lane, mover, time, headway, onto, exits, measured)
                    counts.crossings += 1
                    if code != arrive:
                        mover.turns = turns >> turn_shift
                        place = target - link.first_lane
                        _enter(vehicle, target, place, time + crossing, loss, entered, moving, pass_no)
                    else:
                        counts.on_road -= 1
                        counts.arrived += 1
                        counts.trip_time += time - (departure[vehicle] << FRACTION_BITS)
                        if touring and following[vehicle] >= 0:
                            tick = ((now + ONE_TICK - 1) >> FRACTION_BITS) + stop_ticks
                            _plan(following[vehicle], tick, planned, departure, held_back, vehicles, counts)
                        _keep(vehicle, time, 0, log, log_every, counts)
                    chosen, target = False, np.int64(-1)  # the next vehicle may cross in this pass too


def empty_calendar(lane_count: int, link_count: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return an empty calendar ring (64, words) and an empty origin bitmap (words,), both uint64."""
    return np.zeros((RING, (lane_count + 63) >> _WORD), np.uint64), np.zeros((link_count + 63) >> _WORD, np.uint64)
