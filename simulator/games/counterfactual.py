"""Counterfactual attacks: published sums as they would be had devices been dropped, elsewhere or corrupted.

Sums are recomputed from the campaign's reports and those of the targets; the campaign's own publications do not
change. A coalition has all that its members received, in addition to what is published.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mechanisms.inference.bayes_success import guess_success
from mechanisms.inference.dropout import dropped_others_success, released_twice_success
from mechanisms.inference.likelihood import guess_cells
from mechanisms.local import LocalMechanism, NoPrivacy, SamplingPrivacy
from mechanisms.local.unary_encoding import UnaryEncoding
from mechanisms.parameter import ParameterError
from mechanisms.privacy.audit import epsilon_lower_bound
from simulator.aggregation.transcript import Coalition
from simulator.arrays import Cells, FloatArray, IntArray, Mask
from simulator.attacks.counterfactual import (
    Forgery,
    LastBit,
    LastDevice,
    added_by,
    others_dropped,
    released_twice,
    released_twice_and_read,
)
from simulator.attacks.observation import Observation, patterns, read_round
from simulator.attacks.reconstruction import Prior
from simulator.experiment.guess_games import (
    CLAIMING_TOO_MUCH,
    AttackContext,
    Columns,
    Guessed,
    NotPlayableError,
    score_guesses,
    score_hits,
)
from simulator.experiment.query_records import CampaignRecord, QueryRecord, places_of
from simulator.sensing.query import keeps_randomness

MOST_WORDS = 2**22
SOME_REPORTS_MISSING = "not every report was counted, so the differences are not numbers of sampled devices"
BITS_MISSING = "not every report was counted, so the sums are not of known numbers of bits"
NO_NUMBERS = (
    "only Sampling Privacy without refresh publishes numbers of sampled devices, and unary encodings sums of bits"
)
ONLY_SAMPLING = "dropping the target is supported for two-round Sampling Privacy only"


def play_known_others(
    contexts: Sequence[AttackContext], k: int | None, *, rng: np.random.Generator
) -> Iterator[Columns]:
    """Evaluate the attack that guesses whether a device is in a cell or outside, if all other devices are known.

    The odds are even. One target is chosen in every cell that has a target. With probability ½ it stays in the counts
    as it was; otherwise it is moved outside all cells, where it adds nothing to the differences. Cells are independent
    of one another, and so are trials.

    Parameters
    ----------
    contexts
        Attack contexts, one for each choice of corrupted vehicles.
    k
        Differences below k are suppressed, unless the campaign's release has a greater threshold.
    rng
        Generator of the choices of targets and of whether they stay.

    Raises
    ------
    NotPlayableError
        For mechanisms other than Sampling Privacy without refresh and those of independent bits; and if no published
        difference is a number of sampled devices, unless the coalition reads reports.
    """
    decide = _decide if isinstance(contexts[0].record.mechanism, SamplingPrivacy) else _decide_bits
    trials = [
        trial for context in contexts for query in context.record.queries for trial in decide(context, query, k, rng)
    ]
    if not sum(len(stay) for stay, _, _ in trials):
        return
    stay, found, theory = (np.concatenate(part) for part in zip(*trials, strict=True))
    epsilon = max(_two_worlds(found, stay), _two_worlds(~found, ~stay))
    hits = int(np.count_nonzero(found == stay))
    yield score_hits(hits, len(stay), prior=0.5, theory=float(theory.mean()), epsilon_lower=epsilon)


def _decide(
    context: AttackContext, query: QueryRecord, k: int | None, rng: np.random.Generator
) -> Iterator[tuple[Mask, Mask, FloatArray]]:
    """Yield whether targets stayed, the guesses and their theory, for each set of rounds whose reports are read."""
    record, mechanism = context.record, _sampling(context.record, NO_NUMBERS)
    if mechanism.refresh:
        raise NotPlayableError(NO_NUMBERS)
    chosen = _one_a_cell(query, rng=rng)
    stay = rng.random(len(chosen)) < 0.5
    moved = _taken_outside(context, query, chosen[~stay])
    observation = context.observe_query(moved)
    read = _rounds_read(context, query, observation)[:, chosen]
    released = observation.released_of(query.number)
    differences: IntArray | None = None
    if released is not None and query.all_counted and record.publishes_differences:
        if released.counts is not None:
            differences = released.counts[1] - released.counts[0]
        elif released.differences is not None:
            differences = np.concatenate([[0], np.where(np.asarray(released.suppressed), -1, released.differences)])
    if differences is None and not read.any():
        raise NotPlayableError(_unpublished(record))
    added, corrupted = added_by(observation.own_of(query.number), mechanism.cells)
    least = max(k or 0, record.k or 0)
    rows_in_all = places_of(query.recorded.devices[chosen], moved.recorded.devices)
    first, second = (np.asarray(reports[rows_in_all], dtype=np.int64) for reports in moved.recorded.reports)
    cells = query.truth[chosen].astype(np.int64)
    for which, rows in patterns(read.T):
        cell = cells[rows]
        last = LastDevice(
            cell,
            query.occupancy[cell] - corrupted[cell],
            None if differences is None else differences[cell] - added[cell],
            least - added[cell] if least and differences is not None else None,
            first[rows] if which[0] else None,
            second[rows] if which[1] else None,
        )
        yield stay[rows], last.guess(mechanism), last.theory(mechanism)


def _decide_bits(
    context: AttackContext,
    query: QueryRecord,
    k: int | None,  # noqa: ARG001 - sums of bits are not suppressed
    rng: np.random.Generator,
) -> Iterator[tuple[Mask, Mask, FloatArray]]:
    """Yield whether targets stayed, the guesses from published sums of bits, and their theory.

    A target that is taken outside draws its bit about the cell anew, with q. Where servers add noise, the coalition
    knows that of its members.
    """
    record = context.record
    mechanism, (true_yes, false_yes) = record.mechanism, _bit_of(record)
    if not query.all_counted:
        raise NotPlayableError(BITS_MISSING)
    chosen = _one_a_cell(query, rng=rng)
    cells = query.truth[chosen].astype(np.int64)
    stay = rng.random(len(chosen)) < 0.5
    encoded = mechanism.encode(query.recorded.reports[0][chosen])
    bits = _bits(mechanism, encoded)[np.arange(len(chosen)), cells - 1]
    moved = np.where(stay, bits, rng.random(len(chosen)) < false_yes)
    observation = context.observe_query(query)
    read = _rounds_read(context, query, observation)[0, chosen]
    tally, corrupted = observation.own_tally(query.number, 1)
    own = observation.own_of(query.number)
    inside_known = np.zeros(mechanism.cells + 1, dtype=np.int64)
    if own is not None:
        inside_known += np.bincount(own.truth, minlength=mechanism.cells + 1)
    parties = [member.party for member in context.coalition if member.at(query.number_in_campaign or query.number)]
    members = [number - 1 for number in Coalition.of(parties).servers] if parties else []
    sums = _bits(mechanism, query.counts[0] - tally)[cells - 1] - bits + moved
    noise = None
    if query.noise is not None and record.deployment.noise is not None:
        unknown = np.delete(query.noise, members, axis=0)
        sums = sums + unknown.sum(axis=0)[cells - 1]
        noise = record.deployment.noise.masses(len(unknown)) if len(unknown) else None
    inside = query.occupancy[cells] - 1 - inside_known[cells]
    last = LastBit(
        sums,
        inside,
        int(query.asked[0]) - 1 - corrupted - inside,
        true_yes,
        false_yes,
        noise,
        np.where(read, moved, -1),
    )
    yield stay, last.guess(), last.theory()


def _bits(mechanism: LocalMechanism, encoded: IntArray) -> IntArray:
    """Return the bit about each cell, (…, cells) int64, of encodings or of a tally, (…, *tally_shape)."""
    bits: IntArray = encoded[..., 1] if len(mechanism.tally_shape) == 2 else encoded[..., 1:]
    return bits


def _bit_of(record: CampaignRecord) -> tuple[float, float]:
    """Return p and q of a mechanism that publishes sums of independent bits; raise `NotPlayableError` for others."""
    mechanism = record.mechanism
    if isinstance(mechanism, NoPrivacy):
        return 1.0, 0.0
    if isinstance(mechanism, UnaryEncoding):
        return mechanism.true_yes, mechanism.false_yes
    raise NotPlayableError(NO_NUMBERS)


def _taken_outside(context: AttackContext, query: QueryRecord, places: IntArray) -> QueryRecord:
    """Return the query of all recorded devices as it would be with these targets outside every cell.

    Outside, a sampled device reports 0 in both rounds, and any other device its blank: its first report in both cases.
    """
    whole = context.stored.query(query.number)
    rows = np.flatnonzero(np.isin(whole.recorded.devices, query.recorded.devices[places]))
    first, second = (np.array(reports) for reports in whole.recorded.reports)
    counts = whole.counts.copy()
    counted = whole.recorded.in_time[1, rows]
    np.subtract.at(counts[1], second[rows][counted], 1)
    np.add.at(counts[1], first[rows][counted], 1)
    second[rows] = first[rows]
    return replace(whole, recorded=replace(whole.recorded, reports=[first, second]), counts=counts)


def _two_worlds(event: Mask, world: Mask) -> float:
    """Return an ε lower bound from the frequencies of an event in two worlds, with half of the probability of error."""
    inside, outside = event[world], event[~world]
    if not len(inside) or not len(outside):
        return 0.0
    hits_p, hits_q, alpha = int(inside.sum()), int(outside.sum()), CLAIMING_TOO_MUCH / 2.0
    return epsilon_lower_bound(hits_p=hits_p, trials_p=len(inside), hits_q=hits_q, trials_q=len(outside), alpha=alpha)


def _one_a_cell(query: QueryRecord, *, rng: np.random.Generator) -> IntArray:
    """Return the position of one random target in each cell that has targets, (cells,)."""
    order = rng.permutation(len(query.truth))
    cells, first = np.unique(query.truth[order], return_index=True)
    return order[first[cells > 0]]


def play_drop_out(contexts: Sequence[AttackContext], dropped: str, *, rng: np.random.Generator) -> Iterator[Columns]:
    """Evaluate the attack in which all devices but the target, or only the target, are dropped before round two.

    Others dropped: the counts of both rounds are released. If devices received in one round only are counted in
    neither round, or there is one round, the counts are the target's own; otherwise round one holds all devices. Target
    dropped: differences are released once; a second row, metric "released_twice", is for a server that releases the
    same query with the target and without it. Values that the campaign's release suppresses are not seen. The coalition
    also uses the target's reports that its members received, whether or not they were counted.

    Parameters
    ----------
    contexts
        Attack contexts, one for each choice of corrupted vehicles.
    dropped
        "others" or "target".
    rng
        Breaks ties, and pairs devices for the ε lower bound.

    Raises
    ------
    NotPlayableError, NoLikelihoodError
        If the attack is derived for other mechanisms only; or if a release with noise replaces the counts and the
        coalition reads no report.
    """
    once: list[Guessed] = []
    twice: list[Guessed] = []
    for context in contexts:
        record, prior = context.record, context.prior()
        for query in record.queries:
            if not len(query.truth):
                continue
            observation = context.observe([query.number])
            read = _rounds_read(context, query, observation)
            if record.noised and not read.any():
                raise NotPlayableError(_unpublished(record))
            case = _DropOut(context, query, prior, observation, read, rng)
            if dropped == "others":
                once.append(case.others())
                continue
            mechanism = _sampling(record, ONLY_SAMPLING)
            once.append(case.target())
            if not record.noised:
                twice.append(case.twice(mechanism))
    for parts, columns in ((once, {}), (twice, {"metric": "released_twice"})):
        score = score_guesses(parts, rng=rng, kept=keeps_randomness(contexts[0].record.mechanism))
        if score is not None:
            yield {**score, **columns}


@dataclass(frozen=True, eq=False)
class _DropOut:
    """One query whose targets, or all devices but the target, are dropped.

    Attributes
    ----------
    context, query, prior
        The context of the attack, one of its queries with the targets, and the coalition's prior.
    observation
        What the coalition observed.
    read
        (rounds, n) bool, which of the targets' reports it reads.
    rng
        Breaks ties under a uniform prior.
    """

    context: AttackContext
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

    def others(self) -> Guessed:
        """Return the guesses if all devices but the target are dropped."""
        record, query, read, complete = self.context.record, self.query, self.read, self.complete
        mechanism = record.mechanism
        tally, corrupted = self.observation.own_tally(query.number, 1)
        alone = record.deployment.paired or mechanism.rounds == 1
        first_round = 1 if alone else max(int(query.counted[0]) - corrupted, 1)
        known = read.copy()
        if record.publishes_counts:
            later = np.arange(1, mechanism.rounds + 1) > 1
            known |= complete if first_round == 1 else complete & later[:, np.newaxis]
        guesses, theory = self.from_reports(known)
        if record.publishes_counts and first_round > 1:
            hidden, first = np.flatnonzero(complete & ~known[0]), query.counts[0] - tally
            for rows, own in self.own_encodings(hidden):
                given = (first, own[1], self.prior, query.number)
                guesses[rows] = others_dropped(mechanism, *given, first_round=first_round, rng=self.rng)
            success = dropped_others_success(mechanism, self.prior.of(query.number), first_round=first_round)
            theory[hidden] = self.prior.trusted(success, query.number)
        elif record.k == 1 and alone and isinstance(mechanism, SamplingPrivacy):
            hidden = np.flatnonzero(complete & ~read.all(axis=0))
            for rows, own in self.own_encodings(hidden):
                shown = np.maximum((own[1] - own[0])[:, 1:], 0)
                guesses[rows] = self.from_releases(mechanism, rows, shown, None, positive=True)
            theory[hidden] = math.nan
        return Guessed.of(query, guesses, theory, self.prior)

    def target(self) -> Guessed:
        """Return the guesses if only the target is dropped from round two.

        A target of which no report is read has only its first report in the release; it was made without the truth, so
        the expected success is that of the prior.
        """
        guesses, theory = self.from_reports(self.read)
        return Guessed.of(self.query, guesses, theory, self.prior)

    def twice(self, mechanism: SamplingPrivacy) -> Guessed:
        """Return the guesses if the same query is released with the target and without it.

        The two releases differ by the target's own differences, in the cells whose difference is published in at least
        one of them. All of these differences together with one of the target's two reports reveal the other report.
        """
        query, k = self.query, self.context.record.k
        some: Mask = np.logical_or.reduce(self.read)
        differences = (query.counts[1] - query.counts[0])[1:]
        guesses, theory = self.from_reports(self.read | (self.complete & some) if k is None else self.read)
        hidden = np.flatnonzero(self.complete & ~(some if k is None else self.read.all(axis=0)))
        for rows, own in self.own_encodings(hidden):
            mine = (own[1] - own[0])[:, 1:]
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
        return Guessed.of(query, guesses, theory, self.prior)

    def from_releases(
        self, mechanism: SamplingPrivacy, rows: IntArray, own: IntArray, visible: Mask | None, *, positive: bool = False
    ) -> Cells:
        """Return the best guess about some targets from two releases and the report of one round, if it is read."""
        found = np.empty(len(rows), dtype=np.int32)
        given = (self.prior, self.query.number)
        for which, places in patterns(self.read[:, rows].T):
            mine, seen = own[places], None if visible is None else visible[places]
            if any(which):
                round_ = which.index(True) + 1
                reports = np.asarray(self.query.recorded.reports[round_ - 1][rows[places]], dtype=np.int64)
                seen = np.ones(mine.shape, dtype=np.bool_) if seen is None else seen
                keys: dict[str, Any] = {"visible": seen, "positive": positive, "rng": self.rng}
                found[places] = released_twice_and_read(mechanism, mine, reports, round_, *given, **keys)
            else:
                found[places] = released_twice(mechanism, mine, *given, visible=seen, positive=positive, rng=self.rng)
        return found

    def from_reports(self, known: Mask) -> tuple[Cells, FloatArray]:
        """Return the best guess from the known reports of each target, and its expected success.

        Parameters
        ----------
        known
            (rounds, n) bool, which reports are known.

        Returns
        -------
        guesses : (n,) int32
        theory : (n,) float64, NaN where it is not known
        """
        query, prior, mechanism = self.query, self.prior, self.context.record.mechanism
        q = prior.of(query.number)
        guesses = prior.guess(query.number, len(query.truth), rng=self.rng)
        # Where servers are chosen by place, it is not by chance which reports a coalition reads: no theory is known.
        located = self.context.record.deployment.locates
        theory = np.full(len(guesses), math.nan if located else prior.success(query.number))
        for which, rows in patterns(known.T):
            rounds = tuple(round_ for round_, in_round in enumerate(which, start=1) if in_round)
            if rounds:
                reports = [query.recorded.reports[round_ - 1][rows] for round_ in rounds]
                guesses[rows], _ = guess_cells(mechanism, reports, q, rounds, rng=prior.tie_rng(self.rng))
                theory[rows] = prior.trusted(guess_success(mechanism, rounds, q), query.number)
        return guesses, theory

    def own_encodings(self, rows: IntArray) -> Iterator[tuple[IntArray, list[IntArray]]]:
        """Yield some of these targets and the encodings of their own reports, by round, until all were yielded."""
        mechanism = self.context.record.mechanism
        step = max(1, MOST_WORDS // math.prod(mechanism.tally_shape))
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            yield some, [mechanism.encode(reports[some]) for reports in self.query.recorded.reports]


def _rounds_read(context: AttackContext, query: QueryRecord, observation: Observation) -> Mask:
    """Return which of the targets' reports the coalition reads, (rounds, n) bool."""
    read = np.zeros((context.record.mechanism.rounds, len(query.truth)), dtype=np.bool_)
    for row in range(len(read)):
        found = read_round(observation, query.number, row + 1)
        if found is None:
            continue
        if found.handles is not None:
            places = context.places(query.number, found.handle_kind, found.handles)
            read[row, places[places >= 0]] = True
        elif observation.unknown_devices(query.number) == 1 and len(found.content) == 1:
            read[row] = True
    return read


def _sampling(record: CampaignRecord, reason: str) -> SamplingPrivacy:
    mechanism: Any = record.mechanism
    if not isinstance(mechanism, SamplingPrivacy):
        raise NotPlayableError(reason)
    return mechanism


def _unpublished(record: CampaignRecord) -> str:
    if record.noised:
        return f"the published value is not a count but a release, {record.noised}"
    return SOME_REPORTS_MISSING


INFLATION, CRAFTED = "inflation", "crafted_inflation"


def play_poisoning(
    record: CampaignRecord, cell: int, corrupted: int, magnitude: int, *, rng: np.random.Generator
) -> Iterator[Columns]:
    """Evaluate the attack in which corrupted vehicles inflate a cell: the mean change of its estimate, in vehicles.

    The corrupted vehicles are drawn from the targets, of which every query has at least as many.

    Yield one row for well-formed reports, metric "inflation", and one for vectors of any form, "crafted_inflation". If
    servers read plain reports, or reject invalid encodings, crafted vectors are not counted; an adversary that knows
    this sends well-formed reports, so the second row then has the value of the first.

    Raises
    ------
    NoLikelihoodError
        If it is not known which of the mechanism's reports raise the estimate most, or there is no greatest one.
    ParameterError
        If the cell does not exist.
    """
    mechanism = record.mechanism
    chosen = [np.sort(rng.permutation(len(query.truth))[:corrupted]) for query in record.queries]
    if not chosen:
        return
    honest = crafted = Forgery.of_reports(mechanism, cell, corrupted)
    if _counted(record):
        crafted = Forgery.of_vectors(mechanism, cell, corrupted, magnitude=magnitude)
    for metric, forgery in ((INFLATION, honest), (CRAFTED, crafted)):
        shifts, expected = [], []
        for query, rows in zip(record.queries, chosen, strict=True):
            before = remake(record, query, rows, None, rng=rng)
            after = remake(record, query, rows, forgery, rng=rng)
            shifts.append(float(after[cell - 1] - before[cell - 1]))
            inside = int(np.count_nonzero(query.truth[rows] == cell))
            expected.append(corrupted * forgery.per_vehicle - inside if query.all_counted else math.nan)
        theory = float(np.mean(expected))
        yield {
            "trials": len(shifts),
            "theory": None if math.isnan(theory) else theory,
            "metric": metric,
            "value": float(np.mean(shifts)),
            "unit": "vehicles",
        }


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
    own = [reports[rows] for reports in query.recorded.reports]
    counted = received & received.all(axis=0) if aggregator.paired else received
    rest = query.counts - np.stack([mechanism.tally(own[r], where=counted[r]) for r in rounds])
    left = [query.counted[r] - int(counted[r].sum()) for r in rounds]
    if aggregator.paired:
        aggregator.receive_group(rest, np.ones(len(left), dtype=np.bool_), devices=left[0])
    else:
        for r in rounds:
            aggregator.receive_group(rest, np.arange(len(left)) == r, devices=left[r])
    if forgery is not None and forgery.vectors is not None:
        aggregator.receive_vectors(forgery.vectors, received)
    else:
        sent = own if forgery is None or forgery.reports is None else forgery.reports
        for r in rounds:
            aggregator.receive(r + 1, sent[r], received[r])
    for r in rounds:
        aggregator.close_round(r + 1, asked=query.asked[r], answered=left[r] + int(received[r].sum()))
    return aggregator.estimate().count


def _counted(record: CampaignRecord) -> bool:
    """Return whether a vector that is not a valid encoding would be counted; determined by sending one."""
    mechanism = record.mechanism
    rng = np.random.default_rng(0)
    aggregator = record.deployment.aggregator(mechanism, devices=1, rng=rng)
    if aggregator.rule is not None:
        return False
    vectors = np.full((mechanism.rounds, 1, *mechanism.tally_shape), 2, dtype=np.int64)
    try:
        aggregator.receive_vectors(vectors, np.ones((mechanism.rounds, 1), dtype=np.bool_))
    except ParameterError:
        return False
    return True
