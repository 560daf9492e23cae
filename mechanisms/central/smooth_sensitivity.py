"""Smooth sensitivity of the median: a bound on the effect of one value, at this data set and at neighbours."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechanisms.central.release import check_bounds, clamp
from mechanisms.kernel import compiled
from mechanisms.parameter import ParameterError

# Greatest size of the stack: a range of int64 indices can be halved fewer times than this.
DEPTH = 64


def median_rank(n: int) -> int:
    """Return the rank m = ⌈n/2⌉, from 1, of the median used throughout: the lower one where n is even.

    The lower median is one of the values, so smooth sensitivity bounds it as it does any order statistic; the mean of
    the two middle values is not covered.
    """
    return (n + 1) // 2


def median_smooth_sensitivity(values: ArrayLike, *, xi: float, lower: float, upper: float) -> float:
    """Return the ξ-smooth sensitivity of the lower median of values in [lower, upper] (HDK eq 4).

    S* = max over k ≥ 0 of e^(−kξ) · max over t = 0…k + 1 of (x_(m+t) − x_(m+t−k−1)), with x_(i) = lower for i < 1 and
    upper for i > n: the greatest e^(−ξ(j−i−1))·(x_(j) − x_(i)) over i ≤ m ≤ j. The best j rises with i, so halving the
    range of i repeatedly takes O(n log n) (Nissim, Raskhodnikova and Smith 2007, sec 3.1).

    Parameters
    ----------
    values : (n,) float
        In any order; at least one. Those outside the bounds are clamped to them.
    xi : float
        ξ, at least 0; at 0 the greatest of all local sensitivities, upper − lower.
    lower, upper : float
        The bounds, set without looking at the values.

    Returns
    -------
    float
        S*, in the values' unit, in [0, upper − lower].

    Raises
    ------
    ParameterError
        If ξ is negative or not finite, the bounds are not finite or not in order, or there is no value or a value is
        not finite.
    """
    lower, upper = check_bounds(lower, upper)
    if not 0.0 <= xi < np.inf:
        raise ParameterError("xi", "must be a finite number of at least 0", xi)
    ordered = np.sort(clamp(values, lower, upper))
    return float(_of_ordered(np.concatenate([[lower], ordered, [upper]]), median_rank(len(ordered)), float(xi)))


def sampled_smooth_sensitivities(
    ordered: NDArray[np.float64], ranks: NDArray[np.int64], *, xi: float, lower: float, upper: float
) -> NDArray[np.float64]:
    """Return S* of many samples from one population.

    Parameters
    ----------
    ordered : (N,) float64
        The population, ascending, within the bounds.
    ranks : (samples, n) int64
        Each row ascending indices, from 0, into `ordered`.
    xi, lower, upper : float
        As in `median_smooth_sensitivity`.

    Returns
    -------
    (samples,) float64
    """
    out = np.empty(len(ranks))
    _of_samples(ordered, ranks, float(xi), float(lower), float(upper), out)
    return out


@compiled
def _of_samples(
    ordered: NDArray[np.float64],
    ranks: NDArray[np.int64],
    xi: float,
    lower: float,
    upper: float,
    out: NDArray[np.float64],
) -> None:  # pragma: no cover - compiled
    """Fill `out` with S* of each row of ranks."""
    n = ranks.shape[1]
    x = np.empty(n + 2)
    x[0], x[n + 1] = lower, upper
    for row in range(ranks.shape[0]):
        for i in range(n):
            x[i + 1] = ordered[ranks[row, i]]
        out[row] = _of_ordered(x, (n + 1) // 2, xi)


@compiled
def _of_ordered(x: NDArray[np.float64], m: int, xi: float) -> float:  # pragma: no cover - compiled
    """Return S* of x_(0) = lower, x_(1)…x_(n), x_(n+1) = upper at rank m.

    First the pairs with i = m or j = m are evaluated; their maximum excludes all pairs too far apart to exceed it. Then
    each range of i is solved at its middle. Left of the middle only j up to the j found there can be best, right of it
    only j from there on. The depth-first stack holds the first and last i and the first and last j of each range.
    """
    last = len(x) - 1
    greatest = 0.0
    for j in range(m + 1, last + 1):
        weight_here = math.exp(-xi * (j - m - 1))
        greatest = max(greatest, (x[j] - x[m]) * weight_here)
        if (x[last] - x[m]) * weight_here <= greatest:
            break
    for i in range(m - 1, -1, -1):
        weight_here = math.exp(-xi * (m - i - 1))
        greatest = max(greatest, (x[m] - x[i]) * weight_here)
        if (x[m] - x[0]) * weight_here <= greatest:
            break
    reach = last
    if greatest > 0.0 and xi > 0.0:
        reach = int(min(float(last), math.log((x[last] - x[0]) / greatest) / xi + 2.0))
    first, final = max(0, m - reach), min(last, m + reach)
    weight = np.exp(-xi * np.arange(max(m - first, final - m) + 1))
    stack = np.empty((DEPTH, 4), dtype=np.int64)
    stack[0] = (first, m - 1, m, final)
    size = 1
    while size > 0:
        size -= 1
        first_i, last_i, first_j, last_j = stack[size]
        i = (first_i + last_i) // 2
        # Where every weighted gap is 0, all j are equally good. The last j leaves the left half unrestricted, and the
        # right half, whose gaps are smaller still, loses nothing.
        best, place = 0.0, last_j
        for j in range(first_j, last_j + 1):
            height = (x[j] - x[i]) * weight[j - m]
            if height > best:
                best, place = height, j
        greatest = max(greatest, best * weight[m - i - 1])
        if first_i < i:
            stack[size] = (first_i, i - 1, first_j, place)
            size += 1
        if i < last_i:
            stack[size] = (i + 1, last_i, place, last_j)
            size += 1
    return greatest
