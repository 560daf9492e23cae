"""Builds how devices and parties behave: the scenario's `[[behaviours]]`, and classes given in Python."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from inspect import signature

import numpy as np

from mechanisms.local.mechanism import rows_of
from scenarios import Fault, Scenario, ScenarioError
from scenarios.behaviours import BehaviourSection, FixedCellSection, OwnBehaviour, parameters_of
from scenarios.kinds import title
from scenarios.mechanisms import PlugInSection
from simulator.experiment.assembly.campaigns import faults_of_parties
from simulator.experiment.assembly.own_kinds import load_own_kind
from simulator.files.messages import Note, counted, warning
from simulator.sensing import behaviours
from simulator.sensing.campaign import Campaign
from simulator.sensing.device import Behaviour, Device
from simulator.streams import Streams

DEVICES: Mapping[str, type[Device]] = {
    "fixed_cell": behaviours.FixedCell,
    "hide_cell": behaviours.HiddenCell,
    "refuse_cell": behaviours.RefusedCell,
    "random_cell": behaviours.RandomCell,
    "amplify": behaviours.Amplifier,
    "silent": behaviours.SilentInRound,
    "late": behaviours.Late,
    "twice": behaviours.Twice,
}
"""The class of the devices of each kind; its parameters are keys of the section."""


def build_behaviour(scenario: Scenario, given: Behaviour, *, devices: int, streams: Streams) -> Behaviour:
    """Return how devices and parties of a run behave: those of a section as it states, all others as given.

    Parameters
    ----------
    scenario
        The scenario, which has been checked by `check_behaviour`.
    given
        The behaviour given in Python.
    devices
        The number of devices of the run.
    streams
        The generators of the run; a device is drawn for a share independently of all others.

    Raises
    ------
    ScenarioError
        If a section names a device that does not exist.
    """
    if not scenario.behaviours:
        return given
    faults, drawn = [], streams.of("behaviours").random(devices)
    shares = np.cumsum([section.share or 0.0 for section in scenario.behaviours])
    which = np.searchsorted(shares, drawn, side="right")
    for index, section in enumerate(scenario.behaviours):
        missing = [number for number in section.devices or () if number >= devices]
        if missing:
            rule = f"there are {devices} devices, numbered from 0"
            faults.append(Fault(f"behaviours.{section.name}.devices", rule, missing[0]))
        elif section.devices is not None:
            which[list(section.devices)] = index
    if faults:
        raise ScenarioError(scenario.name, faults)
    classes = [partial(_class_of(section), **parameters_of(section)) for section in scenario.behaviours]
    every = [given.class_of(number) if index == len(classes) else classes[index] for number, index in enumerate(which)]
    refusing: dict[int, float] = {}
    for section in scenario.behaviours:
        if isinstance(section, FixedCellSection) and section.kind == "refuse_cell":
            share = section.share or len(section.devices or ()) / devices
            refusing[section.cell] = refusing.get(section.cell, 0.0) + share
    return Behaviour(every.__getitem__, given.parties, refusing)


def _class_of(section: BehaviourSection) -> Callable[..., Device]:
    kind: Callable[..., Device] = (
        load_own_kind("behaviour", section.kind) if isinstance(section, OwnBehaviour) else DEVICES[section.kind]
    )
    return kind


def check_behaviour(scenario: Scenario, given: Behaviour, campaigns: Iterable[Campaign]) -> None:
    """Raise an error for behaviours that no device of the run can have, and for parties that do not exist.

    Raises
    ------
    ScenarioError
        If all answers are drawn as counts, a class refuses its parameters, a cell does not exist in any campaign, or a
        party has a behaviour of its own that no campaign and mechanism has; the message lists those that exist.
    """
    campaigns = list(campaigns)
    faults = faults_of_parties(dict.fromkeys(given.parties, "behaviour.parties"), campaigns)
    own = bool(scenario.behaviours) or given.device is not Device or bool(given.parties)
    if own and scenario.population.answers == "counts":
        rule = "must be auto or reports for devices with a behaviour of their own, which answer one by one"
        faults.append(Fault("population.answers", rule, "counts"))
    if own or scenario.sensing.engine == "messages":
        faults += _without_rows(scenario, campaigns)
    cells = max((mechanism.cells for campaign in campaigns for mechanism in campaign.mechanisms.values()), default=0)
    for section in scenario.behaviours:
        at, parameters = f"behaviours.{section.name}", parameters_of(section)
        if parameters.get("cell", 0) > cells and not isinstance(section, OwnBehaviour):
            faults.append(Fault(f"{at}.cell", f"must be at most {cells}, the number of cells", parameters["cell"]))
        try:
            signature(_class_of(section)).bind(0, None, **parameters)
        except TypeError as error:
            faults.append(Fault(f"{at}.kind", f"refuses its parameters: {error}", section.kind))
    if faults:
        raise ScenarioError(scenario.name, faults)


def _without_rows(scenario: Scenario, campaigns: Iterable[Campaign]) -> Iterator[Fault]:
    """Yield a fault for each mechanism of a user's own whose coins have no row for each device."""
    given = {item.name: item for item in scenario.mechanisms if isinstance(item, PlugInSection)}
    asked = {name: mechanism for campaign in campaigns for name, mechanism in campaign.mechanisms.items()}
    for name in given.keys() & asked.keys():
        rng = np.random.default_rng(0)
        try:
            _ = rows_of(asked[name].toss(asked[name].enrol(2, rng=rng), rng=rng), slice(1))
        except (TypeError, KeyError, IndexError, AttributeError) as error:
            rule = f"its coins must have a row for each device, as each device answers for itself: {error}"
            yield Fault(f"mechanisms.{name}.kind", rule, given[name].kind)


def own_classes_warning(given: Behaviour) -> list[Note]:
    """Return the warning that devices or parties are of classes given in Python, if any are."""
    own = [*(["devices"] if given.device is not Device else []), *given.parties]
    text = f"{', '.join(own)}: of a class of your own; claims are for devices and servers that follow the protocol"
    return [warning("behaviour", text, "behaviour")] if own else []


def behaviour_warnings(scenario: Scenario) -> Iterator[Note]:
    """Yield a warning for each section: which devices do not follow the protocol, and what they do."""
    as_counts = scenario.population.drawn_as_counts
    crowd = f"; {as_counts}, whose answers are drawn as counts, follow it" if as_counts else ""
    crowd += "; in campaigns of speeds all follow it" * any(one.statistic != "count" for one in scenario.campaigns)
    for section in scenario.behaviours:
        who = f"{100 * (section.share or 0):g} % of {'vehicles' if as_counts else 'devices'}"
        if section.devices is not None:
            who = counted(len(section.devices), "device")
        does = title("behaviour", section.kind, f"behave as {section.kind}")
        keys = ", ".join(f"{key} = {value}" for key, value in parameters_of(section).items())
        text = f"{who} do not follow the protocol: they {does}{keys and f' ({keys})'}; claims are for all others{crowd}"
        yield warning("behaviour", f"behaviours.{section.name}: {text}", f"behaviours.{section.name}")
