"""Estimates of every mechanism against theory: unbiased, with the stated error, by reports and by counts."""

import math
from dataclasses import replace

import numpy as np
import pytest
from mechanism_cases import ALL, SMALL, truth_of
from mechanism_statistics import check_moments, check_same_distribution, estimate_counts, step_of, z_bound

from mechanisms import local

REPEATS = 400


def true_counts_of(mechanism):
    counts = np.zeros(mechanism.cells + 1, dtype=np.int64)
    held = [60, 5, 20, 15][: len(counts)]
    counts[: len(held)] = held
    return counts


def tallies_by_report(mechanism, truth, repeats, rng, masks=None):
    """Tallies of all rounds of the same devices in independent queries, (repeats, rounds, *tally_shape).

    `masks` are the received reports, (repeats, rounds, devices) bool; by default all.
    """
    step = max(1, 2_000_000 // (len(truth) * math.prod(mechanism.tally_shape)))
    found = []
    for first in range(0, repeats, step):
        times = min(step, repeats - first)
        devices = np.tile(truth, times)
        coins = mechanism.toss(mechanism.enrol(len(devices), rng=rng), rng=rng)
        vectors = np.stack(
            [mechanism.encode(mechanism.answer(r + 1, devices, coins)) for r in range(mechanism.rounds)], axis=1
        )
        vectors = vectors.reshape(times, len(truth), mechanism.rounds, -1)
        if masks is not None:
            vectors = vectors * masks[first : first + times].swapaxes(1, 2)[..., np.newaxis]
        found.append(vectors.sum(axis=1))
    return np.concatenate(found).reshape(repeats, mechanism.rounds, *mechanism.tally_shape)


def expect_moments(mechanism, seen, true_counts, **totals):
    """Expect unbiased estimates with the stated error, exact ones where no error is stated."""
    estimates, theory = estimate_counts(mechanism, seen, **totals), mechanism.std_error(true_counts, **totals)
    certain = theory == 0.0
    np.testing.assert_allclose(estimates[:, certain] - true_counts[1:][certain], 0.0, atol=1e-9)
    if certain.all():
        return
    step = step_of(mechanism, **totals)
    check_moments(estimates[:, ~certain], true_counts[1:][~certain], theory[~certain], step=step)


@pytest.mark.parametrize("name", ALL)
def test_estimates_are_unbiased_with_theoretical_variance(name):
    mechanism, rng = ALL[name], np.random.default_rng(11)
    true_counts = true_counts_of(mechanism)
    asked = [int(true_counts.sum())] * mechanism.rounds
    by_report = tallies_by_report(mechanism, truth_of(true_counts), REPEATS, rng)
    expect_moments(mechanism, by_report, true_counts, counted=asked, asked=asked)
    by_count = [mechanism.sample_counts(true_counts, rng=rng) for _ in range(REPEATS)]
    expect_moments(mechanism, by_count, true_counts, counted=asked, asked=asked)


# Received and asked in each round, by the number of rounds and the round that fixes the truth.
LOSSES = {(1, 1): ([60], [100]), (2, 1): ([80, 60], [100, 70]), (2, 2): ([110, 70], [140, 100])}
LOSSES[3, 1] = [90, 60, 50], [100, 80, 70]
ONE_CELL = {"SUE, 1 cell", "OLH, 1 cell", "cancelling, one cell", "deniable, both ways"}


@pytest.mark.parametrize("name", [name for name in SMALL if SMALL[name].cells == 3 or name in ONE_CELL])
def test_estimates_under_loss_are_unbiased_with_exact_variance(name):
    """Those received are a simple random sample of each round; of two rounds one asks a subset of the other's."""
    mechanism, rng = SMALL[name], np.random.default_rng(13)
    counted, asked = LOSSES[mechanism.rounds, mechanism.truth_round]
    true_counts = true_counts_of(mechanism)
    true_counts[0] += 100 - true_counts.sum()
    truth = np.concatenate([truth_of(true_counts), np.zeros(max(asked) - 100, dtype=np.int32)])
    masks = np.zeros((REPEATS, mechanism.rounds, len(truth)), dtype=bool)
    for mask in masks:
        order = np.append(rng.permutation(100), np.arange(100, len(truth)))
        for r, (received, size) in enumerate(zip(counted, asked, strict=True)):
            mask[r, rng.permutation(order[:size])[:received]] = True
    seen = tallies_by_report(mechanism, truth, REPEATS, rng, masks)
    expect_moments(mechanism, seen, true_counts, counted=counted, asked=asked)


# Certain ones, and one whose outcomes are too many to compare.
LEFT_OUT = {"no privacy", "everyone sampled", "OLH, many buckets"}
SEVERAL_CELLS = [name for name in SMALL if SMALL[name].cells > 1 and name not in LEFT_OUT]


@pytest.mark.parametrize("name", SEVERAL_CELLS)
def test_reports_and_sample_counts_have_one_distribution(name):
    """Whole outcomes, every round and output jointly, or of each cell where a mechanism states no more."""
    mechanism, rng = SMALL[name], np.random.default_rng(12)
    if mechanism.rounds > 1 and hasattr(mechanism, "binary_query"):  # of three cells there are too many outcomes
        mechanism = replace(mechanism, cells=2)
    truth = np.array([0, 1, mechanism.cells], dtype=np.int32)
    by_report = tallies_by_report(mechanism, truth, 8_000, rng).reshape(8_000, -1)
    counts = np.bincount(truth, minlength=mechanism.cells + 1)
    by_count = np.stack([mechanism.sample_counts(counts, rng=rng).ravel() for _ in range(2_000)])
    if mechanism.sample_law == "exact joint":
        check_same_distribution(by_report, by_count)
        return
    for symbol in range(by_report.shape[1]):
        check_same_distribution(by_report[:, [symbol]], by_count[:, [symbol]])


def test_sampling_error_is_constant_and_randomized_response_grows():
    for outside in (0, 10**4, 10**6, 10**9):
        true_counts = np.array([outside, 100])
        assert local.SamplingPrivacy(cells=1, sampling=0.45).std_error(true_counts)[0] == pytest.approx(
            np.sqrt(100 * 0.55 / 0.45), rel=1e-12
        )
        response = local.RandomizedResponse(cells=1, first_coin=0.8, second_coin=0.2)
        expected = np.sqrt(100 * 0.84 * 0.16 + outside * 0.04 * 0.96) / 0.8
        assert response.std_error(true_counts)[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.5, math.log(3), 2.0, 4.0])
def test_published_variances_of_a_rare_cell(epsilon):
    """Wang et al. 2017 table 1, per device at f = 0; Acharya et al. 2019; at ε = ln 3 OLH has its real optimum."""
    e, n, cells = math.exp(epsilon), 10_000, 50
    true_counts = np.zeros(cells + 1, dtype=np.int64)
    true_counts[0] = n
    k, g = cells + 1, round(e) + 1
    root = math.exp(epsilon / 2)
    published = {
        local.KRandomizedResponse: (k - 2 + e) / (e - 1) ** 2,
        local.SymmetricUnary: root / (root - 1) ** 2,
        local.OptimisedUnary: 4 * e / (e - 1) ** 2,
        local.LocalHashing: (e + g - 1) ** 2 / ((e - 1) ** 2 * (g - 1)),
        local.HadamardResponse: ((e + 1) / (e - 1)) ** 2,
    }
    for kind, variance in published.items():
        error = kind(cells=cells, epsilon=epsilon).std_error(true_counts)
        assert error == pytest.approx(np.sqrt(n * variance), rel=1e-8)
    if epsilon == math.log(3):
        assert published[local.LocalHashing] == pytest.approx(published[local.OptimisedUnary], rel=1e-12)
    # Subset selection is the best of them at its best size (Ye and Barg 2018), and of size 1 it is k-ary.
    best = local.SubsetSelection(cells=cells, epsilon=epsilon).std_error(true_counts)[0]
    assert best <= 1.001 * min(math.sqrt(n * variance) for variance in published.values())
    one = local.SubsetSelection(cells=cells, epsilon=epsilon, size=1).std_error(true_counts)
    assert one == pytest.approx(np.sqrt(n * published[local.KRandomizedResponse]))


def test_noise_of_all_shares_is_discrete_laplace():
    rng = np.random.default_rng(25)
    baseline, repeats = local.DistributedLaplace(cells=1, epsilon=0.8, devices=4), 40_000
    alpha = math.exp(-0.8)
    reports = baseline.encode(
        baseline.answer(
            1, np.zeros(4 * repeats, dtype=np.int32), baseline.toss(baseline.enrol(4 * repeats, rng=rng), rng=rng)
        )
    )
    summed = reports.reshape(repeats, 4).sum(axis=1)
    geometric = rng.geometric(1 - alpha, size=(2, repeats))
    check_same_distribution(summed[:, np.newaxis], (geometric[0] - geometric[1])[:, np.newaxis])
    values = np.arange(-6, 7)
    distribution = (1 - alpha) / (1 + alpha) * alpha ** np.abs(values)
    seen = (summed[:, np.newaxis] == values).mean(axis=0)
    assert np.abs((seen - distribution) / np.sqrt(distribution * (1 - distribution) / repeats)).max() < z_bound(
        len(values)
    )


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0, 8.0])
def test_threshold_is_optimal_and_bits_come_from_laplace_noise(epsilon):
    from scipy.optimize import minimize_scalar  # noqa: PLC0415 - slow to import

    def variance(threshold):
        baseline = local.ThresholdHistogram(cells=2, epsilon=epsilon, threshold=threshold)
        p, q = baseline.true_yes, baseline.false_yes
        return q * (1 - q) / (p - q) ** 2

    baseline = local.ThresholdHistogram(cells=2, epsilon=epsilon)
    found = minimize_scalar(variance, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-9})
    assert baseline.threshold == pytest.approx(found.x, abs=1e-5)
    assert 0.5 < baseline.threshold <= 1.0
    rng, n = np.random.default_rng(27), 10**6
    for entry, bit in ((1.0, baseline.true_yes), (0.0, baseline.false_yes)):
        seen = (entry + rng.laplace(scale=2 / epsilon, size=n) > baseline.threshold).mean()
        assert abs(seen - bit) < z_bound(8) * math.sqrt(bit * (1 - bit) / n)


@pytest.mark.parametrize("permanent", ["optimised", "symmetric"])
def test_memoised_bits_persist_and_are_reported_with_second_noise(permanent):
    """Over many queries a device's bits average to its memoised ones; in one query they have p and q."""
    rng = np.random.default_rng(28)
    baseline = local.LongitudinalUnary(cells=2, epsilon_permanent=3.0, epsilon_first=2.0, permanent=permanent)
    n, queries = 4000, 60
    memory = baseline.enrol(n, rng=rng)
    assert memory.nbytes == 2 * 8 * n
    truth = np.ones(n, dtype=np.int32)
    bits = np.stack([baseline.answer(1, truth, baseline.toss(memory, rng=rng)).to_dense() for _ in range(queries)])
    p, q, f = baseline.true_kept, baseline.false_kept, baseline.flip
    assert p * (1 - f) + (1 - p) * f == pytest.approx(baseline.true_yes, abs=1e-12)
    assert q * (1 - f) + (1 - q) * f == pytest.approx(baseline.false_yes, abs=1e-12)
    first = bits[0].mean(axis=0)
    share = np.array([baseline.true_yes, baseline.false_yes])
    assert np.abs((first - share) / np.sqrt(share * (1 - share) / n)).max() < z_bound(4)
    # The number of 1s among a device's bits is a mixture of two binomials, by its memoised bit.
    kept = bits.sum(axis=0) > queries / 2
    wrong = np.where(kept, queries - bits.sum(axis=0), bits.sum(axis=0)).sum()
    total = bits.size
    assert abs(kept.mean(axis=0) - np.array([p, q])).max() < z_bound(4) * 0.5 / math.sqrt(n) + 1e-3
    assert abs(wrong / total - f) < z_bound(4) * math.sqrt(f * (1 - f) / total) + 1e-3
    # It goes away and comes back: the same memoised bits as before.
    for _ in range(3):
        baseline.answer(1, np.full(n, 2, dtype=np.int32), baseline.toss(memory, rng=rng))
    again = np.stack([baseline.answer(1, truth, baseline.toss(memory, rng=rng)).to_dense() for _ in range(queries)])
    assert ((again.sum(axis=0) > queries / 2) == kept).mean() > 0.99


@pytest.mark.slow
def test_a_billion_devices_are_sampled_by_counts():
    rng = np.random.default_rng(29)
    true_counts = np.full(10_001, 1000)
    true_counts[0] = 10**9 - 1000 * 10_000
    for baseline in (
        local.KRandomizedResponse(cells=10_000, epsilon=1.0),
        local.OptimisedUnary(cells=10_000, epsilon=1.0),
        local.LocalHashing(cells=10_000, epsilon=1.0),
        local.SubsetSelection(cells=10_000, epsilon=1.0),
        local.HadamardResponse(cells=10_000, epsilon=1.0),
        local.DistributedLaplace(cells=10_000, epsilon=1.0, devices=10**9),
    ):
        counts = baseline.sample_counts(true_counts, rng=rng)
        estimate = baseline.estimate(counts, counted=[10**9], asked=[10**9])
        # A score of many cells, each nearly normal: their sum of squares has variance 2 per cell.
        scores = (estimate.count - 1000) / baseline.std_error(true_counts)
        limit = z_bound(12) * math.sqrt((2 + 10) / 10_000)
        assert abs((scores**2).mean() - 1) < limit
