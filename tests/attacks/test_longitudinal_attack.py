"""Repeated queries to a parked car: linked or unlinked, with fresh or memoised coins."""

import dataclasses

import numpy as np
import pytest
from synthetic_campaigns import CELLS, SAMPLING, agrees, attack, campaign, evaluate_attacks, observe, servers_of

from mechanisms.inference.likelihood import log_likelihood
from mechanisms.local import KRandomizedResponse, LongitudinalUnary, RandomizedResponse, SamplingPrivacy
from simulator.aggregation.servers import PerRound, SecretShared, Trusted
from simulator.attacks.guesses import Prior
from simulator.attacks.reconstruction import LongitudinalAttack

ASKED = (1, 2, 5)
MECHANISMS = {
    "sampling": SAMPLING,
    "refreshed": SamplingPrivacy(cells=CELLS, sampling=0.2, refresh=0.5),
    "k-ary": KRandomizedResponse(cells=CELLS, epsilon=0.7),
    "coins": RandomizedResponse(cells=CELLS, first_coin=0.5, second_coin=0.5),
    "memoised": LongitudinalUnary(cells=CELLS, epsilon_permanent=2.0, epsilon_first=1.0),
}


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("handles", ["device", "query"])
def test_success_equals_theory_for_linked_and_unlinked_queries(name, handles):
    record = campaign(PerRound(handles=handles), MECHANISMS[name], vehicles=2000, queries=5)
    rows, _ = evaluate_attacks(record, attack("longitudinal", servers_of(record), asked=ASKED))
    assert [(row.metric, row.value, row.unit) for row in rows] == [("queries", t, "queries") for t in ASKED]
    assert all(row.trials == 2000 for row in rows)
    assert all(agrees(row) for row in rows)
    theories = [row.theory for row in rows]
    if handles == "device":
        assert theories[0] < theories[1] < theories[2]
    else:
        assert theories == pytest.approx([theories[0]] * 3)


def test_linked_queries_locate_a_parked_car():
    record = campaign(Trusted(), vehicles=2000, queries=12)
    (row,), _ = evaluate_attacks(record, attack("longitudinal", ["server:1"], asked=(12,)))
    assert row.theory > 1 - 0.6**12 - 0.01
    assert row.gain_low > 0.6


def test_repeated_queries_gain_nothing_below_the_threshold():
    record = campaign(SecretShared(servers=2), vehicles=500, queries=5)
    rows, _ = evaluate_attacks(record, attack("longitudinal", ["server:2"], asked=ASKED))
    for row in rows:
        assert row.gain == pytest.approx(0.0, abs=1e-12)
        assert row.theory == pytest.approx(row.prior)


def test_only_devices_that_stayed_in_place_are_targets():
    record = campaign(Trusted(), vehicles=600, queries=2)
    first, second = record.queries
    truth = first.truth.copy()
    truth[:200] = (truth[:200] + 1) % (CELLS + 1)
    moved = dataclasses.replace(first, truth=truth)
    fewer = second.among(np.arange(100, 600))
    record = dataclasses.replace(record, queries=(moved, fewer))
    rows, _ = evaluate_attacks(record, attack("longitudinal", ["server:1"], asked=(1, 2)))
    assert [row.trials for row in rows] == [600, 400]
    assert agrees(rows[1])


def test_devices_that_left_are_no_targets():
    record = campaign(Trusted(), vehicles=900, queries=3)
    first, second, third = record.queries
    queries = (first, second.among(np.arange(0, 900, 2)), third.among(np.arange(300, 900)))
    rows, _ = evaluate_attacks(
        dataclasses.replace(record, queries=queries), attack("longitudinal", ["server:1"], asked=(1, 2, 3))
    )
    assert [row.trials for row in rows] == [900, 450, 300]
    for row in rows:
        assert row.theory <= 1.0
        assert agrees(row)


def test_query_number_without_a_row_gives_a_note():
    record = campaign(Trusted(), vehicles=90, queries=2)
    first, second = record.queries
    left = dataclasses.replace(record, queries=(first.among(np.arange(40)), second.among(np.arange(40, 90))))
    rows, notes = evaluate_attacks(left, attack("longitudinal", ["server:1"], asked=(1, 2, 3)))
    assert [row.value for row in rows] == [1]
    assert notes == [
        "attacks.longitudinal: rush, sampling: no target stayed in one place through 2 queries",
        "attacks.longitudinal: rush, sampling: it has fewer than 3 queries",
    ]


def test_success_under_loss_uses_the_received_reports():
    record = campaign(PerRound(), vehicles=3000, queries=3, loss=0.3)
    mechanism = KRandomizedResponse(cells=CELLS, epsilon=1.5)
    (row,), _ = evaluate_attacks(record, attack("longitudinal", ["server:1", "server:2"], asked=(3,)))
    (whole,), _ = evaluate_attacks(
        campaign(PerRound(), vehicles=3000, queries=3), attack("longitudinal", ["server:1", "server:2"], asked=(3,))
    )
    assert row.theory is None
    assert row.prior < row.success < whole.success
    record = campaign(PerRound(), mechanism, vehicles=3000, queries=3, loss=0.3)
    (row,), _ = evaluate_attacks(record, attack("longitudinal", ["server:1"], asked=(3,)))
    assert agrees(row)


def test_received_reports_of_all_queries_are_combined():
    record = campaign(PerRound(), vehicles=300, queries=3, loss=0.4)
    seen = observe(record, ["server:1", "server:2"])
    occupancy = record.queries[-1].occupancy
    prior_3 = Prior.from_counts({3: occupancy})
    found = LongitudinalAttack([1, 2, 3], 3).guess(seen, prior_3, rng=np.random.default_rng(1))
    guesses = {h: g for one in found for h, g in zip(one.handles.tolist(), one.cells.tolist(), strict=True)}
    with np.errstate(divide="ignore"):
        prior = np.log(occupancy / occupancy.sum())
    for place, device in enumerate(record.queries[0].recorded.devices.tolist()):
        logs = prior.copy()
        for query in record.queries:
            rounds = np.flatnonzero(query.recorded.in_time[:, place]) + 1
            if len(rounds):
                reports = [query.recorded.reports[r - 1][place : place + 1] for r in rounds]
                logs += log_likelihood(SAMPLING, reports, rounds.tolist())[0]
        if device in guesses:
            assert logs[guesses[device]] >= logs.max() - 1e-9
