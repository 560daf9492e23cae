"""Deviations that chance explains at a stated level, from exact theory and not from a large-sample limit."""

import math

import numpy as np
from numpy.typing import NDArray

# The commonest outcomes that are compared one by one; the rest are compared in groups.
COMMON = 12
SAME_LAW_COMPARISONS = COMMON + 2
# What a range seen in a sample is widened by, before a bound is made to rest on it.
WIDER = 2.0


def mean_interval(values: NDArray[np.float64], *, alpha: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return bounds of the means of columns, both right with probability 1 − alpha a column.

    The empirical Bernstein bound (Maurer and Pontil 2009, theorem 4), for independent rows of any bounded law;
    the range is taken as twice the one seen.

    Parameters
    ----------
    values : (n, columns) float64
    alpha : float

    Returns
    -------
    lower, upper : (columns,) float64
    """
    n = len(values)
    log = math.log(4.0 / alpha)
    mean = values.mean(axis=0)
    reach = WIDER * np.ptp(values, axis=0)
    half = np.sqrt(2.0 * values.var(axis=0, ddof=1) * log / n) + 7.0 * reach * log / (3.0 * (n - 1))
    rounding = 1e-9 * (1.0 + np.abs(values).max(axis=0))
    return mean - half - rounding, mean + half + rounding


def mean_reach(deviations: NDArray[np.float64], variance: NDArray[np.float64], *, alpha: float) -> NDArray[np.float64]:
    """Return how far the means of columns may lie from 0, by Bernstein's bound with the variance of theory.

    Parameters
    ----------
    deviations : (n, columns) float64
        Independent rows, from their supposed mean.
    variance : (columns,) float64
        Of one row, as theory has it.
    alpha : float
        A column.
    """
    return _bernstein(len(deviations), variance, WIDER * _greatest(deviations), alpha)


def square_reach(
    deviations: NDArray[np.float64], variance: NDArray[np.float64], *, step: NDArray[np.float64], alpha: float
) -> NDArray[np.float64]:
    """Return how far the mean squares of columns may lie from the variance of theory.

    A sum of independent terms of which none exceeds `step` has an excess kurtosis of at most step²/σ²; samples
    without replacement come a little above, so four times that is granted.

    Parameters
    ----------
    deviations : (n, columns) float64
        Independent rows, from their mean.
    variance : (columns,) float64
        σ² of one row, as theory has it.
    step : (columns,) float64
        The most one device moves a value.
    alpha : float
        A column.
    """
    spread = variance * (2.0 * variance + 4.0 * step**2)
    return _bernstein(len(deviations), spread, WIDER * _greatest(deviations) ** 2, alpha)


def same_law(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """Return how likely two samples of outcomes are under one law: the least p-value, times the comparisons made.

    One half of each chooses events: each of the commonest outcomes, and the two sets of outcomes that either sample
    made more often. The other tests each, exactly: given how often both samples made an event together, how
    often the one did is hypergeometric if they have one law.

    Parameters
    ----------
    one, other : (n,) int64
        A key for each outcome; the samples may differ in size.

    Returns
    -------
    float
        At most 1; below any α with probability α at most, if the laws are the same.
    """
    from scipy.stats import hypergeom  # noqa: PLC0415 - half a second, for this test only

    outcomes, place = np.unique(np.concatenate([one, other]), return_inverse=True)
    first, second = place[: len(one)], place[len(one) :]
    counts = [
        np.bincount(part, minlength=len(outcomes)) for part in (first[::2], second[::2], first[1::2], second[1::2])
    ]
    chosen_one, chosen_other, tested_one, tested_other = counts
    share_one, share_other = chosen_one / max(chosen_one.sum(), 1), chosen_other / max(chosen_other.sum(), 1)
    events = [np.arange(len(outcomes)) == i for i in np.argsort(-(share_one + share_other), kind="stable")[:COMMON]]
    events += [share_one > share_other, share_one < share_other]
    n_one, n_other = int(tested_one.sum()), int(tested_other.sum())
    least = 1.0
    for event in events:
        hits, others = int(tested_one[event].sum()), int(tested_other[event].sum())
        law = hypergeom(n_one + n_other, hits + others, n_one)
        least = min(least, 2.0 * float(law.cdf(hits)), 2.0 * float(law.sf(hits - 1)))
    return min(1.0, least * SAME_LAW_COMPARISONS)


def wilson_interval(
    hits: NDArray[np.int64], trials: int, *, alpha: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return approximate bounds of probabilities, each wrong about as often as `alpha` (Wilson 1927, eq 3).

    Cheap: for choosing what exact bounds then test.

    Parameters
    ----------
    hits : (n,) int64
        Of `trials`.
    trials : int
        At least 1.
    alpha : float

    Returns
    -------
    lower, upper : (n,) float64
        The upper ones are above 0.
    """
    squared = 2.0 * math.log(1.0 / alpha)
    middle = hits + squared / 2.0
    half = np.sqrt(squared * (hits * (1.0 - hits / trials) + squared / 4.0))
    lower = np.maximum(middle - half, 0.0).astype(np.float64) / (trials + squared)
    upper = (middle + half).astype(np.float64) / (trials + squared)
    return lower, upper


def row_keys(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a key a row, (n,) int64: rows with one key are one outcome.

    A random linear map modulo 2⁶⁴. Two different rows share a key with probability 2⁻⁶³ or so; if they do, they are
    merged, which no test above minds.
    """
    flat = np.ascontiguousarray(rows.reshape(len(rows), -1), dtype=np.int64)
    odd = np.random.default_rng(flat.shape[1]).integers(-(2**63), 2**63 - 1, flat.shape[1]) | 1
    # An odd constant multiplied in at the end keeps keys of keys from cancelling.
    keys: NDArray[np.int64] = (flat @ odd) ^ np.int64(0x5851F42D4C957F2D)
    return keys


def _bernstein(n: int, variance: NDArray[np.float64], reach: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
    """Return how far the mean of n independent terms may lie from its expectation."""
    log = math.log(2.0 / alpha)
    bound: NDArray[np.float64] = np.sqrt(2.0 * variance * log / n) + reach * log / (3.0 * n) + 1e-9 * (1.0 + reach)
    return bound


def _greatest(deviations: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the greatest absolute deviation of each column, (columns,)."""
    greatest: NDArray[np.float64] = np.abs(deviations).max(axis=0)
    return greatest
