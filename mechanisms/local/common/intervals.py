"""Confidence intervals for a count by inversion of a binomial or a score; variance as a quadratic of the count."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincc, ndtri

from mechanisms.parameter import ParameterError, check_probability


@dataclass(frozen=True, eq=False)
class QuadraticVariance:
    """Var(Ŷ) = a + bY + cY², for Y devices truly in the cell.

    The variance of every estimator here has this form. Devices answer independently, which makes it linear in Y. A
    simple random sample of their answers adds the variance within the population, which is quadratic in Y.

    Parameters
    ----------
    constant, linear, square : float or (cells,) float64
        The coefficients a, b and c.
    """

    constant: float | NDArray[np.float64]
    linear: float | NDArray[np.float64]
    square: float | NDArray[np.float64]

    def at(self, count: ArrayLike) -> NDArray[np.float64]:
        """Return the variance at each true count, (cells,) float64."""
        y = np.asarray(count, dtype=np.float64)
        # The quadratic is a variance, so negative values are rounding errors.
        return np.maximum(self.constant + y * (self.linear + y * self.square), 0.0)

    def std_error(self, count: ArrayLike) -> NDArray[np.float64]:
        """Return the standard error at each true count, (cells,) float64."""
        return np.sqrt(self.at(count))


LEVEL = 0.95
# A smaller variance, in units of the estimate's squared step, counts as 0.
TINY = 1e-9


def invert_binomial(
    successes: ArrayLike, probability: float, level: float = LEVEL
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the range of trials Y that neither one-sided tail test rejects, given an observed d ~ Bin(Y, π).

    The lower end is the least n with P[Bin(n, π) ≥ d] > α/2, the upper the greatest n with P[Bin(n, π) ≤ d] >
    α/2, α = 1 − level. Each true Y is rejected by either test with probability at most α/2, so the interval
    covers every Y with probability at least `level` (Clopper-Pearson, for the number of trials).

    Parameters
    ----------
    successes : (…) int
        Observed successes, each at least 0.
    probability : float
        Probability π of a success, in (0, 1].
    level : float
        Least coverage, in (0, 1).

    Returns
    -------
    lower, upper : (…) int64
        Both ends are inclusive and at least `successes`.

    Raises
    ------
    ParameterError
        If a count is negative or not an integer, or a probability is out of range.
    """
    seen = np.asarray(successes)
    if seen.dtype.kind not in "iu":
        raise ParameterError("successes", "must hold integers", str(seen.dtype))
    if seen.size and seen.min() < 0:
        raise ParameterError("successes", "must not be negative", int(seen.min()))
    probability = check_probability("probability", probability, above_zero=True)
    alpha = _check_level(level)
    # A tally has few different values, however many cells: each is solved once.
    values, place = np.unique(seen.astype(np.int64, copy=False), return_inverse=True)
    place = place.reshape(seen.shape)
    if probability == 1.0:
        return values[place].copy(), values[place].copy()
    half = alpha / 2

    def enough(n: NDArray[np.int64], d: NDArray[np.int64]) -> NDArray[np.bool_]:
        # P[Bin(n, π) ≥ d] = I_π(d, n − d + 1), increasing in n; 1 at d = 0.
        tail = np.asarray(betainc(np.maximum(d, 1), n - d + 1, probability))
        kept: NDArray[np.bool_] = (d == 0) | (tail > half)
        return kept

    def too_many(n: NDArray[np.int64], d: NDArray[np.int64]) -> NDArray[np.bool_]:
        # P[Bin(n, π) ≤ d] = 1 − I_π(d + 1, n − d), decreasing in n; 1 at n = d.
        tail = np.asarray(betaincc(d + 1, np.maximum(n - d, 1), probability))
        rejected: NDArray[np.bool_] = (n > d) & (tail <= half)
        return rejected

    guess = np.maximum(values, (values / probability).astype(np.int64))
    step = np.ceil(np.sqrt(values + 1.0) / probability).astype(np.int64)
    lower = _least(lambda n: enough(n, values), guess, step, floor=values - 1)
    upper = _least(lambda n: too_many(n, values), guess, step, floor=values - 1) - 1
    return lower[place], upper[place]


def score_interval(
    estimate: ArrayLike, variance: QuadraticVariance, limit: float, level: float = LEVEL
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the range of counts Y in [0, limit] that the score test, with the variance at Y, does not reject.

    Solves (Ŷ − Y)² ≤ z²·Var(Y) with Var(Y) = a + bY + cY² (Wilson's interval, for this variance). The
    estimate is first clipped to [0, limit]. Clipping only moves it closer to every possible Y, so no Y is
    excluded, and the interval is never empty. At an estimate of 0 the upper end is above 0 wherever the variance
    is not identically 0.

    Parameters
    ----------
    estimate : (cells,) float
        Unbiased estimates, possibly negative.
    variance : QuadraticVariance
        Coefficients, (cells,) or scalars.
    limit : float
        The greatest possible number of devices.
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
    # Rounding must not move an end past the estimate.
    return np.clip(np.minimum(lower, centre), 0.0, limit), np.clip(np.maximum(upper, centre), 0.0, limit)


def invert_tails(
    estimate: ArrayLike,
    moments: Callable[[NDArray[np.float64]], tuple[NDArray[np.float64], NDArray[np.float64]]],
    step: float | NDArray[np.float64],
    limit: int,
    *,
    noise: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    level: float = LEVEL,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and greatest Y in 0…limit at which both tails of the estimate's distribution exceed α/2.

    The distribution at Y is approximated by m + h·Bin(ν, π): the binomial with real ν that has mean Y and the variance
    and third cumulant of the estimate, and whose step h is the change of the estimate by one report. It is exact if the
    true distribution is such a binomial. As the number of reports grows, it tends to the normal distribution with a
    correction for skewness.

    Parameters
    ----------
    estimate : (rows,) float
        Unbiased estimates.
    moments : callable
        Returns the variance and the third cumulant at Y, (rows,) each, from (rows,) float64.
    step : (rows,) or float
        h.
    limit : int
        The greatest possible number of devices.
    noise : ((values,) float64, (values,) float64), optional
        Values and probabilities of symmetric noise that the estimate contains and the moments do not include.
    level : float
        Nominal coverage, in (0, 1).

    Returns
    -------
    lower, upper : (rows,) float64
        Whole numbers.
    """
    half = _check_level(level) / 2
    seen = np.asarray(estimate, dtype=np.float64)
    centre = np.clip(seen, 0.0, limit)
    values, masses = (np.zeros(1), np.ones(1)) if noise is None else noise
    reach = np.sqrt(np.maximum(moments(centre)[0], 0.0) + masses @ values**2) + 1.0

    def tail(count: NDArray[np.int64], sign: int) -> NDArray[np.float64]:
        """Return P(estimate ≥ observed), or P(estimate ≤ observed) for a negative sign."""
        variance, third = moments(count.astype(np.float64))
        variance, third = variance / step**2, third / step**3
        spread = np.maximum(variance, TINY)
        chance = np.clip((1.0 - sign * third / spread) / 2, TINY, 1.0 - TINY)
        trials = spread / (chance * (1.0 - chance))
        away = (sign * (seen - count) - values[:, np.newaxis]) / step
        place = away + trials * chance
        inside = betainc(np.maximum(place, TINY), np.maximum(trials - place + 1.0, TINY), chance)
        found: NDArray[np.float64] = np.where(place <= 0.0, 1.0, np.where(place >= trials + 1.0, 0.0, inside))
        likely: NDArray[np.float64] = masses @ np.where(variance <= TINY, away <= TINY, found)
        return likely

    guess, width = np.floor(centre).astype(np.int64), np.ceil(2.0 * reach).astype(np.int64)
    floor, start = np.full_like(guess, -1), np.maximum(guess - width, 0)
    lower = _least(lambda n: (n >= limit) | (tail(n, 1) > half), start, width // 4 + 1, floor=floor)
    upper = _least(lambda n: (n > limit) | (tail(n, -1) <= half), guess + width, width // 4 + 1, floor=floor) - 1
    return lower.astype(np.float64), np.maximum(upper, 0).astype(np.float64)


def _check_level(level: float) -> float:
    """Return α = 1 − level."""
    if not 0.0 < level < 1.0:
        raise ParameterError("level", "must be between 0 and 1, both excluded", level)
    return 1.0 - level


def _least(
    holds: Callable[[NDArray[np.int64]], NDArray[np.bool_]],
    guess: NDArray[np.int64],
    step: NDArray[np.int64],
    *,
    floor: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the least n above a floor at which a monotone condition (true from some n on) holds.

    Integer bisection from a bracket that is doubled in both directions. The condition has been evaluated to be true at
    the result n and, unless n is the first above the floor, false at n − 1.
    """
    high, low = guess, np.maximum(guess - step, floor)
    while (missing := ~holds(high)).any():
        low, high = np.where(missing, high, low), np.where(missing, high + step, high)
        step = np.where(missing, 2 * step, step)
    while (early := (low > floor) & holds(np.maximum(low, floor + 1))).any():
        high, low = np.where(early, low, high), np.where(early, np.maximum(low - step, floor), low)
        step = np.where(early, 2 * step, step)
    while (high - low > 1).any():
        middle = np.where(high - low > 1, (low + high) // 2, high)
        found = holds(middle)
        high, low = np.where(found, middle, high), np.where(found, low, middle)
    return high
