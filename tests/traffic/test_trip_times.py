"""Trip times: from departure to arrival, including waiting to enter, equal in both engines."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from roads_by_hand import ENGINES, chain, drive

from simulator.traffic.physics import ONE_TICK

ROAD = ({"length_m": 100.0}, {"length_m": 50.0})
"""10 and 5 ticks of free flow, a vehicle every two seconds."""


@pytest.mark.parametrize("engine", ENGINES)
def test_one_trip_takes_its_free_flow_time(engine):
    totals = drive(engine, chain(*ROAD), [(7, [0, 1, 2])], until=100).totals()
    assert totals.trip_time_s == 15.0
    assert totals.mean_trip_s == 15.0


@pytest.mark.parametrize("engine", ENGINES)
def test_vehicles_under_way_do_not_count(engine):
    totals = drive(engine, chain(*ROAD), [(0, [0, 1, 2]), (90, [0, 1, 2])], until=100).totals()
    assert (totals.arrived, totals.trip_time_s) == (1, 15.0)


@pytest.mark.parametrize("engine", ENGINES)
def test_trip_time_without_arrivals_is_nan(engine):
    totals = drive(engine, chain(*ROAD), [(0, [0, 1, 2])], until=14).totals()
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


@pytest.mark.parametrize("engine", ENGINES)
def test_trip_time_is_in_seconds(engine):
    totals = drive(engine, chain(*ROAD), [(0, [0, 1, 2])], until=100, step_s=0.5).totals()
    assert totals.trip_time_s == 15.0


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
