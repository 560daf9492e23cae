"""Who takes part, whose reports arrive and where devices believe they are: rates, zones of loss, wrong positions."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import scenarios
from scenarios import ScenarioError
from simulator import RunResult, run
from simulator.experiment.assembly.campaigns import build_population
from simulator.experiment.components import RunComponents
from simulator.streams import Streams
from simulator.traffic.engine import VehicleStates
from simulator.traffic.trips import VehicleClasses

OWNERS = {"a": 10_000, "b": 7500, "c": 5000, "d": 12_500}
PLACES = """
scenario = {name = "places", duration_s = 100}
roads = {source = "none"}
cells = {kind = "locations"}
traffic = {engine = "static", owners = "owners.csv", columns = {place = "place", count = "n"}}
campaigns = [{start_s = 10, queries = 2, every_s = 40, round_gap_s = 10}]
mechanisms = [
    {name = "baseline", kind = "no_privacy"},
    {name = "k-ary", kind = "k_randomized_response", epsilon = 4},
    {name = "sampling", kind = "sampling_privacy", sampling = 0.45},
]
refinements = [{kind = "inverse_probability", mechanisms = ["baseline", "k-ary", "sampling"]}]
population = {participation = 0.8, outside = 500}
channel = {loss = 0.1, churn = 0.1}
"""
RATES = [{"rate": 0.4, "cells": ["a", "b"]}, {"rate": 0.5, "to_s": 15}]  # queries begin at 10 and 50 s
ZONES = [{"loss": 0.6, "cells": ["b", "c"], "from_s": 15, "to_s": 55}, {"loss": 0.2, "cells": ["d"]}]  # 20 and 60 s


@pytest.fixture
def places(tmp_path):
    rows = [f"{place},{n}" for place, n in OWNERS.items()]
    (tmp_path / "owners.csv").write_text("\n".join(["place,n", *rows]) + "\n", encoding="utf-8")
    (tmp_path / "places.toml").write_text(PLACES, encoding="utf-8")
    return tmp_path / "places.toml"


def _column(made, mechanism, query, column):
    rows = made.estimates[(made.estimates["mechanism"] == mechanism) & (made.estimates["query"] == query)]
    return rows.sort_values("cell")[column].to_numpy()


def test_known_probabilities_correct_the_bias_that_theory_states(places):
    made = run(places, overrides={"population.rates": RATES, "channel.zones": ZONES})
    n = np.array([*OWNERS.values()], dtype=float)
    assert made.cells["name"].tolist() == [*OWNERS]
    taking = 0.8 * np.array([[0.2, 0.2, 0.5, 0.5], [0.4, 0.4, 1.0, 1.0]])
    arriving = np.array([[1.0, 0.4, 0.4, 0.8], [1.0, 1.0, 1.0, 0.8]])
    for query, (p, d) in enumerate(zip(taking, arriving, strict=True), start=1):
        ratio = (n @ p + 500) / (n @ (p * d) + 500)
        bias = n * p * d * ratio / 0.8 - n
        np.testing.assert_allclose(_column(made, "baseline", query, "expected_bias"), bias)
        counted = p * d * 0.9 * 0.9  # that a vehicle takes part and its report is counted
        for mechanism in ("baseline", "k-ary", "sampling"):
            error = _column(made, mechanism, query, "scaled_estimate") - n
            refined = _column(made, f"{mechanism}+inverse_probability", query, "scaled_estimate") - n
            noise = _column(made, f"{mechanism}+inverse_probability", query, "std_error") / p
            spread = np.sqrt(n * (1.0 - counted) / counted + (0.0 if mechanism == "baseline" else noise**2))
            assert (np.abs(refined) < 3.0 * spread).all()
            unrefined = spread * p * d * ratio / 0.8
            assert (np.abs(error - bias) < 3.0 * unrefined).all()
            assert np.count_nonzero(np.abs(bias) > 6.0 * unrefined) >= 2
        stated = _column(made, "baseline+inverse_probability", query, "scaled_std_error")
        np.testing.assert_allclose(stated[0], np.sqrt(n * (1.0 - counted) / counted)[0], rtol=0.1)
    scores = made.scores.set_index("mechanism")
    assert scores["participation"].unique() == pytest.approx([(taking @ n).mean() / n.sum()])
    assert scores.loc["baseline", "scaled_rmse"] == pytest.approx(
        scores.loc["baseline", "scaled_theory_rmse"], rel=0.05
    )
    assert scores.loc["baseline+inverse_probability", "scaled_rmse"] < 0.1 * scores.loc["baseline", "scaled_rmse"]


def test_share_of_misplaced_devices_and_its_direction_are_normal_probabilities():
    """In squares of 200 m, with an error of 60 m; outside the nine squares is a cell too."""
    city = RunComponents.build(scenarios.load("tiny")).city
    xy = np.random.default_rng(1).uniform(0.0, 600.0, (40_000, 2))
    nowhere = np.full(len(xy), -1, dtype=np.int32)
    places = VehicleStates(np.full(len(xy), 2, dtype=np.uint8), nowhere, np.zeros(len(xy)), xy=xy)
    truth = city.cells_of(places)
    measured = city.measured_cells(places, error_m=60.0, rng=np.random.default_rng(2))
    low = 200.0 * (xy // 200.0)
    stays = np.prod(norm.cdf((low + 200.0 - xy) / 60.0) - norm.cdf((low - xy) / 60.0), axis=1)
    inside = np.prod(norm.cdf((600.0 - xy) / 60.0) - norm.cdf((0.0 - xy) / 60.0), axis=1)
    for found, chance in ((measured == truth, stays), (measured > 0, inside)):
        assert abs(np.count_nonzero(found) - chance.sum()) < 3.0 * np.sqrt((chance * (1.0 - chance)).sum())


def test_a_rate_for_everybody_is_a_participation():
    rate = {"population.rates": [{"rate": 0.5}], "population.participation": 0.8}
    made = run("tiny", overrides={**rate, "population.assumed_participation": 0.4, "traffic.vehicles": 300})
    plain = run("tiny", overrides={"population.participation": 0.4, "traffic.vehicles": 300})
    pd.testing.assert_frame_equal(made.estimates.drop(columns="expected_bias"), plain.estimates)
    pd.testing.assert_frame_equal(made.scores, plain.scores)


@pytest.mark.parametrize(
    "changes",
    [
        {"population.answers": "reports"},
        {"population.answers": "counts"},
        {"aggregation.kind": "roadside_units"},
    ],
)
def test_devices_report_the_cell_of_their_fix_and_the_run_says_the_bias(changes, tmp_path):
    changes = {"traffic.vehicles": 600, **changes}
    exact, made = run("tiny", overrides=changes), run("tiny", overrides={**changes, "population.position_error_m": 60})
    same = ["truth", "vehicles"]
    pd.testing.assert_frame_equal(made.estimates[same], exact.estimates[same])
    rows = made.estimates[made.estimates["mechanism"] == "baseline"]
    error = rows["scaled_estimate"] - rows["vehicles"]
    np.testing.assert_allclose(rows["expected_bias"], error, atol=1e-9)
    assert error.abs().max() > 3
    scores = made.scores.set_index("mechanism")
    assert scores.loc["baseline", "theory_rmse"] == pytest.approx(scores.loc["baseline", "rmse"])
    variance = rows["estimate"] * 0.55 / 0.45  # of Sampling Privacy, from what devices report
    square = variance + (rows["estimate"] - rows["truth"]) ** 2
    assert scores.loc["sampling", "theory_rmse"] == pytest.approx(np.sqrt(square.mean()))
    (text,) = [warning for warning in made.record.warnings if "expected_bias" in warning]
    assert f"{np.sqrt((error**2).mean()):.3g} vehicles a cell" in text
    assert f"between {error.min():+.3g} and {error.max():+.3g}" in text
    assert 50 < float(re.search(r"([\d.]+) % of the devices asked", text)[1]) < 75  # every street is between two cells
    for result in (made, exact):
        again = RunResult.load(result.save(tmp_path / result.record.scenario_sha256))
        pd.testing.assert_frame_equal(again.estimates, result.estimates)
    assert "expected_bias" not in exact.estimates
    assert not any("expected_bias" in warning for warning in exact.record.warnings)


def test_vehicles_of_a_class_take_part_at_its_rate():
    of = np.arange(9000) % 3
    classes = VehicleClasses(("bus", "car", "truck"), of.astype(np.uint8), np.ones(9000), 7.5)
    rates = [{"rate": 0.0, "vehicle_class": "bus"}, {"rate": 0.25, "vehicle_class": "truck"}]
    changes = {"population.rates": rates, "population.participation": 0.8}
    scenario = scenarios.load("tiny", overrides=changes)
    engine = SimpleNamespace(vehicles=9000, classes=classes)
    population = build_population(scenario, (), engine=engine, streams=Streams(1))
    nowhere = VehicleStates(np.full(9000, 2, dtype=np.uint8), np.zeros(9000, dtype=np.int32), np.zeros(9000))
    taking = np.bincount(of[population.participants(np.ones(9000, dtype=bool), population.chances(nowhere, 0.0))])
    assert np.array_equal(taking, np.bincount(of[population.takes_part]))
    chance = np.array([0.0, 0.8, 0.2])
    assert (np.abs(taking - 3000 * chance) <= 3.0 * np.sqrt(3000 * chance * (1.0 - chance))).all()


def test_rates_and_zones_hold_on_their_roads_and_at_their_times():
    everyone = run("tiny")
    rates = [{"rate": 0.0, "road_class": "street"}, {"rate": 0.0, "road_class": "avenue", "to_s": 200}]
    made = run("tiny", overrides={"population.rates": rates})
    asked = made.rounds.query("mechanism == 'baseline'")["asked"].to_list()
    assert asked[0] == 0 < asked[1] < everyone.rounds.query("mechanism == 'baseline'")["asked"].to_list()[1]
    made = run("tiny", overrides={"channel.zones": [{"loss": 1.0, "to_s": 150}, {"loss": 1.0, "from_s": 240}]})
    counted = made.rounds.query("mechanism == 'sampling'")["counted"].to_numpy()
    asked = everyone.rounds.query("mechanism == 'sampling'")["asked"].to_numpy()
    # The rounds are at 120 and 150 s, and at 210 and 240 s.
    assert counted.tolist() == [0, asked[1], asked[2], 0]


@pytest.mark.parametrize(
    "changes",
    [
        {"aggregation": {"kind": "secret_shared", "servers": 2, "paired": True}},
        {"aggregation": {"kind": "roadside_units"}},
        {"channel.loss": 0.3, "channel.burst_s": 20},
        {
            "mechanisms": [{"name": "oue", "kind": "oue", "epsilon": 2.0}],
            "campaigns.occupancy.budget": {"kind": "absorption", "window": 2},
        },
    ],
)
def test_messages_equal_batches_with_zones_and_wrong_positions(changes):
    changes = {**changes, "traffic.vehicles": 200, "population.position_error_m": 40}
    changes |= {"channel.zones": [{"loss": 0.5, "cells": ["r1c1", "r2c2"]}]}
    batches, messages = (run("tiny", overrides={**changes, "sensing.engine": kind}) for kind in ("batches", "messages"))
    assert batches.rounds["lost"].sum() > 0
    for name in ("estimates", "rounds", "servers", "scores"):
        pd.testing.assert_frame_equal(getattr(batches, name), getattr(messages, name))


SPEEDS = {"campaigns": [{"start_s": 60, "statistic": "mean_speed"}]}
INVERSE = {"refinements": [{"kind": "inverse_probability"}]}
CLASS = {"rate": 0.5, "vehicle_class": "bus"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"population.position_error_m": 5, **SPEEDS}, "population.position_error_m: needs campaigns of counts and"),
        ({"channel.zones": [{"loss": 0.5}], **SPEEDS}, "channel.zones: needs campaigns of counts and devices that"),
        ({"channel.zones": [{"loss": 0.5}], "population.answers": "counts"}, "channel.zones: needs campaigns of"),
        ({"population.rates": [{**CLASS, "from_s": 0}]}, "from_s: must be left out where vehicle_class is given"),
        ({"population.rates": [CLASS]}, "population.rates: there are no vehicles of class 'bus'; classes: none"),
        ({"population.rates": [{"rate": 0.5, "cells": ["r1c9"]}]}, "there is no cell 'r1c9' in cells"),
        (
            {"channel.zones": [{"loss": 0.5, "cells": ["x"], "partition": "y"}]},
            "channel.zones: there is no partition 'y'",
        ),
        ({"channel.zones": [{"loss": 0.5, "road_class": "tunnel"}]}, "no road is of class 'tunnel'"),
        ({**INVERSE, "population.rates": [CLASS]}, "inverse_probability.kind: needs rates above 0 and losses below 1"),
        ({**INVERSE, "channel.zones": [{"loss": 1.0}]}, "inverse_probability.kind: needs rates above 0"),
        ({**INVERSE, "population.rates": [{"rate": 0.5, "road_class": "street"}]}, "or by cells of partition cells"),
        ({**INVERSE, "channel.zones": [{"loss": 0.5}], "aggregation.paired": True}, "servers that count each report"),
    ],
)
def test_what_cannot_be_simulated_or_corrected_is_refused_in_one_message(changes, message):
    with pytest.raises(ScenarioError) as refused:
        run("tiny", overrides=changes)
    assert len(refused.value.faults) == 1
    assert message in str(refused.value)


def test_places_without_coordinates_or_links_are_refused(places):
    for changes, message in (
        ({"population.position_error_m": 5}, "must be 0 for speeds and engine"),
        ({"channel.zones": [{"loss": 0.5, "road_class": "street"}]}, "road_class needs vehicles that are on links"),
    ):
        with pytest.raises(ScenarioError, match=message):
            run(places, overrides=changes)
