"""The baselines' estimates against theory: unbiased, with the stated error, by reports and by counts."""

import math

import numpy as np
import pytest
from ldp_baseline_cases import BASELINES, JOINT, step_of
from mechanism_cases import run_query, truth_of
from mechanism_statistics import check_moments, check_same_distribution, estimate_counts, z_bound

from mechanisms.local.distributed_laplace import DistributedLaplace
from mechanisms.local.hadamard_response import HadamardResponse
from mechanisms.local.k_randomized_response import KRandomizedResponse
from mechanisms.local.local_hashing import LocalHashing
from mechanisms.local.longitudinal_unary import LongitudinalUnary
from mechanisms.local.subset_selection import SubsetSelection
from mechanisms.local.unary_encoding import OptimisedUnary, SymmetricUnary, ThresholdHistogram

every = pytest.mark.parametrize("baseline", BASELINES.values(), ids=BASELINES.keys())


def true_counts_of(baseline):
    counts = np.zeros(baseline.cells + 1, dtype=np.int64)
    if baseline.cells > 1:
        counts[:4] = 60, 5, 20, 15
    else:
        counts[:] = 60, 40
    return counts


@pytest.mark.fast_cases(20)
@every
@pytest.mark.parametrize("source", ["reports", "counts"])
def test_estimates_are_unbiased_with_theoretical_variance(baseline, source):
    rng = np.random.default_rng(21)
    true_counts = true_counts_of(baseline)
    truth = truth_of(true_counts)
    draw = {
        "reports": lambda: run_query(baseline, truth, rng=rng),
        "counts": lambda: baseline.sample_counts(true_counts, rng=rng),
    }[source]
    seen = estimate_counts(baseline, [draw() for _ in range(1200)], counted=[100], asked=[100])
    check_moments(seen, true_counts[1:], baseline.std_error(true_counts), step=step_of(baseline))


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("name", [name for name, baseline in JOINT.items() if baseline.cells <= 5])
def test_reports_and_sample_counts_have_one_joint_distribution(name):
    baseline, repeats = JOINT[name], 12_000
    rng = np.random.default_rng(22)
    by_report, counts = by_reports(baseline, repeats, rng)
    by_count = np.stack([baseline.sample_counts(counts, rng=rng).ravel() for _ in range(repeats)])
    check_same_distribution(by_report, by_count)


@pytest.mark.parametrize("name", ["OLH, 3 cells", "subset, 3 cells", "subset, most symbols"])
def test_reports_and_sample_counts_have_one_distribution_per_cell(name):
    baseline, repeats = BASELINES[name], 12_000
    rng = np.random.default_rng(23)
    by_report, counts = by_reports(baseline, repeats, rng)
    by_count = np.stack([baseline.sample_counts(counts, rng=rng).ravel() for _ in range(repeats)])
    for symbol in range(baseline.cells + 1):
        check_same_distribution(by_report[:, [symbol]], by_count[:, [symbol]])


def by_reports(baseline, repeats, rng):
    """Tallies of the same few devices, repeated, and their true counts."""
    truth = np.array([0, 1, 1, baseline.cells], dtype=np.int32)
    devices = np.tile(truth, repeats)
    coins = baseline.toss(baseline.enrol(len(devices), rng=rng), rng=rng)
    vectors = baseline.encode(baseline.answer(1, devices, coins))
    return vectors.reshape(repeats, len(truth), -1).sum(axis=1), np.bincount(truth, minlength=baseline.cells + 1)


@pytest.mark.parametrize("name", [name for name, baseline in BASELINES.items() if baseline.cells == 3])
def test_estimates_under_loss_are_unbiased_with_exact_variance(name):
    """The reports that arrive are a simple random sample."""
    baseline = BASELINES[name]
    rng = np.random.default_rng(24)
    true_counts = true_counts_of(baseline)
    truth = truth_of(true_counts)
    seen = []
    for _ in range(1500):
        mask = np.zeros(100, dtype=bool)
        mask[rng.permutation(100)[:60]] = True
        counts = run_query(baseline, truth, rng=rng, where=[mask])
        seen.append(counts)
    theory = baseline.std_error(true_counts, asked=[100], counted=[60])
    assert (theory > baseline.std_error(true_counts)).all()
    estimates = estimate_counts(baseline, seen, counted=[60], asked=[100])
    check_moments(estimates, true_counts[1:], theory, step=step_of(baseline, devices=60) * 100 / 60)


@pytest.mark.parametrize("epsilon", [0.5, math.log(3), 2.0, 4.0])
def test_published_variances_of_a_rare_cell(epsilon):
    """Wang et al. 2017 table 1, per device at f = 0; Acharya et al. 2019; at ε = ln 3 OLH has its real optimum."""
    e, n, cells = math.exp(epsilon), 10_000, 50
    true_counts = np.zeros(cells + 1, dtype=np.int64)
    true_counts[0] = n
    k, g = cells + 1, round(e) + 1
    root = math.exp(epsilon / 2)
    published = {
        KRandomizedResponse: (k - 2 + e) / (e - 1) ** 2,
        SymmetricUnary: root / (root - 1) ** 2,
        OptimisedUnary: 4 * e / (e - 1) ** 2,
        LocalHashing: (e + g - 1) ** 2 / ((e - 1) ** 2 * (g - 1)),
        HadamardResponse: ((e + 1) / (e - 1)) ** 2,
    }
    for kind, variance in published.items():
        error = kind(cells=cells, epsilon=epsilon).std_error(true_counts)
        assert error == pytest.approx(np.sqrt(n * variance), rel=1e-8)
    if epsilon == math.log(3):
        assert published[LocalHashing] == pytest.approx(published[OptimisedUnary], rel=1e-12)
    # Subset selection is the best of them at its best size (Ye and Barg 2018), and of size 1 it is k-ary.
    best = SubsetSelection(cells=cells, epsilon=epsilon).std_error(true_counts)[0]
    assert best <= 1.001 * min(math.sqrt(n * variance) for variance in published.values())
    one = SubsetSelection(cells=cells, epsilon=epsilon, size=1).std_error(true_counts)
    assert one == pytest.approx(np.sqrt(n * published[KRandomizedResponse]))


def test_error_of_laplace_shares_is_constant():
    """2α/(1 − α)² for any number of devices, expected and counted."""
    alpha = math.exp(-0.5)
    for devices in (10, 10**4, 10**9):
        baseline = DistributedLaplace(cells=2, epsilon=1.0, devices=devices)
        true_counts = np.array([devices - 4, 3, 1])
        assert baseline.std_error(true_counts) == pytest.approx(np.sqrt(2 * alpha) / (1 - alpha), rel=1e-12)
    baseline = DistributedLaplace(cells=2, epsilon=1.0, devices=1000)
    twice = baseline.std_error(np.array([1990, 6, 4]))
    assert twice == pytest.approx(np.sqrt(2 * 2 * alpha) / (1 - alpha), rel=1e-12)


def test_noise_of_all_shares_is_discrete_laplace():
    rng = np.random.default_rng(25)
    baseline, repeats = DistributedLaplace(cells=1, epsilon=0.8, devices=4), 40_000
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


def test_laplace_share_interval_covers_as_theory_predicts():
    rng = np.random.default_rng(26)
    baseline, repeats = DistributedLaplace(cells=400, epsilon=1.0, devices=10**6), 50
    true_counts = np.full(401, 1000)
    true_counts[0] = 10**6 - 400_000
    covered = 0
    for _ in range(repeats):
        counts = baseline.sample_counts(true_counts, rng=rng)
        estimate = baseline.estimate(counts, counted=[10**6], asked=[10**6])
        assert estimate.interval == "exact"
        covered += int(((estimate.lower <= 1000) & (estimate.upper >= 1000)).sum())
    alpha, half = baseline.alpha, int(estimate.upper[0] - estimate.count[0])
    outside = 2 * alpha ** (half + 1) / (1 + alpha)
    assert outside <= 0.05 < 2 * alpha**half / (1 + alpha)
    error = math.sqrt(outside * (1 - outside) / (400 * repeats))
    assert abs(1 - covered / (400 * repeats) - outside) < z_bound(1) * error


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0, 8.0])
def test_threshold_is_optimal_and_bits_come_from_laplace_noise(epsilon):
    from scipy.optimize import minimize_scalar  # noqa: PLC0415 - slow to import

    def variance(threshold):
        baseline = ThresholdHistogram(cells=2, epsilon=epsilon, threshold=threshold)
        p, q = baseline.true_yes, baseline.false_yes
        return q * (1 - q) / (p - q) ** 2

    baseline = ThresholdHistogram(cells=2, epsilon=epsilon)
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
    baseline = LongitudinalUnary(cells=2, epsilon_permanent=3.0, epsilon_first=2.0, permanent=permanent)
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
        KRandomizedResponse(cells=10_000, epsilon=1.0),
        OptimisedUnary(cells=10_000, epsilon=1.0),
        LocalHashing(cells=10_000, epsilon=1.0),
        SubsetSelection(cells=10_000, epsilon=1.0),
        HadamardResponse(cells=10_000, epsilon=1.0),
        DistributedLaplace(cells=10_000, epsilon=1.0, devices=10**9),
    ):
        counts = baseline.sample_counts(true_counts, rng=rng)
        estimate = baseline.estimate(counts, counted=[10**9], asked=[10**9])
        # A score of many cells, each nearly normal: their sum of squares has variance 2 per cell.
        scores = (estimate.count - 1000) / baseline.std_error(true_counts)
        limit = z_bound(12) * math.sqrt((2 + 10) / 10_000)
        assert abs((scores**2).mean() - 1) < limit
