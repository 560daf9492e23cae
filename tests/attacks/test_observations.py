"""An observation holds copies of what the coalition's parties stored, and no reference to anything else."""

import ast
import dataclasses
import gc
from pathlib import Path

import numpy as np
import pytest
from synthetic_campaigns import DEPLOYMENTS, FULL_COALITIONS, SAMPLING, campaign, filed_of, observe, record_of

import simulator.arrays
import simulator.attacks
from mechanisms.local import KRandomizedResponse, ParameterError, SamplingPrivacy
from simulator.aggregation.servers import PerRound, SecretShared, ShuffledReports, Trusted
from simulator.aggregation.transcript import StoredEntries
from simulator.attacks.guesses import Guesses, Prior
from simulator.attacks.observation import Observation, link_rounds_of, read_round
from simulator.attacks.reconstruction import ROUND_ATTACKS, LongitudinalAttack
from simulator.attacks.records import CampaignRecord, places_of


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_observation_holds_only_the_parties_of_its_coalition(name):
    record = campaign(DEPLOYMENTS[name], vehicles=20, queries=2)
    for party in record.parties:
        seen = observe(record, [party, "vehicles:3"])
        assert {entry.party for entry in seen.seen} == {party}
        assert seen.parties == (party,)


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_observation_shares_no_memory_with_the_record(name):
    record = campaign(DEPLOYMENTS[name], vehicles=20)
    seen = observe(record, FULL_COALITIONS[name])
    assert not any(hasattr(one, "__dict__") for one in (seen, *seen.seen))  # nothing but their fields
    arrays = [
        a for e in seen.seen for a in (e.handles, e.content, e.arrived_s, e.connections) if isinstance(a, np.ndarray)
    ]
    recorded = record.queries[0].recorded
    kept = [record.queries[0].truth, recorded.devices, recorded.connections, *recorded.reports]
    kept += recorded.arrived_s.values()
    for array in arrays:
        assert array.base is None or array.base.size == array.size
        assert not any(np.shares_memory(array, other) for other in kept)
    reached, left = set(), [seen]
    while left:
        one = left.pop()
        if id(one) in reached or isinstance(one, type) or callable(one) or type(one).__module__ == "builtins.module":
            continue
        reached.add(id(one))
        assert not isinstance(one, CampaignRecord)
        if isinstance(one, Observation | StoredEntries | tuple | np.ndarray):
            left += gc.get_referents(one)
    assert id(record.queries[0].truth) not in reached
    assert id(record.queries[0].recorded) not in reached


@pytest.mark.parametrize("name", DEPLOYMENTS)
@pytest.mark.parametrize("kind", ROUND_ATTACKS)
def test_guesses_depend_on_transcripts_and_not_on_truth(name, kind):
    record = campaign(DEPLOYMENTS[name], vehicles=200)
    (query,) = record.queries
    other = dataclasses.replace(query, truth=(query.truth + 1) % 7, occupancy=query.occupancy[::-1].copy())
    prior = Prior.from_counts({1: query.occupancy})
    assert not prior.exact
    guesses = [
        ROUND_ATTACKS[kind].guess(observe(world, FULL_COALITIONS[name]), prior, rng=np.random.default_rng(1))
        for world in (record, dataclasses.replace(record, queries=(other,)))
    ]
    assert len(guesses[0]) == len(guesses[1])
    for one, two in zip(*guesses, strict=True):
        assert np.array_equal(one.cells, two.cells)
        assert one.theory == two.theory


@pytest.mark.parametrize("name", FULL_COALITIONS)
def test_full_coalition_reads_every_report_with_its_handle(name):
    record = campaign(DEPLOYMENTS[name], vehicles=50, loss=0.3)
    seen, filed, recorded = observe(record, FULL_COALITIONS[name]), filed_of(record), record.queries[0].recorded
    for round_ in (1, 2):
        read = read_round(seen, 1, round_)
        places = places_of(filed.devices(1, read.handle_kind, read.handles), recorded.devices)
        assert np.array_equal(np.sort(places), np.flatnonzero(recorded.in_time[round_ - 1]))
        content = read.content if read.content.ndim == 1 else read.content.argmax(axis=1)
        assert np.array_equal(content, recorded.reports[round_ - 1][places])
    groups = list(link_rounds_of(seen, 1, (1, 2)))
    assert sum(len(group.handles) for group in groups) == recorded.in_time.any(axis=0).sum()
    for group in groups:
        places = places_of(filed.devices(1, group.handle_kind, group.handles), recorded.devices)
        for row in (1, 2):
            assert (recorded.in_time[row - 1][places] == (row in group.rounds)).all()


def test_pseudonyms_differ_from_device_numbers_and_between_queries():
    record = campaign(DEPLOYMENTS["per round, pseudonyms"], vehicles=50, queries=2)
    seen = observe(record, ["server:2"])
    one, two = (read_round(seen, query, 2) for query in (1, 2))
    assert one.handle_kind == "query"
    assert not set(one.handles.tolist()) & set(record.queries[0].recorded.devices.tolist())
    assert not set(one.handles.tolist()) & set(two.handles.tolist())


@pytest.mark.parametrize(("name", "less"), [("shared", 2), ("shared, paired", 1), ("shuffled", 1)])
def test_incomplete_coalition_links_no_report(name, less):
    record = campaign(DEPLOYMENTS[name], vehicles=50)
    seen = observe(record, FULL_COALITIONS[name][:less])
    read = read_round(seen, 1, 2)
    assert read is None if name != "shuffled" else read.handles is None
    assert list(link_rounds_of(seen, 1, (1, 2))) == []
    assert read_round(observe(record, ["network"]), 1, 2) is None


def test_partial_share_sum_is_no_valid_encoding():
    record = campaign(DEPLOYMENTS["shared"], vehicles=50)
    read = read_round(observe(record, ["server:1", "server:3"]), 1, 2, partial=True)
    assert not np.isin(read.content, (0, 1)).any()


def test_invalid_coalitions_are_refused():
    record = campaign(DEPLOYMENTS["per round"], vehicles=5)
    stored = filed_of(record)
    with pytest.raises(ParameterError, match=r"existing parties \(server:1, server:2, network\), got 'server:3'"):
        Observation.of(stored.transcripts(stored.query(1)), ["server:3"], mechanism=record.mechanism)
    no_party = observe(record, [])
    assert (no_party.seen, no_party.parties) == ((), ())
    np.testing.assert_array_equal(no_party.released_of(1).counts, record.queries[0].counts)


def test_longitudinal_attack_does_not_link_pseudonyms_across_queries():
    record = campaign(DEPLOYMENTS["per round, pseudonyms"], vehicles=50, queries=3)
    prior = Prior.uniform(SAMPLING.cells, (3,))
    seen = observe(record, FULL_COALITIONS["per round"])
    found = LongitudinalAttack([1, 2, 3], 3).guess(seen, prior, rng=np.random.default_rng(1))
    assert {one.query for one in found} == {3}
    assert sum(len(one.cells) for one in found) == 50


def test_guesses_must_match_their_handles():
    with pytest.raises(ValueError, match="one guess a device"):
        Guesses(1, "device", np.arange(3), np.zeros(2, dtype=np.int32), None)
    with pytest.raises(ValueError, match="handles are required"):
        Guesses(1, "device", None, np.zeros(1, dtype=np.int32), None)


def test_prior_needs_at_least_one_device():
    with pytest.raises(ParameterError, match="must hold a device in query 2"):
        Prior.from_counts({2: np.zeros(3, dtype=np.int64)})


def test_attacks_import_no_module_that_knows_the_truth():
    allowed = ("simulator.aggregation.transcript", "simulator.attacks", "simulator.roads", "simulator.cells")
    allowed += ("simulator.arrays",)  # types of arrays; it is read here too, and imports nothing of the project
    folder = Path(simulator.attacks.__file__).parent
    attacks = [folder / f"{name}.py" for name in ("counterfactual", "guesses", "observation", "reconstruction")]
    for file in [*attacks, Path(simulator.arrays.__file__)]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                local = name.partition(".")[0] in {"simulator", "scenarios"}
                assert not local or name.startswith(allowed), (file.name, name)
                assert name != "importlib", file.name


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
                        Trusted().transcripts(recorded, mechanism, rng=rng), ["server:1"], mechanism=mechanism
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
