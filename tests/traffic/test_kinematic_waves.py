"""Queues, waves and merges against kinematic wave theory (Lighthill, Whitham and Richards; Daganzo; Newell).

The fundamental diagram of a lane is a triangle: free speed v, capacity C = 1/H, and a jam density of one vehicle in
7.5 m, so that waves move back at w = 7.5 / (H − 7.5 / v).
"""

from itertools import pairwise

import numpy as np
import pytest
from roads_by_hand import ENGINES, drive, exit_times_s, links_by_ends, movement, network, window
from verification import compared

from simulator.roads.movements import movement_table, signal_table
from simulator.traffic.agents import Agents
from simulator.traffic.engine import State
from simulator.traffic.fleet import Fleet
from simulator.traffic.physics import Driving

both = pytest.mark.parametrize("engine", ENGINES)
numberings = pytest.mark.parametrize("downstream_first", [False, True], ids=["upstream first", "downstream first"])


def corridor(*links, downstream_first=False):
    """Return roads of links one behind the other, and the numbers of their nodes and links in driving order."""
    nodes = np.arange(len(links) + 1)[:: -1 if downstream_first else 1].tolist()
    x = np.concatenate([[0.0], np.cumsum([link["length_m"] for link in links])])
    edges = [(nodes[i], nodes[i + 1], link) for i, link in enumerate(links)]
    roads = network({nodes[i]: (float(x[i]), 0.0) for i in np.argsort(nodes)}, edges)
    return roads, nodes, [links_by_ends(roads)[pair] for pair in pairwise(nodes)]


def vehicles_on(driven, link):
    places = driven.places()
    return int(((places.link == link) & (places.state == State.ON_ROAD)).sum())


def hourly(times_s, start_s, end_s):
    return ((times_s >= start_s) & (times_s < end_s)).sum() * 3600 / (end_s - start_s)


@both
@numberings
def test_time_on_many_short_links_is_that_of_their_length(engine, downstream_first):
    """60 links of 50 m at 13.89 m/s: 215.98 s, without rounding at each link."""
    links = [{"length_m": 50.0, "speed_mps": 13.89}] * 60
    roads, nodes, _ = corridor(*links, downstream_first=downstream_first)
    driven = drive(engine, roads, [(0, nodes)], until=230)
    assert driven.log[-1, 3] / 1024 == pytest.approx(60 * 50 / 13.89, rel=1e-3)


@both
@numberings
def test_queue_before_a_lane_drop(engine, downstream_first):
    """Demand 0.75 / s at 15 m/s, two lanes of 1,500 m, then one of C = 0.5 / s.

    The queue reaches back at the wave speed between the states (.05 / m, .75 / s) and (2 / 7.5 − 0.5 / w, 0.5 / s) with
    w = 7.5 / (2 − 0.5) = 5 m/s: −.25 / (.1667 − .05) = −2.14 m/s, from second 100 on. At 300 s 100 vehicles have left
    of the 225 that departed, and 125 are there; at 600 s 450 − 250 = 200. One lane holds 50 that drive 100 s.
    """
    links = [{"length_m": 1500.0, "speed_mps": 15.0, "lanes": lanes} for lanes in (2, 1)]
    roads, nodes, numbers = corridor(*links, downstream_first=downstream_first)
    trips = [(int(k / 0.75), nodes) for k in range(450)]
    for at_s, before in ((300, 125), (600, 200)):
        driven = drive(engine, roads, trips, until=at_s)
        assert vehicles_on(driven, numbers[0]) == pytest.approx(before, abs=1)
        assert vehicles_on(driven, numbers[1]) == pytest.approx(50, abs=1)
        compared("waves", [vehicles_on(driven, number) for number in numbers], [before, 50], allowed=1)


@both
@numberings
def test_a_jam_starts_at_the_speed_of_the_wave(engine, downstream_first):
    """Ten full links of 300 m behind red: w = 7.5 / (2 − 0.5) = 5 m/s, so each starts 60 s after the one ahead."""
    n, green_s = 10, 1600.0
    links = [{"length_m": 300.0, "speed_mps": 15.0}] * (n + 1)
    roads, nodes, numbers = corridor(*links, downstream_first=downstream_first)
    row = movement(nodes[n], numbers[n - 1], numbers[n], signal="s", group=0, place=0)
    signals = signal_table([window("s", green_s, 5000.0, cycle_s=5000.0)])
    rules = {"movements": movement_table([row]), "signals": signals}
    rules["driving"] = Driving(green_lost_s=0.0, start_loss_s=0.0)
    driven = drive(engine, roads, [(0, nodes)] * (40 * n), until=2300, **rules)
    firsts = [exits[exits >= green_s - 1][0] - green_s for exits in (exit_times_s(driven, k) for k in numbers[:n])]
    np.testing.assert_allclose(firsts[::-1], 60.0 * np.arange(n), atol=0.1 * n)
    compared("waves", firsts[::-1], 60.0 * np.arange(n), allowed=0.1 * n)


@numberings
@pytest.mark.parametrize("vehicles", [24, 48, 60, 96, 144, 192, 216, 228])
def test_flow_on_a_ring_is_that_of_the_fundamental_diagram(vehicles, downstream_first):
    """min(v k, w (1 / 7.5 − k)) on 12 links of 150 m at 15 m/s, v = 15 and w = 5 m/s."""
    n = 12
    flow, driven = ring(n, vehicles, reverse=downstream_first)
    density = vehicles / (150.0 * n)
    theory = min(15.0 * density, 5.0 * (1 / 7.5 - density)) * 3600
    assert flow == pytest.approx(theory, rel=0.01, abs=6)
    compared("waves", flow, theory, allowed=max(0.01 * theory, 6))
    assert driven.totals().rotated == 0


def test_a_full_ring_moves_by_rotations_only():
    """Every link full: all twelve first vehicles move on together, half a minute after they were blocked."""
    flow, driven = ring(12, 240)
    totals = driven.totals()
    assert totals.on_road == 240
    assert totals.rotated > 0
    assert totals.rotated % 12 == 0
    assert totals.stuck_released == 0
    assert 0 < flow <= 3600 / 30


def ring(n, vehicles, *, reverse=False):
    nodes, step = {k: (150.0 * np.cos(k), 150.0 * np.sin(k)) for k in range(n)}, -1 if reverse else 1
    roads = network(nodes, [(k, (k + step) % n, {"length_m": 150.0, "speed_mps": 15.0}) for k in range(n)])
    trips = [(2 * j, [(k + step * turn) % n for turn in range(481)]) for j in range(vehicles // n) for k in range(n)]
    driven = drive(Fleet, roads, trips, until=1850)
    assert driven.totals().on_road == vehicles
    return np.mean([hourly(exit_times_s(driven, k), 600, 1800) for k in range(n)]), driven


@both
@numberings
def test_places_and_speeds_in_a_queue(engine, downstream_first):
    """A bottleneck of 900 / h at the end of 2,000 m, and 1,500 / h upstream of it, at 15 m/s.

    Upstream 1,500 / 3,600 / 15 = .0278 / m: 5.6 vehicles in a cell of 200 m. In the queue 1 / 7.5 − .25 / 5 =
    .0833 / m: 16.7 vehicles, at .25 / .0833 = 3 m/s.
    The queue ends at 2,000 m − (.4167 − .25) / (.0833 − .0278) · (t − 133) s,
    so at 1,050 m at 450 s.
    """
    links = [{"length_m": 2000.0, "speed_mps": 15.0}, {"length_m": 1000.0, "speed_mps": 15.0, "capacity_vph": 900}]
    roads, nodes, numbers = corridor(*links, downstream_first=downstream_first)
    driven = drive(engine, roads, [(int(2.4 * k), nodes) for k in range(200)], until=450)
    places, speeds = driven.places(), driven.speeds()
    on = (places.state == State.ON_ROAD) & (places.link == numbers[0])
    at_m = places.fraction[on] * 2000.0
    cells = np.histogram(at_m, bins=np.arange(0, 2001, 200))[0]
    np.testing.assert_allclose(cells[:5], 5.56, atol=1)
    np.testing.assert_allclose(cells[6:], 16.67, atol=1)
    compared("waves", cells[[0, 1, 2, 3, 4, 6, 7, 8, 9]], [5.56] * 5 + [16.67] * 4, allowed=1 + 16.67e-7)
    assert speeds[on][at_m < 1000] == pytest.approx(15.0, rel=0.01)
    assert speeds[on][at_m > 1100].mean() == pytest.approx(3.0, rel=0.05)


@both
@numberings
def test_forty_seconds_of_green_serve_twenty_vehicles(engine, downstream_first):
    """At a headway of 2 s, in each cycle of 90 s."""
    links = [{"length_m": 1500.0, "speed_mps": 15.0}, {"length_m": 600.0, "speed_mps": 15.0}]
    roads, nodes, (first, second) = corridor(*links, downstream_first=downstream_first)
    movements = movement_table([movement(1, first, second, signal="s", group=0, place=0)])
    signals = signal_table([window("s", 0.0, 40.0, cycle_s=90.0)])
    driving = Driving(green_lost_s=0.0, yellow_used_s=0.0)
    trips = [(3 * k, nodes) for k in range(300)]
    driven = drive(engine, roads, trips, until=900, movements=movements, signals=signals, driving=driving)
    times = exit_times_s(driven, first)
    served = np.histogram(times, bins=np.arange(180, 901, 90))[0]
    assert np.abs(served - 20).max() <= 1
    assert ((times % 90) <= 40).all()


def signalised_corridor(seed, *, most_lanes, downstream_first):
    """Return random roads with a signal at the end of each link, movements, signals, nodes and trips that jam them."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(3, 9))
    links = [
        {"length_m": float(rng.uniform(20, 300)), "speed_mps": float(rng.uniform(6, 20))}
        | {"lanes": int(rng.integers(1, most_lanes + 1))}
        for _ in range(size)
    ]
    roads, nodes, numbers = corridor(*links, downstream_first=downstream_first)
    cycle_s, rows, windows = float(rng.choice([40.0, 60.0, 90.0])), [], []
    for at in range(size - 1):
        ways = [(a, b) for a in range(links[at]["lanes"]) for b in range(links[at + 1]["lanes"])]
        row = movement(nodes[at + 1], numbers[at], numbers[at + 1], signal=f"s{at}", group=0)
        row |= {"length_m": float(rng.uniform(0, 30)), "speed_mps": float(rng.uniform(5, 15))}
        rows += [{**row, "from_lane": a, "to_lane": b, "place": place} for place, (a, b) in enumerate(ways)]
        to_s, offset_s = float(rng.uniform(10, cycle_s - 5)), float(rng.uniform(0, cycle_s))
        windows.append(window(f"s{at}", 0.0, to_s, cycle_s=cycle_s, offset_s=offset_s))
    departures = np.sort(rng.integers(0, 120, 90 * max(link["lanes"] for link in links))).tolist()
    trips = [(tick, nodes) for tick in departures]
    return roads, numbers, trips, {"movements": movement_table(rows), "signals": signal_table(windows)}


@pytest.mark.parametrize("most_lanes", [1, 3])
@pytest.mark.parametrize("engine", [Fleet, pytest.param(Agents, marks=[pytest.mark.slow, pytest.mark.thorough])])
def test_a_jam_before_signals_is_the_same_in_both_numberings(engine, most_lanes):
    """On 100 random corridors vehicles leave every link at the same times.

    Where they choose between lanes, a vehicle may choose before or after another one has left in the same pass. Then
    times change by a headway, or by the cycle of a signal; as many vehicles leave, but for the last ones.
    """
    jammed, equal = 0, []
    for seed in range(100):
        times = []
        for downstream_first in (False, True):
            roads, numbers, trips, physics = signalised_corridor(
                seed, most_lanes=most_lanes, downstream_first=downstream_first
            )
            driven = drive(engine, roads, trips, until=500, **physics)
            times.append([exit_times_s(driven, number).tolist() for number in numbers[:-1]])
            jammed += driven.totals().waiting > 0
        equal.append(times[0] == times[1])
        assert max(abs(len(a) - len(b)) for a, b in zip(*times, strict=True)) <= most_lanes - 1, seed
    assert jammed > 50
    assert np.mean(equal) >= (1 if most_lanes == 1 else 0.8)
