"""A second engine that drives the same vehicles, to hold its traffic against the first one's."""

from typing import NamedTuple

from scenarios import Fault, Scenario, ScenarioError
from simulator.experiment.build.sumo_traffic import closing_s, sumo_inputs, sumo_insertions
from simulator.experiment.city import City
from simulator.stopwatch import Stopwatch
from simulator.streams import Streams
from simulator.traffic.clock import Clock
from simulator.traffic.demand import read_sumo_routes
from simulator.traffic.engine import Engine
from simulator.traffic.errors import TrafficError
from simulator.traffic.fleet import Fleet
from simulator.traffic.physics import LinkPhysics


class Beside(NamedTuple):
    """An engine that drives after the run's own, its name, and what to know of its vehicles."""

    name: str
    engine: Engine
    notes: list[str]


def build_beside(scenario: Scenario, city: City, *, streams: Streams, stopwatch: Stopwatch) -> Beside | None:
    """Make the engine that a scenario wants beside its own, with the same vehicles; None where it wants none.

    Departures and routes are those of SUMO's files, over the same roads; of vehicles that SUMO draws by chance, as
    many are drawn, not the same ones.

    Raises
    ------
    ScenarioError
        If none of the vehicles can be driven over these roads.
    """
    section = scenario.traffic
    if section.engine != "sumo" or section.beside is None:
        return None
    clock = Clock(section.step_s)
    try:
        inputs = sumo_inputs(scenario, streams=streams)
        with stopwatch.phase("demand"):
            demand = read_sumo_routes(
                sumo_insertions(scenario, inputs).files,
                city.roads,
                clock=clock,
                begin_s=inputs.begin_s,
                duration_s=closing_s(scenario) + section.step_s,  # who departs at the very end has departed
                share=inputs.scale,
                rng=streams.of("beside"),
            )
    except TrafficError as error:
        raise ScenarioError(scenario.name, [Fault("traffic.beside", fault) for fault in error.faults]) from error
    physics = LinkPhysics.build(city.roads.links, clock)
    fleet = Fleet(city.roads.links, physics, demand.trips, demand.routes, clock=clock)
    with stopwatch.phase("compile"):
        fleet.compile()
    return Beside(section.beside, fleet, demand.notes)
