"""Kinds: every section class that registers itself has a builder, and reading a file imports nothing of a run."""

from __future__ import annotations

import subprocess
import sys

import pytest

from scenarios.kinds import is_built_in, is_capable, names_of, sections_of, title
from simulator.experiment.assembly.attacks import GAMES
from simulator.experiment.assembly.campaigns import DEPLOYMENTS, LATENCIES, NOISES
from simulator.experiment.assembly.cells import laid_over
from simulator.experiment.assembly.engine import ENGINES
from simulator.experiment.assembly.mechanisms import MECHANISMS
from simulator.experiment.assembly.releases import SPEED_RELEASES, counts_release
from simulator.experiment.assembly.roads import roads_of
from simulator.experiment.refine import PROJECTIONS

BY_CLASS = {
    "roads": roads_of.registry,
    "cells": laid_over.registry,
    "engine": ENGINES,
    "latency": LATENCIES,
    "noise": NOISES,
    "attack": GAMES,
}
BY_NAME = {"mechanism": MECHANISMS, "deployment": DEPLOYMENTS, "refinement": PROJECTIONS}
NAMED_IN_REPORTS = ("mechanism", "engine", "deployment", "release")
HEAVY = ("numba", "scipy", "geopandas", "pandas", "pyproj", "numpy", "simulator", "mechanisms.local")


@pytest.mark.parametrize("role", BY_CLASS)
def test_each_class_of_a_role_has_a_builder_of_its_own(role):
    # A class without one would be built as the class that it extends.
    assert {*sections_of(role).values()} == {*BY_CLASS[role]} - {object}


@pytest.mark.parametrize("role", BY_NAME)
def test_each_kind_of_a_role_has_a_builder(role):
    assert {*names_of(role)} == {*BY_NAME[role]}


def test_each_release_has_a_builder_for_the_statistics_that_it_publishes():
    sections = sections_of("release")
    counted = {sections[name] for name in names_of("release", "count") if name != "none"}
    averaged = {
        sections[name] for statistic in ("mean_speed", "median_speed") for name in names_of("release", statistic)
    }
    assert counted == {*counts_release.registry} - {object}
    assert averaged == {*SPEED_RELEASES}


@pytest.mark.parametrize("role", NAMED_IN_REPORTS)
def test_titles_in_reports_differ(role):
    titles = [title(role, name) for name in names_of(role)]
    assert all(titles)
    assert len({*titles}) == len(titles)


def test_a_class_that_adds_no_kind_does_not_replace_the_one_that_it_extends():
    square = sections_of("cells")["square"]
    type("Smaller", (square,), {"__module__": __name__})
    assert sections_of("cells")["square"] is square


def test_a_users_own_kind_is_no_built_in_one():
    assert not is_built_in("mechanism", "my.module:Class")
    assert not is_capable("mechanism", "my.module:Class", "exact")
    assert title("mechanism", "my.module:Class", "mine") == "mine"


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
from scenarios.kinds import sections_of
scenarios.load("tiny")
print(*(sections_of("mechanism")[kind].__pydantic_complete__ for kind in ("sampling_privacy", "olh")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]
