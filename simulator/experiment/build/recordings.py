"""Builds recorded traffic: data owners that do not move, and replayed traces."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import scenarios
from scenarios import Fault, Scenario, ScenarioError
from scenarios.traffic import MATCH_M, NOISE_M, TraceTraffic
from scenarios.units import in_seconds
from simulator.experiment.study_area import City
from simulator.roads import RoadNetwork
from simulator.stopwatch import Stopwatch
from simulator.streams import Streams
from simulator.traffic.clock import Clock
from simulator.traffic.engine import Engine, RecordedTraffic
from simulator.traffic.static import FileFormat, OwnerOptions, Owners, Static
from simulator.traffic.trace import Matching, Recording, Replay, read_trace


def read_static(section: Any, roads: RoadNetwork | None) -> Owners:  # a section of engine "static"
    """Read the table of owners, in the coordinate system of the roads if there are roads.

    Raises
    ------
    InputError
        If it cannot be read as the section specifies.
    """
    reading = OwnerOptions(
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
    """Return the format of a section's file."""
    return FileFormat(section.separator, section.header, section.where or {})


def build_static(scenario: Scenario, city: City, *, streams: Streams, stopwatch: Stopwatch) -> Engine:  # noqa: ARG001  as every engine's
    """Build the engine of the data owners that were read with the city.

    Raises
    ------
    ScenarioError
        If a campaign asks for speeds, which data owners do not have.
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


def read_recording(section: Any, roads: RoadNetwork | None) -> Recording:
    """Read a trace, transform it to the coordinates of the city, and match it to the roads if requested.

    Raises
    ------
    InputError
        If it cannot be read, no part of it is within the run, or it does not overlap the roads.
    """
    trace = read_trace(
        [_located(reference) for reference in section.trace],
        format=section.format,
        columns=section.columns.mapping(),
        crs=section.crs,
        time_unit_s=None if section.time_unit is None else in_seconds(section.time_unit),
        order=section.order,
        one_vehicle_a_file=section.one_vehicle_a_file,
        time_format=section.time_format,
    )
    matching = None
    if section.match != "none":
        matching = Matching(section.match, section.match_m or MATCH_M, section.match_noise_m or NOISE_M)
    return Recording.build(trace, roads, gap_s=section.gap_s, start=section.start, matching=matching)


def build_trace(
    scenario: Scenario,
    city: City,
    *,
    streams: Streams,  # noqa: ARG001 - a recording draws nothing
    stopwatch: Stopwatch,  # noqa: ARG001 - its time goes to building the city
) -> Engine:
    """Build the engine that replays the city's recording."""
    recording, section = city.ground.recorded, scenario.traffic
    if not (isinstance(recording, Recording) and isinstance(section, TraceTraffic)):
        raise TypeError(f"engine trace needs a city with a Recording, received {recording!r}")
    return Replay(
        recording,
        roads=city.ground.roads,
        clock=Clock(section.step_s),
        duration_s=scenario.scenario.duration_s,
        gap_s=section.gap_s,
        hold_s=section.hold_s,
    )


def _located(reference: str) -> Path:
    try:
        return scenarios.locate_folder(reference)
    except ScenarioError:
        return scenarios.locate(reference)


def read_recorded(
    section: Any, roads: RoadNetwork | None
) -> RecordedTraffic | None:  # a union discriminated by its engine
    """Read the recording that a scenario's traffic replays; None if its engine simulates traffic.

    Raises
    ------
    InputError
        If the file cannot be read as the section specifies.
    """
    read = _RECORDED.get(section.engine)
    return None if read is None else read(section, roads)


_RECORDED: Mapping[str, Callable[[Any, RoadNetwork | None], RecordedTraffic]] = {
    "static": read_static,
    "trace": read_recording,
}
