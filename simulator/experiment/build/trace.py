"""A recording and its replay, of engine ``trace``."""

from pathlib import Path
from typing import Any

import scenarios
from scenarios import Scenario, ScenarioError
from scenarios.trace_traffic import MATCH_M, NOISE_M, TraceTraffic
from scenarios.units import in_seconds
from simulator.experiment.city import City
from simulator.roads import RoadNetwork
from simulator.stopwatch import Stopwatch
from simulator.streams import Streams
from simulator.traffic.clock import Clock
from simulator.traffic.engine import Engine
from simulator.traffic.trace import Matching, Recording, Replay, read_trace


def read_recording(section: Any, roads: RoadNetwork | None) -> Recording:
    """Read a trace, lay it on the ground of a city, and match it to the roads where that is asked.

    Raises
    ------
    TrafficError
        If it cannot be read, nothing of it is in the run, or it is not where the roads are.
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
    """Make the engine that replays the city's recording."""
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
