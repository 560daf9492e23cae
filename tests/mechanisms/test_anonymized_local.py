"""Anonymized Local Privacy's mechanism with the answers Yes, No and ⊥: lemmas, joint estimators, and lemma 7."""

import dataclasses
import math

import numpy as np
import pytest
from binary_query_cases import LOCAL
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.local import ParameterError
from mechanisms.local.mechanism import NotEstimableError
from mechanisms.local.yes_no import AnonymizedLocal
from mechanisms.privacy import LinkedReports
from mechanisms.protocols.theorems import solve_sign_combinations

# π_1 = π_2 = π_3 = 1: lemma 7's observation.
ALL_YES = AnonymizedLocal(
    cells=1,
    sampling_yes_one=0.3,
    sampling_yes_two=0.2,
    sampling_no=0.1,
    first_coin=1,
    second_coin=1,
    third_coin=1,
    estimator="yes",
)
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
    mechanism = AnonymizedLocal(
        cells=1,
        sampling_yes_one=one,
        sampling_yes_two=two,
        sampling_no=no,
        first_coin=c1,
        second_coin=c2,
        third_coin=c3,
    )
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
    mechanism = AnonymizedLocal(
        cells=2,
        sampling_yes_one=0.3,
        sampling_yes_two=0.0,
        sampling_no=0.3,
        first_coin=0.2,
        second_coin=0.0,
        third_coin=0.2,
    )
    assert mechanism.claim(LinkedReports()).epsilon == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(NotEstimableError, match="answer alike"):
        mechanism.std_error(np.array([1, 1, 1]))
