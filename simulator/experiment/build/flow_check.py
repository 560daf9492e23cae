"""What a run of a TNTP scenario is held against: the published flows it names."""

from typing import Any

import numpy as np

import scenarios
from scenarios import Fault, ScenarioError
from scenarios.units import in_seconds
from simulator.experiment.flow_check import FlowCheck
from simulator.files.counted import counted
from simulator.roads import RoadNetwork, RoadsError
from simulator.roads.tntp import read_flows
from simulator.traffic.assignment import Bpr, OdPairs, PublishedFlows
from simulator.traffic.demand import is_sumo_routes, read_trip_table
from simulator.traffic.demand.zones import Zones
from simulator.traffic.errors import TrafficError
from simulator.traffic.paths import ShortestPaths


def build_flow_check(scenario: Any, roads: RoadNetwork | None) -> tuple[FlowCheck | None, list[str]]:
    """Read the flows that `roads.flows` names, and the trips they are of.

    Returns
    -------
    check : FlowCheck or None
        None where the scenario names no flows, or drives other trips than a table's.
    notes : list of str
        Why flows that are named are not used.

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
    except RoadsError as error:
        raise ScenarioError(scenario.name, [Fault("roads", fault) for fault in error.faults]) from error
    try:
        pairs, lost = _pairs(trips, section.trip_columns.mapping(), roads)
    except TrafficError as error:
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
    """Return the trips of the file between nodes, and how many more there are that no path allows."""
    table = read_trip_table(scenarios.locate(trips), columns=columns)
    zones = Zones.named_by(table.places, roads)
    if not zones.of_one_node:
        raise TrafficError([f"{table.file}: roads.flows wants zones of one node each"])
    number = zones.find(table.places)
    origin, destination = number[table.origin], number[table.destination]
    there = (origin >= 0) & (destination >= 0)
    pairs = OdPairs.summed(zones.nodes[origin[there]], zones.nodes[destination[there]], table.trips[there])
    joined = ShortestPaths(roads.links, through=roads.through).reached(pairs.origin, pairs.destination)
    lost = float(table.trips[~there].sum()) + float(pairs.trips[~joined].sum())
    if not joined.any():
        raise TrafficError([f"{table.file}: none of its trips can be driven on these roads"])
    return OdPairs(pairs.origin[joined], pairs.destination[joined], pairs.trips[joined]), float(np.round(lost, 6))
