"""The combination of least variance over queries: weights, bias, interval, and what it refuses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mechanism_statistics import check_moments, z_bound
from scipy.optimize import minimize

from mechanisms.local import (
    KRandomizedResponse,
    NoPrivacy,
    ParameterError,
    QuadraticVariance,
    RandomizedResponse,
    SamplingPrivacy,
)
from mechanisms.refinement import combine, minimum_variance_weights, spread, variance_law

VARIANCES = st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=8)


def column(values):
    return np.asarray(values, dtype=np.float64)[:, np.newaxis]


@given(VARIANCES, st.data())
def test_no_other_weights_have_less_variance(variances, data):
    weights = minimum_variance_weights(column(variances))
    assert weights.sum() == pytest.approx(1.0)
    assert (weights > 0).all()
    least = float((np.square(weights) * column(variances)).sum())
    assert least == pytest.approx(1.0 / np.sum(1.0 / np.array(variances)))
    baseline = np.array(data.draw(st.lists(st.floats(0.01, 1), min_size=len(variances), max_size=len(variances))))
    baseline /= baseline.sum()
    assert least <= (np.square(baseline) * variances).sum() * (1 + 1e-12)


def test_the_weights_solve_the_quadratic_programme():
    variances = np.array([4.0, 1.0, 9.0, 0.5])
    solved = minimize(
        lambda w: (w * w * variances).sum(),
        np.full(4, 0.25),
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-15},
    )
    assert minimum_variance_weights(column(variances))[:, 0] == pytest.approx(solved.x, abs=1e-5)


def test_weights_of_exact_missing_and_equal_variances():
    weights = minimum_variance_weights(np.array([[0.0, np.inf, 0.0], [0.0, 2.0, 3.0], [7.0, 2.0, np.inf]]))
    assert weights.T.tolist() == [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]]
    assert minimum_variance_weights(np.full((2, 1), np.inf)).tolist() == [[0.5], [0.5]]
    tiny = minimum_variance_weights(column([1e-300, 3e-300]))
    assert tiny[:, 0] == pytest.approx([0.75, 0.25])
    with pytest.raises(ParameterError, match="negative"):
        minimum_variance_weights(column([-1.0]))
    with pytest.raises(ParameterError, match="row per query"):
        minimum_variance_weights(np.ones(3))


def variance_of(mechanism, asked, counted):
    def theory(truth):
        return mechanism.std_error(truth, asked=asked, counted=counted)

    return variance_law(theory, cells=mechanism.cells, devices=asked[mechanism.truth_round - 1])


VARIANCE_CASES = [
    (SamplingPrivacy(cells=5, sampling=0.45), [700, 700], [700, 700]),
    (SamplingPrivacy(cells=5, sampling=0.45), [700, 700], [650, 640]),
    (SamplingPrivacy(cells=3, sampling=0.3, blank=[0.1, 0.2, 0.3]), [90, 90], [80, 90]),
    (SamplingPrivacy(cells=40, sampling=0.3, refresh=0.4), [30, 30], [30, 30]),
    (RandomizedResponse(cells=5, first_coin=0.8, second_coin=0.2), [700], [700]),
    (RandomizedResponse(cells=5, first_coin=0.8, second_coin=0.2), [700], [300]),
    (KRandomizedResponse(cells=60, epsilon=2.0), [9], [9]),
    (KRandomizedResponse(cells=4, epsilon=2.0), [1], [1]),
    (KRandomizedResponse(cells=4, epsilon=2.0), [0], [0]),
    (NoPrivacy(cells=4), [50], [50]),
    (NoPrivacy(cells=4), [50], [40]),
]


@pytest.mark.parametrize(("mechanism", "asked", "counted"), VARIANCE_CASES, ids=range(len(VARIANCE_CASES)))
def test_variance_equals_the_theory_of_the_mechanism(mechanism, asked, counted):
    variance_function = variance_of(mechanism, asked, counted)
    rng = np.random.default_rng(5)
    devices = asked[mechanism.truth_round - 1]
    for _ in range(5):
        truth = rng.multinomial(devices, rng.dirichlet(np.full(mechanism.cells + 1, 0.3))).astype(np.int64)
        theory = mechanism.std_error(truth, asked=asked, counted=counted)
        assert variance_function.std_error(truth[1:]) == pytest.approx(theory, rel=1e-6, abs=1e-6)


def test_invalid_variance_functions_are_refused():
    with pytest.raises(ParameterError, match="quadratic"):
        variance_law(lambda truth: np.sqrt(5.0 + truth[1:] ** 3), cells=3, devices=60)
    with pytest.raises(ParameterError, match="standard error"):
        variance_law(lambda truth: np.full(len(truth) - 1, np.nan), cells=3, devices=60)
    with pytest.raises(ParameterError, match="devices"):
        variance_law(lambda truth: np.zeros(len(truth) - 1), cells=3, devices=-1)


def draws(mechanism, truths, repeats, rng):
    """Return (repeats, queries, cells) estimates on an ideal channel, and each query's variance function."""
    asked = [[int(truth.sum())] * mechanism.rounds for truth in truths]
    variance_functions = [variance_of(mechanism, n, n) for n in asked]
    counts = np.array(
        [
            [
                mechanism.estimate(mechanism.sample_counts(truth, rng=rng), counted=n, asked=n).count
                for truth, n in zip(truths, asked, strict=True)
            ]
            for _ in range(repeats)
        ]
    )
    return counts, variance_functions


@pytest.mark.slow
def test_several_queries_of_a_static_city():
    """Unbiased, with the stated variance, less than any query's and than the plain mean's."""
    mechanism = RandomizedResponse(cells=3, first_coin=0.8, second_coin=0.2)
    # The same cells, with devices that arrive and leave elsewhere: queries of different precision.
    truths = [np.array([outside, 40, 5, 90]) for outside in (200, 4_000, 1_000, 300)]
    counts, variance_functions = draws(mechanism, truths, 1_500, np.random.default_rng(2))
    made = [combine(each, variance_functions, asked=435) for each in counts]
    truth = truths[-1][1:].astype(float)
    best = np.sqrt(1.0 / sum(1.0 / variance_function.std_error(truth) ** 2 for variance_function in variance_functions))
    assert (
        best
        < 0.8 * np.sqrt(sum(variance_function.std_error(truth) ** 2 for variance_function in variance_functions)) / 4
    ).all()
    # Weights depend slightly on the pooled estimate: their mean's variance is within 1 % of the best.
    check_moments(np.array([one.estimate.count for one in made]), truth, best * 1.003, step=1.0)
    stated = np.array([one.estimate.std_error for one in made])
    assert np.abs(stated / best - 1).max() < 0.1
    lower, upper = (np.array([getattr(one.estimate, end) for one in made]) for end in ("lower", "upper"))
    covered = ((lower <= truth) & (truth <= upper)).mean(axis=0)
    # A nominal interval of sums of hundreds of coins: a percentage point for the normal approximation, plus sampling
    # error.
    assert (covered > 0.95 - 0.01 - z_bound(3) * np.sqrt(0.95 * 0.05 / 1_500)).all()


def test_pooled_variance_is_unbiased_unlike_naive_weights():
    """The naive combination is a harmonic mean, too low by (1 − π)/π·(T − 1)/T; this one is unbiased."""
    sampling, holds, queries, repeats = 0.45, 60, 4, 20_000
    rng = np.random.default_rng(8)
    mechanism = SamplingPrivacy(cells=1, sampling=sampling)
    variance_function = variance_of(mechanism, [500, 500], [500, 500])
    each = rng.binomial(holds, sampling, (repeats, queries)) / sampling
    best = np.sqrt(holds * (1 - sampling) / sampling / queries)
    naive = np.array(
        [(minimum_variance_weights(column(variance_function.std_error(row) ** 2)) * column(row)).sum() for row in each]
    )
    assert naive == pytest.approx(queries / (1.0 / each).sum(axis=1))
    wrong = -(1 - sampling) / sampling * (queries - 1) / queries
    chance = z_bound(2) * best / np.sqrt(repeats)
    assert abs(naive.mean() - holds - wrong) < chance + abs(wrong) * 0.1  # to the next order, 1/(πY)
    assert abs(naive.mean() - holds) > 0.8 > 4 * chance
    ours = np.array(
        [combine(column(row), [variance_function] * queries, asked=500).estimate.count[0] for row in each[:2_000]]
    )
    assert ours == pytest.approx(each[:2_000].mean(axis=1))  # equal variances: exactly the plain mean
    assert abs(each.mean() - holds) < chance


def test_drift_is_the_bias_of_a_changing_city():
    mechanism = SamplingPrivacy(cells=2, sampling=0.45)
    truths = [np.array([500, 80, 10]), np.array([500, 70, 20]), np.array([500, 60, 30])]
    counts, variance_functions = draws(mechanism, truths, 800, np.random.default_rng(4))
    made = [combine(each, variance_functions, asked=590) for each in counts]
    occupancy = np.array([truth[1:] for truth in truths], dtype=np.float64)
    drift = made[0].drift(occupancy)
    assert drift == pytest.approx([10.0, -10.0])
    theory = spread(made[0].weights, np.array([mechanism.std_error(truth) for truth in truths]))
    check_moments(np.array([one.estimate.count for one in made]), occupancy[-1] + drift, theory, step=1 / 0.45 / 3)


def test_query_without_received_reports_is_left_out():
    variance_function = QuadraticVariance(np.full(2, 4.0), np.zeros(2), np.zeros(2))
    silent = QuadraticVariance(np.full(2, np.inf), np.zeros(2), np.zeros(2))
    counts = np.array([[10.0, -3.0], [0.0, 0.0], [20.0, -1.0]])
    made = combine(counts, [variance_function, silent, variance_function], asked=50)
    assert made.weights.tolist() == [[0.5, 0.5], [0.0, 0.0], [0.5, 0.5]]
    assert made.estimate.count.tolist() == [15.0, -2.0]
    assert made.estimate.std_error == pytest.approx([np.sqrt(2), np.sqrt(2)])
    assert spread(made.weights, np.array([[2.0, 2.0], [np.inf, np.inf], [2.0, 2.0]])) == pytest.approx(2**0.5)
    assert (made.estimate.lower >= 0).all()
    nothing = combine(counts[1:2], [silent], asked=50).estimate
    assert np.isinf(nothing.std_error).all()
    assert (nothing.lower.tolist(), nothing.upper.tolist()) == ([0.0, 0.0], [50.0, 50.0])
    with pytest.raises(ParameterError, match="one per query"):
        combine(counts, [variance_function], asked=50)
