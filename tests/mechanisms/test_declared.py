"""Every mechanism is declared once: files, classes, the page of keys and the planner agree with the declaration."""

import math
import subprocess
import sys
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from mechanism_cases import SOUND
from pydantic import ValidationError

from mechanisms.declared import MECHANISMS, REQUIRED, Declared, Parameter
from mechanisms.local import KRandomizedResponse, ParameterError
from mechanisms.planning import Target, plan
from scenarios.kinds import sections_of
from scenarios.scenario import schema
from simulator.experiment.assembly.mechanisms import MECHANISMS as BUILDERS

KINDS = [declared.kind for declared in MECHANISMS]
VALID = {
    declared.kind: given
    for declared in MECHANISMS
    for kind, given in SOUND.items()
    if kind.__name__ == declared.class_name
}
INVALID = {
    "probability": (-0.1, 1.1, 1e-30, math.nan),
    "number": (-1.0, 1e9, math.nan),
    "integer": (0, -3),
    "choice": ("none of these",),
    "probabilities": ((0.1, 0.2), (0.1, 0.2, 1.7)),
    "blanks": (1.5,),
}


def faults(section):
    try:
        sections_of("mechanism")[section["kind"]].model_validate(section)
    except ValidationError as error:
        return [str(fault["loc"]) for fault in error.errors()]
    return []


def built(declared, **parameters):
    return BUILDERS[declared.kind](cells=3, **parameters)


def defaults(declared):
    own = {each.name: each.default for each in declared.parameters if each.default not in (REQUIRED, None)}
    return {**own, **VALID[declared.kind]}


@pytest.mark.parametrize("declared", MECHANISMS, ids=KINDS)
def test_a_file_and_the_class_refuse_the_same_values(declared):
    section = {"kind": declared.kind, **VALID[declared.kind]}
    assert faults(section) == []
    sound = built(declared, **defaults(declared))
    for parameter in declared.parameters:
        for value in INVALID[parameter.type]:
            found = faults({**section, parameter.name: value})
            assert any(parameter.name in fault for fault in found), (parameter.name, value, found)
            if not hasattr(sound, parameter.name):  # it selects the class
                continue
            with pytest.raises(ParameterError) as refused:
                built(declared, **{**defaults(declared), parameter.name: value})
            assert refused.value.field == parameter.name


@cache
def whole_schema():
    return schema()


@pytest.mark.parametrize("declared", MECHANISMS, ids=KINDS)
def test_the_json_schema_has_the_bounds_and_the_meaning(declared):
    described = whole_schema()["$defs"][f"{declared.class_name}Section"]
    assert described["description"] == declared.about
    assert {*described["properties"]} == {"kind", "name", *(each.name for each in declared.parameters)}
    required = {each.name for each in declared.parameters if each.default is REQUIRED}
    assert {*described["required"]} == {"kind", *required}
    for parameter in declared.parameters:
        key = described["properties"][parameter.name]
        assert key["description"] == parameter.about
        plain = next((each for each in key.get("anyOf", ()) if each != {"type": "null"}), key)
        if parameter.type in {"number", "integer"}:
            assert (plain.get("minimum"), plain.get("maximum")) == (parameter.least, parameter.most)


def test_declarations_need_no_numpy():
    code = "import mechanisms.declared, sys; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@dataclass(frozen=True, kw_only=True)
class Own(KRandomizedResponse):
    """A user's mechanism whose dial is not its ε: openness in (0, 1) gives ε = ln(1 + 100·openness)."""

    epsilon: float = 1.0
    openness: float = 0.5
    declared = Declared(parameters=(Parameter(name="openness", about="How open a device is.", dial="logit"),))

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "epsilon", math.log1p(100.0 * self.openness))


def test_a_users_mechanism_is_planned_by_the_dial_that_it_declares():
    target = Target(cells=20, population=100_000, epsilon=1.0, view="report")
    built_in, own = plan(target, ["k_randomized_response"], own={"my_module:Own": Own}).plans
    assert (own.name, own.kind, own.meets) == ("Own", "my_module:Own", True)
    assert own.parameters == {"openness": pytest.approx(math.expm1(1.0) / 100.0, rel=1e-5)}
    assert own.std_error == pytest.approx(built_in.std_error, rel=1e-5)
    with pytest.raises(ParameterError, match="openness must be a probability"):
        Own(cells=3, openness=1.5)


def test_a_users_mechanism_that_declares_no_dial_cannot_be_planned():
    class Fixed(Own):
        declared = Declared()

    class Unset(Own):
        declared = Declared(parameters=(*Own.declared.parameters, Parameter(name="other", about="Without default.")))

    target = Target(cells=20, population=1000, epsilon=1.0)
    for class_, rule in ((Fixed, "must declare a parameter with a dial"), (Unset, "must have a default for other")):
        with pytest.raises(ParameterError, match=rule):
            plan(target, own={"my_module:Own": class_})


def test_checked_values_are_plain_numbers():
    mechanism = KRandomizedResponse(cells=3, epsilon=np.float64(1.0))
    assert type(mechanism.epsilon) is float
