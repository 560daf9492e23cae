"""Runs of campaigns with a budget: claims of any window, both engines, counts and reports, and `all-day`."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import scenarios
from mechanisms.planning import Target, plan
from scenarios import ScenarioError
from simulator import RunResult, run

KINDS = ("uniform", "population_uniform", "absorption", "population_absorption")
MECHANISMS = [
    {"name": "kary", "kind": "k_randomized_response", "epsilon": 1.0},
    {"name": "olh", "kind": "olh", "epsilon": 2.0},
]
TIMES = {"start_s": 60, "queries": 12, "every_s": 60, "round_gap_s": 15, "deadline_s": 15}
TABLES = ("estimates", "rounds", "servers", "scores", "claims")


def budget(kind, window=3):
    return {**TIMES, "name": kind, "budget": {"kind": kind, "window": window}}


def town(**overrides):
    given = {
        "scenario.duration_s": 900,
        "traffic.vehicles": 200,
        "traffic.parked": "answer",
        "mechanisms": MECHANISMS,
        "campaigns": [{**TIMES, "name": "fresh"}, *map(budget, KINDS)],
        "claims.queries": [1, 3, 7],
        "claims.crowds": [5],
        **overrides,
    }
    return scenarios.load("tiny", overrides=given)


def pure(result):
    """Return the first row of each claim: ε at δ = 0. The others are of listed values of ε."""
    key = ["campaign", "mechanism", "view", "adjacency", "queries", "crowd", "colluding"]
    return result.claims.drop_duplicates(key)


@pytest.fixture(scope="module")
def by_batches():
    return run(town())


def test_any_window_has_the_budget_and_other_numbers_of_queries_what_they_use(by_batches):
    claims = pure(by_batches)
    linked = claims[claims["view"] == "linked_reports"].set_index(["campaign", "mechanism", "queries"])["epsilon"]
    for name, epsilon in (("kary", 1.0), ("olh", 2.0)):
        fresh = [linked[np.nan, name, queries] for queries in (1, 3, 7)]
        np.testing.assert_allclose(fresh, [epsilon, 3 * epsilon, 7 * epsilon])
        for kind, parts in zip(KINDS, ([1, 3, 7], [3, 3, 9], [2, 3, 7], [3, 3, 9]), strict=True):
            found = [linked[kind, name, queries] for queries in (1, 3, 7)]
            np.testing.assert_allclose(found, epsilon * np.array(parts) / 3)
    released = claims.query("view == 'released_counts' and queries == 3")
    within = released.dropna(subset="campaign").groupby(["campaign", "mechanism"])["epsilon"].max()
    assert (within.xs("kary", level="mechanism") <= 1.0 + 1e-12).all()
    assert (within.xs("olh", level="mechanism") <= 2.0 + 1e-12).all()
    basis = claims.dropna(subset="campaign").groupby("campaign")["basis"].first()
    assert basis["uniform"].startswith("Uniform budget (LBU): ε = 1 for any 3 consecutive queries, ε/3 at each. ")
    assert "answers exactly once, with ε = 1, in any 3" in basis["population_uniform"]
    assert basis["absorption"].startswith("Budget absorption (LBA): ε = 1 for any 3 consecutive queries. ")
    assert "answers at most once, with ε = 1, in any 3" in basis["population_absorption"]


def test_rows_for_the_window_are_added():
    claims = run(town(**{"claims.queries": [1], "campaigns": [budget("absorption", window=5)]})).claims
    assert set(claims["queries"]) == {1, 5, 12}  # also those of the campaign
    assert set(claims["campaign"]) == {"absorption"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_campaign_of_one_query_only_publishes_and_its_claims_are_those_of_one_query(kind):
    campaign = {**budget(kind), "queries": 1, "every_s": None}
    claims = pure(run(town(**{"claims.queries": [1], "campaigns": [campaign]})))
    released = claims.query("view == 'released_counts' and queries == 1").dropna(subset="campaign")
    most = released.groupby("mechanism")["epsilon"].max()
    share = dict(zip(KINDS, (1, 3, 2, 3), strict=True))[kind] / 3
    assert most.to_dict() == pytest.approx({"kary": share, "olh": 2 * share})


def test_a_budget_changes_no_other_campaign(by_batches):
    alone = run(town(campaigns=[{**TIMES, "name": "fresh"}]))
    for table in ("estimates", "rounds", "scores"):
        both = getattr(by_batches, table)
        pd.testing.assert_frame_equal(both[both["campaign"] == "fresh"].reset_index(drop=True), getattr(alone, table))


def test_uniform_budget_is_the_mechanism_with_its_part(by_batches):
    part = [{**one, "epsilon": one["epsilon"] / 3} for one in MECHANISMS]
    alone = run(town(mechanisms=part, campaigns=[{**TIMES, "name": "uniform"}]))
    both = by_batches.estimates
    rows = both[both["campaign"] == "uniform"].reset_index(drop=True)
    pd.testing.assert_frame_equal(rows, alone.estimates)


def test_the_run_states_what_was_published_again(by_batches):
    rounds = by_batches.rounds.query("campaign == 'absorption' and mechanism == 'kary' and round == 2")
    estimates = by_batches.estimates.query("campaign == 'absorption' and mechanism == 'kary'")
    values = estimates.pivot_table(index="query", columns="cell", values="estimate").to_numpy()
    again = (np.diff(values, axis=0) == 0).all(axis=1)
    np.testing.assert_array_equal(again, rounds["counted"].to_numpy()[1:] == 0)
    assert rounds["counted"].iloc[0] > 0
    new = int((rounds["counted"] > 0).sum())
    assert 1 < new < 12
    words = f"campaigns.absorption: kary published new estimates at {new} of 12 queries"
    assert sum(words in warning for warning in by_batches.facts["warnings"]) == 1


@pytest.mark.parametrize("aggregation", ["trusted", "shuffled", "secret_shared", "roadside_units"])
def test_messages_equal_batches(aggregation):
    changed = {
        "aggregation": {"kind": aggregation},
        "channel": {"loss": 0.1, "churn": 0.1, "latency_s": {"kind": "exponential", "mean_s": 4.0}},
        "population": {"outside": 30, "answers": "reports"},
        "traffic.vehicles": 60,
    }
    batches, messages = (run(town(**changed, **{"sensing.engine": e})) for e in ("batches", "messages"))
    for table in TABLES:
        pd.testing.assert_frame_equal(getattr(messages, table), getattr(batches, table), check_exact=True)
    claims = pure(batches).query("queries == 3 and mechanism == 'kary' and view != 'located_reports'")
    assert claims.dropna(subset="campaign")["epsilon"].max() == pytest.approx(1.0)


def test_each_device_of_a_uniform_population_answers_once_in_a_window(by_batches):
    """Its groups are a random third of the devices each: five standard deviations of their number."""
    rounds = by_batches.rounds.query("campaign == 'population_uniform' and mechanism == 'kary'")
    assert set(rounds["round"]) == {1}
    asked = rounds["asked"]
    assert (abs(rounds["answered"] - asked / 3) < 5 * np.sqrt(asked * 2 / 9)).all()
    assert (rounds["counted"] == rounds["answered"]).all()
    assert not [text for text in by_batches.facts["warnings"] if "population_uniform" in text]


def test_a_plan_of_a_uniform_population_errs_in_a_run_as_planned():
    """A window of four queries of devices outside every cell, by the plan's own section; the planned interval."""
    outside, queries = 40_000, 4
    target = Target(cells=36, population=outside, occupancy=0, epsilon=1.0, queries=queries)
    (made,) = plan(target, ("population_uniform",)).plans
    section = {"name": made.name, "kind": made.kind, **made.parameters}
    campaign = {**TIMES, "name": "once", "queries": queries, "budget": dict(made.budget)}
    given = {"mechanisms": [section], "campaigns": [campaign], "claims.queries": [queries]}
    town_of = town(**given, **{"population.outside": outside, "traffic.vehicles": 1})
    found = [run(scenarios.load(town_of, seed=seed)).estimates for seed in range(8)]
    cells = pd.concat(found)
    assert set(found[0]["cell"].unique()) <= set(range(1, 37))
    errors = (cells["estimate"] - cells["truth"]).to_numpy()
    # Cells of one query are nearly independent: four standard deviations of the mean square.
    spread = np.sqrt((2 + made.excess_kurtosis) / len(errors))
    assert np.mean(errors**2) / made.std_error**2 == pytest.approx(1.0, abs=4 * spread)
    assert abs(np.mean(errors)) < 4 * made.std_error / np.sqrt(len(errors))


@pytest.mark.parametrize("answers", ["counts", pytest.param("reports", marks=pytest.mark.slow)])
def test_errors_are_those_of_theory(answers):
    """Each campaign's first query: a new estimate, whose error in many cells is normal; 5 standard errors."""
    campaigns = [{**budget(kind), "queries": 3} for kind in KINDS]
    changed = {"population": {"answers": answers, "outside": 5000}, "campaigns": campaigns, "claims.queries": [1]}
    z = {kind: [] for kind in KINDS}
    for seed in range(12):
        result = run(scenarios.load(town(**changed), seed=seed))
        for kind in KINDS:
            rows = result.estimates.query("campaign == @kind and query == 1")
            z[kind].append(((rows["estimate"] - rows["truth"]) / rows["std_error"]).to_numpy())
    for values in z.values():
        joined = np.concatenate(values)
        assert abs(joined.mean()) < 5 / np.sqrt(len(values))  # cells of one run are correlated
        assert abs(np.mean(joined**2) - 1) < 5 * np.sqrt(2 / len(values))


def test_parts_out_of_range_and_queries_that_overlap_are_faults():
    with pytest.raises(ScenarioError, match=r"campaigns\.uniform\.budget\.window.*mechanisms\.kary.*epsilon"):
        run(town(campaigns=[budget("uniform", window=10_000_000)]))
    with pytest.raises(ScenarioError, match=r"campaigns\.absorption\.every_s.*2 times round_gap_s"):
        run(town(campaigns=[{**budget("absorption"), "every_s": 40}]))
    run(town(campaigns=[{**budget("uniform"), "every_s": 40}]))


@pytest.mark.slow
def test_all_day_has_the_results_that_its_comments_state(shipped_run):
    day = RunResult.load(shipped_run("all-day"))
    errors = day.scores.set_index("campaign")["rmse"]
    assert errors["uniform"] > 1.3 * errors["absorption"] > 1.3 * 1.3 * errors["population"] > 2 * errors["fresh"]
    # The theory at the truth, in which releases published again err by their drift, agrees within a tenth.
    assert (abs(day.scores["theory_rmse"] / day.scores["rmse"] - 1) < 0.1).all()
    linked = pure(day).query("view == 'linked_reports' and queries == 12").set_index("campaign")["epsilon"]
    assert linked[["uniform", "absorption", "population"]].to_numpy() == pytest.approx(2.0)
    assert linked[linked.index.isna()].to_numpy() == pytest.approx(24.0)
    assert day.estimates["query"].max() == 288
    asked = day.estimates.query("campaign == 'fresh'").groupby("query")["truth"].sum()
    assert asked.iloc[0] > 25_000
    # The page on budgets has these figures.
    page = (Path(__file__).parents[2] / "docs" / "how" / "over_time.md").read_text(encoding="utf-8")
    every = day.rounds.query("counted > 0 and answered > 0").groupby(["campaign", "query"])["round"].max()
    first = {"fresh": 1, "uniform": 1, "absorption": 2, "population": 2}
    titles = {"fresh": "a fresh ε at each query", "population": "`population_absorption`"}
    for campaign, publishing in first.items():
        of_hour = linked[linked.index.isna()].iloc[0] if campaign == "fresh" else linked[campaign]
        new = (every[campaign] >= publishing).sum()
        row = f"| {titles.get(campaign, f'`{campaign}`')} | {of_hour:.0f} | {errors[campaign]:,.0f} | {new} |"
        assert row in page
    assert f"A cell holds {day.estimates['truth'].mean():,.0f} vehicles on average" in page
