"""Both engines against hand calculation.

H is the headway of a link, F its free-flow time, N its storage and B = N · H − F the time of a hole: a vehicle enters
no earlier than H after the one before it, and B after the exit of the one N places ahead. Times are exact to 1/1024 s.
"""

import numpy as np
import pytest
from roads_by_hand import ENGINES, chain, drive, entry_times_s, network

from simulator.traffic.clock import Clock
from simulator.traffic.engine import State
from simulator.traffic.lanes import LinkPhysics

both = pytest.mark.parametrize("engine", ENGINES)


def entries_of_link(driven, place, *, step_s=1.0):
    """When each vehicle entered the link at a place of its route, seconds, to a hundredth."""
    times = [entry_times_s(driven, v, step_s=step_s)[place] for v in range(driven.vehicles)]
    return pytest.approx(times, abs=0.01)


@both
def test_free_flow(engine):
    # 100 m and 250 m at 10 m/s: 10 and 25 s. Departure 3, entry 3, next link at 13, arrival at 38.
    roads = chain({"length_m": 100.0}, {"length_m": 250.0})
    at_37 = drive(engine, roads, [(3, [0, 1, 2])], until=37)
    assert entry_times_s(at_37, 0) == [3, 13]
    assert at_37.totals().on_road == 1
    at_38 = drive(engine, roads, [(3, [0, 1, 2])], until=38)
    assert (at_38.totals().on_road, at_38.totals().arrived, at_38.totals().link_crossings) == (0, 1, 2)


@both
def test_times_are_not_rounded_to_ticks(engine):
    # 139 m at 13.9 m/s are 10 s; 140 m are 10.07 s.
    roads = chain({"length_m": 139.0, "speed_mps": 13.9}, {"length_m": 140.0, "speed_mps": 13.9}, {"length_m": 10.0})
    done = drive(engine, roads, [(0, [0, 1, 2, 3])], until=60)
    assert entry_times_s(done, 0) == pytest.approx([0, 10, 10 + 140 / 13.9], abs=0.002)


@both
def test_a_vehicle_is_moved_in_the_first_tick_after_it_is_ready(engine):
    # 143 m at 10 m/s are 14.3 s: still on the first link in tick 14, and since 14.3 on the next one in tick 15.
    roads = chain({"length_m": 143.0}, {"length_m": 100.0})
    assert entry_times_s(drive(engine, roads, [(0, [0, 1, 2])], until=14), 0) == [0]
    assert entry_times_s(drive(engine, roads, [(0, [0, 1, 2])], until=15), 0) == pytest.approx([0, 14.3], abs=0.001)


@both
def test_bottleneck_discharges_at_its_capacity(engine):
    # Link 0 has 3 lanes: H = 2/3 s at its entry and its end. Link 1 has one: H = 2 s.
    roads = chain({"length_m": 100.0, "lanes": 3}, {"length_m": 100.0}, {"length_m": 1000.0})
    done = drive(engine, roads, [(0, [0, 1, 2, 3])] * 8, until=60)
    assert entries_of_link(done, 0) == [k * 2 / 3 for k in range(8)]
    assert entries_of_link(done, 1) == [10 + 2 * k for k in range(8)]
    assert entries_of_link(done, 2) == [20 + 2 * k for k in range(8)]


@both
@pytest.mark.parametrize(
    ("lanes", "capacity_vph", "headway_s"), [(4, 1800.0, 0.5), (1, 2400.0, 1.5), (1, 700.0, 5.143)]
)
def test_headway_is_that_of_all_lanes(engine, lanes, capacity_vph, headway_s):
    road = {"lanes": lanes, "capacity_vph": capacity_vph}
    done = drive(
        engine, chain({"length_m": 100.0, **road}, {"length_m": 400.0, **road}), [(0, [0, 1, 2])] * 6, until=70
    )
    assert entries_of_link(done, 0) == [k * headway_s for k in range(6)]
    assert entries_of_link(done, 1) == [10 + k * headway_s for k in range(6)]


@both
def test_idle_link_accumulates_no_discharge(engine):
    # The others arrive much later: they are neither released faster nor delayed; H = 2 s between them at the entry.
    roads = chain({"length_m": 100.0}, {"length_m": 400.0})
    done = drive(engine, roads, [(0, [0, 1, 2]), (50, [0, 1, 2]), (50, [0, 1, 2])], until=80)
    assert entries_of_link(done, 1) == [10, 60, 62]


@both
def test_origin_queue_waits_for_a_headway_and_for_a_place(engine):
    # Link 0 is 15 m: F = 1.5 s, H = 2 s, N = 2, B = 2.5 s. Link 1 takes one in 20 s: at 1.5, 21.5, 41.5 and 61.5.
    # Trips enter at 0; 2 and 4 (one H later; at 4 also B after the first exit); the fourth B after the exit at 21.5.
    roads = chain({"length_m": 15.0}, {"length_m": 1000.0, "capacity_vph": 180.0})
    early = drive(engine, roads, [(0, [0, 1, 2])] * 4, until=10)
    assert (early.totals().waiting, early.totals().on_road) == (1, 3)
    done = drive(engine, roads, [(0, [0, 1, 2])] * 4, until=70)
    assert entries_of_link(done, 0) == [0, 2, 4, 24]
    assert entries_of_link(done, 1) == [1.5, 21.5, 41.5, 61.5]


SPILLBACK = ({"length_m": 150.0}, {"length_m": 15.0}, {"length_m": 1000.0, "capacity_vph": 180.0})
"""Link 0: F = 15 s, H = 2 s. Link 1: F = 1.5 s, H = 2 s, N = 2, B = 2.5 s. Link 2 takes one vehicle in 20 s."""


@both
def test_spillback_across_a_node(engine):
    # The five enter link 0 at 0, 2 … 8, and are ready at 15, 17 … 23. Link 2 is entered at 16.5, 36.5 … 96.5.
    # v2 enters link 1 at 19 = B after the exit of v0. v3 is ready at 21 and enters B after the exit of v1: 39.
    # v4 follows B after the exit of v2: 59.
    done = drive(engine, chain(*SPILLBACK), [(0, [0, 1, 2, 3])] * 5, until=100)
    assert entries_of_link(done, 1) == [15, 17, 19, 39, 59]
    assert entries_of_link(done, 2) == [16.5, 36.5, 56.5, 76.5, 96.5]
    assert done.totals().stuck_released == 0


@both
def test_stuck_vehicle_is_forced_beyond_storage_and_counted(engine):
    # v3, first blocked at 21, is forced at 31. v4 is ready H later, at 33. The place that v1 leaves at 36.5 is no use:
    # link 1 still holds v2 and v3, its storage. v4 is forced at 43.
    done = drive(engine, chain(*SPILLBACK), [(0, [0, 1, 2, 3])] * 5, until=100, stuck_s=10)
    assert entries_of_link(done, 1) == [15, 17, 19, 31, 43]
    assert done.totals().stuck_released == 2


@both
def test_patience_of_zero_never_blocks(engine):
    done = drive(engine, chain(*SPILLBACK), [(0, [0, 1, 2, 3])] * 5, until=100, stuck_s=0)
    assert entries_of_link(done, 1) == [15, 17, 19, 21, 23]


@both
@pytest.mark.parametrize("first", [0, 1])
def test_links_take_turns_at_a_merge(engine, first):
    """Start-time fair queueing: while both links have vehicles, neither is more than two vehicles ahead."""
    nodes = {0: (0.0, 50.0), 1: (0.0, -50.0), 2: (100.0, 0.0), 3: (1000.0, 0.0)}
    roads = network(nodes, [(u, v, {"length_m": length}) for u, v, length in ((0, 2, 100), (1, 2, 100), (2, 3, 900))])
    trips = [(0, [(k + first) % 2, 2, 3]) for k in range(40)]
    done = drive(engine, roads, trips, until=120)
    entries = done.entries[done.entries[:, 1] == 2]
    np.testing.assert_allclose(entries[:30, 3] / 1024, 10 + 2 * np.arange(30), atol=0.01)  # at its capacity
    ahead = np.cumsum(np.where(entries[:30, 0] % 2 == 0, 1, -1))
    assert np.abs(ahead).max() <= 2


@both
def test_first_in_first_out_by_departure_then_number(engine):
    roads = chain({"length_m": 7.5}, {"length_m": 1000.0})
    done = drive(engine, roads, [(0, [0, 1, 2]), (1, [0, 1, 2]), (1, [0, 1, 2]), (2, [0, 1, 2])], until=30)
    firsts = [entry_times_s(done, v)[0] for v in range(4)]
    assert firsts == sorted(firsts)
    assert len(set(firsts)) == 4


@both
def test_half_second_ticks(engine):
    # 100 m at 10 m/s: 10 s; 1800 / h: a vehicle every 2 s.
    roads = chain({"length_m": 100.0}, {"length_m": 1000.0})
    done = drive(engine, roads, [(0, [0, 1, 2])] * 3, until=60, step_s=0.5)
    assert entries_of_link(done, 1, step_s=0.5) == [10, 12, 14]


@both
def test_links_longer_than_the_calendar(engine):
    # 10 km at 10 m/s: 1,000 s, far beyond the 64 passes of the calendar; H = 2 s after the first.
    roads = chain({"length_m": 10_000.0}, {"length_m": 5_000.0})
    done = drive(engine, roads, [(7, [0, 1, 2]), (8, [0, 1, 2])], until=2000)
    assert entry_times_s(done, 0) == [7, 1007]
    assert entry_times_s(done, 1) == [9, 1009]


@both
def test_vehicle_positions(engine):
    # Link 0: F = 0.75 s, H = 2 s, N = 1, B = 1.25 s. It is entered at 0, 2, 4 and 6; v1 is on link 1 from 2.75 on.
    roads = chain({"length_m": 7.5}, {"length_m": 100.0, "speed_mps": 2.5})
    trips = [(0, [0, 1]), (0, [0, 1, 2]), (4, [0, 1]), (4, [0, 1])]
    assert drive(engine, roads, trips, until=5).places().state.tolist()[3] == State.WAITING
    here = drive(engine, roads, trips, until=13)
    places = here.places()
    assert places.state.tolist() == [State.ARRIVED, State.ON_ROAD, State.ARRIVED, State.ARRIVED]
    assert places.link.tolist() == [0, 1, 0, 0]
    assert places.fraction[1] == pytest.approx((13.51 - 2.75) / 40, abs=1e-4)
    xy = roads.locate(places.link, places.fraction)
    assert xy[1] - roads.node_xy[1] == pytest.approx([100.0 * (13.51 - 2.75) / 40, 0.0], abs=0.01)
    np.testing.assert_allclose(xy[0], roads.node_xy[1])


@both
def test_blocked_vehicles_stand_in_a_queue(engine):
    # At 30 v3 is blocked at the end of link 0 since 21, and v4 one spacing, 7.5 of 150 m, behind it.
    here = drive(engine, chain(*SPILLBACK), [(0, [0, 1, 2, 3])] * 5, until=30)
    assert here.places().link[3:].tolist() == [0, 0]
    assert here.places().fraction[3:].tolist() == pytest.approx([1.0, 1 - 7.5 / 150])


def test_physics_numbers():
    roads = chain({"length_m": 3.0}, {"length_m": 750.0, "lanes": 2}, {"length_m": 10.0, "capacity_vph": 3.6e9})
    physics = LinkPhysics.build(roads.links, Clock(1.0), stuck_s=30.2)
    assert physics.free.tolist() == [307, 75 * 1024, 1024]  # 0.3 s, 75 s and 1 s
    assert physics.lanes["storage"].tolist() == [1, 200, 1]
    assert physics.lanes["headway"].tolist() == [2048, 1024, 1]
    assert physics.lanes["hole"].tolist() == [2048 - 307, 200 * 1024 - 75 * 1024, 0]
    assert physics.rules.stuck_passes == 31 * physics.rules.passes
    with pytest.raises(ValueError, match="stuck_s must be at least 0, received -1"):
        LinkPhysics.build(roads.links, Clock(1.0), stuck_s=-1)
