"""Tracks: where vehicles were between their fixes."""

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Tracks:
    """One leg from every waypoint to the next of its vehicle; a waypoint is a fix, or where a way leaves a link.

    Attributes
    ----------
    first
        (vehicles + 1,) int64: vehicle v owns the waypoints first[v]:first[v + 1].
    time_s
        (waypoints,) float64, seconds of the run, ascending within a vehicle.
    xy
        (waypoints, 2) float64, metres.
    known
        (waypoints,) bool: whether the leg from here is known; not where the next fix is too late, nor at the last.
    recorded_mps
        (waypoints,) float32: the speed that was recorded, NaN where none was.
    going_mps
        (waypoints,) float32: distance over time of the leg from here, 0 where it is not known.
    link
        (waypoints,) int32: the link the leg runs on, -1 for a straight line; None where nothing was matched.
    leaves_at, comes_to
        (waypoints,) float64: fractions of that link at which the leg begins and ends; None with `link`.
    """

    first: npt.NDArray[np.int64]
    time_s: FloatArray
    xy: FloatArray
    known: npt.NDArray[np.bool_]
    recorded_mps: npt.NDArray[np.float32]
    going_mps: npt.NDArray[np.float32]
    link: npt.NDArray[np.int32] | None = None
    leaves_at: FloatArray | None = None
    comes_to: FloatArray | None = None

    @classmethod
    def straight(
        cls, first: npt.NDArray[np.int64], time_s: FloatArray, xy: FloatArray, speed_mps: FloatArray, *, gap_s: float
    ) -> "Tracks":
        """Join fixes by straight lines, where the next is at most `gap_s` later."""
        follows = np.ones(len(time_s), dtype=bool)
        follows[first[1:] - 1] = False
        lasts_s = np.append(np.diff(time_s), np.inf)
        known = follows & (lasts_s <= gap_s)
        metres = np.append(np.hypot(*np.diff(xy, axis=0).T), 0.0)
        going = np.zeros(len(time_s))
        going[known] = metres[known] / lasts_s[known]
        return cls(first, time_s, xy, known, speed_mps.astype(np.float32), going.astype(np.float32))

    @property
    def vehicles(self) -> int:
        """How many vehicles there are."""
        return len(self.first) - 1

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(held.nbytes for field in fields(self) if (held := getattr(self, field.name)) is not None)
