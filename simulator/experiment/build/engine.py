"""The engine a scenario names, with its traffic in it."""

from collections.abc import Mapping
from functools import partial
from typing import Protocol

from scenarios import Fault, Scenario, ScenarioError
from simulator.experiment.build.driven import build_driven
from simulator.experiment.build.static import build_static
from simulator.experiment.build.sumo_traffic import build_sumo, sumo_faults
from simulator.experiment.build.trace import build_trace
from simulator.experiment.city import City
from simulator.stopwatch import Stopwatch
from simulator.streams import Streams
from simulator.traffic.engine import Engine
from simulator.traffic.errors import TrafficError


class _Builder(Protocol):
    """Makes one kind of engine; its time goes to the stopwatch's phases."""

    def __call__(self, scenario: Scenario, city: City, *, streams: Streams, stopwatch: Stopwatch) -> Engine: ...


def build_engine(
    scenario: Scenario, city: City, *, streams: Streams, stopwatch: Stopwatch, end_s: float | None = None
) -> Engine:
    """Make what moves the vehicles; `end_s` is when the run ends, for SUMO, which counts departures in its files.

    Raises
    ------
    ScenarioError
        If the traffic cannot be had: no path between two places that a trip joins, a file that does not fit.
    """
    sumo = scenario.traffic.engine == "sumo"
    build = partial(build_sumo, end_s=end_s) if sumo else _ENGINES[scenario.traffic.engine]
    try:
        return build(scenario, city, streams=streams, stopwatch=stopwatch)
    except TrafficError as error:
        raise ScenarioError(scenario.name, traffic_faults(scenario, error)) from error


def traffic_faults(scenario: Scenario, error: TrafficError) -> list[Fault]:
    """Put the faults of an engine, or of what it was made of, under the keys of the scenario that cause them."""
    if scenario.traffic.engine == "sumo":
        return sumo_faults(scenario, error.faults)
    return [Fault("traffic", fault) for fault in error.faults]


def _driven(scenario: Scenario, city: City, *, streams: Streams, stopwatch: Stopwatch) -> Engine:
    return build_driven(scenario, city.roads, streams=streams, stopwatch=stopwatch)


_ENGINES: Mapping[str, _Builder] = {
    "fleet": _driven,
    "agents": _driven,
    "static": build_static,
    "trace": build_trace,
}
