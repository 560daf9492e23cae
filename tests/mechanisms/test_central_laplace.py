"""The Laplace releases: smooth sensitivity, privacy against brute force, values against theory, and no noise."""

import itertools
import math
from decimal import Decimal, localcontext
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanism_statistics import check_moments, z_bound
from scipy.stats import binom

from mechanisms.central import (
    CountRelease,
    LaplaceCounts,
    LaplaceMean,
    SimpleRandomSample,
    SmoothMedian,
    ThresholdCounts,
    ValueRelease,
    median_smooth_sensitivity,
)
from mechanisms.central.release import median_rank
from mechanisms.central.simple_random_sample import ExactStatistic
from mechanisms.central.smooth_median import sampled_smooth_sensitivities
from mechanisms.parameter import ParameterError
from mechanisms.privacy.laplace_noise import (
    SmoothNoiseDelta,
    laplace_pair_delta,
    printed_smoothing,
    smoothing,
    tail_delta,
)
from mechanisms.privacy.subsampling import population_privacy, sample_privacy

LOWER, UPPER = -3.0, 9.0


def by_definition(values, xi, lower=LOWER, upper=UPPER):
    """HDK eq 4, over every k and every t."""
    x = np.concatenate([[lower], np.sort(np.clip(values, lower, upper)), [upper]])
    n, m = len(values), median_rank(len(values))

    def at(i):
        return x[min(max(i, 0), n + 1)]

    return max(math.exp(-k * xi) * max(at(m + t) - at(m + t - k - 1) for t in range(k + 2)) for k in range(n + 2))


def by_pairs(values, xi, lower=LOWER, upper=UPPER):
    """The maximum over all pairs around the median, O(n²)."""
    x = np.concatenate([[lower], np.sort(np.clip(values, lower, upper)), [upper]])
    m = median_rank(len(values))
    i, j = np.arange(m + 1)[:, np.newaxis], np.arange(m, len(x))
    return float(np.where(i < j, (x[j] - x[i]) * np.exp(-xi * np.maximum(j - i - 1, 0)), 0.0).max())


VALUES = st.lists(
    st.one_of(
        st.integers(-4, 10).map(float),  # ties, the bounds, and values beyond them
        st.floats(LOWER, UPPER, allow_subnormal=False),
        st.sampled_from([LOWER, UPPER, 0.0, 1e-6]),
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=100)
@given(values=VALUES, xi=st.one_of(st.just(0.0), st.floats(1e-6, 50.0), st.just(900.0)))
def test_fast_algorithm_equals_the_definition(values, xi):
    fast = median_smooth_sensitivity(values, xi=xi, lower=LOWER, upper=UPPER)
    assert fast == pytest.approx(by_definition(values, xi), rel=1e-9, abs=1e-12)
    assert fast == pytest.approx(by_pairs(values, xi), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("shape", ["uniform", "lognormal", "steps", "gap", "geometric"])
def test_fast_algorithm_equals_all_pairs_on_larger_sets(shape):
    n, rng = 301, np.random.default_rng(301)
    values = {
        "uniform": lambda: rng.uniform(LOWER, UPPER, n),
        "lognormal": lambda: rng.lognormal(0.0, 1.0, n),
        "steps": lambda: rng.integers(-3, 9, n).astype(float),
        "gap": lambda: np.where(np.arange(n) < n // 2, rng.normal(-2.0, 0.1, n), rng.normal(8.0, 0.1, n)),
        # Gaps that grow as fast as the weights shrink: every pair is nearly as good as every other.
        "geometric": lambda: UPPER - 10.0 * np.exp(-0.01 * np.arange(n)),
    }[shape]()
    for xi in (0.0, 1e-4, 0.01, 0.3):
        fast = median_smooth_sensitivity(values, xi=xi, lower=LOWER, upper=UPPER)
        assert fast == pytest.approx(by_pairs(values, xi), rel=1e-9)


def test_batch_sensitivities_equal_single_ones():
    rng = np.random.default_rng(4)
    ordered = np.sort(rng.normal(2.0, 1.0, 60).clip(LOWER, UPPER))
    ranks = np.sort(np.stack([rng.choice(60, 11, replace=False) for _ in range(20)]), axis=1)
    batch = sampled_smooth_sensitivities(ordered, ranks, xi=0.2, lower=LOWER, upper=UPPER)
    single = [median_smooth_sensitivity(ordered[row], xi=0.2, lower=LOWER, upper=UPPER) for row in ranks]
    np.testing.assert_allclose(batch, single, rtol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 6, 7])
def test_sample_median_distribution_equals_enumeration(n):
    devices = 7
    counts = np.zeros(devices)
    for chosen in itertools.combinations(range(devices), n):
        counts[chosen[median_rank(n) - 1]] += 1
    distribution = SimpleRandomSample(devices, n / devices).median_law()
    np.testing.assert_allclose(distribution, counts / counts.sum(), atol=1e-14)


@pytest.mark.parametrize(
    ("devices", "share", "size"), [(10, 0.05, 1), (10, 1.0, 10), (10, 0.25, 2), (10, 0.26, 3), (1, 0.01, 1)]
)
def test_sample_size(devices, share, size):
    assert SimpleRandomSample(devices, share).size == size


@pytest.mark.parametrize("share", [1e-30, 0.0101, 0.999999])
@pytest.mark.parametrize("epsilon", [1e-300, 1e-9, 1.0, 39.9, 40.1, 2000.0])
def test_theorem_1_is_accurate_to_the_last_digits(epsilon, share):
    with localcontext() as context:
        context.prec = 1100
        exact, rate = Decimal(epsilon), Decimal(share)
        grown = exact.exp() - 1
        down, up = float((1 + rate * grown).ln()), float((1 + grown / rate).ln())
    assert population_privacy(epsilon=epsilon, share=share)[0] == pytest.approx(down, rel=2e-13, abs=0)
    assert sample_privacy(epsilon=epsilon, share=share)[0] == pytest.approx(up, rel=2e-13, abs=0)


def test_theorem_1_at_its_limits():
    assert population_privacy(epsilon=0.0, share=0.1) == (0.0, 0.0)
    assert population_privacy(epsilon=math.inf, share=0.1)[0] == math.inf
    assert sample_privacy(epsilon=math.inf, share=0.1)[0] == math.inf
    assert sample_privacy(epsilon=1.0, delta=0.5, share=0.1)[1] == 1.0
    assert round(sample_privacy(epsilon=0.1, share=101 / 10_001)[0], 2) == 2.43
    assert round(sample_privacy(epsilon=1.0, share=101 / 10_001)[0], 2) == 5.14


# Numerical integration: densities on a grid that contains the kinks of both.
GRID = np.linspace(-90.0, 90.0, 360_001)


def laplace_cdf(x, centre, scale):
    z = (x - centre) / scale
    return np.where(z < 0, 0.5 * np.exp(np.minimum(z, 0)), 1 - 0.5 * np.exp(-np.maximum(z, 0)))


def integrated(p_parts, q_parts, epsilon):
    """∫ max(p − e^ε q, 0) of mixtures [(weight, centre, scale)…], by cells' exact masses (a lower bound)."""
    p, q = (np.diff(sum(w * laplace_cdf(GRID, c, b) for w, c, b in parts)) for parts in (p_parts, q_parts))
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


@pytest.mark.parametrize("log_ratio", [0.0, 0.4, -1.5])
@pytest.mark.parametrize("shift", [0.0, 3.0])
@pytest.mark.parametrize("epsilon", [0.0, 1.2])
def test_laplace_pair_delta_equals_integration(log_ratio, shift, epsilon):
    exact = float(laplace_pair_delta(log_ratio, shift, epsilon=epsilon))
    found = integrated([(1.0, 0.0, 1.0)], [(1.0, shift, math.exp(log_ratio))], epsilon)
    assert exact == pytest.approx(found, abs=1e-6)


@pytest.mark.parametrize("epsilon", [0.05, 13.0, 50.0])
@pytest.mark.parametrize("delta", [0.5, 1e-6, 1e-12])
def test_smoothing_keeps_every_pair_within_delta(epsilon, delta):
    xi = smoothing(epsilon=epsilon, delta=delta)
    assert 0.0 < xi <= printed_smoothing(epsilon=epsilon, delta=delta) * (1 + 1e-12)
    # The ratio of the scales is within e^ξ, the distance of the centres within the smaller S*; P and Q are exchanged.
    for ratio, part in itertools.product(np.linspace(-xi, xi, 41), (0.0, 0.3, 0.7, 1.0)):
        far = part * epsilon / 2 * math.exp(min(ratio, 0.0))
        assert float(laplace_pair_delta(ratio, far, epsilon=epsilon)) <= delta * (1 + 1e-6)
    assert SmoothNoiseDelta(epsilon, xi)(epsilon) == pytest.approx(tail_delta(epsilon=epsilon, xi=xi), rel=1e-9)


def test_published_smoothing_is_insufficient_at_large_epsilon():
    """ξ = ε/(2 ln(2/δ)) violates (ε, δ) for two real sets of values; where it holds, it is used as published."""
    assert smoothing(epsilon=7.5, delta=1e-6) == printed_smoothing(epsilon=7.5, delta=1e-6)
    epsilon, delta = 50.0, 1e-6
    xi = printed_smoothing(epsilon=epsilon, delta=delta)
    neighbours = [0.0] * 5, [0.0] * 4 + [1.0]
    narrow, wide = (2 / epsilon * median_smooth_sensitivity(of, xi=xi, lower=0.0, upper=1.0) for of in neighbours)
    assert wide / narrow == pytest.approx(math.exp(xi), rel=1e-12)
    assert float(laplace_pair_delta(math.log(narrow / wide), 0.0, epsilon=epsilon)) > 10 * delta


def subsets(values, size):
    return [np.array(of) for of in itertools.combinations(values, size)]


@pytest.mark.parametrize("share", [1.0, 0.6, 0.2])
def test_mean_claim_is_exact_on_the_worst_population(share):
    release = LaplaceMean(epsilon=1.0, lower=0.0, upper=2.0, sample=share)
    low, high = [0.0] * 5, [0.0] * 4 + [2.0]
    size, scale = max(1, round(5 * share)), release.noise_scale(5)
    mixtures = [
        [(1 / len(of), float(one.mean()), scale) for one in of] for of in (subsets(low, size), subsets(high, size))
    ]
    claim = release.claim(devices=5)
    for epsilon in (0.0, 0.3, 0.8):
        found = max(integrated(*mixtures, epsilon), integrated(*mixtures[::-1], epsilon))
        assert claim.delta(epsilon) == pytest.approx(found, abs=2e-5)
        assert release.claim().delta(epsilon) >= claim.delta(epsilon) - 1e-15
    assert claim.delta(1.0) == 0.0
    assert claim.kind == "exact"


def test_mean_claim_over_queries():
    """Two queries, by integrating the product of two Laplace pairs on a grid of losses."""
    release = LaplaceMean(epsilon=0.8, lower=0.0, upper=1.0)
    claim = release.claim(queries=2)
    x = np.linspace(-25.0, 25.0, 1501)
    p, q = (np.diff(laplace_cdf(x, centre, 1 / 0.8)) for centre in (0.0, 1.0))
    p2, q2 = np.multiply.outer(p, p), np.multiply.outer(q, q)
    for epsilon in (0.2, 0.8, 1.3):
        found = float(np.maximum(p2 - math.exp(epsilon) * q2, 0.0).sum())
        assert found - 1e-4 <= claim.delta(epsilon) <= found + 2e-3
    assert claim.epsilon == pytest.approx(1.6)
    assert claim.delta_kind == "bound"


@pytest.mark.parametrize("sampling", [1.0, 0.4])
@pytest.mark.parametrize("crowd", [1, 7])
def test_counts_claim_by_brute_force(sampling, crowd):
    release = LaplaceCounts(epsilon=0.9, sampling=sampling)
    alpha = math.exp(-release.sample_epsilon)
    k = np.arange(-400, 401 + crowd)

    def distribution(devices):
        drawn = np.arange(devices + 1)
        noise = alpha ** np.abs(k[:, np.newaxis] - drawn) * (1 - alpha) / (1 + alpha)
        return noise @ binom.pmf(drawn, devices, sampling)

    p, q = distribution(crowd), distribution(crowd - 1)
    claim = release.claim(crowd=crowd)
    assert claim.kind == claim.delta_kind == "exact"
    for epsilon in (0.0, 0.2, 0.6, 0.89):
        found = max(np.maximum(a - math.exp(epsilon) * b, 0).sum() for a, b in ((p, q), (q, p)))
        assert claim.delta(epsilon) == pytest.approx(found, rel=1e-9, abs=1e-15)
        assert release.claim(crowd=None).delta(epsilon) >= found - 1e-12
    with np.errstate(invalid="ignore", divide="ignore"):
        likely = (p > 1e-250) & (q > 1e-250)
        assert np.abs(np.log(p[likely] / q[likely])).max() == pytest.approx(0.9, rel=1e-9)
    assert claim.delta(0.9) == 0.0


def test_claims_of_large_crowds_are_those_of_smaller_ones():
    release = LaplaceCounts(epsilon=0.5, sampling=0.2)
    large = release.claim(crowd=10**6)
    assert large.delta_kind == "bound"
    assert large.delta(0.1) == release.claim(crowd=1000).delta(0.1)


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
    # All values are used, so the error is that of the noise alone.
    noise = math.sqrt(2.0) * 2.0 * 30.0 / release.calibration(151).epsilon
    assert first.std_error == pytest.approx(noise, rel=1e-6)
    mean = LaplaceMean(epsilon=1.0, lower=0.0, upper=30.0, sample=0.3)
    first, second = (mean.publish(values, rng=np.random.default_rng(1)) for values in (SPEEDS, np.full(151, 12.0)))
    assert first.std_error == second.std_error


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


EIGHT_VALUES = np.array([3.0, 9.0, 1.0, 4.0, 1.5, 12.0, 7.0, 5.0])


def of(statistic, sample=1.0):
    return ExactStatistic(statistic=statistic, lower=0.0, upper=15.0, sample=sample)


def test_statistic_of_all_values_is_exact_and_uses_no_coin():
    rng = np.random.default_rng(1)
    before = rng.bit_generator.state
    for statistic, value in (("mean", EIGHT_VALUES.mean()), ("median", 4.0)):  # the lower of 4 and 5
        release = of(statistic)
        assert isinstance(release, ValueRelease)
        published = release.publish(EIGHT_VALUES, rng=rng)
        assert (published.value, published.std_error) == (pytest.approx(value), 0.0)
        assert published.lower == published.value == published.upper
        assert release.std_error(EIGHT_VALUES) == 0.0
        assert release.claim().delta(3.0) == 1.0
        assert math.isinf(release.claim(queries=4).epsilon)
    assert rng.bit_generator.state == before


@pytest.mark.parametrize("statistic", ["mean", "median"])
@pytest.mark.parametrize("size", [1, 3, 4, 7])
def test_sampling_error_equals_that_over_every_sample(statistic, size):
    release = of(statistic, size / len(EIGHT_VALUES))
    truth = release.truth(EIGHT_VALUES)
    every = [of(statistic).truth(np.array(chosen)) for chosen in combinations(EIGHT_VALUES, size)]
    assert release.std_error(EIGHT_VALUES) == pytest.approx(
        math.sqrt(np.mean((np.array(every) - truth) ** 2)), rel=1e-9
    )


def test_single_sampled_value_has_the_full_interval():
    rng = np.random.default_rng(3)
    for statistic in ("mean", "median"):
        published = of(statistic, 0.01).publish(EIGHT_VALUES, rng=rng)
        assert published.value in EIGHT_VALUES
        assert (published.lower, published.upper) == (0.0, 15.0)
    beyond = of("median", 0.01).publish(np.array([20.0, 20.0]), rng=rng)
    assert (beyond.lower, beyond.upper) == (0.0, 20.0)


RNG = np.random.default_rng(0)
BOUNDS = {"lower": 0.0, "upper": 1.0}
# A function that accepts the good arguments, those, and bad ones by field.
REFUSED = [
    (
        median_smooth_sensitivity,
        {"values": [1.0], "xi": 0.1, **BOUNDS},
        {
            "xi": [-0.1, math.nan, math.inf],
            "lower": [math.nan],
            "upper": [-3.0, math.inf],
            "values": [[], [1.0, math.nan], ["a"], [[1.0]]],
        },
    ),
    *(
        (function, {"epsilon": 1.0, "delta": 0.0, "share": 0.5}, theorem_1)
        for theorem_1 in [{"epsilon": [-1.0, math.nan], "delta": [1.5, "a"], "share": [0.0, 1.1]}]
        for function in (population_privacy, sample_privacy)
    ),
    (LaplaceCounts, {"epsilon": 1.0}, {"epsilon": [0.0, math.nan], "sampling": [0.0, 2]}),
    (
        LaplaceMean,
        {"epsilon": 1.0, **BOUNDS},
        {"epsilon": [-1], "upper": [0.0], "lower": [math.inf], "sample": [math.nan]},
    ),
    (
        SmoothMedian,
        {"epsilon": 1.0, "delta": 1e-5, "sample": 0.5, **BOUNDS},
        {"delta": [0.0, 0.3, "small"], "upper": ["fast"], "epsilon": [math.inf]},
    ),
    (
        ExactStatistic,
        {"statistic": "mean", **BOUNDS},
        {"statistic": ["mode"], "upper": [0.0, math.inf], "sample": [0.0, 1.1]},
    ),
    (LaplaceCounts(epsilon=1.0).publish, {"counts": np.array([1]), "rng": RNG}, {"counts": [np.array([-1])]}),
    (LaplaceCounts(epsilon=1.0).claim, {"crowd": 2}, {"crowd": [0]}),
    *((release.claim, {}, {"queries": [0], "devices": [0]}) for release in value_releases(1.0)),
    *(
        (release.std_error, {"values": SPEEDS}, {"values": [np.array([1.0, np.nan])]})
        for release in value_releases(1.0)
    ),
    (ThresholdCounts, {"epsilon": 1.0, "k": 3}, {"epsilon": [0.0], "k": [0, 2.5]}),
]


@pytest.mark.parametrize(("function", "good", "bad"), REFUSED)
def test_invalid_arguments_are_refused_by_name(function, good, bad):
    function(**good)
    for field, values in bad.items():
        for value in values:
            with pytest.raises(ParameterError) as fault:
                function(**{**good, field: value})
            assert fault.value.field == field
