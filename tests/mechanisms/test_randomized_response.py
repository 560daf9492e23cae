"""The Sampling Privacy paper's toys, and the first constructions of Anonymized Local Privacy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.local import RandomizedResponse
from mechanisms.local.mechanism import NotEstimableError
from mechanisms.local.yes_no import SampledResponse, SamplingAndNoise
from mechanisms.privacy import LinkedReports, Report


def test_toy_one_leaks_nothing_and_has_no_estimate():
    """SP sec 3.2: one equation, two unknowns; the answers carry no information, so no estimate exists."""
    toy = SamplingAndNoise(cells=3, sampling=0.3)
    true_counts, rng = np.array([500, 200, 200, 100]), np.random.default_rng(51)
    counts = toy.sample_counts(true_counts, rng=rng)
    assert counts.shape == (1, 3, 3)
    assert not counts[0, :, 0].any()  # the answer 0 never occurs
    for act in (
        lambda: toy.estimate(counts, counted=[1000], asked=[1000]),
        lambda: toy.std_error(true_counts),
    ):
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


@settings(deadline=None)
@given(
    sampling=st.floats(0.05, 1.0),
    first=st.floats(0.05, 1.0),
    second=st.just(0.0) | st.floats(1e-20, 1.0),
    inside=st.integers(0, 1000),
    outside=st.integers(0, 10**6),
)
def test_toy_two_equals_the_paper(sampling, first, second, inside, outside):
    """SP eqs 2-5: p = π_s(π_1 + (1 − π_1)π_2), q = π_s(1 − π_1)π_2, Ŷ = (C − qN)/(π_sπ_1)."""
    toy = SampledResponse(cells=1, sampling=sampling, first_coin=first, second_coin=second)
    yes, no = toy.binary_query.in_round(1)
    p, q = sampling * (first + (1 - first) * second), sampling * (1 - first) * second
    np.testing.assert_allclose(yes, [sampling - p, p, 1 - sampling], atol=1e-12)
    np.testing.assert_allclose(no, [sampling - q, q, 1 - sampling], atol=1e-12)
    expected = math.sqrt(inside * p * (1 - p) + outside * q * (1 - q)) / (sampling * first)
    error = toy.std_error(np.array([outside, inside]))[0]
    assert error == pytest.approx(expected, rel=1e-6, abs=1e-6)
    devices = inside + outside
    yes_count = devices // 3
    counts = np.array([[[0, yes_count, devices - yes_count]]])
    estimate = toy.estimate(counts, counted=[devices], asked=[devices]).count[0]
    assert estimate == pytest.approx((yes_count - q * devices) / (sampling * first), rel=1e-9, abs=1e-5)


@settings(deadline=None)
@given(sampling=st.floats(0.05, 0.95), first=st.floats(0.05, 0.95), second=st.floats(0.05, 0.95))
def test_equal_sampling_rates_lower_delta_but_not_epsilon(sampling, first, second):
    """⊥ carries no information, so a report is randomized response's with probability π_s: ε stays, δ is multiplied."""
    toy = SampledResponse(cells=1, sampling=sampling, first_coin=first, second_coin=second)
    other = RandomizedResponse(cells=1, first_coin=first, second_coin=second)
    assert toy.claim(Report(1)).epsilon == pytest.approx(other.claim(Report(1)).epsilon, rel=1e-9)
    for epsilon in (0.0, 0.2, 1.0):
        expected = sampling * other.claim(Report(1)).delta(epsilon)
        assert toy.claim(Report(1)).delta(epsilon) == pytest.approx(expected, abs=1e-12)


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
