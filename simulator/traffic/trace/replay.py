"""Engine `trace`: replays recorded vehicles."""

import numpy as np
import numpy.typing as npt
import simpy

from mechanisms.kernel import compiled
from simulator.files.messages import counted
from simulator.roads import RoadNetwork
from simulator.traffic.clock import Clock
from simulator.traffic.trace.recording import Recording
from simulator.traffic.vehicle_states import State, Totals, VehicleStates

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


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
        self._vehicles = int(np.searchsorted(self._appears_s, duration_s, side="right"))
        self._cursor: IntArray = first[:-1].copy()
        self._env: simpy.Environment | None = None
        self._now_s, self._departed = -np.inf, 0
        self._state: npt.NDArray[np.uint8] = np.empty(0, dtype=np.uint8)
        self._share: FloatArray = np.empty(0)

    @property
    def vehicles(self) -> int:
        """Number of vehicles observed by the end of the run."""
        return self._vehicles

    def start(self, env: simpy.Environment) -> None:
        """Use the clock of `env`; a recording needs no process."""
        self._env = env
        self._look()

    def advance(self) -> None:
        """Move every vehicle to `env.now`."""
        self._look()

    def _look(self) -> None:
        if self._env is None:
            raise RuntimeError("start must be called before advance")
        now_s = self._clock.seconds(self._env.now)
        if now_s == self._now_s:
            return
        self._now_s = now_s
        # Vehicles first observed after the run are left out, even while the last deadline is still pending.
        self._departed = int(np.searchsorted(self._appears_s[: self._vehicles], now_s, side="right"))
        tracks = self._tracks
        self._state, self._share = _look_up(
            tracks.first, tracks.time_s, tracks.known, self._cursor, self._departed, now_s, self._hold_s
        )

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

    def speeds(self) -> npt.NDArray[np.float64]:
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
            waiting=0,
            on_road=int(count[State.ON_ROAD]),
            arrived=int(count[State.ARRIVED]),
            stuck_released=0,
            link_crossings=0,
            absent=int(count[State.ABSENT]),
            trip_time_s=float((self._leaves_s[gone] - self._hold_s - self._appears_s[gone]).sum()),
        )

    def notes(self) -> list[str]:
        """Return notes on how places between fixes are computed, and on fixes that are not in the run."""
        held = f" from {self._hold_s:g} s after the fix on" if self._hold_s else ""
        rule = (
            f"trace: a vehicle moves evenly between fixes at most {self._gap_s:g} s apart; where the next is later it "
            f"is absent{held} and not asked until it is seen again; after its last fix it is parked there"
        )
        notes = [rule]
        late = int(np.count_nonzero(self._recording.fix_times_s > self._duration_s))
        if late:
            notes.append(f"trace: {counted(late, 'fix is', 'fixes are')} after the end of the run and left out")
        return notes

    def close(self) -> None:
        """Do nothing: a recording holds nothing outside this process."""

    @property
    def vehicle_nbytes(self) -> int:
        """Bytes held for vehicles, without their positions."""
        held = (self._cursor, self._appears_s, self._leaves_s, self._state, self._share)
        return sum(array.nbytes for array in held)

    @property
    def route_nbytes(self) -> int:
        """Bytes held for recorded positions."""
        return self._tracks.nbytes

    def __repr__(self) -> str:
        return f"<Replay: {self._vehicles:,} vehicles, {len(self._tracks.time_s):,} waypoints>"


@compiled
def _look_up(
    first: IntArray,
    time_s: FloatArray,
    known: npt.NDArray[np.bool_],
    cursor: IntArray,
    departed: int,
    now_s: float,
    hold_s: float,
) -> tuple[npt.NDArray[np.uint8], FloatArray]:
    """Move each cursor to the last waypoint at or before now; return states, and the fraction of each leg, 0 … 1."""
    state = np.empty(departed, dtype=np.uint8)
    share = np.zeros(departed)
    for vehicle in range(departed):
        at, last = cursor[vehicle], first[vehicle + 1] - 1
        while at < last and time_s[at + 1] <= now_s:
            at += 1
        cursor[vehicle] = at
        if known[at]:
            state[vehicle] = 2  # State.ON_ROAD
            share[vehicle] = (now_s - time_s[at]) / (time_s[at + 1] - time_s[at])
        elif now_s <= time_s[at] + hold_s:
            state[vehicle] = 2
        elif at == last:
            state[vehicle] = 3  # State.ARRIVED
        else:
            state[vehicle] = 4  # State.ABSENT
    return state, share
