"""Populations of HDK's illustrations: lognormal, beta and a mixture with a gap, from R's random stream."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from simulator.pages.charts import Series

# R scrambles a seed by steps of this congruential generator: 50 steps first, then one for each word of the state.
MULTIPLIER, WORD, SCRAMBLES, STATE_WORDS = 69069, 2**32, 50, 624
# `FRACTION` scales a word to a fraction; half of `EDGE` keeps fractions inside (0, 1).
FRACTION, EDGE = 2.3283064365386963e-10, 2.328306437080797e-10
# A normal number is made from 27 + 32 bits.
FINE = 2**27


class RStream:
    """Random stream of `set.seed(seed)` in R ≥ 1.7: the Mersenne Twister, and normal numbers by inversion.

    Parameters
    ----------
    seed
        The argument of `set.seed`, 0 or above.
    """

    def __init__(self, seed: int) -> None:
        words = []
        for step in range(SCRAMBLES + STATE_WORDS + 1):
            seed = (MULTIPLIER * seed + 1) % WORD
            # The first word of R's state is the twister's position, which it then sets to the end.
            if step > SCRAMBLES:
                words.append(seed)
        self._words = np.random.MT19937()
        key = np.array(words, dtype=np.uint32)
        self._words.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": STATE_WORDS}}
        self._left: NDArray[np.float64] = np.empty(0)

    def uniform(self, n: int) -> NDArray[np.float64]:
        """Return `runif(n)`, (n,) float64."""
        missing = max(0, n - len(self._left))
        drawn = np.clip(self._words.random_raw(missing) * FRACTION, EDGE / 2, 1.0 - EDGE / 2)
        numbers = np.concatenate([self._left, drawn])
        self._left = numbers[n:]
        return numbers[:n]

    def normal(self, n: int) -> NDArray[np.float64]:
        """Return `rnorm(n)`, (n,) float64."""
        coarse, fine = self.uniform(2 * n).reshape(n, 2).T
        return ndtri((np.floor(FINE * coarse) + fine) / FINE)

    def beta(self, n: int, a: float, b: float) -> NDArray[np.float64]:
        """Return `rbeta(n, a, b)` for 1 < a ≤ b, (n,) float64: Cheng's algorithm BB (1978), two uniforms per trial."""
        shape = a + b
        rate = np.sqrt((shape - 2.0) / (2.0 * a * b - shape))
        kept = np.empty(0)
        while len(kept) < n:
            pairs = self.uniform(2 * n)
            first, second = pairs.reshape(n, 2).T
            logit = rate * np.log(first / (1.0 - first))
            odds = a * np.exp(logit)
            height = np.log(first * first * second)
            slack = (a + 1.0 / rate) * logit - 1.3862944
            # Two quick tests accept without the exact test, and slightly more than it: so they affect the stream.
            quick = (a + slack - odds + 2.609438 >= 5.0 * np.exp(height)) | (a + slack - odds > height)
            accepted = quick | (slack + shape * np.log(shape / (b + odds)) >= height)
            places = np.flatnonzero(accepted)[: n - len(kept)]
            kept = np.concatenate([kept, (odds / (b + odds))[places]])
            if len(kept) == n:
                self._left = np.concatenate([pairs[2 * (places[-1] + 1) :], self._left])
        return kept


# N, and the samples' n: the published ε_n = 2.43 and 5.14 correspond to N/n = 99.02, not to 100.
N, SIZES = 10_001, (1_001, 101)
# δ is missing from the text: conclusions are drawn at one of these values, and those that depend on δ at all of them.
DELTAS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-8)
# The seed of the R code in HDK appendix B.
PRINTED_SEED = 123


@dataclass(frozen=True, eq=False)
class DrawnPopulation:
    """Ordered values, whose bounds are the smallest and the greatest of them.

    Parameters
    ----------
    ordered : (N,) float64
        Ascending.
    """

    ordered: NDArray[np.float64]

    @property
    def bounds(self) -> tuple[float, float]:
        """The range that the illustrations assume to be known."""
        return float(self.ordered[0]), float(self.ordered[-1])

    @property
    def median(self) -> float:
        """The middle value; N is odd."""
        return float(self.ordered[len(self.ordered) // 2])


def lognormal(rng: np.random.Generator) -> DrawnPopulation:
    """Return N values from the lognormal distribution with μ = 5, σ = 0.5 (HDK sec 4.3)."""
    return DrawnPopulation(np.sort(rng.lognormal(5.0, 0.5, N)))


def mixture(rng: np.random.Generator) -> DrawnPopulation:
    """Return 5,001 values from Beta(2, 10)/2 and 5,000 from Beta(2, 10) + 1, rescaled to [0, 1] (HDK appendix B)."""
    return _rescaled(rng.beta(2.0, 10.0, (N + 1) // 2) / 2.0, rng.beta(2.0, 10.0, N // 2) + 1.0)


@cache
def printed_mixture() -> DrawnPopulation:
    """Return the exact population of HDK sec 4.4: appendix B's R code and its seed."""
    stream = RStream(PRINTED_SEED)
    first = stream.beta((N + 1) // 2, 2.0, 10.0) / 2.0
    return _rescaled(first, stream.beta(N // 2, 2.0, 10.0) + 1.0)


@cache
def seeded_lognormal() -> DrawnPopulation:
    """Return sec 4.3's population from appendix B's seed, `exp(rnorm(N, 5, 0.5))` in R; sec 4.3 states no seed."""
    return DrawnPopulation(np.sort(np.exp(5.0 + 0.5 * RStream(PRINTED_SEED).normal(N))))


@cache
def seeded_beta() -> DrawnPopulation:
    """Return sec 2.4's population, Beta(2, 10), from appendix B's seed; sec 2.4 states neither seed nor N."""
    return DrawnPopulation(np.sort(RStream(PRINTED_SEED).beta(N, 2.0, 10.0)))


def _rescaled(first: NDArray[np.float64], second: NDArray[np.float64]) -> DrawnPopulation:
    """Return the union of both parts, shifted and scaled to [0, 1]."""
    values = np.sort(np.concatenate([first, second]))
    return DrawnPopulation((values - values[0]) / (values[-1] - values[0]))


def histogram(values: NDArray[np.float64]) -> Series:
    """Return the density of values as bars."""
    heights, edges = np.histogram(values, bins=60, density=True)
    return Series("drawn anew", (edges[:-1] + edges[1:]) / 2, heights, "bars")
