"""Reactive routing in the compiled kernel and in the process-per-vehicle reference: exactly equal decisions."""

import numpy as np
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.files.messages import texts_of
from simulator.roads import build_grid
from simulator.traffic.agents import Agents
from simulator.traffic.clock import Clock
from simulator.traffic.demand.synthetic import draw_trips
from simulator.traffic.engine import State
from simulator.traffic.fleet import Fleet
from simulator.traffic.lanes import LinkPhysics
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.reactive import ReactiveRouting


def drive_both(roads, *, vehicles, every_s, share, seed, step_s=1.0, stuck_s=30.0, duration_s=120.0):
    clock, links = Clock(step_s), roads.links
    paths = ShortestPaths(links)
    trips = draw_trips(
        vehicles,
        links=links,
        paths=paths,
        demand="uniform",
        gravity_scale_s=600.0,
        departures="uniform",
        duration_s=duration_s,
        clock=clock,
        rng=np.random.default_rng(seed),
    )
    routes = paths.routes(trips.origin, trips.destination)
    physics = LinkPhysics.build(links, clock, stuck_s=stuck_s)
    engines = []
    for engine in (Fleet, Agents):
        reactive = ReactiveRouting(
            links, trips, clock=clock, every_s=every_s, share=share, rng=np.random.default_rng(seed + 1)
        )
        built = engine(links, physics, trips, routes, clock=clock, reactive=reactive, record_entries=True)
        env = simpy.Environment()
        built.start(env)
        engines.append((built, env))
    return engines


def assert_equal_at(engines, tick, roads):
    for engine, env in engines:
        env.run(until=tick + 0.51)
        engine.advance()
    fleet, agents = (engine for engine, _ in engines)
    np.testing.assert_array_equal(fleet.log, agents.log)
    totals = fleet.totals()
    assert totals == agents.totals()
    assert totals.departed == totals.waiting + totals.on_road + totals.arrived
    assert texts_of(fleet.notes()) == texts_of(agents.notes())
    np.testing.assert_array_equal(fleet.routes.offsets, agents.routes.offsets)
    np.testing.assert_array_equal(fleet.routes.links, agents.routes.links)
    ours, theirs = fleet.places(), agents.places()
    np.testing.assert_array_equal(ours.state, theirs.state)
    np.testing.assert_array_equal(ours.link, theirs.link)
    np.testing.assert_array_equal(ours.fraction, theirs.fraction)
    assert_drove_their_routes(fleet, roads)
    return totals


def assert_drove_their_routes(engine, roads):
    """Links of routes connect, and end at the trip's destination; a vehicle is on the link that it entered last."""
    routes, trips = engine.routes, engine.trips
    routes.check_connected(roads.links)
    np.testing.assert_array_equal(roads.links.to_node[routes.last], trips.destination)
    np.testing.assert_array_equal(roads.links.from_node[routes.first], trips.origin)
    places, entered = engine.places(), np.bincount(engine.entries[:, 0], minlength=len(trips))
    driving = np.flatnonzero(places.state == State.ON_ROAD)
    # The engine states the link from its queues, the log from the route and the number of entries.
    np.testing.assert_array_equal(places.link[driving], routes.links[routes.offsets[driving] + entered[driving] - 1])
    arrived = np.flatnonzero(places.state == State.ARRIVED)
    np.testing.assert_array_equal(entered[arrived], np.diff(routes.offsets)[arrived])


@settings(max_examples=15, deadline=None)
@given(
    rows=st.integers(2, 6),
    columns=st.integers(2, 6),
    spacing=st.floats(7.0, 400.0),
    speed=st.floats(3.0, 35.0),
    lanes=st.integers(1, 3),
    one_way=st.booleans(),
    capacity=st.floats(60.0, 4000.0),
    vehicles=st.integers(1, 600),
    step_s=st.sampled_from([0.5, 1.0, 2.0]),
    stuck_s=st.sampled_from([0.0, 5.0, 30.0]),
    every_s=st.sampled_from([2.0, 5.0, 17.0, 60.0]),
    share=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    seed=st.integers(0, 2**32),
)
def test_engines_agree_on_any_grid(
    rows, columns, spacing, speed, lanes, one_way, capacity, vehicles, step_s, stuck_s, every_s, share, seed
):
    roads = build_grid(
        rows=rows,
        columns=columns,
        spacing_x_m=spacing,
        spacing_y_m=spacing * 0.7,
        speed_mps=speed,
        lanes=lanes,
        one_way=one_way,
        capacity_vph=capacity,
        anchor=(0.0, 0.0),
    )
    engines = drive_both(
        roads, vehicles=vehicles, every_s=every_s, share=share, seed=seed, step_s=step_s, stuck_s=stuck_s
    )
    for tick in (0, 17, 60, 61, 400):
        assert_equal_at(engines, tick, roads)


@pytest.mark.parametrize("share", [1.0, pytest.param(0.2, marks=pytest.mark.slow)])
def test_engines_agree_in_a_jam(share):
    """Blocked heads, full turn words, vehicles waiting to enter: all reroute, and in large numbers."""
    roads = build_grid(
        rows=7,
        columns=7,
        spacing_x_m=90.0,
        spacing_y_m=90.0,
        speed_mps=13.9,
        lanes=1,
        capacity_vph=700.0,
        anchor=(0.0, 0.0),
    )
    engines = drive_both(roads, vehicles=5000, every_s=30.0, share=share, seed=5, duration_s=900.0)
    totals = [assert_equal_at(engines, tick, roads) for tick in (300, 601, 1200)]
    assert totals[-1].stuck_released > 10
    assert totals[1].waiting > 50


def test_engines_agree_at_nodes_with_many_links():
    """Positions are also read from words of 8-bit turn codes."""
    from roads_by_hand import network  # noqa: PLC0415 - a helper beside this file

    nodes = {0: (0.0, 0.0)} | {i: (100.0 * np.cos(i), 100.0 * np.sin(i)) for i in range(1, 21)}
    edges = [(0, i, {"length_m": 100.0}) for i in range(1, 21)]
    edges += [(i, 0, {"length_m": 100.0}) for i in range(1, 21)]
    edges += [(i, i % 20 + 1, {"length_m": 60.0}) for i in range(1, 21)]
    roads = network(nodes, edges)
    engines = drive_both(roads, vehicles=1500, every_s=10.0, share=0.7, seed=3, duration_s=300.0)
    assert_equal_at(engines, 700, roads)


def test_intermediate_queries_change_no_result():
    """A fleet that is queried every few ticks reroutes like one that runs without queries."""
    roads = build_grid(
        rows=4, columns=5, spacing_x_m=90.0, spacing_y_m=90.0, speed_mps=10.0, lanes=1, anchor=(0.0, 0.0)
    )
    (fleet, env), _ = drive_both(roads, vehicles=900, every_s=20.0, share=0.5, seed=9, duration_s=300.0)
    (other, _), _ = drive_both(roads, vehicles=900, every_s=20.0, share=0.5, seed=9, duration_s=300.0)
    for tick in range(0, 601, 7):
        env.run(until=tick + 0.51)
        fleet.advance()
        fleet.places()
    fleet.advance_to(602)
    other.advance_to(602)
    np.testing.assert_array_equal(fleet.log, other.log)
