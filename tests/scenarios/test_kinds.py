"""Kind records: model and constructor exist, and reading a file imports nothing that only a run needs."""

from __future__ import annotations

import subprocess
import sys
from typing import get_args

import pytest

from scenarios.kinds import find_kind, import_dotted, is_capable, kinds_of, names_of, title
from scenarios.section import Section
from simulator.experiment.assembly.constructors import constructor_of, reader_of

ROLES = (
    "mechanism", "roads", "cells", "engine", "demand", "deployment", "latency", "release", "refinement", "attack",
)  # fmt: skip
NAMED_IN_REPORTS = ("mechanism", "engine", "deployment", "release")
HEAVY = ("numba", "scipy", "geopandas", "pandas", "pyproj", "numpy", "simulator", "mechanisms.local")


@pytest.mark.parametrize("role", ROLES)
def test_each_kind_has_a_model_a_constructor_and_a_unique_title(role):
    kinds = kinds_of(role)
    assert len({kind.name for kind in kinds}) == len(kinds)
    if role in NAMED_IN_REPORTS:
        assert len({kind.title for kind in kinds} - {""}) == len(kinds)
    for kind in kinds:
        model = import_dotted(kind.model)
        assert issubclass(model, Section)
        assert callable(constructor_of(role, kind.name))
        key = next(key for key in ("kind", "source", "engine") if key in model.model_fields)
        names = get_args(model.model_fields[key].annotation)
        assert role == "demand" or not names or kind.name in names


def test_recorded_engines_read_their_recording_with_the_city():
    recorded = {name for name in names_of("engine") if reader_of("engine", name)}
    assert recorded == set(names_of("engine", "recorded"))
    read_alike = {reader_of("cells", name) for name in ("stations", "locations")}
    assert len(read_alike) == 1
    assert reader_of("cells", "square") is None


def test_plug_in_has_no_kind_record():
    assert find_kind("mechanism", "my.module:Class") is None
    assert not is_capable("mechanism", "my.module:Class", "exact")
    assert title("mechanism", "my.module:Class", "mine") == "mine"
    with pytest.raises(KeyError, match="no mechanism of kind"):
        constructor_of("mechanism", "my.module:Class")


@pytest.mark.parametrize("overrides", [[], ["traffic.vehicels=1", "mechanisms.sampling.sampling=2"]])
def test_loading_a_scenario_imports_no_run_library(overrides):
    code = f"""
import sys, scenarios
try:
    scenarios.load("tiny", overrides={overrides!r})
    print("read")
except scenarios.ScenarioError as error:
    print("refused", len(error.faults))
print(*(name for name in {HEAVY!r} if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["refused 2" if overrides else "read", ""]


def test_only_models_of_the_kinds_in_use_are_built():
    code = """
import scenarios
from scenarios.mechanisms import LocalHashingSection, SamplingPrivacySection
scenarios.load("tiny")
print(SamplingPrivacySection.__pydantic_complete__, LocalHashingSection.__pydantic_complete__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]
