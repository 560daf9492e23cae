"""The papers' constructions as tables agree with the hand-written mechanisms, and with the equations."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.local import BinarySamplingPrivacy, RandomizedResponse, SamplingPrivacy
from mechanisms.privacy import LinkedReports, ReleasedCounts, Report
from mechanisms.protocols import (
    Estimator,
    Protocol,
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
PEOPLE = {"no": 1000, "yes": 70}
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


@pytest.mark.parametrize("make", ["response", "sampling"])
def test_claims_about_two_cells_agree(make):
    """A table of answers about both cells: the claims of the hand-written forms for V = 2."""
    if make == "response":
        one, mechanism = (
            randomized_response(first_coin=0.8, second_coin=0.2),
            RandomizedResponse(cells=2, first_coin=0.8, second_coin=0.2),
        )
    else:
        one, mechanism = (
            binary_sampling_privacy(sampling=0.45, blank_zero=0.2),
            BinarySamplingPrivacy(cells=2, sampling=0.45, blank_zero=0.2),
        )
    truths = {"outside": ("no", "no"), "cell 1": ("yes", "no"), "cell 2": ("no", "yes")}
    distributions = {
        kind: {
            tuple(a + b for a, b in zip(x, y, strict=True)): p * q
            for (x, p), (y, q) in itertools.product(one.law(first).items(), one.law(second).items())
        }
        for kind, (first, second) in truths.items()
    }
    outputs = [[a + b for a, b in itertools.product(o, o)] for o in one.outputs]
    protocol = Protocol.from_laws("both cells", distributions, outputs=outputs)
    for view in (Report(one.rounds), LinkedReports()):
        check_same_claim(protocol_claim(protocol, view), mechanism.claim(view))


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


def proportion(protocol, output):
    """The estimator from one output's count and N: (C − qN)/(p − q)."""
    return best_estimator(Tallies.by_round(protocol, asked=True).only(f"C1[{output}]", "N"), "yes")


SILENT_RATES = {
    "sampling and noise": (
        sampling_and_noise(sampling=0.3, sampling_no=0.1, says="value"),
        (0, 0.3, 0.7),
        (0.1, 0, 0.9),
    ),
    "plausible deniability": (
        sampled_response(sampling=0.3, sampling_no=0.1, first_coin=0.8, second_coin=0.2),
        (0.3 * 0.16, 0.3 * 0.84, 0.7),
        (0.1 * 0.96, 0.1 * 0.04, 0.9),
    ),
    "yes, no and ⊥": (
        anonymized_local(
            sampling_yes_one=0.3, sampling_yes_two=0.2, sampling_no=0.1, first_coin=0.9, second_coin=0.4, third_coin=0.3
        ),
        (0.3 * 0.1 + 0.2 * 0.6, 0.3 * 0.9 + 0.2 * 0.4, 0.5),
        (0.1 * 0.7, 0.1 * 0.3, 0.9),
    ),
}


@pytest.mark.parametrize("name", SILENT_RATES)
def test_three_estimators_with_abstention(name):
    """ALP eqs 2-7 and lemmas 1-6: (count − q·N)/(p − q), variance [p(1 − p)Y + q(1 − q)(N − Y)]/(p − q)²."""
    protocol, yes, no = SILENT_RATES[name]
    variances = []
    for output, p, q in zip(("0", "1", "⊥"), yes, no, strict=True):
        assert float(protocol.probability("yes", [(output,)])) == pytest.approx(p, **CLOSE)
        assert float(protocol.probability("no", [(output,)])) == pytest.approx(q, **CLOSE)
        estimator = proportion(protocol, output)
        assert float(estimator.coefficients[f"C1[{output}]"]) == pytest.approx(1 / (p - q), **CLOSE)
        assert float(estimator.coefficients["N"]) == pytest.approx(-q / (p - q), **CLOSE)
        variances.append((p * (1 - p) * 70 + q * (1 - q) * 1000) / (p - q) ** 2)
        assert float(estimator.variance(PEOPLE)) == pytest.approx(variances[-1], rel=1e-12)
    # Their best combination is at least as good as the best of the three.
    together = best_estimator(Tallies.by_round(protocol), "yes", population=PEOPLE)
    assert float(together.variance(PEOPLE)) <= min(variances)


def test_noise_of_one_rate_tells_nothing():
    """SP's toy 1, which is the text under ALP eq 2."""
    noise = sampling_and_noise(sampling=0.3)
    assert noise.probability("no", [("1",)]) == noise.probability("yes", [("1",)]) == Fraction(3, 10)


def test_warner_is_randomized_response_with_coin_one_half():
    """The truth with t: first coin 2t − 1, second coin ½."""
    assert warner(truthful=0.75).laws == randomized_response(first_coin=0.5, second_coin=0.5).laws


def test_expected_counts_of_the_first_attempt():
    """ALP eqs 32-35; eqs 34 and 35 have π_⊥2 in place of the π_⊥1 of eqs 28-31."""
    base, y, n, yes, total = 0.4, 0.3, 0.1, 70, 1070
    seen = Tallies.by_round(anonymized_first_attempt(base=base, shift_yes=y, shift_no=n)).expected(PEOPLE)
    shift = y * yes + n * total - n * yes
    assert {label: float(v) for label, v in seen.items()} == pytest.approx(
        {
            "C1[⊥1]": base * total + shift,
            "C2[⊥1]": base * total - shift,
            "C1[⊥2]": (1 - base) * total - shift,
            "C2[⊥2]": (1 - base) * total + shift,
        }
    )


def test_expected_counts_of_cancelling():
    """ALP eqs 40-45 with π_Y = π_N; eq 45 repeats the label of 42 and means B."""
    stay, moved = (0.3, 0.2, 0.3), 0.2
    seen = Tallies.by_round(anonymized_cancelling(shift=moved, stay=stay)).expected(PEOPLE)
    assert [float(v) for v in seen.values()] == pytest.approx(
        [
            stay[0] * 1070 + moved * 70,
            stay[1] * 1070 + moved * 1000,
            stay[2] * 1070,
            stay[0] * 1070,
            stay[1] * 1070,
            stay[2] * 1070 + moved * 70 + moved * 1000,
        ]
    )


FEW, MANY = {"no": 10**3, "yes": 100}, {"no": 10**5, "yes": 100}
# Parameters in tenths at which the construction has its known standard errors, rounded; other choices exist.
DENIABLE = {"shift": 0.2, "yes_second": 0.6, "yes_third": 0.4, "no_second": 0.7, "no_third": 0.3, "onward": 0.6}


def solved_backwards(shift, y1, n1, n2, c):
    """YES = [(B − A at ⊥2) − n₁/(n₂c)·(C − B at ⊥2)]/(s·y₁), this project's reading of ALP eqs 47-55."""
    shift, y1, n1, n2, c = (Fraction(str(v)) for v in (shift, y1, n1, n2, c))
    ratio = n1 / (n2 * c)
    return {
        "C1[⊥2]": -1 / (shift * y1),
        "C2[⊥2]": (1 + ratio) / (shift * y1),
        "C3[⊥2]": -ratio / (shift * y1),
    }


def test_expected_counts_of_three_answers():
    """ALP eqs 47-55 as corrected: a share s of all devices is shifted."""
    stay = (0.3, 0.25, 0.25)
    seen = Tallies.by_round(anonymized_deniable(**DENIABLE, stay=stay)).expected(PEOPLE)
    first, second, third = (p * 1070 for p in stay)
    shifted = {"yes": 0.2 * 70, "no": 0.2 * 1000}
    f1 = 0.6 * shifted["yes"] + 0.7 * shifted["no"]
    f2 = 0.4 * shifted["yes"] + 0.3 * shifted["no"]
    on = 0.6 * 0.3 * shifted["no"]
    everybody = sum(shifted.values())
    assert [float(v) for v in seen.values()] == pytest.approx(
        [
            *(first + everybody, second, third),
            *(first + everybody - f1 - f2, second + f1, third + f2),
            *(first + everybody - f1 - f2, second + f1 + on, third + f2 - on),
        ]
    )


def test_error_of_three_answers_solved_backwards():
    """ALP sec VII-B: σ about 220 and 2,180 at NO = 10³ and 10⁵, with s = .2 and 100 Yes-holders.

    The variance a No-holder adds is [n₁ + n₁²/(n₂c)]/(s·y₁²), a Yes-holder 1/(s·y₁) − 1.
    """
    tallies = Tallies.by_round(anonymized_deniable(**DENIABLE))
    backwards = Estimator.from_coefficients(tallies, "yes", solved_backwards(0.2, 0.6, 0.7, 0.3, 0.6))
    spread = backwards.variance_by_kind()
    assert float(spread["no"]) == pytest.approx((0.7 + 0.49 / 0.18) / (0.2 * 0.36), rel=1e-12)
    assert float(spread["yes"]) == pytest.approx(1 / 0.12 - 1, rel=1e-12)
    assert [round(backwards.std_error(people)) for people in (FEW, MANY)] == [220, 2180]


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


def test_figures_of_item_8_with_refresh():
    """N = 10⁵, V = 100, Y = 200, equal blanks, π_s = .45, by a table of one cell and of all others as another.

    Difference, λ and round two alone: figures from a simulation of unstated length, so within 2 % of the exact.
    An estimator from the tally of *pairs* of reports has none of that noise: 15.6 to 16.4 at every ρ.
    """
    known = {
        0: ((15.6, 15.6, 54.0), (15.63, 15.63, 53.98, 15.62)),
        0.1: ((28.1, 27.6, 54.0), (27.87, 27.39, 53.98, 15.70)),
        0.5: ((53.7, 47.3, 54.0), (53.92, 47.35, 53.98, 16.04)),
        1: ((74.5, 53.8, 53.8), (74.63, 53.98, 53.98, 16.45)),
    }
    for refresh, (figures, exact) in known.items():
        protocol = sampling_privacy(
            cells=2, sampling=0.45, blank=["11/2020", "1089/2020"], blank_zero="11/2020", refresh=refresh
        )
        tallies = Tallies.by_round(protocol)
        people = {"cell 1": 200, "cell 2": 10**5 - 200}
        both = tallies.only("C2[1]", "C1[1]", "N")
        errors = (
            Estimator.from_coefficients(both, "cell 1", {"C2[1]": "20/9", "C1[1]": "-20/9"}),
            best_estimator(both, "cell 1", population={"outside": 1}),
            best_estimator(tallies.only("C2[1]", "N"), "cell 1"),
        )
        assert [e.std_error(people) for e in errors] == pytest.approx(figures, rel=0.02)
        pairs = best_estimator(Tallies.linked(protocol), "cell 1", population=people)
        assert [round(e.std_error(people), 2) for e in (*errors, pairs)] == list(exact)


def test_item_8_epsilon_formula_omits_the_outside_device():
    """With π_0 small and ρ near 1 the rarest pair is (0, 0), not (0, v): 4.61 where the formula gives 3.03."""
    protocol = sampling_privacy(cells=2, sampling=0.45, blank_zero=0.05, refresh=1)
    exact = protocol_claim(protocol, LinkedReports()).epsilon
    mechanism = SamplingPrivacy(cells=2, sampling=0.45, blank_zero=0.05, refresh=1)
    check_same_claim(protocol_claim(protocol, LinkedReports()), mechanism.claim(LinkedReports()))
    assert exact == pytest.approx(math.log1p(0.45 * 0.55 / 0.05**2), rel=1e-12)
    assert round(exact, 2) == 4.61
    assert round(math.log1p(0.45 * 0.55 / (0.05 * 0.25)), 2) == 3.03
