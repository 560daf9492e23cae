"""The papers' constructions as tables agree with the hand-written mechanisms, and with the equations."""

import math
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.local import (
    AnonymizedCancelling,
    AnonymizedDeniable,
    AnonymizedFirstAttempt,
    AnonymizedLocal,
    BinarySamplingPrivacy,
    RandomizedResponse,
    SampledResponse,
    SamplingAndNoise,
    SamplingPrivacy,
    Warner,
)
from mechanisms.privacy import LinkedReports, ReleasedCounts, Report
from mechanisms.protocols import (
    Estimator,
    Tallies,
    anonymized_cancelling,
    anonymized_deniable,
    anonymized_first_attempt,
    anonymized_local,
    best_estimator,
    binary_sampling_privacy,
    growth_floor,
    protocol_claim,
    randomized_response,
    sampled_response,
    sampling_and_noise,
    sampling_privacy,
    warner,
)

EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, math.inf)
CLOSE = {"rel": 1e-12, "abs": 1e-12}


def check_same_claim(one, other):
    assert one.kind == other.kind
    assert one.epsilon == pytest.approx(other.epsilon, **CLOSE)
    for epsilon in EPSILONS:
        assert one.delta(epsilon) == pytest.approx(other.delta(epsilon), abs=1e-12)


def check_same_estimate(mechanism, counts, asked, estimator, shown):
    """The hand-written estimate of these counts, and the algebra's."""
    by_hand = mechanism.estimate(counts, counted=[asked] * mechanism.rounds, asked=[asked] * mechanism.rounds)
    assert by_hand.count[0] == pytest.approx(float(estimator.estimate(shown)), **CLOSE)


SAMPLING = [
    {"cells": 1, "sampling": 0.45},
    {"cells": 3, "sampling": 0.45, "blank_zero": 0.1},
    {"cells": 2, "sampling": 0.3, "blank": [0.5, 0.1]},
    {"cells": 3, "sampling": 0.25, "blank_zero": 0, "blank": 0.25},
]


@pytest.mark.parametrize("given", SAMPLING)
def test_sampling_privacy(given):
    protocol, mechanism = sampling_privacy(**given), SamplingPrivacy(**given)
    tallies, cells = Tallies.by_round(protocol), given["cells"]
    truth = np.array([40, 9, 5, 7][: cells + 1])
    population = dict(zip(protocol.kinds, truth.tolist(), strict=True))
    expected = [float(v) for v in tallies.expected(population).values()]
    blanks = mechanism.blanks * truth.sum()
    first = blanks + mechanism.sampling * truth.sum() * (np.arange(cells + 1) == 0)
    assert expected == pytest.approx([*first, *(blanks + mechanism.sampling * truth)], **CLOSE)
    counts = mechanism.sample_counts(truth, rng=np.random.default_rng(5))
    shown = {"C2[1]": int(counts[1, 1]), "C1[1]": int(counts[0, 1])}
    printed = best_estimator(tallies, "cell 1", steady=[kind for kind in protocol.kinds if kind != "cell 1"])
    step = 1 / Fraction(str(given["sampling"]))
    for answers in protocol.answers:  # (C₂ − C₁)/π_s: with one cell the counts of 0 are equivalent
        assert printed.contribution(answers) == step * ((answers[1] == "1") - (answers[0] == "1"))
    check_same_estimate(mechanism, counts, truth.sum(), best_estimator(tallies.only(*shown), "cell 1"), shown)
    assert mechanism.std_error(truth)[0] == pytest.approx(printed.std_error(population), **CLOSE)
    for view in (Report(1), Report(2), LinkedReports()):
        check_same_claim(protocol_claim(protocol, view), mechanism.claim(view))


@pytest.mark.parametrize("given", [{"sampling": 0.45}, {"sampling": 0.3, "blank_zero": 0.1}, {"sampling": 1}])
def test_binary_sampling_privacy(given):
    protocol, mechanism = binary_sampling_privacy(**given), BinarySamplingPrivacy(cells=1, **given)
    tallies, truth = Tallies.by_round(protocol), np.array([40, 9])
    zero, one, sampling = mechanism.faces
    expected = tallies.expected({"no": 40, "yes": 9})
    assert float(expected["C1[1]"]) == pytest.approx(one * 49, **CLOSE)
    assert float(expected["C2[0]"]) == pytest.approx((zero + sampling) * 40 + zero * 9, **CLOSE)
    counts = mechanism.sample_counts(truth, rng=np.random.default_rng(6))
    shown = {"C2[1]": int(counts[1, 0, 1]), "C1[1]": int(counts[0, 0, 1])}
    printed = best_estimator(tallies.only(*shown), "yes", steady=["no"])
    check_same_estimate(mechanism, counts, 49, printed, shown)
    assert mechanism.std_error(truth)[0] == pytest.approx(printed.std_error({"no": 40, "yes": 9}), **CLOSE)
    for view in (Report(1), Report(2), LinkedReports()):
        check_same_claim(protocol_claim(protocol, view), mechanism.claim(view))


@pytest.mark.parametrize("coins", [(0.8, 0.2), (0.85, 0.3), (0.5, 0), (0.8, 0.9)])
def test_randomized_response(coins):
    given = dict(zip(("first_coin", "second_coin"), coins, strict=True))
    protocol, mechanism = randomized_response(**given), RandomizedResponse(cells=1, **given)
    tallies, truth = Tallies.by_round(protocol).only("C1[1]", "N"), np.array([40, 9])
    assert float(tallies.expected({"no": 40, "yes": 9})["C1[1]"]) == pytest.approx(
        40 * mechanism.false_yes + 9 * mechanism.true_yes, **CLOSE
    )
    estimator = best_estimator(tallies, "yes")
    counts = mechanism.sample_counts(truth, rng=np.random.default_rng(7))
    check_same_estimate(mechanism, counts, 49, estimator, {"C1[1]": int(counts[0, 0, 1]), "N": 49})
    assert mechanism.std_error(truth)[0] == pytest.approx(estimator.std_error({"no": 40, "yes": 9}), **CLOSE)
    for view in (Report(1), LinkedReports()):
        check_same_claim(protocol_claim(protocol, view), mechanism.claim(view))
    again = sampled_response(sampling=1, **given)
    assert again.laws == protocol.laws


def test_queries_are_composed_and_other_views_are_not_claimed():
    protocol = randomized_response(first_coin=0.5, second_coin=0.5)
    mechanism = RandomizedResponse(cells=1, first_coin=0.5, second_coin=0.5)
    check_same_claim(protocol_claim(protocol, Report(1, queries=3)), mechanism.claim(Report(1, queries=3)))
    blind = protocol_claim(sampling_privacy(cells=2, sampling=0.4), Report(1, queries=9))
    assert blind.kind == "exact"
    assert blind.delta(0) == 0
    linked_claim = protocol_claim(sampling_privacy(cells=1, sampling=0.5), LinkedReports(queries=2))
    assert linked_claim.kind == "infinite"
    assert linked_claim.delta(3) == pytest.approx(0.75, abs=1e-6)
    assert protocol_claim(protocol, Report(2)).kind == "unknown"
    assert protocol_claim(protocol, ReleasedCounts(5)).kind == "unknown"


def test_warner_is_randomized_response_with_coin_one_half():
    """The truth with t: first coin 2t − 1, second coin ½."""
    assert warner(truthful=0.75).laws == randomized_response(first_coin=0.5, second_coin=0.5).laws


FEW, MANY = {"no": 10**3, "yes": 100}, {"no": 10**5, "yes": 100}
# Parameters in tenths at which the construction has its known standard errors, rounded; other choices exist.
DENIABLE = {"shift": 0.2, "yes_second": 0.6, "yes_third": 0.4, "no_second": 0.7, "no_third": 0.3, "onward": 0.6}


def test_least_error_of_three_answers_is_a_third():
    """The same tallies allow errors of 85 and 769, the minimum of all estimators; N − NO alone gives 1,636."""
    protocol = anonymized_deniable(**DENIABLE)
    tallies = Tallies.by_round(protocol)
    no = best_estimator(tallies, "no", steady=["yes"])
    rest = best_estimator(tallies.only("N", "C2[⊥2]", "C3[⊥2]"), "yes", steady=["yes"])
    assert rest.coefficients == {"N": 1, "C2[⊥2]": -no.coefficients["C2[⊥2]"], "C3[⊥2]": -no.coefficients["C3[⊥2]"]}
    assert rest.variance_by_kind() == no.variance_by_kind()
    assert round(rest.std_error(MANY)) == 1636
    best = [best_estimator(tallies, "yes", population=people) for people in (FEW, MANY)]
    assert [round(e.std_error(people)) for e, people in zip(best, (FEW, MANY), strict=True)] == [85, 769]
    floor = growth_floor(protocol, kind="no", other="yes")
    assert floor == best_estimator(tallies, "yes", population={"no": 1}).variance_by_kind()["no"]
    assert best[1].variance_by_kind()["no"] == pytest.approx(float(floor), rel=1e-3)
    # Only Yes-holders have deniability: ⊥1, ⊥3, ⊥2 occurs only for a No-holder.
    linked_claim = protocol_claim(protocol, LinkedReports())
    assert linked_claim.kind == "infinite"
    assert linked_claim.delta(math.inf) == pytest.approx(0.2 * 0.3 * 0.6, abs=1e-15)


BLANKS = {"cells": 3, "sampling": 0.45, "blank_zero": 0.1, "blank": [0.1, 0.15, 0.2]}


@pytest.mark.parametrize("refresh", [0, 0.1, 0.5, 1])
def test_refresh_weight_is_a_control_variate(refresh):
    """Item 8: λ, the variance of the plain difference, and the finite ε and δ of linked reports."""
    protocol = sampling_privacy(**BLANKS, refresh=refresh)
    tallies = Tallies.by_round(protocol)
    sampling, blank, again = Fraction(9, 20), Fraction(1, 10), Fraction(str(refresh))
    redrawn = blank / (1 - sampling)
    weight = (blank * (1 - again) + again * blank**2 / (1 - sampling) - blank**2) / (blank * (1 - blank))
    found = best_estimator(tallies.only("C2[1]", "C1[1]", "N"), "cell 1", population={"outside": 1})
    assert found.coefficients == {
        "C2[1]": 1 / sampling,
        "C1[1]": -weight / sampling,
        "N": -(1 - weight) * blank / sampling,
    }
    plain = Estimator.from_coefficients(tallies, "cell 1", {"C2[1]": 1 / sampling, "C1[1]": -1 / sampling})
    people = {"outside": 900, "cell 1": 70, "cell 2": 30}
    noise = 2 * 1000 * again * blank * (1 - redrawn) / sampling**2
    assert plain.variance(people) == 70 * (1 - sampling) / sampling + noise
    mechanism = SamplingPrivacy(**BLANKS, refresh=refresh)
    assert mechanism.std_error(np.array([900, 70, 30, 0]))[0] <= plain.std_error(people) * (1 + 1e-12)
    claim = protocol_claim(protocol, LinkedReports())
    if refresh == 0:
        assert claim.kind == "infinite"
        return
    check_same_claim(claim, mechanism.claim(LinkedReports()))
    assert claim.epsilon == pytest.approx(math.log1p(0.45 * 0.55 / (refresh * 0.1 * 0.1)), rel=1e-12)
    for epsilon in EPSILONS[:-1]:
        expected = max(0.45 - math.expm1(epsilon) * refresh * 0.1 * 0.1 / 0.55, 0)
        assert claim.delta(epsilon) == pytest.approx(expected, abs=1e-12)


def test_item_8_epsilon_formula_omits_the_outside_device():
    """With π_0 small and ρ near 1 the rarest pair is (0, 0), not (0, v): 4.61 where the formula gives 3.03."""
    protocol = sampling_privacy(cells=2, sampling=0.45, blank_zero=0.05, refresh=1)
    exact = protocol_claim(protocol, LinkedReports()).epsilon
    mechanism = SamplingPrivacy(cells=2, sampling=0.45, blank_zero=0.05, refresh=1)
    check_same_claim(protocol_claim(protocol, LinkedReports()), mechanism.claim(LinkedReports()))
    assert exact == pytest.approx(math.log1p(0.45 * 0.55 / 0.05**2), rel=1e-12)
    assert round(exact, 2) == 4.61
    assert round(math.log1p(0.45 * 0.55 / (0.05 * 0.25)), 2) == 3.03


SILENT, TWICE, THRICE = ("0", "1", "⊥"), ("⊥1", "⊥2"), ("⊥1", "⊥2", "⊥3")
RATES = {"sampling": (51, 100), "sampling_no": (0, 50)}
MOVES = {
    "shift": (5, 100),
    "yes_second": (50, 60),
    "yes_third": (0, 40),
    "no_second": (0, 50),
    "no_third": (30, 50),
    "onward": (60, 100),
}
LOCAL = {
    "sampling_yes_one": (30, 50),
    "sampling_yes_two": (0, 50),
    "sampling_no": (5, 30),
    "first_coin": (80, 100),
    "second_coin": (0, 100),
    "third_coin": (0, 50),
}
ATTEMPT = {"base": (40, 60), "shift_yes": (21, 40), "shift_no": (0, 20)}
# The least and the greatest value of each parameter in hundredths; within these the count of Yes can be estimated.
TABLES = [
    (warner, Warner, ("0", "1"), {"truthful": (55, 100)}),
    (sampling_and_noise, SamplingAndNoise, SILENT, RATES),
    (sampled_response, SampledResponse, SILENT, {**RATES, "first_coin": (5, 100), "second_coin": (0, 100)}),
    (anonymized_local, AnonymizedLocal, SILENT, LOCAL),
    (anonymized_first_attempt, AnonymizedFirstAttempt, TWICE, ATTEMPT),
    (anonymized_cancelling, AnonymizedCancelling, THRICE, {"shift": (5, 100)}),
    (anonymized_deniable, AnonymizedDeniable, THRICE, {**MOVES, "onward_yes": (0, 20)}),
]


@pytest.mark.parametrize(("make", "kind", "outputs", "ranges"), TABLES, ids=[kind.__name__ for _, kind, *_ in TABLES])
def test_random_laws_and_variances_in_floats_equal_the_exact_tables(make, kind, outputs, ranges):
    rng = np.random.default_rng(33)
    for i in range(20):
        given = {field: int(rng.integers(low, high + 1)) / 100 for field, (low, high) in ranges.items()}
        if kind is SamplingAndNoise:
            given["says"] = ("noise", "value")[i % 2]
        protocol, mechanism = make(**given), kind(cells=1, **given)
        query, people = mechanism.binary_query, {"no": 900, "yes": 70}
        answers = [tuple(outputs[output] for output in answer) for answer in query.answers]
        for holder, law in (("no", query.no), ("yes", query.yes)):
            exact = {answer: float(p) for answer, p in protocol.law(holder).items()}
            given_law = {answer: p for answer, p in zip(answers, law, strict=True) if p}
            assert given_law == pytest.approx(exact, rel=1e-12, abs=1e-12), given
        linear = mechanism.linear_estimator
        weights = {
            f"C{r}[{output}]": Fraction(weight)
            for r, row in enumerate(linear.weights, 1)
            for output, weight in zip(outputs, row, strict=True)
        }
        weights["N"] = Fraction(linear.offset)
        counts = Tallies.by_round(protocol, asked=True).counts
        variance = Fraction(0)
        for holder, mean in (("no", 0), ("yes", 1)):
            each = {a: sum(weights[c.label] for c in counts if a in c.answers) for a in protocol.answers}
            law = protocol.law(holder)
            assert float(sum(p * each[a] for a, p in law.items())) == pytest.approx(mean, abs=1e-11), given
            variance += people[holder] * sum(p * (each[a] - mean) ** 2 for a, p in law.items())
        expected = pytest.approx(math.sqrt(variance), rel=1e-9, abs=1e-5)
        assert mechanism.std_error(np.array([900, 70]))[0] == expected, given
