"""Exact estimators: unbiased, of least variance, or a proof that none exists."""

from fractions import Fraction

import numpy as np
import pytest

from mechanisms.protocols import (
    Estimator,
    NotEstimable,
    ParameterError,
    Protocol,
    Tallies,
    anonymized_cancelling,
    anonymized_deniable,
    anonymized_first_attempt,
    anonymized_local,
    best_estimator,
    binary_sampling_privacy,
    randomized_response,
    sampled_response,
    sampling_and_noise,
    sampling_privacy,
)


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
    assert proof.worlds() in (
        ({("yes", None): 1}, {("no", None): 6}),
        ({("no", None): 6}, {("yes", None): 1}),
    )
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


def test_a_weighted_target_is_estimated():
    tallies = Tallies.by_round(sampling_privacy(cells=3, sampling=0.45))
    every = best_estimator(tallies, dict.fromkeys(tallies.protocol.kinds, 1))
    assert set(every.variance_by_kind().values()) == {0}  # N itself
    busy = best_estimator(tallies, {"cell 1": 1, "cell 2": "1/2"}, steady=["outside", "cell 3"])
    assert {kind: v for kind, v in busy.variance_by_kind().items() if v} == {
        "cell 1": Fraction(11, 9),
        "cell 2": Fraction(11, 36),
    }
    nothing = best_estimator(tallies, {})
    assert str(nothing) == "0"


def test_user_defined_protocol():
    """Three rounds, three kinds, unlike any paper's: only partly estimable."""
    protocol = Protocol.from_laws(
        "parity",
        {
            "idle": {("a", "a", "a"): "1/2", ("b", "b", "b"): "1/2"},
            "slow": {("a", "b", "a"): "1/2", ("b", "a", "b"): "1/2"},
            "fast": {("b", "b", "a"): "1/2", ("a", "a", "b"): "1/2"},
        },
    )
    apart = Tallies.by_round(protocol)
    check_certificate(best_estimator(apart, "fast"), apart, "fast")
    together = best_estimator(Tallies.linked(protocol), "fast")
    assert set(together.variance_by_kind().values()) == {0}
