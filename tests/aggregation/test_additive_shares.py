"""Additive shares sum to the report, fewer than all are independent of it, and sampled sums match computed ones."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mechanisms.local import ParameterError, SamplingPrivacy
from simulator.aggregation.secret_sharing import AdditiveSharing, ShareSums

FAMILY = 1e-6
WORD = st.integers(-(2**63), 2**63 - 1)


@given(
    vectors=st.lists(st.lists(WORD, min_size=3, max_size=3), min_size=0, max_size=4),
    servers=st.integers(2, 6),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=30)
def test_shares_sum_to_the_shared_words(vectors, servers, seed):
    sharing = AdditiveSharing(servers)
    plain = np.array(vectors, dtype=np.int64).reshape(-1, 3)
    shares = sharing.split(plain, rng=np.random.default_rng(seed))
    assert shares.shape == (servers, *plain.shape)
    assert shares.dtype == np.uint64
    np.testing.assert_array_equal(sharing.join(shares), plain)
    sums = sharing.split_sum(plain.sum(axis=0), rng=np.random.default_rng(seed))
    np.testing.assert_array_equal(sharing.join(sums), plain.sum(axis=0))


@pytest.mark.parametrize("modulus", [2, 3, 4, 5])
@pytest.mark.parametrize("servers", [2, 3])
def test_all_but_one_servers_hold_uniform_shares(modulus, servers):
    """Enumerates every outcome of the expanded seeds once: the distribution of m − 1 shares is exactly uniform."""
    sharing = AdditiveSharing(servers, modulus)
    words = 2 if modulus**servers < 40 else 1
    free = (servers - 1) * words
    outcomes = np.array(list(itertools.product(range(modulus), repeat=free)), dtype=np.uint64)
    masks = np.moveaxis(outcomes.reshape(-1, servers - 1, words), 1, 0)
    for report in itertools.product(range(modulus), repeat=words):
        vectors = np.tile(np.array(report, dtype=np.int64), (len(outcomes), 1))
        last = sharing.complete(vectors, masks)
        shares = np.concatenate([masks, last[np.newaxis]])
        assert shares.max() < modulus
        np.testing.assert_array_equal(sharing.join(shares), vectors)
        for held in itertools.combinations(range(servers), servers - 1):
            seen = np.moveaxis(shares[list(held)], 0, 1).reshape(len(outcomes), free)
            # There are as many distinct views as outcomes, each from one outcome: uniform, and the same for any report.
            assert len(np.unique(seen, axis=0)) == modulus**free


def test_seed_is_the_key_of_its_random_stream():
    sharing = AdditiveSharing(3)
    seeds = sharing.draw_seeds(2, rng=np.random.default_rng(1))
    assert seeds.shape == (2, 2, 2)
    expanded = sharing.expand(seeds, (5,))
    assert expanded.shape == (2, 2, 5)
    again = np.random.Philox(key=seeds[1, 0]).random_raw(5)
    np.testing.assert_array_equal(expanded[0, 1], again)
    assert len(np.unique(expanded)) == expanded.size


def sums_of(reports_by_run, *, exact, servers, seed):
    """Every server's sums of one round, (runs, servers, words), of one query per run."""
    mechanism = SamplingPrivacy(cells=1, sampling=0.4)
    rng = np.random.default_rng(seed)
    found = []
    for reports in reports_by_run:
        sums = ShareSums(mechanism, AdditiveSharing(servers, 3), exact=exact, rng=rng)
        sums.add_reports(2, reports, None)
        found.append(sums.sums_by_server()[:, 1].copy())
        assert not sums.sums_by_server()[:, 0].any()  # servers hold no sum of a round without reports
    return np.array(found).reshape(len(found), -1)


def test_sampled_and_computed_share_sums_have_one_distribution():
    """Compares per-device shares with the joint distribution modulo 3: all 3⁴ outcomes of the right sum, uniformly."""
    runs, servers = 1500, 3
    reports = [np.array([0, 1, 1], dtype=np.int32)] * runs
    tables = []
    for exact in (True, False):
        found = sums_of(reports, exact=exact, servers=servers, seed=int(exact))
        totals = found.reshape(runs, servers, 2).sum(axis=1) % 3
        np.testing.assert_array_equal(totals, np.tile([1, 2], (runs, 1)))
        outcome = found[:, :4] @ np.array([1, 3, 9, 27], dtype=np.uint64)
        tables.append(np.bincount(outcome.astype(np.int64), minlength=81))
        assert stats.chisquare(tables[-1]).pvalue > FAMILY / 3
    assert stats.chi2_contingency(np.stack(tables)).pvalue > FAMILY / 3


@pytest.mark.parametrize("exact", [True, False])
def test_reports_counts_and_vectors_add_to_one_share_sum(exact):
    mechanism = SamplingPrivacy(cells=4, sampling=0.4)
    rng = np.random.default_rng(3)
    sums = ShareSums(mechanism, AdditiveSharing(4), exact=exact, rng=rng)
    first = rng.integers(0, 5, size=50, dtype=np.int32)
    where = rng.random(50) < 0.5
    sums.add_reports(1, first, where)
    sums.add_reports(1, first[:0], None)
    group = np.array([10**12, 3, 0, 7, 1])
    sums.add_counts(1, group)
    forged = np.array([[0, 0, -5, 2**62, 0]])
    sums.add_reports(1, sums.shares_of(forged), None)
    expected = mechanism.tally(first, where) + group + forged[0]
    np.testing.assert_array_equal(sums.total[0], expected)
    held = sums.sums_by_server().copy()
    np.testing.assert_array_equal(sums.sums_by_server(), held)  # an empty batch draws nothing
    assert not sums.total[1].any()
    sums.add_counts(1, group)
    np.testing.assert_array_equal(sums.total[0], expected + group)


def test_invalid_sharing_parameters_are_refused():
    with pytest.raises(ParameterError, match="servers must be at least 2, got 1"):
        AdditiveSharing(1)
    with pytest.raises(ParameterError, match="modulus must be 2⁶⁴, or in"):
        AdditiveSharing(2, 1)
    with pytest.raises(ParameterError, match="modulus"):
        AdditiveSharing(2, 2**64 - 1)
