"""Builds the references for a run's traffic: a second engine on the same vehicles, or published link flows."""

import re
from typing import Any, NamedTuple

import numpy as np

import scenarios
from scenarios import Fault, Scenario, ScenarioError
from scenarios.units import in_seconds
from simulator.experiment.build.sumo_traffic import last_departure_s, sumo_faults, sumo_inputs, sumo_insertions
from simulator.experiment.flow_check import FlowCheck
from simulator.experiment.study_area import City
from simulator.files.errors import InputError
from simulator.files.messages import counted
from simulator.files.xml_elements import elements_of
from simulator.roads import RoadNetwork
from simulator.roads.tntp import read_flows
from simulator.stopwatch import Stopwatch
from simulator.streams import Streams
from simulator.traffic.assignment import Bpr, OdPairs, PublishedFlows
from simulator.traffic.clock import Clock
from simulator.traffic.demand import is_sumo_routes, read_sumo_routes, read_trip_table
from simulator.traffic.demand.trip_table import Zones
from simulator.traffic.engine import Engine
from simulator.traffic.fleet import Fleet
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.physics import LinkPhysics

_EDGE = re.compile(r"edge '([^']+)'")


class Beside(NamedTuple):
    """An engine that runs after the run's own for comparison, its name, and notes on its vehicles."""

    name: str
    engine: Engine
    notes: list[str]


def build_beside(
    scenario: Scenario, city: City, *, end_s: float, streams: Streams, stopwatch: Stopwatch
) -> Beside | None:
    """Build the engine that a scenario compares with its own, with the same vehicles; None if it requests none.

    Departures and routes are those of SUMO's files, over the same roads. Of the vehicles that SUMO draws at random, the
    same number is drawn, but not the same vehicles.

    Parameters
    ----------
    scenario, city, streams, stopwatch
        As for the run's own engine.
    end_s
        End of the run, seconds; both engines count departures up to its last tick.

    Raises
    ------
    ScenarioError
        If SUMO's files cannot be used, or none of the vehicles can drive on these roads.
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
    except InputError as error:
        raise ScenarioError(scenario.name, _faults(scenario, error, streams=streams)) from error
    physics = LinkPhysics.build(city.roads.links, clock)
    fleet = Fleet(city.roads.links, physics, demand.trips, demand.routes, clock=clock)
    with stopwatch.phase("compile"):
        fleet.compile()
    return Beside(section.beside, fleet, demand.notes)


def _faults(scenario: Scenario, error: InputError, *, streams: Streams) -> list[Fault]:
    """Return faults of this engine for vehicles that only SUMO can drive, and of SUMO's files for all other causes."""
    if any("can be driven on these roads" in fault for fault in error.faults):
        named = {edge for fault in error.faults for edge in _EDGE.findall(fault)}
        elements = elements_of(sumo_inputs(scenario, streams=streams).net)
        if named <= {element.attributes["id"] for element in elements if element.name == "edge" and element.attributes}:
            return [Fault("traffic.beside", fault) for fault in error.faults]
    return sumo_faults(scenario, error.faults, otherwise="traffic.beside")


def build_flow_check(scenario: Any, roads: RoadNetwork | None) -> tuple[FlowCheck | None, list[str]]:
    """Read the flows that `roads.flows` names, and the trips that cause them.

    Returns
    -------
    check : FlowCheck or None
        None if the scenario names no flows, or its trips are not those of a table.
    notes : list of str
        The reason if flows that are named are not used.

    Raises
    ------
    ScenarioError
        If a file cannot be used or does not fit the network.
    """
    flows = getattr(scenario.roads, "flows", None)
    if flows is None or roads is None:
        return None, []
    section = scenario.traffic
    trips = section.trips if getattr(section, "demand", None) == "trips" else None
    if isinstance(trips, tuple) and len(trips) == 1:
        trips = trips[0]
    if not isinstance(trips, str) or is_sumo_routes(scenarios.locate(trips)):
        return None, ["roads.flows: not used: published flows can only be held against a run of the trips they are of"]
    try:
        file = scenarios.locate(flows)
        published = PublishedFlows.matched(read_flows(file), roads, file=str(file))
        bpr = Bpr.from_network(roads, hours=scenario.roads.capacity_hours)
    except InputError as error:
        raise ScenarioError(scenario.name, [Fault("roads", fault) for fault in error.faults]) from error
    try:
        pairs, lost = _pairs(trips, section.trip_columns.mapping(), roads)
    except InputError as error:
        raise ScenarioError(scenario.name, [Fault("traffic", fault) for fault in error.faults]) from error
    notes = []
    if published.left_out:
        flows_of = counted(published.left_out, "published flow is of a link", "published flows are of links")
        notes.append(f"{flows_of} that the network was read without")
    if lost > 0:
        notes.append(f"left out of the comparison: {counted(lost, 'trip')} of the file that cannot be driven")
    return (
        FlowCheck(
            file=flows,
            trips_file=trips,
            hours=scenario.roads.capacity_hours,
            time_unit_s=in_seconds(scenario.roads.time_unit),
            roads=roads,
            bpr=bpr,
            pairs=pairs,
            published=published,
            routing=section.routing,
            notes=tuple(notes),
        ),
        [],
    )


def _pairs(trips: str, columns: dict[str, str], roads: RoadNetwork) -> tuple[OdPairs, float]:
    """Return the trips of the file between nodes, and the number of further trips that have no path."""
    table = read_trip_table(scenarios.locate(trips), columns=columns)
    zones = Zones.named_by(table.places, roads)
    if not zones.of_one_node:
        raise InputError([f"{table.file}: roads.flows wants zones of one node each"])
    number = zones.find(table.places)
    origin, destination = number[table.origin], number[table.destination]
    there = (origin >= 0) & (destination >= 0)
    pairs = OdPairs.summed(zones.nodes[origin[there]], zones.nodes[destination[there]], table.trips[there])
    joined = ShortestPaths(roads.links, through=roads.through).reached(pairs.origin, pairs.destination)
    lost = float(table.trips[~there].sum()) + float(pairs.trips[~joined].sum())
    if not joined.any():
        raise InputError([f"{table.file}: none of its trips can be driven on these roads"])
    return OdPairs(pairs.origin[joined], pairs.destination[joined], pairs.trips[joined]), float(np.round(lost, 6))
