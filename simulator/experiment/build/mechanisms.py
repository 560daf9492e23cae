"""Mechanisms, by the kinds a scenario names."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from mechanisms import local
from mechanisms.local import LocalMechanism, ParameterError, ParameterWarning
from scenarios import Fault, Scenario, ScenarioError
from scenarios.mechanisms import PlugIn as PlugInSection
from scenarios.permissions import PLUGIN_REFUSAL
from simulator.experiment.plug_in import NotAMechanismError, PlugIn, import_plug_in, source_sha256


def import_plug_ins(scenario: Scenario) -> dict[str, Callable[..., LocalMechanism]]:
    """Import the classes that a scenario names, if it may, and return what makes a mechanism of each, by kind.

    Raises
    ------
    ScenarioError
        If it may not, or for each class that cannot be had or is no mechanism; none has been called then.
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
    """Make every mechanism, by name, for a city of `cells` cells.

    Raises
    ------
    ScenarioError
        If parameters do not fit the number of cells, or a plug-in cannot be had.
    """
    faults, built = [], {}
    plug_ins = import_plug_ins(scenario)
    for section in scenario.mechanisms:
        where = f"mechanisms.{section.name}"
        try:
            make = _MECHANISMS.get(section.kind) or plug_ins[section.kind]
            with warnings.catch_warnings():
                # The result carries a mechanism's warnings, so that they are told once and kept.
                warnings.simplefilter("ignore", ParameterWarning)
                built[section.name] = make(cells=cells, **section.parameters)
        except ParameterError as error:
            faults.append(Fault(where, str(error)))
        except (TypeError, ValueError) as error:
            faults.append(Fault(where, f"{section.kind} refuses its parameters: {error}"))
    if faults:
        raise ScenarioError(scenario.name, faults)
    return built


def _sampling_privacy(*, cells: int, form: str, refresh: float, **parameters: Any) -> LocalMechanism:
    if form == "multi":
        return local.SamplingPrivacy(cells=cells, refresh=refresh, **parameters)
    # The schema has seen to it that the one blank, if given, is what the other two leave.
    blank = parameters.pop("blank", None)
    if blank is not None:
        parameters.setdefault("blank_zero", 1.0 - parameters["sampling"] - blank)
    return local.BinarySamplingPrivacy(cells=cells, **parameters)


_MECHANISMS: Mapping[str, Callable[..., LocalMechanism]] = {
    "no_privacy": local.NoPrivacy,
    "sampling_privacy": _sampling_privacy,
    "randomized_response": local.RandomizedResponse,
    "warner": local.Warner,
    "k_randomized_response": local.KRandomizedResponse,
    "sue": local.SymmetricUnary,
    "oue": local.OptimisedUnary,
    "the": local.ThresholdHistogram,
    "olh": local.LocalHashing,
    "subset_selection": local.SubsetSelection,
    "hadamard_response": local.HadamardResponse,
    "longitudinal_unary": local.LongitudinalUnary,
    "distributed_laplace": local.DistributedLaplace,
    "sampling_and_noise": local.SamplingAndNoise,
    "sampled_response": local.SampledResponse,
    "anonymized_local": local.AnonymizedLocal,
    "anonymized_first_attempt": local.AnonymizedFirstAttempt,
    "anonymized_cancelling": local.AnonymizedCancelling,
    "anonymized_deniable": local.AnonymizedDeniable,
}


def _maker(plug_in: type) -> Callable[..., LocalMechanism]:
    sha256 = source_sha256(plug_in)  # of the code as it was imported

    def make(*, cells: int, **parameters: Any) -> LocalMechanism:
        mechanism: LocalMechanism = PlugIn(plug_in(cells=cells, **parameters), cells=cells, sha256=sha256)
        return mechanism

    return make
