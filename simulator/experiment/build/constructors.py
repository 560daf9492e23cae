"""Calls of concrete parts: constructors of built-in kinds, users' classes, which it verifies, and faults of files."""

import hashlib
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scenarios import Fault, Scenario, ScenarioError
from scenarios.kinds import find_kind, import_dotted
from scenarios.section import Section
from simulator.files.errors import InputError

METHODS = ("enrol", "toss", "answer", "encode", "tally", "estimate", "sample_counts", "claim")
"""Methods of every mechanism, which its class has before an instance is made."""

REQUIRED = ("rounds", "truth_round", "tally_shape", *METHODS)
"""Attributes of every mechanism; `crowdveil check` tests that they behave as specified."""


class NotAMechanismError(TypeError):
    """The name of a plug-in refers to an object that is not a class of mechanisms."""


def import_plug_in(kind: str) -> type:
    """Import the class that ``package.module:Class`` names, and verify that it is a mechanism, without calling it.

    Raises
    ------
    ImportError, AttributeError
        If there is no such module, or it has no attribute of that name.
    NotAMechanismError
        If the attribute is not a class, or lacks methods of a mechanism.
    """
    module, _, name = kind.partition(":")
    found = getattr(importlib.import_module(module), name)
    if not isinstance(found, type):
        raise NotAMechanismError(f"must be a class of mechanisms, and is of type {type(found).__name__}")
    if missing := [name for name in METHODS if not callable(getattr(found, name, None))]:
        raise NotAMechanismError(
            f"must be a class of mechanisms (see mechanisms.local.LocalMechanism): it must have {', '.join(missing)}"
        )
    return found


def source_sha256(found: type) -> str | None:
    """Return the sha256 of the file of the module that defines a class; None if it has no file."""
    file = getattr(sys.modules.get(found.__module__), "__file__", None)
    return None if file is None else hashlib.sha256(Path(file).read_bytes()).hexdigest()


def constructor_of(role: str, name: str) -> Callable[..., Any]:
    """Return what builds a kind: a class or a function, whose parameters each role fixes for all of its kinds.

    Raises
    ------
    KeyError
        If the role has no built-in kind of this name.
    """
    kind = find_kind(role, name)
    if kind is None:
        raise KeyError(f"there is no {role} of kind {name}")
    constructor: Callable[..., Any] = import_dotted(kind.constructor)
    return constructor


def same_keys(section: Section, *names: str) -> dict[str, Any]:
    """Return the values of a section's keys that are parameters of the same name."""
    return {name: getattr(section, name) for name in names}


@contextmanager
def faults_of_files(scenario: Scenario, key: str) -> Iterator[None]:
    """Report the faults of files that a section names as faults of the scenario, under the section's key."""
    try:
        yield
    except InputError as error:
        raise ScenarioError(scenario.name, [Fault(key, fault) for fault in error.faults]) from error


def reader_of(engine: str) -> Callable[..., Any] | None:
    """Return the function that reads the recording of an engine; None if the engine simulates traffic."""
    kind = find_kind("engine", engine)
    return None if kind is None or not kind.reader else import_dotted(kind.reader)
