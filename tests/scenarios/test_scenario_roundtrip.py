"""Round trip of scenarios: defaults, resolved values, and loading a dumped scenario."""

from __future__ import annotations

from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

import scenarios
from scenarios import Scenario

NAMES = st.text("abcXYZ019._-", min_size=1, max_size=8)
PROBABILITIES = st.one_of(st.just(0.0), st.floats(1e-20, 1))
POSITIVE = st.floats(1e-3, 1e6)


def optional(**values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=values)


@st.composite
def campaigns(draw: st.DrawFn) -> list[dict[str, Any]]:
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    tables = []
    for name in names:
        gap = draw(st.floats(0.5, 20))
        table = {"name": name, "start_s": draw(st.integers(100, 200)), "round_gap_s": gap}
        table |= draw(optional(deadline_s=st.floats(0.1, 1).map(gap.__mul__)))
        if draw(st.booleans()):
            table |= {"queries": draw(st.integers(2, 5)), "every_s": 2 * gap + draw(st.floats(0, 9))}
        tables.append(table)
    return tables


@st.composite
def mechanisms(draw: st.DrawFn) -> list[dict[str, Any]]:
    scalars = st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), POSITIVE, st.text(max_size=5))
    kinds = st.one_of(
        st.fixed_dictionaries({"kind": st.just("no_privacy")}),
        st.fixed_dictionaries({"kind": st.just("randomized_response"), "second_coin": PROBABILITIES}, optional={}),
        st.fixed_dictionaries(
            {"kind": st.just("sampling_privacy"), "sampling": st.floats(0.01, 0.5)},
            optional={
                "form": st.sampled_from(["multi", "binary"]),
                "blank_zero": st.one_of(st.just(0.0), st.floats(1e-20, 0.2)),
            },
        ),
        st.fixed_dictionaries(
            {"kind": st.just("my.module:Class")},
            optional={"size": scalars, "table": st.dictionaries(NAMES, st.lists(scalars, max_size=3))},
        ),
    )
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    return [{"name": name, **draw(kinds)} for name in names]


LATENCIES = st.one_of(
    POSITIVE,
    st.fixed_dictionaries({"kind": st.just("exponential"), "mean_s": POSITIVE}),
    st.fixed_dictionaries({"kind": st.just("lognormal"), "median_s": POSITIVE, "sigma": POSITIVE}),
)
WINDOWS = st.just(
    [{"from_s": 0, "to_s": 50, "share": 0.25}, {"from_s": 50, "to_s": 900.0, "share": 0.75}],
)

FILES = st.fixed_dictionaries(
    {
        "scenario": st.fixed_dictionaries(
            {"name": NAMES, "duration_s": st.integers(900, 2000), "warmup_s": st.floats(0, 100)},
            optional={"description": st.text(), "seed": st.integers(0, 2**63 - 1)},
        ),
        "roads": st.fixed_dictionaries(
            {
                "source": st.just("grid"),
                "rows": st.integers(2, 9),
                "columns": st.integers(2, 9),
                "spacing_m": POSITIVE,
            },
            optional={"one_way": st.booleans(), "avenue_lanes": st.integers(1, 4), "avenue_speed_mps": POSITIVE},
        ),
        "cells": st.one_of(
            st.fixed_dictionaries(
                {"kind": st.just("square"), "size_m": POSITIVE},
                optional={"bounds": st.just([0, -1.5, 10, 20])},
            ),
            st.fixed_dictionaries(
                {"kind": st.just("geographic")},
                optional={"size_miles": POSITIVE, "origin": optional(lon=st.floats(-180, 180))},
            ),
        ),
        "traffic": st.fixed_dictionaries(
            {"vehicles": st.integers(1, 10**8)},
            optional={
                "departures": st.one_of(st.just("peak"), WINDOWS),
                "parked": st.just("answer"),
                "waiting": st.just("answer"),
            },
        ),
        "campaigns": campaigns(),
        "mechanisms": mechanisms(),
    },
    optional={
        "population": optional(participation=st.floats(0.01, 1), outside=st.integers(0, 10**9)),
        "channel": optional(latency_s=LATENCIES, loss=PROBABILITIES, loss_one=PROBABILITIES),
        "claims": optional(epsilons=st.lists(POSITIVE, min_size=1, max_size=3)),
    },
)


@settings(max_examples=30, deadline=None)
@given(raw=FILES)
def test_dump_and_load_round_trip(raw, tmp_path_factory):
    file = tmp_path_factory.mktemp("scenario") / "random.toml"
    file.write_bytes(tomli_w.dumps(raw).encode())
    scenario = scenarios.load(file)
    file.write_bytes(scenarios.dump(scenario).encode())
    again = scenarios.load(file)
    assert again == scenario
    assert scenarios.dump(again) == scenarios.dump(scenario)


@settings(max_examples=30, deadline=None)
@given(loss=PROBABILITIES, outside=st.integers(0, 10**12), description=st.text())
def test_override_equals_the_value_in_the_file(loss, outside, description):
    line = tomli_w.dumps({"v": description}).removeprefix("v = ").strip()
    scenario = scenarios.load(
        "tiny",
        overrides=[f"channel.loss={loss!r}", f"population.outside={outside}", f"scenario.description={line}"],
    )
    assert scenario.channel.loss == loss
    assert scenario.population.outside == outside
    assert scenario.scenario.description == description


def test_dependent_defaults_are_filled_in(load):
    scenario = load(overrides=["campaigns.rush.round_gap_s=20", "mechanisms.1={kind = 'my.module:Class', k = 2}"])
    assert scenario.campaigns[0].deadline_s == 20
    assert scenario.campaigns[1].deadline_s == 30
    assert scenario.campaigns[0].last_round_s == 120 + 120 + 20
    assert scenario.mechanisms[1].name == "Class"
    assert scenario.mechanisms[1].parameters == {"k": 2}
    assert scenario.roads.spacings_m == (200, 200)
    assert (scenario.roads.avenue_speed_mps, scenario.roads.avenue_lanes) == (None, None)


def test_number_means_constant_latency_and_loss_per_round_overrides(load):
    channel = load(overrides=["channel={latency_s = 2, loss = 0.1, loss_two = 0.3}"]).channel
    assert (channel.latency_s.kind, channel.latency_s.value_s) == ("constant", 2)
    assert channel.losses == (0.1, 0.3)


def test_avenues_may_differ_from_streets(load):
    roads = load(
        overrides=[
            "roads={source='grid', rows=3, columns=2, spacing_x_m=250, spacing_y_m=80, avenue_lanes=3}",
        ]
    ).roads
    assert roads.spacings_m == (250, 80)
    assert (roads.speed_mps, roads.avenue_speed_mps, roads.avenue_lanes) == (13.9, None, 3)


def test_consecutive_rounds_may_touch(load):
    scenario = load(overrides=["campaigns.0={start_s=100, queries=3, every_s=0.3, round_gap_s=0.1, deadline_s=0.1}"])
    assert scenario.campaigns[0].queries == 3
    fractions = "campaigns.0={start_s=100, queries=2, every_s=0.3, round_gap_s=0.2, deadline_s=0.1}"
    assert load(overrides=[fractions]).campaigns[0].deadline_s == 0.1  # 0.2 + 0.1 > 0.3 in floating point


def test_scenario_is_immutable(load):
    scenario = load()
    with pytest.raises(ValueError, match="frozen"):
        scenario.traffic.vehicles = 3
    assert hash(scenario) == hash(load())


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("mechanisms.sampling.sampling=0.5", ["less than one half"]),
        ("mechanisms.sampling.blank_zero=0", ["reveals"]),
        ("mechanisms.sampling.blank=[0.25, 0.3]", ["reveals"]),
        ("mechanisms.0={name='sampling', kind='sampling_privacy', sampling=0.6, blank_zero=0}", ["half", "reveals"]),
        ("mechanisms.0={kind='sampling_privacy', form='binary', sampling=0.4, blank=0.6}", ["reveals"]),
        ("mechanisms.sampling.blank_zero=0.1", []),
    ],
)
def test_probably_unintended_values_give_a_warning(load, override, words):
    warnings = load(overrides=[override]).warnings()
    assert len(warnings) == len(words)
    for word, warning in zip(words, warnings, strict=True):
        assert word in warning
        assert warning.startswith("mechanisms.sampling")


def test_the_schema_names_every_section():
    schema = scenarios.schema()
    assert schema["type"] == "object"
    assert list(schema["properties"]) == list(Scenario.model_fields)
    assert set(schema["required"]) == {"scenario", "roads", "cells", "traffic", "campaigns", "mechanisms"}
    assert schema["additionalProperties"] is False
    assert "from" in schema["$defs"]["Columns"]["properties"]
    assert "start_s" in schema["$defs"]["CampaignSection"]["required"]
    assert "default" not in schema["$defs"]["CampaignSection"]["properties"]["deadline_s"]
    described = schema["$defs"]["DrivenTraffic"]["properties"]
    assert all("description" in field for field in described.values())
