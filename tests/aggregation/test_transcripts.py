"""Transcripts: what each party stored, and that it stored nothing else."""

import itertools

import numpy as np
import pytest
from scipy import stats

from mechanisms.local import RandomizedResponse, SamplingPrivacy
from simulator.aggregation.servers import PerRound, SecretShared, ShuffledReports, Trusted
from simulator.aggregation.transcript import RecordedMessages, StoredEntries

FAMILY = 1e-6
CELLS = 6
SAMPLING = SamplingPrivacy(cells=CELLS, sampling=0.4)
UNARY = RandomizedResponse(cells=CELLS, first_coin=0.8, second_coin=0.2)


def record(mechanism, *, query=1, n=40, loss=0.25, seed=1):
    """A query to devices whose numbers are far from 0…n − 1 and unordered."""
    rng = np.random.default_rng([seed, query])
    devices = rng.permutation(10 * n)[:n] + 1000
    coins = mechanism.toss(mechanism.enrol(n, rng=rng), rng=rng)
    truth = rng.integers(0, CELLS + 1, size=n, dtype=np.int32)
    reports = [mechanism.answer(round_, truth, coins) for round_ in range(1, mechanism.rounds + 1)]
    return arriving(query, devices, reports, rng.random((mechanism.rounds, n)) >= loss)


def arriving(query, devices, reports, received, seed=3):
    """Recorded reports that either reach every party or reach none."""
    parties = ("server:1", "server:2", "server:3", "mixer", "network")
    arrived_s = dict.fromkeys(parties, np.where(received, 1.0, np.inf))
    return RecordedMessages.draw(query, devices, reports, received, arrived_s, rng=np.random.default_rng([seed, query]))


def transcripts(deployment, records, *, mechanism=SAMPLING, seed=9):
    """By party, the entries of all queries."""
    rng = np.random.default_rng(seed)
    found = [deployment.transcripts(recorded, mechanism, rng=rng) for recorded in records]
    return {party: [entries for one in found for entries in one[party]] for party in found[0]}


def by_device(filed, recorded):
    """Stored entries in the order of the recorded devices whose reports were received."""
    places = {handle: place for place, handle in enumerate(filed.handles.tolist())}
    received = recorded.in_time[filed.round - 1]
    return filed.content[[places[device] for device in recorded.devices[received].tolist()]], received


@pytest.mark.parametrize("mechanism", [SAMPLING, UNARY], ids=lambda m: type(m).__name__)
def test_trusted_and_per_round_store_plain_reports_by_device(mechanism):
    records = [record(mechanism, query=query) for query in (1, 2)]
    for deployment in (Trusted(), PerRound()):
        found = transcripts(deployment, records, mechanism=mechanism)
        assert tuple(found) == deployment.parties(mechanism)
        for party, transcript in found.items():
            assert {entries.party for entries in transcript} == {party}
        stored = {party: [(filed.query, filed.round) for filed in transcript] for party, transcript in found.items()}
        every = list(itertools.product((1, 2), range(1, mechanism.rounds + 1)))
        assert stored["network"] == every
        if isinstance(deployment, Trusted):
            assert stored["server:1"] == every
        else:
            for round_ in range(1, mechanism.rounds + 1):
                assert stored[f"server:{round_}"] == [(1, round_), (2, round_)]
        for transcript in found.values():
            for filed in transcript:
                recorded = records[filed.query - 1]
                received = recorded.in_time[filed.round - 1]
                assert len(filed) == received.sum()
                np.testing.assert_array_equal(filed.handles, np.sort(recorded.devices[received]))
                if filed.content_kind == "reports":
                    content, _ = by_device(filed, recorded)
                    np.testing.assert_array_equal(
                        mechanism.encode(content), mechanism.encode(recorded.reports[filed.round - 1][received])
                    )
                else:
                    assert filed.content is None


@pytest.mark.parametrize("deployment", [Trusted(handles="query"), PerRound(handles="query"), SecretShared(paired=True)])
def test_pseudonyms_link_rounds_and_servers_but_not_queries(deployment):
    records = [record(SAMPLING, query=query, seed=5, loss=0.0) for query in (1, 2)]
    found = transcripts(deployment, records)
    seen = {(1, party): set() for party in found} | {(2, party): set() for party in found}
    for party, transcript in found.items():
        for filed in transcript:
            assert filed.handle_kind == ("device" if party == "network" else "query")
            assert (np.diff(filed.handles) > 0).all()  # sorted by handle, so the order carries no information
            seen[filed.query, party] |= set(filed.handles.tolist())
    servers = [party for party in found if party != "network"]
    for query in (1, 2):
        one = seen[query, servers[0]]
        assert len(one) == 40
        assert all(seen[query, server] == one for server in servers)
        assert not one & set(records[query - 1].devices.tolist())
    assert not seen[1, servers[0]] & seen[2, servers[0]]


def test_pseudonym_order_is_independent_of_devices():
    records = [record(SAMPLING, query=query, loss=0.0) for query in range(1, 41)]
    ranks = []
    for recorded, filed in zip(records, transcripts(Trusted(handles="query"), records)["server:1"][::2], strict=True):
        # Blanks identify the reports of round one well enough to locate the first device's.
        ranks.append(np.corrcoef(filed.content, recorded.reports[0])[0, 1])
    assert abs(np.mean(ranks)) * np.sqrt(len(ranks) * 39) < stats.norm.isf(FAMILY / 2)


def test_only_mixer_and_server_together_link_reports_to_devices():
    recorded = record(SAMPLING, n=60)
    found = transcripts(ShuffledReports(), [recorded])
    for round_ in (1, 2):
        mixer, server = found["mixer"][round_ - 1], found["server:1"][round_ - 1]
        received = recorded.in_time[round_ - 1]
        reports = recorded.reports[round_ - 1]
        assert (mixer.content_kind, mixer.sealed_to, mixer.handle_kind, server.handles) == (
            "sealed",
            "server:1",
            "device",
            None,
        )
        assert server.connections is None
        np.testing.assert_array_equal(np.sort(server.content), np.sort(reports[received]))
        truth = dict(zip(recorded.devices[received].tolist(), reports[received].tolist(), strict=True))
        linked = dict(zip(mixer.handles.tolist(), mixer.content.tolist(), strict=True))
        assert linked == truth


def test_mixed_orders_are_uniform_and_independent_between_rounds():
    """Where the first device's report was placed, and whether it has the same position in both rounds."""
    n, runs = 5, 4000
    rng = np.random.default_rng(3)
    reports = [np.arange(n, dtype=np.int32), np.arange(n, dtype=np.int32)]
    recorded = arriving(1, np.arange(n), reports, np.ones((2, n), dtype=bool))
    table = np.zeros((n, n))
    for _ in range(runs):
        first, second = ShuffledReports().transcripts(recorded, SAMPLING, rng=rng)["server:1"]
        table[np.flatnonzero(first.content == 0)[0], np.flatnonzero(second.content == 0)[0]] += 1
    assert stats.chisquare(table.reshape(-1)).pvalue > FAMILY


@pytest.mark.parametrize("mechanism", [SAMPLING, UNARY], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize(
    "deployment", [SecretShared(servers=3), SecretShared(servers=2, paired=True)], ids=["3", "paired"]
)
def test_shares_of_one_handle_sum_to_its_report(deployment, mechanism):
    recorded = record(mechanism)
    found = transcripts(deployment, [recorded], mechanism=mechanism)
    for round_ in range(1, mechanism.rounds + 1):
        filed = [found[f"server:{server}"][round_ - 1] for server in range(1, deployment.servers + 1)]
        for entry in filed:
            assert entry.content_kind == "shares"
            assert entry.content.dtype == np.uint64
            np.testing.assert_array_equal(entry.handles, filed[0].handles)
        total = np.sum([entry.content for entry in filed], axis=0, dtype=np.uint64).view(np.int64)
        received = recorded.in_time[round_ - 1]
        sent = mechanism.encode(recorded.reports[round_ - 1][received])
        if deployment.paired:  # pseudonyms: the same reports in their own order
            total, sent = (np.sort(rows.reshape(len(rows), -1), axis=0) for rows in (total, sent))
            np.testing.assert_array_equal(total, sent)
        else:
            np.testing.assert_array_equal(total, sent[np.argsort(recorded.devices[received])])


def test_lost_reports_are_not_stored():
    recorded = record(SAMPLING, loss=1.1)
    for deployment in (Trusted(), PerRound(), ShuffledReports(), SecretShared(paired=True)):
        for transcript in transcripts(deployment, [recorded]).values():
            assert all(len(filed) == 0 for filed in transcript)


HANDLES = np.array([3, 5])
REPORTS = np.array([0, 1], dtype=np.int32)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (("none", HANDLES, REPORTS, "reports"), "unless handle_kind is 'none'"),
        (("device", None, REPORTS, "reports"), "unless handle_kind is 'none'"),
        (("device", HANDLES, None, "shares"), "unless no party can decrypt it"),
        (("device", HANDLES, REPORTS, "sealed"), "unless no party can decrypt it"),
        (("device", HANDLES, REPORTS[:1], "reports"), "of the same entries"),
        (("device", HANDLES * 0, REPORTS, "reports"), "handles must differ"),
    ],
)
def test_inconsistent_stored_entries_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        StoredEntries("server:1", 1, 1, *fields, arrived_s=np.zeros(2))


def test_inconsistent_records_are_refused():
    with pytest.raises(ValueError, match="in_time must be"):
        arriving(1, HANDLES, [REPORTS], np.ones((2, 2), dtype=bool))
    with pytest.raises(ValueError, match="reports must be of 2 devices"):
        arriving(1, HANDLES, [REPORTS[:1]], np.ones((1, 2), dtype=bool))
