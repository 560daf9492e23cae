"""Attacks approach exact claims from below and do not exceed them."""

import math

import numpy as np
import pytest
from scipy.stats import binom
from synthetic_campaigns import CELLS, FAMILY, SAMPLING, attack, campaign, evaluate_attacks, filed_of, servers_of
from verification import compared

from mechanisms import local
from mechanisms.privacy import LinkedReports, ReleasedDifferences, Report
from mechanisms.privacy.audit import clopper_pearson, delta_lower_bound
from simulator.aggregation.servers import PerRound, Trusted
from simulator.attacks.guessing_games import score_cells
from simulator.attacks.membership import KnownOthers
from simulator.attacks.reconstruction import ROUND_ATTACKS
from simulator.attacks.scores import pool_scores
from simulator.attacks.world import Member, Observer, Truth

# Mechanism, attack, the view it has, and the fraction of ε that its lower bound reaches at least.
PURE = {
    "k-ary": (local.KRandomizedResponse(cells=CELLS, epsilon=1.5), "round_two", Report(1), 0.85),
    "coins": (local.RandomizedResponse(cells=CELLS, first_coin=0.5, second_coin=0.5), "link_rounds", Report(1), 0.2),
    "oue": (local.OptimisedUnary(cells=CELLS, epsilon=2.0), "round_two", Report(1), 0.3),
    "olh": (local.LocalHashing(cells=CELLS, epsilon=2.0), "round_two", Report(1), 0.3),
    "subset": (local.SubsetSelection(cells=CELLS, epsilon=1.0), "round_two", Report(1), 0.3),
    "hadamard": (local.HadamardResponse(cells=CELLS, epsilon=1.5), "round_two", Report(1), 0.3),
    "round two": (SAMPLING, "round_two", Report(2), 0.8),
    "refreshed": (local.SamplingPrivacy(cells=2, sampling=0.1, refresh=1.0), "link_rounds", LinkedReports(), 0.2),
}


@pytest.mark.parametrize("name", PURE)
def test_epsilon_is_approached_from_below(name):
    mechanism, kind, view, part = PURE[name]
    claimed = mechanism.claim(view).epsilon
    assert math.isfinite(claimed)
    record = campaign(PerRound(), mechanism, vehicles=60_000)
    (row,), _ = evaluate_attacks(record, attack(kind, servers_of(record), prior="uniform"))
    assert part * claimed < row.epsilon_lower <= claimed
    compared("bounds", row.epsilon_lower, 0.0, allowed=claimed)
    low, _ = clopper_pearson(round(row.success * row.trials), row.trials, alpha=FAMILY / len(PURE))
    assert low <= math.exp(claimed) * row.prior


def test_memoised_bits_bound_epsilon_over_queries_and_fresh_coins_do_not():
    kept = local.LongitudinalUnary(cells=CELLS, epsilon_permanent=2.0, epsilon_first=1.0)
    fresh = local.KRandomizedResponse(cells=CELLS, epsilon=1.0)
    bounds = {}
    for name, mechanism in (("kept", kept), ("fresh", fresh)):
        record = campaign(PerRound(), mechanism, vehicles=20_000, queries=12)
        rows, _ = evaluate_attacks(record, attack("longitudinal", ["server:1"], asked=(1, 4, 12), prior="uniform"))
        for row, queries in zip(rows, (1, 4, 12), strict=True):
            assert row.epsilon_lower <= mechanism.claim(Report(1, queries=queries)).epsilon
            compared("bounds", row.epsilon_lower, 0.0, allowed=mechanism.claim(Report(1, queries=queries)).epsilon)
        bounds[name] = [row.epsilon_lower for row in rows]
    assert max(bounds["kept"]) <= 2.0
    assert bounds["fresh"][-1] > 1.5 * fresh.claim(Report(1)).epsilon


def test_delta_of_linked_reports_is_approached():
    """With probability π_s a device in a cell is revealed, whatever ε is allowed."""
    record = campaign(PerRound(), vehicles=60_000)
    stored = filed_of(record)
    observer, prior = Observer(stored, (Member("server:1"), Member("server:2"))), Truth(stored.record).prior()
    (query,), rng = record.queries, np.random.default_rng(1)
    answer = ROUND_ATTACKS["link_rounds"].guess(observer.observe([1]), prior, rng=rng)
    played = score_cells(query, answer, prior, observer, rng=rng)
    inside = (played.truth > 0) & (played.truth != played.usual)
    half = rng.random(len(inside)) < 0.5
    inside_truths = played.truth[inside & half]
    elsewhere = played.guesses[~half & ~inside][: len(inside_truths)]
    hits_p = int(np.count_nonzero(played.guesses[inside & half] == inside_truths))
    # The event "a cell other than the usual one is named", for devices that are in none of these.
    hits_q = int(np.count_nonzero((elsewhere > 0) & (elsewhere != played.usual)))
    for epsilon in (0.5, 2.0, 5.0):
        found = delta_lower_bound(
            hits_p=hits_p,
            trials_p=len(inside_truths),
            hits_q=hits_q,
            trials_q=len(elsewhere),
            epsilon=epsilon,
            alpha=FAMILY,
        )
        claimed = SAMPLING.claim(LinkedReports()).delta(epsilon)
        assert claimed == pytest.approx(0.4)
        assert found <= claimed
        assert found > 0.9 * claimed or epsilon > 2


def total_variation(n, sampling, k):
    """Between the published differences of n devices and of n − 1, by their masses; those below k are one value."""
    masses = [binom.pmf(np.arange(n + 1), devices, sampling) for devices in (n, n - 1)]
    gap = masses[0] - masses[1]
    return (abs(gap[:k].sum()) if k else 0.0) / 2 + np.abs(gap[k or 0 :]).sum() / 2


@pytest.mark.parametrize("k", [None, 3])
def test_known_others_success_reaches_the_bound_of_released_differences(k):
    mechanism = local.SamplingPrivacy(cells=40, sampling=0.45)
    hits = trials = 0
    expected, bound, claims = [], [], []
    for seed in range(25):
        record = campaign(Trusted(), mechanism, vehicles=150, queries=2, seed=seed)
        stored = filed_of(record)
        rng = np.random.default_rng(seed)
        scores = list(KnownOthers(negatives=1000, k=k).play(Observer(stored), Truth(stored.record), rng=rng))
        (row,) = pool_scores(scores, rng=rng)
        hits += round(row["success"] * row["trials"])
        trials += row["trials"]
        expected.append((row["theory"], row["trials"]))
        for query in record.queries:
            crowds = np.repeat(query.occupancy[1:], query.occupancy[1:])  # of each target
            bound += [total_variation(int(n), 0.45, k) for n in crowds]
            # A claim is for at least so many devices.
            claims += [mechanism.claim(ReleasedDifferences(int(n), k=k)).delta(0.0) for n in crowds]
    theory = sum(one * weight for one, weight in expected) / trials
    assert theory == pytest.approx(0.5 + 0.5 * np.mean(bound), rel=1e-9)
    assert all(one <= claim + 1e-12 for one, claim in zip(bound, claims, strict=True))
    low, high = clopper_pearson(hits, trials, alpha=FAMILY / 4)
    assert low <= theory <= high
    assert trials > 1500
    assert theory > (0.58 if k is None else 0.5)
