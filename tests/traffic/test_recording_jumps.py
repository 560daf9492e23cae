"""Moves that no vehicle can make: single wrong fixes are left out, other jumps cut the recording, all are counted."""

import numpy as np
import pandas as pd
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.files.messages import warnings_among
from simulator.formats.recordings import Trace, read_trace, recording_of
from simulator.traffic.clock import Clock
from simulator.traffic.recording import Replay

LON, LAT = 11.5, 48.1
STEP = 1e-4
"""Degrees of longitude that a vehicle drives in 10 s: 7.4 m."""
FAR, OTHER = (12.0, 48.1), (11.5, 48.6)
"""Places 37 and 56 km away."""


def driven(*places, vehicle="a", every_s=10.0):
    """Fixes of a vehicle that drives east; a place replaces that of its moment, a number moves the rest so far away."""
    rows, away = [], 0.0
    for number, place in enumerate(places):
        away += place if isinstance(place, float) else 0.0
        lon, lat = place if isinstance(place, tuple) else (LON + away + STEP * number, LAT)
        rows.append((vehicle, every_s * number, lon, lat))
    return rows


def laid(*rows, **options):
    """The recording of fixes, and its warnings."""
    trace = Trace.from_frame(pd.DataFrame(rows, columns=["vehicle", "time", "lon", "lat"]))
    recording = recording_of(trace, None, gap_s=300.0, start=0.0, **options)
    return recording, [note.text for note in warnings_among(recording.notes())]


def shown(recording):
    """Seconds of each vehicle's fixes, a list of lists: one list for each part without a gap."""
    tracks, parts = recording.tracks, [[]]
    for seconds, known in zip(tracks.time_s.tolist(), tracks.known.tolist(), strict=True):
        parts[-1].append(round(seconds))
        parts.extend([] if known else [[]])
    return parts[:-1]


def test_recording_without_jumps_is_kept_without_a_word():
    recording, warned = laid(*driven(*[None] * 5))
    assert (shown(recording), warned) == ([[0, 10, 20, 30, 40]], [])


@pytest.mark.parametrize(
    ("places", "parts"),
    [
        ([None, None, FAR, None, None], [[0, 10, 30, 40]]),
        ([None, None, FAR, FAR, FAR, None, None], [[0, 10, 50, 60]]),  # a stay at a far place
        ([None, None, FAR, OTHER, None, None], [[0, 10], [20], [30], [40, 50]]),  # neither proves the other wrong
        ([FAR, None, None, None], [[10, 20, 30]]),
        ([None, None, None, FAR], [[0, 10, 20]]),
        ([FAR, None, None, OTHER], [[10, 20]]),
        ([None, FAR], [[0], [10]]),
        ([None, None, 0.5, None], [[0, 10], [20, 30]]),
        ([None, None, FAR, None, FAR, None, None], [[0, 10, 30, 50, 60]]),  # one far place that recurs
        ([FAR, FAR, None, None, FAR, None, FAR, None, None, FAR, FAR], [[20, 30, 50, 70, 80]]),  # also at both ends
        ([None, None, (-1.0, -1.0), (-1.0, -1.0), FAR, None, None], [[0, 10, 50, 60]]),  # -1, -1 is no position
    ],
)
def test_single_fixes_are_left_out_and_other_jumps_are_gaps(places, parts):
    recording, warned = laid(*driven(*places))
    assert shown(recording) == parts
    assert len(warned) == 1
    assert ("cut the recording at" in warned[0]) == (len(parts) > 1)
    assert recording.tracks.going_mps.max() <= 60.0


def test_warning_names_vehicle_time_and_speed():
    near = driven(None, None, None, 0.02, None)  # 1,490 m in 10 s
    _, warned = laid(*near, *driven(None, None, None, None, FAR, None, None, vehicle="b"))
    words = (
        "trace: 3 moves are faster than highest_mps = 60, the first of vehicle 'a' at 30 s, the fastest of vehicle 'b' "
        "at 40 s, 3,722 m/s: left out 1 fix away from the fixes before and after and cut the recording at 1 move, "
        "where the vehicle is absent as in a gap"
    )
    assert warned == [words]


def test_far_place_that_recurs_is_left_out_of_every_vehicle():
    dead = [("b", 0.0, *FAR), ("b", 10.0, *FAR)]
    recording, warned = laid(*driven(None, FAR, None, FAR, None, None), *dead)
    assert (shown(recording), recording.tracks.vehicles) == ([[0, 20, 40, 50]], 1)
    assert "left out 4 fixes at places that recur, as longitude 12, latitude 48.1" in warned[0]
    # A vehicle that has driven there proves the place: only the jumps to it are wrong.
    alive = [("b", 0.0, *FAR), ("b", 10.0, FAR[0] + STEP, FAR[1])]
    recording, warned = laid(*driven(None, FAR, None, FAR, None, None), *alive)
    assert (shown(recording), recording.tracks.vehicles) == ([[0, 20, 40, 50], [0, 10]], 2)
    assert "left out 2 fixes away from" in warned[0]


def test_two_places_that_are_each_wrong_by_the_other_are_not_both_left_out():
    here = (LON, LAT)
    recording, _ = laid(*driven(here, FAR, here, FAR, here), *driven(FAR, here, FAR, here, FAR, vehicle="b"))
    assert shown(recording) == [[0, 20, 40], [0, 20, 40]]


def test_two_vehicles_of_one_name_are_not_joined():
    places = [FAR if number % 2 else None for number in range(9)]
    recording, _ = laid(*[(name, t, lon + STEP * t, lat) for name, t, lon, lat in driven(*places)])
    assert shown(recording) == [[0, 20, 40, 60, 80]]


@pytest.mark.parametrize("first", ["near", "far"])
def test_far_fix_at_the_same_moment_is_left_out(first):
    rows = driven(*[None] * 5)
    rows.insert(3 if first == "near" else 2, ("a", 20.0, *FAR))
    recording, _ = laid(*rows)
    assert shown(recording) == [[0, 10, 20, 30, 40] if first == "near" else [0, 10, 30, 40]]
    assert "the first is of 'a' at 20 s" in "".join(note.text for note in recording.notes())


def test_vehicle_is_absent_where_the_recording_is_cut():
    recording, _ = laid(*driven(None, None, 0.5, None), hold_s=2.0)
    replay, env, seen = Replay(recording, clock=Clock(1.0), duration_s=100.0), simpy.Environment(), []
    replay.start(env)
    for tick in (5, 15, 25):
        env.run(until=tick + 1e-9)
        replay.advance()
        seen.append(replay.totals().absent)
    assert seen == [0, 1, 0]


def test_highest_speed_is_a_key():
    rows = driven(None, None, 0.02, None)
    assert shown(laid(*rows, highest_mps=200.0)[0]) == [[0, 10, 20, 30]]
    assert shown(laid(*rows, highest_mps=100.0)[0]) == [[0, 10], [20, 30]]


def test_recorded_speeds_that_are_too_high_are_not_used():
    frame = pd.DataFrame(driven(*[None] * 4), columns=["vehicle", "time", "lon", "lat"]).assign(
        speed_mps=[1, 655, 2, 60]
    )
    recording = recording_of(Trace.from_frame(frame), None, gap_s=300.0)
    assert np.isnan(recording.tracks.recorded_mps).tolist() == [False, True, False, False]
    assert "1 recorded speed is above highest_mps = 60" in warnings_among(recording.notes())[0].text


def test_teleport_in_floating_car_data_of_sumo(tmp_path):
    steps = "".join(
        f'<timestep time="{t}"><vehicle id="v" x="{lon}" y="{lat}" speed="1" type="{kind}"/>'
        f'<person id="p" x="{LON}" y="{LAT}" speed="1"/></timestep>'
        for kind in ["car"]
        for _, t, lon, lat in driven(None, None, 0.5, None)
    )
    (tmp_path / "fcd.xml").write_text(f"<fcd-export>{steps}</fcd-export>")
    recording = recording_of(read_trace(tmp_path / "fcd.xml"), None, gap_s=300.0)
    assert shown(recording) == [[0, 10], [20, 30]]
    assert "left out places of others than vehicles: 4 person" in "".join(note.text for note in recording.notes())


@settings(max_examples=20)
@given(
    places=st.lists(st.sampled_from([None, 0.02, 0.5, FAR, OTHER]), min_size=1, max_size=30),
    apart_s=st.sampled_from([1.0, 10.0, 100.0]),
)
def test_no_move_is_faster_whatever_was_recorded(places, apart_s):
    recording, warned = laid(*driven(*places, every_s=apart_s))
    assert recording.tracks.going_mps.max() <= 60.0
    assert bool(warned) == (
        not laid(*driven(*places, every_s=apart_s), highest_mps=1e9)[0].tracks.going_mps.max() <= 60
    )
