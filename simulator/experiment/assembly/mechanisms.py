"""Builds the mechanisms of a scenario, including the user's own."""

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import numpy as np

from mechanisms import local
from mechanisms.declared import Declared
from mechanisms.local import (
    AdaptiveBudget,
    BinarySamplingPrivacy,
    Counts,
    Estimate,
    LocalMechanism,
    ParameterError,
    ParameterWarning,
    SamplingPrivacy,
    UniformPopulation,
    uniform_budget,
)
from mechanisms.local.budget_schedules import Division
from mechanisms.privacy import Claim, LinkedReports, View
from scenarios import Fault, Scenario, ScenarioError
from scenarios.campaigns import Budget
from scenarios.field_types import number
from scenarios.mechanisms import PlugInSection
from scenarios.section import NamedByKind
from simulator.arrays import FloatArray, IntArray, Mask
from simulator.experiment.assembly.own_kinds import REQUIRED, build_own_kind, in_words
from simulator.files.errors import InputError
from simulator.sensing.adaptive_survey import BudgetSchedule
from simulator.sensing.campaign import WindowBudget
from simulator.sensing.query import keeps_randomness

BATCH = 1 << 16
_Made = TypeVar("_Made")


class _Forwarding:
    """A wrapper of a mechanism that forwards all attributes which it does not have itself."""

    def __init__(self, mechanism: Any) -> None:  # whatever the user wrote
        self._mechanism = mechanism

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # how a wrapper is unpickled is its own affair
            raise AttributeError(name)
        return getattr(self._mechanism, name)


class PlugIn(_Forwarding):
    """Wrapper of a user's mechanism that forwards all attributes and supplies the optional ones it lacks.

    Parameters
    ----------
    mechanism
        Object with all attributes in `REQUIRED`. Without `std_error` there is no theory to compare its error with;
        without `batch` its devices answer 65,536 at a time; without `warnings` it has no warnings.
    cells
        The number of cells.

    Raises
    ------
    TypeError
        If required attributes are missing; the message names all of them.
    """

    def __init__(self, mechanism: Any, *, cells: int) -> None:
        missing = [name for name in REQUIRED if not hasattr(mechanism, name)]
        if missing:
            raise TypeError(f"a mechanism must have {', '.join(missing)} (see mechanisms.local.LocalMechanism)")
        super().__init__(mechanism)
        self.class_name = type(mechanism).__name__
        self.cells: int = getattr(mechanism, "cells", cells)
        self.batch: int = getattr(mechanism, "batch", BATCH)

    def warnings(self) -> list[str]:
        """Return the mechanism's own warnings, if it has any."""
        warnings_of = getattr(self._mechanism, "warnings", None)
        return [] if warnings_of is None else warnings_of()

    def tally(self, reports: Any, where: Mask | None = None) -> IntArray:
        """Add up the reports of some devices."""
        return np.asarray(self._mechanism.tally(reports if where is None else reports[where]), dtype=np.int64)

    def estimate(self, counts: Counts, **received: Any) -> Estimate:
        """Return the mechanism's own estimate."""
        return self._made("estimate", Estimate, self._mechanism.estimate(counts, **received))

    def claim(self, view: View) -> Claim:
        """Return the mechanism's own claim."""
        return self._made("claim", Claim, self._mechanism.claim(view))

    def check(self) -> None:
        """Raise InputError unless claims and memory are as a run takes them."""
        self.claim(LinkedReports())
        memory = self._mechanism.enrol(2, rng=np.random.default_rng(0))
        try:
            _ = memory[np.arange(2)]
        except Exception as error:
            rule = "must return NoMemory, or memory that an array of device numbers indexes"
            raise InputError([f"{self.class_name}.enrol {rule}, got {type(memory).__name__}"]) from error

    def _made(self, name: str, class_: type[_Made], made: Any) -> _Made:
        if not isinstance(made, class_):
            rule = f"must return a {class_.__module__.rpartition('.')[0]}.{class_.__name__}"
            raise InputError([f"{self.class_name}.{name} {rule}, got {type(made).__name__}"], "mechanisms")
        return made

    def std_error(self, true_counts: IntArray, **received: Any) -> FloatArray:
        """Return the mechanism's own theoretical standard error, NaN if it has none."""
        std_error = getattr(self._mechanism, "std_error", None)
        if std_error is None:
            return np.full(self.cells, np.nan)
        return np.asarray(std_error(true_counts, **received))


def build_mechanisms(scenario: Scenario, cells: int) -> dict[str, LocalMechanism]:
    """Build every mechanism, by name, for a city of `cells` cells.

    Raises
    ------
    ScenarioError
        If parameters do not fit the number of cells, or a plug-in refuses them.
    """
    faults, built = [], {}
    for section in scenario.mechanisms:
        where = f"mechanisms.{section.name}"
        try:
            with warnings.catch_warnings():
                # The result contains a mechanism's warnings, so that they are shown once and stored.
                warnings.simplefilter("ignore", ParameterWarning)
                built[section.name] = _build(section, cells)
        except ParameterError as error:
            faults.append(Fault(where, str(error)))
        except InputError as error:
            faults += [Fault(where, fault) for fault in error.faults]
        except TypeError as error:  # what Python says of an operation names neither key nor value
            given = in_words(section.parameters)
            faults.append(Fault(where, f"{section.kind}{given and f' with {given}'} raises TypeError: {error}"))
        except ValueError as error:
            faults.append(Fault(where, f"{section.kind} refuses its parameters: {error}"))
    if faults:
        raise ScenarioError(scenario.name, faults)
    return built


def build_budget(
    scenario: Scenario, campaign: str, section: Budget, cells: int
) -> tuple[dict[str, LocalMechanism], WindowBudget]:
    """Build the mechanisms of a campaign with a budget, by the campaign's name, and the budget.

    Returns
    -------
    mechanisms
        By name: for uniform budgets with the ε of one query, else with the ε of the whole window.
    budget
        The budget, with its division among devices or queries where not all of them answer every query.

    Raises
    ------
    ScenarioError
        If a part of the budget is out of a mechanism's range.
    """
    faults = []
    mechanisms: dict[str, LocalMechanism] = {}
    schedules: dict[str, BudgetSchedule] = {}
    epsilons = {mechanism.name: mechanism.parameters["epsilon"] for mechanism in scenario.mechanisms}
    for mechanism in scenario.mechanisms:
        name, make, epsilon = mechanism.name, partial(_divided, mechanism, cells), epsilons[mechanism.name]
        try:
            made = make(uniform_budget(epsilon, section.window) if section.kind == "uniform" else epsilon)
            mechanisms[name] = made
            if section.kind == "population_uniform":
                schedules[name] = UniformPopulation(made, section.window)
            elif section.kind != "uniform":
                by: Division = "budget" if section.kind == "absorption" else "population"
                schedules[name] = AdaptiveBudget(make, epsilon, section.window, by)
        except ParameterError as error:
            rule = f"leaves mechanisms.{name} (ε = {number(epsilon)}) a part out of its range: {error}"
            faults.append(Fault(f"campaigns.{campaign}.budget.window", rule, section.window))
    if faults:
        raise ScenarioError(scenario.name, faults)
    return mechanisms, WindowBudget(section.kind, section.window, epsilons, schedules)


class _OneQuery(_Forwarding):
    """A user's mechanism whose claims are known for one query only."""

    def claim(self, view: View) -> Claim:
        """Return the mechanism's claim about one query."""
        if view.queries == 1:
            claim: Claim = self._mechanism.claim(view)
            return claim
        return Claim.unknown("Answers are drawn as counts, with new coins in every query instead of kept ones.")


def drawn_as_counts(mechanism: LocalMechanism) -> LocalMechanism:
    """Return the mechanism that is asked where `sample_counts` draws the answers, with new coins in each query.

    If devices would keep randomness from query to query, its own claims do not hold over several queries. Those that
    hold are the ones of its `without_memory`; of a user's mechanism that has none they are unknown.
    """
    if not keeps_randomness(mechanism):
        return mechanism
    drawn: LocalMechanism = getattr(mechanism, "without_memory", None) or _OneQuery(mechanism)
    return drawn


def _divided(section: NamedByKind, cells: int, epsilon: float) -> Any:
    """Build a mechanism with another ε; parameters that follow from ε by default do so again."""
    return MECHANISMS[section.kind](cells=cells, **{**section.parameters, "epsilon": epsilon})


def _build(section: NamedByKind, cells: int) -> LocalMechanism:
    if isinstance(section, PlugInSection):
        made = build_own_kind("mechanism", section.kind, section.parameters, cells=cells)
        if isinstance(declared := getattr(made, "declared", None), Declared):
            declared.check(made)
        wrapped = PlugIn(made, cells=cells)
        wrapped.check()
        mechanism: LocalMechanism = wrapped
    else:
        mechanism = MECHANISMS[section.kind](cells=cells, **section.parameters)
    return mechanism


def build_sampling_privacy(*, cells: int, form: str, refresh: float, **parameters: Any) -> LocalMechanism:
    """Build Sampling Privacy in its multi-valued or in its binary form."""
    if form == "multi":
        return SamplingPrivacy(cells=cells, refresh=refresh, **parameters)
    # The schema has checked that the single blank, if given, is what the other two probabilities leave.
    blank = parameters.pop("blank", None)
    if blank is not None:
        parameters.setdefault("blank_zero", 1.0 - parameters["sampling"] - blank)
    return BinarySamplingPrivacy(cells=cells, **parameters)


_DECLARED = [each for each in vars(local).values() if isinstance(each, type) and "declared" in vars(each)]
MECHANISMS: Mapping[str, Callable[..., LocalMechanism]] = {
    **{vars(each)["declared"].kind: each for each in _DECLARED},
    SamplingPrivacy.declared.kind: build_sampling_privacy,  # one of two classes, by a parameter
}
"""What makes each mechanism from the number of cells and its parameters: the class that has its declaration."""
