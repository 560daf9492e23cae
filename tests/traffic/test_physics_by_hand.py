"""Both engines against hand calculation, tick by tick."""

import numpy as np
import pytest
from roads_by_hand import ENGINES, chain, drive, entry_ticks, network

from simulator.traffic.clock import Clock
from simulator.traffic.engine import State
from simulator.traffic.lanes import LinkPhysics

both = pytest.mark.parametrize("engine", ENGINES)


@both
def test_free_flow(engine):
    # 100 m and 250 m at 10 m/s: 10 and 25 ticks. Departure 3, entry 3, next link at 13, arrival at 38.
    roads = chain({"length_m": 100.0}, {"length_m": 250.0})
    at_37 = drive(engine, roads, [(3, [0, 1, 2])], until=37)
    assert entry_ticks(at_37, 0) == [3, 13]
    assert at_37.totals().on_road == 1
    at_38 = drive(engine, roads, [(3, [0, 1, 2])], until=38)
    assert (at_38.totals().on_road, at_38.totals().arrived, at_38.totals().link_crossings) == (0, 1, 2)


@both
def test_free_flow_ticks_round_up_except_for_float_error(engine):
    # 139 m at 13.9 m/s is 10 s exactly; 140 m is 10.07 s and so 11 ticks.
    roads = chain({"length_m": 139.0, "speed_mps": 13.9}, {"length_m": 140.0, "speed_mps": 13.9}, {"length_m": 10.0})
    done = drive(engine, roads, [(0, [0, 1, 2, 3])], until=60)
    assert entry_ticks(done, 0) == [0, 10, 21]


@both
def test_bottleneck_discharges_at_its_capacity(engine):
    # Link 0: 3 lanes, so 3 · 1800 / h, storage for all. Link 1: one lane, 1800 / h = one vehicle every 2 ticks.
    # All leave at 0, enter link 0 at once, may leave it from tick 10 at 1.5 a tick (headway 683/1024), and leave
    # link 1 (10 ticks, storage 13) every second tick from 20 on.
    roads = chain({"length_m": 100.0, "lanes": 3}, {"length_m": 100.0}, {"length_m": 1000.0})
    done = drive(engine, roads, [(0, [0, 1, 2, 3])] * 8, until=60)
    assert [entry_ticks(done, v)[0] for v in range(8)] == [0] * 8
    # discharge after k vehicles: 10 + k·683/1024 = 10, 10.67, 11.33, 12.00, 12.67, 13.33, 14.00, 14.67 → floors
    assert [entry_ticks(done, v)[1] for v in range(8)] == [10, 10, 11, 12, 12, 13, 14, 14]
    assert [entry_ticks(done, v)[2] for v in range(8)] == [20, 22, 24, 26, 28, 30, 32, 34]


@both
def test_several_vehicles_leave_in_one_tick(engine):
    # 4 lanes of 1800 / h: 2 a tick exactly.
    roads = chain({"length_m": 100.0, "lanes": 4}, {"length_m": 400.0, "lanes": 4})
    done = drive(engine, roads, [(0, [0, 1, 2])] * 6, until=30)
    assert [entry_ticks(done, v)[1] for v in range(6)] == [10, 10, 11, 11, 12, 12]


@both
def test_capacity_of_fractional_ticks(engine):
    # 2400 / h: headway 1.5 ticks, so tick 10, then 11.5 → 11, 13, 14.5 → 14, 16.
    roads = chain({"length_m": 100.0, "capacity_vph": 2400.0}, {"length_m": 400.0})
    done = drive(engine, roads, [(0, [0, 1, 2])] * 5, until=30)
    assert [entry_ticks(done, v)[1] for v in range(5)] == [10, 11, 13, 14, 16]


@both
def test_idle_link_accumulates_no_discharge(engine):
    # The second vehicle arrives much later: it is neither released faster nor delayed.
    roads = chain({"length_m": 100.0}, {"length_m": 400.0})
    done = drive(engine, roads, [(0, [0, 1, 2]), (50, [0, 1, 2]), (50, [0, 1, 2])], until=80)
    assert [entry_ticks(done, v)[1] for v in range(3)] == [10, 60, 62]


@both
def test_origin_queue_waits_for_space_but_for_no_headway(engine):
    # Link 0 is 15 m: storage 2, 2 ticks. Four trips at 0: two enter at once; the first leaves at 2 (space free
    # from 3), the second at 4 (headway 2; free from 5), so the others enter at 3 and 5.
    roads = chain({"length_m": 15.0}, {"length_m": 1000.0})
    early = drive(engine, roads, [(0, [0, 1, 2])] * 4, until=2)
    assert (early.totals().waiting, early.totals().on_road) == (2, 2)
    done = drive(engine, roads, [(0, [0, 1, 2])] * 4, until=20)
    assert [entry_ticks(done, v)[0] for v in range(4)] == [0, 0, 3, 5]
    assert [entry_ticks(done, v)[1] for v in range(4)] == [2, 4, 6, 8]


@both
def test_spillback_across_a_node(engine):
    # Link 1 is 15 m (storage 2, 2 ticks) and releases one every 20 ticks (180 / h). Link 0 is 150 m (15 ticks, 2).
    # v0 enters link 1 at 15, leaves it at 17; next discharge 37. v1 enters at 17; v0's space is free for v2 from 18,
    # but its own headway gives 19. v3 could leave link 0 at 21 but link 1 is full until v1 leaves it at 37: v3 is
    # blocked from 21 on, enters at 38; v4 follows v2, which leaves at 57, at 58.
    roads = chain({"length_m": 150.0}, {"length_m": 15.0, "capacity_vph": 180.0}, {"length_m": 1000.0})
    done = drive(engine, roads, [(0, [0, 1, 2, 3])] * 5, until=100, stuck_s=60)
    assert [entry_ticks(done, v)[1] for v in range(5)] == [15, 17, 19, 38, 58]
    assert [entry_ticks(done, v)[2] for v in range(5)] == [17, 37, 57, 77, 97]
    assert done.totals().stuck_released == 0


@both
def test_stuck_vehicle_is_forced_beyond_storage_and_counted(engine):
    # As above, with patience 10 ticks: v3, first blocked at 21, is forced at 31. v4 is ready at 33 and blocked. The
    # space that v1 leaves at 37 is no use at 38, since link 1 then holds v2 and v3, its storage. v4 is forced at 43.
    roads = chain({"length_m": 150.0}, {"length_m": 15.0, "capacity_vph": 180.0}, {"length_m": 1000.0})
    done = drive(engine, roads, [(0, [0, 1, 2, 3])] * 5, until=100, stuck_s=10)
    assert [entry_ticks(done, v)[1] for v in range(5)] == [15, 17, 19, 31, 43]
    assert done.totals().stuck_released == 2


@both
def test_patience_of_zero_never_blocks(engine):
    roads = chain({"length_m": 150.0}, {"length_m": 15.0, "capacity_vph": 180.0}, {"length_m": 1000.0})
    done = drive(engine, roads, [(0, [0, 1, 2, 3])] * 5, until=100, stuck_s=0)
    assert [entry_ticks(done, v)[1] for v in range(5)] == [15, 17, 19, 21, 23]


@both
def test_the_lower_link_goes_first_at_a_merge(engine):
    # Nodes 0 and 1 both lead to 2 in 10 ticks; 2 → 3 holds one vehicle (7.5 m, 1 tick). Link (0, 2) has the lower id.
    # Tick 10: v0 takes the only space. It leaves at 11, free from 12; v1 waits to 12.
    roads = network(
        {0: (0.0, 50.0), 1: (0.0, -50.0), 2: (100.0, 0.0), 3: (107.5, 0.0), 4: (1000.0, 0.0)},
        [
            (0, 2, {"length_m": 100.0}),
            (1, 2, {"length_m": 100.0}),
            (2, 3, {"length_m": 7.5}),
            (3, 4, {"length_m": 900.0}),
        ],
    )
    done = drive(engine, roads, [(0, [1, 2, 3, 4]), (0, [0, 2, 3, 4])], until=40)
    assert entry_ticks(done, 1) == [0, 10, 11]
    assert entry_ticks(done, 0) == [0, 12, 13]


@both
def test_first_in_first_out_by_departure_then_number(engine):
    roads = chain({"length_m": 7.5}, {"length_m": 1000.0})
    done = drive(engine, roads, [(0, [0, 1, 2]), (1, [0, 1, 2]), (1, [0, 1, 2]), (2, [0, 1, 2])], until=30)
    firsts = [entry_ticks(done, v)[0] for v in range(4)]
    assert firsts == sorted(firsts)
    assert len(set(firsts)) == 4


@both
def test_half_second_ticks(engine):
    # 100 m at 10 m/s: 20 ticks of half a second; 1800 / h: a vehicle every 4 ticks.
    roads = chain({"length_m": 100.0}, {"length_m": 1000.0})
    done = drive(engine, roads, [(0, [0, 1, 2])] * 3, until=60, step_s=0.5)
    assert [entry_ticks(done, v)[1] for v in range(3)] == [20, 24, 28]


@both
def test_links_longer_than_the_calendar(engine):
    # 10 km at 10 m/s: 1,000 ticks, far beyond the 64 ticks of the calendar.
    roads = chain({"length_m": 10_000.0}, {"length_m": 5_000.0})
    done = drive(engine, roads, [(7, [0, 1, 2]), (8, [0, 1, 2])], until=2000)
    assert entry_ticks(done, 0) == [7, 1007]
    assert entry_ticks(done, 1) == [8, 1009]  # a headway of 2 after the first


@both
def test_vehicle_positions(engine):
    # One waits (the 7.5 m link is taken), one is on the road, one has arrived.
    roads = chain({"length_m": 7.5}, {"length_m": 100.0, "speed_mps": 2.5})
    here = drive(engine, roads, [(0, [0, 1]), (0, [0, 1, 2]), (4, [0, 1]), (4, [0, 1])], until=13)
    # v0: link 0 at 0, arrives at 1. v1: link 0 at 2 (freed from 2), link 1 at 3. v2: link 0 at 4, arrives 5 …
    places = here.places()
    assert places.state.tolist() == [State.ARRIVED, State.ON_ROAD, State.ARRIVED, State.ARRIVED]
    assert places.link.tolist() == [0, 1, 0, 0]
    assert places.fraction[1] == pytest.approx((13.5 - 3) / 40)
    xy = roads.locate(places.link, places.fraction)
    assert xy[1] - roads.node_xy[1] == pytest.approx([100.0 * 10.5 / 40, 0.0], abs=1e-6)
    np.testing.assert_allclose(xy[0], roads.node_xy[1])


@both
def test_blocked_vehicle_is_at_the_end_of_its_link(engine):
    roads = chain({"length_m": 150.0}, {"length_m": 15.0, "capacity_vph": 180.0}, {"length_m": 1000.0})
    here = drive(engine, roads, [(0, [0, 1, 2, 3])] * 5, until=30, stuck_s=60)
    assert here.places().fraction[3] == 1.0
    assert here.places().link[3] == 0


def test_physics_numbers():
    roads = chain({"length_m": 3.0}, {"length_m": 750.0, "lanes": 2}, {"length_m": 10.0, "capacity_vph": 3.6e9})
    physics = LinkPhysics.build(roads.links, Clock(1.0), stuck_s=30.2)
    assert physics.free_ticks.tolist() == [1, 75, 1]
    assert physics.storage.tolist() == [1, 200, 1]
    assert physics.headway.tolist() == [2048, 1024, 1]
    assert physics.stuck_ticks == 31
    with pytest.raises(ValueError, match="stuck_s must be at least 0, received -1"):
        LinkPhysics.build(roads.links, Clock(1.0), stuck_s=-1)
