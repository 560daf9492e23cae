"""Guesses from the reports of some rounds, device by device: what several attacks have in common."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mechanisms.inference import best_guess, guess_cells, guess_success, log_likelihood, posterior
from mechanisms.local import KRandomizedResponse, NoPrivacy, SamplingPrivacy
from simulator.attacks.evidence import Linked, link_rounds_of, own_tally, read_round
from simulator.attacks.guesses import Guesses
from simulator.attacks.observation import Observation
from simulator.attacks.prior import Prior

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
