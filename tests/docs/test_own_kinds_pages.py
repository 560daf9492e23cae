"""The examples of users' own cells, engines, demand and readers run as written, and are short."""

import re
import tomllib
from pathlib import Path

import pytest

import scenarios

DOCS = Path(__file__).parents[2] / "docs"
SECTIONS = {
    "cells": "Your own cells",
    "engines": "Your own engine",
    "demand": "Your own demand",
    "roads": "Your own reader",
}
GROUPS = {"cells": ["crowdveil.cells"], "engines": ["crowdveil.engine"], "demand": [], "roads": ["crowdveil.reader"]}
LONGEST = 64


@pytest.mark.parametrize("page", SECTIONS)
def test_example_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    section = text.partition(f"\n## {SECTIONS[page]}\n")[2].partition("\n## ")[0]
    (block,) = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    assert len(block.splitlines()) <= LONGEST
    exec(compile(block, page, "exec"), {"__name__": f"example_of_{page}"})  # noqa: S102 - the page's own code
    assert len(capsys.readouterr().out.splitlines()) > 2
    if page != "demand":
        assert len(list(tmp_path.glob("runs/*/report.html"))) == 1


@pytest.mark.parametrize("page", SECTIONS)
def test_tables_for_files_are_accepted(page):
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    section = text.partition(f"\n## {SECTIONS[page]}\n")[2].partition("\n## ")[0]
    tables = [tomllib.loads(block) for block in re.findall(r"```toml\n(.*?)```", section, flags=re.DOTALL)]
    tables[0].get("roads", {}).pop("path", None)  # a file that only the page's user has
    scenario = scenarios.load("tiny").with_(tables[0])
    assert "my_package" in "".join(kind for _, _, kind in scenario.own_kinds())
    groups = [group for table in tables[1:] for group in table["project"]["entry-points"]]
    assert groups == GROUPS[page]
