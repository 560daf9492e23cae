"""Counterfactuals: sums recomputed with devices dropped or corrupted; the recorded campaign stays unchanged."""

import dataclasses
import itertools
from collections import defaultdict

import numpy as np
import pytest
from scipy.stats import binom, norm
from synthetic_campaigns import CELLS, DEPLOYMENTS, FAMILY, SAMPLING, agrees, attack, campaign, evaluate_attacks

from mechanisms import local
from mechanisms.privacy import Report
from simulator.aggregation.servers import PerRound, SecretShared, Trusted
from simulator.attacks.counterfactual import others_dropped, released_twice
from simulator.attacks.counterfactual_games import remake
from simulator.attacks.guesses import Prior

REFRESHED = local.SamplingPrivacy(cells=CELLS, sampling=0.4, refresh=0.3)
ROBUST = SecretShared(servers=2, paired=True, robust=True)


@pytest.mark.parametrize("mechanism", [SAMPLING, REFRESHED], ids=["kept", "refreshed"])
@pytest.mark.parametrize("deployment", [PerRound(), SecretShared(paired=True)], ids=lambda one: one.kind)
def test_all_other_devices_dropped(mechanism, deployment):
    record = campaign(deployment, mechanism, vehicles=8000)
    rows, notes = evaluate_attacks(record, attack("drop_out", ["network"]), attack("link_rounds", record.parties))
    assert notes == []
    dropped, linked = rows
    assert agrees(dropped)
    if deployment.kind == "secret_shared":
        assert dropped.success == linked.success
        assert dropped.theory == pytest.approx(linked.theory)
    else:
        # Round one still hides the target among all devices.
        (two,), _ = evaluate_attacks(record, attack("round_two", record.parties))
        assert two.prior < dropped.theory < linked.theory
        assert dropped.theory >= two.theory - 1e-12


def test_success_rises_when_few_other_devices_are_dropped():
    theories = []
    for vehicles in (3, 30, 300):
        rows = [
            evaluate_attacks(campaign(PerRound(), vehicles=vehicles, seed=seed), attack("drop_out", ["network"]))[0][0]
            for seed in range(900 // vehicles)
        ]
        trials = sum(row.trials for row in rows)
        success = sum(row.success * row.trials for row in rows) / trials
        theory = sum(row.theory * row.trials for row in rows) / trials
        # Targets of a query share round one's counts, so the spread is wider than that of independent trials.
        assert abs(success - theory) < norm.isf(FAMILY) * np.sqrt(2 * 0.25 / trials)
        theories.append(theory)
    assert len(set(theories)) == 3


@pytest.mark.parametrize("mechanism", [SAMPLING, REFRESHED], ids=["kept", "refreshed"])
def test_dropping_the_target_reveals_it_only_if_released_twice(mechanism):
    record = campaign(PerRound(), mechanism, vehicles=8000)
    (once, twice), _ = evaluate_attacks(record, attack("drop_out", ["server:1"], dropped="target"))
    assert once.gain == pytest.approx(0.0, abs=1e-12)
    assert once.theory == pytest.approx(once.prior)
    assert twice.metric == "released_twice"
    assert twice.gain_low > 0.2
    assert agrees(twice)


def test_memoised_bits_widen_the_interval_of_the_isolated_target():
    """The same bits in twenty queries are one trial per device, not twenty."""
    mechanism = local.LongitudinalUnary(cells=CELLS, epsilon_permanent=2.2, epsilon_first=2.0)
    missed = 0
    for seed in range(20):
        record = campaign(Trusted(), mechanism, vehicles=100, queries=20, seed=seed)
        (row,), _ = evaluate_attacks(record, attack("drop_out", ["network"]), seed=seed)
        missed += not row.gain_low <= row.theory - row.prior <= row.gain_high
        assert row.epsilon_lower <= mechanism.claim(Report(1)).epsilon
    assert missed <= binom.isf(FAMILY, 20, 0.05)


def test_one_round_drop_out_equals_the_targets_own_report():
    mechanism = local.KRandomizedResponse(cells=CELLS, epsilon=1.0)
    record = campaign(Trusted(), mechanism, vehicles=4000)
    rows, _ = evaluate_attacks(record, attack("drop_out", ["network"]), attack("round_two", ["server:1"]))
    assert rows[0].success == rows[1].success
    rows, notes = evaluate_attacks(record, attack("drop_out", ["network"], dropped="target"))
    assert rows == []
    assert len(notes) == 1
    assert "two-round Sampling Privacy only" in notes[0]
    _, notes = evaluate_attacks(record, attack("drop_out", ["network"], dropped="target", mechanisms=("sampling",)))
    assert "two-round Sampling Privacy only" in notes[0]
    _, notes = evaluate_attacks(
        campaign(PerRound(), local.BinarySamplingPrivacy(cells=3, sampling=0.3)), attack("drop_out", ["network"])
    )
    assert "two-round Sampling Privacy only" in notes[0]


def test_drop_out_success_equals_theory_under_loss():
    record = campaign(SecretShared(paired=True), vehicles=6000, loss=0.2)
    (row,), _ = evaluate_attacks(record, attack("drop_out", ["network"]))
    assert agrees(row)
    assert row.trials == 6000


@pytest.mark.parametrize("deployment", [*DEPLOYMENTS.values(), ROBUST], ids=[*DEPLOYMENTS, "robust"])
@pytest.mark.parametrize("loss", [0.0, 0.2])
def test_unchanged_remake_equals_the_original_estimate(deployment, loss):
    record = campaign(deployment, vehicles=500, outside=100, loss=loss)
    (query,) = record.queries
    rows = np.arange(40) * 3
    again = remake(record, query, rows, None, rng=np.random.default_rng(1))
    if deployment.paired and loss:
        aggregator = deployment.aggregator(SAMPLING, devices=1, rng=np.random.default_rng(1))
        aggregator.receive_group(query.counts, np.ones(2, dtype=bool), devices=query.counted[0])
        for round_ in (1, 2):
            aggregator.close_round(round_, asked=600, answered=query.counted[0])
        expected = aggregator.estimate().count
    else:
        expected = SAMPLING.estimate(query.counts, counted=query.counted, asked=query.asked).count
    assert np.allclose(again, expected, rtol=1e-12, atol=1e-9)


MECHANISMS = {
    "sampling": SAMPLING,
    "refreshed": REFRESHED,
    "k-ary": local.KRandomizedResponse(cells=CELLS, epsilon=1.5),
    "coins": local.RandomizedResponse(cells=CELLS, first_coin=0.8, second_coin=0.2),
    "oue": local.OptimisedUnary(cells=CELLS, epsilon=2.0),
    "binary": local.BinarySamplingPrivacy(cells=CELLS, sampling=0.3),
}


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("name", MECHANISMS)
def test_poisoning_inflation_equals_theory(name):
    mechanism = MECHANISMS[name]
    record = campaign(SecretShared(), mechanism, vehicles=2000, queries=4)
    (honest, crafted), _ = evaluate_attacks(record, attack("poisoning", ["vehicles:200"], cell=3))
    # Only the honest reports of the corrupted vary: 200 devices' share of the estimate, in each of 4 queries.
    occupancy = np.bincount(record.queries[0].truth, minlength=CELLS + 1) // 10
    spread = mechanism.std_error(occupancy.astype(np.int64))[2] / np.sqrt(4)
    assert (honest.metric, honest.unit, honest.trials) == ("inflation", "vehicles", 4)
    assert abs(honest.value - honest.theory) < 1.3 * norm.isf(FAMILY) * spread
    assert honest.value > 150
    assert crafted.metric == "crafted_inflation"
    assert crafted.value > 100 * honest.value
    assert abs(crafted.value - crafted.theory) < 1.3 * norm.isf(FAMILY) * spread
    assert (honest.prior, honest.success, honest.gain, honest.epsilon_lower) == (None,) * 4
    assert honest.colluding == 200


@pytest.mark.parametrize("deployment", [ROBUST, PerRound(), DEPLOYMENTS["shuffled"]], ids=["robust", "plain", "mixed"])
def test_crafted_reports_gain_no_more_than_false_ones_if_checked(deployment):
    record = campaign(deployment, vehicles=2000)
    (honest, crafted), _ = evaluate_attacks(record, attack("poisoning", ["vehicles:100"], magnitude=10**6))
    assert (crafted.value, crafted.theory) == (honest.value, honest.theory)


def test_poisoning_under_loss_has_a_value_but_no_theory():
    record = campaign(PerRound(), vehicles=2000, loss=0.3)
    rows, _ = evaluate_attacks(record, attack("poisoning", ["vehicles:500"]))
    for row in rows:
        assert row.theory is None
        assert row.value > 500


def test_infeasible_attacks_give_a_note():
    refreshed = campaign(Trusted(), REFRESHED, vehicles=100)
    lossy = campaign(Trusted(), vehicles=100, loss=0.5)
    laplace = campaign(SecretShared(), local.DistributedLaplace(cells=3, epsilon=1.0, devices=10), vehicles=100)
    for record, kind, words in (
        (refreshed, "known_others", "without refresh publishes numbers"),
        (lossy, "known_others", "not every report was counted"),
        (laplace, "poisoning", "none is the greatest"),
    ):
        rows, notes = evaluate_attacks(record, attack(kind, ["vehicles:5"]))
        assert rows == []
        (note,) = notes
        assert note.startswith(f"attacks.{kind}: rush, sampling: ")
        assert words in note


def test_attacks_leave_the_record_unchanged():
    record = campaign(SecretShared(), vehicles=300)
    (query,) = record.queries
    before = [query.counts.copy(), query.truth.copy(), *(one.copy() for one in query.recorded.reports)]
    every = [attack("poisoning", ["vehicles:50"]), attack("drop_out", ["network"]), attack("shares", ["server:1"])]
    evaluate_attacks(record, *every, attack("known_others", ["network"]), attack("longitudinal", ["server:1"]))
    after = [query.counts, query.truth, *query.recorded.reports]
    assert all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))
    assert dataclasses.is_dataclass(query)


@pytest.mark.parametrize("refresh", [0.0, 0.4])
def test_posterior_of_round_two_given_counts_of_round_one(refresh):
    mechanism = local.SamplingPrivacy(cells=2, sampling=0.4, blank_zero=0.3, blank=[0.2, 0.1], refresh=refresh)
    blanks, again = mechanism.blanks, mechanism.blanks / 0.6
    pair = np.zeros((3, 3, 3))  # first, second, truth
    for truth in range(3):
        pair[0, truth, truth] += 0.4
        pair[:, :, truth] += np.diag(blanks) * (1 - refresh) + refresh * np.outer(blanks, again)
    q = np.array([0.5, 0.2, 0.3])
    for first in ([1, 2, 2], [4, 0, 1], [0, 3, 0], [2, 1, 0], [9, 1, 5]):
        counts = np.array([first])
        given = np.einsum("w,wvt->vt", counts[0] / counts.sum() / pair.sum(axis=1)[:, 0], pair) * q
        second = np.eye(3, dtype=np.int64)
        found = others_dropped(
            mechanism, counts[0], second, Prior({1: q}), 1, first_round=int(counts.sum()), rng=np.random.default_rng(1)
        )
        for value, guess in enumerate(found.tolist()):
            assert given[value, guess] >= given[value].max() - 1e-12


PRIOR = np.array([0.2, 0.3, 0.1, 0.4])


def pairs(mechanism, truth):
    """Both reports of a device, with their probability."""
    found = defaultdict(float)
    found[0, truth] += mechanism.sampling
    again = mechanism.blanks / (1.0 - mechanism.sampling)
    for blank, mass in enumerate(mechanism.blanks.tolist()):
        found[blank, blank] += mass * (1.0 - mechanism.refresh)
        for other, share in enumerate(again.tolist()):
            found[blank, other] += mass * mechanism.refresh * share
    return found


@pytest.mark.parametrize("refresh", [0.0, 0.6])
@pytest.mark.parametrize("round_", [None, 1, 2])
@pytest.mark.parametrize(
    ("visible", "positive"),
    [*((mask, False) for mask in itertools.product([False, True], repeat=3)), ((True, True, True), True)],
)
def test_guess_is_optimal_given_the_visible_differences_and_perhaps_one_report(refresh, round_, visible, positive):
    mechanism = local.SamplingPrivacy(cells=3, sampling=0.35, blank_zero=0.2, refresh=refresh)
    joint = defaultdict(lambda: np.zeros(len(PRIOR)))
    for truth, share in enumerate(PRIOR.tolist()):
        for pair, mass in pairs(mechanism, truth).items():
            own = np.bincount([pair[1]], minlength=4) - np.bincount([pair[0]], minlength=4)
            seen = np.where(visible, np.maximum(own[1:], 0) if positive else own[1:], 0)
            read = None if round_ is None else pair[round_ - 1]
            joint[tuple(seen.tolist()), read][truth] += share * mass
    success = 0.0
    for (seen, report), masses in joint.items():
        guess = released_twice(
            mechanism,
            np.array([seen]),
            Prior({1: PRIOR}),
            1,
            visible=None if positive and round_ is None else np.array([visible]),
            positive=positive,
            read=None if round_ is None else (round_, np.array([report])),
            rng=np.random.default_rng(1),
        )
        success += masses[guess[0]]
    assert success == pytest.approx(sum(masses.max() for masses in joint.values()), abs=1e-12)
