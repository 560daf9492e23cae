"""Privacy of the Laplace releases: HDK theorem 1, and every claim against brute force or numerical integration."""

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from mechanisms.central import LaplaceCounts, LaplaceMean, SmoothMedian, median_smooth_sensitivity
from mechanisms.central.release import median_rank
from mechanisms.parameter import ParameterError
from mechanisms.privacy.laplace_noise import (
    NoisySample,
    SmoothNoiseDelta,
    laplace_pair_delta,
    printed_smoothing,
    smoothing,
    tail_delta,
)
from mechanisms.privacy.subsampling import population_privacy, sample_privacy


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


@given(epsilon=st.floats(1e-12, 600.0), share=st.floats(1e-6, 1.0), delta=st.floats(0.0, 1e-7))
def test_theorem_1_and_its_inverse(epsilon, share, delta):
    own = sample_privacy(epsilon=epsilon, delta=delta, share=share)
    back = population_privacy(epsilon=own[0], delta=own[1], share=share)
    assert back[0] == pytest.approx(epsilon, rel=1e-12)
    assert back[1] == pytest.approx(delta, rel=1e-12)
    assert own[0] >= epsilon


def test_theorem_1_at_its_limits():
    assert population_privacy(epsilon=0.0, share=0.1) == (0.0, 0.0)
    assert population_privacy(epsilon=math.inf, share=0.1)[0] == math.inf
    assert sample_privacy(epsilon=math.inf, share=0.1)[0] == math.inf
    assert sample_privacy(epsilon=1.0, delta=0.5, share=0.1)[1] == 1.0
    assert round(sample_privacy(epsilon=0.1, share=101 / 10_001)[0], 2) == 2.43
    assert round(sample_privacy(epsilon=1.0, share=101 / 10_001)[0], 2) == 5.14


@pytest.mark.parametrize(
    ("kwargs", "field"),
    [
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"delta": 1.5}, "delta"),
        ({"delta": "a"}, "delta"),
        ({"share": 0.0}, "share"),
        ({"share": 1.1}, "share"),
    ],
)
@pytest.mark.parametrize("function", [population_privacy, sample_privacy])
def test_theorem_1_refuses_invalid_arguments(function, kwargs, field):
    with pytest.raises(ParameterError) as fault:
        function(**({"epsilon": 1.0, "delta": 0.0, "share": 0.5} | kwargs))
    assert fault.value.field == field


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


def test_laplace_pair_delta_is_zero_at_infinite_epsilon():
    assert float(laplace_pair_delta(-0.5, 1.0, epsilon=math.inf)) == 0.0


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


@pytest.mark.slow
@pytest.mark.parametrize("share", [1.0, 0.6])
def test_median_claim_holds_on_neighbouring_populations(share):
    """Every sample of every neighbour, with its own smooth sensitivity."""
    release = SmoothMedian(epsilon=1.0, delta=0.01, lower=0.0, upper=1.0, sample=share)
    own = release.calibration(5)
    size = max(1, round(5 * share))

    def distribution(values):
        parts = []
        for one in subsets(values, size):
            scale = 2 * release.smooth_sensitivity(one, own) / own.epsilon
            parts.append((1 / math.comb(5, size), float(np.sort(one)[median_rank(size) - 1]), scale))
        return parts

    rng, worst = np.random.default_rng(7), 0.0
    populations = [([0.0] * 5, [0.0] * 4 + [1.0]), ([0.0] * 3 + [1.0] * 2, [0.0] * 2 + [1.0] * 3)]
    for _ in range(5):
        values = rng.choice([0.0, 0.1, 0.5, 1.0], 5)
        populations.append((list(values), [*values[:-1], rng.uniform()]))
    for pair in populations:
        mixtures = [distribution(of) for of in pair]
        for epsilon in (0.3, 1.0):
            found = max(integrated(*mixtures, epsilon), integrated(*mixtures[::-1], epsilon))
            assert found <= release.claim(devices=5).delta(epsilon) + 1e-9
            assert found <= release.claim().delta(epsilon) + 1e-9
            worst = max(worst, found) if epsilon == 0.3 else worst
    assert worst > (0.03 if share == 1.0 else 0.001)  # the integration would detect a breach
    assert release.claim().delta(1.0) <= 0.01
    assert release.claim().kind == "infinite"
    # Composed: at least what one of the queries reveals, and less than T·δ(ε/T).
    four = release.claim(queries=4)
    assert release.claim().delta(4.0) < four.delta(4.0) < 4 * release.claim().delta(1.0)


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


def test_counts_claim_over_queries_by_brute_force():
    release = LaplaceCounts(epsilon=0.6, sampling=0.3)
    p, q = NoisySample(2, 0.3, release.sample_epsilon).pair
    claim = release.claim(crowd=2, queries=2)
    assert claim.epsilon == pytest.approx(1.2)
    for epsilon in (0.1, 0.5, 1.0):
        # The device may be present in both queries, or present in one and outside in the other.
        worst = max(
            np.maximum(np.multiply.outer(a, c) - math.exp(epsilon) * np.multiply.outer(b, d), 0).sum()
            for (a, b), (c, d) in itertools.product([(p, q), (q, p)], repeat=2)
        )
        # The dominating pair takes the worse direction at every loss, which no single truth does.
        assert worst - 1e-12 <= claim.delta(epsilon) <= 1.2 * worst


def test_claims_of_large_crowds_are_those_of_smaller_ones():
    release = LaplaceCounts(epsilon=0.5, sampling=0.2)
    large = release.claim(crowd=10**6)
    assert large.delta_kind == "bound"
    assert large.delta(0.1) == release.claim(crowd=1000).delta(0.1)
