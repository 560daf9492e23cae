"""Jumps of a recording: moves faster than any of its vehicles, and the wrong fixes that cause them."""

from dataclasses import replace

import numpy as np

from simulator.arrays import FloatArray, Int32Array, IntArray, Mask
from simulator.files.messages import counted, warning
from simulator.files.times import in_words
from simulator.formats.recordings.trace import Trace

_RECURS = 2
"""Number of wrong fixes at one place from which on the place is left out everywhere."""


def without_jumps(trace: Trace, *, highest_mps: float, gap_s: float) -> Trace:
    """Return a trace without moves that are faster than `highest_mps`, and with warnings that count what was changed.

    A fix, or a stay at one place, is left out if the moves to it and from it are too fast, and the move past it is not;
    so is the first or the last fix of a vehicle if one move is too fast, and the neighbour agrees with other fixes. A
    place of several such fixes is left out everywhere, unless a vehicle has driven to it. Any other move that is too
    fast becomes the border of two pieces of the recording. Recorded speeds that are too high are not used.

    Parameters
    ----------
    trace
        The recorded fixes.
    highest_mps
        Highest speed of a vehicle, m/s.
    gap_s
        Maximum time between two fixes between which a vehicle's way is known, seconds.
    """
    vehicle, moves, done = trace.vehicle, _Moves(trace, highest_mps), list[str]()
    over = trace.speed_mps > highest_mps
    if over.any():
        speeds = counted(int(over.sum()), "recorded speed is", "recorded speeds are")
        note = warning("jumps", f"{speeds} above highest_mps = {highest_mps:g} and not used")
        trace = replace(trace, speed_mps=np.where(over, np.nan, trace.speed_mps), left_out=(*trace.left_out, note))
    fast = np.flatnonzero((vehicle[1:] == vehicle[:-1]) & moves.too_fast(slice(-1), slice(1, None)))
    if not len(fast):
        return trace
    # A vehicle without a jump has no wrong fix, unless at a place that the fixes of others tell to be wrong.
    jumps, kept = np.bincount(vehicle[fast], minlength=trace.vehicles) > 0, np.ones(len(trace), dtype=np.bool_)
    while len(wrong := _wrong_fixes(moves, vehicle, np.flatnonzero(kept & jumps[vehicle]))):
        kept[wrong] = False
    recurring = _at_wrong_places(trace, moves, kept, gap_s)
    recurring &= (kept & ~recurring).any()  # two places may each be wrong by the other
    if alone := int((~kept & ~recurring).sum()):
        done.append(f"left out {counted(alone, 'fix', 'fixes')} away from the fixes before and after")
    if recurring.any():
        place = f"longitude {trace.lon[recurring][0]:g}, latitude {trace.lat[recurring][0]:g}"
        done.append(f"left out {counted(int(recurring.sum()), 'fix', 'fixes')} at places that recur, as {place}")
    kept &= ~recurring
    at = np.flatnonzero(kept & jumps[vehicle])
    cut = np.flatnonzero((vehicle[at[1:]] == vehicle[at[:-1]]) & moves.too_fast(at[:-1], at[1:]))
    before, after = at[cut], at[cut + 1]
    known = (trace.piece[after] == trace.piece[before]) & (trace.time_s[after] - trace.time_s[before] <= gap_s)
    if cuts := int(known.sum()):
        done.append(f"cut the recording at {counted(cuts, 'move')}, where the vehicle is absent as in a gap")
    if done:
        with np.errstate(over="ignore"):  # moments may differ by next to nothing
            speed = moves.metres(fast, fast + 1) / (trace.time_s[fast + 1] - trace.time_s[fast])
        first, most = fast[np.argmin(trace.time_s[fast])] + 1, fast[np.argmax(speed)] + 1
        named = [
            f"vehicle {trace.names[vehicle[at]]!r} at {in_words(float(trace.time_s[at]), calendar=trace.calendar)}"
            for at in (first, most)
        ]
        words = f"{counted(len(fast), 'move is', 'moves are')} faster than highest_mps = {highest_mps:g}"
        words += f", the first of {named[0]}, the fastest of {named[1]}, {speed.max():,.0f} m/s: {' and '.join(done)}"
        trace = replace(trace, left_out=(*trace.left_out, warning("jumps", words)))
    borders = np.diff(trace.piece, prepend=0) != 0
    borders[after] = True
    trace = replace(trace, piece=np.cumsum(borders))
    return trace if kept.all() else trace.only(kept)


class _Moves:
    """Moves between fixes of a trace: their lengths, and whether they are too fast."""

    def __init__(self, trace: Trace, highest_mps: float) -> None:
        self.lon, self.lat, self._time_s, self._highest_mps = trace.lon, trace.lat, trace.time_s, highest_mps

    def metres(self, start: IntArray | slice, end: IntArray | slice) -> FloatArray:
        """Return the lengths of moves on the plane that touches the earth between both fixes, (n,) float64.

        They are accurate to .1 % up to 100 km. The lengths of a degree are the usual series for WGS84.
        """
        lon, lat = np.abs(self.lon[end] - self.lon[start]), self.lat[end] - self.lat[start]
        cos = np.cos(np.radians((self.lat[end] + self.lat[start]) / 2.0))
        lon = np.minimum(lon, 360.0 - lon) * cos * (111_693.34 - 374.0 * cos**2)
        return np.hypot(lon, lat * (111_692.78 - 1119.64 * cos**2))

    def too_fast(self, start: IntArray | slice, end: IntArray | slice) -> Mask:
        """Return whether moves are faster than the highest speed, (n,) bool."""
        return self.metres(start, end) > self._highest_mps * (self._time_s[end] - self._time_s[start])


def _wrong_fixes(moves: _Moves, vehicle: Int32Array, at: IntArray) -> IntArray:
    """Return the fixes among `at`, ascending, that the fixes before and after them tell to be wrong."""
    places = moves.lon[at] + 1j * moves.lat[at]
    starts = np.flatnonzero(np.append(True, (np.diff(vehicle[at]) != 0) | (np.diff(places) != 0)))
    first, last = at[starts], at[np.append(starts[1:], len(at)) - 1]
    # Before each stay, and after the last one.
    border = np.concatenate(([True], vehicle[last[:-1]] != vehicle[first[1:]], [True]))
    jump = np.concatenate(([False], moves.too_fast(last[:-1], first[1:]), [False])) & ~border
    wrong, single = np.zeros(len(starts), dtype=np.bool_), first == last
    inner = np.flatnonzero(jump[:-1] & jump[1:])
    inner = inner[~moves.too_fast(last[inner - 1], first[inner + 1])]
    # A neighbour on one side is enough for an end, if it is no wrong stay itself.
    agrees = ~(single & (border | jump)[:-1] & (border | jump)[1:])
    agrees[inner] = False
    head, tail = np.flatnonzero(border[:-1] & jump[1:] & single), np.flatnonzero(border[1:] & jump[:-1] & single)
    wrong[head[agrees[head + 1]]] = wrong[tail[agrees[tail - 1]]] = True
    # Where two vehicles of one name alternate, each fix is wrong for its neighbours: every other one is left out.
    begins = np.diff(inner, prepend=-2) != 1
    place = np.arange(len(inner)) - np.flatnonzero(begins)[np.cumsum(begins) - 1]
    wrong[inner[place % 2 == 0]] = True
    return at[np.repeat(wrong, np.diff(np.append(starts, len(at))))]


def _at_wrong_places(trace: Trace, moves: _Moves, kept: Mask, gap_s: float) -> Mask:
    """Return the fixes at places of several fixes that are not `kept`, without places to which a vehicle has driven."""
    spots = trace.lon + 1j * trace.lat
    wrong, fixes = np.unique(spots[~kept], return_counts=True)
    there = np.isin(trace.lon, wrong[fixes >= _RECURS].real)
    there[there] = np.isin(spots[there], wrong[fixes >= _RECURS])
    if not there.any():
        return there
    before, after = np.flatnonzero(kept)[:-1], np.flatnonzero(kept)[1:]
    ends = there[before] != there[after]
    before, after = before[ends], after[ends]
    drives = (trace.vehicle[before] == trace.vehicle[after]) & (trace.time_s[after] - trace.time_s[before] <= gap_s)
    drives &= ~moves.too_fast(before, after)
    there[there] = ~np.isin(spots[there], spots[np.concatenate((before[drives], after[drives]))])
    return there
