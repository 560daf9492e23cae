"""Confidence intervals of means: by Student's t, of errors on a logarithmic scale, and of shares by a bound.

The mean of errors, which are not negative, is far from normal where there are few of them, and ends of its t-interval
may be below 0. The logarithm of the mean is closer to normal. By the delta method its standard error is v, the
coefficient of variation, over the root of the number of values. That is multiplied by √(1 + v²), since few values of a
skewed law vary less than the law in most samples (of a log-normal law, the variance of a variance has such a factor).
Simulated with 2 to 20 values, the intervals contain the mean with probability .93 or more, of log-normal laws up to
v = .9 and gamma laws up to v = 1.4, and t-intervals with .86 and .82.

The mean of shares, such as coverage or the success of attacks, is far from normal where there are few of them: all may
be 1 by chance, and the t-interval then has no width. For values between known bounds, Waudby-Smith and Ramdas,
"Estimating means of bounded random variables by betting" (J. R. Stat. Soc. B 86, 2024), section 4, prove intervals
without any assumption on their law. Bets are averaged here over a uniform grid of stakes, so that the order of the
values does not matter.
"""

import math

import numpy as np
import numpy.typing as npt
import scipy

from mechanisms.compiled import stdtrit

FloatArray = npt.NDArray[np.float64]

LEVEL = 0.95
"""Confidence level of the intervals."""
FEWEST_SHARES = 20
"""Fewest values for which the interval of a share is given: of fewer it would span most of what is possible."""
_STAKES = (np.arange(64) + 0.5) / 64
_LEAST = 1e-9


def t_quantile(count: npt.ArrayLike) -> FloatArray:
    """Return the factor of a mean's standard error that gives half its interval; NaN for fewer than two values."""
    found: FloatArray = stdtrit(np.maximum(np.asarray(count) - 1, 1), 0.5 + LEVEL / 2.0)
    return np.where(np.asarray(count) > 1, found, math.nan)


def error_interval(mean: npt.ArrayLike, spread: npt.ArrayLike, count: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the interval of a mean of values that are not negative: the mean over and times one factor.

    Parameters
    ----------
    mean, spread, count
        Mean, standard deviation (of a sample, with n − 1) and number of the values.

    Returns
    -------
    lower, upper
        None is negative; 0 if all values are 0, and NaN for fewer than two values.
    """
    mean, count = np.asarray(mean, dtype=np.float64), np.asarray(count)
    variation = np.divide(spread, mean, out=np.zeros_like(mean), where=mean > 0)
    factor = np.exp(t_quantile(count) * variation * np.sqrt((1.0 + variation**2) / np.maximum(count, 1)))
    return mean / factor, mean * factor


def share_interval(values: FloatArray, *, low: float = 0.0, high: float = 1.0) -> tuple[float, float]:
    """Return the ends of the interval of the mean of independent values of one law between `low` and `high`.

    Parameters
    ----------
    values
        (n,): the values.
    low, high
        What no value can be below, or above: 0 and 1 for shares, −1 and 1 for differences of shares.

    Returns
    -------
    lower, upper
        NaN for fewer than `FEWEST_SHARES` values. The probability that the mean of the law is between them is at least
        `LEVEL`, whatever the law.
    """
    if len(values) < FEWEST_SHARES:
        return math.nan, math.nan
    shares = (values - low) / (high - low)
    lower, upper = _lower_end(shares), 1.0 - _lower_end(1.0 - shares)
    return low + (high - low) * lower, low + (high - low) * upper


def _lower_end(shares: FloatArray) -> float:
    """Return the least mean at which bets that the mean is larger have not won 2 / (1 − `LEVEL`) times their stake."""

    def won(mean: float) -> float:
        growth = np.log1p(_STAKES[:, None] * (shares / mean - 1.0)).sum(axis=1)
        return float(scipy.special.logsumexp(growth)) - math.log(len(_STAKES)) - math.log(2.0 / (1.0 - LEVEL))

    mean = float(shares.mean())
    return float(scipy.optimize.brentq(won, _LEAST, mean)) if mean > _LEAST and won(_LEAST) > 0.0 else 0.0
