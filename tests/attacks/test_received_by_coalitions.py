"""What coalitions read: connections that reveal pseudonyms, plain reports of several servers, and late reports."""

import numpy as np
from synthetic_campaigns import record_of

from mechanisms.local import KRandomizedResponse, SamplingPrivacy
from simulator.aggregation.servers import PerRound, SecretShared, ShuffledReports, Trusted
from simulator.aggregation.transcript import StoredEntries
from simulator.attacks.guesses import Prior
from simulator.attacks.observation import Observation, read_round
from simulator.attacks.reconstruction import ROUND_ATTACKS, LongitudinalAttack

PRIOR = np.array([0.15, 0.35, 0.5])
K_ARY = KRandomizedResponse(cells=2, epsilon=1.1)
LINK_ROUNDS = ROUND_ATTACKS["link_rounds"]


def test_network_and_server_link_pseudonyms_unless_channel_is_anonymous():
    mechanism, n, rng = K_ARY, 30, np.random.default_rng(4)
    for anonymous, kinds in ((False, {"device"}), (True, {"query"})):
        for deployment in (
            Trusted(handles="query", anonymous=anonymous),
            PerRound(handles="query", anonymous=anonymous),
            SecretShared(servers=2, paired=True, anonymous=anonymous),
        ):
            reports = [rng.integers(0, 3, n, dtype=np.int32)]
            recorded = record_of(deployment, 1, np.arange(n) + 7, reports, np.ones((1, n), dtype=bool))
            transcripts = deployment.transcripts(recorded, mechanism, rng=rng)
            servers = [party for party in transcripts if party.startswith("server")]
            seen = Observation.of(transcripts, [*servers, "network"], mechanism=mechanism)
            group = LINK_ROUNDS.guess(seen, Prior({1: PRIOR}), rng=rng)
            assert {one.handle_kind for one in group} == kinds
            if not anonymous:
                # Each device's guess is that of its own report: the connection links the right pseudonym to it.
                handles, cells = group[0].handles, group[0].cells
                alone = LINK_ROUNDS.guess(
                    Observation.of(
                        Trusted().transcripts(recorded, mechanism, rng=rng),
                        ["server:1"],
                        mechanism=mechanism,
                    ),
                    Prior({1: PRIOR}),
                    rng=rng,
                )[0]
                np.testing.assert_array_equal(np.sort(handles), alone.handles)
                np.testing.assert_array_equal(cells[np.argsort(handles)], alone.cells)


def test_reports_of_all_servers_are_read():
    """Two servers that hold plain reports of different devices, one device in both; and lists without handles."""
    mechanism = K_ARY
    columns = {"arrived_s": np.zeros(2)}
    reports = [np.array([0, 1], dtype=np.int32), np.array([1, 2], dtype=np.int32)]
    servers = {
        party: [StoredEntries(party, 1, 1, "device", np.array(devices), content, "reports", **columns)]
        for party, devices, content in zip(("server:1", "server:2"), ([3, 5], [5, 9]), reports, strict=True)
    }
    read = read_round(Observation.of(servers, servers, mechanism=mechanism), 1, 1)
    assert dict(zip(read.handles.tolist(), read.content.argmax(axis=1).tolist(), strict=True)) == {3: 0, 5: 1, 9: 2}
    lists = {
        party: [StoredEntries(party, 1, 1, "none", None, content, "reports", **columns)]
        for party, content in zip(servers, reports, strict=True)
    }
    read = read_round(Observation.of(lists, lists, mechanism=mechanism), 1, 1)
    assert sorted(read.content.argmax(axis=1).tolist()) == [0, 1, 1, 2]


def test_late_reports_are_read_but_not_counted():
    mechanism, n = SamplingPrivacy(cells=2, sampling=0.4, blank_zero=0.25), 40
    rng = np.random.default_rng(2)
    reports = [rng.integers(0, 3, n, dtype=np.int32) for _ in range(2)]
    in_time_mask = rng.random((2, n)) < 0.4
    late = ~in_time_mask & (rng.random((2, n)) < 0.5)
    for deployment, coalition in (
        (Trusted(), ["server:1"]),
        (ShuffledReports(), ["mixer", "server:1"]),
        (PerRound(), ["server:1", "server:2"]),
        (SecretShared(servers=2), ["server:1", "server:2"]),
    ):
        recorded = record_of(deployment, 1, np.arange(n), reports, in_time_mask, late=late)
        transcripts = deployment.transcripts(recorded, mechanism, rng=rng)
        entries = [entry for entry in transcripts[coalition[0]] if entry.round == 1]
        assert (np.isfinite(entries[0].arrived_s)).all()
        seen = Observation.of(transcripts, coalition, mechanism=mechanism)
        guessed = LongitudinalAttack([1], 1).guess(seen, Prior({1: PRIOR}), rng=rng)
        assert sum(len(one.cells) for one in guessed) == (in_time_mask | late).any(axis=0).sum()
    # The mixer's server never received what came late.
    behind = ShuffledReports().transcripts(
        record_of(ShuffledReports(), 1, np.arange(n), reports, in_time_mask, late=late), mechanism, rng=rng
    )
    assert [len(entry) for entry in behind["server:1"]] == in_time_mask.sum(axis=1).tolist()
    assert [len(entry) for entry in behind["mixer"]] == (in_time_mask | late).sum(axis=1).tolist()
