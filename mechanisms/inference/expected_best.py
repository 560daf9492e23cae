"""The expected maximum of independent weights: how often the best of many independent pieces of evidence is right."""

import numpy as np
from numpy.typing import NDArray

# Levels of all cells together beyond which sorting them takes too long or too much memory.
LARGEST_LEVELS = 4_000_000


def expected_best(
    outside: float,
    prior: NDArray[np.float64],
    cell: NDArray[np.int64],
    log_ratio: NDArray[np.float64],
    log_share: NDArray[np.float64],
) -> float:
    """Return E[max(q_0, max_v q_v·R_v)], the R_v independent.

    Where evidence about different cells is independent, and tells nothing of a device outside, an observation x has
    P(x | v) = P(x | 0)·R_v(x): R_v is the likelihood ratio of what it says about cell v. So the best guess is right
    with Σ_x max_t q_t·P(x | t) = E_0[max(q_0, max_v q_v·R_v)], plus what only one truth can cause. The maximum is
    distributed as the product of the cells' own distribution functions. Sorted from the greatest q_v·R_v down, every
    level adds its value times the probability that it is the greatest, and nothing is subtracted: O(L log L) for L
    levels in all, to the last digits.

    Parameters
    ----------
    outside : float
        q_0.
    prior : (cells,) float64
        q_1…q_V.
    cell : (levels,) int64
        Which cell a level is of, from 0, ascending; every cell has at least one.
    log_ratio : (levels,) float64
        ln R, ascending within a cell; −∞ for R = 0.
    log_share : (levels,) float64
        ln P_0(R_v = R | R_v ≤ R), from `log_shares`.

    Returns
    -------
    float
    """
    with np.errstate(divide="ignore"):
        weight = np.log(prior)[cell] + log_ratio
        least = float(np.log(outside)) if outside > 0 else -np.inf
    starts = np.searchsorted(cell, np.arange(len(prior)))
    floor = max(least, float(weight[starts].max(initial=-np.inf)))
    order = np.flatnonzero(weight > floor)
    order = order[np.argsort(-weight[order], kind="stable")]
    with np.errstate(divide="ignore"):
        left = np.log1p(-np.exp(log_share[order]))
    ahead = np.concatenate([[0.0], np.cumsum(left)])
    best = float(np.exp(weight[order] + log_share[order] + ahead[:-1]).sum())
    return best + float(np.exp(floor + ahead[-1]))


def log_shares(log_mass: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ln(mass of a level / mass of it and all below), (levels,), for one cell's levels in ascending order."""
    shares: NDArray[np.float64] = np.minimum(log_mass - np.logaddexp.accumulate(log_mass), 0.0)
    return shares


def expected_best_alike(
    prior: NDArray[np.float64], log_ratio: NDArray[np.float64], log_mass: NDArray[np.float64]
) -> float | None:
    """Return E[max(q_0, max_v q_v·R_v)] where the R_v have one law; None where there are too many levels.

    Parameters
    ----------
    prior : (cells + 1,) float64
        q_0…q_V.
    log_ratio, log_mass : (levels,) float64
        ln R and ln P_0(R), in any order, of masses above 0.
    """
    cells, levels = len(prior) - 1, len(log_ratio)
    if cells * levels > LARGEST_LEVELS:
        return None
    order = np.argsort(log_ratio, kind="stable")
    return expected_best(
        float(prior[0]),
        prior[1:],
        np.repeat(np.arange(cells), levels),
        np.tile(log_ratio[order], cells),
        np.tile(log_shares(log_mass[order]), cells),
    )
