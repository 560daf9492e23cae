"""Builds the traffic engine of a scenario, with its lanes and signals, the one beside it, and recorders of vehicles."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

import scenarios
from scenarios import Fault, Scenario, ScenarioError
from scenarios.field_types import SECONDS, size_of
from scenarios.recorded_traffic import MATCH_M, NOISE_M, EntriesTraffic, StaticTraffic, TraceTraffic
from scenarios.roads import MatsimRoads, OsmRoads, SumoRoads
from scenarios.simulated_traffic import REROUTE_EVERY_S, REROUTE_SHARE, DrivenTraffic, SumoTraffic, TrafficSection
from simulator.experiment.assembly.demand import plan_traffic
from simulator.experiment.assembly.own_kinds import file_format, same_keys, text_format
from simulator.experiment.assembly.sumo_traffic import (
    build_sumo,
    last_departure_s,
    net_frame,
    sumo_faults,
    sumo_inputs,
    sumo_insertions,
    sumo_source,
)
from simulator.experiment.build_cache import cached_trips
from simulator.experiment.study_area import City
from simulator.files.errors import InputError
from simulator.files.messages import Note, notes_of
from simulator.files.resources import Stopwatch
from simulator.files.xml_elements import elements_of
from simulator.formats.recordings import owners, recordings
from simulator.formats.sumo.courses import NotDrivableError
from simulator.roads import RoadNetwork
from simulator.roads.junctions import complete_junctions
from simulator.streams import Streams
from simulator.sumo.routes import read_sumo_routes
from simulator.traffic.agents import Agents
from simulator.traffic.clock import Clock
from simulator.traffic.demand.synthetic import Demand
from simulator.traffic.engine import Engine, State
from simulator.traffic.entries import EntryReplay
from simulator.traffic.fcd import Sampler
from simulator.traffic.fleet import Fleet
from simulator.traffic.lanes import LinkPhysics
from simulator.traffic.motion import logged_every, moments_every_s, sampled_every
from simulator.traffic.paths import NoPathError, ShortestPaths
from simulator.traffic.physics import MOST_TICKS, SUMO_DRIVING, Driving
from simulator.traffic.queue_engine import QueueEngine
from simulator.traffic.reactive import ReactiveRouting
from simulator.traffic.recording import Recording, Replay
from simulator.traffic.routes import Routes
from simulator.traffic.trips import Trips, VehicleClasses


def build_physics(
    scenario: Scenario,
    roads: RoadNetwork,
    clock: Clock,
    *,
    stuck_s: float | None = None,
    spacing_m: float | None = None,
    classes: VehicleClasses | None = None,
) -> LinkPhysics:
    """Build the lanes, movements and signals of a network for the engines that drive vehicles.

    Junctions are completed by default where the source states movements, and on OpenStreetMap's roads. There the
    capacities by class of road, which are below saturation flow because of junctions, are not used: junctions hold
    vehicles themselves, and so they do on SUMO's networks, which state no capacities. On other networks the capacity
    of a link is its file's spacing. On networks of links alone only full links hold vehicles. A vehicle with the gap
    before it takes `spacing_m`, by default the mean of `classes`, or else a car's spacing.
    """
    notes: list[Note] = []
    spacing_m = spacing_m or (classes.spacing_m if classes else None)
    movements = signals = None
    if len(roads.movements) or isinstance(scenario.roads, OsmRoads):
        movements, signals, notes = complete_junctions(roads)
    section: Any = scenario.traffic
    driving = Driving()
    if isinstance(scenario.roads, SumoRoads):
        driving = SUMO_DRIVING
    elif isinstance(scenario.roads, OsmRoads):
        driving = Driving(reaction_s=SUMO_DRIVING.reaction_s)
    driving = replace(driving, across="right" if roads.side.left else "left")
    return LinkPhysics.build(
        roads.links,
        clock,
        stuck_s=stuck_s,
        movements=movements,
        signals=signals,
        driving=replace(driving, spacing_m=spacing_m) if spacing_m else driving,
        classes=classes,
        start_s=section.begin_s if isinstance(section, DrivenTraffic) and section.trip_files else 0.0,
        notes=notes,
    )


def build_simulated(
    scenario: Any, city: City, *, streams: Streams, stopwatch: Stopwatch, motion: bool, end_s: float, **_: object
) -> Engine:
    """Build an engine that simulates vehicles, in arrays or as one process each, with its trips and routes.

    Raises
    ------
    ScenarioError
        If there is no path between the origin and the destination of a trip, or the run has too many ticks.
    InputError
        If the file of trips cannot be used.
    """
    roads = city.roads
    section, links, clock = scenario.traffic, roads.links, Clock(scenario.traffic.step_s)
    if clock.ticks(end_s) > MOST_TICKS:
        rule = f"must be at least {end_s / MOST_TICKS:.6g}: a run of {end_s:g} s may have at most {MOST_TICKS:,} ticks"
        raise ScenarioError(scenario.name, [Fault("traffic.step_s", rule, section.step_s)])

    def plan() -> tuple[Demand, Routes]:
        paths = ShortestPaths.of(roads)
        with stopwatch.phase("demand"):
            planned = plan_traffic(scenario, roads, paths, clock=clock, streams=streams)
        with stopwatch.phase("routing"):
            found = planned.routes
            return planned, route_trips(scenario, roads, paths, planned.trips) if found is None else found

    planned, routes = cached_trips(scenario, plan)
    trips = planned.trips
    physics = build_physics(
        scenario, roads, clock, stuck_s=section.stuck_s, spacing_m=section.spacing_m, classes=planned.classes
    )
    reactive = None
    if section.routing == "reactive":
        reactive = ReactiveRouting(
            links,
            trips,
            clock=clock,
            every_s=REROUTE_EVERY_S if section.reroute_every_s is None else section.reroute_every_s,
            share=REROUTE_SHARE if section.reroute_share is None else section.reroute_share,
            through=roads.through,
            banned=roads.banned_to(planned.classes.names if planned.classes else ()),
            at_departure=planned.routes is None,
            rng=streams.of("routing"),
            stopwatch=stopwatch,
        )
    class_: type[Agents | Fleet] = Agents if section.engine == "agents" else Fleet
    every = (1 if scenario.logs_links else logged_every(routes)) if motion else 0
    engine = class_(
        links, physics, trips, routes, clock=clock, reactive=reactive, notes=planned.notes, record_entries=every
    )
    engine.classes = planned.classes
    if isinstance(engine, Fleet):
        with stopwatch.phase("compile"):
            engine.compile()
    return engine


def route_trips(scenario: Any, roads: RoadNetwork, paths: ShortestPaths, trips: Trips) -> Routes:
    """Find a route for each trip that has none.

    Raises
    ------
    ScenarioError
        If there is no path between the origin and the destination of a trip.
    """
    try:
        return paths.routes(trips.origin, trips.destination)
    except NoPathError as error:
        origin, destination = (roads.node_names[node] for node in (error.origin, error.destination))
        rule = f"no path leads from node {origin!r} to node {destination!r}"
        if len(roads.banned_turns):
            rule += " by the turns that are allowed"
        if not roads.through.all():
            rule += " without passing through a node that is closed to through traffic"
        if getattr(scenario.roads, "keep", None) == "all":
            rule += '; keep = "strong" keeps only the part in which every node can be reached from every other'
        raise ScenarioError(scenario.name, [Fault("roads", rule)]) from error


def traffic_faults(scenario: Scenario, error: InputError) -> list[Fault]:
    """Assign the faults of an engine, or of its input, to the keys of the scenario that cause them."""
    # Faults without a key may lie in the files of SUMO's configuration.
    if isinstance(scenario.traffic, SumoTraffic) and not error.key:
        return sumo_faults(scenario, error)
    return [Fault(error.key or "traffic", fault) for fault in error.faults]


def read_recorded(scenario: Scenario, roads: RoadNetwork | None) -> Recording | None:
    """Read the recording that a scenario's traffic replays, in the coordinates of the city.

    Returns
    -------
    Recording or None
        None if the engine simulates traffic.

    Raises
    ------
    InputError
        If the file cannot be read as the section specifies, no part of it is within the run, or it does not overlap
        the roads.
    """
    section = scenario.traffic
    time_zone = getattr(section, "time_zone", None) or scenario.scenario.time_zone
    if isinstance(section, StaticTraffic):
        return owners.read_recording(
            file=scenarios.locate(section.owners),
            roads=roads,
            columns=section.columns.mapping(),
            ignored=section.columns.ignored or (),
            format=file_format(section),
            time_unit_s=size_of(section.time_unit, SECONDS),
            time_zone=time_zone,
            **same_keys(section, "crs", "start", "window", "duplicates", "fractions", "one_per", "dwell_s"),
        )
    if not isinstance(section, TraceTraffic):
        return None
    # The default of the key is of links; only modes that are stated are of vehicles too.
    given = scenario.roads
    modes = given.modes if isinstance(given, MatsimRoads) and "modes" in given.model_fields_set else None
    net = section.net or (given.path if isinstance(given, SumoRoads) else None)
    return recordings.read_recording(
        paths=[scenarios.locate(reference, "folder", "file") for reference in section.trace],
        roads=roads,
        columns=section.columns.mapping(),
        net=None if net is None or section.crs else net_frame(scenario, scenarios.locate(net)),
        net_stated=section.net is not None,
        text=text_format(section),
        time_unit_s=None if section.time_unit is None else size_of(section.time_unit, SECONDS),
        time_zone=time_zone,
        match=section.match,
        match_m=section.match_m or MATCH_M,
        match_noise_m=section.match_noise_m or NOISE_M,
        modes=modes,
        **same_keys(section, "crs", "start", "format", "order", "one_vehicle_a_file", "time_format"),
        **same_keys(section, "gap_s", "hold_s", "highest_mps"),
    )


def build_recorded(scenario: Scenario, city: City, **_: object) -> Engine:
    """Build the engine that replays the recording that was read with the city.

    Raises
    ------
    ScenarioError
        If a campaign asks for speeds of data owners, which do not have any; or links by interval are requested, and the
        recorded vehicles are not on links.
    """
    if isinstance(scenario.traffic, StaticTraffic):
        words = 'must be "count" with engine = "static": data owners do not move, so they have no speed'
        speeds = [campaign for campaign in scenario.campaigns if campaign.statistic != "count"]
        faults = [Fault(f"campaigns.{campaign.name}.statistic", words, campaign.statistic) for campaign in speeds]
        if faults:
            raise ScenarioError(scenario.name, faults)
    recording = cast("Recording", city.ground.recorded)
    if scenario.report.link_interval_s is not None and recording.tracks.link is None:
        rule = 'needs vehicles on links: set traffic.match = "hmm" or "nearest"'
        raise ScenarioError(scenario.name, [Fault("report.link_interval_s", rule)])
    clock, duration_s = Clock(scenario.traffic.step_s), scenario.scenario.duration_s
    return Replay(recording, roads=city.ground.roads, clock=clock, duration_s=duration_s)


def build_entries(scenario: Any, city: City, *, motion: bool, **_: object) -> Engine:
    """Build the engine that replays the entries of an earlier run.

    Raises
    ------
    InputError
        If the file cannot be used with these roads.
    """
    section, links, clock = scenario.traffic, city.roads.links, Clock(scenario.traffic.step_s)
    file = scenarios.locate(section.entries)
    vehicles, beside = section.vehicles, file.with_name("run.json")
    if vehicles is None:
        with suppress(OSError, ValueError, AttributeError):  # another file of this name is none of a run
            vehicles = json.loads(beside.read_text("utf-8")).get("vehicles")
    physics = build_physics(scenario, city.roads, clock, spacing_m=section.spacing_m)
    return EntryReplay(file, links, physics, clock=clock, vehicles=vehicles, record_entries=int(motion))


ENGINES: Mapping[type[TrafficSection], Callable[..., Engine]] = {
    DrivenTraffic: build_simulated,
    SumoTraffic: build_sumo,
    EntriesTraffic: build_entries,
    TraceTraffic: build_recorded,
    StaticTraffic: build_recorded,
}
"""What builds the engine of each class of section."""


def build_engine(
    scenario: Scenario, city: City, *, streams: Streams, stopwatch: Stopwatch, end_s: float, motion: bool = False
) -> Engine:
    """Build the traffic engine.

    Parameters
    ----------
    scenario, city, streams, stopwatch
        As for every part of a run.
    end_s
        The end of the run, used for SUMO, whose departures are counted in files.
    motion
        Whether the engine logs link entries, if it can; see `motion_of_entries`.

    Raises
    ------
    ScenarioError
        If the traffic cannot be built: there is no path for a trip, or a file does not fit.
    """
    build = ENGINES[type(scenario.traffic)]
    try:
        return build(scenario, city, streams=streams, stopwatch=stopwatch, end_s=end_s, motion=motion)
    except InputError as error:
        raise ScenarioError(scenario.name, traffic_faults(scenario, error)) from error


class Beside(NamedTuple):
    """An engine that runs after the run's own for comparison, its name, and notes on its vehicles."""

    name: str
    engine: Engine
    notes: list[Note]


def build_beside(
    scenario: Scenario, city: City, *, end_s: float, streams: Streams, stopwatch: Stopwatch
) -> Beside | None:
    """Build the engine that a scenario compares with its own, with the same vehicles; None if it requests none.

    Departures and routes are taken from SUMO's files, over the same roads. SUMO draws the vehicles of random flows
    again, with the same seed, so they are the same.

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
    if not isinstance(section, SumoTraffic) or section.beside is None:
        return None
    clock = Clock(section.step_s)
    try:
        inputs = sumo_inputs(scenario, streams=streams)
        with stopwatch.phase("demand"):
            demand = read_sumo_routes(
                sumo_insertions(inputs, end_s=end_s).files,
                city.roads,
                **sumo_source(scenario),
                seed=inputs.seed,
                clock=clock,
                begin_s=inputs.begin_s,
                duration_s=last_departure_s(clock, end_s),
                share=inputs.scale,
                rng=streams.of("beside"),
            )
    except InputError as error:
        raise ScenarioError(scenario.name, _faults_of_beside(scenario, error, streams=streams)) from error
    physics = build_physics(scenario, city.roads, clock, classes=demand.classes)
    fleet = Fleet(city.roads.links, physics, demand.trips, demand.routes, clock=clock)
    with stopwatch.phase("compile"):
        fleet.compile()
    return Beside(section.beside, fleet, notes_of("demand", demand.notes))


def _faults_of_beside(scenario: Scenario, error: InputError, *, streams: Streams) -> list[Fault]:
    """Return faults of this engine for vehicles that only SUMO can drive, and of SUMO's files for all other causes."""
    if isinstance(error, NotDrivableError):
        elements = elements_of(sumo_inputs(scenario, streams=streams).net)
        edges = (element.attributes for element in elements if element.name == "edge")
        if error.edges <= {attributes["id"] for attributes in edges if attributes}:
            return [Fault("traffic.beside", fault) for fault in error.faults]
    return sumo_faults(scenario, error, otherwise="traffic.beside")


def answering_states(section: TrafficSection) -> tuple[State, ...]:
    """Return the states in which vehicles answer queries: on the road, and those to which the section opts in."""
    optional = {"waiting": State.WAITING, "parked": State.ARRIVED}
    return (State.ON_ROAD, *(optional[key] for key in optional if getattr(section, key, "silent") == "answer"))


def build_samplers(scenario: Scenario, city: City, engine: Engine, *, motion: bool) -> dict[str, Sampler | None]:
    """Build the recorders of vehicles.

    Returns
    -------
    dict
        ``fcd``: of floating-car data; None if the scenario requests no such data. ``motion``: of single vehicles'
        places for moving maps; None if these are not kept, or the engine logs link entries, or its vehicles stay.
    """
    section, duration_s, fcd = scenario.traffic, scenario.scenario.duration_s, scenario.fcd
    samplers: dict[str, Sampler | None] = {"fcd": None, "motion": None}
    clock, ground = Clock(section.step_s), city.ground
    recorder = partial(
        Sampler, engine, clock=clock, crs=ground.crs, roads=ground.roads, states=answering_states(section)
    )
    if fcd is not None:
        to_s = duration_s if fcd.to_s is None else fcd.to_s
        samplers["fcd"] = recorder(every_s=fcd.every_s, from_s=fcd.from_s, to_s=to_s)
    if motion and not isinstance(engine, QueueEngine) and section.engine != "static":
        every_s = moments_every_s(duration_s, step_s=section.step_s)
        every = sampled_every(engine.vehicles, int(duration_s / every_s) + 1)
        samplers["motion"] = recorder(every_s=every_s, from_s=0.0, to_s=duration_s, every=every)
    return samplers
