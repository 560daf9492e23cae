"""The scenarios that come with the package are valid and agree with their comments."""

from __future__ import annotations

import gzip
import re
from typing import TYPE_CHECKING

import pytest

import scenarios

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [item.name for item in scenarios.shipped()]


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
    assert len(NAMES) > 20
    assert all(item.description and item.path.is_file() for item in scenarios.shipped())


OF_PAPERS = re.compile(r"SP (Figs? [\d to]+|sec \d)")
NUMBERS = re.compile(
    r"\d|\b(three|four|five|six|eight|sixty|hundred|thousand|million|third|tenth|twenty)\b", re.IGNORECASE
)


def test_shipped_descriptions_hold_no_value_of_a_key():
    described = {item.name: OF_PAPERS.sub("", item.description) for item in scenarios.shipped()}
    assert [name for name, text in described.items() if NUMBERS.search(text)] == []


@pytest.mark.parametrize("name", NAMES)
def test_each_shipped_scenario_loads_and_round_trips(name, reloaded):
    scenario = scenarios.load(name)
    assert scenario.name == name
    assert scenario.warnings() == []
    again = reloaded(scenario)
    assert again == scenario
    assert scenarios.dump(again) == scenarios.dump(scenario)


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
