"""The Laplace releases: published values against theory, intervals, and refused arguments."""

import math

import numpy as np
import pytest
from mechanism_statistics import check_moments, z_bound

from mechanisms.central import CountRelease, LaplaceCounts, LaplaceMean, SmoothMedian, ValueRelease
from mechanisms.parameter import ParameterError

SPEEDS = np.random.default_rng(8).lognormal(2.3, 0.4, 151)
REPEATS = 2500


def value_releases(sample):
    return [
        LaplaceMean(epsilon=0.5, lower=0.0, upper=30.0, sample=sample),
        # Clamps the largest speeds.
        LaplaceMean(epsilon=2.0, lower=5.0, upper=14.0, sample=sample),
        SmoothMedian(epsilon=1.0, delta=1e-4, lower=0.0, upper=30.0, sample=sample),
        SmoothMedian(epsilon=3.0, delta=1e-2, lower=11.0, upper=30.0, sample=sample),
    ]


@pytest.mark.parametrize("sample", [1.0, 0.3])
@pytest.mark.parametrize("which", range(4))
def test_value_error_equals_theory(sample, which):
    release = value_releases(sample)[which]
    assert isinstance(release, ValueRelease)
    rng = np.random.default_rng(which)
    published = [release.publish(SPEEDS, rng=rng) for _ in range(REPEATS)]
    squares = (np.array([one.value for one in published]) - release.truth(SPEEDS)) ** 2
    theory = release.std_error(SPEEDS) ** 2
    # The theoretical noise of a sampled median is itself an average over samples.
    own = release.noise_variance(SPEEDS)[1] if isinstance(release, SmoothMedian) else 0.0
    error = math.hypot(float(squares.std()) / math.sqrt(REPEATS), own)
    assert abs(squares.mean() - theory) < z_bound(8) * error


@pytest.mark.parametrize("sample", [1.0, 0.3])
@pytest.mark.parametrize("which", [0, 2])
def test_value_interval_has_nominal_coverage(sample, which):
    release = value_releases(sample)[which]
    rng = np.random.default_rng(10 + which)
    published = [release.publish(SPEEDS, rng=rng) for _ in range(REPEATS)]
    covered = np.mean([one.lower <= release.truth(SPEEDS) <= one.upper for one in published])
    slack = z_bound(4) * math.sqrt(0.05 * 0.95 / REPEATS)
    assert covered > 0.95 - slack
    if which == 0 and sample == 1.0:
        assert covered < 0.95 + slack  # exact, not only safe
    assert all(one.std_error >= 0 and 0.0 <= one.lower <= one.upper <= 30.0 for one in published)


def test_published_intervals_and_errors_do_not_depend_on_the_values():
    """Two populations with the same coins: only the released value may differ."""
    release = SmoothMedian(epsilon=1.0, delta=1e-3, lower=0.0, upper=30.0)
    first, second = (release.publish(values, rng=np.random.default_rng(1)) for values in (SPEEDS, np.full(151, 12.0)))
    assert first.std_error == second.std_error
    mean = LaplaceMean(epsilon=1.0, lower=0.0, upper=30.0, sample=0.3)
    first, second = (mean.publish(values, rng=np.random.default_rng(1)) for values in (SPEEDS, np.full(151, 12.0)))
    assert first.std_error == second.std_error


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("sample", [1.0, 0.4])
def test_smallest_crowds(n, sample):
    for release in value_releases(sample):
        values = SPEEDS[:n]
        assert math.isfinite(release.publish(values, rng=np.random.default_rng(0)).value)
        assert release.std_error(values) > 0
        assert release.truth(values) == pytest.approx(
            np.sort(values)[(n - 1) // 2] if isinstance(release, SmoothMedian) else values.mean()
        )


def test_equations_6_and_7():
    values = np.random.default_rng(2).uniform(0.0, 10.0, 400)
    whole = LaplaceMean(epsilon=0.5, lower=0.0, upper=10.0)
    assert whole.std_error(values) ** 2 == pytest.approx(2 * 10.0**2 / (400**2 * 0.5**2), rel=1e-9)
    sampled = LaplaceMean(epsilon=0.5, lower=0.0, upper=10.0, sample=0.1)
    own = math.log(1 + 10 * math.expm1(0.5))
    expected = (1 - 0.1) * values.var(ddof=1) / 40 + 2 * 10.0**2 / (40**2 * own**2)
    assert sampled.std_error(values) ** 2 == pytest.approx(expected, rel=1e-9)
    # HDK eq 8 is below 1: sampling never reduces the noise on a mean.
    for epsilon in (1e-6, 0.1, 5.0):
        few, all_of = (LaplaceMean(epsilon=epsilon, lower=0, upper=1, sample=share) for share in (0.05, 1.0))
        assert few.noise_scale(400) > all_of.noise_scale(400)


@pytest.mark.parametrize("sampling", [1.0, 0.35])
def test_counts_are_unbiased_with_the_stated_error(sampling):
    release = LaplaceCounts(epsilon=0.8, sampling=sampling)
    assert isinstance(release, CountRelease)
    truth, repeats = np.array([0, 1, 12, 300]), 1500
    rng = np.random.default_rng(3)
    published = [release.publish(truth, rng=rng) for _ in range(repeats)]
    # The discrete form's excess kurtosis is at most 6 at this ε, as for Laplace noise: `step` allows for it.
    step = math.sqrt(7.0) * math.sqrt(release.noise_variance) / sampling
    check_moments(np.stack([one.count for one in published]), truth, release.std_error(truth), step=step)
    covered = np.mean([(one.lower <= truth) & (truth <= one.upper) for one in published], axis=0)
    assert covered.min() > 0.95 - z_bound(8) * math.sqrt(0.05 * 0.95 / repeats)
    assert published[0].interval == ("exact" if sampling == 1.0 else "noise, then binomial inversion")


def test_counts_without_cells_or_devices():
    release = LaplaceCounts(epsilon=1.0, sampling=0.5)
    assert len(release.publish(np.zeros(0, dtype=np.int64), rng=np.random.default_rng(0))) == 0
    many = release.publish(np.zeros(1000, dtype=np.int64), rng=np.random.default_rng(0))
    assert (many.lower >= 0).all()
    assert (many.count < 0).any()


BAD = [
    (LaplaceCounts, {"epsilon": 0.0}, "epsilon"),
    (LaplaceCounts, {"epsilon": math.nan}, "epsilon"),
    (LaplaceCounts, {"sampling": 0.0}, "sampling"),
    (LaplaceCounts, {"sampling": 2}, "sampling"),
    (LaplaceMean, {"epsilon": -1}, "epsilon"),
    (LaplaceMean, {"lower": 5.0, "upper": 5.0}, "upper"),
    (LaplaceMean, {"lower": math.inf}, "lower"),
    (LaplaceMean, {"sample": math.nan}, "sample"),
    (SmoothMedian, {"delta": 0.0}, "delta"),
    (SmoothMedian, {"delta": 0.3, "sample": 0.5}, "delta"),
    (SmoothMedian, {"delta": "small"}, "delta"),
    (SmoothMedian, {"upper": "fast"}, "upper"),
    (SmoothMedian, {"epsilon": math.inf}, "epsilon"),
]


@pytest.mark.parametrize(
    ("kind", "kwargs", "field"), BAD, ids=[f"{k.__name__}-{f}-{i}" for i, (k, _, f) in enumerate(BAD)]
)
def test_invalid_parameters_are_refused(kind, kwargs, field):
    good = {
        LaplaceCounts: {"epsilon": 1.0},
        LaplaceMean: {"epsilon": 1.0, "lower": 0.0, "upper": 1.0},
        SmoothMedian: {"epsilon": 1.0, "delta": 1e-5, "lower": 0.0, "upper": 1.0},
    }[kind]
    kind(**good)
    with pytest.raises(ParameterError) as fault:
        kind(**(good | kwargs))
    assert fault.value.field == field


def test_invalid_inputs_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ParameterError, match="counts"):
        LaplaceCounts(epsilon=1.0).publish(np.array([-1]), rng=rng)
    with pytest.raises(ParameterError, match="crowd"):
        LaplaceCounts(epsilon=1.0).claim(crowd=0)
    for release in value_releases(1.0):
        with pytest.raises(ParameterError, match="values"):
            release.publish(np.array([]), rng=rng)
        with pytest.raises(ParameterError, match="values"):
            release.std_error(np.array([1.0, np.nan]))
        with pytest.raises(ParameterError, match="queries"):
            release.claim(queries=0)
        with pytest.raises(ParameterError, match="devices"):
            release.claim(devices=0)
