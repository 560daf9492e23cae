"""No string is a statement: it is half of a message without parentheses. ruff's B018 finds all other cases."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
AFTER_A_STATEMENT = re.compile(r"[\w\"')\]}]\n\s*[rfRF]*[\"'](?!\"\"|'')")  # or after half a string in parentheses


def lost_strings(source: str) -> list[int]:
    """Return the lines of strings that are statements; docstrings of fields, modules and classes do not count."""
    found, inside = [], [ast.parse(source)]
    while inside:
        node = inside.pop()
        documents = isinstance(node, ast.Module | ast.ClassDef)
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            statements = getattr(node, name, [])
            inside += statements
            for before, statement in zip([None, *statements], statements, strict=False):
                value = statement.value if isinstance(statement, ast.Expr) else None
                text = isinstance(value, ast.Constant) and isinstance(value.value, str)
                doc = before is None or (documents and isinstance(before, ast.Assign | ast.AnnAssign))
                if isinstance(value, ast.JoinedStr) or (text and not doc):
                    found.append(statement.lineno)
    return sorted(found)


def test_no_string_is_a_statement():
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    sources = {file: (ROOT / file).read_text(encoding="utf-8") for file in listed.split()}
    found = {file: lost_strings(source) for file, source in sources.items() if AFTER_A_STATEMENT.search(source)}
    assert len(found) > 100
    assert {file: lines for file, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ('def f(x):\n    note = f"{x} to "\n    f"{x})"\n    return note\n', [3]),
        ('def f(x):\n    note = "a"\n    "b"\n    return note\n', [3]),
        ('x = "a"\nf(x)\n"b"\nif x:\n    f()\nelse:\n    f(x)\n    "c"\n', [3, 8]),
        ('"""Doc."""\nx = 1\n"""Of x."""\ndef f():\n    """Doc."""\n', []),
        ('class A:\n    """Doc."""\n    a: int\n    """Of a."""\n    def f(self): ...\n', []),
    ],
)
def test_a_lost_string_is_found(source, lines):
    assert bool(AFTER_A_STATEMENT.search(source)) == bool(lines)
    assert lost_strings(source) == lines
