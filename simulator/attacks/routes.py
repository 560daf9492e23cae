"""Attack that guesses the routes of vehicles: their cells in all queries together, from how vehicles move."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanisms.inference.likelihood import batches, best_guess, log_likelihood, report_law
from mechanisms.inference.markov import Chain
from mechanisms.local import LongitudinalUnary
from simulator.arrays import Cells, FloatArray, IntArray
from simulator.attacks.guesses import Guesses, Prior
from simulator.attacks.observation import Linked, Observation, follow
from simulator.attacks.reconstruction import RoundAttack

Groups = Sequence[Sequence[Linked]]
"""By query, the devices that are followed, grouped by the reports that are read."""


def chain_of(prior: Prior, queries: Sequence[int]) -> Chain | None:
    """Return the Markov chain by which vehicles move from query to query; None if nothing is known about movement."""
    return None if prior.moves is None else Chain(prior.of(queries[0]), [prior.moves[query] for query in queries[1:]])


def usual_path(chain: Chain, prior: Prior, queries: Sequence[int]) -> list[Guesses]:
    """Return the most probable path of a device about which nothing is observed, one guess for each query."""
    path = chain.likeliest(np.zeros((chain.steps, 1, len(chain.start))))
    success = float(np.exp(chain.log_probability(path)[0]))
    steps = zip(queries, path.astype(np.int32), strict=True)
    return [Guesses(query, "none", None, cell, prior.trusted(success, query)) for query, cell in steps]


def _handles(group: Linked) -> IntArray:
    """Return the handles of a group, (n,); 0 of the only vehicle."""
    return np.zeros(1, dtype=np.int64) if group.handles is None else group.handles


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
        queries, chain = observation.queries, chain_of(prior, observation.queries)
        groups = [follow(observation, [query]) for query in queries]
        followed = [group for each in groups for group in each]
        if self.whole and (chain is not None or not followed):
            guesses = [] if chain is None else usual_path(chain, prior, queries)
        else:
            guesses = RoundAttack().guess(observation, prior, rng=rng)
        if chain is None or not followed:
            return guesses
        kind, devices = followed[0].handle_kind, np.unique(np.concatenate([*map(_handles, followed)]))
        if kind == "none":  # the only vehicle that is not corrupted, whatever the handles of its reports
            guesses = []
        cells, sure = self._guess(observation.mechanism, chain, groups, devices, rng=prior.tie_rng(rng))
        theory = self._theory(observation.mechanism, chain, groups, len(devices))
        for query, cell, success, probability in zip(queries, cells, theory, sure, strict=True):
            about = (query, kind, None if kind == "none" else devices)
            guesses.append(Guesses(*about, cell, prior.trusted(success, query), probability))
        return guesses

    def _guess(
        self, mechanism: Any, chain: Chain, groups: Groups, devices: IntArray, *, rng: np.random.Generator | None
    ) -> tuple[Cells, FloatArray]:
        """Return the guesses about all devices that are followed and, of single cells, their probabilities, (T, n)."""
        shape, places = (chain.steps, len(devices)), len(chain.start)
        cells, sure = np.empty(shape, dtype=np.int32), np.full(shape, math.nan)
        for rows in batches(len(devices), chain.steps * places):
            logs = np.zeros((*cells[:, rows].shape, places))
            for step, group in ((step, group) for step, each in enumerate(groups) for group in each):
                place = np.searchsorted(devices[rows], _handles(group))
                read = np.flatnonzero(np.isin(_handles(group), devices[rows]))
                reports = list(group.among(read).reports.values())
                logs[step, place[read]] = log_likelihood(mechanism, reports, [round_ for _, round_ in group.rounds])
            if self.whole:
                cells[:, rows] = chain.likeliest(logs)
            else:
                after, _ = chain.smoothed(logs)
                cells[:, rows] = best_guess(after.reshape(-1, places), rng=rng).reshape(after.shape[:2])
                sure[:, rows] = after.max(axis=2)
        return cells, sure

    def _theory(self, mechanism: Any, chain: Chain, groups: Groups, devices: int) -> FloatArray:
        """Return the expected success in each query, (T,): NaN unless all reports are read, and have few values.

        Memoised bits depend on more than the cell of their query: success is not known.
        """
        outcomes, found = report_law(mechanism).outcomes(), None
        read = [sum(len(group) for group in each if len(group.rounds) == mechanism.rounds) for each in groups]
        if outcomes is not None and min(read) == devices and not isinstance(mechanism, LongitudinalUnary):
            found = chain.success([outcomes.masses] * chain.steps)
        if found is None:
            return np.full(chain.steps, math.nan)
        return np.full(chain.steps, found[1].path) if self.whole else found[0].steps
