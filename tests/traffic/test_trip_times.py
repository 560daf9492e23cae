"""Trip times: from departure to arrival, including waiting to enter, equal in both engines."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from roads_by_hand import ENGINES, chain, drive

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
    """A link for one vehicle: the second enters in the tick after the first has left, and takes as long."""
    roads = chain({"length_m": 7.5, "speed_mps": 0.75, "capacity_vph": 36000.0})
    totals = drive(engine, roads, [(0, [0, 1]), (0, [0, 1])], until=60).totals()
    assert totals.arrived == 2
    # The first takes ticks 0 to 10. Its space is free from 11, or from the origin queue's turn in tick 10.
    assert totals.trip_time_s in (10 + 20, 10 + 21)


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
    # Vehicles do not overtake on a chain, so arrivals follow from the entries: 2 ticks on the last link, a headway
    # apart.
    entered = [int(tick) for _, link, tick in fleet.entries if link == 2]
    arrivals, free_at = [], 0
    for tick in entered:
        leaves = max(tick + 2, free_at)
        arrivals.append(leaves)
        free_at = leaves + 2
    arrivals = [tick for tick in arrivals if tick <= until]
    assert fleet.totals().arrived == len(arrivals)
    assert fleet.totals().trip_time_s == sum(arrivals) - sum(departures[: len(arrivals)])
