"""Overrides go where the same key path of the file is."""

from __future__ import annotations

import pytest

from scenarios import ScenarioError
from scenarios.overrides import apply_overrides


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("a.b=1", {"a": {"b": 1}}),
        ("a.b = 1.5", {"a": {"b": 1.5}}),
        ("a.b=[1, 2]", {"a": {"b": [1, 2]}}),
        ("a.b={c = true}", {"a": {"b": {"c": True}}}),
        ("a.b='quoted'", {"a": {"b": "quoted"}}),
        ("a.b=agents", {"a": {"b": "agents"}}),
        ("a.b=x=y", {"a": {"b": "x=y"}}),
        ("a.b=", {"a": {"b": ""}}),
        ("a.b=1\nc = 2", {"a": {"b": "1\nc = 2"}}),
        ("a.b.c=1", {"a": {"b": {"c": 1}}}),
    ],
)
def test_a_value_is_toml_or_else_a_text(override, expected):
    raw: dict[str, object] = {}
    assert apply_overrides(raw, [override]) == []
    assert raw == expected


def test_items_go_by_name_by_default_name_and_by_index(load):
    scenario = load(
        overrides=[
            "mechanisms.sampling.sampling=0.3",
            "mechanisms.no_privacy.name=plain",
            "campaigns.1.start_s=410",
            "channel.loss=0.1",
        ]
    )
    assert scenario.mechanisms[0].parameters == {"form": "multi", "sampling": 0.3, "refresh": 0.0}
    assert scenario.mechanisms[1].name == "plain"
    assert scenario.campaigns[1].start_s == 410
    assert scenario.channel.losses == (0.1, 0.1)


def test_a_name_may_hold_dots(load):
    names = ["mechanisms.1.name='v1.5'", "mechanisms.v1.5.kind='my.module:Class'", "mechanisms.v1.5.k=3"]
    assert load(overrides=names).mechanisms[1].parameters == {"k": 3}


def test_the_seed_has_the_last_word(load):
    assert load(overrides=["scenario.seed=5"]).seed == 5
    assert load(overrides=["scenario.seed=5"], seed=9).seed == 9


@pytest.mark.parametrize(
    ("override", "path", "fragment"),
    [
        ("no-equals", "", "key.path=value"),
        ("=5", "", "key.path=value"),
        ("a..b=5", "", "key.path=value"),
        ("mechanisms.smpling.sampling=1", "mechanisms.smpling", "did you mean sampling?"),
        ("mechanisms.smpling.sampling=1", "mechanisms.smpling", "sampling, no_privacy"),
        ("campaigns.2.start_s=1", "campaigns.2", "rush, late"),
        ("scenario.seed.x=1", "scenario.seed", "plain value"),
    ],
)
def test_an_override_that_goes_nowhere_is_a_fault(load, valid_text, override, path, fragment):
    text = valid_text.replace('name = "small"', 'name = "small"\nseed = 3')
    with pytest.raises(ScenarioError) as caught:
        load(text, overrides=[override])
    assert [fault.path for fault in caught.value.faults] == [path]
    assert fragment in str(caught.value)


def test_a_name_of_two_items_needs_an_index(load):
    with pytest.raises(ScenarioError, match="2 items have this name") as caught:
        load(overrides=["mechanisms.0.name=no_privacy", "mechanisms.no_privacy.name=x"])
    assert [fault.path for fault in caught.value.faults] == ["mechanisms.no_privacy", "mechanisms[1].name"]
