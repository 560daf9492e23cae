"""Every command in the README works as written."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from installation import copy_kernels

import scenarios

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TEST_COMMAND = "<!-- test command -->"


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_readme_commands_run_in_order_on_a_fresh_clone(tmp_path):
    """All commands except installation, for which this environment with the clone first on its path is used.

    The test command is also left out, since it would run this test; continuous integration runs it as written.
    """
    clone, path = tmp_path / "clone", tmp_path / "bin"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    copy_kernels(clone)
    path.mkdir()
    crowdveil = path / "crowdveil"
    crowdveil.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m simulator.cli "$@"\n')
    crowdveil.chmod(0o755)
    env = {name: value for name, value in os.environ.items() if name != "CROWDVEIL_DATA"}
    env |= {"PATH": f"{path}{os.pathsep}{env['PATH']}", "PYTHONPATH": str(clone)}
    readme = re.sub(
        rf"{TEST_COMMAND}\n```.*?```", "", (clone / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL
    )
    typed = []
    for language, block in re.findall(r"```(\w+)\n(.*?)```", readme, flags=re.DOTALL):
        if language == "python":
            typed.append([sys.executable, "-c", block])
            continue
        typed += [["sh", "-c", line] for line in block.splitlines() if not line.startswith("python3 -m venv")]
    assert len(typed) >= 17
    for number, command in enumerate(typed):
        if command in typed[:number]:
            continue
        done = subprocess.run(command, cwd=clone, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (command, done.stderr)
    assert {path.name for path in (clone / "runs").iterdir()} >= {"manhattan-1", "manhattan-1-2", "seven", "latest"}
    assert (clone / "runs" / "latest" / "report.html").is_file()


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.skipif("CROWDVEIL_DATA" not in os.environ, reason="needs the folder of data sets")
@pytest.mark.parametrize("data", ["gowalla-nyc,manhattan", pytest.param("", marks=pytest.mark.thorough)])
def test_table_of_the_evaluation_is_what_its_command_writes(data, tmp_path):
    """The rows of `data`, which do not depend on the others, or all of them."""
    found = re.search(
        r"<!-- evaluation -->\n(\|.*?\|\n)\n```sh\ncrowdveil (evaluate .*?)\n```", README, flags=re.DOTALL
    )
    table, command = found.groups()
    words = [sys.executable, "-m", "simulator.cli", *command.split(), *(["--data", data] if data else []), "--quiet"]
    subprocess.run(words, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
    written = (tmp_path / "studies" / "released" / "tables" / "errors.md").read_text(encoding="utf-8")
    assert len(written.splitlines()) == 2 + (data.count(",") + 1 if data else 8)
    assert set(written.splitlines()) <= set(table.splitlines())


def test_listed_scenarios_are_the_shipped_ones():
    listed = set(re.findall(r"^\| `([\w-]+)` \|", README, flags=re.MULTILINE))
    assert {shipped.name for shipped in scenarios.shipped()} <= listed


def test_links_have_existing_targets():
    for page in [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert target.startswith("http") or (page.parent / target).exists(), (page.name, target)


def test_version_is_in_the_changelog():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text()


def test_every_dependency_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = {
        line.split("==")[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").read_text().splitlines()
    }
    for requirement in project["dependencies"] + project["optional-dependencies"]["dev"]:
        if requirement.startswith(f"{project['name']}["):
            continue  # an extra of this project
        name, bound = re.match(r"([\w-]+)(\[\w+\])?(>=.+)?", requirement).group(1, 3)
        assert bound, f"{name} has no lower bound"
        assert name.lower() in pinned, f"{name} is not pinned"
