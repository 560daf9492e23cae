"""Warner's randomized response: its variance, its two-coin form and its exact ε."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
