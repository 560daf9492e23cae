"""Runs a scenario: builds it, simulates it, attacks it and returns the result."""

import math
from collections.abc import Generator
from pathlib import Path
from typing import Any, Protocol

import simpy

import scenarios
from scenarios import Overrides, Scenario, ScenarioError
from simulator.experiment import build
from simulator.experiment.attack_evaluation import (
    attack_campaigns,
    check_corrupted,
    most_corrupted,
    most_targets,
)
from simulator.experiment.build.servers import build_channel
from simulator.experiment.components import RunComponents
from simulator.experiment.refine import refine_queries
from simulator.experiment.result import RunResult
from simulator.experiment.traffic_log import TrafficLog, drive_alone
from simulator.extras import record_extras
from simulator.sensing.campaign import Campaign, moments_of
from simulator.sensing.device_state import Memories
from simulator.sensing.participants import Schedule
from simulator.sensing.query import Query
from simulator.stopwatch import Stopwatch
from simulator.streams import Streams
from simulator.traffic.agents import Agents
from simulator.traffic.clock import Clock, after_traffic
from simulator.traffic.engine import Engine
from simulator.traffic.errors import TrafficError
from simulator.traffic.fcd import Sampler
from simulator.traffic.fleet import Fleet


class Progress(Protocol):
    """Receiver of the progress of a run."""

    def phase(self, name: str, *, until_s: float | None = None) -> None:
        """Report that the phase `name` begins; `until_s` is the end of its simulated time, if it has any."""

    def advance_to(self, time_s: float) -> None:
        """Report that the simulation has reached `time_s`."""


class Silent:
    """A progress receiver that ignores all reports."""

    def phase(self, name: str, *, until_s: float | None = None) -> None:
        """Report that the phase `name` begins; `until_s` is the end of its simulated time, if it has any."""

    def advance_to(self, time_s: float) -> None:
        """Report that the simulation has reached `time_s`."""


_BEATS = 100


def run_scenario(
    scenario: Scenario | str | Path,
    *,
    seed: int | None = None,
    overrides: Overrides = (),
    progress: Progress | None = None,
    allow_plugins: bool = False,
    untrusted: bool = False,
) -> RunResult:
    """Simulate a scenario.

    Parameters
    ----------
    scenario
        The name of a scenario shipped with crowdveil, a file, or a scenario already read.
    seed
        Replaces the scenario's seed.
    overrides
        Values that replace those of the scenario, as in `scenarios.load`.
    progress
        Receives the progress of the run.
    allow_plugins, untrusted
        Permissions of the scenario, as in `scenarios.load`.

    Returns
    -------
    RunResult
        The complete content of the run directory.

    Raises
    ------
    ScenarioError
        If the scenario has faults; all of them are listed.
    TypeError
        If `scenario` or `overrides` has a wrong type.
    """
    stopwatch, extras = Stopwatch(), record_extras()
    progress = progress or Silent()
    with stopwatch.phase("build"):
        progress.phase("roads and cells")
        scenario = scenarios.load(
            scenario, overrides=overrides, seed=seed, allow_plugins=allow_plugins, untrusted=untrusted
        )
        streams = Streams(scenario.seed)
        parts = RunComponents.build(scenario, streams=streams)
        with stopwatch.phase("compile"):
            parts.warm_up(scenario.name, streams)
        progress.phase("demand and routes")
        end_s = _end_s(scenario, parts)
        beside = build.build_beside(scenario, parts.city, end_s=end_s, streams=streams, stopwatch=stopwatch)
        # Built last: the engine may be a process, which must be ended even if an error occurs from here on.
        engine = build.build_engine(scenario, parts.city, streams=streams, stopwatch=stopwatch, end_s=end_s)
    log = TrafficLog(scenario.traffic.engine)
    try:
        sampler = build.build_sampler(scenario, parts.city, engine)
        check_corrupted(scenario, vehicles=engine.vehicles)
        queries = _simulate(scenario, parts, engine, log, sampler, streams, stopwatch, progress)
    except TrafficError as error:
        raise ScenarioError(scenario.name, build.traffic_faults(scenario, error)) from error
    finally:
        engine.close()
    traffic = log.facts([*parts.notes, *engine.notes()])
    if beside is not None:
        progress.phase(f"the same vehicles by {beside.name}")
        with stopwatch.phase("beside"):
            clock = Clock(scenario.traffic.step_s)
            alone = drive_alone(beside.name, beside.engine, clock=clock, times_s=log.times_s)
        traffic["beside"] = [{**alone, "notes": [*beside.notes, *alone["notes"]]}]
    progress.phase("attacks")
    with stopwatch.phase("attacks"):
        attacked = attack_campaigns(
            scenario,
            queries,
            parts.deployments,
            parts.mechanisms,
            releases=parts.releases,
            vehicles=engine.vehicles,
            streams=streams,
        )
    progress.phase("scores and claims")
    with stopwatch.phase("scoring"):
        queries = refine_queries(parts.refinements, parts.mechanisms, queries)
        return RunResult.build(
            scenario,
            parts.city,
            parts.mechanisms,
            engine,
            queries,
            refinements=parts.refinements,
            releases=parts.releases,
            deployments=parts.deployments,
            attacked=attacked,
            traffic=traffic,
            warnings=parts.warnings(scenario),
            extras=extras,
            flow_check=_check_flows(parts, engine, stopwatch),
            fcd=None if sampler is None else sampler.samples(),
            stopwatch=stopwatch,
        )


def _check_flows(parts: RunComponents, engine: Engine, stopwatch: Stopwatch) -> dict[str, Any] | None:
    """Compare the run's link volumes with published ones, if the scenario names any."""
    if parts.flow_check is None or not isinstance(engine, Fleet | Agents):
        return None
    with stopwatch.phase("flow check"):
        return parts.flow_check.facts(engine)


def _simulate(
    scenario: Scenario,
    parts: RunComponents,
    engine: Engine,
    log: TrafficLog,
    sampler: Sampler | None,
    streams: Streams,
    stopwatch: Stopwatch,
    progress: Progress,
) -> list[Query]:
    """Simulate traffic and campaigns, to the end of the run or the last deadline, whichever is later."""
    clock, mechanisms = Clock(scenario.traffic.step_s), parts.mechanisms
    env = simpy.Environment()
    engine.start(env)
    if sampler is not None:
        sampler.start(env, stopwatch)
    queries: list[Query] = []
    schedules = build.build_schedules(scenario)
    population = build.build_population(scenario, vehicles=engine.vehicles, streams=streams)
    channel = build_channel(scenario)
    reporting_outside = population.outside if population.answers == "reports" else 0
    memories = Memories(mechanisms, devices=engine.vehicles + reporting_outside, streams=streams)
    for name, schedule in schedules.items():
        speeds = parts.releases[name].speeds
        Campaign(
            name,
            schedule=schedule,
            mechanisms=mechanisms if speeds is None else {speeds.mechanism: mechanisms[speeds.mechanism]},
            engine=engine,
            clock=clock,
            cells_of=parts.city.cells_of,
            population=population,
            channel=channel,
            deployment=parts.deployments[name],
            memories=memories,
            streams=streams,
            stopwatch=stopwatch,
            closed=queries.append,
            publications=parts.releases[name].publications,
            speeds=speeds,
            targets=most_targets(scenario, name),
            corrupted=most_corrupted(scenario),
        ).start(env)
    end_s = _end_s(scenario, parts)
    progress.phase("traffic and queries", until_s=end_s)
    env.process(_report_progress(env, clock, end_s, engine, log, progress, stopwatch))
    with stopwatch.phase("traffic"):
        # The next floating-point number: events at the end itself are processed, and no tick after the end is.
        env.run(until=math.nextafter(clock.ticks(end_s), math.inf))
        engine.advance()
    return queries


def _end_s(scenario: Scenario, parts: RunComponents) -> float:
    """Return the end of the run, or of the last query if that is later, in seconds."""
    moments = len(moments_of(parts.mechanisms.values()))
    closings = (_closing_s(schedule, moments) for schedule in build.build_schedules(scenario).values())
    return max(scenario.scenario.duration_s, *closings)


def _closing_s(schedule: Schedule, moments: int) -> float:
    """Return the time at which the last round of the last query closes, in seconds."""
    start_s = schedule.start_s + (schedule.queries - 1) * schedule.every_s
    return start_s + (moments - 1) * schedule.round_gap_s + schedule.deadline_s


def _report_progress(
    env: simpy.Environment,
    clock: Clock,
    end_s: float,
    engine: Engine,
    log: TrafficLog,
    progress: Progress,
    stopwatch: Stopwatch,
) -> Generator[simpy.Event, None, None]:
    """Log the traffic and report the time to `progress`, a hundred times in all."""
    for beat in range(1, _BEATS + 1):
        at_s = end_s * beat / _BEATS
        yield after_traffic(env, clock.ticks(at_s))
        engine.advance()
        log.take(at_s, engine)
        with stopwatch.phase("progress"):
            progress.advance_to(clock.seconds(env.now))
