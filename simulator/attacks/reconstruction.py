"""Attacks that guess a device's cell from reports: of one round, linked rounds, shares, or several queries."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanisms.inference.bayes_success import guess_success, sampled_guess_success, sampled_posterior
from mechanisms.inference.likelihood import best_guess, guess_cells, log_likelihood, posterior, repeated_log_likelihood
from mechanisms.local import KRandomizedResponse, NoPrivacy, SamplingPrivacy
from mechanisms.parameter import ParameterError, check_integer
from simulator.aggregation.transcript import HandleKind
from simulator.arrays import Cells, FloatArray, IntArray
from simulator.attacks.observation import Linked, Observation, holds_enough, link, link_rounds_of, read_round

ONE_OUTPUT = (SamplingPrivacy, KRandomizedResponse, NoPrivacy)
"""Mechanisms whose report is one of V + 1 outputs, so that their counts are the unordered list of all reports."""
LARGEST = 2**32
"""Bound on the entries of a device's encoding: noise of that size has probability below 10⁻⁹."""
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Prior:
    """Prior probabilities of a device's cell, (cells + 1,) float64 with [0] outside, for each query.

    Parameters
    ----------
    by_query
        Probabilities by the query's number.
    even
        Whether the prior is uniform. Ties between guesses are then broken at random; otherwise the lowest of equally
        likely cells is guessed, which does not change the expected success.
    exact
        Whether the devices guessed are known to be distributed over the cells in exactly these shares. Reports that
        cannot be linked to a device then reveal nothing more about one.
    """

    by_query: Mapping[int, FloatArray]
    even: bool = False
    exact: bool = False

    @classmethod
    def from_counts(cls, counts: Mapping[int, IntArray], *, exact: bool = False) -> "Prior":
        """Return the prior given by the share of devices in each cell.

        Parameters
        ----------
        counts
            (cells + 1,) int64 by query, at least one device in each query.
        exact
            As in the class: whether the counts are those of the devices guessed.

        Raises
        ------
        ParameterError
            If a query has no device.
        """
        for query, places in counts.items():
            if places.sum() < 1:
                raise ParameterError("counts", f"must hold a device in query {query}", 0)
        return cls({query: places / places.sum() for query, places in counts.items()}, exact=exact)

    @classmethod
    def uniform(cls, cells: int, queries: tuple[int, ...]) -> "Prior":
        """Return the uniform prior over all cells and outside."""
        places = check_integer("cells", cells, at_least=1) + 1
        return cls(dict.fromkeys(queries, np.full(places, 1.0 / places)), even=True)

    def of(self, query: int) -> FloatArray:
        """Return the probabilities of one query."""
        return self.by_query[query]

    def tie_rng(self, rng: np.random.Generator) -> np.random.Generator | None:
        """Return the generator that breaks ties if the prior is uniform; otherwise None, for ties broken by order."""
        return rng if self.even else None

    def guess(self, query: int, n: int, *, rng: np.random.Generator) -> Cells:
        """Return the best guesses for n devices of which nothing was observed, (n,) int32."""
        return best_guess(np.tile(self.of(query), (n, 1)), rng=self.tie_rng(rng))

    def usual(self, query: int) -> int | None:
        """Return the cell that `guess` always returns; None if it is drawn."""
        return None if self.even else int(best_guess(self.of(query)[np.newaxis])[0])

    def success(self, query: int) -> float:
        """Return the probability that `guess` is right: the largest of the prior."""
        return float(self.of(query).max())

    def trusted(self, theory: float | None, query: int) -> float:
        """Return an expected success computed for this prior; NaN if devices are not distributed like the prior.

        Under a uniform prior they are not. The expected success is then known only if the observation reveals nothing,
        as every guess is then drawn.
        """
        if theory is None or (self.even and theory > self.success(query) * (1.0 + ROUNDING)):
            return math.nan
        return theory


@dataclass(frozen=True, eq=False)
class Guesses:
    """Guesses about devices of which the coalition received the same kinds of reports in one query.

    Parameters
    ----------
    query
        From 1.
    handle_kind, handles
        (n,) int64, the devices that the guesses are about; None: one guess for any device.
    cells
        (n,) int32, 0 (outside) … V; (1,) if it is one guess for any device.
    theory
        The expected success before the reports are seen; NaN if it is not known.
    probability
        As `cells`, float64: the posterior probability of each guess; None if the attack computes none.

    Raises
    ------
    ValueError
        If handles and cells do not have the same number of devices.
    """

    query: int
    handle_kind: HandleKind
    handles: IntArray | None
    cells: Cells
    theory: float = math.nan
    probability: FloatArray | None = None

    @classmethod
    def about(cls, group: Linked, query: int, cells: Cells, theory: float = math.nan) -> "Guesses":
        """Return guesses about the devices of a group of linked reports, (n,) in its order."""
        return cls(query, group.handle_kind, group.handles, cells, theory)

    def __post_init__(self) -> None:
        """Check that there is one guess for each handle."""
        if (self.handles is None) != (self.handle_kind == "none"):
            raise ValueError(f"handles are required unless handle_kind is 'none', received {self.handle_kind!r}")
        if len(self.cells) != (1 if self.handles is None else len(self.handles)):
            raise ValueError(f"there must be one guess a device, received {len(self.cells)}")


@dataclass(frozen=True)
class RoundAttack:
    """Guess every device's cell from the readable reports of some rounds of each query.

    The guess is the Bayes-optimal one from the device's reports, linked if they can be. From reports that cannot be
    linked to a device, one guess is made for any device: the most likely cell of the sender of one of them. If several
    rounds have such reports only the last round is used. Sampling Privacy answers round one independently of the truth:
    from round one alone the guess is that of the prior.

    Parameters
    ----------
    only_round
        The only round that is used, or the mechanism's last round if it has fewer; all rounds by default.
    partial
        Whether a device's shares are joined even if the coalition holds too few of them, and the result is treated as
        the report's encoding. With as many shares as are needed it is the report, and the guess is that of linked
        rounds. With fewer it is uniform, unlike any device's report; so it makes no truth more likely, and the
        guess is that of the prior. The servers' published sums are used too: minus the reports of all vehicles but
        one, they are the reports of that one. No guess is made for any device.
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
        found: list[Guesses] = []
        for query in observation.queries:
            groups = list(link_rounds_of(observation, query, rounds, partial=self.partial))
            found += [self._guess(observation, query, group, prior, rng=rng) for group in groups]
            if not groups and not self.partial:
                found += _guess_any_device(observation, query, rounds, prior, rng=rng)
        return found

    def _guess(
        self, observation: Observation, query: int, group: Linked, prior: Prior, *, rng: np.random.Generator
    ) -> Guesses:
        """Return the best guesses about devices of which the same rounds' reports are read, or sums of their shares.

        Where a sum cannot encode a report, the guess is that of the prior.
        """
        mechanism, q = observation.mechanism, prior.of(query)
        cells, rows, whole = np.empty(len(group), dtype=np.int32), np.arange(len(group)), True
        sure = np.empty(len(group))
        if self.partial:
            cells, rows = prior.guess(query, len(group), rng=rng), np.flatnonzero(_possible(group))
            sure[:] = prior.success(query)
            held = [entry for entry in observation.seen if entry.sharing is not None]
            whole = group.handles is None or not held or holds_enough(held)
        reports = [report[rows] for report in group.reports.values()]
        cells[rows], sure[rows] = guess_cells(mechanism, reports, q, group.rounds, rng=prior.tie_rng(rng))
        theory = prior.trusted(guess_success(mechanism, group.rounds, q), query) if whole else prior.success(query)
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


def _guess_any_device(
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
        after = (after / after.sum())[np.newaxis]
        cell = best_guess(after, rng=prior.tie_rng(rng))
        return [Guesses(query, "none", None, cell, math.nan, after.max(axis=1))]
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
    tally, _ = observation.own_tally(query, round_)
    counts = released.counts[round_ - 1] - tally
    outputs = np.flatnonzero(counts > 0)
    return np.eye(len(counts), dtype=np.int64)[outputs], counts[outputs]


@dataclass(frozen=True)
class LongitudinalAttack:
    """Guess every device's cell from all its reports of several queries, assuming that it stayed in one cell.

    Reports of different queries are linked to one device if they are stored under its own number, if the network links
    its pseudonyms to it, or if all vehicles but one are corrupted. Otherwise only the reports of the last query are
    used.

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
        read = {key: one for key in keys if (one := read_round(observation, *key)) is not None}
        followed = {key: one for key, one in read.items() if one.handle_kind == "device"}
        if followed:
            groups = list(link(followed))
        else:
            # The only vehicle that is not corrupted needs no handle.
            alone = {
                (query, round_): one.content
                for (query, round_), one in read.items()
                if observation.last_vehicle and observation.unknown_devices(query) == 1 and len(one.content) == 1
            }
            if not alone:
                return RoundAttack().guess(observation.of_query(self.last), prior, rng=rng)
            groups = [Linked("none", None, alone)]
        return [self._guess(observation.mechanism, group, prior, rng=rng) for group in groups]

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
    probability: FloatArray
    theory: float


def sampling_guesses(observation: Observation, prior: Prior) -> list[SamplingGuesses]:
    """Return the posterior probability that each device was sampled (outcome S), from round one alone.

    A report 0 results from S with π_s and from a blank with π_0: if π_0 = 0, it reveals that the device was sampled.

    Parameters
    ----------
    observation, prior
        What the coalition observed, and its prior.

    Returns
    -------
    list of SamplingGuesses
        Empty for mechanisms other than Sampling Privacy, whose devices make no such categorical draw.
    """
    mechanism = observation.mechanism
    if not isinstance(mechanism, SamplingPrivacy):
        return []
    found = []
    for query in observation.queries:
        q = prior.of(query)
        for group in link_rounds_of(observation, query, (1,)):
            probability = sampled_posterior(mechanism, [group.reports[1]], q, (1,))
            theory = sampled_guess_success(mechanism, (1,), q)
            found.append(SamplingGuesses(query, group.handle_kind, group.handles, probability, theory))
    return found
