"""Every coalition guesses as well as possible from all that it sees, by enumeration of all truths and reports.

What a coalition sees is derived from the rules of the deployments (docs/how/servers.md), and the laws of the reports
from the definitions of the mechanisms: nothing of the project's inference is used for the optimum.
"""

import itertools
from collections import defaultdict
from functools import cache

import numpy as np
import pytest
from synthetic_campaigns import record_of
from verification import compared as verified

from mechanisms import local
from mechanisms.local.common.packed_bits import AnswerReports, BitReports
from simulator.aggregation.servers import PerRound, SecretShared, ShuffledReports, ThresholdShared, Trusted
from simulator.aggregation.transcript import Released
from simulator.attacks.guesses import Prior
from simulator.attacks.observation import Observation, OwnReports
from simulator.attacks.reconstruction import ROUND_ATTACKS

DEPLOYMENTS = {
    "trusted": Trusted(),
    "trusted, pseudonyms": Trusted(handles="query"),
    "per round": PerRound(),
    "per round, pseudonyms": PerRound(handles="query"),
    "shuffled": ShuffledReports(),
    "shuffled, anonymous": ShuffledReports(anonymous=True),
    "shared": SecretShared(servers=2),
    "shared, pseudonyms": SecretShared(servers=2, paired=True),
    "threshold": ThresholdShared(servers=3, threshold=2),
}
DEVICES = np.array([71, 12, 55])
PRIORS = {1: (0.3, 0.7), 2: (0.15, 0.35, 0.5), 3: (0.1, 0.25, 0.25, 0.4)}


def mechanism_of(name, cells):
    return {
        "sampling": lambda: local.SamplingPrivacy(cells=cells, sampling=0.45),
        "refreshed": lambda: local.SamplingPrivacy(cells=cells, sampling=0.4, blank_zero=0.2, refresh=0.5),
        "plain": lambda: local.NoPrivacy(cells=cells),
        "k-ary": lambda: local.KRandomizedResponse(cells=cells, epsilon=1.1),
        "unary": lambda: local.SymmetricUnary(cells=cells, epsilon=1.5),
        "subset": lambda: local.SubsetSelection(cells=cells, epsilon=0.6),
        "hadamard": lambda: local.HadamardResponse(cells=cells, epsilon=1.0),
        "binary": lambda: local.BinarySamplingPrivacy(cells=cells, sampling=0.3),
        "deniable": lambda: local.AnonymizedDeniable(
            cells=cells, shift=0.4, yes_second=0.3, yes_third=0.3, no_second=0.2, no_third=0.4, onward=0.5
        ),
    }[name]()


def per_cell(cells, truth, yes, no):
    """Whole reports of mechanisms that answer about each cell, {(answers by round, each a tuple of cells): mass}."""
    laws = [yes if cell == truth else no for cell in range(1, cells + 1)]
    found = defaultdict(float)
    for chosen in itertools.product(*(law.items() for law in laws)):
        answers = tuple(zip(*(answer for answer, _ in chosen), strict=True))
        found[answers] += np.prod([mass for _, mass in chosen])
    return dict(found)


def law(name, cells, truth):  # noqa: PLR0911 - one mechanism after the other
    """The law of one device's reports of all rounds, {(report of round one, …): mass}, from the definitions."""
    mechanism, values = mechanism_of(name, cells), range(cells + 1)
    if name in {"sampling", "refreshed"}:
        share, blanks = mechanism.sampling, mechanism.blanks.tolist()
        found = defaultdict(float)
        found[0, truth] += share
        for first, second in itertools.product(values, values):
            kept = (1.0 - mechanism.refresh) * (first == second) + mechanism.refresh * blanks[second] / (1.0 - share)
            found[first, second] += blanks[first] * kept
        return {report: mass for report, mass in found.items() if mass > 0.0}
    if name == "plain":
        return {(truth,): 1.0}
    if name == "k-ary":
        weight = {v: np.exp(1.1) if v == truth else 1.0 for v in values}
        return {(v,): one / sum(weight.values()) for v, one in weight.items()}
    if name == "unary":
        p = np.exp(0.75) / (1.0 + np.exp(0.75))
        return per_cell(cells, truth, {(1,): p, (0,): 1 - p}, {(1,): 1 - p, (0,): p})
    if name == "subset":
        chosen = list(itertools.combinations(values, mechanism.size))
        weight = {(one,): np.exp(0.6) if truth in one else 1.0 for one in chosen}
        return {one: mass / sum(weight.values()) for one, mass in weight.items()}
    if name == "hadamard":
        outputs = range(mechanism.outputs)
        even = [(output & (truth + 1)).bit_count() % 2 == 0 for output in outputs]
        weight = [np.exp(1.0) if one else 1.0 for one in even]
        return {(output,): one / sum(weight) for output, one in zip(outputs, weight, strict=True)}
    if name == "binary":
        zero, one, share = mechanism.faces
        no = {(0, 0): zero + share, (1, 1): one}
        return per_cell(cells, truth, {(0, 0): zero, (1, 1): one, (0, 1): share}, no)
    query = mechanism.binary_query
    return per_cell(cells, truth, *(dict(zip(query.answers, masses, strict=True)) for masses in (query.yes, query.no)))


def reports_of(name, mechanism, answers):
    """The mechanism's reports of one round from answers as above."""
    if name == "subset":
        dense = [[int(v in one) for v in range(mechanism.cells + 1)] for one in answers]
        return BitReports.from_dense(np.array(dense, dtype=np.uint8))
    if name in {"unary", "binary"}:
        return BitReports.from_dense(np.array(answers, dtype=np.uint8))
    if name == "deniable":
        return AnswerReports.from_dense(np.array(answers, dtype=np.uint8), outputs=3)
    return np.array(answers, dtype=np.int32)


def tallied(name, answer):
    """What a server counts of one answer: the pairs (cell, output), the symbols of a subset, or the value."""
    if name in {"unary", "binary", "deniable"}:
        return tuple(enumerate(answer))
    return answer if name == "subset" else (answer,)


def published(name, whole, used, k):
    """The published counts of these rounds; with k, only the differences of two rounds from k on."""
    if k is None:
        return tuple(tuple(sorted(part for one in whole for part in tallied(name, one[row]))) for row in used)
    if len(used) < 2:
        return ()
    rounds = [[one[row] for one in whole] for row in used]
    differences = [rounds[1].count(cell) - rounds[0].count(cell) for cell in range(1, 4)]
    return tuple(one if one >= k else "suppressed" for one in differences)


def seen_by(deployment, coalition, name, whole, used, k=None):
    """What a coalition sees of these rounds of all devices: linked reports by device, lists, and what is published."""
    members, kind = set(coalition), deployment.kind
    servers = sum(party.startswith("server") for party in members)
    linked, unlinked = [], []
    for row in used:
        answers = tuple(one[row] for one in whole)
        reads = {
            "trusted": servers > 0,
            "per_round": f"server:{row + 1}" in members,
            "secret_shared": servers >= 2,
            "threshold_shared": servers >= 2,
            "shuffled": {"server:1", "mixer"} <= members and not deployment.anonymous,
        }[kind]
        linked.append(answers if reads else None)
        listed = kind == "shuffled" and servers > 0
        unlinked.append(tuple(sorted(answers)) if listed else None)
    return tuple(linked), tuple(unlinked), published(name, whole, used, k)


@cache
def laws_of(name, cells):
    return [law(name, cells, truth) for truth in range(cells + 1)]


def worlds(name, cells, n):
    """Yield all reports of n devices, and P(truth of device 0, these reports), (V + 1,)."""
    q, laws = np.array(PRIORS[cells]), laws_of(name, cells)
    mixed = defaultdict(float)
    for share, one in zip(q, laws, strict=True):
        for report, mass in one.items():
            if mass > 0.0:
                mixed[report] += share * mass
    for whole in itertools.product(mixed, repeat=n):
        own = np.array([share * one.get(whole[0], 0.0) for share, one in zip(q, laws, strict=True)])
        yield whole, own * np.prod([mixed[report] for report in whole[1:]])


def coalitions(deployment, mechanism):
    parties = deployment.parties(mechanism)
    return [c for size in range(len(parties) + 1) for c in itertools.combinations(parties, size)]


def compared(deployment, name, cells, n, kind, coalition, *, corrupted=0, k=None):
    """Expected success of the attack on device 0, the optimum by enumeration, and the theory that the attack states."""
    mechanism, prior, rng = mechanism_of(name, cells), Prior({1: np.array(PRIORS[cells])}), np.random.default_rng(0)
    rounds = mechanism.rounds
    used = {"round_one": [0], "round_two": [min(1, rounds - 1)]}.get(kind, range(rounds))
    hits, theories, joint = 0.0, [], defaultdict(float)
    fixed = next(iter(laws_of(name, cells)[1]))
    for whole, mass in worlds(name, cells, n):
        view = seen_by(deployment, coalition, name, whole, used, k)
        first_time = view not in joint
        joint[view] = joint[view] + mass
        every = (*whole, *[fixed] * corrupted)
        reports = [reports_of(name, mechanism, [one[r] for one in every]) for r in range(rounds)]
        guess, theory = guessed(deployment, mechanism, reports, kind, coalition, prior, corrupted, k, rng)
        hits += mass[guess]
        theories += [theory] if first_time else []
    assert np.allclose(theories, theories[0], rtol=1e-12, equal_nan=True)
    return hits, sum(one.max() for one in joint.values()), theories[0]


def guessed(deployment, mechanism, reports, kind, coalition, prior, corrupted, k, rng):
    """The cell that the attack guesses for device 0, and the success that it expects."""
    n, rounds = len(reports[0]), mechanism.rounds
    devices = np.array([*DEVICES[: n - corrupted], *range(200, 200 + corrupted)])
    recorded = record_of(deployment, 1, devices, reports, np.ones((rounds, n), dtype=bool))
    counts = np.stack([mechanism.tally(one) for one in reports]).astype(np.int64)
    released, own = Released(1, (n,) * rounds, counts=counts), ()
    if k is not None:
        differences = (counts[1] - counts[0])[1:]
        hidden = differences < k
        shown = np.where(hidden, 0, differences)
        released = Released(1, (n,) * rounds, differences=shown, suppressed=hidden, k=k)
    if corrupted:
        mine = recorded.among(np.arange(n - corrupted, n))
        arrived = {party: np.isfinite(times) for party, times in mine.arrived_s.items()}
        truth = np.ones(corrupted, dtype=np.int32)
        own = (OwnReports(1, mine.devices, mine.pseudonyms, truth, tuple(mine.reports), mine.in_time, arrived),)
    seen = Observation.of(
        deployment.transcripts(recorded, mechanism, rng=np.random.default_rng(1)),
        coalition,
        mechanism=mechanism,
        released=(released,),
        own=own,
        asked={1: n},
    )
    anyone = int(prior.of(1).argmax()), prior.success(1)
    for one in ROUND_ATTACKS[kind].guess(seen, prior, rng=rng):
        if one.handles is None:
            anyone = int(one.cells[0]), one.theory
            continue
        place = np.flatnonzero(one.handles == (devices[0] if one.handle_kind == "device" else recorded.pseudonyms[0]))
        if len(place):
            return int(one.cells[place[0]]), one.theory
    return anyone


# Cases, and whether they are quick. Quick ones go through a few coalitions only.
QUICK = [("sampling", 2, 1), ("sampling", 2, 2), ("plain", 3, 2), ("k-ary", 1, 3), ("unary", 2, 2), ("binary", 1, 2)]
SLOW = [
    *(("sampling", cells, n) for cells, n in ((1, 3), (3, 1), (3, 2), (2, 3))),
    *(("refreshed", cells, n) for cells, n in ((1, 3), (2, 2))),
    *(("k-ary", 2, 3), ("subset", 2, 2), ("hadamard", 2, 2)),
    *(("unary", cells, n) for cells, n in ((1, 3), (3, 1), (2, 2))),
    *(("binary", cells, n) for cells, n in ((2, 1), (1, 3))),
    *(("deniable", cells, n) for cells, n in ((1, 1), (1, 2))),
]
FEW = {"per round": (0, 1, 2, 4), "shuffled": (1, 4), "shared": (0, 3)}


@pytest.mark.parametrize(("name", "cells", "n"), QUICK)
@pytest.mark.parametrize("deployment", FEW)
def test_coalitions_guess_as_well_as_possible(deployment, name, cells, n):
    mechanism = mechanism_of(name, cells)
    every = coalitions(DEPLOYMENTS[deployment], mechanism)
    some = [every[place] for place in FEW[deployment] if place < len(every)]
    check_coalitions(deployment, name, cells, n, "link_rounds", some)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "cells", "n"), SLOW)
def test_every_coalition_guesses_as_well_as_possible(name, cells, n):
    for deployment, servers in DEPLOYMENTS.items():
        mechanism = mechanism_of(name, cells)
        if deployment.endswith("pseudonyms") and n > 1:
            continue
        # Single rounds are the less interesting part.
        kinds = ["link_rounds", "round_two", "round_one"][: 4 - n]
        for kind in [*kinds, *["shares"] * (servers.sharing is not None)]:
            check_coalitions(deployment, name, cells, n, kind, coalitions(servers, mechanism))


def check_coalitions(deployment, name, cells, n, kind, every, **keys):
    """Success, theory and optimum are equal, and none falls when a member joins."""
    theories = {}
    for coalition in every:
        found, optimum, theory = compared(DEPLOYMENTS[deployment], name, cells, n, kind, coalition, **keys)
        assert found == pytest.approx(optimum, abs=1e-9), (deployment, kind, coalition)
        assert theory == pytest.approx(optimum, abs=1e-9), (deployment, kind, coalition)
        verified("coalitions", [found, theory], optimum, allowed=1e-9)
        theories[frozenset(coalition)] = theory
    for fewer, more in itertools.permutations(theories, 2):
        assert not fewer < more or theories[fewer] <= theories[more] + 1e-12, (deployment, kind, more)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("deployment", ["per round", "trusted"])
def test_suppressed_differences_and_corrupted_devices_are_used(deployment, k):
    every = coalitions(DEPLOYMENTS[deployment], mechanism_of("sampling", 2))
    check_coalitions(deployment, "sampling", 2, 2, "link_rounds", every, k=k)
    check_coalitions(deployment, "sampling", 2, 2, "link_rounds", every[:2], corrupted=1)


@pytest.mark.parametrize("deployment", ["trusted, pseudonyms", "per round", "shuffled", "shared, pseudonyms"])
def test_corrupted_devices_are_used(deployment):
    every = coalitions(DEPLOYMENTS[deployment], mechanism_of("k-ary", 1))
    for honest in (1, 2):
        check_coalitions(deployment, "k-ary", 1, honest, "link_rounds", every, corrupted=1)
