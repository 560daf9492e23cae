"""Builds the study area of a scenario: roads from any source, recordings, and the cells over them."""

from collections.abc import Sequence
from pathlib import Path

import scenarios
from scenarios import Fault, Scenario, ScenarioError
from scenarios.kinds import names_of
from scenarios.roads import (
    GeoPackageRoads,
    GeoParquetRoads,
    GmnsRoads,
    GridSection,
    NoRoads,
    OsmRoads,
    RoadSection,
    SumoRoads,
    Tables,
    TntpRoads,
)
from scenarios.units import in_metres, in_mps, in_seconds
from simulator.experiment.build.cells import build_cells
from simulator.experiment.build.constructors import constructor_of, faults_of_files, same_keys, text_format
from simulator.experiment.build.engine import read_recorded
from simulator.experiment.memory_estimate import check_memory
from simulator.experiment.study_area import City, Ground, refuse_elsewhere
from simulator.files.available_memory import shortage
from simulator.files.errors import InputError
from simulator.files.messages import Note, notes_of, warnings_among
from simulator.roads import RoadNetwork, build_grid, read_tables
from simulator.roads.plausibility import speed_warnings
from simulator.roads.projection import WGS84, project, transform, true_plane

WIDEST_CITY_KM = 200.0
"""Extent greater than that of any metropolitan area; wider roads were more likely read in a wrong coordinate system."""


_CROSSING_NBYTES = 7_000.0
"""Memory of a grid's crossing and its four links, bytes, measured on a grid of 160,000 crossings."""

Built = tuple[RoadNetwork | None, list[Note]]
"""The roads, or None, and notes on what was left out or filled in."""


def build_roads(section: RoadSection) -> Built:
    """Build or read the roads of a city.

    Raises
    ------
    InputError
        If the files hold no usable network.
    """
    built: Built = constructor_of("roads", section.source)(section)
    return built


def build_city(scenario: Scenario) -> City:
    """Build or read the roads and divide them into cells.

    Raises
    ------
    ScenarioError
        If the files hold no usable network, or the cells cannot be laid over it.
    """
    with faults_of_files(scenario, "roads"):
        roads, noted = build_roads(scenario.roads)
    notes = [note.at("roads") for note in noted]
    with faults_of_files(scenario, "traffic"):
        recorded = read_recorded(scenario, roads)
    if recorded is not None:
        notes += [note.at("traffic") for note in recorded.notes()]
    if roads is None and recorded is None:
        recorded_engines = " and ".join(names_of("engine", "recorded"))
        rule = f'engine "{scenario.traffic.engine}" needs roads: "none" can be used with engines {recorded_engines}'
        raise ScenarioError(scenario.name, [Fault("roads.source", rule, scenario.roads.source)])
    ground = Ground(roads, recorded)
    try:
        with faults_of_files(scenario, "cells"):
            cells, cell_notes = build_cells(scenario.cells, ground)
            city = City(ground, cells, (*notes, *notes_of("cells", cell_notes, "cells")))
            refuse_elsewhere(city, given=getattr(scenario.cells, "crs", None))
        check_memory(scenario, city)
    except ScenarioError as error:
        raise ScenarioError(scenario.name, [*_misplaced(scenario, ground, notes), *error.faults]) from None
    return city


def _misplaced(scenario: Scenario, ground: Ground, notes: Sequence[Note]) -> list[Fault]:
    """Return faults that name coordinates as the likely cause of too many cells.

    There are none unless there is a warning about coordinates, or they span more than a city.
    """
    x_min, y_min, x_max, y_max = ground.bounds
    width_km, height_km = (x_max - x_min) / 1000.0, (y_max - y_min) / 1000.0
    warnings = [note.text for note in warnings_among(notes) if note.code == "coordinates"]
    section, name = (scenario.traffic, "traffic") if ground.roads is None else (scenario.roads, "roads")
    if "crs" not in type(section).model_fields or not (warnings or max(width_km, height_km) > WIDEST_CITY_KM):
        return []
    given = " (not given: the default)" if "crs" not in section.model_fields_set else ""
    rule = (
        f"must be the system of the file's coordinates{given}; they span {width_km:,.4g} km by {height_km:,.4g} km, "
        "so that cells are too many"
    )
    crs = getattr(section, "crs", None)
    return [Fault(f"{name}.crs", rule, crs), *(Fault(name, warning) for warning in warnings)]


def geopackage_roads(section: GeoPackageRoads) -> Built:
    """Read a GeoPackage."""
    from simulator.roads.writers import read_geopackage  # noqa: PLC0415 - for roads of this source only

    return _with_warnings(read_geopackage(scenarios.locate(section.path)), section)


def geoparquet_roads(section: GeoParquetRoads) -> Built:
    """Read a folder of GeoParquet."""
    from simulator.roads.writers import read_geoparquet  # noqa: PLC0415 - for roads of this source only

    return _with_warnings(read_geoparquet(scenarios.locate(section.path, "folder")), section)


def _with_warnings(roads: RoadNetwork, section: GeoPackageRoads | GeoParquetRoads) -> Built:
    file, notes = Path(section.path).name, []
    if true_plane(roads.crs, transform(roads.crs, WGS84, roads.node_xy), what=file)[1]:  # else no copy of the graph
        graph = roads.graph.copy()
        notes = notes_of("plane", project(graph, None, what=file))
        roads = RoadNetwork.from_graph(graph)
    return roads, [*notes, *speed_warnings(roads.links.speed_mps, roads.links.length_m, file=file)]


def gmns_roads(section: GmnsRoads) -> Built:
    """Read a GMNS network as a section specifies; units that it omits are those of the folder's config table."""
    from simulator.roads.readers.gmns import read_gmns  # noqa: PLC0415 - for roads of this source only

    keys = ("crs", "project_to", "modes", "default_speed_mps", "default_lanes", "capacity_vph", "keep")
    roads, report = read_gmns(
        scenarios.locate(section.path, "folder"),
        length_m=None if section.length_unit is None else in_metres(section.length_unit),
        speed_mps=None if section.speed_unit is None else in_mps(section.speed_unit),
        **same_keys(section, *keys),
    )
    return roads, report.notes()


def osm_roads(section: OsmRoads) -> Built:
    """Read OpenStreetMap; the network is strongly connected."""
    from simulator.roads.readers.osm import read_osm  # noqa: PLC0415 - for roads of this source only

    roads, report = read_osm(scenarios.locate(section.path), crs=section.crs, capacity_vph=section.capacity_vph)
    return roads, report.notes()


def sumo_roads(section: SumoRoads) -> Built:
    """Read a SUMO network, whose edges have the attribute ``sumo_edge``, SUMO's id."""
    from simulator.roads.readers.sumo import read_sumo_net  # noqa: PLC0415 - for roads of this source only

    anchor = None if section.anchor is None else (section.anchor.lon, section.anchor.lat)
    options = same_keys(section, "vehicle_class", "capacity_vph", "keep")
    roads, report = read_sumo_net(scenarios.locate(section.path), anchor=anchor, **options)
    return roads, report.notes()


def tntp_roads(section: TntpRoads) -> Built:
    """Read a TNTP network as a section specifies."""
    from simulator.roads.readers.tntp import read_tntp  # noqa: PLC0415 - for roads of this source only

    roads, report = read_tntp(
        network=scenarios.locate(section.network),
        nodes=None if section.nodes is None else scenarios.locate(section.nodes),
        length_m=in_metres(section.length_unit),
        time_s=in_seconds(section.time_unit),
        lane_capacity_vph=section.capacity_vph,
        **same_keys(section, "crs", "project_to", "capacity_hours", "default_speed_mps"),
    )
    return roads, report.notes()


def none_roads(section: NoRoads) -> Built:  # noqa: ARG001 - every source's function has this parameter
    """Return no roads."""
    return None, []


def grid_roads(section: GridSection) -> Built:
    """Generate a rectangular city."""
    spacing_x_m, spacing_y_m = section.spacings_m
    anchor = (section.anchor.lon, section.anchor.lat)
    crossings = section.rows * section.columns
    if problem := shortage(crossings * _CROSSING_NBYTES, to=f"generate a grid of {crossings:,} crossings"):
        raise InputError([f"rows × columns: {problem}"])
    avenues = ("avenue_speed_mps", "avenue_lanes", "one_way")
    options = same_keys(section, "rows", "columns", "speed_mps", "lanes", *avenues, "capacity_vph")
    roads = build_grid(spacing_x_m=spacing_x_m, spacing_y_m=spacing_y_m, anchor=anchor, **options)
    return roads, [*speed_warnings(roads.links.speed_mps, roads.links.length_m, file="the grid")]


def tables_roads(section: Tables) -> Built:
    """Read a table of nodes and a table of edges."""
    nodes, edges = scenarios.locate(section.nodes), scenarios.locate(section.edges)
    options = same_keys(section, "crs", "default_speed_mps", "default_lanes", "capacity_vph")
    roads, report = read_tables(
        nodes=nodes, edges=edges, columns=section.columns.mapping(), text=text_format(section), **options
    )
    return roads, report.notes()
