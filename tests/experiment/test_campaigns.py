"""A campaign is one value: what it asks, when, through whom, and what is published."""

import numpy as np
import pytest

import scenarios
from mechanisms.local import LongitudinalUnary, OptimisedUnary
from scenarios import ScenarioError
from simulator.experiment.claims import KEY, tabulate_claims
from simulator.experiment.components import RunComponents

TINY = scenarios.load("tiny").tables()
TIMES = {"start_s": 60.0, "queries": 2, "every_s": 60.0, "round_gap_s": 10.0}
MECHANISMS = [{"name": "exact", "kind": "no_privacy"}, {"name": "oue", "kind": "oue", "epsilon": 2.0}]


def parts_of(*campaigns, mechanisms=MECHANISMS, **sections):
    given = [{"name": name, **TIMES, **keys} for name, keys in campaigns]
    tables = {"scenario": TINY["scenario"], "roads": TINY["roads"], "cells": TINY["cells"], "traffic": TINY["traffic"]}
    tables = {**tables, "campaigns": given, "mechanisms": mechanisms, **sections}
    return RunComponents.build(scenarios.Scenario(**tables))


def test_a_campaign_holds_its_own_servers_release_and_question():
    parts = parts_of(
        ("plain", {"aggregation": {"kind": "secret_shared", "servers": 3}}),
        ("noisy", {"release": {"kind": "laplace", "epsilon": 1.0}}),
        ("speeds", {"statistic": "mean_speed", "upper_mps": 20.0}),
    )
    plain, noisy, speeds = parts.campaigns
    assert [one.name for one in parts.campaigns] == ["plain", "noisy", "speeds"]
    assert (plain.deployment.kind, noisy.deployment.kind) == ("secret_shared", "trusted")
    assert (plain.release, plain.release_words, dict(plain.publications)) == ({"kind": "none"}, "none", {})
    assert noisy.publications["exact"].release.epsilon == 1.0
    assert noisy.release_words == "laplace (epsilon = 1)"
    assert (plain.statistic, speeds.statistic) == ("count", "mean_speed")
    assert speeds.release == {"kind": "none", "sample": 1.0, "lower_mps": 0.0, "upper_mps": 20.0, "min_vehicles": 2}
    assert [one.moments for one in parts.campaigns] == [range(1, 3)] * 3


def test_campaigns_without_a_budget_share_their_mechanisms_and_their_claims():
    parts = parts_of(
        ("first", {}),
        ("divided", {"budget": {"kind": "uniform", "window": 4}}),
        ("second", {}),
        mechanisms=MECHANISMS[1:],
    )
    first, divided, second = parts.campaigns
    assert first.mechanisms is second.mechanisms
    assert first.mechanisms["oue"].epsilon == 2.0
    assert divided.mechanisms["oue"].epsilon == 0.5
    assert (divided.budget.window, dict(divided.budget.epsilon), dict(divided.schedules)) == (4, {"oue": 2.0}, {})
    table = tabulate_claims(parts.scenario.claims, parts.campaigns, [])
    assert not table.duplicated(list(KEY)).any()
    assert list(dict.fromkeys(table["campaign"].fillna("all"))) == ["all", "divided"]
    assert table.loc[table["campaign"] == "divided", "basis"].str.startswith("Uniform budget (LBU): ε = 2").all()


def test_a_query_with_a_divided_budget_lasts_a_round_longer_and_the_run_as_long_as_its_last_query():
    budget = {"kind": "absorption", "window": 4}
    parts = parts_of(
        ("divided", {"budget": budget, "start_s": 280.0, "queries": 1}), ("plain", {}), mechanisms=MECHANISMS[1:]
    )
    divided, plain = parts.campaigns
    assert (len(divided.moments), len(plain.moments)) == (3, 2)
    assert set(divided.asked) == {"oue"} == set(divided.schedules)
    assert parts.end_s == 280.0 + 2 * 10.0 + 10.0 > parts.scenario.scenario.duration_s


def test_answers_drawn_as_counts_are_those_of_mechanisms_without_memory():
    kept = {"name": "kept", "kind": "longitudinal_unary", "epsilon_permanent": 3.0, "epsilon_first": 1.0}
    drawn = parts_of(("all", {}), mechanisms=[kept], population={"answers": "counts"})
    assert isinstance(drawn.mechanisms["kept"], LongitudinalUnary)
    assert isinstance(drawn.campaigns[0].mechanisms["kept"], OptimisedUnary)
    reported = parts_of(("all", {}), mechanisms=[kept])
    assert reported.campaigns[0].mechanisms["kept"] is reported.mechanisms["kept"]


def test_faults_of_all_campaigns_are_reported_at_once():
    noise = {"kind": "discrete_laplace", "scale": 2.0}
    (sampling,) = [one for one in TINY["mechanisms"] if one["kind"] == "sampling_privacy"]  # two rounds: no noise
    with pytest.raises(ScenarioError) as error:
        parts_of(
            ("first", {"aggregation": {"kind": "secret_shared", "noise": noise}, "release": {"kind": "none"}}),
            ("second", {"aggregation": {"kind": "secret_shared", "servers": 3}}),
            mechanisms=[sampling],
            channel={"outages": [{"server": "server:9", "from_s": 0.0, "to_s": 9.0}]},
        )
    assert [fault.path for fault in error.value.faults] == [
        "campaigns.first.aggregation.noise",
        "channel.outages[0].server",
    ]


def test_attacks_determine_of_how_many_vehicles_a_campaign_keeps_reports():
    attack = {"kind": "round_two", "coalition": ["server:1"], "targets": 7, "campaigns": ["watched"]}
    parts = parts_of(("watched", {}), ("other", {}), attacks=[{"name": "a", **attack}])
    assert [one.targets for one in parts.campaigns] == [7, 0]
    assert np.all([one.cells_of == parts.city.cells_of for one in parts.campaigns])
