"""The fleet engine beside the agents engine, on the trips of `grid20`, in one run on one core."""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import simpy
from timing import spread

import scenarios
from simulator.experiment.assembly.city import build_city
from simulator.experiment.assembly.engine import build_engine, build_physics
from simulator.files.resources import Stopwatch
from simulator.streams import Streams
from simulator.traffic.agents import Agents
from simulator.traffic.clock import Clock
from simulator.traffic.fleet import Fleet


def crossings_per_second(engine: Fleet | Agents, *, ticks: int) -> tuple[float, int]:
    """Run the engine for `ticks` ticks and return the link crossings per second and their number."""
    env = simpy.Environment()
    engine.start(env)
    start = time.perf_counter()
    env.run(until=ticks + 0.5)
    engine.advance()
    taken = time.perf_counter() - start
    return engine.totals().link_crossings / taken, engine.totals().link_crossings


def build(*, vehicles: int, side: int = 20, signals: bool = False, hours: int = 1) -> tuple[Any, ...]:
    """Return the trips and routes of `grid20`, its links, a function that makes an engine, and the number of ticks."""
    changed = [f"traffic.vehicles={vehicles}", f"roads.rows={side}", f"roads.columns={side}"]
    changed += [f"roads.signals={str(signals).lower()}", f"scenario.duration_s={3600 * hours}"]
    scenario = scenarios.load("grid20", overrides=changed)
    city = build_city(scenario)
    end_s = scenario.scenario.duration_s
    built = build_engine(scenario, city, streams=Streams(scenario.seed), stopwatch=Stopwatch(), end_s=end_s)
    clock, links = Clock(scenario.traffic.step_s), city.roads.links
    physics = build_physics(scenario, city.roads, clock, stuck_s=scenario.traffic.stuck_s)

    def fresh(engine: type[Fleet] | type[Agents] = Fleet) -> Fleet | Agents:
        return engine(links, physics, built.trips, built.routes, clock=clock)

    return built, links, fresh, clock.whole_ticks(end_s)


def compare(other: Path, *, vehicles: int, side: int, signals: bool, turns: int = 5) -> None:
    """Run this benchmark and the benchmark of another version in turn, and print the ratio."""
    rates: list[list[float]] = [[], []]
    given = ["--vehicles", str(vehicles), "--side", str(side), "--repetitions", "3", "--agents", "0"]
    for _ in range(turns):
        for folder, found in zip((Path(__file__).parents[1], other.resolve()), rates, strict=True):
            more = ["--signals"] if signals else []
            output = subprocess.run(
                [sys.executable, "benchmarks/engines.py", *given, *more],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(folder)},
                check=True,
                capture_output=True,
                text=True,
            ).stdout
            line = next(line for line in output.splitlines() if line.startswith("fleet"))
            found.append(float(line.split(":")[1].split()[0]))
    ours, theirs = rates
    print(f"this : {spread(ours, unit='million link crossings/s')}")
    print(f"other: {spread(theirs, unit='million link crossings/s')}")
    print(f"ratio: {spread([a / b for a, b in zip(ours, theirs, strict=True)])}")


def main() -> None:
    """Measure both engines and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vehicles", type=int, default=100_000)
    parser.add_argument("--side", type=int, default=20, help="crossings a side of the grid")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--agents", type=int, default=2, help="repetitions of the slow reference; 0 for none")
    parser.add_argument("--signals", action="store_true", help="signals, lanes and gaps at every crossing")
    parser.add_argument("--beside", type=Path, help="folder of another version, whose benchmark runs in turn with this")
    chosen = parser.parse_args()
    if chosen.beside is not None:
        compare(chosen.beside, vehicles=chosen.vehicles, side=chosen.side, signals=chosen.signals)
        return

    built, links, fresh, ticks = build(vehicles=chosen.vehicles, side=chosen.side, signals=chosen.signals)
    crossings_per_second(fresh(Fleet), ticks=ticks)
    fleet, agents, count = [], [], 0
    for repetition in range(chosen.repetitions):
        rate, count = crossings_per_second(fresh(Fleet), ticks=ticks)
        fleet.append(rate)
        if repetition < chosen.agents:
            agents.append(crossings_per_second(fresh(Agents), ticks=ticks)[0])
    print(f"{chosen.vehicles:,} vehicles, {len(links):,} links, {count:,} link crossings")
    print(f"fleet : {spread([rate / 1e6 for rate in fleet], unit='million link crossings/s')}")
    if agents:
        print(f"agents: {spread([rate / 1e6 for rate in agents], unit='million link crossings/s', digits=3)}")
        ratios = [a / b for a, b in zip(fleet, agents, strict=False)]
        print(f"ratio : {spread(ratios, digits=0)}")
    nbytes = built.nbytes[0]
    print(f"memory: {nbytes / chosen.vehicles:.1f} bytes a vehicle beside its route")
    print(f"        {built.routes.nbytes / len(built.routes.links):.2f} bytes a link of a route, row index included")


if __name__ == "__main__":
    main()
