"""Interfaces of traffic engines, and of recorded traffic whose positions are known before a run."""

from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyproj
import simpy

from simulator.traffic.vehicle_states import Totals, VehicleStates


class Engine(Protocol):
    """Engine that moves vehicles in a SimPy environment that counts ticks.

    A vehicle's number is its position in the order of departure. `places` and `speeds` have one row for each departed
    vehicle, so rows are only added at the end.
    """

    @property
    def vehicles(self) -> int:
        """Maximum number of vehicles in the whole run; known before the start."""

    def start(self, env: simpy.Environment) -> None:
        """Add the engine's processes to `env`; called once, at tick 0."""

    def advance(self) -> None:
        """Move every vehicle to `env.now`, tick ⌊now⌋ included."""

    def places(self) -> VehicleStates:
        """Return the place of every departed vehicle at `env.now`; call `advance` first."""

    def speeds(self) -> npt.NDArray[np.float64]:
        """Return every departed vehicle's speed at `env.now`, (departed,) m/s, 0 off the road; call `advance` first."""

    def totals(self) -> Totals:
        """Return the number of vehicles in each state, and the counters so far."""

    def notes(self) -> list[str]:
        """Return notes on this traffic for readers of the result, one sentence each; the list may grow in the run."""

    def close(self) -> None:
        """Release resources the engine holds outside this process; called once, even after an error."""

    @property
    def vehicle_nbytes(self) -> int:
        """Bytes held for vehicles, without their routes."""

    @property
    def route_nbytes(self) -> int:
        """Bytes held for routes; for a recording, the bytes held for its positions."""


class RecordedTraffic(Protocol):
    """Content of a recording, in the city's coordinate system."""

    @property
    def crs(self) -> pyproj.CRS:
        """Projected coordinate system, in metres: that of the roads if there are any."""

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Extent of all places: (x_min, y_min, x_max, y_max) in metres."""

    def notes(self) -> list[str]:
        """Return what was left out or filled in while reading, one sentence each."""
