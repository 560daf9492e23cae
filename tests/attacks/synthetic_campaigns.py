"""Synthetic campaigns for the attack evaluation: devices answer, deployments aggregate, and everything is recorded."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
from scipy.stats import binomtest
from verification import compared_by_chance

from mechanisms.local import SamplingPrivacy
from scenarios.kinds import sections_of
from simulator.aggregation.servers import PerRound, SecretShared, ShuffledReports, ThresholdShared, Trusted
from simulator.aggregation.transcript import RecordedMessages
from simulator.attacks.games import play_attacks
from simulator.attacks.records import CampaignRecord, StoredTranscripts
from simulator.attacks.world import Member, Observer
from simulator.experiment.assembly.attacks import build_attack, build_prior, games_of
from simulator.files.messages import texts_of
from simulator.results.schema import TABLES
from simulator.sensing.query import QueryRecord
from simulator.streams import Streams

FAMILY = 1e-6
COMPARED = 200
"""Most rows that one file compares with theory."""
CELLS = 6
SAMPLING = SamplingPrivacy(cells=CELLS, sampling=0.4)
DEPLOYMENTS = {
    "trusted": Trusted(),
    "trusted, pseudonyms": Trusted(handles="query"),
    "per round": PerRound(),
    "per round, pseudonyms": PerRound(handles="query"),
    "shuffled": ShuffledReports(),
    "shared": SecretShared(servers=3),
    "shared, paired": SecretShared(servers=3, paired=True),
    "shared, threshold": ThresholdShared(servers=4, threshold=2),
}
FULL_COALITIONS = {
    "trusted": ("server:1",),
    "trusted, pseudonyms": ("server:1",),
    "per round": ("server:1", "server:2"),
    "per round, pseudonyms": ("server:1", "server:2"),
    "shuffled": ("server:1", "mixer"),
    "shared": ("server:1", "server:2", "server:3"),
    "shared, paired": ("server:1", "server:2", "server:3"),
    "shared, threshold": ("server:2", "server:4"),
}


def draw_truth(mechanism, n, *, rng):
    """Cells of which one is the most likely, and few devices outside."""
    shares = np.arange(1, mechanism.cells + 2, dtype=np.float64)
    shares[0] = 0.5
    return rng.choice(mechanism.cells + 1, size=n, p=shares / shares.sum()).astype(np.int32)


def stay(_, truth, rng):  # noqa: ARG001 - as the moves of other campaigns
    """Where vehicles are in a query, from its number and where they were in the query before."""
    return truth


def stray(stays, places=SAMPLING.cells + 1):
    """Moves of vehicles that stay with a probability, and otherwise go anywhere, every place equally likely."""

    def move(number, truth, rng):
        moved = rng.integers(0, places, len(truth), dtype=np.int32)
        return truth if number == 1 else np.where(rng.random(len(truth)) < stays, truth, moved)

    return move


def campaign(
    deployment, mechanism=SAMPLING, *, vehicles=3000, outside=0, queries=1, targets=None, loss=0.0, seed=1, move=stay
):
    """A campaign whose vehicles stay where they are, or move.

    Vehicle numbers are far from 0…n − 1 and unordered; vehicles outside have no record.
    """
    rng = np.random.default_rng(seed)
    numbers = rng.permutation(10 * vehicles)[:vehicles] + 1000
    truth = draw_truth(mechanism, vehicles, rng=rng)
    memory = mechanism.enrol(vehicles + outside, rng=rng)
    kept = np.sort(rng.permutation(vehicles)[:targets])
    records = []
    for number in range(1, queries + 1):
        truth = move(number, truth, rng)
        places = np.concatenate([truth, np.zeros(outside, dtype=np.int32)])
        coins = mechanism.toss(memory, rng=rng)
        rounds = range(1, mechanism.rounds + 1)
        reports = [mechanism.answer(round_, places, coins) for round_ in rounds]
        received = rng.random((mechanism.rounds, len(places))) >= loss
        aggregator = deployment.aggregator(mechanism, devices=len(places), rng=rng)
        for round_ in rounds:
            aggregator.receive(round_, reports[round_ - 1], received[round_ - 1])
        for round_ in rounds:
            aggregator.close_round(round_, asked=len(places), answered=int(received[round_ - 1].sum()))
        records.append(
            QueryRecord(
                record_of(deployment, number, numbers[kept], [one[kept] for one in reports], received[:, kept]),
                truth[kept],
                np.bincount(truth, minlength=mechanism.cells + 1).astype(np.int64),
                aggregator.counts,
                aggregator.asked,
                aggregator.counted,
                mechanism.estimate(aggregator.counts, counted=aggregator.counted, asked=aggregator.asked).count,
                time_s=60.0 * number,
            )
        )
    return CampaignRecord(deployment, mechanism, tuple(records))


def record_of(deployment, query, devices, reports, received, *, late=None, seed=8):
    """What devices sent: received reports reached all parties on their route, late ones those of the first hop."""
    late = np.zeros_like(received) if late is None else late
    arrived = {}
    for row in range(len(reports)):
        for path in deployment.route(row + 1):
            for hop, party in enumerate(path):
                times = arrived.setdefault(party, np.full(received.shape, np.inf))
                times[row] = np.where(received[row], 1.0, np.where(late[row] & (hop == 0), 99.0, np.inf))
    arrived["network"] = np.where(received | late, 0.0, np.inf)
    return RecordedMessages.draw(query, devices, reports, received, arrived, rng=np.random.default_rng([seed, query]))


def filed_of(record, seed=5):
    """What the parties of one campaign stored."""
    return StoredTranscripts({"rush": record}, name="sampling", streams=Streams(seed))


def observe(record, coalition, *, seed=5, queries=None):
    """What a coalition observed of some queries of a campaign; by default of all."""
    filed = filed_of(record, seed)
    members = tuple(Member(party) for party in coalition)
    return Observer(filed, members).observe([query.number for query in record.queries] if queries is None else queries)


def attack(kind, coalition, **keys):
    """A section of [[attacks]], with its defaults."""
    given = {
        "name": kind,
        "kind": kind,
        "coalition": tuple(coalition),
        "campaigns": None,
        "mechanisms": None,
        "targets": 1_000_000,
        "prior": "occupancy",
        "growing": False,
        "k": None,
        "cell": 1,
        "magnitude": 1000,
        "asked": (1,),
        "dropped": "others",
        "lies": ("alone", "again", "alter"),
        "fakes": (0,),
        "from_query": None,
        "to_query": None,
        "together": False,
        "by": ("place", "bits"),
        "points": (1,),
    }
    return sections_of("attack")[kind].model_construct(**{**given, **keys})


def run_attacks(sections, records, *, streams):
    """Results of attacks given by their sections."""
    attacks = [
        build_attack(section, games_of(section), build_prior(section.prior, None, None, ())) for section in sections
    ]
    results = play_attacks(attacks, records, streams=streams)
    columns = dict.fromkeys(column.name for column in TABLES["attacks"].columns)
    assert all(row.keys() <= columns.keys() for row in results.findings)
    return replace(results, findings=[SimpleNamespace(**{**columns, **row}) for row in results.findings])


def evaluate_attacks(record, *attacks, seed=3):
    """Rows, and texts of the notes, of attacks on one campaign."""
    found = run_attacks(attacks, {("rush", "sampling"): record}, streams=Streams(seed))
    return list(found.findings), texts_of(found.notes)


def agrees(row):
    """Whether a row's success equals its theory within sampling error; truths are fixed, which reduces variance."""
    hits = round(row.success * row.trials)
    chance = binomtest(hits, row.trials, min(row.theory, 1.0)).pvalue
    compared_by_chance("attacks", chance, FAMILY / COMPARED)
    return chance > FAMILY / COMPARED


def servers_of(record):
    """Names of the servers of a campaign."""
    return [party for party in record.parties if party.startswith("server")]
