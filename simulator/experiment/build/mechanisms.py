"""Builds the mechanisms of a scenario, including the user's own."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mechanisms.local import (
    AdaptiveBudget,
    BinarySamplingPrivacy,
    LocalMechanism,
    ParameterError,
    ParameterWarning,
    SamplingPrivacy,
    uniform_budget,
)
from mechanisms.local.budget_schedules import Division
from scenarios import Fault, Scenario, ScenarioError
from scenarios.field_types import number
from scenarios.mechanisms import PlugInSection
from scenarios.section import NamedByKind
from simulator.arrays import FloatArray, IntArray, Mask
from simulator.experiment.build.constructors import REQUIRED, build_own_kind, constructor_of
from simulator.files.errors import InputError

BATCH = 1 << 16


class PlugIn:
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

    def __init__(self, mechanism: Any, *, cells: int) -> None:  # whatever the user wrote
        missing = [name for name in REQUIRED if not hasattr(mechanism, name)]
        if missing:
            raise TypeError(f"a mechanism must have {', '.join(missing)} (see mechanisms.local.LocalMechanism)")
        self._mechanism = mechanism
        self.class_name = type(mechanism).__name__
        self.cells: int = getattr(mechanism, "cells", cells)
        self.batch: int = getattr(mechanism, "batch", BATCH)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mechanism, name)

    def warnings(self) -> list[str]:
        """Return the mechanism's own warnings, if it has any."""
        own = getattr(self._mechanism, "warnings", None)
        return [] if own is None else own()

    def tally(self, reports: Any, where: Mask | None = None) -> IntArray:
        """Add up the reports of some devices."""
        chosen = reports if where is None else reports[where]
        return np.asarray(self._mechanism.tally(chosen), dtype=np.int64)

    def std_error(self, true_counts: IntArray, **received: Any) -> FloatArray:
        """Return the mechanism's own theoretical standard error, NaN if it has none."""
        own = getattr(self._mechanism, "std_error", None)
        if own is None:
            return np.full(self.cells, np.nan)
        return np.asarray(own(true_counts, **received))


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
        except (TypeError, ValueError) as error:
            faults.append(Fault(where, f"{section.kind} refuses its parameters: {error}"))
    if faults:
        raise ScenarioError(scenario.name, faults)
    return built


@dataclass(frozen=True, eq=False)
class BudgetedCampaign:
    """The mechanisms of a campaign with a budget.

    Attributes
    ----------
    mechanisms
        By name: for uniform budgets with the ε of one query, else with the ε of the whole window.
    adaptive
        By name: the division of the budget, if it depends on earlier estimates; empty for uniform budgets.
    window
        Number of consecutive queries that the budget covers.
    words
        By name: the schedule in words, with which the basis of claims begins.
    """

    mechanisms: Mapping[str, LocalMechanism]
    adaptive: Mapping[str, AdaptiveBudget]
    window: int
    words: Mapping[str, str]


_BUDGET_WORDS = {
    "uniform": "Uniform budget (LBU): ε = {epsilon} for any {w} consecutive queries, ε/{w} at each. ",
    "absorption": "Budget absorption (LBA): ε = {epsilon} for any {w} consecutive queries. ",
    "population_absorption": (
        "Population absorption (LPA): each device answers at most once, with ε = {epsilon}, in any {w} consecutive "
        "queries. "
    ),
}


def build_budgets(scenario: Scenario, cells: int) -> dict[str, BudgetedCampaign]:
    """Build the mechanisms of every campaign with a budget, by the campaign's name.

    Raises
    ------
    ScenarioError
        If a part of the budget is out of a mechanism's range.
    """
    faults, built = [], {}
    for campaign in scenario.campaigns:
        budget = campaign.budget
        if budget is None:
            continue
        mechanisms: dict[str, LocalMechanism] = {}
        adaptive: dict[str, AdaptiveBudget] = {}
        for section in scenario.mechanisms:
            make, epsilon = partial(_divided, section, cells), section.parameters["epsilon"]
            try:
                if budget.kind == "uniform":
                    mechanisms[section.name] = make(uniform_budget(epsilon, budget.window))
                else:
                    by: Division = "budget" if budget.kind == "absorption" else "population"
                    mechanisms[section.name] = make(epsilon)
                    adaptive[section.name] = AdaptiveBudget(make, epsilon, budget.window, by)
            except ParameterError as error:
                rule = f"leaves mechanisms.{section.name} (ε = {number(epsilon)}) a part out of its range: {error}"
                faults.append(Fault(f"campaigns.{campaign.name}.budget.window", rule, budget.window))
        words = {
            one.name: _BUDGET_WORDS[budget.kind].format(epsilon=number(one.parameters["epsilon"]), w=budget.window)
            for one in scenario.mechanisms
        }
        built[campaign.name] = BudgetedCampaign(mechanisms, adaptive, budget.window, words)
    if faults:
        raise ScenarioError(scenario.name, faults)
    return built


def _divided(section: NamedByKind, cells: int, epsilon: float) -> Any:
    """Build a mechanism with another ε; parameters that follow from ε by default do so again."""
    return constructor_of("mechanism", section.kind)(cells=cells, **{**section.parameters, "epsilon": epsilon})


def _build(section: NamedByKind, cells: int) -> LocalMechanism:
    if isinstance(section, PlugInSection):
        made = build_own_kind("mechanism", section.kind, section.parameters, cells=cells)
        mechanism: LocalMechanism = PlugIn(made, cells=cells)
    else:
        mechanism = constructor_of("mechanism", section.kind)(cells=cells, **section.parameters)
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
