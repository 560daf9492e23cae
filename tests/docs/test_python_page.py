"""The examples of python.md, figures.md, events.md and processes.md run as written, in order."""

import re
import shlex
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import pytest
import simpy

import crowdveil as cv

DOCS = Path(__file__).parents[2] / "docs"


def run_examples(page, names=None):
    """Run the Python blocks of a page in one namespace; return their number."""
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    names = {} if names is None else names
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


def count(engine, sensing, **options):
    """Return the numbers of processes, events, devices and messages of a run of `tiny`."""
    with ExitStack() as watching:
        scheduled, *others = (
            watching.enter_context(patch.object(kind, name, autospec=True, side_effect=getattr(kind, name)))
            for kind, name in ((simpy.Environment, "schedule"), (cv.Device, "__init__"), (cv.Answer, "__init__"))
        )
        cv.run("tiny", overrides={"traffic.engine": engine, "sensing.engine": sensing}, **options)
    begins = [call for call in scheduled.call_args_list if isinstance(call.args[1], simpy.events.Initialize)]
    return [len(begins), scheduled.call_count, *(other.call_count for other in others)]


def test_examples_of_processes_run_and_its_table_holds(capsys):
    made = {}
    assert run_examples("why/processes.md", made) == 3
    text = (DOCS / "why/processes.md").read_text(encoding="utf-8")
    stated = re.findall(r"\| `(\w+)` \| `(\w+)` \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|\n", text)
    assert [[int(number) for number in row[2:]] for row in stated] == [count(*row[:2]) for row in stated]
    processes, answers = int(stated[0][2]), int(stated[1][5])
    once = lambda run: (run.wait(60.0) for _ in range(1))  # noqa: E731
    waiting = count("fleet", "batches", processes=[once], behaviour=cv.Behaviour(device=made["Later"]))[0]
    assert waiting == 1 + processes + answers
    assert f"Each of its {answers} answers is a process while it waits, so there are {waiting - 1} " in text
    printed = capsys.readouterr().out
    assert re.search(r"cell\n1    2.0\n2    0.0\n", printed)
    protocol, retrying = re.findall(r"'counted': (\d+)", printed)
    assert int(retrying) > int(protocol)
