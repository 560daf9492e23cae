"""Physics of a link in whole numbers, shared by both engines of the spatial queue."""

from dataclasses import dataclass

import numpy as np

from simulator.arrays import FloatArray, Int32Array
from simulator.roads.network import Links
from simulator.traffic.clock import Clock

VEHICLE_LENGTH_M = 7.5
"""Road length occupied by a standing vehicle, gap included (the usual value in MATSim and SUMO)."""

FRACTION_BITS = 10
ONE_TICK = 1 << FRACTION_BITS
"""Headway units in a tick: headways are integers in 1/1024 tick, so that capacities need not be whole per tick."""

_WIDEST = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class LinkPhysics:
    """Link parameters of the queue model (a spatial queue, as in MATSim's QSim).

    In tick t, links are served in ascending id, then origin queues in ascending link id. A link's head leaves when
    max(entry + free_ticks, ⌊next discharge⌋) ≤ t and the next link has room, where a place freed in t counts from t +
    1. Then next discharge = max(next discharge, t) + headway, and the next head is tried in the same tick. Because of
    the floor, several vehicles can leave in one tick: a link of 3 vehicles per tick discharges at t, t + ⅓ and t + ⅔,
    all in tick t. A headway of 1½ ticks releases vehicles at 0, 1, 3, 4, 6 …, so that the long-run flow is the
    capacity. A blocked head tries again in each tick. `stuck_ticks` after it was first blocked, it moves on beyond the
    next link's storage and is counted. A closed link has no room, and no head is forced onto it.

    Attributes
    ----------
    free_ticks
        (links,) int32: ceil(length / (speed · step)), at least 1.
    storage
        (links,) int32: max(1, floor(length · lanes / 7.5 m)) vehicles.
    headway
        (links,) int32, in 1/1024 tick: 1 / (capacity · step), capacity over all lanes, rounded to the nearest.
    free_flow_s
        (links,) float64: length / speed in seconds, for the position of a vehicle on its link.
    stuck_ticks
        Ticks after which a blocked head is forced through.
    """

    free_ticks: Int32Array
    storage: Int32Array
    headway: Int32Array
    free_flow_s: FloatArray
    stuck_ticks: int

    @classmethod
    def build(cls, links: Links, clock: Clock, *, stuck_s: float = 30.0) -> "LinkPhysics":
        """Compute the parameters of every link in ticks of `clock`.

        Raises
        ------
        ValueError
            If `stuck_s` is negative.
        """
        if not stuck_s >= 0:
            raise ValueError(f"stuck_s must be at least 0, received {stuck_s!r}")
        free_flow_s = links.length_m / links.speed_mps
        # A link of exactly 10 ticks must not become 11 because 139 m / 13.9 m/s rounds up in the last bit.
        ticks = free_flow_s / clock.step_s
        free = np.ceil(ticks - 1e-9 * np.maximum(1.0, ticks))
        places = links.length_m * links.lanes / VEHICLE_LENGTH_M
        storage = np.floor(places + 1e-9 * np.maximum(1.0, places))
        per_tick = links.capacity_vph * links.lanes / 3600.0 * clock.step_s
        headway = np.rint(ONE_TICK / per_tick)
        return cls(
            np.clip(free, 1, _WIDEST).astype(np.int32),
            np.clip(storage, 1, _WIDEST).astype(np.int32),
            np.clip(headway, 1, _WIDEST).astype(np.int32),
            free_flow_s,
            clock.ticks_to_cover(stuck_s),
        )

    def __len__(self) -> int:
        return len(self.free_ticks)
