"""Engine `trace`: a recording in the coordinates of a city and the time of a run, and the replay of its vehicles."""

from dataclasses import dataclass

import numpy as np
import pyproj
import simpy

from simulator.arrays import FloatArray, IntArray, Mask, StateArray
from simulator.files.errors import InputError
from simulator.files.messages import Note, counted, notes_of
from simulator.formats.recorded.fixes import transformed
from simulator.formats.recorded.map_matching import Matching, Tracks, match_trace
from simulator.formats.recorded.times import in_words, moment_of
from simulator.formats.recorded.trace import Trace
from simulator.roads import RoadNetwork
from simulator.roads.projection import utm_about
from simulator.traffic.clock import Clock
from simulator.traffic.engine import State, Totals, VehicleStates

_PADDING = 0.1


@dataclass(frozen=True, eq=False, repr=False)
class Recording:
    """Trace in a city's coordinates and a run's time, for the replay and for the extent of the cells.

    Attributes
    ----------
    crs
        Projected coordinate system, in metres.
    bounds
        Extent of every fix: (x_min, y_min, x_max, y_max) in metres.
    tracks
        Tracks of the vehicles.
    fix_times_s
        (fixes,) float64: seconds of the run of the recording's fixes.
    epoch_s
        Seconds from 1970 to second 0 of the run; None if the recorded times are no dates.
    """

    crs: pyproj.CRS
    bounds: tuple[float, float, float, float]
    tracks: Tracks
    fix_times_s: FloatArray
    _notes: tuple[Note, ...]
    epoch_s: float | None = None

    @classmethod
    def build(
        cls,
        trace: Trace,
        roads: RoadNetwork | None,
        *,
        gap_s: float,
        start: str | float | None = None,
        time_zone: str | None = None,
        matching: Matching | None = None,
    ) -> "Recording":
        """Project a trace, convert its times to seconds of the run, and match it to the roads if requested.

        Parameters
        ----------
        trace
            The recorded fixes.
        roads
            Roads whose coordinate system is used; None for the UTM zone of the trace's middle.
        gap_s
            Maximum time between two fixes: between fixes further apart, a vehicle's place is unknown.
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
        start_s = _start(trace, start, time_zone)
        time_s = trace.time_s - start_s
        # A fix before second 0 is kept where the vehicle's place at second 0 depends on it.
        kept = (time_s >= 0.0) | (np.append(time_s[1:], 0.0) > 0.0) & _joined(trace, gap_s)
        if not kept.any():
            raise InputError(
                [f"start must be before the last fix, got {start!r}; the fixes are from {trace.span_words}"]
            )
        early = int(np.count_nonzero(~kept))
        if early:
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
            notes += notes_of("matched", matched)
        (x_min, y_min), (x_max, y_max) = np.nanmin(xy, axis=0).tolist(), np.nanmax(xy, axis=0).tolist()
        epoch_s = start_s if trace.calendar else None
        return cls(crs, (x_min, y_min, x_max, y_max), tracks, time_s, tuple(notes), epoch_s)

    def notes(self) -> list[Note]:
        """Return what was read, left out and matched."""
        return list(self._notes)

    def __repr__(self) -> str:
        return f"<Recording: {self.tracks.vehicles:,} vehicles, {len(self.fix_times_s):,} fixes>"


def _start(trace: Trace, start: str | float | None, time_zone: str | None) -> float:
    if start is None:
        return float(trace.time_s.min())
    if not isinstance(start, str):
        return float(start)
    moment = moment_of(start, time_zone)
    if moment is None:
        raise InputError([f"start must be ISO 8601 text or a number as recorded, got {start!r}"])
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
    xy = transformed(trace.lon, trace.lat, "EPSG:4326", crs)
    if roads is None:
        far = ~np.isfinite(xy).all(axis=1)
        if far.any():
            where = f"longitude {trace.lon[far][0]:g}, latitude {trace.lat[far][0]:g}"
            fixes = counted(int(np.count_nonzero(far)), "fix is", "fixes are")
            raise InputError([f"the trace: {fixes} too far from the others, as at {where}"])
    elif not _within(xy, roads.bounds).any():
        swapped = _within(transformed(trace.lat, trace.lon, "EPSG:4326", crs), roads.bounds).any()
        hint = "; longitude and latitude look swapped" if swapped else ""
        where = f"longitude {np.median(trace.lon):.5f}, latitude {np.median(trace.lat):.5f}"
        raise InputError([f"the trace: no fix is in the area of the roads; its middle is at {where}{hint}"])
    return crs, xy


def _within(xy: FloatArray, bounds: tuple[float, float, float, float]) -> Mask:
    x_min, y_min, x_max, y_max = bounds
    padding = _PADDING * max(x_max - x_min, y_max - y_min) + 1000.0
    low, high = np.array([x_min, y_min]) - padding, np.array([x_max, y_max]) + padding
    return np.asarray(((xy >= low) & (xy <= high)).all(axis=1))


class Replay:
    """Engine that places vehicles where they were recorded.

    Between two fixes that are at most `gap_s` apart (of the recording), a vehicle moves at constant speed along the
    line, or the path, that joins them. If the next fix is later, the vehicle stays at the previous fix for `hold_s`,
    and is then absent, and not asked, until its next fix. After its last fix and `hold_s` it has arrived, and is parked
    there. At the moment of a fix it is at the fix. A vehicle that becomes absent between the rounds of a query answers
    from its last observed place, like a vehicle that arrives.

    Parameters
    ----------
    recording
        The recording; vehicles first observed after `duration_s` are left out.
    roads
        Roads, if the recording was matched to them.
    clock
        Clock of the run.
    duration_s
        Length of the run, seconds.
    gap_s
        Maximum time between joined fixes of the recording, for the notes.
    hold_s
        Time after a fix for which a vehicle is assumed to stay there, if the next leg is unknown.

    Attributes
    ----------
    vehicles
        Number of vehicles observed by the end of the run.
    """

    def __init__(
        self,
        recording: Recording,
        *,
        clock: Clock,
        duration_s: float,
        gap_s: float,
        hold_s: float = 0.0,
        roads: RoadNetwork | None = None,
    ) -> None:
        self._recording, self._tracks, self._roads = recording, recording.tracks, roads
        self._clock, self._gap_s, self._hold_s, self._duration_s = clock, gap_s, hold_s, duration_s
        first = self._tracks.first
        self._appears_s = self._tracks.time_s[first[:-1]]
        self._leaves_s = self._tracks.time_s[first[1:] - 1] + hold_s
        self.vehicles = int(np.searchsorted(self._appears_s, duration_s, side="right"))
        self._cursor: IntArray = first[:-1].copy()
        self._env = simpy.Environment()
        self._now_s, self._departed = -np.inf, 0
        self._state: StateArray = np.empty(0, dtype=np.uint8)
        self._share: FloatArray = np.empty(0)

    def start(self, env: simpy.Environment) -> None:
        """Use the clock of `env`; a recording needs no process."""
        self._env = env
        self.advance()

    def advance(self) -> None:
        """Move every vehicle to `env.now`."""
        now_s = self._clock.seconds(self._env.now)
        if now_s == self._now_s:
            return
        self._now_s = now_s
        # Vehicles first observed after the run are left out, even while the last deadline is still pending.
        self._departed = int(np.searchsorted(self._appears_s[: self.vehicles], now_s, side="right"))
        tracks, at = self._tracks, self._cursor[: self._departed]
        last = tracks.first[1 : self._departed + 1] - 1
        moving = np.arange(self._departed)
        while len(moving):
            moving = moving[at[moving] < last[moving]]
            moving = moving[tracks.time_s[at[moving] + 1] <= now_s]
            at[moving] += 1
        known, before_s = tracks.known[at], tracks.time_s[at]
        self._state = np.where(at == last, State.ARRIVED, State.ABSENT).astype(np.uint8)
        self._state[known | (now_s <= before_s + self._hold_s)] = State.ON_ROAD
        self._share = np.zeros(self._departed)
        self._share[known] = (now_s - before_s[known]) / (tracks.time_s[at[known] + 1] - before_s[known])

    def places(self) -> VehicleStates:
        """Return the place of every vehicle observed so far; for an absent vehicle, its last observed place."""
        tracks, at, share = self._tracks, self._cursor[: self._departed], self._share
        after = np.minimum(at + 1, len(tracks.time_s) - 1)
        part = share[:, None]
        # The result is exact at both ends, so that at the moment of a fix the place is the fix.
        xy = np.where(part > 0.0, tracks.xy[at] * (1.0 - part) + tracks.xy[after] * part, tracks.xy[at])
        if tracks.link is None or tracks.leaves_at is None or tracks.comes_to is None or self._roads is None:
            return VehicleStates.from_coordinates(self._state, xy)
        link = tracks.link[at]
        fraction = tracks.leaves_at[at] * (1.0 - share) + tracks.comes_to[at] * share
        on = link >= 0
        xy[on] = self._roads.locate(link[on], np.clip(fraction[on], 0.0, 1.0))
        return VehicleStates(self._state, link, np.where(on, np.clip(fraction, 0.0, 1.0), 0.0), xy)

    def speeds(self) -> FloatArray:
        """Return the speed of every vehicle observed so far, m/s: recorded and interpolated, else distance by time.

        Recorded speeds are interpolated between fixes. Absent and arrived vehicles have speed 0. A vehicle held at a
        fix has the speed recorded there, or 0.
        """
        tracks, at, share = self._tracks, self._cursor[: self._departed], self._share
        after = np.where(tracks.known[at], np.minimum(at + 1, len(tracks.time_s) - 1), at)
        before, later = tracks.recorded_mps[at].astype(np.float64), tracks.recorded_mps[after].astype(np.float64)
        speed = before * (1.0 - share) + later * share
        unrecorded = ~np.isfinite(speed)
        speed[unrecorded] = tracks.going_mps[at[unrecorded]]
        speed[self._state != State.ON_ROAD] = 0.0
        return np.asarray(speed, dtype=np.float64)

    def totals(self) -> Totals:
        """Return the number of vehicles in each state."""
        count = np.bincount(self._state, minlength=int(State.ABSENT) + 1)
        gone = np.flatnonzero(self._state == State.ARRIVED)
        return Totals(
            departed=self._departed,
            on_road=int(count[State.ON_ROAD]),
            arrived=int(count[State.ARRIVED]),
            absent=int(count[State.ABSENT]),
            trip_time_s=float((self._leaves_s[gone] - self._hold_s - self._appears_s[gone]).sum()),
        )

    def notes(self) -> list[Note]:
        """Return notes on how places between fixes are computed, and on fixes that are not in the run."""
        held = f" from {self._hold_s:g} s after the fix on" if self._hold_s else ""
        rule = (
            f"trace: a vehicle moves evenly between fixes at most {self._gap_s:g} s apart; where the next is later it "
            f"is absent{held} and not queried until its next fix; after its last fix it is parked there"
        )
        notes = [Note("between_fixes", rule)]
        late = int(np.count_nonzero(self._recording.fix_times_s > self._duration_s))
        if late:
            after = f"trace: {counted(late, 'fix is', 'fixes are')} after the end of the run and left out"
            notes.append(Note("after_the_end", after))
        return notes

    def close(self) -> None:
        """Do nothing: a recording holds nothing outside this process."""

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes held for vehicles, and for their recorded positions."""
        held = (self._cursor, self._appears_s, self._leaves_s, self._state, self._share)
        return sum(array.nbytes for array in held), self._tracks.nbytes

    def __repr__(self) -> str:
        return f"<Replay: {self.vehicles:,} vehicles, {len(self._tracks.time_s):,} waypoints>"
