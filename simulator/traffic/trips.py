"""Trips: who leaves where, for where, and when."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Trips:
    """One trip a vehicle, in the order of departure; a vehicle's number is its place in that order.

    The order is not cosmetic: vehicles that are on the road together lie together in memory, and the rule
    of the origin queues (first-in first-out by departure, then vehicle) is the order of the array.

    Parameters
    ----------
    origin, destination
        (vehicles,) int32, node indices. Equal only where a trip's route is given and leads back to where it began:
        no shortest path does, and the search for one refuses such a trip.
    departure_tick
        (vehicles,) int32, ascending.

    Raises
    ------
    ValueError
        If lengths differ, or departures are not ascending from 0.
    """

    origin: IntArray
    destination: IntArray
    departure_tick: IntArray

    def __post_init__(self) -> None:
        if not (len(self.origin) == len(self.destination) == len(self.departure_tick)):
            raise ValueError(
                "origin, destination and departure_tick must have one length, received "
                f"{len(self.origin)}, {len(self.destination)}, {len(self.departure_tick)}"
            )
        if len(self) and (self.departure_tick[0] < 0 or np.any(np.diff(self.departure_tick) < 0)):
            raise ValueError("departure_tick must ascend from 0 on")

    @classmethod
    def from_unsorted(cls, origin: npt.ArrayLike, destination: npt.ArrayLike, tick: npt.ArrayLike) -> "Trips":
        """Return trips numbered by departure; of one tick, in the order given."""
        ticks = np.asarray(tick, dtype=np.int32)
        order = np.argsort(ticks, kind="stable")
        return cls(
            np.ascontiguousarray(np.asarray(origin, dtype=np.int32)[order]),
            np.ascontiguousarray(np.asarray(destination, dtype=np.int32)[order]),
            ticks[order],
        )

    def __len__(self) -> int:
        return len(self.departure_tick)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.origin.nbytes + self.destination.nbytes + self.departure_tick.nbytes

    def __repr__(self) -> str:
        return f"<Trips: {len(self):,} vehicles>"
