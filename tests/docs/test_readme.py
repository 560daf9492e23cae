"""Every command in the README works as written."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from installation import copy_kernels, execute

import scenarios

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TEST_COMMAND = "<!-- test command -->"


def all_extras(clone, path):
    """Return the environment variables for a clone in the environment of the tests, which has every extra."""
    crowdveil = path / "crowdveil"
    crowdveil.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m simulator.cli "$@"\n')
    (path / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    return {"PATH": f"{path}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(clone)}


def no_extras(clone, path):
    """Return the environment variables for a clone that is installed by the README's own first line."""
    (path / "python3").write_text(f'#!/bin/sh\nexec "{sys._base_executable}" "$@"\n')
    (path / "python3").chmod(0o755)
    line = re.search(r"```sh\n(python3 -m venv .*)", README)[1]
    env = {"PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}
    execute("sh", "-c", line, cwd=clone, env=os.environ | env)
    python = clone / ".venv" / "bin" / "python"
    execute(python, "-c", "import crowdveil, importlib.util as u, sys; sys.exit(u.find_spec('matplotlib') is not None)")
    return {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("installation", [all_extras, no_extras])
def test_readme_commands_run_in_order_on_a_fresh_clone(installation, tmp_path):
    """All commands, with every extra, and in the installation that the README describes.

    There a command that states that it needs an extra ends with one line that names it. The test command is left out,
    since it would run this test; continuous integration runs it as written.
    """
    clone, path = tmp_path / "clone", tmp_path / "bin"
    execute("git", "clone", "--quiet", ROOT, clone)
    copy_kernels(clone)
    path.mkdir()
    env = {name: value for name, value in os.environ.items() if name not in {"CROWDVEIL_DATA", "PYTHONPATH"}}
    env |= installation(clone, path)
    for program in path.iterdir():
        program.chmod(0o755)
    readme = re.sub(
        rf"{TEST_COMMAND}\n```.*?```", "", (clone / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL
    )
    typed = []
    for language, block in re.findall(r"```(\w+)\n(.*?)```", readme, flags=re.DOTALL):
        lines = [line for line in block.splitlines() if not line.startswith("python3 -m venv")]
        typed += [["python", "-c", block]] if language == "python" else [["sh", "-c", line] for line in lines]
    assert len(typed) >= 17
    for number, command in enumerate(typed):
        if command in typed[:number]:
            continue
        done = subprocess.run(command, cwd=clone, env=env, capture_output=True, text=True, check=False)
        extra = re.search(r"#.*\(extra (\w+)\)", command[-1]) if installation is no_extras else None
        assert done.returncode == (2 if extra else 0), (command, done.stderr)
        assert not extra or done.stderr.endswith(f"pip install 'crowdveil[{extra[1]}]'\n"), command
        assert not extra or done.stderr.count("\n") == 1, command
        if "participation" in command[-1]:
            assert "To know counts within 20 %" in done.stdout
            assert done.stdout.rstrip().endswith("report.html")
            assert ("participation.svg, .pdf, .png: not written" in done.stderr) == (installation is no_extras)
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
