"""Builds the engine `sumo`, and finds what its files state: vehicles, classes, coordinates, and their faults."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import scenarios
from scenarios import Fault, Scenario, ScenarioError
from scenarios.roads import SumoRoads
from scenarios.simulated_traffic import SumoTraffic
from simulator.experiment.assembly.own_kinds import same_keys
from simulator.experiment.study_area import City
from simulator.files.errors import InputError, ProgramError, RejectionError
from simulator.files.resources import Stopwatch
from simulator.files.xml_elements import elements_of
from simulator.formats.sumo.attributes import classes_in
from simulator.formats.trip_files import is_sumo_routes
from simulator.roads.sumo_frame import NetFrame
from simulator.streams import Streams
from simulator.sumo.engine import Sumo
from simulator.sumo.inputs import Insertions, SumoInputs, refuse_connection
from simulator.sumo.outputs import EdgeOutput
from simulator.sumo.routes import sumo_link_ids
from simulator.traffic.clock import Clock

_SEEDS = 2**31
_HALF_A_MILLISECOND_S = 0.0005
"""Half of SUMO's unit of time: a vehicle that departs exactly at the end counts, one a millisecond later does not."""
_QUOTED = re.compile(r"(?<!\w)'([^']+)'")
"""How SUMO quotes the elements that it rejects."""


def build_sumo(
    scenario: Scenario, city: City, *, streams: Streams, stopwatch: Stopwatch, end_s: float, **_: object
) -> Sumo:
    """Build the engine from SUMO's input files, and count their vehicles; SUMO itself starts with the run.

    Raises
    ------
    InputError
        If a file cannot be read, or there is no network or no vehicle.
    """
    inputs = sumo_inputs(scenario, streams=streams)
    clock = Clock(inputs.step_s)
    for file in inputs.others:
        for element in elements_of(file):
            refuse_connection(element, file)
    with stopwatch.phase("demand"):
        insertions = sumo_insertions(inputs, end_s=end_s)
    link_of = sumo_link_ids(city.roads) if isinstance(scenario.roads, SumoRoads) else {}
    frame, every_s = net_frame(scenario, inputs.net), scenario.report.link_interval_s
    edges = None
    if every_s is not None:
        edges = EdgeOutput(every_s, inputs.begin_s, end_s, link_of, city.roads.links.length_m)
    return Sumo(inputs, insertions, frame, clock=clock, link_of=link_of, crs=city.ground.crs, edge_output=edges)


def sumo_inputs(scenario: Scenario, *, streams: Streams) -> SumoInputs:
    """Return the files and options that a scenario passes to SUMO.

    Raises
    ------
    InputError
        If the configuration cannot be read.
    ScenarioError
        If there is no network.
    """
    section: Any = scenario.traffic  # a union discriminated by its engine
    options = {
        "seed": section.seed if section.seed is not None else int(streams.of("sumo").integers(_SEEDS)),
        **same_keys(section, "step_s", "mesoscopic", "teleport_s"),
    }
    if section.config is not None:
        return SumoInputs.from_config(scenarios.locate(section.config), begin_s=section.begin_s, **options)
    net = section.net or (scenario.roads.path if isinstance(scenario.roads, SumoRoads) else None)
    if net is None:
        rule = 'net is required where [roads] source is not "sumo": the network SUMO drives on'
        raise ScenarioError(scenario.name, [Fault("traffic.net", rule)])
    return SumoInputs(
        net=scenarios.locate(net),
        routes=tuple(map(scenarios.locate, section.routes)),
        additional=tuple(map(scenarios.locate, section.additional)),
        begin_s=section.begin_s or 0.0,
        **options,
    )


def sumo_insertions(inputs: SumoInputs, *, end_s: float) -> Insertions:
    """Count the vehicles in SUMO's input files.

    Parameters
    ----------
    inputs
        The files and options that the scenario passes to SUMO.
    end_s
        End of the run, seconds: departures up to its last step count.

    Raises
    ------
    InputError
        If a file cannot be read, or holds no vehicle.
    """
    files, last_s = [*inputs.additional, *inputs.routes], last_departure_s(Clock(inputs.step_s), end_s)
    return Insertions.read(files, end_s=inputs.begin_s + last_s, **same_keys(inputs, "begin_s", "step_s", "scale"))


def sumo_faults(scenario: Scenario, error: InputError, *, otherwise: str = "traffic") -> list[Fault]:
    """Assign each fault of an error to the scenario's key of the file that causes it.

    This is the file that the fault names; or, as SUMO rarely names files, the one that defines a vehicle, type or other
    element that SUMO's message quotes; or else the configuration, which names the files.

    Parameters
    ----------
    scenario
        A scenario with engine ``sumo``.
    error
        The error.
    otherwise
        The key used if no file is known to be the cause.
    """
    section: Any = scenario.traffic
    named = {"traffic.config": section.config, "traffic.net": section.net}
    for name in ("routes", "additional"):
        named |= {f"traffic.{name}[{place}]": file for place, file in enumerate(getattr(section, name))}
    if isinstance(scenario.roads, SumoRoads):
        named["roads.path"] = scenario.roads.path
    files = {key: scenarios.locate(file) for key, file in named.items() if file is not None}
    unnamed = otherwise if section.config is None or isinstance(error, ProgramError) else "traffic.config"
    rejected = isinstance(error, RejectionError)
    return [Fault(_key(fault, files, rejected=rejected) or unnamed, fault) for fault in error.faults]


def _key(fault: str, files: Mapping[str, Path], *, rejected: bool) -> str | None:
    for key, file in files.items():
        if str(file) in fault or str(file.resolve()) in fault:
            return key
    quoted = set(_QUOTED.findall(fault)) if rejected else set()
    for key, file in files.items():
        if quoted and key.endswith("]"):
            elements = elements_of(file)
            if any(element.attributes and element.attributes.get("id") in quoted for element in elements):
                return key
    return None


def last_departure_s(clock: Clock, end_s: float) -> float:
    """Return the last departure that counts in a run that ends at `end_s`: its last step plus half a millisecond."""
    return clock.seconds(clock.whole_ticks(end_s)) + _HALF_A_MILLISECOND_S


def net_frame(scenario: Scenario, net: Path) -> NetFrame:
    """Return the frame of a SUMO network's coordinates; of one without a projection, at the roads' anchor.

    Raises
    ------
    InputError
        If the network does not state it.
    """
    anchor = getattr(scenario.roads, "anchor", None)
    return NetFrame.from_file(net, anchor=None if anchor is None else (anchor.lon, anchor.lat))


def sumo_classes(scenario: Scenario) -> list[str] | None:
    """Return the vehicle classes of SUMO's route files, None if a scenario has none.

    Raises
    ------
    InputError
        If a file cannot be used.
    """
    traffic = scenario.traffic
    if isinstance(traffic, SumoTraffic):
        inputs = sumo_inputs(scenario, streams=Streams(0))
        return classes_in([*inputs.additional, *inputs.routes])
    files = [scenarios.locate(file) for file in getattr(traffic, "trip_files", ())]
    return classes_in(files) if files and all(map(is_sumo_routes, files)) else None


def sumo_source(scenario: Scenario) -> dict[str, Any]:
    """Return the network on which SUMO draws vehicles, None if the roads are not SUMO's, and its only vehicle class."""
    roads = scenario.roads
    if not isinstance(roads, SumoRoads):
        return {"net": None}
    return {"net": scenarios.locate(roads.path), "vehicle_class": roads.vehicle_class}
