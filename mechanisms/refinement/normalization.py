"""Norm-sub and norm-mul: negative counts to 0, then the rest brought to a total by subtraction or by a factor."""

import numpy as np
from numpy.typing import NDArray

from mechanisms.local.estimate import Estimate
from mechanisms.refinement.refined_estimate import Properties, RefinedEstimate
from mechanisms.refinement.simplex import project_onto_simplex, refined_to_total
from mechanisms.refinement.total import Total, total_of


def norm_sub(estimate: Estimate, *, asked: int, total: Total = "estimated") -> RefinedEstimate:
    """Put negative counts to 0, spread what is too much or too little evenly over the positive ones, and repeat.

    Norm-Sub as its authors' published code does it (Wang, Lopuhaä-Zwakenberg, Li, Skoric and Li: Locally
    Differentially Private Frequency Estimation with Consistency, NDSS 2020); where no count is positive, the total
    is spread over all cells.

    **When it is the simplex projection.** Let P be the sum of the positive counts.

    - P ≥ total: always. Each step takes an amount off every count that is still positive and puts what fell below
      0 to 0, so the end is max(x − τ, 0) with τ ≥ 0 and the right sum; and that is the projection, since τ is
      unique. (A count that was not positive is 0 in both.)
    - P < total: one step ends it, with δ = (total − P)/(number of positive counts) on top of every positive count,
      and 0 for the others. The projection adds its own τ' to those others too, so the two are the same only if no
      other count exceeds −δ.

    With total = "estimated" they are therefore one method: the sum of all counts is at most P, and so is its clipped
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
        Of unknown standard error, beside the unrefined interval; the count may lie outside it.
    """
    count = norm_sub_counts(estimate.count, total_of(estimate.count, total, asked=asked))
    return refined_to_total(estimate, count, _properties("norm_sub", total))


def norm_sub_counts(count: NDArray[np.float64], total: float) -> NDArray[np.float64]:
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
    """Put negative counts to 0 and multiply the others by the one factor that gives them the total.

    Norm-Mul of Wang and others (NDSS 2020). It shrinks busy cells by a share, where `norm_sub` takes the same
    amount from all: its bias in a busy cell grows with the cell. Where no count is positive, the total is spread
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
        Of unknown standard error, beside the unrefined interval; the count may lie outside it.
    """
    wanted = total_of(estimate.count, total, asked=asked)
    clipped = np.maximum(estimate.count, 0.0)
    largest = float(clipped.max())
    # By the largest first, so that the sum of the smallest of numbers is no 0.
    shares = clipped / largest if largest > 0 else np.ones_like(clipped)
    count: NDArray[np.float64] = shares * (wanted / float(shares.sum()))
    return refined_to_total(estimate, count, _properties("norm_mul", total))


def _properties(refinement: str, total: Total) -> Properties:
    return Properties(
        refinement=refinement,
        biased=True,
        non_negative=True,
        total=total,
        ordered=True,
        never_worse="not promised",
    )
