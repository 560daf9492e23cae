"""Vehicles of several classes: their lanes and turns, their speeds, and what SUMO does with the same files."""

import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import simpy
from roads_by_hand import ENGINES, chain, drive, entry_times_s, movement
from sumo_by_hand import sumo, tool

import scenarios
from simulator.experiment.assembly.city import build_city
from simulator.experiment.assembly.engine import build_engine
from simulator.files.resources import Stopwatch
from simulator.files.xml_elements import elements_of
from simulator.formats.sumo.attributes import classes_in
from simulator.roads.movements import movement_table
from simulator.streams import Streams
from simulator.traffic.physics import SUMO_DRIVING
from simulator.traffic.trips import VehicleClasses

NODES = {"x": (-300, 0), "a": (0, 0), "b": (400, 200), "c": (800, 0), "y": (1100, 0)}
EDGES = """
<edge id="xa" from="x" to="a" numLanes="2" speed="13.89"><lane index="0" allow="bus"/></edge>
<edge id="ab" from="a" to="b" numLanes="1" speed="13.89"/><edge id="bc" from="b" to="c" numLanes="1" speed="13.89"/>
<edge id="ac" from="a" to="c" numLanes="1" speed="13.89" allow="bus"/>
<edge id="cy" from="c" to="y" numLanes="1" speed="13.89"/>
"""
TYPES = """<vType id="car"/><vType id="bus" vClass="bus" length="12"/><vType id="slow" maxSpeed="5"/>
<vTypeDistribution id="mixed" vTypes="car slow" probabilities="3 1"/>"""


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    """A road for cars of 895 m beside a straight one for buses of 800 m, after a road with a bus lane."""
    folder = tmp_path_factory.mktemp("classes")
    nodes = "".join(f'<node id="{name}" x="{x}" y="{y}"/>' for name, (x, y) in NODES.items())
    (folder / "n.nod.xml").write_text(f"<nodes>{nodes}</nodes>")
    (folder / "e.edg.xml").write_text(f"<edges>{EDGES}</edges>")
    tool("netconvert", "-n", folder / "n.nod.xml", "-e", folder / "e.edg.xml", "-o", folder / "net.xml")
    return folder / "net.xml"


def built(net: Path, vehicles: str, **roads: str):
    """The city and the engine of a scenario with default classes, for trips of SUMO's."""
    (net.parent / "own.rou.xml").write_text(f"<routes>{TYPES}{vehicles}</routes>")
    scenario = scenarios.Scenario.model_validate(
        {
            "scenario": {"name": "classes", "seed": 1, "duration_s": 900},
            "roads": {"source": "sumo", "path": str(net)} | roads,
            "cells": {"kind": "square", "size_m": 200.0},
            "traffic": {"demand": "trips", "trips": str(net.parent / "own.rou.xml")},
            "campaigns": [{"name": "all", "start_s": 300, "queries": 1, "round_gap_s": 1, "deadline_s": 1}],
            "mechanisms": [{"name": "exact", "kind": "no_privacy"}],
        }
    )
    city = build_city(scenario)
    return city, build_engine(scenario, city, streams=Streams(1), stopwatch=Stopwatch(), end_s=900, motion=True)


def test_vehicles_keep_to_their_lanes_and_turns_as_in_sumo(net):
    kinds = ["car", "bus", "car", "slow"] * 10
    trips = "".join(
        f'<trip id="{i}" type="{kind}" depart="{9 * i}" from="xa" to="cy"/>' for i, kind in enumerate(kinds)
    )
    city, engine = built(net, trips)
    env = simpy.Environment()
    engine.start(env)
    env.run(until=900.01)
    engine.advance()
    names = {data["link"]: data["sumo_edge"] for *_, data in city.roads.graph.edges(data=True)}
    ours: dict[int, list[tuple[str, int]]] = {}
    for vehicle, link, lane, _ in engine.log_by_vehicle().tolist():
        if link >= 0:
            ours.setdefault(vehicle, []).append((names[link], lane))
    assert engine.totals().arrived == len(kinds)
    classes = ["bus" if kind == "bus" else "passenger" for kind in kinds]
    assert engine.class_of(np.arange(len(kinds))) == classes
    out = net.parent / "fcd.xml"
    done = net.parent / "trips.xml"
    command = [Path(sumo.SUMO_HOME) / "bin" / "sumo", "-n", net, "-r", net.parent / "own.rou.xml", "--seed", "3"]
    written = ["--fcd-output", out, "--tripinfo-output", done, "--no-step-log"]
    subprocess.run([*map(str, command), *map(str, written)], check=True, capture_output=True)
    theirs: dict[int, list[str]] = {}
    for name, attributes, _ in elements_of(out):
        if name == "vehicle" and attributes and not attributes["lane"].startswith(":"):
            edge, _, lane = attributes["lane"].rpartition("_")
            driven = theirs.setdefault(int(attributes["id"]), [])
            if edge not in driven:
                driven.append(edge)
            assert kinds[int(attributes["id"])] == "bus" or (edge, lane) != ("xa", "0")
    for vehicle, kind in enumerate(kinds):
        assert [edge for edge, _ in ours[vehicle]] == theirs[vehicle]
        assert theirs[vehicle] == (["xa", "ac", "cy"] if kind == "bus" else ["xa", "ab", "bc", "cy"])
        assert kind == "bus" or dict(ours[vehicle])["xa"] == 1
    took = {
        int(attributes["id"]): float(attributes["duration"]) + float(attributes["departDelay"])
        for name, attributes, _ in elements_of(done)
        if name == "tripinfo" and attributes
    }
    log = engine.log_by_vehicle()
    for kind in ("car", "bus", "slow"):
        mine = [v for v, other in enumerate(kinds) if other == kind]
        ends = np.array([log[log[:, 0] == v, 3].max() / 1024 - 9 * v for v in mine])
        assert ends.mean() == pytest.approx(np.mean([took[v] for v in mine]), rel=0.06), kind


def test_roads_have_the_lanes_of_the_vehicles(net):
    cars, buses = '<trip id="1" type="car" depart="0" from="xa" to="cy"/>', '<flow id="f" type="bus" begin="0"'
    buses += ' end="60" number="3" from="xa" to="cy"/>'
    for vehicles, lanes in ((cars, 4), (cars + buses, 6), (buses, 6)):
        city, engine = built(net, vehicles)
        assert city.roads.links.lanes.sum() == lanes
        assert engine.vehicles == vehicles.count("trip id") + 3 * vehicles.count("flow id")
    city, _ = built(net, cars, vehicle_class="bus")
    assert city.roads.links.lanes.sum() == 6


def test_types_of_a_distribution_are_drawn(net):
    trips = "".join(f'<trip id="{i}" type="mixed" depart="{i}" from="xa" to="cy"/>' for i in range(400))
    _, engine = built(net, trips)
    slow = Counter(np.round(1024 / engine._physics.pace + SUMO_DRIVING.slack_mps, 2).tolist())
    assert sorted(slow) == [5.0, 55.56]
    # Binomial: 100 of 400, standard deviation 8.7; five of them.
    assert abs(slow[5.0] - 100) < 44


@pytest.mark.parametrize(("weights", "speeds"), [("0 0", {5.0, 55.56}), ("-1 2", {5.0}), ("1", {5.0, 55.56})])
def test_weights_of_a_distribution_may_be_odd(net, weights, speeds):
    odd = f'<vTypeDistribution id="odd" vTypes="car slow" probabilities="{weights}"/>'
    trips = "".join(f'<trip id="{i}" type="odd" depart="{i}" from="xa" to="cy"/>' for i in range(60))
    _, engine = built(net, odd + trips)
    found = np.round(1024 / engine._physics.pace + SUMO_DRIVING.slack_mps, 2)
    assert set(found.tolist()) == speeds


def test_classes_are_those_of_the_vehicles(tmp_path):
    path = tmp_path / "r.rou.xml"
    for vehicles, classes in (
        ('<trip id="1" depart="0" from="a" to="b"/>', ["passenger"]),
        ('<trip id="1" type="mixed" depart="0" from="a" to="b"/>', ["passenger"]),
        ('<flow id="1" type="bus" begin="0" end="9" number="1" from="a" to="b"/>', ["bus"]),
        ('<trip id="1" type="DEFAULT_BIKETYPE" depart="0" from="a" to="b"/><person id="p"/>', ["bicycle"]),
        (
            """<vTypeDistribution id="d"><vType id="t" vClass="taxi"/><vType id="u" vClass="truck"/></vTypeDistribution>
            <vehicle id="1" type="d" depart="0"/><vehicle id="2" type="unknown" depart="0"/>""",
            ["passenger", "taxi", "truck"],
        ),
    ):
        path.write_text(f"<routes>{TYPES}{vehicles}</routes>")
        assert classes_in([path]) == classes


def classes_of(*kinds: str, speeds=None) -> VehicleClasses:
    of = np.array([("bus", "car").index(kind) for kind in kinds], dtype=np.uint8)
    return VehicleClasses(("bus", "car"), of, np.array(speeds or [np.inf] * len(kinds)), spacing_m=7.5)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_slow_vehicle_takes_its_own_time_and_holds_those_behind(engine):
    roads = chain({"length_m": 300.0}, {"length_m": 300.0, "speed_mps": 4.0}, {"length_m": 300.0})
    classes = classes_of("car", "car", "car", speeds=[5.0, np.inf, np.inf])
    driven = drive(
        engine, roads, [(0, (0, 1, 2, 3)), (5, (0, 1, 2, 3)), (90, (0, 1, 2, 3))], until=400, classes=classes
    )
    # 300 m at 5, 4 and 5 m/s; the second leaves each link a headway of 2 s after it.
    assert entry_times_s(driven, 0) == pytest.approx([0.0, 60.0, 135.0], abs=0.01)
    assert entry_times_s(driven, 1) == pytest.approx([5.0, 62.0, 137.0], abs=0.01)
    assert entry_times_s(driven, 2) == pytest.approx([90.0, 120.0, 195.0], abs=0.01)
    assert driven.totals().arrived == 3


@pytest.mark.parametrize("engine", ENGINES)
def test_a_class_keeps_to_the_lanes_that_are_open_to_it(engine):
    roads = chain({"length_m": 200.0, "lanes": 2}, {"length_m": 200.0, "lanes": 2}, {"length_m": 200.0, "lanes": 2})
    known = {"right_of_way": "priority", "length_m": 0.0, "speed_mps": 10.0}
    rows = [
        movement(node, node - 1, node, from_lane=lane, to_lane=lane, place=lane, classes=classes, **known)
        for node in (1, 2)
        for lane, classes in enumerate(("bus", None))
    ]
    kinds = ["bus", "car"] * 20
    trips = [(place // 2, (0, 1, 2, 3)) for place in range(40)]
    driven = drive(engine, roads, trips, until=300, movements=movement_table(rows), classes=classes_of(*kinds))
    entries = driven.entries
    before = entries[entries[:, 1] < 2]  # the last link is one queue for all lanes, as nothing follows
    lanes = {kind: set(before[[kinds[v] == kind for v in before[:, 0]], 2].tolist()) for kind in ("bus", "car")}
    assert driven.totals().arrived == 40
    assert lanes["car"] == {1}
    assert 0 in lanes["bus"]
