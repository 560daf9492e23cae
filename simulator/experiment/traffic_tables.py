"""Tables of what vehicles did in a run: where single ones were, links by interval, trips, detectors, and the roads."""

from dataclasses import dataclass
from typing import Any, cast

import geopandas as gpd
import numpy as np
import pandas as pd

from simulator.arrays import Mask
from simulator.experiment.components import RunComponents
from simulator.roads import RoadNetwork
from simulator.roads.network import LINK_IDS
from simulator.traffic.clock import Clock
from simulator.traffic.detectors import detector_table
from simulator.traffic.engine import Engine
from simulator.traffic.fcd import Sampler
from simulator.traffic.link_intervals import LinkTables, Traversals, links_by_interval, recorded_trips, trip_table
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
