"""Claims of the binary query mechanisms against brute force: the whole matrix of device answers."""

import dataclasses
import math

import numpy as np
import pytest
from binary_query_cases import QUESTIONS
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_divergences import matrix_delta, matrix_epsilon

from mechanisms.local.yes_no import AnonymizedLocal
from mechanisms.local.yes_no_rounds import AnonymizedDeniable
from mechanisms.privacy import LinkedReports, ReleasedCounts, Report, Shares, Shuffled

EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, math.inf)


def whole_matrix(yes, no, cells):
    """The answers about all cells jointly, for a device outside and in each: (cells + 1, answers ** cells)."""
    rows = []
    for truth in range(cells + 1):
        row = np.ones(1)
        for cell in range(1, cells + 1):
            row = np.outer(row, yes if cell == truth else no).ravel()
        rows.append(row)
    return np.array(rows)


def device_distributions(mechanism, view):
    """The distribution of what is observed of a device, from the mechanism's own binary query."""
    binary_query = mechanism.binary_query
    distributions = [{}, {}]
    for answers, masses in zip(binary_query.answers, zip(binary_query.yes, binary_query.no, strict=True), strict=True):
        seen = answers if isinstance(view, LinkedReports) else answers[view.round - 1]
        for distribution, mass in zip(distributions, masses, strict=True):
            distribution[seen] = distribution.get(seen, 0.0) + mass
    return [np.array([distribution[seen] for seen in sorted(distributions[0])]) for distribution in distributions]


def check(mechanism, cells):
    mechanism = dataclasses.replace(mechanism, cells=cells)
    for view in (LinkedReports(), *(Report(r + 1) for r in range(mechanism.rounds))):
        matrix = whole_matrix(*device_distributions(mechanism, view), cells)
        claim = mechanism.claim(view)
        epsilon = matrix_epsilon(matrix)
        assert claim.kind == ("infinite" if math.isinf(epsilon) else "exact")
        assert claim.delta_kind == "exact"
        assert claim.epsilon == pytest.approx(epsilon, abs=1e-9)
        for e in EPSILONS:
            assert claim.delta(e) == pytest.approx(matrix_delta(matrix, epsilon=e), abs=1e-12)


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("cells", [1, 2, 3])
def test_claims_equal_hockey_stick_of_all_truth_pairs(name, cells):
    check(QUESTIONS[name], cells)


shares = st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]) | st.floats(1e-3, 1 - 1e-3)


@settings(deadline=None)
@given(first=st.lists(shares, min_size=6, max_size=6), cells=st.integers(1, 3))
def test_claims_of_any_parameters_of_three_outputs(first, cells):
    one, two, no, *coins = first
    check(
        AnonymizedLocal(
            cells=cells,
            sampling_yes_one=one * 0.5,
            sampling_yes_two=two * 0.5,
            sampling_no=no,
            first_coin=coins[0],
            second_coin=coins[1],
            third_coin=coins[2],
        ),
        cells,
    )


@settings(deadline=None)
@given(parts=st.lists(shares, min_size=6, max_size=6), shift=st.floats(0.01, 1.0))
def test_claims_of_any_parameters_of_three_rounds(parts, shift):
    y1, y2, n1, n2, onward, onward_yes = parts
    check(
        AnonymizedDeniable(
            cells=1,
            shift=shift,
            yes_second=y1,
            yes_third=y2 * (1 - y1),
            no_second=n1,
            no_third=n2 * (1 - n1),
            onward=onward,
            onward_yes=onward_yes,
        ),
        1,
    )


@pytest.mark.parametrize("name", QUESTIONS)
def test_answers_have_the_claimed_distribution(name):
    """One device at a time, all rounds jointly: the frequencies of the observed answers, by a chi-square test."""
    mechanism = dataclasses.replace(QUESTIONS[name], cells=1)
    rng, repeats = np.random.default_rng(81), 40_000
    for cell, distribution in ((1, mechanism.binary_query.yes), (0, mechanism.binary_query.no)):
        truth = np.full(repeats, cell, dtype=np.int32)
        coins = mechanism.toss(mechanism.enrol(repeats, rng=rng), rng=rng)
        seen = np.stack(
            [mechanism.answer(r + 1, truth, coins).to_dense()[:, 0] for r in range(mechanism.rounds)], axis=1
        )
        counts = np.array([(seen == answers).all(axis=1).sum() for answers in mechanism.binary_query.answers])
        assert counts.sum() == repeats
        expected = repeats * np.array(distribution)
        assert not counts[expected == 0].any()
        possible = expected > 0
        scores = ((counts - expected)[possible] ** 2 / expected[possible]).sum()
        freedom = possible.sum() - 1
        # A chi-square this far beyond its mean has probability below e^−14 (Laurent and Massart 2000, lemma 1).
        assert scores <= freedom + 2 * math.sqrt(14 * freedom) + 2 * 14


@pytest.mark.parametrize("name", ["warner", "anonymized, best", "cancelling", "deniable", "deniable, both ways"])
def test_queries_compose(name):
    mechanism = QUESTIONS[name]
    once, thrice = (mechanism.claim(LinkedReports(queries=q)) for q in (1, 3))
    assert thrice.epsilon == pytest.approx(3 * once.epsilon) or once.epsilon == thrice.epsilon == math.inf
    for epsilon in (0.5, 2.0):
        assert once.delta(epsilon) - 1e-9 <= thrice.delta(epsilon) <= min(1.0, 3 * once.delta(epsilon / 3)) + 1e-6


@pytest.mark.parametrize("name", QUESTIONS)
def test_derived_views_reveal_no_more_than_linked_reports(name):
    """Counts, shares and shuffled reports derive from the device's reports and from values independent of its truth."""
    mechanism = QUESTIONS[name]
    linked, entering = (mechanism.claim(LinkedReports(queries=2, adjacency=a)) for a in ("move", "enter_leave"))
    assert mechanism.claim(Report(mechanism.rounds + 1)).kind == "unknown"
    assert mechanism.claim(Shuffled(mechanism.rounds + 1, 100)).kind == "unknown"
    assert mechanism.claim(Shares(1, 2, queries=2)).delta(0.0) == 0.0
    views = [(ReleasedCounts(crowd=3, queries=2, adjacency="move"), linked), (Shares(2, 2, queries=2), linked)]
    views.append((ReleasedCounts(crowd=3, queries=2), entering))
    views += [
        (Shuffled(r, 100, queries=2), mechanism.claim(Report(r, queries=2))) for r in range(1, mechanism.rounds + 1)
    ]
    for view, reports in views:
        claim = mechanism.claim(view)
        if claim.kind == "unknown":  # no finite ε to start from
            assert not math.isfinite(reports.epsilon)
            continue
        assert claim.epsilon == pytest.approx(reports.epsilon) or claim.epsilon == reports.epsilon
        for epsilon in (0.0, 0.3, 1.0):
            assert claim.delta(epsilon) <= reports.delta(epsilon) + 1e-12
    single = mechanism.claim(Report(1))
    if 0.0 < single.epsilon < math.inf:  # many devices hide a report, but 100 of them do not
        crowd = mechanism.claim(Shuffled(1, 100_000))
        assert crowd.delta(single.epsilon / 2) < single.delta(single.epsilon / 2)
