"""Attack success equals theory for each mechanism and deployment; below the threshold it equals the prior."""

import numpy as np
import pytest
from synthetic_campaigns import (
    CELLS,
    DEPLOYMENTS,
    FULL_COALITIONS,
    SAMPLING,
    agrees,
    attack,
    campaign,
    evaluate_attacks,
    servers_of,
)

from mechanisms import local
from mechanisms.inference.likelihood import log_likelihood, posterior
from simulator.aggregation.servers import PerRound, SecretShared, ThresholdShared

MECHANISMS = {
    "sampling": SAMPLING,
    "sampling, refreshed": local.SamplingPrivacy(cells=CELLS, sampling=0.4, refresh=0.3),
    "sampling, no blank zero": local.SamplingPrivacy(cells=CELLS, sampling=0.3, blank_zero=0.0),
    "binary sampling": local.BinarySamplingPrivacy(cells=CELLS, sampling=0.3),
    "no privacy": local.NoPrivacy(cells=CELLS),
    "k-ary": local.KRandomizedResponse(cells=CELLS, epsilon=1.5),
    "coins": local.RandomizedResponse(cells=CELLS, first_coin=0.8, second_coin=0.2),
    "oue": local.OptimisedUnary(cells=CELLS, epsilon=2.0),
    "olh": local.LocalHashing(cells=CELLS, epsilon=2.0),
    "subset": local.SubsetSelection(cells=CELLS, epsilon=1.0),
    "hadamard": local.HadamardResponse(cells=CELLS, epsilon=1.5),
    "longitudinal": local.LongitudinalUnary(cells=CELLS, epsilon_permanent=2.0, epsilon_first=1.0),
    "laplace": local.DistributedLaplace(cells=CELLS, epsilon=1.0, devices=20),
}
ROUNDS = ("round_one", "round_two", "link_rounds", "shares")


def simulated_success(mechanism, prior, *, trials, rng):
    """Mean posterior probability of the best guess for simulated devices in one round, and its standard error."""
    truth = rng.choice(len(prior), size=trials, p=prior).astype(np.int32)
    reports = mechanism.answer(1, truth, mechanism.toss(mechanism.enrol(trials, rng=rng), rng=rng))
    sure = posterior(log_likelihood(mechanism, [reports]), prior).max(axis=1)
    return sure.mean(), sure.std(ddof=1) / np.sqrt(trials)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize(
    "deployment", [PerRound(), SecretShared(servers=2), ThresholdShared()], ids=lambda one: one.kind
)
def test_success_equals_theory_for_every_mechanism(name, deployment):
    mechanism = MECHANISMS[name]
    record = campaign(deployment, mechanism, vehicles=2000)
    servers = servers_of(record)
    kinds = ROUNDS if deployment.sharing is not None else ROUNDS[:3]
    rows, notes = evaluate_attacks(record, *(attack(kind, servers) for kind in kinds))
    assert notes == []
    rows = [row for row in rows if row.metric is None]
    assert len(rows) == len(kinds)
    for row in rows:
        if row.theory is None:
            assert name == "olh"
            rng = np.random.default_rng(1)
            prior = record.queries[0].occupancy / 2000
            success, error = simulated_success(mechanism, prior, trials=20_000, rng=rng)
            assert abs(row.success - success) < 6 * np.hypot(error, np.sqrt(0.25 / row.trials))
        else:
            assert row.theory >= row.prior - 1e-12
            assert agrees(row)
        assert row.gain == row.success - row.prior
        assert row.gain_low <= row.gain <= row.gain_high


def test_linked_rounds_success_equals_item_2_of_papers_md():
    record = campaign(PerRound(), vehicles=20_000)
    (row,), _ = evaluate_attacks(record, attack("link_rounds", ["server:1", "server:2"]))
    q = record.queries[0].occupancy / 20_000
    share, blank, most = 0.4, 0.6 / 7, q.max()
    theory = share * (1 - q[0]) + (1 - share - blank) * most + max(q[0] * (blank + share), blank * q[1:].max())
    assert row.theory == pytest.approx(theory, rel=1e-12)
    assert agrees(row)
    assert row.gain_low > 0.2


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_gain_is_zero_below_the_threshold_and_full_at_it(name):
    record = campaign(DEPLOYMENTS[name], vehicles=1000, queries=2)
    full_coalition = FULL_COALITIONS[name]
    grown = len(full_coalition) > 1
    rows, _ = evaluate_attacks(record, *(attack(kind, full_coalition, growing=grown) for kind in ROUNDS[1:]))
    assert len(rows) == len(full_coalition) * (3 if name.startswith("shared") else 2)
    for row in rows:
        if row.colluding < len(full_coalition):
            # Every guess equals the prior's guess: with all vehicles as targets the gain is exactly 0.
            assert row.gain == pytest.approx(0.0, abs=1e-12)
            assert row.epsilon_lower in {0.0, None}
            assert row.theory == pytest.approx(row.prior) or row.theory is None
        else:
            assert row.gain_low > 0.1
            assert agrees(row)
        assert row.trials == 2000
        assert row.servers == record.servers


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_truth_independent_round_gains_exactly_nothing(name):
    mechanisms = [SAMPLING, MECHANISMS["sampling, refreshed"], MECHANISMS["binary sampling"]]
    for mechanism in mechanisms:
        record = campaign(DEPLOYMENTS[name], mechanism, vehicles=300, outside=50)
        rows, _ = evaluate_attacks(record, attack("round_one", FULL_COALITIONS[name]))
        assert rows[0].gain == pytest.approx(0.0, abs=1e-12)
        assert rows[0].theory == pytest.approx(rows[0].prior)
        assert rows[0].metric is None


def test_zero_in_round_one_reveals_sampling():
    rows, _ = evaluate_attacks(campaign(PerRound(), vehicles=5000), attack("round_one", ["server:1"]))
    row = rows[1]
    assert (row.metric, row.unit) == ("sampled_posterior", "probability")
    assert row.value == pytest.approx(0.4 / (0.4 + 0.6 / 7))
    assert row.prior == 0.6
    assert row.theory == pytest.approx(0.4 + 0.6 * 6 / 7)
    assert agrees(row)
    rows, _ = evaluate_attacks(
        campaign(PerRound(), MECHANISMS["sampling, no blank zero"]), attack("round_one", ["server:1"])
    )
    assert (rows[1].value, rows[1].success) == (1.0, 1.0)
    rows, _ = evaluate_attacks(
        campaign(PerRound(), MECHANISMS["sampling, refreshed"]), attack("round_one", ["server:1"])
    )
    assert rows[1].success is None
    assert rows[1].value == pytest.approx(0.4 / (0.4 + 0.6 / 7))


@pytest.mark.parametrize("name", ["per round", "per round, pseudonyms", "shared, paired", "shuffled"])
def test_lost_reports_are_guessed_from_the_prior(name):
    record = campaign(DEPLOYMENTS[name], vehicles=2000, loss=0.3)
    (row,), _ = evaluate_attacks(record, attack("link_rounds", FULL_COALITIONS[name]))
    whole = campaign(DEPLOYMENTS[name], vehicles=2000)
    (full,), _ = evaluate_attacks(whole, attack("link_rounds", FULL_COALITIONS[name]))
    assert row.trials == 2000
    assert row.prior < row.theory < full.theory
    assert agrees(row)
    (row,), _ = evaluate_attacks(
        campaign(DEPLOYMENTS[name], vehicles=500, loss=1.0), attack("link_rounds", FULL_COALITIONS[name])
    )
    assert row.gain == pytest.approx(0.0, abs=1e-12)
    assert row.theory == pytest.approx(row.prior)


def test_targets_are_a_sample_with_its_own_prior():
    record = campaign(PerRound(), vehicles=5000, queries=3)
    both = ["server:1", "server:2"]
    (row,), _ = evaluate_attacks(record, attack("link_rounds", both, targets=400))
    (every,), _ = evaluate_attacks(record, attack("link_rounds", both))
    assert (row.trials, every.trials) == (1200, 15_000)
    assert row.prior == pytest.approx(every.prior, abs=0.1)
    assert agrees(row)
    rows, _ = evaluate_attacks(
        record, *(attack(kind, ["server:1"], targets=400) for kind in ("round_one", "link_rounds"))
    )
    for row in (rows[0], rows[2]):
        # The same targets are queried each time, so only coins vary.
        assert row.gain == pytest.approx(0.0, abs=1e-12)


def test_memoised_bits_add_no_independent_trials():
    record = campaign(PerRound(), MECHANISMS["longitudinal"], vehicles=500, queries=8)
    fresh = campaign(PerRound(), MECHANISMS["k-ary"], vehicles=500, queries=8)
    (kept,), _ = evaluate_attacks(record, attack("round_two", ["server:1"]))
    (other,), _ = evaluate_attacks(fresh, attack("round_two", ["server:1"]))
    assert (kept.trials, other.trials) == (4000, 4000)
    assert kept.gain_high - kept.gain_low > 2.5 * (other.gain_high - other.gain_low)
    (one,), _ = evaluate_attacks(
        campaign(PerRound(), MECHANISMS["longitudinal"], vehicles=500), attack("round_two", ["server:1"])
    )
    assert kept.epsilon_lower < one.epsilon_lower + 0.5


def test_uniform_prior_learns_from_published_counts_and_more_with_each_member():
    """The counts show the most frequent cell; server 1 alone links nothing to a cell, but sees the counts as well."""
    record = campaign(PerRound(), vehicles=20_000)
    rows, _ = evaluate_attacks(record, attack("link_rounds", ["server:1", "server:2"], growing=True, prior="uniform"))
    (public,), _ = evaluate_attacks(record, attack("link_rounds", [], prior="uniform"))
    assert all(row.prior == pytest.approx(1 / 7) and row.theory is None for row in (public, *rows))
    most = record.queries[0].occupancy.max() / 20_000
    assert public.success == pytest.approx(most, abs=1e-9)
    assert rows[0].success == pytest.approx(most, abs=1e-9)
    # Sampled in a cell: revealed. Otherwise, after an uninformative 0 or a blank: the most frequent cell, or outside.
    assert rows[1].gain_low > 0.3
    # Round one alone has no counts that depend on the truth: every guess is drawn.
    (alone,), _ = evaluate_attacks(record, attack("round_one", [], prior="uniform"))
    assert alone.theory == pytest.approx(1 / 7)
    assert agrees(alone)


def test_mixer_and_network_without_a_server_learn_nothing():
    record = campaign(DEPLOYMENTS["shuffled"], vehicles=1000)
    for coalition in (["mixer"], ["network"], ["mixer", "network", "vehicles:10"]):
        (row,), _ = evaluate_attacks(record, attack("link_rounds", coalition))
        assert row.gain == pytest.approx(0.0, abs=1e-12)
        assert row.theory == pytest.approx(row.prior)
    assert row.coalition == "mixer, network, vehicles:10"
    assert row.colluding == 12


def test_two_of_three_servers_link_their_rounds():
    mechanism = local.AnonymizedDeniable(
        cells=3, shift=0.4, yes_second=0.3, yes_third=0.3, no_second=0.2, no_third=0.4, onward=0.5
    )
    record = campaign(PerRound(), mechanism, vehicles=6000)
    rows, _ = evaluate_attacks(record, attack("link_rounds", ["server:1", "server:2", "server:3"], growing=True))
    theories = [row.theory for row in rows]
    assert theories == sorted(theories)
    assert all(agrees(row) for row in rows)
