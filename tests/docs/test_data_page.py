"""docs/data.md agrees with the manifest and the loaders, and its examples run."""

import re
from pathlib import Path

import pytest

import scenarios
from simulator import run
from simulator.datasets import load
from simulator.datasets.docs_generator import renewed
from simulator.datasets.loader import LOADERS
from simulator.datasets.manifest import read_manifest
from simulator.files.errors import InputError

FILE = Path(__file__).parents[2] / "docs" / "data.md"
PAGE = FILE.read_text(encoding="utf-8")
SCENARIOS = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
ROWS = {
    loader: columns
    for loaders, columns in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| ([^|]*) \| [^|]* \|$", PAGE, flags=re.MULTILINE)
    for loader in re.findall(r"\w+", loaders)
}


def test_page_agrees_with_the_manifest():
    assert renewed(PAGE, read_manifest()) == PAGE, "run python -m simulator.datasets.docs_generator docs/data.md"
    for known in read_manifest():
        assert f"\n### {known.folder}\n" in PAGE
        for words in (known.owner_page, known.licence, known.citation, known.how_to_obtain, *known.defects):
            assert words == "none" or words in PAGE


def test_page_without_marker_line_is_refused():
    with pytest.raises(InputError, match="must have a line"):
        renewed("# Data\n", read_manifest())


def test_every_loader_has_its_row():
    assert set(LOADERS) <= set(ROWS)


@pytest.mark.parametrize("name", read_manifest().data_set("samples").names)
def test_documented_columns_include_those_of_the_samples(name):
    loader = read_manifest().data_set("samples").file(name).loader
    named = re.findall(r"`(\w+)`", ROWS[loader])
    if named:
        assert set(load("samples", file=name).columns) <= set(named)


def test_python_example_runs(monkeypatch, capsys):
    monkeypatch.delenv("CROWDVEIL_DATA", raising=False)
    (example,) = (block for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL) if block[0] != "#")
    exec(compile(example, "docs/data.md", "exec"), {})  # noqa: S102  # our own page
    assert "made up for crowdveil" in capsys.readouterr().out


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
