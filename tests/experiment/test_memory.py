"""The memory estimate: close to measured use, and compared with available memory before the run starts."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import scenarios
from scenarios import ScenarioError
from simulator import run
from simulator.cli import app, main
from simulator.experiment.components import RunComponents
from simulator.experiment.memory_estimate import estimate
from simulator.files import resources
from simulator.files.errors import InputError
from simulator.files.tables import check_parquet

GB = 10**9


@pytest.fixture
def available(monkeypatch):
    """Pretend that this many bytes are available."""

    def pretend(nbytes):
        monkeypatch.setattr(resources, "available_nbytes", lambda: nbytes)
        monkeypatch.setattr(resources, "NEGLIGIBLE", 0)

    return pretend


HUGE = {
    "10⁸ vehicles": (["traffic.vehicles=100000000"], "traffic.vehicles"),
    "10⁶ cells": (["cells.size_m=1", "roads.spacing_m=334"], "cells"),
    "outside, one by one": (["population.outside=1e9", 'population.answers="reports"'], "population.outside"),
    "crossings": (["roads.rows=30000", "roads.columns=30000"], "roads"),
    "moments": (["fcd.every_s=1e-7"], "fcd.every_s"),
}


@pytest.mark.parametrize("what", HUGE)
def test_run_that_exceeds_memory_is_refused_in_one_message(available, what, monkeypatch, capsys, tmp_path):
    overrides, field = HUGE[what]
    available(0.5 * GB)
    settings = [word for override in overrides for word in ("--set", override)]
    for command in (["run", "tiny", "--out", str(tmp_path / "r")], ["scenarios", "check", "tiny"]):
        monkeypatch.setattr(sys, "argv", ["crowdveil", *command, *settings])
        with pytest.raises(SystemExit) as caught:
            main()
        message = capsys.readouterr().err
        assert caught.value.code == 2
        assert f"\n  {field}: " in message
        for words in ("memory needed to", "available are 500 MB", "--yes"):
            assert words in message
        assert "Traceback" not in message
    assert not list(tmp_path.iterdir())
    with pytest.raises(ScenarioError, match="assume_yes=True"):
        run("tiny", overrides=overrides)


def test_many_counts_and_cells_are_accepted_if_memory_suffices(available):
    available(64 * GB)
    for overrides in (["population.outside=1e9"], ["traffic.vehicles=1e7"], ["cells.size_m=0.5"]):
        scenario = scenarios.load("tiny", overrides=overrides)
        RunComponents.build(scenario)


def test_option_yes_skips_the_memory_check(available):
    available(0)
    with pytest.raises(ScenarioError, match="memory needed"):
        run("tiny")
    assert run("tiny", assume_yes=True).facts["vehicles"] == 60
    assert CliRunner().invoke(app, ["scenarios", "check", "tiny", "--yes"]).exit_code == 0


def test_many_steps_give_a_note():
    scenario = scenarios.load("tiny", overrides=["traffic.step_s=0.0001"])
    (note,) = [note for note in RunComponents.build(scenario).notes if note.code == "many_steps"]
    assert "3,000,000 steps" in note.text


def test_large_parquet_is_refused_from_its_metadata(available, tmp_path):
    path = tmp_path / "zeros.parquet"
    table = pa.table({"time": np.zeros(10**6), "vehicle": pa.array(["a"]).take(pa.array(np.zeros(10**6, np.int64)))})
    pq.write_table(table, path)
    assert path.stat().st_size < 20_000
    available(0.1 * GB)
    with pytest.raises(InputError, match=r"zeros.parquet: memory needed to read its 1,000,000 rows is about 15\d MB"):
        check_parquet(pq.ParquetFile(path), path)
    check_parquet(pq.ParquetFile(path), path, columns=["time"])


def test_available_memory_is_the_smallest_limit(tmp_path, monkeypatch):
    assert 0 < resources.available_nbytes() < 2**50
    own, root = tmp_path / "self", tmp_path / "groups"
    own.write_text("0::/a/b\n")
    (root / "a" / "b").mkdir(parents=True)
    for group, most, held, droppable in ((root / "a", "5000", 3000, 500), (root / "a" / "b", "max", 10, 0)):
        (group / "memory.max").write_text(f"{most}\n")
        (group / "memory.current").write_text(f"{held}\n")
        (group / "memory.stat").write_text(f"anon 7\ninactive_file {droppable}\n")
    assert list(resources._of_groups(root, own)) == [2500.0]
    for name in ("_of_groups", "_of_address_space"):
        monkeypatch.setattr(resources, name, lambda: iter(()))
    assert resources.available_nbytes() == pytest.approx(psutil.virtual_memory().available, rel=0.2)
    monkeypatch.setattr(resources, "_of_groups", lambda: iter([5.0]))
    assert resources.available_nbytes() == 5.0


MEASURE = """
import json, sys
from pathlib import Path
from simulator import run
from simulator.files.resources import peak_memory_nbytes
run("tiny", out=sys.argv[1] + "-first")
before = peak_memory_nbytes()
run(sys.argv[2], overrides=sys.argv[3:], out=sys.argv[1])
print(json.dumps([before, peak_memory_nbytes()]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        pytest.param("grid20", ["traffic.vehicles=1500000"], marks=pytest.mark.thorough),
        pytest.param("manhattan", ["traffic.vehicles=700000"], marks=pytest.mark.thorough),
        ("tiny", ["cells.size_m=3"]),
        ("rivals", ["cells.size_m=60"]),
    ],
)
def test_memory_estimate_is_within_a_factor_of_two(tmp_path, name, overrides):
    """Includes the memory of the libraries and the compiler, which no scenario changes."""
    command = [sys.executable, "-c", MEASURE, str(tmp_path / "r"), name, *overrides]
    libraries, measured = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    )
    scenario = scenarios.load(name, overrides=overrides)
    parts = RunComponents.build(scenario)
    needed = libraries + sum(part.nbytes for part in estimate(scenario, parts.city, parts.mechanisms))
    print(f"{name}: estimate {needed / 1e6:.0f} MB, measured {measured / 1e6:.0f} MB, ratio {needed / measured:.2f}")  # noqa: T201 - for the report
    assert 0.5 <= needed / measured <= 2.0


def test_page_of_benchmarks_states_the_bytes_of_a_vehicle_that_runs_measure():
    facts = run("tiny").facts
    page = (Path(__file__).parents[2] / "benchmarks" / "README.md").read_text(encoding="utf-8")
    (stated,) = re.findall(r"\| memory of a vehicle without its route;.*?\| (\d+) bytes;", page)
    assert facts["memory_bytes"]["vehicles"] / facts["vehicles"] == pytest.approx(int(stated), abs=0.5)
