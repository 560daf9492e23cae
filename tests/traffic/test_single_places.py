"""A vehicle that is asked at a moment of its own costs itself, and not the fleet."""

import time

import numpy as np
import pytest
import simpy

from simulator.roads import build_grid
from simulator.traffic.clock import Clock
from simulator.traffic.fleet import Fleet
from simulator.traffic.lanes import LinkPhysics
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.recording import Recording, Replay, Tracks
from simulator.traffic.trips import Trips

VEHICLES, CLOCK = 100_000, Clock(1.0)


def fleet():
    roads = build_grid(rows=20, columns=20, spacing_x_m=200, spacing_y_m=200, speed_mps=13.9, lanes=2)
    rng = np.random.default_rng(1)
    origin = rng.integers(0, 400, VEHICLES).astype(np.int32)
    destination = ((origin + rng.integers(1, 400, VEHICLES)) % 400).astype(np.int32)
    trips = Trips(origin, destination, np.zeros(VEHICLES, dtype=np.int32))
    routes = ShortestPaths(roads.links).routes(origin, destination)
    return Fleet(roads.links, LinkPhysics.build(roads.links, CLOCK, stuck_s=30.0), trips, routes, clock=CLOCK)


def replay():
    rng = np.random.default_rng(1)
    fixes = np.tile(np.arange(50.0), (VEHICLES, 1)) * 20.0
    tracks = Tracks.straight(
        np.arange(VEHICLES + 1) * 50,
        fixes.ravel(),
        rng.uniform(0, 1e4, (VEHICLES * 50, 2)),
        np.full(VEHICLES * 50, np.nan),
        known=(fixes < 980.0).ravel(),
    )
    return Replay(Recording(None, tracks, fixes.ravel(), fixes[0], rule=None), clock=CLOCK, duration_s=1000.0)


@pytest.mark.slow
@pytest.mark.parametrize("make", [fleet, replay])
def test_the_time_for_places_is_linear_in_the_vehicles_asked_and_not_in_the_fleet(make):
    engine, env = make(), simpy.Environment()
    engine.start(env)

    def seconds_each(number, ask):
        """Ask at as many moments, all different, within the next ten ticks."""
        vehicles = np.random.default_rng(number).integers(0, VEHICLES, number)
        moments = np.linspace(env.now, env.now + 10.0, number + 1)[1:]
        start = time.process_time()
        for vehicle, moment in zip(vehicles, moments, strict=True):
            env.run(until=moment)
            ask(np.array([vehicle]))
        return (time.process_time() - start) / number

    def of_all(vehicle):
        engine.advance()
        return engine.places().of(vehicle)

    seconds_each(10, engine.place_of)
    few, many = (seconds_each(number, engine.place_of) for number in (2_000, 20_000))
    assert many < 2 * few
    assert many < seconds_each(20, of_all) / 20
