"""Gaps, stops and all-way stops against the law of Harders and Siegloch and the Highway Capacity Manual.

A vehicle enters a gap if the next vehicle to which it yields comes no earlier than the critical gap t_c after the last
one, and another one each follow-up time t_f after it, as long as t_c remains: floor((gap - t_c) / t_f) + 1 of them.
"""

from math import exp, sqrt
from statistics import NormalDist

import numpy as np
import pytest
from random_roads import random_case
from roads_by_hand import ENGINES, drive, exit_times_s, links_by_ends, movement, network, window

from simulator.roads.movements import movement_table, signal_table
from simulator.traffic.agents import Agents
from simulator.traffic.clock import Clock
from simulator.traffic.fleet import Fleet
from simulator.traffic.lanes import LinkPhysics
from simulator.traffic.physics import FREE, HCM_GAPS, ONE_TICK, Driving

both = pytest.mark.parametrize("engine", ENGINES)
orders = pytest.mark.parametrize("order", ["wesnc", "cnsew"])
"""Nodes in the order of their numbers, and so of the links and lanes."""

LEG_M, PLACES = 300.0, {"w": (-1, 0), "e": (1, 0), "s": (0, -1), "n": (0, 1), "c": (0, 0)}
TURNS = {"wn": "left", "se": "right", "sw": "left", "ws": "right"}


class Crossing:
    """Four roads that meet at c, and movements over it: (from and to, right of way, places to yield to, more)."""

    def __init__(self, order, *movements, capacity_vph=1800.0):
        self.node = {name: number for number, name in enumerate(order)}
        places = {number: tuple(LEG_M * at for at in PLACES[name]) for name, number in self.node.items()}
        ends = [(self.node[n], self.node["c"]) for n in "wesn"]
        data = {"length_m": LEG_M, "capacity_vph": capacity_vph}
        self.roads = network(places, [(*pair, data) for end in ends for pair in (end, end[::-1])])
        self.link = links_by_ends(self.roads)
        self.movements = movement_table(
            movement(
                self.node["c"],
                self.into(way[0]),
                self.link[self.node["c"], self.node[way[1]]],
                turn=TURNS.get(way, "straight"),
                right_of_way=right,
                place=place,
                yields_to=yields,
                length_m=0.0,
                **dict(*more),
            )
            for place, (way, right, yields, *more) in enumerate(movements)
        )

    def into(self, name):
        """Return the link that leads from a node to the crossing."""
        return self.link[self.node[name], self.node["c"]]

    def left(self, engine, trips, *, until_s, step_s=1.0, **physics):
        """Return when the vehicles of trips (second, from and to) left each link to the crossing, by node."""
        known = sorted(
            (int(time_s / step_s), [self.node[way[0]], self.node["c"], self.node[way[1]]]) for time_s, way in trips
        )
        until = int(until_s / step_s)
        physics["movements"] = self.movements
        driven = drive(engine, self.roads, known, until=until, step_s=step_s, **physics)
        return {name: exit_times_s(driven, self.into(name)) * step_s for name in "wesn"}


def queue(way, until_s, every_s=2.0):
    """Trips that keep a queue at the crossing."""
    return [(time_s, way) for time_s in np.arange(0, until_s, every_s)]


def poisson(rng, flow_vph, way, until_s):
    times_s = np.cumsum(rng.exponential(3600 / flow_vph, int(flow_vph * until_s / 3600 * 1.5) + 50))
    return [(time_s, way) for time_s in times_s[times_s < until_s]]


YIELDING = {
    "sn": ("yield", "we", "straight"),
    "se": ("yield", "we", "right"),
    "sw": ("yield", "we", "left"),
    "wn": ("priority", "ew", "major"),
}


@both
@orders
@pytest.mark.parametrize(("way", "flow_vph"), [("sn", 300), ("se", 1000), ("sw", 300), ("wn", 1000)])
def test_each_gap_takes_as_many_vehicles_as_critical_gap_and_follow_up_time_allow(engine, order, way, flow_vph):
    right, major, kind = YIELDING[way]
    crossing, until_s = Crossing(order, (way, right, (1,)), (major, "priority", ())), 900
    trips = [*queue(way, until_s), *poisson(np.random.default_rng(flow_vph), flow_vph, major, until_s)]
    left = crossing.left(engine, trips, until_s=until_s)
    critical_s, follow_up_s = HCM_GAPS[kind].critical_s[0], HCM_GAPS[kind].follow_up_s[0]
    passed = left[major[0]][left[major[0]] > 60]
    found = np.diff(np.searchsorted(left[way[0]], passed - 0.005))
    room = np.floor((np.diff(passed) - critical_s) / follow_up_s + 1e-6) + 1
    assert len(room) > 0.7 * flow_vph * (until_s - 120) / 3600
    np.testing.assert_array_equal(found, np.maximum(room, 0))


CAPACITIES = [(way, flow_vph) for way in YIELDING for flow_vph in (200, 800)]


@pytest.mark.parametrize(("way", "flow_vph"), CAPACITIES)
def test_capacity_is_that_of_the_manual_for_poisson_flow(way, flow_vph):
    """c = v exp(-v t_c) / (1 - exp(-v t_f)); arrivals in ticks of 0.1 s accept gaps 0.05 s shorter on average."""
    right, major, kind = YIELDING[way]
    until_s, step_s = 7200, 0.1
    crossing = Crossing("wesnc", (way, right, (1,)), (major, "priority", ()), capacity_vph=36_000.0)
    trips = [*queue(way, until_s), *poisson(np.random.default_rng(flow_vph), flow_vph, major, until_s)]
    found = np.sum(crossing.left(Fleet, trips, until_s=until_s, step_s=step_s)[way[0]] > 100)
    per_s, size_s = flow_vph / 3600, until_s - 100
    reached, more = exp(-per_s * HCM_GAPS[kind].critical_s[0]), exp(-per_s * HCM_GAPS[kind].follow_up_s[0])
    expected = per_s * size_s * reached / (1 - more)
    deviation = sqrt(per_s * size_s * reached * (1 + more) / (1 - more) ** 2)  # of a compound Poisson sum
    quantile = NormalDist().inv_cdf(1 - 1e-6 / (2 * len(CAPACITIES)))
    assert found == pytest.approx(expected, abs=quantile * deviation + per_s * step_s * expected + 1)


@both
@orders
def test_with_no_conflict_a_stop_and_a_yield_discharge_by_the_follow_up_time(engine, order):
    for way, kind in (("sn", "straight"), ("se", "right"), ("sw", "left")):
        for right in ("stop", "yield"):
            crossing = Crossing(order, (way, right, (1,)), ("we", "priority", ()))
            times_s = crossing.left(engine, queue(way, 300), until_s=300)["s"]
            np.testing.assert_allclose(np.diff(times_s), HCM_GAPS[kind].follow_up_s[0], atol=0.002)


@both
def test_every_vehicle_loses_the_start_at_a_stop(engine):
    taken = {}
    for right in ("stop", "yield"):
        crossing = Crossing("wesnc", ("sn", right, (1,)), ("we", "priority", ()))
        path = [crossing.node[name] for name in "scn"]
        done = drive(engine, crossing.roads, [(0, path)], until=200, movements=crossing.movements)
        taken[right] = done.log_by_vehicle()[-1, 3] / ONE_TICK  # at the end
    assert taken["stop"] - taken["yield"] == pytest.approx(Driving().start_loss_s, abs=0.002)


@both
@orders
@pytest.mark.parametrize(
    ("approaches", "headway_s"), [("s", 3.9), ("sn", 4.7), ("sw", 5.8), ("snw", 7.0), ("wesn", 9.6)]
)
def test_at_an_all_way_stop_full_approaches_take_turns_at_the_headways_of_the_manual(
    engine, order, approaches, headway_s
):
    """Highway Capacity Manual, 6th edition, Exhibit 21-15: 923, 1,532, 1,241, 1,543 and 1,500 vehicles an hour."""
    ways = {"w": "we", "e": "ew", "s": "sn", "n": "ns"}
    yields = ((2, 3), (2, 3), (), ())
    crossing = Crossing(order, *((way, "all_way_stop", to) for way, to in zip(ways.values(), yields, strict=True)))
    trips = [trip for name in approaches for trip in queue(ways[name], 600)]
    left = crossing.left(engine, trips, until_s=600)
    for name in approaches:
        times_s = left[name][left[name] > 120]
        np.testing.assert_allclose(np.diff(times_s), headway_s, atol=0.002)
        for other in approaches:  # one of each other approach between two of this one
            between = np.diff(np.searchsorted(left[other], times_s + 0.01))
            assert set(between.tolist()) <= {1}


@both
@orders
def test_a_vehicle_behind_one_that_turns_off_is_yielded_to(engine, order):
    # The first on the road turns off at 30 s, the second goes straight on at 32 s. The other one is ready at 30 s.
    rows = [("sn", "yield", (1,)), ("we", "priority", ()), ("ws", "priority", ())]
    crossing = Crossing(order, *rows)
    left = crossing.left(engine, [(0, "ws"), (0, "sn"), (1, "we")], until_s=100)
    assert left["w"] == pytest.approx([30.0, 32.0], abs=0.01)
    assert left["s"] == pytest.approx([32.0 + Driving().clearance_s], abs=0.01)


@both
@orders
def test_a_turn_that_gaps_hold_crosses_at_green_only(engine, order):
    signal = {"signal": "s"}
    rows = [("wn", None, (1,), signal | {"group": 0}), ("ew", None, (), signal | {"group": 1})]
    crossing = Crossing(order, *rows)
    green = [window("s", 0.0, 30.0, cycle_s=90.0, protected=False), window("s", 0.0, 60.0, cycle_s=90.0, group=1)]
    trips = [*queue("wn", 1800, 20.0), *((time_s + 0.5, "ew") for time_s in range(0, 1800, 4))]
    left = crossing.left(engine, trips, until_s=1800, signals=signal_table(green))["w"]
    driving = Driving()
    ends_s = 30.0 + driving.yellow_used_s + driving.clearing_s
    assert len(left) > 15
    assert np.all((left % 90 >= driving.green_lost_s - 0.002) & (left % 90 <= ends_s + 0.002))


class Watched(Agents):
    """Agents that note what the junction refuses."""

    asked = refused = 0

    def _junction(self, vehicle, lane, movement, time, ready, pass_no):
        found = super()._junction(vehicle, lane, movement, time, ready, pass_no)
        crosses_at, holds, _, refused = found
        noted = self.__dict__.setdefault("noted", {})
        key = (vehicle.number, vehicle.position)
        self.asked += 1
        if holds == FREE:
            assert crosses_at >= noted.get(key, crosses_at)
            assert movement.window_first < 0 or self._green(movement, crosses_at)[0] == crosses_at
        else:
            self.refused += 1
            assert refused >= noted.get(key, refused)
            noted[key] = refused
        return found


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=[pytest.mark.slow, pytest.mark.thorough]) for part in range(1, 8))]
)
def test_nobody_crosses_at_red_or_before_it_was_refused_last(part):
    refused = 0
    for seed in range(6 * part, 6 * part + 6):
        engine, env = random_case(seed).started(Watched)
        env.run(until=240.5)
        refused += engine.refused
    assert refused > 500


ARMS = {0: (0.0, 150.0), 1: (150.0, 0.0), 2: (0.0, -150.0), 3: (-150.0, 0.0)}
CENTRE = 4


def crossing():
    """Return four arms, counted clockwise from the north, and the number of the link between any two nodes."""
    edges = [(a, b, {"length_m": 150.0}) for arm in ARMS for a, b in ((arm, CENTRE), (CENTRE, arm))]
    roads = network(ARMS | {CENTRE: (0.0, 0.0)}, edges)
    return roads, links_by_ends(roads)


def over(link, start, end, **values):
    """Return a movement over the centre, of 1 s and 10 m."""
    known = {"right_of_way": "equal", "length_m": 10.0, "speed_mps": 10.0}
    return movement(CENTRE, link[start, CENTRE], link[CENTRE, end], **known | values)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_circle_of_vehicles_that_yield_to_each_other_dissolves(engine):
    roads, link = crossing()
    rows = [over(link, arm, (arm + 2) % 4, place=arm, yields_to=((arm + 1) % 4,)) for arm in ARMS]
    trips = [(0, (arm, CENTRE, (arm + 2) % 4)) for arm in ARMS]
    driven = drive(engine, roads, trips, until=60, movements=movement_table(rows))
    assert driven.totals().arrived == 4
    left = [float(exit_times_s(driven, link[arm, CENTRE])[0]) for arm in ARMS]
    assert min(left) == 16.0  # one does not wait at all: 150 m and 10 m over the junction


@pytest.mark.parametrize("engine", ENGINES)
def test_a_vehicle_at_red_holds_nobody_however_soon_its_green_begins(engine):
    roads, link = crossing()
    rows = [
        over(link, 0, 1, place=0, turn="left", yields_to=(1,), signal="s", group=0),
        over(link, 3, 1, place=1, signal="s", group=1),
    ]
    windows = [
        window("s", 0.0, 18.0, cycle_s=60.0, protected=False),
        window("s", 18.0, 60.0, cycle_s=60.0, group=1),
    ]
    rules = {"movements": movement_table(rows), "signals": signal_table(windows)}
    driven = drive(engine, roads, [(0, (0, CENTRE, 1)), (0, (3, CENTRE, 1))], until=60, **rules)
    assert exit_times_s(driven, link[0, CENTRE]).tolist() == [16.0]
    assert exit_times_s(driven, link[3, CENTRE]).tolist() == [20.5]


@pytest.mark.parametrize(("length_m", "yields_to", "storage"), [(20.0, (), 7), (20.0, (1,), 2), (5.0, (1,), 5)])
def test_vehicles_wait_on_a_junction_that_need_not_be_kept_clear(length_m, yields_to, storage):
    edges = [(0, 4, {"length_m": 150.0}), (3, 4, {"length_m": 150.0}), (4, 1, {"length_m": length_m})]
    roads = network(ARMS | {CENTRE: (0.0, 0.0)}, [*edges, (4, 2, {"length_m": 150.0}), (1, 0, {"length_m": 200.0})])
    link = links_by_ends(roads)
    rows = [
        over(link, 0, 1, place=0, length_m=30.0, yields_to=yields_to),
        over(link, 3, 2, place=1, length_m=30.0),
    ]
    lanes = LinkPhysics.build(roads.links, Clock(), movements=movement_table(rows)).lanes
    (lane,) = lanes[lanes["link"] == link[CENTRE, 1]]
    # 50 m hold the fronts of 7 vehicles of 7.5 m; 20 m hold 2 whole ones; on 35 m stand the fronts of 5.
    assert lane["storage"] == storage
