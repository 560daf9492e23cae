"""What the README says a user can type, a user can type."""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import scenarios

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, flags=re.DOTALL)
COMMANDS = [
    shlex.split(line, comments=True)[1:]
    for language, block in BLOCKS
    for line in block.splitlines()
    if language == "sh" and line.startswith("crowdveil ")
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("user")
    (folder / "my-city.toml").write_text(scenarios.source_text("tiny").replace('"tiny"', '"my-city"'))
    return folder


def test_every_command_works(folder):
    assert len(COMMANDS) >= 7
    for command in COMMANDS:
        extra = (
            ["--out", f"runs/{len(list(folder.glob('runs/*')))}"]
            if command[0] == "run" and "--out" not in command
            else []
        )
        done = subprocess.run(
            [sys.executable, "-m", "simulator.cli", *command, *extra],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stderr)


def test_every_python_example_works():
    examples = [block for language, block in BLOCKS if language == "python"]
    assert examples
    for example in examples:
        exec(compile(example, "README.md", "exec"), {})  # noqa: S102  # our own README


def test_the_scenarios_it_lists_are_those_shipped():
    listed = set(re.findall(r"^\| `([\w-]+)` \|", README, flags=re.MULTILINE))
    assert {shipped.name for shipped in scenarios.shipped()} <= listed


def test_links_lead_somewhere():
    for page in [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert target.startswith("http") or (page.parent / target).exists(), (page.name, target)


def test_the_version_is_one():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text()


def test_what_was_tested_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = {
        line.split("==")[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").read_text().splitlines()
    }
    for requirement in project["dependencies"] + project["optional-dependencies"]["dev"]:
        if requirement.startswith(f"{project['name']}["):
            continue  # an extra of our own
        name, bound = re.match(r"([\w-]+)(\[\w+\])?(>=.+)?", requirement).group(1, 3)
        assert bound, f"{name} has no lower bound"
        assert name.lower() in pinned, f"{name} is not pinned"
