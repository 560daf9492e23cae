"""Each scenario error gives a message with path, rule and received value."""

from __future__ import annotations

import pickle
import tomllib

import pytest
import tomli_w

import scenarios
from scenarios import Fault, Scenario, ScenarioError
from scenarios.overrides import apply_overrides

WINDOWS = "traffic.departures=[{from_s=0, to_s=300, share=0.5}, {from_s=300, to_s=%s, share=%s}]"

# override of the small scenario, key path of its only fault, fragments of the message
SPOILED = [
    ("scenario.name='two words'", "scenario.name", ["letters, digits", '"two words"']),
    ("scenario.name=''", "scenario.name", ["at least one"]),
    ("scenario.seed=-1", "scenario.seed", ["at least 0", "-1"]),
    ("scenario.seed=1.0", "scenario.seed", ["whole number", "1.0"]),
    ("scenario.seed=true", "scenario.seed", ["whole number", "true"]),
    ("scenario.duration_s='600'", "scenario.duration_s", ["must be a number", '"600"']),
    ("scenario.duration_s=nan", "scenario.duration_s", ["finite", "nan"]),
    ("scenario.duration_s=inf", "scenario.duration_s", ["finite", "inf"]),
    ("scenario.duraton_s=1", "scenario.duraton_s", ["unknown key", "did you mean duration_s?", "1"]),
    ("atacks=[]", "atacks", ["unknown key"]),
    ("trafic.x=1", "trafic", ["unknown key", "did you mean traffic?"]),
    ("roads.source='osmm'", "roads.source", ["grid", "tables", '"osmm"']),
    ("roads=5", "roads", ["must be a table", "5"]),
    ("roads.rows=0", "roads.rows", ["at least 1", "0"]),
    ("roads.rows=4.0", "roads.rows", ["whole number", "4.0"]),
    ("roads={source='grid', rows=1, columns=1, spacing_m=5}", "roads.rows", ["at least 2", "no road"]),
    ("roads={source='grid', rows=2, columns=2}", "roads.spacing_m", ["either spacing_m"]),
    ("roads.spacing_x_m=10", "roads.spacing_m", ["either spacing_m", "spacing_x_m = 10"]),
    ("roads={source='grid', rows=2, columns=2, spacing_x_m=5}", "roads.spacing_m", ["both"]),
    (
        "roads={source='grid', rows=1, columns=3, spacing_m=5, one_way=true}",
        "roads.one_way",
        ["2 rows and 2 columns", "no vehicle could come back"],
    ),
    ("roads.one_way=1", "roads.one_way", ["true or false", "1"]),
    ("roads.spacing_m=-200", "roads.spacing_m", ["above 0", "-200"]),
    ("roads.speed_mps=0", "roads.speed_mps", ["above 0"]),
    ("roads.anchor.lat=85", "roads.anchor.lat", ["at most 80", "85"]),
    ("roads.anchor.lon=-181", "roads.anchor.lon", ["at least -180"]),
    ("cells.kind='hexagon'", "cells.kind", ["square", "geographic", '"hexagon"']),
    ("cells={size_m=5}", "cells.kind", ["is required", "square"]),
    ("cells.size_m=0", "cells.size_m", ["above 0"]),
    ("cells.bounds=[0, 0, 5]", "cells.bounds", ["four numbers", "[0, 0, 5]"]),
    ("cells.bounds=[5, 0, 5, 9]", "cells.bounds", ["x_min must be below x_max"]),
    ("cells.bounds=[0, 9, 5, 1]", "cells.bounds", ["y_min must be below y_max"]),
    ("cells.bounds=[0, 0, 5, '9']", "cells.bounds[3]", ["must be a number"]),
    ("traffic.vehicles=0", "traffic.vehicles", ["at least 1", "0"]),
    ("traffic.vehicles=999999999999", "traffic.vehicles", ["at most"]),
    ("traffic.engine='fleets'", "traffic.engine", ["fleet", "agents", "did you mean fleet?"]),
    ("traffic.departures='evenly'", "traffic.departures", ["uniform", "peak", '"evenly"']),
    ("traffic.departures=3", "traffic.departures", ["a list of {from_s, to_s, share}", "3"]),
    (WINDOWS % (600, 0.4), "traffic.departures", ["sum to 1", "0.9"]),
    (WINDOWS % (601, 0.5), "traffic.departures[1].to_s", ["at most scenario.duration_s = 600", "601"]),
    (WINDOWS % (300, 0.5), "traffic.departures[1].from_s", ["before to_s = 300"]),
    ("traffic.departures=[]", "traffic.departures", ["sum to 1"]),
    ("traffic.step_s=0.0000001", "traffic.step_s", ["2,147,483,647", "6,000,000,000"]),
    ("population.participation=0", "population.participation", ["above 0"]),
    ("population.outside=-3", "population.outside", ["at least 0"]),
    ("campaigns=[]", "campaigns", ["at least 1", "[[campaigns]]"]),
    ("campaigns={start_s=5}", "campaigns", ["a list", "[[campaigns]]"]),
    ("campaigns.rush.deadline_s=0", "campaigns.rush.deadline_s", ["above 0", "0"]),
    ("campaigns.rush.deadline_s=31", "campaigns.rush.deadline_s", ["overlap", "31 s", "round_gap_s = 30"]),
    ("campaigns.rush.every_s=59", "campaigns.rush.every_s", ["overlap", "60 s", "every_s = 59"]),
    ("campaigns.rush.start_s=99", "campaigns.rush.start_s", ["warmup_s = 100", "without queries", "99"]),
    ("campaigns.rush.queries=6", "campaigns.rush.queries", ["750 s", "duration_s = 600"]),
    (f"campaigns.rush.queries={10**400}", "campaigns.rush.queries", ["duration_s = 600"]),
    ("campaigns.late.start_s=571", "campaigns.late.start_s", ["601 s", "duration_s = 600"]),
    ("campaigns.late.queries=2", "campaigns.late.every_s", ["is required", "queries = 2"]),
    ("campaigns.late.name='rush'", "campaigns[1].name", ["names must differ", "campaigns[0]"]),
    ("campaigns.late.round_gap_s=-1", "campaigns.late.round_gap_s", ["above 0"]),
    ("campaigns.late.statistic='mode'", "campaigns.late.statistic", ["count"]),
    ("mechanisms.sampling.sampling=0", "mechanisms.sampling.sampling", ["above 0"]),
    ("mechanisms.sampling.sampling=1.5", "mechanisms.sampling.sampling", ["at most 1", "1.5"]),
    ("mechanisms.sampling.blank_zero=0.6", "mechanisms.sampling.blank_zero", ["at most 1", "1.05"]),
    ("mechanisms.sampling.blank=[0.3, 0.3]", "mechanisms.sampling.blank", ["at most 1", "sum of blank"]),
    ("mechanisms.sampling.blank=[0.3, 2]", "mechanisms.sampling.blank[1]", ["at most 1", "2"]),
    ("mechanisms.sampling.kind='sampling'", "mechanisms.sampling.kind", ["package.module:Class"]),
    ("mechanisms.sampling.kind='my mod:X'", "mechanisms.sampling.kind", ["package.module:Class"]),
    ("mechanisms.1.coin=0.5", "mechanisms[1].coin", ["unknown key"]),
    ("mechanisms.1={name='no-kind'}", "mechanisms.no-kind.kind", ["is required", "sampling_privacy"]),
    ("mechanisms.1={kind='a.b:C', x={y=[nan]}}", "mechanisms[1].x.y[0]", ["finite", "nan"]),
    ("channel.latency_s=-1", "channel.latency_s", ["at least 0", "-1"]),
    ("channel.latency_s=true", "channel.latency_s", ["a number of seconds", "true"]),
    ("channel.latency_s={kind='normal'}", "channel.latency_s.kind", ["lognormal", '"normal"']),
    ("channel.latency_s={kind='exponential'}", "channel.latency_s.mean_s", ["is required"]),
    ("channel.loss_two=1.01", "channel.loss_two", ["at most 1"]),
    ("aggregation.kind='trust'", "aggregation.kind", ["trusted"]),
    ("release.kind='laplac'", "release.kind", ["none", "did you mean laplace?"]),
    ("claims.epsilons=[1, 0]", "claims.epsilons[1]", ["above 0"]),
    ("claims.queries=[]", "claims.queries", ["at least 1"]),
    ("claims.crowds=[1.0]", "claims.crowds[0]", ["whole number"]),
]

# override of the small scenario whose roads are tables, likewise
SPOILED_TABLES = [
    ("roads.nodes='absent.csv'", "roads.nodes", ["no such file", "absent.csv"]),
    ("roads.edges='data:x'", "roads.edges", ["data:FOLDER/FILE"]),
    ("roads.edges='data:x/../y'", "roads.edges", ["data:FOLDER/FILE"]),
    ("roads.nodes='a\\u0000b'", "roads.nodes", ["no such file"]),
    ("roads.columns.lat=1", "roads.columns.lat", ["text in quotes"]),
    ("roads.columns.x='x'", "roads.columns", ["must name lon and lat, or x and y"]),
    ("roads.columns={node='n', from='a', to='b', x='x'}", "roads.columns", ["x and y"]),
    ("roads.columns={from=3, to='b'}", "roads.columns.from", ["text in quotes"]),
    ("roads.columns.speed='v'", "roads.columns.speed", ["unknown key", "speed_mps"]),
    ("roads.columns={node='n', from='a', to='b', x='x', y='y'}", "roads.crs", ["EPSG:32618"]),
    ("roads.crs='EPSG:32618'", "roads.crs", ["needs x and y"]),
    ("roads.crs='Atlantis'", "roads.crs", ["PROJ knows", "Atlantis"]),
    ("roads.crs='EPSG:4326'", "roads.crs", ["projected"]),
    ("roads.crs='EPSG:2263'", "roads.crs", ["metres"]),
    ("roads.default_lanes=0", "roads.default_lanes", ["at least 1"]),
]


@pytest.mark.parametrize(("override", "path", "fragments"), SPOILED, ids=[row[0] for row in SPOILED])
def test_each_single_error_gives_one_fault(load, only_fault, override, path, fragments):
    only_fault(lambda: load(overrides=[override]), path, *fragments)


@pytest.mark.parametrize("override", [row[0] for row in SPOILED[::8]])  # one of most sections
def test_mapping_has_the_same_faults_as_a_file(load, valid_text, tmp_path, override):
    tables = tomllib.loads(valid_text)
    apply_overrides(tables, [override])
    with pytest.raises(ScenarioError) as of_file:
        load(tomli_w.dumps(tables))
    with pytest.raises(ScenarioError) as of_tables:
        Scenario.model_validate(tables, context={"folder": tmp_path})
    assert str(of_tables.value).splitlines()[1:] == str(of_file.value).splitlines()[1:]


@pytest.mark.parametrize(("override", "path", "fragments"), SPOILED_TABLES, ids=[row[0] for row in SPOILED_TABLES])
def test_each_single_error_of_table_roads_gives_one_fault(load, only_fault, tables_text, override, path, fragments):
    assert load(tables_text).roads.source == "tables"
    only_fault(lambda: load(tables_text, overrides=[override]), path, *fragments)


@pytest.mark.parametrize(
    ("die", "fragments"),
    [
        ("form = 'multi', blank_zero = 0.2, blank = [0.2, 0.2]", ["must be 1", "1.05"]),
        ("form = 'binary', blank_zero = 0.2, blank = 0.2", ["must be 1", "0.85"]),
        ("form = 'binary', blank = [0.2, 0.2]", ["must be one number"]),
        ("form = 'multi', blank_zero = 0.5, blank = 0.1", ["at most 1", "1.05"]),
    ],
)
def test_sampling_probabilities_must_sum_to_one(load, only_fault, die, fragments):
    mechanism = f"mechanisms.1={{kind = 'sampling_privacy', name = 'die', sampling = 0.45, {die}}}"
    only_fault(lambda: load(overrides=[mechanism]), "mechanisms.die.blank", *fragments)


@pytest.mark.parametrize("section", ["scenario", "roads", "cells", "traffic", "campaigns", "mechanisms"])
def test_missing_section_gives_one_fault(load, only_fault, valid_text, section):
    head, *tables = valid_text.split("\n\n")
    kept = [table for table in (head.strip(), *tables) if not table.strip("[\n").startswith(section)]
    only_fault(lambda: load("\n\n".join(kept)), section, "is required")


def test_faults_of_three_sections_are_all_reported(load, faults_of):
    die = "mechanisms.0={kind = 'sampling_privacy', name = 'die', sampling = 0.5, blank_zero = 0.6}"
    faults = faults_of(lambda: load(overrides=["roads.rouws=4", die, "campaigns.rush.every_s=40"]))
    assert [fault.path for fault in faults] == ["roads.rouws", "campaigns.rush.every_s", "mechanisms.die.blank_zero"]


def test_faulty_field_does_not_hide_rules_on_other_fields(load, faults_of):
    faults = faults_of(
        lambda: load(
            overrides=[
                "scenario.name=5",
                "scenario.warmup_s=700",
                "campaigns.rush.start_s=750",
                "campaigns.rush.statistic='mode'",
                "campaigns.late.start_s='x'",
                "traffic.vehicles=0",
                "traffic.step_s=1e-9",
                "channel.loss=2",
            ]
        )
    )
    assert [fault.path for fault in faults] == [
        "scenario.name",
        "scenario.warmup_s",
        "traffic.vehicles",
        "traffic.step_s",
        "campaigns.rush.statistic",
        "campaigns.rush.queries",
        "campaigns.late.start_s",
        "channel.loss",
    ]


def test_duplicate_mechanism_is_addressed_by_index(load, only_fault):
    twice = ["mechanisms.0.name='no_privacy'"]
    only_fault(lambda: load(overrides=twice), "mechanisms[1].name", "names must differ", "mechanisms[0]")


def test_the_message_counts_and_lists_the_faults(load):
    with pytest.raises(ScenarioError) as caught:
        load(overrides=["traffic.vehicles=0", "cells.size_m=-5"])
    first, *others = str(caught.value).splitlines()
    assert first.endswith("small.toml: 2 faults")
    assert others == [
        "  cells.size_m: must be above 0 metres; got -5",
        "  traffic.vehicles: must be at least 1; got 0",
    ]


def test_values_in_messages_are_toml_of_limited_length():
    assert str(Fault("a", "rule", 'say "hi"\n')) == r'a: rule; got "say \"hi\"\u000a"'
    assert str(Fault("a", "rule", {"b": [True, 1.5]})) == "a: rule; got {b = [true, 1.5]}"
    assert len(str(Fault("a", "rule", "x" * 1000))) < 300
    assert len(str(Fault("a", "rule", 10**5000))) < 100


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("[scenario\n", ["not valid TOML", "line 1"]),
        ("a = 1\na = 2\n", ["not valid TOML"]),
        ("a = " + "9" * 5000, ["cannot be parsed"]),
    ],
)
def test_invalid_toml_is_refused(load, only_fault, text, fragments):
    only_fault(lambda: load(text), "", *fragments)


def test_non_utf8_file_is_refused(only_fault, tmp_path):
    file = tmp_path / "binary.toml"
    file.write_bytes(b"name = '\xff'")
    only_fault(lambda: scenarios.load(file), "", "not UTF-8")


def test_missing_file_is_refused(only_fault, tmp_path):
    only_fault(lambda: scenarios.load(tmp_path / "gone.toml"), "", "no such file", "gone.toml")
    only_fault(lambda: scenarios.load(tmp_path), "", "cannot be read")


def test_unknown_shipped_name_suggests_the_nearest(only_fault):
    only_fault(lambda: scenarios.load("manhatan"), "", "did you mean manhattan?", "highway", "manhatan")


def test_the_error_survives_pickling():
    error = ScenarioError("small", [Fault("a.b", "must be above 0", -1)])
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert isinstance(again, ValueError)
    assert (str(again), again.faults) == (str(error), error.faults)
