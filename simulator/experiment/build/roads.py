"""Roads, by the sources a scenario names."""

from collections.abc import Callable, Mapping
from typing import Any

import scenarios
from simulator.experiment.build.geo_roads import geopackage_roads, geoparquet_roads
from simulator.experiment.build.gmns_roads import gmns_roads
from simulator.experiment.build.osm_roads import osm_roads
from simulator.experiment.build.sumo_roads import sumo_roads
from simulator.experiment.build.tntp_roads import tntp_roads
from simulator.files.memory import shortage
from simulator.roads import RoadNetwork, RoadsError, build_grid, read_tables
from simulator.roads.doubts import speed_doubts

_CROSSING_NBYTES = 7_000.0
"""Memory of a grid's crossing and its four links, measured on one of 160,000."""

Built = tuple[RoadNetwork | None, list[str]]
"""The roads, None where there are none, and what was left out or filled in, one sentence each."""


def build_roads(section: Any) -> Built:  # a union told apart by its source
    """Make or read the roads of a city.

    Raises
    ------
    RoadsError
        If the files hold no usable network.
    """
    return _SOURCES[section.source](section)


def _none(section: Any) -> Built:  # noqa: ARG001 - says it all
    return None, []


def _grid(section: Any) -> Built:
    spacing_x_m, spacing_y_m = section.spacings_m
    crossings = section.rows * section.columns
    if said := shortage(crossings * _CROSSING_NBYTES, to=f"lay a grid of {crossings:,} crossings"):
        raise RoadsError([f"rows × columns: {said}"])
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
    return roads, [*speed_doubts(roads.links.speed_mps, roads.links.length_m, file="the grid")]


def _tables(section: Any) -> Built:
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


_SOURCES: Mapping[str, Callable[[Any], Built]] = {
    "none": _none,
    "grid": _grid,
    "tables": _tables,
    "osm": osm_roads,
    "sumo": sumo_roads,
    "tntp": tntp_roads,
    "gmns": gmns_roads,
    "geopackage": geopackage_roads,
    "geoparquet": geoparquet_roads,
}
