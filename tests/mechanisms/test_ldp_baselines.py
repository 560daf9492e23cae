"""Parts of the baselines, and their claims: what they state, and shares of Laplace noise."""

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mechanism_cases import BASELINES, unary_matrix
from mechanism_statistics import z_bound
from reference_divergences import matrix_epsilon
from scipy.linalg import hadamard
from scipy.sparse import csr_array
from scipy.special import ellipkm1

from mechanisms.local import OptimisedUnary, ParameterError, SymmetricUnary, ThresholdHistogram
from mechanisms.local.distributed_laplace import DistributedLaplace, SparseVectors
from mechanisms.local.hadamard_response import walsh_hadamard
from mechanisms.local.local_hashing import HashedReports, same_bucket
from mechanisms.local.subset_selection import draw_subsets
from mechanisms.privacy import LinkedReports, ReleasedCounts, ReleasedDifferences, Report, Shares, Shuffled
from mechanisms.privacy.integer_noise import PartialNoise
from mechanisms.privacy.report_claims import EXACT_QUERIES, MirrorDelta, mirror_claim
from mechanisms.privacy.rounding import rounded_up


@pytest.mark.parametrize("buckets", [2, 3, 4, 7, 1000, 2**31 - 1])
def test_same_bucket_is_the_sum_of_squared_widths(buckets):
    edges = [-(-v * 2**32 // buckets) for v in range(min(buckets, 2000) + 1)]
    widths = [b - a for a, b in itertools.pairwise(edges)]
    assert set(widths) <= {2**32 // buckets, 2**32 // buckets + 1}
    if buckets <= 2000:
        assert same_bucket(buckets) == pytest.approx(sum(w * w for w in widths) / 2**64, rel=1e-15)
    assert 0 <= same_bucket(buckets) - 1 / buckets <= buckets / 2**64


def test_hashed_reports_validate_their_arrays():
    with pytest.raises(ParameterError, match=r"^seeds must be a uint64 array"):
        HashedReports(np.zeros((2, 2)), np.zeros(2, dtype=np.int32))
    with pytest.raises(ParameterError, match=r"^seeds must have shape \(3, 2\)"):
        HashedReports(np.zeros((2, 2), dtype=np.uint64), np.zeros(3, dtype=np.int32))


@pytest.mark.parametrize(("symbols", "size"), [(64, 20), (65, 1), (1001, 269), (1001, 1000)])
def test_wide_subsets_have_their_size_and_uniform_symbols(symbols, size):
    n = 4000
    rows = draw_subsets(n, symbols, size, rng=np.random.default_rng(42))
    bits = np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little")
    assert (bits.sum(axis=1) == size).all()
    assert not bits[:, symbols:].any()
    share = size / symbols
    scores = (bits[:, :symbols].mean(axis=0) - share) / math.sqrt(share * (1 - share) / n)
    # A symbol held by one device in a thousand is far from normal: Bernstein's bound replaces the normal one.
    limit = z_bound(symbols)
    assert np.abs(scores).max() < limit + limit**2 / (3 * math.sqrt(n * share * (1 - share)))


@given(order=st.sampled_from([1, 2, 4, 8, 16, 64]), seed=st.integers(0, 1000))
def test_walsh_hadamard_equals_the_matrix(order, seed):
    vector = np.random.default_rng(seed).integers(-50, 50, order)
    np.testing.assert_array_equal(walsh_hadamard(vector), hadamard(order) @ vector)


def test_sparse_vectors_keep_their_entries():
    vectors = SparseVectors.from_entries(
        np.array([0, 2, 2, 1, 1]), np.array([1, 0, 0, 3, 3]), np.array([5, 2, 4, 1, -1]), (3, 4)
    )
    dense = [[0, 5, 0, 0], [0, 0, 0, 0], [6, 0, 0, 0]]
    assert vectors.to_dense().tolist() == dense
    assert vectors.rows.nnz == 2
    assert len(vectors) == 3
    assert repr(vectors) == "<SparseVectors of 3 devices, 2 entries>"
    assert vectors.total(np.array([True, True, False])).tolist() == [0, 5, 0, 0]
    assert vectors.total(np.empty(0, dtype=bool)).tolist() == [6, 5, 0, 0]
    with pytest.raises(ParameterError, match=r"^rows must be a two-dimensional csr_array of int64"):
        SparseVectors(csr_array(np.zeros((2, 2))))


@pytest.mark.parametrize("share", [1e-9, 0.01, 0.5, 0.999])
@pytest.mark.parametrize("decay", [0.02, 3.0, 25.0])
def test_partial_noise_equals_its_sum(share, decay):
    """f(k) = Σ_j p(j)·p(j + k) of the negative binomial p."""
    alpha = math.exp(-decay)
    terms = np.empty(int(60 / decay) + 200)
    terms[0] = -math.expm1(-decay)
    terms[0] **= share
    for j in range(len(terms) - 1):
        terms[j + 1] = terms[j] * alpha * (share + j) / (j + 1)
    count = 10  # e^−25 to the tenth is still a double
    expected = [math.fsum(terms[: len(terms) - k] * terms[k:]) for k in range(count)]
    noise = PartialNoise(decay, share)
    masses, beyond = noise.masses(count)
    assert masses == pytest.approx(expected, rel=1e-9)
    assert masses[0] + 2 * (masses[1:].sum() + beyond) == pytest.approx(1.0, rel=1e-12)
    ratios = np.log(masses[:-1]) - np.log(masses[1:])
    assert (np.diff(ratios) <= 1e-9).all()
    assert noise.epsilon == pytest.approx(ratios[0])
    assert noise.epsilon > decay
    assert PartialNoise(decay, 1.0).epsilon == PartialNoise(decay, 2.0).epsilon == decay


@pytest.mark.parametrize("decay", [5e-6, 5e-3])
@pytest.mark.parametrize("share", [1e-9, 0.5, 0.999])
def test_partial_noise_with_slow_decay(decay, share):
    """Where e^−decay is nearly 1: half and whole shares in closed form, the rest by shape and sum."""
    masses, beyond = PartialNoise(decay, share).masses(300)
    assert math.fsum(masses[1:]) * 2 + masses[0] + 2 * beyond == pytest.approx(1.0, rel=1e-12)
    assert (np.diff(masses) < 0).all()
    assert (np.diff(np.log(masses), 2) > -1e-9).all()
    if share == 0.5:
        # (1 − α)·₂F₁(½, ½; 1; α²) = (1 − α)·2K(α²)/π, K the complete elliptic integral.
        expected = -math.expm1(-decay) * 2 / math.pi * ellipkm1(-math.expm1(-2 * decay))
        assert masses[0] == pytest.approx(expected, rel=1e-10)


def test_small_noise_shares_give_no_privacy():
    """A tiny ε whose noise is shared among many: one device's vector reveals its cell."""
    for epsilon in (1e-5, 0.01, 1.0, 50.0):
        baseline = DistributedLaplace(cells=2, epsilon=epsilon, devices=10**9)
        assert baseline.claim(Report(1)).delta(1.0) > 0.999


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


def test_delta_over_many_queries_is_a_bound():
    claim = mirror_claim(distinguishing=0.02, epsilon=0.1, queries=EXACT_QUERIES + 1, source="x")
    exact = MirrorDelta(0.02, 0.1, EXACT_QUERIES + 1)
    assert (claim.kind, claim.delta_kind) == ("exact", "bound")
    assert exact(2.0) <= claim.delta(2.0) <= exact(1.5)
    assert exact(math.inf) == 0.0


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


def test_counted_and_queries_are_validated():
    baseline = DistributedLaplace(cells=2, epsilon=1.0, devices=10)
    with pytest.raises(ParameterError, match=r"^counted must be at least 1, got 0"):
        baseline.released_claim(counted=0)
    with pytest.raises(ParameterError, match=r"^queries must be at least 1, got 0"):
        baseline.released_claim(counted=1, queries=0)


def test_intervals_of_laplace_shares_under_loss_contain_the_counts_of_all_cells():
    baseline = DistributedLaplace(cells=3, epsilon=1.0, devices=10_000)
    estimate = baseline.estimate(np.array([[10, 600, 4000]]), counted=[9_000], asked=[10_000])
    assert (estimate.lower < estimate.count).all()
    assert (estimate.count < estimate.upper).all()
