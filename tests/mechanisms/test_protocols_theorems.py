"""No free lunch: constant error and a distinguishing answer are equivalent, in random protocols."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.privacy import LinkedReports
from mechanisms.protocols import (
    NotEstimable,
    ParameterError,
    Protocol,
    Tallies,
    anonymized_cancelling,
    anonymized_deniable,
    best_estimator,
    binary_sampling_privacy,
    growth_floor,
    growth_floor_at,
    no_free_lunch,
    protocol_claim,
    randomized_response,
    sampling_privacy,
    warner,
)

EPSILONS = (0.0, 0.3, 1.0, 3.0, 20.0, math.inf)
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
    for epsilon in EPSILONS:
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
    for epsilon in EPSILONS:
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
        (binary_sampling_privacy(sampling=sampling), "no", "yes", ("0", "1")),
        (sampling_privacy(cells=3, sampling=sampling), "outside", "cell 2", ("0", "2")),
    ):
        estimator = best_estimator(Tallies.by_round(protocol), other, steady=[kind])
        proof = no_free_lunch(estimator, steady=kind)
        assert proof.event == {event}
        assert proof.other == other
        assert proof.delta == proof.floor == Fraction(str(sampling))


def test_no_free_lunch_for_cancelling_and_deniable():
    protocol = anonymized_cancelling(shift=0.2, stay=[0.5, 0.2, 0.1])
    proof = no_free_lunch(best_estimator(Tallies.by_round(protocol), "yes", steady=["no"]), steady="no")
    assert proof.event == {("⊥1", "⊥3")}
    assert proof.probabilities == {"no": 0, "yes": Fraction(1, 5)}
    deniable = anonymized_deniable(shift=0.2, yes_second=0.4, yes_third=0.4, no_second=0.5, no_third=0.5, onward=0.5)
    proof = no_free_lunch(best_estimator(Tallies.by_round(deniable), "no", steady=["yes"]), steady="yes")
    assert proof.event == {("⊥1", "⊥3", "⊥2")}
    assert proof.delta == proof.floor == Fraction(1, 20)


def test_theorem_needs_constant_error():
    estimator = best_estimator(Tallies.by_round(randomized_response(first_coin=0.8, second_coin=0.2)), "yes")
    with pytest.raises(ParameterError, match=r"^steady must be a kind with variance coefficient 0, got 'no: 3/50'"):
        no_free_lunch(estimator, steady="no")
    protocol = sampling_privacy(cells=2, sampling=0.5)
    steady = best_estimator(Tallies.by_round(protocol), "cell 1", steady=["outside", "cell 2"])
    with pytest.raises(ParameterError, match=r"^other must have another target than 'outside'"):
        no_free_lunch(steady, steady="outside", other="cell 2")
    all_devices = best_estimator(Tallies.by_round(protocol), dict.fromkeys(protocol.kinds, 1))
    with pytest.raises(ParameterError, match=r"^other must have another target"):
        no_free_lunch(all_devices, steady="outside")


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_warner_attains_the_pure_privacy_bound(epsilon):
    """σ ≥ √N/(2·sinh(ε/2)) for every linear unbiased estimate behind ε-DP linked reports."""
    protocol = warner(truthful=math.exp(epsilon) / (1 + math.exp(epsilon)))
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
