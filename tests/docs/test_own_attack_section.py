"""The example of an own attack in docs/how/collusion.md runs as written, from Python and from a file."""

import re
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import crowdveil as cv

PAGE = (Path(__file__).parents[2] / "docs" / "how" / "collusion.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## Your own attack\n")[2].partition("\n## ")[0]
CLASS, PYTHON = re.findall(r"```python\n(.*?)```", SECTION, flags=re.DOTALL)
SCENARIO, PACKAGE = re.findall(r"```toml\n(.*?)```", SECTION, flags=re.DOTALL)


@pytest.fixture
def module(tmp_path):
    (tmp_path / "my_attacks.py").write_text(CLASS, encoding="utf-8")
    sys.path.insert(0, str(tmp_path))
    yield tmp_path
    sys.path.remove(str(tmp_path))
    sys.modules.pop("my_attacks", None)


def test_the_example_is_short():
    assert len((CLASS + PYTHON + SCENARIO + PACKAGE).splitlines()) <= 60


def test_the_python_example_runs():
    names = {"__name__": "page"}
    for block in (CLASS, PYTHON):
        exec(compile(block, "collusion.md", "exec"), names)  # noqa: S102 - the page's own code
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
    ((group, points),) = tomllib.loads(PACKAGE)["project"]["entry-points"].items()
    ((name, value),) = points.items()
    assert (group, name) == ("crowdveil.attack", "walks")
    assert EntryPoint(name, value, group).load().__name__ == "Walks"
