"""Builds the demand of a scenario, origins, destinations and departures, and the published flows to compare with."""

import math
import re
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

import numpy as np

import scenarios
from scenarios import Fault, Scenario, ScenarioError
from scenarios.attacks import corrupted_in, parties_of
from scenarios.kinds import is_capable
from scenarios.run_clock import RunClock
from simulator.cells.zones import Zones
from simulator.experiment.assembly.own_kinds import faults_of_files, same_keys, text_format
from simulator.experiment.assembly.sumo_traffic import sumo_source
from simulator.experiment.memory_estimate import check_memory
from simulator.experiment.study_area import City
from simulator.files.errors import InputError
from simulator.formats.tables.omx import read_omx
from simulator.formats.tables.trip_points import TripPlaces
from simulator.formats.tables.trips import departures_of
from simulator.formats.trip_files import TABLES, is_sumo_routes, read_trip_table
from simulator.roads import RoadNetwork
from simulator.streams import Streams
from simulator.sumo.routes import read_sumo_routes
from simulator.traffic.clock import DAY_S, Clock
from simulator.traffic.demand.synthetic import Demand, Departures, Interval, draw_trips, read_profile, within_run
from simulator.traffic.demand.tours import TourOptions, repeat_tours
from simulator.traffic.demand.trip_sampling import SamplingOptions, draw_table_trips
from simulator.traffic.demand.trip_table import TripTable, TripZones
from simulator.traffic.demand.zone_gravity import ZoneMasses, gravity_table
from simulator.traffic.paths import ShortestPaths


def plan_traffic(scenario: Any, roads: RoadNetwork, paths: ShortestPaths, *, clock: Clock, streams: Streams) -> Demand:
    """Draw or read the trips of a scenario.

    Raises
    ------
    InputError
        If a file cannot be used.
    """
    rng, section = streams.of("demand"), scenario.traffic
    plan = read_demand if section.demand == "trips" else draw_demand
    demand = plan(scenario, roads, paths, clock=clock, rng=rng)
    if section.tours is None:
        return demand
    given = [key for key in ("stops", "stay_s", "stay_sd_s") if key in section.tours.model_fields_set]
    if given and demand.trips.vehicle is not None:
        rule = "must be left out: the trips name their vehicle, and so have stops and stays of their own"
        raise InputError([f"{', '.join(given)} {rule}"], key="traffic.tours")
    if demand.timed and np.ptp(demand.trips.departure_tick) * clock.step_s >= DAY_S:
        rule = "repeats the trips of one day: leave it out, since those of the file depart over more than 24 hours"
        raise InputError([rule], key="traffic.tours")
    duration_s, profiles = scenario.scenario.duration_s, []
    if section.departures == "profile" and not demand.timed:
        windows, days = _profile(scenario), range(math.ceil(duration_s / DAY_S))
        begins = [section.begin_s + day * DAY_S for day in days]
        profiles = [within_run(windows, begin_s=begin_s, duration_s=DAY_S) for begin_s in begins]
    options = TourOptions(duration_s=duration_s, profiles=profiles, **section.tours.model_dump())
    return repeat_tours(demand, options, paths, clock=clock, rng=rng)


def draw_demand(
    scenario: Any, roads: RoadNetwork, paths: ShortestPaths, *, clock: Clock, rng: np.random.Generator
) -> Demand:
    """Draw trips between nodes, or between the zones of a table."""
    section, duration_s = scenario.traffic, _drawn_s(scenario)
    if section.zones is not None:
        masses = ZoneMasses.read(scenarios.locate(section.zones), text=text_format(section))
        scale_s, constraint = section.gravity_scale_s, section.gravity_constraint
        table = gravity_table(masses, roads, paths, scale_s=scale_s, constraint=constraint)
        return draw_table_trips(table, roads, paths, _taking(scenario), clock=clock, rng=rng)
    departures, _ = _departures(scenario)
    trips = draw_trips(
        section.vehicles,
        links=roads.links,
        paths=paths,
        departures=departures,
        duration_s=duration_s,
        clock=clock,
        rng=rng,
        **same_keys(section, "demand", "gravity_scale_s"),
    )
    return Demand(trips)


def read_demand(
    scenario: Any, roads: RoadNetwork, paths: ShortestPaths, *, clock: Clock, rng: np.random.Generator
) -> Demand:
    """Read trips or routes from files."""
    section, duration_s = scenario.traffic, scenario.scenario.duration_s
    files = [scenarios.locate(file) for file in section.trip_files]
    run = {"clock": clock, "duration_s": duration_s, "paths": paths, "rng": rng}
    run |= same_keys(section, "begin_s", "share", "vehicles")
    if all(is_sumo_routes(file) for file in files):
        read = read_sumo_routes(files, roads, **sumo_source(scenario), **run)
        return Demand(read.trips, read.routes, tuple(read.notes), read.classes)
    if len(files) > 1:
        rule = "several files of trips can be combined only if all are SUMO routes"
        raise InputError([f"{rule}, got {', '.join(file.name for file in files)}"])
    table = _trip_table(files[0], scenario, roads)
    return draw_table_trips(table, roads, paths, _taking(scenario), clock=clock, rng=rng)


def _trip_table(file: Path, scenario: Any, roads: RoadNetwork) -> TripTable:
    section, clock, zones, midnight_s = scenario.traffic, scenario.clock, None, None
    if clock.dated:
        midnight_s = clock.epoch_s - float(clock.start.hour * 3600 + clock.start.minute * 60 + clock.start.second)
    if section.trip_zones is not None:
        path = scenarios.locate(section.trip_zones.file)
        with faults_of_files(scenario, "traffic.trip_zones"):
            drawn, _ = Zones.read(path, **same_keys(section.trip_zones, "name", "layer"), crs=roads.crs)
        # A second polygon of a name is called NAME #2: here, it belongs to the same zone.
        base = [re.sub(r" #\d+$", "", name) for name in drawn.names]
        names = [short if short in drawn.names else name for short, name in zip(base, drawn.names, strict=True)]
        zones = TripZones.of_nodes([None, *names][cell] for cell in drawn.cell_of(roads.node_xy).tolist())
    if file.name.lower().endswith(".omx"):
        return replace(read_omx(file, **same_keys(section, "matrix", "mapping")), zones=zones)
    time_zone = None if clock.zone is None else str(clock.zone)
    places = TripPlaces(roads, section.snap_m, section.trips_crs, zones, time_zone, midnight_s)
    named = section.trip_columns
    columns, ignored = named.mapping(), named.ignored or ()
    return read_trip_table(file, columns=columns, ignored=ignored, text=text_format(section), places=places)


def clock_of_trips(scenario: Any, zone: tzinfo | None) -> RunClock | None:
    """Return the clock of a run whose table of trips has dates; None if it has none, or cannot be read.

    Second 0 is `begin_s` after the midnight before the first departure, without a zone if times and scenario name none.
    """
    files: tuple[str, ...] = getattr(scenario.traffic, "trip_files", ())
    if len(files) != 1 or not str(files[0]).lower().endswith(TABLES):
        return None
    section, time_zone = scenario.traffic, None if zone is None else str(zone)
    try:
        file = scenarios.locate(files[0], "file")
        times = departures_of(file, section.trip_columns.mapping(), text_format(section), time_zone)
        if times is None or not times.calendar or np.isnan(times.seconds).all():
            return None
        first = datetime.fromtimestamp(float(np.nanmin(times.seconds)), zone or UTC)
    except (InputError, OSError, ValueError, OverflowError):  # the reader of the trips reports it
        return None
    midnight_s = first.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
    clock = RunClock(zone=zone).recorded(midnight_s + section.begin_s)
    return RunClock(clock.at(0.0).replace(tzinfo=None), dated=True) if times.naive else clock


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
    paths = ShortestPaths.of(roads)
    with faults_of_files(scenario, "traffic"):
        planned = plan_traffic(scenario, roads, paths, clock=clock, streams=streams)
    check_memory(scenario, city, vehicles=planned.trips.vehicles)
    check_corrupted(scenario, vehicles=planned.trips.vehicles)
    return planned


def check_corrupted(scenario: Scenario, *, vehicles: int) -> None:
    """Raise an error for coalitions that corrupt more vehicles than there are.

    The schema cannot check this, as it does not know the number of trips in a file.

    Raises
    ------
    ScenarioError
        If there is such a coalition; the message states the number of vehicles.
    """
    words = f"there are only {vehicles:,} vehicles"
    above = [attack for attack in scenario.attacks if corrupted_in(attack.coalition) > vehicles]
    faults = [Fault(f"attacks.{one.name}.coalition", words, list(parties_of(one.coalition))) for one in above]
    if faults:
        raise ScenarioError(scenario.name, faults)


def _drawn_s(scenario: Any) -> float:
    """Return the seconds from the start in which departures are drawn: all of the run, or of tours the first day."""
    duration_s: float = scenario.scenario.duration_s
    return duration_s if scenario.traffic.tours is None else min(duration_s, DAY_S)


def _profile(scenario: Any) -> tuple[Interval, ...]:
    """Return the profile on the days of the run; without days of the week it is repeated only for tours."""
    section, clock = scenario.traffic, scenario.clock
    days = math.ceil((section.begin_s + scenario.scenario.duration_s) / DAY_S)
    weekdays = [(clock.start.weekday() + day) % 7 if clock.dated else None for day in range(days)]
    path = scenarios.locate(section.profile)
    return read_profile(path, text=text_format(section), days=weekdays, repeat=section.tours is not None)


def _departures(scenario: Any) -> tuple[Departures, float]:
    """Return the departures of trips, and the share of trips that depart within the run."""
    section, duration_s = scenario.traffic, scenario.scenario.duration_s
    if section.departures == "profile" and section.tours is not None:
        return "uniform", 1.0  # which sets the order of the vehicles; their times follow by day
    if section.departures == "profile":
        path = scenarios.locate(section.profile)
        windows = within_run(_profile(scenario), begin_s=section.begin_s, duration_s=duration_s)
        inside = sum(window.share for window in windows)
        if inside <= 0:
            until_s = section.begin_s + duration_s
            raise InputError([f"{path}: no trip departs within the run, seconds {section.begin_s:g} to {until_s:g}"])
        return windows, inside
    departures: Departures = section.departures
    if not isinstance(departures, str):
        departures = [Interval(window.from_s, window.to_s, window.share) for window in section.departures]
    return departures, 1.0


def _taking(scenario: Any) -> SamplingOptions:
    departures, inside = _departures(scenario)
    return SamplingOptions(
        duration_s=scenario.scenario.duration_s,
        drawn_s=_drawn_s(scenario),
        departures=departures,
        inside=inside,
        **same_keys(scenario.traffic, "begin_s", "share", "vehicles", "undrivable"),
    )
