"""A statistic without noise: exact for all values, with the theoretical sampling error for some."""

import math
from itertools import combinations

import numpy as np
import pytest

from mechanisms.central import ValueRelease
from mechanisms.central.simple_random_sample import ExactStatistic
from mechanisms.parameter import ParameterError

VALUES = np.array([3.0, 9.0, 1.0, 4.0, 1.5, 12.0, 7.0, 5.0])


def of(statistic, sample=1.0):
    return ExactStatistic(statistic=statistic, lower=0.0, upper=15.0, sample=sample)


def test_statistic_of_all_values_is_exact_and_uses_no_coin():
    rng = np.random.default_rng(1)
    before = rng.bit_generator.state
    for statistic, value in (("mean", VALUES.mean()), ("median", 4.0)):  # the lower of 4 and 5
        release = of(statistic)
        assert isinstance(release, ValueRelease)
        published = release.publish(VALUES, rng=rng)
        assert (published.value, published.std_error) == (pytest.approx(value), 0.0)
        assert published.lower == published.value == published.upper
        assert release.std_error(VALUES) == 0.0
        assert release.claim().delta(3.0) == 1.0
        assert math.isinf(release.claim(queries=4).epsilon)
    assert rng.bit_generator.state == before


@pytest.mark.parametrize("statistic", ["mean", "median"])
@pytest.mark.parametrize("size", [1, 3, 4, 7])
def test_sampling_error_equals_that_over_every_sample(statistic, size):
    release = of(statistic, size / len(VALUES))
    truth = release.truth(VALUES)
    every = [of(statistic).truth(np.array(chosen)) for chosen in combinations(VALUES, size)]
    assert release.std_error(VALUES) == pytest.approx(math.sqrt(np.mean((np.array(every) - truth) ** 2)), rel=1e-9)


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_published_samples_have_theoretical_error_and_coverage(statistic):
    rng = np.random.default_rng(7)
    values = rng.lognormal(2.0, 0.4, 201).clip(0.0, 15.0)
    release = of(statistic, 0.3)
    truth, draws = release.truth(values), 3000
    published = [release.publish(values, rng=rng) for _ in range(draws)]
    squares = np.array([(p.value - truth) ** 2 for p in published])
    # Four standard errors of a mean of squares; two statistics.
    assert abs(squares.mean() - release.std_error(values) ** 2) < 4 * squares.std() / math.sqrt(draws)
    covered = np.mean([p.lower <= truth <= p.upper for p in published])
    assert covered > 0.95 - 4 * math.sqrt(0.05 * 0.95 / draws)


def test_sampled_mean_interval_covers_if_few_values_differ():
    """Ten of two hundred are 0: most samples of ten contain none of them or one."""
    rng, draws = np.random.default_rng(8), 2000
    values = np.concatenate([np.zeros(10), np.full(190, 13.9)])
    release = of("mean", 0.05)
    published = [release.publish(values, rng=rng) for _ in range(draws)]
    covered = np.mean([p.lower <= values.mean() <= p.upper for p in published])
    assert covered > 0.95 - 4 * math.sqrt(0.05 * 0.95 / draws)


def test_single_sampled_value_has_the_full_interval():
    rng = np.random.default_rng(3)
    for statistic in ("mean", "median"):
        published = of(statistic, 0.01).publish(VALUES, rng=rng)
        assert published.value in VALUES
        assert (published.lower, published.upper) == (0.0, 15.0)
    beyond = of("median", 0.01).publish(np.array([20.0, 20.0]), rng=rng)
    assert (beyond.lower, beyond.upper) == (0.0, 20.0)


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"statistic": "mode", "lower": 0.0, "upper": 1.0}, "statistic"),
        ({"statistic": "mean", "lower": 1.0, "upper": 1.0}, "upper"),
        ({"statistic": "mean", "lower": 0.0, "upper": math.inf}, "upper"),
        ({"statistic": "mean", "lower": 0.0, "upper": 1.0, "sample": 0.0}, "sample"),
        ({"statistic": "mean", "lower": 0.0, "upper": 1.0, "sample": 1.1}, "sample"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters, field):
    with pytest.raises(ParameterError) as caught:
        ExactStatistic(**parameters)
    assert caught.value.field == field
