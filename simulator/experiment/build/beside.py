"""A second engine that drives the same vehicles, to hold its traffic against the first one's."""

import re
from typing import NamedTuple

from scenarios import Fault, Scenario, ScenarioError
from simulator.experiment.build.sumo_traffic import last_departure_s, sumo_faults, sumo_inputs, sumo_insertions
from simulator.experiment.city import City
from simulator.files.xml_elements import elements_of
from simulator.stopwatch import Stopwatch
from simulator.streams import Streams
from simulator.traffic.clock import Clock
from simulator.traffic.demand import read_sumo_routes
from simulator.traffic.engine import Engine
from simulator.traffic.errors import TrafficError
from simulator.traffic.fleet import Fleet
from simulator.traffic.physics import LinkPhysics

_EDGE = re.compile(r"edge '([^']+)'")


class Beside(NamedTuple):
    """An engine that drives after the run's own, its name, and what to know of its vehicles."""

    name: str
    engine: Engine
    notes: list[str]


def build_beside(
    scenario: Scenario, city: City, *, end_s: float, streams: Streams, stopwatch: Stopwatch
) -> Beside | None:
    """Make the engine that a scenario wants beside its own, with the same vehicles; None where it wants none.

    Departures and routes are those of SUMO's files, over the same roads; of vehicles that SUMO draws by chance, as
    many are drawn, not the same ones.

    Parameters
    ----------
    scenario, city, streams, stopwatch
        As for the run's own engine.
    end_s
        When the run ends: of its last tick, that is the last departure that either engine counts.

    Raises
    ------
    ScenarioError
        If SUMO's files cannot be used, or none of the vehicles can be driven over these roads.
    """
    section = scenario.traffic
    if section.engine != "sumo" or section.beside is None:
        return None
    clock = Clock(section.step_s)
    try:
        inputs = sumo_inputs(scenario, streams=streams)
        with stopwatch.phase("demand"):
            demand = read_sumo_routes(
                sumo_insertions(scenario, inputs, end_s=end_s).files,
                city.roads,
                clock=clock,
                begin_s=inputs.begin_s,
                duration_s=last_departure_s(clock, end_s),
                share=inputs.scale,
                rng=streams.of("beside"),
            )
    except TrafficError as error:
        raise ScenarioError(scenario.name, _faults(scenario, error, streams=streams)) from error
    physics = LinkPhysics.build(city.roads.links, clock)
    fleet = Fleet(city.roads.links, physics, demand.trips, demand.routes, clock=clock)
    with stopwatch.phase("compile"):
        fleet.compile()
    return Beside(section.beside, fleet, demand.notes)


def _faults(scenario: Scenario, error: TrafficError, *, streams: Streams) -> list[Fault]:
    """Blame this engine for vehicles that SUMO can drive and it cannot, and SUMO's files for all else."""
    if any("can be driven on these roads" in fault for fault in error.faults):
        named = {edge for fault in error.faults for edge in _EDGE.findall(fault)}
        elements = elements_of(sumo_inputs(scenario, streams=streams).net, error=TrafficError)
        if named <= {element.attributes["id"] for element in elements if element.name == "edge" and element.attributes}:
            return [Fault("traffic.beside", fault) for fault in error.faults]
    return sumo_faults(scenario, error.faults, otherwise="traffic.beside")
