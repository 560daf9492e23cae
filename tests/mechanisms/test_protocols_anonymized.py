"""Tables of the Anonymized Local Privacy constructions agree with the hand-written mechanisms."""

import math
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.local.mechanism import NotEstimableError
from mechanisms.local.yes_no import AnonymizedLocal, SampledResponse, SamplingAndNoise, Warner
from mechanisms.local.yes_no_rounds import AnonymizedCancelling, AnonymizedDeniable, AnonymizedFirstAttempt
from mechanisms.privacy import LinkedReports, Report
from mechanisms.protocols import (
    Estimator,
    Tallies,
    anonymized_cancelling,
    anonymized_deniable,
    anonymized_first_attempt,
    anonymized_local,
    best_estimator,
    protocol_claim,
    sampled_response,
    sampling_and_noise,
    warner,
)

SILENT = ("0", "1", "⊥")
TWICE = ("⊥1", "⊥2")
THRICE = ("⊥1", "⊥2", "⊥3")
LOCAL = {
    "sampling_yes_one": 0.3,
    "sampling_yes_two": 0.2,
    "sampling_no": 0.1,
    "first_coin": 0.9,
    "second_coin": 0.4,
    "third_coin": 0.3,
}
MOVES = {"shift": 0.2, "yes_second": 0.6, "yes_third": 0.4, "no_second": 0.7, "no_third": 0.3, "onward": 0.6}
CASES = {
    "Warner": (warner, Warner, {"truthful": 0.75}, ("0", "1")),
    "value": (sampling_and_noise, SamplingAndNoise, {"sampling": 0.3, "sampling_no": 0.1, "says": "value"}, SILENT),
    "noise": (sampling_and_noise, SamplingAndNoise, {"sampling": 0.3, "sampling_no": 0.1, "says": "noise"}, SILENT),
    "toy 2": (
        sampled_response,
        SampledResponse,
        {"sampling": 0.4, "first_coin": 0.8, "second_coin": 0.2},
        SILENT,
    ),
    "plausible deniability": (
        sampled_response,
        SampledResponse,
        {"sampling": 0.4, "sampling_no": 0.1, "first_coin": 0.8, "second_coin": 0.2},
        SILENT,
    ),
    "yes, no and ⊥": (anonymized_local, AnonymizedLocal, LOCAL, SILENT),
    "first attempt": (
        anonymized_first_attempt,
        AnonymizedFirstAttempt,
        {"base": 0.4, "shift_yes": 0.3, "shift_no": 0.1},
        TWICE,
    ),
    "cancelling": (anonymized_cancelling, AnonymizedCancelling, {"shift": 0.2, "stay": (0.3, 0.4, 0.1)}, THRICE),
    "deniable": (anonymized_deniable, AnonymizedDeniable, MOVES, THRICE),
    "deniable both ways": (anonymized_deniable, AnonymizedDeniable, {**MOVES, "onward_yes": 0.2}, THRICE),
}


def weights_by_label(mechanism, outputs):
    """The hand-written estimator's coefficients, by the algebra's labels."""
    linear = mechanism.linear_estimator
    weights = {f"C{r + 1}[{o}]": w for r, row in enumerate(linear.weights) for o, w in zip(outputs, row, strict=True)}
    return {**weights, "N": linear.offset}


@pytest.mark.parametrize("name", CASES)
def test_table_and_mechanism_agree(name):
    make, kind, given, outputs = CASES[name]
    protocol, mechanism = make(**given), kind(cells=1, **given)
    tallies, truth, people = Tallies.by_round(protocol, asked=True), np.array([900, 70]), {"no": 900, "yes": 70}
    # Expected tallies, every output of every round.
    distributions = [mechanism.binary_query.in_round(r + 1) for r in range(mechanism.rounds)]
    by_hand = np.concatenate([70 * yes + 900 * no for yes, no in distributions])
    seen = tallies.expected(people)
    assert [float(seen[f"C{r + 1}[{o}]"]) for r in range(mechanism.rounds) for o in outputs] == pytest.approx(
        by_hand.tolist(), rel=1e-12, abs=1e-12
    )
    # Coefficients, to the accuracy of the estimator's: each kind's mean and spread under the table's exact
    # distribution.
    weights = weights_by_label(mechanism, outputs)
    variance = 0.0
    for holder, mean in (("no", 0.0), ("yes", 1.0)):
        contributions = {
            answers: sum(weights[count.label] for count in tallies.counts if answers in count.answers)
            for answers in protocol.answers
        }
        distribution = {answers: float(p) for answers, p in protocol.law(holder).items()}
        assert sum(p * contributions[a] for a, p in distribution.items()) == pytest.approx(mean, abs=1e-12)
        variance += people[holder] * sum(p * (contributions[a] - mean) ** 2 for a, p in distribution.items())
    assert mechanism.std_error(truth)[0] == pytest.approx(math.sqrt(variance), rel=1e-12)
    # No unbiased linear estimator has less variance than the algebra's.
    best = best_estimator(tallies, "yes", population=people)
    assert best.std_error(people) <= mechanism.std_error(truth)[0] * (1 + 1e-9)
    for view in (*(Report(r + 1) for r in range(mechanism.rounds)), LinkedReports()):
        one, other = protocol_claim(protocol, view), mechanism.claim(view)
        assert one.kind == other.kind
        assert one.epsilon == pytest.approx(other.epsilon, rel=1e-12, abs=1e-12)
        for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0, 4.0, math.inf):
            assert one.delta(epsilon) == pytest.approx(other.delta(epsilon), abs=1e-12)


RATES = {"sampling": (51, 100), "sampling_no": (0, 50)}
RANDOM_MOVES = {
    "shift": (5, 100),
    "yes_second": (50, 60),
    "yes_third": (0, 40),
    "no_second": (0, 50),
    "no_third": (30, 50),
    "onward": (60, 100),
}
# The least and the greatest value of each parameter in hundredths; within these the count of Yes can be estimated.
RANGES = {
    "Warner": {"truthful": (55, 100)},
    "value": RATES,
    "noise": RATES,
    "toy 2": {"sampling": (5, 100), "first_coin": (5, 100), "second_coin": (0, 100)},
    "plausible deniability": {**RATES, "first_coin": (5, 100), "second_coin": (0, 100)},
    "yes, no and ⊥": {
        "sampling_yes_one": (30, 50),
        "sampling_yes_two": (0, 50),
        "sampling_no": (5, 30),
        "first_coin": (80, 100),
        "second_coin": (0, 100),
        "third_coin": (0, 50),
    },
    "first attempt": {"base": (40, 60), "shift_yes": (21, 40), "shift_no": (0, 20)},
    "cancelling": {"shift": (5, 100)},
    "deniable": RANDOM_MOVES,
    "deniable both ways": {**RANDOM_MOVES, "onward_yes": (1, 20)},
}


@pytest.mark.parametrize("name", CASES)
def test_random_laws_and_variances_equal_the_exact_tables(name):
    make, kind, _, outputs = CASES[name]
    rng = np.random.default_rng(33)
    for _ in range(45):
        given = {field: int(rng.integers(low, high + 1)) / 100 for field, (low, high) in RANGES[name].items()}
        if name in ("value", "noise"):
            given["says"] = name
        protocol, mechanism = make(**given), kind(cells=1, **given)
        query, people = mechanism.binary_query, {"no": 900, "yes": 70}
        answers = [tuple(outputs[output] for output in answer) for answer in query.answers]
        for holder, law in (("no", query.no), ("yes", query.yes)):
            exact = {answer: float(p) for answer, p in protocol.law(holder).items()}
            given_law = {answer: p for answer, p in zip(answers, law, strict=True) if p}
            assert given_law == pytest.approx(exact, rel=1e-12, abs=1e-12), given
        weights = {label: Fraction(w) for label, w in weights_by_label(mechanism, outputs).items()}
        counts = Tallies.by_round(protocol, asked=True).counts
        variance = Fraction(0)
        for holder, mean in (("no", 0), ("yes", 1)):
            each = {a: sum(weights[c.label] for c in counts if a in c.answers) for a in protocol.answers}
            law = protocol.law(holder)
            assert float(sum(p * each[a] for a, p in law.items())) == pytest.approx(mean, abs=1e-11), given
            variance += people[holder] * sum(p * (each[a] - mean) ** 2 for a, p in law.items())
        expected = pytest.approx(math.sqrt(variance), rel=1e-9, abs=1e-5)
        assert mechanism.std_error(np.array([900, 70]))[0] == expected, given


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("Warner", ("C1[1]", "N")),
        ("value", ("C1[1]",)),
        ("noise", ("C1[1]", "N")),
        ("toy 2", ("C1[1]", "N")),
        ("plausible deniability", ("C1[1]", "N")),
        ("first attempt", ("C1[⊥1]", "C2[⊥1]", "N")),
        ("cancelling", ("C1[⊥1]", "C2[⊥1]")),
        ("deniable", ("C1[⊥2]", "C2[⊥2]", "C3[⊥2]")),
        ("deniable both ways", ("C1[⊥2]", "C2[⊥2]", "C3[⊥2]")),
    ],
)
def test_estimator_coefficients_agree(name, labels):
    """The hand-written coefficients, exactly unbiased when restricted to the counts they use."""
    make, kind, given, outputs = CASES[name]
    protocol, mechanism = make(**given), kind(cells=1, **given)
    weights = weights_by_label(mechanism, outputs)
    used = {label for label, w in weights.items() if w}
    tallies = Tallies.by_round(protocol).only(*labels)
    found = best_estimator(tallies, "yes")
    if name.startswith(("first", "deniable")):  # three counts, of which the papers take differences only
        assert used == set(labels)
        differences = {label: _fraction(weights[label]) for label in labels}
        found = Estimator.from_coefficients(tallies, "yes", differences)
    for label in labels:
        assert float(found.coefficients[label]) == pytest.approx(weights[label], rel=1e-12)


def test_the_least_variance_combination_agrees():
    mechanism = AnonymizedLocal(cells=1, **LOCAL, yes_share=0.1)
    best = best_estimator(Tallies.by_round(anonymized_local(**LOCAL)), "yes", population={"no": 90, "yes": 10})
    assert mechanism.std_error(np.array([90, 10]))[0] == pytest.approx(best.std_error({"no": 90, "yes": 10}), rel=1e-12)


def test_non_estimable_cases_agree():
    protocol, mechanism = sampling_and_noise(sampling=0.3), SamplingAndNoise(cells=1, sampling=0.3)
    assert not best_estimator(Tallies.by_round(protocol, asked=True), "yes")
    with pytest.raises(NotEstimableError):
        mechanism.std_error(np.array([5, 5]))
    alike = {"base": 0.4, "shift_yes": 0.2, "shift_no": 0.2}
    assert not best_estimator(Tallies.linked(anonymized_first_attempt(**alike)), "yes")
    with pytest.raises(NotEstimableError):
        AnonymizedFirstAttempt(cells=1, **alike).std_error(np.array([5, 5]))


def _fraction(weight):
    """A weight as the fraction of small integers it was computed from."""
    return Fraction(weight).limit_denominator(10_000)
