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
