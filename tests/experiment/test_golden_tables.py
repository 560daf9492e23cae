"""The shipped scenarios produce the tables that tests/golden records; `golden_tables.py` makes the records."""

import json
import re
import shutil

import golden_tables
import pandas as pd
import pytest

FAST = {"helsinki-osm", "manhattan", "refined", "releases", "template", "tiny"}
LONGEST = {"server-noise"}
IMPLAUSIBLE = re.compile("gridlock|free-flow speed|straight distance|shape of|capacit|outside the area")


def _marks(name):
    if name in FAST:
        return []
    return [pytest.mark.slow, pytest.mark.thorough] if name in LONGEST else [pytest.mark.slow]


@pytest.mark.parametrize("name", [pytest.param(name, marks=_marks(name)) for name in golden_tables.names()])
def test_tables_are_those_recorded(name, shipped_run):
    directory = shipped_run(name)
    assert golden_tables.differences(golden_tables.read(name), golden_tables.summary(directory)) == []
    # Its roads and traffic are plausible; weakened claims are the purpose of `lossy`.
    warnings = json.loads((directory / "run.json").read_text(encoding="utf-8"))["warnings"]
    assert [warning for warning in warnings if IMPLAUSIBLE.search(warning)] == []


def test_every_scenario_has_a_record():
    assert sorted(path.stem for path in golden_tables.GOLDEN.glob("*.json")) == sorted(golden_tables.names())


@pytest.fixture(scope="module")
def tiny(shipped_run, tmp_path_factory):
    return shutil.copytree(shipped_run("tiny"), tmp_path_factory.mktemp("runs") / "tiny")


def _swapped(frame):
    order = [1, 0, *range(2, len(frame))]
    return frame.iloc[order].reset_index(drop=True)


@pytest.mark.parametrize(
    ("table", "change", "fault"),
    [
        ("estimates", _swapped, "estimates.estimate:"),
        ("estimates", lambda frame: frame.assign(lower=frame["lower"] + 1e-6), "estimates.lower:"),
        ("estimates", lambda frame: frame.assign(lower=frame["lower"].where(frame.index != 3)), "estimates.lower:"),
        ("estimates", lambda frame: frame.assign(estimate=frame["estimate"].where(frame.index != 0, -1)), "errors of "),
        ("rounds", lambda frame: frame.assign(asked=frame["asked"].where(frame.index != 0, 59)), "rounds.asked:"),
        ("rounds", lambda frame: frame.assign(asked=frame["asked"].astype("int32")), "rounds.asked:"),
        ("rounds", lambda frame: frame.drop(columns="late"), "rounds: the column late is lost"),
        ("claims", lambda frame: frame[1:], "claims: "),
        ("claims", lambda frame: frame.assign(view=frame["view"].str.upper()), "claims.view:"),
        ("scores", lambda frame: frame.assign(bias=frame["bias"] * (1 + 1e-7)), "scores of "),
    ],
)
def test_a_change_of_a_table_is_noticed(table, change, fault, tiny):
    path = tiny / f"{table}.parquet"
    content = path.read_bytes()
    change(pd.read_parquet(path)).to_parquet(path)
    changed = golden_tables.summary(tiny)
    path.write_bytes(content)
    assert any(text.startswith(fault) for text in golden_tables.differences(golden_tables.read("tiny"), changed))


def test_a_lost_table_is_noticed_and_added_ones_and_sentences_are_not(tiny):
    golden = golden_tables.read("tiny")
    path = tiny / "claims.parquet"
    content = path.read_bytes()
    claims = pd.read_parquet(path)
    claims.assign(basis="x", reason="new").to_parquet(path)
    claims.to_parquet(tiny / "reasons.parquet")
    assert golden_tables.differences(golden, golden_tables.summary(tiny)) == []
    path.unlink()
    assert golden_tables.differences(golden, golden_tables.summary(tiny)) == ["claims: the table is lost"]
    path.write_bytes(content)
    (tiny / "reasons.parquet").unlink()


def test_a_record_is_written_as_it_is_read(tmp_path, monkeypatch):
    record = golden_tables.read("tiny")
    content = (golden_tables.GOLDEN / "tiny.json").read_text(encoding="utf-8")
    monkeypatch.setattr(golden_tables, "GOLDEN", tmp_path)
    golden_tables.write("tiny", record)
    assert (tmp_path / "tiny.json").read_text(encoding="utf-8") == content
    assert json.loads(content) == record
