"""Builds the roads of a scenario, from any source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import scenarios
from scenarios.references import locate_folder
from scenarios.units import in_metres, in_mps, in_seconds
from simulator.files.errors import InputError
from simulator.files.memory import shortage
from simulator.roads import RoadNetwork, build_grid, read_tables
from simulator.roads.gmns import read_gmns
from simulator.roads.osm import read_osm
from simulator.roads.plausibility import speed_doubts
from simulator.roads.sumo import read_sumo_net
from simulator.roads.tntp import read_tntp
from simulator.roads.writers import read_geopackage, read_geoparquet


def geopackage_roads(section: Any) -> tuple[RoadNetwork, list[str]]:
    """Read a GeoPackage."""
    return _doubted(read_geopackage(scenarios.locate(section.path)), section)


def geoparquet_roads(section: Any) -> tuple[RoadNetwork, list[str]]:
    """Read a folder of GeoParquet."""
    return _doubted(read_geoparquet(locate_folder(section.path)), section)


def _doubted(roads: RoadNetwork, section: Any) -> tuple[RoadNetwork, list[str]]:
    return roads, [*speed_doubts(roads.links.speed_mps, roads.links.length_m, file=Path(section.path).name)]


def gmns_roads(section: Any) -> tuple[RoadNetwork, list[str]]:
    """Read a GMNS network as a section specifies; units that it omits are those of the folder's config table."""
    roads, report = read_gmns(
        locate_folder(section.path),
        crs=section.crs,
        project_to=section.project_to,
        length_m=None if section.length_unit is None else in_metres(section.length_unit),
        speed_mps=None if section.speed_unit is None else in_mps(section.speed_unit),
        modes=section.modes,
        default_speed_mps=section.default_speed_mps,
        default_lanes=section.default_lanes,
        capacity_vph=section.capacity_vph,
        keep=section.keep,
    )
    return roads, report.notes()


def osm_roads(section: Any) -> tuple[RoadNetwork, list[str]]:
    """Read ``[roads]`` with ``source = "osm"``.

    Returns
    -------
    roads : RoadNetwork
        Strongly connected network.
    notes : list of str
        What was left out or filled in, one sentence each.

    Raises
    ------
    InputError
        If the file holds no usable network.
    """
    roads, report = read_osm(scenarios.locate(section.path), crs=section.crs, capacity_vph=section.capacity_vph)
    return roads, report.notes()


def sumo_roads(section: Any) -> tuple[RoadNetwork, list[str]]:
    """Read ``[roads]`` with ``source = "sumo"``.

    Returns
    -------
    roads : RoadNetwork
        Network whose edges have the attribute ``sumo_edge``, SUMO's id.
    notes : list of str
        What was left out, one sentence each.

    Raises
    ------
    InputError
        If the file holds no usable network.
    """
    anchor = section.anchor
    roads, report = read_sumo_net(
        scenarios.locate(section.path),
        vehicle_class=section.vehicle_class,
        anchor=None if anchor is None else (anchor.lon, anchor.lat),
        capacity_vph=section.capacity_vph,
        keep=section.keep,
    )
    return roads, report.notes()


def tntp_roads(section: Any) -> tuple[RoadNetwork, list[str]]:
    """Read a TNTP network as a section specifies."""
    roads, report = read_tntp(
        network=scenarios.locate(section.network),
        nodes=scenarios.locate(section.nodes),
        length_m=in_metres(section.length_unit),
        time_s=in_seconds(section.time_unit),
        crs=section.crs,
        project_to=section.project_to,
        capacity_hours=section.capacity_hours,
        lane_capacity_vph=section.capacity_vph,
        default_speed_mps=section.default_speed_mps,
    )
    return roads, report.notes()


_CROSSING_NBYTES = 7_000.0
"""Memory of a grid's crossing and its four links, bytes, measured on a grid of 160,000 crossings."""

Built = tuple[RoadNetwork | None, list[str]]
"""The roads, or None, and notes on what was left out or filled in, one sentence each."""


def build_roads(section: Any) -> Built:  # a union discriminated by its source
    """Build or read the roads of a city.

    Raises
    ------
    InputError
        If the files hold no usable network.
    """
    return _SOURCES[section.source](section)


def _none(section: Any) -> Built:  # noqa: ARG001 - says it all
    return None, []


def _grid(section: Any) -> Built:
    spacing_x_m, spacing_y_m = section.spacings_m
    crossings = section.rows * section.columns
    if said := shortage(crossings * _CROSSING_NBYTES, to=f"lay a grid of {crossings:,} crossings"):
        raise InputError([f"rows × columns: {said}"])
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
