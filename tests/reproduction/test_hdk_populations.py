"""The populations of HDK: R's stream against known R output, and the distributions of the draws."""

import numpy as np
import pytest
from scipy.stats import beta, kstest, norm

from simulator.papers.amplification import populations


def test_r_stream_equals_r_output_for_seed_123():
    assert np.round(populations.RStream(123).uniform(3), 7).tolist() == [0.2875775, 0.7883051, 0.4089769]
    assert np.round(populations.RStream(123).normal(3), 8).tolist() == [-0.56047565, -0.23017749, 1.55870831]


def test_r_stream_equals_r_output_for_seed_42():
    assert np.round(populations.RStream(42).uniform(3), 7).tolist() == [0.9148060, 0.9370754, 0.2861395]


def test_r_stream_continues_after_a_partial_draw():
    """A beta variate uses a random number of uniforms; the next draw starts right after them."""
    whole = populations.RStream(5).beta(40, 2.0, 10.0)
    stream = populations.RStream(5)
    parts = np.concatenate([stream.beta(7, 2.0, 10.0), stream.beta(32, 2.0, 10.0), stream.beta(1, 2.0, 10.0)])
    np.testing.assert_array_equal(parts, whole)


def test_r_stream_distributions():
    assert kstest(populations.RStream(1).beta(4000, 2.0, 10.0), beta(2, 10).cdf).pvalue > 1e-4
    assert kstest(populations.RStream(1).normal(4000), norm.cdf).pvalue > 1e-4


def test_population_of_the_paper():
    population = populations.printed_mixture()
    assert len(population.ordered) == populations.N
    assert population.bounds == (0.0, 1.0)
    assert population.median == pytest.approx(0.2109, abs=5e-5)
    assert population.ordered[populations.N // 2 + 1] > 0.6


def test_random_populations_have_the_distributions_of_the_seeded_ones():
    rng = np.random.default_rng(2)
    for drawn, seeded in (
        (populations.lognormal(rng), populations.seeded_lognormal()),
        (populations.mixture(rng), populations.printed_mixture()),
    ):
        assert (np.diff(drawn.ordered) >= 0).all()
        quantiles = np.linspace(0.05, 0.45, 9)
        np.testing.assert_allclose(
            np.quantile(drawn.ordered, quantiles), np.quantile(seeded.ordered, quantiles), rtol=0.12
        )
    assert populations.seeded_beta().median == pytest.approx(beta(2, 10).median(), abs=0.004)
