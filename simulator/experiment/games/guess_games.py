"""Guess games: the attacks that guess where a target is, played on a campaign's transcripts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanisms.local import NoMemory
from simulator.attacks import (
    Guesses,
    Observation,
    Prior,
    Sampled,
    link_rounds,
    longitudinal,
    round_one,
    round_two,
    shares,
    who_was_sampled,
)
from simulator.experiment.games.campaign_record import CampaignRecord, QueryRecord
from simulator.experiment.games.filed_queries import FiledQueries
from simulator.experiment.games.guess_score import Guessed, score_guesses, score_hits

Columns = dict[str, Any]

BY_ROUNDS: Mapping[str, Callable[..., list[Guesses]]] = {
    "round_one": round_one,
    "round_two": round_two,
    "link_rounds": link_rounds,
    "shares": shares,
}


@dataclass(frozen=True, eq=False)
class Board:
    """What a guess game is played on.

    Attributes
    ----------
    filed
        What each party stored of the targets.
    even
        Whether the prior is uniform; else it is the share of the targets in each place.
    """

    filed: FiledQueries
    even: bool

    @property
    def record(self) -> CampaignRecord:
        """The campaign."""
        return self.filed.record

    def prior(self) -> Prior:
        """Return the prior of every query that has targets."""
        return make_prior(self.record, even=self.even)

    def observe(self, coalition: Sequence[str], queries: Sequence[int]) -> Observation:
        """Return what a coalition saw of some queries."""
        return Observation.of(self.filed.transcripts(queries), coalition, mechanism=self.record.mechanism)


def make_prior(record: CampaignRecord, *, even: bool) -> Prior:
    """Return the prior of every query of a campaign that has targets: even, or the targets' own share in each place.

    The targets' own, not that of all vehicles asked they are a sample of: it is more than an outsider could know, and
    then success without the observation is exactly the largest share, and only coins are left to chance, though the
    same vehicles are asked again and again.
    """
    if even:
        return Prior.uniform(record.mechanism.cells, tuple(query.number for query in record.queries))
    places = record.mechanism.cells + 1
    counts = {query.number: np.bincount(query.truth, minlength=places) for query in record.queries if len(query.truth)}
    return Prior.from_counts(counts)


def play_rounds(kind: str, board: Board, coalition: Sequence[str], *, rng: np.random.Generator) -> Iterator[Columns]:
    """Play an attack on single queries; yield the columns of its rows.

    Every target is guessed: one of which the coalition can read nothing, by the prior.

    Raises
    ------
    NoLikelihoodError
        If nobody has said how likely the mechanism's reports are.
    """
    prior = board.prior()
    parts, sampled = [], []
    for query in board.record.queries:
        if not len(query.truth):
            continue
        observation = board.observe(coalition, [query.number])
        guesses = BY_ROUNDS[kind](observation, prior, rng=rng)
        parts.append(fill_guesses(query, guesses, prior, board.filed, rng=rng))
        if kind == "round_one":
            sampled += who_was_sampled(observation, prior)
    score = score_guesses(parts, rng=rng, kept=keeps(board.record))
    if score is not None:
        yield score.columns
    if sampled:
        yield _score_sampled(board, sampled)


def keeps(record: CampaignRecord) -> bool:
    """Return whether devices keep something from query to query, so that their reports are not independent."""
    return not isinstance(record.mechanism.enrol(1, rng=np.random.default_rng(0)), NoMemory)


def fill_guesses(
    query: QueryRecord, found: Sequence[Guesses], prior: Prior, filed: FiledQueries, *, rng: np.random.Generator
) -> Guessed:
    """Return one guess a target: the attack's, and the prior's where it has none."""
    n = len(query.truth)
    cells = prior.guess(query.number, n, rng=rng)
    theory: float | None = 0.0
    left = n
    for guesses in found:
        if guesses.handles is None:
            cells[:] = guesses.cells[0]
            theory, left = None, 0
            break
        asked = filed.is_target(query.number, guesses.handle_kind, guesses.handles)
        cells[filed.places(query.number, guesses.handle_kind, guesses.handles[asked])] = guesses.cells[asked]
        many = int(np.count_nonzero(asked))
        theory = None if theory is None or guesses.theory is None else theory + guesses.theory * many
        left -= many
    expected = prior.success(query.number)
    if theory is not None:
        theory = (theory + left * expected) / n
    return Guessed(cells, query.truth, expected, theory, prior.usual(query.number))


def play_longitudinal(
    board: Board, coalition: Sequence[str], asked: Sequence[int], *, rng: np.random.Generator
) -> Iterator[Columns]:
    """Play the longitudinal attack over the first T queries, for each T that was asked.

    Its targets are the devices recorded in all T, in one place throughout; the prior is their own share in each place.

    Raises
    ------
    NoLikelihoodError
        If nobody has said how likely the mechanism's reports are.
    """
    for times in asked:
        queries = list(board.record.queries[:times])
        if len(queries) < times:
            continue
        last = _stayed(queries)
        if not len(last.truth):
            continue
        occupancy = np.bincount(last.truth, minlength=board.record.mechanism.cells + 1)
        if board.even:
            prior = Prior.uniform(board.record.mechanism.cells, (last.number,))
        else:
            prior = Prior.from_counts({last.number: occupancy})
        numbers = [query.number for query in queries]
        guesses = longitudinal(board.observe(coalition, numbers), prior, queries=numbers, rng=rng)
        whole = fill_guesses(queries[-1], guesses, prior, board.filed, rng=rng)
        places = np.flatnonzero(np.isin(queries[-1].recorded.devices, last.recorded.devices))
        theory = _theory_of(guesses, board, last, prior)
        part = Guessed(whole.guesses[places], last.truth, whole.prior, theory, whole.usual)
        score = score_guesses([part], rng=rng)
        if score is not None:
            yield {**score.columns, "metric": "queries", "value": float(times), "unit": "queries"}


def _stayed(queries: Sequence[QueryRecord]) -> QueryRecord:
    """Return the last query with only those targets that are in all queries, and in one place."""
    last = queries[-1]
    stayed = np.ones(len(last.truth), dtype=np.bool_)
    for query in queries[:-1]:
        where = dict(zip(query.recorded.devices.tolist(), query.truth.tolist(), strict=True))
        before = [where.get(device, -1) for device in last.recorded.devices.tolist()]
        stayed &= np.array(before, dtype=np.int64) == last.truth
    return last.among(np.flatnonzero(stayed))


def _theory_of(guesses: Sequence[Guesses], board: Board, last: QueryRecord, prior: Prior) -> float | None:
    """Return the expected success over those that stayed, whatever was read of each."""
    expected, left, devices = 0.0, len(last.truth), last.recorded.devices
    every = next(query for query in board.record.queries if query.number == last.number)
    for found in guesses:
        if found.handles is None:
            return None
        asked = board.filed.is_target(last.number, found.handle_kind, found.handles)
        places = board.filed.places(last.number, found.handle_kind, found.handles[asked])
        among = int(np.isin(every.recorded.devices[places], devices).sum())
        if among and found.theory is None:
            return None
        expected += among * (found.theory or 0.0)
        left -= among
    return (expected + left * prior.success(last.number)) / len(last.truth)


def _score_sampled(board: Board, sampled: Sequence[Sampled]) -> Columns:
    """Return the row of who was sampled: the greatest posterior, and how often the likelier of the two is right.

    Whether a device was sampled shows in its own reports if it is in a cell and no blank is thrown again: S is then 0
    followed by the cell, and a blank twice the same. Others' dice only they know; they are not scored.
    """
    mechanism: Any = board.record.mechanism
    queries = {query.number: query for query in board.record.queries}
    greatest = max(float(found.probability.max(initial=0.0)) for found in sampled)
    measured = {"metric": "sampled_posterior", "value": greatest, "unit": "probability"}
    hits = trials = 0
    for found in sampled:
        query = queries[found.query]
        places = board.filed.places(found.query, found.handle_kind, found.handles)
        first, second = (np.asarray(reports[places]) for reports in query.recorded.reports)
        inside = query.truth[places] > 0
        thrown = (first == 0) & (second == query.truth[places])
        hits += int(np.count_nonzero((found.guesses == thrown) & inside))
        trials += int(np.count_nonzero(inside))
    if mechanism.refresh or not trials:
        return measured
    share = max(mechanism.sampling, 1.0 - mechanism.sampling)
    return {**score_hits(hits, trials, prior=share, theory=sampled[0].theory).columns, **measured}
