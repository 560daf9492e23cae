"""Recordings: where vehicles and data owners were, in a city's coordinates and a run's time, and their replay."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np
import numpy.typing as npt
import pyproj
import simpy

from simulator.arrays import FloatArray, Int32Array, IntArray, Mask, StateArray
from simulator.files.messages import Note, counted
from simulator.roads import RoadNetwork
from simulator.traffic.clock import Clock
from simulator.traffic.engine import State, Totals, VehicleStates, check_departed


@dataclass(frozen=True, eq=False, repr=False)
class Tracks:
    """Tracks of vehicles: one leg between consecutive waypoints. A waypoint is a fix, or the end of a link on a path.

    Attributes
    ----------
    first
        (vehicles + 1,) int64: vehicle v owns the waypoints first[v]:first[v + 1].
    time_s
        (waypoints,) float64, seconds of the run, ascending within a vehicle.
    xy
        (waypoints, 2) float64, metres.
    known
        (waypoints,) bool: whether the leg from here is known; false if the next fix is too late, and at the last one.
    recorded_mps
        (waypoints,) float32: recorded speed, NaN where no speed was recorded.
    going_mps
        (waypoints,) float32: distance divided by time of the leg from here, 0 where the leg is not known.
    link
        (waypoints,) int32: link of the leg, -1 for a straight line; None if the tracks are not matched.
    leaves_at, comes_to
        (waypoints,) float64: fractions of that link at which the leg begins and ends; None if `link` is None.
    """

    first: IntArray
    time_s: FloatArray
    xy: FloatArray
    known: Mask
    recorded_mps: npt.NDArray[np.float32]
    going_mps: npt.NDArray[np.float32]
    link: Int32Array | None = None
    leaves_at: FloatArray | None = None
    comes_to: FloatArray | None = None

    @classmethod
    def straight(
        cls, first: IntArray, time_s: FloatArray, xy: FloatArray, speed_mps: FloatArray, *, known: Mask
    ) -> "Tracks":
        """Join fixes to the next ones by straight lines where their vehicle's way is `known`, (fixes,) bool."""
        lasts_s = np.append(np.diff(time_s), np.inf)
        metres = np.append(np.hypot(*np.diff(xy, axis=0).T), 0.0)
        going = np.zeros(len(time_s))
        with np.errstate(over="ignore"):  # moments may differ by next to nothing
            going[known] = metres[known] / lasts_s[known]
            return cls(first, time_s, xy, known, speed_mps.astype(np.float32), going.astype(np.float32))

    @property
    def vehicles(self) -> int:
        """Number of vehicles."""
        return len(self.first) - 1

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(held.nbytes for field in fields(self) if (held := getattr(self, field.name)) is not None)


@dataclass(frozen=True, eq=False)
class Sites:
    """Sites in the city's coordinate system.

    Attributes
    ----------
    names
        One name per site; None if sites are coordinates without names.
    xy
        (sites, 2) float64, metres in `crs`.
    crs
        Projected coordinate system, in metres.
    side_m
        If places have no coordinates, the side of the squares that represent them, in a row from west to east by name;
        else None.
    of_owner
        (owners,) int32: index of each data owner's site.
    """

    names: list[str] | None
    xy: FloatArray
    crs: pyproj.CRS
    side_m: float | None = None
    of_owner: Int32Array = field(default_factory=lambda: np.empty(0, dtype=np.int32))

    def __len__(self) -> int:
        return len(self.xy)

    @property
    def owners(self) -> IntArray:
        """Total number of owners of each site, (sites,) int64."""
        return np.bincount(self.of_owner, minlength=len(self))


@dataclass(frozen=True, eq=False, repr=False)
class Recording:
    """Recording in a city's coordinates and a run's time, for the replay and for the extent of the cells.

    A data owner at a place is a vehicle with one fix, at which it stays.

    Attributes
    ----------
    crs
        Projected coordinate system, in metres.
    tracks
        Tracks of the vehicles, which are in the order of their first fixes.
    leaves_s
        (waypoints,) float64: until when, inclusive, a vehicle stays at a waypoint if the leg from there is not known.
    fix_times_s
        (fixes,) float64: seconds of the run of the recording's fixes.
    rule
        How places at times other than the times of fixes are computed.
    read
        Notes on what was read, left out and matched.
    hold_s
        The part of a vehicle's stay at its last fix that is no time of its trip, seconds.
    epoch_s
        Seconds from 1970 to second 0 of the run; None if there are no recorded times, or they are no dates.
    sites
        Of data owners: every place of the table, including those without owners; else None.
    """

    crs: pyproj.CRS
    tracks: Tracks
    leaves_s: FloatArray
    fix_times_s: FloatArray
    rule: Note
    read: Sequence[Note] = ()
    hold_s: float = 0.0
    epoch_s: float | None = None
    sites: Sites | None = None

    @classmethod
    def of_owners(
        cls,
        sites: Sites,
        arrive_s: FloatArray,
        leave_s: FloatArray,
        *,
        read: Sequence[Note] = (),
        epoch_s: float | None = None,
    ) -> "Recording":
        """Record owners, who do not move, present from `arrive_s`, ascending, until `leave_s`, seconds, (owners,)."""
        count = len(sites.of_owner)
        nothing = np.full(count, np.nan)
        tracks = Tracks.straight(
            np.arange(count + 1), arrive_s, sites.xy[sites.of_owner], nothing, known=np.zeros(count, dtype=bool)
        )
        words = "the data owners of a table, at their places: none moves, so nothing depends on roads or speeds"
        # At the moment at which it leaves, an owner is gone.
        last_s = np.where(leave_s < np.inf, np.nextafter(leave_s, -np.inf), np.inf)
        return cls(sites.crs, tracks, last_s, arrive_s, Note("owners_stay", words), read, epoch_s=epoch_s, sites=sites)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Extent of every waypoint, or of all squares that represent places: (x_min, y_min, x_max, y_max) in metres."""
        if self.sites is not None and self.sites.side_m is not None:
            return 0.0, 0.0, len(self.sites) * self.sites.side_m, self.sites.side_m
        known = self.tracks.xy[np.isfinite(self.tracks.xy).all(axis=1)]
        (x_min, y_min), (x_max, y_max) = known.min(axis=0).tolist(), known.max(axis=0).tolist()
        return x_min, y_min, x_max, y_max

    def notes(self) -> list[Note]:
        """Return what was read, left out and matched."""
        return list(self.read)

    def __repr__(self) -> str:
        return f"<Recording: {self.tracks.vehicles:,} vehicles, {len(self.fix_times_s):,} fixes>"


class Replay:
    """Engine that places vehicles where they were recorded.

    Between two fixes whose leg is known, a vehicle moves at constant speed along the line, or the path, that joins
    them. If the next leg is not known, the vehicle stays at the previous fix until `leaves_s` of the recording, and is
    then absent, and not asked, until its next fix. After its last fix, and its stay there, it has arrived, and is
    parked there; so a data owner answers where parked vehicles answer when its time is over. At the moment of a fix a
    vehicle is at the fix. A vehicle that becomes absent between the rounds of a query answers from its last observed
    place, like a vehicle that arrives.

    Parameters
    ----------
    recording
        The recording.
    roads
        Roads, if the recording was matched to them.
    clock
        Clock of the run.
    duration_s
        Length of the run, seconds.

    Attributes
    ----------
    vehicles
        Number of data owners, or of vehicles observed by the end of the run: others are left out.
    tracks
        The tracks that it replays, in the order of its vehicles.
    """

    def __init__(
        self, recording: Recording, *, clock: Clock, duration_s: float, roads: RoadNetwork | None = None
    ) -> None:
        self._recording, self.tracks, self._roads = recording, recording.tracks, roads
        self._clock, self._duration_s = clock, duration_s
        first = self.tracks.first
        self._appears_s = self.tracks.time_s[first[:-1]]
        self._ends_s = recording.leaves_s[first[1:] - 1]
        observed = int(np.searchsorted(self._appears_s, duration_s, side="right"))
        self.vehicles = observed if recording.sites is None else self.tracks.vehicles
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
        self._now_s, self._departed = now_s, self._departed_at(now_s)
        tracks, at = self.tracks, self._cursor[: self._departed]
        last = tracks.first[1 : self._departed + 1] - 1
        self._state, self._share = self._move(at, last, now_s)

    def _departed_at(self, now_s: float) -> int:
        # Vehicles first observed after the run are left out, even while the last deadline is still pending.
        return int(np.searchsorted(self._appears_s[: self.vehicles], now_s, side="right"))

    def _move(self, at: IntArray, last: IntArray, now_s: float) -> tuple[StateArray, FloatArray]:
        """Move the waypoints that vehicles passed last, `at`, on to a time, `last` at most; return state and share.

        The share is the part of the leg from there that is driven, (n,) float64, 0 where the leg is not known.
        """
        tracks, moving = self.tracks, np.arange(len(at))
        while len(moving):
            moving = moving[at[moving] < last[moving]]
            moving = moving[tracks.time_s[at[moving] + 1] <= now_s]
            at[moving] += 1
        known, before_s = tracks.known[at], tracks.time_s[at]
        state = np.where(at == last, State.ARRIVED, State.ABSENT).astype(np.uint8)
        state[known | (now_s <= self._recording.leaves_s[at])] = State.ON_ROAD
        share = np.zeros(len(at))
        share[known] = (now_s - before_s[known]) / (tracks.time_s[at[known] + 1] - before_s[known])
        return state, share

    def places(self) -> VehicleStates:
        """Return the place of every vehicle observed so far; for an absent vehicle, its last observed place."""
        at = self._cursor[: self._departed]
        return self._places(np.arange(self._departed), at, self._state, self._share)

    def place_of(self, numbers: IntArray) -> VehicleStates:
        """Return the places of some vehicles observed so far; see `Engine.place_of`."""
        now_s = self._clock.seconds(self._env.now)
        check_departed(numbers, self._departed_at(now_s))
        at = self._cursor[numbers]
        return self._places(numbers, at, *self._move(at, self.tracks.first[numbers + 1] - 1, now_s))

    def origin_of(self, numbers: IntArray) -> VehicleStates:
        """Return the places of the first fixes of some vehicles; see `Engine.origin_of`."""
        on_road = np.full(len(numbers), State.ON_ROAD, dtype=np.uint8)
        return self._places(numbers, self.tracks.first[numbers], on_road, np.zeros(len(numbers)))

    def class_of(self, numbers: IntArray) -> list[str]:
        """Return "" for each of some vehicles: recordings do not state classes."""
        return [""] * len(numbers)

    def _places(self, numbers: IntArray, at: IntArray, state: StateArray, share: FloatArray) -> VehicleStates:
        tracks = self.tracks
        # The result is exact at both ends, so that at the moment of a fix the place is the fix.
        xy, going = tracks.xy[at], np.flatnonzero(share > 0.0)
        part = share[going, None]
        xy[going] = xy[going] * (1.0 - part) + tracks.xy[at[going] + 1] * part
        if tracks.link is None or tracks.leaves_at is None or tracks.comes_to is None or self._roads is None:
            sites, nowhere = self._recording.sites, np.full(len(at), -1, dtype=np.int32)
            site = None if sites is None else sites.of_owner[numbers]
            return VehicleStates(state, nowhere, np.zeros(len(at)), xy, site)
        link = tracks.link[at]
        fraction = tracks.leaves_at[at] * (1.0 - share) + tracks.comes_to[at] * share
        on = link >= 0
        xy[on] = self._roads.locate(link[on], np.clip(fraction[on], 0.0, 1.0))
        return VehicleStates(state, link, np.where(on, np.clip(fraction, 0.0, 1.0), 0.0), xy)

    def speeds(self) -> FloatArray:
        """Return the speed of every vehicle observed so far, m/s: recorded and interpolated, else distance by time.

        Recorded speeds are interpolated between fixes. Absent and arrived vehicles have speed 0. A vehicle held at a
        fix has the speed recorded there, or 0.
        """
        tracks, at, share = self.tracks, self._cursor[: self._departed], self._share
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
            trip_time_s=float((self._ends_s[gone] - self._recording.hold_s - self._appears_s[gone]).sum()),
        )

    def notes(self) -> list[Note]:
        """Return notes on how places between fixes are computed, and on fixes that are not in the run."""
        notes = [self._recording.rule]
        if self._recording.sites is not None and self._departed < self.vehicles:
            of_all = counted(self.vehicles, "data owner comes", "data owners come")
            text = f"{self.vehicles - self._departed:,} of {of_all} after the end of the run"
            return [*notes, Note("after_the_end", text)]
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
        held = (self._cursor, self._appears_s, self._ends_s, self._state, self._share)
        return sum(array.nbytes for array in held), self.tracks.nbytes + self._recording.leaves_s.nbytes

    def __repr__(self) -> str:
        return f"<Replay: {self.vehicles:,} vehicles, {len(self.tracks.time_s):,} waypoints>"
