"""The examples of docs/python.md, docs/figures.md and docs/events.md run as written, in order."""

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
    assert run_examples("python.md") >= 5
    printed = capsys.readouterr().out
    assert "cells.size_m: must be above 0 metres; got -1" in printed
    assert "the truth of the runs differs in" in printed


@pytest.mark.slow
def test_examples_of_figures_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    assert run_examples("figures.md") == 4
    assert {"two.pdf", "collusion.gpkg"} <= {path.name for path in tmp_path.iterdir()}
    assert "rmse_sampling_shared" in capsys.readouterr().out


@pytest.mark.slow
def test_commands_of_figures_run_in_order(tmp_path, monkeypatch, call_in_process):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    cv.run("tiny", out="runs/collusion")  # smaller, under the name that the page uses
    text = (DOCS / "figures.md").read_text(encoding="utf-8")
    commands = [line for block in re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL) for line in block.splitlines()]
    assert len(commands) == 8
    for line in commands:
        words = shlex.split(line, comments=True)[1:]
        done = call_in_process(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "links" / "edgedata.xml").is_file()


def test_examples_of_events_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run_examples("events.md") >= 9
    printed = capsys.readouterr().out
    assert printed.count("closed: ") == 2 * 3
    assert "queries instead of 9" in printed
    accounts = dict(re.findall(r"(?m)^(\w+(?: \w+)?) +\{.*'counted': (\d+)", printed))
    counted = {name: int(number) for name, number in accounts.items()}
    assert set(counted) == {"protocol", "retrying", "duty cycle", "slow", "dropping"}
    assert counted["retrying"] > counted["protocol"] > max(counted[name] for name in ("duty cycle", "slow", "dropping"))
