"""Claims of published counts: from a threshold on, for a device that moves, and for every crowd."""

import itertools
import math

import numpy as np
import pytest
from reference_divergences import difference_law
from scipy.stats import binom

from mechanisms import privacy
from mechanisms.central import CountRelease, LaplaceCounts, SampleThenSuppress, ThresholdCounts
from mechanisms.local import SamplingPrivacy
from mechanisms.privacy.hockey_stick import hockey_stick, pair_of_curve
from mechanisms.privacy.released import worst_move_delta

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
            alone = privacy.pair_delta(there, gone, epsilon=at)
            assert alone <= claims["enter_leave"].delta(at) + 1e-12
            merged = [
                [law[0], law[1 : max(crowd - k, 0) + 1].sum(), law[max(crowd - k, 0) + 1 :].sum()]
                for law in (there, gone)
            ]
            p, q = np.multiply.outer(*merged).ravel(), np.multiply.outer(*merged[::-1]).ravel()
            both = privacy.pair_delta(p, q, epsilon=at)
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


EPSILONS = (0.0, 0.2, 0.7, 1.0, 1.9, 3.0)


def sampled(n, sampling, epsilon):
    """Masses of Bin(n, β) plus noise, on a fixed support of sums."""
    sums = np.convolve(binom.pmf(np.arange(n + 1), n, sampling), law(epsilon))
    return np.pad(sums, (0, 6 - n))


def product(one, other):
    return np.multiply.outer(one, other).ravel()


def moved(law, crowd):
    """The pair of one move between two cells, each with `crowd` devices while the device is in it."""
    there, gone = law(crowd), law(crowd - 1)
    return product(there, gone), product(gone, there)


@pytest.mark.parametrize("queries", [1, 2])
def test_laplace_counts_without_sampling(queries):
    release = LaplaceCounts(epsilon=0.8)
    claim = release.claim(crowd=None, queries=queries, adjacency="move")
    # The ratio takes two values in each cell, so one bit a cell has the same divergence: compared for one query only.
    p, q = moved(lambda n: sampled(n, 1.0, 0.8), 3)
    if queries == 2:
        edge = 1.0 / (1.0 + math.exp(-0.8))
        bit, other = np.array([edge, 1 - edge]), np.array([1 - edge, edge])
        p, q = product(product(bit, bit), product(bit, bit)), product(product(other, other), product(other, other))
    for epsilon in EPSILONS:
        assert claim.delta(epsilon) == pytest.approx(privacy.pair_delta(p, q, epsilon=epsilon), abs=1e-12)
    assert (claim.kind, claim.delta_kind) == ("exact", "exact")
    assert claim.epsilon == pytest.approx(1.6 * queries)


@pytest.mark.parametrize("crowd", [1, 2, 4])
def test_laplace_counts_of_a_sample(crowd):
    release = LaplaceCounts(epsilon=0.8, sampling=0.3)
    p, q = moved(lambda n: sampled(n, 0.3, release.sample_epsilon), crowd)
    claim = release.claim(crowd=crowd, adjacency="move")
    for epsilon in EPSILONS:
        exact = privacy.pair_delta(p, q, epsilon=epsilon)
        assert claim.delta(epsilon) == pytest.approx(exact, abs=1e-9)
        assert release.claim(crowd=None, adjacency="move").delta(epsilon) >= exact - 1e-9
    inside = (p > 1e-20) & (q > 1e-20)
    assert claim.epsilon == pytest.approx(np.log(p[inside] / q[inside]).max(), abs=1e-6)
    assert claim.epsilon < 1.6
    outside = release.claim(crowd=crowd)
    assert all(outside.delta(epsilon) <= claim.delta(epsilon) + 1e-15 for epsilon in EPSILONS)


def test_laplace_counts_of_a_sample_over_two_queries():
    release = LaplaceCounts(epsilon=0.8, sampling=0.3)
    claim = release.claim(crowd=1, queries=2, adjacency="move")
    merged = release.claim(crowd=1).curve.pair  # outputs with equal ratios are merged
    p, q = product(merged[0], merged[1]), product(merged[1], merged[0])
    p, q = product(p, p), product(q, q)
    for epsilon in EPSILONS:
        exact = privacy.pair_delta(p, q, epsilon=epsilon)
        assert exact - 1e-12 <= claim.delta(epsilon) <= exact + 1e-3
    assert claim.delta_kind == "bound"


@pytest.mark.parametrize(("k", "sampling"), [(1, 0.3), (2, 0.5), (4, 0.2), (5, 0.7)])
def test_any_two_crowds_of_suppressed_samples(k, sampling):
    claim = SampleThenSuppress(k=k, sampling=sampling).claim(crowd=None, adjacency="move")
    for epsilon in EPSILONS:
        worst = 0.0
        for n, m in itertools.product(range(1, 15), repeat=2):
            p = product(difference_law(n, k, sampling, 14), difference_law(m - 1, k, sampling, 14))
            q = product(difference_law(n - 1, k, sampling, 14), difference_law(m, k, sampling, 14))
            worst = max(worst, privacy.pair_delta(p, q, epsilon=epsilon))
        assert worst - 1e-12 <= claim.delta(epsilon) <= 2.0 * worst
        assert claim.delta(epsilon) >= privacy.worst_crowd_delta(k=k, sampling=sampling, epsilon=epsilon) - 1e-15
    assert (claim.kind, claim.delta_kind) == ("infinite", "bound")


def test_error_of_suppressed_samples_planned_for_a_move_between_any_two_crowds():
    """At 100 vehicles 11.14, with k = 34; the worst two crowds, of all from 34 on, have δ(1) = 8.1e-7."""
    k, sampling = 34, 0.4795
    bound = worst_move_delta(k=k, sampling=sampling, epsilon=1.0)
    assert 0.80e-6 < bound <= 0.81e-6
    assert SampleThenSuppress(k=k, sampling=sampling).std_error(np.array([100]))[0] == pytest.approx(11.14, abs=0.01)
    crowds = range(k, 90)
    found = max(
        privacy.moved_differences_delta(crowd=n, other_crowd=m, sampling=sampling, epsilon=1.0, k=k)
        for n, m in itertools.combinations(crowds, 2)
    )
    assert 0.99 * bound < found <= bound
    assert worst_move_delta(k=k, sampling=1.0, epsilon=1.0) == 1.0


@pytest.mark.parametrize("sampling", [1e-16, 3.3273e-13, 3.3273e-11, 1e-9])
def test_bound_of_a_move_holds_where_nearly_nothing_is_sampled(sampling):
    """Points of its curve are nearer to 1 than numbers can tell; at most both differences change."""
    bound = worst_move_delta(k=1, sampling=sampling, epsilon=0.0)
    assert privacy.worst_crowd_delta(k=1, sampling=sampling, epsilon=0.0) <= bound * (1 + 1e-9)
    assert bound <= 3 * sampling + 1e-16  # half a unit in the last place of 1


def test_pair_of_a_curve_is_nowhere_below_it():
    """The chords of one crowd's curve, which is known at every ε."""
    n, beta = 12, 0.4
    p, q = difference_law(n, None, beta, 14), difference_law(n - 1, None, beta, 14)
    up, down = np.linspace(0.0, 4.0, 400), np.linspace(0.0, -math.log1p(-beta), 400)
    forth = np.array([hockey_stick(p, q, epsilon=e) for e in up])
    back = np.array([hockey_stick(q, p, epsilon=e) for e in down])
    one, other = pair_of_curve(np.exp(up), forth, np.exp(down), back)
    assert one.sum() == pytest.approx(1.0)
    assert other.sum() == pytest.approx(1.0)
    for epsilon in np.linspace(0.0, 6.0, 77):
        for (a, b), (c, d) in (((one, other), (p, q)), ((other, one), (q, p))):
            exact = hockey_stick(c, d, epsilon=epsilon)
            assert exact - 1e-14 <= hockey_stick(a, b, epsilon=epsilon) <= exact + max(1e-4, forth[-1])
    assert privacy.released_differences_delta(crowd=n, sampling=beta, epsilon=0.0) == pytest.approx(forth[0], abs=1e-14)


def test_exact_counts_are_not_hidden_by_a_threshold():
    with pytest.warns(UserWarning, match="sampling"):
        everything = SamplingPrivacy(cells=3, sampling=1.0)
    for crowd, adjacency in itertools.product((5, 60), ("move", "enter_leave")):
        assert everything.claim(privacy.ReleasedDifferences(crowd, 10, adjacency=adjacency)).delta(3.0) == 1.0
