"""Laplace noise on a public grid: its exact distribution, and the values published in neighbouring worlds."""

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mechanism_statistics import FAMILY, check_same_distribution
from scipy.stats import chisquare

from mechanisms.central import LaplaceMean, SmoothMedian, grid_noise, laplace, smooth_median
from mechanisms.central.grid_noise import Grid, draw_geometric, draw_rounded_laplace
from mechanisms.parameter import ParameterError

DRAWS = 400
# One device's value is 0 or at the upper bound; all others are 0. The statistic is 0 or 16.
WORLDS = {
    ("mean", 16.0): ([0.0], [16.0]),
    ("mean", 48.0): ([0.0] * 3, [0.0, 0.0, 48.0]),
    ("median", 16.0): ([0.0], [16.0]),
}


def release_of(statistic, *, lower=0.0, upper, epsilon=1.0, sample=1.0, delta=1e-3):
    bounds = {"lower": lower, "upper": upper, "epsilon": epsilon, "sample": sample}
    return LaplaceMean(**bounds) if statistic == "mean" else SmoothMedian(**bounds, delta=delta)


@cache
def published(statistic, upper):
    release, rng = release_of(statistic, upper=upper), np.random.default_rng(5)
    worlds = WORLDS[statistic, upper]
    return [np.array([release.publish(np.array(of), rng=rng).value for _ in range(DRAWS)]) for of in worlds]


@pytest.mark.parametrize(("statistic", "upper"), WORLDS)
def test_neighbouring_worlds_publish_multiples_of_one_step(statistic, upper):
    step = 2.0 ** (math.frexp(upper)[1] - 1 - 40)
    steps = [of / step for of in published(statistic, upper)]
    assert all((of == np.rint(of)).all() for of in steps)
    # The last bits of the number of steps have one uniform distribution in both worlds.
    low = [(of % 8).astype(int) for of in steps]
    assert all(chisquare(np.bincount(of, minlength=8)).pvalue > FAMILY for of in low)
    check_same_distribution(low[0][:, None], low[1][:, None])


def test_the_order_of_values_changes_no_bit():
    """A sum of doubles depends on their order; a sum of integers does not."""
    rng = np.random.default_rng(1)
    values = rng.lognormal(2.0, 1.0, 301)
    release = LaplaceMean(epsilon=50.0, lower=0.0, upper=1e6)
    found = {release.publish(rng.permutation(values), rng=np.random.default_rng(2)).value for _ in range(20)}
    assert len(found) == 1


class Choice:
    """A generator whose sample is given."""

    def __init__(self, chosen):
        self.chosen = list(chosen)

    def choice(self, values, **_):
        return values[self.chosen]


class Noise:
    """A sampler that returns the given noise and records the requested scale."""

    def __init__(self):
        self.steps, self.scale = 0, math.nan

    def __call__(self, scale, size, *, rng):  # noqa: ARG002 - the signature of the sampler
        self.scale = scale
        return np.full(size, self.steps)

    def use(self, monkeypatch):
        for module in (laplace, smooth_median):
            monkeypatch.setattr(module, "draw_rounded_laplace", self)


def masses(scale, reach):
    """P of rounded Laplace noise −reach…reach, (2·reach + 1,): differences of the cumulative distribution."""
    ends = np.arange(-reach, reach + 2) - 0.5
    return np.diff(-0.5 * np.expm1(-np.abs(ends) / scale) * np.sign(ends))


def published_distribution(release, values):
    """The distribution of published values on a grid of few steps: every sample and noise, by the release's code."""
    found, noise = {}, Noise()
    samples = list(itertools.combinations(range(len(values)), max(1, round(release.sample * len(values)))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grid_noise, "FINENESS", 2)
        noise.use(patch)
        for chosen in samples:
            release.publish(np.array(values), rng=Choice(chosen))
            reach = math.ceil(20 * noise.scale)
            for steps, mass in zip(range(-reach, reach + 1), masses(noise.scale, reach), strict=True):
                noise.steps = steps
                value = release.publish(np.array(values), rng=Choice(chosen)).value
                found[value] = found.get(value, 0.0) + mass / len(samples)
    return found


def hockey_stick(p, q, epsilon):
    return math.fsum(max(0.0, p[x] - math.exp(epsilon) * q.get(x, 0.0)) for x in p)


# Bounds off the grid: the first range has more steps than (upper − lower)/step, the second fewer.
@pytest.mark.parametrize("bounds", [(0.12, 1.13), (-0.4, 0.57)])
@pytest.mark.parametrize("sample", [1.0, 0.5])
@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_claim_holds_for_the_exact_distribution_on_a_coarse_grid(statistic, sample, bounds):
    lower, upper = bounds
    release = release_of(statistic, lower=lower, upper=upper, sample=sample, delta=0.05)
    middle = lower + 0.37 * (upper - lower)
    claim, closest = release.claim(devices=2), 0.0
    for values in ([lower] * 2, [lower, upper]), ([upper, lower], [upper] * 2), ([middle, lower], [middle, upper]):
        p, q = (published_distribution(release, of) for of in values)
        # Each distribution is cut off at e^−20; the noise is wider than stated by 2^−40 only.
        for epsilon in (0.0, 0.3, 0.7, 0.95, 1.0):
            found = max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
            assert found <= claim.delta(epsilon) + 2 * math.exp(-20), (values, epsilon)
            closest = max(closest, found / claim.delta(epsilon)) if epsilon == 0.3 else closest
    assert closest > 0.95  # a breach would be detected


def check_distribution(counts, law_):
    """Counts of outcomes against their probabilities, outcomes expected fewer than 20 times together."""
    order = np.argsort(-law_)
    counts, expected = counts[order], law_[order] * counts.sum()
    kept = max(1, int((expected > 20).sum()))
    if kept > 1:
        counts, expected = (np.append(of[: kept - 1], of[kept - 1 :].sum()) for of in (counts, expected))
        assert chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > FAMILY
    else:
        assert counts[0] > counts.sum() - 20


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_published_values_follow_the_enumerated_distribution(monkeypatch, statistic):
    """The enumerated distribution against published values, sampler included."""
    values = [0.2, 0.9, 0.4]
    release = release_of(statistic, upper=1.0, sample=0.67)
    expected = published_distribution(release, values)
    monkeypatch.setattr(grid_noise, "FINENESS", 2)
    rng = np.random.default_rng(9)
    seen = [release.publish(np.array(values), rng=rng).value for _ in range(DRAWS)]
    assert set(seen) <= set(expected)
    check_distribution(np.array([seen.count(x) for x in expected]), np.array(list(expected.values())))


@pytest.mark.parametrize("scale", [1e-3, 0.2, 1.0, math.pi, 40.3])
def test_sampler_follows_the_exact_distribution(scale):
    draws, rng, reach = 100_000, np.random.default_rng(8), math.ceil(30 * scale)
    drawn = draw_rounded_laplace(scale, draws, rng=rng)
    check_distribution(np.bincount(drawn + reach, minlength=2 * reach + 1), masses(scale, reach))
    geometric = -np.exp(-np.arange(reach + 1) / scale) * np.expm1(-1 / scale)
    check_distribution(np.bincount(draw_geometric(scale, draws, rng=rng), minlength=reach + 1), geometric)


@pytest.mark.parametrize("scale", [2.0**40, 1.7 * 2.0**41])
def test_sampler_at_the_scale_of_a_release(scale):
    """Sixteenths of the distribution are equally likely, and so is every value of the last four bits."""
    drawn = draw_geometric(scale, 50_000, rng=np.random.default_rng(3))
    for sixteenth in ((-np.expm1(-drawn / scale) * 16).astype(int), drawn % 16):
        assert chisquare(np.bincount(sixteenth, minlength=16)).pvalue > FAMILY


def test_sampler_reuses_and_extends_random_words():
    """The same words are reused, followed by new ones, so that a variable that needs many words is not left out."""
    words = np.random.default_rng(4).integers(2**63, size=2000)
    whole, few = np.empty(50, dtype=np.int64), np.empty(50, dtype=np.int64)
    assert grid_noise._fill(words, 2**52, whole)
    enough = [grid_noise._fill(words[:n], 2**52, few) for n in range(len(words))]
    fewest = enough.index(True)
    assert fewest > 200
    assert all(enough[fewest:])
    assert grid_noise._fill(words[:fewest], 2**52, few)
    np.testing.assert_array_equal(whole, few)


# Beyond this, the multiple nearest to a bound may exceed the largest double.
finite = st.floats(-1e307, 1e307)


@given(ends=st.tuples(finite, finite), epsilon=st.floats(1e-6, 100.0), share=st.floats(0.0, 1.0))
def test_published_values_stay_on_the_grid(ends, epsilon, share):
    """For any bounds, values are 0…width steps from the origin, and the noise is within the sampler's range."""
    lower, upper = sorted(ends)
    if lower == upper or math.isinf(upper - lower):
        return
    grid = Grid.build(lower, upper, epsilon=epsilon)
    value = min(max(lower + share * (upper - lower), lower), upper)
    steps = grid.to_steps(np.array([lower, value, upper]))
    assert steps[0] == 0
    assert 0 <= steps[1] <= steps[2] <= grid.width
    assert grid.width / epsilon < 2.0**42
    exact = Fraction(grid.origin + int(steps[1])) * Fraction(grid.step)
    assert Fraction(grid.to_value(int(steps[1]))) == Fraction(float(exact))
    assert abs(exact - Fraction(value)) <= Fraction(grid.step) + Fraction(math.ulp(value))


def test_bounds_with_infinite_range_are_refused():
    with pytest.raises(ParameterError) as fault:
        LaplaceMean(epsilon=1.0, lower=-1e308, upper=1e308)
    assert fault.value.field == "upper"


def test_median_noise_scale_is_smooth_to_the_last_digit(monkeypatch):
    """Noise scales of neighbours differ by a factor e^ξ at most, and their medians by ε/2 of the smaller scale."""
    release = SmoothMedian(epsilon=2.0, delta=1e-4, lower=0.0, upper=30.0)
    noise, rng, worst = Noise(), np.random.default_rng(6), 0.0
    noise.use(monkeypatch)
    for n, trial in itertools.product((1, 5, 20, 101, 4000), range(20)):
        own = release.calibration(n)
        values = np.zeros(n) if trial == 0 else np.clip(rng.normal(10.0, 10.0 ** rng.uniform(-6, 1), n), 0.0, 30.0)
        other = values.copy()
        other[0] = 30.0 if trial == 0 else rng.choice([0.0, 30.0, rng.uniform(0.0, 30.0)])
        found = [(release.publish(of, rng=rng).value, noise.scale) for of in (values, other)]
        (one, two), scales = zip(*found, strict=True)
        ratio = abs(math.log(scales[0] / scales[1]))
        assert ratio <= own.xi
        worst = max(worst, ratio / own.xi)
        step = Grid.build(0.0, 30.0, epsilon=own.epsilon).step
        assert Fraction(abs(one - two)) <= Fraction(own.epsilon) / 2 * Fraction(min(scales)) * Fraction(step)
    assert worst == pytest.approx(1.0, rel=1e-9)  # some pair attains it
