"""The privacy blanket: one report in the histogram of all, where unsampled devices answer without their truth."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.parameter import check_epsilon
from mechanisms.privacy.binomial import mass_above, mass_at, window

# n·e^ε beyond this overflows a double.
LARGEST_EPSILON = 600.0
# Outcomes summed over at once, and runs of neighbouring numbers of unsampled devices they are spent on at least.
LARGEST_SUM = 2**14
LEAST_RUNS = 4
# What the windows leave out of either world, at most.
LEFT_OUT = 1e-16


@dataclass(frozen=True)
class BlanketDelta:
    """A bound of δ(ε) of the shuffled reports of devices that say the truth with π_s, else a blank drawn from b.

    Shown who of the others is sampled (whose values are known and taken away), there remain the blanks of M ~
    Bin(n − 1, 1 − π_s) of them and the device's own report. Of m = M + 1 draws from b, a fall on t and b on t';
    with respect to those, the two truths t and t' have the densities

    (1 − π_s) + π_s·a/(m·b_t),   (1 − π_s) + π_s·b/(m·b_t'),

    so δ is the mean of the positive part of a function linear in a and b: over a given b a binomial's partial
    mean, over b and M sums. (Balle, Bell, Gascón and Nissim 2019 bound that mean; here it is computed.) It is
    what the histogram shows where the others' truths are elsewhere, but for M.

    Parameters
    ----------
    devices : int
        n.
    sampling : float
        π_s, in (0, 1).
    blank, other_blank : float
        b_t and b_t', above 0.
    queries : int
        T: by basic composition, T·δ(ε/T).
    """

    devices: int
    sampling: float
    blank: float
    other_blank: float
    queries: int = 1

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ, the larger of both directions.

        One more blank only hides more, so of a run of neighbouring M the first bounds the rest; large windows
        are cut into as many runs as milliseconds allow.
        """
        epsilon = min(check_epsilon(epsilon) / self.queries, LARGEST_EPSILON)
        pairs = {(self.blank, self.other_blank), (self.other_blank, self.blank)}
        return min(1.0, self.queries * max(self._direction(one, other, epsilon) for one, other in pairs))

    def _direction(self, one: float, other: float, epsilon: float) -> float:
        """Return the hockey stick of the truth whose blank is `one` against that whose blank is `other`."""
        first, masses = window(self.devices - 1, 1.0 - self.sampling)
        low, width = self._outcomes(first + 1, first + len(masses), other)
        runs = max(LARGEST_SUM // width, LEAST_RUNS)
        starts = np.arange(0, len(masses), -(-len(masses) // runs))
        draws = np.asarray(first + 1 + starts, dtype=np.float64)[:, np.newaxis]
        b = low + np.arange(width, dtype=np.float64)[np.newaxis, :]
        factor = math.exp(epsilon)
        slope = self.sampling / (draws * one)
        rest = -(1.0 - self.sampling) * math.expm1(epsilon) - factor * self.sampling * b / (draws * other)
        # E[(slope·a + rest) 1{a ≥ t}] for a ~ Bin(m − b, p), without the cancellation of its two parts.
        left, p = np.maximum(draws - b, 0.0), min(one / (1.0 - other), 1.0)
        fewer = np.maximum(left - 1.0, 0.0)
        t = np.floor(-rest / slope)
        gain = (slope * left * p + rest) * mass_above(t, fewer, p) + (slope * left + rest) * p * mass_at(t, fewer, p)
        by_draws = (mass_at(b, draws, other) * np.maximum(gain, 0.0)).sum(axis=1)
        left_out = LEFT_OUT if width <= self.devices or len(masses) < self.devices else 0.0
        return float(np.add.reduceat(masses, starts) @ by_draws) + left_out

    @staticmethod
    def _outcomes(fewest: int, most: int, probability: float) -> tuple[int, int]:
        """Return the first of the values of b worth summing for any number of draws in a range, and how many."""
        low, _ = window(fewest, probability)
        high, masses = window(most, probability)
        return low, high + len(masses) - low


def rarest_blanks(sampling: float, blanks: NDArray[np.float64]) -> tuple[float, float]:
    """Return b_t of the two rarest blanks, the worst two truths: showing some of a value's blanks leaves it rarer."""
    least, second = (float(p) for p in np.partition(blanks, 1)[:2])
    return least / (1.0 - sampling), second / (1.0 - sampling)
