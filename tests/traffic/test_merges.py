"""Merges: approaches that are fed above their capacity share a link in the ratio of capacities, whatever their numbers.

The shares are those of C. F. Daganzo, "The cell transmission model, part II", Transportation Research B 29 (1995), with
priorities in the ratio of capacities.
"""

import numpy as np
import pytest
from roads_by_hand import ENGINES, drive, exit_times_s, links_by_ends, movement, network

from simulator.roads.movements import movement_table
from simulator.traffic.agents import Agents
from simulator.traffic.fleet import Fleet
from simulator.traffic.physics import ONE_TICK

FED = 1.25
"""Demand of each approach, over its capacity. Below 1 the measured flows would be the demands of the test itself."""


def merge(engine, lanes, onto, *, capacities, capacity, demands=None, step_s=1.0, renumbered=False, by_lane=True):
    """Return the vehicles per hour that leave each approach for a link of `onto` lanes, from 500 to 1,500 s.

    `lanes` are those of the approaches, and `capacities` theirs a lane. With `by_lane`, each has a queue a lane.
    """
    count, end_s = len(lanes), 1500
    starts = list(range(count))[:: -1 if renumbered else 1]
    node, last = count, count + 1
    drawn = {"length_m": 900.0, "speed_mps": 15.0}
    edges = [
        (start, node, {**drawn, "lanes": lanes[i], "capacity_vph": capacities[i]}) for i, start in enumerate(starts)
    ]
    edges += [(at, at + 1, {**drawn, "lanes": onto, "capacity_vph": capacity}) for at in (node, last)]
    nodes = {start: (0.0, 300.0 * start) for start in range(count)} | {
        node + k: (900.0 * (k + 1), 0.0) for k in range(3)
    }
    roads = network(nodes, edges)
    link = links_by_ends(roads)
    numbers = [link[start, node] for start in starts]
    ways = [
        movement(node, number, link[node, last], from_lane=a, to_lane=b)
        for number, wide in zip(numbers, lanes, strict=True)
        for a in range(wide)
        for b in range(onto)
    ]
    ways += [movement(last, link[node, last], link[last, last + 1], from_lane=a, to_lane=a) for a in range(onto)]
    movements = movement_table([{**one, "place": place} for place, one in enumerate(ways)]) if by_lane else None
    demands = demands or [FED * wide * each for wide, each in zip(lanes, capacities, strict=True)]
    trips = sorted(
        (int(k * 3600 / demand / step_s), [start, node, last, last + 1])
        for start, demand in zip(starts, demands, strict=True)
        for k in range(int(demand * end_s / 3600))
    )
    driven = drive(engine, roads, trips, until=int(end_s / step_s), step_s=step_s, movements=movements)
    left = [exit_times_s(driven, number) * step_s for number in numbers]
    return np.array([((times >= 500) & (times < end_s)).sum() * 3.6 for times in left])


def shares(lanes, onto, *, capacities, capacity):
    whole = np.array(lanes) * np.array(capacities)
    return whole * min(1.0, onto * capacity / whole.sum())


ALIKE = [((1, 1), 1), ((2, 1), 1), ((3, 2, 1), 1), ((2, 1), 2), ((2, 2, 2), 2), ((3, 1), 3), ((3, 2), 3)]
"""Lanes of the approaches, and of the link that they enter."""


@pytest.mark.parametrize("renumbered", [False, True], ids=["given", "renumbered"])
@pytest.mark.parametrize("by_lane", [False, True], ids=["one queue", "queues a lane"])
@pytest.mark.parametrize(("lanes", "onto"), ALIKE)
def test_approaches_share_a_link_by_their_capacities(lanes, onto, by_lane, renumbered):
    for capacity, step_s in ((1500.0, 0.5), (1800.0, 1.0), (2400.0, 1.0), (1800.0, 2.0)):
        given = {"capacities": [capacity] * len(lanes), "capacity": capacity}
        flows = merge(Fleet, lanes, onto, step_s=step_s, renumbered=renumbered, by_lane=by_lane, **given)
        # Two vehicles of an approach in 1,000 s, and half a percent: the interval cuts periods of the sharing.
        assert flows == pytest.approx(shares(lanes, onto, **given), rel=0.005, abs=7.2)


def test_both_engines_share_a_link_alike():
    ours, theirs = (merge(engine, (3, 1), 3, capacities=[1800.0] * 2, capacity=1800.0) for engine in ENGINES)
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("engine", [Fleet, pytest.param(Agents, marks=pytest.mark.slow)])
def test_capacities_of_lanes_may_differ(engine):
    """Headways that do not divide each other, each of which would else miss slots just before it is ready."""
    rng, cases = np.random.default_rng(7), 0
    while cases < (15 if engine is Fleet else 3):
        lanes = rng.integers(1, 4, rng.integers(2, 4)).tolist()
        given = {"capacities": rng.uniform(900, 2400, len(lanes)).tolist(), "capacity": float(rng.uniform(900, 2400))}
        right = shares(lanes, 1, **given)
        if right.sum() > 0.9 * np.dot(lanes, given["capacities"]):
            continue
        cases += 1
        by_lane, renumbered = rng.random(2) < 0.5
        flows = merge(engine, lanes, 1, by_lane=bool(by_lane), renumbered=bool(renumbered), **given)
        assert flows == pytest.approx(right, rel=0.03, abs=7.2), (lanes, given)


@pytest.mark.parametrize("renumbered", [False, True], ids=["given", "renumbered"])
@pytest.mark.parametrize(
    ("demands", "lanes", "flows"),
    [((1200, 600), (1, 1), (1200, 600)), ((1700, 400), (1, 1), (1400, 400)), ((400, 2100), (1, 1), (400, 1400))],
)
def test_an_approach_whose_demand_is_below_its_share_has_its_demand(demands, lanes, flows, renumbered):
    given = {"capacities": [1800.0, 1800.0], "capacity": 1800.0, "by_lane": False}
    found = merge(Fleet, lanes, 1, demands=demands, renumbered=renumbered, **given)
    assert found == pytest.approx(flows, rel=0.01, abs=7.2)


@pytest.mark.parametrize("renumbered", [False, True], ids=["given", "renumbered"])
def test_trips_that_start_on_a_link_take_turns_with_those_that_enter_it(renumbered):
    """Trips that start on a link are a queue with the capacity of the link."""
    first, second = (1, 0) if renumbered else (0, 1)
    drawn = {"length_m": 900.0, "speed_mps": 15.0}
    nodes = {node: (900.0 * place, 0.0) for place, node in sorted(enumerate((first, second, 2)), key=lambda at: at[1])}
    roads = network(nodes, [(first, second, drawn), (second, 2, drawn)])
    shared = links_by_ends(roads)[second, 2]
    trips = sorted((k, [*start, second, 2]) for k in range(0, 1500, 2) for start in ([first], []))
    for engine in ENGINES:
        log = drive(engine, roads, trips, until=1500).log
        entered = log[(log[:, 1] == shared) & (log[:, 3] >= 500 * ONE_TICK)]
        through = np.array([len(path) == 3 for _, path in trips])[entered[:, 0]]
        assert [through.sum(), (~through).sum()] == pytest.approx([250, 250], abs=2)
