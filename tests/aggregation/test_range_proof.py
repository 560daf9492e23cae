"""Range proofs: which reports are rejected, where no proof applies, and the sizes of proofs and private writes."""

import re
from pathlib import Path

import numpy as np
import pytest

from mechanisms import local
from mechanisms.parameter import ParameterError
from simulator.aggregation.private_write import PrivateWrite, key_nbytes
from simulator.aggregation.secret_sharing import EncodingRule, Prio3Histogram
from simulator.aggregation.servers import PerRound, SecretShared, ShuffledReports, Trusted

CELLS = 4
SAMPLING = local.SamplingPrivacy(cells=CELLS, sampling=0.4)
RULES = [
    (SAMPLING, EncodingRule(1, 1)),
    (local.NoPrivacy(cells=CELLS), EncodingRule(1, 1)),
    (local.HadamardResponse(cells=CELLS, epsilon=1.0), EncodingRule(1, 1)),
    (local.RandomizedResponse(cells=CELLS, first_coin=0.8, second_coin=0.2), EncodingRule(CELLS, 1)),
    (local.OptimisedUnary(cells=CELLS, epsilon=1.0), EncodingRule(CELLS, 1)),
    (local.AnonymizedCancelling(cells=CELLS, shift=0.3), EncodingRule(CELLS, 1)),
    (local.SubsetSelection(cells=CELLS, epsilon=0.5), EncodingRule(1, 2)),
    (local.LocalHashing(cells=CELLS, epsilon=1.0), EncodingRule(1, None)),
]


@pytest.mark.parametrize(("mechanism", "rule"), RULES, ids=lambda value: type(value).__name__)
def test_encoding_rule_accepts_honest_and_refuses_forged_reports(mechanism, rule):
    assert EncodingRule.of(mechanism) == rule
    rng = np.random.default_rng(2)
    truth = rng.integers(0, CELLS + 1, size=500, dtype=np.int32)
    coins = mechanism.toss(mechanism.enrol(500, rng=rng), rng=rng)
    for round_ in range(1, mechanism.rounds + 1):
        assert rule.holds(mechanism.encode(mechanism.answer(round_, truth, coins))).all()
    shape = mechanism.tally_shape
    for entry in (2, -1, 100, 2**62):
        forged = np.zeros((1, *shape), dtype=np.int64)
        forged[0, ..., 0] = entry
        assert not rule.holds(forged)[0]
    assert rule.holds(np.ones((1, *shape), dtype=np.int64))[0] == (rule.ones is None)


def test_encoding_rule_of_very_long_vectors():
    assert EncodingRule.of(local.SamplingPrivacy(cells=10**6, sampling=0.4)) == EncodingRule(1, 1)
    assert EncodingRule.of(local.LocalHashing(cells=10**5, epsilon=1.0)) == EncodingRule(1, None)


def test_encoding_rule_detects_wrapping_sums():
    """Two entries of 2⁶³ sum to 0 in 64 bits; a third entry makes the row sum the required 1."""
    forged = np.array([[-(2**63), -(2**63), 1, 0, 0]])
    assert forged.sum() == 1
    assert not EncodingRule(1, 1).holds(forged)[0]


def test_noisy_vectors_have_no_range_proof():
    mechanism = local.DistributedLaplace(cells=CELLS, epsilon=1.0, devices=10**9)
    with pytest.raises(ParameterError, match="robust must be false where honest reports hold more than zeros"):
        SecretShared(robust=True).aggregator(mechanism, devices=1, rng=np.random.default_rng(1))


def forged_query(deployment, vectors, received):
    """Five honest devices in cell 1, and devices that forge reports."""
    rng = np.random.default_rng(1)
    aggregator = deployment.aggregator(SAMPLING, devices=5, rng=rng)
    honest = np.ones(5, dtype=bool)
    coins = SAMPLING.toss(SAMPLING.enrol(5, rng=rng), rng=rng)
    for round_ in (1, 2):
        aggregator.receive(round_, SAMPLING.answer(round_, np.ones(5, dtype=np.int32), coins), honest)
    before = aggregator.counts.copy()
    for round_ in (1, 2):
        aggregator.receive(round_, aggregator.sums.shares_of(vectors[round_ - 1]), received[round_ - 1], batch=1)
    asked = 5 + vectors.shape[1]
    for round_ in (1, 2):
        aggregator.close_round(round_, asked=asked, answered=asked, lost=int((~received[round_ - 1]).sum()))
    return aggregator, before


VECTORS = np.zeros((2, 4, CELLS + 1), dtype=np.int64)
VECTORS[:, 0, 0] = 1  # a valid report
VECTORS[0, 1, 0] = VECTORS[1, 1, 2] = 1  # valid but false: no proof rejects it
VECTORS[0, 2, 0], VECTORS[1, 2, 3] = 1, 1000  # a thousand vehicles
VECTORS[:, 3, 1] = -7  # seven vehicles less
VECTORS[0, 3, 4] = 1  # in two cells
HEARD = np.array([[True, True, True, True], [True, True, True, False]])


@pytest.mark.parametrize("deployment", [SecretShared(servers=3), PrivateWrite()], ids=lambda d: d.kind)
def test_forged_vectors_are_counted_without_range_proofs(deployment):
    aggregator, before = forged_query(deployment, VECTORS, HEARD)
    np.testing.assert_array_equal(aggregator.counts - before, (VECTORS * HEARD[:, :, np.newaxis]).sum(axis=1))
    assert [account.rejected for account in aggregator.accounts] == [0, 0]
    assert [account.counted for account in aggregator.accounts] == [9, 8]
    assert aggregator.estimate().count[2] > 2000


def test_range_proofs_reject_malformed_but_not_false_reports():
    aggregator, before = forged_query(SecretShared(servers=3, robust=True), VECTORS, HEARD)
    np.testing.assert_array_equal(aggregator.counts - before, [[3, 0, 0, 0, 0], [1, 0, 1, 0, 0]])
    assert [account.rejected for account in aggregator.accounts] == [1, 1]
    assert [account.counted for account in aggregator.accounts] == [8, 7]


def test_paired_range_proof_drops_rejected_device_from_all_rounds():
    aggregator, before = forged_query(SecretShared(paired=True, robust=True), VECTORS, HEARD)
    np.testing.assert_array_equal(aggregator.counts - before, [[2, 0, 0, 0, 0], [1, 0, 1, 0, 0]])
    accounts = aggregator.accounts
    assert [(a.counted, a.rejected, a.unpaired, a.lost) for a in accounts] == [(7, 1, 1, 0), (7, 1, 0, 1)]


@pytest.mark.parametrize("deployment", [Trusted(), PerRound(), ShuffledReports()], ids=lambda d: d.kind)
def test_plain_report_servers_refuse_vectors(deployment):
    with pytest.raises(ParameterError, match="vectors cannot be written: servers read plain reports"):
        forged_query(deployment, VECTORS, HEARD)


# length, chunk_length, shares; bytes of the leader's and a helper's share, of the public share and a verifier share:
# the test vectors Prio3Histogram_0, _1 and _2 of draft-irtf-cfrg-vdaf-20.
PUBLISHED = [(4, 2, 2, 272, 64, 64, 128), (11, 3, 3, 544, 64, 96, 160), (100, 10, 2, 2448, 64, 64, 384)]


@pytest.mark.parametrize(("length", "chunk", "servers", "leader", "helper", "public", "verifier"), PUBLISHED)
def test_prio3_sizes_equal_published_test_vectors(length, chunk, servers, leader, helper, public, verifier):
    sizes = Prio3Histogram(length, servers, chunk)
    assert sizes.leader_share_nbytes == leader
    assert sizes.helper_share_nbytes == helper
    assert sizes.public_share_nbytes == public
    assert sizes.verifier_share_nbytes == verifier
    assert Prio3Histogram(100, 2).chunk_length == 10
    assert Prio3Histogram(1, 2).chunk_length == 1


def test_robust_report_cost_equals_prio3_sizes():
    mechanism = local.SamplingPrivacy(cells=99, sampling=0.4)
    cost = SecretShared(robust=True).cost(mechanism)
    assert cost.bytes_up == 2448 + 64 + 64
    assert cost.stored_bytes == {"server:1": 64 + 64 + 8, "server:2": 2448 + 64 + 8}
    assert cost.between_servers == 2 * 384
    assert any("simulated" in note for note in cost.notes)
    assert SecretShared(robust=True, paired=True).cost(mechanism).bytes_up == cost.bytes_up + 16
    for servers in (1, 256):
        with pytest.raises(ParameterError, match=r"servers must be in 2\.\.255"):
            Prio3Histogram(4, servers)


def vector_and_seed(cells):
    return 8 * cells + 16


def test_sizes_in_the_page_on_servers():
    page = (Path(__file__).parents[2] / "docs" / "how" / "servers.md").read_text(encoding="utf-8")
    table = page[page.index("| cells | vector and seed | private write |") :].partition("\n\n")[0]
    rows = [
        [int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", line)] for line in table.splitlines()[2:]
    ]
    assert len(rows) == 5
    for cells, *printed in rows:
        checked = SecretShared(robust=True).cost(local.SamplingPrivacy(cells=cells - 1, sampling=0.4))
        assert printed == [vector_and_seed(cells), 2 * key_nbytes(cells), checked.bytes_up, checked.between_servers]
    shorter = next(cells for cells in range(1, 100) if 2 * key_nbytes(cells) < vector_and_seed(cells))
    assert f"shorter from {shorter} cells on" in page
    assert f"would take {2 * key_nbytes(4 * 10**9):,} bytes" in page
