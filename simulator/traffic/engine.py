"""Engine: what every way of moving vehicles offers the rest of the simulator."""

from typing import Protocol

import numpy as np
import numpy.typing as npt
import simpy

from simulator.traffic.places import Places, Totals
from simulator.traffic.routes import Routes
from simulator.traffic.trips import Trips


class Engine(Protocol):
    """Moves vehicles in a SimPy environment that counts ticks."""

    @property
    def trips(self) -> Trips:
        """The trips being driven."""

    @property
    def routes(self) -> Routes:
        """The routes they take."""

    def start(self, env: simpy.Environment) -> None:
        """Put the engine's processes into `env`; called once, at tick 0."""

    def advance(self) -> None:
        """Bring every vehicle to `env.now`, tick ⌊now⌋ included."""

    def places(self) -> Places:
        """Where every departed vehicle is at `env.now`; call `advance` first."""

    def speeds(self) -> npt.NDArray[np.float64]:
        """How fast every departed vehicle goes at `env.now`, (departed,) m/s, 0 off the road; call `advance` first."""

    def totals(self) -> Totals:
        """How many vehicles are doing what, and what was counted so far."""

    @property
    def vehicle_nbytes(self) -> int:
        """Bytes the engine holds for its vehicles beside their trips and routes."""
