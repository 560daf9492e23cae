"""Speeds against hand calculation: the distance of the last headway; `drive` stops 0.51 ticks after its tick."""

import pytest
from roads_by_hand import ENGINES, chain, drive

both = pytest.mark.parametrize("engine", ENGINES)


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
