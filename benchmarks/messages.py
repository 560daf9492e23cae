"""Devices a second of the message-level engine, two rounds over a lossy channel, beside whole batches of reports.

And the time in which devices of a fleet ask for their own places, each at a moment of its own.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import simpy
from timing import seconds, spread

import scenarios
from mechanisms.local import NoMemory, SamplingPrivacy
from simulator.aggregation.servers import Trusted
from simulator.experiment.assembly.city import build_city
from simulator.experiment.assembly.engine import build_engine
from simulator.files.resources import Stopwatch
from simulator.sensing.channel import Channel, ExponentialDelay
from simulator.sensing.device import Behaviour, World
from simulator.sensing.query import Respondents
from simulator.sensing.survey import Draws, Survey
from simulator.streams import Streams
from simulator.traffic.clock import Clock, after_traffic


def ask(env: simpy.Environment, make: Callable[..., Survey], devices: int) -> None:
    """Ask both rounds of Sampling Privacy, and close the query."""
    mechanism = SamplingPrivacy(cells=1_000, sampling=0.45)
    truth = np.random.default_rng(1).integers(1_001, size=devices).astype(np.int32)
    survey = make(
        mechanism,
        asked=Respondents.everyone(devices, 0),
        answers="auto",
        channel=Channel(ExponentialDelay(5.0), loss_one=0.1, loss_two=0.1),
        deadline_s=20.0,
        deployment=Trusted(),
        draws=Draws(*np.random.default_rng(2).spawn(5)),
        remember=lambda batch: NoMemory(batch.stop - batch.start),
    )
    everyone = Respondents(np.ones(devices, dtype=bool), 0)
    for round_ in (1, 2):
        env.run(until=after_traffic(env, 30.0 * round_))
        survey.ask(round_, moment=round_, at_s=env.now, truth=truth, present=everyone)
    env.run(until=after_traffic(env, env.now + 20.0))
    survey.close()


def ask_places(asked: int, *, vehicles: int = 100_000) -> float:
    """Return the seconds in which vehicles of `grid20` ask for their places, at different moments of 20 s."""
    scenario = scenarios.load("grid20", overrides=[f"traffic.vehicles={vehicles}"])
    end_s = scenario.scenario.duration_s
    streams, clock = Streams(scenario.seed), Clock(scenario.traffic.step_s)
    engine = build_engine(scenario, build_city(scenario), streams=streams, stopwatch=Stopwatch(), end_s=end_s)
    env, rng = simpy.Environment(), np.random.default_rng(1)
    engine.start(env)

    def device(number: int, asked_s: float) -> Iterator[simpy.Event]:
        yield after_traffic(env, clock.ticks(asked_s))
        engine.place_of(np.array([number]))

    env.run(until=after_traffic(env, clock.ticks(end_s - 20.0)))
    engine.advance()
    numbers, moments_s = rng.integers(len(engine.places()), size=asked), rng.uniform(end_s - 20.0, end_s, asked)
    for number, asked_s in zip(numbers, moments_s, strict=True):
        env.process(device(number, asked_s))
    return seconds(lambda: env.run(until=after_traffic(env, clock.ticks(end_s))), repetitions=1, warm_up=0)[0]


def main() -> None:
    """Measure both and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=20_000)
    parser.add_argument("--repetitions", type=int, default=7)
    chosen = parser.parse_args()

    def by_messages() -> None:
        env = simpy.Environment()
        world = World(env, Clock(), Behaviour(), devices=chosen.devices, every=True)
        ask(env, partial(Survey, world=world), chosen.devices)

    of_messages, of_batches = [], []
    for _ in range(chosen.repetitions):
        of_messages += seconds(by_messages, repetitions=1)
        of_batches += seconds(lambda: ask(simpy.Environment(), Survey, chosen.devices), repetitions=1)
    rate = chosen.devices / 1e6
    print(f"{chosen.devices:,} devices, two rounds")
    print(f"messages: {spread([rate / taken for taken in of_messages], unit='million devices/s', digits=3)}")
    print(f"batches : {spread([rate / taken for taken in of_batches], unit='million devices/s', digits=1)}")
    print(f"ratio   : {spread([b / a for a, b in zip(of_messages, of_batches, strict=True)], digits=4)}")
    ask_places(100)
    for asked in (10_000, 20_000, 40_000, 100_000):
        taken = ask_places(asked)
        print(f"{asked:,} places at as many moments: {taken:.1f} s, {taken / asked * 1e6:.0f} µs each")


if __name__ == "__main__":
    main()
