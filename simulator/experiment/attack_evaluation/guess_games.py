"""Attacks that guess a target's cell, evaluated on a campaign's transcripts."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanisms.local import NoMemory
from simulator.aggregation.storage import counted_in
from simulator.aggregation.transcript import HandleKind
from simulator.attacks import (
    Guesses,
    Observation,
    OwnReports,
    Prior,
    SamplingGuesses,
    link_rounds,
    longitudinal,
    round_one,
    round_two,
    shares,
    who_was_sampled,
)
from simulator.experiment.attack_evaluation.campaign_record import CampaignRecord, QueryRecord
from simulator.experiment.attack_evaluation.guess_score import Guessed, score_guesses, score_hits
from simulator.experiment.attack_evaluation.stored_transcripts import FiledQueries, places_of

Columns = dict[str, Any]
VEHICLES = "vehicles:"

BY_ROUNDS: Mapping[str, Callable[..., list[Guesses]]] = {
    "round_one": round_one,
    "round_two": round_two,
    "link_rounds": link_rounds,
    "shares": shares,
}


@dataclass(frozen=True)
class Member:
    """A party of a coalition, and the queries during which it is one.

    Attributes
    ----------
    party
        "server:1", …, "mixer", "network" or "vehicles:N".
    from_query, to_query
        The first and the last query of a campaign of which the coalition has what the party received.
    """

    party: str
    from_query: int = 1
    to_query: float = math.inf

    def at(self, query: int) -> bool:
        """Return whether the party is a member during a query, given by its number in its campaign."""
        return self.from_query <= query <= self.to_query

    def __str__(self) -> str:
        if self.from_query == 1 and self.to_query == math.inf:
            return self.party
        last = f" to {self.to_query}" if self.to_query < math.inf else ""
        return f"{self.party} (from query {self.from_query}{last})"


@dataclass(frozen=True, eq=False)
class AttackContext:
    """Input of one evaluation of an attack that guesses: queries, targets, prior and coalition.

    Attributes
    ----------
    filed
        What each party stored of the recorded devices.
    record
        The same queries with the targets only, without the queries during which the coalition has no member.
    even
        Whether the prior is uniform.
    coalition
        Members of the coalition.
    corrupted
        (n,) int64: the numbers of its corrupted vehicles. None of them is a target.
    shares
        By query, (cells + 1,) int64: number of targets by cell, over all choices of corrupted vehicles together. None:
        the targets of this context are counted.
    last_vehicle
        Whether all vehicles but one are corrupted.
    """

    filed: FiledQueries
    record: CampaignRecord
    even: bool
    coalition: tuple[Member, ...] = ()
    corrupted: npt.NDArray[np.int64] | None = None
    shares: Mapping[int, npt.NDArray[np.int64]] | None = None
    last_vehicle: bool = False

    def prior(self) -> Prior:
        """Return the prior of every query that has targets: uniform, or the share of targets in each cell.

        The shares are those of the targets, not those of all vehicles asked, of which the targets are a sample. This is
        more than an adversary could know. But the success without the observation is then exactly the largest share,
        and coins are the only randomness, although the same vehicles are asked repeatedly. If most vehicles are
        corrupted a context has few targets; the shares are then those of the targets of all contexts.
        """
        cells = self.record.mechanism.cells
        queries = [query for query in self.record.queries if len(query.truth)]
        if self.even:
            return Prior.uniform(cells, tuple(query.number for query in queries))
        if self.shares is not None:
            return Prior.from_counts({query.number: self.shares[query.number] for query in queries})
        counts = {query.number: np.bincount(query.truth, minlength=cells + 1) for query in queries}
        return Prior.from_counts(counts, exact=True)

    def observe(self, queries: Sequence[int]) -> Observation:
        """Return the coalition's observation of some queries."""
        return Observation.pooled([self._observe(self.filed.query(query)) for query in queries])

    def observe_altered(self, query: QueryRecord) -> Observation:
        """Return the coalition's observation of a query with altered reports."""
        return self._observe(query, altered=True)

    def places(self, query: int, kind: HandleKind, handles: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the position of each handle's device among a query's targets, (n,) int64; −1 for other devices."""
        devices = self.filed.devices(query, kind, handles)
        return places_of(devices, next(q for q in self.record.queries if q.number == query).recorded.devices)

    def _observe(self, query: QueryRecord, *, altered: bool = False) -> Observation:
        campaign = self.filed.campaign_of(query.number)
        _, number = self.filed.origin(query.number)
        members = [member.party for member in self.coalition if member.at(number)]
        own = self._own(query, campaign) if any(member.startswith(VEHICLES) for member in members) else None
        return Observation.of(
            self.filed.file(query) if altered else self.filed.transcripts(query.number),
            # A coalition that spans campaigns may have parties that one of the campaigns does not have.
            [member for member in members if member.startswith(VEHICLES) or member in campaign.parties],
            mechanism=campaign.mechanism,
            own=() if own is None else (own,),
            asked={query.number: int(query.asked[0])},
            keys=[member.party for member in self.coalition],
            last_vehicle=self.last_vehicle,
        )

    def _own(self, query: QueryRecord, campaign: CampaignRecord) -> OwnReports | None:
        """Return the knowledge of the corrupted vehicles about a query; None if it asked none of them."""
        if self.corrupted is None:
            return None
        places = np.flatnonzero(np.isin(query.recorded.devices, self.corrupted))
        if not len(places):
            return None
        own = query.recorded.among(places)
        return OwnReports(
            query.number,
            own.devices,
            own.pseudonyms,
            query.truth[places],
            tuple(own.reports),
            counted_in(own, paired=bool(getattr(campaign.deployment, "paired", False))),
            {party: np.isfinite(times) for party, times in own.arrived_s.items()},
        )


def play_rounds(kind: str, boards: Sequence[AttackContext], *, rng: np.random.Generator) -> Iterator[Columns]:
    """Evaluate an attack on single queries; yield the columns of its rows.

    Every target is guessed; if the coalition can read none of its reports, by the prior. If campaigns are attacked
    together, reports of all queries at the same moment are used.

    Parameters
    ----------
    kind
        A key of `BY_ROUNDS`.
    boards
        Attack contexts, one for each choice of corrupted vehicles.
    rng
        Breaks ties, and pairs devices for the ε lower bound.

    Raises
    ------
    NoLikelihoodError
        If no likelihood is known for the mechanism's reports.
    """
    parts: list[Guessed] = []
    sampled: list[tuple[AttackContext, SamplingGuesses]] = []
    for board in boards:
        prior = board.prior()
        for query in board.record.queries:
            if not len(query.truth):
                continue
            numbers = board.filed.simultaneous(query.number) if len(board.filed.campaigns) > 1 else [query.number]
            observation = board.observe(numbers)
            if len(numbers) > 1:
                guesses = longitudinal(observation, prior, queries=numbers, last=query.number, rng=rng)
            else:
                guesses = BY_ROUNDS[kind](observation, prior, rng=rng)
            parts.append(fill_guesses(query, guesses, prior, board, rng=rng))
            if kind == "round_one":
                sampled += [(board, found) for found in who_was_sampled(observation, prior)]
    score = score_guesses(parts, rng=rng, kept=keeps(boards[0].record))
    if score is not None:
        yield score.columns
    if sampled:
        yield _score_sampled(sampled)


def keeps(record: CampaignRecord) -> bool:
    """Return whether devices keep randomness from query to query, so that their reports are not independent."""
    return not isinstance(record.mechanism.enrol(1, rng=np.random.default_rng(0)), NoMemory)


def fill_guesses(
    query: QueryRecord, found: Sequence[Guesses], prior: Prior, board: AttackContext, *, rng: np.random.Generator
) -> Guessed:
    """Return one guess for each target: that of the attack, or of the prior if the attack has none."""
    n = len(query.truth)
    cells = prior.guess(query.number, n, rng=rng)
    theory: float | None = 0.0
    left = n
    for guesses in found:
        if guesses.handles is None:
            cells[:] = guesses.cells[0]
            theory, left = None if guesses.theory is None else guesses.theory * n, 0
            break
        places = board.places(query.number, guesses.handle_kind, guesses.handles)
        asked = places >= 0
        cells[places[asked]] = guesses.cells[asked]
        many = int(np.count_nonzero(asked))
        theory = None if theory is None or guesses.theory is None else theory + guesses.theory * many
        left -= many
    expected = prior.success(query.number)
    if theory is not None:
        theory = (theory + left * expected) / n
    return Guessed(cells, query.truth, expected, theory, prior.usual(query.number))


def play_longitudinal(
    boards: Sequence[AttackContext], asked: Sequence[int], *, rng: np.random.Generator
) -> Iterator[Columns]:
    """Evaluate the longitudinal attack over the first T queries, for each T in `asked`.

    Its targets are the devices recorded in all T queries that stayed in one cell; the prior is their own share in each
    cell, or with corrupted vehicles that of all recorded vehicles that stayed.

    Parameters
    ----------
    boards
        Attack contexts, one for each choice of corrupted vehicles.
    asked
        Every T.
    rng
        Breaks ties, and pairs devices for the ε lower bound.

    Raises
    ------
    NoLikelihoodError
        If no likelihood is known for the mechanism's reports.
    """
    for times in asked:
        parts = [part for board in boards if (part := _guess_stayed(board, times, rng=rng)) is not None]
        score = score_guesses(parts, rng=rng)
        if score is not None:
            yield {**score.columns, "metric": "queries", "value": float(times), "unit": "queries"}


def _guess_stayed(board: AttackContext, times: int, *, rng: np.random.Generator) -> Guessed | None:
    """Return the guesses about targets that stayed in one cell through the first queries; None if there are none."""
    queries = list(board.record.queries[:times])
    if len(queries) < times:
        return None
    last = _stayed(queries)
    if not len(last.truth):
        return None
    numbers = [query.number for query in queries]
    cells = board.record.mechanism.cells
    if board.even:
        prior = Prior.uniform(cells, (last.number,))
    else:
        known = last if board.shares is None else _stayed([board.filed.query(number) for number in numbers])
        counts = np.bincount(known.truth, minlength=cells + 1)
        prior = Prior.from_counts({last.number: counts}, exact=board.shares is None)
    guesses = longitudinal(board.observe(numbers), prior, queries=numbers, last=last.number, rng=rng)
    whole = fill_guesses(queries[-1], guesses, prior, board, rng=rng)
    places = np.flatnonzero(np.isin(queries[-1].recorded.devices, last.recorded.devices))
    theory = _theory_of(guesses, board, last, prior)
    return Guessed(whole.guesses[places], last.truth, whole.prior, theory, whole.usual)


def _stayed(queries: Sequence[QueryRecord]) -> QueryRecord:
    """Return the last query with only those targets that are in all queries, and always in the same cell."""
    last = queries[-1]
    stayed = np.ones(len(last.truth), dtype=np.bool_)
    for query in queries[:-1]:
        where = dict(zip(query.recorded.devices.tolist(), query.truth.tolist(), strict=True))
        before = [where.get(device, -1) for device in last.recorded.devices.tolist()]
        stayed &= np.array(before, dtype=np.int64) == last.truth
    return last.among(np.flatnonzero(stayed))


def _theory_of(guesses: Sequence[Guesses], board: AttackContext, last: QueryRecord, prior: Prior) -> float | None:
    """Return the expected success over the targets that stayed, averaged over what was read of each."""
    expected, left, devices = 0.0, len(last.truth), last.recorded.devices
    every = next(query for query in board.record.queries if query.number == last.number)
    for found in guesses:
        if found.handles is None:
            return found.theory
        places = board.places(last.number, found.handle_kind, found.handles)
        among = int(np.isin(every.recorded.devices[places[places >= 0]], devices).sum())
        if among and found.theory is None:
            return None
        expected += among * (found.theory or 0.0)
        left -= among
    return (expected + left * prior.success(last.number)) / len(last.truth)


def _score_sampled(sampled: Sequence[tuple[AttackContext, SamplingGuesses]]) -> Columns:
    """Return the row on which devices were sampled: the greatest posterior, and the success of the more likely guess.

    A device's reports show whether it was sampled if it is in a cell and blanks are not drawn again: S gives 0 followed
    by the cell, and a blank gives the same report twice. The draws of other devices are known only to them; these
    devices are not scored.
    """
    mechanism: Any = sampled[0][0].record.mechanism
    greatest = max(float(found.probability.max(initial=0.0)) for _, found in sampled)
    measured = {"metric": "sampled_posterior", "value": greatest, "unit": "probability"}
    hits = trials = 0
    for board, found in sampled:
        query = next(query for query in board.record.queries if query.number == found.query)
        if found.handles is None:
            places, rows = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
        else:
            places = board.places(found.query, found.handle_kind, found.handles)
            rows = np.flatnonzero(places >= 0)
            places = places[rows]
        first, second = (np.asarray(reports[places]) for reports in query.recorded.reports)
        inside = query.truth[places] > 0
        thrown = (first == 0) & (second == query.truth[places])
        hits += int(np.count_nonzero((found.guesses[rows] == thrown) & inside))
        trials += int(np.count_nonzero(inside))
    if mechanism.refresh or not trials:
        return measured
    share = max(mechanism.sampling, 1.0 - mechanism.sampling)
    return {**score_hits(hits, trials, prior=share, theory=sampled[0][1].theory).columns, **measured}
