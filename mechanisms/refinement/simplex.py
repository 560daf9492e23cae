"""Simplex: the nearest counts that are not negative and have a given sum."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechanisms.local.estimate import Estimate
from mechanisms.parameter import ParameterError
from mechanisms.refinement.refined_estimate import Properties, RefinedEstimate, unrefined_interval
from mechanisms.refinement.total import Total, total_of


def project_onto_simplex(values: ArrayLike, total: float) -> NDArray[np.float64]:
    """Return the point of {p ≥ 0, Σp = total} nearest to `values`.

    By the conditions of Karush, Kuhn and Tucker it is p = max(x − τ, 0) for the one τ that gives it its sum. With
    x sorted downwards, ρ is the last place at which x_ρ exceeds (x_1 + … + x_ρ − total)/ρ, and that quotient at ρ
    is τ (Duchi, Shalev-Shwartz, Singer, Chandra: Efficient Projections onto the ℓ1-Ball for Learning in High
    Dimensions, ICML 2008, fig 1). O(V log V); equal values stay equal to the last bit.

    Parameters
    ----------
    values : (cells,) float
        At least one, all finite.
    total : float
        At least 0.

    Returns
    -------
    (cells,) float64

    Raises
    ------
    ParameterError
        If there is no value, one is not finite, or the total is negative or not finite.
    """
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or not len(x):
        raise ParameterError("values", "must have one value a cell", x.shape)
    if not np.isfinite(x).all():
        raise ParameterError("values", "must be finite", float(x[~np.isfinite(x)][0]))
    if not 0.0 <= total < np.inf:
        raise ParameterError("total", "must be finite and at least 0", total)
    if total == 0.0:
        return np.zeros_like(x)
    # A common shift changes nothing of the projection, and keeps large values from swallowing a small total.
    shifted = x - x.max()
    downwards = np.sort(shifted)[::-1]
    thresholds = (np.cumsum(downwards) - total) / np.arange(1, len(x) + 1)
    last = int(np.flatnonzero(downwards > thresholds)[-1])  # the first place is always among them
    projected: NDArray[np.float64] = np.maximum(shifted - thresholds[last], 0.0)
    return projected


def simplex(estimate: Estimate, *, asked: int, total: Total = "estimated") -> RefinedEstimate:
    """Project an estimate onto the counts that are possible and have the total.

    It is also the least squares estimate under these constraints, CLS of Wang, Lopuhaä-Zwakenberg, Li, Skoric and
    Li (Locally Differentially Private Frequency Estimation with Consistency, NDSS 2020); see `norm_sub` for when
    that paper's Norm-Sub is the same.

    **Never worse, or not.** Projection onto a convex set brings a point nearer to everything in the set. With
    total = "asked" and every device asked in some cell the truth is in it, so the sum of squared errors over the
    cells is never above the unrefined estimate's, whatever the coins were. With total = "estimated" the set hangs
    on the coins. The error along (1, …, 1) stays; across it, the set is that of the truth's own sum scaled about
    its centre. So the same holds where the estimates' sum is at least the truth's, and need not where it is below:
    x = (−1, 1) for Y = (0, 10) becomes (0, 0).

    **Interval.** The unrefined one, which holds the truth as often as before; the refined count may lie outside it.

    Parameters
    ----------
    estimate : Estimate
        Unbiased.
    asked : int
        Devices asked.
    total : {"estimated", "asked"}
        See `total_of`.

    Returns
    -------
    RefinedEstimate
        Of unknown standard error.
    """
    return refined_to_total(
        estimate,
        project_onto_simplex(estimate.count, total_of(estimate.count, total, asked=asked)),
        Properties(
            refinement="simplex",
            biased=True,
            non_negative=True,
            total=total,
            ordered=True,
            never_worse="over all cells" if total == "asked" else "not promised",
        ),
    )


def refined_to_total(estimate: Estimate, count: NDArray[np.float64], properties: Properties) -> RefinedEstimate:
    """Return refined counts beside the unrefined interval; their standard error is not known."""
    unknown = np.full(len(estimate), np.nan)
    interval = unrefined_interval(estimate.interval)
    return RefinedEstimate(count, unknown, estimate.lower, estimate.upper, interval, properties)
