"""Budgets divided over a window of queries: what any window uses, what reports reveal, and what it gains."""

import copy
import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from mechanisms.local import (
    AdaptiveBudget,
    KRandomizedResponse,
    OptimisedUnary,
    ParameterError,
    PublicationUnits,
    UniformPopulation,
    estimate_dissimilarity,
    uniform_budget,
)
from mechanisms.privacy import LinkedReports, ReleasedCounts, ReleasedDifferences, Report, Shares, Shuffled

EPSILON = 1.5


def grr(epsilon, cells=2):
    return KRandomizedResponse(cells=cells, epsilon=epsilon)


def budget(window, divides, cells=2):
    return AdaptiveBudget(lambda epsilon: grr(epsilon, cells), EPSILON, window, divides)


def plays(window, queries):
    """Yield, for every sequence of decisions, the units that each query uses: () if it may not or does not publish."""
    for wishes in itertools.product((False, True), repeat=queries):
        units = PublicationUnits(window)
        yield [units.take(query) if wish else () for query, wish in enumerate(wishes, start=1)]


@pytest.mark.parametrize("window", [1, 3])
def test_no_window_uses_more_than_the_budget_whatever_is_published(window):
    half, most = budget(window, "budget"), {}
    for used in plays(window, 3 * window + 1):
        spent = [(half.mechanism(1).epsilon + len(u) * EPSILON / (2 * window)) for u in used]
        for length in range(1, len(used) + 1):
            sums = [sum(spent[start : start + length]) for start in range(len(used) - length + 1)]
            most[length] = max(most.get(length, 0.0), *sums)
    for length, spent in most.items():
        claimed = half.claim(LinkedReports(queries=length)).epsilon
        assert spent <= claimed * (1 + 1e-12)
        if length <= window:  # attained: nothing is published before, then all that was saved
            assert spent == pytest.approx(claimed)
    assert most[window] == pytest.approx(EPSILON)


@pytest.mark.parametrize("window", [1, 3])
def test_each_group_answers_at_most_once_in_a_window(window):
    parts = budget(window, "population")
    for used in plays(window, 3 * window + 1):
        last = {}
        for query, units in enumerate(used, start=1):
            answering = (*parts.groups(query), *parts.groups(query, units))
            assert len(set(answering)) == len(answering)
            for group in answering:
                assert query - last.get(group, -window) >= window
                assert 0 <= group < 2 * window
                last[group] = query


def answers(schedule, query, units, cell, group):
    """Return each answer of a device in a cell to a question, None if its group is not asked, and the probability.

    `units` are those of a publication question; None for the dissimilarity question.
    """
    if schedule.divides == "population" and group not in schedule.groups(query, units):
        return [(None, 1.0)]
    one = schedule.mechanism(1 if units is None else len(units))
    return [(output, one.true_yes if output == cell else one.false_yes) for output in range(one.symbols)]


def report_law(schedule, journey, decide, group):
    """Return the probability of everything that one device reports, by the sequence of reports."""
    states = [((), 1.0, PublicationUnits(schedule.window))]
    for query, cell in enumerate(journey, start=1):
        after = []
        for seen, chance, units in states:
            asks = query > 1 and units.available(query)
            first = answers(schedule, query, None, cell, group) if asks else [(None, 1.0)]
            for output, likely in first:
                told, kept = (*seen, output), copy.deepcopy(units)
                publishes = query == 1 or (units.available(query) and decide(told))
                taken = kept.take(query) if publishes else ()
                second = answers(schedule, query, taken, cell, group) if taken else [(None, 1.0)]
                after += [((*told, last), chance * likely * share, kept) for last, share in second]
        states = after
    return {seen: chance for seen, chance, _ in states}


@pytest.mark.parametrize("divides", ["budget", "population"])
@pytest.mark.parametrize(("window", "queries"), [(2, 3), (1, 2)])
@pytest.mark.parametrize("rule", [sum, lambda seen: seen[-1], lambda _: 1, lambda seen: len(seen) // 2])
def test_the_law_of_all_reports_satisfies_the_claim(divides, window, queries, rule):
    """By enumeration of every report of one device, where what is asked next depends on its own earlier reports."""
    schedule = budget(window, divides)

    def decide(seen):
        return rule([output or 0 for output in seen]) % 2 == 1

    claim = schedule.claim(LinkedReports(queries=queries))
    worst = 0.0
    for one, other in [((1,) * queries, (2,) * queries), ((0, 1, 2)[:queries], (1, 2, 0)[:queries])]:
        for group in range(2 * window if divides == "population" else 1):
            p, q = (report_law(schedule, journey, decide, group) for journey in (one, other))
            assert p.keys() == q.keys()
            assert sum(p.values()) == pytest.approx(1.0)
            worst = max(worst, *(abs(math.log(p[seen] / q[seen])) for seen in p))
            for epsilon in (0.0, 0.3, 0.8, 1.2, 2.0):
                delta = sum(max(0.0, p[seen] - math.exp(epsilon) * q[seen]) for seen in p)
                assert delta <= claim.delta(epsilon) + 1e-12
    assert worst <= claim.epsilon * (1 + 1e-12)
    if divides == "population":
        assert worst == pytest.approx(claim.epsilon) or queries > window


EPSILONS = (0.0, 0.3, 0.8, 1.2, 2.0, 2.9)


def divergence(p, q, epsilon):
    return sum(max(0.0, chance - math.exp(epsilon) * q.get(seen, 0.0)) for seen, chance in p.items())


def uniform_laws(window, queries, of_group):
    """Yield the laws of what is seen under two journeys that differ at every query, by enumeration of the groups.

    `of_group(schedule, journey, group)` returns the law of what is seen of a device in the group.
    """
    schedule = UniformPopulation(grr(EPSILON), window)
    for one, other in [((1,) * queries, (2,) * queries), ((0, 1, 2, 0)[:queries], (1, 2, 0, 1)[:queries])]:
        laws = []
        for journey in (one, other):
            law = {}
            for group in range(window):
                for seen, chance in of_group(schedule, journey, group).items():
                    law[seen] = law.get(seen, 0.0) + chance / window
            laws.append(law)
        yield from (laws, laws[::-1])


def reports_of_group(schedule, journey, group):
    """Return the law of all that a device of a group reports, None where it does not answer."""
    law = {(): 1.0}
    for query, cell in enumerate(journey, start=1):
        symbols = range(schedule.mechanism.symbols)
        own = {s: schedule.mechanism.true_yes if s == cell else schedule.mechanism.false_yes for s in symbols}
        answer = own if group in schedule.groups(query) else {None: 1.0}
        law = {(*seen, s): chance * share for seen, chance in law.items() for s, share in answer.items()}
    return law


@pytest.mark.parametrize(("window", "queries"), [(1, 2), (2, 2), (3, 3), (2, 4), (3, 1), (3, 4), (2, 3)])
def test_the_reports_of_a_uniform_population_have_the_claimed_law(window, queries):
    """Each device answers one query of a window: what it reports over w queries reveals ε; exact if w divides T."""
    laws = list(uniform_laws(window, queries, reports_of_group))
    claim = UniformPopulation(grr(EPSILON), window).claim(LinkedReports(queries))
    losses = [math.log(chance / q[seen]) for p, q in laws for seen, chance in p.items()]
    assert max(losses) == pytest.approx(claim.epsilon) == pytest.approx(EPSILON * -(-queries // window))
    assert claim.kind == ("exact" if queries % window == 0 else "bound")
    for epsilon in EPSILONS:
        worst = max(divergence(p, q, epsilon) for p, q in laws)
        assert worst <= claim.delta(epsilon) + 1e-12
        if claim.delta_kind == "exact":
            assert worst == pytest.approx(claim.delta(epsilon), abs=1e-12)
    report = UniformPopulation(grr(EPSILON), window).claim(Report(1, queries))
    assert (report.kind, report.delta(0.3)) == (claim.kind, claim.delta(0.3))


@pytest.mark.parametrize(("window", "queries"), [(1, 1), (2, 2), (2, 3), (3, 3)])
def test_the_counts_of_a_uniform_population_reveal_no_more_than_claimed(window, queries):
    """By enumeration: three devices whose group and reports are drawn, of which one moves; all counts are published."""
    others = (1, 2)

    def counts(schedule, journey, group):
        law = {}
        every = [reports_of_group(schedule, (cell,) * queries, group) for cell in others]  # counted with the device
        for drawn in itertools.product(reports_of_group(schedule, journey, group).items(), *(o.items() for o in every)):
            seen = tuple(
                tuple(sorted(rows)) for rows in zip(*(seen for seen, _ in drawn), strict=True) if None not in rows
            )
            key = (group, seen)
            law[key] = law.get(key, 0.0) + math.prod(chance for _, chance in drawn)
        return law

    schedule = UniformPopulation(grr(EPSILON), window)
    for view in (ReleasedCounts(None, queries, 3), Shuffled(1, 3, queries)):
        claim = schedule.claim(view)
        assert claim.kind == "bound"
        for p, q in uniform_laws(window, queries, counts):
            assert max(math.log(chance / q[seen]) for seen, chance in p.items()) <= claim.epsilon * (1 + 1e-12)
            for epsilon in EPSILONS:
                assert divergence(p, q, epsilon) <= claim.delta(epsilon) + 1e-12


@pytest.mark.parametrize("divides", ["budget", "population"])
def test_claims_of_all_views(divides):
    schedule = budget(12, divides)
    assert schedule.claim(LinkedReports(queries=12)).epsilon == pytest.approx(EPSILON)
    assert schedule.claim(LinkedReports(queries=24)).epsilon == pytest.approx(2 * EPSILON)
    assert schedule.claim(LinkedReports(queries=25)).epsilon == pytest.approx(
        EPSILON * 25 / 12 if divides == "budget" else 3 * EPSILON
    )
    linked = schedule.claim(LinkedReports(queries=12))
    assert linked.kind == "bound"
    for view in (
        ReleasedCounts(100, queries=12),
        ReleasedCounts(100, queries=12, counted=10_000),
        Shuffled(2, 10_000, queries=12),
        Shares(2, 2, queries=12),
    ):
        claim = schedule.claim(view)
        assert (claim.epsilon, claim.delta(0.5)) == (linked.epsilon, linked.delta(0.5))
    assert schedule.claim(Shares(1, 2, queries=12)).epsilon == 0.0
    assert schedule.claim(ReleasedDifferences(5)).kind == "unknown"


def test_parts_of_a_budget_must_be_in_the_mechanism_range():
    assert uniform_budget(1.0, 12) == pytest.approx(1 / 12)
    with pytest.raises(ParameterError, match="window"):
        uniform_budget(1.0, 0)
    with pytest.raises(ParameterError, match="epsilon"):
        AdaptiveBudget(grr, 1e-4, 100, "budget")


@pytest.mark.parametrize(("cells", "counted"), [(3, 4000), (40, 4000), (3, 400)])
def test_dissimilarity_is_unbiased(cells, counted):
    """Within five standard errors of the mean over independent draws; the noise is far above the difference."""
    rng, mechanism, asked = np.random.default_rng(3), grr(0.2, cells), 4000
    truth = rng.multinomial(asked, np.full(cells + 1, 1 / (cells + 1)))
    release = truth[1:] + rng.normal(0.0, 30.0, size=cells)
    found = []
    for _ in range(1000):
        sample = rng.multivariate_hypergeometric(truth, counted)
        share = mechanism.sample_counts(sample, rng=rng)[0, 1:] / counted
        counts = asked * (share - mechanism.false_yes) / (mechanism.true_yes - mechanism.false_yes)
        found.append(estimate_dissimilarity(mechanism, counts, release, counted=counted, asked=asked))
    exact = np.mean((truth[1:] - release) ** 2)
    assert abs(np.mean(found) - exact) <= 5 * np.std(found) / np.sqrt(len(found))


def test_nothing_received_publishes_nothing():
    schedule, release = budget(4, "population"), np.zeros(2)
    moved = estimate_dissimilarity(schedule.mechanism(1), release, release + 5.0, counted=0, asked=10)
    assert moved == -math.inf
    assert not schedule.publishes(math.inf, release, units=1, asked=2)  # a quarter of a device would answer


def mean_squared_errors(truths, window, epsilon):
    """Return the mean squared errors of LBU, LBA and LPA on a stream of truths, all devices in their groups."""
    rng, cells = np.random.default_rng(11), truths.shape[1] - 1

    def make(of):
        return OptimisedUnary(cells=cells, epsilon=of)

    def ask(mechanism, truth, share):
        asked = int(truth.sum())
        counted = round(asked * share)
        sample = rng.multivariate_hypergeometric(truth, counted)
        drawn = mechanism.sample_counts(sample, rng=rng)
        return mechanism.estimate(drawn, counted=[counted], asked=[asked]).count, counted, asked

    uniform = [ask(make(uniform_budget(epsilon, window)), truth, 1.0)[0] for truth in truths]
    released = {"uniform": uniform}
    for divides in ("budget", "population"):
        schedule, units, stream = AdaptiveBudget(make, epsilon, window, divides), PublicationUnits(window), []
        for query, truth in enumerate(truths, start=1):
            saved = units.available(query)
            if stream and saved:
                counts, counted, asked = ask(schedule.mechanism(1), truth, schedule.answering(1))
                moved = estimate_dissimilarity(schedule.mechanism(1), counts, stream[-1], counted=counted, asked=asked)
                publishes = schedule.publishes(moved, stream[-1], units=saved, asked=asked)
            else:
                publishes = not stream
            if publishes:
                taken = len(units.take(query))
                stream.append(ask(schedule.mechanism(taken), truth, schedule.answering(taken))[0])
            else:
                stream.append(stream[-1])
        released[divides] = stream
    return {name: float(np.mean((np.array(rows) - truths[:, 1:]) ** 2)) for name, rows in released.items()}


@pytest.mark.parametrize(
    ("cells", "ratio"), [*(pytest.param(*pair, marks=pytest.mark.slow) for pair in ((8, 0.73), (16, 0.61))), (64, 0.26)]
)
def test_absorption_errs_less_than_a_uniform_budget_on_a_slow_stream(cells, ratio):
    """The truth drifts by a fifth in 240 queries; with many cells the dissimilarity is known well enough to gain.

    The page on budgets, docs/how/over_time.md, states the ratios.
    """
    devices, queries = 20_000, 240
    drift = np.linspace(0.0, 0.2, queries)[:, np.newaxis]
    first, last = np.full(cells + 1, 1 / (cells + 1)), np.linspace(1.0, 3.0, cells + 1) / (2 * (cells + 1))
    truths = np.floor(devices * ((1 - drift) * first + drift * last)).astype(np.int64)
    truths[:, 0] += devices - truths.sum(axis=1)
    errors = mean_squared_errors(truths, window=12, epsilon=1.0)
    assert errors["budget"] / errors["uniform"] == pytest.approx(ratio, abs=0.005)
    assert errors["population"] < 0.2 * errors["budget"]
    assert f"{ratio:g}" in (Path(__file__).parents[2] / "docs" / "how" / "over_time.md").read_text(encoding="utf-8")
