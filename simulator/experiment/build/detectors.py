"""Builds the detectors of a scenario, and the measured counts with which its run is compared."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import scenarios
from scenarios import Scenario
from scenarios.detectors import READER
from scenarios.kinds import import_dotted
from scenarios.run_clock import RunClock
from simulator.experiment.build.cells import of_classes
from simulator.experiment.build.constructors import faults_of_files, file_format, same_keys
from simulator.files.errors import InputError
from simulator.files.messages import Note, notes_of
from simulator.files.tables import Table
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
    placed, notes, faults = [], [], []
    with faults_of_files(scenario, "detectors"):
        for section in scenario.detectors:
            try:
                found, more = _read("read_detectors", section, roads)()
                placed.append(found.assign(every_s=section.every_s))
                notes += more
            except InputError as error:
                faults += error.faults
        if faults:
            raise InputError(faults)
        if not placed:
            return None, []
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
        read = _read("read_counts", section, roads)
        within = (heading.warmup_s, heading.duration_s)
        rows, notes = read(clock, within=within, known=detectors, **same_keys(section, "interval_s", "time_format"))
    return rows, notes_of("counts", notes, "counts")


def _read(function: str, section: Any, roads: RoadNetwork | None) -> Any:
    """Return a function of the reader with the table of a section, its roads, and the links that are near."""
    if roads is None:
        raise InputError(['needs links, and roads.source is "none"'])
    allowed = np.ones(len(roads.links), dtype=np.bool_)
    if section.classes is not None:
        classes = {data["link"]: data.get("class") for *_, data in roads.graph.edges(data=True)}
        allowed = of_classes([classes[link] for link in range(len(classes))], section.classes)
    if section.file is None:
        row = section.model_dump(
            include={"name", "link", "position_m", "fraction", "lon", "lat", "x", "y", "heading_deg"}
        )
        given = {key: value for key, value in row.items() if value is not None}
        table = Table.from_frame(pd.DataFrame([given]), title=f"detectors.{section.name}")
    else:
        columns = {} if section.columns is None else section.columns.mapping()
        read = import_dotted(f"{READER}:read_table")
        table = read(scenarios.locate(section.file), columns=columns, format_=file_format(section))
    return partial(import_dotted(f"{READER}:{function}"), table, roads, within_m=section.within_m, allowed=allowed)
