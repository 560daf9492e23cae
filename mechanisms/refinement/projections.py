"""Refined estimates, by projection onto feasible counts: clipping, norm-sub, norm-mul and the simplex."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.compiled import Floats
from mechanisms.local.mechanism import Estimate, check_arrays
from mechanisms.parameter import ParameterError, check_integer

NeverWorse = Literal["in each cell", "over all cells", "not promised"]
"""Where the error is never above the unrefined estimate's error, for every random outcome."""


@dataclass(frozen=True, slots=True)
class Properties:
    """Properties that a refinement guarantees for its result, for every input.

    Parameters
    ----------
    refinement : str
        The method's name.
    biased : bool
        Whether its mean may differ from the truth.
    non_negative : bool
        Whether no count is negative.
    total : {"asked", "estimated"} or None
        Sum of the counts: the devices asked, the sum of the unrefined estimates, or None for no fixed sum.
    ordered : bool
        Whether the order of the cells by count is kept.
    never_worse : {"in each cell", "over all cells", "not promised"}
        Where the error (absolute, or the sum of its squares) is never above the unrefined estimate's.
    """

    refinement: str
    biased: bool = True
    non_negative: bool = True
    total: Literal["asked", "estimated"] | None = None
    ordered: bool = True
    never_worse: NeverWorse = "not promised"


@dataclass(frozen=True, eq=False)
class RefinedEstimate:
    """Devices in each cell, 1…V in order, after a refinement of an unbiased estimate.

    Parameters
    ----------
    count : (cells,) float64
        Finite; biased, if `properties` states so.
    std_error : (cells,) float64
        The standard deviation, NaN where it is not known. It does not include bias.
    lower, upper : (cells,) float64
        Ends of an interval with the coverage that `interval` implies; the count may lie outside it.
    interval : str
        The method of the interval, and the estimate it was made from.
    properties : Properties
        The properties that the refinement guarantees.
    participation : (cells,) float64, optional
        The known participation of each cell's devices, by which counts are divided to estimate all of them; by default
        one for all cells.

    Raises
    ------
    ParameterError
        If an array has another shape or dtype, a count or an end is NaN, or the ends are in the wrong order.
    """

    count: Floats
    std_error: Floats
    lower: Floats
    upper: Floats
    interval: str
    properties: Properties
    participation: Floats | None = None

    def __post_init__(self) -> None:
        """Check that the arrays belong together."""
        if self.properties.never_worse not in get_args(NeverWorse):
            raise ParameterError("never_worse", f"must be one of {get_args(NeverWorse)}", self.properties.never_worse)
        check_arrays(self, refined=True)

    def __len__(self) -> int:
        return len(self.count)

    def __repr__(self) -> str:
        """Name the method, the size and the sum."""
        return f"<RefinedEstimate by {self.properties.refinement}: {len(self)} cells, {self.count.sum():.1f} devices>"


def refined(estimate: Estimate, count: Floats, properties: Properties) -> RefinedEstimate:
    """Return refined counts with the unrefined interval; their standard error is not known."""
    unknown = np.full(len(estimate), np.nan)
    interval = f"{estimate.interval}, unrefined"
    return RefinedEstimate(count, unknown, estimate.lower, estimate.upper, interval, properties)


def clip(estimate: Estimate, *, asked: int) -> RefinedEstimate:
    """Set counts below 0 to 0 and counts above the number of devices asked to that number.

    **Never worse.** The truth Y is in [0, N]. A count x in this range is unchanged. A count below 0 becomes 0, and 0 −
    Y is nearer to 0 than x − Y, since x < 0 ≤ Y; the same holds above N. So |clip(x) − Y| ≤ |x − Y| in every cell, for
    every random outcome, and every error measure that grows with |error| (RMSE, mean absolute error, the largest error)
    never increases. The price is bias: an estimate that was right on average is now too high on average where it could
    fall below 0. The bias of a normally distributed estimate X ~ N(Y, s²) with N far above is s·φ(Y/s) − Y·Φ(−Y/s),
    at most 0.4 s, in an empty cell.

    **Interval.** It is the unrefined interval, which already lies within [0, N], so its coverage is unchanged.

    Parameters
    ----------
    estimate : Estimate
        Unbiased.
    asked : int
        Devices asked, N.

    Returns
    -------
    RefinedEstimate
        Of unknown standard error (at most the unrefined one, as clipping brings no two values further apart).
    """
    asked = check_integer("asked", asked, at_least=0)
    return refined(estimate, np.clip(estimate.count, 0.0, float(asked)), Properties("clip", never_worse="in each cell"))


Total = Literal["estimated", "asked"]


def total_of(count: Floats, total: Total, *, asked: int) -> float:
    """Return the sum that refined counts must have.

    Parameters
    ----------
    count : (cells,) float64
        The unrefined estimates.
    total : {"estimated", "asked"}
        "estimated": the sum of the estimates, within 0 and `asked`. "asked": every device asked, which is right
        only where every one of them is in some cell.
    asked : int
        Devices asked, at least 0.

    Raises
    ------
    ParameterError
        If `total` is neither, or `asked` is not such a number.
    """
    asked = check_integer("asked", asked, at_least=0)
    if total == "asked":
        return float(asked)
    if total != "estimated":
        raise ParameterError("total", 'must be "estimated" or "asked"', total)
    return min(max(float(count.sum()), 0.0), float(asked))


def project_onto_simplex(values: ArrayLike, total: float) -> Floats:
    """Return the point of {p ≥ 0, Σp = total} nearest to `values`.

    By the conditions of Karush, Kuhn and Tucker it is p = max(x − τ, 0) for the one τ that gives the required sum. With
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
        raise ParameterError("values", "must have one value per cell", x.shape)
    if not np.isfinite(x).all():
        raise ParameterError("values", "must be finite", float(x[~np.isfinite(x)][0]))
    if not 0.0 <= total < np.inf:
        raise ParameterError("total", "must be finite and at least 0", total)
    if total == 0.0:
        return np.zeros_like(x)
    # A common shift does not change the projection, and large values no longer absorb a small total by rounding.
    shifted = x - x.max()
    downwards = np.sort(shifted)[::-1]
    thresholds = (np.cumsum(downwards) - total) / np.arange(1, len(x) + 1)
    last = int(np.flatnonzero(downwards > thresholds)[-1])  # the first place is always among them
    return np.asarray(np.maximum(shifted - thresholds[last], 0.0))


def simplex(estimate: Estimate, *, asked: int, total: Total = "estimated") -> RefinedEstimate:
    """Project an estimate onto the non-negative counts that have the total.

    It is also the least squares estimate under these constraints, CLS of Wang, Lopuhaä-Zwakenberg, Li, Skoric and
    Li (Locally Differentially Private Frequency Estimation with Consistency, NDSS 2020); see `norm_sub` for when
    that paper's Norm-Sub is the same.

    **When it is never worse.** Projection onto a convex set brings a point nearer to every point of the set. With
    total = "asked" and every device asked in some cell, the truth is in the set. So the sum of squared errors over the
    cells is never above the unrefined estimate's sum, for every random outcome. With total = "estimated" the set
    depends on the random outcome. The error along (1, …, 1) is unchanged. Orthogonal to it, the set is the one for the
    truth's own sum, scaled about its centre. So the same holds where the sum of the estimates is at least the true sum.
    It need not hold where the sum is below: x = (−1, 1) for Y = (0, 10) becomes (0, 0).

    **Interval.** It is the unrefined interval, with unchanged coverage; the refined count may lie outside it.

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
    count = project_onto_simplex(estimate.count, total_of(estimate.count, total, asked=asked))
    never_worse: NeverWorse = "over all cells" if total == "asked" else "not promised"
    return refined(estimate, count, Properties("simplex", total=total, never_worse=never_worse))


def norm_sub(estimate: Estimate, *, asked: int, total: Total = "estimated") -> RefinedEstimate:
    """Set negative counts to 0, spread the surplus or deficit evenly over the positive ones, and repeat.

    This is Norm-Sub as in its authors' published code (Wang, Lopuhaä-Zwakenberg, Li, Skoric and Li: Locally
    Differentially Private Frequency Estimation with Consistency, NDSS 2020); where no count is positive, the total
    is spread over all cells.

    **When it is the simplex projection.** Let P be the sum of the positive counts.

    - P ≥ total: always. Each step subtracts an amount from every count that is still positive and sets those that fall
      below 0 to 0. So the result is max(x − τ, 0) with τ ≥ 0 and the required sum. That is the projection, since τ is
      unique. (A count that was not positive is 0 in both.)
    - P < total: one step suffices. It adds δ = (total − P)/(number of positive counts) to every positive count and sets
      the others to 0. The projection adds its own τ' to those others too, so the two are the same only if no
      other count exceeds −δ.

    With total = "estimated" the two are therefore the same: the sum of all counts is at most P, and so is its clipped
    value. (A sum below 0 gives zeros in both.) With total = "asked" they may differ.

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
        Of unknown standard error, with the unrefined interval; the count may lie outside it.
    """
    count = norm_sub_counts(estimate.count, total_of(estimate.count, total, asked=asked))
    return refined(estimate, count, Properties("norm_sub", total=total))


def norm_sub_counts(count: Floats, total: float) -> Floats:
    """Return the counts of `norm_sub`, (cells,), for a total of at least 0."""
    positive = count > 0
    if not positive.any():
        return np.full_like(count, total / len(count))
    clipped = np.where(positive, count, 0.0)
    missing = total - float(clipped.sum())
    if missing <= 0:
        return project_onto_simplex(count, total)
    return np.where(positive, clipped + missing / np.count_nonzero(positive), 0.0)


def norm_mul(estimate: Estimate, *, asked: int, total: Total = "estimated") -> RefinedEstimate:
    """Set negative counts to 0 and multiply the others by the one factor that gives them the total.

    Norm-Mul of Wang and others (NDSS 2020). It reduces busy cells by a share, whereas `norm_sub` subtracts the same
    amount from all; so its bias in a busy cell grows with the count. Where no count is positive, the total is spread
    over all cells.

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
        Of unknown standard error, with the unrefined interval; the count may lie outside it.
    """
    wanted = total_of(estimate.count, total, asked=asked)
    clipped = np.maximum(estimate.count, 0.0)
    largest = float(clipped.max())
    # Division by the largest first, so that the sum of very small counts is not rounded to 0.
    shares = clipped / largest if largest > 0 else np.ones_like(clipped)
    count = shares * (wanted / float(shares.sum()))
    return refined(estimate, count, Properties("norm_mul", total=total))
