"""Guesses from the reports of some rounds, device by device: what several attacks have in common."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mechanisms.inference import best_guess, guess_cells, guess_success, log_likelihood, posterior
from simulator.attacks.evidence import Linked, link_rounds_of, read_round
from simulator.attacks.guesses import Guesses
from simulator.attacks.observation import Observation
from simulator.attacks.prior import Prior


def guess_by_rounds(
    observation: Observation, prior: Prior, rounds: Sequence[int], *, rng: np.random.Generator
) -> list[Guesses]:
    """Guess every device's cell from all that is read of these rounds of each query.

    The guess is the Bayes-optimal one of the devices' reports, linked where they can be. Reports that nothing ties to
    a device tell only what all devices together said: then one guess does for any device, the likeliest cell of whoever
    sent one report of the list.

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
    """Return one guess for any device, from the last of these rounds of which a list without handles is there.

    A device's report is any of the n on the list alike, so its posterior is the mean of theirs.
    """
    for round_ in sorted(rounds, reverse=True):
        read = read_round(observation, query, round_)
        if read is not None and read.handles is None and len(read.content):
            after = np.zeros(observation.cells + 1)
            step = max(1, 2**20 // len(after))
            for start in range(0, len(read.content), step):
                logs = log_likelihood(observation.mechanism, [read.content[start : start + step]], (round_,))
                after += posterior(logs, prior.of(query)).sum(axis=0)
            cells = best_guess((after / after.sum())[np.newaxis], rng=prior.tie_rng(rng))
            return [Guesses(query, "none", None, cells, None)]
    return []
