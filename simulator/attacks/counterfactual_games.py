"""Counterfactual games: published sums as they would be had devices been dropped, been elsewhere, or lied.

Sums are recomputed from the campaign's reports and the targets' reports; the campaign's own publications do not change.
A coalition has all that its members received, in addition to what is published.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from mechanisms.inference.dropout import dropped_others_success, released_twice_success
from mechanisms.inference.likelihood import batches, best_guess, guess_success, posterior, repeated_log_likelihood
from mechanisms.inference.poisoning import contribution
from mechanisms.local import LocalMechanism, NoPrivacy, SamplingPrivacy
from simulator.arrays import Cells, FloatArray, IntArray, Mask
from simulator.attacks.counterfactual import Forgery, others_dropped, released_twice
from simulator.attacks.guesses import Prior
from simulator.attacks.observation import Observation, patterns
from simulator.attacks.records import CampaignRecord, NotPlayableError
from simulator.attacks.scores import Score
from simulator.attacks.world import Game, Observer, Truth
from simulator.files.errors import InputError
from simulator.sensing.query import QueryRecord, keeps_randomness

ONLY_SAMPLING = "dropping the target is supported for two-round Sampling Privacy only"


@dataclass(frozen=True)
class DropOut(Game):
    """All devices but the target, or only the target, are dropped before round two.

    Others dropped: the counts of both rounds are released. If devices received in one round only are counted in
    neither round, or there is one round, the counts are the target's own; otherwise round one holds all devices. Target
    dropped: differences are released once; further scores, of metric "released_twice", are for a server that releases
    the same query with the target and without it. Values that the campaign's release suppresses are not seen. The
    coalition also uses the target's reports that its members received, whether or not they were counted.

    Parameters
    ----------
    dropped
        "others" or "target".
    """

    dropped: Literal["others", "target"]

    def play(self, observer: Observer, truth: Truth, *, rng: np.random.Generator) -> Iterator[Score]:
        """Yield the scores of each query; if a release with noise replaces the counts, only where reports are read."""
        record, prior = truth.record, truth.prior()
        kept = keeps_randomness(record.mechanism)
        for query in truth.queries:
            observation = observer.observe([query.number])
            read = observer.rounds_read(query, observation)
            if record.noised and not read.any():
                raise NotPlayableError(record.unpublished)
            case = _Counterfactual(record, query, prior, observation, read, rng)
            if self.dropped == "others":
                yield Score.of(query, *case.others(), prior, kept=kept)
                continue
            mechanism = record.sampling_privacy(ONLY_SAMPLING)
            # Without a readable report, only the first report of a target is in the release. That report was made
            # without the truth, so only the prior helps.
            yield Score.of(query, *case.from_reports(read), prior, kept=kept)
            if not record.noised:
                yield Score.of(query, *case.twice(mechanism), prior, kept=kept, metric="released_twice")

    def unsuited(self, record: CampaignRecord, *, named: bool) -> str:
        """Return why dropping the target is not tried on mechanisms that the attack does not name."""
        suited = named or self.dropped == "others" or isinstance(record.mechanism, SamplingPrivacy)
        return "" if suited else ONLY_SAMPLING


@dataclass(frozen=True, eq=False)
class _Counterfactual:
    """One query as it would be: its targets, or all other devices, are dropped, or a server lies to the targets.

    Attributes
    ----------
    record, query, prior
        The campaign, one of its queries with the targets, and the coalition's prior.
    observation
        What the coalition observed.
    read
        (rounds, n) bool, which of the targets' reports it reads.
    rng
        Breaks ties under a uniform prior.
    """

    record: CampaignRecord
    query: QueryRecord
    prior: Prior
    observation: Observation
    read: Mask
    rng: np.random.Generator

    @property
    def complete(self) -> Mask:
        """(n,) bool: the targets whose reports of all rounds were received in time."""
        received: Mask = np.logical_and.reduce(self.query.recorded.in_time)
        return received

    def others(self) -> tuple[Cells, FloatArray]:
        """Return the guesses if all devices but the target are dropped, and their expected success, (n,) each."""
        record, query, read, complete = self.record, self.query, self.read, self.complete
        if record.deployment.min_batch > 1:
            return self.from_reports(read)
        mechanism = record.mechanism
        tally, corrupted = self.observation.own_tally(query.number, 1)
        alone = record.deployment.paired or mechanism.rounds == 1
        first_round = 1 if alone else max(int(query.counted[0]) - corrupted, 1)
        readable = read.copy()
        if record.publishes_counts:
            later = np.arange(1, mechanism.rounds + 1) > 1
            readable |= complete if first_round == 1 else complete & later[:, np.newaxis]
        guesses, theory = self.from_reports(readable)
        if record.publishes_counts and first_round > 1:
            hidden, first = np.flatnonzero(complete & ~readable[0]), query.counts[0] - tally
            for rows, encodings in self.own_encodings(hidden):
                given = (first, encodings[1], self.prior, query.number)
                guesses[rows] = others_dropped(mechanism, *given, first_round=first_round, rng=self.rng)
            success = dropped_others_success(mechanism, self.prior.of(query.number), first_round=first_round)
            theory[hidden] = self.prior.trusted(success, query.number)
        elif record.k == 1 and alone and isinstance(mechanism, SamplingPrivacy):
            hidden = np.flatnonzero(complete & ~read.all(axis=0))
            for rows, encodings in self.own_encodings(hidden):
                shown = np.maximum((encodings[1] - encodings[0])[:, 1:], 0)
                guesses[rows] = self.from_releases(mechanism, rows, shown, None, positive=True)
            theory[hidden] = math.nan
        return guesses, theory

    def twice(self, mechanism: SamplingPrivacy) -> tuple[Cells, FloatArray]:
        """Return the guesses if the same query is released with the target and without it, and their expected success.

        The two releases differ by the target's own differences, in the cells whose difference is published in at least
        one of them. All of these differences together with one of the target's two reports reveal the other report.
        """
        query, k = self.query, self.record.k
        some: Mask = np.logical_or.reduce(self.read)
        differences = (query.counts[1] - query.counts[0])[1:]
        guesses, theory = self.from_reports(self.read | (self.complete & some) if k is None else self.read)
        hidden = np.flatnonzero(self.complete & ~(some if k is None else self.read.all(axis=0)))
        for rows, encodings in self.own_encodings(hidden):
            mine = (encodings[1] - encodings[0])[:, 1:]
            visible = None if k is None else np.maximum(differences, differences - mine) >= k
            guesses[rows] = self.from_releases(mechanism, rows, mine, visible)
        if k is not None and some.any() and (differences + 1 >= k).any():
            theory[hidden[some[hidden]]] = math.nan
        hidden = hidden[~some[hidden]]
        if k is None or (differences >= k).all():
            success = released_twice_success(mechanism, self.prior.of(query.number))
            theory[hidden] = self.prior.trusted(success, query.number)
        elif (differences + 1 >= k).any():
            theory[hidden] = math.nan
        return guesses, theory

    def from_releases(
        self,
        mechanism: SamplingPrivacy,
        rows: IntArray,
        differences: IntArray,
        visible: Mask | None,
        *,
        positive: bool = False,
    ) -> Cells:
        """Return the best guess about some targets from two releases and the report of one round, if it is read."""
        guesses = np.empty(len(rows), dtype=np.int32)
        for which, places in patterns(self.read[:, rows].T):
            read = None
            if any(which):
                row = which.index(True)
                read = row + 1, np.asarray(self.query.recorded.reports[row][rows[places]], dtype=np.int64)
            guesses[places] = released_twice(
                mechanism,
                differences[places],
                self.prior,
                self.query.number,
                read=read,
                visible=None if visible is None else visible[places],
                positive=positive,
                rng=self.rng,
            )
        return guesses

    def from_reports(
        self, readable: Mask, mechanism: LocalMechanism | None = None, answers: Sequence[Sequence[Any]] = ()
    ) -> tuple[Cells, FloatArray]:
        """Return the best guess from the readable reports of each target, and its expected success.

        Parameters
        ----------
        readable
            (rounds, n) bool, which reports can be read.
        mechanism
            The mechanism that the targets ran; by default the campaign's.
        answers
            The targets' reports by round, for each time that they answered; by default as recorded.

        Returns
        -------
        guesses : (n,) int32
        theory : (n,) float64, NaN where it is not known
        """
        query, prior, mechanism = self.query, self.prior, mechanism or self.record.mechanism
        q, answers = prior.of(query.number), answers or [query.recorded.reports]
        guesses = prior.guess(query.number, len(query.truth), rng=self.rng)
        # Where servers are chosen by place, it is not by chance which reports a coalition reads: no theory is known.
        theory = np.full(len(guesses), math.nan if self.record.deployment.locates else prior.success(query.number))
        for which, rows in patterns(readable.T):
            rounds = tuple(round_ for round_, in_round in enumerate(which, start=1) if in_round)
            if rounds:
                reports = [[answer[round_ - 1][rows] for round_ in rounds] for answer in answers]
                after = posterior(repeated_log_likelihood(mechanism, reports, rounds), q)
                guesses[rows] = best_guess(after, rng=prior.tie_rng(self.rng))
                theory[rows] = prior.trusted(guess_success(mechanism, rounds, q, len(answers)), query.number)
        return guesses, theory

    def own_encodings(self, rows: IntArray) -> Iterator[tuple[IntArray, list[IntArray]]]:
        """Yield some of these targets and the encodings of their own reports, by round, until all were yielded."""
        mechanism = self.record.mechanism
        for batch in batches(len(rows), math.prod(mechanism.tally_shape)):
            some = rows[batch]
            yield some, [mechanism.encode(reports[some]) for reports in self.query.recorded.reports]


COSTS = ("share of all devices", "messages", "bytes")
"""The units in which the cost of fake vehicles is stated."""


@dataclass(frozen=True)
class LyingServer(Game):
    """A server asks one vehicle alone, asks again, states a false question, or alters its sums.

    Whichever server lies, the coalition has what its members receive and what is published. What a defence would expose
    is not done: the coalition then has what it has of the honest query. A false question states parameters at which a
    report is the cell. Targets answer it, and repeated questions, with new coins and what they keep; their messages
    arrive as the messages of the recorded query did.

    Parameters
    ----------
    lies
        "alone", "again" and "false_question", told together; or "alter".
    times
        How many times the query is asked, within the minimum gap between a device's answers if there is one.
    fakes
        The number of fake vehicles, whose reports the coalition knows.
    cell, magnitude
        The cell whose estimate is raised, and the greatest number that is added to an entry of the sums.
    """

    lies: Sequence[str]
    times: int = 10
    fakes: int = 0
    cell: int = 1
    magnitude: int = 1_000

    def play(self, observer: Observer, truth: Truth, *, rng: np.random.Generator) -> Iterator[Score]:
        """Yield the scores of each query, and what fake vehicles cost; or by how much an estimate is raised."""
        record, prior, mechanism = truth.record, truth.prior(), truth.record.mechanism
        deployment, kept = record.deployment, keeps_randomness(mechanism)
        if "alter" in self.lies:
            yield self._altered(record, rng)
        if weaker := "false_question" in self.lies and not deployment.committed:
            mechanism = NoPrivacy(cells=mechanism.cells)
        times = self.times if "again" in self.lies and not deployment.min_gap_s else 1
        columns: dict[str, Any] = {} if times == 1 and not weaker else {"pairs": False}  # ε is of the honest question
        if self.fakes:
            columns |= {"metric": "fakes", "value": float(self.fakes), "unit": "fakes"}
        guessed = truth.queries if {*self.lies} != {"alter"} else []
        for query in guessed:
            observation, cells = observer.observe([query.number]), query.truth
            case = _Counterfactual(record, query, prior, observation, observer.rounds_read(query, observation), rng)
            readable, answers = case.read, list[Sequence[Any]]()
            if "alone" in self.lies:
                alone = rng.random(len(cells)) < self._alone(record, int(query.asked[0]) - 1)
                readable = readable | (alone & case.complete)
            if weaker:
                readable = np.any(readable, axis=0, keepdims=True)
            if weaker or times > 1:
                memory = mechanism.enrol(len(cells), rng=rng)
                answers = [_answers(mechanism, cells, mechanism.toss(memory, rng=rng)) for _ in range(times)]
            found = case.from_reports(readable, mechanism, answers)
            yield replace(Score.of(query, *found, prior, kept=kept), **columns)
        if self.fakes and guessed:
            sent, routes = self.fakes * times, [deployment.route(1 + row) for row in range(mechanism.rounds)]
            asked = float(np.mean([query.asked[0] for query in guessed]))
            nbytes, messages = sent * len(routes) * deployment.cost(mechanism).bytes_up, sent * sum(map(len, routes))
            for unit, cost in zip(COSTS, (self.fakes / (self.fakes + asked), messages, nbytes), strict=True):
                metric = f"fake_{unit.replace(' ', '_')}"
                yield Score(metric=metric, value=float(cost), unit=unit, queries=len(guessed))

    def _alone(self, record: CampaignRecord, others: int) -> float:
        """Return the probability that sums are published of the reports of the victim and of fake vehicles alone.

        Where batches are drawn by public randomness, it is the probability that all others of a batch are fakes.
        """
        if not record.publishes_counts:
            return 0.0
        drawn = np.arange(record.deployment.min_batch - 1)
        if not record.deployment.committed:
            return float(self.fakes >= len(drawn))
        return float(np.prod((self.fakes - drawn) / np.maximum(self.fakes + others - drawn, 1)))

    def _altered(self, record: CampaignRecord, rng: np.random.Generator) -> Score:
        """Return the score of the mean change of the cell's estimate."""
        if not record.deployment.sums_reports:
            raise NotPlayableError(f"what altered sums change depends on how {record.deployment.kind} combines them")
        forgery, nobody = Forgery.of_vectors(record.mechanism, self.cell, 1, magnitude=self.magnitude), np.arange(0)
        added = np.asarray(forgery.vectors)[:, 0]
        pairs = ((replace(query, counts=query.counts + added), query) for query in record.queries)
        remade = [[remake(record, one, nobody, None, rng=rng)[self.cell - 1] for one in pair] for pair in pairs]
        value, known = float(-np.diff(remade).mean()), math.nan
        if all(query.all_counted for query in record.queries):
            known = forgery.per_vehicle - contribution(record.mechanism, np.zeros_like(added), self.cell)
        return Score(metric="vehicles_added", value=value, unit="vehicles", theory=known, queries=len(remade))


def _answers(mechanism: LocalMechanism, cells: Cells, coins: Any) -> list[Any]:
    """Return the reports of devices in these cells, by round; before the truth round, as if outside."""
    rounds = range(1, mechanism.rounds + 1)
    return [mechanism.answer(r, cells if r >= mechanism.truth_round else np.zeros_like(cells), coins) for r in rounds]


INFLATION, CRAFTED = "inflation", "crafted_inflation"


@dataclass(frozen=True)
class Poisoning(Game):
    """Corrupted vehicles inflate a cell: the mean change of its estimate is measured, in vehicles.

    The corrupted vehicles are drawn from the targets. There are two scores: for well-formed reports, metric
    "inflation", and for vectors of any form, "crafted_inflation". If servers read plain reports, or reject invalid
    encodings, crafted vectors are not counted; an adversary that knows this sends well-formed reports, so the second
    score then has the value of the first.

    Parameters
    ----------
    cell
        Number of the inflated cell, from 1.
    magnitude
        Greatest number that a vehicle puts into a vector.
    """

    cell: int
    magnitude: int
    forges = True

    def play(self, observer: Observer, truth: Truth, *, rng: np.random.Generator) -> Iterator[Score]:
        """Yield the two scores, over all queries."""
        record, cell, corrupted = truth.record, self.cell, sum(member.vehicles for member in observer.coalition)
        mechanism, deployment = record.mechanism, record.deployment
        if not deployment.sums_reports:
            raise NotPlayableError(f"what false reports change depends on how {deployment.kind} combines sums")
        for query in record.queries:
            if corrupted > len(query.truth):
                rule = f"there are only {len(query.truth)} targets in query {query.number} of {query.campaign}"
                raise InputError([f"{rule}; got {corrupted} corrupted vehicles"], "coalition")
        chosen = [np.sort(rng.permutation(len(query.truth))[:corrupted]) for query in record.queries]
        honest = crafted = Forgery.of_reports(mechanism, cell, corrupted)
        if _counted(record):
            crafted = Forgery.of_vectors(mechanism, cell, corrupted, magnitude=self.magnitude)
        for metric, forgery in ((INFLATION, honest), (CRAFTED, crafted)):
            shifts, expected = [], []
            for query, rows in zip(record.queries, chosen, strict=True):
                before = remake(record, query, rows, None, rng=rng)
                after = remake(record, query, rows, forgery, rng=rng)
                shifts.append(float(after[cell - 1] - before[cell - 1]))
                inside = int(np.count_nonzero(query.truth[rows] == cell))
                expected.append(corrupted * forgery.per_vehicle - inside if query.all_counted else np.nan)
            value, theory = float(np.mean(shifts)), float(np.mean(expected))
            yield Score(metric=metric, value=value, unit="vehicles", theory=theory, queries=len(shifts))


def remake(
    record: CampaignRecord, query: QueryRecord, rows: IntArray, forgery: Forgery | None, *, rng: np.random.Generator
) -> Any:
    """Return the estimate, (cells,) float64, with some targets' reports in the sums replaced by others.

    Parameters
    ----------
    record, query
        The campaign, and one of its queries.
    rows
        Positions of the corrupted vehicles among the targets.
    forgery
        Messages that they send, in the rounds in which their reports were received; None: their own reports.
    rng
        The servers' own randomness, on which no estimate depends.
    """
    mechanism, received = record.mechanism, query.recorded.in_time[:, rows]
    aggregator = record.deployment.aggregator(mechanism, devices=len(rows), rng=rng)
    rounds = range(mechanism.rounds)
    true_reports = [reports[rows] for reports in query.recorded.reports]
    counted = received & received.all(axis=0) if aggregator.paired else received
    rest = query.counts - np.stack([mechanism.tally(true_reports[r], where=counted[r]) for r in rounds])
    left = [query.counted[r] - int(counted[r].sum()) for r in rounds]
    if aggregator.paired:
        aggregator.receive_group(rest, np.ones(len(left), dtype=np.bool_), devices=left[0])
    else:
        for r in rounds:
            aggregator.receive_group(rest, np.arange(len(left)) == r, devices=left[r])
    sent = true_reports if forgery is None or forgery.reports is None else forgery.reports
    if forgery is not None and forgery.vectors is not None:
        sent = [aggregator.sums.shares_of(vectors) for vectors in forgery.vectors]
    for r in rounds:
        aggregator.receive(r + 1, sent[r], received[r])
    for r in rounds:
        aggregator.close_round(r + 1, asked=query.asked[r], answered=left[r] + int(received[r].sum()))
    return aggregator.estimate().count


def _counted(record: CampaignRecord) -> bool:
    """Return whether a vector that is not a valid encoding would be counted: a share of it, which nothing checks."""
    aggregator = record.deployment.aggregator(record.mechanism, devices=1, rng=np.random.default_rng(0))
    return record.deployment.sharing is not None and aggregator.accepts is None
