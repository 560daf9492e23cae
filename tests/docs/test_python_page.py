"""The examples of python.md, figures.md, events.md and processes.md run as written, in order."""

import re
import shlex
from pathlib import Path

import pytest

import crowdveil as cv

DOCS = Path(__file__).parents[2] / "docs"


def run_examples(page):
    """Run the Python blocks of a page in one namespace; return their number."""
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)  # noqa: S102 - the page's own code
    return len(blocks)


def test_examples_of_python_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    assert run_examples("how/python.md") >= 5
    printed = capsys.readouterr().out
    assert "cells.size_m: must be above 0 metres; got -1" in printed
    assert "the truth of the runs differs in" in printed


@pytest.mark.slow
def test_examples_of_figures_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    assert run_examples("how/figures.md") == 4
    assert {"two.pdf", "collusion.gpkg"} <= {path.name for path in tmp_path.iterdir()}
    assert "rmse_sampling_shared" in capsys.readouterr().out


@pytest.mark.slow
def test_commands_of_figures_run_in_order(tmp_path, monkeypatch, call_in_process):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    cv.run("tiny", out="runs/collusion")  # smaller, under the name that the page uses
    text = (DOCS / "how/figures.md").read_text(encoding="utf-8")
    commands = [line for block in re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL) for line in block.splitlines()]
    assert len(commands) == 8
    for line in commands:
        words = shlex.split(line, comments=True)[1:]
        done = call_in_process(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "links" / "edgedata.xml").is_file()


def test_examples_of_events_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run_examples("how/events.md") == 4
    printed = capsys.readouterr().out
    assert printed.count("closed: ") == 2 * 3
    assert "queries instead of 9" in printed


def test_examples_of_processes_run_and_count_what_the_table_states(capsys):
    assert run_examples("why/processes.md") == 5
    printed = capsys.readouterr().out
    text = (DOCS / "why/processes.md").read_text(encoding="utf-8")
    stated = re.findall(r"\| `(\w+)` \| `(\w+)` \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|\n", text)
    assert [" ".join(row) for row in stated] == printed.splitlines()[:4]
    processes = int(stated[0][2])
    assert f"with a process of one's own: {processes + 1} " in printed
    answers = int(stated[1][5])
    assert f"Each of its {answers} answers is a process while it waits, so there are {processes + answers} " in text
    assert f"with answers that wait: {processes + answers} " in printed
    assert re.search(r"cell\n1    2.0\n2    0.0\n", printed)
    counted = {name: int(number) for name, number in re.findall(r"(?m)^(\w+) +\{.*'counted': (\d+)", printed)}
    assert counted["retrying"] > counted["protocol"]
