"""Tables, exact numbers, tallies, estimators and released claims of the protocol algebra."""

import doctest
import itertools
import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.privacy import LinkedReports, ParameterError, released_differences_delta
from mechanisms.protocols import Protocol, Tallies, best_estimator, protocol_claim, released_claim
from mechanisms.protocols.estimator import Contradiction, Estimator, NotEstimable, solve
from mechanisms.protocols.protocol import Face, exact
from mechanisms.protocols.published import (
    anonymized_cancelling,
    anonymized_deniable,
    anonymized_first_attempt,
    anonymized_local,
    binary_sampling_privacy,
    randomized_response,
    sampled_response,
    sampling_and_noise,
    sampling_privacy,
    warner,
)


def test_float_is_read_as_its_decimal():
    assert exact("p", 0.45) == Fraction(9, 20)
    assert exact("p", np.float64(0.1)) == Fraction(1, 10)
    assert exact("p", "1/3") == exact("p", Fraction(1, 3)) == Fraction(1, 3)
    assert exact("p", 1) == 1
    for wrong in (float("nan"), float("inf"), "a third", "1/0", None, True, 1j):
        with pytest.raises(ParameterError, match=r"^p must be"):
            exact("p", wrong)


small = st.integers(-3, 3).map(Fraction)


@given(
    rows=st.integers(1, 4).flatmap(lambda n: st.lists(st.lists(small, min_size=n, max_size=n), min_size=1, max_size=4)),
    data=st.data(),
)
def test_equations_are_solved_or_proved_inconsistent(rows, data):
    right = data.draw(st.lists(small, min_size=len(rows), max_size=len(rows)))
    found = solve(rows, right)
    if isinstance(found, Contradiction):
        weights = found.weights
        assert all(sum(w * row[i] for w, row in zip(weights, rows, strict=True)) == 0 for i in range(len(rows[0])))
        assert sum(w * b for w, b in zip(weights, right, strict=True)) == 1
    else:
        assert [sum(a * x for a, x in zip(row, found, strict=True)) for row in rows] == right
    # Never both: a reachable right-hand side has a solution.
    reached = [sum((a * k for k, a in enumerate(row)), Fraction(0)) for row in rows]
    assert not isinstance(solve(rows, reached), Contradiction)


def test_faces_and_distributions_give_one_table():
    by_face = warner(truthful=0.75)
    by_law = Protocol.from_laws("the same", {"no": {"0": 0.75, "1": 0.25}, "yes": {"1": "3/4", "0": "1/4"}})
    assert by_face.laws == by_law.laws
    assert by_face.kinds == ("no", "yes")
    assert by_face.rounds == 1
    assert by_face.round_law("yes", 1) == {"0": Fraction(1, 4), "1": Fraction(3, 4)}
    assert repr(by_face) == 'Protocol("Warner\'s randomized response", 2 kinds, 1 round of 2 outputs)'


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Protocol.from_laws("p", {}, outputs=[("0",)]), "^laws must hold at least one kind"),
        (lambda: Protocol.from_laws("p", {"no": {"0": 0.5}}), r"^laws\['no'\] must sum to exactly 1"),
        (lambda: Protocol.from_laws("p", {"no": {"0": 0.1 + 0.2, "1": 0.7}}), "write a third as '1/3'"),
        (lambda: Protocol.from_laws("p", {"no": {"0": 1.5, "1": -0.5}}), r"^laws\['no'\] must be a probability"),
        (lambda: Protocol.from_laws("p", {"no": {"0": 1}, "yes": {("0", "1"): 1}}), "^laws must answer the same num"),
        (lambda: Protocol.from_laws("p", {"no": {"2": 1}}, outputs=[("0", "1")]), r"^laws\['no'\] must answer with"),
        (lambda: Protocol.from_faces("p", [Face(1, {"no": "0"}), Face(0, {"yes": "0"})]), "^faces must each have"),
        (lambda: warner(truthful=1.5), r"^truthful must be a probability, 0 to 1, got Fraction\(3, 2\)"),
        (lambda: warner(truthful=float("nan")), "^truthful must be finite, got nan"),
        (lambda: sampling_privacy(cells=0, sampling=0.4), "^cells must be at least 1, got 0"),
        (lambda: sampling_privacy(cells=2, sampling=0), "^sampling must be a probability above 0"),
        (lambda: sampling_privacy(cells=2, sampling=0.4, blank_zero=0.7), "^blank_zero must be at most 1 − sampling"),
        (lambda: sampling_privacy(cells=2, sampling=0.4, blank=[0.5, 0.2]), "^blank must, with blank_zero, sum to"),
        (lambda: sampling_privacy(cells=2, sampling=0.4, blank=[0.5]), "^blank must be a number, or 2 of them"),
        (lambda: warner(truthful=1).round_law("no", 2), "^round must be in 1..1, got 2"),
        (lambda: warner(truthful=1).law("maybe"), r"^kind must be one of \['no', 'yes'\], got 'maybe'"),
        (lambda: Tallies.by_round(warner(truthful=1)).expected({"no": -1}), r"^population\['no'\] must be at least 0"),
        (lambda: Tallies.by_round(warner(truthful=1)).expected({"maybe": 1}), "^population must be one of"),
        (lambda: Tallies.by_round(warner(truthful=1)).only("C2[0]"), "^labels must be among"),
        (lambda: Tallies.by_round(warner(truthful=1)).only(), "^counts must be at least one"),
        (
            lambda: Estimator.from_coefficients(Tallies.by_round(warner(truthful=0.75)), "yes", {"C1[1]": 1}),
            "^coefficients must be unbiased: a device of kind 'no' must add 0 in expectation, got '1/4'",
        ),
        (
            lambda: Estimator.from_coefficients(Tallies.by_round(warner(truthful=0.75)), "yes", {"C9[1]": 1}),
            "^coefficients must be of counts among",
        ),
    ],
)
def test_invalid_protocols_name_field_rule_and_value(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


@pytest.mark.parametrize("linked", [False, True])
def test_expectation_and_covariance_equal_enumeration(linked):
    """Three devices, every combination of their possible answers, weighted by probability."""
    protocol = sampling_privacy(cells=2, sampling=0.45, blank_zero=0.05, blank=[0.2, 0.3], refresh=0.25)
    tallies = Tallies.linked(protocol) if linked else Tallies.by_round(protocol, silent=["2"], asked=True)
    population = {"outside": 1, "cell 1": 2}
    distributions = [protocol.law(kind).items() for kind, n in population.items() for _ in range(n)]
    places = range(len(tallies.counts))
    first = dict.fromkeys(places, Fraction(0))
    second = dict.fromkeys(itertools.product(places, places), Fraction(0))
    for outcome in itertools.product(*distributions):
        mass = math.prod(p for _, p in outcome)
        counts = [sum(answers in count.answers for answers, _ in outcome) for count in tallies.counts]
        for i in places:
            first[i] += mass * counts[i]
            for j in places:
                second[i, j] += mass * counts[i] * counts[j]
    assert list(tallies.expected(population).values()) == list(first.values())
    covariance = tallies.covariance(population)
    assert all(covariance[i][j] == mean - first[i] * first[j] for (i, j), mean in second.items())


def test_tally_labels():
    protocol = sampling_privacy(cells=1, sampling=0.5)
    assert Tallies.by_round(protocol).labels == ("C1[0]", "C1[1]", "C2[0]", "C2[1]")
    assert Tallies.by_round(protocol, silent=["0"], asked=True).labels == ("C1[1]", "C2[1]", "N")
    assert Tallies.linked(protocol).labels == ("C[0,0]", "C[1,1]", "C[0,1]")
    assert Tallies.linked(protocol).only("N", "C[0,1]").expected({"outside": 3, "cell 1": 4}) == {"N": 7, "C[0,1]": 2}
    assert repr(Tallies.by_round(protocol).only("N")) == "Tallies('Sampling Privacy', N)"


def check_certificate(proof, tallies, target):
    """Two populations with equal expected tallies and different targets."""
    assert isinstance(proof, NotEstimable)
    assert not proof
    one, other = ({kind: n for (kind, _), n in world.items()} for world in proof.worlds())
    assert tallies.expected(one) == tallies.expected(other)
    assert one.get(target, 0) != other.get(target, 0)


def test_toy_one_cannot_be_estimated():
    """SP sec 3.2: one equation, two unknowns; knowing N does not help, since both kinds have one distribution."""
    for asked in (False, True):
        tallies = Tallies.by_round(sampling_and_noise(sampling=0.3), silent=["⊥"], asked=asked)
        check_certificate(best_estimator(tallies, "yes"), tallies, "yes")
    assert str(best_estimator(tallies, "yes")) == "not estimable: 1 yes and 1 no expect the same tallies"


def test_abstention_is_estimable_only_if_n_is_known():
    """ALP sec IV-E calls it "difficult" if data owners do not send ⊥; at π_1 = π_2 = π_3 = 1 it is impossible."""
    protocol = anonymized_local(
        sampling_yes_one=0.2, sampling_yes_two=0.1, sampling_no=0.05, first_coin=1, second_coin=1, third_coin=1
    )
    unheard = Tallies.by_round(protocol, silent=["⊥"])
    proof = best_estimator(unheard, "yes")
    check_certificate(proof, unheard, "yes")
    assert proof.worlds() in (({("yes", None): 1}, {("no", None): 6}), ({("no", None): 6}, {("yes", None): 1}))
    assert best_estimator(Tallies.by_round(protocol), "yes")
    assert best_estimator(Tallies.by_round(protocol, silent=["⊥"], asked=True), "yes")
    # With coins that also give No there are two equations for two unknowns.
    tossed = anonymized_local(
        sampling_yes_one=0.2, sampling_yes_two=0.1, sampling_no=0.05, first_coin=0.9, second_coin=0.5, third_coin=0.3
    )
    assert best_estimator(Tallies.by_round(tossed, silent=["⊥"]), "yes")


def test_estimators_equal_those_of_the_papers():
    toy = Tallies.by_round(sampled_response(sampling=0.4, first_coin=0.85, second_coin=0.3)).only("C1[1]", "N")
    scale = Fraction(2, 5) * Fraction(17, 20)
    assert best_estimator(toy, "yes").coefficients == {  # SP eq 5
        "C1[1]": 1 / scale,
        "N": -Fraction(2, 5) * Fraction(3, 20) * Fraction(3, 10) / scale,
    }
    binary = Tallies.by_round(binary_sampling_privacy(sampling=0.45, blank_zero=0.2)).only("C2[1]", "C1[1]")
    assert str(best_estimator(binary, "yes")) == "20/9·C2[1] − 20/9·C1[1]"  # SP eq 11
    several = Tallies.by_round(sampling_privacy(cells=3, sampling=0.45)).only("C2[2]", "C1[2]")
    assert str(best_estimator(several, "cell 2")) == "20/9·C2[2] − 20/9·C1[2]"  # SP eq 16
    shifted = Tallies.by_round(anonymized_cancelling(shift=0.2))
    assert str(best_estimator(shifted, "yes", steady=["no"])) == "5·C1[⊥1] − 5·C2[⊥1]"  # ALP sec VII
    attempt = Tallies.by_round(anonymized_first_attempt(base=0.5, shift_yes=0.3, shift_no=0.1)).only(
        "C1[⊥1]", "C2[⊥1]", "N"
    )
    # ALP sec VI: E[⊥1A] − E[⊥1B] = 2(π_Y − π_N)·YES + 2π_N·TOTAL
    printed = Estimator.from_coefficients(attempt, "yes", {"C1[⊥1]": "5/2", "C2[⊥1]": "-5/2", "N": "-1/2"})
    assert printed.variance_by_kind() == {"no": 1, "yes": Fraction(3, 2)}  # ¼·2π(1 − 2π)/(π_Y − π_N)²


def test_estimate_follows_its_formula():
    estimator = best_estimator(Tallies.by_round(anonymized_cancelling(shift=0.2)).only("C1[⊥1]", "C2[⊥1]"), "yes")
    assert estimator.estimate({"C1[⊥1]": 31, "C2[⊥1]": 20}) == 55
    assert estimator.contribution(("⊥1", "⊥3")) == 5
    assert estimator.contribution(("⊥1", "⊥1")) == 0
    with pytest.raises(ParameterError, match=r"^counts must be given for each of"):
        estimator.estimate({"C1[⊥1]": 31})


def test_constant_error_is_found_or_refuted():
    tallies = Tallies.by_round(anonymized_first_attempt(base=0.5, shift_yes=0.3, shift_no=0.1))
    proof = best_estimator(tallies, "yes", steady=["no"])
    assert isinstance(proof, NotEstimable)
    assert best_estimator(tallies, "yes").variance_by_kind()["no"] > 0
    assert all(change == 0 for change in proof.tally_change().values())
    assert proof.target_change != 0
    assert any(answers is not None for _, answers in proof.direction)
    response = Tallies.by_round(randomized_response(first_coin=0.8, second_coin=0.2))
    assert isinstance(best_estimator(response, "yes", steady=["no"]), NotEstimable)
    # Without the second coin only Yes-holders answer Yes, and likewise under ALP eq 2 as published.
    for protocol, share in (
        (randomized_response(first_coin=0.8, second_coin=0), Fraction(4, 5)),
        (sampling_and_noise(sampling=0.3, sampling_no=0.1, says="value"), Fraction(3, 10)),
    ):
        steady = best_estimator(Tallies.by_round(protocol), "yes", steady=["no"])
        assert steady.variance_by_kind() == {"no": 0, "yes": (1 - share) / share}


def test_three_answers_have_constant_error_only_for_no():
    """ALP sec VII-B as read here: only a No-holder gives ⊥3 then ⊥2, so deniability is one-sided and √NO remains."""
    protocol = anonymized_deniable(shift=0.2, yes_second=0.4, yes_third=0.4, no_second=0.5, no_third=0.5, onward=0.5)
    tallies = Tallies.by_round(protocol)
    no = best_estimator(tallies, "no", steady=["yes"])
    assert str(no) == "− 20·C2[⊥2] + 20·C3[⊥2]"  # NO = (C − B at ⊥2)/(s·n₂·c)
    assert no.variance_by_kind() == {"no": 19, "yes": 0}
    assert isinstance(best_estimator(tallies, "yes", steady=["no"]), NotEstimable)


def test_invalid_certificate_is_refused():
    tallies = Tallies.by_round(sampling_and_noise(sampling=0.3))
    target = {"no": Fraction(0), "yes": Fraction(1)}
    with pytest.raises(ParameterError, match=r"^direction must not change the expected C1\[1\], got '3/10'"):
        NotEstimable(tallies, target, {("yes", None): Fraction(1)})
    with pytest.raises(ParameterError, match=r"^direction must change the target"):
        NotEstimable(tallies, target, {("no", None): Fraction(0)})
    with pytest.raises(ParameterError, match=r"^direction must fix answers that only"):
        NotEstimable(tallies, target, {("no", ("1",)): Fraction(1)})


@pytest.mark.parametrize("population", [{"no": 1000, "yes": 30}, {"no": 5, "yes": 70}])
def test_no_other_unbiased_estimator_has_less_variance(population):
    """Any unbiased estimator is the best one plus a term of expectation 0 for all devices, which adds variance."""
    rng = np.random.default_rng(3)
    protocol = anonymized_deniable(
        shift=0.3, yes_second=0.4, yes_third=0.5, no_second=0.2, no_third=0.5, onward=0.7, stay=[0.1, 0.2, 0.4]
    )
    tallies = Tallies.linked(protocol)
    best = best_estimator(tallies, "yes", population=population)
    labels = list(tallies.labels)
    for _ in range(20):
        wish = {label: int(rng.integers(-3, 4)) for label in labels}
        added = tallies.expected  # the expectation of the added term, which the correction subtracts
        means = {kind: sum(n * added({kind: 1})[label] for label, n in wish.items()) for kind in protocol.kinds}
        target = {kind: -mean for kind, mean in means.items()}
        correction = best_estimator(tallies, target, population=population)
        other = {label: best.coefficients[label] + wish[label] + correction.coefficients[label] for label in labels}
        assert Estimator.from_coefficients(tallies, "yes", other).variance(population) >= best.variance(population)


def difference(**given):
    """The published estimate of cell 1, which is its difference over π_s."""
    protocol = sampling_privacy(**given)
    others = [kind for kind in protocol.kinds if kind != "cell 1"]
    return best_estimator(Tallies.by_round(protocol), "cell 1", steady=others)


@pytest.mark.parametrize("crowd", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 1.0, 3.0])
def test_released_differences_equal_item_3(crowd, epsilon):
    estimator = difference(cells=1, sampling=0.45)
    # One of the crowd leaves, or an outside device joins a crowd that is one smaller.
    leaves = released_claim([estimator], {"cell 1": crowd})
    joins = released_claim([estimator], {"cell 1": crowd - 1, "outside": 3})
    known = released_differences_delta(crowd=crowd, sampling=0.45, epsilon=epsilon)
    assert leaves.delta(epsilon) == pytest.approx(known, abs=1e-12)
    if crowd > 1:
        smaller = released_differences_delta(crowd=crowd - 1, sampling=0.45, epsilon=epsilon)
        assert joins.delta(epsilon) == pytest.approx(max(known, smaller), abs=1e-12)
    assert leaves.kind == "infinite"
    assert leaves.delta(math.inf) == pytest.approx(0.45**crowd, abs=1e-15)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0])
def test_counts_of_a_single_device_equal_its_linked_reports(epsilon):
    """Others hide a device unless its answer is impossible for them: published pairs then hide nothing."""
    for protocol, hidden in (
        (binary_sampling_privacy(sampling=0.3), False),
        (randomized_response(first_coin=0.5, second_coin=0.5), True),
    ):
        linked = protocol_claim(protocol, LinkedReports()).delta(epsilon)
        alone = released_claim(Tallies.linked(protocol), {"yes": 1}).delta(epsilon)
        among = released_claim(Tallies.linked(protocol), {"yes": 1, "no": 4}).delta(epsilon)
        assert alone == pytest.approx(linked, abs=1e-12)
        assert (among < linked - 1e-3 or linked == 0) if hidden else among == pytest.approx(linked, abs=1e-12)


def test_invalid_released_claims_are_refused():
    tallies = Tallies.by_round(randomized_response(first_coin=0.5, second_coin=0.5))
    with pytest.raises(ParameterError, match=r"^population must hold at least one device"):
        released_claim(tallies, {})
    with pytest.raises(ParameterError, match=r"^released must be tallies, or estimators of one protocol"):
        released_claim([], {"yes": 1})
    many = Tallies.linked(sampling_privacy(cells=3, sampling=0.4, refresh=0.5))
    with pytest.raises(ParameterError, match=r"^population must leave at most 100000 outcomes to list"):
        released_claim(many, {"outside": 20})


PAGE = Path(__file__).parents[2] / "docs" / "why" / "algebra.md"


def test_page_examples_print_the_documented_output():
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```pycon\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    examples = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, PAGE.name, str(PAGE), 0)
    assert len(examples.examples) > 20
    output = []
    result = doctest.DocTestRunner().run(examples, out=output.append)
    assert result.failed == 0, "".join(output)
