"""Interfaces of traffic engines, and of recorded traffic whose positions are known before a run."""

from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyproj
import simpy

from simulator.traffic.vehicle_states import Totals, VehicleStates


class Engine(Protocol):
    """Moves vehicles in a SimPy environment that counts ticks.

    A vehicle's number is its place in the order of departure; `places` and `speeds` have a row for each that has
    departed, so rows are only ever added at the end.
    """

    @property
    def vehicles(self) -> int:
        """How many vehicles there will have been by the end, at most; known before the start."""

    def start(self, env: simpy.Environment) -> None:
        """Put the engine's processes into `env`; called once, at tick 0."""

    def advance(self) -> None:
        """Bring every vehicle to `env.now`, tick ⌊now⌋ included."""

    def places(self) -> VehicleStates:
        """Where every departed vehicle is at `env.now`; call `advance` first."""

    def speeds(self) -> npt.NDArray[np.float64]:
        """How fast every departed vehicle goes at `env.now`, (departed,) m/s, 0 off the road; call `advance` first."""

    def totals(self) -> Totals:
        """How many vehicles are doing what, and what was counted so far."""

    def notes(self) -> list[str]:
        """Say what a reader of the result should know of this traffic, one sentence each; may grow while it runs."""

    def close(self) -> None:
        """Give back what the engine holds outside this process; called once, whatever happened."""

    @property
    def vehicle_nbytes(self) -> int:
        """Bytes held for its vehicles beside their routes."""

    @property
    def route_nbytes(self) -> int:
        """Bytes held for routes; of a recording, for its positions."""


class RecordedTraffic(Protocol):
    """What was read of a recording, in the coordinate system the city takes."""

    @property
    def crs(self) -> pyproj.CRS:
        """Projected, in metres: that of the roads where there are any."""

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Extent of every place: (x_min, y_min, x_max, y_max) in metres."""

    def notes(self) -> list[str]:
        """Say what was left out or filled in while reading, one sentence each."""
