"""Refresh: the coins, the estimator with its exact variance, and its claims against brute force."""

import math

import numpy as np
import pytest
from mechanism_cases import run_query, truth_of
from numpy.random import default_rng

from mechanisms.local import SamplingPrivacy
from mechanisms.local.common.estimators import TwoRounds
from mechanisms.local.common.response_counts import ResponseCounts
from mechanisms.privacy import LinkedReports, ReleasedCounts, ReleasedDifferences

MECHANISMS = {
    "equal blanks": SamplingPrivacy(cells=3, sampling=0.45, refresh=0.3),
    "unequal blanks": SamplingPrivacy(cells=3, sampling=0.3, blank=[0.1, 0.3, 0.05], refresh=0.5),
    "all redrawn": SamplingPrivacy(cells=3, sampling=0.45, blank_zero=0.05, refresh=1.0),
    "no blank zero": SamplingPrivacy(cells=3, sampling=0.45, blank_zero=0.0, refresh=0.2),
    "one cell": SamplingPrivacy(cells=1, sampling=0.4, blank=0.1, refresh=0.7),
}
every = pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS.keys())


def test_refresh_zero_changes_nothing():
    """The same object in every respect, the same stream, and an equal final state of the generator."""
    plain, named = SamplingPrivacy(cells=5, sampling=0.45), SamplingPrivacy(cells=5, sampling=0.45, refresh=0.0)
    assert plain == named
    assert hash(plain) == hash(named)
    assert repr(plain) == repr(named)
    assert plain != SamplingPrivacy(cells=5, sampling=0.45, refresh=0.1)
    truth, generators = truth_of([5, 4, 3, 2, 1, 0]), (default_rng(1), default_rng(1))
    np.testing.assert_array_equal(
        *(run_query(m, truth, rng=r) for m, r in zip((plain, named), generators, strict=True))
    )
    counts = np.array([5, 4, 3, 2, 1, 0])
    np.testing.assert_array_equal(
        *(m.sample_counts(counts, rng=r) for m, r in zip((plain, named), generators, strict=True))
    )
    assert generators[0].bit_generator.state == generators[1].bit_generator.state


def test_weight_of_round_one_is_optimal():
    """In an empty cell no other weight has less variance, with and without loss."""
    estimator = TwoRounds(0.45, np.array([0.1, 0.02]), 0.3)
    for counted, asked in (((500, 500), (500, 500)), ((300, 450), (500, 500)), ((400, 450), (600, 500))):
        responses = ResponseCounts(asked, counted, 2)
        best = estimator.weight(responses)
        weights = [best + shift for shift in (-0.05, 0.0, 0.05)]
        errors = [estimator.variance(responses, weight).std_error(np.zeros(2)) for weight in weights]
        assert (errors[1] < errors[0]).all()
        assert (errors[1] < errors[2]).all()


def test_refreshed_releases_state_what_is_proved():
    mechanism = SamplingPrivacy(cells=4, sampling=0.45, refresh=0.3)
    linked = mechanism.claim(LinkedReports())
    finite = mechanism.claim(ReleasedDifferences(crowd=20))
    assert finite.kind == "bound"
    assert finite.epsilon <= linked.epsilon
    assert finite.delta(finite.epsilon) == 0.0
    assert finite.delta(0.5) < mechanism.claim(ReleasedCounts(crowd=20)).delta(0.5) < linked.delta(0.5)
    moved = mechanism.claim(ReleasedDifferences(crowd=20, other_crowd=5))
    assert (moved.kind, moved.epsilon) == ("bound", linked.epsilon)
    # A move is two steps, of which the smaller crowd hides less.
    step = mechanism.claim(ReleasedDifferences(crowd=5))
    least = min(step.delta(first) + math.exp(first) * step.delta(0.6 - first) for first in np.linspace(0.0, 0.6, 601))
    assert least * (1 - 1e-3) <= moved.delta(0.6) <= 1.02 * least
    assert mechanism.claim(ReleasedDifferences(crowd=1, other_crowd=9)).delta(0.6) == linked.delta(0.6)
    two = mechanism.claim(ReleasedDifferences(crowd=20, queries=2))
    assert finite.delta(1.0) < two.delta(1.0) < 2 * finite.delta(0.5)
    shown = SamplingPrivacy(cells=4, sampling=0.45, blank_zero=0.0, refresh=0.3)
    assert shown.claim(ReleasedDifferences(crowd=20)).kind == "infinite"
    assert shown.claim(ReleasedDifferences(crowd=20, k=5)).kind == "unknown"
    assert shown.claim(ReleasedDifferences(crowd=20, other_crowd=20)).epsilon == math.inf
    assert shown.claim(ReleasedDifferences(crowd=20, other_crowd=20, k=5)).kind == "unknown"
    assert "no blank is 0" in shown.warnings()[-1]
    assert mechanism.warnings() == []
    # With π_s = 1 there is nothing to refresh.
    certain = SamplingPrivacy(cells=2, sampling=1.0, refresh=0.5)
    assert certain.claim(ReleasedDifferences(crowd=3)).delta(4.0) == 1.0
    assert certain.claim(LinkedReports()).kind == "infinite"
    np.testing.assert_array_equal(certain.std_error(np.array([5, 2, 1])), 0.0)
