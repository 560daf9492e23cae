"""Builds the roads of a scenario: generated, or read from files of any format."""

from dataclasses import replace
from functools import singledispatch

import scenarios
from scenarios import Scenario, ScenarioError
from scenarios import roads as sections
from scenarios.field_types import METRES, METRES_PER_SECOND, SECONDS, size_of
from simulator.experiment.assembly.engine import traffic_faults
from simulator.experiment.assembly.own_kinds import faults_of_files, same_keys, text_format
from simulator.experiment.assembly.sumo_traffic import sumo_classes
from simulator.files.errors import InputError
from simulator.files.messages import Note
from simulator.files.resources import shortage
from simulator.roads import RoadNetwork, build_grid
from simulator.roads.driving_side import side_of
from simulator.roads.plausibility import speed_warnings
from simulator.roads.raw_network import RawNetwork, build

_CROSSING_NBYTES = 7_000.0
"""Memory of a grid's crossing and its four links, bytes, measured on a grid of 160,000 crossings."""

Built = tuple[RoadNetwork | None, list[Note]]
"""The roads, or None, and notes on what was left out or filled in."""


@singledispatch
def roads_of(section: sections.RoadSection) -> Built:
    """Build or read the roads of a section, by the function for its class.

    Raises
    ------
    InputError
        If a file holds no usable network.
    """
    raise NotImplementedError(type(section).__name__)


def build_roads(scenario: Scenario) -> Built:
    """Build or read the roads of a city.

    Raises
    ------
    ScenarioError
        If the files hold no usable network.
    """
    section = scenario.roads
    if isinstance(section, sections.SumoRoads) and section.vehicle_class is None:
        try:
            section = section.model_copy(update={"vehicle_class": sumo_classes(scenario)})
        except InputError as error:
            raise ScenarioError(scenario.name, traffic_faults(scenario, error)) from error
    with faults_of_files(scenario, "roads"):
        return roads_of(section)


def _network(raw: RawNetwork, section: sections.PlacedRoads) -> Built:
    """Make a network of what a format holds; the section may state the driving side."""
    roads, report = build(replace(raw, driving_side=section.driving_side or raw.driving_side))
    return roads, report.notes()


@roads_of.register
def osm_roads(section: sections.OsmRoads) -> Built:
    """Read OpenStreetMap."""
    from simulator.formats.osm.roads import read_osm  # noqa: PLC0415 - of this format only

    path, given = scenarios.locate(section.path), same_keys(section, "crs", "capacity_vph", "driving_side")
    return _network(read_osm(path, **given), section)


@roads_of.register
def sumo_roads(section: sections.SumoRoads) -> Built:
    """Read a network of SUMO."""
    from simulator.formats.sumo.roads import read_sumo_net  # noqa: PLC0415 - of this format only

    raw = read_sumo_net(
        scenarios.locate(section.path),
        additional=None if section.additional is None else scenarios.locate(section.additional),
        anchor=None if section.anchor is None else (section.anchor.lon, section.anchor.lat),
        **same_keys(section, "vehicle_class", "capacity_vph", "keep"),
    )
    return _network(raw, section)


@roads_of.register
def tntp_roads(section: sections.TntpRoads) -> Built:
    """Read a network of the Transportation Networks test problems."""
    from simulator.formats.tntp.roads import read_tntp  # noqa: PLC0415 - of this format only

    raw = read_tntp(
        network=scenarios.locate(section.network),
        nodes=None if section.nodes is None else scenarios.locate(section.nodes),
        length_m=size_of(section.length_unit, METRES),
        time_s=size_of(section.time_unit, SECONDS),
        **same_keys(section, "crs", "project_to", "capacity_hours", "capacity_vph", "default_speed_mps"),
    )
    return _network(raw, section)


@roads_of.register
def matsim_roads(section: sections.MatsimRoads) -> Built:
    """Read a network of MATSim."""
    from simulator.formats.matsim.roads import read_matsim  # noqa: PLC0415 - of this format only

    path, given = scenarios.locate(section.path), same_keys(section, "crs", "project_to", "modes", "keep")
    return _network(read_matsim(path, **given), section)


@roads_of.register
def gmns_roads(section: sections.GmnsRoads) -> Built:
    """Read a network of GMNS."""
    from simulator.formats.gmns.roads import read_gmns  # noqa: PLC0415 - of this format only

    defaults = same_keys(section, "default_speed_mps", "default_lanes", "capacity_vph")
    raw = read_gmns(
        scenarios.locate(section.path, "folder"),
        length_m=None if section.length_unit is None else size_of(section.length_unit, METRES),
        speed_mps=None if section.speed_unit is None else size_of(section.speed_unit, METRES_PER_SECOND),
        **same_keys(section, "crs", "project_to", "coordinates", "modes", "keep"),
        **defaults,
    )
    return _network(raw, section)


@roads_of.register
def geopackage_roads(section: sections.GeoPackageRoads) -> Built:
    """Read a GeoPackage of nodes and links."""
    from simulator.formats.geo.geopackage import read_geopackage  # noqa: PLC0415 - of this format only

    return _network(read_geopackage(scenarios.locate(section.path)), section)


@roads_of.register
def line_roads(section: sections.LineRoads) -> Built:
    """Read roads drawn as lines."""
    from simulator.formats.geo.lines import read_lines  # noqa: PLC0415 - of this format only

    path, columns = scenarios.locate(section.path), section.columns.mapping()
    given = same_keys(section, "layer", "crs", "join_m", "along", "against", "classes")
    defaults = same_keys(section, "default_speed_mps", "default_lanes", "capacity_vph")
    return _network(read_lines(path, columns=columns, **given, **defaults), section)


@roads_of.register
def table_roads(section: sections.Tables) -> Built:
    """Read a table of nodes and a table of edges."""
    from simulator.formats.tables.roads import read_tables  # noqa: PLC0415 - of this format only

    raw = read_tables(
        nodes=scenarios.locate(section.nodes),
        edges=scenarios.locate(section.edges),
        columns=section.columns.mapping(),
        text=text_format(section),
        **same_keys(section, "crs", "default_speed_mps", "default_lanes", "capacity_vph"),
    )
    return _network(raw, section)


@roads_of.register
def none_roads(section: sections.NoRoads) -> Built:  # noqa: ARG001 - its class alone is used
    """Return no roads."""
    return None, []


@roads_of.register
def grid_roads(section: sections.GridSection) -> Built:
    """Generate a rectangular city."""
    spacing_x_m, spacing_y_m = section.spacings_m
    anchor = (section.anchor.lon, section.anchor.lat)
    crossings = section.rows * section.columns
    if problem := shortage(crossings * _CROSSING_NBYTES, to=f"generate a grid of {crossings:,} crossings"):
        raise InputError([f"rows × columns: {problem}"])
    avenues = ("avenue_speed_mps", "avenue_lanes", "one_way", "signals")
    options = same_keys(section, "rows", "columns", "speed_mps", "lanes", *avenues, "capacity_vph")
    roads = build_grid(spacing_x_m=spacing_x_m, spacing_y_m=spacing_y_m, anchor=anchor, **options)
    roads = replace(roads, side=side_of(roads.node_xy, roads.crs, section.driving_side))
    return roads, [*speed_warnings(roads.links.speed_mps, roads.links.length_m, file="the grid")]
