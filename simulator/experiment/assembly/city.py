"""Builds the study area of a scenario, roads and cells over them, with detectors and measured counts on its links."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

import scenarios
from scenarios import Fault, Scenario, ScenarioError
from scenarios.detectors import DetectorColumns
from scenarios.kinds import names_of
from scenarios.run_clock import RunClock
from simulator.cells import Partition
from simulator.experiment.assembly.cells import build_cells, of_classes
from simulator.experiment.assembly.engine import read_recorded
from simulator.experiment.assembly.own_kinds import faults_of_files, file_format, same_keys
from simulator.experiment.assembly.roads import build_roads
from simulator.experiment.memory_estimate import check_memory
from simulator.experiment.study_area import City, Ground, refuse_elsewhere
from simulator.files.errors import InputError
from simulator.files.messages import Note, notes_of, warnings_among
from simulator.files.tables import Table
from simulator.formats.recordings.measured_counts import read_counts, read_detectors, read_table
from simulator.roads import RoadNetwork

WIDEST_CITY_KM = 200.0
"""Extent greater than any metropolitan area's; wider roads were more likely read in a wrong coordinate system."""


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


def build_detectors(scenario: Scenario, roads: RoadNetwork | None) -> tuple[pd.DataFrame | None, list[Note]]:
    """Put the detectors of a scenario on links.

    Returns
    -------
    tuple
        `name`, `link`, `fraction` and `every_s` of each, None if there are none; and notes on what was left out.

    Raises
    ------
    ScenarioError
        If a detector cannot be put on a link, or two have one name.
    """
    if not scenario.detectors:
        return None, []
    placed, notes, faults = [], [], []
    with faults_of_files(scenario, "detectors"):
        for section in scenario.detectors:
            try:
                found, more = _read(read_detectors, section, roads)
                placed.append(found.assign(every_s=section.every_s))
                notes += more
            except InputError as error:
                faults += error.faults
        if faults:
            raise InputError(faults)
        detectors = pd.concat(placed, ignore_index=True)
        if (again := detectors["name"].duplicated()).any():
            raise InputError([f"names must differ, and {detectors['name'][again].iloc[0]!r} occurs twice"])
    return detectors, notes_of("detectors", notes, "detectors")


def build_counts(
    scenario: Scenario, roads: RoadNetwork | None, clock: RunClock, detectors: pd.DataFrame | None
) -> tuple[pd.DataFrame | None, list[Note]]:
    """Read the measured counts of a scenario.

    Returns
    -------
    tuple
        The values measured within the run, None if the scenario has none; and notes on what was left out.

    Raises
    ------
    ScenarioError
        If the table cannot be used, or has no interval within the run.
    """
    section, heading = scenario.counts, scenario.scenario
    if section is None:
        return None, []
    with faults_of_files(scenario, "counts"):
        reading = {"within": (heading.warmup_s, heading.duration_s), "known": detectors}
        reading |= same_keys(section, "interval_s", "time_format")
        rows, notes = _read(read_counts, section, roads, clock, **reading)
    return rows, notes_of("counts", notes, "counts")


def _read(read: Callable[..., Any], section: Any, roads: RoadNetwork | None, *clock: RunClock, **reading: Any) -> Any:
    """Call a reader on the table of a section, the roads, and the links that are near."""
    if roads is None:
        raise InputError(['needs links, and roads.source is "none"'])
    allowed = np.ones(len(roads.links), dtype=np.bool_)
    if section.classes is not None:
        allowed = of_classes(roads.classes, section.classes)
    if section.file is None:
        row = section.model_dump(include={"name", *DetectorColumns.model_fields}, exclude_none=True)
        table = Table.from_frame(pd.DataFrame([row]), title=f"detectors.{section.name}")
    else:
        columns = {} if section.columns is None else section.columns.mapping()
        table = read_table(scenarios.locate(section.file), columns=columns, format_=file_format(section))
    return read(table, roads, *clock, within_m=section.within_m, allowed=allowed, **reading)
