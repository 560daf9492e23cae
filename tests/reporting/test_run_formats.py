"""Run directories of version 0.1.0 are read, and later formats refused."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from simulator import run
from simulator.results.run import RunResult
from simulator.results.run_record import RUN_FORMAT
from simulator.results.schema import TABLES

OLD = Path(__file__).parent / "run_of_version_0_1_0"
"""Made by the first version that had reports, of the scenario `tiny` that it shipped; its report.html is left out."""


@pytest.fixture
def old(tmp_path):
    return Path(shutil.copytree(OLD, tmp_path / "old"))


@pytest.fixture
def report(call_in_process, tmp_path):
    def call(directory):
        done = call_in_process("report", str(directory), cwd=tmp_path)
        return done.returncode, " ".join(done.stderr.split())

    return call


def test_a_run_of_version_0_1_0_is_reported(old, report):
    facts = json.loads((old / "run.json").read_text(encoding="utf-8"))
    assert facts["version"] == "0.1.0"
    assert "format" not in facts
    code, _ = report(old)
    assert code == 0
    page = (old / "report.html").read_text(encoding="utf-8")
    mae = pd.read_parquet(old / "scores.parquet")["mae"]
    assert all(f"{value:.3g}" in page for value in mae)


def test_run_of_version_0_1_0_has_all_current_columns(old, tmp_path):
    run("tiny", out=tmp_path / "now")
    now, then = RunResult.load(tmp_path / "now"), RunResult.load(old)
    for name in TABLES:
        frame, current = getattr(then, name), getattr(now, name)
        assert frame is None or current is None or set(frame.columns) == set(current.columns), name
    assert then.leading is then
    assert f"seed {then.record.seed}" in then.summary()
    # Version 0.1.0 counted only the vehicles asked.
    assert then.estimates["vehicles"].isna().all()
    assert not then.partial
    assert set(then.scores["statistic"]) == {"count"}
    assert now.record.format == RUN_FORMAT
    assert then.record.format == 1


@pytest.mark.parametrize("number", [RUN_FORMAT + 1, 0, "2", None, 1.5])
def test_unsupported_format_is_refused_and_directory_unchanged(old, report, number):
    facts = json.loads((old / "run.json").read_text(encoding="utf-8"))
    (old / "run.json").write_text(json.dumps({**facts, "format": number, "version": "9.9"}), encoding="utf-8")
    before = sorted(old.iterdir())
    code, message = report(old)
    assert code == 2
    assert f"format: must be a whole number from 1 to {RUN_FORMAT}" in message
    assert f"got {number!r}, written by version 9.9" in message
    assert sorted(old.iterdir()) == before


@pytest.mark.parametrize("content", [b"[]", b"3", b"{", b"\xff\xfe{}"])
def test_invalid_run_json_is_refused(old, report, content):
    (old / "run.json").write_bytes(content)
    code, message = report(old)
    assert code == 2
    assert "run.json: " in message
