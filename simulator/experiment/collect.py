"""Collection of what a run produced: its tables and its record."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd

import scenarios
from mechanisms.local import AdaptiveBudget
from scenarios import Scenario, kinds
from scenarios.recorded_traffic import VEHICLES
from scenarios.run_clock import RunClock
from simulator.attacks.games import AttackResults
from simulator.experiment.assembly.own_kinds import source_sha256
from simulator.experiment.claims import tabulate_claims, weakened_claims
from simulator.experiment.components import RunComponents
from simulator.experiment.deployment_record import describe_deployments, describe_releases
from simulator.experiment.error_theory import describe_loss, describe_mechanisms
from simulator.experiment.refine import refine_queries, refinement_warnings
from simulator.experiment.selection_bias import bias_warnings, inverse_weights
from simulator.experiment.tables import (
    rows_of_answers,
    score_answers,
    tabulate_estimates,
    tabulate_rounds,
    tabulate_servers,
)
from simulator.experiment.traffic_tables import compare_counts, tabulate_roads, tabulate_traffic
from simulator.files.extras import own_version
from simulator.files.messages import Note, texts_of, warning, warnings_among
from simulator.files.resources import Stopwatch, peak_memory_nbytes
from simulator.results.provenance import data_checksums, files_outside, package_versions, without_paths
from simulator.results.record import VEHICLE_STATES, CityRecord, NoteRecord, QueryTraffic, TrafficRecord
from simulator.results.run import RunResult
from simulator.results.run_record import BESIDE, RUN_FORMAT, RunRecord
from simulator.results.schema import TABLES
from simulator.results.tables import with_times
from simulator.roads.surroundings import with_streets
from simulator.sensing.campaign import Campaign
from simulator.sensing.query import QueriedPopulation, Query
from simulator.traffic.engine import Engine, vehicles_of
from simulator.traffic.fcd import Sampler


def collect(
    components: RunComponents,
    engine: Engine,
    closed: Sequence[Query],
    attacked: AttackResults,
    traffic: TrafficRecord,
    of_traffic: Sequence[Note],
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
    with stopwatch.phase("motion"):
        moved = tabulate_traffic(components, engine, population.takes_part, samplers["motion"])
    weigh = partial(inverse_weights, components.channel, components.rates, scenario.population.assumed)
    queries, refined = refine_queries(refinements, campaigns, closed, weigh=weigh)
    polygons = {name: cells.polygons() for name, cells in city.partitions.items()}
    cells_before = components.cells_before
    participation = components.participation
    expected = [query.occupancy.expected for query in closed if query.occupancy.expected is not None]
    if scenario.population.rates and expected:
        participation = participation._replace(actual=float(np.mean([one.taking_part for one in expected])))
    rounds, answers = tabulate_rounds(queries), rows_of_answers(queries, participation)
    scores = score_answers(answers, participation)
    estimates = tabulate_estimates(answers, cells_before)
    coalitions = [tuple(member.party for member in attack.members) for attack in components.attacks]
    claims = tabulate_claims(scenario.claims, campaigns, queries, coalitions)
    noticed = [*city.notes, *of_traffic]
    noticed += [note for campaign in campaigns for note in campaign.notes]
    counts, of_counts = None, list[Note]()
    if moved.driven is not None and components.measured is not None:
        end_s = components.end_s
        counts, of_counts = compare_counts(components.measured, moved.driven, city, estimates, scenario, end_s=end_s)
        noticed += of_counts
    # What may mislead a reader: printed after a run, and shown at the top of its report, where the first four are never
    # folded. Warnings that depend on the run itself come first.
    warnings = [
        *weakened_claims(scenario.claims, campaigns, queries),
        *_republished(campaigns, queries),
        *warnings_among([*of_traffic, *of_counts]),
        *_unasked(scenario, queries),
        *components.warnings(),
        *bias_warnings(scenario, estimates, queries),
        *refinement_warnings(refinements, queries),
        *attacked.notes,
    ]
    record = RunRecord(
        **_about_the_run(components, engine, extras),
        participation=participation.actual,
        queries=len(queries),
        device_answers=int(rounds["answered"].sum()),
        traffic=traffic,
        motion_every=moved.motion.every,
        traffic_at_queries=[_traffic_at(query, components.clock) for query in queries],
        mechanisms=describe_mechanisms(scenario, mechanisms, queries, scores),
        releases=describe_releases(campaigns),
        deployments=describe_deployments(campaigns, queries),
        loss=describe_loss(scenario.channel, campaigns, queries),
        refinements=refined,
        warnings=[_warning_text(note, traffic) for note in warnings],
        statements=[NoteRecord(**note._asdict()) for note in dict.fromkeys([*noticed, *warnings])],
    )
    guesses = _of_all_cells(attacked.guesses, cells_before) if scenario.shows_vehicles else None
    timed = {"entries": moved.motion.entries, "places": moved.motion.places, "guesses": guesses}
    timed["ledger"] = TABLES["ledger"].frame(components.ledger) if components.ledger else None
    named = without_paths(record.model_dump(by_alias=True, exclude_unset=True), scenario)
    tables = {
        "cells": _tabulate_cells(polygons),
        "estimates": with_times(estimates, components.clock),
        "rounds": rounds,
        "servers": tabulate_servers(queries, {campaign.name: campaign.operator for campaign in campaigns}),
        "scores": scores,
        "claims": claims,
        "attacks": TABLES["attacks"].frame(attacked.findings),
        "links": moved.links,
        "trips": moved.trips,
        "detectors": moved.detectors,
        "counts": counts,
        "roads": tabulate_roads(city.roads, engine) if city.has_roads else None,
        "surroundings": with_streets(city.roads) if city.has_roads else None,
        **{name: None if table is None else with_times(table, components.clock) for name, table in timed.items()},
    }
    samples = None if samplers["fcd"] is None else samplers["fcd"].samples()
    return RunResult(RunRecord.model_validate(named), tables, scenario=scenario, stopwatch=stopwatch, fcd=samples)


def _about_the_run(components: RunComponents, engine: Engine, extras: Iterable[str]) -> dict[str, Any]:
    """Return the entries of the record that say what was run: scenario, software, files, city and vehicles."""
    scenario, city, clock = components.scenario, components.city, components.clock
    return {
        "format": RUN_FORMAT,
        "version": own_version(),
        "scenario": scenario.name,
        "description": scenario.scenario.description,
        "start": clock.text(0.0) if clock.start else None,
        "time_zone": clock.zone_name,
        "scenario_sha256": hashlib.sha256(scenarios.dump(scenario).encode()).hexdigest(),
        "seed": scenario.seed,
        "packages": package_versions(extras),
        "data": data_checksums(scenario),
        "files_outside": files_outside(scenario, getattr(engine, "files", ())),
        "plug_ins": {kind: source_sha256(kinds.load(role, kind)) for _, role, kind in scenario.own_kinds()},
        "vehicles": vehicles_of(engine),
        "assumed_participation": components.participation.assumed,
        "called": getattr(scenario.traffic, "called", VEHICLES),
        "link_crossings": engine.totals().link_crossings,
        "memory_bytes": {"vehicles": engine.nbytes[0], "routes": engine.nbytes[1], "peak": peak_memory_nbytes()},
        "city": CityRecord(
            nodes=len(city.roads.node_names) if city.has_roads else 0,
            links=len(city.roads.links) if city.has_roads else 0,
            length_km=city.roads.total_length_m / 1000.0 if city.has_roads else 0.0,
            cells=sum(cells.count for cells in city.partitions.values()),
            crs=city.ground.crs_text,
            notes=texts_of(city.notes),
        ),
    }


def _traffic_at(query: Query, clock: RunClock) -> QueryTraffic:
    return QueryTraffic(
        campaign=query.campaign,
        query=query.number,
        time_s=query.asked_s,
        time=clock.text(query.asked_s),
        **{state: getattr(query.totals, state) for state in VEHICLE_STATES},
        stuck_released=query.totals.stuck_released,
    )


def _tabulate_cells(polygons: Mapping[str, gpd.GeoDataFrame]) -> gpd.GeoDataFrame:
    """Return the cells of all partitions in WGS84, numbered one after another."""
    shapes = pd.concat([own.to_crs("EPSG:4326").assign(partition=name) for name, own in polygons.items()])
    cells: gpd.GeoDataFrame = shapes.assign(cell=np.arange(1, len(shapes) + 1, dtype=np.int32)).reset_index(drop=True)
    return cells[["cell", "name", "partition", "geometry"]]


def _of_all_cells(guesses: pd.DataFrame | None, cells_before: Mapping[str, int]) -> pd.DataFrame | None:
    """Return guesses with the numbers of cells among the cells of all partitions; 0 stays outside."""
    if guesses is None:
        return None
    before = guesses["campaign"].map(cells_before)
    return guesses.assign(**{name: guesses[name] + before.where(guesses[name] > 0, 0) for name in ("truth", "guess")})


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
                    "again at all others; the standard error and interval of an estimate are for the query at "
                    "which it was new, and do not cover what has changed since"
                )
                warnings.append(warning("republished", text, where))
    return warnings


def _unasked(scenario: Scenario, queries: Sequence[Query]) -> list[Note]:
    """Return a warning for each campaign that asked no vehicle, for example because a recording is of another time."""
    asked: dict[str, list[int]] = {}
    for query in queries:
        asked.setdefault(query.campaign, []).append(int(query.truth.sum()) - scenario.population.outside)
    unasked = [(f"campaigns.{name}", len(numbers)) for name, numbers in asked.items() if not any(numbers)]
    text = "no device was present at any of its"
    return [warning("no_device", f"{where}: {text} {number:,} queries", where) for where, number in unasked]
