"""The engine for static owners: they arrive, stay and leave, and are counted."""

import numpy as np
import pytest
import simpy

from simulator.files.messages import texts_of
from simulator.roads.projection import crs_about
from simulator.traffic.clock import Clock
from simulator.traffic.engine import State
from simulator.traffic.recording import Recording, Replay, Sites


def sites(*of_owner):
    xy = np.array([[0.0, 0.0], [10.0, 5.0]])
    return Sites(["a", "b"], xy, crs_about((0.0, 0.0)), of_owner=np.array(of_owner, np.int32))


def at(engine, tick):
    env = simpy.Environment(initial_time=tick)
    engine.start(env)
    engine.advance()
    return engine.places()


def test_owners_without_times_are_always_present():
    engine = Replay(
        Recording.of_owners(sites(1, 0, 1), np.zeros(3), np.full(3, np.inf)), clock=Clock(1.0), duration_s=1e6
    )
    for tick in (0, 1000.5):
        places = at(engine, tick)
        assert places.state.tolist() == [State.ON_ROAD] * 3
        assert places.site.tolist() == [1, 0, 1]
        assert places.xy.tolist() == [[10.0, 5.0], [0.0, 0.0], [10.0, 5.0]]
        assert places.link.tolist() == [-1] * 3
    totals = engine.totals()
    assert (totals.departed, totals.on_road, totals.arrived, totals.waiting) == (3, 3, 0, 0)
    assert engine.speeds().tolist() == [0.0] * 3
    assert engine.vehicles == 3
    assert len(texts_of(engine.notes())) == 1


def test_owners_arrive_and_leave_at_their_times():
    arrive, leave = np.array([-5.0, 0.0, 10.0, 20.0]), np.array([5.0, 10.0, 20.0, np.inf])
    engine = Replay(Recording.of_owners(sites(0, 1, 1, 0), arrive, leave), clock=Clock(2.0), duration_s=1e6)
    on, gone = State.ON_ROAD, State.ARRIVED
    for tick, expected in (
        (0, [on, on]),
        (2.4, [on, on]),
        (2.5, [gone, on]),
        (5, [gone, gone, on]),
        (9.9, [gone, gone, on]),
        (10, [gone, gone, gone, on]),
        (1e6, [gone, gone, gone, on]),
    ):
        assert at(engine, tick).state.tolist() == expected
        totals = engine.totals()
        assert totals.departed == len(expected) == len(engine.speeds())
        assert totals.arrived == expected.count(gone)
        assert totals.departed == totals.waiting + totals.on_road + totals.arrived + totals.absent
    assert engine.totals().mean_trip_s == pytest.approx(10.0, rel=1e-12)
    assert len(texts_of(engine.notes())) == 1
    at(engine, 0)
    assert texts_of(engine.notes())[1] == "2 of 4 data owners come after the end of the run"
