"""run.json names every package used by a run, and no other."""

import subprocess
import sys
import tomllib
from importlib.metadata import distribution, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from simulator import run
from simulator.results.provenance import package_versions

ROOT = Path(__file__).parents[2]
EXTRAS = {"osmnx", "osmium", "sumolib", "traci", "libsumo", "h3", "pooch"}
NOT_ON_WINDOWS = ("fcntl", "grp", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty")
HEXAGONS = """
scenario = {name = "hexagons", duration_s = 200}
roads = {source = "grid", rows = 3, columns = 3, spacing_m = 200}
cells = {kind = "h3", resolution = 9}
traffic = {vehicles = 20}
campaigns = [{name = "count", start_s = 100, queries = 1, every_s = 100}]
mechanisms = [{name = "trusted", kind = "no_privacy"}]
"""


def required_by(*names):
    """Collect packages and their requirements, level by level, from the installed metadata."""
    found, level = set(), {canonicalize_name(name) for name in names}
    while level:
        found |= level
        lines = [line for name in level for line in distribution(name).metadata.get_all("Requires-Dist") or ()]
        wanted = [Requirement(line) for line in lines if "extra ==" not in line]
        level = {canonicalize_name(one.name) for one in wanted if not one.marker or one.marker.evaluate()} - found
    return found


def test_every_run_records_the_dependencies_of_crowdveil():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    recorded = run("tiny").facts["packages"]
    assert recorded.pop("python") == sys.version.split()[0]
    assert set(recorded) == required_by(*(Requirement(line).name for line in project["dependencies"]))
    assert {"llvmlite", "pydantic-core"} <= recorded.keys()
    assert not EXTRAS & recorded.keys()
    assert all(recorded[name] == version(name) for name in recorded)


def test_extra_is_recorded_only_by_the_run_that_used_it(tmp_path):
    pytest.importorskip("h3", reason="cells of H3 need the package h3")
    (tmp_path / "hexagons.toml").write_text(HEXAGONS, encoding="utf-8")
    recorded = run(tmp_path / "hexagons.toml").facts["packages"]
    assert recorded.keys() & EXTRAS == {"h3"}
    assert recorded["h3"] == version("h3")
    assert run("tiny").facts["packages"].keys().isdisjoint(EXTRAS)


def test_module_without_package_is_recorded_as_unknown():
    assert package_versions(["no-such-package"])["no-such-package"] == "unknown"


@pytest.mark.slow  # a fresh process compiles and imports everything
def test_all_modules_import_without_unix_only_modules():
    files = [file for folder in ("mechanisms", "scenarios", "simulator") for file in (ROOT / folder).rglob("*.py")]
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for file in files]
    assert len(names) > 250
    code = f"""
import importlib.abc, sys
class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        frame = sys._getframe(1)
        while frame.f_globals.get("__name__", "").startswith("importlib"):
            frame = frame.f_back
        importer = frame.f_globals.get("__name__", "").partition(".")[0]
        if name in {NOT_ON_WINDOWS!r} and importer in ("mechanisms", "scenarios", "simulator"):
            raise ImportError(name + " is not on Windows")
sys.meta_path.insert(0, Blocked())
for name in {NOT_ON_WINDOWS!r}:
    sys.modules.pop(name, None)
for name in {names!r}:
    __import__(name)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
