"""Rules between keys: the check and the JSON Schema agree on which combinations of keys are valid."""

import json
import tomllib
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import scenarios
from scenarios.rules import GIVEN, EachOnce, bounded, described_rules, must, needs, one_of, unlike
from scenarios.scenario import Scenario
from scenarios.section import Section, ValidFields

BASE = """
scenario = {name = "rules", duration_s = 600}
roads = {source = "grid", rows = 3, columns = 3, spacing_m = 100}
cells = {kind = "square", size_m = 100}
traffic = {engine = "fleet", vehicles = 10}
campaigns = [{name = "rush", start_s = 0}]
mechanisms = [{kind = "no_privacy"}]
"""
NOISE = {"kind": "discrete_gaussian", "sigma": 1.0}
PLACES = [{"name": "n", "lon": "a", "lat": "b"}, {"name": "n", "x": "a", "y": "b"}, {"name": "n", "lon": "a"}]
OWNERS = [
    {"place": "p"},
    {"lon": "a", "lat": "b", "count": "n"},
    {"x": "a", "y": "b", "owner": "o"},
    {"place": "p", "time": "t"},
]
TRIPS = [
    {"trips": "n"},
    {"trips": "n", "rate_vph": "r"},
    {"from_s": "a"},
    {"from_s": "a", "to_s": "b", "departure_s": "c"},
]
FIXES = [{"lon": "a", "lat": "b"}, {"x": "a", "y": "b"}, {"lon": "a", "x": "b"}, {"speed_mps": "a", "speed_kph": "b"}]
COORDINATES = [{"lon": "x", "lat": "y"}, {"x": "x", "y": "y"}, {"x": "x"}, {}]
CRS = ["EPSG:32618"]

CASES = {  # section, keys that are always given, keys that may be given; each with the values to draw from
    "grid": (
        "roads",
        {"source": ["grid"], "rows": [3], "columns": [3]},
        {"spacing_m": [9], "spacing_x_m": [9], "spacing_y_m": [9]},
    ),
    "tables": (
        "roads",
        {"source": ["tables"], "nodes": ["n.csv"], "edges": ["e.csv"]},
        {"columns": [{"node": "n", "from": "a", "to": "b", **place} for place in COORDINATES], "crs": CRS},
    ),
    "locations": (
        "cells",
        {"kind": ["locations"]},
        {
            "file": ["f.csv"],
            "columns": PLACES,
            "separator": [";"],
            "header": [True, False],
            "top": [3],
            "names": [["a"]],
            "crs": CRS,
        },
    ),
    "fleet": (
        "traffic",
        {},
        {
            "demand": ["uniform", "gravity", "trips"],
            "vehicles": [10],
            "trips": ["t.csv", ["t.csv"]],
            "zones": ["z.csv"],
            "share": [1, 0.5],
            "departures": ["uniform", "profile", [{"from_s": 0, "to_s": 9, "share": 1.0}]],
            "profile": ["p.csv"],
            "routing": ["free_flow", "reactive"],
            "reroute_every_s": [60],
            "reroute_share": [0.5],
            "trip_columns": TRIPS,
        },
    ),
    "sumo": (
        "traffic",
        {"engine": ["sumo"]},
        {"config": ["c.sumocfg"], "net": ["n.xml"], "routes": [[], ["r.xml"]], "additional": [["a.xml"]]},
    ),
    "static": (
        "traffic",
        {"engine": ["static"], "owners": ["o.csv"], "columns": OWNERS},
        {
            "crs": CRS,
            "window": [[0, 0, 1, 1]],
            "start": [5],
            "dwell_s": [5],
            "time_zone": ["UTC"],
            "one_per": ["row", "owner"],
            "duplicates": ["first", "greatest"],
        },
    ),
    "trace": (
        "traffic",
        {"engine": ["trace"], "trace": ["t.csv"]},
        {
            "columns": FIXES,
            "crs": CRS,
            "net": ["n.xml"],
            "time_unit": ["s"],
            "time_format": ["%d/%m/%Y %H:%M:%S"],
            "match": ["none", "nearest", "hmm"],
            "match_m": [5],
            "match_noise_m": [5],
        },
    ),
    "campaign": (
        "campaigns",
        {"name": ["rush"], "start_s": [0]},
        {
            "statistic": ["count", "mean_speed"],
            "lower_mps": [1],
            "upper_mps": [30],
            "min_vehicles": [3],
            "queries": [1, 2],
            "every_s": [60],
            "aggregation": [{"kind": "trusted"}, {"kind": "per_round"}, {"paired": True}],
        },
    ),
    "aggregation": (
        "aggregation",
        {},
        {
            "kind": ["trusted", "per_round", "shuffled", "secret_shared"],
            "servers": [1, 2, 3],
            "paired": [True, False],
            "noise": [NOISE],
            "handles": ["device", "query"],
        },
    ),
    "threshold": (
        "aggregation",
        {"kind": ["threshold_shared"]},
        {"paired": [True, False], "handles": ["device", "query"]},
    ),
    "attack": (
        "attacks",
        {"kind": ["longitudinal"], "coalition": [["server:1"], ["server:1", "server:1"], ["server:1", "network"]]},
        {"asked": [[1], [1, 1]], "mechanisms": [["no_privacy"], ["no_privacy", "no_privacy"]]},
    ),
}


class RuledSection(Section):
    """Keys with one rule of each form."""

    kind: Literal["plain", "fine"] = "plain"
    size_m: float | None = None
    count: int = 1
    from_s: float = 0.0
    to_s: float | None = None
    lon: float | None = None
    lat: float | None = None
    names: tuple[str, ...] = ()

    rules = (
        needs("size_m", kind="fine"),
        must("to_s", GIVEN, "is required where {count} is above 1", count=unlike(1)),
        bounded("to_s", "above", "from_s", why=", its start"),
        one_of(("lon", "lat"), (), words="give both or none"),
        EachOnce(("names",)),
    )


@pytest.mark.parametrize(
    ("table", "faults"),
    [
        ({}, []),
        ({"size_m": 2.0}, [(("size_m",), 'needs kind = "fine"', 2.0)]),
        ({"count": 3}, [(("to_s",), "is required where count = 3 is above 1", None)]),
        ({"from_s": 2.5, "to_s": 1.0}, [(("to_s",), "must be above from_s = 2.5 s, its start", 1.0)]),
        ({"lon": 2.0}, [((), "give both or none", {"lon": 2.0})]),
        ({"names": ("a", "b", "a")}, [(("names",), "must name each once, and a occurs 2 times", None)]),
    ],
)
def test_a_broken_rule_is_one_fault_with_its_place_words_and_value(table, faults):
    fields = {name: field.default for name, field in RuledSection.model_fields.items()}
    assert [*RuledSection.broken_rules(ValidFields({**fields, **table}))] == faults
    if "from_s" not in table:  # no schema compares two numbers
        schema = {"allOf": described_rules(RuledSection)}
        assert Draft202012Validator(schema).is_valid(json.loads(json.dumps(table))) == (not faults)


def test_a_rule_about_an_invalid_key_is_not_applied():
    assert [*RuledSection.broken_rules(ValidFields({"size_m": 2.0, "to_s": -1.0, "lon": 2.0}))] == []


def test_rules_are_stated_in_words():
    assert [rule["description"] for rule in described_rules(RuledSection)] == [
        '`size_m`: needs kind = "fine"',
        "`to_s`: is required where count is above 1",
        "`to_s`: must be above from_s, its start",
        "give both or none",
        "`names`: must name each once",
    ]


@pytest.fixture(scope="module")
def validator():
    return Draft202012Validator(scenarios.schema())


def drawn_from(values):
    return {key: st.sampled_from(choices) for key, choices in values.items()}


@pytest.mark.parametrize("case", CASES)
@settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_check_and_schema_agree_on_combinations_of_keys(case, validator, tmp_path_factory, data):
    section, fixed, optional = CASES[case]
    table = data.draw(st.fixed_dictionaries(drawn_from(fixed), optional=drawn_from(optional)))
    document = tomllib.loads(BASE)
    document[section] = [table] if section in {"campaigns", "attacks"} else table
    faults = Scenario.check(document, tmp_path_factory.getbasetemp(), files_exist=False)
    assert validator.is_valid(document) == isinstance(faults, Scenario), faults


@pytest.mark.parametrize("shipped", scenarios.shipped(), ids=lambda shipped: shipped.name)
def test_shipped_scenarios_meet_the_schema(shipped, validator):
    document = tomllib.loads(shipped.path.read_text(encoding="utf-8"))
    assert [error.message for error in validator.iter_errors(document)] == []
