"""Likelihood of a device's reports given its cell, its posterior, the best guess, and how often that is right."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.compiled import Floats, Integers, Values
from mechanisms.inference.laws import LAWS
from mechanisms.inference.report_law import Logs, NoLikelihoodError, ReportLaw, check_prior, check_rounds, read_values
from mechanisms.local.sampling_privacy import SamplingPrivacy
from mechanisms.parameter import ParameterError, check_integer

# Floats in a batch of rows: 32 MB, and a few times that during the computation.
BATCH_FLOATS = 2**22


def encodings_of(mechanism: Any, reports: Any) -> Integers:
    """Return the encodings of reports, (n, *tally_shape) int64; what already has their form is taken for them."""
    whole = isinstance(reports, np.ndarray) and reports.dtype in {np.dtype(np.int64), np.dtype(np.uint64)}
    if not (whole and reports.shape[1:] == tuple(mechanism.tally_shape)):
        reports = mechanism.encode(reports)
    return np.asarray(reports.astype(np.int64))


class PluginLaw(ReportLaw):
    """The law of a mechanism that has its own method `log_likelihood(reports, rounds)`.

    The method is always given encodings, whatever form the reports have in a deployment: shares join to nothing else.

    Parameters
    ----------
    mechanism : LocalMechanism
    rounds : tuple of int
    """

    def __init__(self, mechanism: Any, rounds: Sequence[int]) -> None:
        self.mechanism, self.rounds = mechanism, tuple(rounds)

    def log_likelihood(self, reports: Sequence[Any]) -> Logs:
        """Return the mechanism's own log-likelihood; raise `ParameterError` for a wrong shape, NaN or +∞."""
        vectors = [encodings_of(self.mechanism, report) for report in reports]
        logs = np.asarray(self.mechanism.log_likelihood(vectors, self.rounds), dtype=np.float64)
        shape = (len(reports[0]), self.mechanism.cells + 1)
        if logs.shape != shape or np.isnan(logs).any() or np.isposinf(logs).any():
            rule = f"must return {shape} logarithms, none of them NaN or +∞"
            raise ParameterError(f"{_class_name(self.mechanism)}.log_likelihood", rule, logs.shape)
        return logs


def _class_name(mechanism: Any) -> str:
    """Return the name of a mechanism's class; if a user's class is wrapped, the name of the user's class."""
    return str(getattr(mechanism, "class_name", type(mechanism).__name__))


def law_of_class(mechanism: Any, rounds: Sequence[int]) -> ReportLaw | None:
    """Return the law of a mechanism's reports of some rounds by its class, or a base of it; None if none is known."""
    found = (LAWS[kind] for kind in type(mechanism).__mro__ if kind in LAWS)
    return next((law(mechanism, rounds) for law in found), None)


def report_law(mechanism: Any, rounds: Sequence[int] | None = None) -> ReportLaw:
    """Return the law of a mechanism's reports of some rounds, all by default.

    A mechanism's own method `log_likelihood(reports, rounds)` has precedence, whatever its base class.

    Raises
    ------
    NoLikelihoodError
        If no law is known for the mechanism and it has no such method.
    ParameterError
        If a round does not exist.
    """
    seen = check_rounds(rounds, mechanism.rounds)
    if callable(getattr(mechanism, "log_likelihood", None)):
        return PluginLaw(mechanism, seen)
    law = law_of_class(mechanism, seen)
    if law is None:
        needed = "give it a method log_likelihood(reports, rounds) that returns (n, cells + 1) logs."
        raise NoLikelihoodError(_class_name(mechanism), needed)
    return law


def log_likelihood(mechanism: Any, reports: Sequence[Any], rounds: Sequence[int] | None = None) -> Logs:
    """Return log P(a device's reports of these rounds | its truth), up to a constant per row.

    One round alone has its marginal distribution; several rounds are linked and have their joint distribution. A truth
    for which the reports are impossible has −∞. All truths have −∞ if no device sends such reports (forged reports,
    or a partial sum of shares).

    Parameters
    ----------
    mechanism : LocalMechanism
    reports : sequence of Reports, or of (n, *tally_shape) int64 or uint64
        One entry per round of `rounds`; row i is the same device in all. Plain reports, or the encodings that are the
        sum of the shares.
    rounds : sequence of int, optional
        Which rounds these are, from 1; all by default.

    Returns
    -------
    (n, cells + 1) float64
        The whole array is in memory: for many devices and cells use `guess_cells`, or slices of the reports.

    Raises
    ------
    NoLikelihoodError
        If the mechanism has no likelihood.
    ParameterError
        If rounds and reports do not fit.
    """
    return repeated_log_likelihood(mechanism, [reports], rounds)


def check_reports(reports: Sequence[Any], rounds: int) -> tuple[Any, ...]:
    """Return the reports as a tuple, one entry per round; raise `ParameterError` if the devices differ in number."""
    if not isinstance(reports, list | tuple) or len(reports) != rounds:
        got = len(reports) if isinstance(reports, list | tuple) else type(reports).__name__
        raise ParameterError("reports", f"must be a list with one entry per round, {rounds}", got)
    if len({len(report) for report in reports}) > 1:
        raise ParameterError("reports", "must have the same devices in every round", [len(r) for r in reports])
    return tuple(reports)


def batches(rows: int, cells: int) -> Iterator[slice]:
    """Return slices of the rows, such that cells + 1 floats per row fit into `BATCH_FLOATS`."""
    step = max(1, BATCH_FLOATS // (cells + 1))
    return (slice(start, start + step) for start in range(0, rows, step))


def repeated_log_likelihood(
    mechanism: Any, queries: Sequence[Sequence[Any]], rounds: Sequence[int] | None = None
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
    law = report_law(mechanism, seen)
    logs = np.empty((len(asked[0][0]), mechanism.cells + 1))
    for rows in batches(len(logs), mechanism.cells):
        logs[rows] = law.repeated([[report[rows] for report in reports] for reports in asked])
    return logs


# Posteriors within this relative distance of the greatest are ties: they differ only by rounding.
TIED = 1e-12


def posterior(log_likelihood: ArrayLike, prior: ArrayLike) -> Floats:
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
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def best_guess(
    posterior: ArrayLike, *, rng: np.random.Generator | None = None, among: ArrayLike | None = None
) -> Values:
    """Return the most probable truth of each row, (n,) int32.

    Ties are posteriors within 1e-12 of the greatest. Without `rng` the lowest tied truth is returned; with `rng` one of
    them is drawn uniformly. The expected success is the same; only the guesses of a single run differ.

    Parameters
    ----------
    posterior : (n, truths) float64
    rng : numpy.random.Generator, optional
    among : (truths,) float64, optional
        Only the tied truths with the greatest of these numbers are guessed.
    """
    rows = np.asarray(posterior, dtype=np.float64)
    tied = rows >= rows.max(axis=1, keepdims=True) * (1.0 - TIED)
    if among is not None:
        first = np.where(tied, np.asarray(among), -1.0)
        tied &= first >= first.max(axis=1, keepdims=True) * (1.0 - TIED)
    if rng is None:
        return np.asarray(tied.argmax(axis=1).astype(np.int32))
    ranks = np.cumsum(tied, axis=1)
    wanted = 1 + rng.integers(ranks[:, -1]) if len(rows) else np.empty(0, dtype=np.int64)
    return np.asarray((ranks >= np.asarray(wanted)[:, np.newaxis]).argmax(axis=1).astype(np.int32))


def guess_cells(
    mechanism: Any,
    reports: Sequence[Any],
    prior: ArrayLike,
    rounds: Sequence[int] | None = None,
    *,
    rng: np.random.Generator | None = None,
    among: ArrayLike | None = None,
) -> tuple[Values, Floats]:
    """Return the best guess of every device's cell and its posterior probability, computed in batches of rows.

    Parameters
    ----------
    mechanism, reports, rounds
        As `log_likelihood` takes them.
    prior : (cells + 1,) float64
    rng : numpy.random.Generator, optional
        Breaks ties at random; if None, the lowest tied cell is the guess.
    among : (cells + 1,) float64, optional
        As `best_guess` takes it.

    Returns
    -------
    guesses : (n,) int32
    sure : (n,) float64
        Their mean is the expected success given these reports.
    """
    law, q = report_law(mechanism, rounds), check_prior(prior, mechanism.cells)
    reports = check_reports(reports, len(check_rounds(rounds, mechanism.rounds)))
    guesses = np.empty(len(reports[0]), dtype=np.int32)
    sure = np.empty(len(guesses))
    for rows in batches(len(guesses), mechanism.cells):
        after = posterior(law.log_likelihood([report[rows] for report in reports]), q)
        guesses[rows] = best_guess(after, rng=rng, among=among)
        sure[rows] = after.max(axis=1)
    return guesses, sure


def guess_success(mechanism: Any, rounds: Sequence[int] | None, prior: ArrayLike, queries: int = 1) -> float | None:
    """Return the exact expected success of the best guess of the cell from the reports of one or more queries, or None.

    The device stays in one cell. For one query the computation takes O(V log V). The method depends on the mechanism:

    - Reports that are one value (Sampling Privacy, with or without refresh, each round alone and both linked; k-ary
      randomized response; no privacy): a closed form from the distribution of the values. With linked rounds a device
      in a real cell reveals it as soon as it is sampled once, with probability 1 − (1 − π_s)^T; the remaining evidence
      is in the zeros.
    - Bits and binary queries, with fresh coins or memoised bits: the expected maximum of independent evidence.
    - Subset selection, one query: by the first member of the subset in descending order of the prior.
    - Hadamard response, one query: by halving the set of outputs.
    - Laplace shares, one query: the expected maximum of independent evidence.
    - Local hashing with more than one cell: None. The buckets of three symbols are not independent, and their joint
      distribution has no short form.

    None also for several queries where one query is stated above, and where the exact sum would take more than a few
    seconds. The order of `rounds` does not matter.

    Parameters
    ----------
    mechanism : LocalMechanism
    rounds : sequence of int, optional
        The rounds observed of each query, linked; all, if None.
    prior : (cells + 1,) float64
        q_0 (outside) … q_V.
    queries : int
        T, at least 1.

    Returns
    -------
    float or None
        At least max q.

    Raises
    ------
    NoLikelihoodError
        If the mechanism has no likelihood.
    ParameterError
        If a round does not exist, there is no query, or the prior is not a distribution.
    """
    times = check_integer("queries", queries, at_least=1)
    q = check_prior(prior, mechanism.cells)
    success = report_law(mechanism, rounds).guess_success(q, times)
    # The exact value is at least the success of the guess without reports; rounding may put it below.
    return None if success is None else min(max(success, float(q.max())), 1.0)


def sampled_posterior(mechanism: SamplingPrivacy, reports: Any) -> Floats:
    """Return P(the device was sampled | its report of round one).

    "Sampled" means that the device's categorical draw is S. Round one depends on the draw and not on the cell: report
    0 has probability π_s by sampling and π_0 as a blank. Reports that no device sends leave the prior probability π_s.

    Parameters
    ----------
    mechanism : SamplingPrivacy
    reports : Reports
        As one entry of what `log_likelihood` takes.

    Returns
    -------
    (n,) float64
    """
    blanks, sampling = mechanism.blanks, mechanism.sampling
    values = read_values(reports, outputs=len(blanks))
    zero = sampling / (sampling + blanks[0])
    unsent = (values < 0) | ((values > 0) & (blanks[values] == 0.0))
    return np.where(values == 0, zero, np.where(unsent, sampling, 0.0))


def sampled_guess_success(mechanism: SamplingPrivacy) -> float:
    """Return the success of the best guess of whether a device was sampled, from its report of round one.

    It is the sum, over the reports, of the larger of the joint probabilities with "sampled" and with "not sampled".
    """
    return min(max(mechanism.sampling, float(mechanism.blanks[0])) + math.fsum(mechanism.blanks[1:]), 1.0)
