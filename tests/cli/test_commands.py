"""The overview of commands, which is printed without importing them."""

import os
import subprocess
import sys

import pytest

from simulator.cli.commands import COMMANDS, load_command
from simulator.cli.options import StudyOptions


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_of_a_command_is_the_first_line_of_its_help(name):
    assert load_command(name).help.splitlines()[0] == COMMANDS[name]


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_import_no_heavy_library(option):
    heavy = ["numpy", "pydantic", "pandas", "numba", "scipy", "geopandas", "scenarios", "mechanisms"]
    code = (
        f"import sys; sys.argv = ['crowdveil', {option!r}]\n"
        "from simulator.cli import main\n"
        "try: main()\n"
        f"finally: sys.stderr.write(' '.join(name for name in {heavy} if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "crowdveil" in done.stdout
    assert done.stderr == ""


@pytest.mark.slow
def test_a_first_run_compiles_few_functions_and_a_later_one_none(tmp_path):
    # Their number tells what a first start costs, whatever else the machine does: each takes 0.02 to 8 s.
    code = (
        "import sys, numba.core.event as event\n"
        "from simulator.cli import main\n"
        "with event.install_recorder('numba:compile') as compilations:\n"
        "    try: main()\n"
        "    finally: sys.stderr.write(str(sum(one.is_start for _, one in compilations.buffer)))"
    )
    command = [sys.executable, "-c", code, "run", "manhattan", "--quiet", "--overwrite", "--out", tmp_path / "run"]
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    first, later = (
        int(subprocess.run(command, capture_output=True, text=True, check=True, env=env).stderr) for _ in range(2)
    )
    assert 50 < first <= 125  # 113 to 116; two threads may compile the same one
    assert later == 0


def test_sweep_and_evaluate_have_the_same_options_of_studies():
    commands = [{option.name: option for option in load_command(name).params} for name in ("sweep", "evaluate")]
    for name in StudyOptions._fields:
        one, other = (command[name] for command in commands)
        assert (one.opts, one.help, one.default) == (other.opts, other.help, other.default)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_argument_and_option_has_a_text(name):
    command = load_command(name)
    for each in getattr(command, "commands", {name: command}).values():
        assert all(parameter.help for parameter in each.params), each.name
