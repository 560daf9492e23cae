"""Builds the mechanisms of a scenario, including the user's own."""

import warnings
from typing import Any

import numpy as np

from mechanisms.local import BinarySamplingPrivacy, LocalMechanism, ParameterError, ParameterWarning, SamplingPrivacy
from scenarios import Fault, Scenario, ScenarioError
from scenarios.mechanisms import PlugIn as PlugInSection
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
