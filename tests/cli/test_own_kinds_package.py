"""A package with a kind of one's own for each role, installed by pip: used by its names, and by Python, and checked."""

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = Path(__file__).parents[1] / "own_kinds_package"
CLASSES = ("PlainResponse", "TrimmedMean", "MostFrequent", "RingRoad", "Strips", "Ladder")
SCENARIO = """
[scenario]
name = "own-kinds"
duration_s = 900

[roads]
source = "{roads}"
rungs = 6

[cells]
kind = "{cells}"
number = 3

[traffic]
engine = "{engine}"
vehicles = 300

[[campaigns]]
start_s = 120
queries = 2
every_s = 120

[[mechanisms]]
kind = "{mechanism}"
name = "own"
epsilon = 2.0

[[mechanisms]]
kind = "no_privacy"

[aggregation]
kind = "{aggregator}"
servers = 5

[[attacks]]
kind = "{attack}"
coalition = ["server:1", "server:2", "server:3", "server:4", "server:5"]
"""
NAMES = {
    "roads": "ladder",
    "cells": "strips",
    "engine": "ring-road",
    "mechanism": "plain-response",
    "aggregator": "trimmed-mean",
    "attack": "most-frequent",
}
DOTTED = {
    "roads": "own_kinds:Ladder",
    "cells": "own_kinds:Strips",
    "engine": "own_kinds:RingRoad",
    "mechanism": "own_kinds:PlainResponse",
    "aggregator": "own_kinds:TrimmedMean",
    "attack": "own_kinds:MostFrequent",
}

pytestmark = pytest.mark.slow


def execute(*command, status=0, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Build and install the wheels of the project and of the package; other packages come from this environment."""
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling builds the wheels and is not installed: pip install 'crowdveil[dev]'")
    folder = tmp_path_factory.mktemp("own_kinds")
    for source in (ROOT, PACKAGE):
        execute(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "dist", cwd=source)
    venv.create(folder / "venv", with_pip=False)
    bin_ = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
    install = ("--python", bin_ / "python", "install", "--no-deps", "--no-index", "--quiet")
    execute(sys.executable, "-m", "pip", *install, *(folder / "dist").glob("*.whl"))
    paths = sysconfig.get_paths(vars={"base": folder / "venv", "platbase": folder / "venv"})
    theirs = {sysconfig.get_paths()[name] for name in ("purelib", "platlib")}
    Path(paths["purelib"], "others.pth").write_text("\n".join(theirs), encoding="utf-8")
    return bin_


@pytest.fixture
def call(programs, tmp_path):
    """Call a program of the installation, in an empty folder and without this process's environment variables."""
    named = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CROWDVEIL"))}
    return lambda name, *arguments, status=0: execute(
        programs / name, *arguments, status=status, cwd=tmp_path, env=named
    )


@pytest.mark.parametrize("names", [NAMES, DOTTED], ids=["entry points", "dotted"])
def test_scenario_uses_every_role(call, tmp_path, names):
    (tmp_path / "own.toml").write_text(SCENARIO.format(**names), encoding="utf-8")
    refused = call("crowdveil", "run", "own.toml", status=2)
    assert refused.count("only with permission") == 6
    call("crowdveil", "scenarios", "check", "own.toml", "--allow-plugins")
    call("crowdveil", "run", "own.toml", "--allow-plugins", "--out", "kept", "--quiet")
    facts = json.loads((tmp_path / "kept" / "run.json").read_text(encoding="utf-8"))
    assert set(facts["plug_ins"]) == set(names.values())
    assert all(len(checksum) == 64 for checksum in facts["plug_ins"].values())
    assert facts["vehicles"] == 300
    assert (tmp_path / "kept" / "report.html").is_file()


def test_python_uses_the_classes(call):
    code = """
import crowdveil as cv, own_kinds as own
result = cv.run(cv.Scenario(
    scenario={"name": "own", "duration_s": 900},
    roads={"source": own.Ladder},
    cells={"kind": own.Strips, "number": 3},
    traffic={"engine": own.RingRoad, "vehicles": 300},
    campaigns=[{"start_s": 120, "queries": 2, "every_s": 120}],
    mechanisms=[{"kind": own.PlainResponse, "name": "own", "epsilon": 2.0}, {"kind": "no_privacy"}],
    aggregation={"kind": own.TrimmedMean(5)},
    attacks=[{"kind": own.MostFrequent, "coalition": ["server:1"]}],
))
assert len(result.cells) == 3 and set(result.attacks["mechanism"]) == {"own", "no_privacy"}
print(result.scores[["mechanism", "rmse"]])
"""
    assert "no_privacy" in call("python", "-c", code)


@pytest.mark.parametrize("name", CLASSES)
def test_kinds_pass_their_kits(call, name):
    parameters = ("--set", "epsilon=1") if name == "PlainResponse" else ()
    call("crowdveil", "check", f"own_kinds:{name}", *parameters)
