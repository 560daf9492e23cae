"""The departures, link entries and arrivals that a run keeps give the place of every vehicle at any time."""

import numpy as np
import pytest
from test_engines_agree import drive_both

from simulator.roads import build_grid
from simulator.traffic import motion
from simulator.traffic.clock import Clock
from simulator.traffic.engine import State
from simulator.traffic.fleet import Fleet

STATES = {"departure": State.WAITING, "entry": State.ON_ROAD, "arrival": State.ARRIVED}


def _grid(rows, **options):
    size = {"rows": rows, "columns": rows, "spacing_x_m": 150.0, "spacing_y_m": 110.0}
    return build_grid(**size, speed_mps=7.0, lanes=1, **options)


@pytest.mark.parametrize("step_s", [0.5, 1.0])
def test_entries_give_the_places_of_the_engine_at_any_time(step_s):
    roads = _grid(4, capacity_vph=120.0)  # queues, and full links
    engines = drive_both(roads, vehicles=500, duration_s=600.0, step_s=step_s, stuck_s=30.0, seed=3)
    clock, takes_part, seen = Clock(step_s), np.arange(500) % 3 > 0, set()
    for time_s in (0.0, 40.0, 333.5, 590.0, 3000.0):
        tables = []
        for engine, env in engines:
            env.run(until=clock.ticks(time_s) + 0.25)
            engine.advance()
            table = motion.motion_of_entries(engine, clock, takes_part).entries
            tables.append(table)
            last = table.groupby("vehicle").tail(1)
            places, number = engine.places(), last["vehicle"].to_numpy()
            assert number.tolist() == list(range(len(places)))
            state = last["event"].astype(str).map(STATES).to_numpy()
            np.testing.assert_array_equal(state, places.state)
            np.testing.assert_array_equal(last["link"], places.link)
            share = (clock.seconds(env.now) - last["time_s"].to_numpy()) / roads.links.free_flow_s[last["link"]]
            expected = np.select([state == State.ON_ROAD, state == State.ARRIVED], [np.minimum(1.0, share), 1.0], 0.0)
            np.testing.assert_allclose(places.fraction, expected, atol=1e-5)  # the engine counts in 1/1024 tick
            seen |= set(state)
        assert tables[0].equals(tables[1])
        assert (tables[0]["takes_part"] == takes_part[tables[0]["vehicle"]]).all()
    assert seen == set(STATES.values())


def test_of_many_entries_those_of_every_nth_vehicle_are_kept(monkeypatch):
    roads = _grid(6)
    (whole, env), _ = drive_both(roads, vehicles=800, duration_s=300.0, step_s=1.0, stuck_s=30.0, seed=5)
    links = len(whole.routes.links)
    monkeypatch.setattr(motion, "MOST_ENTRIES", links / 3)
    every = motion.logged_every(whole.routes)
    assert every == 4
    part = Fleet(
        roads.links,
        whole._physics,
        whole.trips,
        whole.routes,
        clock=Clock(1.0),
        record_entries=every,
    )
    part.advance_to(250)
    whole.advance_to(250)
    everyone = np.ones(800, dtype=bool)
    kept, all_ = (motion.motion_of_entries(engine, Clock(1.0), everyone).entries for engine in (part, whole))
    assert kept.equals(all_[all_["vehicle"] % 4 == 0].reset_index(drop=True))
    del env
    with pytest.raises(ValueError, match="power of 2"):
        Fleet(roads.links, whole._physics, whole.trips, whole.routes, clock=Clock(1.0), record_entries=3)


def test_moments_are_whole_steps_and_places_have_a_limit():
    assert motion.moments_every_s(3600.0, step_s=1.0) == 10.0
    assert motion.moments_every_s(60.0, step_s=2.0) == 2.0
    assert motion.sampled_every(1000, 361) == 1
    assert motion.sampled_every(100_000, 361) == 10
