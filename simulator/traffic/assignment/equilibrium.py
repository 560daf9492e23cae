"""User equilibrium: volumes at which nobody has a quicker way, by the conjugate Frank-Wolfe method."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from simulator.roads.links import Links
from simulator.traffic.assignment.bpr import Bpr
from simulator.traffic.assignment.loading import Loading
from simulator.traffic.assignment.od_pairs import OdPairs

FloatArray = npt.NDArray[np.float64]

_MOST_OF_THE_OLD = 0.99
"""Share of the previous target in the next, at most: with all of it a step would lead nowhere new."""


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """Volumes near a user equilibrium.

    Attributes
    ----------
    volume
        (links,) float64, vehicles.
    gap
        Their relative gap, see `relative_gap`.
    iterations
        Steps taken.
    """

    volume: FloatArray
    gap: float
    iterations: int


def find_equilibrium(
    bpr: Bpr,
    pairs: OdPairs,
    *,
    links: Links,
    through: npt.NDArray[np.bool_] | None = None,
    gap: float = 1e-4,
    iterations: int = 1000,
) -> Equilibrium:
    """Assign trips so that, at the travel times they cause, nearly every one is on a shortest path.

    The conjugate Frank-Wolfe method (Mitradjieva and Lindberg, "The stiff is moving", Transportation Science 47(2),
    2013): load all trips on the paths that are shortest now, mix that with the last target so that the two directions
    are conjugate, and go there as far as the objective of Beckmann falls.

    Parameters
    ----------
    bpr
        Travel times by volume.
    pairs
        The trips.
    links, through
        As in `Loading.at_times`.
    gap
        Relative gap to stop at.
    iterations
        Steps to stop after, reached or not.

    Raises
    ------
    NoPathError
        If no path joins some pair.
    """
    volume = Loading.at_times(bpr.time_s(np.zeros(len(bpr))), pairs, links=links, through=through).volume
    target: FloatArray | None = None
    taken = 0
    while True:
        time_s = bpr.time_s(volume)
        loading = Loading.at_times(time_s, pairs, links=links, through=through)
        reached = (float(volume @ time_s) - loading.total_s) / loading.total_s
        if reached <= gap or taken == iterations:
            return Equilibrium(volume, reached, taken)
        target = _conjugate(volume, target, loading.volume, bpr.slope(volume))
        if (target - volume) @ time_s >= 0:
            target = loading.volume
        step = _best_step(bpr, volume, target - volume)
        volume = volume + step * (target - volume)
        target = None if step == 1.0 else target
        taken += 1


def _conjugate(volume: FloatArray, before: FloatArray | None, loaded: FloatArray, slope: FloatArray) -> FloatArray:
    """Mix the last target with the new loading so that the way there is conjugate to the last one."""
    if before is None:
        return loaded
    bend = (before - volume) * slope
    across = float(bend @ (loaded - before))
    share = float(bend @ (loaded - volume)) / across if across != 0.0 else 0.0
    share = min(max(share, 0.0), _MOST_OF_THE_OLD)
    return share * before + (1.0 - share) * loaded


def _best_step(bpr: Bpr, volume: FloatArray, way: FloatArray) -> float:
    """Return how far along `way`, 0 to 1, Beckmann's objective is least: where its slope is 0."""

    def slope(step: float) -> float:
        # Rounding must not make a volume of 0 a negative one.
        return float(bpr.time_s(np.maximum(volume + step * way, 0.0)) @ way)

    if slope(1.0) <= 0.0:
        return 1.0
    return float(brentq(slope, 0.0, 1.0, xtol=1e-12)) if slope(0.0) < 0.0 else 0.0
