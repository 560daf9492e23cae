"""Replayed vehicles have the positions and speeds computed by hand."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pandas as pd
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st
from single_places import advance_and_compare

from simulator.files.errors import InputError
from simulator.files.messages import texts_of
from simulator.formats.recordings import Trace, recording_of
from simulator.roads import build_grid
from simulator.traffic.clock import Clock, after_traffic
from simulator.traffic.engine import State, VehicleStates
from simulator.traffic.recording import Recording, Replay

CRS = "EPSG:32632"
FIXES = pd.DataFrame(
    [
        ("a", 10.0, 0.0, 0.0),
        ("a", 20.0, 100.0, 0.0),
        ("a", 70.0, 100.0, 500.0),
        ("a", 80.0, 100.0, 600.0),
        ("b", 15.0, 50.0, 50.0),
    ],
    columns=["vehicle", "time", "x", "y"],
)


def laid(
    frame: pd.DataFrame = FIXES,
    *,
    gap_s: float = 30.0,
    hold_s: float = 0.0,
    start: str | float | None = 0.0,
    highest_mps: float = 60.0,
    **columns: str,
) -> Recording:
    moved = frame.assign(x=frame["x"] + 500_000, y=frame["y"] + 5_000_000)
    trace = Trace.from_frame(moved, crs=CRS, columns=columns)
    return recording_of(trace, None, gap_s=gap_s, hold_s=hold_s, start=start, highest_mps=highest_mps)


def played(recording: Recording, *moments_s: float, duration_s: float = 1000.0, step_s: float = 1.0):
    clock = Clock(step_s)
    engine = Replay(recording, clock=clock, duration_s=duration_s)
    env = simpy.Environment()
    engine.start(env)
    for moment_s in moments_s:
        departed = len(engine.places())
        env.run(until=after_traffic(env, clock.ticks(moment_s)))
        advance_and_compare(engine, departed=departed)
        yield engine


def xy(engine: Replay, places: VehicleStates | None = None) -> list[list[float]]:
    found = (places or engine.places()).xy
    assert found is not None
    return np.round(found - [500_000, 5_000_000], 6).tolist()


def states(engine: Replay) -> list[State]:
    return [State(state) for state in engine.places().state]


def test_two_vehicles_follow_the_computed_positions():
    """50 s between two fixes of vehicle a are more than 30: it is absent there."""
    on, off, gone = State.ON_ROAD, State.ABSENT, State.ARRIVED
    expected = {
        5: ([], [], []),
        10: ([[0, 0]], [on], [10]),
        12.5: ([[25, 0]], [on], [10]),
        15: ([[50, 0], [50, 50]], [on, on], [10, 0]),
        45: ([[100, 0], [50, 50]], [off, gone], [0, 0]),
        75: ([[100, 550], [50, 50]], [on, gone], [10, 0]),
        80: ([[100, 600], [50, 50]], [on, gone], [0, 0]),
        90: ([[100, 600], [50, 50]], [gone, gone], [0, 0]),
    }
    for engine, (places, now, speeds) in zip(played(laid(), *expected), expected.values(), strict=True):
        assert (xy(engine), states(engine)) == (places, now)
        assert engine.speeds().tolist() == pytest.approx(speeds, rel=1e-4)
        totals = engine.totals()
        assert totals.departed == totals.waiting + totals.on_road + totals.arrived + totals.absent
    assert totals.mean_trip_s == pytest.approx((70 + 0) / 2)
    assert xy(engine, engine.origin_of(np.array([1, 0]))) == [[50, 50], [0, 0]]
    assert engine.class_of(np.array([1, 0])) == ["", ""]


def test_vehicle_is_held_after_a_fix():
    for engine, expected in zip(
        played(laid(hold_s=5.0), 25, 26, 85, 86),
        (State.ON_ROAD, State.ABSENT, State.ON_ROAD, State.ARRIVED),
        strict=True,
    ):
        assert states(engine)[0] == expected


def test_positions_between_ticks_are_exact():
    (engine,) = played(laid(), 12.5, step_s=10.0)
    assert xy(engine) == [[25, 0]]


def test_recorded_speeds_have_priority():
    frame = FIXES.assign(fast=[2.0, 4.0, np.nan, 8.0, 1.0])
    recording = laid(frame, speed_mps="fast")
    for engine, expected in zip(played(recording, 15, 75), ([3.0, 1.0], [10.0, 0.0]), strict=True):
        assert engine.speeds().tolist() == pytest.approx(expected, rel=1e-4)


def test_the_start_is_a_recorded_time():
    recording = laid(start=15.0)
    engine = next(played(recording, 0))
    # Vehicle a is moving from a fix before second 0.
    assert xy(engine) == [[50, 0], [50, 50]]
    later = laid(start=17.0)
    assert later.tracks.vehicles == 1
    assert "trace: 1 fix is before second 0 and left out" in texts_of(later.notes())
    with pytest.raises(
        InputError, match=r"start must be before the last fix, got 100\.0; the fixes are from 10 s to 80 s"
    ):
        laid(start=100.0)
    with pytest.raises(InputError, match="start must be a number of seconds"):
        laid(start="2008-05-17T10:00:00Z")
    with pytest.raises(InputError, match="ISO 8601"):
        laid(start="tomorrow")


def test_dated_recordings_start_at_a_date():
    dated = FIXES.assign(time=pd.Timestamp("2008-05-17T10:00:00Z") + pd.to_timedelta(FIXES["time"], unit="s"))
    by_date, by_number = laid(dated, start="2008-05-17 10:00:00"), laid(dated, start=1_211_018_400)
    assert by_date.tracks.time_s.tolist() == by_number.tracks.time_s.tolist() == [10, 20, 70, 80, 15]
    assert laid(dated, start=None).tracks.time_s[0] == 0


def test_fixes_after_the_run_are_dropped():
    for engine in played(laid(), 12, 14.5, 16, duration_s=14.0):
        assert engine.vehicles == 1
        assert len(engine.places()) == 1
    assert any("4 fixes are after the end of the run" in note for note in texts_of(engine.notes()))


@given(st.data())
@settings(max_examples=25)
def test_positions_equal_numpy_interp(data):
    count = data.draw(st.integers(1, 12))
    times = np.cumsum(
        data.draw(st.lists(st.sampled_from([1.0, 7.0, 29.0, 30.0, 31.0, 200.0]), min_size=count, max_size=count))
    )
    x = np.array(data.draw(st.lists(st.integers(-5000, 5000), min_size=count, max_size=count)), dtype=float)
    frame = pd.DataFrame({"vehicle": "v", "time": times, "x": x, "y": 0.0})
    moments = sorted(data.draw(st.lists(st.floats(0, 600, allow_subnormal=False), min_size=1, max_size=8)))
    for engine, moment in zip(played(laid(frame, highest_mps=1e5), *moments), moments, strict=True):
        after = int(np.searchsorted(times, moment, side="right"))
        if after == 0:
            assert len(engine.places()) == 0
        elif after < count and times[after] - times[after - 1] <= 30:
            assert states(engine) == [State.ON_ROAD]
            assert xy(engine)[0][0] == pytest.approx(np.interp(moment, times, x), abs=1e-3)
        elif times[after - 1] == moment:
            assert states(engine) == [State.ON_ROAD]
        else:
            assert states(engine) == [State.ARRIVED if after == count else State.ABSENT]


def test_roads_give_the_crs_and_detect_swapped_degrees():
    roads = build_grid(rows=3, columns=3, spacing_x_m=200, spacing_y_m=200, speed_mps=10, lanes=1, anchor=(11.3, 44.5))
    inside = pd.DataFrame({"vehicle": "v", "time": [0, 1], "lon": [11.301, 11.302], "lat": [44.501, 44.502]})
    recording = recording_of(Trace.from_frame(inside), roads, gap_s=10)
    assert recording.crs == roads.crs
    x_min, y_min, x_max, y_max = recording.bounds
    west, south, east, north = roads.bounds
    assert west < x_min < x_max < east
    assert south < y_min < y_max < north
    swapped = inside.rename(columns={"lon": "lat", "lat": "lon"})
    with pytest.raises(InputError, match=r"no fix is in the area of the roads.*longitude and latitude look swapped"):
        recording_of(Trace.from_frame(swapped), roads, gap_s=10)
    far = inside.assign(lat=50.0)
    with pytest.raises(InputError, match=r"its middle is at longitude 11\.30150, latitude 50\.00000$"):
        recording_of(Trace.from_frame(far), roads, gap_s=10)


def test_million_fixes_are_fast_and_their_memory_is_reported():
    vehicles, each = 5_000, 200
    rng = np.random.default_rng(3)
    times = np.cumsum(rng.uniform(1, 20, (vehicles, each)), axis=1)
    frame = pd.DataFrame(
        {
            "vehicle": np.repeat(np.arange(vehicles), each),
            "time": times.ravel(),
            "x": rng.uniform(0, 1e4, vehicles * each),
            "y": rng.uniform(0, 1e4, vehicles * each),
        }
    )
    recording = laid(frame)
    since = time.perf_counter()
    for engine in played(recording, *range(0, 2000, 100), duration_s=2000):
        engine.places()
        engine.speeds()
    assert time.perf_counter() - since < 5.0
    assert engine.nbytes[1] == recording.tracks.nbytes + recording.leaves_s.nbytes >= vehicles * each * (8 + 16)


def test_moments_that_differ_by_next_to_nothing_are_replayed_without_a_warning():
    frame = pd.DataFrame({"vehicle": "a", "time": [0.0, 1e-310, 5.0], "lon": [11.3, 11.4, 11.4], "lat": 44.5})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recording = recording_of(Trace.from_frame(frame), None, gap_s=60.0, highest_mps=np.inf)
    assert np.isinf(recording.tracks.going_mps).tolist() == [True, False, False]
