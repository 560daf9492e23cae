"""Movements and signals read from SUMO networks."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from read_roads import read_sumo_net
from test_sumo_net import JUNCTIONS, ONLY_BUS, edge, lane, net

from simulator.files.errors import InputError
from simulator.roads.movements import MOVEMENT_COLUMNS, SIGNAL_COLUMNS

sumolib = pytest.importorskip("sumolib", reason="SUMO networks are read by sumolib")

SUMO = Path(os.environ.get("CROWDVEIL_DATA", "nowhere")) / "sumo"
EDGES = (
    edge("AB", "A", "B", lane("AB", 0, more=ONLY_BUS), lane("AB", 1), lane("AB", 2)),
    edge("BA", "B", "A"),
    edge("BC", "B", "C"),
    edge("CB", "C", "B"),
)
PROGRAM = (
    '<tlLogic id="B" type="static" programID="0" offset="5">'
    '<phase duration="20" state="Ggr"/><phase duration="10" state="Gyr"/><phase duration="0" state="rrr"/>'
    '<phase duration="30" state="gGr"/></tlLogic>'
)
CONNECTIONS = (
    '<connection from="AB" to="BC" fromLane="1" toLane="0" dir="s" state="O" tl="B" linkIndex="0"/>',
    '<connection from="AB" to="BC" fromLane="0" toLane="0" dir="s" state="O" tl="B" linkIndex="0"/>',
    '<connection from="AB" to="BA" fromLane="2" toLane="0" dir="t" state="o" tl="B" linkIndex="1"/>',
    '<connection from="CB" to="BA" fromLane="0" toLane="0" dir="L" state="s"/>',
)
PARTS = (*EDGES, PROGRAM, *JUNCTIONS, *CONNECTIONS)


@pytest.fixture
def write(tmp_path):
    def _write(text, name="small.net.xml"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return _write


def rows_of(roads):
    """Return the movements with the names of edges and nodes instead of their numbers."""
    names = {data["link"]: data["sumo_edge"] for *_, data in roads.graph.edges(data=True)}
    return [
        (names[row.from_link], names[row.to_link], roads.node_names[row.node], *tuple(row)[3:10])
        for row in roads.movements.itertuples(index=False)
    ]


def faults_of(*paths):
    with pytest.raises(InputError) as caught:
        read_sumo_net(paths[0], additional=paths[1] if len(paths) > 1 else None)
    return caught.value.faults


def test_connections_become_movements_of_usable_lanes(write):
    """Lane 0 of AB is for buses, so that lanes 1 and 2 are lanes 0 and 1 of the link."""
    roads, _ = read_sumo_net(write(net(*PARTS)))
    rows = {row[:2]: row[3:] for row in rows_of(roads)}
    assert list(roads.movements) == list(MOVEMENT_COLUMNS)
    assert len(roads.movements) == 6
    assert rows == {
        ("AB", "BC"): (0, 0, True, "straight", "priority", "B", 0),
        ("AB", "BA"): (1, 0, True, "u_turn", "yield", "B", 1),
        ("CB", "BA"): (0, 0, True, "slight_left", "stop", None, -1),
        ("CB", "BC"): (-1, -1, False, None, None, None, -1),
        ("BA", "AB"): (-1, -1, False, None, None, None, -1),
        ("BC", "CB"): (-1, -1, False, None, None, None, -1),
    }
    assert [row[2] for row in rows_of(roads) if row[0] == "AB"] == ["B", "B"]


def test_states_become_green_windows(write):
    """Group 2 controls no movement of cars; the phase of 0 s is no window."""
    roads, _ = read_sumo_net(write(net(*PARTS)))
    assert list(roads.signals) == list(SIGNAL_COLUMNS)
    assert [tuple(row) for row in roads.signals.itertuples(index=False)] == [
        ("B", 0, 0.0, 30.0, True, 60.0, 5.0, False),
        ("B", 0, 30.0, 60.0, False, 60.0, 5.0, False),
        ("B", 1, 0.0, 20.0, False, 60.0, 5.0, False),
        ("B", 1, 30.0, 60.0, True, 60.0, 5.0, False),
    ]


def test_movements_follow_the_links_that_are_kept(write):
    """Without CB, BC leads nowhere: the strong part is AB and BA, in another order than in the file."""
    parts = (EDGES[2], EDGES[1], EDGES[0], PROGRAM, *JUNCTIONS, *CONNECTIONS[:3])
    roads, _ = read_sumo_net(write(net(*parts)), keep="strong")
    assert {row[:3] for row in rows_of(roads)} == {("AB", "BA", "B"), ("BA", "AB", "A")}
    assert roads.links.to_node[roads.movements["from_link"]].tolist() == roads.movements["node"].tolist()
    assert roads.signals["group"].tolist() == [1, 1]


def test_the_program_loaded_last_wins(write):
    second = PROGRAM.replace('"Ggr"', '"rrr"').replace('programID="0"', 'programID="1"')
    third = PROGRAM.replace("static", "actuated").replace('"20"', '"25.5"').replace('programID="0"', 'programID="2"')
    both = write(net(*EDGES, PROGRAM, second, *JUNCTIONS, *CONNECTIONS))
    roads, _ = read_sumo_net(both)
    assert roads.signals["from_s"].tolist() == [20.0, 30.0, 30.0]
    more = write(f'<additional><vType id="car"/>{third}</additional>', "more.add.xml")
    roads, _ = read_sumo_net(both, additional=more)
    assert roads.signals["to_s"].tolist() == [35.5, 65.5, 25.5, 65.5]
    assert roads.signals["actuated"].all()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('duration="20"', 'duration="-1"', "phase 0: duration must be a finite number of at least 0, got -1"),
        ('duration="20"', 'duration="nan"', "line 18: <phase> cannot be used"),
        ('duration="20"', 'duration="inf"', "line 18: <phase> cannot be used"),
        ('duration="20"', "", "it lacks, or nothing has the name, 'duration'"),
        ('offset="5"', 'offset="inf"', "<tlLogic> cannot be used"),
        ('"Gyr"', '"Gy"', "phase 1: state must have 3 letters, got 2"),
        ('linkIndex="1"', 'linkIndex="7"', "phase 0: state must have 8 letters, got 3"),
        ("<phase ", "<other ", None),
    ],
)
def test_programs_that_cannot_be_used_are_refused(write, old, new, message):
    text = net(*PARTS).replace(old, new)
    if message is None:  # a program without phases is that of a signal that is off
        assert read_sumo_net(write(text))[0].signals.empty
        return
    fault = faults_of(write(text))[0]
    assert message in fault


def test_additional_programs_are_for_signals_of_the_network(write):
    other = write("<add>" + PROGRAM.replace('"B"', '"Z"') + "</add>", "other.add.xml")
    (fault,) = faults_of(write(net(*PARTS)), other)
    assert fault.startswith(f"{other}: tlLogic 'Z': a program must be for a signal of ")
    loose = write("<add>\n<phase duration='3' state='r'/></add>", "loose.add.xml")
    assert "line 2: <phase> cannot be used" in faults_of(write(net(*PARTS)), loose)[0]


INTERNAL = (
    '<edge id=":B_0" function="internal">',
    lane(":B_0", 0, speed=9, length=4),
    lane(":B_0", 1, speed=8, length=5) + "</edge>",
    '<edge id=":B_2" function="internal">' + lane(":B_2", 0, speed=7, length=6) + "</edge>",
    '<edge id=":B_4" function="internal">' + lane(":B_4", 0, speed=6, length=2.5) + "</edge>",
)
WAYS = (
    '<connection from="AB" to="BC" fromLane="0" toLane="0" via=":B_0_0" dir="s" state="M"/>',
    '<connection from="AB" to="BC" fromLane="1" toLane="0" via=":B_0_1" dir="s" state="m"/>',
    '<connection from="AB" to="BA" fromLane="2" toLane="0" via=":B_2_0" dir="t" state="m"/>',
    '<connection from="CB" to="BA" fromLane="0" toLane="0" dir="s" state="M"/>',
    '<connection from=":B_2" to="BA" fromLane="0" toLane="0" via=":B_4_0" dir="t" state="m"/>',
    '<connection from=":B_4" to="BA" fromLane="0" toLane="0" dir="t" state="M"/>',
)
REQUESTS = "".join(
    f'<request index="{place}" response="{response}" foes="1111" cont="0"/>'
    for place, response in enumerate(("0000", "0001", "1010", "0000"))
)


def junction_b(kind="priority", requests=REQUESTS):
    return (
        f'<junction id="B" type="{kind}" x="100" y="0" incLanes="AB_0 AB_1 AB_2 CB_0" '
        f'intLanes=":B_0_0 :B_0_1 :B_4_0" shape="0,0 1,1">{requests}</junction>'
    )


def paths_of(roads):
    names = {data["link"]: data["sumo_edge"] for *_, data in roads.graph.edges(data=True)}
    columns = ("from_lane", "length_m", "speed_mps", "place", "yields_to")
    rows = roads.movements[roads.movements["allowed"]]
    return {(names[row.from_link], *(getattr(row, name) for name in columns)) for row in rows.itertuples()}


def test_paths_over_a_junction_and_their_priority(write):
    """Place 0 is for buses, but places of others count it; a path over two internal lanes has the lower speed."""
    parts = (*EDGES, *INTERNAL, JUNCTIONS[0], junction_b(), JUNCTIONS[2], *WAYS)
    roads, _ = read_sumo_net(write(net(*parts)))
    found = sorted(paths_of(roads), key=str)
    assert found[:2] == [("AB", 0, 5.0, 8.0, 1, (0,)), ("AB", 1, 8.5, 6.0, 2, (1, 3))]
    assert found[2][4:] == (3, ())
    assert np.isnan(found[2][2:4]).all()
    lacking, _ = read_sumo_net(write(net(*EDGES, *JUNCTIONS, *WAYS[:4])))
    rows = lacking.movements
    assert rows[["length_m", "speed_mps"]].isna().all(axis=None)
    assert (rows["place"] == -1).all()
    assert rows["yields_to"].isna().all()


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("traffic_light_unregulated", {()}), ("unregulated", {()}), ("priority", {None})],
)
def test_junctions_without_priorities(write, kind, expected):
    """At a junction without regulation no movement yields; elsewhere priorities that are not stated are unknown."""
    parts = (*EDGES, *INTERNAL, JUNCTIONS[0], junction_b(kind, ""), JUNCTIONS[2], *WAYS)
    roads, _ = read_sumo_net(write(net(*parts)))
    assert {row[-1] for row in paths_of(roads)} == expected
    assert sorted(row[-2] for row in paths_of(roads)) == [1, 2, 3]


NETS = sorted(SUMO.glob("*/*.net.xml.gz"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NETS, ids=lambda path: path.parent.name)
@pytest.mark.parametrize("replaced", [False, True])
def test_real_networks_equal_sumolib_one_by_one(path, replaced):
    """Every connection for cars, and the state of every signal in every second of its cycle."""
    additional = next(path.parent.glob("*tls.add.xml"), None) if replaced else None
    if replaced and additional is None:
        pytest.skip("it has no additional programs")
    roads, _ = read_sumo_net(path, additional=additional)
    reference = sumolib.net.readNet(str(path), withLatestPrograms=True)
    programs = {tls.getID(): next(iter(tls.getPrograms().values())) for tls in reference.getTrafficLights()}
    states = {name: [(phase.duration, phase.state) for phase in tls.getPhases()] for name, tls in programs.items()}
    if additional is not None:
        for logic in sumolib.xml.parse(str(additional), "tlLogic"):
            states[logic.id] = [(float(phase.duration), phase.state) for phase in logic.phase]
    edges = {data["sumo_edge"] for *_, data in roads.graph.edges(data=True)}
    expected = []
    for edge_ in reference.getEdges():
        cars = [lane_.getID() for lane_ in edge_.getLanes() if lane_.allows("passenger")]
        for connections in edge_.getOutgoing().values():
            for one in connections:
                to = [lane_.getID() for lane_ in one.getTo().getLanes() if lane_.allows("passenger")]
                if edge_.getID() not in edges or one.getTo().getID() not in edges:
                    continue
                if one.getFromLane().getID() in cars and one.getToLane().getID() in to:
                    lanes = cars.index(one.getFromLane().getID()), to.index(one.getToLane().getID())
                    signal = (one.getTLSID() or None, one.getTLLinkIndex())
                    expected.append((edge_.getID(), one.getTo().getID(), *lanes, *signal))
    open_rows = [row for row in rows_of(roads) if row[5]]
    assert sorted(((*row[:2], *row[3:5], *row[8:]) for row in open_rows), key=str) == sorted(expected, key=str)
    assert {row[:2] for row in rows_of(roads) if not row[5]}.isdisjoint(row[:2] for row in open_rows)
    groups = {row[8:] for row in open_rows if row[8] is not None}
    assert groups
    for signal, group in groups:
        windows = roads.signals[(roads.signals["signal"] == signal) & (roads.signals["group"] == group)]
        begin = 0.0
        for duration, state in states[signal]:
            middle = begin + duration / 2
            there = windows[(windows["from_s"] < middle) & (middle < windows["to_s"])]
            assert there["protected"].tolist() == {"G": [True], "g": [False]}.get(state[group], []), (signal, group)
            begin += duration
        assert (windows["cycle_s"] == begin).all()


@pytest.mark.slow
@pytest.mark.parametrize("path", NETS, ids=lambda path: path.parent.name)
def test_paths_and_priorities_of_real_networks_equal_the_file(path):
    """Each connection against the XML itself; the two numbers in a name of SUMO's internal lane add to its place."""
    roads, _ = read_sumo_net(path)
    with gzip.open(path) as file:
        root = ET.parse(file).getroot()  # noqa: S314 - a file of this project's data
    internal = {
        lane_.get("id"): (float(lane_.get("length")), float(lane_.get("speed")))
        for lane_ in root.iterfind("edge[@function='internal']/lane")
    }
    cars = {
        edge_.get("id"): [
            int(lane_.get("index"))
            for lane_ in edge_.iterfind("lane")
            if "passenger" in lane_.get("allow", "passenger").split()
            and not {"passenger", "all"} & set(lane_.get("disallow", "").split())
        ]
        for edge_ in root.iterfind("edge")
    }
    responses = {
        (node.get("id"), int(request.get("index"))): request.get("response")
        for node in root.iterfind("junction")
        for request in node.iterfind("request")
    }
    ends = {edge_.get("id"): edge_.get("to") for edge_ in root.iterfind("edge")}
    connections = root.findall("connection")
    following = {f"{one.get('from')}_{one.get('fromLane')}": one.get("via") for one in connections}
    expected = {}
    for one in connections:
        start, end, lanes = one.get("from"), one.get("to"), (int(one.get("fromLane")), int(one.get("toLane")))
        if start.startswith(":") or lanes[0] not in cars[start] or lanes[1] not in cars[end]:
            continue
        passed = [one.get("via")]
        while following.get(passed[-1]):
            passed.append(following[passed[-1]])
        place = sum(map(int, passed[0].rsplit("_", 2)[1:]))
        response = responses[ends[start], place]
        yields = tuple(at for at in range(len(response)) if response[len(response) - 1 - at] == "1")
        key = (start, end, cars[start].index(lanes[0]), cars[end].index(lanes[1]))
        values = [internal[lane_] for lane_ in passed]
        expected[key] = (sum(value[0] for value in values), min(value[1] for value in values), place, yields)
    names = {data["link"]: data["sumo_edge"] for *_, data in roads.graph.edges(data=True)}
    found = {
        (names[row.from_link], names[row.to_link], row.from_lane, row.to_lane): (
            row.length_m,
            row.speed_mps,
            row.place,
            row.yields_to,
        )
        for row in roads.movements[roads.movements["allowed"]].itertuples()
    }
    assert len(found) > 200
    assert sum(len(row[-1]) for row in found.values()) > 200
    assert found == {key: expected[key] for key in found}
    assert {key for key in expected if {key[0], key[1]} <= set(names.values())} == found.keys()
