"""Noisy counts from a threshold on: error, intervals and claims against sums over the noise."""

import math

import numpy as np
import pytest

from mechanisms.central import CountRelease, LaplaceCounts, ThresholdCounts
from mechanisms.parameter import ParameterError
from mechanisms.privacy import pair_delta

REACH = 400
NOISE = np.arange(-REACH, REACH + 1)


def law(epsilon):
    """Masses of the noise on −REACH…REACH."""
    masses = np.exp(-epsilon * np.abs(NOISE))
    return masses / masses.sum()


@pytest.mark.parametrize(("epsilon", "k"), [(0.3, 1), (0.3, 8), (1.0, 5), (2.5, 20)])
def test_error_is_exact(epsilon, k):
    release = ThresholdCounts(epsilon=epsilon, k=k)
    counts = np.arange(45)
    noisy = counts[:, np.newaxis] + NOISE
    published = np.where(noisy >= k, noisy, 0)
    exact = np.sqrt(((published - counts[:, np.newaxis]) ** 2 * law(epsilon)).sum(axis=1))
    np.testing.assert_allclose(release.std_error(counts), exact, rtol=1e-9, atol=1e-12)
    assert isinstance(release, CountRelease)


def test_error_of_little_noise_and_of_much():
    assert ThresholdCounts(epsilon=50.0, k=3).std_error(np.array([0, 2, 3])) == pytest.approx([0, 2, 0], abs=1e-9)
    tiny = ThresholdCounts(epsilon=1e-6, k=1)
    assert tiny.std_error(np.array([0]))[0] == pytest.approx(math.sqrt(tiny.noise.noise_variance / 2), rel=1e-3)


@pytest.mark.parametrize(("epsilon", "k"), [(0.3, 1), (0.3, 8), (1.0, 5), (2.5, 20)])
def test_intervals_cover(epsilon, k):
    """The published table as a function of the noise, for every count: coverage by summing the noise's law."""
    release, masses = ThresholdCounts(epsilon=epsilon, k=k), law(epsilon)
    within = release.noise.reach(0.05)
    for count in range(45):
        noisy = count + NOISE
        covered = np.where(noisy >= k, np.abs(NOISE) <= within, count <= k - 1 + within)
        assert masses[covered].sum() >= 0.95 - 1e-12
    counts = np.arange(200) % 45
    estimate = release.publish(counts, rng=np.random.default_rng(3))
    kept = estimate.count > 0
    assert (estimate.count[kept] >= k).all()
    assert (estimate.upper[~kept] == k - 1 + within).all()
    assert (estimate.lower[~kept] == 0.0).all()
    np.testing.assert_array_equal(estimate.upper[kept], estimate.count[kept] + within)
    np.testing.assert_array_equal(estimate.lower[kept], np.maximum(estimate.count[kept] - within, 0))
    np.testing.assert_allclose(estimate.std_error[kept], release.std_error(estimate.count[kept].astype(np.int64)))
    largest = release.std_error(np.arange(k + within)).max()
    assert estimate.std_error[~kept] == pytest.approx(largest)


def test_published_table_has_the_stated_error():
    release, count = ThresholdCounts(epsilon=0.5, k=8), 9
    published = release.publish(np.full(200_000, count), rng=np.random.default_rng(4)).count
    squared = (published - count) ** 2
    tolerance = 5 * squared.std() / math.sqrt(len(squared))
    assert squared.mean() == pytest.approx(release.std_error(np.array([count]))[0] ** 2, abs=tolerance)


def published(count, epsilon, k):
    """Law of what is published of a cell: suppressed, then k, k + 1, …"""
    masses, noisy = law(epsilon), count + NOISE
    visible = np.zeros(REACH - 20)
    np.add.at(
        visible, noisy[(noisy >= k) & (noisy < k + len(visible))] - k, masses[(noisy >= k) & (noisy < k + len(visible))]
    )
    return np.append(1.0 - visible.sum(), visible)


@pytest.mark.parametrize("epsilon", [0.4, 1.3])
def test_claim_is_the_worst_crowd_and_attained_from_k_on(epsilon):
    k = 4
    release = ThresholdCounts(epsilon=epsilon, k=k)
    claims = {kind: release.claim(crowd=None, adjacency=kind) for kind in ("enter_leave", "move")}
    for at in (0.0, 0.2, 0.9, 1.5):
        for crowd in range(1, k + 4):
            there, gone = (published(n, epsilon, k) for n in (crowd, crowd - 1))
            alone = pair_delta(there, gone, epsilon=at)
            assert alone <= claims["enter_leave"].delta(at) + 1e-12
            merged = [
                [law[0], law[1 : max(crowd - k, 0) + 1].sum(), law[max(crowd - k, 0) + 1 :].sum()]
                for law in (there, gone)
            ]
            p, q = np.multiply.outer(*merged).ravel(), np.multiply.outer(*merged[::-1]).ravel()
            both = pair_delta(p, q, epsilon=at)
            assert both <= claims["move"].delta(at) + 1e-12
            if crowd >= k:
                assert alone == pytest.approx(claims["enter_leave"].delta(at), abs=1e-9)
                assert both == pytest.approx(claims["move"].delta(at), abs=1e-9)
            elif alone > 0:
                assert alone < claims["enter_leave"].delta(at)
    assert claims["move"].epsilon == pytest.approx(2 * epsilon)
    assert claims["enter_leave"].delta_kind == claims["move"].delta_kind == "exact"
    noise = LaplaceCounts(epsilon=epsilon).claim(crowd=None, queries=3)
    assert release.claim(crowd=5, queries=3).delta(0.7) == noise.delta(0.7)


@pytest.mark.parametrize("given", [{"epsilon": 0.0, "k": 3}, {"epsilon": 1.0, "k": 0}, {"epsilon": 1.0, "k": 2.5}])
def test_parameters_are_checked(given):
    with pytest.raises(ParameterError):
        ThresholdCounts(**given)
