"""Vehicle speeds against hand calculation; `drive` stops half a tick after the given tick."""

import numpy as np
import pytest
from roads_by_hand import ENGINES, chain, drive

both = pytest.mark.parametrize("engine", ENGINES)


@both
def test_speed_is_free_flow_then_the_average_of_the_link(engine):
    # 100 m at 10 m/s: 10 ticks; then 1800 / h releases one every 2 ticks. All enter at 0; they leave at 10, 12, 14.
    roads = chain({"length_m": 100.0}, {"length_m": 400.0, "speed_mps": 20.0})
    trips = [(0, [0, 1, 2])] * 3
    assert drive(engine, roads, trips, until=9).speeds().tolist() == [10.0, 10.0, 10.0]
    # At 10.5 the first has left and drives freely; the others have driven 100 m in 10.5 s and stand.
    np.testing.assert_allclose(drive(engine, roads, trips, until=10).speeds(), [20.0, 100 / 10.5, 100 / 10.5])
    np.testing.assert_allclose(drive(engine, roads, trips, until=11).speeds(), [20.0, 100 / 11.5, 100 / 11.5])
    # At 13.5 the second, which left at 12, drives freely; the third has taken 13.5 s.
    np.testing.assert_allclose(drive(engine, roads, trips, until=13).speeds(), [20.0, 20.0, 100 / 13.5])


@both
def test_vehicles_off_the_road_have_speed_zero(engine):
    # 15 m hold two: the third waits to enter; finally all have arrived.
    roads = chain({"length_m": 15.0}, {"length_m": 30.0})
    trips = [(0, [0, 1, 2])] * 3
    assert drive(engine, roads, trips, until=1).speeds().tolist() == [10.0, 10.0, 0.0]
    assert drive(engine, roads, trips, until=60).speeds().tolist() == [0.0, 0.0, 0.0]


@both
def test_half_second_ticks_and_links_shorter_than_a_tick(engine):
    # 7 m at 10 m/s take 0.7 s: two ticks of half a second; the link holds one vehicle and releases one in 6 s.
    roads = chain({"length_m": 7.0, "capacity_vph": 600.0}, {"length_m": 400.0})
    trips = [(0, [0, 1, 2]), (2, [0, 1, 2])]
    assert drive(engine, roads, trips, until=1, step_s=0.5).speeds().tolist() == [10.0]
    # It left at tick 2; the next enters at 3, when its space is free, and must wait: at 6.5 it has taken 1.75 s.
    late = drive(engine, roads, trips, until=6, step_s=0.5).speeds()
    np.testing.assert_allclose(late, [10.0, 7.0 / 1.75])
