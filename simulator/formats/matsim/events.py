"""Events of a MATSim run as recorded traffic: vehicles on links, with the exact times at which they enter and leave."""

import re
from array import array
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from simulator.arrays import FloatArray, Int32Array, IntArray
from simulator.files.errors import InputError
from simulator.files.messages import Note, counted, counted_by, warning
from simulator.files.times import time_of_day
from simulator.files.tntp_text import finite_number
from simulator.files.xml_elements import elements_of
from simulator.roads import RoadNetwork
from simulator.traffic.recording import Recording, Tracks

_STARTS, _ENTERS, _LEAVES, _ENDS = range(4)
_TYPES = {
    "vehicle enters traffic": _STARTS,
    "wait2link": _STARTS,
    "entered link": _ENTERS,
    "left link": _LEAVES,
    "vehicle leaves traffic": _ENDS,
    "vehicle aborts": _ENDS,
}
"""Types of events that state where a vehicle is; ``wait2link`` is the name of the first in old files."""
_OF_DAY = re.compile(r"\d+:\d\d(:\d\d)?")


def read_matsim_events(
    files: Sequence[Path],
    roads: RoadNetwork | None,
    *,
    modes: Collection[str] | None = None,
    highest_mps: float = np.inf,
    start: str | float | None = None,
    hold_s: float = 0.0,
) -> Recording:
    """Read the vehicles of MATSim's events, public transport included, on the links of MATSim's network.

    A vehicle enters traffic at the end of its departure link, or where ``relativePosition`` states, and drives its last
    link to the end. It covers a link evenly between the times of entering and leaving it. Between two trips it is
    parked, and absent. Links that are not among the roads are left out, and a vehicle is absent there.

    Parameters
    ----------
    files
        Files of events, plain or compressed, each in the order of time, as MATSim writes them.
    roads
        Roads whose edges carry ``matsim_link``.
    modes
        Vehicles of other modes are left out; None for all. The mode is the ``networkMode`` with which a vehicle
        enters traffic, else the ``legMode`` of its driver's departure; a vehicle of an unknown mode is taken.
    highest_mps
        On a link that a vehicle covers faster than this, m/s, it is absent.
    start
        Second of the events, or time of day, that is second 0 of the run; None for the first event on the roads.
    hold_s
        Time after a trip for which the vehicle stays at its end, and is asked.

    Raises
    ------
    InputError
        If a file is faulty, the roads are not MATSim's, no vehicle has one of the modes, or no event is on the roads
        from `start` on.
    """
    link_of = {} if roads is None else roads.links_named_by("matsim_link")
    if roads is None or not link_of:
        raise InputError(['events of MATSim need roads read from its network: [roads] source = "matsim"'])
    vehicle, time_s, link, kind, position, notes = _events(files, link_of, modes)
    known_link = link >= 0
    if not known_link.any():
        raise InputError([f"{files[0]}: no event of {len(vehicle):,} with vehicles is on a link of the roads"])
    joined = np.append(vehicle[1:] == vehicle[:-1], False)
    if (np.diff(time_s)[joined[:-1]] < 0).any():
        raise InputError([f"{files[0]}: the events of a vehicle must be in the order of time"])
    start_s = _start(start, float(time_s[known_link].min()))
    time_s -= start_s
    follows = np.append(np.arange(1, len(link)), 0)
    drives = joined & known_link & (kind <= _ENTERS) & (kind[follows] >= _LEAVES) & (link[follows] == link)
    waits = joined & known_link & (kind == _LEAVES) & (kind[follows] == _ENTERS) & known_link[follows]
    at_once = waits & (time_s[follows] == time_s)
    comes_to = np.where(drives, position[follows], position)
    lasts_s = np.where(drives | waits, time_s[follows] - time_s, 0.0)
    length_m = np.where(drives, np.maximum(comes_to - position, 0.0) * roads.links.length_m[link], 0.0)
    too_fast = (lasts_s > 0.0) & (length_m > highest_mps * lasts_s)
    drives &= ~too_fast
    within = (time_s >= 0.0) | ((drives | waits) & (time_s[follows] > 0.0))
    kept = np.flatnonzero(known_link & ~at_once & within)
    if not len(kept):
        raise InputError([f"start must be before the last event, got {start!r}"])
    # Vehicles in the order of their first events.
    first_s = pd.Series(time_s[kept]).groupby(vehicle[kept]).transform("first").to_numpy()
    kept = kept[np.lexsort((kept, vehicle[kept], first_s))]
    first = np.append(np.flatnonzero(np.diff(vehicle[kept], prepend=-1)), len(kept))
    link, (comes_to, lasts_s, leaves_at) = link[kept], (values[kept] for values in (comes_to, lasts_s, position))
    metres = np.where(drives, length_m, 0.0)[kept]
    tracks = Tracks(
        first,
        time_s[kept],
        roads.locate(link, leaves_at),
        (drives | waits)[kept],
        np.full(len(kept), np.nan, dtype=np.float32),
        np.divide(metres, lasts_s, out=np.zeros(len(kept)), where=lasts_s > 0.0).astype(np.float32),
        link,
        leaves_at,
        comes_to,
    )
    held = (
        f"the events hold {counted(tracks.vehicles, 'vehicle')} on the roads; second 0 is {start_s:.12g} s of the "
        f"events, and the last event is at {tracks.time_s.max():,.0f} s"
    )
    notes.insert(0, Note("trace", held))
    if elsewhere := int((~known_link).sum()):
        notes.append(
            Note("left_out", f"events: left out {elsewhere:,} of {len(vehicle):,}, on links that are not roads")
        )
    if too_fast.any():
        links = counted(int(too_fast.sum()), "link is", "links are")
        earliest = f"the first at {time_s[too_fast].min() + start_s:.12g} s of the events"
        words = f"covered faster than highest_mps = {highest_mps:g}, {earliest}: the vehicle is absent there"
        notes.append(warning("jumps", f"events: {links} {words}"))
    if early := int((known_link & ~within).sum()):
        notes.append(Note("early", f"events: {counted(early, 'event is', 'events are')} before second 0 and left out"))
    rule = "events: a vehicle covers each link evenly between entering and leaving it; between its trips it is absent"
    return Recording(
        roads.crs, tracks, tracks.time_s + hold_s, tracks.time_s, Note("between_fixes", rule), notes, hold_s
    )


def _events(
    files: Sequence[Path], link_of: Mapping[str, int], modes: Collection[str] | None
) -> tuple[Int32Array, FloatArray, Int32Array, IntArray, FloatArray, list[Note]]:
    """Return the events of some modes by vehicle, and notes on modes.

    An event has the number of its vehicle, its time, link or -1, kind (see `_TYPES`) and place on the link.
    """
    numbers: dict[str, int] = {}
    vehicle, link, kind, time_s, position = array("i"), array("i"), array("q"), array("d"), array("d")
    departs: dict[str, str] = {}
    drives: dict[int, str] = {}
    of_mode: dict[str, set[int]] = {}
    for file in files:
        for _, attributes, line in elements_of(file, root="events", times=0.5, ends=False):
            given = attributes or {}
            if given.get("type") == "departure":
                departs[given.get("person", "")] = given.get("legMode", "")
            if (event := _TYPES.get(given.get("type", ""))) is None:
                continue
            now_s = finite_number(given.get("time", ""))
            if now_s is None or "vehicle" not in given or "link" not in given:
                rule = f"event {given['type']!r} must have a time in seconds, a link and a vehicle"
                raise InputError([f"{file}: line {line}: {rule}"])
            number = numbers.setdefault(given["vehicle"], len(numbers))
            if event == _STARTS:
                drives[number] = given.get("networkMode") or departs.get(given.get("person", ""), "")
            mode = drives.get(number, "")
            of_mode.setdefault(mode, set()).add(number)
            if mode and modes and mode not in modes:
                continue
            at = finite_number(given.get("relativePosition", "1"))
            vehicle.append(number)
            time_s.append(now_s)
            link.append(link_of.get(given["link"], -1))
            kind.append(event)
            position.append(0.0 if event == _ENTERS else min(max(at or 0.0, 0.0), 1.0))
    count = {mode or "of no stated mode": len(of) for mode, of in of_mode.items()}
    left_out = {mode: count[mode] for mode in of_mode if mode and mode not in (modes or of_mode)}
    words = f"events: vehicles by mode: {counted_by(count)}"
    if left_out == count and count:
        raise InputError([f"{files[0]}: {words}; none is one of roads.modes"])
    words += f"; left out, because roads.modes does not name their mode: {counted_by(left_out)}" if left_out else ""
    notes = [Note("modes", words)] if len(count) > 1 else []
    order = np.argsort(np.array(vehicle, dtype=np.int32), kind="stable")
    of, at_s, on, what, where = (np.array(values)[order] for values in (vehicle, time_s, link, kind, position))
    return of, at_s, on, what, where, notes


def _start(start: str | float | None, first_s: float) -> float:
    """Return the second of the events that is second 0 of the run; of a date with a time, the time of day."""
    if start is None or not isinstance(start, str):
        return first_s if start is None else float(start)
    clock = _OF_DAY.search(start)
    seconds = time_of_day(clock[0] if clock else start)
    if seconds is None:
        raise InputError([f"start must be a time of day, or a number of seconds as in the events, got {start!r}"])
    return seconds
