"""Builds the mechanisms of a scenario, including the user's own, which are imported and verified."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from mechanisms.local import BinarySamplingPrivacy, LocalMechanism, ParameterError, ParameterWarning, SamplingPrivacy
from scenarios import Fault, Scenario, ScenarioError
from scenarios.mechanisms import PlugIn as PlugInSection
from scenarios.references import PLUGIN_REFUSAL
from simulator.arrays import FloatArray, IntArray, Mask
from simulator.experiment.build.constructors import (
    REQUIRED,
    NotAMechanismError,
    constructor_of,
    import_plug_in,
    source_sha256,
)

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
    sha256
        Checksum of the file of the module that defines it; None if it has no file.

    Raises
    ------
    TypeError
        If required attributes are missing; the message names all of them.
    """

    def __init__(self, mechanism: Any, *, cells: int, sha256: str | None = None) -> None:  # whatever the user wrote
        missing = [name for name in REQUIRED if not hasattr(mechanism, name)]
        if missing:
            raise TypeError(f"a mechanism must have {', '.join(missing)} (see mechanisms.local.LocalMechanism)")
        self._mechanism = mechanism
        self.sha256 = sha256
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


def import_plug_ins(scenario: Scenario) -> dict[str, Callable[..., LocalMechanism]]:
    """Import the classes that a scenario names, if permitted; return functions that build their mechanisms, by kind.

    Raises
    ------
    ScenarioError
        If plug-ins are not permitted, or for each class that cannot be imported or is not a mechanism; no class has
        been called then.
    """
    faults, makes = [], {}
    for section in scenario.mechanisms:
        if not isinstance(section, PlugInSection):
            continue
        where = f"mechanisms.{section.name}.kind"
        if not scenario.permissions.allow_plugins:
            faults.append(Fault(where, PLUGIN_REFUSAL, section.kind))
            continue
        try:
            makes[section.kind] = _maker(import_plug_in(section.kind))
        except NotAMechanismError as error:
            faults.append(Fault(where, str(error), section.kind))
        except Exception as error:  # noqa: BLE001 - a user's module may raise anything while it is imported
            faults.append(Fault(where, f"cannot be imported ({type(error).__name__}: {error})", section.kind))
    if faults:
        raise ScenarioError(scenario.name, faults)
    return makes


def build_mechanisms(scenario: Scenario, cells: int) -> dict[str, LocalMechanism]:
    """Build every mechanism, by name, for a city of `cells` cells.

    Raises
    ------
    ScenarioError
        If parameters do not fit the number of cells, or a plug-in cannot be imported.
    """
    faults, built = [], {}
    plug_ins = import_plug_ins(scenario)
    for section in scenario.mechanisms:
        where = f"mechanisms.{section.name}"
        try:
            make = plug_ins.get(section.kind) or constructor_of("mechanism", section.kind)
            with warnings.catch_warnings():
                # The result contains a mechanism's warnings, so that they are shown once and stored.
                warnings.simplefilter("ignore", ParameterWarning)
                built[section.name] = make(cells=cells, **section.parameters)
        except ParameterError as error:
            faults.append(Fault(where, str(error)))
        except (TypeError, ValueError) as error:
            faults.append(Fault(where, f"{section.kind} refuses its parameters: {error}"))
    if faults:
        raise ScenarioError(scenario.name, faults)
    return built


def build_sampling_privacy(*, cells: int, form: str, refresh: float, **parameters: Any) -> LocalMechanism:
    """Build Sampling Privacy in its multi-valued or in its binary form."""
    if form == "multi":
        return SamplingPrivacy(cells=cells, refresh=refresh, **parameters)
    # The schema has checked that the single blank, if given, is what the other two probabilities leave.
    blank = parameters.pop("blank", None)
    if blank is not None:
        parameters.setdefault("blank_zero", 1.0 - parameters["sampling"] - blank)
    return BinarySamplingPrivacy(cells=cells, **parameters)


def _maker(plug_in: type) -> Callable[..., LocalMechanism]:
    sha256 = source_sha256(plug_in)  # of the code as it was imported

    def make(*, cells: int, **parameters: Any) -> LocalMechanism:
        mechanism: LocalMechanism = PlugIn(plug_in(cells=cells, **parameters), cells=cells, sha256=sha256)
        return mechanism

    return make
