"""The example in docs/how/own_attack.md runs as written, from Python and from a file."""

import re
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import crowdveil as cv

PAGE = (Path(__file__).parents[2] / "docs" / "how" / "own_attack.md").read_text(encoding="utf-8")
CLASS, PYTHON = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
SCENARIO, PACKAGE = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.fixture
def module(tmp_path):
    (tmp_path / "my_attacks.py").write_text(CLASS, encoding="utf-8")
    sys.path.insert(0, str(tmp_path))
    yield tmp_path
    sys.path.remove(str(tmp_path))
    sys.modules.pop("my_attacks", None)


def test_the_python_example_is_short_and_runs():
    assert len((CLASS + PYTHON + SCENARIO + PACKAGE).splitlines()) <= 60
    names = {"__name__": "page"}
    for block in (CLASS, PYTHON):
        exec(compile(block, "own_attack.md", "exec"), names)  # noqa: S102 - the page's own code
    assert set(cv.run(names["attacked"]).attacks["name"]) == {"Walks", "half", "link_rounds"}


def test_the_file_runs(module):
    file = module / "mine.toml"
    file.write_text(cv.scenarios.source_text("tiny") + SCENARIO, encoding="utf-8")
    attacks = cv.run(file, allow_plugins=True).attacks
    assert set(attacks["attack"]) == {"my_attacks:Walks"}
    assert (attacks["success"] <= 1.0).all()
    assert attacks.set_index("mechanism").loc["baseline", "success"] == 1.0


@pytest.mark.usefixtures("module")
def test_the_entry_point_names_the_class():
    assert tomllib.loads(PACKAGE)["project"]["entry-points"] == {"crowdveil.attack": {"walks": "my_attacks:Walks"}}
    assert EntryPoint("walks", "my_attacks:Walks", "crowdveil.attack").load().__name__ == "Walks"
