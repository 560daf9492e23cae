"""Attacks that guess a target's cell, evaluated on a campaign's transcripts, and the scores of guesses."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mechanisms.inference.likelihood import report_law
from mechanisms.privacy.audit import clopper_pearson, epsilon_lower_bound
from simulator.aggregation.transcript import HandleKind
from simulator.arrays import Cells, FloatArray, IntArray
from simulator.attacks.observation import VEHICLES, Observation, OwnReports
from simulator.attacks.own import CellAttack
from simulator.attacks.reconstruction import (
    ROUND_ATTACKS,
    Guesses,
    LongitudinalAttack,
    Prior,
    SamplingGuesses,
    sampling_guesses,
)
from simulator.experiment.query_records import CampaignRecord, QueryRecord, StoredTranscripts, places_of
from simulator.sensing.query import keeps_randomness

Columns = dict[str, Any]
"""Columns of a row of `attacks.parquet`, as in `Finding`."""
TAIL = 0.025
"""Probability at each end of a 95 % interval."""
CLAIMING_TOO_MUCH = 1e-6
"""Probability with which an ε lower bound may exceed ε: a run has many bounds, and none should be wrong."""


@dataclass(frozen=True, eq=False)
class Guessed:
    """One query's guesses, one for each target.

    Parameters
    ----------
    guesses, truth
        (n,) int.
    prior
        Success of the best guess without the observation.
    theory
        Expected success; NaN if it is not known.
    usual
        The best guess without the observation; None if several are equally good.
    devices
        (n,) int64, the numbers of the targets.
    probability
        (n,) float64, the coalition's posterior probability of each guess; NaN where the attack states none.
    campaign, query, time_s
        The campaign, the query's number in it, and its moment of truth, seconds.
    """

    guesses: Cells
    truth: Cells
    prior: float
    theory: float
    usual: int | None = None
    devices: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    probability: FloatArray = field(default_factory=lambda: np.empty(0))
    campaign: str = ""
    query: int = 0
    time_s: float = 0.0

    @classmethod
    def of(
        cls,
        query: QueryRecord,
        guesses: Cells,
        expected: FloatArray,
        prior: Prior,
        places: IntArray | None = None,
        probability: FloatArray | None = None,
    ) -> "Guessed":
        """Return the guesses about the targets of a query at some places, by default all, with their mean theory.

        `expected` is the expected success of each target's guess, and `probability` the posterior probability of the
        guess, (n,) float64, NaN where they are not known.
        """
        rows = slice(None) if places is None else places
        number, theory = query.number, float(expected[rows].mean())
        return cls(
            guesses[rows],
            query.truth[rows],
            prior.success(number),
            theory,
            prior.usual(number),
            query.recorded.devices[rows],
            np.full(len(guesses), math.nan)[rows] if probability is None else probability[rows],
            query.campaign,
            query.number_in_campaign,
            query.time_s,
        )


def score_hits(hits: int, trials: int, *, prior: float, theory: float, epsilon_lower: float | None = None) -> Columns:
    """Return the columns of the score of `hits` right guesses in `trials`, as in `Finding`.

    Truths are fixed and coins independent. If trials have different probabilities, the interval is wider than necessary
    (Hoeffding 1956).
    """
    low, high = (float(end) for end in clopper_pearson(hits, trials, alpha=TAIL))
    success = hits / trials
    return {
        "trials": trials,
        "prior": prior,
        "success": success,
        "gain": success - prior,
        "gain_low": low - prior,
        "gain_high": high - prior,
        "theory": None if math.isnan(theory) else theory,
        "epsilon_lower": epsilon_lower,
    }


def score_guesses(parts: Sequence[Guessed], *, rng: np.random.Generator, kept: bool = False) -> Columns | None:
    """Score the guesses of some queries; None if there are none.

    Parameters
    ----------
    parts
        By query.
    rng
        Pairs devices for the ε lower bound.
    kept
        Whether devices keep coins from query to query. Then trials of different queries are not independent: the
        interval is as wide as for the trials of a single query, and the bound is that of the first query.
    """
    parts = [part for part in parts if len(part.truth)]
    trials = sum(len(part.truth) for part in parts)
    if not trials:
        return None
    hits = sum(int(np.count_nonzero(part.guesses == part.truth)) for part in parts)
    prior = sum(len(part.truth) * part.prior for part in parts) / trials
    theory = sum(len(part.truth) * part.theory for part in parts) / trials
    epsilon = _epsilon(parts[:1] if kept else parts, rng=rng)
    score = score_hits(hits, trials, prior=prior, theory=theory, epsilon_lower=epsilon)
    if not kept:
        return score
    one = min(len(part.truth) for part in parts)
    low, high = (float(end) - prior for end in clopper_pearson(round(hits / trials * one), one, alpha=TAIL))
    return {**score, "gain_low": min(low, score["gain_low"]), "gain_high": max(high, score["gain_high"])}


def _epsilon(parts: Sequence[Guessed], *, rng: np.random.Generator) -> float | None:
    """Return an ε lower bound from pairs of devices in different cells, or None if there are no pairs.

    For a pair (i, j) in one query the event is "t_i is guessed". Its probability for i is at most e^ε times that for j,
    which has another truth and whose guess is made with the same prior; the same holds for the sums over pairs. No
    device is in two pairs, so all are independent. Pairs whose t_i is the best guess without any observation carry
    little information and are left out.
    """
    hits_p = hits_q = pairs = 0
    for part in parts:
        order = rng.permutation(len(part.truth))
        half = len(order) // 2
        one, other = order[:half], order[half : 2 * half]
        apart = part.truth[one] != part.truth[other]
        apart &= part.truth[one] != (-1 if part.usual is None else part.usual)
        named, one, other = part.truth[one][apart], one[apart], other[apart]
        hits_p += int(np.count_nonzero(part.guesses[one] == named))
        hits_q += int(np.count_nonzero(part.guesses[other] == named))
        pairs += len(named)
    if not pairs:
        return None
    return epsilon_lower_bound(hits_p=hits_p, trials_p=pairs, hits_q=hits_q, trials_q=pairs, alpha=CLAIMING_TOO_MUCH)


class NotPlayableError(Exception):
    """An attack cannot be evaluated; the message is the reason, a sentence without its full stop."""


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

    @property
    def vehicles(self) -> int:
        """Number of corrupted vehicles, 0 for other parties."""
        return int(self.party.removeprefix(VEHICLES)) if self.party.startswith(VEHICLES) else 0

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
    stored
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

    stored: StoredTranscripts
    record: CampaignRecord
    even: bool
    coalition: tuple[Member, ...] = ()
    corrupted: IntArray | None = None
    shares: Mapping[int, IntArray] | None = None
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
        return Observation.pooled([self.observe_query(self.stored.query(query)) for query in queries])

    def observe_query(self, query: QueryRecord) -> Observation:
        """Return the coalition's observation of one query, whose reports may have been altered."""
        campaign = self.stored.campaigns[query.campaign]
        members = [member for member in self.coalition if member.at(query.number_in_campaign)]
        own = self._own(query, campaign) if any(member.vehicles for member in members) else None
        return Observation.of(
            self.stored.transcripts(query),
            # A coalition that spans campaigns may have parties that one of the campaigns does not have.
            [member.party for member in members if member.vehicles or member.party in campaign.parties],
            mechanism=campaign.mechanism,
            released=(campaign.released(query),),
            own=() if own is None else (own,),
            asked={query.number: int(query.asked[0])},
            keys=[member.party for member in self.coalition],
            last_vehicle=self.last_vehicle,
        )

    def targets(self, query: int) -> QueryRecord:
        """Return a query with the targets only."""
        return next(one for one in self.record.queries if one.number == query)

    def places(self, query: int, kind: HandleKind, handles: IntArray | None) -> IntArray:
        """Return the position of each handle's device among a query's targets, (n,) int64; −1 for other devices.

        Without handles the device is the only target.
        """
        if handles is None:
            return np.zeros(1, dtype=np.int64)
        return places_of(self.stored.devices(query, kind, handles), self.targets(query).recorded.devices)

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
            own.counted(paired=campaign.deployment.paired),
            {party: np.isfinite(times) for party, times in own.arrived_s.items()},
        )


def play_rounds(
    kind: str | CellAttack, contexts: Sequence[AttackContext], guessed: list[Guessed], *, rng: np.random.Generator
) -> Iterator[Columns]:
    """Evaluate an attack on single queries; yield the columns of its rows.

    Every target is guessed; if the coalition can read none of its reports, by the prior. If campaigns are attacked
    together, reports of all queries at the same moment are used.

    Parameters
    ----------
    kind
        A key of `ROUND_ATTACKS`, or the object of a user's own attack.
    contexts
        Attack contexts, one for each choice of corrupted vehicles.
    guessed
        List to which the guesses of each query are added.
    rng
        Breaks ties, and pairs devices for the ε lower bound.

    Raises
    ------
    NoLikelihoodError
        If no likelihood is known for the mechanism's reports.
    WrongGuessesError
        If a user's own attack raises an error, or returns what is no answer.
    """
    single: CellAttack = ROUND_ATTACKS[kind] if isinstance(kind, str) else kind
    if isinstance(kind, str):
        # Without a likelihood nothing was tried, even where no report is read: a gain of 0 would say more.
        report_law(contexts[0].record.mechanism)
    parts: list[Guessed] = []
    sampled: list[tuple[AttackContext, SamplingGuesses]] = []
    for context in contexts:
        prior = context.prior()
        for query in context.record.queries:
            if not len(query.truth):
                continue
            numbers = context.stored.simultaneous(query.number) if len(context.stored.campaigns) > 1 else [query.number]
            observation = context.observe(numbers)
            attack = LongitudinalAttack(numbers, query.number) if len(numbers) > 1 else single
            parts.append(fill_guesses(query, attack.guess(observation, prior, rng=rng), prior, context, rng=rng))
            if kind == "round_one":
                sampled += [(context, found) for found in sampling_guesses(observation, prior)]
    guessed += parts
    score = score_guesses(parts, rng=rng, kept=keeps_randomness(contexts[0].record.mechanism))
    if score is not None:
        yield score
    if sampled:
        yield _score_sampled(sampled)


def fill_guesses(
    query: QueryRecord,
    found: Sequence[Guesses],
    prior: Prior,
    context: AttackContext,
    *,
    scored: IntArray | None = None,
    rng: np.random.Generator,
) -> Guessed:
    """Return one guess for each target: that of the attack, or of the prior if the attack has none.

    Parameters
    ----------
    query
        The query with the targets of `context`.
    found
        What the attack returned for it.
    prior, context
        The coalition's prior, and the context of the attack.
    scored
        Positions of the targets whose guesses are returned; by default all.
    rng
        Breaks ties under a uniform prior.
    """
    cells = prior.guess(query.number, len(query.truth), rng=rng)
    places = np.arange(len(cells)) if scored is None else scored
    # Where servers are chosen by place, it is not by chance which reports a coalition reads: no theory is known.
    unread = math.nan if context.stored.record.deployment.locates else prior.success(query.number)
    expected = np.full(len(cells), unread)
    probability = np.full(len(cells), prior.success(query.number))
    for guesses in sorted(found, key=lambda one: one.handles is not None):
        sure = np.full(len(guesses.cells), math.nan) if guesses.probability is None else guesses.probability
        if guesses.handles is None:
            cells[:], expected[:], probability[:] = guesses.cells[0], guesses.theory, sure[0]
            continue
        targets = context.places(query.number, guesses.handle_kind, guesses.handles)
        asked = targets >= 0
        cells[targets[asked]], expected[targets[asked]] = guesses.cells[asked], guesses.theory
        probability[targets[asked]] = sure[asked]
    return Guessed.of(query, cells, expected, prior, places, probability)


def play_longitudinal(
    contexts: Sequence[AttackContext], asked: Sequence[int], guessed: list[Guessed], *, rng: np.random.Generator
) -> Iterator[Columns]:
    """Evaluate the longitudinal attack over the first T queries, for each T in `asked`.

    Its targets are the devices recorded in all T queries that stayed in one cell; the prior is their own share in each
    cell, or with corrupted vehicles that of all recorded vehicles that stayed.

    Parameters
    ----------
    contexts
        Attack contexts, one for each choice of corrupted vehicles.
    asked
        Every T.
    guessed
        List to which the guesses for each T, about query T, are added.
    rng
        Breaks ties, and pairs devices for the ε lower bound.

    Raises
    ------
    NoLikelihoodError
        If no likelihood is known for the mechanism's reports.
    """
    report_law(contexts[0].record.mechanism)
    for times in asked:
        parts = [part for context in contexts if (part := _guess_stayed(context, times, rng=rng)) is not None]
        guessed += parts
        score = score_guesses(parts, rng=rng)
        if score is not None:
            yield {**score, "metric": "queries", "value": float(times), "unit": "queries"}


def _guess_stayed(context: AttackContext, times: int, *, rng: np.random.Generator) -> Guessed | None:
    """Return the guesses about targets that stayed in one cell through the first queries; None if there are none."""
    queries = list(context.record.queries[:times])
    if len(queries) < times:
        return None
    last = _stayed(queries)
    if not len(last.truth):
        return None
    numbers = [query.number for query in queries]
    cells = context.record.mechanism.cells
    if context.even:
        prior = Prior.uniform(cells, (last.number,))
    else:
        known = last if context.shares is None else _stayed([context.stored.query(number) for number in numbers])
        counts = np.bincount(known.truth, minlength=cells + 1)
        prior = Prior.from_counts({last.number: counts}, exact=context.shares is None)
    guesses = LongitudinalAttack(numbers, last.number).guess(context.observe(numbers), prior, rng=rng)
    places = np.flatnonzero(np.isin(queries[-1].recorded.devices, last.recorded.devices))
    return fill_guesses(queries[-1], guesses, prior, context, scored=places, rng=rng)


def _stayed(queries: Sequence[QueryRecord]) -> QueryRecord:
    """Return the last query with only those targets that are in all queries, and always in the same cell."""
    last = queries[-1]
    stayed = np.ones(len(last.truth), dtype=np.bool_)
    for query in queries[:-1]:
        places = places_of(last.recorded.devices, query.recorded.devices)
        stayed &= np.append(query.truth, -1)[places] == last.truth  # a device that was not asked then has no cell, −1
    return last.among(np.flatnonzero(stayed))


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
    for context, found in sampled:
        query = context.targets(found.query)
        places = context.places(found.query, found.handle_kind, found.handles)
        rows = np.flatnonzero(places >= 0)
        places = places[rows]
        first, second = (np.asarray(reports[places]) for reports in query.recorded.reports)
        inside = query.truth[places] > 0
        was_sampled = (first == 0) & (second == query.truth[places])
        hits += int(np.count_nonzero(((found.probability[rows] > 0.5) == was_sampled) & inside))
        trials += int(np.count_nonzero(inside))
    if mechanism.refresh or not trials:
        return measured
    share = max(mechanism.sampling, 1.0 - mechanism.sampling)
    return {**score_hits(hits, trials, prior=share, theory=sampled[0][1].theory), **measured}
