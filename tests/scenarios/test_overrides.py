"""Overrides apply to the same key path of the file."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import scenarios
from scenarios import ScenarioError
from scenarios.overrides import apply_overrides
from simulator.studies.design import parse_vary


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
def test_override_value_is_toml_or_plain_text(override, expected):
    raw: dict[str, object] = {}
    assert apply_overrides(raw, [override]) == []
    assert raw == expected


def test_a_star_sets_a_key_of_every_item_that_states_it():
    raw = {"mechanisms": [{"kind": "oue", "epsilon": 1}, {"kind": "no_privacy"}, {"kind": "olh", "epsilon": 2}]}
    assert apply_overrides(raw, {"mechanisms.*.epsilon": 0.5}) == []
    assert [item.get("epsilon") for item in raw["mechanisms"]] == [0.5, None, 0.5]
    for path in ("mechanisms.*.sampling", "mechanisms.*"):
        (fault,) = apply_overrides(raw, [f"{path}=1"])
        assert f"{fault}".startswith(f"{path}: * stands for every item that states the key after it, and no item does")


def test_items_are_addressed_by_name_default_name_or_index(load):
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


def test_seed_argument_overrides_the_seed_key(load):
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
def test_override_with_an_unknown_path_is_a_fault(load, valid_text, override, path, fragment):
    text = valid_text.replace('name = "small"', 'name = "small"\nseed = 3')
    with pytest.raises(ScenarioError) as caught:
        load(text, overrides=[override])
    assert [fault.path for fault in caught.value.faults] == [path]
    assert fragment in str(caught.value)


def test_duplicate_name_needs_an_index(load):
    with pytest.raises(ScenarioError, match="2 items have this name") as caught:
        load(overrides=["mechanisms.0.name=no_privacy", "mechanisms.no_privacy.name=x"])
    assert [fault.path for fault in caught.value.faults] == ["mechanisms.no_privacy", "mechanisms[1].name"]


def test_mapping_values_are_used_unchanged(load):
    given = {
        "mechanisms.sampling.sampling": np.float64(0.3),
        "traffic.vehicles": np.int64(7),
        "mechanisms.sampling.blank": np.array([0.5, 0.5]),
        "mechanisms.no_privacy": {"kind": "no_privacy", "name": "a"},
        "mechanisms.a.name": "b",
        "roads.spacing_m": 1,
    }
    raw = {"mechanisms": [{"name": "sampling"}, {"kind": "no_privacy"}]}
    assert apply_overrides(raw, given) == []
    assert raw == {
        "mechanisms": [
            {"name": "sampling", "sampling": 0.3, "blank": [0.5, 0.5]},
            {"kind": "no_privacy", "name": "b"},
        ],
        "traffic": {"vehicles": 7},
        "roads": {"spacing_m": 1},
    }
    assert given["mechanisms.no_privacy"]["name"] == "a"
    texts = ["mechanisms.sampling.sampling=0.3", "traffic.vehicles=7"]
    assert load(overrides=texts) == load(overrides={"mechanisms.sampling.sampling": 0.3, "traffic.vehicles": 7})


@pytest.mark.parametrize(
    "overrides", ["traffic.vehicles=5", b"traffic.vehicles=5", None, 5, [("traffic.vehicles", 5)], {5: "vehicles"}]
)
def test_overrides_of_wrong_type_are_refused(load, overrides):
    with pytest.raises(TypeError, match=r'overrides must .*"a\.b') as caught:
        load(overrides=overrides)
    assert "--" not in str(caught.value)


@pytest.mark.parametrize(
    ("overrides", "fault"),
    [
        ({"traffic.vehicels": 5}, "traffic.vehicels: unknown key (did you mean vehicles?); got 5"),
        ({"": 5}, 'an override has the form key.path=value; got ""'),
        ({"traffic..vehicles": 5}, 'an override has the form key.path=value; got "traffic..vehicles"'),
        ({"traffic.vehicles": "5"}, 'traffic.vehicles: must be a whole number; got "5"'),
        ({"mechanisms.no.kind": "olh"}, "mechanisms.no: there is no such item"),
    ],
)
def test_mapping_with_an_unknown_path_is_a_fault(load, overrides, fault):
    for scenario in (None, load()):
        with pytest.raises(ScenarioError) as caught:
            scenarios.load(scenario, overrides=overrides) if scenario else load(overrides=overrides)
        assert fault in str(caught.value)
        assert "--" not in str(caught.value)


OVERRIDES = ["campaigns.rush.round_gap_s=45", "roads.spacing_m=150", "mechanisms.no_privacy.name=plain"]


def test_overrides_of_a_loaded_scenario_equal_those_of_its_file(load):
    """Including defaults that follow from a changed key: the deadline from the gap."""
    read = load()
    assert scenarios.load(read, overrides=OVERRIDES, seed=8) == load(overrides=OVERRIDES, seed=8)
    assert scenarios.load(load(overrides=OVERRIDES[:1]), overrides=OVERRIDES[1:]) == load(overrides=OVERRIDES)
    assert scenarios.load(pickle.loads(pickle.dumps(read)), seed=8) == load(seed=8)  # noqa: S301 - our own
    assert scenarios.load(read) == read == load()
    with pytest.raises(ScenarioError, match=r"traffic\.vehicles: must be at least 1; got 0"):
        scenarios.load(read, overrides={"traffic.vehicles": 0})


def test_changed_copy_keeps_its_changes_when_loaded(load):
    read = load()
    longer = read.model_copy(update={"scenario": read.scenario.model_copy(update={"duration_s": 700.0})})
    assert scenarios.load(longer, seed=8).scenario.duration_s == 700
    assert scenarios.load(longer, seed=8).seed == 8


def test_files_of_a_loaded_scenario_are_relative_to_its_folder(load, tables_text, tmp_path, monkeypatch):
    load(tables_text)
    monkeypatch.chdir(tmp_path)
    read = scenarios.load("small.toml")
    (tmp_path / "others.csv").write_text("id,lon,lat\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    changed = scenarios.load(read, overrides={"roads.nodes": "others.csv"})
    assert changed.roads.nodes == str((tmp_path / "others.csv").resolve())
    absolute = scenarios.load(read, overrides={"roads.nodes": tmp_path / "others.csv"})
    assert absolute == changed


@pytest.mark.parametrize("scenario", [{"scenario": {"name": "x"}}, {}, None, 5, b"tiny", ["tiny"]])
def test_non_scenario_argument_is_refused(scenario):
    with pytest.raises(TypeError, match="scenario must be a shipped name, the path of a file, or a Scenario"):
        scenarios.load(scenario)


@pytest.mark.parametrize("text", [scenarios.source_text("tiny"), "scenario = { name = 'x' }", "[scenario\nname ="])
def test_scenario_text_is_not_accepted_as_a_name(text):
    with pytest.raises(ScenarioError, match="must be a shipped name or the path of a file") as caught:
        scenarios.load(text)
    assert len(str(caught.value)) < 200


def test_copy_accepts_only_sections():
    scenario = scenarios.load("tiny")
    with pytest.raises(TypeError, match=r"update must hold sections .*, got 'seed'; for a seed .* scenarios\.load"):
        scenario.model_copy(update={"seed": 9})
    copied = scenario.model_copy(update={"population": scenario.population})
    assert copied.model_copy(update={"scenario": scenario.scenario}) == scenario


def test_items_may_be_indexed_as_in_messages():
    assert scenarios.load("tiny", overrides={"mechanisms[0].sampling": 0.3}) == scenarios.load(
        "tiny", overrides=["mechanisms.0.sampling=0.3"]
    )


def test_none_is_not_a_value():
    with pytest.raises(ScenarioError, match=r"mechanisms\.sampling\.refresh: None is not a value"):
        scenarios.load("tiny", overrides={"mechanisms.sampling.refresh": None})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (".1", 0.1),
        ("-.5", -0.5),
        ("[.1, 0.2, .3e1]", [0.1, 0.2, 3.0]),
        ("{kind = 'a.5', mean_s = .5}", {"kind": "a.5", "mean_s": 0.5}),
        ("v.1", "v.1"),
        ("./.5", "./.5"),
        ("1..2", "1..2"),
        ('".1"', ".1"),
        ("1\nx = 2", "1\nx = 2"),
    ],
)
def test_a_number_may_leave_out_the_zero_before_its_point(text, value):
    raw = {}
    assert apply_overrides(raw, [f"a={text}"]) == []
    assert raw == {"a": value}
    assert parse_vary([f"a={text}"])["a"] in ([value], value)


DESCRIBED = ("scenario.description='On 300 vehicles.'",)


@pytest.mark.parametrize(
    ("overrides", "kept"),
    [
        ((), True),
        (("traffic.vehicles=500",), False),
        (("channel.loss=0.25", "scenario.seed=7"), False),
        (("mechanisms.sampling.sampling=0.3",), False),
        (("scenario.duration_s=5000",), False),
        (("scenario.seed=7", "scenario.name='again'"), True),
        (("traffic.vehicles=300",), True),
    ],
)
def test_a_description_is_dropped_where_a_value_of_the_file_is_replaced(load, overrides, kept):
    written = load(overrides=("traffic.vehicles=300", *DESCRIBED))
    assert written.scenario.description == "On 300 vehicles."
    for changed in (written.with_(overrides), scenarios.load(written, overrides=overrides, seed=9)):
        assert changed.scenario.description == ("On 300 vehicles." if kept else "")
    fewer = written.with_(("traffic.vehicles=500", "scenario.description='On 500 vehicles.'"))
    assert fewer.scenario.description == "On 500 vehicles."


def test_a_copy_with_another_section_has_no_description_of_the_old_one(load):
    written = load(overrides=DESCRIBED)
    assert written.model_copy().scenario.description == "On 300 vehicles."
    assert written.model_copy(update={"campaigns": written.campaigns[:1]}).scenario.description == ""
