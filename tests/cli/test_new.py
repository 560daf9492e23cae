"""`crowdveil new`: for every role, the written files check, test and run at once."""

import ast
import subprocess
import sys

import pytest

from simulator.cli.new import FILES, TEMPLATES

ROLES = sorted(folder.name for folder in TEMPLATES.iterdir() if folder.is_dir())
LONG = ("aggregator", "mechanism")
"""Roles whose checks take many seconds."""
PARAMETERS = {"mechanism": ["--set", "epsilon=1", "--quick"]}


@pytest.fixture
def name(role):
    """The name of what is written, which this process does not keep among its modules."""
    yield f"my_{role}"
    sys.modules.pop(f"my_{role}", None)


@pytest.mark.parametrize("role", [pytest.param(role, marks=[pytest.mark.slow] * (role in LONG)) for role in ROLES])
def test_what_is_written_works_at_once(role, name, call, tmp_path):
    done = call("new", role, name)
    assert done.returncode == 0, done.stderr
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(target.format(name) for target in FILES.values())
    class_ = f"My{role.capitalize()}"
    assert f"crowdveil check {name}:{class_}" in done.stdout
    tree = ast.parse((tmp_path / f"{name}.py").read_text(encoding="utf-8"))
    (defined,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == class_)
    assert ast.get_docstring(tree)
    assert ast.get_docstring(defined)

    checked = call("check", f"{name}:{class_}", *PARAMETERS.get(role, []))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    refused = call("run", f"{name}.toml")
    assert refused.returncode == 2
    assert "--allow-plugins" in refused.stderr
    ran = call("run", f"{name}.toml", "--allow-plugins", "--quiet", "--out", "r")
    assert ran.returncode == 0, ran.stderr

    kept = {file: file.read_bytes() for file in tmp_path.glob("*my_*.*")}
    again = call("new", role, name)
    assert again.returncode == 2
    assert "exists already" in again.stderr
    assert {file: file.read_bytes() for file in tmp_path.glob("*my_*.*")} == kept


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_the_test_that_is_written_passes(role, name, call, tmp_path):
    call("new", role, name)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"test_{name}.py"]
    tested = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.mark.parametrize("source", FILES)
@pytest.mark.parametrize("role", ROLES)
def test_every_role_has_every_file(role, source):
    assert (TEMPLATES / role / source).is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["attack", "my-attack"], ["name of a Python module", "my-attack"]),
        (["attack", "class"], ["name of a Python module", "keyword"]),
        (["attack", "1st"], ["name of a Python module"]),
        (["attack", "../up"], ["name of a Python module"]),
        (["attack", "json"], ["a module json exists already"]),
        (["spell", "magic"], ["ROLE", "is not one of 'mechanism', 'aggregator', 'attack'", "spell"]),
        (["../attack", "magic"], ["is not one of 'mechanism'"]),
        (["attack"], ["Missing argument", "NAME"]),
    ],
)
def test_a_mistake_writes_nothing(arguments, words, call, tmp_path):
    done = call("new", *arguments)
    assert done.returncode == 2
    for word in words:
        assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_one_existing_file_is_enough_to_write_none(call, tmp_path):
    (tmp_path / "test_mine.py").write_text("precious")
    done = call("new", "attack", "mine")
    assert done.returncode == 2
    assert "test_mine.py exists already" in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["test_mine.py"]
