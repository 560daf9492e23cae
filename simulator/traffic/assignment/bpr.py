"""BPR: travel time of a link by its volume, the volume-delay function of the Bureau of Public Roads."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simulator.roads.errors import RoadsError
from simulator.roads.network import RoadNetwork

FloatArray = npt.NDArray[np.float64]

LEAST_TIME_S = 1e-6
"""Taken for a time of 0, which connectors may have: shortest paths want every link to take some."""

MOST_POWER = 50.0
"""Published networks have powers up to 17."""
MOST_LOAD = 1e5
"""Volume by capacity from which time rises no further: to any power up to the most it is still a number."""

_STEEPEST = 1e100

_ATTRIBUTES = ("free_flow_s", "capacity_total_vph", "bpr_b", "bpr_power")


@dataclass(frozen=True, eq=False)
class Bpr:
    """t(v) = t₀ · (1 + b · (v / c)^p), a link (Bureau of Public Roads, Traffic Assignment Manual, 1964).

    Tolls and distances, which some networks add to this cost, are left out.

    Attributes
    ----------
    free_flow_s
        (links,) float64, t₀ in seconds, above 0.
    capacity
        (links,) float64, c: vehicles in the time the volumes are for. Not a limit, as it is to a queue: time rises
        by the share b where volume is at capacity, and goes on rising beyond.
    b, power
        (links,) float64, 0 or more.
    """

    free_flow_s: FloatArray
    capacity: FloatArray
    b: FloatArray
    power: FloatArray

    @classmethod
    def from_network(cls, roads: RoadNetwork, *, hours: float) -> "Bpr":
        """Take the functions of a network that was read with them, for volumes of some hours.

        Raises
        ------
        RoadsError
            If a link has none, or one whose power is beyond reason.
        """
        columns = np.full((len(roads.links), len(_ATTRIBUTES)), np.nan)
        for start, end, data in roads.graph.edges(data=True):
            lacking = [name for name in _ATTRIBUTES if name not in data]
            if lacking:
                raise RoadsError([f"link from {start!r} to {end!r}: {', '.join(lacking)} is missing: no BPR function"])
            if data["bpr_power"] > MOST_POWER:
                rule = f"bpr_power must be at most {MOST_POWER:g}, got {data['bpr_power']:g}"
                raise RoadsError([f"link from {start!r} to {end!r}: {rule}"])
            columns[data["link"]] = [data[name] for name in _ATTRIBUTES]
        free_flow_s, capacity_vph, b, power = columns.T
        # A link without a capacity is one that never slows down.
        return cls(
            np.maximum(free_flow_s, LEAST_TIME_S),
            np.where(capacity_vph > 0, capacity_vph * hours, 1.0),
            np.where(capacity_vph > 0, b, 0.0),
            power.copy(),
        )

    def time_s(self, volume: FloatArray) -> FloatArray:
        """Return seconds to cross each link, (links,)."""
        return np.asarray(self.free_flow_s * (1.0 + self.b * self.load(volume) ** self.power))

    def load(self, volume: FloatArray) -> FloatArray:
        """Return volume by capacity, (links,), at most `MOST_LOAD`."""
        with np.errstate(over="ignore"):
            return np.minimum(volume / self.capacity, MOST_LOAD)

    def slope(self, volume: FloatArray) -> FloatArray:
        """Return by how much the time of each link rises with a vehicle more, (links,) seconds."""
        with np.errstate(divide="ignore", over="ignore"):
            rise = self.load(volume) ** (self.power - 1.0)
            rise = np.where(self.power > 0, np.where(np.isfinite(rise), rise, 0.0), 0.0)
            return np.minimum(self.free_flow_s * self.b * self.power / self.capacity * rise, _STEEPEST)

    def __len__(self) -> int:
        return len(self.free_flow_s)
