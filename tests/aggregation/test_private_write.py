"""Private writes: the draft's vectors, every point, what one key shows, equal sums, sizes, liars, and refusals."""

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import scenarios
from mechanisms.local import HadamardResponse, KRandomizedResponse, LocalHashing, ParameterError, SamplingPrivacy
from scenarios import ScenarioError
from simulator import run
from simulator.aggregation import private_write
from simulator.aggregation.private_write import Expansion, PointSharing, PrivateWrite, expand, levels_of, write
from simulator.aggregation.servers import Trusted

pytest.importorskip("Cryptodome", reason="private writes need pycryptodomex")
FIELD64 = 2**64 - 2**32 + 1
SAMPLING = SamplingPrivacy(cells=5, sampling=0.4)

# The path, the first value of each node on it, and the correction words of the control bits, the seeds and the values,
# of all levels but the last, whose nodes the draft makes by XofTurboShake128. They are the public shares of the test
# vectors IdpfBBCGGI21_0 and Poplar1_4 of draft-irtf-cfrg-vdaf-20 (github.com/cfrg/draft-irtf-cfrg-vdaf, test_vec).
DRAFT = {
    "IdpfBBCGGI21_0": (
        "0000000000",
        range(9),
        "a46f02",
        (
            "b06f4c717daf32b81803262fed7e32eb768e1eefc87ef8a018301cf942e303763cf5aaf2d10617128013c8c4bd061f08b61659a4cc5d"
            "3fc4f5d4880e67130b20708c0a7f6fc726f6c0bfd61fa19f0fcebc85023a15fd4b043a8d901c3d7d725db4b1e60811b368fcefe98648"
            "c3fa03723ce7a0cda940a825b8b07b70fe0936e05af41f62c4bd28032cb000a66396e65e"
        ),
        (
            "a9aa9e0a5d0ef6b26b63753486d0f3ae6fd4af1273a91a1d7d7b6b41c644e43e35afb09323af8f283096a5889d8ce77eaa976773cb64"
            "b7a31a2ca373f1d7a26a792c1acd2276a0f85891d83efdde34d6dff80cad2e80fa5958058cf67a225770c640eb211ff7514ac3153c2f"
            "7ed36ff770f2521228ecfb2f4a233558c41689abc5eee8cadf2139d7d3642e7369a349d3"
        ),
    ),
    "Poplar1_4": (
        "11001000001",
        [1] * 10,
        "6b6c34",
        (
            "8e0daf3de07179b572a661918e574da4a8725ac20a9bbb41a80cac2833421dce8cefc31b5ef82eb6541675e5735ae8037a8d2a1a294a"
            "a98a362fa1398aa22e5d3a5d618ba75e938f5828051066a7ed07de3cc56d27cf7edfad377ad4e54ad404e60d4e154dd49f35bc05afbc"
            "a6ffeb6ee2b84ac8f3189f74cbfe2c0d339e13f8824883b0c1dd79bb286228acd23e72d632a4f1664d0803d06b91845064b650e2"
        ),
        (
            "512a4d0e1ee930e9e9921239025be96ebca993797304e636a21596d48ef770a505f2a460539c85b7f79c232e4d03fa5ef4dbc2d81d90"
            "ddec5f27557b68ca5a2a2aca2b7cbfb511133ed7fa5d7b9f8b391cf371adcf9c65ba8a4cc07cf178f56263a819827a49bce08775357c"
            "96b5f4ffc06054163004ace97dc4b5c90470d8ebf4e54dd3eb7b2182d5c19810550f2b6182231b89b3f0f3559e3ba769e001131f"
        ),
    ),
}


def words(data):
    return np.frombuffer(data, dtype=np.uint64).reshape(-1, 1, 2)


def bits_of(keys):
    return np.packbits(keys.bits[:, 0].astype(np.uint8).ravel(), bitorder="little")


@pytest.mark.parametrize("name", DRAFT)
def test_keys_equal_the_test_vectors_of_the_draft(name):
    path, betas, bits, seeds, values = DRAFT[name]
    expansion = Expansion(words(bytes(range(16)))[0], b"some application")
    nothing = np.zeros((1, 2), dtype=np.uint64)
    for level in range(1, len(path)):
        leaf = int(path[:level], 2)
        keys = write(np.array([leaf]), nothing, words(bytes(range(32))), expansion, level)
        shares = [expand(replace(keys, values=nothing), server, 2 ** (level + 1)) for server in (0, 1)]
        first, second = shares[0][0, 2 * leaf :][:2], -shares[1][0, 2 * leaf :][:2]
        # The draft corrects values modulo a prime; the sign is the same.
        sign = 1 if (keys.values[0] == second - first).all() else -1
        of_draft = np.frombuffer(bytes.fromhex(values), dtype=np.uint64)[2 * level - 2 :].tolist()
        for place in range(2 if name.startswith("Idpf") else 1):  # the second values in Poplar1 are random
            expected = sign * (betas[level - 1] - int(first[place]) + int(second[place])) % FIELD64
            assert of_draft[place] == expected
    assert keys.seeds.tobytes().hex() == seeds
    known = np.unpackbits(np.frombuffer(bytes.fromhex(bits), dtype=np.uint8), bitorder="little")[: 2 * level]
    np.testing.assert_array_equal(np.unpackbits(bits_of(keys), bitorder="little")[: 2 * level], known)


@pytest.mark.parametrize("entries", [1, 2, 3, 5, 8, 9, 17])
def test_shares_add_up_to_the_written_cell_and_to_nothing_elsewhere(entries):
    vectors = np.concatenate([np.eye(entries, dtype=np.int64) * weight for weight in (1, 0, -3, 2**40)])
    shares = PointSharing().split(vectors, rng=np.random.default_rng(entries))
    assert shares.shape == (2, *vectors.shape)
    np.testing.assert_array_equal(PointSharing().join(shares), vectors)


def frequencies(seen):
    """Share of ones among n of each bit of (n, k) words."""
    return np.unpackbits(np.ascontiguousarray(seen).view(np.uint8), axis=1).mean(axis=0)


@pytest.mark.parametrize("server", [0, 1])
def test_one_key_shows_nothing_of_the_cell(server):
    """Under one seed of its own, all correction words are balanced bits, and its shares have one law for two cells."""
    n, rng, found = 3000, np.random.default_rng(server), []
    bound = 5.5 * 0.5 / np.sqrt(n)
    for cell in (0, 5):
        roots = rng.integers(2**64 - 1, size=(2, n, 2), dtype=np.uint64, endpoint=True)
        roots[server] = 3
        values = np.tile(np.eye(2, dtype=np.uint64)[cell % 2], (n, 1))
        keys = write(np.full(n, cell // 2), values, roots, Expansion(np.full((n, 2), 7, dtype=np.uint64)), 2)
        words_of_key = frequencies(np.concatenate([*keys.seeds, *keys.bits, keys.values], axis=1))
        constant = abs(words_of_key - 0.5) > bound
        assert not words_of_key[constant].any()
        assert constant.sum() == 2 * 1 + 4 * 63  # a bit of each seed is a control bit; and those are one of 64
        found.append(np.concatenate([words_of_key, frequencies(expand(keys, server, 6))]))
        shares = PointSharing().split(np.tile(np.eye(6, dtype=np.int64)[cell], (n, 1)), rng=rng)
        assert (abs(frequencies(shares[server]) - 0.5) < bound).all()
    assert (abs(found[0] - found[1]) < np.sqrt(2) * bound).all()


def test_every_write_has_seeds_and_a_nonce_of_its_own(monkeypatch):
    """A seed that both servers had, or a write shared with another, would let a server expand the other's key."""
    given = []
    monkeypatch.setattr(private_write, "write", lambda *each: given.append(each) or write(*each))
    PointSharing().split(np.ones((50, 7), dtype=np.int64), rng=np.random.default_rng(4))
    ((_, _, roots, expansion, _),) = given
    drawn = np.concatenate([*roots, expansion.nonces])
    assert len(np.unique(drawn, axis=0)) == 3 * 50 * 4


@pytest.mark.parametrize("limit", [8192, 0], ids=["expanded", "drawn"])
@pytest.mark.parametrize(
    "kind", [SamplingPrivacy, KRandomizedResponse, HadamardResponse], ids=lambda kind: kind.__name__
)
def test_sums_of_both_servers_equal_plain_counts(kind, limit):
    mechanism = kind(cells=5, **{"sampling": 0.4} if kind is SamplingPrivacy else {"epsilon": 1.0})
    rng = np.random.default_rng(2)
    truth = rng.integers(6, size=200).astype(np.int32)
    coins = mechanism.toss(mechanism.enrol(200, rng=rng), rng=rng)
    plain, written = (
        deployment.aggregator(mechanism, devices=200, rng=rng)
        for deployment in (Trusted(), PrivateWrite(exact_writes=limit))
    )
    assert written.sums.exact == bool(limit)
    for round_ in range(1, mechanism.rounds + 1):
        for aggregator in (plain, written):
            aggregator.receive(round_, mechanism.answer(round_, truth, coins), rng.random(200) < 2.0)
    np.testing.assert_array_equal(plain.counts, written.counts)
    assert (written.sums.sums_by_server() > 2**32).mean() > 0.9  # no server holds counts


def test_run_equals_one_of_plain_reports():
    one_cell = [
        {"name": "sampling", "kind": "sampling_privacy", "sampling": 0.45},
        {"name": "response", "kind": "k_randomized_response", "epsilon": 2.0},
    ]
    tiny = scenarios.load("tiny", overrides={"mechanisms": one_cell})
    plain = run(tiny)
    for engine, given in (("batches", {"paired": True}), ("messages", {"servers": 2})):
        written = run(tiny.with_({"aggregation": {"kind": "private_write", **given}, "sensing.engine": engine}))
        pd.testing.assert_frame_equal(written.estimates, plain.estimates)
        cost = written.record.deployments[0].mechanisms[0].cost
        assert (written.rounds["bytes_up"] == written.rounds["answered"] * cost.bytes_up).all()
        assert written.facts["packages"]["pycryptodomex"]


@pytest.mark.parametrize(("entries", "nbytes"), [(2, 65), (3, 65), (36, 130), (1024, 195), (1025, 211)])
def test_a_server_receives_a_key(entries, nbytes):
    mechanism = SamplingPrivacy(cells=entries - 1, sampling=0.4)
    nothing, levels = np.zeros((1, 2), dtype=np.uint64), levels_of(entries)
    keys = write(np.array([0]), nothing, words(bytes(32)), Expansion(nothing), levels)
    sent = (keys.roots[0], keys.expansion.nonces, keys.seeds, bits_of(keys), keys.values)
    assert sum(part.nbytes for part in sent) == nbytes
    cost = PrivateWrite(paired=True).cost(mechanism)
    assert cost.bytes_to == {"server:1": nbytes + 16, "server:2": nbytes + 16}
    assert (cost.bytes_up, cost.between_servers) == (2 * nbytes + 32, 32)
    assert any("No proof" in note for note in cost.notes)


def test_a_device_writes_two_cells_by_one_pair_of_keys():
    """No server notices: each holds one key of the usual size, and two cells are wrong by 7 and −5 vehicles."""
    nonces = np.array([[1, 2]], dtype=np.uint64)
    values = np.array([[7, -5]]).view(np.uint64)
    keys = write(np.array([2]), values, words(bytes(range(32))), Expansion(nonces), levels_of(6))
    shares = np.stack([expand(keys, server, 6) for server in (0, 1)])
    np.testing.assert_array_equal(PointSharing().join(shares), [[0, 0, 0, 0, 7, -5]])


def test_invalid_parameters_are_refused_and_many_reports_drawn():
    for keys, match in (
        ({"servers": 3}, "servers must be 2 for private writes: a point function has two keys, got 3"),
        ({"robust": True}, "robust must be false for private writes"),
        ({"paired": True, "handles": "device"}, "handles must be 'query'"),
    ):
        with pytest.raises(ParameterError, match=match):
            PrivateWrite(**keys)
    with pytest.raises(ParameterError, match="not one cell or symbol, got 'LocalHashing'"):
        PrivateWrite().aggregator(LocalHashing(cells=5, epsilon=1.0), devices=1, rng=np.random.default_rng(1))
    assert PrivateWrite().makes_shares(SAMPLING, 4096)
    assert not PrivateWrite().makes_shares(SAMPLING, 4097)


@pytest.mark.parametrize(
    ("keys", "path", "rule"),
    [
        ({"servers": 3}, "servers", "must be 2"),
        ({"robust": True}, "robust", "unknown key"),
        ({"paired": True, "handles": "device"}, "handles", 'must be "query" where shares are paired'),
        (
            {},
            "kind",
            "must be another kind for a mechanism whose report is not one cell or symbol; mechanisms.randomized",
        ),
    ],
)
def test_each_fault_of_a_scenario_has_one_message(keys, path, rule):
    with pytest.raises(ScenarioError) as error:
        run(scenarios.load("tiny", overrides={"aggregation": {"kind": "private_write", **keys}}))
    (fault,) = error.value.faults
    assert fault.path == f"aggregation.{path}"
    assert fault.rule.startswith(rule)


def test_missing_package_is_stated(monkeypatch):
    tiny = scenarios.load("tiny", overrides={"aggregation": {"kind": "private_write"}})
    monkeypatch.setitem(sys.modules, "Cryptodome", None)
    with pytest.raises(ScenarioError, match=r"aggregation\.kind: needs Cryptodome: pip install 'crowdveil\[crypto\]'"):
        run(tiny)
