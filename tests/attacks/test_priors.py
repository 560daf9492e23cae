"""Priors from other vehicles, trip tables and roads, and an attack of one's own that uses their moves."""

from dataclasses import replace
from string import Template
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import norm
from synthetic_campaigns import campaign, filed_of, observe

import scenarios
from mechanisms.local import KRandomizedResponse, NoPrivacy, SamplingPrivacy
from scenarios import ScenarioError
from simulator.aggregation.servers import PerRound, Trusted
from simulator.attacks.games import Attack, play_attacks
from simulator.attacks.guesses import CheckedAttack, Prior
from simulator.attacks.guessing_games import CellGame
from simulator.attacks.priors import PriorSource, Training, learned_prior
from simulator.attacks.world import Member
from simulator.cli.new import TEMPLATES
from simulator.experiment.components import RunComponents
from simulator.streams import Streams

PLACES = 3
STAYS = 0.8
CHAIN = STAYS * np.eye(PLACES) + (1.0 - STAYS) / 2.0 * (1.0 - np.eye(PLACES))
LEVEL = 1e-6


def wander(number, truth, rng):
    """The symmetric chain of three places, from a uniform start."""
    if number == 1:
        return rng.integers(PLACES, size=len(truth)).astype(np.int32)
    drawn = (rng.random((len(truth), 1)) > CHAIN.cumsum(axis=1)[truth]).sum(axis=1)
    return drawn.astype(np.int32)


class Known(PriorSource):
    """The law by which vehicles move."""

    def of(self, stored, numbers):  # noqa: ARG002 - the law is the same of all vehicles
        moves = {number: csr_array(CHAIN) for number in numbers[1:]}
        return Prior(dict.fromkeys(numbers, np.full(PLACES, 1 / PLACES)), moves=moves)


def own_attack():
    """The attack that `crowdveil new attack` writes."""
    text = (TEMPLATES / "attack" / "module.py.template").read_text(encoding="utf-8")
    module = {"__name__": "mine"}
    exec(Template(text).substitute({"name": "mine", "class": "Mine"}), module)  # noqa: S102 - our own file
    return CheckedAttack(module["Mine"]())


def success(attack, record, *, prior, coalition=("server:1",)):
    """The finding of an attack on all queries of a campaign."""
    members = tuple(Member(party) for party in coalition)
    played = Attack(name="a", kind="a", games=[CellGame(attack)], members=members, targets=10**6, prior=prior)
    (row,) = play_attacks([played], {("rush", "mechanism"): record}, streams=Streams(1)).findings
    return SimpleNamespace(**row)


@pytest.mark.parametrize(("queries", "smoothed"), [(3, 0.598076), (5, 0.615576)])
def test_the_own_attack_gains_from_movement_what_enumeration_says(queries, smoothed):
    vehicles = 30_000
    record = campaign(
        Trusted(), KRandomizedResponse(cells=2, epsilon=1.0), vehicles=vehicles, queries=queries, move=wander
    )
    followed, alone = (success(attack, record, prior=Known()) for attack in (own_attack(), "link_rounds"))
    error = norm.isf(LEVEL / 8) * np.sqrt(0.25 / vehicles)  # of the mean over queries, at most that of one query
    assert followed.success == pytest.approx(smoothed, abs=error)
    assert alone.success == pytest.approx(0.576117, abs=error)
    assert alone.theory == pytest.approx(0.576117, abs=1e-6)
    assert followed.prior == pytest.approx(1 / 3)


def test_the_own_attack_knows_every_cell_without_privacy_and_nothing_without_information():
    record = campaign(Trusted(), NoPrivacy(cells=2), vehicles=500, queries=3, move=wander)
    assert success(own_attack(), record, prior=Known()).success == 1.0
    record = campaign(PerRound(), SamplingPrivacy(cells=2, sampling=0.4), vehicles=500, queries=3, move=wander)
    found = success(own_attack(), record, prior=Training(queries=1))
    assert found.success == found.prior
    assert found.theory is None


def test_pseudonyms_are_not_followed():
    record = campaign(Trusted(handles="query"), KRandomizedResponse(cells=2, epsilon=1.0), queries=3, move=wander)
    seen, prior = observe(record, ["server:1"]), Known().of(None, [1, 2, 3])
    mine = own_attack().guess(seen, prior, rng=np.random.default_rng(1))
    each = [own_attack().guess(seen.of_query(q), prior, rng=np.random.default_rng(1))[0].cells for q in (1, 2, 3)]
    assert [one.cells.tolist() for one in mine] == [cells.tolist() for cells in each]


@pytest.mark.parametrize("period", [1, 2])
def test_training_counts_the_cells_and_moves_of_vehicles_never_attacked(period):
    record = campaign(Trusted(), NoPrivacy(cells=2), vehicles=60, queries=6, move=wander)
    training, stored = Training(queries=4, period=period), filed_of(record)
    spared = stored.others
    prior = training.of(stored, [5, 6])
    seen = {q.number: q.truth[np.isin(q.recorded.devices, spared)] for q in record.queries[:4]}
    alike = [q for q in seen if (5 - q) % period == 0]
    counts = 1.0 + np.bincount(np.concatenate([seen[q] for q in alike]), minlength=PLACES)
    assert prior.of(5) == pytest.approx(counts / counts.sum())
    moved = np.ones((PLACES, PLACES))  # of 30 vehicles every move is seen
    for q in (q for q in seen if (6 - q) % period == 0 and q > 1):
        np.add.at(moved, (seen[q - 1], seen[q]), 1.0)
    assert prior.moves[6].toarray() == pytest.approx(moved / moved.sum(axis=1, keepdims=True))
    assert prior.of(6) == pytest.approx(prior.of(5) @ prior.moves[6].toarray())
    assert list(prior.moves) == [6]


def test_no_cell_of_a_target_is_in_the_prior_and_no_trained_query_or_vehicle_is_attacked():
    record = campaign(Trusted(), NoPrivacy(cells=2), vehicles=60, queries=4, move=wander)
    training = Training(queries=2)
    before = training.of(filed_of(record), [3, 4])
    spared, altered = filed_of(record).others, []
    for query in record.queries:
        target = ~np.isin(query.recorded.devices, spared)
        altered.append(replace(query, truth=np.where(target, (query.truth + 1) % 3, query.truth).astype(np.int32)))
    after = training.of(filed_of(replace(record, queries=tuple(altered))), [3, 4])
    assert [before.of(q).tolist() for q in (3, 4)] == [after.of(q).tolist() for q in (3, 4)]
    assert (before.moves[4] != after.moves[4]).nnz == 0
    found = success("link_rounds", record, prior=training)
    assert found.trials == 2 * (60 - len(spared))
    assert found.success == 1.0
    assert found.theory is None  # the prior is not the law of the targets


def test_moves_that_were_not_seen_have_no_probability_and_unseen_cells_stay():
    cells = np.array([[1, 1, 2, -1], [1, 2, -1, 3]])
    prior = learned_prior({1: cells, 2: cells}, 3)
    assert prior.of(1) == pytest.approx(np.array([1, 2, 2, 2]) / 7)
    assert prior.moves[2].toarray() == pytest.approx(
        np.array([[1, 0, 0, 0], [0, 0.5, 0.5, 0], [0, 0.5, 0.5, 0], [0, 0, 0, 1]])
    )


def driven(kind, **traffic):
    """The prior of two queries, 25 s apart, of vehicles on a road of 1 km in four cells that takes 100 s."""
    base = scenarios.load("tiny").with_(
        {
            "roads": {"source": "grid", "rows": 1, "columns": 2, "spacing_m": 1000, "speed_mps": 10},
            "cells": {"kind": "square", "size_m": 250},
            "traffic": {"vehicles": 20_000, **traffic},
            "campaigns": [{"name": "rush", "start_s": 120, "round_gap_s": 30, "deadline_s": 30}],
            "attacks": [{"kind": "link_rounds", "coalition": ["server:1"], "prior": {"kind": kind}}],
        }
    )
    (attack,) = RunComponents.build(base).attacks
    record = campaign(Trusted(), NoPrivacy(cells=4), vehicles=2, queries=2)
    record = replace(record, queries=tuple(replace(q, time_s=200.0 + 25.0 * q.number) for q in record.queries))
    return attack.prior.of(filed_of(record), [1, 2])


@pytest.mark.parametrize("kind", ["roads", "trips"])
def test_invented_vehicles_drive_at_free_flow(kind):
    prior = driven(kind)
    error = norm.isf(LEVEL / 16) * np.sqrt(0.25 / 500)
    assert prior.of(1)[1:] == pytest.approx([0.25] * 4, abs=error)
    onwards = [[0, 1, 0, 0], [0.5, 0, 0.5, 0], [0, 0.5, 0, 0.5], [0, 0, 1, 0]]
    assert prior.moves[2].toarray()[1:, 1:] == pytest.approx(np.array(onwards), abs=error)
    assert (prior.moves[2] != driven(kind, vehicles=20_000 if kind == "trips" else 9).moves[2]).nnz == 0


def test_what_a_prior_needs_is_named(tmp_path):
    trips = tmp_path / "trips.csv"
    trips.write_text('origin,destination,departure_s\n"(0, 0)","(0, 1)",10\n"(0, 1)","(0, 0)",20\n')
    with pytest.raises(ScenarioError, match=r"prior: needs a table of numbers of trips: of single trips the prior"):
        driven("trips", demand="trips", trips=str(trips), vehicles=None)
    many = tmp_path / "many.csv"
    many.write_text('origin,destination,trips\n"(0, 0)","(0, 1)",9000\n"(0, 1)","(0, 0)",9000\n')
    prior = driven("trips", demand="trips", trips=str(many), vehicles=None)
    assert prior.of(1)[1:] == pytest.approx([0.25] * 4, abs=norm.isf(LEVEL / 16) * np.sqrt(0.25 / 500))


def test_moves_over_a_query_that_is_left_out_are_the_product_of_both():
    one, two = csr_array([[0.5, 0.5], [0.0, 1.0]]), csr_array([[0.2, 0.8], [1.0, 0.0]])
    prior = Prior(dict.fromkeys((1, 2, 4), np.full(2, 0.5)), moves={2: one, 4: two})
    assert prior.moves_between(1, 2).toarray().tolist() == one.toarray().tolist()
    assert prior.moves_between(1, 4).toarray() == pytest.approx(np.array([[0.6, 0.4], [1.0, 0.0]]))
