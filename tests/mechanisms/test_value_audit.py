"""The audit of randomisers of values: its bounds hold, come near where the ε is known, and find what is wrong."""

import math

import numpy as np
import pytest

from mechanisms.parameter import ParameterError
from mechanisms.privacy.audit import epsilon_from_below, estimate_bias, report_bias

VALUES, TRIALS, ALPHA = 4, 20_000, 0.05


def k_ary(epsilon, seed, trials=TRIALS):
    """Reports of k-ary randomized response."""
    rng = np.random.default_rng(seed)
    true = math.exp(epsilon) / (math.exp(epsilon) + VALUES - 1)
    away = rng.integers(1, VALUES, (VALUES, trials)) * (rng.random((VALUES, trials)) >= true)
    return ((np.arange(VALUES)[:, np.newaxis] + away) % VALUES).tolist()


def test_bound_of_a_known_epsilon_holds_and_is_near():
    bounds = [epsilon_from_below(k_ary(1.0, seed), alpha=1e-3).epsilon for seed in range(30)]
    assert max(bounds) <= 1.0
    assert min(bounds) >= 0.8


def test_no_epsilon_of_reports_without_information():
    rng = np.random.default_rng(5)
    bounds = [epsilon_from_below(rng.integers(0, 8, (3, 2_000)).tolist(), alpha=1e-3).epsilon for _ in range(30)]
    assert max(bounds) == 0.0


@pytest.mark.parametrize(
    "wrap",
    [
        str,
        lambda v: str(v).encode(),
        lambda v: (v, [v]),
        lambda v: np.eye(VALUES, dtype=np.int8)[v],
        np.int64,
        lambda v: {v},
    ],
)
def test_reports_of_any_type_are_categories(wrap):
    reports = k_ary(1.0, 3)
    plain = epsilon_from_below(reports, alpha=ALPHA)
    assert epsilon_from_below([[wrap(one) for one in row] for row in reports], alpha=ALPHA) == plain
    assert plain.outcomes == VALUES


def test_reports_without_categories_are_refused():
    with pytest.raises(ParameterError, match="dict"):
        epsilon_from_below([[{}], [{}]], alpha=ALPHA)
    with pytest.raises(ParameterError, match="two values"):
        epsilon_from_below([[1, 2]], alpha=ALPHA)


def test_real_numbers_are_binned_on_the_first_half():
    """Laplace noise of scale 1 on 0 or 1 has ε = 1; without noise the values are told apart."""
    rng = np.random.default_rng(8)
    bounds = [
        epsilon_from_below([rng.laplace(v, 1.0, TRIALS).tolist() for v in (0, 1)], alpha=1e-3).epsilon
        for _ in range(20)
    ]
    assert max(bounds) <= 1.0
    assert min(bounds) >= 0.7
    apart = [[v + one for one in rng.random(2_000).tolist()] for v in (0, 2)]
    assert epsilon_from_below(apart, alpha=ALPHA).epsilon > 4.0


@pytest.mark.parametrize(
    "odd", [math.nan, math.inf, -math.inf, None, -1, "lost", np.float64("nan"), np.array(math.nan)]
)
@pytest.mark.parametrize("of", [(0, 1), (1,)])
def test_an_odd_answer_among_real_numbers_hides_nothing(odd, of):
    """One answer in 1,000 is no number, of both values or of one; noise of scale ⅓ has ε = 3."""
    rng = np.random.default_rng(8)
    reports = [rng.laplace(v, 1 / 3, TRIALS).tolist() for v in (0, 1)]
    plain = epsilon_from_below(reports, alpha=ALPHA)
    for v in of:
        reports[v][::1_000] = [odd] * (TRIALS // 1_000)
    found = epsilon_from_below(reports, alpha=ALPHA)
    assert found.outcomes == plain.outcomes + 1
    assert found.epsilon > 2.5


def test_an_odd_answer_of_one_value_alone_is_an_event():
    """All values give the same noise, except that one in 20 reports of value 1 is not a number."""
    rng = np.random.default_rng(9)
    reports = [rng.laplace(0.0, 1.0, TRIALS).tolist() for _ in (0, 1)]
    reports[1][::20] = [float("nan") for _ in range(TRIALS // 20)]
    assert epsilon_from_below(reports, alpha=ALPHA).epsilon > 4.0
    assert epsilon_from_below([[(v,) for v in row] for row in reports], alpha=ALPHA).epsilon > 4.0
    assert epsilon_from_below([[np.array([v, 1.0]) for v in row] for row in reports], alpha=ALPHA).epsilon > 4.0


def test_the_greatest_numbers_have_bins():
    rng = np.random.default_rng(9)
    reports = [[math.copysign(1e308 + one * 1e307, one - 0.5 - v) for one in rng.random(TRIALS)] for v in (0, 1)]
    assert epsilon_from_below(reports, alpha=ALPHA).epsilon > 3.0


def test_delta_is_allowed_for():
    """Value 1 is revealed with probability 0.05: no ε at δ = 0, and ε = 0 at δ = 0.05."""
    rng = np.random.default_rng(2)
    reports = [(rng.random(TRIALS) < 0.05 * v).tolist() for v in (0, 1)]
    assert epsilon_from_below(reports, alpha=ALPHA).epsilon > 3.0
    assert epsilon_from_below(reports, alpha=ALPHA, delta=0.03).epsilon > 2.0
    assert epsilon_from_below(reports, alpha=ALPHA, delta=0.06).epsilon == 0.0


def inverted(epsilon):
    """The unbiased estimator of k-ary randomized response."""
    true = math.exp(epsilon) / (math.exp(epsilon) + VALUES - 1)
    false = (1 - true) / (VALUES - 1)
    return lambda reports: (np.bincount(reports, minlength=VALUES) - len(reports) * false) / (true - false)


def test_bias_of_estimators():
    reports = k_ary(1.0, 4)
    right = estimate_bias(reports, inverted(1.0), alpha=1e-3)
    assert not right.found
    assert (right.upper - right.lower < 0.1).all()
    wrong = estimate_bias(reports, inverted(2.0), alpha=1e-3)
    # With the wrong ε the estimate is ((p − q)·share + q − q')/(p' − q').
    p, r = (math.exp(e) / (math.exp(e) + 3) for e in (1.0, 2.0))
    q, s = (1 - p) / 3, (1 - r) / 3
    shares = np.arange(4) / 6
    bias = ((p - q) * shares + q - s) / (r - s) - shares
    assert wrong.found
    assert ((wrong.lower <= bias) & (bias <= wrong.upper)).all()
    clipped = estimate_bias(reports, lambda found: np.maximum(inverted(1.0)(found), 0.0), alpha=1e-3)
    assert clipped.lower[0] > 0.0


def test_bias_needs_enough_reports_and_a_fitting_estimate():
    with pytest.raises(ParameterError, match="trials"):
        estimate_bias(k_ary(1.0, 4, trials=100), inverted(1.0), alpha=ALPHA)
    with pytest.raises(ParameterError, match="finite"):
        estimate_bias(k_ary(1.0, 4), lambda _: [1.0], alpha=ALPHA)


def test_bias_of_reports_that_are_numbers():
    rng = np.random.default_rng(1)
    reports = [rng.laplace(v, 1.0, TRIALS).tolist() for v in range(3)]
    assert not report_bias(reports, alpha=1e-3).found
    assert report_bias([[one + 0.1 for one in row] for row in reports], alpha=1e-3).found


@pytest.mark.filterwarnings("error")
def test_reports_that_are_not_finite_are_no_unbiased_estimates():
    rng = np.random.default_rng(1)
    reports = [rng.laplace(v, 1.0, TRIALS).tolist() for v in range(3)]
    reports[1][5], reports[2][5] = math.nan, math.inf
    bias = report_bias(reports, alpha=1e-3)
    assert bias.found
    assert np.isnan(bias.mean).tolist() == [False, True, True]
