"""MATSim's events as recorded traffic, by hand on a square of streets."""

import gzip
import re
from collections import Counter

import numpy as np
import pytest
import simpy
from matsim_by_hand import EVENTS, network_xml, write_events
from read_roads import read_matsim

from simulator.files.errors import InputError
from simulator.formats.matsim.events import read_matsim_events
from simulator.formats.recordings.recordings import read_recording
from simulator.traffic.clock import Clock
from simulator.traffic.engine import State
from simulator.traffic.recording import Replay


@pytest.fixture(scope="module")
def roads(tmp_path_factory):
    file = tmp_path_factory.mktemp("matsim") / "network.xml"
    file.write_text(network_xml())
    return read_matsim(file)[0]


def recording(tmp_path, roads, events=EVENTS, **options):
    keys = {"gap_s": 300.0, "hold_s": 0.0, "time_zone": None, "match": "none", "match_m": 50.0, "match_noise_m": 10.0}
    file = write_events(tmp_path / "output_events.xml.gz", events)
    return read_recording(paths=[file], roads=roads, **keys | {"start": 21600.0} | options)


def test_entering_and_leaving_links_are_those_of_the_events(tmp_path, roads):
    tracks = recording(tmp_path, roads).tracks
    of = roads.links_named_by("matsim_link")
    leg = np.flatnonzero(tracks.known)
    entered = Counter(zip(tracks.link[leg].tolist(), tracks.time_s[leg].tolist(), strict=True))
    left = Counter(zip(tracks.link[leg].tolist(), tracks.time_s[leg + 1].tolist(), strict=True))
    stated = {
        kind: Counter((of[link], time - 21600) for time, name, link, _ in EVENTS if name == kind and link in of)
        for _, kind, *_ in EVENTS
    }
    assert entered == stated["entered link"] + stated["vehicle enters traffic"]
    assert left == stated["left link"] + stated["vehicle leaves traffic"]
    assert tracks.first.tolist() == [0, 7, 11]


def test_places_and_absence(tmp_path, roads):
    clock, env = Clock(1.0), simpy.Environment()
    replay = Replay(recording(tmp_path, roads), roads=roads, clock=clock, duration_s=7200.0)
    names = {link: name for name, link in roads.links_named_by("matsim_link").items()}
    replay.start(env)
    seen = {}
    for tick in (0, 11, 36, 60, 3716, 3740):
        env.run(until=clock.ticks(tick) + 1e-9)
        replay.advance()
        places = replay.places()
        seen[tick] = [
            (names[link], round(float(share), 3)) if state == State.ON_ROAD else State(state).name
            for link, share, state in zip(places.link, places.fraction, places.state, strict=True)
        ]
    assert seen == {
        0: [("ab", 1.0)],
        11: [("bc", 0.5), ("ab", 1.0)],
        36: [("cd", 0.5), "ABSENT"],
        60: ["ABSENT", ("bc", 0.333)],
        3716: [("da", 0.5), "ARRIVED"],
        3740: ["ARRIVED", "ARRIVED"],
    }


@pytest.mark.parametrize(
    ("start", "second"), [(21620, 21620), ("06:00", 21600), ("2024-03-05T06:01:00", 21660), (None, 21600)]
)
def test_second_zero(tmp_path, roads, start, second):
    read = recording(tmp_path, roads, start=start)
    assert f"second 0 is {second} s of the events" in read.notes()[0].text
    assert read.tracks.time_s.max() == 25331 - second


def test_events_that_cannot_be_replayed(tmp_path, roads):
    elsewhere = [event for event in EVENTS if event[2] == "rail"]
    with pytest.raises(InputError, match="no event of 2 with vehicles is on a link of the roads"):
        recording(tmp_path, roads, elsewhere)
    with pytest.raises(InputError, match="in the order of time"):
        recording(tmp_path, roads, EVENTS[::-1])
    with pytest.raises(InputError, match='match must be "none"'):
        recording(tmp_path, roads, match="hmm")
    with pytest.raises(InputError, match="need roads read from its network"):
        recording(tmp_path, None)
    with pytest.raises(InputError, match=r"line 2: event 'left link' must have a time in seconds"):
        recording(tmp_path, roads, [(21600, "entered link", "ab", "p"), ("noon", "left link", "ab", "p")])


MODES = {
    "car": 'type="vehicle enters traffic" networkMode="car"',
    "bike": 'type="vehicle enters traffic" networkMode="bike"',
    "bus": 'type="wait2link"',  # of old files: the mode is that of the departure
    "": 'type="vehicle enters traffic"',
}


def of_modes(tmp_path, roads, **options):
    """A vehicle of each mode drives bc in 20 s; the departure of the bus states its mode."""
    events = ['<event time="0" type="departure" person="bus" link="ab" legMode="bus"/>']
    for mode, enters in MODES.items():
        own = f'person="{mode}" vehicle="v{mode}"'
        events.append(f'<event time="1" {enters} link="ab" {own}/>')
        for time, kind, link in ((2, "left", "ab"), (2, "entered", "bc"), (22, "left", "bc"), (22, "entered", "cd")):
            events.append(f'<event time="{time}" type="{kind} link" link="{link}" {own}/>')
    file = tmp_path / "events.xml"
    file.write_text(f"<events>{''.join(events)}</events>")
    keys = {"gap_s": 300.0, "hold_s": 0.0, "time_zone": None, "match": "none", "match_m": 50.0, "match_noise_m": 10.0}
    return read_recording(paths=[file], roads=roads, start=0.0, **keys, **options)


@pytest.mark.parametrize(
    ("modes", "vehicles", "note"),
    [
        (None, 4, "1 bike, 1 bus, 1 car, 1 of no stated mode"),
        (["car"], 2, "do.* not name their mode: 1 bike, 1 bus"),
        (["bike", "bus"], 3, "left out.*: 1 car"),
    ],
)
def test_vehicles_of_other_modes_are_left_out_and_counted(tmp_path, roads, modes, vehicles, note):
    read = of_modes(tmp_path, roads, modes=modes)
    assert read.tracks.vehicles == vehicles
    assert re.search(note, "".join(note.text for note in read.notes()))


def test_events_without_a_vehicle_of_the_modes_are_refused(tmp_path, roads):
    events = [(at, kind, link, name) for at, kind, link, name in EVENTS if name == "q"]
    file = write_events(tmp_path / "e.xml.gz", events)
    text = (
        gzip.decompress(file.read_bytes())
        .decode()
        .replace('type="vehicle enters', 'networkMode="bike" type="vehicle enters')
    )
    file.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(InputError, match=r"vehicles by mode: 1 bike; none is one of roads\.modes"):
        read_matsim_events([file], roads, modes=["car"])


def test_link_that_is_covered_too_fast_is_a_gap(tmp_path, roads):
    # 300 m in 20 s.
    assert of_modes(tmp_path, roads, highest_mps=15.0).tracks.going_mps.max() == 15.0
    read = of_modes(tmp_path, roads, highest_mps=14.9)
    assert read.tracks.going_mps.max() == 0.0
    assert "4 links are covered faster than highest_mps = 14.9" in "".join(note.text for note in read.notes())
