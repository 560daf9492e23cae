"""Intervals for a count that is not seen: by inverting a binomial, and by a score."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincc, ndtri

from mechanisms.local.parts.variance import QuadraticVariance
from mechanisms.parameter import ParameterError, check_probability

LEVEL = 0.95


def invert_binomial(
    successes: ArrayLike, probability: float, level: float = LEVEL
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the trials Y that neither one-sided tail test rejects, having seen d ~ Bin(Y, π).

    The lower end is the least n with P[Bin(n, π) ≥ d] > α/2, the upper the greatest n with P[Bin(n, π) ≤ d] >
    α/2, α = 1 − level. Each true Y is rejected by either test with probability at most α/2, so the interval
    covers every Y with probability at least `level` (Clopper-Pearson, for the number of trials).

    Parameters
    ----------
    successes : (…) int
        Successes seen, each at least 0.
    probability : float
        Probability π of a success, in (0, 1].
    level : float
        Least coverage, in (0, 1).

    Returns
    -------
    lower, upper : (…) int64
        Both ends inclusive; upper is at least `successes`, as is lower.

    Raises
    ------
    ParameterError
        If a count is negative or no integer, or a probability out of range.
    """
    seen = np.asarray(successes)
    if seen.dtype.kind not in "iu":
        raise ParameterError("successes", "must hold integers", str(seen.dtype))
    if seen.size and seen.min() < 0:
        raise ParameterError("successes", "must not be negative", int(seen.min()))
    probability = check_probability("probability", probability, above_zero=True)
    alpha = _check_level(level)
    # A tally holds few different values, however many cells: each is solved once.
    values, place = np.unique(seen.astype(np.int64, copy=False), return_inverse=True)
    place = place.reshape(seen.shape)
    if probability == 1.0:
        return values[place].copy(), values[place].copy()
    half = alpha / 2

    def enough(n: NDArray[np.int64], d: NDArray[np.int64]) -> NDArray[np.bool_]:
        # P[Bin(n, π) ≥ d] = I_π(d, n − d + 1), rising in n; certain at d = 0.
        tail = np.asarray(betainc(np.maximum(d, 1), n - d + 1, probability))
        kept: NDArray[np.bool_] = (d == 0) | (tail > half)
        return kept

    def too_many(n: NDArray[np.int64], d: NDArray[np.int64]) -> NDArray[np.bool_]:
        # P[Bin(n, π) ≤ d] = 1 − I_π(d + 1, n − d), falling in n; certain at n = d.
        tail = np.asarray(betaincc(d + 1, np.maximum(n - d, 1), probability))
        rejected: NDArray[np.bool_] = (n > d) & (tail <= half)
        return rejected

    lower = _least(enough, values, probability)
    upper = _least(too_many, values, probability) - 1
    return lower[place], upper[place]


def score_interval(
    estimate: ArrayLike, variance: QuadraticVariance, limit: float, level: float = LEVEL
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the counts Y in [0, limit] whose own variance makes the estimate no surprise.

    Solves (Ŷ − Y)² ≤ z²·Var(Y) with Var(Y) = a + bY + cY² (Wilson's interval, for this variance). The
    estimate is first clipped to [0, limit]: that only brings it nearer to every possible Y, so nothing is
    lost, and the interval is never empty. At an estimate of 0 the upper end is above 0 wherever the variance
    is not identically 0.

    Parameters
    ----------
    estimate : (cells,) float
        Unbiased estimates, perhaps negative.
    variance : QuadraticVariance
        Coefficients, (cells,) or scalars.
    limit : float
        The most devices there can be.
    level : float
        Nominal coverage, in (0, 1).

    Returns
    -------
    lower, upper : (cells,) float64
    """
    z = -float(ndtri(_check_level(level) / 2))
    centre = np.clip(np.asarray(estimate, dtype=np.float64), 0.0, limit)
    z2 = z * z
    square = 1.0 - z2 * np.broadcast_to(variance.square, centre.shape)
    half_linear = centre + z2 * variance.linear / 2
    constant = centre * centre - z2 * variance.constant
    # At Y = centre the left side is 0 and the variance is not negative, so real roots exist up to rounding.
    root = np.sqrt(np.maximum(half_linear * half_linear - square * constant, 0.0))
    bounded = square > 0
    divisor = np.where(bounded, square, 1.0)
    lower = np.where(bounded, (half_linear - root) / divisor, 0.0)
    upper = np.where(bounded, (half_linear + root) / divisor, limit)
    # Rounding must not push an end past the estimate it surrounds.
    return np.clip(np.minimum(lower, centre), 0.0, limit), np.clip(np.maximum(upper, centre), 0.0, limit)


def _check_level(level: float) -> float:
    """Return α = 1 − level."""
    if not 0.0 < level < 1.0:
        raise ParameterError("level", "must be between 0 and 1, both excluded", level)
    return 1.0 - level


def _least(
    holds: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]],
    successes: NDArray[np.int64],
    probability: float,
) -> NDArray[np.int64]:
    """Return for each d the least n ≥ d at which a condition that stays true once true holds.

    Integer bisection from a doubled bracket: at the end it has been seen to hold at n and, unless n = d, not
    at n − 1, both by direct evaluation.
    """
    low = successes - 1  # never evaluated as holding: below d there is nothing to find
    step = np.maximum(1, np.ceil(np.sqrt(successes + 1.0) / probability)).astype(np.int64)
    high = np.maximum(successes, (successes / probability).astype(np.int64))
    missing = ~holds(high, successes)
    while missing.any():
        low = np.where(missing, high, low)
        high = np.where(missing, high + step, high)
        step = np.where(missing, 2 * step, step)
        missing = ~holds(high, successes)
    while (high - low > 1).any():
        middle = np.where(high - low > 1, (low + high) // 2, high)
        found = holds(middle, successes)
        high = np.where(found, middle, high)
        low = np.where(found, low, middle)
    return high
