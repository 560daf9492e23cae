"""Users' own classes, which are verified before they are called, and what sections of one form have in common."""

import hashlib
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any

from scenarios import Fault, Scenario, ScenarioError, kinds
from scenarios.errors import suggestion
from scenarios.references import PLUGIN_REFUSAL
from simulator.files.errors import InputError
from simulator.files.tables import FileFormat, TextFormat

MECHANISM_METHODS = ("enrol", "toss", "answer", "encode", "tally", "estimate", "sample_counts", "claim")
METHODS: Mapping[str, tuple[str, ...]] = {
    "mechanism": MECHANISM_METHODS,
    "deployment": ("combine",),
    "attack": ("guess",),
    "behaviour": ("answer", "report", "send"),
}
"""Methods that a user's class or object needs, by role; a class has them before an instance is made."""
SHARING_METHODS = ("split", "sum", "join")
"""Methods of an aggregator that cuts reports into shares; it needs no other."""

REQUIRED = ("rounds", "truth_round", "tally_shape", *MECHANISM_METHODS)
"""Attributes of every mechanism; `crowdveil check` tests that they behave as specified."""


class WrongInterfaceError(TypeError):
    """The name of a user's kind refers to an object without the methods of its role."""


def load_own_kind(role: str, kind: str) -> Any:
    """Return the class or object of a user's kind, and verify that it has the methods of its role, without calling it.

    Raises
    ------
    ImportError, AttributeError
        If there is no such module, it has no attribute of that name, or no package provides the kind.
    WrongInterfaceError
        If it lacks methods.
    """
    target = kinds.load(role, kind)
    if not (isinstance(target, type) or kinds.is_given(kind)):
        raise WrongInterfaceError(f"must be a class, and is of type {type(target).__name__}")
    if missing := missing_methods(role, target):
        word = kinds.WORDS.get(role, role)
        raise WrongInterfaceError(f"must be a class for the role {word}: it must have {', '.join(missing)}")
    return target


def missing_methods(role: str, target: Any) -> list[str]:
    """Return the methods of a role that a class or an object lacks."""
    missing = [name for name in METHODS[role] if not callable(getattr(target, name, None))]
    shares = role == "deployment" and all(callable(getattr(target, name, None)) for name in SHARING_METHODS)
    return [] if shares else missing


def check_own_kinds(scenario: Scenario) -> None:
    """Import the users' kinds that a scenario names, if permitted, and verify them.

    No class is called.

    Raises
    ------
    ScenarioError
        If their import is not permitted, or for each kind that cannot be imported or lacks methods of its role.
    """
    faults = []
    for where, role, kind in scenario.own_kinds():
        if not scenario.permits(kind):
            faults.append(Fault(where, PLUGIN_REFUSAL, kind))
            continue
        try:
            load_own_kind(role, kind)
        except WrongInterfaceError as error:
            faults.append(Fault(where, str(error), kind))
        except Exception as error:  # noqa: BLE001 - a user's module may raise anything while it is imported
            names = dir(error.obj) if isinstance(error, AttributeError) else ()
            hint = suggestion(getattr(error, "name", None), names)
            faults.append(Fault(where, f"cannot be imported ({type(error).__name__}: {error}){hint}", kind))
    if faults:
        raise ScenarioError(scenario.name, faults)


def build_own_kind(role: str, kind: str, parameters: Mapping[str, Any], **given: Any) -> Any:
    """Return the object of a user's kind: an object as it is, or an instance of a class.

    Parameters
    ----------
    role, kind
        The role, and the name of the kind.
    parameters
        The other keys of its section: keyword arguments of the class.
    **given
        Further keyword arguments, each passed only if the class has a parameter of this name.

    Raises
    ------
    InputError
        If the class refuses its parameters, or an object is given parameters.
    """
    target = load_own_kind(role, kind)
    if not isinstance(target, type):
        if parameters:
            raise InputError([f"{kind} is an object and takes no parameters, received {', '.join(parameters)}"])
        return target
    try:
        return target(**parameters, **accepted(target, given))
    except (TypeError, ValueError) as error:
        inside = list(traceback.walk_tb(error.__traceback__))[1:]
        if isinstance(error, TypeError) and not inside:  # the call itself; Python names the parameter
            raise InputError([f"{kind} refuses its parameters: {error}"]) from error
        why = str(error)
        if isinstance(error, TypeError):  # what Python says of an operation names neither key nor value
            frame, line = inside[-1]
            why = f"one of another type is needed (line {line} of {Path(frame.f_code.co_filename).name})"
        raise InputError([f"{kind} refuses {in_words(parameters) or 'its parameters'}: {why}"]) from error


def in_words(parameters: Mapping[str, Any]) -> str:
    """Return parameters with their values."""
    return ", ".join(f"{name} = {value!r}" for name, value in parameters.items())


def accepted(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments for which a class or a function has parameters."""
    takes = signature(function).parameters
    every = any(parameter.kind is parameter.VAR_KEYWORD for parameter in takes.values())
    return {name: value for name, value in given.items() if every or name in takes}


@contextmanager
def faults_of_own_kinds(scenario: Scenario) -> Iterator[None]:
    """Report an error that was raised in the module of a user's own kind as a fault of the scenario, with its line."""
    try:
        yield
    except (ScenarioError, InputError, MemoryError):
        raise
    except Exception as error:  # a user's class may raise anything
        # SimPy raises a copy of an error in a process; the error itself is the copy's cause.
        frames = list(traceback.walk_tb((error.__cause__ or error).__traceback__))
        for at, role, kind in scenario.own_kinds():
            target = kinds.load(role, kind)
            class_ = target if isinstance(target, type) else type(target)
            in_module = [(code.f_code, line) for code, line in frames if code.f_code.co_filename == _source(target)]
            if any(code.co_qualname.startswith(f"{class_.__qualname__}.") for code, _ in in_module):
                where = f"line {in_module[-1][1]} of {Path(in_module[-1][0].co_filename).name}"
                given = {f"mechanisms.{item.name}.kind": item.parameters for item in scenario.mechanisms}
                words = in_words(given.get(at, {}))
                rule = f"{kind}{words and f' with {words}'} raises {type(error).__name__}: {error} ({where})"
                raise ScenarioError(scenario.name, [Fault(at, rule)]) from error
        raise


def _source(target: Any) -> str | None:
    """Return the file of the module that defines a class or an object's class; None if it has no file."""
    return getattr(sys.modules.get((target if isinstance(target, type) else type(target)).__module__), "__file__", None)


def source_sha256(target: Any) -> str | None:
    """Return the sha256 of the file of the module that defines a class or an object's class; None without a file."""
    file = Path(_source(target) or "")  # a script from standard input has a name, and no file
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None


def same_keys(section: Any, *names: str) -> dict[str, Any]:
    """Return the values of a section's keys, or of an object's attributes, that are parameters of the same name."""
    return {name: getattr(section, name) for name in names}


def text_format(section: Any) -> TextFormat:
    """Return how the tables of text that a section names are written."""
    return TextFormat(section.separator, section.decimal)


@contextmanager
def faults_of_files(scenario: Scenario, key: str) -> Iterator[None]:
    """Report the faults of files that a section names under the key that the error states, else the section's."""
    try:
        yield
    except InputError as error:
        raise ScenarioError(scenario.name, [Fault(error.key or key, fault) for fault in error.faults]) from error


def file_format(section: Any) -> FileFormat:
    """Return how a section's file of rows is written, and which rows are used."""
    return FileFormat(section.separator, section.decimal, section.header, section.where or {})
