"""Every coalition's success, by full enumeration, lies between the prior and the optimum of what it received."""

import itertools
from collections import defaultdict

import numpy as np
import pytest
from synthetic_campaigns import record_of

from mechanisms.local import KRandomizedResponse, NoPrivacy, SamplingPrivacy
from simulator.aggregation.servers import PerRound, SecretShared, ShuffledReports, Trusted
from simulator.aggregation.transcript import Released, StoredEntries
from simulator.attacks.guesses import Prior
from simulator.attacks.observation import Observation, OwnReports, read_round
from simulator.attacks.reconstruction import ROUND_ATTACKS, LongitudinalAttack

PRIOR = np.array([0.15, 0.35, 0.5])
SMALL = {
    "sampling": SamplingPrivacy(cells=2, sampling=0.4, blank_zero=0.25),
    "k-ary": KRandomizedResponse(cells=2, epsilon=1.1),
    "plain": NoPrivacy(cells=2),
}
DEPLOYMENTS = {
    "trusted": Trusted(),
    "trusted, pseudonyms": Trusted(handles="query"),
    "per round": PerRound(),
    "per round, pseudonyms": PerRound(handles="query"),
    "shuffled": ShuffledReports(),
    "shuffled, anonymous": ShuffledReports(anonymous=True),
    "shared": SecretShared(servers=2),
    "shared, paired": SecretShared(servers=2, paired=True),
}
DEVICES = np.array([71, 12, 55, 90])
LINK_ROUNDS = ROUND_ATTACKS["link_rounds"]
TINY = 1e-12


def answers(mechanism, truth):
    """Yield every answer of one device in all its rounds, with its probability."""
    if isinstance(mechanism, SamplingPrivacy):
        found = defaultdict(float)
        found[0, truth] += mechanism.sampling
        for blank, mass in enumerate(mechanism.blanks.tolist()):
            found[blank, blank] += mass
        yield from found.items()
    elif isinstance(mechanism, NoPrivacy):
        yield (truth,), 1.0
    else:
        right = np.exp(1.1) / (np.exp(1.1) + mechanism.cells)
        for value in range(mechanism.cells + 1):
            yield (value,), right if value == truth else (1 - right) / mechanism.cells


def worlds(mechanism, n):
    """Yield truths, answers (device by round) and probability of every combination of n devices' truths and answers."""
    for truths in itertools.product(range(mechanism.cells + 1), repeat=n):
        mass = np.prod(PRIOR[list(truths)])
        for device_answers in itertools.product(*(list(answers(mechanism, truth)) for truth in truths)):
            yield truths, [one for one, _ in device_answers], mass * np.prod([p for _, p in device_answers])


def received(deployment, coalition, device_answers, rounds, honest, *, published):
    """What the coalition has, in a canonical form: (linked answers of every device, device 0 first, lists by round).

    With the published counts the other devices' linked answers tell which answers are left for device 0. This is
    derived from the rules of each deployment, not from transcripts.
    """
    members, kind = set(coalition), deployment.kind
    # Within one query a pseudonym links reports as well as a device number does.
    linked = [None] * rounds
    lists = [None] * rounds
    for row in range(rounds):
        reads = {
            "trusted": "server:1" in members,
            "per_round": f"server:{row + 1}" in members,
            "secret_shared": {"server:1", "server:2"} <= members,
            "shuffled": {"server:1", "mixer"} <= members and not deployment.anonymous,
        }[kind]
        if reads:
            linked[row] = tuple(device_answers[device][row] for device in honest)
        elif published or (kind == "shuffled" and "server:1" in members):
            lists[row] = tuple(sorted(device_answers[device][row] for device in honest))
    return tuple(linked), tuple(lists)


def observed(deployment, mechanism, coalition, truths, device_answers, *, corrupted, published):
    """The observation that the simulator gives the coalition, and the device behind each handle."""
    n, rounds = len(truths), mechanism.rounds
    reports = [np.array([one[row] for one in device_answers], dtype=np.int32) for row in range(rounds)]
    recorded = record_of(deployment, 1, DEVICES[:n], reports, np.ones((rounds, n), dtype=bool))
    counts = np.stack([np.bincount(one, minlength=mechanism.cells + 1) for one in reports]).astype(np.int64)
    released = Released(1, (n,) * rounds, counts=counts if published else None)
    transcripts = deployment.transcripts(recorded, mechanism, rng=np.random.default_rng(1))
    own = ()
    if corrupted:
        places = np.arange(n - corrupted, n)
        mine = recorded.among(places)
        arrived = {party: np.isfinite(times) for party, times in mine.arrived_s.items()}
        truth = np.array(truths, dtype=np.int32)[places]
        own = (OwnReports(1, mine.devices, mine.pseudonyms, truth, tuple(mine.reports), mine.in_time, arrived),)
    seen = Observation.of(transcripts, coalition, mechanism=mechanism, released=(released,), own=own, asked={1: n})
    return seen, recorded


def guess_of_first(found, recorded, prior):
    """The cell that the attack guesses for device 0."""
    for one in found:
        if one.handles is None:
            return int(one.cells[0])
        wanted = recorded.devices[0] if one.handle_kind == "device" else recorded.pseudonyms[0]
        places = np.flatnonzero(one.handles == wanted)
        if len(places):
            return int(one.cells[places[0]])
    return int(prior.guess(1, 1, rng=np.random.default_rng(0))[0])


def success_and_optimum(deployment, mechanism, attack, coalition, n, corrupted, *, published=True):
    """The expected success of an attack on device 0, and of the optimal guess from all that was received."""
    prior, rounds = Prior({1: PRIOR}), mechanism.rounds
    honest = range(n - corrupted)
    hits, joint = 0.0, defaultdict(lambda: np.zeros(len(PRIOR)))
    for truths, device_answers, mass in worlds(mechanism, n):
        seen, recorded = observed(
            deployment, mechanism, coalition, truths, device_answers, corrupted=corrupted, published=published
        )
        guess = guess_of_first(attack.guess(seen, prior, rng=np.random.default_rng(0)), recorded, prior)
        hits += mass * (guess == truths[0])
        view = received(deployment, coalition, device_answers, rounds, honest, published=published)
        # Corrupted devices are known and independent of device 0.
        joint[view][truths[0]] += mass
    return hits, sum(masses.max() for masses in joint.values())


def coalitions(deployment, mechanism):
    """All sets of servers, mixer and network."""
    parties = deployment.parties(mechanism)
    return [c for size in range(len(parties) + 1) for c in itertools.combinations(parties, size)]


FAST = [(name, kind) for name in DEPLOYMENTS for kind in SMALL if kind == "plain" or name in {"shuffled", "shared"}]


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(name, kind, marks=[] if (name, kind) in FAST else pytest.mark.slow)
        for name in DEPLOYMENTS
        for kind in SMALL
    ],
)
def test_all_coalitions_against_two_devices(name, kind):
    """Linked rounds of two devices, one of them perhaps corrupted; every set of parties."""
    deployment, mechanism = DEPLOYMENTS[name], SMALL[kind]
    for coalition in coalitions(deployment, mechanism):
        for corrupted in (0, 1):
            success, optimum = success_and_optimum(deployment, mechanism, LINK_ROUNDS, coalition, 2, corrupted)
            assert PRIOR.max() - TINY <= success <= optimum + TINY, (coalition, corrupted)
            assert success == pytest.approx(optimum, abs=1e-9), (coalition, corrupted)


@pytest.mark.slow
@pytest.mark.parametrize("name", DEPLOYMENTS)
@pytest.mark.parametrize("kind", ["round_one", "round_two", "shares"])
def test_attack_success_lies_between_prior_and_optimum(name, kind):
    deployment, attack = DEPLOYMENTS[name], ROUND_ATTACKS[kind]
    for mechanism in SMALL.values():
        for coalition in coalitions(deployment, mechanism):
            for corrupted in (0, 1):
                success, optimum = success_and_optimum(deployment, mechanism, attack, coalition, 2, corrupted)
                assert PRIOR.max() - TINY <= success <= optimum + TINY, (coalition, corrupted)


@pytest.mark.slow
@pytest.mark.parametrize("name", DEPLOYMENTS)
@pytest.mark.parametrize("published", [pytest.param(False, marks=pytest.mark.thorough), True])
def test_full_coalition_against_three_devices(name, published):
    deployment = DEPLOYMENTS[name]
    for mechanism in SMALL.values():
        coalition = coalitions(deployment, mechanism)[-1]
        for corrupted in range(3):
            success, optimum = success_and_optimum(
                deployment, mechanism, LINK_ROUNDS, coalition, 3, corrupted, published=published
            )
            assert success == pytest.approx(optimum, abs=1e-9), (mechanism, corrupted)


def test_network_and_server_link_pseudonyms_unless_channel_is_anonymous():
    mechanism, n, rng = SMALL["k-ary"], 30, np.random.default_rng(4)
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
    mechanism = SMALL["k-ary"]
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
    mechanism, n = SMALL["sampling"], 40
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
