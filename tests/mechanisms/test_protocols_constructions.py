"""The papers' constructions as tables, and the theorem on constant error in random protocols."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms import local
from mechanisms.privacy import LinkedReports, ParameterError, ReleasedCounts, Report
from mechanisms.protocols import Estimator, NotEstimable, Protocol, Tallies, best_estimator, protocol_claim, published
from mechanisms.protocols.theorems import growth_floor, growth_floor_at, no_free_lunch

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
    protocol, mechanism = published.sampling_privacy(**given), local.SamplingPrivacy(**given)
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
    protocol, mechanism = published.binary_sampling_privacy(**given), local.BinarySamplingPrivacy(cells=1, **given)
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


def test_queries_are_composed_and_other_views_are_not_claimed():
    protocol = published.randomized_response(first_coin=0.5, second_coin=0.5)
    mechanism = local.RandomizedResponse(cells=1, first_coin=0.5, second_coin=0.5)
    check_same_claim(protocol_claim(protocol, Report(1, queries=3)), mechanism.claim(Report(1, queries=3)))
    blind = protocol_claim(published.sampling_privacy(cells=2, sampling=0.4), Report(1, queries=9))
    assert blind.kind == "exact"
    assert blind.delta(0) == 0
    linked_claim = protocol_claim(published.sampling_privacy(cells=1, sampling=0.5), LinkedReports(queries=2))
    assert linked_claim.kind == "infinite"
    assert linked_claim.delta(3) == pytest.approx(0.75, abs=1e-6)
    assert protocol_claim(protocol, Report(2)).kind == "unknown"
    assert protocol_claim(protocol, ReleasedCounts(5)).kind == "unknown"


def test_warner_is_randomized_response_with_coin_one_half():
    """The truth with t: first coin 2t − 1, second coin ½."""
    assert published.warner(truthful=0.75).laws == published.randomized_response(first_coin=0.5, second_coin=0.5).laws


FEW, MANY = {"no": 10**3, "yes": 100}, {"no": 10**5, "yes": 100}
# Parameters in tenths at which the construction has its known standard errors, rounded; other choices exist.
DENIABLE = {"shift": 0.2, "yes_second": 0.6, "yes_third": 0.4, "no_second": 0.7, "no_third": 0.3, "onward": 0.6}


def test_least_error_of_three_answers_is_a_third():
    """The same tallies allow errors of 85 and 769, the minimum of all estimators; N − NO alone gives 1,636."""
    protocol = published.anonymized_deniable(**DENIABLE)
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
    protocol = published.sampling_privacy(**BLANKS, refresh=refresh)
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
    mechanism = local.SamplingPrivacy(**BLANKS, refresh=refresh)
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


SILENT, TWICE, THRICE = ("0", "1", "⊥"), ("⊥1", "⊥2"), ("⊥1", "⊥2", "⊥3")
RATES = {"sampling": (51, 100), "sampling_no": (0, 50)}
COINS = {"first_coin": (5, 100), "second_coin": (0, 100)}
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
    (published.warner, local.Warner, ("0", "1"), {"truthful": (55, 100)}),
    (published.sampling_and_noise, local.SamplingAndNoise, SILENT, RATES),
    (published.sampled_response, local.SampledResponse, SILENT, {**RATES, **COINS}),
    (published.anonymized_local, local.AnonymizedLocal, SILENT, LOCAL),
    (published.anonymized_first_attempt, local.AnonymizedFirstAttempt, TWICE, ATTEMPT),
    (published.anonymized_cancelling, local.AnonymizedCancelling, THRICE, {"shift": (5, 100)}),
    (published.anonymized_deniable, local.AnonymizedDeniable, THRICE, {**MOVES, "onward_yes": (0, 20)}),
]


@pytest.mark.parametrize(("make", "kind", "outputs", "ranges"), TABLES, ids=[kind.__name__ for _, kind, *_ in TABLES])
def test_random_laws_and_variances_in_floats_equal_the_exact_tables(make, kind, outputs, ranges):
    rng = np.random.default_rng(33)
    for i in range(20):
        given = {field: int(rng.integers(low, high + 1)) / 100 for field, (low, high) in ranges.items()}
        if kind is local.SamplingAndNoise:
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


FEW_EPSILONS = (0.0, 0.3, 1.0, 3.0, 20.0, math.inf)
PAIRS = [(a, b) for a in "01" for b in "01"]


def protocol_of(*weights):
    """Kinds "no", "yes", … over two rounds of two outputs, with these integer weights of the four pairs of answers."""
    names = ["no", "yes", "third"]
    distributions = {
        kind: {pair: Fraction(w, sum(row)) for pair, w in zip(PAIRS, row, strict=True)}
        for kind, row in zip(names, weights, strict=False)
    }
    return Protocol.from_laws("drawn", distributions, outputs=[("0", "1")] * 2)


rows = st.lists(st.integers(0, 3), min_size=4, max_size=4).filter(any)


def check_no_free_lunch(estimator):
    """Checks the certificate by its own fields and by the claim of the linked view."""
    proof = no_free_lunch(estimator, steady="no")
    protocol = estimator.protocol
    assert protocol.probability("no", proof.event) == 0
    assert protocol.probability(proof.other, proof.event) == proof.delta > 0
    assert proof.delta >= proof.floor > 0
    claim = protocol_claim(protocol, LinkedReports())
    assert claim.kind == "infinite"
    for epsilon in FEW_EPSILONS:
        assert claim.delta(epsilon) >= float(proof.delta) - 1e-12
    return proof


def test_constant_error_distinguishes_in_every_random_protocol():
    """From the rounds' separate tallies, two kinds and three: whenever the coefficient zero is reached."""
    rng = np.random.default_rng(21)
    steady = refuted = grows = 0
    for kinds in (2, 3):
        for _ in range(400):
            weights = rng.integers(0, 4, (kinds, 4)) * rng.integers(0, 2, (kinds, 4))
            if (weights.sum(axis=1) == 0).any():
                continue
            protocol = protocol_of(*weights.tolist())
            tallies = Tallies.by_round(protocol)
            if not (estimator := best_estimator(tallies, "yes")):
                refuted += 1
                continue
            found = best_estimator(tallies, "yes", steady=["no"])
            if found:
                assert found.variance_by_kind()["no"] == 0
                check_no_free_lunch(found)
                steady += 1
            else:
                assert estimator.variance_by_kind()["no"] > 0
                grows += 1
    assert min(steady, refuted, grows) > 50, (steady, refuted, grows)


@given(no=rows, yes=rows)
def test_constant_error_and_distinguishing_are_equivalent_if_linked(no, yes):
    """Two kinds: the best constant-error estimator counts the distinguishing answers; its δ equals the bound."""
    protocol = protocol_of(no, yes)
    found = best_estimator(Tallies.linked(protocol), "yes", steady=["no"], population={"yes": 1})
    distinguishing = sum(
        (p for answers, p in protocol.law("yes").items() if answers not in protocol.law("no")), Fraction(0)
    )
    assert bool(found) == (distinguishing > 0)
    if distinguishing:
        assert found.variance_by_kind() == {"no": 0, "yes": 1 / distinguishing - 1}
        proof = check_no_free_lunch(found)
        assert proof.delta == proof.floor == distinguishing
    else:
        assert isinstance(found, NotEstimable)


@given(no=rows, yes=rows, other=rows, linked=st.booleans(), crowd=st.sampled_from([0, 1, 50]))
def test_no_estimator_grows_more_slowly_than_the_bound(no, yes, other, linked, crowd):
    protocol = protocol_of(no, yes, other)
    tallies = Tallies.linked(protocol) if linked else Tallies.by_round(protocol)
    estimator = best_estimator(tallies, "yes", population={"no": crowd, "yes": 1, "third": 1})
    if not estimator:
        return
    spread = estimator.variance_by_kind()
    assert spread["no"] >= growth_floor(protocol, kind="no", other="yes")
    claim = protocol_claim(protocol, LinkedReports())
    assert float(spread["no"]) >= growth_floor_at(epsilon=claim.epsilon) * (1 - 1e-12)
    for epsilon in FEW_EPSILONS:
        floor = growth_floor_at(epsilon=epsilon, delta=claim.delta(epsilon), other_coefficient=float(spread["yes"]))
        assert float(spread["no"]) >= floor - 1e-12


@given(no=rows, yes=rows)
def test_growth_bound_is_attained_by_linked_tallies_of_two_kinds(no, yes):
    protocol = protocol_of(no, yes)
    if protocol.law("no") == protocol.law("yes"):
        with pytest.raises(ParameterError, match=r"^other must not have the distribution of 'no'"):
            growth_floor(protocol, kind="no", other="yes")
        return
    best = best_estimator(Tallies.linked(protocol), "yes", population={"no": 1})
    assert best.variance_by_kind()["no"] == growth_floor(protocol, kind="no", other="yes")


@pytest.mark.parametrize("sampling", ["1/100", 0.25, 0.45, 0.9, 1])
def test_sampling_privacy_attains_the_bound(sampling):
    """δ = π_s = 1/(1 + (1 − π_s)/π_s): no constant error of this size has a smaller δ (item 9, made exact)."""
    for protocol, kind, other, event in (
        (published.binary_sampling_privacy(sampling=sampling), "no", "yes", ("0", "1")),
        (published.sampling_privacy(cells=3, sampling=sampling), "outside", "cell 2", ("0", "2")),
    ):
        estimator = best_estimator(Tallies.by_round(protocol), other, steady=[kind])
        proof = no_free_lunch(estimator, steady=kind)
        assert proof.event == {event}
        assert proof.other == other
        assert proof.delta == proof.floor == Fraction(str(sampling))


def test_no_free_lunch_for_cancelling_and_deniable():
    protocol = published.anonymized_cancelling(shift=0.2, stay=[0.5, 0.2, 0.1])
    proof = no_free_lunch(best_estimator(Tallies.by_round(protocol), "yes", steady=["no"]), steady="no")
    assert proof.event == {("⊥1", "⊥3")}
    assert proof.probabilities == {"no": 0, "yes": Fraction(1, 5)}
    deniable = published.anonymized_deniable(
        shift=0.2, yes_second=0.4, yes_third=0.4, no_second=0.5, no_third=0.5, onward=0.5
    )
    proof = no_free_lunch(best_estimator(Tallies.by_round(deniable), "no", steady=["yes"]), steady="yes")
    assert proof.event == {("⊥1", "⊥3", "⊥2")}
    assert proof.delta == proof.floor == Fraction(1, 20)


def test_theorem_needs_constant_error():
    estimator = best_estimator(Tallies.by_round(published.randomized_response(first_coin=0.8, second_coin=0.2)), "yes")
    with pytest.raises(ParameterError, match=r"^steady must be a kind with variance coefficient 0, got 'no: 3/50'"):
        no_free_lunch(estimator, steady="no")
    protocol = published.sampling_privacy(cells=2, sampling=0.5)
    steady = best_estimator(Tallies.by_round(protocol), "cell 1", steady=["outside", "cell 2"])
    with pytest.raises(ParameterError, match=r"^other must have another target than 'outside'"):
        no_free_lunch(steady, steady="outside", other="cell 2")
    all_devices = best_estimator(Tallies.by_round(protocol), dict.fromkeys(protocol.kinds, 1))
    with pytest.raises(ParameterError, match=r"^other must have another target"):
        no_free_lunch(all_devices, steady="outside")


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_warner_attains_the_pure_privacy_bound(epsilon):
    """σ ≥ √N/(2·sinh(ε/2)) for every linear unbiased estimate behind ε-DP linked reports."""
    protocol = published.warner(truthful=math.exp(epsilon) / (1 + math.exp(epsilon)))
    assert protocol_claim(protocol, LinkedReports()).epsilon == pytest.approx(epsilon, abs=1e-12)
    coefficient = best_estimator(Tallies.by_round(protocol), "yes").variance_by_kind()["no"]
    assert float(coefficient) == pytest.approx(growth_floor_at(epsilon=epsilon), rel=1e-12)
    assert float(coefficient) == pytest.approx(1 / (4 * math.sinh(epsilon / 2) ** 2), rel=1e-12)


def test_growth_bound_at_its_limits():
    assert growth_floor_at(epsilon=0) == math.inf
    assert growth_floor_at(epsilon=math.inf) == 0
    assert growth_floor_at(epsilon=1, delta=0.5, other_coefficient=1) == 0
    assert growth_floor_at(epsilon=0, delta=0.25) == pytest.approx(0.25 / 0.25)
    with pytest.raises(ParameterError, match=r"^other_coefficient must be a finite number"):
        growth_floor_at(epsilon=1, other_coefficient=math.nan)
    with pytest.raises(ParameterError, match=r"^delta must be a probability"):
        growth_floor_at(epsilon=1, delta=2)
