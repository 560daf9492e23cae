"""Builds the detectors of a scenario, and the measured counts with which its run is compared."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import scenarios
from scenarios import Scenario
from scenarios.detectors import DetectorColumns
from scenarios.run_clock import RunClock
from simulator.experiment.assembly.cells import of_classes
from simulator.experiment.assembly.own_kinds import faults_of_files, file_format, same_keys
from simulator.files.errors import InputError
from simulator.files.messages import Note, notes_of
from simulator.files.tables import Table
from simulator.formats.recordings.measured_counts import read_counts, read_detectors, read_table
from simulator.roads import RoadNetwork


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
        classes = {data["link"]: data.get("class") for *_, data in roads.graph.edges(data=True)}
        allowed = of_classes([classes[link] for link in range(len(classes))], section.classes)
    if section.file is None:
        row = section.model_dump(include={"name", *DetectorColumns.model_fields}, exclude_none=True)
        table = Table.from_frame(pd.DataFrame([row]), title=f"detectors.{section.name}")
    else:
        columns = {} if section.columns is None else section.columns.mapping()
        table = read_table(scenarios.locate(section.file), columns=columns, format_=file_format(section))
    return read(table, roads, *clock, within_m=section.within_m, allowed=allowed, **reading)
