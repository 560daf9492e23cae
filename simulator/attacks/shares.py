"""Shares: what k of m servers can do with their parts of a report."""

import numpy as np

from mechanisms.inference import guess_cells, guess_success
from simulator.attacks.evidence import Linked, link_rounds_of
from simulator.attacks.guesses import Guesses
from simulator.attacks.observation import Observation
from simulator.attacks.prior import Prior

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
