"""Engine for stationary data owners."""

import numpy as np
import numpy.typing as npt
import simpy

from simulator.files.messages import counted
from simulator.traffic.clock import Clock
from simulator.traffic.static.owners import Owners
from simulator.traffic.vehicle_states import State, Totals, VehicleStates


class Static:
    """Engine of stationary data owners, each present from its arrival time until it leaves.

    A present owner counts as on the road. An owner whose time is over counts as arrived, and so answers where parked
    vehicles answer.

    Parameters
    ----------
    owners
        Data owners, with their places and times.
    clock
        Conversion between ticks and seconds.
    """

    def __init__(self, owners: Owners, *, clock: Clock) -> None:
        self._owners, self._clock = owners, clock
        self._env: simpy.Environment | None = None
        self._seen: tuple[float, VehicleStates] | None = None

    @property
    def vehicles(self) -> int:
        """Number of owners in the table."""
        return len(self._owners)

    def start(self, env: simpy.Environment) -> None:
        """Use the clock of `env`."""
        self._env = env

    def advance(self) -> None:
        """Do nothing: data owners do not move."""

    def places(self) -> VehicleStates:
        """Return the place of every owner that has arrived by now."""
        now_s = self._now_s
        if self._seen is not None and (self._seen[0] == now_s or self._owners.arrive_s is None):
            return self._seen[1]
        site = self._owners.site[: self._come(now_s)]
        state = np.full(len(site), State.ON_ROAD, dtype=np.uint8)
        if self._owners.leave_s is not None:
            state[self._owners.leave_s[: len(site)] <= now_s] = State.ARRIVED
        link = np.full(len(site), -1, dtype=np.int32)
        places = VehicleStates(state, link, np.zeros(len(site)), self._owners.sites.xy[site], site)
        self._seen = now_s, places
        return places

    def speeds(self) -> npt.NDArray[np.float64]:
        """Return 0 m/s for every owner, (departed,): data owners do not move."""
        return np.zeros(self._come(self._now_s))

    def totals(self) -> Totals:
        """Return the numbers of present owners and of those that have left; the trip time is the time of presence."""
        now_s = self._now_s
        departed, arrived, stayed_s = self._come(now_s), 0, 0.0
        arrive_s, leave_s = self._owners.arrive_s, self._owners.leave_s
        if arrive_s is not None and leave_s is not None:
            gone = leave_s[:departed] <= now_s
            arrived = int(np.count_nonzero(gone))
            stayed_s = float((leave_s[:departed][gone] - arrive_s[:departed][gone]).sum())
        return Totals(
            departed=departed,
            waiting=0,
            on_road=departed - arrived,
            arrived=arrived,
            stuck_released=0,
            link_crossings=0,
            trip_time_s=stayed_s,
        )

    def notes(self) -> list[str]:
        """Return notes that owners do not move, and on owners that come after the end of the run."""
        told = ["the data owners of a table, at their places: nobody moves, so nothing depends on roads or speeds"]
        missing = self.vehicles - self._come(self._now_s)
        if missing:
            of_all = counted(self.vehicles, "data owner comes", "data owners come")
            told.append(f"{missing:,} of {of_all} after the end of the run")
        return told

    def close(self) -> None:
        """Do nothing: the engine holds no resources outside this process."""

    @property
    def vehicle_nbytes(self) -> int:
        """Bytes held for owners."""
        arrays = (self._owners.site, self._owners.arrive_s, self._owners.leave_s)
        return sum(array.nbytes for array in arrays if array is not None)

    @property
    def route_nbytes(self) -> int:
        """Bytes held for the owners' places."""
        return int(self._owners.sites.xy.nbytes)

    @property
    def _now_s(self) -> float:
        return 0.0 if self._env is None else self._clock.seconds(self._env.now)

    def _come(self, now_s: float) -> int:
        """Count the owners that have come by now; owners are numbered in that order."""
        arrive_s = self._owners.arrive_s
        return self.vehicles if arrive_s is None else int(np.searchsorted(arrive_s, now_s, side="right"))

    def __repr__(self) -> str:
        return f"<Static: {self._owners!r}>"
