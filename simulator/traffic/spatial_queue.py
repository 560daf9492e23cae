"""Compiled kernel of the spatial queue.

These techniques make it fast, measured on the 20 × 20 grid:

- A *bitmap calendar*: one bit per link for each of the next 64 ticks, read by counting trailing zeros. It yields
    links in ascending order without duplicates or sorting. A superfluous visit is harmless, so a link whose head is
    due beyond the ring gets one visit before that.
- A vehicle's next turns are encoded in one 64-bit word of its record, refilled from the route every dozen links:
  most crossings do not read the route, which avoids a cache miss that would cost as much as the rest.
- One 64-byte record per link and one 16-byte record per vehicle. Vehicles are numbered in order of departure, so that
  those on the road at the same time are adjacent in memory.
- A blocked link is visited again in each tick: this is as fast as a list of waiting links, and no wake-up can be lost.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from mechanisms.compiled import compiled
from simulator.arrays import Int32Array, IntArray, LinkIds, StateArray
from simulator.traffic.physics import FRACTION_BITS, ONE_TICK
from simulator.traffic.queue_engine import LOG_BITS


@intrinsic
def _trailing_zeros(typing_context: Any, word: Any) -> Any:  # noqa: ARG001  # numba's own protocol
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


trailing_zeros = cast("Callable[[np.uint64], np.uint64]", _trailing_zeros)
"""Return the number of zero bits below the lowest set bit of a nonzero uint64; only for use in compiled code."""

Bitmap = npt.NDArray[np.uint64]
Index = int | np.int64
Record = Any  # whose fields numba reads as attributes
Records = Any

LINK = np.dtype(
    [
        ("discharge", np.int64),  # when the next vehicle may leave, in 1/1024 tick
        ("head", np.int32),  # first vehicle of the queue, -1 if empty
        ("tail", np.int32),
        ("count", np.int32),
        ("storage", np.int32),  # -1 while the link is closed
        ("free_ticks", np.int32),
        ("headway", np.int32),
        ("first_out", np.int32),  # first link that leaves this link's end
        ("blocked_since", np.int32),  # tick at which the head was first blocked, -1 if it was not
        ("freed_tick", np.int32),  # places freed in this tick count from the next tick
        ("freed_count", np.int32),
        ("origin_head", np.int32),  # queue of trips that wait to enter
        ("origin_tail", np.int32),
        ("passed", np.int64),  # vehicles that left it, times ONE_PASSED, plus their ticks on it
    ]
)
assert LINK.itemsize == 64  # noqa: S101  # one cache line; a failure here is a bug, not a user error

VEHICLE = np.dtype([("entry", np.int32), ("next", np.int32), ("turns", np.uint64)])

COUNTS = np.dtype(
    [
        ("departed", np.int64),
        ("waiting", np.int64),
        ("on_road", np.int64),
        ("arrived", np.int64),
        ("stuck", np.int64),
        ("logged", np.int64),
        ("trip_ticks", np.int64),  # from departure to arrival, summed over those that have arrived
    ]
)

ONE_PASSED = 1 << 36
"""Unit of the vehicle counter in a word that also counts ticks, so that a crossing costs one addition.

The word holds up to 2²⁷ vehicles and 2³⁶ ticks in total.
"""

RING = 64
"""Number of ticks in the calendar, including the current tick."""

_WORD = 6  # log2 of the bits in a word of a bitmap
_LOW = np.uint64(0)
_BIT = np.uint64(1)


def turn_bits(most_out_links: int) -> int:
    """Return the number of bits of a turn code: 0 means refill, all ones means arrive, other values are an out-link."""
    for bits in (4, 8, 16):
        if most_out_links <= (1 << bits) - 2:
            return bits
    raise ValueError(f"a node may have at most 65,534 links that leave it, received {most_out_links}")


@compiled
def _set_bit(bitmap: Bitmap, link: Index) -> None:
    bitmap[link >> _WORD] |= _BIT << np.uint64(link & 63)


@compiled
def _schedule(ring: Bitmap, link: Index, due: int, now: int) -> None:
    """Schedule a visit to `link` at `due`, or at the last tick of the ring; never in the current tick."""
    due = min(max(due, now + 1), now + RING - 1)
    _set_bit(ring[due & (RING - 1)], link)


@compiled
def _refill(
    vehicle: Index, cursor: Int32Array, starts: IntArray, ends: IntArray, route: LinkIds, links: Records, bits: int
) -> np.uint64:
    """Encode the next turns of `vehicle` in a word, the first turn in the lowest bits."""
    start = starts[vehicle]
    at = start + cursor[vehicle]
    end = ends[vehicle]
    arrive = np.uint64((1 << bits) - 1)
    word = _LOW
    shift = 0
    while shift < 64:
        if at == end:
            word |= arrive << np.uint64(shift)
            break
        turn = np.uint64(route[at] - links[route[at - 1]].first_out + 1)
        word |= turn << np.uint64(shift)
        shift += bits
        at += 1
    cursor[vehicle] = at - start
    return word


@compiled
def _has_room(link: Record, tick: int) -> bool:
    taken = link.count
    if link.freed_tick == tick:
        taken += link.freed_count
    return bool(taken < link.storage)


@compiled
def _enter(vehicle: Index, at: Index, link: Record, vehicles: Records, ring: Bitmap, tick: int) -> None:
    """Append `vehicle` to the queue of link number `at`, whose record is `link`."""
    mover = vehicles[vehicle]
    mover.entry = tick
    mover.next = -1
    if link.head < 0:
        link.head = vehicle
        _schedule(ring, at, max(tick + link.free_ticks, link.discharge >> FRACTION_BITS), tick)
    else:
        vehicles[link.tail].next = vehicle
    link.tail = vehicle
    link.count += 1


@compiled
def advance(  # noqa: C901, PLR0912, PLR0915  # one hot loop; function calls would slow it down
    links: Records,
    vehicles: Records,
    cursor: Int32Array,
    starts: IntArray,
    ends: IntArray,
    route: LinkIds,
    departure: Int32Array,
    ring: Bitmap,
    origins: Bitmap,
    counters: Records,
    log: IntArray,
    log_every: int,
    bits: int,
    stuck_ticks: int,
    start: int,
    stop: int,
) -> None:
    """Move every vehicle through ticks `start` … `stop` − 1.

    Parameters
    ----------
    links
        (links,) `LINK` records.
    vehicles
        (vehicles,) `VEHICLE` records.
    cursor
        (vehicles,) int32: position in a vehicle's row at which its next refill begins.
    starts, ends, route
        As `start`, `end` and `links` of a `RouteBook`.
    departure
        (vehicles,) int32, ascending ticks.
    ring
        (64, ⌈links / 64⌉) uint64, the calendar.
    origins
        (⌈links / 64⌉,) uint64, bitmap of the links that trips wait to enter.
    counters
        (1,) `COUNTS`.
    log
        (rows,) int64: a row for every link entry and arrival, vehicle · 2³² + tick, in chronological order, with room
        for all; empty to disable logging. One word a row makes the kernel 4 % slower; three took 40 %.
    log_every
        Only vehicles whose number is a multiple of this power of 2 are logged.
    bits, stuck_ticks, start, stop
        Bits of a turn code; ticks after which a blocked head is forced through; the range of ticks.
    """
    counts = counters[0]
    logging = log.shape[0] > 0
    skip = log_every - 1
    logged = counts.logged
    fleet = len(departure)
    words = len(origins)
    low_bits = np.uint64((1 << bits) - 1)
    turn_shift = np.uint64(bits)
    arrive = (1 << bits) - 1
    for tick in range(start, stop):
        now = tick << FRACTION_BITS
        end_of_tick = now + ONE_TICK - 1

        while counts.departed < fleet and departure[counts.departed] <= tick:
            vehicle = counts.departed
            first = route[starts[vehicle]]
            cursor[vehicle] = 1
            link = links[first]
            vehicles[vehicle].next = -1
            if link.origin_head < 0:
                link.origin_head = vehicle
                _set_bit(origins, first)
            else:
                vehicles[link.origin_tail].next = vehicle
            link.origin_tail = vehicle
            counts.departed += 1
            counts.waiting += 1

        due = ring[tick & (RING - 1)]
        for word in range(words):
            pending = due[word]
            if pending == _LOW:
                continue
            due[word] = _LOW
            while pending != _LOW:
                at = (word << _WORD) + np.int64(trailing_zeros(pending))
                pending &= pending - _BIT
                link = links[at]
                vehicle = link.head
                blocked = False
                while vehicle >= 0:
                    mover = vehicles[vehicle]
                    if mover.entry + link.free_ticks > tick or link.discharge > end_of_tick:
                        break
                    turns = mover.turns
                    if turns & low_bits == _LOW:
                        turns = _refill(vehicle, cursor, starts, ends, route, links, bits)
                        mover.turns = turns
                    code = np.int64(turns & low_bits)
                    onto = np.int64(link.first_out) + code - 1
                    if code != arrive:
                        ahead = links[onto]
                        if not _has_room(ahead, tick):
                            if ahead.storage < 0:  # closed: nothing is forced onto it, and the wait is not counted
                                link.blocked_since = -1
                                blocked = True
                                break
                            if link.blocked_since < 0:
                                link.blocked_since = tick
                            if tick - link.blocked_since < stuck_ticks:
                                blocked = True
                                break
                            counts.stuck += 1
                    follower = mover.next
                    link.head = follower
                    link.count -= 1
                    if link.freed_tick == tick:
                        link.freed_count += 1
                    else:
                        link.freed_tick = tick
                        link.freed_count = 1
                    link.discharge = max(link.discharge, now) + link.headway
                    link.blocked_since = -1
                    link.passed += ONE_PASSED + tick - mover.entry
                    if logging and vehicle & skip == 0:
                        log[logged] = (vehicle << LOG_BITS) | tick
                        logged += 1
                    if code != arrive:
                        mover.turns = turns >> turn_shift
                        _enter(vehicle, onto, links[onto], vehicles, ring, tick)
                    else:
                        counts.on_road -= 1
                        counts.arrived += 1
                        counts.trip_ticks += tick - departure[vehicle]
                    vehicle = follower
                if blocked:
                    _schedule(ring, at, tick + 1, tick)
                elif vehicle >= 0:
                    ready = max(vehicles[vehicle].entry + link.free_ticks, link.discharge >> FRACTION_BITS)
                    _schedule(ring, at, ready, tick)

        for word in range(words):
            pending = origins[word]
            while pending != _LOW:
                at = (word << _WORD) + np.int64(trailing_zeros(pending))
                pending &= pending - _BIT
                link = links[at]
                while link.origin_head >= 0 and _has_room(link, tick):
                    vehicle = link.origin_head
                    link.origin_head = vehicles[vehicle].next
                    _enter(vehicle, at, link, vehicles, ring, tick)
                    counts.waiting -= 1
                    counts.on_road += 1
                    if logging and vehicle & skip == 0:
                        log[logged] = (vehicle << LOG_BITS) | tick
                        logged += 1
                if link.origin_head < 0:
                    origins[word] &= ~(_BIT << np.uint64(at & 63))
    counts.logged = logged


@compiled
def survey(links: Records, vehicles: Records, state: StateArray, where: Int32Array, entry: Int32Array) -> None:
    """Write each queued vehicle's state, link and entry tick; vehicles in no queue have arrived and are not changed.

    Parameters
    ----------
    links, vehicles
        As in `advance`.
    state
        (departed,) uint8, preset to 3 (arrived).
    where
        (departed,) int32, preset to each vehicle's last link.
    entry
        (departed,) int32.
    """
    for at in range(len(links)):
        vehicle = links[at].head
        while vehicle >= 0:
            state[vehicle] = 2
            where[vehicle] = at
            entry[vehicle] = vehicles[vehicle].entry
            vehicle = vehicles[vehicle].next
        vehicle = links[at].origin_head
        while vehicle >= 0:
            state[vehicle] = 1
            where[vehicle] = at
            vehicle = vehicles[vehicle].next


@compiled
def positions(vehicles: Records, cursor: Int32Array, departed: int, bits: int) -> Int32Array:
    """Return the position in its row of the link each vehicle is on, or waits to enter: (departed,) int32.

    The cursor is ahead of the vehicle by the number of turns left in its word.
    """
    low_bits = np.uint64((1 << bits) - 1)
    at = np.empty(departed, dtype=np.int32)
    for vehicle in range(departed):
        turns = vehicles[vehicle].turns
        unread = 0
        while turns & low_bits != _LOW and turns & low_bits != low_bits:
            turns >>= np.uint64(bits)
            unread += 1
        at[vehicle] = cursor[vehicle] - 1 - unread
    return at


def empty_calendar(link_count: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return an empty calendar ring (64, words) and an empty origin bitmap (words,), both uint64."""
    words = (link_count + 63) >> _WORD
    return np.zeros((RING, words), dtype=np.uint64), np.zeros(words, dtype=np.uint64)
