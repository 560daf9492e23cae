"""Threshold shares: any t of m give the vectors, and any t − 1 are uniform whatever the vectors are."""

import itertools

import numpy as np
import pytest
from test_deployments import SAMPLING

from mechanisms.privacy import LinkedReports, ParameterError, Shares
from simulator.aggregation.secret_sharing import FIELD, ThresholdSharing
from simulator.aggregation.servers import ThresholdShared

LARGEST = FIELD // 2


@pytest.mark.parametrize(("servers", "threshold"), [(2, 2), (3, 2), (5, 3), (5, 5)])
def test_any_threshold_of_shares_and_of_sums_of_shares_join(servers, threshold):
    rng = np.random.default_rng(servers)
    sharing = ThresholdSharing(servers, threshold)
    vectors = rng.integers(-LARGEST // 8, LARGEST // 8, (7, 2, 3))
    vectors[0, 0] = (-LARGEST, LARGEST, 0)
    shares = sharing.split(vectors, rng=rng)
    assert (shares.shape, shares.dtype) == ((servers, 7, 2, 3), np.uint64)
    assert shares.max() < FIELD
    sums = sharing.sum(shares[:, 1:])
    for size in (threshold, servers):
        for held in itertools.permutations(range(servers), size):
            numbers = np.array(held) + 1
            np.testing.assert_array_equal(sharing.join(shares[list(held)], numbers), vectors)
            np.testing.assert_array_equal(sharing.join(sums[list(held)], numbers), vectors[1:].sum(axis=0))


def test_255_servers_join():
    sharing = ThresholdSharing(255, 200)
    shares = sharing.split(np.array([[-3, 8]]), rng=np.random.default_rng(1))
    assert sharing.join(shares[55:], np.arange(56, 256)).tolist() == [[-3, 8]]


@pytest.mark.parametrize(("servers", "threshold"), [(3, 2), (4, 3), (3, 3)])
def test_fewer_shares_are_exactly_uniform(servers, threshold):
    """Every polynomial of a small field once: what t − 1 servers hold takes each value once, for each secret."""
    modulus = 5
    sharing = ThresholdSharing(servers, threshold, modulus)
    outcomes = np.array(list(itertools.product(range(modulus), repeat=threshold - 1)), dtype=np.uint64)
    for secret in range(-2, 3):
        shares = sharing.evaluate(np.full(len(outcomes), secret), outcomes.T)
        for held in itertools.combinations(range(servers), threshold):
            joined = sharing.join(shares[list(held)], np.array(held) + 1)
            assert (joined == secret).all()
            seen = shares[list(held[1:])].T
            assert len(np.unique(seen, axis=0)) == len(outcomes) == modulus ** (threshold - 1)
            too_few = sharing.join(shares[list(held[1:])], np.array(held[1:]) + 1)
            assert (np.bincount(too_few + 2, minlength=modulus) == len(outcomes) // modulus).all()


def test_products_are_those_of_whole_numbers():
    rng = np.random.default_rng(2)
    ends = [0, 1, 2**30, 2**31 - 1, 2**31, 2**32, FIELD - 2, FIELD - 1]
    one, other = np.array([*itertools.product(ends, ends), *rng.integers(0, FIELD, (500, 2))], dtype=np.uint64).T
    found = ThresholdSharing(3, 2)._times(one, other)
    assert [int(product) for product in found] == [int(a) * int(b) % FIELD for a, b in zip(one, other, strict=True)]


def test_sums_of_many_largest_shares_do_not_overflow():
    shares = np.full((3, 1000, 1), FIELD - 1, dtype=np.uint64)
    assert (ThresholdSharing(3, 2).sum(shares) == (FIELD - 1) * 1000 % FIELD).all()


def test_words_of_shares_have_uniform_top_bits():
    """Of 6,000 words of one server about half are above p/2, within 5 standard deviations."""
    shares = ThresholdSharing(3, 2).split(np.ones((1000, 6), dtype=np.int64), rng=np.random.default_rng(3))
    for share in shares:
        assert abs(np.count_nonzero(share > LARGEST) - 3000) < 5 * np.sqrt(6000 / 4)


def test_fewer_servers_than_the_threshold_learn_nothing_and_others_the_reports():
    deployment = ThresholdShared(servers=4, threshold=3)
    views = [deployment.view([f"server:{n}" for n in range(1, k + 1)], SAMPLING, queries=2) for k in (1, 2, 3)]
    assert views == [Shares(1, 4, queries=2), Shares(2, 4, queries=2), LinkedReports(queries=2)]
    assert SAMPLING.claim(views[1]).epsilon == 0.0
    every = deployment.view([f"server:{n}" for n in range(1, 5)], SAMPLING)
    assert SAMPLING.claim(every).epsilon == SAMPLING.claim(LinkedReports()).epsilon
    assert "any 3 of its 4 shares" in deployment.learns(["server:1", "server:3", "server:4"], SAMPLING)
    assert "2 of 4 shares are uniform" in deployment.learns(["server:1", "server:3"], SAMPLING)


def test_each_server_receives_a_vector():
    cost = ThresholdShared(paired=True).cost(SAMPLING)
    vector = 8 * np.prod(SAMPLING.tally_shape)
    assert cost.bytes_to == {f"server:{n}": vector + 16 for n in (1, 2, 3)}
    assert cost.bytes_up == sum(cost.bytes_to.values())


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        ({"threshold": 1}, "threshold"),
        ({"threshold": 4}, "threshold"),
        ({"servers": 256}, "servers"),
        ({"robust": True}, "robust"),
        ({"paired": True, "handles": "device"}, "handles"),
    ],
)
def test_invalid_parameters_are_refused(keys, name):
    with pytest.raises(ParameterError, match=name):
        ThresholdShared(**keys)
    with pytest.raises(ParameterError, match="modulus"):
        ThresholdSharing(3, 2, 2**40)
