"""Attacks that guess a device's cell from reports: of one round, of linked rounds, or from shares."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanisms.inference import (
    best_guess,
    guess_cells,
    guess_success,
    log_likelihood,
    posterior,
    sampled_guess_success,
    sampled_posterior,
)
from mechanisms.local import KRandomizedResponse, NoPrivacy, SamplingPrivacy
from simulator.aggregation.transcript import HandleKind, IntArray
from simulator.attacks.observation import Observation
from simulator.attacks.prior import Guesses, Prior
from simulator.attacks.readable_reports import Linked, link_rounds_of, own_tally, read_round

ONE_OUTPUT = (SamplingPrivacy, KRandomizedResponse, NoPrivacy)
"""Mechanisms whose report is one of V + 1 outputs, so that their counts are the unordered list of all reports."""


def guess_by_rounds(
    observation: Observation, prior: Prior, rounds: Sequence[int], *, rng: np.random.Generator
) -> list[Guesses]:
    """Guess every device's cell from the readable reports of these rounds of each query.

    The guess is the Bayes-optimal one from the device's reports, linked if they can be. From reports that cannot be
    linked to a device, one guess is made for any device: the most likely cell of the sender of one of them. If several
    rounds have such reports only the last round is used.

    Parameters
    ----------
    observation, prior
        What the coalition observed, and its prior.
    rounds
        Numbers of the rounds, from 1.
    rng
        Breaks ties under a uniform prior.

    Returns
    -------
    list of Guesses
        None about devices of which no report is read.

    Raises
    ------
    NoLikelihoodError
        If no likelihood is known for the mechanism's reports.
    """
    found: list[Guesses] = []
    for query in observation.queries:
        groups = list(link_rounds_of(observation, query, rounds))
        for group in groups:
            found.append(guess_linked(observation.mechanism, query, group, prior, rng=rng))  # noqa: PERF401 - as below
        if not groups:
            found += _guess_anybody(observation, query, rounds, prior, rng=rng)
    return found


def guess_linked(mechanism: Any, query: int, group: Linked, prior: Prior, *, rng: np.random.Generator) -> Guesses:
    """Return the best guesses about devices of which the same rounds' reports are read."""
    q = prior.of(query)
    cells, _ = guess_cells(mechanism, group.reports, q, group.rounds, rng=prior.tie_rng(rng))
    return Guesses(
        query, group.handle_kind, group.handles, cells, prior.trusted(guess_success(mechanism, group.rounds, q), q)
    )


def _guess_anybody(
    observation: Observation, query: int, rounds: Sequence[int], prior: Prior, *, rng: np.random.Generator
) -> list[Guesses]:
    """Return one guess for any device, from the last of these rounds with readable reports without handles.

    A device's report is equally likely to be any of the n that are read, or one that is not read. So its posterior is
    the mean of the posteriors from these n reports and, for each device asked whose report is not read, of the prior.
    """
    if prior.exact:
        return []
    q = prior.of(query)
    for round_ in sorted(rounds, reverse=True):
        reports, times = _unlinked(observation, query, round_)
        if not len(times):
            continue
        unread = max((observation.unknown_devices(query) or 0) - int(times.sum()), 0)
        after = unread * q
        step = max(1, 2**20 // len(q))
        for start in range(0, len(times), step):
            logs = log_likelihood(observation.mechanism, [reports[start : start + step]], (round_,))
            after = after + times[start : start + step] @ posterior(logs, q)
        return [
            Guesses(query, "none", None, best_guess((after / after.sum())[np.newaxis], rng=prior.tie_rng(rng)), None)
        ]
    return []


def _unlinked(observation: Observation, query: int, round_: int) -> tuple[Any, Any]:
    """Return n reports without handles and the number of devices that sent each, (n,) int64; n = 0 if none are read.

    In a list each report was sent by one device. Published counts are such a list too if a report is one of a few
    outputs.
    """
    read = read_round(observation, query, round_)
    if read is not None:
        return (read.content, np.ones(len(read.content), dtype=np.int64)) if read.handles is None else ((), np.empty(0))
    released = observation.released_of(query)
    if released is None or released.counts is None or not isinstance(observation.mechanism, ONE_OUTPUT):
        return (), np.empty(0)
    tally, _ = own_tally(observation, query, round_)
    counts = released.counts[round_ - 1] - tally
    outputs = np.flatnonzero(counts > 0)
    return np.eye(len(counts), dtype=np.int64)[outputs], counts[outputs]


def round_one(observation: Observation, prior: Prior, *, rng: np.random.Generator) -> list[Guesses]:
    """Guess every device's cell from its report of round one.

    Sampling Privacy answers round one independently of the truth: the guess is that of the prior.

    Parameters
    ----------
    observation, prior
        What the coalition observed, and its prior.
    rng
        Breaks ties under a uniform prior.

    Raises
    ------
    NoLikelihoodError
        If no likelihood is known for the mechanism's reports.
    """
    return guess_by_rounds(observation, prior, (1,), rng=rng)


@dataclass(frozen=True, eq=False)
class SamplingGuesses:
    """Posterior probabilities that devices were sampled in one query.

    Parameters
    ----------
    query
        From 1.
    handle_kind, handles
        (n,) int64; None for the only device that is not corrupted, if no handle identifies it.
    probability
        (n,) float64, of the outcome S in the device's categorical draw.
    theory
        Expected success of guessing the more likely of sampled and not sampled.
    """

    query: int
    handle_kind: HandleKind
    handles: IntArray | None
    probability: npt.NDArray[np.float64]
    theory: float

    @property
    def guesses(self) -> npt.NDArray[np.bool_]:
        """(n,) bool: whether it is more likely that the device was sampled than not."""
        guessed: npt.NDArray[np.bool_] = self.probability > 0.5
        return guessed


def who_was_sampled(observation: Observation, prior: Prior) -> list[SamplingGuesses]:
    """Return the posterior probability that each device was sampled (outcome S), from round one alone.

    A report 0 results from S with π_s and from a blank with π_0: if π_0 = 0, it reveals that the device was sampled
    (papers.md, item 5).

    Parameters
    ----------
    observation, prior
        What the coalition observed, and its prior.

    Returns
    -------
    list of SamplingGuesses
        Empty for mechanisms other than Sampling Privacy, whose devices make no such categorical draw.
    """
    mechanism: Any = observation.mechanism
    if not isinstance(mechanism, SamplingPrivacy):
        return []
    found = []
    for query in observation.queries:
        q = prior.of(query)
        for group in link_rounds_of(observation, query, (1,)):
            probability = sampled_posterior(mechanism, group.reports, q, (1,))
            theory = sampled_guess_success(mechanism, (1,), q)
            found.append(SamplingGuesses(query, group.handle_kind, group.handles, probability, theory))
    return found


def round_two(observation: Observation, prior: Prior, *, rng: np.random.Generator) -> list[Guesses]:
    """Guess every device's cell from its report of round two, or of round one if the mechanism has one round.

    Parameters
    ----------
    observation, prior
        What the coalition observed, and its prior.
    rng
        Breaks ties under a uniform prior.

    Raises
    ------
    NoLikelihoodError
        If no likelihood is known for the mechanism's reports.
    """
    return guess_by_rounds(observation, prior, (min(2, observation.mechanism.rounds),), rng=rng)


def link_rounds(observation: Observation, prior: Prior, *, rng: np.random.Generator) -> list[Guesses]:
    """Guess every device's cell from all its reports of a query that the coalition can read.

    Parameters
    ----------
    observation, prior
        What the coalition observed, and its prior.
    rng
        Breaks ties under a uniform prior.

    Raises
    ------
    NoLikelihoodError
        If no likelihood is known for the mechanism's reports.
    """
    return guess_by_rounds(observation, prior, range(1, observation.mechanism.rounds + 1), rng=rng)


LARGEST = 2**32
"""Bound on the entries of a device's encoding: noise of that size has probability below 10⁻⁹."""


def shares(observation: Observation, prior: Prior, *, rng: np.random.Generator) -> list[Guesses]:
    """Guess every device's cell from the sum of its shares that the coalition holds, treated as the report's encoding.

    With all m servers' shares the sum is the report, and the guess is that of linked rounds. With fewer the sum is
    uniform, unlike any device's report; so it makes no truth more likely, and the guess is that of the prior. The
    servers' published sums are used too: minus the reports of all vehicles but one, they are the reports of that one.

    Parameters
    ----------
    observation, prior
        What the coalition observed, and its prior.
    rng
        Breaks ties under a uniform prior.

    Raises
    ------
    NoLikelihoodError
        If no likelihood is known for the mechanism's reports.
    """
    rounds = range(1, observation.mechanism.rounds + 1)
    return [
        _guess(observation, query, group, prior, rng=rng)
        for query in observation.queries
        for group in link_rounds_of(observation, query, rounds, partial=True)
    ]


def _guess(observation: Observation, query: int, group: Linked, prior: Prior, *, rng: np.random.Generator) -> Guesses:
    mechanism, q = observation.mechanism, prior.of(query)
    cells = prior.guess(query, len(group), rng=rng)
    possible = np.flatnonzero(_possible(group))
    if len(possible):
        told = [report[possible] for report in group.reports]
        cells[possible], _ = guess_cells(mechanism, told, q, group.rounds, rng=prior.tie_rng(rng))
    held = {entry.party: entry.parts for entry in observation.seen if entry.content_kind == "shares"}
    whole = group.handles is None or len(held) == next(iter(held.values()), 0)
    theory = prior.trusted(guess_success(mechanism, group.rounds, q), q) if whole else prior.success(query)
    return Guesses(query, group.handle_kind, group.handles, cells, theory)


def _possible(group: Linked) -> np.ndarray:
    """Return which sums could be the encoding of a device's report, (n,) bool."""
    fine = np.ones(len(group), dtype=np.bool_)
    for report in group.reports:
        if isinstance(report, np.ndarray) and report.ndim > 1:
            entries = report.reshape(len(report), -1)
            fine &= ((entries > -LARGEST) & (entries < LARGEST)).all(axis=1)
    return fine
