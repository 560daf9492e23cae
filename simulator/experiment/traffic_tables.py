"""Tables of what vehicles did in a run: where single ones were, links by interval, trips, detectors, and the roads."""

from dataclasses import dataclass
from typing import Any, cast

import geopandas as gpd
import numpy as np
import pandas as pd

from simulator.arrays import FloatArray, Mask
from simulator.cells import Partition, RoadSegments
from simulator.experiment.assembly.own_kinds import same_keys
from simulator.experiment.components import RunComponents
from simulator.experiment.study_area import City
from simulator.files.messages import Note, warning
from simulator.results.schema import TABLES
from simulator.results.tables import SIMULATED, geh
from simulator.roads import RoadNetwork
from simulator.roads.network import LINK_IDS
from simulator.traffic.clock import Clock
from simulator.traffic.engine import Engine
from simulator.traffic.fcd import Sampler
from simulator.traffic.link_intervals import (
    LinkTables,
    Traversals,
    detector_table,
    links_by_interval,
    passages,
    recorded_trips,
    trip_table,
)
from simulator.traffic.motion import Motion, logged_every, motion_of_entries, motion_of_places
from simulator.traffic.queue_engine import QueueEngine
from simulator.traffic.recording import Replay


@dataclass(frozen=True, eq=False)
class TrafficTables:
    """What vehicles did in a run.

    Attributes
    ----------
    motion
        Where single vehicles were.
    driven
        When each vehicle was on each link; None where links are not logged, or the engine has no queues.
    links, trips, detectors
        The tables of these names; None where the scenario asks for none.
    """

    motion: Motion
    driven: Traversals | None
    links: pd.DataFrame | None
    trips: pd.DataFrame | None
    detectors: pd.DataFrame | None


def tabulate_traffic(
    components: RunComponents, engine: Engine, takes_part: Mask, sampler: Sampler | None
) -> TrafficTables:
    """Return what vehicles did.

    Parameters
    ----------
    components
        The components of the run.
    engine
        The traffic engine, at the end of the run.
    takes_part
        (vehicles,) bool, whether each answers queries.
    sampler
        What recorded the places of vehicles of an engine without queues, where it was asked to.
    """
    scenario, interval_s = components.scenario, components.scenario.report.link_interval_s
    clock, motion, driven = Clock(scenario.traffic.step_s), Motion(), None
    links = trips = detectors = None
    if isinstance(engine, QueueEngine) and engine.record_entries:
        log = engine.log_by_vehicle()
        every = logged_every(engine.routes) if scenario.logs_links else engine.record_entries
        motion = motion_of_entries(engine, clock, takes_part, log, every=every)
        driven = Traversals.of(engine, clock, log) if scenario.logs_links else None
    elif sampler is not None:
        motion = motion_of_places(sampler, takes_part)
    if interval_s and (driven is not None or not isinstance(engine, QueueEngine)):
        links, trips = _link_tables(components, engine, driven, interval_s)
        trips["takes_part"] = takes_part[trips["vehicle"]]
        # A trip of a recorded vehicle is personal data; a sum over vehicles is not.
        trips = trips if scenario.shows_vehicles else None
    if driven is not None and components.detectors is not None:
        lengths_m = components.city.roads.links.length_m
        detectors = detector_table(driven, lengths_m, components.detectors, end_s=components.end_s)
    return TrafficTables(motion, driven, links, trips, detectors)


def _link_tables(
    components: RunComponents, engine: Engine, driven: Traversals | None, every_s: float
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tables `links` and `trips`, `trips` without `takes_part`; `driven` comes from the queue engine."""
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


def tabulate_roads(roads: RoadNetwork, engine: Engine) -> gpd.GeoDataFrame:
    """Return the links with what a map needs, in WGS84."""
    links = roads.links
    columns: dict[str, Any] = {
        "link": np.arange(len(links), dtype=np.int32),
        **same_keys(links, "from_node", "to_node", "length_m", "speed_mps", "lanes"),
    }
    if isinstance(engine, QueueEngine):
        columns["spacing_m"], columns["wave_s"] = engine.queues()
    edges = sorted((data for *_, data in roads.edges), key=lambda data: data["link"])
    for column, names in (("source_id", ("osm_ways", *LINK_IDS)), ("class", ("class",)), ("name", ("name",))):
        known = [next((str(data[name]) for name in names if data.get(name)), None) for data in edges]
        columns[column] = pd.Series(known, dtype="str")
    return gpd.GeoDataFrame(columns, geometry=roads.shapes.lines(), crs=roads.crs).to_crs("EPSG:4326")


def compare_counts(
    measured: pd.DataFrame, driven: Traversals, city: City, estimates: pd.DataFrame, scenario: Any, *, end_s: float
) -> tuple[pd.DataFrame, list[Note]]:
    """Compare measured values with what the run counted there, and with what mechanisms estimated.

    Parameters
    ----------
    measured
        `name`, `link`, `fraction`, `from_s`, `to_s`, `count` and `speed_mps` of each measured value.
    driven, end_s
        As for `passages`.
    city, scenario
        Of the run.
    estimates
        The table `estimates` of the run.

    Returns
    -------
    tuple
        The table `counts` of a run (docs/reference/columns.md), and notes on estimates that cannot be compared.
    """
    names = {"name": "place", "count": "measured_count", "speed_mps": "measured_speed_mps"}
    rows, length_m = measured.rename(columns=names), city.roads.links.length_m
    simulated = rows.join(passages(driven, length_m, rows, end_s=end_s)).assign(source=SIMULATED, campaign="")
    partition = next((name for name, cells in city.partitions.items() if isinstance(cells, RoadSegments)), None)
    cells, before = city.divided(partition).cells, 0 if partition is None else city.cells_before[partition]
    estimates = estimates.assign(cell=estimates["cell"] - before)
    estimates = estimates[estimates["cell"].between(1, cells.count)]
    statistic = estimates["campaign"].map({campaign.name: campaign.statistic for campaign in scenario.campaigns})
    counts, speeds = estimates[statistic == "count"], estimates[statistic == "mean_speed"]
    estimated, notes = _estimated(rows, length_m, cells, counts, speeds)
    share, scale = getattr(scenario.traffic, "share", 1.0), scenario.counts.scale
    if share < 1.0 == scale:
        text = f"traffic.share = {share:g} drives a part of the trips; with scale = {1 / share:.4g} they stand for all"
        notes = [*notes, warning("share_of_counts", text, "counts")]
    table = pd.concat([simulated, estimated], ignore_index=True)
    table["count"] *= scenario.counts.scale
    hours = (table["to_s"] - table["from_s"]) / 3600.0
    table["geh"] = geh(table["count"] / hours, table["measured_count"] / hours)
    table["position_m"] = table["fraction"] * length_m[table["link"]]
    return table[[column.name for column in TABLES["counts"].columns]], notes


def _estimated(
    rows: pd.DataFrame, length_m: FloatArray, cells: Partition, counts: pd.DataFrame, speeds: pd.DataFrame
) -> tuple[pd.DataFrame, list[Note]]:
    """Return counts and speeds by flow = density · speed, each averaged over the queries of an interval."""
    if not isinstance(cells, RoadSegments) or counts.empty or speeds.empty:
        needs = 'cells.kind = "roads", a campaign of counts and one of mean_speed: a flow is density times speed'
        return rows[:0], [
            Note("not_compared", f"counts: to compare estimates too, the run needs {needs}", where="counts")
        ]
    number = np.bincount(cells.cell_of_links, minlength=2)
    number[0] = 0
    cell = cells.cell_of_links[rows["link"]]
    asked = rows.assign(row=rows.index, cell=cell)[["row", "cell", "from_s", "to_s"]][number[cell] == 1]

    def means(table: pd.DataFrame, value: str, *keys: str) -> pd.DataFrame:
        at = asked.merge(table, on="cell")
        at = at[(at["time_s"] >= at["from_s"]) & (at["time_s"] < at["to_s"])]
        averaged: pd.DataFrame = at.groupby(["row", *keys], sort=False, observed=True)[value].mean().reset_index()
        return averaged

    both = means(counts, "scaled_estimate", "campaign", "mechanism").merge(
        means(speeds, "estimate", "campaign"), on="row", suffixes=("", "_of_speeds")
    )
    estimated = rows.loc[both["row"]].reset_index(drop=True)
    seconds, length = estimated["to_s"] - estimated["from_s"], length_m[estimated["link"]]
    estimated["count"] = both["scaled_estimate"] / length * both["estimate"] * seconds
    estimated["speed_mps"] = both["estimate"]
    estimated["source"] = both["mechanism"].astype("str")
    estimated["campaign"] = both["campaign"].astype("str") + ", " + both["campaign_of_speeds"].astype("str")
    lacking = len(rows) - both["row"].nunique()
    text = f"counts: {lacking:,} of {len(rows):,} measured values have no estimate beside them: no speed was published"
    notes = [Note("not_compared", f"{text} for their link, or both directions are one cell", where="counts")]
    return estimated, notes if lacking else []
