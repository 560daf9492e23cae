"""The page on studies: its commands run, its cluster's files work, and `evaluate` explains every column."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from pandas.testing import assert_frame_equal

import crowdveil as cv
from simulator.studies.store import Study

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how" / "studies.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.slow


@pytest.fixture
def shell(tmp_path):
    """Return a function that runs a command in an empty folder where `crowdveil` is this one."""
    (tmp_path / "bin").mkdir()
    crowdveil = tmp_path / "bin" / "crowdveil"
    crowdveil.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m simulator.cli "$@"\n')
    crowdveil.chmod(0o755)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    base = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "USER": "somebody", "TMPDIR": str(tmp_path)}

    def run(*command, **variables):
        done = subprocess.run(command, cwd=tmp_path, env=base | variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (command, done.stderr)

    return run


@pytest.mark.timeout(600)
def test_commands_of_the_page_run(shell, tmp_path):
    smaller = PAGE.replace("sweep manhattan", "sweep tiny").replace("tiny,highway", "tiny")
    for block in re.findall(r"```sh\n(.*?)```", smaller.replace("--replicates 5", "--replicates 1"), flags=re.DOTALL):
        shell("sh", "-ec", block)
    assert len(Study.load(tmp_path / "studies" / "tiny").points) == 12
    assert len(Study.load(tmp_path / "studies" / "whole").points) == 8
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    shell(sys.executable, "-c", code)


def test_every_column_of_an_evaluation_is_explained(tmp_path):
    tables = cv.evaluate(["oue"], ["tiny"], epsilon=1.0, delta=0.1, replicates=2, out=tmp_path, workers=0)
    explained = set(re.findall(r"`(\w+)`", cv.evaluate.__doc__))
    for name, table in tables.items():
        assert set(table.columns) - {"data", "mechanism", "decile", "view", "adjacency", "against"} <= explained, name


@pytest.mark.timeout(600)
def test_array_jobs_of_slurm_and_kubernetes_are_the_whole_when_merged(shell, tmp_path):
    # Small points, without processes that work beside each job's own.
    small = {"REPLICATES": "1", "SCENARIO": "tiny", "CROWDVEIL_CACHE": str(tmp_path / "cache")}
    small |= {"SLURM_CPUS_PER_TASK": "0"}
    script = ROOT / "docs" / "how" / "cluster" / "sweep.slurm"
    tasks = [int(end) for end in re.search(r"--array=(\d+)-(\d+)", script.read_text()).groups()]
    for task in range(tasks[0], tasks[1] + 1):
        shell("bash", str(script), SLURM_ARRAY_TASK_ID=str(task), SLURM_ARRAY_TASK_MIN=str(tasks[0]), **small)
    shell("sh", "-ec", "crowdveil sweep --merge studies/shard-* --out studies/slurm")

    job = yaml.safe_load((ROOT / "docs" / "how" / "cluster" / "sweep-job.yaml").read_text())["spec"]
    (container,) = job["template"]["spec"]["containers"]
    (words,) = container["args"]
    words = words.replace("--replicates 20", "--replicates 1").replace("sweep manhattan", "sweep tiny")
    words = words.replace("--workers 2", "--workers 0")
    for index in range(job["completions"]):
        shell(*container["command"], words, STUDIES=str(tmp_path / "pods"), JOB_COMPLETION_INDEX=str(index), **small)
    shell("sh", "-ec", "crowdveil sweep --merge pods/shard-* --out pods/whole")

    slurm, pods = Study.load(tmp_path / "studies" / "slurm"), Study.load(tmp_path / "pods" / "whole")
    assert len(slurm.points) == 12
    assert_frame_equal(slurm.scores, pods.scores)


def test_the_papers_row_on_gowalla_is_as_stated(shell, tmp_path):
    if "CROWDVEIL_DATA" not in os.environ:
        pytest.skip("needs the folder of data sets")
    (section,) = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
    (tmp_path / "paper.toml").write_text(section)
    files = ["--mechanisms", "paper.toml", "--data", "gowalla-nyc", "--epsilon", "2", "--replicates", "3"]
    shell("crowdveil", "evaluate", *files, "--out", "paper")
    differences = (tmp_path / "paper" / "tables" / "differences.csv").read_text().splitlines()
    header, *rows = (line.split(",") for line in differences)
    (row,) = (dict(zip(header, row, strict=True)) for row in rows if row[1] == "randomized_response")
    printed = re.search(r"error is ([\d.]+) \(([\d.]+) … ([\d.]+)\) times", PAGE).groups()
    found = [f"{float(row[name]):.2f}" for name in ("ratio", "ratio_lower", "ratio_upper")]
    assert found == list(printed)
