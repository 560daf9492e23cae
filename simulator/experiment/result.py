"""Result of a run: its tables, and the directory they are written to."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import geopandas as gpd
import numpy as np
import pandas as pd

import scenarios
from scenarios import Scenario, plug_ins
from scenarios.recorded_traffic import VEHICLES
from simulator.experiment.build.constructors import source_sha256
from simulator.experiment.campaign_groups import CampaignGroup, group_campaigns
from simulator.experiment.claims import tabulate_claims, weakened_claims
from simulator.experiment.components import RunComponents
from simulator.experiment.deployment_record import describe_deployments
from simulator.experiment.error_theory import describe_loss, describe_mechanisms
from simulator.experiment.provenance import (
    data_checksums,
    files_outside,
    package_versions,
    peak_memory_nbytes,
    without_paths,
)
from simulator.experiment.refine import describe_refinements, refinement_warnings
from simulator.experiment.releases import describe_releases
from simulator.experiment.run_directory import (
    COMPLETE,
    OF_VEHICLES,
    ROADS,
    SURROUNDINGS,
    TABLES,
    UnfinishedRunError,
    fill_directory,
    read_record,
    read_table,
)
from simulator.experiment.run_record import (
    RUN_FORMAT,
    VEHICLE_STATES,
    CityRecord,
    FlowCheckRecord,
    QueryTraffic,
    RunRecord,
    TrafficRecord,
)
from simulator.experiment.scaling import is_partial, of_all_vehicles
from simulator.experiment.tables import score_queries, tabulate_estimates, tabulate_rounds, tabulate_servers, with_times
from simulator.files.extras import own_version
from simulator.files.messages import warnings_in
from simulator.games.games import AttackResults
from simulator.games.scores import tabulate_findings
from simulator.roads import RoadNetwork
from simulator.roads.surroundings import with_streets
from simulator.sensing.query import Query
from simulator.stopwatch import Stopwatch
from simulator.traffic.engine import Engine, vehicles_of
from simulator.traffic.fcd import Samples, write_samples
from simulator.traffic.motion import Motion

SCENARIO = "scenario.toml"


@dataclass(frozen=True, eq=False)
class RunOutcome:
    """What the simulation of a run produced.

    Attributes
    ----------
    engine
        The traffic engine, at the end of the run.
    queries
        The closed queries, with refined answers.
    attacked
        The findings of attacks.
    traffic
        The record of the traffic.
    stopwatch
        Wall time by phase.
    extras
        The optional packages that the run used.
    flow_check
        The comparison of link volumes with published ones, if the scenario names any.
    fcd
        Floating-car data, if the scenario requests it.
    motion
        Where single vehicles were, if this is kept.
    """

    engine: Engine
    queries: Sequence[Query]
    attacked: AttackResults
    traffic: TrafficRecord
    stopwatch: Stopwatch
    extras: Iterable[str] = ()
    flow_check: FlowCheckRecord | None = None
    fcd: Samples | None = None
    motion: Motion | None = None


@dataclass(frozen=True, eq=False)
class RunData:
    """Complete content of a run directory.

    Attributes
    ----------
    scenario
        The scenario with all values resolved.
    cells
        `cell` (1…V), `name`, `geometry` in WGS84.
    estimates, rounds, servers, scores, claims, attacks
        The tables of the run directory.
    record
        Content of `run.json`, except what is known only after the tables are written.
    stopwatch
        Wall time by phase; None for a run that was loaded, whose record has it.
    fcd
        Floating-car data, if the scenario requests it; not loaded from a directory.
    roads
        The links with their `geometry` in WGS84; None for a scenario without roads.
    entries, places
        Where single vehicles were, as `simulator.traffic.motion` has it; None where it is not kept.
    guesses
        What coalitions guessed about single vehicles; None if no attack guesses cells, or vehicles may not be shown.
    surroundings
        Water, places and streets in WGS84, of `simulator.roads.surroundings`; None where the source has none.
    """

    scenario: Scenario
    cells: gpd.GeoDataFrame
    estimates: pd.DataFrame
    rounds: pd.DataFrame
    servers: pd.DataFrame
    scores: pd.DataFrame
    claims: pd.DataFrame
    attacks: pd.DataFrame
    record: RunRecord
    stopwatch: Stopwatch | None = None
    fcd: Samples | None = None
    roads: gpd.GeoDataFrame | None = None
    entries: pd.DataFrame | None = None
    places: pd.DataFrame | None = None
    guesses: pd.DataFrame | None = None
    surroundings: gpd.GeoDataFrame | None = None

    @classmethod
    def build(cls, components: RunComponents, outcome: RunOutcome) -> Self:
        """Score closed queries and collect the content of the run directory."""
        scenario, city, mechanisms = components.scenario, components.city, components.mechanisms
        releases, refinements = components.releases, components.refinements
        engine, queries, attacked, traffic = outcome.engine, outcome.queries, outcome.attacked, outcome.traffic
        polygons = city.cells.polygons()
        middles = polygons.geometry.centroid
        participation = components.participation
        rounds, estimates = tabulate_rounds(queries), tabulate_estimates(queries, participation)
        scores = score_queries(queries, np.column_stack([middles.x, middles.y]), participation)
        as_counts = scenario.population.answers == "counts"
        groups = group_campaigns(
            mechanisms, releases, components.deployments, components.budgets, queries, as_counts=as_counts
        )
        claims = tabulate_claims(scenario.claims, groups)
        totals, motion, clock = engine.totals(), outcome.motion or Motion(), components.clock
        record = RunRecord(
            format=RUN_FORMAT,
            version=own_version(),
            scenario=scenario.name,
            description=scenario.scenario.description,
            start=clock.text(0.0) if clock.start else None,
            time_zone=clock.zone_name,
            scenario_sha256=hashlib.sha256(scenarios.dump(scenario).encode()).hexdigest(),
            seed=scenario.seed,
            packages=package_versions(outcome.extras),
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
            memory_bytes={
                "vehicles": engine.nbytes[0],
                "routes": engine.nbytes[1],
                "peak": peak_memory_nbytes(),
            },
            city=CityRecord(
                nodes=len(city.roads.node_names) if city.has_roads else 0,
                links=len(city.roads.links) if city.has_roads else 0,
                length_km=city.roads.total_length_m / 1000.0 if city.has_roads else 0.0,
                cells=city.cells.count,
                crs=city.ground.crs_text,
                notes=list(city.notes),
            ),
            traffic=traffic,
            motion_every=motion.every,
            flow_check=outcome.flow_check,
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
            releases=describe_releases(releases),
            deployments=describe_deployments(groups),
            loss=[
                record
                for group in groups
                if not group.adaptive  # devices that are not asked are no loss
                for record in describe_loss(scenario.channel, group.mechanisms, group.queries)
            ],
            refinements=describe_refinements(refinements, mechanisms, queries),
            # The only list of what may mislead a reader: printed after a run, and shown at the top of its report, where
            # the first four are never folded. Warnings that depend on the run itself come first.
            warnings=[
                *weakened_claims(scenario.claims, groups),
                *_republished(groups),
                *_traffic_warnings(traffic),
                *_unasked(scenario, queries),
                *components.warnings(),
                *refinement_warnings(refinements, queries),
                *attacked.notes,
            ],
        )
        guesses = attacked.guesses if scenario.shows_vehicles else None
        of_vehicles = {"entries": motion.entries, "places": motion.places, "guesses": guesses}
        named = without_paths(record.model_dump(by_alias=True, exclude_unset=True), scenario)
        return cls(
            scenario,
            cells=polygons.to_crs("EPSG:4326"),
            estimates=with_times(estimates, clock),
            rounds=rounds,
            servers=tabulate_servers(queries),
            scores=scores,
            claims=claims,
            attacks=tabulate_findings(attacked.findings),
            record=RunRecord.model_validate(named),
            stopwatch=outcome.stopwatch,
            fcd=outcome.fcd,
            roads=_tabulate_roads(city.roads) if city.has_roads else None,
            **{name: None if table is None else with_times(table, clock) for name, table in of_vehicles.items()},
            surroundings=with_streets(city.roads) if city.has_roads else None,
        )

    @classmethod
    def load(cls, directory: str | Path) -> Self:
        """Read a run from its directory.

        The data files that its scenario names need not exist any more.

        Parameters
        ----------
        directory
            A directory that `save` wrote, or `crowdveil run`.

        Raises
        ------
        UnfinishedRunError
            If the directory holds no finished run, a file is missing or was changed, or a later version wrote it.
        """
        folder = Path(directory)
        record = read_record(folder / COMPLETE)
        if not (folder / SCENARIO).is_file():
            raise UnfinishedRunError(f"{folder}: {SCENARIO} is not in it")
        tables: dict[str, Any] = {name: read_table(folder, name, record) for name in TABLES}
        shapes = ("cells", Path(ROADS).stem, Path(SURROUNDINGS).stem)
        for name in (*OF_VEHICLES, *shapes):
            if name == "cells" or (folder / f"{name}.parquet").is_file():
                tables[name] = read_table(folder, name, record, gpd.read_parquet if name in shapes else pd.read_parquet)
        scenario = scenarios.load(folder / SCENARIO, files_exist=False)
        return cls(scenario=scenario, **tables, record=record)

    @property
    def leading(self) -> Self:
        """The run with the figures of all vehicles in place of those of the devices asked, if not all take part."""
        if not is_partial(self.scores):
            return self
        return replace(self, estimates=of_all_vehicles(self.estimates), scores=of_all_vehicles(self.scores))

    def to_geodataframe(self) -> gpd.GeoDataFrame:
        """Return the estimates with the names and shapes of their cells.

        Returns
        -------
        geopandas.GeoDataFrame
            The rows and columns of `estimates`, and `name` and `geometry`, in WGS84.
        """
        joined = self.estimates.merge(self.cells, on="cell", validate="many_to_one")
        return gpd.GeoDataFrame(joined, geometry="geometry", crs=self.cells.crs)

    def save(
        self,
        directory: str | Path,
        *,
        overwrite: bool = False,
        numbered: bool = False,
        render: Callable[[Path], object] | None = None,
    ) -> Path:
        """Write the run directory, completely or not at all.

        Parameters
        ----------
        directory
            Path of the run directory.
        overwrite
            Replace an earlier run in this directory.
        numbered
            If the path is taken, use the first of `directory-2`, `directory-3`, … that is free.
        render
            Function that writes the report; called with the directory once the run is complete in it, so that a fault
            of the report loses nothing.

        Returns
        -------
        Path
            The directory.

        Raises
        ------
        DirectoryError
            If the path is taken and may not be replaced; the run is then kept under the next free number, which the
            message names.
        """
        saved = fill_directory(Path(directory), self._write, overwrite=overwrite, numbered=numbered)
        if render is not None:
            self.add_report(saved, render)
        return saved

    def add_report(self, directory: Path, render: Callable[[Path], object]) -> None:
        """Write the report with `render` into the directory where the run was saved, and its time into `run.json`."""
        with (self.stopwatch or Stopwatch()).phase("report"):
            render(directory)
        self._write_facts(directory)

    def _write(self, directory: Path) -> None:
        with (self.stopwatch or Stopwatch()).phase("write"):
            (directory / SCENARIO).write_text(scenarios.dump(self.scenario, folder=directory), encoding="utf-8")
            self.cells.to_parquet(directory / "cells.parquet", index=False)
            if self.roads is not None:
                self.roads.to_parquet(directory / ROADS, index=False)
            if self.surroundings is not None:
                self.surroundings.to_parquet(directory / SURROUNDINGS, index=False)
            for name in (*TABLES, *OF_VEHICLES):
                table: pd.DataFrame | None = getattr(self, name)
                if table is not None:
                    table.to_parquet(directory / f"{name}.parquet", index=False)
            section = self.scenario.fcd
            if self.fcd is not None and section is not None:
                write_samples(self.fcd, directory, formats=section.formats, epoch_s=section.epoch_s(self.record.clock))
        self._write_facts(directory)

    def _write_facts(self, directory: Path) -> None:
        facts = self.facts
        facts["scenario_sha256"] = hashlib.sha256((directory / SCENARIO).read_bytes()).hexdigest()
        if self.stopwatch is not None:
            facts["wall_s"] = self.stopwatch.wall_s()
            facts["memory_bytes"] = {**facts["memory_bytes"], "peak": peak_memory_nbytes()}
        staged = directory / f"{COMPLETE}.partial"
        staged.write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        staged.replace(directory / COMPLETE)

    @property
    def facts(self) -> dict[str, Any]:
        """The record as it is written to `run.json`: dicts, lists, strings, numbers and None."""
        return self.record.model_dump(mode="json", by_alias=True, exclude_unset=True)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__}: {self.scenario.name}, seed {self.scenario.seed}, {self.record.queries} queries, "
            f"{len(self.cells)} cells, {len(self.record.mechanisms)} mechanisms>"
        )


def _tabulate_roads(roads: RoadNetwork) -> gpd.GeoDataFrame:
    """Return the links with what a map needs, in WGS84."""
    links = roads.links
    columns = {
        "link": np.arange(len(links), dtype=np.int32),
        "from_node": links.from_node,
        "to_node": links.to_node,
        "length_m": links.length_m,
        "speed_mps": links.speed_mps,
        "lanes": links.lanes,
    }
    return gpd.GeoDataFrame(columns, geometry=roads.shapes.lines(), crs=roads.crs).to_crs("EPSG:4326")


def _traffic_warnings(traffic: TrafficRecord) -> list[str]:
    """Return the warnings about the run's traffic, and about that of comparison engines, with their names."""
    comparisons = [
        f"{other.engine}, for comparison: {warning}" for other in traffic.beside for warning in warnings_in(other.notes)
    ]
    return [*warnings_in(traffic.notes), *comparisons]


def _republished(groups: Sequence[CampaignGroup]) -> list[str]:
    """Return a warning for each mechanism whose last release was published again at some queries."""
    warnings = []
    for group in groups:
        for name in group.adaptive:
            answers = [answer for query in group.queries for answer in query.answers if answer.mechanism == name]
            new = sum(answer.rounds[1].counted > 0 for answer in answers)
            if new < len(answers):
                warnings.append(
                    f"campaigns.{group.campaign}: {name} published new estimates at {new:,} of {len(answers):,} "
                    "queries and its last one again at all others; the standard error and interval of an estimate are "
                    "those of the query at which it was new, and do not cover what has changed since"
                )
    return warnings


def _unasked(scenario: Scenario, queries: Sequence[Query]) -> list[str]:
    """Return a warning for each campaign that asked no vehicle, for example because a recording is of another time."""
    asked: dict[str, list[int]] = {}
    for query in queries:
        asked.setdefault(query.campaign, []).append(int(query.truth.sum()) - scenario.population.outside)
    return [
        f"campaigns.{name}: no device was present at any of its {len(numbers):,} queries"
        for name, numbers in asked.items()
        if not any(numbers)
    ]
