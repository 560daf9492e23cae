"""What a class of one's own needs is in `crowdveil`: users import no other module of the project."""

import ast
import re
from pathlib import Path
from string import Template

import crowdveil as cv
from simulator.cli.new import TEMPLATES

ROOT = Path(__file__).parents[2]


def programs():
    """Yield a name and the text of each program for users: templates, code of the pages, the separate package."""
    for file in sorted(TEMPLATES.rglob("*.py.template")):
        yield (
            f"{file.parent.name}/{file.name}",
            Template(file.read_text("utf-8")).substitute({"name": "own", "class": "Own"}),
        )
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for block in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL):
            yield page.name, block
    for file in sorted((ROOT / "tests" / "own_kinds_package").glob("*.py")):
        yield file.name, file.read_text("utf-8")


def imported(text):
    """Return the names that a program takes of this project, each with the module that it is taken from."""
    tree, names = ast.parse(text), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names |= {(node.module, one.name) for one in node.names}
        elif isinstance(node, ast.Import):
            names |= {(one.name, None) for one in node.names}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "cv":
            names.add(("crowdveil", node.attr))
    return {(module, name) for module, name in names if module.partition(".")[0] in {*cv.PACKAGES, "crowdveil"}}


def test_users_programs_import_nothing_else_of_this_project():
    everything = {(where, *taken) for where, text in programs() for taken in imported(text)}
    assert {module for _, module, _ in everything} == {"crowdveil"}
    assert {name for *_, name in everything if name} <= {*cv.__all__, "__version__"}
    assert len(everything) > 50


def test_api_page_names_every_public_name():
    page = (ROOT / "docs" / "reference" / "api.md").read_text("utf-8")
    assert [name for name in cv.__all__ if not re.search(rf"\b{name}\b", page)] == []
