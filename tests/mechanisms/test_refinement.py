"""Refinements: clip, norm-sub, norm-mul, the simplex projection, and the combination over queries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mechanism_statistics import check_moments
from scipy.stats import norm

from mechanisms.local import (
    Estimate,
    KRandomizedResponse,
    NoPrivacy,
    ParameterError,
    QuadraticVariance,
    RandomizedResponse,
    SamplingPrivacy,
)
from mechanisms.refinement import (
    RefinedEstimate,
    clip,
    clipped_law,
    clipped_normal,
    combine,
    minimum_variance_weights,
    norm_mul,
    norm_sub,
    project_onto_simplex,
    simplex,
    spread,
    total_of,
    variance_law,
)

COUNTS = st.lists(st.floats(-500, 500).map(lambda x: round(x, 3)), min_size=1, max_size=12).map(np.array)
ASKED = st.integers(0, 800)
TOTALS = st.sampled_from(["estimated", "asked"])
TO_TOTAL = pytest.mark.parametrize("refine", [simplex, norm_sub, norm_mul], ids=["simplex", "norm_sub", "norm_mul"])


def estimate_of(counts, asked=10_000):
    counts = np.asarray(counts, dtype=np.float64)
    centre = np.clip(counts, 0, asked)
    lower, upper = np.maximum(centre - 3, 0), np.minimum(centre + 3, asked)
    return Estimate(counts, np.full(len(counts), 2.0), lower, upper, "score")


def close(counts, scale):
    return pytest.approx(np.asarray(counts), abs=1e-9 * (1 + scale))


def published_norm_sub(counts, total):
    """The procedure that its authors publish, step by step, to convergence."""
    counts = np.array(counts, dtype=np.float64)
    for _ in range(10 * len(counts) + 10):
        if abs(counts.sum() - total) <= 1e-10 * (1 + total) and not (counts < 0).any():
            return counts
        if (counts <= 0).all():
            return np.full(len(counts), total / len(counts))
        counts[counts < 0] = 0
        positive = counts > 0
        counts[positive] += (total - counts.sum()) / positive.sum()
    raise AssertionError("did not end")


@TO_TOTAL
@given(counts=COUNTS, asked=ASKED, total=TOTALS)
def test_projection_is_feasible_has_the_total_and_keeps_the_order(refine, counts, asked, total):
    before = estimate_of(counts)
    after = refine(before, asked=asked, total=total)
    wanted = total_of(counts, total, asked=asked)
    assert (after.count >= 0).all()
    assert after.count.sum() == pytest.approx(wanted, abs=1e-9 * (1 + np.abs(counts).max()))
    order = np.argsort(counts, kind="stable")
    assert (np.diff(after.count[order]) >= 0).all()
    equal = np.diff(counts[order]) == 0
    assert (np.diff(after.count[order])[equal] == 0).all()  # to the last bit
    assert after.properties.biased
    assert after.properties.non_negative
    assert after.properties.ordered
    assert after.properties.total == total
    # The interval keeps all its information, and no standard error is stated.
    assert np.array_equal(after.lower, before.lower)
    assert np.array_equal(after.upper, before.upper)
    assert after.interval == "score, unrefined"
    assert np.isnan(after.std_error).all()


@given(counts=COUNTS, total=st.floats(0, 2000))
def test_projection_satisfies_the_karush_kuhn_tucker_conditions(counts, total):
    p = project_onto_simplex(counts, total)
    slack = 1e-9 * (1 + np.abs(counts).max() + total)
    assert p.sum() == pytest.approx(total, abs=slack)
    assert (p >= 0).all()
    kept = p > slack
    if kept.any():
        multiplier = (counts - p)[kept]
        assert np.ptp(multiplier) <= slack  # one τ for all kept cells
        assert (counts[~kept] - multiplier.mean() <= 2 * slack).all()  # none of the others would be above 0


@given(counts=COUNTS, asked=ASKED, total=TOTALS)
def test_norm_sub_equals_its_published_procedure(counts, asked, total):
    ours = norm_sub(estimate_of(counts), asked=asked, total=total).count
    wanted = total_of(counts, total, asked=asked)
    # Their procedure stops immediately if no count is negative and the sum is right.
    assert ours == close(published_norm_sub(counts, wanted), np.abs(counts).max() + asked)


@given(counts=COUNTS, asked=ASKED, total=TOTALS)
def test_norm_sub_equals_the_projection_under_its_condition(counts, asked, total):
    by_steps = norm_sub(estimate_of(counts), asked=asked, total=total).count
    projected = simplex(estimate_of(counts), asked=asked, total=total).count
    wanted, positive = total_of(counts, total, asked=asked), counts > 0
    excess = counts[positive].sum() - wanted
    scale = 1e-9 * (1 + np.abs(counts).max() + asked)
    if total == "estimated":
        assert excess >= -scale
    if excess >= -scale:
        assert by_steps == pytest.approx(projected, abs=10 * scale)
    elif positive.any():
        added = -excess / positive.sum()
        room = (-added - counts[~positive]).min(initial=np.inf)  # below 0: some other cell would be above 0
        if abs(room) > 100 * scale:
            same = np.abs(by_steps - projected).max() <= 10 * scale
            assert same == (room > 0)


def test_norm_sub_and_the_projection_can_differ():
    before = estimate_of([6.0, -1.0, -50.0])
    assert norm_sub(before, asked=10, total="asked").count.tolist() == [10.0, 0.0, 0.0]
    assert simplex(before, asked=10, total="asked").count == pytest.approx([8.5, 1.5, 0.0])
    assert norm_sub(before, asked=10).count.tolist() == simplex(before, asked=10).count.tolist() == [0.0, 0.0, 0.0]


def test_total_is_spread_if_no_count_is_positive():
    for refine in (norm_sub, norm_mul):
        assert refine(estimate_of([0.0, -3.0]), asked=4, total="asked").count.tolist() == [2.0, 2.0]


def test_norm_mul_scales_and_norm_sub_subtracts():
    before = estimate_of([100.0, 50.0, -30.0])
    assert norm_mul(before, asked=1000).count == pytest.approx([80.0, 40.0, 0.0])
    assert norm_sub(before, asked=1000).count == pytest.approx([85.0, 35.0, 0.0])


@st.composite
def truths(draw, *, everyone_inside):
    """Estimates of a possible truth, and the number of devices asked."""
    truth = np.array(draw(st.lists(st.integers(0, 60), min_size=1, max_size=8)), dtype=np.float64)
    noise = draw(st.lists(st.floats(-80, 80), min_size=len(truth), max_size=len(truth)))
    outside = 0 if everyone_inside else draw(st.integers(0, 50))
    return truth, truth + np.array(noise), int(truth.sum()) + outside


@given(truths(everyone_inside=False))
def test_clip_never_increases_the_error_of_a_cell(case):
    truth, counts, asked = case
    after = clip(estimate_of(counts, asked), asked=asked)
    assert (np.abs(after.count - truth) <= np.abs(counts - truth)).all()
    assert ((after.count >= 0) & (after.count <= asked)).all()
    assert after.properties.never_worse == "in each cell"
    again = clip(estimate_of(after.count, asked), asked=asked)
    assert np.array_equal(again.count, after.count)


@given(truths(everyone_inside=True))
def test_projection_never_increases_total_error_without_outside(case):
    truth, counts, asked = case
    after = simplex(estimate_of(counts, asked), asked=asked, total="asked")
    before = ((counts - truth) ** 2).sum()
    assert ((after.count - truth) ** 2).sum() <= before * (1 + 1e-9) + 1e-9
    assert after.properties.never_worse == "over all cells"


@given(truths(everyone_inside=False))
def test_projection_to_estimated_total_not_too_low_is_never_worse(case):
    truth, counts, asked = case
    after = simplex(estimate_of(counts, asked), asked=asked)
    if truth.sum() <= total_of(counts, "estimated", asked=asked):
        assert ((after.count - truth) ** 2).sum() <= ((counts - truth) ** 2).sum() * (1 + 1e-9) + 1e-9
    assert after.properties.never_worse == "not promised"


def test_projection_to_a_too_low_total_may_be_worse():
    truth, counts = np.array([0.0, 10.0]), np.array([-1.0, 1.0])
    after = simplex(estimate_of(counts), asked=10)
    assert ((after.count - truth) ** 2).sum() > ((counts - truth) ** 2).sum()


def test_the_moments_of_a_clipped_normal():
    truth, spread, asked = np.array([0.0, 3.0, 10.0, 97.0, 40.0, 7.0]), np.array([10.0, 8, 5, 12, 0.5, 0]), 100
    theory = clipped_normal(truth, spread, asked=asked)
    grid = np.linspace(-12, 12, 400_001)
    masses = norm.pdf(grid) / norm.pdf(grid).sum()
    for i in range(5):
        exact = clipped_law(truth[i] + spread[i] * grid, masses, truth=truth[i], asked=asked)
        assert theory.bias[i] == pytest.approx(exact.bias, abs=1e-6)
        assert theory.rmse[i] == pytest.approx(exact.rmse, abs=1e-6)
    assert (theory.bias[5], theory.rmse[5]) == (0.0, 0.0)
    assert theory.bias[0] == pytest.approx(10 / np.sqrt(2 * np.pi))  # half a normal
    assert (theory.rmse <= spread + 1e-12).all()


def test_invalid_refinements_are_refused():
    before = estimate_of([1.0, 2.0])
    with pytest.raises(ParameterError, match=r'total must be "estimated" or "asked"'):
        simplex(before, asked=3, total="guessed")
    with pytest.raises(ParameterError, match="asked must be at least 0"):
        norm_sub(before, asked=-1)
    with pytest.raises(ParameterError, match="asked must be an integer"):
        clip(before, asked=2.5)
    for values, total, field in (([], 1.0, "values"), ([np.nan], 1.0, "values"), ([1.0], -1.0, "total")):
        with pytest.raises(ParameterError, match=field):
            project_onto_simplex(values, total)
    with pytest.raises(ParameterError, match="truth"):
        clipped_normal([5.0], [1.0], asked=4)
    with pytest.raises(ParameterError, match="std_error"):
        clipped_normal([1.0], [np.inf], asked=4)
    with pytest.raises(ParameterError, match="masses"):
        clipped_law([1.0], [0.5], truth=1, asked=2)


def test_refined_estimate_validates_its_fields():
    good = clip(estimate_of([1.0, -2.0]), asked=9)
    assert len(good) == 2
    assert "clip" in repr(good)

    def spoil(**field):
        fields = ("count", "std_error", "lower", "upper", "interval", "properties")
        RefinedEstimate(**{**{name: getattr(good, name) for name in fields}, **field})

    with pytest.raises(ParameterError, match="count must be finite"):
        spoil(count=np.array([np.nan, 1.0]))
    with pytest.raises(ParameterError, match="lower must not exceed upper, at cell 2"):
        spoil(lower=np.array([0.0, 99.0]))
    with pytest.raises(ParameterError, match="one value per cell"):
        spoil(std_error=np.zeros(3))
    with pytest.raises(ParameterError, match="float64"):
        spoil(count=np.array([1, 2]))


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
