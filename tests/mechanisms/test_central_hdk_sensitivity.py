"""Smooth sensitivity of the median: the fast algorithm against the definition, and the definition itself."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanism_statistics import z_bound

from mechanisms.central import SimpleRandomSample, median_smooth_sensitivity
from mechanisms.central.release import median_rank
from mechanisms.central.smooth_median import sampled_smooth_sensitivities
from mechanisms.parameter import ParameterError

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


@pytest.mark.parametrize("n", [300, 301])
@pytest.mark.parametrize("shape", ["uniform", "lognormal", "steps", "gap", "geometric"])
def test_fast_algorithm_equals_all_pairs_on_larger_sets(n, shape):
    rng = np.random.default_rng(n)
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


@given(values=VALUES, place=st.integers(0, 39), other=st.floats(-4.0, 10.0), xi=st.floats(0.01, 3.0))
def test_sensitivity_is_smooth_and_above_the_local_one(values, place, other, xi):
    """One changed value changes S* by a factor e^ξ at most, and the median by S* at most: the basis of the proof."""
    neighbour = list(values)
    neighbour[place % len(values)] = other
    here, there = (median_smooth_sensitivity(of, xi=xi, lower=LOWER, upper=UPPER) for of in (values, neighbour))
    assert here <= there * math.exp(xi) * (1 + 1e-9)
    assert there <= here * math.exp(xi) * (1 + 1e-9)
    medians = [np.sort(np.clip(of, LOWER, UPPER))[median_rank(len(of)) - 1] for of in (values, neighbour)]
    assert abs(medians[0] - medians[1]) <= min(here, there) * (1 + 1e-12)


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


def test_mean_variance_equals_enumeration():
    values = np.array([0.0, 1.0, 1.5, 4.0, 9.0])
    sample = SimpleRandomSample(5, 0.6)
    means = np.array([np.mean(of) for of in itertools.combinations(values, sample.size)])
    assert sample.mean_variance(values) == pytest.approx(means.var(), rel=1e-12)
    assert (np.abs(means - values.mean()) <= sample.mean_reach(9.0, alpha=0.05)).mean() >= 0.95


def test_sample_is_simple_and_random():
    sample = SimpleRandomSample(4, 0.5)
    rng, repeats = np.random.default_rng(5), 6000
    seen = {}
    for _ in range(repeats):
        drawn = tuple(sorted(sample.draw(np.arange(4.0), rng=rng)))
        seen[drawn] = seen.get(drawn, 0) + 1
    assert len(seen) == 6
    spread = math.sqrt(repeats * (1 / 6) * (5 / 6))
    assert max(abs(count - repeats / 6) for count in seen.values()) < z_bound(6) * spread


@pytest.mark.parametrize(
    ("devices", "share", "size"), [(10, 0.05, 1), (10, 1.0, 10), (10, 0.25, 2), (10, 0.26, 3), (1, 0.01, 1)]
)
def test_sample_size(devices, share, size):
    assert SimpleRandomSample(devices, share).size == size


@pytest.mark.parametrize(
    ("kwargs", "field"),
    [
        ({"xi": -0.1}, "xi"),
        ({"xi": math.nan}, "xi"),
        ({"xi": math.inf}, "xi"),
        ({"lower": math.nan}, "lower"),
        ({"upper": -3.0}, "upper"),
        ({"upper": math.inf}, "upper"),
        ({"values": []}, "values"),
        ({"values": [1.0, math.nan]}, "values"),
        ({"values": ["a"]}, "values"),
        ({"values": [[1.0]]}, "values"),
    ],
)
def test_invalid_parameters_are_refused(kwargs, field):
    given_values = {"values": [1.0], "xi": 0.1, "lower": LOWER, "upper": UPPER} | kwargs
    with pytest.raises(ParameterError) as fault:
        median_smooth_sensitivity(given_values.pop("values"), **given_values)
    assert fault.value.field == field
