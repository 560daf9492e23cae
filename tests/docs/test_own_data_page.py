"""The examples of own_data.md run, and its tables for files give equal runs; the city page's commands run as typed."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pandas as pd
import pytest

import crowdveil as cv

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "how" / "own_data.md").read_text(encoding="utf-8")
SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
FILES = {"nodes.csv": "nodes", "links.csv": "links", "antennas.gpkg": "cells"}


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The folder with the files of the page's program, and what the program has made."""
    folder = tmp_path_factory.mktemp("own_data")
    made = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(compile(block, "own_data.md", "exec"), made)  # noqa: S102 - the page's own code
    for file, name in FILES.items():
        table = made[name]
        table.to_csv(folder / file, index=False) if file.endswith("csv") else table.to_file(folder / file)
    return folder, made


def test_commands_of_the_city_page_run_as_typed(tmp_path):
    page = (DOCS / "start" / "your_city.md").read_text(encoding="utf-8")
    commands = "".join(re.findall(r"```sh\n(.*?)```", page, flags=re.DOTALL))
    (tmp_path / "data").symlink_to(DOCS.parent / "data")
    known = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    printed = subprocess.check_output(["bash", "-euc", commands], cwd=tmp_path, env=known, text=True)
    assert "8 measured values at 3 places on links" in printed
    assert re.findall(r"GEH below 5 for (\d+) % of 8 flows", printed) == ["100", "0"]
    assert "Sampling Privacy         │ 7.75" in printed
    assert (tmp_path / "runs" / "taxis" / "report.html").is_file()
    half = cv.run(tmp_path / "town.toml", overrides={"traffic.share": 0.5}).record
    assert [one for one in half.warnings if "share" in one] == [
        "traffic.share = 0.5 drives a part of the trips; with scale = 2 they stand for all"
    ]


@pytest.mark.parametrize("number", range(2))
def test_files_give_the_run_of_the_data_in_python(example, number):
    folder, made = example
    ((name, keys),) = tomllib.loads(re.search(r"```toml\n(.*?)```", SECTIONS[number], flags=re.DOTALL)[1]).items()
    changes = {name: {key: str(folder / value) if value in FILES else value for key, value in keys.items()}}
    expected, found = cv.run(made["town"]), cv.run(made["town"].with_(changes))
    pd.testing.assert_frame_equal(found.estimates, expected.estimates)
    assert found.facts["traffic"]["arrived"][-1] > 0
