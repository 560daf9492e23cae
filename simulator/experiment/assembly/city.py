"""Builds the study area of a scenario: roads from any source, recordings, and the cells over them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import scenarios
from scenarios import Fault, Scenario, ScenarioError
from scenarios.kinds import names_of
from scenarios.references import Reference
from scenarios.roads import ColumnNames, GridSection, NoRoads, RoadSection, SumoRoads, TextTables
from scenarios.section import Place
from scenarios.units import in_metres, in_mps, in_seconds
from simulator.cells import Partition
from simulator.experiment.assembly.cells import build_cells
from simulator.experiment.assembly.constructors import (
    constructor_of,
    faults_of_files,
    reader_of,
    same_keys,
    text_format,
)
from simulator.experiment.assembly.engine import read_recorded, traffic_faults
from simulator.experiment.assembly.sumo_traffic import sumo_classes
from simulator.experiment.memory_estimate import check_memory
from simulator.experiment.study_area import City, Ground, refuse_elsewhere
from simulator.files.errors import InputError
from simulator.files.messages import Note, notes_of, warnings_among
from simulator.files.resources import shortage
from simulator.roads import RoadNetwork, build_grid
from simulator.roads.driving_side import side_of
from simulator.roads.plausibility import speed_warnings
from simulator.roads.raw_network import RawNetwork, build

WIDEST_CITY_KM = 200.0
"""Extent greater than that of any metropolitan area; wider roads were more likely read in a wrong coordinate system."""


_CROSSING_NBYTES = 7_000.0
"""Memory of a grid's crossing and its four links, bytes, measured on a grid of 160,000 crossings."""

Built = tuple[RoadNetwork | None, list[Note]]
"""The roads, or None, and notes on what was left out or filled in."""


def build_roads(scenario: Scenario) -> Built:
    """Build or read the roads of a city.

    Raises
    ------
    ScenarioError
        If the files hold no usable network.
    """
    section = scenario.roads
    if isinstance(section, SumoRoads) and section.vehicle_class is None:
        try:
            section = section.model_copy(update={"vehicle_class": sumo_classes(scenario)})
        except InputError as error:
            raise ScenarioError(scenario.name, traffic_faults(scenario, error)) from error
    with faults_of_files(scenario, "roads"):
        built: Built = constructor_of("roads", section.source)(section)
        return built


def build_city(scenario: Scenario) -> City:
    """Build or read the roads and divide them into cells.

    Raises
    ------
    ScenarioError
        If the files hold no usable network, or the cells cannot be laid over it.
    """
    roads, noted = build_roads(scenario)
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
        partitions: dict[str, Partition] = {}
        for at, section in scenario.partitions:
            with faults_of_files(scenario, at):
                partitions[section.partition], cell_notes = build_cells(section, ground)
                notes += notes_of("cells", cell_notes, at)
                city = City(ground, partitions, tuple(notes))
                refuse_elsewhere(city.divided(section.partition), given=getattr(section, "crs", None))
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


_UNITS = {
    "length_unit": ("length_m", in_metres),
    "speed_unit": ("speed_mps", in_mps),
    "time_unit": ("time_s", in_seconds),
}
"""Keys of units to the keyword of a reader, and the conversion."""


def read_roads(section: RoadSection) -> Built:
    """Read files with the reader of their format, which takes the section's keys as keywords, and make a network."""
    read = cast("Callable[..., RawNetwork]", reader_of("roads", section.source))
    raw = read(**_keywords(section))
    roads, report = build(replace(raw, driving_side=getattr(section, "driving_side", None) or raw.driving_side))
    return roads, report.notes()


def _keywords(section: RoadSection) -> dict[str, Any]:
    """Return the keys of a section as keywords: files located, units as numbers, places as longitude and latitude."""
    keywords: dict[str, Any] = {"text": text_format(section)} if hasattr(section, "separator") else {}
    for key, value in section:
        if key in ("source", "flows", *TextTables.model_fields):
            continue
        if key == "driving_side" and section.source != "osm":
            continue  # only this reader counts lanes from a side
        if key in _UNITS:
            keyword, converted = _UNITS[key]
            keywords[keyword] = None if value is None else converted(value)
        elif isinstance(value, Reference):
            keywords[key] = scenarios.locate(value, "folder", "file")
        elif isinstance(value, Place):
            keywords[key] = (value.lon, value.lat)
        else:
            keywords[key] = value.mapping() if isinstance(value, ColumnNames) else value
    return keywords


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
    avenues = ("avenue_speed_mps", "avenue_lanes", "one_way", "signals")
    options = same_keys(section, "rows", "columns", "speed_mps", "lanes", *avenues, "capacity_vph")
    roads = build_grid(spacing_x_m=spacing_x_m, spacing_y_m=spacing_y_m, anchor=anchor, **options)
    roads = replace(roads, side=side_of(roads.node_xy, roads.crs, section.driving_side))
    return roads, [*speed_warnings(roads.links.speed_mps, roads.links.length_m, file="the grid")]
