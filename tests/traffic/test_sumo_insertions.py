"""The maximum number of vehicles in SUMO's files: never below the true number, and not far above."""

import gzip
from collections import Counter

import numpy as np
import pytest
from sumo_by_hand import ROUTES, Driven, engine, inputs, make_net

from simulator.files.errors import InputError
from simulator.formats.sumo.route_file import SumoFile, most_of_flow
from simulator.sumo.inputs import Insertions
from simulator.sumo.routes import draw_vehicles


def most_of(path, text, *, begin_s=0.0, end_s=1000.0, step_s=1.0, scale=1.0):
    path.write_bytes(text if isinstance(text, bytes) else f"<routes>{text}</routes>".encode())
    return Insertions.read([path], begin_s=begin_s, end_s=end_s, step_s=step_s, scale=scale)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "r.rou.xml"


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ('<vehicle id="a" depart="3"/><trip id="b" depart="0:16:00"/>', 2, 2),
        ('<vehicle id="a" depart="1001"/><trip id="b" depart="1000"/>', 1, 1),
        ('<vehicle id="a" depart="now"/>', 1, 1),
        ('<flow id="f" begin="10" end="20" number="7"/>', 7, 7),
        ('<flow id="f" begin="0" end="100" period="10"/>', 10, 12),
        ('<flow id="f" begin="900" end="9000" period="10"/>', 10, 12),
        ('<flow id="f" period="10" number="3"/>', 3, 3),
        ('<flow id="f" begin="0" end="100" vehsPerHour="3600"/>', 100, 102),
        ('<flow id="f" begin="0" end="100" probability="0.5"/>', 80, 90),  # 102 draws: 51 ± 5
        ('<flow id="f" begin="0" end="100" period="exp(1)"/>', 160, 190),
        ('<interval begin="0" end="100"><flow id="f" period="10"/></interval><flow id="g" number="1"/>', 11, 13),
        ('<person id="p" depart="0"><personTrip from="a" to="b" modes="car"/></person>', 1, 1),
        ('<personFlow id="p" begin="0" end="9" number="4"><personTrip from="a" to="b"/></personFlow>', 4, 4),
        ('<vType id="t" scale="2.5"/><vehicle id="a" depart="3"/>', 3, 3),
    ],
)
def test_maximum_insertions_of_each_element(file, text, least, most):
    assert least <= most_of(file, text).most <= most


def test_scale_and_included_files_count(file):
    (file.parent / "more.xml").write_text('<routes><trip id="b" depart="0"/></routes>')
    text = '<include href="more.xml"/><trip id="a" depart="0"/>'
    assert most_of(file, text, scale=1.5).most == 4
    (file.parent / "more.xml").write_text('<routes><include href="more.xml"/></routes>')
    with pytest.raises(InputError, match="more than 16 files deep"):
        most_of(file, text)


def test_only_files_that_carry_vehicles_types_or_routes_are_named(file):
    types, stops = file.parent / "types.add.xml", file.parent / "stops.add.xml"
    types.write_text('<add><vType id="t"/></add>')
    stops.write_text('<add><busStop id="s" lane="A0B0_0"/></add>')
    file.write_text('<routes><trip id="a" depart="triggered"/></routes>')
    read = Insertions.read([stops, types, file], begin_s=0, end_s=10, step_s=1)
    assert read.files == (types, file)
    assert read.unscheduled == {"a"}


def test_no_flow_exceeds_its_maximum(file):
    rng = np.random.default_rng(3)
    flows = []
    for number in range(40):
        begin_s, value = rng.uniform(0, 200), np.exp(rng.uniform(np.log(0.01), np.log(9)))
        rates = {"period": value, "vehsPerHour": 100 * value, "probability": min(value, 1.0), "exp": value / 5}
        kind = ("period", "vehsPerHour", "probability", "exp")[number % 4]
        rate = f'period="exp({rates[kind]})"' if kind == "exp" else f'{kind}="{rates[kind]}"'
        last = f'number="{rng.integers(50)}"' if rng.random() < 0.3 else f'end="{begin_s + rng.uniform(0, 600)}"'
        flows.append(f'<flow id="f{number}" from="A0B0" to="B0C0" begin="{begin_s}" {last} {rate}/>')
    file.write_text(f"<routes>{''.join(flows)}</routes>")
    held, run = SumoFile([file]), {"begin_s": 0.0, "end_s": 300.0, "step_s": 1.0}
    drawn = draw_vehicles(held, make_net(file.parent), **run, vehicle_class="passenger", seed=1)
    totals = Counter(vehicle.name.partition(".")[0] for vehicle in drawn if vehicle.depart_s <= 300.0)
    assert len(totals) > 20
    for flow in held.drawn:
        assert totals[flow.attributes["id"]] <= most_of_flow(flow.attributes, **run, where="here")


def test_sumo_inserts_no_more_than_the_maximum(tmp_path):
    given = inputs(make_net(tmp_path), ROUTES)
    sumo = engine(given, until_s=250.0)
    with Driven(sumo) as driven:
        departed = driven.to(250).totals().departed
    assert 0.4 * sumo.vehicles < departed <= sumo.vehicles


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"<routes>", "not well-formed"),
        (gzip.compress(b"<routes><trip id='a' depart='0'/></routes>", mtime=0)[:-12], "cannot be read"),
        (b"<!DOCTYPE r [<!ENTITY a 'b'>]><routes/>", "DOCTYPE"),
        (b"<routes/>", "no vehicle, trip or flow"),
        (b"<routes>\n<flow id='f' number='many'/></routes>", "line 2: number must be"),
        (b"<routes><flow id='f' begin='x' number='1'/></routes>", "begin must be"),
        (b"<routes><flow id='f' period='exp(no)'/></routes>", "period must be above 0"),
        (b"<routes><flow id='f' period='exp(1e9)'/></routes>", "at most 2,147,483,647"),
        (b"<routes><include href='nowhere.xml'/></routes>", "no such file"),
    ],
    ids=["cut", "gzip", "dtd", "none", "many", "begin", "period", "dense", "include"],
)
def test_unusable_file_is_refused_with_its_line(file, content, words):
    with pytest.raises(InputError, match=words) as caught:
        most_of(file, content)
    assert str(file.parent) in str(caught.value)


def test_message_without_departures_names_the_time_window(tmp_path):
    file = tmp_path / "early.rou.xml"
    file.write_text('<routes><trip id="a" depart="0" from="x" to="y"/></routes>')
    with pytest.raises(InputError, match="within the run, from second 15 to 315 of SUMO's time"):
        Insertions.read([file], begin_s=15.0, end_s=315.0, step_s=1.0)
