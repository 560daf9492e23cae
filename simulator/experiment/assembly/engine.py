"""Builds the traffic engine of a scenario: simulated, replayed or stationary, and the recorder of floating-car data."""

from functools import partial
from typing import Any, cast

import scenarios
from scenarios import Fault, Scenario, ScenarioError
from scenarios.recorded_traffic import MATCH_M, NOISE_M, StaticTraffic
from scenarios.roads import MatsimRoads, SumoRoads
from scenarios.simulated_traffic import REROUTE_EVERY_S, REROUTE_SHARE, SumoTraffic, TrafficSection
from scenarios.units import in_seconds
from simulator.experiment.assembly.constructors import (
    constructor_of,
    file_format,
    reader_of,
    same_keys,
    text_format,
)
from simulator.experiment.assembly.demand import plan_traffic
from simulator.experiment.assembly.physics import build_physics
from simulator.experiment.assembly.sumo_traffic import net_frame, sumo_faults
from simulator.experiment.build_cache import cached_trips
from simulator.experiment.study_area import City
from simulator.files.errors import InputError
from simulator.files.resources import Stopwatch
from simulator.roads import RoadNetwork
from simulator.streams import Streams
from simulator.traffic.agents import Agents
from simulator.traffic.clock import Clock
from simulator.traffic.demand.synthetic import Demand
from simulator.traffic.engine import Engine, State
from simulator.traffic.fcd import Sampler
from simulator.traffic.fleet import Fleet
from simulator.traffic.motion import logged_every, moments_every_s, sampled_every
from simulator.traffic.paths import NoPathError, ShortestPaths
from simulator.traffic.physics import MOST_TICKS
from simulator.traffic.queue_engine import QueueEngine
from simulator.traffic.reactive import ReactiveRouting
from simulator.traffic.recording import Recording, Replay
from simulator.traffic.routes import Routes
from simulator.traffic.trips import Trips


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
    engine = class_(
        links,
        physics,
        trips,
        routes,
        clock=clock,
        reactive=reactive,
        notes=planned.notes,
        record_entries=(1 if scenario.logs_links else logged_every(routes)) if motion else 0,
    )
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


def build_engine(
    scenario: Scenario,
    city: City,
    *,
    streams: Streams,
    stopwatch: Stopwatch,
    end_s: float,
    motion: bool = False,
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
    build = constructor_of("engine", scenario.traffic.engine)
    try:
        engine: Engine = build(scenario, city, streams=streams, stopwatch=stopwatch, end_s=end_s, motion=motion)
    except InputError as error:
        raise ScenarioError(scenario.name, traffic_faults(scenario, error)) from error
    return engine


def traffic_faults(scenario: Scenario, error: InputError) -> list[Fault]:
    """Assign the faults of an engine, or of its input, to the keys of the scenario that cause them."""
    if (
        isinstance(scenario.traffic, SumoTraffic) and not error.key
    ):  # its faults may lie in the files of its configuration
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
    section: Any = scenario.traffic
    reader = reader_of("engine", section.engine)
    if reader is None:
        return None
    keys = _owner_keys(section) if isinstance(section, StaticTraffic) else _trace_keys(scenario, section)
    recording: Recording = reader(
        roads=roads,
        columns=section.columns.mapping(),
        time_unit_s=None if section.time_unit is None else in_seconds(section.time_unit),
        time_zone=section.time_zone or scenario.scenario.time_zone,
        **same_keys(section, "crs", "start"),
        **keys,
    )
    return recording


def _owner_keys(section: Any) -> dict[str, Any]:
    return {
        "file": scenarios.locate(section.owners),
        "ignored": section.columns.ignored or (),
        "format": file_format(section),
        **same_keys(section, "window", "duplicates", "fractions", "one_per", "dwell_s"),
    }


def _trace_keys(scenario: Scenario, section: Any) -> dict[str, Any]:
    # The default of the key is of links; only modes that are stated are of vehicles too.
    roads = scenario.roads
    modes = roads.modes if isinstance(roads, MatsimRoads) and "modes" in roads.model_fields_set else None
    net = section.net or (scenario.roads.path if isinstance(scenario.roads, SumoRoads) else None)
    return {
        "paths": [scenarios.locate(reference, "folder", "file") for reference in section.trace],
        "net": None if net is None or section.crs else net_frame(scenario, scenarios.locate(net)),
        "net_stated": section.net is not None,
        "text": text_format(section),
        "match_m": section.match_m or MATCH_M,
        "match_noise_m": section.match_noise_m or NOISE_M,
        "modes": modes,
        **same_keys(section, "format", "order", "one_vehicle_a_file", "time_format", "gap_s", "hold_s", "match"),
        **same_keys(section, "highest_mps"),
    }


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
    recorder = partial(
        Sampler,
        engine,
        clock=Clock(section.step_s),
        crs=city.ground.crs,
        roads=city.ground.roads,
        states=answering_states(section),
    )
    if fcd is not None:
        to_s = duration_s if fcd.to_s is None else fcd.to_s
        samplers["fcd"] = recorder(every_s=fcd.every_s, from_s=fcd.from_s, to_s=to_s)
    if motion and not isinstance(engine, QueueEngine) and section.engine != "static":
        every_s = moments_every_s(duration_s, step_s=section.step_s)
        every = sampled_every(engine.vehicles, int(duration_s / every_s) + 1)
        samplers["motion"] = recorder(every_s=every_s, from_s=0.0, to_s=duration_s, every=every)
    return samplers
