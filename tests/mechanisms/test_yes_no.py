"""Yes/no mechanisms of one answer: Warner's, the toys of Sampling Privacy, and Anonymized Local Privacy's."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanism_cases import LOCAL, anonymized_local

from mechanisms.local import NotEstimableError, ParameterError, SampledResponse, SamplingAndNoise
from mechanisms.local.common.packed_bits import AnswerReports
from mechanisms.local.common.response_counts import check_where
from mechanisms.local.yes_no import AnonymizedLocal, Warner
from mechanisms.privacy import LinkedReports, Report
from mechanisms.protocols import Protocol, Tallies, combined_estimator
from mechanisms.protocols.protocol import BinaryQuery
from mechanisms.protocols.published import remainder
from mechanisms.protocols.theorems import solve_sign_combinations


def test_truthful_warner_is_exact_and_has_no_privacy():
    for truthful in (0.0, 1.0):
        warner = Warner(cells=2, truthful=truthful)
        true_counts = np.array([4, 3, 2])
        counts = warner.sample_counts(true_counts, rng=np.random.default_rng(42))
        estimate = warner.estimate(counts, counted=[9], asked=[9])
        np.testing.assert_allclose(estimate.count, [3, 2], atol=1e-12)
        assert not warner.std_error(true_counts).any()
        claim = warner.claim(LinkedReports())
        assert (claim.kind, claim.delta(50.0)) == ("infinite", 1.0)
        assert "is given only by a device in the cell" in claim.basis


def test_toy_one_leaks_nothing_and_has_no_estimate():
    """SP sec 3.2: one equation, two unknowns; the answers carry no information, so no estimate exists."""
    toy = SamplingAndNoise(cells=3, sampling=0.3)
    true_counts, rng = np.array([500, 200, 200, 100]), np.random.default_rng(51)
    counts = toy.sample_counts(true_counts, rng=rng)
    assert counts.shape == (1, 3, 3)
    assert not counts[0, :, 0].any()  # the answer 0 never occurs
    for act in (lambda: toy.estimate(counts, counted=[1000], asked=[1000]), lambda: toy.std_error(true_counts)):
        with pytest.raises(
            NotEstimableError, match=r"SamplingAndNoise cannot be estimated: there is one equation.*two unknowns"
        ):
            act()
    for view in (Report(1), LinkedReports(queries=4)):
        assert toy.claim(view).epsilon == 0.0
        assert toy.claim(view).delta(0.0) == 0.0
    assert issubclass(NotEstimableError, ValueError)
    assert toy.sampling_no == 0.3


def test_value_answers_need_no_total_and_have_infinite_epsilon():
    """ALP eq 2 as published: C(Yes)/π_sYes."""
    toy = SamplingAndNoise(cells=1, sampling=0.4, sampling_no=0.1, says="value")
    for silent in (500, 800):
        counts = np.array([[[90, 40, silent]]])
        received = [130 + silent]
        assert toy.estimate(counts, counted=received, asked=received).count[0] == pytest.approx(100)
    assert toy.std_error(np.array([10**9, 100]))[0] == pytest.approx(math.sqrt(100 * 0.6 / 0.4), rel=1e-6)
    claim = toy.claim(Report(1))
    assert claim.kind == "infinite"
    assert "Yes is given only by a device in the cell, No is given only by a device not in it" in claim.basis
    assert claim.delta(math.inf) == pytest.approx(0.4)


def test_different_sampling_rates_make_abstention_informative():
    """ALP eqs 3-4: Ŷ = (C − π_sNo(1 − π_1)π_2·N)/(π_sYes(π_1 + (1 − π_1)π_2) − π_sNo(1 − π_1)π_2)."""
    toy = SampledResponse(cells=1, sampling=0.5, sampling_no=0.05, first_coin=0.6, second_coin=0.5)
    p, q = 0.5 * 0.8, 0.05 * 0.2
    counts = np.array([[[30, 50, 920]]])
    estimate = toy.estimate(counts, counted=[1000], asked=[1000])
    assert estimate.count[0] == pytest.approx((50 - q * 1000) / (p - q))
    assert toy.claim(Report(1)).epsilon == pytest.approx(math.log(p / q))
    silent = SampledResponse(
        cells=1, sampling=0.5, sampling_no=0.05, first_coin=0.6, second_coin=0.5, estimator="silent"
    )
    assert silent.estimate(counts, counted=[1000], asked=[1000]).count[0] == pytest.approx((920 - 950) / -0.45)
    one_rate = SampledResponse(cells=1, sampling=0.5, first_coin=0.6, second_coin=0.5, estimator="silent")
    with pytest.raises(NotEstimableError, match="the count of ⊥ does not depend on the truth"):
        one_rate.estimate(counts, counted=[1000], asked=[1000])


# π_1 = π_2 = π_3 = 1: lemma 7's observation.
ALL_YES = anonymized_local(0.3, 0.2, 0.1, 1, 1, 1, estimator="yes")
coins = st.floats(0.05, 0.95)


def estimator_covariance(mechanism, true_counts):
    """The exact covariance (V, 3, 3) of the estimators from the counts of No, Yes and ⊥: a multinomial per kind."""
    distributions = mechanism.binary_query.in_round(1)
    inside, spread = (
        true_counts[1:],
        [np.diag(distribution) - np.outer(distribution, distribution) for distribution in distributions],
    )
    counts = np.multiply.outer(inside, spread[0]) + np.multiply.outer(true_counts.sum() - inside, spread[1])
    return counts / np.outer(distributions[0] - distributions[1], distributions[0] - distributions[1])


@settings(deadline=None)
@given(
    one=st.floats(0.05, 0.5), two=st.floats(0.05, 0.5), no=coins, c1=coins, c2=coins, c3=coins, seed=st.integers(0, 99)
)
def test_lemmas_as_published(one, two, no, c1, c2, c3, seed):
    """ALP eqs 11, 16 and 21 and their standard deviations, eqs 13, 18 and 23."""
    mechanism = anonymized_local(one, two, no, c1, c2, c3)
    yes, others = 70, 930
    counts = mechanism.sample_counts(np.array([others, yes]), rng=np.random.default_rng(seed))
    said_no, said_yes, silent = counts[0, 0].tolist()
    gaps = {
        "yes": (said_yes, one * c1 + two * c2, no * c3),
        "no": (said_no, one * (1 - c1) + two * (1 - c2), no * (1 - c3)),
        "silent": (silent, 1 - (one + two), 1 - no),
    }
    sigmas = []
    for choice, (count, p, q) in gaps.items():
        sigmas.append(math.sqrt(p * (1 - p) * yes + q * (1 - q) * others))
        if abs(p - q) < 1e-3:
            continue
        estimate = dataclasses.replace(mechanism, estimator=choice).estimate(counts, counted=[1000], asked=[1000])
        assert estimate.count[0] == pytest.approx((count - q * 1000) / (p - q), rel=1e-6, abs=1e-5 / abs(p - q))
        error = dataclasses.replace(mechanism, estimator=choice).std_error(np.array([others, yes]))[0]
        assert error == pytest.approx(sigmas[-1] / abs(p - q), rel=1e-6)
    found = mechanism.count_std_errors(np.array([others, yes]))
    np.testing.assert_allclose(found[:, 0], [sigmas[1], sigmas[0], sigmas[2]], rtol=1e-9)


@settings(deadline=None)
@given(share=st.floats(0.001, 0.999), data=st.data())
def test_best_combination_has_least_variance(share, data):
    """α minimising αᵀΣα over α summing to 1: 1/(1ᵀΣ⁺1), at the assumed share; never above any single estimator."""
    parameters = {name: data.draw(coins, label=name) for name in LOCAL} | {"sampling_yes_two": 0.05}
    parameters["sampling_yes_one"] *= 0.9
    mechanism = AnonymizedLocal(cells=1, **parameters, yes_share=share)
    yes, no = mechanism.binary_query.in_round(1)
    if np.abs(yes - no).min() < 1e-2:
        return
    devices = 10**6
    inside = round(share * devices)
    mechanism = dataclasses.replace(mechanism, yes_share=inside / devices)
    true_counts = np.array([devices - inside, inside])
    covariance = estimator_covariance(mechanism, true_counts)[0]
    least = 1.0 / np.linalg.pinv(covariance, rcond=1e-9, hermitian=True).sum()
    best = mechanism.std_error(true_counts)[0]
    assert best == pytest.approx(math.sqrt(least), rel=1e-5)
    for choice in ("yes", "no", "silent"):
        assert best <= dataclasses.replace(mechanism, estimator=choice).std_error(true_counts)[0] * (1 + 1e-9)


def test_best_combination_assumes_a_uniform_spread_by_default():
    assert AnonymizedLocal(cells=9, **LOCAL).yes_share == 0.1
    wrong = AnonymizedLocal(cells=1, **LOCAL, yes_share=0.9)
    right = AnonymizedLocal(cells=1, **LOCAL, yes_share=0.01)
    true_counts = np.array([9900, 100])
    assert right.std_error(true_counts)[0] < wrong.std_error(true_counts)[0]
    # The estimate is unbiased in any case: its mean is linear in the mean of the counts.
    yes, no = wrong.binary_query.in_round(1)
    for mechanism in (wrong, right):
        weights = mechanism.linear_estimator.weights[0]
        assert 100 * weights @ yes + 9900 * weights @ no == pytest.approx(100, abs=1e-6)


def test_lemma_7_claims_three_equal_sigmas_but_two_are_equal():
    """π_1 = π_2 = π_3 = 1: σ("Yes") = σ(⊥), but the answer No never occurs: σ("No") = 0 and its estimator is 0/0."""
    no, yes, silent = ALL_YES.count_std_errors(np.array([1000, 100]))[:, 0]
    assert yes == silent == pytest.approx(math.sqrt(100 * 0.5 * 0.5 + 1000 * 0.1 * 0.9))
    assert no == 0.0
    counts = np.array([[[0, 147, 953]]])
    with pytest.raises(
        NotEstimableError, match=r"the count of No does not depend on the truth.* with the same probability, 0"
    ):
        dataclasses.replace(ALL_YES, estimator="no").estimate(counts, counted=[1100], asked=[1100])
    by = [
        dataclasses.replace(ALL_YES, estimator=c).estimate(counts, counted=[1100], asked=[1100]).count[0]
        for c in ("yes", "silent", "best")
    ]
    assert by == pytest.approx([92.5] * 3)  # one equation in three forms


def test_lemma_7_in_its_intended_case_equals_lemma_1():
    solved = solve_sign_combinations(ALL_YES, said_yes=147, silent=953, devices=1100)
    (only,) = solved.solutions
    assert (only.yes, only.sigma, only.excess) == (pytest.approx(92.5), 0.0, 0.0)
    assert sorted(solved.dependent) == [(-1, 1), (1, -1)]
    # Fewer than the noise alone: the negative YES is dropped, and no solution is left.
    assert solve_sign_combinations(ALL_YES, said_yes=90, silent=1010, devices=1100).solutions == ()


@settings(deadline=None)
@given(yes_count=st.integers(0, 1000), share=st.floats(0, 1))
def test_lemma_7_otherwise_solves_only_two_of_three_equations(yes_count, share):
    mechanism = AnonymizedLocal(cells=1, **LOCAL)
    silent = int(share * (1000 - yes_count))
    solved = solve_sign_combinations(mechanism, said_yes=yes_count, silent=silent, devices=1000)
    yes, no = mechanism.binary_query.in_round(1)
    assert len(solved.solutions) <= 2
    assert solved.dependent == ()
    for solution in solved.solutions:
        assert solution.yes >= 0
        assert solution.sigma >= 0
        expected = solution.yes * yes + (1000 - solution.yes) * no
        assert expected[1] + solution.signs[0] * solution.sigma == pytest.approx(yes_count, abs=1e-6)
        assert expected[2] + solution.signs[1] * solution.sigma == pytest.approx(silent, abs=1e-6)
        assert solution.excess == yes_count + silent - 1000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"said_yes": -1}, "said_yes must be at least 0"),
        ({"silent": 1101}, "silent must be at most devices − said_yes = 1000"),
        ({"devices": 0}, "devices must be at least 1"),
        ({"said_yes": 1.5}, "said_yes must be an integer"),
    ],
)
def test_lemma_7_refuses_impossible_counts(change, message):
    with pytest.raises(ParameterError, match=rf"^{message}"):
        solve_sign_combinations(ALL_YES, **{"said_yes": 100, "silent": 900, "devices": 1100, **change})


def test_truth_independent_answers_leak_nothing_and_have_no_estimate():
    mechanism = anonymized_local(0.3, 0.0, 0.3, 0.2, 0.0, 0.2, cells=2)
    assert mechanism.claim(LinkedReports()).epsilon == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(NotEstimableError, match="answer alike"):
        mechanism.std_error(np.array([1, 1, 1]))


@settings(deadline=None)
@given(n=st.integers(0, 40), cells=st.integers(1, 200), outputs=st.integers(2, 5), seed=st.integers(0, 2**32))
def test_packing_and_unpacking_are_inverse(n, cells, outputs, seed):
    rng = np.random.default_rng(seed)
    dense = rng.integers(0, outputs, (n, cells)).astype(np.uint8)
    reports = AnswerReports.from_dense(dense, outputs)
    np.testing.assert_array_equal(reports.to_dense(), dense)
    assert (len(reports), reports.outputs) == (n, outputs)
    assert reports.nbytes == n * (outputs - 1) * -(-cells // 64) * 8
    np.testing.assert_array_equal(reports[::-2].to_dense(), dense[::-2])
    mask = rng.random(n) < 0.5
    for where in (None, mask):
        rows = dense if where is None else dense[where]
        expected = (rows[:, :, np.newaxis] == np.arange(outputs)).sum(axis=0)
        np.testing.assert_array_equal(reports.count(check_where(where, devices=n)), expected)
    np.testing.assert_array_equal(reports.one_hot().sum(axis=2), np.ones((n, cells)))


def test_invalid_answer_reports_are_refused():
    two = np.zeros((2, 2, 1), dtype=np.uint64)
    for bits, cells in ((two.astype(float), 3), (two[0], 3), (two, 65), (two[:, :0], 3)):
        with pytest.raises(ParameterError, match=r"^bits must"):
            AnswerReports(bits, cells)
    with pytest.raises(ParameterError, match=r"^bits must not give two answers for a cell, at answer, got 2"):
        AnswerReports(np.ones((1, 2, 1), dtype=np.uint64), 3)
    third = np.zeros((1, 3, 1), dtype=np.uint64)
    third[0, [0, 2]] = 1
    with pytest.raises(ParameterError, match=r"^bits must not give two answers for a cell, at answer, got 3"):
        AnswerReports(third, 3)
    with pytest.raises(ParameterError, match=r"^cells must be at least 1"):
        AnswerReports(two, 0)
    with pytest.raises(ParameterError, match=r"^reports must be AnswerReports about 4 cells, 3 outputs"):
        SamplingAndNoise(cells=4, sampling=0.5, sampling_no=0.2).tally(AnswerReports(two, 3))
    with pytest.raises(ValueError, match="read-only"):
        AnswerReports(two, 3).bits[0] = 0


def test_remainder_is_never_a_rounding_error():
    assert remainder("second", 0.3, 0.7, 0.3) == 0.0
    assert remainder("second", "1/3", Fraction(1, 3), Fraction(1, 3)) == Fraction(1, 3)
    with pytest.raises(ParameterError, match=r"^second must be at most 0\.3, .* got 0\.4$"):
        remainder("second", 0.4, 0.7, 0.4)


def two_laws(yes, no):
    return Protocol.from_laws("two laws", {"no": no, "yes": yes}, outputs=[("a", "b")] * len(next(iter(yes))))


def test_query_names_its_distinguishing_answers():
    yes, no = {("a", "a"): 0.5, ("a", "b"): 0.5}, {("a", "a"): 0.9, ("b", "b"): 0.1}
    binary_query = BinaryQuery(two_laws(yes, no))
    assert binary_query.answers == ((0, 0), (0, 1), (1, 1))
    assert binary_query.only_from_yes == ((0, 1),)
    assert binary_query.only_from_no == ((1, 1),)
    assert binary_query.name((0, 1)) == "(a, b)"
    yes, no = binary_query.in_round(2)
    np.testing.assert_allclose(yes, [0.5, 0.5])
    np.testing.assert_allclose(no, [0.9, 0.1])


def test_statistics_that_do_not_determine_the_target_have_no_combination():
    tallies = Tallies.by_round(two_laws({"a": "1/5", "b": "4/5"}, {"a": "1/5", "b": "4/5"}), asked=True)
    assert combined_estimator(tallies, "yes", {"C1[a]": 1}, {"N": 1}) is None
    alike = SampledResponse(cells=1, sampling=0.5, sampling_no=0.5 + 1e-14, first_coin=1e-14, second_coin=0.5)
    for estimator in ("yes", "no", "silent", "best"):
        with pytest.raises(NotEstimableError, match=r"^SampledResponse cannot be estimated: "):
            dataclasses.replace(alike, estimator=estimator).std_error(np.array([1, 1]))
