"""Reports and estimates against OpenDP, pure-ldp and multi-freq-ldpy, with the same parameters.

Reports must have one distribution, by the exact test of the conformance kit; estimates of one tally must be equal.
"""

import importlib
import math
import random  # noqa: TID251 - a peer draws from it
import sys
import types
from pathlib import Path

import numba
import numpy as np
import pytest
from verification import compared, compared_by_chance

from mechanisms.central import LaplaceCounts
from mechanisms.central.grid_noise import draw_rounded_laplace
from mechanisms.local import RandomizedResponse
from mechanisms.local.k_randomized_response import KRandomizedResponse
from mechanisms.local.local_hashing import LocalHashing
from mechanisms.local.unary_encoding import OptimisedUnary, SymmetricUnary
from mechanisms.local.yes_no import Warner
from mechanisms.privacy import Report
from simulator.kits.mechanisms.bounds import row_keys, same_law

LEVEL = 1e-6
DEVICES = 5_000
CELLS, EPSILON = 3, 1.1


@numba.njit
def seed_compiled(seed):
    np.random.seed(seed)  # noqa: NPY002, TID251 - the peers' generator


@pytest.fixture(autouse=True)
def _peers_are_seeded():
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002, TID251
    seed_compiled(1)


@pytest.fixture
def opendp():
    prelude = pytest.importorskip("opendp.prelude", reason="OpenDP is not installed")
    prelude.enable_features("contrib")
    return prelude


@pytest.fixture
def oracles(monkeypatch):
    """pure-ldp's oracles by name; its package imports all of them, one of which needs what pip does not install."""
    peer = pytest.importorskip("pure_ldp", reason="pure-ldp is not installed")
    package = types.ModuleType("pure_ldp.frequency_oracles")
    package.__path__ = [str(Path(peer.__file__).parent / "frequency_oracles")]
    monkeypatch.setitem(sys.modules, package.__name__, package)
    return lambda name: importlib.import_module(f"{package.__name__}.{name}")


def our_reports(mechanism, cell, devices=DEVICES):
    """The encoded reports of devices in one cell, (n, outputs)."""
    rng = np.random.default_rng(cell + 100)
    truth = np.full(devices, cell, dtype=np.int32)
    coins = mechanism.toss(mechanism.enrol(devices, rng=rng), rng=rng)
    return mechanism.encode(mechanism.answer(1, truth, coins))


def expect_same_distribution(ours, theirs):
    theirs = np.asarray(theirs).astype(np.int64)
    assert ours.shape[1:] == theirs.shape[1:]
    chance = same_law(row_keys(ours), row_keys(theirs))
    assert chance > LEVEL
    compared_by_chance("libraries", chance, LEVEL)


def expect_same_estimate(mechanism, server, support):
    """The peer's estimate of this package's tally is equal, with `support` selecting the peer's counts."""
    rng = np.random.default_rng(7)
    counts = mechanism.sample_counts(np.array([400, 30, 200, 370]), rng=rng)
    server.aggregated_data, server.n = support(counts[0]).astype(float), 1000
    ours = mechanism.estimate(counts, counted=(1000,), asked=(1000,)).count
    theirs = server._update_estimates()[-CELLS:]
    np.testing.assert_allclose(theirs, ours, rtol=1e-9, atol=1e-6)
    compared("libraries", theirs, ours, allowed=1e-6)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("p", [0.6, 0.75, 0.95])
def test_opendp_randomized_response_of_a_bool(opendp, p):
    """Warner's form, and the two-coin form with π_1 = 2p − 1, π_2 = 1/2; and their exact ε for a single query."""
    peer = opendp.m.make_randomized_response_bool(p)
    for mechanism in (Warner(cells=1, truthful=p), RandomizedResponse(cells=1, first_coin=2 * p - 1, second_coin=0.5)):
        for cell in (0, 1):
            theirs = np.array([peer(bool(cell)) for _ in range(DEVICES)])
            expect_same_distribution(our_reports(mechanism, cell)[:, 0, 1], theirs)
        assert mechanism.claim(Report(1)).epsilon == pytest.approx(peer.map(1), rel=1e-9)
        compared("libraries", mechanism.claim(Report(1)).epsilon, peer.map(1), allowed=1e-9 * peer.map(1))


def test_opendp_randomized_response_of_categories(opendp):
    mechanism = KRandomizedResponse(cells=CELLS, epsilon=EPSILON)
    p = math.exp(EPSILON) / (math.exp(EPSILON) + CELLS)
    peer = opendp.m.make_randomized_response(list(range(CELLS + 1)), p)
    for cell in (0, 2):
        theirs = np.array([peer(cell) for _ in range(DEVICES)])
        expect_same_distribution(our_reports(mechanism, cell).argmax(axis=1), theirs)
    assert mechanism.claim(Report(1)).epsilon == pytest.approx(peer.map(1), rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.05, 0.7, 3.0])
def test_opendp_laplace_noise_on_integers(opendp, epsilon):
    """Noise on counts; and from OpenDP's noise of twice the scale, without zeros, Laplace noise rounded to a grid."""
    space = opendp.vector_domain(opendp.atom_domain(T=int)), opendp.l1_distance(T=int)
    rng = np.random.default_rng(11)
    peer = opendp.m.make_laplace(*space, scale=1 / epsilon)
    release = LaplaceCounts(epsilon=epsilon)
    ours = release.publish(np.zeros(DEVICES, dtype=np.int64), rng=rng).count
    assert same_law(ours.astype(np.int64), np.array(peer([0] * DEVICES))) > LEVEL
    assert release.claim(crowd=None).epsilon == pytest.approx(peer.map(1), rel=1e-9)
    theirs = np.array(opendp.m.make_laplace(*space, scale=2 / epsilon)([0] * (2 * DEVICES)))
    theirs = theirs[theirs != 0]
    theirs = np.sign(theirs) * (np.abs(theirs) >> 1)
    assert same_law(draw_rounded_laplace(1 / epsilon, len(theirs), rng=rng), theirs) > LEVEL


@pytest.mark.parametrize(("kind", "optimised"), [(OptimisedUnary, True), (SymmetricUnary, False)])
def test_pure_ldp_unary_encodings(oracles, kind, optimised):
    mechanism, peer = kind(cells=CELLS, epsilon=EPSILON), oracles("unary_encoding")
    client = peer.UEClient(EPSILON, CELLS, use_oue=optimised, index_mapper=lambda x: x - 1)
    for cell in (1, 3):
        theirs = np.stack([client.privatise(cell) for _ in range(DEVICES)])
        expect_same_distribution(our_reports(mechanism, cell)[:, :, 1], theirs)
    expect_same_estimate(mechanism, peer.UEServer(EPSILON, CELLS, use_oue=optimised), lambda counts: counts[:, 1])


def test_pure_ldp_local_hashing(oracles):
    """Symbol by symbol: the hash families differ, and so does the joint distribution of three symbols."""
    xxhash = pytest.importorskip("xxhash", reason="xxhash is not installed")
    if int(xxhash.VERSION.split(".")[0]) >= 4:
        pytest.skip("pure-ldp's local hashing needs xxhash below 4")
    mechanism, peer = LocalHashing(cells=CELLS, epsilon=EPSILON), oracles("local_hashing")
    client = peer.LHClient(EPSILON, CELLS + 1, use_olh=True, index_mapper=lambda x: x)
    assert client.g == round(math.exp(EPSILON)) + 1
    buckets = [client.privatise(2) for _ in range(DEVICES)]
    # It hashes the symbol's text, with 32 bits of the seed.
    theirs = np.array(
        [
            [bucket == xxhash.xxh32(str(i), seed=seed & 0xFFFFFFFF).intdigest() % client.g for i in range(CELLS + 1)]
            for bucket, seed in buckets
        ]
    )
    ours = our_reports(mechanism, 2)
    for symbol in range(-CELLS, 0):  # this package's estimate may have an entry for outside
        expect_same_distribution(ours[:, symbol], theirs[:, symbol])
