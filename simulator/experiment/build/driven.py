"""Vehicles that this simulator drives itself: demand, routes and the engine."""

from typing import Any

from scenarios import Fault, ScenarioError
from scenarios.driven_traffic import REROUTE_EVERY_S, REROUTE_SHARE
from simulator.experiment.build.demand import plan_traffic
from simulator.roads import RoadNetwork
from simulator.stopwatch import Stopwatch
from simulator.streams import Streams
from simulator.traffic.agents import Agents
from simulator.traffic.clock import Clock
from simulator.traffic.engine import Engine
from simulator.traffic.fleet import Fleet
from simulator.traffic.paths import NoPathError, ShortestPaths
from simulator.traffic.physics import LinkPhysics
from simulator.traffic.reactive import ReactiveRouting
from simulator.traffic.routes import Routes
from simulator.traffic.trips import Trips


def build_driven(scenario: Any, roads: RoadNetwork, *, streams: Streams, stopwatch: Stopwatch) -> Engine:
    """Plan trips and routes, and put them into the engine the scenario names.

    Raises
    ------
    ScenarioError
        If no path leads between two places that a trip joins.
    TrafficError
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
        If no path leads between two places that a trip joins.
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
