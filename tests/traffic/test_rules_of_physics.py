"""The rules of lanes and junctions against brute force, and what holds at any moment of any run."""

import itertools

import numpy as np
import pytest
from random_roads import random_case
from roads_by_hand import ENGINES

from simulator.traffic.physics import LONG_AGO, MOST_AHEAD, NEVER, accepted_gap, entry_slot, green_at, next_visit


@pytest.mark.parametrize("seed", range(20))
def test_green_is_the_first_moment_of_any_window_of_any_cycle(seed):
    rng = np.random.default_rng(seed)
    cycle, offset = int(rng.integers(5, 60)), int(rng.integers(0, 60))
    edges = np.sort(rng.permutation(cycle + 1)[: 2 * rng.integers(1, min(4, cycle // 2) + 1)])
    windows = np.column_stack([edges.reshape(-1, 2), rng.integers(1, 4, len(edges) // 2)]).astype(np.int32)
    padded = np.concatenate([[[0, 1, 1]], windows, [[0, 1, 1]]]).astype(np.int32)  # of other movements
    for time in range(offset, offset + 3 * cycle):
        for moment in itertools.count(time):
            phase = (moment - offset) % cycle
            rights = [right for begin, end, right in windows.tolist() if begin <= phase < end]
            if rights:
                break
        assert green_at(time, padded, 1, 1 + len(windows), cycle, offset) == (moment, rights[0])


def test_a_signal_without_windows_is_always_red():
    assert green_at(5, np.empty((0, 3), dtype=np.int32), 0, 0, 1, 0)[0] == NEVER


@pytest.mark.parametrize("seed", range(20))
def test_an_entry_leaves_a_headway_and_finds_a_hole(seed):
    """Of all times, the first that is a headway after the last entry, and a hole's time after the exit."""
    rng = np.random.default_rng(seed)
    last_in, headway, hole = rng.integers(0, 100), rng.integers(1, 50), rng.integers(0, 80)
    exit_before = int(rng.choice([LONG_AGO, rng.integers(0, 120)]))
    first = next(t for t in itertools.count() if t - last_in >= headway and t - exit_before >= hole)
    assert entry_slot(last_in, headway, 2, 3, hole, exit_before) == first
    assert entry_slot(last_in, headway, 3, 3, hole, exit_before) == NEVER
    assert entry_slot(last_in, headway, 4, 3, hole, exit_before) == NEVER


def test_the_accepted_gap_shrinks_in_proportion_to_the_wait():
    for gap, impatience in ((6144, 184320), (5, 7), (0, 1)):
        found = [accepted_gap(gap, waited, impatience) for waited in range(-5, impatience + 50)]
        assert found[0] == gap  # a wait that has not begun
        assert set(found[impatience + 5 :]) == {0}
        assert all(later <= earlier for earlier, later in itertools.pairwise(found))
        exact = [gap * (1 - waited / impatience) for waited in range(impatience)]
        np.testing.assert_allclose(found[5 : impatience + 5], exact, atol=1)


def test_the_next_visit_is_the_first_pass_at_or_after_a_time():
    for pass_bits, at in itertools.product((5, 8, 10), (0, 7, 1000)):
        length = 1 << pass_bits
        for time in range((at - 2) * length, (at + 70) * length, max(1, length // 7)):
            due = next(p for p in itertools.count(at + 1) if p * length >= time or p == at + MOST_AHEAD)
            assert next_visit(time, at, pass_bits) == due


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_vehicle_is_lost_and_none_is_too_many(engine, seed):
    """Vehicles that have departed wait, drive or have arrived; no lane holds more than its storage unless forced."""
    case = random_case(seed)
    built, env = case.started(engine)
    for tick in range(0, 400, 13):
        env.run(until=tick + 0.51)
        built.advance()
        totals = built.totals()
        assert totals.departed == np.searchsorted(case.trips.departure_tick, tick, side="right")
        assert totals.departed == totals.waiting + totals.on_road + totals.arrived
        found = built._survey()
        on_lanes = np.bincount(found.lane[found.state == 2], minlength=len(case.physics.lanes))
        assert (on_lanes - case.physics.lanes["storage"]).max() <= totals.stuck_released
        assert ((built.places().fraction >= 0) & (built.places().fraction <= 1)).all()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", [5, 6])
def test_a_run_is_the_same_twice_and_with_queries_in_between(engine, seed):
    logs = []
    for moments in ((400,), (400,), range(1, 401, 3)):
        built, env = random_case(seed).started(engine)
        for tick in moments:
            env.run(until=tick + 0.51)
            built.advance()
            built.places(), built.speeds(), built.log_by_vehicle()
        logs.append(built.log)
    np.testing.assert_array_equal(logs[0], logs[1])
    np.testing.assert_array_equal(logs[0], logs[2])
    assert len(logs[0]) > 100
