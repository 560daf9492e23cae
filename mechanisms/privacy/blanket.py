"""The privacy blanket: one report in the histogram of all, where unsampled devices answer without their truth."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernel import compiled
from mechanisms.parameter import check_epsilon
from mechanisms.privacy.binomial import LEFT_OUT, mass_above, mass_at, window

# n·e^ε beyond this overflows a double.
LARGEST_EPSILON = 600.0
# Pairs (M, b) summed one by one, in some 30 ms; of more, neighbouring M are taken in at least so many runs.
LARGEST_SUM = 2**21
LEAST_RUNS = 4
# Tails of a below this are left out: far below what the windows leave out.
LEAST_TAIL = 1e-60


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
    sampling, unsampled : float
        π_s and 1 − π_s, in (0, 1); each with all its digits, which a subtraction would lose.
    blank, other_blank : float
        b_t and b_t', above 0.
    queries : int
        T: by basic composition, T·δ(ε/T).
    """

    devices: int
    sampling: float
    unsampled: float
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
        first, masses = window(self.devices - 1, self.unsampled)
        low, width = self._outcomes(first + 1, first + len(masses), other)
        runs = max(LARGEST_SUM // width, LEAST_RUNS)
        starts = np.arange(0, len(masses), -(-len(masses) // runs))
        draws = np.asarray(first + 1 + starts, dtype=np.float64)
        p = min(one / (1.0 - other), 1.0)
        growth, factor = math.expm1(epsilon), math.exp(epsilon)
        # a is telling from t + 1 on, where slope·a + rest > 0; t rises with b.
        start, rise = draws * one * self.unsampled * growth / self.sampling, factor * one / other
        last = _last_outcome(draws, low, low + width - 1, start, rise, p)
        left = draws - last
        t = np.floor(start + rise * last)
        by_draws = _partial_means(
            draws,
            low,
            last,
            mass_at(last, draws, other),
            mass_at(t, left - 1.0, p),
            mass_above(t, left - 1.0, p),
            np.array([self.sampling, self.unsampled * growth, one, other, p, factor]),
            start,
        )
        left_out = 10.0 * LEFT_OUT if width <= self.devices or len(masses) < self.devices else 0.0
        return float(np.add.reduceat(masses, starts) @ by_draws) + left_out

    @staticmethod
    def _outcomes(fewest: int, most: int, probability: float) -> tuple[int, int]:
        """Return the first of the values of b worth summing for any number of draws in a range, and how many."""
        low, _ = window(fewest, probability)
        high, masses = window(most, probability)
        return low, high + len(masses) - low


def _last_outcome(
    draws: NDArray[np.float64], low: int, high: int, start: NDArray[np.float64], rise: float, p: float
) -> NDArray[np.float64]:
    """Return, for each m, the largest b in low…high at which P[a > t(b)] is not negligible, by bisection; at least low.

    The probability falls with b, since fewer draws are left and t rises.
    """
    below, above = np.full(draws.shape, float(low)), np.minimum(draws, float(high)) + 1.0
    while (above - below > 1.0).any():
        b = np.floor((below + above) / 2.0)
        left = draws - b
        enough = (left > 0.0) & (mass_above(np.floor(start + rise * b) - 1.0, left - 1.0, p) > LEAST_TAIL)
        below, above = np.where(enough, b, below), np.where(enough, above, b)
    return below


@compiled
def _partial_means(
    draws: NDArray[np.float64],
    low: int,
    last: NDArray[np.float64],
    mass_last: NDArray[np.float64],
    mass_t: NDArray[np.float64],
    tail_t: NDArray[np.float64],
    numbers: NDArray[np.float64],
    start: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return Σ_b P[b]·E[(slope·a + rest)₊ | b] for each m, downwards from the last b that matters.

    Going down, every update of the tail P[Bin(N, p) > t] adds a mass: N rises with P[N + 1 draws > t] = P[N > t] +
    p·P[N = t], and t falls. So nothing cancels, and a pair (m, b) costs some twenty operations.
    """
    sampling, blank_growth, one, other, p, factor = numbers
    sums = np.zeros(len(draws))
    for i in range(len(draws)):
        m, b = draws[i], last[i]
        slope = sampling / (m * one)
        rise = factor * one / other
        t = np.floor(start[i] + rise * b)
        mass_b, mass, tail = mass_last[i], mass_t[i], tail_t[i]
        while True:
            left = m - b
            rest = -blank_growth - factor * sampling * b / (m * other)
            if p >= 1.0:
                gain = slope * left + rest
            else:
                # E[(slope·a + rest) 1{a > t}] for a ~ Bin(left, p), without the cancellation of its two parts.
                gain = (slope * left * p + rest) * tail + (slope * left + rest) * p * mass
            if gain > 0.0:
                sums[i] += mass_b * gain
            if b <= low:
                break
            mass_b *= b / (m - b + 1.0) * (1.0 - other) / other
            b -= 1.0
            if p < 1.0:
                n = left  # draws other than one, now that b is one less
                tail += p * mass
                mass *= n / (n - t) * (1.0 - p) if t < n else 0.0
                below = np.floor(start[i] + rise * b)
                while t > below:
                    tail += mass
                    mass *= t / (n - t + 1.0) * (1.0 - p) / p
                    t -= 1.0
    return sums
