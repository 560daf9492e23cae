"""Whole runs with attacks: their table, and that attacks change no other result."""

import math

import pandas as pd
import pytest

import scenarios
from scenarios import ScenarioError
from simulator import run
from simulator.results.schema import TABLES

PLAIN = """
[scenario]
name = "attacked"
duration_s = 600
[roads]
source = "grid"
rows = 5
columns = 5
spacing_m = 200
[cells]
kind = "square"
size_m = 400
[traffic]
vehicles = 300
parked = "answer"
[population]
outside = 40
[[campaigns]]
name = "rounds"
start_s = 200
queries = 3
every_s = 90
round_gap_s = 30
[[campaigns]]
name = "shares"
start_s = 210
aggregation = {kind = "secret_shared", servers = 3, paired = true}
[[campaigns]]
name = "mixed"
start_s = 220
aggregation = {kind = "shuffled"}
[[mechanisms]]
name = "sampling"
kind = "sampling_privacy"
sampling = 0.45
[[mechanisms]]
name = "k-ary"
kind = "k_randomized_response"
epsilon = 2.0
[aggregation]
kind = "per_round"
"""
ATTACKS = """
[[attacks]]
kind = "round_one"
coalition = ["server:1"]
[[attacks]]
kind = "link_rounds"
coalition = ["server:1", "server:2"]
growing = true
[[attacks]]
kind = "shares"
coalition = ["server:1", "server:2", "server:3"]
growing = true
[[attacks]]
name = "unmixed"
kind = "link_rounds"
coalition = ["server:1", "mixer"]
prior = "uniform"
[[attacks]]
kind = "known_others"
coalition = ["network"]
k = 2
[[attacks]]
kind = "longitudinal"
coalition = ["server:1", "server:2"]
asked = [1, 2, 3]
[[attacks]]
kind = "poisoning"
coalition = ["vehicles:20"]
[[attacks]]
kind = "drop_out"
coalition = ["network"]
dropped = "others"
targets = 30
"""


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    def load_text(text, overrides=()):
        file = tmp_path_factory.mktemp("attacked") / "attacked.toml"
        file.write_text(text)
        return scenarios.load(file, overrides=overrides)

    return load_text


@pytest.fixture(scope="module")
def attacked(load):
    return run(load(PLAIN + ATTACKS))


def test_attacks_change_no_other_table(load, attacked):
    plain = run(load(PLAIN))
    for table in ("estimates", "rounds", "scores", "claims"):
        pd.testing.assert_frame_equal(getattr(plain, table), getattr(attacked, table), check_exact=True)
    assert plain.attacks.empty
    assert list(plain.attacks.columns) == [column.name for column in TABLES["attacks"].columns]


def test_attack_rows_do_not_depend_on_other_attacks(load, attacked):
    first = ATTACKS.split("[[attacks]]")[2]
    alone = run(load(f"{PLAIN}[[attacks]]{first}"))
    rows = attacked.attacks[attacked.attacks.name == "link_rounds"].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone.attacks, rows, check_exact=True)


def test_attack_table_of_a_run(attacked):
    table = attacked.attacks
    assert set(table.attack) == {
        "round_one", "link_rounds", "shares", "known_others", "longitudinal", "poisoning", "drop_out",
    }  # fmt: skip
    shares = table[table.attack == "shares"]
    assert set(shares.campaign) == {"shares"}
    assert shares[shares.colluding < 3].gain.abs().max() < 1e-12
    assert shares[shares.colluding == 3].gain_low.min() > 0
    first = table[(table.attack == "round_one") & table.metric.isna() & (table.mechanism == "sampling")]
    assert first.gain.abs().max() < 1e-12
    assert set(table[table.name == "unmixed"].campaign) == {"mixed"}
    dropped = table[table.attack == "drop_out"]
    assert dropped.groupby("campaign").trials.max().to_dict() == {"rounds": 90, "shares": 30, "mixed": 30}
    parked = table[table.attack == "longitudinal"]
    assert parked[parked.campaign == "rounds"].value.max() == 3
    sure = table[table.success.notna() & table.theory.notna()]
    assert ((sure.success - sure.theory).abs() < 5 * (0.25 / sure.trials) ** 0.5).all()


def test_missing_values_are_null_in_the_attack_file(attacked, tmp_path):
    place = attacked.save(tmp_path / "run")
    table = pd.read_parquet(place / "attacks.parquet", dtype_backend="pyarrow")
    assert list(table.columns) == [column.name for column in TABLES["attacks"].columns]
    assert len(table) == len(attacked.attacks)
    for column in ("prior", "success", "gain", "theory", "epsilon_lower", "value"):
        assert not any(value != value for value in table[column].dropna())  # noqa: PLR0124 - what NaN is
    assert table[table.attack == "poisoning"].success.isna().all()


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["attacks.link_rounds.coalition=['server:3']", "attacks.link_rounds.growing=false",
          "attacks.link_rounds.campaigns=['rounds']"], "link_rounds.coalition: campaigns.rounds has no mechanism"),
        (["attacks.poisoning.cell=400"], "attacks.poisoning: cell must be in 1"),
        (["attacks.poisoning.coalition=['vehicles:250']", "population.participation=0.5"],
         "attacks.poisoning.coalition: there are only"),
    ],
    ids=["server", "cell", "vehicles"],
)  # fmt: skip
def test_attack_faults_found_at_run_time_are_scenario_errors(load, overrides, words):
    with pytest.raises(ScenarioError, match=words):
        run(load(PLAIN + ATTACKS, overrides))


def test_devices_sampled_by_counts_are_no_targets(load):
    result = run(load(PLAIN + ATTACKS, ["population.answers='counts'"]))
    assert result.attacks.empty
    assert any(
        "there are no targets: no honest vehicle answered individually" in note for note in result.facts["warnings"]
    )


def test_released_counts_are_not_attacked_as_exact_counts(load):
    head, rounds, *_ = PLAIN.split("[[campaigns]]")
    mechanisms = PLAIN[PLAIN.index("[[mechanisms]]") : PLAIN.index("[aggregation]")]
    tried = """
[[attacks]]
kind = "known_others"
coalition = ["network"]
[[attacks]]
kind = "drop_out"
coalition = ["network"]
dropped = "others"
"""
    text = f"{head}[[campaigns]]{rounds}{mechanisms}{tried}"
    assert set(run(load(text)).attacks.attack) == {"known_others", "drop_out"}
    result = run(load(f'{text}[release]\nkind = "laplace"\nepsilon = 0.5\n'))
    rows = result.attacks.query("attack == 'known_others' and mechanism == 'sampling'")
    assert 0.5 < rows["theory"].item() <= 1 / (1 + math.exp(-0.5))
    assert rows["epsilon_lower"].item() <= 0.5
