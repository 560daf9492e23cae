"""``[[refinements]]``: valid keys, and the fault of each error."""

import pytest

import scenarios

CLIP = "[[refinements]]\nkind = 'clip'\n"

# text added to the small scenario, key path of its only fault, fragments of the message
SPOILED = [
    ("kind = 'clop'", "refinements[0].kind", ["norm_sub", "did you mean clip?", '"clop"']),
    ("name = 'x'", "refinements.x.kind", ["is required", "simplex"]),
    ("kind = 'clip'\nname = 'a+b'", "refinements.a+b.name", ["letters, digits", '"a+b"']),
    ("kind = 'clip'\nname = ''", "refinements[0].name", ["at least one"]),
    ("kind = 'clip'\ntotal = 'asked'", "refinements[0].total", ["unknown key"]),
    ("kind = 'clip'\nwindow = 3", "refinements[0].window", ["unknown key"]),
    ("kind = 'simplex'\ntotal = 'all'", "refinements[0].total", ["estimated", "asked", '"all"']),
    ("kind = 'clip'\nmechanisms = []", "refinements[0].mechanisms", ["at least 1"]),
    ("kind = 'clip'\nmechanisms = 'sampling'", "refinements[0].mechanisms", ["must be a list"]),
    ("kind = 'clip'\nmechanisms = ['samplin']", "refinements[0].mechanisms[0]", ["did you mean sampling?"]),
    ("kind = 'clip'\nmechanisms = ['zzz']", "refinements[0].mechanisms[0]", ["there are sampling, no_privacy", "zzz"]),
    (
        "kind = 'clip'\nmechanisms = ['sampling', 'sampling']",
        "refinements[0].mechanisms",
        ["once", "sampling occurs 2 times"],
    ),
    ("kind = 'clip'\n[[refinements]]\nkind = 'clip'", "refinements[1].name", ["names must differ", "refinements[0]"]),
    (
        "kind = 'norm_sub'\ntotal = 'asked'\n[population]\noutside = 7",
        "refinements[0].total",
        ["in some cell", "population.outside = 7", '"asked"'],
    ),
]


@pytest.mark.parametrize(("text", "path", "fragments"), SPOILED, ids=range(len(SPOILED)))
def test_each_fault_has_its_path_and_message(load, only_fault, valid_text, text, path, fragments):
    only_fault(lambda: load(f"{valid_text}\n[[refinements]]\n{text}\n"), path, *fragments)


def test_defaults_and_kinds(load, valid_text):
    text = "".join(f"\n[[refinements]]\nkind = '{kind}'\n" for kind in ("clip", "norm_sub", "norm_mul", "simplex"))
    scenario = load(f"{valid_text}{text}mechanisms = ['sampling']\n")
    assert [r.name for r in scenario.refinements] == ["clip", "norm_sub", "norm_mul", "simplex"]
    assert [getattr(r, "total", None) for r in scenario.refinements] == [None, *["estimated"] * 3]
    assert [r.mechanisms for r in scenario.refinements] == [None, None, None, ("sampling",)]


def test_section_round_trips_and_is_omitted_if_empty(load, valid_text):
    scenario = load(valid_text + CLIP + "name = 'kept'\nmechanisms = ['sampling']\n")
    assert load(scenarios.dump(scenario)) == scenario
    without = load(valid_text)
    assert without.refinements == ()
    assert "refinements" not in scenarios.dump(without)
    assert load(scenarios.dump(without)) == without
