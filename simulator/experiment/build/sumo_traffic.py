"""SUMO as a scenario's engine: files, seed, and how its network lies on the city's roads."""

from pathlib import Path
from typing import Any

import scenarios
from scenarios import Scenario
from simulator.experiment.city import City
from simulator.files.xml_elements import elements_of
from simulator.roads import RoadsError
from simulator.roads.sumo.frame import NetFrame
from simulator.stopwatch import Stopwatch
from simulator.streams import Streams
from simulator.traffic.clock import Clock
from simulator.traffic.demand.sumo_links import sumo_link_ids
from simulator.traffic.errors import TrafficError
from simulator.traffic.sumo import Insertions, Sumo, SumoInputs

_SEEDS = 2**31
_MOST_GAPS = 4
"""Round gaps of a query at most: mechanisms of three rounds, some with their truth first and some last."""


def build_sumo(scenario: Scenario, city: City, *, streams: Streams, stopwatch: Stopwatch) -> Sumo:
    """Gather what SUMO is given, and count the vehicles in it; SUMO itself starts with the run.

    Raises
    ------
    TrafficError
        If a file cannot be read, there is no network, or no vehicle.
    """
    inputs = sumo_inputs(scenario, streams=streams)
    clock = Clock(inputs.step_s)
    with stopwatch.phase("demand"):
        insertions = sumo_insertions(scenario, inputs)
    link_of = sumo_link_ids(city.roads) if scenario.roads.source == "sumo" else {}
    return Sumo(inputs, insertions, _frame(scenario, inputs.net), clock=clock, link_of=link_of, crs=city.ground.crs)


def sumo_inputs(scenario: Scenario, *, streams: Streams) -> SumoInputs:
    """Return the files and options a scenario gives SUMO.

    Raises
    ------
    TrafficError
        If the configuration cannot be read, or there is no network.
    """
    section: Any = scenario.traffic  # a union told apart by its engine
    seed = section.seed if section.seed is not None else int(streams.of("sumo").integers(_SEEDS))
    if section.config is not None:
        return SumoInputs.from_config(
            scenarios.locate(section.config),
            seed=seed,
            step_s=section.step_s,
            begin_s=section.begin_s,
            mesoscopic=section.mesoscopic,
            teleport_s=section.teleport_s,
        )
    net = section.net or (scenario.roads.path if scenario.roads.source == "sumo" else None)
    if net is None:
        raise TrafficError(['net is required where [roads] source is not "sumo": the network SUMO drives on'])
    return SumoInputs(
        net=scenarios.locate(net),
        routes=tuple(map(scenarios.locate, section.routes)),
        additional=tuple(map(scenarios.locate, section.additional)),
        seed=seed,
        step_s=section.step_s,
        begin_s=section.begin_s or 0.0,
        mesoscopic=section.mesoscopic,
        teleport_s=section.teleport_s,
    )


def sumo_insertions(scenario: Scenario, inputs: SumoInputs) -> Insertions:
    """Count the vehicles in what SUMO is given.

    Raises
    ------
    TrafficError
        If a file cannot be read, or holds no vehicle.
    """
    return Insertions.read(
        [*inputs.additional, *inputs.routes],
        begin_s=inputs.begin_s,
        end_s=inputs.begin_s + closing_s(scenario),
        step_s=inputs.step_s,
        scale=inputs.scale,
    )


def closing_s(scenario: Scenario) -> float:
    """Return a moment at which the last query is closed for certain."""
    closing_s = [
        one.start_s + (one.queries - 1) * (one.every_s or 0.0) + _MOST_GAPS * one.round_gap_s + one.deadline_s
        for one in scenario.campaigns
    ]
    return max(scenario.scenario.duration_s, *closing_s)


def _frame(scenario: Scenario, net: Path) -> NetFrame:
    """Return where SUMO's coordinates lie; of a network without a projection, about the roads' anchor."""
    anchor = getattr(scenario.roads, "anchor", None)
    for element in elements_of(net, error=TrafficError):
        if element.name == "location" and element.attributes is not None:
            try:
                return NetFrame.from_location(
                    element.attributes, anchor=None if anchor is None else (anchor.lon, anchor.lat), what=str(net)
                )
            except RoadsError as error:
                raise TrafficError(error.faults) from error
    raise TrafficError([f"{net}: has no <location>; is it a SUMO network?"])
