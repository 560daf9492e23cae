"""Modules, imports and files that the documentation names exist."""

import ast
import importlib
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
DOTTED = re.compile(r"(?<![\w./])(?:simulator|mechanisms|scenarios)(?:\.\w+)+")
FILE = re.compile(r"`((?:simulator|mechanisms|scenarios|tests|benchmarks)/[\w/.]+)`")
KEY_PATH = re.compile(r"mechanisms\.(?:NAME|sampling)\b|\.(?:py|md|toml)$")
"""Paths of a scenario file such as ``mechanisms.sampling.sampling``, and names of files, look alike."""


def exists(dotted: str) -> bool:
    module, _, attribute = dotted.rpartition(".")
    for name, has in ((dotted, ""), (module, attribute)):
        try:
            found = importlib.import_module(name)
        except ImportError:
            continue
        return not has or hasattr(found, has)
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_in_documentation_exist(page):
    text = page.read_text(encoding="utf-8")
    names = {name for name in DOTTED.findall(text) if not KEY_PATH.search(name)}
    assert not sorted(name for name in names if not exists(name))
    assert not sorted(file for file in FILE.findall(text) if not (ROOT / file).exists())
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        for statement in ast.walk(ast.parse(block)):
            if isinstance(statement, ast.ImportFrom) and statement.module.partition(".")[0] in {
                "simulator",
                "mechanisms",
            }:
                module = importlib.import_module(statement.module)
                assert [alias.name for alias in statement.names if not hasattr(module, alias.name)] == []


def test_no_class_name_is_defined_twice():
    homes = defaultdict(list)
    for file in sorted(file for top in ("simulator", "mechanisms", "scenarios") for file in (ROOT / top).rglob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(str(file.relative_to(ROOT)))
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}
