"""The scenarios that come with the package are valid and agree with their comments."""

from __future__ import annotations

import gzip
import re
from typing import TYPE_CHECKING

import pytest

import scenarios

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [
    "all-day",
    "anaheim",
    "bay-area-pems",
    "beijing-taxis",
    "bologna-fcd",
    "bologna-sumo",
    "breast-cancer",
    "cabs-san-francisco",
    "collusion",
    "gowalla-nyc",
    "grid20",
    "helsinki-osm",
    "highway",
    "longitudinal",
    "lossy",
    "manhattan",
    "manhattan-osm",
    "parked-cars",
    "poisoning",
    "refined",
    "releases",
    "rivals",
    "server-noise",
    "sioux-falls",
    "speeds",
    "tiny",
]


@pytest.fixture(autouse=True)
def _data_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the data files that shipped scenarios name, which are not part of the project."""
    for item in scenarios.shipped():
        for inside in re.findall(r'"data:([^"]+)"', item.path.read_text(encoding="utf-8")):
            path = tmp_path / inside
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gzip.compress(b""))
    monkeypatch.setenv("CROWDVEIL_DATA", str(tmp_path))


def test_shipped_scenarios_have_a_description():
    listed = scenarios.shipped()
    assert [item.name for item in listed] == NAMES
    assert all(item.description and item.path.is_file() for item in listed)


OF_PAPERS = re.compile(r"SP (Figs? [\d to]+|sec \d)")
NUMBERS = re.compile(
    r"\d|\b(three|four|five|six|eight|sixty|hundred|thousand|million|third|tenth|twenty)\b", re.IGNORECASE
)


def test_shipped_descriptions_hold_no_value_of_a_key():
    described = {item.name: OF_PAPERS.sub("", item.description) for item in scenarios.shipped()}
    assert [name for name, text in described.items() if NUMBERS.search(text)] == []


@pytest.mark.parametrize("name", NAMES)
def test_each_shipped_scenario_loads_and_round_trips(name, tmp_path):
    scenario = scenarios.load(name)
    assert scenario.name == name
    assert scenario.warnings() == []
    again = tmp_path / "again.toml"
    again.write_text(scenarios.dump(scenario), encoding="utf-8")
    assert scenarios.load(again) == scenario
    assert scenarios.dump(scenarios.load(again)) == scenarios.dump(scenario)


def test_highway_cell_holds_about_a_hundred_vehicles():
    scenario = scenarios.load("highway")
    x_min, y_min, x_max, y_max = scenario.cells.bounds
    size = scenario.cells.size_m
    assert (x_max - x_min, y_max - y_min) == (size, size)
    assert y_min < 0 < y_max
    assert x_min + x_max == scenario.roads.spacings_m[0]  # in the middle
    flow_per_s = scenario.traffic.vehicles / scenario.scenario.duration_s
    assert flow_per_s * size / scenario.roads.speed_mps == pytest.approx(100)
    each_way_could_carry = scenario.roads.lanes * scenario.roads.capacity_vph / 3600
    assert flow_per_s / 2 < each_way_could_carry
    assert scenario.scenario.warmup_s > scenario.roads.spacings_m[0] / scenario.roads.speed_mps
    assert scenario.mechanisms[1].parameters == {"first_coin": 0.85, "second_coin": 0.3}
    assert (scenario.population.outside, scenario.population.answers) == (10_000, "counts")


def test_speed_campaigns_are_pairs_of_all_vehicles_and_a_third():
    scenario = scenarios.load("speeds")
    assert [m.kind for m in scenario.mechanisms] == ["no_privacy"]
    mean, mean_third, median, median_third = scenario.campaigns
    for all_vehicles, third in ((mean, mean_third), (median, median_third)):
        assert all_vehicles.statistic == third.statistic != "count"
        assert third.release.model_copy(update={"sample": 1.0}) == all_vehicles.release
        assert third.release.sample == 0.3333


def test_release_campaigns_differ_only_in_their_release():
    as_it_is, *released = scenarios.load("releases").campaigns
    assert as_it_is.release is None
    for campaign in released:
        assert campaign.model_copy(update={"name": as_it_is.name, "release": None}) == as_it_is
    kinds = [campaign.release.kind for campaign in released]
    assert kinds == ["suppress", "laplace", "laplace", "generalise"]


def test_collusion_campaigns_differ_only_in_their_aggregation():
    trusted, *others = scenarios.load("collusion").campaigns
    assert trusted.aggregation is None
    for campaign in others:
        assert campaign.model_copy(update={"name": trusted.name, "aggregation": None}) == trusted
    assert [campaign.aggregation.kind for campaign in others] == ["per_round", "shuffled", *["secret_shared"] * 2]
    kinds = {attack.kind for attack in scenarios.load("collusion").attacks}
    assert kinds == {"round_one", "round_two", "link_rounds", "shares", "known_others", "drop_out"}
