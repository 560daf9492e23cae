"""The departures, link entries and arrivals that a run keeps give the place of every vehicle at any time."""

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from test_engines_agree import drive_both

from simulator.roads import build_grid
from simulator.traffic import motion
from simulator.traffic.clock import Clock
from simulator.traffic.engine import State
from simulator.traffic.fleet import Fleet
from simulator.traffic.physics import ONE_TICK

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
            table = motion.motion_of_entries(engine, clock, takes_part, engine.log_by_vehicle(), every=1).entries
            tables.append(table)
            last = table.groupby("vehicle").tail(1)
            places, number = engine.places(), last["vehicle"].to_numpy()
            assert number.tolist() == list(range(len(places)))
            state = last["event"].astype(str).map(STATES).to_numpy()
            np.testing.assert_array_equal(state, places.state)
            np.testing.assert_array_equal(last["link"], places.link)
            on_road = state == State.ON_ROAD
            np.testing.assert_allclose(places.fraction[~on_road], state[~on_road] == State.ARRIVED)
            expected = _places_by_hand(engine)
            assert expected.keys() == set(np.flatnonzero(on_road).tolist())
            np.testing.assert_allclose(places.fraction[on_road], list(expected.values()), atol=1e-4)
            seen |= set(state)
        assert tables[0].equals(tables[1])
        assert (tables[0]["takes_part"] == takes_part[tables[0]["vehicle"]]).all()
    assert seen == set(STATES.values())


def _places_by_hand(engine):
    """Place of each vehicle on the road, by its number, from the log and Newell's rule for one queue a link.

    A vehicle has driven freely since it entered, and is no further than k spacings before the end if the k-th vehicle
    ahead had not left k wave times ago, nor any j-th behind that one j wave times ago.
    """
    log, physics, now = engine.log_by_vehicle().tolist(), engine._physics, engine._now * ONE_TICK
    on_link = defaultdict(list)
    for row, following in pairwise([*log, [-1] * 4]):
        if row[1] >= 0:
            on_link[row[1]].append((row[3], row[0], following[3] if following[0] == row[0] else np.inf))
    places = {}
    for link, on in on_link.items():
        lane, stays = physics.lanes[link], sorted(on)
        wave = lane["hole"] / lane["storage"]
        for i, (entry, vehicle, left) in enumerate(stays):
            if left == np.inf:
                left_behind = (k for k in range(1, i + 1) if stays[i - k][2] <= now - k * wave)
                ahead, free = next(left_behind, i + 1) - 1, (now - entry) / lane["free"]
                places[vehicle] = max(0.0, min(free, 1.0 - ahead * physics.spacing[link]))
    return dict(sorted(places.items()))


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
    kept, of_all, all_ = (
        motion.motion_of_entries(engine, Clock(1.0), everyone, engine.log_by_vehicle(), every=n).entries
        for engine, n in ((part, 4), (whole, 4), (whole, 1))
    )
    assert kept.equals(all_[all_["vehicle"] % 4 == 0].reset_index(drop=True))
    assert kept.equals(of_all)
    del env
    with pytest.raises(ValueError, match="power of 2"):
        Fleet(roads.links, whole._physics, whole.trips, whole.routes, clock=Clock(1.0), record_entries=3)


def test_moments_are_whole_steps_and_places_have_a_limit():
    assert motion.moments_every_s(3600.0, step_s=1.0) == 10.0
    assert motion.moments_every_s(60.0, step_s=2.0) == 2.0
    assert motion.sampled_every(1000, 361) == 1
    assert motion.sampled_every(100_000, 361) == 10
