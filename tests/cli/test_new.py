"""`crowdveil new`: for every role, the written files check, test and run at once."""

import ast
import subprocess
import sys

import pytest

from simulator.cli.new import FILES, TEMPLATES

ROLES = sorted(folder.name for folder in TEMPLATES.iterdir() if folder.is_dir())
PARAMETERS = {"mechanism": ["--set", "epsilon=1", "--quick"]}


def crowdveil(*arguments, cwd, module="simulator.cli"):
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("role", ROLES)
def test_what_is_written_works_at_once(role, tmp_path):
    name = f"my_{role}"
    done = crowdveil("new", role, name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(target.format(name) for target in FILES.values())
    class_ = f"My{role.capitalize()}"
    assert f"crowdveil check {name}:{class_}" in done.stdout
    tree = ast.parse((tmp_path / f"{name}.py").read_text(encoding="utf-8"))
    (written,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == class_)
    assert ast.get_docstring(tree)
    assert ast.get_docstring(written)

    checked = crowdveil("check", f"{name}:{class_}", *PARAMETERS.get(role, []), cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    tested = crowdveil("-q", "-p", "no:cacheprovider", f"test_{name}.py", module="pytest", cwd=tmp_path)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    refused = crowdveil("run", f"{name}.toml", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--allow-plugins" in refused.stderr
    ran = crowdveil("run", f"{name}.toml", "--allow-plugins", "--quiet", "--out", "r", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr

    kept = {file: file.read_bytes() for file in tmp_path.glob("*my_*.*")}
    again = crowdveil("new", role, name, cwd=tmp_path)
    assert again.returncode == 2
    assert "exists already" in again.stderr
    assert {file: file.read_bytes() for file in tmp_path.glob("*my_*.*")} == kept


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
        (["spell", "magic"], ["ROLE: must be one of mechanism, aggregator, attack", "spell"]),
        (["../attack", "magic"], ["must be one of mechanism"]),
        (["attack"], ["NAME: is required"]),
    ],
)
def test_a_mistake_writes_nothing(arguments, words, tmp_path):
    done = crowdveil("new", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    for word in words:
        assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_one_existing_file_is_enough_to_write_none(tmp_path):
    (tmp_path / "test_mine.py").write_text("precious")
    done = crowdveil("new", "attack", "mine", cwd=tmp_path)
    assert done.returncode == 2
    assert "test_mine.py exists already" in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["test_mine.py"]
