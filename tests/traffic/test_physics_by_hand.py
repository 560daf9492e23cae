"""Both engines against hand calculation.

H is the headway of a link, F its free-flow time, N its storage and B = N · H − F the time of a hole: a vehicle enters
no earlier than H after the one before it, and B after the exit of the one N places ahead. Times are exact to 1/1024 s.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_roads import random_case
from roads_by_hand import ENGINES, chain, drive, entry_times_s

from simulator.traffic.clock import Clock
from simulator.traffic.engine import State
from simulator.traffic.lanes import LinkPhysics
from simulator.traffic.physics import (
    LONG_AGO,
    MOST_AHEAD,
    NEVER,
    ONE_TICK,
    accepted_gap,
    entry_slot,
    green_at,
    next_visit,
)

both = pytest.mark.parametrize("engine", ENGINES)


def entries_of_link(driven, place, *, step_s=1.0):
    """When each vehicle entered the link at a place of its route, seconds, to a hundredth."""
    times = [entry_times_s(driven, v, step_s=step_s)[place] for v in range(driven.vehicles)]
    return pytest.approx(times, abs=0.01)


@both
def test_free_flow(engine):
    # 100 m and 250 m at 10 m/s: 10 and 25 s. Departure 3, entry 3, next link at 13, arrival at 38.
    roads = chain({"length_m": 100.0}, {"length_m": 250.0})
    at_37 = drive(engine, roads, [(3, [0, 1, 2])], until=37)
    assert entry_times_s(at_37, 0) == [3, 13]
    assert at_37.totals().on_road == 1
    at_38 = drive(engine, roads, [(3, [0, 1, 2])], until=38)
    assert (at_38.totals().on_road, at_38.totals().arrived, at_38.totals().link_crossings) == (0, 1, 2)


@both
def test_a_vehicle_is_moved_in_the_first_tick_after_it_is_ready(engine):
    # 143 m at 10 m/s are 14.3 s: still on the first link in tick 14, and since 14.3 on the next one in tick 15.
    roads = chain({"length_m": 143.0}, {"length_m": 100.0})
    assert entry_times_s(drive(engine, roads, [(0, [0, 1, 2])], until=14), 0) == [0]
    assert entry_times_s(drive(engine, roads, [(0, [0, 1, 2])], until=15), 0) == pytest.approx([0, 14.3], abs=0.001)


@both
def test_bottleneck_discharges_at_its_capacity(engine):
    # Link 0 has 3 lanes: H = 2/3 s at its entry and its end. Link 1 has one: H = 2 s.
    roads = chain({"length_m": 100.0, "lanes": 3}, {"length_m": 100.0}, {"length_m": 1000.0})
    done = drive(engine, roads, [(0, [0, 1, 2, 3])] * 8, until=60)
    assert entries_of_link(done, 0) == [k * 2 / 3 for k in range(8)]
    assert entries_of_link(done, 1) == [10 + 2 * k for k in range(8)]
    assert entries_of_link(done, 2) == [20 + 2 * k for k in range(8)]


@both
def test_idle_link_accumulates_no_discharge(engine):
    # The others arrive much later: they are neither released faster nor delayed; H = 2 s between them at the entry.
    roads = chain({"length_m": 100.0}, {"length_m": 400.0})
    done = drive(engine, roads, [(0, [0, 1, 2]), (50, [0, 1, 2]), (50, [0, 1, 2])], until=80)
    assert entries_of_link(done, 1) == [10, 60, 62]


@both
def test_origin_queue_waits_for_a_headway_and_for_a_place(engine):
    # Link 0 is 15 m: F = 1.5 s, H = 2 s, N = 2, B = 2.5 s. Link 1 takes one in 20 s: at 1.5, 21.5, 41.5 and 61.5.
    # Trips enter at 0; 2 and 4 (one H later; at 4 also B after the first exit); the fourth B after the exit at 21.5.
    roads = chain({"length_m": 15.0}, {"length_m": 1000.0, "capacity_vph": 180.0})
    early = drive(engine, roads, [(0, [0, 1, 2])] * 4, until=10)
    assert (early.totals().waiting, early.totals().on_road) == (1, 3)
    done = drive(engine, roads, [(0, [0, 1, 2])] * 4, until=70)
    assert entries_of_link(done, 0) == [0, 2, 4, 24]
    assert entries_of_link(done, 1) == [1.5, 21.5, 41.5, 61.5]


SPILLBACK = ({"length_m": 150.0}, {"length_m": 15.0}, {"length_m": 1000.0, "capacity_vph": 180.0})
"""Link 0: F = 15 s, H = 2 s. Link 1: F = 1.5 s, H = 2 s, N = 2, B = 2.5 s. Link 2 takes one vehicle in 20 s."""


@both
def test_spillback_across_a_node(engine):
    # The five enter link 0 at 0, 2 … 8, and are ready at 15, 17 … 23. Link 2 is entered at 16.5, 36.5 … 96.5.
    # v2 enters link 1 at 19 = B after the exit of v0. v3 is ready at 21 and enters B after the exit of v1: 39.
    # v4 follows B after the exit of v2: 59.
    done = drive(engine, chain(*SPILLBACK), [(0, [0, 1, 2, 3])] * 5, until=100)
    assert entries_of_link(done, 1) == [15, 17, 19, 39, 59]
    assert entries_of_link(done, 2) == [16.5, 36.5, 56.5, 76.5, 96.5]
    assert done.totals().stuck_released == 0


@both
def test_stuck_vehicle_is_forced_beyond_storage_and_counted(engine):
    # v3, first blocked at 21, is forced at 31. v4 is ready H later, at 33. The place that v1 leaves at 36.5 is no use:
    # link 1 still holds v2 and v3, its storage. v4 is forced at 43.
    done = drive(engine, chain(*SPILLBACK), [(0, [0, 1, 2, 3])] * 5, until=100, stuck_s=10)
    assert entries_of_link(done, 1) == [15, 17, 19, 31, 43]
    assert done.totals().stuck_released == 2


@both
def test_patience_of_zero_never_blocks(engine):
    done = drive(engine, chain(*SPILLBACK), [(0, [0, 1, 2, 3])] * 5, until=100, stuck_s=0)
    assert entries_of_link(done, 1) == [15, 17, 19, 21, 23]


@both
def test_first_in_first_out_by_departure_then_number(engine):
    roads = chain({"length_m": 7.5}, {"length_m": 1000.0})
    done = drive(engine, roads, [(0, [0, 1, 2]), (1, [0, 1, 2]), (1, [0, 1, 2]), (2, [0, 1, 2])], until=30)
    firsts = [entry_times_s(done, v)[0] for v in range(4)]
    assert firsts == sorted(firsts)
    assert len(set(firsts)) == 4


@both
def test_links_longer_than_the_calendar(engine):
    # 10 km at 10 m/s: 1,000 s, far beyond the 64 passes of the calendar; H = 2 s after the first.
    roads = chain({"length_m": 10_000.0}, {"length_m": 5_000.0})
    done = drive(engine, roads, [(7, [0, 1, 2]), (8, [0, 1, 2])], until=2000)
    assert entry_times_s(done, 0) == [7, 1007]
    assert entry_times_s(done, 1) == [9, 1009]


@both
def test_vehicle_positions(engine):
    # Link 0: F = 0.75 s, H = 2 s, N = 1, B = 1.25 s. It is entered at 0, 2, 4 and 6; v1 is on link 1 from 2.75 on.
    roads = chain({"length_m": 7.5}, {"length_m": 100.0, "speed_mps": 2.5})
    trips = [(0, [0, 1]), (0, [0, 1, 2]), (4, [0, 1]), (4, [0, 1])]
    assert drive(engine, roads, trips, until=5).places().state.tolist()[3] == State.WAITING
    here = drive(engine, roads, trips, until=13)
    places = here.places()
    assert places.state.tolist() == [State.ARRIVED, State.ON_ROAD, State.ARRIVED, State.ARRIVED]
    assert places.link.tolist() == [0, 1, 0, 0]
    assert places.fraction[1] == pytest.approx((13.51 - 2.75) / 40, abs=1e-4)
    xy = roads.locate(places.link, places.fraction)
    assert xy[1] - roads.node_xy[1] == pytest.approx([100.0 * (13.51 - 2.75) / 40, 0.0], abs=0.01)
    np.testing.assert_allclose(xy[0], roads.node_xy[1])


@both
def test_blocked_vehicles_stand_in_a_queue(engine):
    # At 30 v3 is blocked at the end of link 0 since 21, and v4 one spacing, 7.5 of 150 m, behind it.
    here = drive(engine, chain(*SPILLBACK), [(0, [0, 1, 2, 3])] * 5, until=30)
    assert here.places().link[3:].tolist() == [0, 0]
    assert here.places().fraction[3:].tolist() == pytest.approx([1.0, 1 - 7.5 / 150])


def test_physics_numbers():
    roads = chain({"length_m": 3.0}, {"length_m": 750.0, "lanes": 2}, {"length_m": 10.0, "capacity_vph": 3.6e9})
    physics = LinkPhysics.build(roads.links, Clock(1.0), stuck_s=30.2)
    assert physics.free.tolist() == [307, 75 * 1024, 1024]  # 0.3 s, 75 s and 1 s
    assert physics.lanes["storage"].tolist() == [1, 200, 1]
    assert physics.lanes["headway"].tolist() == [2048, 1024, 1]
    assert physics.lanes["hole"].tolist() == [2048 - 307, 200 * 1024 - 75 * 1024, 0]
    assert physics.rules.stuck_passes == 31 * physics.rules.passes
    with pytest.raises(ValueError, match="stuck_s must be at least 0, received -1"):
        LinkPhysics.build(roads.links, Clock(1.0), stuck_s=-1)


def speeds(*args, **options):
    return pytest.approx(drive(*args, **options).speeds().tolist(), abs=0.01)


@both
def test_speed_is_free_flow_and_falls_in_a_queue(engine):
    # Link 0: F = 10 s, H = 2 s, N = 13, B = 16 s, so a wave moves on by one vehicle, 7.5 m, in 16/13 = 1.23 s.
    # Link 1 takes one vehicle in 4 s. They enter link 0 at 0, 2, 4 and leave it at 10, 14, 18.
    roads = chain({"length_m": 100.0}, {"length_m": 400.0, "speed_mps": 20.0, "capacity_vph": 900.0})
    trips = [(0, [0, 1, 2])] * 3
    assert speeds(engine, roads, trips, until=9) == [10.0, 10.0, 10.0]
    # At 10.51 the first has left. The others are at 85.1 and 65.1 m, and drive freely.
    assert speeds(engine, roads, trips, until=10) == [20.0, 10.0, 10.0]
    # At 13.51 the second stands at the end, 100 m; at 11.51 it was at 95.1 m. The third stands at 92.5 m; at 11.51 it
    # was at 75.1 m.
    assert speeds(engine, roads, trips, until=13) == [20.0, 4.9 / 2, 17.4 / 2]
    # At 16.51 the third has been at the end since 15.23 = 14 + 1.23; at 14.51 it stood at 92.5 m.
    assert speeds(engine, roads, trips, until=16) == [20.0, 20.0, 7.5 / 2]


@both
def test_vehicles_off_the_road_have_speed_zero(engine):
    # They enter a headway of 2 s apart: two still wait; finally all have arrived.
    roads = chain({"length_m": 15.0}, {"length_m": 30.0})
    trips = [(0, [0, 1, 2])] * 3
    assert speeds(engine, roads, trips, until=0) == [10.0, 0.0, 0.0]
    assert drive(engine, roads, trips, until=60).speeds().tolist() == [0.0, 0.0, 0.0]


@both
def test_half_second_ticks_and_links_shorter_than_a_tick(engine):
    # Link 0: 7 m, F = 0.7 s, H = 6 s, N = 1, B = 5.3 s: entered at 0 and 6 s, left at 0.7 and 6.7 s, which are moved
    # in ticks 2 and 14 of half a second.
    roads = chain({"length_m": 7.0, "capacity_vph": 600.0}, {"length_m": 400.0})
    trips = [(0, [0, 1, 2]), (2, [0, 1, 2])]
    assert speeds(engine, roads, trips, until=0, step_s=0.5) == [10.0]
    # At 6.755 s the second is still at the end of link 0: 7 m in 0.755 s.
    assert speeds(engine, roads, trips, until=13, step_s=0.5) == [10.0, 7.0 / 0.755]
    assert speeds(engine, roads, trips, until=14, step_s=0.5) == [10.0, 10.0]


ROAD = ({"length_m": 100.0}, {"length_m": 50.0})
"""10 and 5 ticks of free flow, a vehicle every two seconds."""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("step_s", [0.5, 1.0])
def test_trip_time_is_in_seconds_and_without_arrivals_nan(engine, step_s):
    totals = drive(engine, chain(*ROAD), [(7, [0, 1, 2])], until=100, step_s=step_s).totals()
    assert totals.trip_time_s == totals.mean_trip_s == 15.0
    totals = drive(engine, chain(*ROAD), [(0, [0, 1, 2])], until=14, step_s=step_s).totals()
    assert (totals.arrived, totals.trip_time_s) == (0, 0.0)
    assert math.isnan(totals.mean_trip_s)


@pytest.mark.parametrize("engine", ENGINES)
def test_waiting_to_enter_counts_as_trip_time(engine):
    """A link for one vehicle: the second enters when the first has left, and takes as long.

    F = 10 s, H = 0.1 s, N = 1: a hole is there at once, as N · H < F. So they arrive at 10 and 20 s.
    """
    roads = chain({"length_m": 7.5, "speed_mps": 0.75, "capacity_vph": 36000.0})
    totals = drive(engine, roads, [(0, [0, 1]), (0, [0, 1])], until=60).totals()
    assert totals.arrived == 2
    assert totals.trip_time_s == 10 + 20


@settings(max_examples=30, deadline=None)
@given(
    departures=st.lists(st.integers(0, 40), min_size=1, max_size=40).map(sorted),
    length=st.floats(8.0, 200.0),
    capacity=st.floats(300.0, 4000.0),
    until=st.integers(0, 300),
)
def test_trip_times_equal_in_both_engines_and_from_entries(departures, length, capacity, until):
    roads = chain({"length_m": length}, {"length_m": 30.0, "capacity_vph": capacity}, {"length_m": 20.0})
    fleet, agents = (
        drive(engine, roads, [(tick, [0, 1, 2, 3]) for tick in departures], until=until) for engine in ENGINES
    )
    assert fleet.totals() == agents.totals()
    # Vehicles do not overtake on a chain, so arrivals follow from the entries: 2 s on the last link, a headway of 2 s
    # apart.
    last_pass = math.floor((until + 0.51) * fleet._physics.rules.passes) << fleet._physics.rules.pass_bits
    arrivals, free_at = [], 0
    for _, _, _, time in fleet.entries[fleet.entries[:, 1] == 2].tolist():
        leaves = max(time + 2 * ONE_TICK, free_at)
        arrivals.append(leaves)
        free_at = leaves + 2 * ONE_TICK
    arrivals = [time for time in arrivals if time <= last_pass]
    assert fleet.totals().arrived == len(arrivals)
    expected_s = sum(arrivals) / ONE_TICK - sum(departures[: len(arrivals)])
    assert fleet.totals().trip_time_s == pytest.approx(expected_s)


@pytest.mark.parametrize("seed", range(10))
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


@pytest.mark.parametrize("seed", range(10))
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
@pytest.mark.parametrize("seed", [1, 2])
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


@pytest.mark.parametrize(("engine", "seed"), [(ENGINES[0], 6), (ENGINES[1], 5)])
def test_a_run_is_the_same_twice_and_with_queries_in_between(engine, seed):
    logs = []
    for moments in ((400,), (400,), range(1, 401, 3)):
        built, env = random_case(seed, reactive=seed == 6).started(engine)
        for tick in moments:
            env.run(until=tick + 0.51)
            built.advance()
            built.places(), built.speeds(), built.log_by_vehicle()
        logs.append(built.log)
    np.testing.assert_array_equal(logs[0], logs[1])
    np.testing.assert_array_equal(logs[0], logs[2])
    assert len(logs[0]) > 100
