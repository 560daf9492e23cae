"""Runs a scenario: builds it, simulates it, attacks it and returns the result."""

import hashlib
import json
import math
import pickle
from collections.abc import Generator, Iterable, Mapping
from concurrent.futures import Executor
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import simpy

import scenarios
from scenarios import Overrides, Scenario, ScenarioError, kinds
from scenarios.run_clock import RunClock
from simulator.attacks.games import play_attacks
from simulator.attacks.records import record_campaigns
from simulator.experiment.assembly.attacks import most_corrupted
from simulator.experiment.assembly.behaviours import build_behaviour, check_behaviour, own_classes_warning
from simulator.experiment.assembly.campaigns import build_population
from simulator.experiment.assembly.demand import check_corrupted
from simulator.experiment.assembly.engine import build_beside, build_engine, build_samplers, traffic_faults
from simulator.experiment.assembly.own_kinds import check_own_kinds, faults_of_files, faults_of_own_kinds
from simulator.experiment.assembly.own_kinds import source_sha256 as module_sha256
from simulator.experiment.build_cache import default_folder, folder_fault, using_cache
from simulator.experiment.collect import collect
from simulator.experiment.components import RunComponents
from simulator.experiment.run_handle import RunHandle, UserProcess
from simulator.experiment.traffic_log import TrafficLog, drive_alone
from simulator.files.errors import InputError
from simulator.files.extras import recorded_extras
from simulator.files.resources import Stopwatch
from simulator.results.provenance import data_checksums, source_sha256, without_paths
from simulator.results.run import RunResult
from simulator.sensing.campaign import CampaignProcess, SensingContext, fleet_order
from simulator.sensing.device import Behaviour, World
from simulator.sensing.query import Memories, QueriedPopulation, Query
from simulator.traffic.clock import Clock, after_traffic
from simulator.traffic.engine import Engine
from simulator.traffic.fcd import Sampler


class ProgressReceiver(Protocol):
    """Receiver of the progress of a run.

    Attributes
    ----------
    clock
        The clock of the run, which is set once it is known.
    """

    clock: RunClock

    def phase(self, name: str, *, until_s: float | None = None) -> None:
        """Report that the phase `name` begins; `until_s` is the end of its simulated time, if it has any."""

    def advance_to(self, time_s: float) -> None:
        """Report that the simulation has reached `time_s`."""

    def warn(self, text: str) -> None:
        """Report what may mislead a reader of the result, and is known before traffic is simulated."""


class Silent:
    """A progress receiver that ignores all reports."""

    clock = RunClock()

    def phase(self, name: str, *, until_s: float | None = None) -> None:
        """Ignore that a phase begins."""

    def advance_to(self, time_s: float) -> None:
        """Ignore the time."""

    def warn(self, text: str) -> None:
        """Ignore a warning, which is in the result too."""


_BEATS = 100
_BEATS_A_LOCATION = 5
"""Vehicles are located in cells at every fifth of these moments: their share in no cell needs no more."""


def run_scenario(
    scenario: Scenario | str | Path,
    *,
    seed: int | None = None,
    overrides: Overrides = (),
    progress: ProgressReceiver | None = None,
    allow_plugins: bool = False,
    untrusted: bool = False,
    processes: Iterable[UserProcess] = (),
    behaviour: Behaviour | None = None,
    motion: bool = True,
    cached: bool = False,
    workers: Executor | None = None,
) -> RunResult:
    """Simulate a scenario.

    Parameters
    ----------
    scenario
        The name of a scenario shipped with crowdveil, a file, or a scenario already read.
    seed
        Replaces the scenario's seed.
    overrides
        Values that replace the scenario's, as in `scenarios.load`.
    progress
        Receives the progress of the run.
    allow_plugins, untrusted
        Permissions of the scenario, as in `scenarios.load`.
    processes
        Functions that take a `RunHandle` and return a generator: SimPy processes that run beside the campaigns.
    behaviour
        Devices and parties that do not follow the protocol.
    motion
        Keep where single vehicles are, unless the scenario forbids it; studies, which keep tables only, do not.
    cached
        Take the city and the trips from the cache of this process and its folder, if a run has built the same.
    workers
        Where batches of devices answer; None for this process. No number depends on it.

    Returns
    -------
    RunResult
        The complete content of the run directory.

    Raises
    ------
    ScenarioError
        If the scenario has faults, which are all listed, or `behaviour` names parties that do not exist.
    TypeError
        If `scenario` or `overrides` has a wrong type.
    """
    stopwatch = Stopwatch()
    with stopwatch.phase("build"):
        scenario = scenarios.load(
            scenario, overrides=overrides, seed=seed, allow_plugins=allow_plugins, untrusted=untrusted
        )
    with using_cache() if cached else nullcontext(), faults_of_own_kinds(scenario), recorded_extras() as extras:
        receiver, behaviour = progress or Silent(), behaviour or Behaviour()
        return _run(scenario, stopwatch, receiver, processes, behaviour, motion=motion, extras=extras, workers=workers)


def build_only(scenario: Scenario) -> None:
    """Build the components of a scenario, cities from the cache of this process, and simulate nothing.

    Raises
    ------
    ScenarioError
        For faults that no schema can detect.
    """
    with using_cache(), faults_of_own_kinds(scenario):
        RunComponents.build(scenario)


def cache_fault() -> str:
    """Return in words why the folder of the cache is not used; empty if it is."""
    return folder_fault(default_folder())


def setting_sha256(scenario: Scenario) -> str:
    """Return the sha256 of all that determines the numbers of a run, except its seed.

    It covers the resolved scenario, crowdveil's own source, the contents of data files, the files of the users' own
    classes, and the content of objects given in Python. The paths of files do not count, so that the same study has the
    same keys on another machine.

    Raises
    ------
    ScenarioError
        If the scenario names a class that may not be imported, or cannot be.
    InputError
        If an object's content cannot be read by `pickle`.
    """
    check_own_kinds(scenario)
    tables = scenario.model_dump(mode="json", by_alias=True, exclude={"scenario": {"seed", "description"}})
    facts = {
        "scenario": tables,
        "data": data_checksums(scenario),
        "source": source_sha256(),
        "plug_ins": {kind: _own_kind_sha256(at, kinds.load(role, kind)) for at, role, kind in scenario.own_kinds()},
    }
    text = json.dumps(without_paths(facts, scenario), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _own_kind_sha256(at: str, kind: Any) -> list[str | None]:
    """Return the hash of the file of a user's class, and of an object also the hash of its content."""
    if isinstance(kind, type):
        return [module_sha256(kind)]
    try:
        return [module_sha256(kind), hashlib.sha256(pickle.dumps(kind)).hexdigest()]
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        rule = "an object in a study must be one that pickle can read, so that its content is part of a point's key"
        raise InputError([f"{at}: {rule}: {error}"]) from error


def _run(
    scenario: Scenario,
    stopwatch: Stopwatch,
    progress: ProgressReceiver,
    processes: Iterable[UserProcess],
    behaviour: Behaviour,
    *,
    motion: bool,
    extras: set[str],
    workers: Executor | None,
) -> RunResult:
    """Simulate a checked scenario."""
    motion = motion and scenario.shows_vehicles
    with stopwatch.phase("build"):
        progress.phase("roads and cells")
        parts = RunComponents.build(scenario)
        check_behaviour(scenario, behaviour, parts.campaigns)
        for note in parts.warnings():
            progress.warn(str(note))
        with stopwatch.phase("compile"):
            parts.warm_up()
        progress.phase("demand and routes")
        city, streams, end_s = parts.city, parts.streams, parts.end_s
        beside = build_beside(scenario, city, end_s=end_s, streams=streams, stopwatch=stopwatch)
        # Built last: the engine may be a process, which must be ended even if an error occurs from here on.
        engine = build_engine(scenario, city, streams=streams, stopwatch=stopwatch, end_s=end_s, motion=motion)
    log = TrafficLog(scenario.traffic.engine, clock=parts.clock)
    try:
        samplers = build_samplers(scenario, city, engine, motion=motion)
        population = build_population(scenario, parts.rates, engine=engine, streams=streams)
        check_corrupted(scenario, vehicles=engine.vehicles)
        queries = _simulate(
            parts, engine, log, samplers, population, stopwatch, progress, processes, behaviour, workers
        )
    except InputError as error:
        raise ScenarioError(scenario.name, traffic_faults(scenario, error)) from error
    finally:
        engine.close()
    noticed = [note.at("traffic") for note in log.notes([*parts.notes, *engine.notes()])]
    traffic = log.record(noticed)
    noticed += own_classes_warning(behaviour)
    if beside is not None:
        progress.phase(f"the same vehicles by {beside.name}")
        with stopwatch.phase("beside"):
            alone, of_alone = drive_alone(*beside, clock=Clock(scenario.traffic.step_s), times_s=log.times_s)
        traffic = traffic.model_copy(update={"beside": [alone]})
        noticed += of_alone
    progress.phase("attacks")
    with stopwatch.phase("attacks"), faults_of_files(scenario, "attacks"):
        fleet = np.argsort(fleet_order(streams, engine.vehicles))
        records = record_campaigns(queries, parts.campaigns, fleet=fleet, centres=parts.city.centres)
        attacked = play_attacks(parts.attacks, records, streams=streams)
    progress.phase("scores and claims")
    with stopwatch.phase("scoring"):
        return collect(parts, engine, queries, attacked, traffic, noticed, population, samplers, stopwatch, extras)


def _simulate(
    parts: RunComponents,
    engine: Engine,
    log: TrafficLog,
    samplers: Mapping[str, Sampler | None],
    population: QueriedPopulation,
    stopwatch: Stopwatch,
    progress: ProgressReceiver,
    processes: Iterable[UserProcess],
    behaviour: Behaviour,
    workers: Executor | None,
) -> list[Query]:
    """Simulate traffic and campaigns, to the end of the run or the last deadline, whichever is later."""
    scenario, streams = parts.scenario, parts.streams
    clock, env = Clock(scenario.traffic.step_s), simpy.Environment()
    engine.start(env)
    for phase, sampler in samplers.items():
        if sampler is not None:
            sampler.start(env, stopwatch, phase=phase)
    queries: list[Query] = []
    reporting_outside = population.outside if population.answers == "reports" else 0
    devices = engine.vehicles + reporting_outside
    world = World(
        env,
        clock,
        build_behaviour(scenario, behaviour, devices=devices, streams=streams),
        devices=devices,
        engine=engine,
        roads=parts.city.roads if parts.city.has_roads else None,
        streams=streams,
        every=scenario.sensing.engine == "messages",
    )
    context = SensingContext(
        engine=engine,
        clock=clock,
        population=population,
        channel=parts.channel,
        memories=Memories(devices=devices, streams=streams),
        streams=streams,
        stopwatch=stopwatch,
        closed=queries.append,
        corrupted=most_corrupted(parts.attacks),
        world=world if world.acting.any() else None,
        workers=workers,
    )
    asking = {campaign.name: CampaignProcess(campaign, context) for campaign in parts.campaigns}
    for campaign in asking.values():
        env.process(campaign.run(env))
    end_s, handle = parts.end_s, RunHandle(env, context, asking, queries, parts)
    for process in processes:
        env.process(process(handle))
    progress.clock = parts.clock
    progress.phase("traffic and queries", until_s=end_s)

    def report_progress() -> Generator[simpy.Event, None, None]:
        """Log the traffic and report the time, a hundred times in all."""
        for beat in range(1, _BEATS + 1):
            at_s = end_s * beat / _BEATS
            yield after_traffic(env, clock.ticks(at_s))
            engine.advance()
            located = beat % _BEATS_A_LOCATION == 0
            log.take(at_s, engine, city=parts.city if located else None, states=population.answering)
            with stopwatch.phase("progress"):
                progress.advance_to(clock.seconds(env.now))

    env.process(report_progress())
    with stopwatch.phase("traffic"):
        # The next floating-point number: events at the end itself are processed, and no tick after the end is.
        env.run(until=math.nextafter(clock.ticks(end_s), math.inf))
        engine.advance()
    return queries
