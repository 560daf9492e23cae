"""Origin-destination pairs: how many trips lead from node to node."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simulator.traffic.trips import Trips

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class OdPairs:
    """Each pair once, by origin and then destination; none from a node to itself, none without trips.

    Attributes
    ----------
    origin, destination
        (pairs,) int32, node indices.
    trips
        (pairs,) float64, above 0; need not be whole.
    """

    origin: IntArray
    destination: IntArray
    trips: FloatArray

    @classmethod
    def summed(cls, origin: IntArray, destination: IntArray, trips: FloatArray) -> "OdPairs":
        """Add up the trips of each pair; those that go nowhere, or are none, are left out."""
        moving = (origin != destination) & (trips > 0)
        ends = np.stack([origin[moving], destination[moving]]).astype(np.int32)
        pairs, of = np.unique(ends, axis=1, return_inverse=True)
        summed = np.bincount(of.ravel(), weights=trips[moving], minlength=pairs.shape[1]).astype(np.float64)
        return cls(pairs[0], pairs[1], summed)

    @classmethod
    def of_trips(cls, trips: Trips, *, departed: int, share: float = 1.0) -> "OdPairs":
        """Count the first `departed` trips of a run, each for 1 / `share` trips."""
        return cls.summed(
            trips.origin[:departed], trips.destination[:departed], np.full(departed, 1.0 / share, dtype=np.float64)
        )

    @property
    def total(self) -> float:
        """All trips."""
        return float(self.trips.sum())

    def __len__(self) -> int:
        return len(self.trips)

    def __repr__(self) -> str:
        return f"<OdPairs: {self.total:,g} trips between {len(self):,} pairs>"
