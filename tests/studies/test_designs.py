"""Designs of studies: which settings, seeds and keys they have, and what is refused."""

import itertools

import numpy as np
import pytest

import scenarios
from scenarios import ScenarioError
from simulator.files.errors import InputError
from simulator.studies.design import design_of, parse_vary, read_design, typed_column
from simulator.studies.store import StudyDirectory
from simulator.studies.sweep import Sweep

SAMPLING = "mechanisms.sampling.sampling"


def _write(folder, text, name="design.toml"):
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("a.b=1,2", [1, 2]),
        ("a.b=.1,.25,1e-3", [0.1, 0.25, 1e-3]),
        ("a.b=free_flow,reactive", ["free_flow", "reactive"]),
        ("a.b=true,false", [True, False]),
        ('a.b="x,y",z', ['"x', 'y"', "z"]),
        ('a.b="x,y","z"', ["x,y", "z"]),
        ("a.b=[1, 2],[3]", [[1, 2], [3]]),
        ("a.b = 5", [5]),
        ("a.b={kind = 'constant', s = .5}", [{"kind": "constant", "s": 0.5}]),
    ],
)
def test_values_are_read_as_toml_or_as_text(option, values):
    if ".5}" in option:  # TOML needs 0.5 inside a table
        option = option.replace(".5}", "0.5}")
    assert parse_vary([option]) == {"a.b": values}


@pytest.mark.parametrize("option", ["a.b", "=1,2", "a.b=", ""])
def test_an_option_of_another_form_is_refused(option):
    with pytest.raises(InputError, match=r"key\.path=value"):
        parse_vary([option])


def test_a_key_that_is_named_twice_is_refused():
    with pytest.raises(InputError, match="named twice"):
        parse_vary(["a.b=1", "a.b=2"])


def test_a_grid_has_every_combination_and_each_replicate_its_seed():
    vary = {SAMPLING: [0.1, 0.3], "traffic.vehicles": [50, 60, 70]}
    design = design_of("tiny", vary, replicates=4, seed=11)
    table = design.table(design.points())
    assert len(table) == 24
    combined = table[table["replicate"] == 2][[SAMPLING, "traffic.vehicles"]]
    assert [*combined.itertuples(index=False, name=None)] == [*itertools.product(*vary.values())]
    assert set(zip(table["replicate"], table["seed"], strict=True)) == {(1, 11), (2, 12), (3, 13), (4, 14)}
    assert table["point"].tolist() == list(range(1, 25))
    assert table["key"].is_unique
    assert table.dtypes[SAMPLING] == "float64"
    assert table.dtypes["traffic.vehicles"] == "int64"


def test_columns_have_the_type_of_their_values():
    assert typed_column([1, 2]).dtype == "int64"
    assert typed_column([1, 0.5]).dtype == "float64"
    assert typed_column([True, False]).dtype == "bool"
    assert typed_column(["a", "b"]).tolist() == ["a", "b"]
    assert typed_column([[1, 2], {"a": 1}]).map(type).unique().tolist() == [str]


def test_the_key_depends_on_what_determines_numbers_and_on_nothing_else(tmp_path):
    def key(*overrides, text=None, folder="one"):
        scenario = "tiny"
        if text is not None:
            (tmp_path / folder).mkdir(exist_ok=True)
            scenario = _write(tmp_path / folder, text, "tiny.toml")
        return design_of(scenario, {SAMPLING: [0.2]}, overrides=overrides).points()[0].key

    base = key()
    assert key("scenario.seed=2") != base
    assert key("traffic.vehicles=51") != base
    text = scenarios.source_text("tiny")
    assert key(text=text) == base  # where the file lies does not count
    assert key(text=text.replace("description = ", "description = 'changed' # ", 1), folder="two") == base


def test_the_key_depends_on_the_content_of_data_files_and_not_on_their_place(tmp_path):
    keys = {}
    for folder, row in (("one", "1,0,5"), ("two", "1,0,5"), ("three", "1,0,6")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "trips.csv").write_text(f"origin,destination,trips\n{row}\n")
        text = scenarios.source_text("tiny").replace("vehicles = 60", 'demand = "trips"\ntrips = "trips.csv"')
        path = _write(tmp_path / folder, text, "tiny.toml")
        assert "trips.csv" in path.read_text()
        keys[folder] = design_of(path, {}).points()[0].key
    assert keys["one"] == keys["two"] != keys["three"]


def test_a_key_of_every_item_is_one_factor_and_items_without_it_are_named(tmp_path):
    coins = "mechanisms.*.first_coin"
    for design in (
        design_of("tiny", parse_vary([f"{coins}=.5,.9"])),
        read_design(_write(tmp_path, f'scenario = "tiny"\n[grid]\n"{coins}" = [0.5, 0.9]\n')),
    ):
        assert design.factors == (coins,)
        assert [setting.scenario.mechanisms[1].parameters["first_coin"] for setting in design.settings] == [0.5, 0.9]
        assert design.notes == (f"{coins} changes nothing in sampling and baseline, which state no first_coin",)
        assert Sweep(design, StudyDirectory(tmp_path / "none")).notes == [*design.notes]


def test_two_equal_points_are_refused():
    with pytest.raises(InputError, match="setting 2, replicate 1, and setting 1, replicate 2"):
        design_of("tiny", {"scenario.seed": [1, 2]}, replicates=2).points()


def test_a_value_that_the_scenario_refuses_is_named_before_anything_runs():
    with pytest.raises(ScenarioError, match=r"mechanisms\.sampling\.sampling: must be .*; got 2"):
        design_of("tiny", {SAMPLING: [0.1, 2]})


@pytest.mark.parametrize("replicates", [0, -1, 1.5, True])
def test_replicates_are_whole_numbers_from_one(replicates):
    with pytest.raises(InputError, match=r"replicates .* at least 1; got"):
        design_of("tiny", {}, replicates=replicates)


DESIGN = """
scenario = "tiny"
replicates = 3
seed = 5

[set]
channel.churn = 0.05

[grid]
mechanisms.sampling.sampling = [0.2, 0.4]

[[list]]
channel.loss = 0.0
"traffic.vehicles" = 100
[[list]]
channel.loss = 0.1
"traffic.vehicles" = 50

[latin_hypercube]
settings = 5
seed = 3
[latin_hypercube.ranges]
mechanisms.randomized.first_coin = { from = 0.5, to = 0.9 }
"population.outside" = { from = 10, to = 1000, scale = "log", whole = true }
"""


def test_a_file_combines_grid_list_and_latin_hypercube(tmp_path):
    design = read_design(_write(tmp_path, DESIGN))
    table = design.table(design.points())
    assert len(design.settings) == 2 * 2 * 5
    assert {setting.scenario.channel.churn for setting in design.settings} == {0.05}
    assert design.replicates == 3
    assert sorted(table["seed"].unique()) == [5, 6, 7]
    pairs = {*zip(table["channel.loss"], table["traffic.vehicles"], strict=True)}
    assert pairs == {(0.0, 100), (0.1, 50)}
    coins = np.sort(table["mechanisms.randomized.first_coin"].unique())
    assert ((coins - 0.5) / 0.4 * 5).astype(int).tolist() == [0, 1, 2, 3, 4]  # one in each fifth
    outside = np.sort(table["population.outside"].unique())
    assert table.dtypes["population.outside"] == "int64"
    assert (np.log10(outside / 9.999) / 2 * 5).astype(int).tolist() == [0, 1, 2, 3, 4]


def test_a_file_names_a_scenario_beside_it(tmp_path):
    _write(tmp_path, scenarios.source_text("tiny"), "town.toml")
    design = read_design(_write(tmp_path, 'scenario = "town.toml"\n[grid]\n"traffic.vehicles" = [5]\n'))
    assert design.settings[0].scenario.traffic.vehicles == 5


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (("replicates = 3", "replicates = 0"), "replicates: must be"),
        (("replicates = 3", "repeats = 3"), "repeats: unknown key"),
        (("to = 0.9", "to = 0.4"), "must be above from, 0.5"),
        (("from = 10,", "from = 0,"), 'must be above 0 with scale = "log"'),
        (('"traffic.vehicles" = 50', '"traffic.step_s" = 50'), "must name the same keys as the first"),
        (("channel.loss = 0.1", "mechanisms.sampling.sampling = 0.1"), "same keys|only"),
        (("= [0.2, 0.4]", "= []"), "mechanisms.sampling.sampling: must"),
        (("settings = 5", "settings = 0"), "settings: must be"),
        (('scenario = "tiny"', 'scenario = "tinny"'), "tiny"),
        ((DESIGN, 'scenario = "tiny"\n[[designs]]\n'), "designs: unknown key"),
        (('scenario = "tiny"', "scenario = tiny"), "cannot be read"),
    ],
)
def test_a_fault_of_a_file_is_named_with_its_key(tmp_path, changed, message):
    assert changed[0] in DESIGN
    with pytest.raises(ScenarioError, match=message):
        read_design(_write(tmp_path, DESIGN.replace(*changed)))
