"""Which vehicles hold others at a junction, and how many wait on it."""

import pytest
from roads_by_hand import ENGINES, drive, exit_times_s, network

from simulator.roads.movements import movement_table, signal_table
from simulator.traffic.clock import Clock
from simulator.traffic.lanes import LinkPhysics

ARMS = {0: (0.0, 150.0), 1: (150.0, 0.0), 2: (0.0, -150.0), 3: (-150.0, 0.0)}
CENTRE = 4


def crossing():
    """Return four arms, counted clockwise from the north, and the number of the link between any two nodes."""
    edges = [(a, b, {"length_m": 150.0}) for arm in ARMS for a, b in ((arm, CENTRE), (CENTRE, arm))]
    roads = network(ARMS | {CENTRE: (0.0, 0.0)}, edges)
    pairs = zip(roads.links.from_node.tolist(), roads.links.to_node.tolist(), strict=True)
    return roads, {pair: link for link, pair in enumerate(pairs)}


def movement(link, start, end, **values):
    known = {"from_lane": 0, "to_lane": 0, "turn": "straight", "right_of_way": "equal", "length_m": 10.0}
    ends = {"node": CENTRE, "from_link": link[start, CENTRE], "to_link": link[CENTRE, end]}
    return known | ends | {"speed_mps": 10.0, "yields_to": ()} | values


@pytest.mark.parametrize("engine", ENGINES)
def test_a_circle_of_vehicles_that_yield_to_each_other_dissolves(engine):
    roads, link = crossing()
    rows = [movement(link, arm, (arm + 2) % 4, place=arm, yields_to=((arm + 1) % 4,)) for arm in ARMS]
    trips = [(0, (arm, CENTRE, (arm + 2) % 4)) for arm in ARMS]
    driven = drive(engine, roads, trips, until=60, movements=movement_table(rows))
    assert driven.totals().arrived == 4
    left = [float(exit_times_s(driven, link[arm, CENTRE])[0]) for arm in ARMS]
    assert min(left) == 16.0  # one does not wait at all: 150 m and 10 m over the junction


@pytest.mark.parametrize("engine", ENGINES)
def test_a_vehicle_at_red_holds_nobody_however_soon_its_green_begins(engine):
    roads, link = crossing()
    rows = [
        movement(link, 0, 1, place=0, turn="left", yields_to=(1,), signal="s", group=0),
        movement(link, 3, 1, place=1, signal="s", group=1),
    ]
    windows = [
        {"signal": "s", "group": group, "from_s": begin, "to_s": end, "protected": group == 1, "cycle_s": 60.0}
        | {"offset_s": 0.0, "actuated": False}
        for group, begin, end in ((0, 0.0, 18.0), (1, 18.0, 60.0))
    ]
    driven = drive(
        engine,
        roads,
        [(0, (0, CENTRE, 1)), (0, (3, CENTRE, 1))],
        until=60,
        movements=movement_table(rows),
        signals=signal_table(windows),
    )
    assert exit_times_s(driven, link[0, CENTRE]).tolist() == [16.0]
    assert exit_times_s(driven, link[3, CENTRE]).tolist() == [20.5]


@pytest.mark.parametrize(("length_m", "yields_to", "storage"), [(20.0, (), 7), (20.0, (1,), 2), (5.0, (1,), 5)])
def test_vehicles_wait_on_a_junction_that_need_not_be_kept_clear(length_m, yields_to, storage):
    edges = [(0, 4, {"length_m": 150.0}), (3, 4, {"length_m": 150.0}), (4, 1, {"length_m": length_m})]
    roads = network(ARMS | {CENTRE: (0.0, 0.0)}, [*edges, (4, 2, {"length_m": 150.0}), (1, 0, {"length_m": 200.0})])
    pairs = zip(roads.links.from_node.tolist(), roads.links.to_node.tolist(), strict=True)
    link = {pair: number for number, pair in enumerate(pairs)}
    rows = [
        movement(link, 0, 1, place=0, length_m=30.0, yields_to=yields_to),
        movement(link, 3, 2, place=1, length_m=30.0),
    ]
    lanes = LinkPhysics.build(roads.links, Clock(), movements=movement_table(rows)).lanes
    (lane,) = lanes[lanes["link"] == link[CENTRE, 1]]
    # 50 m hold the fronts of 7 vehicles of 7.5 m; 20 m hold 2 whole ones; on 35 m stand the fronts of 5.
    assert lane["storage"] == storage
