"""Bounds of random deviations at a stated level, valid for finite samples and not only in the large-sample limit."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Number of most frequent outcomes that are compared one by one; the rest are compared in groups.
COMMON = 12
SAME_LAW_COMPARISONS = COMMON + 2
# A range observed in a sample is multiplied by this before a bound uses it.
WIDER = 2.0


def mean_interval(
    values: NDArray[np.float64], *, alpha: float, widest: NDArray[np.float64] | float = 0.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return bounds of the means of columns, both valid with probability 1 − alpha per column.

    The empirical Bernstein bound (Maurer and Pontil 2009, theorem 4), for independent rows of any bounded distribution;
    its range is assumed to be twice the observed one, or `widest` if this is more.

    Parameters
    ----------
    values : (n, columns) float64
    alpha : float
    widest : (columns,) float64
        A range that is known of each column: events too rare for these rows are then allowed for.

    Returns
    -------
    lower, upper : (columns,) float64
    """
    n = len(values)
    log = math.log(4.0 / alpha)
    mean = values.mean(axis=0)
    reach = np.maximum(WIDER * np.ptp(values, axis=0), widest)
    half = np.sqrt(2.0 * values.var(axis=0, ddof=1) * log / n) + 7.0 * reach * log / (3.0 * (n - 1))
    rounding = 1e-9 * (1.0 + np.abs(values).max(axis=0))
    return mean - half - rounding, mean + half + rounding


def mean_reach(deviations: NDArray[np.float64], variance: NDArray[np.float64], *, alpha: float) -> NDArray[np.float64]:
    """Return how far the means of columns may lie from 0, by Bernstein's bound with the theoretical variance.

    Parameters
    ----------
    deviations : (n, columns) float64
        Independent rows, less their stated mean.
    variance : (columns,) float64
        Theoretical variance of one row.
    alpha : float
        Level of each column.
    """
    return bernstein(len(deviations), variance, WIDER * _greatest(deviations), alpha)


def square_reach(
    deviations: NDArray[np.float64], variance: NDArray[np.float64], *, step: NDArray[np.float64], alpha: float
) -> NDArray[np.float64]:
    """Return how far the mean squares of columns may lie from the theoretical variance.

    A sum of independent terms that do not exceed `step` has an excess kurtosis of at most step²/σ². Samples without
    replacement may slightly exceed this, so four times the bound is allowed.

    Parameters
    ----------
    deviations : (n, columns) float64
        Independent rows, less their mean.
    variance : (columns,) float64
        σ², the theoretical variance of one row.
    step : (columns,) float64
        The greatest change of a value by one device.
    alpha : float
        Level of each column.
    """
    spread = variance * (2.0 * variance + 4.0 * step**2)
    return bernstein(len(deviations), spread, WIDER * _greatest(deviations) ** 2, alpha)


def same_law(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """Return a p-value for two samples of one distribution: the least p-value times the number of comparisons.

    One half of each sample chooses events: each of the most frequent outcomes, and the two sets of outcomes that are
    more frequent in one sample or in the other. The other halves test each event exactly. Given how often both samples
    together have an event, the number in one of them is hypergeometric if both have the same distribution.

    Parameters
    ----------
    one, other : (n,) int64
        A key for each outcome; the samples may differ in size.

    Returns
    -------
    float
        At most 1; below any α with probability at most α, if the distributions are the same.
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
    """Return approximate bounds of probabilities, each wrong with probability of about `alpha` (Wilson 1927, eq 3).

    They are fast to compute, and choose the events that exact bounds then test.

    Parameters
    ----------
    hits : (n,) int64
        Number of hits out of `trials`.
    trials : int
        At least 1.
    alpha : float

    Returns
    -------
    lower, upper : (n,) float64
        The upper bounds are above 0.
    """
    squared = 2.0 * math.log(1.0 / alpha)
    middle = hits + squared / 2.0
    half = np.sqrt(squared * (hits * (1.0 - hits / trials) + squared / 4.0))
    lower = np.maximum(middle - half, 0.0).astype(np.float64) / (trials + squared)
    upper = (middle + half).astype(np.float64) / (trials + squared)
    return lower, upper


def row_keys(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one key per row, (n,) int64: rows with the same key are the same outcome.

    The key is a random linear map modulo 2⁶⁴. Two different rows have the same key with probability of about 2⁻⁶³. Then
    they are merged into one outcome, which does not invalidate any test.
    """
    flat = np.ascontiguousarray(rows.reshape(len(rows), math.prod(rows.shape[1:])), dtype=np.int64)
    odd = np.random.default_rng(flat.shape[1]).integers(-(2**63), 2**63 - 1, flat.shape[1]) | 1
    # The constant keeps keys of keys from cancelling.
    return (flat @ odd) ^ np.int64(0x5851F42D4C957F2D)


def pairs_apart(column: NDArray[Any], lag: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return disjoint pairs of entries a lag apart, the first and the second of each; an entry is in one pair."""
    whole = column[: len(column) // (2 * lag) * 2 * lag].reshape(-1, 2, lag)
    return whole[:, 0].ravel(), whole[:, 1].ravel()


def bernstein(n: int, variance: NDArray[np.float64], reach: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
    """Return how far the mean of n independent terms may lie from its expectation."""
    log = math.log(2.0 / alpha)
    return np.sqrt(2.0 * variance * log / n) + reach * log / (3.0 * n) + 1e-9 * (1.0 + reach)


def _greatest(deviations: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the greatest absolute deviation of each column, (columns,)."""
    return np.asarray(np.abs(deviations).max(axis=0))
