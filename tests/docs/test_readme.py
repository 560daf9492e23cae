"""Every command in the README, and in the pages for newcomers, of commands and findings, works as written."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from installation import copy_kernels, execute

import scenarios

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
NEWCOMERS = ("start/first_campaign", "start/privacy_officer", "reference/commands", "why/findings")
PAGES = ("README.md", *(f"docs/{page}.md" for page in NEWCOMERS))
"""The pages whose commands are typed, in order."""
FINDINGS = (ROOT / "docs" / "why" / "findings.md").read_text(encoding="utf-8")
TEST_COMMAND = "<!-- test command -->"
EVALUATION = re.search(r"<!-- evaluation -->\n(\|.*?\|\n)\n```sh\ncrowdveil (evaluate .*?)\n```", FINDINGS, re.DOTALL)
"""A table of errors, and the command that writes it."""


def installed_as_described(clone, programs):
    """Install a clone by the README's own first line, which gives no extras; return the environment's variables."""
    python3 = programs / "python3"
    python3.write_text(f'#!/bin/sh\nexec "{sys._base_executable}" "$@"\n')
    python3.chmod(0o755)
    line = re.search(r"```sh\n(python3 -m venv .*)", README)[1]
    execute("sh", "-c", line, cwd=clone, env=os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"})
    python = clone / ".venv" / "bin" / "python"
    execute(python, "-c", "import crowdveil, importlib.util as u, sys; sys.exit(u.find_spec('matplotlib') is not None)")
    return {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}


def with_every_extra(clone, programs):
    """Return the variables of the tests' own environment, which has every extra, for a clone."""
    crowdveil = programs / "crowdveil"
    crowdveil.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m simulator.cli "$@"\n')
    crowdveil.chmod(0o755)
    return {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(clone)}


def typed(readme):
    """Return the commands of some pages, once each and in order, without the installation and the tests.

    Continuous integration runs the test command as written; here it would run this test. Two repetitions of a
    simulation take the same path of the code as five.
    """
    readme = re.sub(rf"{TEST_COMMAND}\n```.*?```", "", readme, flags=re.DOTALL)
    commands = []
    for language, block in re.findall(r"```(\w+)\n(.*?)```", readme, flags=re.DOTALL):
        if language == "python":
            commands.append(["python", "-c", block])
        elif language == "sh":
            lines = [line for line in block.splitlines() if not line.startswith("python3 -m venv")]
            commands += [["sh", "-c", line.replace("--replicates 5", "--replicates 2")] for line in lines]
    return [command for number, command in enumerate(commands) if command not in commands[:number]]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_readme_commands_run_in_order_on_a_fresh_clone(tmp_path):
    """All commands in the installation that the README describes; with extras those whose result depends on them.

    Without extras a command that states that it needs one ends with one line that names it.
    """
    clone, programs = tmp_path / "clone", tmp_path / "bin"
    execute("git", "clone", "--quiet", ROOT, clone)
    copy_kernels(clone)
    programs.mkdir()
    base = {name: value for name, value in os.environ.items() if name not in {"CROWDVEIL_DATA", "PYTHONPATH"}}
    without, every = base | installed_as_described(clone, programs), base | with_every_extra(clone, programs)

    def run(command, env):
        return subprocess.run(command, cwd=clone, env=env, capture_output=True, text=True, check=False)

    commands = typed("\n".join((clone / page).read_text(encoding="utf-8") for page in PAGES))
    assert len(commands) >= 17
    for command in commands:
        done, extra = run(command, without), re.search(r"#.*\(extra (\w+)\)", command[-1])
        assert done.returncode == (2 if extra else 0), (command, done.stderr)
        if extra:
            assert done.stderr.endswith(f"pip install 'crowdveil[{extra[1]}]'\n"), command
            assert done.stderr.count("\n") == 1, command
            done = run(command, every)
            assert done.returncode == 0, (command, done.stderr)
        if "crowdveil participation" in command[-1]:
            for answer in (done, run(command, every)):
                assert "of the busiest tenth of cells are within 20 % of the truth" in answer.stdout
                assert answer.stdout.rstrip().endswith("report.html")
                assert ("participation.svg, .pdf, .png: not written" in answer.stderr) == (answer is done)
    assert {path.name for path in (clone / "runs").iterdir()} >= {"manhattan-1", "manhattan-1-2", "seven", "latest"}
    assert (clone / "runs" / "latest" / "report.html").is_file()
    # Without data sets the evaluation has Manhattan's row alone.
    written = (clone / "studies" / "released" / "tables" / "errors.md").read_text(encoding="utf-8").splitlines()
    assert set(written) <= set(EVALUATION[1].splitlines())
    assert any(line.startswith("| manhattan") for line in written)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.skipif("CROWDVEIL_DATA" not in os.environ, reason="needs the folder of data sets")
@pytest.mark.parametrize("data", ["gowalla-nyc", pytest.param("", marks=pytest.mark.thorough)])
def test_table_of_the_evaluation_is_what_its_command_writes(data, tmp_path):
    """The rows of `data`, which do not depend on the others, or all of them; the commands' test makes Manhattan's."""
    words = [*EVALUATION[2].split(), *(["--data", data] if data else []), "--quiet"]
    words = [sys.executable, "-m", "simulator.cli", *words]
    subprocess.run(words, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
    written = (tmp_path / "studies" / "released" / "tables" / "errors.md").read_text(encoding="utf-8")
    assert len(written.splitlines()) == 2 + (data.count(",") + 1 if data else 8)
    assert set(written.splitlines()) <= set(EVALUATION[1].splitlines())


def test_listed_scenarios_are_the_shipped_ones():
    page = (ROOT / "docs" / "reference" / "scenarios.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`([\w-]+)`", page))
    assert {shipped.name for shipped in scenarios.shipped()} <= listed


def test_readme_is_read_in_minutes():
    assert len(README.splitlines()) <= 90


def test_version_is_in_the_changelog_and_in_what_is_cited():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text()
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert (cited["version"], cited["url"]) == (project["version"], project["urls"]["Homepage"])


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
