"""Reactive routing: measured link times, rerouted vehicles, and the effect on traffic."""

import numpy as np
import pytest
from roads_by_hand import ENGINES, links_by_ends, network, routes_of, run_to

from simulator.files.messages import texts_of
from simulator.roads import build_grid
from simulator.traffic.clock import Clock
from simulator.traffic.fleet import Fleet
from simulator.traffic.lanes import LinkPhysics
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.physics import ONE_TICK
from simulator.traffic.reactive import Flow, ReactiveRouting
from simulator.traffic.routes import RouteBook
from simulator.traffic.trips import Trips


def two_ways(bottleneck_vph=600.0):
    """From 0 to 3 by 1 (100 s, then a bottleneck of 10 s) or by 2 (120 s, wide)."""
    return network(
        {0: (0, 0), 1: (1000, 50), 2: (1000, -300), 3: (1200, 0), 4: (-100, 0)},
        [
            (4, 0, {"length_m": 100.0, "lanes": 4}),
            (0, 1, {"length_m": 1000.0, "lanes": 4}),
            (1, 3, {"length_m": 100.0, "lanes": 1, "capacity_vph": bottleneck_vph}),
            (0, 2, {"length_m": 1100.0, "lanes": 4}),
            (2, 3, {"length_m": 200.0, "lanes": 4}),
        ],
    )


def drive(engine, roads, trips, *, until, reactive=None, step_s=1.0):
    clock, links = Clock(step_s), roads.links
    physics = LinkPhysics.build(links, clock)
    routing = None
    if reactive is not None:
        routing = ReactiveRouting(links, trips, clock=clock, rng=np.random.default_rng(8), **reactive)
    routes = ShortestPaths(links).routes(trips.origin, trips.destination)
    built = engine(links, physics, trips, routes, clock=clock, reactive=routing, record_entries=True)
    run_to(built, until)
    return built


def entered(engine, link):
    return int(np.count_nonzero(engine.entries[:, 1] == link))


def test_a_bottleneck_splits_the_flow():
    """1,800 vehicles an hour for a link of 600: free flow sends all there, reactive about two thirds around it."""
    roads = two_ways()
    departure = np.arange(0, 3600, 2, dtype=np.int32)
    trips = Trips(np.full(1800, 4, np.int32), np.full(1800, 3, np.int32), departure)
    around = links_by_ends(roads)[0, 2]
    stubborn = drive(Fleet, roads, trips, until=12_000)
    reacting = drive(Fleet, roads, trips, until=12_000, reactive={"every_s": 60.0, "share": 0.3})
    assert entered(stubborn, around) == 0
    assert 900 < entered(reacting, around) < 1450
    assert stubborn.totals().arrived == reacting.totals().arrived == 1800
    assert reacting.totals().mean_trip_s < 0.2 * stubborn.totals().mean_trip_s


@pytest.mark.parametrize("engine", ENGINES)
def test_routing_without_queues_equals_free_flow(engine):
    roads = build_grid(
        rows=5, columns=5, spacing_x_m=130.0, spacing_y_m=90.0, speed_mps=9.0, lanes=2, anchor=(0.0, 0.0)
    )
    rng = np.random.default_rng(3)
    origin = rng.integers(25, size=60)
    trips = Trips.from_unsorted(origin, (origin + rng.integers(1, 25, size=60)) % 25, np.arange(0, 1200, 20))
    free = drive(engine, roads, trips, until=2000)
    reacting = drive(engine, roads, trips, until=2000, reactive={"every_s": 10.0, "share": 1.0})
    np.testing.assert_array_equal(free.entries, reacting.entries)
    assert texts_of(free.notes()) == []
    assert "changed their route 0 times" in texts_of(reacting.notes())[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_only_a_share_of_vehicles_under_way_reroutes(engine):
    """All depart at once, before anything can be measured; then the share determines how many reroute."""
    roads = two_ways()
    trips = Trips(np.full(600, 4, np.int32), np.full(600, 3, np.int32), np.zeros(600, np.int32))
    around = links_by_ends(roads)[0, 2]
    turned = [
        entered(drive(engine, roads, trips, until=2000, reactive={"every_s": 30.0, "share": share}), around)
        for share in (0.0, 0.05, 1.0)
    ]
    assert turned[0] == 0
    assert 0 < turned[1] < turned[2]


@pytest.mark.parametrize("engine", ENGINES)
def test_waiting_vehicles_keep_their_first_link(engine):
    """Their first link is full and leads to both routes; waiting vehicles may change what comes after it."""
    roads = two_ways()
    trips = Trips(np.full(400, 4, np.int32), np.full(400, 3, np.int32), np.zeros(400, np.int32))
    built = drive(engine, roads, trips, until=40, reactive={"every_s": 30.0, "share": 1.0})
    assert built.totals().waiting > 200
    first = links_by_ends(roads)[4, 0]
    assert (built.routes.first == first).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_given_routes_are_kept_without_rerouting(engine):
    """With a share of 0 no vehicle reroutes, so all use their given routes, however slow."""
    roads = two_ways()
    trips = Trips(np.full(300, 4, np.int32), np.full(300, 3, np.int32), np.arange(0, 900, 3, dtype=np.int32))
    around = links_by_ends(roads)[0, 2]
    reactive = {"every_s": 30.0, "at_departure": False}
    assert entered(drive(engine, roads, trips, until=1000, reactive={**reactive, "share": 0.0}), around) == 0
    assert entered(drive(engine, roads, trips, until=1000, reactive={**reactive, "share": 0.5}), around) > 20


def measured(flows, *, every_s=10.0, step_s=1.0):
    """Travel times of `two_ways` after an update from each of `flows`; no vehicle drives."""
    roads, clock = two_ways(), Clock(step_s)
    trips = Trips(np.array([4], np.int32), np.array([3], np.int32), np.array([10**6], np.int32))
    routing = ReactiveRouting(roads.links, trips, clock=clock, every_s=every_s, share=1.0, rng=np.random.default_rng(1))
    book = RouteBook(ShortestPaths(roads.links).routes(trips.origin, trips.destination))
    for flow in flows:
        routing.reroute(100, book, flow)
    return roads, routing.time_s


def seen(entered, lost, longest_loss):
    """What an engine has measured: `lost` and `longest_loss` in ticks."""
    none = np.empty(0, dtype=np.int32)
    return Flow(
        np.array(entered), np.array(lost) * ONE_TICK, np.array(longest_loss) * ONE_TICK, none.astype(np.uint8), none
    )


def test_delay_is_the_mean_loss_before_a_link_or_the_longest_so_far():
    roads, time_s = measured([seen([2, 0, 0, 4, 0], [100, 0, 0, 40, 0], [0, 0, 5, 60, 0])])
    assert roads.links.free_flow_s.tolist() == pytest.approx([100, 110, 10, 20, 10])
    # Mean losses are 50 and 10; vehicles that still wait have lost 5 and 60.
    assert time_s.tolist() == pytest.approx([150, 110, 15, 80, 10])


def test_only_vehicles_that_entered_since_the_last_update_count():
    first = seen([2, 0, 0, 0, 0], [400, 0, 0, 0, 0], [0] * 5)
    second = seen([3, 0, 0, 0, 0], [420, 0, 0, 0, 0], [0] * 5)
    _, time_s = measured([first, second])
    assert time_s[0] == pytest.approx(120)
    _, time_s = measured([first, first])
    assert time_s[0] == pytest.approx(100)


def test_ticks_are_converted_to_seconds():
    _, time_s = measured([seen([1, 0, 0, 0, 0], [500, 0, 0, 0, 0], [0] * 5)], step_s=0.5)
    assert time_s[0] == pytest.approx(350)


def test_rerouting_avoids_closed_nodes():
    """Node 1 belongs to a zone: the route through it is the fastest, and not allowed."""
    roads, clock = two_ways(bottleneck_vph=3600.0), Clock()
    through = np.array([True, False, True, True, True])
    physics = LinkPhysics.build(roads.links, clock)
    trips = Trips(np.array([4, 4], np.int32), np.array([3, 1], np.int32), np.array([0, 50], np.int32))
    routes = ShortestPaths(roads.links, through=through).routes(trips.origin, trips.destination)
    for engine in ENGINES:
        how = {"every_s": 5.0, "share": 1.0, "through": through, "rng": np.random.default_rng(1)}
        routing = ReactiveRouting(roads.links, trips, clock=clock, **how)
        built = engine(roads.links, physics, trips, routes, clock=clock, reactive=routing, record_entries=True)
        run_to(built, 500)
        assert entered(built, links_by_ends(roads)[1, 3]) == 0
        assert built.totals().arrived == 2


@pytest.mark.parametrize(
    ("every_s", "share", "named"), [(0.9, 0.1, "every_s"), (5.0, 1.1, "share"), (5.0, -1, "share")]
)
def test_invalid_arguments_are_refused(every_s, share, named):
    roads = two_ways()
    trips = Trips(np.array([4], np.int32), np.array([3], np.int32), np.array([0], np.int32))
    with pytest.raises(ValueError, match=named):
        ReactiveRouting(roads.links, trips, clock=Clock(), every_s=every_s, share=share, rng=np.random.default_rng(1))


class TestRouteBook:
    def test_replaced_rows_change_and_others_stay(self):
        book = RouteBook(routes_of([[1, 2, 3], [4], [5, 6]]))
        changed = book.replace(np.array([2, 0]), np.array([1, 1]), routes_of([[6], [9, 8, 7]]))
        assert changed.tolist() == [False, True]
        assert [book.of(i).tolist() for i in range(3)] == [[1, 9, 8, 7], [4], [5, 6]]
        assert book.last(3).tolist() == [7, 4, 6]
        assert book.routes.links.tolist() == [1, 9, 8, 7, 4, 5, 6]

    def test_given_routes_are_unchanged(self):
        routes = routes_of([[1, 2], [3, 4]])
        book = RouteBook(routes)
        assert book.routes is routes
        book.replace(np.array([0]), np.array([0]), routes_of([[7, 8, 9]]))
        assert routes.links.tolist() == [1, 2, 3, 4]
        assert routes.offsets.tolist() == [0, 2, 4]

    def test_memory_is_bounded_after_many_changes(self):
        rng = np.random.default_rng(4)
        rows = [list(range(20)) for _ in range(300)]
        book = RouteBook(routes_of(rows))
        for _ in range(200):
            vehicles = rng.permutation(300)[:60]
            keep = np.array([rng.integers(0, min(len(rows[vehicle]), 10)) for vehicle in vehicles])
            rest = [rng.integers(1000, size=rng.integers(1, 15)).tolist() for _ in vehicles]
            for vehicle, kept, tail in zip(vehicles.tolist(), keep.tolist(), rest, strict=True):
                rows[vehicle] = [*rows[vehicle][:kept], *tail]
            book.replace(vehicles, keep, routes_of(rest))
            assert len(book.links) <= 1.25 * 300 * 24 + 60 * 24
        assert [book.of(i).tolist() for i in range(300)] == rows
        assert book.live == sum(map(len, rows))
