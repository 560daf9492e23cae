"""Builds the traffic engine of a scenario with its demand and routes, and the recorder of floating-car data."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

from scenarios import Fault, Scenario, ScenarioError
from scenarios.simulated_traffic import REROUTE_EVERY_S, REROUTE_SHARE
from simulator.experiment.build.demand import plan_traffic
from simulator.experiment.build.recordings import build_static, build_trace
from simulator.experiment.build.sumo_traffic import build_sumo, sumo_faults
from simulator.experiment.study_area import City
from simulator.files.errors import InputError
from simulator.roads import RoadNetwork
from simulator.stopwatch import Stopwatch
from simulator.streams import Streams
from simulator.traffic.agents import Agents
from simulator.traffic.clock import Clock
from simulator.traffic.engine import Engine
from simulator.traffic.fcd import Sampler
from simulator.traffic.fleet import Fleet
from simulator.traffic.paths import NoPathError, ShortestPaths
from simulator.traffic.physics import LinkPhysics
from simulator.traffic.reactive import ReactiveRouting
from simulator.traffic.routes import Routes
from simulator.traffic.trips import Trips


def build_driven(scenario: Any, roads: RoadNetwork, *, streams: Streams, stopwatch: Stopwatch) -> Engine:
    """Build the engine that the scenario names, with trips and routes.

    Raises
    ------
    ScenarioError
        If there is no path between the origin and the destination of a trip.
    InputError
        If the file of trips cannot be used.
    """
    section, links, clock = scenario.traffic, roads.links, Clock(scenario.traffic.step_s)
    paths = ShortestPaths(links, through=roads.through)
    with stopwatch.phase("demand"):
        planned = plan_traffic(scenario, roads, paths, clock=clock, streams=streams)
    trips = planned.trips
    with stopwatch.phase("routing"):
        routes = route_trips(scenario, roads, paths, trips) if planned.routes is None else planned.routes
    physics = LinkPhysics.build(links, clock, stuck_s=section.stuck_s)
    reactive = None
    if section.routing == "reactive":
        reactive = ReactiveRouting(
            links,
            physics,
            trips,
            clock=clock,
            every_s=REROUTE_EVERY_S if section.reroute_every_s is None else section.reroute_every_s,
            share=REROUTE_SHARE if section.reroute_share is None else section.reroute_share,
            through=roads.through,
            at_departure=planned.routes is None,
            rng=streams.of("routing"),
            stopwatch=stopwatch,
        )
    if section.engine == "agents":
        return Agents(links, physics, trips, routes, clock=clock, reactive=reactive, notes=planned.notes)
    fleet = Fleet(links, physics, trips, routes, clock=clock, reactive=reactive, notes=planned.notes)
    with stopwatch.phase("compile"):
        fleet.compile()
    return fleet


def route_trips(scenario: Any, roads: RoadNetwork, paths: ShortestPaths, trips: Trips) -> Routes:
    """Find a route for each trip that has none.

    Raises
    ------
    ScenarioError
        If there is no path between the origin and the destination of a trip.
    """
    try:
        return paths.routes(trips)
    except NoPathError as error:
        origin, destination = (roads.node_names[node] for node in (error.origin, error.destination))
        rule = f"no path leads from node {origin!r} to node {destination!r}"
        if not roads.through.all():
            rule += " without passing through a node that is closed to through traffic"
        if getattr(scenario.roads, "keep", None) == "all":
            rule += '; keep = "strong" keeps only the part in which every node can be reached from every other'
        raise ScenarioError(scenario.name, [Fault("roads", rule)]) from error


class _Builder(Protocol):
    """Function that builds one kind of engine; its time is measured by the stopwatch's phases."""

    def __call__(self, scenario: Scenario, city: City, *, streams: Streams, stopwatch: Stopwatch) -> Engine: ...


def build_engine(
    scenario: Scenario, city: City, *, streams: Streams, stopwatch: Stopwatch, end_s: float | None = None
) -> Engine:
    """Build the traffic engine; `end_s` is the end of the run, used for SUMO, whose departures are counted in files.

    Raises
    ------
    ScenarioError
        If the traffic cannot be built: there is no path for a trip, or a file does not fit.
    """
    sumo = scenario.traffic.engine == "sumo"
    build = partial(build_sumo, end_s=end_s) if sumo else _ENGINES[scenario.traffic.engine]
    try:
        return build(scenario, city, streams=streams, stopwatch=stopwatch)
    except InputError as error:
        raise ScenarioError(scenario.name, traffic_faults(scenario, error)) from error


def traffic_faults(scenario: Scenario, error: InputError) -> list[Fault]:
    """Assign the faults of an engine, or of its input, to the keys of the scenario that cause them."""
    if scenario.traffic.engine == "sumo":
        return sumo_faults(scenario, error.faults)
    return [Fault("traffic", fault) for fault in error.faults]


def _driven(scenario: Scenario, city: City, *, streams: Streams, stopwatch: Stopwatch) -> Engine:
    return build_driven(scenario, city.roads, streams=streams, stopwatch=stopwatch)


_ENGINES: Mapping[str, _Builder] = {
    "fleet": _driven,
    "agents": _driven,
    "static": build_static,
    "trace": build_trace,
}


def build_sampler(scenario: Scenario, city: City, engine: Engine) -> Sampler | None:
    """Build the recorder of floating-car data; None if the scenario requests no such data."""
    section = scenario.fcd
    if section is None:
        return None
    return Sampler(
        engine,
        clock=Clock(scenario.traffic.step_s),
        every_s=section.every_s,
        from_s=section.from_s,
        to_s=scenario.scenario.duration_s if section.to_s is None else section.to_s,
        crs=city.ground.crs,
        roads=city.ground.roads,
        parked=scenario.traffic.parked == "answer",
    )
