"""Audits: lower bounds from samples, and of randomisers of values."""

import math

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from mechanisms.parameter import ParameterError
from mechanisms.privacy.audit import (
    PairAudit,
    clopper_pearson,
    delta_lower_bound,
    epsilon_from_below,
    epsilon_lower_bound,
    estimate_bias,
    report_bias,
)
from simulator.kits.mechanisms.bounds import mean_interval, mean_reach, row_keys, same_law, square_reach


@pytest.mark.parametrize("alpha", [0.5, 0.1, 0.025, 1e-6, 1e-10])
@pytest.mark.parametrize("trials", [1, 7, 1000])
def test_clopper_pearson_equals_scipy(alpha, trials):
    for successes in sorted({0, 1, trials // 3, trials - 1, trials}):
        lower, upper = clopper_pearson(successes, trials, alpha=alpha)
        peer = binomtest(successes, trials).proportion_ci(confidence_level=1 - 2 * alpha, method="exact")
        # 1 − 2·alpha has lost digits of a tiny alpha before scipy sees it.
        assert lower == pytest.approx(peer.low, rel=1e-6, abs=1e-12)
        assert upper == pytest.approx(peer.high, rel=1e-6, abs=1e-12)


def test_clopper_pearson_without_trials_excludes_nothing():
    lower, upper = clopper_pearson([0, 0], [0, 5], alpha=0.1)
    assert lower.tolist() == [0, 0]
    assert upper[0] == 1


@pytest.mark.parametrize(
    ("successes", "trials", "alpha", "field"),
    [(-1, 4, 0.1, "successes"), (5, 4, 0.1, "successes"), (0.5, 4, 0.1, "successes"), (1, 4.0, 0.1, "trials")]
    + [(1, 4, alpha, "alpha") for alpha in (0.0, 0.6, math.nan)],
)
def test_invalid_counts_are_refused(successes, trials, alpha, field):
    with pytest.raises(ParameterError, match=rf"^{field} must"):
        clopper_pearson(successes, trials, alpha=alpha)


def test_lower_bounds_of_epsilon_and_delta():
    seen = {"hits_p": 800, "trials_p": 1000, "hits_q": 200, "trials_q": 1000, "alpha": 1e-3}
    epsilon = epsilon_lower_bound(**seen)
    assert 1.1 < epsilon < math.log(4)
    assert epsilon_lower_bound(**seen, delta=0.5) < epsilon
    assert epsilon_lower_bound(**seen, delta=0.9) == 0
    delta = delta_lower_bound(**seen, epsilon=0.5)
    assert 0.35 < delta < 0.8 - math.exp(0.5) * 0.2
    # Both bounds are consistent.
    assert delta_lower_bound(**seen, epsilon=epsilon) == pytest.approx(0, abs=1e-12)
    assert delta_lower_bound(**seen, epsilon=800) == 0
    with pytest.raises(ParameterError, match="epsilon"):
        delta_lower_bound(**seen, epsilon=-1)


def halves(rng, p, q, n):
    return PairAudit(*(rng.multinomial(n, distribution) for distribution in (p, q, p, q)))


P, Q = np.array([0.5, 0.2, 0.2, 0.1]), np.array([0.2, 0.3, 0.3, 0.2])


def test_audit_exceeds_the_truth_at_most_as_often_as_stated():
    """The greatest ratio is 2.5, δ(.5) = .5 − .2·e^.5; a thousand audits at one in five."""
    rng, alpha, runs = np.random.default_rng(1), 0.2, 1000
    audits = [halves(rng, P, Q, 300) for _ in range(runs)]
    epsilons = sum(audit.epsilon_at_least(alpha=alpha) > math.log(2.5) for audit in audits)
    deltas = sum(audit.delta_at_least(0.5, alpha=alpha) > 0.5 - 0.2 * math.exp(0.5) for audit in audits)
    assert binom.sf(max(epsilons, deltas) - 1, runs, alpha) > 1e-6


def test_audit_of_many_devices_is_nearly_tight():
    audit = halves(np.random.default_rng(2), P, Q, 10**6)
    assert audit.epsilon_at_least(alpha=1e-9) == pytest.approx(math.log(2.5), abs=0.02)
    assert audit.delta_at_least(0.5, alpha=1e-9) == pytest.approx(0.5 - 0.2 * math.exp(0.5), abs=0.01)
    assert halves(np.random.default_rng(2), P, P, 10**5).epsilon_at_least(alpha=1e-9) == 0


def test_witness_is_an_output_of_one_distribution_only():
    rng = np.random.default_rng(3)
    p, q = np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.5, 0.5, 0.0, 0.0])
    witness = halves(rng, p, q, 1000).find_witness(least_hits=30, alpha=1e-6)
    assert witness is not None
    assert 130 < witness.hits < 270
    assert witness.trials == 1000
    assert witness.epsilon > 2
    assert halves(rng, q, p, 1000).find_witness(least_hits=30, alpha=1e-6) is None
    assert halves(rng, P, Q, 1000).find_witness(least_hits=30, alpha=1e-6) is None
    assert PairAudit(*(np.zeros(3, dtype=int) for _ in range(4))).epsilon_at_least(alpha=0.1) == 0


def test_mean_intervals_cover_at_least_as_often_as_stated():
    """A rare large value is the worst case for a bound whose range comes from the sample."""
    rng, alpha, runs = np.random.default_rng(4), 0.1, 2000
    samples = (rng.random((runs, 400)) < 0.03).astype(float)
    lower, upper = mean_interval(samples.T, alpha=alpha)
    assert binom.sf(((lower > 0.03) | (upper < 0.03)).sum() - 1, runs, alpha) > 1e-6
    off = samples.T - 0.03
    variance = np.full(runs, 0.03 * 0.97)
    wrong = (np.abs(off.mean(axis=0)) > mean_reach(off, variance, alpha=alpha)).sum()
    assert binom.sf(wrong - 1, runs, alpha) > 1e-6
    crowds = rng.binomial(24, 0.3, (300, runs)) - 24 * 0.3
    variance = np.full(runs, 24 * 0.21)
    reach = square_reach(crowds, variance, step=np.ones(runs), alpha=alpha)
    wrong = (np.abs((crowds**2).mean(axis=0) - variance) > reach).sum()
    assert binom.sf(wrong - 1, runs, alpha) > 1e-6


def test_same_law_rejects_at_the_stated_rate():
    rng, alpha, runs = np.random.default_rng(5), 0.1, 200
    distributions = np.array([0.4, 0.3, 0.2, 0.05, 0.05])
    rejected = sum(
        same_law(rng.choice(5, 600, p=distributions), rng.choice(5, 200, p=distributions)) < alpha for _ in range(runs)
    )
    assert binom.sf(rejected - 1, runs, alpha) > 1e-6
    assert same_law(rng.choice(5, 4000, p=distributions), rng.choice(5, 4000, p=distributions[::-1])) < 1e-9
    assert same_law(np.zeros(100, dtype=int), np.zeros(50, dtype=int)) == 1


def test_row_keys_are_unique_per_row():
    rows = np.stack(np.meshgrid(*[np.arange(-2, 9)] * 4), axis=-1).reshape(-1, 2, 2)
    assert len(np.unique(row_keys(rows))) == len(rows)
    assert row_keys(rows[:3]).tolist() == row_keys(rows)[:3].tolist()
    pairs = np.stack([row_keys(rows), row_keys(rows[::-1])], axis=1)
    assert len(np.unique(row_keys(pairs))) == len(rows)


VALUES, TRIALS, ALPHA = 4, 20_000, 0.05


def k_ary(epsilon, seed, trials=TRIALS):
    """Reports of k-ary randomized response."""
    rng = np.random.default_rng(seed)
    true = math.exp(epsilon) / (math.exp(epsilon) + VALUES - 1)
    away = rng.integers(1, VALUES, (VALUES, trials)) * (rng.random((VALUES, trials)) >= true)
    return ((np.arange(VALUES)[:, np.newaxis] + away) % VALUES).tolist()


def test_bound_of_a_known_epsilon_holds_and_is_near():
    bounds = [epsilon_from_below(k_ary(1.0, seed), alpha=1e-3).epsilon for seed in range(12)]
    assert max(bounds) <= 1.0
    assert min(bounds) >= 0.8


def test_no_epsilon_of_reports_without_information():
    rng = np.random.default_rng(5)
    bounds = [epsilon_from_below(rng.integers(0, 8, (3, 2_000)).tolist(), alpha=1e-3).epsilon for _ in range(12)]
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
    reports = k_ary(1.0, 3, trials=4_000)
    plain = epsilon_from_below(reports, alpha=ALPHA)
    assert epsilon_from_below([[wrap(one) for one in row] for row in reports], alpha=ALPHA) == plain
    assert plain.outcomes == VALUES


def test_reports_without_categories_are_refused():
    with pytest.raises(ParameterError, match="dict"):
        epsilon_from_below([[{}], [{}]], alpha=ALPHA)
    with pytest.raises(ParameterError, match="two values"):
        epsilon_from_below([[1, 2]], alpha=ALPHA)


def test_real_numbers_are_binned_on_the_first_half():
    """Laplace noise of scale 1 on 0 or 1 has ε = 1; without noise the report is the value."""
    rng = np.random.default_rng(8)
    bounds = [
        epsilon_from_below([rng.laplace(v, 1.0, TRIALS).tolist() for v in (0, 1)], alpha=1e-3).epsilon for _ in range(8)
    ]
    assert max(bounds) <= 1.0
    assert min(bounds) >= 0.7
    apart = [[v + one for one in rng.random(2_000).tolist()] for v in (0, 2)]
    assert epsilon_from_below(apart, alpha=ALPHA).epsilon > 4.0


@pytest.mark.parametrize("odd", [math.nan, -math.inf, None, -1, "lost", np.array(math.nan)])
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
