"""Servers that lie, fake vehicles and silence: each attack against enumeration, with and without its defence."""

import itertools
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from scipy.stats import binomtest, hypergeom, kruskal
from synthetic_campaigns import COMPARED, FAMILY, agrees, attack, campaign, evaluate_attacks, record_of

import crowdveil as cv
from mechanisms.local import KRandomizedResponse, LongitudinalUnary, NoPrivacy, SamplingPrivacy
from mechanisms.privacy import LinkedReports
from simulator.aggregation.servers import PerRound, SecretShared, Trusted

KRR = KRandomizedResponse(cells=3, epsilon=1.0)
SP = SamplingPrivacy(cells=3, sampling=0.4)


def law(mechanism):
    """P(all reports of a query | cell), (outcomes, cells + 1)."""
    if mechanism is KRR:
        same = np.exp(1.0) / (np.exp(1.0) + 3.0)
        return np.where(np.eye(4, dtype=bool), same, (1.0 - same) / 3.0)
    if isinstance(mechanism, NoPrivacy):
        return np.eye(4)
    pairs = np.zeros((4, 4, 4))
    for truth in range(4):
        pairs[0, truth, truth] += mechanism.sampling
        pairs[:, :, truth] += np.diag(mechanism.blanks)
    return pairs.reshape(16, 4)


def success(mechanism, prior, times=1):
    """Success of the best guess from as many queries, by enumeration."""
    outcomes = law(mechanism)
    chosen = itertools.product(range(len(outcomes)), repeat=times)
    return sum((prior * np.prod(outcomes[list(one)], axis=0)).max() for one in chosen)


def shares_of(record):
    return np.bincount(record.queries[0].truth, minlength=4) / len(record.queries[0].truth)


DEFENCES = {
    "none": {},
    "paired": {"paired": True},
    "proofs": {"robust": True},
    "min batch": {"min_batch": 2},
    "rate limit": {"min_gap_s": 60.0},
    "committed": {"committed": True},
    "all": {"paired": True, "robust": True, "min_batch": 2, "min_gap_s": 60.0, "committed": True},
}
STOPPED = {
    ("alone",): {"min batch": 0, "all": 0},
    ("alone", "again"): {"min batch": 0, "rate limit": 1, "all": 0},
    ("alone", "false_question"): {"min batch": 0, "committed": 1, "all": 0},
    ("again", "false_question"): dict.fromkeys(DEFENCES, 0),
}
"""By lie and defence, how many reports are left to the server; others leave it what the lie obtains."""


@pytest.mark.fast_cases(6)
@pytest.mark.parametrize("mechanism", [KRR, SP], ids=["k-ary", "sampling"])
@pytest.mark.parametrize("defence", DEFENCES)
def test_each_lie_succeeds_as_enumeration_says_and_is_stopped_by_its_defence(mechanism, defence):
    record = campaign(SecretShared(**DEFENCES[defence]), mechanism, vehicles=1500)
    prior = shares_of(record)
    lies = [attack("lying_server", ["server:1"], lies=lies, times=3, fakes=(0,)) for lies in STOPPED]
    rows, notes = evaluate_attacks(record, *lies)
    assert notes == []
    for lie, row in zip(STOPPED, rows, strict=True):
        asked = NoPrivacy(cells=3) if "false_question" in lie else mechanism
        left = STOPPED[lie].get(defence)
        expected = success(asked, prior, 3 if "again" in lie else 1)
        if left is not None:
            expected = success(mechanism, prior) if left else prior.max()
        assert row.theory == pytest.approx(expected, abs=1e-12)
        assert agrees(row)
        assert (row.epsilon_lower or 0.0) <= mechanism.claim(LinkedReports()).epsilon


def test_a_server_that_reads_reports_gains_by_asking_again_or_for_the_cell():
    record = campaign(Trusted(), KRR, vehicles=3000)
    lies = [("again",), ("false_question",), ("alone",)]
    rows, _ = evaluate_attacks(record, *(attack("lying_server", ["server:1"], lies=one, times=4) for one in lies))
    prior = shares_of(record)
    expected = [success(KRR, prior, 4), 1.0, success(KRR, prior)]
    assert [row.theory for row in rows] == pytest.approx(expected, abs=1e-12)
    assert all(agrees(row) for row in rows)
    refused = campaign(Trusted(min_gap_s=1.0, committed=True), KRR, vehicles=3000)
    rows, _ = evaluate_attacks(refused, *(attack("lying_server", ["server:1"], lies=one) for one in lies))
    assert [row.theory for row in rows] == pytest.approx([success(KRR, prior)] * 3, abs=1e-12)
    kept = campaign(Trusted(), LongitudinalUnary(cells=3, epsilon_permanent=1.0, epsilon_first=0.5), vehicles=3000)
    (row,), _ = evaluate_attacks(kept, attack("lying_server", ["server:1"], lies=("again",), times=100))
    assert agrees(row)
    assert row.theory < 0.75  # permanent bits protect a device however often it is asked


def test_a_lie_about_one_round_is_read_by_its_server_and_more_members_gain_more():
    record = campaign(PerRound(), SP, vehicles=2000)
    found = attack("lying_server", ["server:1", "server:2"], lies=("again",), times=2, growing=True)
    (first, both), _ = evaluate_attacks(record, found)
    assert first.theory == pytest.approx(first.prior)
    assert both.theory == pytest.approx(success(SP, shares_of(record), 2), abs=1e-12)


@pytest.mark.parametrize("batch", [2, 4])
def test_fakes_fill_a_chosen_batch_and_a_drawn_one_by_chance(batch):
    chosen = campaign(SecretShared(min_batch=batch), KRR, vehicles=60, seed=2)
    drawn = replace(chosen, deployment=SecretShared(min_batch=batch, committed=True))
    prior, fakes = shares_of(chosen), (0, batch - 2, batch - 1, 100)
    section = attack("lying_server", ["server:1"], lies=("alone",), fakes=tuple(dict.fromkeys(fakes)))
    for record in (chosen, drawn):
        trials, hits, expected = 0, 0, 0.0
        for seed in range(20):
            rows, _ = evaluate_attacks(record, section, seed=seed)
            guesses = {row.value or 0.0: row for row in rows if row.success is not None}
            for number, row in guesses.items():
                alone = number >= batch - 1
                if record is drawn:
                    alone = hypergeom.pmf(batch - 1, 59 + number, number, batch - 1) if number >= batch - 1 else 0.0
                if number == 100:
                    trials, hits = trials + row.trials, hits + round(row.success * row.trials)
                    expected = alone * success(KRR, prior) + (1.0 - alone) * prior.max()
                elif not alone:
                    assert row.success == row.prior
        assert binomtest(hits, trials, expected).pvalue > FAMILY
    costs = {row.metric: row.value for row in rows if row.success is None}
    assert costs["fake_share_of_all_devices"] == pytest.approx(100 / 160)
    assert costs["fake_messages"] == 200  # one to each of two servers
    assert costs["fake_bytes"] == 100 * record.deployment.cost(KRR).bytes_up


def test_a_minimum_batch_stops_dropping_all_others():
    for deployment in (SecretShared(min_batch=2), SecretShared(paired=True, min_batch=2)):
        (row,), _ = evaluate_attacks(campaign(deployment, SP, vehicles=500), attack("drop_out", ["network"]))
        assert [row.theory, row.success] == pytest.approx([row.prior] * 2, abs=1e-12)


TOWN = cv.scenarios.load("tiny").with_(
    {"mechanisms": [{"kind": "k_randomized_response", "name": "k-ary", "epsilon": 1.0}], "traffic.vehicles": 200}
)


class Boasting(cv.Party):
    """A server that adds 7 to the first cell's sum, and takes 7 from all others."""

    def tally(self, round_, sums):  # noqa: ARG002 - of every round
        return sums + np.where(np.arange(len(sums)) == 1, 7, -7)


def test_altered_sums_move_an_estimate_as_a_party_that_alters_them_does():
    given = {"attacks": [{"kind": "lying_server", "lies": ["alter"], "magnitude": 7, "coalition": ["server:1"]}]}
    honest = cv.run(TOWN.with_({**given, "aggregation": {"kind": "trusted"}}))
    false = cv.run(
        TOWN.with_({"aggregation": {"kind": "trusted"}}), behaviour=cv.Behaviour(parties={"server:1": Boasting})
    )
    moved = (false.estimates["estimate"] - honest.estimates["estimate"])[honest.estimates["cell"] == 1]
    (row,) = honest.attacks.to_dict("records")
    assert row["value"] == pytest.approx(moved.mean())
    assert row["theory"] == pytest.approx(row["value"])


@pytest.mark.parametrize("answers", ["reports", "counts"])
def test_servers_refuse_small_sums_and_devices_rest(answers):
    keys = {"population": {"outside": 30, "answers": answers}}
    free = cv.run(TOWN.with_(keys)).rounds
    fewest = int(free["counted"].min())
    assert free["counted"].nunique() == 2
    lost = TOWN.with_({**keys, "mechanisms": [{"kind": "sampling_privacy", "sampling": 0.4}], "channel.loss_two": 1.0})
    assert cv.run(lost).rounds.query("round == 1")["counted"].min() > 0  # without a minimum nothing is refused
    engines = ["batches", "messages"] if answers == "reports" else ["batches"]
    for limit in ({"min_batch": fewest + 1}, {"min_gap_s": 90.0}, {"min_gap_s": 90.1}):
        same = [
            cv.run(TOWN.with_({**keys, "aggregation": {"kind": "secret_shared", **limit}, "sensing.engine": engine}))
            for engine in engines
        ]
        assert all(same[0].estimates.equals(one.estimates) and same[0].rounds.equals(one.rounds) for one in same)
        rounds = same[0].rounds
        if "min_batch" in limit:
            refused = free["counted"] == fewest
            assert (rounds["rejected"] == np.where(refused, free["counted"], 0)).all()
            numbers = same[0].estimates.groupby("query")["estimate"].apply(lambda found: found.abs().sum())
            assert ((numbers == 0).to_numpy() == refused.to_numpy()).all()
        elif limit["min_gap_s"] == 90.0:  # the time from one query to the next
            assert rounds["answered"].equals(free["answered"])
        else:
            assert rounds["answered"][0] == free["answered"][0]
            assert rounds["answered"][1] < free["answered"][1] - 30  # devices outside, and vehicles asked before


LEAVES = np.array([1.0, 0.9, 0.3, 0.6])


def silent(record, leaves):
    """The record as if messages of its first query left with a probability by cell."""
    first, *others = record.queries
    rng, sent = np.random.default_rng(4), first.recorded
    left = np.tile(rng.random(len(first.truth)) < leaves[first.truth], (record.mechanism.rounds, 1))
    messages = record_of(record.deployment, 1, sent.devices, sent.reports, left)
    return replace(record, queries=(replace(first, recorded=messages, leaves=leaves), *others))


@pytest.mark.parametrize("mechanism", [KRR, SP], ids=["k-ary", "sampling"])
@pytest.mark.parametrize(("deployment", "coalition"), [(Trusted(), "server:1"), (SecretShared(), "network")])
def test_silence_tells_what_enumeration_says(mechanism, deployment, coalition):
    record = silent(campaign(deployment, mechanism, vehicles=4000, queries=2), LEAVES)
    prior = shares_of(record)
    both = [attack(kind, [coalition]) for kind in ("silence", "link_rounds")]
    (used, ignored), _ = evaluate_attacks(record, *both)
    heard = success(mechanism, prior * LEAVES) if coalition == "server:1" else (prior * LEAVES).max()
    later = success(mechanism, prior) if coalition == "server:1" else prior.max()
    expected = (heard + (prior * (1.0 - LEAVES)).max() + later) / 2.0
    assert binomtest(round(used.success * used.trials), used.trials, expected).pvalue > FAMILY / COMPARED
    assert used.theory == pytest.approx(expected, abs=0.02)
    assert used.success > ignored.success + 0.02
    # Under a uniform prior devices are not spread by the weights of silence: no theory is stated.
    (even,), _ = evaluate_attacks(record, attack("silence", [coalition], prior="uniform"))
    assert even.theory is None
    # A device that sent nothing in any query that is seen is not known: the prior guesses.
    (alone,), _ = evaluate_attacks(record, attack("silence", [coalition], from_query=1, to_query=1))
    usual = int(prior.argmax())
    expected = heard + prior[usual] * (1.0 - LEAVES[usual])
    assert binomtest(round(alone.success * alone.trials), alone.trials, expected).pvalue > FAMILY / COMPARED


def test_silence_tells_nothing_where_all_cells_are_alike_or_devices_are_not_known():
    even = silent(campaign(Trusted(), KRR, vehicles=2000, queries=2), np.full(4, 0.7))
    (used, ignored), _ = evaluate_attacks(even, *(attack(kind, ["server:1"]) for kind in ("silence", "link_rounds")))
    assert used.success == ignored.success
    hidden = silent(campaign(Trusted(handles="query"), KRR, vehicles=4000, queries=2), LEAVES)
    (used, ignored), _ = evaluate_attacks(hidden, *(attack(kind, ["server:1"]) for kind in ("silence", "link_rounds")))
    prior = shares_of(hidden)
    usual = int(prior.argmax())
    expected = success(KRR, prior * LEAVES) + prior[usual] * (1 - LEAVES[usual]) + success(KRR, prior)
    assert binomtest(round(used.success * used.trials), used.trials, expected / 2).pvalue > FAMILY / COMPARED
    assert used.success >= ignored.success - 0.01


def test_refusals_and_tunnels_of_a_run_are_seen_by_servers_that_hold_shares():
    kinds = [{"kind": kind, "coalition": ["server:1"]} for kind in ("silence", "link_rounds")]
    busy = {"traffic.vehicles": 2000, "campaigns.0.queries": 3, "campaigns.0.every_s": 60, "attacks": kinds}
    town = TOWN.with_({**busy, "aggregation": {"kind": "secret_shared"}})
    for cause in (
        {"behaviours": [{"kind": "refuse_cell", "cell": 2, "share": 0.8}]},
        {"channel": {"zones": [{"loss": 0.9, "cells": ["r1c2"]}]}},
    ):
        run = cv.run(town.with_(cause))
        used, ignored = run.attacks.to_dict("records")
        assert used["gain_low"] > 0.0
        assert ignored["gain"] == 0.0
        assert abs(used["success"] - used["theory"]) < 0.05
        assert (run.rounds["silent"].sum() > 0) == ("behaviours" in cause)


class Watching(cv.Party):
    """A server that keeps when messages arrive, and what they say."""

    seen: ClassVar[list] = []

    def receive(self, answer):
        self.seen.append((round(answer.arrives_s % 30.0, 6), int(answer.payload[0])))
        super().receive(answer)


def test_arrival_times_tell_no_cell_and_in_slots_not_who_is_late():
    exact = TOWN.with_(
        {"mechanisms": [{"kind": "no_privacy"}], "aggregation": {"kind": "trusted"}, "traffic.vehicles": 2000}
    )
    watching = cv.Behaviour(parties={"server:1": Watching})

    def arrivals(**keys):
        Watching.seen = []
        cv.run(exact.with_(keys), behaviour=watching)
        return np.array(Watching.seen)

    slow = arrivals(channel={"latency_s": {"kind": "exponential", "mean_s": 2.0}})
    groups = [slow[slow[:, 1] == cell, 0] for cell in np.unique(slow[:, 1])]
    assert kruskal(*(group for group in groups if len(group) > 4)).pvalue > FAMILY
    late = {"behaviours": [{"kind": "late", "share": 0.3, "wait_s": 4.0}]}
    assert np.unique(arrivals(**late)[:, 0]).tolist() == [0.0, 4.0]
    assert np.unique(arrivals(**late, channel={"slot_s": 5.0})[:, 0]).tolist() == [5.0]
    batches = cv.run(exact.with_({"channel": {"slot_s": 31.0}})).rounds
    assert (batches["late"] == batches["asked"]).all()
    heard = {"question": {"latency_s": {"kind": "exponential", "mean_s": 1.0}}, "slot_s": 5.0}
    assert set(np.unique(arrivals(channel=heard)[:, 0]) % 5.0) == {0.0}


def test_a_vehicle_alone_is_found_as_the_last_one_that_is_not_corrupted():
    record = campaign(SecretShared(), KRR, vehicles=40, seed=3)
    corrupted = attack("link_rounds", ["server:1", "vehicles:39"], name="last")
    (last, _, alone), _ = evaluate_attacks(record, corrupted, attack("lying_server", ["server:1"], lies=("alone",)))
    assert last.theory == pytest.approx(alone.theory)
    assert last.prior == pytest.approx(alone.prior)
    assert last.trials == alone.trials
