"""The examples of docs/python.md and docs/events.md run as written, in order."""

import re
from pathlib import Path

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
    assert run_examples("python.md") >= 5
    printed = capsys.readouterr().out
    assert "cells.size_m: must be above 0; got -1" in printed
    assert "the truth of the runs differs in" in printed


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
