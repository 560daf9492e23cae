"""Every command that takes a run or study refuses a missing and a damaged one in one line."""

import json
import os
import subprocess
import sys

import pytest

EXPORTS = ("geopackage", "edgedata", "gmns")
OF_RUNS = [
    ("report", "DIR"),
    ("figures", "DIR"),
    ("figures", "DIR", "--film"),
    *(("export", "DIR", "--to", to) for to in EXPORTS),
    ("open", "DIR"),
]
OF_STUDIES = [
    ("sweep", "--merge", "DIR", "--out", "joined"),
    ("sweep", "tiny", "--out", "DIR"),
    ("participation", "tiny", "--out", "DIR"),
]


def only_line(done):
    """Return the only line that a refused command prints."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("crowdveil: ")
    return done.stderr


@pytest.fixture(params=["missing", "empty", "cut", "list"])
def damaged(request, tmp_path):
    """The name of a folder that is no finished run or study, or is missing."""
    if request.param != "missing":
        (tmp_path / "DIR").mkdir()
    if request.param in {"cut", "list"}:
        for name in ("run.json", "study.json"):
            (tmp_path / "DIR" / name).write_text({"cut": '{"format"', "list": "[1]"}[request.param])
    return request.param


@pytest.mark.slow
@pytest.mark.parametrize("command", [*OF_RUNS, *OF_STUDIES], ids=" ".join)
def test_a_process_that_has_imported_nothing_prints_one_line(command, tmp_path):
    (tmp_path / "DIR").mkdir()
    for name in ("run.json", "study.json"):
        (tmp_path / "DIR" / name).write_text("[1]")
    process = [sys.executable, "-m", "simulator.cli", *command]
    done = subprocess.run(process, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "DIR" in only_line(done)


@pytest.mark.parametrize("command", OF_RUNS, ids=" ".join)
def test_command_refuses_what_is_no_run(command, damaged, call):
    line = only_line(call(*command))
    assert "DIR" in line
    if damaged in {"cut", "list"} and command[0] != "open":
        assert "run.json" in line


@pytest.mark.parametrize("command", OF_STUDIES, ids=lambda command: " ".join(command[:2]))
def test_command_refuses_what_is_no_study(command, damaged, call):
    if damaged in {"missing", "empty"} and "--merge" not in command:
        pytest.skip("a study begins there")
    assert "DIR" in only_line(call(*command))


@pytest.mark.slow
def test_quiet_sweep_tells_of_points_that_failed(tmp_path):
    vary = ("--vary", "traffic.vehicles=60", "--timeout", "0.001", "--workers", "0", "--quiet")
    process = [sys.executable, "-m", "simulator.cli", "sweep", "tiny", *vary]
    done = subprocess.run(process, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "point 1 failed twice" in done.stderr
    merging = [*process[:3], "sweep", "--merge", "studies/tiny", "--out", "joined", "--quiet"]
    merged = subprocess.run(merging, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (merged.returncode, merged.stdout) == (1, "")
    assert "1 of 1 points failed" in merged.stderr


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_every_encoding_of_the_streams_will_do(encoding, tmp_path):
    def printed(*arguments):
        process = [sys.executable, "-m", "simulator.cli", *arguments]
        env = {**os.environ, "PYTHONIOENCODING": encoding}
        done = subprocess.run(process, cwd=tmp_path, capture_output=True, env=env, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode(encoding)

    assert "\\u2212" in printed("run", "tiny"), "a minus that the encoding lacks"
    assert "ε" in str(json.loads(printed("reproduce", "--list", "--json")))
