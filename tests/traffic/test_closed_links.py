"""Links closed for a time: equal in both engines, and kept by every vehicle."""

import numpy as np
import pytest
import simpy
from roads_by_hand import ENGINES, chain, network, routes_of

from simulator.files.messages import texts_of
from simulator.roads import build_grid
from simulator.traffic.clock import Clock
from simulator.traffic.demand.synthetic import draw_trips
from simulator.traffic.lanes import LinkPhysics
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.physics import ONE_TICK
from simulator.traffic.reactive import ReactiveRouting
from simulator.traffic.trips import Trips


def drive_random(seed, *, routing, step_s=1.0, closures=6):
    """Drive both engines over one random grid with random closures; return them, and the closures in ticks."""
    rng = np.random.default_rng(seed)
    roads = build_grid(
        rows=int(rng.integers(3, 6)),
        columns=int(rng.integers(3, 6)),
        spacing_x_m=float(rng.uniform(40, 120)),
        spacing_y_m=float(rng.uniform(40, 120)),
        speed_mps=10.0,
        lanes=1,
        capacity_vph=float(rng.uniform(400, 1800)),
        anchor=(0.0, 0.0),
    )
    links, clock = roads.links, Clock(step_s)
    paths = ShortestPaths(links)
    trips = draw_trips(
        int(rng.integers(200, 1500)),
        links=links,
        paths=paths,
        demand="uniform",
        gravity_scale_s=600.0,
        departures="uniform",
        duration_s=300.0,
        clock=clock,
        rng=rng,
    )
    routes = paths.routes(trips.origin, trips.destination)
    physics = LinkPhysics.build(links, clock, stuck_s=float(rng.choice([0.0, 5.0, 30.0])))
    closed = []
    for _ in range(closures):
        link, ask, start = int(rng.integers(len(links))), int(rng.integers(0, 200)), int(rng.integers(0, 60))
        closed.append((link, ask, ask + start, ask + start + int(rng.integers(2, 200))))
    again = closed[0]
    closed.append((again[0], again[1], again[2] + 1, again[3] + 40))  # overlaps the first one
    engines = []
    for engine in ENGINES:
        reactive = None
        if routing == "reactive":
            reactive = ReactiveRouting(
                links, trips, clock=clock, every_s=30.0, share=0.2, rng=np.random.default_rng(seed)
            )
        built = engine(links, physics, trips, routes, clock=clock, reactive=reactive, record_entries=True)
        env = simpy.Environment()
        built.start(env)
        engines.append((built, env))
    for link, ask, start, end in sorted(closed, key=lambda closure: closure[1]):
        for built, env in engines:
            if env.now < ask + 0.5:
                env.run(until=ask + 0.51)
            built.close_link(link, max(start, ask + 0.51) * step_s, end * step_s)
    return roads, engines, [(link, max(start, ask + 1), end) for link, ask, start, end in closed]


def ticks(entries):
    """Return the tick in which each entry happened: the first at or after its time."""
    return -(-entries[:, 3] // ONE_TICK)


def entries_while_closed(engine, closures):
    link, tick = engine.entries[:, 1], ticks(engine.entries)
    return sum(int(((link == at) & (tick >= start) & (tick < end)).sum()) for at, start, end in closures)


@pytest.mark.parametrize("routing", ["free_flow", "reactive"])
@pytest.mark.parametrize("seed", range(3))
def test_engines_agree_with_random_closures(seed, routing):
    roads, engines, closures = drive_random(seed, routing=routing, step_s=(1.0, 0.5)[seed % 2])
    for tick in (230, 231, 290, 400, 900):
        for engine, env in engines:
            env.run(until=tick + 0.51)
            engine.advance()
        fleet, agents = (engine for engine, _ in engines)
        np.testing.assert_array_equal(fleet.log, agents.log)
        totals = fleet.totals()
        assert totals == agents.totals()
        assert totals.departed == totals.waiting + totals.on_road + totals.arrived
        assert texts_of(fleet.notes()) == texts_of(agents.notes())
        np.testing.assert_array_equal(fleet.places().link, agents.places().link)
        np.testing.assert_array_equal(fleet.routes.links, agents.routes.links)
    fleet.routes.check_connected(roads.links)
    assert entries_while_closed(fleet, closures) == 0
    opened = {link: max(end for at, _, end in closures if at == link) for link, _, _ in closures}
    after = {
        link: ((fleet.entries[:, 1] == link) & (ticks(fleet.entries) >= end)).any() for link, end in opened.items()
    }
    assert any(after.values()), "some closed link is entered again"


def test_random_closures_would_be_entered_if_they_were_open():
    """The test above can fail: without closures, vehicles enter those links in those ticks."""
    _, _, closures = drive_random(3, routing="free_flow")
    _, engines, _ = drive_random(3, routing="free_flow", closures=1)
    (fleet, env), _ = engines
    env.run(until=900.5)
    fleet.advance()
    assert entries_while_closed(fleet, closures) > 0


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
    link = {pair: i for i, pair in enumerate(zip(roads.links.from_node, roads.links.to_node, strict=True))}
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
