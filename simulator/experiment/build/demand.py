"""Builds the demand of a scenario, origins, destinations and departures, and the published flows to compare with."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import scenarios
from scenarios import Fault, Scenario, ScenarioError
from scenarios.attacks import corrupted_in, parties_of
from scenarios.kinds import is_capable
from scenarios.units import in_seconds
from simulator.experiment.build.constructors import constructor_of
from simulator.experiment.flow_check import FlowCheck
from simulator.experiment.memory import check_memory
from simulator.experiment.study_area import City
from simulator.files.errors import InputError
from simulator.files.messages import counted
from simulator.roads import RoadNetwork
from simulator.roads.readers.tntp_files import read_flows
from simulator.streams import Streams
from simulator.traffic.assignment import Bpr, OdPairs, PublishedFlows
from simulator.traffic.clock import Clock
from simulator.traffic.demand.sumo_routes import read_sumo_routes
from simulator.traffic.demand.synthetic import Demand, Departures, Interval, draw_trips, read_profile, within_run
from simulator.traffic.demand.trip_files import is_sumo_routes, read_trip_table
from simulator.traffic.demand.trip_sampling import SamplingOptions, draw_table_trips
from simulator.traffic.demand.trip_table import Zones
from simulator.traffic.demand.zone_gravity import ZoneMasses, gravity_table
from simulator.traffic.paths import ShortestPaths


def plan_traffic(scenario: Any, roads: RoadNetwork, paths: ShortestPaths, *, clock: Clock, streams: Streams) -> Demand:
    """Draw or read the trips of a scenario.

    Raises
    ------
    InputError
        If a file cannot be used.
    """
    section = scenario.traffic
    plan = constructor_of("demand", section.demand)
    demand: Demand = plan(
        section, roads, paths, clock=clock, duration_s=scenario.scenario.duration_s, rng=streams.of("demand")
    )
    return demand


def draw_demand(
    section: Any,
    roads: RoadNetwork,
    paths: ShortestPaths,
    *,
    clock: Clock,
    duration_s: float,
    rng: np.random.Generator,
) -> Demand:
    """Draw trips between nodes, or between the zones of a table."""
    if section.zones is not None:
        masses = ZoneMasses.read(scenarios.locate(section.zones))
        scale_s, constraint = section.gravity_scale_s, section.gravity_constraint
        table = gravity_table(masses, roads, paths, scale_s=scale_s, constraint=constraint)
        return draw_table_trips(table, roads, paths, _taking(section, duration_s), clock=clock, rng=rng)
    departures, _ = _departures(section, duration_s)
    return Demand(
        draw_trips(
            section.vehicles,
            links=roads.links,
            paths=paths,
            demand=section.demand,
            gravity_scale_s=section.gravity_scale_s,
            departures=departures,
            duration_s=duration_s,
            clock=clock,
            rng=rng,
        )
    )


def read_demand(
    section: Any,
    roads: RoadNetwork,
    paths: ShortestPaths,
    *,
    clock: Clock,
    duration_s: float,
    rng: np.random.Generator,
) -> Demand:
    """Read trips or routes from files."""
    files = [scenarios.locate(file) for file in _listed(section.trips)]
    if all(is_sumo_routes(file) for file in files):
        read = read_sumo_routes(
            files,
            roads,
            clock=clock,
            duration_s=duration_s,
            begin_s=section.begin_s,
            share=section.share,
            vehicles=section.vehicles,
            paths=paths,
            rng=rng,
        )
        return Demand(read.trips, read.routes, tuple(read.notes))
    if len(files) > 1:
        rule = "several files of trips can be combined only if all are SUMO routes"
        raise InputError([f"{rule}, got {', '.join(file.name for file in files)}"])
    table = read_trip_table(files[0], columns=section.trip_columns.mapping())
    return draw_table_trips(table, roads, paths, _taking(section, duration_s), clock=clock, rng=rng)


def check_demand(scenario: Scenario, city: City, *, streams: Streams) -> Demand | None:
    """Return the demand of a scenario if it is read from files, and check it; None for any other demand.

    Raises
    ------
    ScenarioError
        If a file cannot be used, or yields fewer vehicles than a coalition corrupts.
    """
    section: Any = scenario.traffic
    routed = is_capable("engine", section.engine, "routed")
    if not routed or not (section.trips or section.zones or section.profile):
        return None
    roads, clock = city.roads, Clock(section.step_s)
    paths = ShortestPaths(roads.links, through=roads.through)
    try:
        planned = plan_traffic(scenario, roads, paths, clock=clock, streams=streams)
    except InputError as error:
        raise ScenarioError(scenario.name, [Fault("traffic", fault) for fault in error.faults]) from error
    check_memory(scenario, city, vehicles=len(planned.trips))
    check_corrupted(scenario, vehicles=len(planned.trips))
    return planned


def check_corrupted(scenario: Scenario, *, vehicles: int) -> None:
    """Raise an error for coalitions that corrupt more vehicles than there are.

    The schema cannot check this, as it does not know the number of trips in a file.

    Raises
    ------
    ScenarioError
        If there is such a coalition; the message states the number of vehicles.
    """
    faults = [
        Fault(
            f"attacks.{attack.name}.coalition",
            f"there are only {vehicles:,} vehicles",
            list(parties_of(attack.coalition)),
        )
        for attack in scenario.attacks
        if corrupted_in(attack.coalition) > vehicles
    ]
    if faults:
        raise ScenarioError(scenario.name, faults)


def _listed(trips: str | Sequence[str]) -> Sequence[str]:
    return [trips] if isinstance(trips, str) else trips


def _departures(section: Any, duration_s: float) -> tuple[Departures, float]:
    """Return the departures of trips, and the share of trips that depart within the run."""
    if section.departures == "profile":
        path = scenarios.locate(section.profile)
        windows = within_run(read_profile(path), begin_s=section.begin_s, duration_s=duration_s)
        inside = sum(window.share for window in windows)
        if inside <= 0:
            until_s = section.begin_s + duration_s
            raise InputError([f"{path}: no trip departs within the run, seconds {section.begin_s:g} to {until_s:g}"])
        return windows, inside
    departures: Departures = section.departures
    if not isinstance(departures, str):
        departures = [Interval(window.from_s, window.to_s, window.share) for window in section.departures]
    return departures, 1.0


def _taking(section: Any, duration_s: float) -> SamplingOptions:
    departures, inside = _departures(section, duration_s)
    return SamplingOptions(
        duration_s=duration_s,
        begin_s=section.begin_s,
        share=section.share,
        vehicles=section.vehicles,
        departures=departures,
        inside=inside,
        undrivable=section.undrivable,
    )


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
        return None, ["roads.flows: not used: published flows can be compared only with a run of their own trips"]
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
        notes.append(f"{flows_of} that the network does not contain")
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
        raise InputError([f"{table.file}: roads.flows needs zones of one node each"])
    number = zones.find(table.places)
    origin, destination = number[table.origin], number[table.destination]
    inside = (origin >= 0) & (destination >= 0)
    pairs = OdPairs.summed(zones.nodes[origin[inside]], zones.nodes[destination[inside]], table.trips[inside])
    joined = ShortestPaths(roads.links, through=roads.through).reached(pairs.origin, pairs.destination)
    lost = float(table.trips[~inside].sum()) + float(pairs.trips[~joined].sum())
    if not joined.any():
        raise InputError([f"{table.file}: none of its trips can be driven on these roads"])
    return OdPairs(pairs.origin[joined], pairs.destination[joined], pairs.trips[joined]), float(np.round(lost, 6))
