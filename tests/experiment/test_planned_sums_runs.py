"""Unary encodings planned for published sums: their errors in runs with a million devices, and what attackers learn."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from mechanisms.planning import Target, plan
from mechanisms.privacy import ReleasedCounts
from simulator import run

CITY = """
scenario = {{name = "sums", duration_s = 1200}}
roads = {{source = "grid", rows = 15, columns = 20, spacing_m = 500}}
cells = {{kind = "square", size_m = 500}}
traffic = {{vehicles = 26_600, parked = "answer"}}
population = {{outside = 973_400}}
claims = {{epsilons = [0.5, 1.0, 2.0], crowds = [100]}}
aggregation = {{kind = "secret_shared", servers = 3}}
campaigns = [{{name = "occupancy", start_s = 600, every_s = 30, queries = 16, round_gap_s = 10, deadline_s = 10}}]
mechanisms = [
    {{name = "move", kind = "sue", epsilon = {move}}},
    {{name = "enter_leave", kind = "sue", epsilon = {enter_leave}}},
]
[[attacks]]
name = "others"
kind = "known_others"
coalition = ["server:1", "server:2"]
mechanisms = ["move", "enter_leave"]
"""
ADJACENCIES = ("move", "enter_leave")


@pytest.fixture(scope="module")
def planned():
    size = {"cells": 266, "population": 10**6, "occupancy": 100, "epsilon": 1.0, "delta": 1e-6, "view": "released"}
    return {name: plan(Target(**size, adjacency=name), ["sue"], claims=False).plans[0] for name in ADJACENCIES}


@pytest.fixture(scope="module")
def result(planned, tmp_path_factory):
    file = tmp_path_factory.mktemp("sums") / "sums.toml"
    file.write_text(CITY.format(**{name: made.parameters["epsilon"] for name, made in planned.items()}))
    return run(file, seed=5)


@pytest.mark.slow
def test_planned_errors_are_those_of_runs(planned, result):
    for name, expected in (("move", 7.07), ("enter_leave", 5.84)):
        errors = result.estimates[result.estimates["mechanism"] == name].eval("estimate - truth").to_numpy()
        assert len(errors) >= 4000
        assert planned[name].std_error == pytest.approx(expected, abs=0.01)
        assert math.sqrt(np.mean(errors**2)) == pytest.approx(expected, rel=0.05)


@pytest.mark.slow
def test_claims_of_the_run_are_those_planned(planned, result):
    claims = result.claims[(result.claims["view"] == "released_counts") & result.claims["crowd"].isna()]
    claims = claims[claims["queries"] == 1]
    counted = int(result.rounds["counted"].min())
    assert counted == pytest.approx(10**6, rel=0.03)
    for name, made in planned.items():
        own = claims[(claims["mechanism"] == name) & (claims["epsilon"] == 1.0) & (claims["adjacency"] == name)]
        assert own["delta"].max() <= 1.5e-6
        view = ReleasedCounts(None, 1, counted, adjacency=name)
        assert own["delta"].max() == pytest.approx(made.mechanism.claim(view).delta(1.0), rel=1e-9)


@pytest.mark.slow
def test_attack_with_known_others_stays_below_the_claim(result):
    """At even odds a guess is right at most with (e^ε + δ)/(1 + e^ε), at every ε claimed; family-wise 10⁻⁶."""
    claims = result.claims[(result.claims["view"] == "released_counts") & result.claims["crowd"].isna()]
    claims = claims[claims["queries"] == 1]
    assert len(result.attacks) == 2
    for row in result.attacks.itertuples():
        own = claims[(claims["mechanism"] == row.mechanism) & (claims["adjacency"] == "enter_leave")]
        most = ((np.exp(own["epsilon"]) + own["delta"]) / (1.0 + np.exp(own["epsilon"]))).min()
        spread = norm.isf(1e-6 / 4) * math.sqrt(0.25 / row.trials)
        assert row.success <= most + spread
        assert row.epsilon_lower <= 1.0
        # The sums still say something: with theory's gain, and no more.
        assert abs(row.success - row.theory) <= spread
        assert row.theory > 0.52
