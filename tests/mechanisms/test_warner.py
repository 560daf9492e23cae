"""Warner's randomized response: its variance, its two-coin form and its exact ε."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.local import ParameterError, RandomizedResponse
from mechanisms.local.yes_no import Warner
from mechanisms.privacy import LinkedReports, ReleasedDifferences, Report, Shuffled

probabilities = st.floats(0.01, 0.99).filter(lambda p: abs(p - 0.5) > 0.01)


@settings(deadline=None)
@given(truthful=probabilities, cells=st.integers(1, 5), outside=st.integers(0, 10**8), inside=st.integers(0, 10**6))
def test_warner_variance_does_not_depend_on_the_truth(truthful, cells, outside, inside):
    """N·p(1 − p)/(2p − 1)² (Warner 1965)."""
    true_counts = np.full(cells + 1, inside)
    true_counts[0] = outside
    expected = math.sqrt(true_counts.sum() * truthful * (1 - truthful)) / abs(2 * truthful - 1)
    np.testing.assert_allclose(
        Warner(cells=cells, truthful=truthful).std_error(true_counts), expected, rtol=1e-9, atol=1e-9
    )


@settings(deadline=None)
@given(truthful=st.floats(0.51, 0.99), cells=st.integers(1, 3))
def test_warner_is_the_two_coin_form_with_a_fair_second_coin(truthful, cells):
    warner = Warner(cells=cells, truthful=truthful)
    coins = RandomizedResponse(cells=cells, first_coin=2 * truthful - 1, second_coin=0.5)
    true_counts = np.arange(cells + 1) * 10 + 50
    np.testing.assert_allclose(warner.std_error(true_counts), coins.std_error(true_counts), rtol=1e-9)
    asked = [int(true_counts.sum())]
    counts = warner.sample_counts(true_counts, rng=np.random.default_rng(41))
    one, other = (m.estimate(counts, counted=asked, asked=asked) for m in (warner, coins))
    np.testing.assert_allclose(one.count, other.count, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(one.upper, other.upper, rtol=1e-9, atol=1e-6)
    for view in (Report(1), LinkedReports(), LinkedReports(queries=3)):
        assert warner.claim(view).epsilon == pytest.approx(coins.claim(view).epsilon, rel=1e-9)
        for epsilon in (0.0, 0.3, 1.0):
            assert warner.claim(view).delta(epsilon) == pytest.approx(coins.claim(view).delta(epsilon), abs=1e-9)


@settings(deadline=None)
@given(truthful=probabilities)
def test_warner_epsilon_counts_both_answers_and_both_cells(truthful):
    one = abs(math.log(truthful / (1 - truthful)))
    assert Warner(cells=1, truthful=truthful).claim(Report(1)).epsilon == pytest.approx(one, rel=1e-12)
    assert Warner(cells=9, truthful=truthful).claim(Report(1)).epsilon == pytest.approx(2 * one, rel=1e-12)


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


def test_warner_views_it_lacks_are_unknown():
    warner = Warner(cells=2, truthful=0.7)
    for view in (Report(2), ReleasedDifferences(crowd=3), Shuffled(2, 100)):
        assert warner.claim(view).kind == "unknown"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"truthful": 0.5}, "truthful must not be 1/2"),
        ({"truthful": 1.1}, "truthful must be a probability"),
        ({"truthful": float("nan")}, "truthful must be a probability"),
        ({"truthful": "x"}, "truthful must be a number"),
        ({"truthful": 0.7, "cells": 0}, "cells must be at least 1"),
    ],
)
def test_invalid_parameters_name_field_rule_and_value(parameters, message):
    with pytest.raises(ParameterError, match=rf"^{message}"):
        Warner(**{"cells": 3, **parameters})
