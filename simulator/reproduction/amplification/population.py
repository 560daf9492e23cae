"""Populations that HDK's illustrations draw: lognormal, beta, and the mixture of two betas with a gap at the median."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from simulator.reproduction.amplification.r_stream import RStream

# N, and the samples' n: the printed ε_n = 2.43 and 5.14 are those of N/n = 99.02, not of 100.
N, SIZES = 10_001, (1_001, 101)
# The seed of the R code in HDK appendix B.
PRINTED_SEED = 123


@dataclass(frozen=True, eq=False)
class Population:
    """Values in order, between bounds that are the smallest and the greatest of them.

    Parameters
    ----------
    ordered : (N,) float64
        Ascending.
    """

    ordered: NDArray[np.float64]

    @property
    def bounds(self) -> tuple[float, float]:
        """The range the illustrations take as known."""
        return float(self.ordered[0]), float(self.ordered[-1])

    @property
    def median(self) -> float:
        """The middle one; N is odd."""
        return float(self.ordered[len(self.ordered) // 2])


def lognormal(rng: np.random.Generator) -> Population:
    """Return N values from the lognormal law with μ = 5, σ = 0.5 (HDK sec 4.3)."""
    return Population(np.sort(rng.lognormal(5.0, 0.5, N)))


def mixture(rng: np.random.Generator) -> Population:
    """Return 5,001 values from Beta(2, 10)/2 and 5,000 from Beta(2, 10) + 1, rescaled to [0, 1] (HDK appendix B)."""
    return _rescaled(rng.beta(2.0, 10.0, (N + 1) // 2) / 2.0, rng.beta(2.0, 10.0, N // 2) + 1.0)


@cache
def printed_mixture() -> Population:
    """Return the very population of HDK sec 4.4: appendix B's R code and its seed."""
    stream = RStream(PRINTED_SEED)
    first = stream.beta((N + 1) // 2, 2.0, 10.0) / 2.0
    return _rescaled(first, stream.beta(N // 2, 2.0, 10.0) + 1.0)


@cache
def seeded_lognormal() -> Population:
    """Return appendix B's seed through sec 4.3's law, `exp(rnorm(N, 5, 0.5))` in R; the text prints no seed there."""
    return Population(np.sort(np.exp(5.0 + 0.5 * RStream(PRINTED_SEED).normal(N))))


@cache
def seeded_beta() -> Population:
    """Return what appendix B's seed gives of sec 2.4's law, Beta(2, 10); the text prints neither seed nor N."""
    return Population(np.sort(RStream(PRINTED_SEED).beta(N, 2.0, 10.0)))


def _rescaled(first: NDArray[np.float64], second: NDArray[np.float64]) -> Population:
    """Return both parts together, moved and scaled to [0, 1]."""
    values = np.sort(np.concatenate([first, second]))
    return Population((values - values[0]) / (values[-1] - values[0]))
