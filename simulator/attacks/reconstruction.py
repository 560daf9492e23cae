"""Attacks that guess a device's cell from reports: of one round, linked rounds, shares, or several queries."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanisms.inference.bayes_success import guess_success, sampled_guess_success, sampled_posterior
from mechanisms.inference.likelihood import best_guess, guess_cells, posterior, repeated_log_likelihood
from simulator.attacks.guesses import Guesses, Prior
from simulator.attacks.observation import Linked, Observation, holds_enough, link, link_rounds_of, read_round
from simulator.attacks.unlinked import guess_devices

LARGEST = 2**32
"""Bound on the entries of a device's encoding: noise of that size has probability below 10⁻⁹."""


@dataclass(frozen=True)
class RoundAttack:
    """Guess every device's cell from the readable reports of some rounds of each query.

    The guess uses the device's reports that are linked to it, and lists and published sums of these rounds
    (`guess_devices`). Sampling Privacy answers round one independently of the truth: from round one alone the guess is
    that of the prior.

    Parameters
    ----------
    only_round
        The only round that is used, or the mechanism's last round if it has fewer; all rounds by default.
    partial
        Whether a device's shares are joined even if the coalition holds too few of them, and the result is treated as
        the report's encoding. With as many shares as are needed it is the report, and the guess is that of linked
        rounds. With fewer it is uniform, unlike any device's report; so it makes no truth more likely, and the
        guess is that of a coalition without shares.
    """

    only_round: int | None = None
    partial: bool = False

    def guess(self, observation: Observation, prior: Prior, *, rng: np.random.Generator) -> list[Guesses]:
        """Return the guesses about the devices of which a report is read, and none about other devices.

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
        last = observation.mechanism.rounds
        rounds = range(1, last + 1) if self.only_round is None else (min(self.only_round, last),)
        guesses: list[Guesses] = []
        for query in observation.queries:
            groups = list(link_rounds_of(observation, query, rounds, partial=self.partial))
            held = [entry for entry in observation.of_query(query).seen if entry.sharing is not None]
            if self.partial and held and not holds_enough(held) and any(group.handles is not None for group in groups):
                anyone = guess_devices(observation, query, rounds, [], prior, rng=rng)
                guesses += [self._guess_partial(observation, query, group, anyone, prior, rng=rng) for group in groups]
                guesses += anyone
            else:
                guesses += guess_devices(observation, query, rounds, groups, prior, rng=rng)
        return guesses

    def _guess_partial(
        self,
        observation: Observation,
        query: int,
        group: Linked,
        anyone: Sequence[Guesses],
        prior: Prior,
        *,
        rng: np.random.Generator,
    ) -> Guesses:
        """Return the best guesses from sums of too few shares; if a sum encodes no report, that about any device."""
        cells, theory = prior.guess(query, len(group), rng=rng), prior.success(query)
        sure = np.full(len(group), theory)
        for guess in anyone:
            cells[:], theory = guess.cells[0], guess.theory
            sure[:] = math.nan if guess.probability is None else guess.probability[0]
        rows = np.flatnonzero(_possible(group))
        reports = [report[rows] for report in group.reports.values()]
        q, ties = prior.of(query), prior.tie_rng(rng)
        cells[rows], sure[rows] = guess_cells(observation.mechanism, reports, q, group.rounds, rng=ties)
        return Guesses(query, group.handle_kind, group.handles, cells, theory, sure)


ROUND_ATTACKS: Mapping[str, RoundAttack] = {
    "round_one": RoundAttack(1),
    "round_two": RoundAttack(2),
    "link_rounds": RoundAttack(),
    "shares": RoundAttack(partial=True),
}
"""The attacks on single queries, by kind."""


def _possible(group: Linked) -> np.ndarray:
    """Return which sums could be the encoding of a device's report, (n,) bool."""
    fine = np.ones(len(group), dtype=np.bool_)
    for report in group.reports.values():
        if isinstance(report, np.ndarray) and report.ndim > 1:
            entries = report.reshape(len(report), -1)
            fine &= ((entries > -LARGEST) & (entries < LARGEST)).all(axis=1)
    return fine


@dataclass(frozen=True)
class LongitudinalAttack:
    """Guess every device's cell from all its reports of several queries, assuming that it stayed in one cell.

    Reports of different queries are linked to one device if they are stored under its own number, if the network links
    its pseudonyms to it, or if there is no other vehicle that is not corrupted. Otherwise, and where the linked reports
    do not depend on the truth, only what is seen of the last query is used.

    Parameters
    ----------
    queries
        Numbers of the queries.
    last
        The query for which cells are guessed; the prior is for this query.
    """

    queries: Sequence[int]
    last: int

    def guess(self, observation: Observation, prior: Prior, *, rng: np.random.Generator) -> list[Guesses]:
        """Return the guesses for the query `last`; parameters and errors as of `RoundAttack.guess`."""
        rounds = range(1, observation.mechanism.rounds + 1)
        keys = [(query, round_) for query in sorted(self.queries) for round_ in rounds]
        read = {key: reports for key in keys if (reports := read_round(observation, *key)) is not None}
        followed = {key: reports for key, reports in read.items() if reports.handle_kind == "device"}
        if followed:
            groups = list(link(followed))
        else:
            # The only vehicle that is not corrupted needs no handle.
            alone = {
                (query, round_): reports.content
                for (query, round_), reports in read.items()
                if observation.last_vehicle and observation.unknown_devices(query) == 1 and len(reports.content) == 1
            }
            groups = [Linked("none", None, alone)] if alone else []
        guesses = [self._guess(observation.mechanism, group, prior, rng=rng) for group in groups]
        if not guesses or all(guess.theory <= prior.success(self.last) for guess in guesses):
            return RoundAttack().guess(observation.of_query(self.last), prior, rng=rng)
        return guesses

    def _guess(self, mechanism: Any, group: Linked, prior: Prior, *, rng: np.random.Generator) -> Guesses:
        """Return the best guesses about devices of which the same rounds of the same queries were received.

        The expected success is known if the same rounds were received in every query.
        """
        rounds_of: dict[int, tuple[int, ...]] = {}
        for query, round_ in group.rounds:
            rounds_of[query] = (*rounds_of.get(query, ()), round_)
        alike: dict[tuple[int, ...], list[int]] = {}
        for query, rounds in rounds_of.items():
            alike.setdefault(rounds, []).append(query)
        logs: Any = 0.0
        for rounds, queries in alike.items():
            reports = [[group.reports[query, round_] for round_ in rounds] for query in queries]
            logs = logs + repeated_log_likelihood(mechanism, reports, rounds)
        q, theory = prior.of(self.last), math.nan
        if len(alike) == 1:
            theory = prior.trusted(guess_success(mechanism, rounds, q, len(queries)), self.last)
        after = posterior(logs, q)
        cells = best_guess(after, rng=prior.tie_rng(rng))
        return Guesses(self.last, group.handle_kind, group.handles, cells, theory, after.max(axis=1))


def guess_sampled(observation: Observation) -> list[Guesses]:
    """Guess of each device whether it was sampled (outcome S of Sampling Privacy), from round one alone.

    A report 0 results from S with π_s and from a blank with π_0: if π_0 = 0, it reveals that the device was sampled.

    Parameters
    ----------
    observation
        What the coalition observed, of Sampling Privacy.

    Returns
    -------
    list of Guesses
        Their "cells" are 1 for devices that were rather sampled than not, and 0 for others; `probability` is that of
        S, and `theory` the expected success.
    """
    mechanism: Any = observation.mechanism
    guesses = []
    for query in observation.queries:
        for group in link_rounds_of(observation, query, (1,)):
            sampled = sampled_posterior(mechanism, group.reports[1])
            cells, theory = (sampled > 0.5).astype(np.int32), sampled_guess_success(mechanism)
            guesses.append(Guesses(query, group.handle_kind, group.handles, cells, theory, sampled))
    return guesses
