"""Builds the demand of a scenario: origins, destinations and departures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import scenarios
from scenarios import Fault, Scenario, ScenarioError
from simulator.experiment.attack_evaluation import check_corrupted
from simulator.experiment.memory import check_memory
from simulator.experiment.study_area import City
from simulator.roads import RoadNetwork
from simulator.streams import Streams
from simulator.traffic.clock import Clock
from simulator.traffic.demand import (
    Demand,
    Departures,
    Interval,
    SamplingOptions,
    ZoneMasses,
    draw_table_trips,
    draw_trips,
    gravity_table,
    is_sumo_routes,
    read_profile,
    read_sumo_routes,
    read_trip_table,
    within_run,
)
from simulator.traffic.errors import TrafficError
from simulator.traffic.paths import ShortestPaths


def plan_traffic(scenario: Any, roads: RoadNetwork, paths: ShortestPaths, *, clock: Clock, streams: Streams) -> Demand:
    """Draw or read the trips of a scenario.

    Raises
    ------
    TrafficError
        If a file cannot be used.
    """
    section, duration_s, rng = scenario.traffic, scenario.scenario.duration_s, streams.of("demand")
    if section.demand == "trips":
        files = [scenarios.locate(file) for file in _listed(section.trips)]
        routes = [is_sumo_routes(file) for file in files]
        if all(routes):
            return _sumo(section, files, roads, paths, clock=clock, duration_s=duration_s, streams=streams)
        if len(files) > 1:
            rule = "several files of trips go together only if all are SUMO routes"
            raise TrafficError([f"{rule}, got {', '.join(file.name for file in files)}"])
        table = read_trip_table(files[0], columns=section.trip_columns.mapping())
    elif section.zones is not None:
        masses = ZoneMasses.read(scenarios.locate(section.zones))
        scale_s, constraint = section.gravity_scale_s, section.gravity_constraint
        table = gravity_table(masses, roads, paths, scale_s=scale_s, constraint=constraint)
    else:
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
    return draw_table_trips(table, roads, paths, _taking(section, duration_s), clock=clock, rng=rng)


def check_demand(scenario: Scenario, city: City, *, streams: Streams) -> Demand | None:
    """Return the demand of a scenario if it is read from files, and check it; None for any other demand.

    Raises
    ------
    ScenarioError
        If a file cannot be used, or yields fewer vehicles than a coalition corrupts.
    """
    section: Any = scenario.traffic
    if section.engine not in {"fleet", "agents"} or not (section.trips or section.zones or section.profile):
        return None
    roads, clock = city.roads, Clock(section.step_s)
    paths = ShortestPaths(roads.links, through=roads.through)
    try:
        planned = plan_traffic(scenario, roads, paths, clock=clock, streams=streams)
    except TrafficError as error:
        raise ScenarioError(scenario.name, [Fault("traffic", fault) for fault in error.faults]) from error
    check_memory(scenario, city, vehicles=len(planned.trips))
    check_corrupted(scenario, vehicles=len(planned.trips))
    return planned


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
            raise TrafficError([f"{path}: no trip departs within the run, seconds {section.begin_s:g} to {until_s:g}"])
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


def _sumo(
    section: Any,
    files: Sequence[Path],
    roads: RoadNetwork,
    paths: ShortestPaths,
    *,
    clock: Clock,
    duration_s: float,
    streams: Streams,
) -> Demand:
    read = read_sumo_routes(
        files,
        roads,
        clock=clock,
        duration_s=duration_s,
        begin_s=section.begin_s,
        share=section.share,
        vehicles=section.vehicles,
        paths=paths,
        rng=streams.of("demand"),
    )
    return Demand(read.trips, read.routes, tuple(read.notes))
