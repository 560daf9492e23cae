"""Attack that guesses the routes of vehicles: their cells in all queries together, from how vehicles move."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanisms.inference.likelihood import batches, best_guess, log_likelihood, report_law
from mechanisms.inference.markov import Chain
from mechanisms.local import LongitudinalUnary
from simulator.arrays import Cells, FloatArray
from simulator.attacks.guesses import Guesses, Prior
from simulator.attacks.observation import Linked, Observation, follow
from simulator.attacks.reconstruction import RoundAttack

Keys = Sequence[Sequence[tuple[int, int]]]
"""By step, the queries and rounds whose reports are read."""


def chain_of(prior: Prior, queries: Sequence[int]) -> Chain | None:
    """Return the Markov chain by which vehicles move from query to query; None if nothing is known about movement."""
    return None if prior.moves is None else Chain(prior.of(queries[0]), [prior.moves[query] for query in queries[1:]])


def usual_path(chain: Chain, prior: Prior, queries: Sequence[int]) -> list[Guesses]:
    """Return the most probable path of a device about which nothing is observed, one guess for each query."""
    path = chain.likeliest(np.zeros((chain.steps, 1, len(chain.start))))
    success = float(np.exp(chain.log_probability(path)[0]))
    steps = zip(queries, path.astype(np.int32), strict=True)
    return [Guesses(query, "none", None, cell, prior.trusted(success, query)) for query, cell in steps]


@dataclass(frozen=True)
class RouteAttack:
    """Guess devices' cells in all queries from all reports that are linked to a device (`follow`), and from its moves.

    A hidden Markov model has the prior's moves as transitions, and the law of the mechanism's reports as emissions.
    Devices that are not followed are guessed query by query, as by `RoundAttack`; of their paths nothing is known but
    the prior. All devices are guessed query by query if nothing is known about movement: given a device's cell in a
    query, its other reports then add nothing.

    Parameters
    ----------
    whole
        Whether a device's most probable path is guessed, or its most probable cell in each query.
    """

    whole: bool = False

    def guess(self, observation: Observation, prior: Prior, *, rng: np.random.Generator) -> list[Guesses]:
        """Return guesses for every query; parameters and errors as of `RoundAttack.guess`.

        The theory is the expected success for devices that move by the prior, where it is known: in each query, or of a
        most probable path in all queries.
        """
        queries, mechanism = observation.queries, observation.mechanism
        followed, chain = follow(observation), chain_of(prior, queries)
        if self.whole and (chain is not None or not followed):
            guesses = [] if chain is None else usual_path(chain, prior, queries)
        else:
            guesses = RoundAttack().guess(observation, prior, rng=rng)
        if chain is None:
            return guesses
        for group in followed:
            if group.handles is None:  # the only vehicle that is not corrupted, whatever the handles of its reports
                guesses = []
            keys = [[key for key in group.rounds if key[0] == query] for query in queries]
            cells, sure = self._guess(mechanism, chain, group, keys, rng=prior.tie_rng(rng))
            for step, (query, theory) in enumerate(zip(queries, self._theory(mechanism, chain, keys), strict=True)):
                known = prior.trusted(theory, query)
                guesses.append(Guesses(query, group.handle_kind, group.handles, cells[step], known, sure[step]))
        return guesses

    def _guess(
        self, mechanism: Any, chain: Chain, group: Linked, keys: Keys, *, rng: np.random.Generator | None
    ) -> tuple[Cells, FloatArray]:
        """Return the guesses about the devices of a group and, of single cells, their probabilities, (T, n)."""
        shape, places = (chain.steps, len(group)), len(chain.start)
        cells, sure = np.empty(shape, dtype=np.int32), np.full(shape, math.nan)
        for rows in batches(len(group), chain.steps * places):
            logs = np.zeros((*cells[:, rows].shape, places))
            for step, read in enumerate(keys):
                if read:
                    reports = [group.reports[key][rows] for key in read]
                    logs[step] = log_likelihood(mechanism, reports, [round_ for _, round_ in read])
            if self.whole:
                cells[:, rows] = chain.likeliest(logs)
            else:
                after, _ = chain.smoothed(logs)
                cells[:, rows] = best_guess(after.reshape(-1, places), rng=rng).reshape(after.shape[:2])
                sure[:, rows] = after.max(axis=2)
        return cells, sure

    def _theory(self, mechanism: Any, chain: Chain, keys: Keys) -> FloatArray:
        """Return the expected success in each query, (T,): NaN unless all reports are read, and have few values.

        Memoised bits depend on more than the cell of their query: success is not known.
        """
        outcomes, found = report_law(mechanism).outcomes(), None
        complete = all(len(read) == mechanism.rounds for read in keys)
        if outcomes is not None and complete and not isinstance(mechanism, LongitudinalUnary):
            found = chain.success([outcomes.masses] * chain.steps)
        if found is None:
            return np.full(chain.steps, math.nan)
        return np.full(chain.steps, found[1].path) if self.whole else found[0].steps
