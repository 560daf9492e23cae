"""The components of the baselines, each against its simplest definition."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mechanism_statistics import z_bound
from scipy.linalg import hadamard
from scipy.sparse import csr_array
from scipy.special import ellipkm1
from scipy.stats import chisquare

from mechanisms.local import ParameterError
from mechanisms.local.distributed_laplace import DistributedLaplace, SparseVectors
from mechanisms.local.hadamard_response import hadamard_order, sample_sides, walsh_hadamard
from mechanisms.local.local_hashing import HashedReports, LocalHashing, add_support, draw_seeds, same_bucket
from mechanisms.local.subset_selection import draw_subsets
from mechanisms.privacy import Report
from mechanisms.privacy.integer_noise import PartialNoise


def test_multiply_add_shift_is_pairwise_independent():
    """The theorem, at 4-bit symbols and 8-bit words, over all 2¹⁶ functions: u of any two symbols is uniform."""
    a, b = np.meshgrid(np.arange(256), np.arange(256))
    made = [((a * x + b) % 256) >> 4 for x in range(16)]
    for x, y in itertools.combinations(range(16), 2):
        table = np.bincount((made[x] * 16 + made[y]).ravel(), minlength=256)
        assert (table == 256).all()


@pytest.mark.parametrize("buckets", [2, 3, 4, 7, 1000, 2**31 - 1])
def test_same_bucket_is_the_sum_of_squared_widths(buckets):
    edges = [-(-v * 2**32 // buckets) for v in range(min(buckets, 2000) + 1)]
    widths = [b - a for a, b in itertools.pairwise(edges)]
    assert set(widths) <= {2**32 // buckets, 2**32 // buckets + 1}
    if buckets <= 2000:
        assert same_bucket(buckets) == pytest.approx(sum(w * w for w in widths) / 2**64, rel=1e-15)
    assert 0 <= same_bucket(buckets) - 1 / buckets <= buckets / 2**64


@given(seed=st.integers(0, 2**32), buckets=st.sampled_from([2, 3, 5, 4097, 2**31 - 1]), symbols=st.integers(1, 70))
def test_support_equals_the_hash_function(seed, buckets, symbols):
    """The compiled comparison against the definition in integer arithmetic."""
    rng = np.random.default_rng(seed)
    seeds, n = draw_seeds(8, rng=rng), 8
    truth = rng.integers(0, symbols, n)
    hashed = [
        [(((int(a) * x + int(b)) % 2**64 >> 32) * buckets) >> 32 for x in range(symbols)] for a, b in seeds.tolist()
    ]
    values = np.array([hashed[i][truth[i]] if i % 2 else i % buckets for i in range(n)], dtype=np.int32)
    counts = np.zeros(symbols, dtype=np.int64)
    add_support(seeds, values, np.empty(0, dtype=bool), np.uint64(buckets), counts)
    assert counts.tolist() == [sum(hashed[i][x] == values[i] for i in range(n)) for x in range(symbols)]
    baseline = LocalHashing(cells=symbols, epsilon=1.0, buckets=buckets)
    vectors = baseline.encode(HashedReports(seeds, values))
    assert vectors[:, :symbols].sum(axis=0).tolist() == counts.tolist()


def test_hashed_reports_validate_their_arrays():
    with pytest.raises(ParameterError, match=r"^seeds must be a uint64 array"):
        HashedReports(np.zeros((2, 2)), np.zeros(2, dtype=np.int32))
    with pytest.raises(ParameterError, match=r"^seeds must have shape \(3, 2\)"):
        HashedReports(np.zeros((2, 2), dtype=np.uint64), np.zeros(3, dtype=np.int32))


@pytest.mark.parametrize(("symbols", "size"), [(5, 1), (5, 2), (5, 4), (6, 3)])
def test_subsets_are_uniform(symbols, size):
    rows = draw_subsets(30_000, symbols, size, rng=np.random.default_rng(41))
    subsets = [sum(1 << x for x in chosen) for chosen in itertools.combinations(range(symbols), size)]
    seen = np.bincount(rows[:, 0].astype(np.int64), minlength=2**symbols)
    assert seen[subsets].sum() == 30_000
    assert chisquare(seen[subsets]).pvalue > 1e-6


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


def test_hadamard_order_is_the_next_power_of_two():
    assert [hadamard_order(k) for k in (1, 2, 3, 4, 7, 8, 1001)] == [2, 4, 4, 8, 8, 16, 1024]


def test_hadamard_sides_are_uniform_and_exact():
    """Each row and side alone has only its outputs, uniformly, and every device has an output."""
    rng, n, order = np.random.default_rng(43), 20_000, 8
    for row in range(1, order):
        for side in (0, 1):
            sides = np.zeros((order, 2), dtype=np.int64)
            sides[row, side] = n
            counts = sample_sides(sides, rng=rng)
            on = hadamard(order)[row] == (1 if side == 0 else -1)
            assert counts[on].sum() == n
            assert chisquare(counts[on]).pvalue > 1e-8


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
