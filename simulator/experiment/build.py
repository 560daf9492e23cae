"""Build: the composition root, the one place that names concrete parts."""

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import scenarios
from mechanisms import local
from mechanisms.local import LocalMechanism, ParameterError, ParameterWarning
from scenarios import Fault, Scenario, ScenarioError
from scenarios.section import exceeds, number
from simulator.cells import CellsError, GeographicGrid, Partition, SquareGrid
from simulator.experiment.city import City
from simulator.experiment.plug_in import PlugIn
from simulator.roads import RoadNetwork, RoadsError, build_grid, read_tables
from simulator.sensing.campaign import moments_of
from simulator.sensing.population import Population
from simulator.sensing.schedule import Schedule
from simulator.stopwatch import Stopwatch
from simulator.streams import Streams
from simulator.traffic.agents import Agents
from simulator.traffic.clock import Clock
from simulator.traffic.demand import Departures, Interval, draw_trips
from simulator.traffic.engine import Engine
from simulator.traffic.fleet import Fleet
from simulator.traffic.paths import NoPathError, ShortestPaths
from simulator.traffic.physics import LinkPhysics

MOST_CELLS = 1_000_000
MOST_ROWS = 20_000_000
"""Rows of `estimates.parquet` beyond which a scenario is surely not meant: some 2 GB in memory."""


def build_city(scenario: Scenario) -> City:
    """Make or read the roads and divide them into cells.

    Raises
    ------
    ScenarioError
        If the files hold no usable network, or the cells cannot be laid over it.
    """
    try:
        roads, notes = _build_roads(scenario.roads)
    except RoadsError as error:
        raise ScenarioError(scenario.name, [Fault("roads", fault) for fault in error.faults]) from error
    try:
        cells = _build_cells(scenario.cells, roads)
    except CellsError as error:
        raise ScenarioError(scenario.name, [Fault("cells", str(error))]) from error
    queries = sum(campaign.queries for campaign in scenario.campaigns)
    if cells.count > MOST_CELLS:
        rule = f"must be at most {MOST_CELLS:,} cells: take larger cells"
        raise ScenarioError(scenario.name, [Fault("cells", rule, cells.count)])
    refined = sum(len(refinement.mechanisms or scenario.mechanisms) for refinement in scenario.refinements)
    tables = len(scenario.mechanisms) + refined
    rows = cells.count * queries * tables
    if rows > MOST_ROWS:
        rule = (
            f"cells × queries × mechanisms must be at most {MOST_ROWS:,}; here {cells.count:,} × {queries:,} × "
            f"{tables:,}, refined ones counted too: take larger cells"
        )
        raise ScenarioError(scenario.name, [Fault("cells", rule, rows)])
    return City(roads, cells, tuple(notes))


def _build_roads(section: Any) -> tuple[RoadNetwork, list[str]]:  # a union told apart by its source
    if section.source == "grid":
        spacing_x_m, spacing_y_m = section.spacings_m
        roads = build_grid(
            rows=section.rows,
            columns=section.columns,
            spacing_x_m=spacing_x_m,
            spacing_y_m=spacing_y_m,
            speed_mps=section.speed_mps,
            lanes=section.lanes,
            avenue_speed_mps=section.avenue_speed_mps,
            avenue_lanes=section.avenue_lanes,
            one_way=section.one_way,
            capacity_vph=section.capacity_vph,
            anchor=(section.anchor.lon, section.anchor.lat),
        )
        return roads, []
    roads, report = read_tables(
        nodes=scenarios.locate(section.nodes),
        edges=scenarios.locate(section.edges),
        columns=section.columns.mapping(),
        crs=section.crs,
        default_speed_mps=section.default_speed_mps,
        default_lanes=section.default_lanes,
        capacity_vph=section.capacity_vph,
    )
    return roads, report.notes()


def _build_cells(section: Any, roads: RoadNetwork) -> Partition:  # a union told apart by its kind
    if section.kind == "square":
        return SquareGrid.build_over(roads.bounds, size_m=section.size_m, crs=roads.crs, within=section.bounds)
    origin = (section.origin.lon, section.origin.lat)
    return GeographicGrid.build_over(roads.bounds, size_miles=section.size_miles, origin=origin, crs=roads.crs)


def build_mechanisms(scenario: Scenario, cells: int) -> dict[str, LocalMechanism]:
    """Make every mechanism, by name, for a city of `cells` cells.

    Raises
    ------
    ScenarioError
        If parameters do not fit the number of cells, or a plug-in cannot be had.
    """
    faults, built = [], {}
    for section in scenario.mechanisms:
        where = f"mechanisms.{section.name}"
        try:
            make = _MECHANISMS.get(section.kind) or _plug_in(section.kind)
            with warnings.catch_warnings():
                # The result carries a mechanism's warnings, so that they are told once and kept.
                warnings.simplefilter("ignore", ParameterWarning)
                built[section.name] = make(cells=cells, **section.parameters)
        except ParameterError as error:
            faults.append(Fault(where, str(error)))
        except (ImportError, AttributeError) as error:
            faults.append(Fault(f"{where}.kind", f"cannot be imported ({error})", section.kind))
        except (TypeError, ValueError) as error:
            faults.append(Fault(where, f"{section.kind} refuses its parameters: {error}"))
    if faults:
        raise ScenarioError(scenario.name, faults)
    return built


def _sampling_privacy(*, cells: int, form: str, refresh: float, **parameters: Any) -> LocalMechanism:
    if form == "multi":
        return local.SamplingPrivacy(cells=cells, refresh=refresh, **parameters)
    # The schema has seen to it that the one blank, if given, is what the other two leave.
    blank = parameters.pop("blank", None)
    if blank is not None:
        parameters.setdefault("blank_zero", 1.0 - parameters["sampling"] - blank)
    return local.BinarySamplingPrivacy(cells=cells, **parameters)


_MECHANISMS: Mapping[str, Callable[..., LocalMechanism]] = {
    "no_privacy": local.NoPrivacy,
    "sampling_privacy": _sampling_privacy,
    "randomized_response": local.RandomizedResponse,
    "warner": local.Warner,
    "k_randomized_response": local.KRandomizedResponse,
    "sue": local.SymmetricUnary,
    "oue": local.OptimisedUnary,
    "the": local.ThresholdHistogram,
    "olh": local.LocalHashing,
    "subset_selection": local.SubsetSelection,
    "hadamard_response": local.HadamardResponse,
    "longitudinal_unary": local.LongitudinalUnary,
    "distributed_laplace": local.DistributedLaplace,
    "sampling_and_noise": local.SamplingAndNoise,
    "sampled_response": local.SampledResponse,
    "anonymized_local": local.AnonymizedLocal,
    "anonymized_first_attempt": local.AnonymizedFirstAttempt,
    "anonymized_cancelling": local.AnonymizedCancelling,
    "anonymized_deniable": local.AnonymizedDeniable,
}


def _plug_in(kind: str) -> Callable[..., LocalMechanism]:
    module, _, name = kind.partition(":")
    kind_of: Callable[..., Any] = getattr(importlib.import_module(module), name)

    def make(*, cells: int, **parameters: Any) -> LocalMechanism:
        mechanism: LocalMechanism = PlugIn(kind_of(cells=cells, **parameters), cells=cells)
        return mechanism

    return make


def build_engine(scenario: Scenario, city: City, *, streams: Streams, stopwatch: Stopwatch) -> Engine:
    """Draw trips and routes, and put them into the engine the scenario names.

    Raises
    ------
    ScenarioError
        If no path leads between two places that a trip joins.
    """
    section, links = scenario.traffic, city.roads.links
    clock = Clock(section.step_s)
    departures: Departures
    if isinstance(section.departures, str):
        departures = section.departures
    else:
        departures = [Interval(window.from_s, window.to_s, window.share) for window in section.departures]
    with stopwatch.phase("demand"):
        paths = ShortestPaths(links)
        trips = draw_trips(
            section.vehicles,
            links=links,
            paths=paths,
            demand=section.demand,
            gravity_scale_s=section.gravity_scale_s,
            departures=departures,
            duration_s=scenario.scenario.duration_s,
            clock=clock,
            rng=streams.of("demand"),
        )
    try:
        with stopwatch.phase("routing"):
            routes = paths.routes(trips)
    except NoPathError as error:
        raise ScenarioError(scenario.name, [Fault("roads", str(error))]) from error
    physics = LinkPhysics.build(links, clock, stuck_s=section.stuck_s)
    if section.engine == "agents":
        return Agents(links, physics, trips, routes, clock=clock)
    fleet = Fleet(links, physics, trips, routes, clock=clock)
    with stopwatch.phase("compile"):
        fleet.compile()
    return fleet


def build_population(scenario: Scenario, *, streams: Streams) -> Population:
    """Draw who takes part, once a vehicle."""
    section = scenario.population
    takes_part = streams.of("participation").random(scenario.traffic.vehicles) < section.participation
    return Population(
        takes_part,
        outside=section.outside,
        parked_answer=scenario.traffic.parked == "answer",
        answers=section.answers,
    )


def build_schedules(scenario: Scenario) -> dict[str, Schedule]:
    """Return when each campaign asks, by name."""
    return {
        campaign.name: Schedule(
            start_s=campaign.start_s,
            every_s=campaign.every_s or 0.0,
            queries=campaign.queries,
            round_gap_s=campaign.round_gap_s,
            deadline_s=campaign.deadline_s,
        )
        for campaign in scenario.campaigns
    }


def check_schedules(scenario: Scenario, mechanisms: Mapping[str, LocalMechanism]) -> None:
    """Check that every query is closed before its campaign asks the next.

    The schema has done so for queries of two rounds; a mechanism may go on asking after the moment of truth.

    Raises
    ------
    ScenarioError
        Naming every campaign whose queries overlap.
    """
    moments = moments_of(mechanisms.values())
    faults = []
    for campaign in scenario.campaigns:
        takes_s = (len(moments) - 1) * campaign.round_gap_s + campaign.deadline_s
        if campaign.statistic == "count" and campaign.queries > 1 and exceeds(takes_s, campaign.every_s or 0.0):
            longest = [name for name, one in mechanisms.items() if len(moments_of([one])) == len(moments)]
            words = (
                f"rounds of one campaign must not overlap: with mechanism {', '.join(longest)} a query takes "
                f"{len(moments) - 1} times round_gap_s + deadline_s = {number(takes_s)} s, longer than every_s"
            )
            faults.append(Fault(f"campaigns.{campaign.name}.every_s", words, campaign.every_s))
    if faults:
        raise ScenarioError(scenario.name, faults)
