"""Mechanisms, by the kinds a scenario names."""

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from mechanisms import local
from mechanisms.local import LocalMechanism, ParameterError, ParameterWarning
from scenarios import Fault, Scenario, ScenarioError
from simulator.experiment.plug_in import PlugIn


def build_mechanisms(scenario: Scenario, cells: int) -> dict[str, LocalMechanism]:
    """Make every mechanism, by name, for a city of `cells` cells.

    Raises
    ------
    ScenarioError
        If parameters do not fit the number of cells, or a plug-in cannot be had.
    """
    faults, built = [], {}
    for section in scenario.mechanisms:
        where = f"mechanisms.{section.name}"
        try:
            make = _MECHANISMS.get(section.kind) or _plug_in(section.kind)
            with warnings.catch_warnings():
                # The result carries a mechanism's warnings, so that they are told once and kept.
                warnings.simplefilter("ignore", ParameterWarning)
                built[section.name] = make(cells=cells, **section.parameters)
        except ParameterError as error:
            faults.append(Fault(where, str(error)))
        except (ImportError, AttributeError) as error:
            faults.append(Fault(f"{where}.kind", f"cannot be imported ({error})", section.kind))
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


def _plug_in(kind: str) -> Callable[..., LocalMechanism]:
    module, _, name = kind.partition(":")
    kind_of: Callable[..., Any] = getattr(importlib.import_module(module), name)

    def make(*, cells: int, **parameters: Any) -> LocalMechanism:
        mechanism: LocalMechanism = PlugIn(kind_of(cells=cells, **parameters), cells=cells)
        return mechanism

    return make
