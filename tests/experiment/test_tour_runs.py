"""Runs in which vehicles make tours over several days: engines, attacks and pages."""

import pandas as pd
import pytest

import scenarios
from simulator import run
from simulator.api import load
from simulator.pages.map_section import city_outlines
from simulator.pages.motion_section import motion_section

SCENARIO = """
scenario = {name = "days", duration_s = 259_200, start = "2026-11-27T00:00"}
roads = {source = "grid", rows = 6, columns = 6, spacing_m = 150, speed_mps = 8}
cells = {kind = "square", size_m = 450}
report = {link_interval_s = 3600}
campaigns = [{name = "nights", start_s = "22:00", every_s = 86_400, queries = 3}]
mechanisms = [{name = "memoised", kind = "longitudinal_unary", epsilon_permanent = 4, epsilon_first = 2}]
attacks = [{name = "again", kind = "longitudinal", coalition = ["server:1"], asked = [1, 3]}]
[traffic]
vehicles = 240
departures = "profile"
profile = "week.csv"
parked = "answer"
[traffic.tours]
stay_s = 14_400
departure_sd_s = 300
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("days")
    (folder / "week.csv").write_text("weekday,hour,share\nfri,7,4\nsat,10,4\nsun,10,1\n")
    (folder / "days.toml").write_text(SCENARIO)
    scenario = scenarios.load(folder / "days.toml")
    for engine in ("fleet", "agents"):
        run(scenario.with_({"traffic.engine": engine}), out=folder / engine)
    return {engine: load(folder / engine) for engine in ("fleet", "agents")}


def test_both_engines_have_the_same_run(runs):
    for table in ("estimates", "attacks", "trips", "links", "entries"):
        pd.testing.assert_frame_equal(getattr(runs["fleet"], table), getattr(runs["agents"], table))


def test_vehicles_come_home_each_night(runs):
    result = runs["fleet"]
    trips, record = result.trips, result.record
    assert record.vehicles == 240
    assert record.traffic.departed[-1] == len(trips) == record.traffic.arrived_total
    hours = (trips["departure_s"] // 3600).astype(int)
    first = trips[hours.isin([6, 7, 8, 33, 34, 35, 57, 58, 59])]
    day = first["departure_s"] // 86_400
    assert day.value_counts()[[0, 1]].tolist() == [240, 240]
    assert abs((day == 2).sum() - 60) < 4.5 * (240 * 0.25 * 0.75) ** 0.5
    asked = record.traffic_at_queries
    assert [query.on_road + query.waiting for query in asked] == [0, 0, 0]
    truth = result.estimates.pivot(index="cell", columns="query", values="truth")
    assert (truth[1] == truth[2]).all()  # all are where they were
    guesses = result.attacks.set_index("value")["success"]
    assert guesses[3.0] > guesses[1.0] + 0.05


def test_the_moving_map_shows_each_vehicle_once(runs):
    result = runs["fleet"]
    section = motion_section(result, city_outlines(result.cells, result.roads))
    columns = {name for name, *_ in section["page"]["columns"]}
    assert {"vehicle", "until"} <= columns
    assert section["vehicles"] == 240


@pytest.mark.parametrize(
    ("hour", "tours", "rule"),
    [("17:00", "stops = 2", "stops must be left out"), ("31:00", "skip_share = 0.1", "over more than 24 hours")],
)
def test_a_table_of_tours_that_cannot_be_repeated_is_refused(tmp_path, hour, tours, rule):
    table = f'vehicle,origin,destination,departure_s\na,"(0, 0)","(1, 1)",06:30\na,"(1, 1)","(0, 0)",{hour}\n'
    (tmp_path / "trips.csv").write_text(table)
    text = SCENARIO.replace("vehicles = 240", 'demand = "trips"\ntrips = "trips.csv"')
    text = text.replace('departures = "profile"\nprofile = "week.csv"\n', "").replace("stay_s = 14_400", tours)
    (tmp_path / "days.toml").write_text(text)
    with pytest.raises(scenarios.ScenarioError, match=rf"traffic.tours: .*{rule}"):
        run(tmp_path / "days.toml")
