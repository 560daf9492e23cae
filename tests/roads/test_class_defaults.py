"""Defaults for speeds, lanes and capacities that a file does not give."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from simulator.roads import class_defaults as module
from simulator.roads.class_defaults import CLASS_DEFAULTS, class_defaults, filled_in_words


def test_class_names_are_normalised():
    wanted = CLASS_DEFAULTS["motorway_link"]
    assert wanted.speed_mps == pytest.approx(80 / 3.6)
    assert (wanted.lanes, wanted.capacity_vph) == (1, 1500)
    for written in ("motorway_link", " Motorway Link", "motorway-link", "highway.motorway_link"):
        assert class_defaults(written) == wanted


@pytest.mark.parametrize("road_class", [None, "", "boulevard", "highway"])
def test_unknown_class_has_no_defaults(road_class):
    assert class_defaults(road_class) is None


def test_defaults_used_are_counted_by_class_and_value():
    filled = [("residential", "1")] * 1200 + [("motorway", "2")] + [(None, "1")] * 2
    message = filled_in_words("lanes", filled, links=1500)
    assert message == (
        "lanes taken by class of road in 1,203 of 1,500 links: residential 1 (1,200), no class 1 (2), motorway 2 (1)"
    )
    assert filled_in_words("lanes", [], links=1500) is None


USED = {
    name: (round(defaults.speed_mps * 3.6, 9), defaults.lanes, defaults.capacity_vph)
    for name, defaults in CLASS_DEFAULTS.items()
}


PAGE = (Path(__file__).parents[2] / "docs" / "how" / "junctions.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "row"),
    [
        (module.__doc__, r"^(\w.*?)\s{2,}(\d+)\s+(\d)\s+([\d,]+)$"),
        (PAGE, r"^\| ([a-z_, ]+) \| (\d+) \| (\d) \| ([\d,]+) \|$"),
    ],
    ids=["docstring", "page"],
)
def test_documented_table_equals_the_defaults(text, row):
    documented = {}
    for names, kph, lanes, capacity in re.findall(row, text, flags=re.MULTILINE):
        first, *others = names.split(", ")
        for name in (first, *(first + other.removeprefix("…") if "…" in other else other for other in others)):
            documented[name] = (float(kph), int(lanes), float(capacity.replace(",", "")))
    assert documented == USED
