"""A trace in the coordinates of a city and the time of a run."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyproj

from simulator.arrays import FloatArray, Mask
from simulator.files.errors import InputError
from simulator.files.messages import Note, counted, notes_of
from simulator.files.times import in_words, moment_of
from simulator.formats.matsim.events import read_matsim_events
from simulator.formats.recordings.jumps import without_jumps
from simulator.formats.recordings.map_matching import Matching, match_trace
from simulator.formats.recordings.reading import is_matsim_events, read_trace
from simulator.formats.recordings.trace import Trace
from simulator.roads import RoadNetwork
from simulator.roads.projection import WGS84, transform, utm_about
from simulator.traffic.recording import Recording, Tracks

HIGHEST_MPS = 60.0
"""Speed that no move of a recorded vehicle exceeds, by default: 216 km/h."""

_PADDING = 0.1


def read_recording(
    *,
    paths: Sequence[Path],
    roads: RoadNetwork | None,
    gap_s: float,
    hold_s: float,
    highest_mps: float = HIGHEST_MPS,
    modes: Collection[str] | None = None,
    start: str | float | None,
    time_zone: str | None,
    match: str,
    match_m: float,
    match_noise_m: float,
    format: str = "auto",  # noqa: A002 - the usual name of this argument
    **reading: Any,
) -> Recording:
    """Read a trace as a scenario specifies: `reading` is as for `read_trace`, all else as for `recording_of`.

    Events of MATSim, which are on links already, are not matched; `modes` is as for `read_matsim_events`.

    Raises
    ------
    InputError
        If a file cannot be read, as these functions raise it.
    """
    run: dict[str, Any] = {"hold_s": hold_s, "highest_mps": highest_mps, "start": start}
    if format == "matsim" or (format == "auto" and all(map(is_matsim_events, paths))):
        if match != "none":
            raise InputError([f'match must be "none": the events of MATSim name their links; got {match!r}'])
        return read_matsim_events(paths, roads, modes=modes, **run)
    matching = None if match == "none" else Matching(match, match_m, match_noise_m)
    trace = read_trace(paths, time_zone=time_zone, format=format, **reading)
    return recording_of(trace, roads, gap_s=gap_s, time_zone=time_zone, matching=matching, **run)


def recording_of(
    trace: Trace,
    roads: RoadNetwork | None,
    *,
    gap_s: float,
    hold_s: float = 0.0,
    highest_mps: float = HIGHEST_MPS,
    start: str | float | None = None,
    time_zone: str | None = None,
    matching: Matching | None = None,
) -> Recording:
    """Project a trace, convert its times to seconds of the run, and match it to the roads if requested.

    Parameters
    ----------
    trace
        The recorded fixes.
    roads
        Roads whose coordinate system is used; None for the UTM zone of the trace's middle.
    gap_s
        Maximum time between two fixes: between fixes further apart, a vehicle's place is unknown.
    hold_s
        Time after a fix for which a vehicle is assumed to stay there, if the next leg is unknown.
    highest_mps
        Speed that no move exceeds, m/s: see `without_jumps`.
    start
        Recorded time of second 0 of the run: ISO 8601 text, or a number as recorded; None for the first fix.
    time_zone
        Time zone of `start` if it names none; None for UTC.
    matching
        Options of map matching; None leaves fixes where they were recorded.

    Raises
    ------
    InputError
        If nothing was recorded from `start` on or in the area of the roads, or there are no roads to match to.
    """
    trace = without_jumps(trace, highest_mps=highest_mps, gap_s=gap_s)
    start_s = _start(trace, start, time_zone)
    time_s = trace.time_s - start_s
    # A fix before second 0 is kept where the vehicle's place at second 0 depends on it.
    kept = (time_s >= 0.0) | (np.append(time_s[1:], 0.0) > 0.0) & _joined(trace, gap_s)
    if not kept.any():
        raise InputError([f"start must be before the last fix, got {start!r}; the fixes are from {trace.span_words}"])
    if early := int(np.count_nonzero(~kept)):
        trace = trace.only(kept)
    crs, xy = _projected(trace, roads)
    time_s = trace.time_s - start_s
    tracks = Tracks.straight(trace.first, time_s, xy, trace.speed_mps, known=_joined(trace, gap_s))
    fixes = counted(len(trace), "fix", "fixes")
    held = (
        f"the trace holds {fixes} of {counted(trace.vehicles, 'vehicle')}; second 0 is "
        f"{in_words(start_s, calendar=trace.calendar)}, and its last fix is at {time_s.max():,.0f} s"
    )
    notes = [Note("trace", held), *(note.at("", before="trace: ") for note in trace.left_out)]
    if early:
        notes.append(Note("early", f"trace: {counted(early, 'fix is', 'fixes are')} before second 0 and left out"))
    if matching is not None:
        if roads is None:
            raise InputError(["match needs roads to match to, and there are none"])
        tracks, matched = match_trace(tracks, roads, matching)
        # On the roads a way may be longer than the straight line on which its speed was checked.
        tracks = replace(tracks, known=tracks.known & (tracks.going_mps <= highest_mps))
        notes += notes_of("matched", matched)
    after = f" from {hold_s:g} s after the fix on" if hold_s else ""
    rule = (
        f"trace: a vehicle moves evenly between fixes at most {gap_s:g} s apart; where the next is later it is absent"
        f"{after} and not queried until its next fix; after its last fix it is parked there"
    )
    return Recording(
        crs,
        tracks,
        tracks.time_s + hold_s,
        time_s,
        Note("between_fixes", rule),
        notes,
        hold_s,
        epoch_s=start_s if trace.calendar else None,
    )


def _start(trace: Trace, start: str | float | None, time_zone: str | None) -> float:
    if start is None:
        return float(trace.time_s.min())
    if not isinstance(start, str):
        return float(start)
    if (moment := moment_of(start, time_zone)) is None:
        raise InputError(
            [f"start must be ISO 8601 text, a time that the clocks do not skip, or a number, got {start!r}"]
        )
    if not trace.calendar:
        raise InputError(
            [f"start must be a number of seconds, as the recorded times are ({trace.span_words}), got {start!r}"]
        )
    return moment


def _joined(trace: Trace, gap_s: float) -> Mask:
    """Return from which fixes the way to the vehicle's next fix is known: soon enough, in the same piece."""
    joined = np.zeros(len(trace), dtype=bool)
    joined[:-1] = (np.diff(trace.time_s) <= gap_s) & (np.diff(trace.piece) == 0)
    joined[trace.first[1:] - 1] = False
    return joined


def _projected(trace: Trace, roads: RoadNetwork | None) -> tuple[pyproj.CRS, FloatArray]:
    crs = utm_about(trace.lon, trace.lat, what="the trace") if roads is None else roads.crs
    xy = transform(WGS84, crs, np.column_stack((trace.lon, trace.lat)))
    xy[~np.isfinite(xy).all(axis=1)] = np.nan
    if roads is None:
        far = ~np.isfinite(xy).all(axis=1)
        if far.any():
            where = f"longitude {trace.lon[far][0]:g}, latitude {trace.lat[far][0]:g}"
            fixes = counted(int(np.count_nonzero(far)), "fix is", "fixes are")
            raise InputError([f"the trace: {fixes} too far from the others, as at {where}"])
    elif not _within(xy, roads.bounds).any():
        swapped = _within(transform(WGS84, crs, np.column_stack((trace.lat, trace.lon))), roads.bounds).any()
        hint = "; longitude and latitude look swapped" if swapped else ""
        where = f"longitude {np.median(trace.lon):.5f}, latitude {np.median(trace.lat):.5f}"
        raise InputError([f"the trace: no fix is in the area of the roads; its middle is at {where}{hint}"])
    return crs, xy


def _within(xy: FloatArray, bounds: tuple[float, float, float, float]) -> Mask:
    x_min, y_min, x_max, y_max = bounds
    padding = _PADDING * max(x_max - x_min, y_max - y_min) + 1000.0
    low, high = np.array([x_min, y_min]) - padding, np.array([x_max, y_max]) + padding
    return np.asarray(((xy >= low) & (xy <= high)).all(axis=1))
