"""Refinements: clip, norm-sub, norm-mul and the simplex projection."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from mechanisms.local import Estimate, ParameterError
from mechanisms.refinement import RefinedEstimate, clip, norm_mul, norm_sub, project_onto_simplex, simplex, total_of

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


@pytest.mark.parametrize(("truth", "spread"), [(0.0, 10.0), (3.0, 8.0), (10.0, 5.0)])
def test_the_bias_of_a_clipped_normal_is_as_stated(truth, spread):
    quantiles = norm.ppf((np.arange(100_000) + 0.5) / 100_000)
    after = clip(estimate_of(truth + spread * quantiles), asked=1000)
    stated = spread * norm.pdf(truth / spread) - truth * norm.cdf(-truth / spread)
    assert after.count.mean() - truth == pytest.approx(stated, rel=1e-3)
    assert stated <= 0.4 * spread


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
