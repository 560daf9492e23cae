"""Links closed for a time: by hand in both engines, and on random roads, on which other tests compare the engines."""

from dataclasses import replace

import numpy as np
import pytest
import simpy
from random_roads import random_case
from roads_by_hand import ENGINES, chain, links_by_ends, network, routes_of

from simulator.files.messages import texts_of
from simulator.traffic.clock import Clock
from simulator.traffic.fleet import Fleet
from simulator.traffic.lanes import LinkPhysics
from simulator.traffic.physics import ONE_TICK
from simulator.traffic.reactive import ReactiveRouting
from simulator.traffic.trips import Trips


def ticks(entries):
    """Return the tick in which each entry happened: the first at or after its time."""
    return -(-entries[:, 3] // ONE_TICK)


def entries_of(case, closures):
    """Return how many vehicles of a random case enter links while these closures last, and after them."""
    fleet, env = case.started(Fleet)
    env.run(until=500.51)
    fleet.advance()
    link, tick, counts = fleet.entries[:, 1], ticks(fleet.entries), np.zeros(2, dtype=int)
    for at, start_s, end_s in closures:
        start, end = max(start_s / case.clock.step_s, 1.0), end_s / case.clock.step_s  # tick 0 cannot be closed
        counts += ((link == at) & (start <= tick) & (tick < end)).sum(), ((link == at) & (tick >= end)).sum()
    return counts


def test_no_vehicle_of_random_roads_enters_a_closed_link():
    """Forced vehicles and vehicles with new routes neither; without the closures, many would."""
    closed, opened = np.zeros(2, dtype=int), np.zeros(2, dtype=int)
    for seed in range(12):
        case = random_case(seed, reactive=seed % 5 == 4)
        closed += entries_of(case, case.closures)
        opened += entries_of(replace(case, closures=[]), case.closures)
    assert closed[0] == 0
    assert closed[1] > 50
    assert opened[0] > 50


def trips_of(*trips):
    """(origin, destination, tick) a trip."""
    return Trips(*(np.array(column, dtype=np.int32) for column in zip(*trips, strict=True)))


def started(engine, roads, trips, routes, *, stuck_s=5.0, every_s=None, share=0.0):
    clock, links = Clock(1.0), roads.links
    physics = LinkPhysics.build(links, clock, stuck_s=stuck_s)
    reactive = None
    if every_s is not None:
        reactive = ReactiveRouting(
            links, trips, clock=clock, every_s=every_s, share=share, rng=np.random.default_rng(1)
        )
    built = engine(links, physics, trips, routes_of(routes), clock=clock, reactive=reactive, record_entries=True)
    env = simpy.Environment()
    built.start(env)
    return built, env


def ticks_on(engine, link):
    return ticks(engine.entries)[engine.entries[:, 1] == link].tolist()


@pytest.mark.parametrize("engine", ENGINES)
def test_blocked_vehicles_wait_and_those_on_the_link_leave(engine):
    """Link 1 closes at tick 12, while vehicle 0 is on it; vehicle 1 waits before it, far longer than `stuck_s`."""
    roads = chain({"length_m": 100.0}, {"length_m": 100.0}, {"length_m": 100.0})
    trips = trips_of((0, 3, 0), (0, 3, 4), (1, 3, 15))
    driven, env = started(engine, roads, trips, [[0, 1, 2], [0, 1, 2], [1, 2]])
    env.run(until=5.5)
    driven.close_link(1, 12.0, 80.0)
    env.run(until=79.5)
    driven.advance()
    assert ticks_on(driven, 1) == [10]
    assert ticks_on(driven, 2) == [20]
    totals = driven.totals()
    assert (totals.waiting, totals.on_road, totals.arrived, totals.stuck_released) == (1, 1, 1, 0)
    env.run(until=200.5)
    driven.advance()
    # The trip that waits to enter, and the vehicle before the link, are a headway of 2 s apart; both have waited.
    assert ticks_on(driven, 1) == [10, 80, 82]
    assert driven.totals().arrived == 3
    assert texts_of(driven.notes()) == ["Link 1 was closed from 12 s to 80 s."]


@pytest.mark.parametrize("engine", ENGINES)
def test_time_until_forced_begins_at_the_reopening(engine):
    """Link 1 has one place, which vehicle 0 keeps: it waits before link 2, closed for longer than link 1."""
    roads = chain({"length_m": 50.0}, {"length_m": 7.5}, {"length_m": 50.0})
    trips = trips_of((0, 3, 0), (0, 3, 1))
    driven, env = started(engine, roads, trips, [[0, 1, 2], [0, 1, 2]], stuck_s=10.0)
    env.run(until=0.5)
    driven.close_link(2, 1.0, 100.0)
    driven.close_link(1, 8.0, 40.0)  # vehicle 1 has been blocked since tick 6
    env.run(until=150.5)
    driven.advance()
    assert ticks_on(driven, 1) == [5, 50], "full from tick 40, forced ten ticks later"
    assert driven.totals().stuck_released == 1


def square():
    """From node 0 to node 3 by node 1 (shorter) or node 2; node 4 is before node 0."""
    nodes = {0: (0.0, 0.0), 1: (100.0, 50.0), 2: (100.0, -50.0), 3: (200.0, 0.0), 4: (-100.0, 0.0)}
    edges = [(4, 0, 100.0), (0, 1, 100.0), (1, 3, 100.0), (0, 2, 150.0), (2, 3, 150.0)]
    return network(nodes, [(u, v, {"length_m": length}) for u, v, length in edges])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_reactive_vehicles_go_around_whatever_the_share(engine, share):
    roads = square()
    link = links_by_ends(roads)
    before, short, end = link[4, 0], link[0, 1], link[1, 3]
    trips = trips_of(*((4, 3, tick) for tick in range(0, 60, 2)))
    driven, env = started(engine, roads, trips, [[before, short, end]] * 30, every_s=20.0, share=share)
    env.run(until=1.5)
    driven.close_link(short, 15.0, 400.0)
    env.run(until=300.5)
    driven.advance()
    assert max(ticks_on(driven, short)) < 15
    assert min(ticks_on(driven, link[0, 2])) == 20, "the vehicle at the head turns at the first re-routing"
    assert driven.totals().arrived == 30


@pytest.mark.parametrize("engine", ENGINES)
def test_reactive_vehicles_without_another_path_stay(engine):
    roads = chain({"length_m": 100.0}, {"length_m": 100.0})
    driven, env = started(engine, roads, trips_of((0, 2, 0)), [[0, 1]], every_s=5.0)
    env.run(until=0.5)
    driven.close_link(1, 1.0, 60.0)
    env.run(until=100.5)
    driven.advance()
    assert ticks_on(driven, 1) == [60]


@pytest.mark.parametrize("engine", ENGINES)
def test_wrong_closures_are_refused(engine):
    driven, env = started(engine, chain({"length_m": 100.0}), trips_of((0, 1, 0)), [[0]])
    env.run(until=10.5)
    for link in (1, -1, "0", 0.0, True):
        with pytest.raises(KeyError, match=r"there is no link .*; links are 0 to 0"):
            driven.close_link(link, 20.0, 30.0)
    for from_s, to_s, rule in (
        (9.0, 30.0, r"from_s must be at least 10\.5, the current time, got 9"),
        (float("nan"), 30.0, "from_s must be at least"),
        (20.0, 20.0, "to_s must be a finite time after from_s = 20, got 20"),
        (20.0, float("inf"), "to_s must be a finite time after"),
        (10.5, 11.0, "to_s must be after 11, the first tick that can be closed, got 11"),
    ):
        with pytest.raises(ValueError, match=rule):
            driven.close_link(0, from_s, to_s)
    assert texts_of(driven.notes()) == []
