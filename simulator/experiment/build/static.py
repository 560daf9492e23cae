"""Data owners that do not move, out of the table a scenario names."""

from typing import Any

import scenarios
from scenarios import Fault, Scenario, ScenarioError
from scenarios.units import in_seconds
from simulator.experiment.city import City
from simulator.roads import RoadNetwork
from simulator.stopwatch import Stopwatch
from simulator.streams import Streams
from simulator.traffic.clock import Clock
from simulator.traffic.engine import Engine
from simulator.traffic.static import FileFormat, Owners, Reading, Static


def read_static(section: Any, roads: RoadNetwork | None) -> Owners:  # a section of engine "static"
    """Read the table of owners, in the coordinate system of the roads where there are any.

    Raises
    ------
    TrafficError
        If it cannot be read as it should be.
    """
    reading = Reading(
        columns=section.columns.mapping(),
        format=file_format(section),
        crs=section.crs,
        window=section.window,
        duplicates=section.duplicates,
        fractions=section.fractions,
        one_per=section.one_per,
        start=section.start,
        time_unit_s=in_seconds(section.time_unit),
        dwell_s=section.dwell_s,
    )
    return Owners.from_file(scenarios.locate(section.owners), reading, crs=None if roads is None else roads.crs)


def file_format(section: Any) -> FileFormat:
    """Say how the file of a section is written."""
    return FileFormat(section.separator, section.header, section.where or {})


def build_static(scenario: Scenario, city: City, *, streams: Streams, stopwatch: Stopwatch) -> Engine:  # noqa: ARG001  as every engine's
    """Put the owners that were read with the city into an engine.

    Raises
    ------
    ScenarioError
        If a campaign asks for speeds, which nobody has.
    """
    owners = city.ground.recorded
    if not isinstance(owners, Owners):
        raise TypeError(f"a city of static traffic holds owners, got {owners!r}")
    faults = [
        Fault(
            f"campaigns.{campaign.name}.statistic",
            'must be "count" with engine = "static": data owners do not move, so they have no speed',
            campaign.statistic,
        )
        for campaign in scenario.campaigns
        if campaign.statistic != "count"
    ]
    if faults:
        raise ScenarioError(scenario.name, faults)
    return Static(owners, clock=Clock(scenario.traffic.step_s))
