"""The faults to plant in privacy claims still have a place in the source, and a test notices each."""

import ast
import json

import pytest
from planted import PLANTED, ROOT, place_of

OUTCOMES = json.loads((ROOT / "tests" / "mutants" / "killed.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_changes_one_place_and_is_killed(name):
    fault = PLANTED[name]
    text = place_of(fault, ROOT).read_text(encoding="utf-8")
    ast.parse(text.replace(fault.old, fault.new))
    assert OUTCOMES[f"planted:{name}"]["outcome"] == "killed"


def test_outcomes_are_those_of_listed_mutants():
    sampled = json.loads((ROOT / "tests" / "mutants" / "sampled.json").read_text(encoding="utf-8"))
    names = {f"{m['file']}:{m['function']}:{m['operator']}:{m['number']}" for m in sampled}
    assert len(names) == len(sampled)
    assert {name for name in OUTCOMES if not name.startswith("planted:")} <= names


def test_every_survivor_is_explained():
    """A change that no test notices gets a test, or goes with the needless code, or the record says why it may stay."""
    assert [
        name for name, outcome in OUTCOMES.items() if outcome["outcome"] != "killed" and not outcome.get("why")
    ] == []


def _names(path):
    """Return the names of the functions of a file, those of classes as Class.function."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    outer = [node for node in tree.body if isinstance(node, functions)]
    inner = {f"{one.name}.{each.name}" for one in outer for each in ast.walk(one) if isinstance(each, functions)}
    return inner | {node.name for node in outer}


def test_what_the_record_names_still_exists():
    """A mutant whose line, or whose test, has gone says nothing any more: it is to be sampled or run again."""
    gone = []
    for mutant in json.loads((ROOT / "tests" / "mutants" / "sampled.json").read_text(encoding="utf-8")):
        path = ROOT / mutant["file"]
        # A statement of several lines is recorded as one.
        if not path.exists() or "".join(mutant["line"].split()) not in "".join(path.read_text("utf-8").split()):
            gone.append(f"{mutant['file']}: {mutant['line']}")
    for name, outcome in OUTCOMES.items():
        file, _, test = outcome.get("by", "").partition("::")
        function = test.partition("[")[0].replace("::", ".")
        if file.startswith("tests/") and not ((ROOT / file).exists() and (not test or function in _names(ROOT / file))):
            gone.append(f"{name}: killed by {outcome['by']}")
    assert gone == []
