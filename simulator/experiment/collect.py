"""Collection of what a run produced: its tables and its record."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import geopandas as gpd
import numpy as np
import pandas as pd

import scenarios
from mechanisms.local import AdaptiveBudget
from scenarios import Scenario, plug_ins
from scenarios.recorded_traffic import VEHICLES
from simulator.attacks.games import AttackResults
from simulator.experiment.assembly.constructors import source_sha256
from simulator.experiment.claims import tabulate_claims, weakened_claims
from simulator.experiment.components import RunComponents
from simulator.experiment.count_comparison import compare_counts
from simulator.experiment.deployment_record import describe_deployments, describe_releases
from simulator.experiment.error_theory import describe_loss, describe_mechanisms
from simulator.experiment.refine import refine_queries, refinement_warnings
from simulator.experiment.tables import (
    rows_of_answers,
    score_answers,
    tabulate_estimates,
    tabulate_rounds,
    tabulate_servers,
)
from simulator.files.available_memory import peak_memory_nbytes
from simulator.files.extras import own_version
from simulator.files.messages import Note, texts_of, warning, warnings_among
from simulator.files.stopwatch import Stopwatch
from simulator.results.provenance import data_checksums, files_outside, package_versions, without_paths
from simulator.results.record import (
    BESIDE,
    RUN_FORMAT,
    VEHICLE_STATES,
    CityRecord,
    NoteRecord,
    QueryTraffic,
    RunRecord,
    TrafficRecord,
)
from simulator.results.run import RunResult
from simulator.results.schema import TABLES
from simulator.results.tables import with_times
from simulator.roads import RoadNetwork
from simulator.roads.network import LINK_IDS
from simulator.roads.surroundings import with_streets
from simulator.sensing.campaign import Campaign
from simulator.sensing.query import QueriedPopulation, Query
from simulator.traffic.clock import Clock
from simulator.traffic.detectors import detector_table
from simulator.traffic.engine import Engine, vehicles_of
from simulator.traffic.fcd import Sampler
from simulator.traffic.link_intervals import LinkTables, Traversals, links_by_interval, recorded_trips, trip_table
from simulator.traffic.motion import Motion, logged_every, motion_of_entries, motion_of_places
from simulator.traffic.queue_engine import QueueEngine
from simulator.traffic.recording import Replay


def collect(
    components: RunComponents,
    engine: Engine,
    closed: Sequence[Query],
    attacked: AttackResults,
    traffic: TrafficRecord,
    of_traffic: Sequence[Note],
    *,
    population: QueriedPopulation,
    samplers: Mapping[str, Sampler | None],
    stopwatch: Stopwatch,
    extras: Iterable[str],
) -> RunResult:
    """Refine and score closed queries, and collect the tables and the record of a run.

    Parameters
    ----------
    components
        The components of the run.
    engine
        The traffic engine, at the end of the run.
    closed
        The closed queries, without refined answers.
    attacked
        The findings of attacks.
    traffic, of_traffic
        The record of the traffic, and the notes on it.
    population
        Who takes part.
    samplers
        By phase, ``fcd`` and ``motion``: the recorders of vehicles, where there are any.
    stopwatch
        Wall time by phase.
    extras
        The optional packages that the run used.
    """
    scenario, city, mechanisms = components.scenario, components.city, components.mechanisms
    campaigns, refinements = components.campaigns, components.refinements
    motion, fcd, interval_s = Motion(), samplers["fcd"], scenario.report.link_interval_s
    links = trips = driven = detectors = counts = None
    traffic_clock = Clock(scenario.traffic.step_s)
    with stopwatch.phase("motion"):
        if isinstance(engine, QueueEngine) and engine.record_entries:
            log = engine.log_by_vehicle()
            every = logged_every(engine.routes) if scenario.logs_links else engine.record_entries
            motion = motion_of_entries(engine, traffic_clock, population.takes_part, log, every=every)
            driven = Traversals.of(engine, traffic_clock, log) if scenario.logs_links else None
        elif samplers["motion"] is not None:
            motion = motion_of_places(samplers["motion"], population.takes_part)
        if interval_s and (driven is not None or not isinstance(engine, QueueEngine)):
            links, trips = _link_tables(components, engine, driven, interval_s)
            trips["takes_part"] = population.takes_part[trips["vehicle"]]
            # Trips of recorded vehicles are those of people; sums over links are not.
            trips = trips if scenario.shows_vehicles else None
    queries, refined = refine_queries(refinements, campaigns, closed)
    polygons = {name: cells.polygons() for name, cells in city.partitions.items()}
    cells_before = components.cells_before
    participation = components.participation
    rounds, answers = tabulate_rounds(queries), rows_of_answers(queries, participation)
    scores = score_answers(answers, participation)
    estimates = tabulate_estimates(answers, cells_before)
    claims = tabulate_claims(scenario.claims, campaigns, queries)
    noticed = [*city.notes, *of_traffic]
    noticed += [note for campaign in campaigns for note in campaign.notes]
    if driven is not None and components.detectors is not None:
        length_m = city.roads.links.length_m
        detectors = detector_table(driven, length_m, components.detectors, end_s=components.end_s)
    if driven is not None and components.measured is not None:
        end_s = components.end_s
        counts, not_compared = compare_counts(components.measured, driven, city, estimates, scenario, end_s=end_s)
        noticed += not_compared
    # What may mislead a reader: printed after a run, and shown at the top of its report, where the first four are never
    # folded. Warnings that depend on the run itself come first.
    warnings = [
        *weakened_claims(scenario.claims, campaigns, queries),
        *_republished(campaigns, queries),
        *warnings_among(of_traffic),
        *_unasked(scenario, queries),
        *components.warnings(),
        *refinement_warnings(refinements, queries),
        *attacked.notes,
    ]
    totals, clock = engine.totals(), components.clock
    record = RunRecord(
        format=RUN_FORMAT,
        version=own_version(),
        scenario=scenario.name,
        description=scenario.scenario.description,
        start=clock.text(0.0) if clock.start else None,
        time_zone=clock.zone_name,
        scenario_sha256=hashlib.sha256(scenarios.dump(scenario).encode()).hexdigest(),
        seed=scenario.seed,
        packages=package_versions(extras),
        data=data_checksums(scenario),
        files_outside=files_outside(scenario, getattr(engine, "files", ())),
        plug_ins={kind: source_sha256(plug_ins.load(role, kind)) for _, role, kind in scenario.own_kinds()},
        vehicles=vehicles_of(engine),
        participation=participation.actual,
        assumed_participation=participation.assumed,
        called=getattr(scenario.traffic, "called", VEHICLES),
        link_crossings=totals.link_crossings,
        queries=len(queries),
        device_answers=int(rounds["answered"].sum()),
        memory_bytes={"vehicles": engine.nbytes[0], "routes": engine.nbytes[1], "peak": peak_memory_nbytes()},
        city=CityRecord(
            nodes=len(city.roads.node_names) if city.has_roads else 0,
            links=len(city.roads.links) if city.has_roads else 0,
            length_km=city.roads.total_length_m / 1000.0 if city.has_roads else 0.0,
            cells=sum(cells.count for cells in city.partitions.values()),
            crs=city.ground.crs_text,
            notes=texts_of(city.notes),
        ),
        traffic=traffic,
        motion_every=motion.every,
        traffic_at_queries=[
            QueryTraffic(
                campaign=query.campaign,
                query=query.number,
                time_s=query.asked_s,
                time=clock.text(query.asked_s),
                **{state: getattr(query.totals, state) for state in VEHICLE_STATES},
                stuck_released=query.totals.stuck_released,
            )
            for query in queries
        ],
        mechanisms=describe_mechanisms(scenario, mechanisms, queries, scores),
        releases=describe_releases(campaigns),
        deployments=describe_deployments(campaigns, queries),
        loss=describe_loss(scenario.channel, campaigns, queries),
        refinements=refined,
        warnings=[_warning_text(note, traffic) for note in warnings],
        statements=[NoteRecord(**note._asdict()) for note in dict.fromkeys([*noticed, *warnings])],
    )
    guesses = _of_all_cells(attacked.guesses, cells_before) if scenario.shows_vehicles else None
    of_vehicles = {"entries": motion.entries, "places": motion.places, "guesses": guesses}
    named = without_paths(record.model_dump(by_alias=True, exclude_unset=True), scenario)
    tables = {
        "cells": _tabulate_cells(polygons),
        "estimates": with_times(estimates, clock),
        "rounds": rounds,
        "servers": tabulate_servers(queries),
        "scores": scores,
        "claims": claims,
        "attacks": TABLES["attacks"].frame(attacked.findings),
        "links": links,
        "trips": trips,
        "detectors": detectors,
        "counts": counts,
        "roads": _tabulate_roads(city.roads, engine) if city.has_roads else None,
        "surroundings": with_streets(city.roads) if city.has_roads else None,
        **{name: None if table is None else with_times(table, clock) for name, table in of_vehicles.items()},
    }
    samples = None if fcd is None else fcd.samples()
    return RunResult(RunRecord.model_validate(named), tables, scenario=scenario, stopwatch=stopwatch, fcd=samples)


def _tabulate_cells(polygons: Mapping[str, gpd.GeoDataFrame]) -> gpd.GeoDataFrame:
    """Return the cells of all partitions in WGS84, numbered one after another."""
    shapes = pd.concat([own.to_crs("EPSG:4326").assign(partition=name) for name, own in polygons.items()])
    cells: gpd.GeoDataFrame = shapes.assign(cell=np.arange(1, len(shapes) + 1, dtype=np.int32)).reset_index(drop=True)
    return cells[["cell", "name", "partition", "geometry"]]


def _of_all_cells(guesses: pd.DataFrame | None, cells_before: Mapping[str, int]) -> pd.DataFrame | None:
    """Return guesses with the numbers of cells among those of all partitions; 0 stays outside."""
    if guesses is None:
        return None
    before = guesses["campaign"].map(cells_before)
    return guesses.assign(**{name: guesses[name] + before.where(guesses[name] > 0, 0) for name in ("truth", "guess")})


def _link_tables(
    components: RunComponents, engine: Engine, driven: Traversals | None, every_s: float
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tables `links` and `trips`, the latter without `takes_part`; `driven` is that of a queue engine."""
    if isinstance(engine, LinkTables):
        return engine.link_tables()
    links = components.city.roads.links
    if isinstance(engine, QueueEngine) and driven is not None:
        table = links_by_interval(driven, links.length_m, every_s=every_s, end_s=components.end_s)
        return table, trip_table(driven, engine, Clock(components.scenario.traffic.step_s))
    replay, end_s = cast("Replay", engine), components.scenario.scenario.duration_s
    driven = Traversals.of_tracks(replay.tracks, end_s=end_s)
    table = links_by_interval(driven, links.length_m, every_s=every_s, end_s=end_s, queued=False)
    return table, recorded_trips(driven, replay, links)


def _tabulate_roads(roads: RoadNetwork, engine: Engine) -> gpd.GeoDataFrame:
    """Return the links with what a map needs, in WGS84."""
    links = roads.links
    columns: dict[str, Any] = {
        "link": np.arange(len(links), dtype=np.int32),
        "from_node": links.from_node,
        "to_node": links.to_node,
        "length_m": links.length_m,
        "speed_mps": links.speed_mps,
        "lanes": links.lanes,
    }
    if isinstance(engine, QueueEngine):
        columns["spacing_m"], columns["wave_s"] = engine.queues()
    edges = sorted((data for *_, data in roads.graph.edges(data=True)), key=lambda data: data["link"])
    for column, names in (("source_id", ("osm_ways", *LINK_IDS)), ("class", ("class",)), ("name", ("name",))):
        known = [next((str(data[name]) for name in names if data.get(name)), None) for data in edges]
        columns[column] = pd.Series(known, dtype="str")
    return gpd.GeoDataFrame(columns, geometry=roads.shapes.lines(), crs=roads.crs).to_crs("EPSG:4326")


def _warning_text(note: Note, traffic: TrafficRecord) -> str:
    """Return a warning's text for the run's list, where one about a comparison engine begins with the engine's name."""
    return f"{traffic.beside[0].engine}, for comparison: {note.text}" if note.where == BESIDE else note.text


def _republished(campaigns: Sequence[Campaign], queries: Sequence[Query]) -> list[Note]:
    """Return a warning for each mechanism whose last release was published again at some queries."""
    warnings = []
    for campaign in campaigns:
        asked = [query for query in queries if query.campaign == campaign.name]
        for name in (name for name, asked in campaign.asked.items() if isinstance(asked, AdaptiveBudget)):
            answers = [answer for query in asked for answer in query.answers if answer.mechanism == name]
            new = sum(answer.rounds[1].counted > 0 for answer in answers)
            if new < len(answers):
                where = f"campaigns.{campaign.name}"
                text = (
                    f"{where}: {name} published new estimates at {new:,} of {len(answers):,} queries and its last one "
                    "again at all others; the standard error and interval of an estimate are those of the query at "
                    "which it was new, and do not cover what has changed since"
                )
                warnings.append(warning("republished", text, where))
    return warnings


def _unasked(scenario: Scenario, queries: Sequence[Query]) -> list[Note]:
    """Return a warning for each campaign that asked no vehicle, for example because a recording is of another time."""
    asked: dict[str, list[int]] = {}
    for query in queries:
        asked.setdefault(query.campaign, []).append(int(query.truth.sum()) - scenario.population.outside)
    return [
        warning(
            "no_device",
            f"campaigns.{name}: no device was present at any of its {len(numbers):,} queries",
            f"campaigns.{name}",
        )
        for name, numbers in asked.items()
        if not any(numbers)
    ]
