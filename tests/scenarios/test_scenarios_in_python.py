"""Scenarios made in Python: from dicts, from sections, and from other scenarios."""

import copy
import inspect
import pickle
import tomllib

import pytest

import scenarios
from scenarios import Scenario, ScenarioError

TINY = next(one.path for one in scenarios.shipped() if one.name == "tiny")


@pytest.fixture
def tables():
    return tomllib.loads(TINY.read_text(encoding="utf-8"))


def test_dicts_make_the_scenario_of_the_file(tables):
    made = Scenario(**tables)
    assert made == scenarios.load("tiny")
    assert made.tables() == tables
    assert Scenario.model_validate(made) is made
    assert Scenario.model_validate(made.model_dump()) == made  # lists as tuples
    for other in ("tiny", None, [tables]):
        with pytest.raises(ScenarioError, match="must be a mapping of sections"):
            Scenario.model_validate(other)


def test_sections_stand_for_their_dicts(tables):
    tiny = scenarios.load("tiny")
    assert Scenario(**{**tables, "mechanisms": tiny.mechanisms, "roads": tiny.roads}) == tiny


def test_omitted_sections_are_named():
    with pytest.raises(ScenarioError) as caught:
        Scenario()
    required = ["scenario", "roads", "cells", "traffic", "campaigns", "mechanisms"]
    assert [(fault.path, fault.rule) for fault in caught.value.faults] == [(name, "is required") for name in required]


def test_the_signature_lists_the_sections():
    assert list(inspect.signature(Scenario).parameters)[: len(Scenario.model_fields)] == list(Scenario.model_fields)


def test_a_changed_scenario_is_that_of_the_overridden_file():
    tiny = scenarios.load("tiny")
    overrides = {"traffic.vehicles": 50, "mechanisms.sampling.sampling": 0.2}
    assert tiny.with_(overrides, seed=3) == scenarios.load("tiny", overrides=overrides, seed=3)
    assert tiny.with_(overrides).with_(["traffic.vehicles=60"]).traffic.vehicles == 60
    assert tiny.with_({"attacks": [{"kind": "round_one", "coalition": ["server:1"]}]}).attacks[0].kind == "round_one"
    with pytest.raises(ScenarioError, match=r"traffic\.vehicles: must be at least 1; got 0"):
        tiny.with_({"traffic.vehicles": 0})


def test_copies_are_equal(tables):
    made = Scenario(**tables)
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == made.model_copy() == made  # noqa: S301
