"""The baselines' claims against brute force: every closed form against the whole matrix of reports."""

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ldp_baseline_cases import BASELINES, unary_matrix
from reference_divergences import composed_delta, matrix_delta, matrix_epsilon
from scipy.linalg import hadamard
from scipy.stats import chisquare

from mechanisms.local import ParameterError
from mechanisms.local.distributed_laplace import DistributedLaplace
from mechanisms.local.hadamard_response import HadamardResponse
from mechanisms.local.k_randomized_response import KRandomizedResponse
from mechanisms.local.local_hashing import LocalHashing
from mechanisms.local.longitudinal_unary import LongitudinalUnary
from mechanisms.local.subset_selection import SubsetSelection
from mechanisms.local.unary_encoding import OptimisedUnary, SymmetricUnary, ThresholdHistogram
from mechanisms.privacy import LinkedReports, ReleasedCounts, ReleasedDifferences, Report, Shares, Shuffled
from mechanisms.privacy.report_claims import EXACT_QUERIES, MirrorDelta, mirror_claim
from mechanisms.privacy.rounding import rounded_up

EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0, math.inf)
budgets = st.floats(0.05, 6.0)


def check_claim(claim, matrix):
    assert (claim.kind, claim.delta_kind) == ("exact", "exact")
    assert claim.epsilon == pytest.approx(matrix_epsilon(matrix), rel=1e-9)
    for e in EPSILONS:
        assert claim.delta(e) == pytest.approx(matrix_delta(matrix, epsilon=e), abs=1e-12)


def k_ary_matrix(symbols, epsilon):
    rows = np.ones((symbols, symbols)) + math.expm1(epsilon) * np.eye(symbols)
    return rows / rows.sum(axis=1, keepdims=True)


def subset_matrix(symbols, size, epsilon):
    """Outputs are the subsets as packed in a report: bit x for symbol x."""
    rows = np.zeros((symbols, 2**symbols))
    for subset in itertools.combinations(range(symbols), size):
        rows[:, sum(1 << x for x in subset)] = [math.exp(epsilon) if x in subset else 1.0 for x in range(symbols)]
    return rows / rows.sum(axis=1, keepdims=True)


def hadamard_matrix(symbols, epsilon):
    order = 2
    while order <= symbols:
        order *= 2
    side = hadamard(order)[1 : symbols + 1]
    return np.where(side > 0, math.exp(epsilon), 1.0) / (order / 2 * (math.exp(epsilon) + 1))


def hashed_pair_matrix(buckets, epsilon):
    """Two symbols, buckets independent with their exact widths: outputs (bucket of one, of the other, named)."""
    edges = -(-np.arange(buckets + 1, dtype=object) * 2**32 // buckets)
    widths = np.diff(np.array(edges, dtype=np.float64)) / 2**32
    named = k_ary_matrix(buckets, epsilon)
    one = widths[:, np.newaxis, np.newaxis] * widths[:, np.newaxis] * named[:, np.newaxis, :]
    other = widths[:, np.newaxis, np.newaxis] * widths[:, np.newaxis] * named[np.newaxis, :, :]
    return np.stack([one.ravel(), other.ravel()])


@given(cells=st.integers(1, 4), epsilon=budgets)
def test_one_report_claims_equal_brute_force(cells, epsilon):
    symbols = cells + 1
    check_claim(KRandomizedResponse(cells=cells, epsilon=epsilon).claim(Report(1)), k_ary_matrix(symbols, epsilon))
    baseline = SubsetSelection(cells=cells, epsilon=epsilon)
    check_claim(baseline.claim(Report(1)), subset_matrix(symbols, baseline.size, epsilon))
    check_claim(HadamardResponse(cells=cells, epsilon=epsilon).claim(Report(1)), hadamard_matrix(symbols, epsilon))
    for kind in (SymmetricUnary, OptimisedUnary, ThresholdHistogram):
        baseline = kind(cells=cells, epsilon=epsilon)
        check_claim(baseline.claim(LinkedReports()), unary_matrix(baseline.true_yes, baseline.false_yes, cells))


@given(epsilon=st.floats(0.05, 4.0), buckets=st.integers(2, 9))
def test_hashed_report_claims_equal_brute_force(epsilon, buckets):
    baseline = LocalHashing(cells=3, epsilon=epsilon, buckets=buckets)
    matrix = hashed_pair_matrix(buckets, epsilon)
    check_claim(baseline.claim(Report(1)), matrix)
    # A support is a named bucket that is the symbol's: p and q of the estimate, from the same matrix.
    outputs = matrix.reshape(2, buckets, buckets, buckets)
    own = np.einsum("iji->", outputs[0])
    false = np.einsum("ijj->", outputs[0])
    assert (own, false) == pytest.approx((baseline.true_yes, baseline.false_yes), abs=1e-12)


@pytest.mark.parametrize("kind", [SymmetricUnary, OptimisedUnary, ThresholdHistogram])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_unary_claim_states_both_moves(kind, epsilon):
    """Between cells two bits change, to outside one; the claim is the worse of the two and states both."""
    baseline = kind(cells=3, epsilon=epsilon)
    matrix = unary_matrix(baseline.true_yes, baseline.false_yes, 3)
    bit = baseline.bit
    between = math.log1p(bit.apart / bit.false_yes) + math.log1p(bit.apart / bit.true_no)
    to_outside = math.log1p(bit.apart / min(bit.false_yes, bit.true_no))
    assert between == pytest.approx(matrix_epsilon(matrix[1:]), rel=1e-9)
    assert to_outside == pytest.approx(matrix_epsilon(matrix[:2]), rel=1e-9)
    assert to_outside < between
    claim = baseline.claim(Report(1))
    assert claim.epsilon == between
    assert rounded_up(to_outside, 6) in claim.basis
    if kind is ThresholdHistogram:
        assert claim.epsilon < epsilon
    else:
        outside = {SymmetricUnary: epsilon / 2, OptimisedUnary: math.log((math.exp(epsilon) + 1) / 2)}[kind]
        assert to_outside == pytest.approx(outside, rel=1e-9)
        assert claim.epsilon == pytest.approx(epsilon, rel=1e-12)


MATRICES = {
    "k-ary, 3 cells": lambda baseline: k_ary_matrix(4, baseline.epsilon),
    "SUE, 3 cells": lambda baseline: unary_matrix(baseline.true_yes, baseline.false_yes, 3),
    "OUE, 3 cells": lambda baseline: unary_matrix(baseline.true_yes, baseline.false_yes, 3),
    "THE, 3 cells": lambda baseline: unary_matrix(baseline.true_yes, baseline.false_yes, 3),
    "subset, 3 cells": lambda baseline: subset_matrix(4, baseline.size, baseline.epsilon),
    "subset, most symbols": lambda baseline: subset_matrix(6, baseline.size, baseline.epsilon),
    "Hadamard, 3 cells": lambda baseline: hadamard_matrix(4, baseline.epsilon),
    "L-OSUE": lambda baseline: unary_matrix(baseline.true_yes, baseline.false_yes, 3),
    "L-SUE": lambda baseline: unary_matrix(baseline.true_yes, baseline.false_yes, 3),
}


@pytest.mark.parametrize("name", MATRICES)
def test_reports_have_the_claimed_distribution(name):
    """Whole reports of devices at each truth, against the row of the matrix."""
    baseline, n = BASELINES[name], 40_000
    matrix = MATRICES[name](baseline)
    rng = np.random.default_rng(31)
    for cell, row in enumerate(matrix):
        reports = baseline.answer(
            1, np.full(n, cell, dtype=np.int32), baseline.toss(baseline.enrol(n, rng=rng), rng=rng)
        )
        outputs = reports.bits[:, 0].astype(np.int64) if hasattr(reports, "bits") else reports
        seen = np.bincount(outputs, minlength=len(row))
        assert not seen[row == 0].any()
        assert chisquare(seen[row > 0], row[row > 0] / row.sum() * n).pvalue > 1e-6 / 40


@pytest.mark.parametrize("name", ["OLH, 3 cells", "OLH, many buckets"])
def test_hashed_supports_have_the_claimed_distribution(name):
    baseline, n = BASELINES[name], 400_000
    p, q = baseline.true_yes, baseline.false_yes
    rng = np.random.default_rng(32)
    for cell in range(baseline.cells + 1):
        reports = baseline.answer(
            1, np.full(n, cell, dtype=np.int32), baseline.toss(baseline.enrol(n, rng=rng), rng=rng)
        )
        counts = baseline.tally(reports)
        expected = np.where(np.arange(baseline.cells + 1) == cell, p, q)
        scores = (counts - n * expected) / np.sqrt(n * expected * (1 - expected))
        assert np.abs(scores).max() < 6


@pytest.mark.parametrize("queries", [1, 2, 3])
@pytest.mark.parametrize("name", ["k-ary, 3 cells", "OUE, 3 cells", "Hadamard, 3 cells", "subset, 3 cells"])
def test_claims_over_queries_are_the_worst_trajectories(name, queries):
    """All pairs of trajectories through three of the truths: exactly the claim."""
    baseline = BASELINES[name]
    single = MATRICES[name](baseline)[:3]
    trajectories = []
    for cells in itertools.product(range(3), repeat=queries):
        distribution = np.ones(1)
        for cell in cells:
            distribution = np.multiply.outer(distribution, single[cell]).ravel()
        trajectories.append(distribution)
    claim = baseline.claim(Report(1, queries=queries))
    assert (claim.kind, claim.delta_kind) == ("exact", "exact")
    away = [0, len(trajectories) - 1, len(trajectories) // 2] if queries == 3 else range(len(trajectories))
    some = np.array([trajectories[i] for i in away])
    assert claim.epsilon == pytest.approx(matrix_epsilon(some), rel=1e-9)
    for e in (0.0, 0.3, 1.0, 2.0):
        assert claim.delta(e) == pytest.approx(matrix_delta(some, epsilon=e), abs=1e-12)


@given(share=st.floats(0.01, 1.0), epsilon=st.floats(0.1, 3.0), queries=st.integers(2, 30))
@settings(max_examples=15, deadline=None)
def test_mirror_delta_agrees_with_the_accountant(share, epsilon, queries):
    telling = share / (1 + math.exp(-epsilon))
    exact, pair = MirrorDelta(telling, epsilon, queries)(1.0), MirrorDelta(telling, epsilon).pair
    assert exact <= composed_delta(*pair, queries=queries, epsilon=1.0) + 1e-12
    # The bound adds that of the transforms' rounding errors: 32·2⁻⁵³·(log₂ N + 5)·(T + 1)·N for N ≤ 2¹⁴ and T ≤ 30.
    assert exact >= composed_delta(*pair, queries=queries, epsilon=1.0 + 2e-4 * queries) - 4e-8


def test_delta_over_many_queries_is_a_bound():
    claim = mirror_claim(distinguishing=0.02, epsilon=0.1, queries=EXACT_QUERIES + 1, source="x")
    exact = MirrorDelta(0.02, 0.1, EXACT_QUERIES + 1)
    assert (claim.kind, claim.delta_kind) == ("exact", "bound")
    assert exact(2.0) <= claim.delta(2.0) <= exact(1.5)
    assert exact(math.inf) == 0.0


def memoised_matrix(baseline, trajectories):
    """Rows of the distribution of all bits of all queries, (trajectories, 2 ** (cells · queries)), by memoised bits."""
    cells, queries = baseline.cells, len(trajectories[0])
    p, q, f = baseline.true_kept, baseline.false_kept, baseline.flip
    hit = (p - q) / (1 - q)
    rows = []
    for trajectory in trajectories:
        distribution = np.zeros(2 ** (cells * queries))
        for noise in itertools.product((0, 1), repeat=cells):
            for hits in itertools.product((0, 1), repeat=cells):
                weight = math.prod(q if b else 1 - q for b in noise) * math.prod(hit if b else 1 - hit for b in hits)
                part = np.ones(1)
                for place in trajectory:
                    for cell in range(1, cells + 1):
                        bit = noise[cell - 1] | (hits[cell - 1] if place == cell else 0)
                        part = np.multiply.outer(part, [f, 1 - f] if bit else [1 - f, f]).ravel()
                distribution += weight * part
        rows.append(distribution)
    return np.array(rows)


@pytest.mark.parametrize("permanent", ["optimised", "symmetric"])
@pytest.mark.parametrize(("cells", "queries"), [(1, 1), (1, 3), (2, 1), (2, 2), (2, 3), (3, 2)])
def test_memoised_claims_equal_brute_force(permanent, cells, queries):
    """For a device that stays: exact. A moving device reveals more, and never more than is claimed."""
    baseline = LongitudinalUnary(cells=cells, epsilon_permanent=2.0, epsilon_first=1.0, permanent=permanent)
    matrix = memoised_matrix(baseline, [(place,) * queries for place in range(cells + 1)])
    staying = baseline.staying_claim(queries=queries)
    check_claim(staying, matrix)
    assert staying.epsilon <= 2.0
    assert ("does not change" in staying.basis) == (queries > 1)
    claim = baseline.claim(Report(1, queries=queries))
    if queries == 1:
        assert claim == staying
        assert cells == 1 or claim.epsilon == pytest.approx(1.0, rel=1e-9)
        return
    trajectories = list(itertools.product(range(cells + 1), repeat=queries))
    moving = memoised_matrix(baseline, trajectories[:: 3 if queries == 3 else 1])
    assert claim.kind == claim.delta_kind == "bound"  # too few cells to separate the worst trajectories
    assert staying.epsilon < matrix_epsilon(moving) <= claim.epsilon
    assert rounded_up(staying.epsilon, 6) in claim.basis
    for e in (0.0, 0.5, 1.0, 2.0):
        assert claim.delta(e) >= matrix_delta(moving, epsilon=e) - 1e-12


@pytest.mark.parametrize("permanent", ["optimised", "symmetric"])
def test_memoised_claim_of_a_moving_device_is_exact_with_enough_cells(permanent):
    """Two queries, four cells: the worst two trajectories visit two cells each."""
    baseline = LongitudinalUnary(cells=4, epsilon_permanent=3.0, epsilon_first=1.5, permanent=permanent)
    claim = baseline.claim(Report(1, queries=2))
    assert (claim.kind, claim.delta_kind) == ("exact", "bound")
    moving = memoised_matrix(baseline, [(1, 2), (3, 4), (3, 3), (1, 1), (2, 1), (0, 4)])
    assert matrix_epsilon(moving) == pytest.approx(claim.epsilon, rel=1e-9)
    for e in (0.0, 0.5, 2.0):
        assert matrix_delta(moving, epsilon=e) <= claim.delta(e)


@given(permanent=st.floats(0.2, 8.0), share=st.floats(0.05, 0.95), step=st.sampled_from(["optimised", "symmetric"]))
def test_chained_epsilon_is_exact_and_limited(permanent, share, step):
    baseline = LongitudinalUnary(cells=5, epsilon_permanent=permanent, epsilon_first=share * permanent, permanent=step)
    p, q, f = baseline.true_kept, baseline.false_kept, baseline.flip
    both = [x * (1 - f) + (1 - x) * f for x in (p, q)]
    chained = math.log(both[0] * (1 - both[1]) / (both[1] * (1 - both[0])))
    assert chained == pytest.approx(share * permanent, rel=1e-7)
    staying = [baseline.staying_claim(queries=t) for t in (1, 2, 10, 600)]
    assert staying[0].epsilon == pytest.approx(share * permanent, rel=1e-7)
    for less, more in itertools.pairwise(staying):
        assert less.epsilon <= more.epsilon * (1 + 1e-12)
        assert less.delta(0.1) <= more.delta(0.1) + 1e-12
    assert staying[-1].epsilon <= permanent * (1 + 1e-12)
    assert staying[-1].delta_kind == "bound"
    for claim, t in zip(staying[1:], (2, 10, 600), strict=True):
        moving = baseline.claim(Report(1, queries=t))
        assert claim.epsilon <= moving.epsilon
        assert claim.delta(0.1) <= moving.delta(0.1) + 1e-12


def test_moving_device_over_many_queries_has_a_weak_claim():
    baseline = LongitudinalUnary(cells=5, epsilon_permanent=2.0, epsilon_first=1.0)
    claim = baseline.claim(Report(1, queries=EXACT_QUERIES + 1))
    assert claim.epsilon == pytest.approx((EXACT_QUERIES + 1) * 2 * math.log((1 - baseline.flip) / baseline.flip))
    assert claim.delta(1.0) == 1.0


def noise_distribution(alpha, share, reach):
    """The distribution of NB(r) − NB(r) on −reach…reach, by summing products."""
    terms = np.empty(40 * reach)
    terms[0] = (1 - alpha) ** share
    for j in range(len(terms) - 1):
        terms[j + 1] = terms[j] * alpha * (share + j) / (j + 1)
    half = [math.fsum(terms[: len(terms) - k] * terms[k:]) for k in range(reach + 1)]
    return np.array(half[:0:-1] + half)


@pytest.mark.parametrize("devices", [1, 3, 50, 10**5])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_laplace_share_report_claim_equals_its_distribution(devices, epsilon):
    baseline = DistributedLaplace(cells=2, epsilon=epsilon, devices=devices)
    claim = baseline.claim(Report(1))
    distribution = noise_distribution(baseline.alpha, 1 / devices, 150)
    p, q = np.append(0.0, distribution), np.append(distribution, 0.0)
    ratios = np.log(p[1:-1]) - np.log(q[1:-1])
    assert claim.kind == "exact"
    assert claim.epsilon == pytest.approx(2 * ratios.max(), rel=1e-9)
    assert claim.epsilon >= epsilon * (1 - 1e-12)
    two_p, two_q = np.multiply.outer(p, q).ravel(), np.multiply.outer(q, p).ravel()
    for e in (0.0, 0.5, 2.0):
        exact = math.fsum(np.maximum(two_p - math.exp(e) * two_q, 0.0))
        assert claim.delta(e) >= exact - 1e-9
        assert claim.delta(e) <= exact + 1e-6 + 0.01 * exact
    assert baseline.claim(Shares(colluding=3, servers=3)).epsilon == claim.epsilon


@pytest.mark.parametrize("cells", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_released_counts_of_laplace_shares_are_exact(cells, epsilon):
    """Δ = 2 for a move between cells: ε at δ = 0, and the product of two shifted distributions for every other ε."""
    baseline = DistributedLaplace(cells=cells, epsilon=epsilon, devices=1000)
    claim = baseline.claim(ReleasedCounts(crowd=7, adjacency="move"))
    assert (claim.kind, claim.delta_kind) == ("exact", "exact")
    assert claim.epsilon == pytest.approx(epsilon, rel=1e-12)
    alpha, reach = baseline.alpha, 300
    distribution = (1 - alpha) / (1 + alpha) * alpha ** np.abs(np.arange(-reach, reach + 1))
    p, q = np.append(0.0, distribution), np.append(distribution, 0.0)
    if cells > 1:
        p, q = np.multiply.outer(p, q).ravel(), np.multiply.outer(q, p).ravel()
    for e in (0.0, 0.1, 0.5, 2.0):
        exact = math.fsum(np.maximum(p - math.exp(e) * q, 0.0))
        # The distribution is cut at 300: this much may be missing.
        assert claim.delta(e) == pytest.approx(exact, abs=1e-12 + 4 * alpha**reach)
    assert baseline.claim(Shares(colluding=2, servers=3)).epsilon == 0.0
    assert baseline.claim(Shares(colluding=3, servers=3)).epsilon > epsilon + 4


def test_missing_noise_weakens_the_claim_and_is_stated():
    baseline = DistributedLaplace(cells=4, epsilon=1.0, devices=1000)
    claims = {n: baseline.released_claim(counted=n) for n in (1, 500, 990, 1000, 1100)}
    epsilons = [claims[n].epsilon for n in claims]
    assert epsilons == sorted(epsilons, reverse=True)
    assert claims[990].epsilon == pytest.approx(1.0, abs=0.05)
    assert claims[990].epsilon > claims[1000].epsilon == pytest.approx(1.0) == claims[1100].epsilon
    assert [claims[n].kind for n in claims] == ["exact"] * 4 + ["bound"]
    assert [claims[n].delta_kind for n in claims] == ["bound"] * 3 + ["exact", "bound"]
    assert claims[990].delta(0.5) == pytest.approx(claims[1000].delta(0.5), abs=0.01)
    assert claims[990].delta(0.5) >= claims[1000].delta(0.5)
    several = baseline.released_claim(counted=990, queries=3)
    assert several.epsilon == pytest.approx(3 * claims[990].epsilon)
    whole = baseline.released_claim(counted=1000, queries=3)
    assert whole.delta(1.0) - 1e-9 <= several.delta(1.0) <= whole.delta(1.0) + 0.05


@pytest.mark.parametrize("name", BASELINES)
def test_every_view_is_answered(name):
    baseline = BASELINES[name]
    views = [
        Report(1),
        Report(2),
        LinkedReports(queries=2),
        ReleasedDifferences(crowd=4),
        ReleasedCounts(crowd=4),
        Shuffled(round=1, devices=50),
        Shares(colluding=1, servers=3),
        Shares(colluding=3, servers=3),
    ]
    for view in views:
        claim = baseline.claim(view)
        again = pickle.loads(pickle.dumps(claim))  # noqa: S301 - our own bytes
        np.testing.assert_equal(again.delta(0.5), claim.delta(0.5))
        assert claim.basis.endswith(".")
        if view == Report(2) or isinstance(view, ReleasedDifferences):
            assert claim.kind == "unknown"
    report, counts = baseline.claim(Report(1)), baseline.claim(ReleasedCounts(crowd=4))
    assert counts.epsilon <= report.epsilon * (1 + 1e-12)
    for e in (0.0, 1.0, 3.0):
        assert counts.delta(e) <= report.delta(e) + 1e-12


def test_delta_is_zero_exactly_from_epsilon_on():
    """δ at ε is 0, just below it is not."""
    for baseline in BASELINES.values():
        claim = baseline.claim(Report(1))
        assert claim.delta(claim.epsilon) == 0.0
        assert claim.delta(claim.epsilon * 0.99) > 0.0


def test_counted_and_queries_are_validated():
    baseline = DistributedLaplace(cells=2, epsilon=1.0, devices=10)
    with pytest.raises(ParameterError, match=r"^counted must be at least 1, got 0"):
        baseline.released_claim(counted=0)
    with pytest.raises(ParameterError, match=r"^queries must be at least 1, got 0"):
        baseline.released_claim(counted=1, queries=0)
    memoised = LongitudinalUnary(cells=2, epsilon_permanent=2.0, epsilon_first=1.0)
    with pytest.raises(ParameterError, match=r"^queries must be at least 1, got 0"):
        memoised.staying_claim(queries=0)
