"""Likelihood and Bayes success, exact or simulated, over several queries of a device that stays in one cell."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechanisms.inference.bayes_success import guess_success
from mechanisms.inference.likelihood import BATCH_FLOATS, batches, check_reports, law_of
from mechanisms.inference.posterior import posterior
from mechanisms.inference.report_law import INVALID, Logs, check_prior, check_rounds, expected_best_alike, read_answers
from mechanisms.local.longitudinal_unary import LongitudinalUnary
from mechanisms.parameter import ParameterError, check_integer
from mechanisms.privacy.memoised_bits import MemoisedBits


def repeated_log_likelihood(
    mechanism: Any,
    queries: Sequence[Sequence[Any]],
    rounds: Sequence[int] | None = None,
    *,
    memoised: bool = True,
) -> Logs:
    """Return log P(a device's reports of T queries | its truth, the same in all queries), up to a constant per row.

    Coins are fresh in every query, so the logarithms of the queries are added. The exception is `LongitudinalUnary`,
    which keeps its permanent bits. Given the permanent bits, its reported bits are independent, so only the number of
    ones among the T bits about a cell matters.

    Parameters
    ----------
    mechanism : LocalMechanism
    queries : sequence of sequences of Reports
        For each query the reports of its rounds, as `log_likelihood` takes them; row i is the same device in all.
    rounds : sequence of int, optional
        The rounds observed of every query; all, if None.
    memoised : bool
        Whether a mechanism with permanent bits kept them over these queries. False if it drew them anew each time.

    Returns
    -------
    (n, cells + 1) float64

    Raises
    ------
    NoLikelihoodError
        If the mechanism has no likelihood.
    ParameterError
        If there is no query, or the queries differ in the number of devices.
    """
    seen = check_rounds(rounds, mechanism.rounds)
    if len(queries) < 1:
        raise ParameterError("queries", "must hold the reports of at least one query", 0)
    asked = [check_reports(reports, len(seen)) for reports in queries]
    if len({len(reports[0]) for reports in asked}) > 1:
        raise ParameterError("queries", "must have the same devices each time", [len(r[0]) for r in asked])
    law = law_of(mechanism, seen)
    kept = keeps_bits(mechanism, memoised=memoised)
    logs = np.empty((len(asked[0][0]), mechanism.cells + 1))
    for rows in batches(len(logs), mechanism.cells):
        batch = [[report[rows] for report in reports] for reports in asked]
        if kept:
            logs[rows] = _memoised(mechanism, [reports[0] for reports in batch])
        else:
            logs[rows] = sum(law.log_likelihood(reports) for reports in batch)
    return logs


def repeated_guess_success(
    mechanism: Any,
    rounds: Sequence[int] | None,
    prior: ArrayLike,
    queries: int,
    *,
    linked: bool = True,
    memoised: bool = True,
) -> float | None:
    """Return the exact expected success of the best guess of a device's cell from T queries, or None.

    Exact for these mechanisms:

    - Sampling Privacy, with or without refresh, linked rounds or round two alone. With linked rounds a device in a
      real cell reveals it as soon as it is sampled once, with probability 1 − (1 − π_s)^T; the remaining evidence is
      in the zeros.
    - k-ary randomized response.
    - Bits and binary queries with fresh coins, and memoised bits.

    None for subset selection, Hadamard response, local hashing and Laplace shares, and where the exact sum would take
    more than a few seconds. `simulated_guess_success` estimates the success with a standard error.

    Parameters
    ----------
    mechanism : LocalMechanism
    rounds : sequence of int, optional
        The rounds observed of each query, linked; all, if None.
    prior : (cells + 1,) float64
    queries : int
        T, at least 1.
    linked : bool
        Whether reports of different queries are known to come from one device. If not, only one query's reports are
        attributed to it, and T does not matter.
    memoised : bool
        Whether a mechanism with permanent bits kept them over the queries.
    """
    times = check_integer("queries", queries, at_least=1)
    if times == 1 or not linked:
        return guess_success(mechanism, rounds, prior)
    q = check_prior(prior, mechanism.cells)
    law = law_of(mechanism, rounds)
    if keeps_bits(mechanism, memoised=memoised):
        yes, no = _kept_bits(mechanism).laws(times)
        possible = (no > 0.0) & (yes > 0.0)
        yes, no = yes[possible], no[possible]
        found = expected_best_alike(q, np.log(yes) - np.log(no), np.log(no))
    else:
        found = law.guess_success(q, times)
    return None if found is None else min(max(found, float(q.max())), 1.0)


def keeps_bits(mechanism: Any, *, memoised: bool) -> bool:
    """Return whether a device's reports of several queries depend on the same permanent bits."""
    return memoised and isinstance(mechanism, LongitudinalUnary)


def _kept_bits(mechanism: LongitudinalUnary) -> MemoisedBits:
    """Return the distribution of a permanent bit and of its flipped reports."""
    return MemoisedBits(mechanism.true_kept, mechanism.false_kept, mechanism.flip, mechanism.cells)


def _memoised(mechanism: LongitudinalUnary, reports: Sequence[Any]) -> NDArray[np.float64]:
    """Return the log-likelihood from the number of ones among the T bits about each cell.

    With R = (1 − f)/f, c ones of T have probability p₁·f^T·R^c + (1 − p₁)·f^T·R^(T−c), up to the binomial coefficient.
    """
    bits = [read_answers(report, cells=mechanism.cells, outputs=2) for report in reports]
    ones = np.sum([np.maximum(b, 0) for b in bits], axis=0)
    count, odds = np.arange(len(bits) + 1), np.log((1.0 - mechanism.flip) / mechanism.flip)
    kept_one, kept_zero = count * odds, (len(bits) - count) * odds
    laws = [
        np.logaddexp(np.log(kept) + kept_one, np.log1p(-kept) + kept_zero)
        for kept in (mechanism.true_kept, mechanism.false_kept)
    ]
    logs = np.zeros((len(ones), mechanism.cells + 1))
    logs[:, 1:] = (laws[0] - laws[1])[ones]
    logs[np.any([(b == INVALID).any(axis=1) for b in bits], axis=0)] = -np.inf
    return logs


@dataclass(frozen=True, slots=True)
class SimulatedSuccess:
    """A simulated success of the best guess and its standard error.

    Parameters
    ----------
    success : float
        The mean over simulated devices of the posterior probability of the best guess. It is unbiased, and its variance
        is smaller than that of the fraction of correct guesses.
    std_error : float
        Its standard error, from the sample.
    trials : int
        Number of simulated devices.
    """

    success: float
    std_error: float
    trials: int


def simulated_guess_success(
    mechanism: Any,
    rounds: Sequence[int] | None,
    prior: ArrayLike,
    *,
    trials: int,
    rng: np.random.Generator,
    queries: int = 1,
) -> SimulatedSuccess:
    """Estimate the success of the best guess by simulating devices that answer T queries from one cell each.

    Parameters
    ----------
    mechanism : LocalMechanism
        Any mechanism with a likelihood. Permanent bits, if it has them, are kept over the queries.
    rounds : sequence of int, optional
        The rounds observed of each query, linked; all, if None.
    prior : (cells + 1,) float64
    trials : int
        Number of simulated devices, at least 2.
    rng : numpy.random.Generator
    queries : int
        T.

    Raises
    ------
    NoLikelihoodError
        If the mechanism has no likelihood.
    """
    trials = check_integer("trials", trials, at_least=2)
    queries = check_integer("queries", queries, at_least=1)
    q = check_prior(prior, mechanism.cells)
    seen = check_rounds(rounds, mechanism.rounds)
    law_of(mechanism, seen)
    step = max(1, min(mechanism.batch // queries, BATCH_FLOATS // (mechanism.cells + 1)))
    sure = []
    for start in range(0, trials, step):
        n = min(step, trials - start)
        truth = rng.choice(len(q), size=n, p=q / q.sum()).astype(np.int32)
        memory = mechanism.enrol(n, rng=rng)
        asked = []
        for _ in range(queries):
            coins = mechanism.toss(memory, rng=rng)
            asked.append([mechanism.answer(r, truth, coins) for r in seen])
        sure.append(posterior(repeated_log_likelihood(mechanism, asked, seen), q).max(axis=1))
    found = np.concatenate(sure)
    return SimulatedSuccess(float(found.mean()), float(found.std(ddof=1)) / math.sqrt(trials), trials)
