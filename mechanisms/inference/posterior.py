"""Posterior of a device's cell from its reports and a prior, and the best guess."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechanisms.inference.likelihood import batches, check_reports, law_of
from mechanisms.inference.report_law import check_prior, check_rounds
from mechanisms.parameter import ParameterError

# Posteriors within this relative distance of the greatest are ties: they differ only by rounding.
TIED = 1e-12


def posterior(log_likelihood: ArrayLike, prior: ArrayLike) -> NDArray[np.float64]:
    """Return P(truth | reports), (n, truths) float64, by Bayes' theorem.

    Reports that are impossible for every truth of positive prior (forged, or a partial sum of shares) leave the prior
    unchanged.

    Parameters
    ----------
    log_likelihood : (n, truths) float64
        Up to a constant per row; −∞ for impossible reports.
    prior : (truths,) float64

    Raises
    ------
    ParameterError
        If the shapes do not fit, or a logarithm is NaN or +∞.
    """
    logs = np.asarray(log_likelihood, dtype=np.float64)
    if logs.ndim != 2 or logs.shape[1] < 1:
        raise ParameterError("log_likelihood", "must be (n, truths)", logs.shape)
    q = check_prior(prior, logs.shape[1] - 1)
    if np.isnan(logs).any() or np.isposinf(logs).any():
        raise ParameterError("log_likelihood", "must hold no NaN and no +∞", logs[~(logs < np.inf)][0])
    with np.errstate(divide="ignore"):
        weighted = logs + np.log(q)
    top = weighted.max(axis=1, keepdims=True)
    lost = np.isneginf(top)
    weights = np.exp(weighted - np.where(lost, 0.0, top))
    weights = np.where(lost, q, weights)
    found: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return found


def best_guess(posterior: ArrayLike, *, rng: np.random.Generator | None = None) -> NDArray[np.int32]:
    """Return the most probable truth of each row, (n,) int32.

    Ties are posteriors within 1e-12 of the greatest. Without `rng` the lowest tied truth is returned; with `rng` one of
    them is drawn uniformly. The expected success is the same; only the guesses of a single run differ.

    Parameters
    ----------
    posterior : (n, truths) float64
    rng : numpy.random.Generator, optional
    """
    rows = np.asarray(posterior, dtype=np.float64)
    tied = rows >= rows.max(axis=1, keepdims=True) * (1.0 - TIED)
    if rng is None:
        lowest: NDArray[np.int32] = tied.argmax(axis=1).astype(np.int32)
        return lowest
    ranks = np.cumsum(tied, axis=1)
    wanted = 1 + rng.integers(ranks[:, -1]) if len(rows) else np.empty(0, dtype=np.int64)
    drawn: NDArray[np.int32] = (ranks >= np.asarray(wanted)[:, np.newaxis]).argmax(axis=1).astype(np.int32)
    return drawn


def guess_cells(
    mechanism: Any,
    reports: Sequence[Any],
    prior: ArrayLike,
    rounds: Sequence[int] | None = None,
    *,
    rng: np.random.Generator | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the best guess of every device's cell and its posterior probability, computed in batches of rows.

    Parameters
    ----------
    mechanism, reports, rounds
        As `log_likelihood` takes them.
    prior : (cells + 1,) float64
    rng : numpy.random.Generator, optional
        Breaks ties at random; if None, the lowest tied cell is the guess.

    Returns
    -------
    guesses : (n,) int32
    sure : (n,) float64
        Their mean is the expected success given these reports.
    """
    law, q = law_of(mechanism, rounds), check_prior(prior, mechanism.cells)
    reports = check_reports(reports, len(check_rounds(rounds, mechanism.rounds)))
    guesses = np.empty(len(reports[0]), dtype=np.int32)
    sure = np.empty(len(guesses))
    for rows in batches(len(guesses), mechanism.cells):
        after = posterior(law.log_likelihood([report[rows] for report in reports]), q)
        guesses[rows] = best_guess(after, rng=rng)
        sure[rows] = after.max(axis=1)
    return guesses, sure
