"""Departures: when vehicles leave."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

_PEAK_SHAPE = 4.0


@dataclass(frozen=True)
class Interval:
    """A part of the run in which `share` of all vehicles leave, evenly."""

    from_s: float
    to_s: float
    share: float


Departures = Literal["uniform", "peak"] | Sequence[Interval]


def draw_departures(
    vehicles: int, departures: Departures, *, duration_s: float, rng: np.random.Generator
) -> FloatArray:
    """Draw when each vehicle leaves, in seconds from the start of the run.

    Parameters
    ----------
    vehicles
        How many.
    departures
        "uniform" over the whole run, warm-up included; "peak": Beta(4, 4) over it, one smooth rush around its
        middle; or intervals whose shares sum to 1.
    duration_s
        Length of the run.
    rng
        The demand stream.

    Returns
    -------
    numpy.ndarray
        (vehicles,) float64 in [0, duration_s), unsorted.
    """
    if departures == "uniform":
        return rng.random(vehicles) * duration_s
    if departures == "peak":
        # A draw of exactly 1 would depart at the end of the run, which is no longer in it.
        share = np.minimum(rng.beta(_PEAK_SHAPE, _PEAK_SHAPE, vehicles), np.nextafter(1.0, 0.0))
        return np.asarray(share * duration_s)
    table = [interval for interval in departures if isinstance(interval, Interval)]
    share = np.array([interval.share for interval in table])
    chosen = rng.choice(len(table), size=vehicles, p=share / share.sum())
    start = np.array([interval.from_s for interval in table])[chosen]
    length = np.array([interval.to_s - interval.from_s for interval in table])[chosen]
    return np.asarray(start + rng.random(vehicles) * length, dtype=np.float64)
