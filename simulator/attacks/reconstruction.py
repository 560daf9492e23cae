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
"""Mechanisms whose report is one of V + 1 outputs, so that their counts are all their reports, in no order."""


def guess_by_rounds(
    observation: Observation, prior: Prior, rounds: Sequence[int], *, rng: np.random.Generator
) -> list[Guesses]:
    """Guess every device's cell from all that is read of these rounds of each query.

    The guess is the Bayes-optimal one of the devices' reports, linked where they can be. From reports that nothing ties
    to a device, one guess is made for any device: the most likely cell of the sender of one of them. With several
    rounds of such reports only the last is used.

    Parameters
    ----------
    observation, prior
        What is seen, and what was likely before.
    rounds
        Which rounds, from 1.
    rng
        Breaks ties where all places are alike.

    Returns
    -------
    list of Guesses
        Nothing about devices of which nothing is read.

    Raises
    ------
    NoLikelihoodError
        If nobody has said how likely the mechanism's reports are.
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
    """Return the best guesses about devices of which the same rounds are read."""
    q = prior.of(query)
    cells, _ = guess_cells(mechanism, group.reports, q, group.rounds, rng=prior.tie_rng(rng))
    return Guesses(
        query, group.handle_kind, group.handles, cells, prior.trusted(guess_success(mechanism, group.rounds, q), q)
    )


def _guess_anybody(
    observation: Observation, query: int, rounds: Sequence[int], prior: Prior, *, rng: np.random.Generator
) -> list[Guesses]:
    """Return one guess for any device, from the last of these rounds of which reports without handles are read.

    A device's report is any of the n read alike, or none of them: its posterior is the mean of theirs, and of the prior
    for each of the devices asked of which none was read.
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
    """Return reports without handles, n of them, and how many devices sent each, (n,) int64; none where none are read.

    A list holds each once. The published counts are such a list too, where a report is one of a few outputs.
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

    Sampling Privacy answers round one without looking at the truth: the guess is that of the prior.

    Parameters
    ----------
    observation, prior
        What is seen, and what was likely before.
    rng
        Breaks ties where all places are alike.

    Raises
    ------
    NoLikelihoodError
        If nobody has said how likely the mechanism's reports are.
    """
    return guess_by_rounds(observation, prior, (1,), rng=rng)


@dataclass(frozen=True, eq=False)
class SamplingGuesses:
    """Who is held to be sampled in one query.

    Parameters
    ----------
    query
        From 1.
    handle_kind, handles
        (n,) int64; None of the one device that is not corrupted, where nothing names it.
    probability
        (n,) float64, that the die said S.
    theory
        How often the likelier of the two is right.
    """

    query: int
    handle_kind: HandleKind
    handles: IntArray | None
    probability: npt.NDArray[np.float64]
    theory: float

    @property
    def guesses(self) -> npt.NDArray[np.bool_]:
        """(n,) bool: whether sampled is the likelier."""
        guessed: npt.NDArray[np.bool_] = self.probability > 0.5
        return guessed


def who_was_sampled(observation: Observation, prior: Prior) -> list[SamplingGuesses]:
    """Return, from round one alone, how likely each device's die said S.

    0 comes of S with π_s and of a blank with π_0: with π_0 = 0 it shouts "sampled" (papers.md, item 5).

    Parameters
    ----------
    observation, prior
        What is seen, and what was likely before.

    Returns
    -------
    list of Sampled
        Empty for mechanisms other than Sampling Privacy, whose devices throw no one die.
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


ROUND = 2


def round_two(observation: Observation, prior: Prior, *, rng: np.random.Generator) -> list[Guesses]:
    """Guess every device's cell from its report of round two; of one round, from that.

    Parameters
    ----------
    observation, prior
        What is seen, and what was likely before.
    rng
        Breaks ties where all places are alike.

    Raises
    ------
    NoLikelihoodError
        If nobody has said how likely the mechanism's reports are.
    """
    return guess_by_rounds(observation, prior, (min(ROUND, observation.mechanism.rounds),), rng=rng)


def link_rounds(observation: Observation, prior: Prior, *, rng: np.random.Generator) -> list[Guesses]:
    """Guess every device's cell from all its reports of a query that the coalition can read.

    Parameters
    ----------
    observation, prior
        What is seen, and what was likely before.
    rng
        Breaks ties where all places are alike.

    Raises
    ------
    NoLikelihoodError
        If nobody has said how likely the mechanism's reports are.
    """
    return guess_by_rounds(observation, prior, range(1, observation.mechanism.rounds + 1), rng=rng)


LARGEST = 2**32
"""No device writes such a number: noise of that size comes with probability below 10⁻⁹."""


def shares(observation: Observation, prior: Prior, *, rng: np.random.Generator) -> list[Guesses]:
    """Add up the shares there are, take the sum for the report's encoding, and guess from it.

    From all m servers' shares it is the report, and the guess that of linked rounds. From fewer it is uniform, which
    no device's report is; so no truth is made likelier by it, and the guess is that of the prior. The servers'
    published sums are used too: less the reports of all vehicles but one, they are that one's.

    Parameters
    ----------
    observation, prior
        What is seen, and what was likely before.
    rng
        Breaks ties where all places are alike.

    Raises
    ------
    NoLikelihoodError
        If nobody has said how likely the mechanism's reports are.
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
    """Return which devices' sums could have been written by one, (n,) bool."""
    fine = np.ones(len(group), dtype=np.bool_)
    for report in group.reports:
        if isinstance(report, np.ndarray) and report.ndim > 1:
            entries = report.reshape(len(report), -1)
            fine &= ((entries > -LARGEST) & (entries < LARGEST)).all(axis=1)
    return fine
