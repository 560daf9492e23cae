"""An installed wheel runs the commands without access to the source tree."""

import json
import os
from pathlib import Path

import pytest
from installation import execute

ROOT = Path(__file__).parents[2]
COMMANDS = {
    "run": ("run", "tiny", "--out", "kept"),
    "reproduce": ("reproduce", "lqs-table2", "--json"),
    "data": ("data", "list"),
}

pytestmark = pytest.mark.slow


@pytest.fixture
def call(installed, tmp_path):
    """Call a program of the installation, in an empty folder and without this process's environment variables."""
    named = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CROWDVEIL"))}
    return lambda name, *arguments: execute(installed / name, *arguments, cwd=tmp_path, env=named)


def test_installation_does_not_import_the_source_tree(call, installed):
    code = "import json, sys, simulator as a, mechanisms as b, scenarios as c; "
    code += "print(json.dumps([sys.path, a.__file__, b.__file__, c.__file__]))"
    path, *modules = json.loads(call("python", "-c", code))
    assert str(ROOT) not in path
    assert all(Path(module).is_relative_to(installed.parent) for module in modules)


@pytest.mark.parametrize("name", COMMANDS)
def test_installed_command_works(call, tmp_path, name):
    printed = call("crowdveil", *COMMANDS[name])
    assert printed.strip()
    if name == "run":
        facts = json.loads((tmp_path / "kept" / "run.json").read_text(encoding="utf-8"))
        assert facts["scenario"] == "tiny"
        assert facts["version"] != "unknown"
        assert (tmp_path / "kept" / "report.html").is_file()
    if name == "reproduce":
        assert json.loads(printed)


def test_public_package_runs_from_the_wheel(call, installed):
    code = "import crowdveil as cv; print(cv.__file__); print(cv.run('tiny'), cv.scenarios.source_text('tiny')[:8]); "
    code += (
        "from simulator.cli.new import shipped_notebook; print(shipped_notebook().read_text('utf-8').count('cv.run('))"
    )
    file, shown, runs = call("python", "-c", code).strip().split("\n")
    assert int(runs) == 2
    assert Path(file).is_relative_to(installed.parent)
    assert shown.endswith("3 mechanisms> #:schema")
