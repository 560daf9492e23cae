"""Run: from a scenario to its result."""

from collections.abc import Generator, Sequence
from pathlib import Path

import simpy

import scenarios
from scenarios import Fault, Scenario, ScenarioError
from simulator.experiment import build
from simulator.experiment.games.attack_records import attack_campaigns, most_targets
from simulator.experiment.network import build_channel
from simulator.experiment.parts import Parts
from simulator.experiment.progress import Progress, Silent
from simulator.experiment.refine import refine_queries
from simulator.experiment.result import RunResult
from simulator.sensing.campaign import Campaign, moments_of
from simulator.sensing.memories import Memories
from simulator.sensing.query import Query
from simulator.sensing.schedule import Schedule
from simulator.stopwatch import Stopwatch
from simulator.streams import Streams
from simulator.traffic.clock import Clock, look
from simulator.traffic.engine import Engine
from simulator.traffic.errors import TrafficError

_BEATS = 100
_HALF_A_TICK = 0.5


def run_scenario(
    scenario: Scenario | str | Path,
    *,
    seed: int | None = None,
    overrides: Sequence[str] = (),
    progress: Progress | None = None,
) -> RunResult:
    """Simulate a scenario.

    Parameters
    ----------
    scenario
        A shipped name, a file, or a scenario already read.
    seed
        Instead of the scenario's.
    overrides
        "a.b=v" each, as `--set` on the command line; not for a scenario already read.
    progress
        Told how far the run is.

    Returns
    -------
    RunResult
        Everything the run directory holds.

    Raises
    ------
    ScenarioError
        For whatever is wrong with the scenario, all of it at once.
    """
    stopwatch = Stopwatch()
    progress = progress or Silent()
    with stopwatch.phase("build"):
        progress.phase("roads and cells")
        if not isinstance(scenario, Scenario):
            scenario = scenarios.load(scenario, overrides=overrides, seed=seed)
        streams = Streams(scenario.seed)
        parts = Parts.build(scenario, streams=streams)
        with stopwatch.phase("compile"):
            parts.warm_up(scenario.name, streams)
        progress.phase("demand and routes")
        engine = build.build_engine(scenario, parts.city, streams=streams, stopwatch=stopwatch)
    try:
        queries = _simulate(scenario, parts, engine, streams, stopwatch, progress)
    except TrafficError as error:
        raise ScenarioError(scenario.name, [Fault("traffic", fault) for fault in error.faults]) from error
    finally:
        engine.close()
    progress.phase("attacks")
    with stopwatch.phase("attacks"):
        attacked = attack_campaigns(
            scenario, queries, parts.deployments, parts.mechanisms, releases=parts.releases, streams=streams
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
            stopwatch=stopwatch,
        )


def _simulate(
    scenario: Scenario,
    parts: Parts,
    engine: Engine,
    streams: Streams,
    stopwatch: Stopwatch,
    progress: Progress,
) -> list[Query]:
    """Let vehicles drive and campaigns ask, to the end of the run or the last deadline, whichever is later."""
    clock, mechanisms = Clock(scenario.traffic.step_s), parts.mechanisms
    env = simpy.Environment()
    engine.start(env)
    queries: list[Query] = []
    schedules = build.build_schedules(scenario)
    population, channel = (
        build.build_population(scenario, vehicles=engine.vehicles, streams=streams),
        build_channel(scenario),
    )
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
        ).start(env)
    moments = len(moments_of(mechanisms.values()))
    end_s = max(scenario.scenario.duration_s, *(_closing_s(schedule, moments) for schedule in schedules.values()))
    progress.phase("traffic and queries", until_s=end_s)
    env.process(_tell(env, clock, end_s, progress, stopwatch))
    with stopwatch.phase("traffic"):
        # Half a tick on, so that what looks at the very end comes before it.
        env.run(until=clock.ticks(end_s) + _HALF_A_TICK)
        engine.advance()
    return queries


def _closing_s(schedule: Schedule, moments: int) -> float:
    """Return when the last round of the last query closes."""
    start_s = schedule.start_s + (schedule.queries - 1) * schedule.every_s
    return start_s + (moments - 1) * schedule.round_gap_s + schedule.deadline_s


def _tell(
    env: simpy.Environment, clock: Clock, end_s: float, progress: Progress, stopwatch: Stopwatch
) -> Generator[simpy.Event, None, None]:
    """Tell `progress` the time, a hundred times in all."""
    for beat in range(1, _BEATS + 1):
        yield look(env, clock.ticks(end_s * beat / _BEATS))
        with stopwatch.phase("progress"):
            progress.advance_to(clock.seconds(env.now))
