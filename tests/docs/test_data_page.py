"""docs/reference/data.md agrees with the manifest, its lines read the files, and its examples run."""

import os
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pandas as pd
import pytest

import scenarios
from reference_pages import REFERENCE, data_pages
from scenarios.references import samples_path
from simulator import run
from simulator.datasets.manifest import read_manifest
from simulator.files.errors import InputError

PAGE = (REFERENCE / "data.md").read_text(encoding="utf-8")
DATA = os.environ.get("CROWDVEIL_DATA", "no such folder")
SLOW = pytest.mark.slow
SCENARIOS = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
HOW_TO_READ = dict(re.findall(r"^\| `(\w+)` \| (.*?) \| [^|]*\|$", PAGE, flags=re.MULTILINE))
"""What the page says on reading each format in Python."""
READ = [(known, file) for known in read_manifest() for file in known.files if file.format is not None]


def read_as_documented(file, format_):
    """Read a file by the code of the format's row; skip where the row has none, or a library is missing."""
    code = re.match(r"`(.*?)`", HOW_TO_READ[format_])
    if code is None:
        pytest.skip("no line of Python reads it")
    names = {"pd": pd, "re": re, "Path": Path, "ET": ET, "file": str(file)}
    for library in ("geopandas", "sumolib"):
        if library in code[1]:
            names[library] = pytest.importorskip(library)
    return eval(code[1], names)  # noqa: S307  # our own page


def test_pages_agree_with_the_manifest():
    for name, text in data_pages(PAGE, read_manifest()).items():
        assert (REFERENCE / name).read_text(encoding="utf-8") == text, f"{name}: run python docs/reference_pages.py"
    assert len([*(REFERENCE / "data").iterdir()]) == len([*read_manifest()])
    for known in read_manifest():
        page = (REFERENCE / "data" / f"{known.folder}.md").read_text(encoding="utf-8")
        for words in (known.owner_page, known.licence, known.citation, known.how_to_obtain, *known.defects):
            assert words == "none" or words in page


def test_page_without_marker_line_is_refused():
    with pytest.raises(InputError, match="must have a line"):
        data_pages("# Data\n", read_manifest())


def test_every_format_has_its_row():
    assert {file.format for _, file in READ} == set(HOW_TO_READ)


@pytest.mark.parametrize(
    ("known", "file"),
    [
        pytest.param(known, file, id=f"{known.folder}/{file.name}", marks=[] if known.folder == "samples" else SLOW)
        for known, file in READ
    ],
)
def test_documented_line_reads_every_row(known, file):
    path = samples_path() / file.name if known.folder == "samples" else Path(DATA, known.folder, file.name)
    if not path.is_file():
        pytest.skip("real data is not part of the project")
    if file.format == "tntp_trips" and path.suffix == ".gz":
        pytest.skip("the line reads unpacked text")
    rows = read_as_documented(path, file.format)
    if file.format == "sumo_net":
        assert len(rows.getEdges()) == file.rows
    elif file.format == "sumo_routes":
        assert len(list(rows)) == file.rows
    else:
        assert len(rows) == file.rows


def test_example_scenarios_run(tmp_path, monkeypatch):
    monkeypatch.delenv("CROWDVEIL_DATA", raising=False)
    assert len(SCENARIOS) == 3
    for text in SCENARIOS:
        path = tmp_path / "mine.toml"
        path.write_text(text)
        result = run(path)
        assert result.estimates["truth"].sum() > 0
    gmns = 'source = "gmns"\npath = "data:samples/gmns"\n'
    roads = SCENARIOS[0][SCENARIOS[0].index('source = "tntp"') : SCENARIOS[0].index("[cells]")]
    path.write_text(SCENARIOS[0].replace(roads, gmns))
    assert scenarios.load(path).roads.path == "data:samples/gmns"
    assert run(path).estimates["truth"].sum() == run_of(SCENARIOS[0], tmp_path).estimates["truth"].sum()


def run_of(text, folder):
    path = folder / "again.toml"
    path.write_text(text)
    return run(path)
