"""Simulated errors and success rates with their intervals, for comparison with theory."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.local import LocalMechanism
from mechanisms.privacy.audit import clopper_pearson
from simulator.pages.charts import Series

Z = 4.5
"""Half-width of an interval in standard errors: one interval in 150,000 misses, so agreement is not due to the seed."""
ALPHA = 1e-6
"""Probability that a correct theory lies outside the interval of a rate; notes show a 95 % interval."""


def one_cell(inside: int, devices: int) -> NDArray[np.int64]:
    """Return the true counts, (2,), of one cell: the devices outside it, then those inside."""
    return np.array([devices - inside, inside], dtype=np.int64)


def std_error(mechanism: LocalMechanism, inside: int, devices: int) -> float:
    """Return the exact standard error of the estimate of one cell that holds `inside` of the devices."""
    return float(mechanism.std_error(one_cell(inside, devices))[0])


@dataclass(frozen=True)
class SimulatedError:
    """Errors of repeated queries about the same devices.

    Parameters
    ----------
    repeats : int
        Number of queries.
    theory : float
        The exact standard error.
    rmse, low, high : float
        Root mean square error, and the ends of its interval, `Z` standard errors on each side.
    bias : float
        Distance of the mean error from 0, in its standard errors.
    """

    repeats: int
    theory: float
    rmse: float
    low: float
    high: float
    bias: float

    @property
    def verdict(self) -> str:
        """Whether the interval holds theory's error, in words."""
        return "holds" if self.low <= self.theory <= self.high else "misses"


def simulate_error(
    mechanism: LocalMechanism, true_counts: NDArray[np.int64], *, repeats: int, rng: np.random.Generator, cell: int = 0
) -> SimulatedError:
    """Simulate repeated queries of the same devices.

    Parameters
    ----------
    mechanism
        A mechanism of V cells; its `sample_counts` draws the counts of the devices' answers.
    true_counts : (V + 1,) int64
        Number of devices outside and in each cell.
    repeats
        Number of queries.
    cell
        Index of the cell whose error is returned, from 0.
    """
    asked = (int(true_counts.sum()),) * mechanism.rounds
    draws = (mechanism.sample_counts(true_counts, rng=rng) for _ in range(repeats))
    counts = [mechanism.estimate(drawn, counted=asked, asked=asked).count[cell] for drawn in draws]
    errors = np.array(counts) - true_counts[1 + cell]
    squares = errors**2
    mean, reach = float(squares.mean()), Z * float(squares.std(ddof=1)) / math.sqrt(repeats)
    return SimulatedError(
        repeats,
        float(mechanism.std_error(true_counts)[cell]),
        math.sqrt(mean),
        math.sqrt(max(0.0, mean - reach)),
        math.sqrt(mean + reach),
        abs(float(errors.mean())) * math.sqrt(repeats) / float(errors.std(ddof=1)),
    )


def simulated_series(name: str, x: Sequence[int], errors: Sequence[SimulatedError]) -> Series:
    """Return simulated errors as points with their intervals."""
    low, high = [error.low for error in errors], [error.high for error in errors]
    return Series(f"{name}, simulated", x, [error.rmse for error in errors], "points", low=low, high=high)


@dataclass(frozen=True)
class Rate:
    """Success rate of an attack.

    Parameters
    ----------
    hits, trials
        Number of successes, and of independent trials.
    """

    hits: int
    trials: int

    @classmethod
    def of(cls, right: NDArray[np.bool_] | list[bool]) -> "Rate":
        """Return the rate of guesses, each right or wrong."""
        return cls(int(np.sum(right)), len(right))

    @property
    def share(self) -> float:
        """The success rate."""
        return self.hits / self.trials

    def interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Return the exact (Clopper-Pearson) interval, which misses with probability at most `alpha`."""
        low, high = clopper_pearson(self.hits, self.trials, alpha=alpha / 2)
        return float(low), float(high)

    def agrees_with(self, theory: float) -> bool:
        """Return whether theory lies in the interval that misses with probability one in a million."""
        low, high = self.interval(ALPHA)
        return low - 1e-12 <= theory <= high + 1e-12

    def exceeds(self, allowed: float) -> bool:
        """Return whether the rate is above a bound, with an error probability of one in a million."""
        return self.interval(ALPHA)[0] > allowed

    def __str__(self) -> str:
        """Return the rate, its 95 % interval and the number of trials."""
        low, high = self.interval()
        return f"{self.share:.4f} (95 % interval {low:.4f} to {high:.4f}, {self.trials:,} trials)"


def allowed_success(epsilon: float, delta: float) -> float:
    """Return the best success rate in distinguishing two equally likely worlds under (ε, δ): (e^ε + δ)/(1 + e^ε).

    A test that is right with probability a in one world and b in the other has a ≤ e^ε(1 − b) + δ and
    b ≤ e^ε(1 − a) + δ. The sum of both gives (a + b)/2 ≤ (e^ε + δ)/(1 + e^ε).
    """
    factor = math.exp(epsilon)
    return min(1.0, (factor + delta) / (1.0 + factor))
