"""Banned turns: no route has one, and routes are shortest among those that have none, by a search over links."""

import heapq
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from equilibrium import OdPairs, load_shortest
from roads_by_hand import ENGINES, links_by_ends, network, routes_of, run_to
from test_shortest_paths import draw_times, random_roads
from zoned_roads import roads_of

import scenarios
from simulator.experiment.assembly.city import build_city
from simulator.experiment.assembly.engine import build_engine, route_trips
from simulator.files.resources import Stopwatch
from simulator.formats.recordings import Matching, Trace, recording_of
from simulator.formats.recordings.hidden_markov import _metres_between
from simulator.roads.movements import movement_table
from simulator.streams import Streams
from simulator.sumo.routes import read_sumo_routes
from simulator.traffic.clock import Clock
from simulator.traffic.lanes import LinkPhysics
from simulator.traffic.paths import NoPathError, ShortestPaths
from simulator.traffic.reactive import ReactiveRouting
from simulator.traffic.trips import Trips

DATA = Path(os.environ.get("CROWDVEIL_DATA", "no such folder"))

#: west 0, crossing 1, east 2, north 3; the block 1, 2, 4, 3; 0 → 3 by left turn at 1, or round the block
CORNERS = {0: (-100, 0), 1: (0, 0), 2: (100, 0), 3: (0, 100), 4: (100, 100)}
STREETS = [(0, 1), (1, 0), (1, 2), (2, 4), (4, 3), (1, 3), (3, 1)]


def block(*banned, **lengths):
    """Return the block with turns banned, each by three nodes."""
    edges = [(u, v, {"length_m": lengths.get(f"_{u}{v}", 100.0)}) for u, v in STREETS]
    roads = network(CORNERS, edges)
    rows = [
        {"node": via, "from_link": link(roads, u, via), "to_link": link(roads, via, v), "allowed": False}
        for u, via, v in banned
    ]
    return replace(roads, movements=movement_table(rows))


def link(roads, u, v):
    return links_by_ends(roads)[u, v]


def nodes_of(roads, links):
    return [int(roads.links.from_node[links[0]]), *roads.links.to_node[links].tolist()]


def ints(*values):
    return np.array(values, dtype=np.int32)


def test_a_turn_is_banned_if_no_lane_may_make_it():
    roads = block((0, 1, 3))
    ways = [(0, 1, 3, False), (0, 1, 3, True), (0, 1, 2, True), (3, 1, 2, False)]
    rows = [
        {"node": via, "from_link": link(roads, u, via), "to_link": link(roads, via, v), "allowed": allowed}
        for u, via, v, allowed in ways
    ]
    assert roads.banned_turns.tolist() == [[link(roads, 0, 1), link(roads, 1, 3)]]
    of_lanes = replace(roads, movements=movement_table(rows))
    assert of_lanes.banned_turns.tolist() == [[link(roads, 3, 1), link(roads, 1, 2)]]
    assert block().banned_turns.shape == (0, 2)


def test_a_banned_left_turn_leads_round_the_block():
    open_, banned = (ShortestPaths.of(block(*turns)) for turns in ((), [(0, 1, 3)]))
    roads = block((0, 1, 3))
    assert nodes_of(roads, open_.routes(ints(0), ints(3)).of(0)) == [0, 1, 3]
    assert nodes_of(roads, banned.routes(ints(0), ints(3)).of(0)) == [0, 1, 2, 4, 3]
    assert banned.times(ints(0))[0].tolist() == [0, 10, 20, 40, 30]
    # A trip that begins at the crossing makes no turn there.
    assert nodes_of(roads, banned.routes(ints(1), ints(3)).of(0)) == [1, 3]


def test_without_an_allowed_path_a_trip_is_refused_as_without_any():
    roads = block((0, 1, 2), (0, 1, 3), (0, 1, 0))
    paths = ShortestPaths.of(roads)
    assert paths.reached(ints(0, 0, 3), ints(1, 2, 2)).tolist() == [True, False, True]
    with pytest.raises(NoPathError, match="no path leads from node 0 to node 2"):
        paths.routes(ints(0), ints(2))
    scenario = scenarios.load("tiny")
    with pytest.raises(scenarios.ScenarioError, match="from node 0 to node 2 by the turns that are allowed"):
        route_trips(scenario, roads, paths, Trips(ints(0), ints(2), ints(0)))


def test_all_joined_needs_allowed_turns():
    ring = [(u, v, {"length_m": 100.0}) for u, v in STREETS]
    assert ShortestPaths.of(network(CORNERS, ring)).all_joined
    assert ShortestPaths.of(block((0, 1, 3))).all_joined
    assert not ShortestPaths.of(block((0, 1, 2), (0, 1, 3), (0, 1, 0))).all_joined
    assert not ShortestPaths.of(block((3, 1, 0))).all_joined


def test_paths_between_links():
    roads = block((0, 1, 3), (3, 1, 0))
    first, last = ([link(roads, *pair) for pair in pairs] for pairs in ([(0, 1)] * 4, [(1, 2), (1, 3), (1, 0), (0, 1)]))
    reached, routes = ShortestPaths.of(roads).between(ints(*first), ints(*last))
    assert reached.all()
    assert [len(routes.of(i)) for i in range(4)] == [0, 4, 0, 1]
    assert nodes_of(roads, routes.of(1)) == [1, 2, 4, 3, 1]
    for longest, expected in ((1e3, [0.0, 400.0, 0.0, 100.0]), (200.0, [0.0, np.inf, 0.0, 100.0])):
        metres = _metres_between(roads, ints(*first), ints(*last), np.full(4, longest))
        assert metres.tolist() == expected


def search(links, banned, through, time_s, starts):
    """Return the shortest time to the end of each link, by Dijkstra's algorithm over links; `starts` are the first."""
    shut = set(map(tuple, banned.tolist()))
    leaving = [np.flatnonzero(links.from_node == node).tolist() for node in range(len(links.first_out) - 1)]
    best = np.full(len(links), np.inf)
    heap = [(time_s[start], start) for start in starts]
    while heap:
        now, at = heapq.heappop(heap)
        if now >= best[at]:
            continue
        best[at] = now
        if through[links.to_node[at]]:
            for following in leaving[links.to_node[at]]:
                if (at, following) not in shut:
                    heapq.heappush(heap, (now + time_s[following], following))
    return best


def times_to_nodes(links, best, nodes):
    times = np.full(nodes, np.inf)
    np.minimum.at(times, links.to_node, best)
    return times


def draw_bans(rng, links, share):
    turns = np.argwhere(links.to_node[:, None] == links.from_node[None, :]).astype(np.int32)
    return turns[rng.random(len(turns)) < share]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("share", "kind"), [(0.02, "ties"), (0.3, "wide"), (0.7, "closed"), (0.3, "closed")])
def test_times_and_routes_are_those_of_a_search_over_links(share, kind, seed):
    rng = np.random.default_rng([seed, int(100 * share)])
    nodes = 25
    links = random_roads(rng, nodes, 90, parallel=seed == 0).links
    time_s, banned = draw_times(rng, len(links), kind), draw_bans(rng, links, share)
    through = rng.random(nodes) < (0.8 if seed == 1 else 1.0)
    shut = set(map(tuple, banned.tolist()))
    near = {"rtol": 1e-9, "atol": 1e-4 if kind == "closed" else 1e-7}
    paths = ShortestPaths(links, through=through, banned=banned, time_s=time_s)
    expected = np.empty((nodes, nodes))
    for node in range(nodes):
        best = search(links, banned, through, time_s, np.flatnonzero(links.from_node == node))
        expected[node] = times_to_nodes(links, best, nodes)
        expected[node, node] = 0.0
    np.testing.assert_allclose(paths.times(np.arange(nodes, dtype=np.int32)), expected, **near)
    if paths.all_joined:
        assert np.isfinite(expected).all()
    origin, destination = (ends.astype(np.int32) for ends in np.nonzero(np.isfinite(expected) & (expected > 0)))
    routes = paths.routes(origin, destination)
    routes.check_connected(links)
    assert not routes.has_turn(banned).any()
    np.testing.assert_array_equal(links.from_node[routes.first], origin)
    np.testing.assert_array_equal(links.to_node[routes.last], destination)
    driven = np.add.reduceat(time_s[routes.links], routes.offsets[:-1])
    np.testing.assert_allclose(driven, expected[origin, destination], **near)

    # The same from the end of each link, to nodes and to the start of each link.
    first, last = (ends.ravel().astype(np.int32) for ends in np.indices((len(links), len(links))))
    reached, between = paths.between(first, last)
    over = np.bincount(np.repeat(np.arange(len(first)), np.diff(between.offsets)), time_s[between.links], len(first))
    for start in range(len(links)):
        nexts = [b for b in np.flatnonzero(links.from_node == links.to_node[start]) if (start, b) not in shut]
        best = search(links, banned, through, time_s, nexts)
        of_start = first == start
        before = best_before(links, shut, best, start)
        np.testing.assert_array_equal(reached[of_start], np.isfinite(before))
        np.testing.assert_allclose(over[of_start][reached[of_start]], before[reached[of_start]], **near)
        node = np.delete(np.arange(nodes, dtype=np.int32), links.to_node[start])
        got = paths.times(paths.after(ints(start)))[0, node]
        np.testing.assert_allclose(got, times_to_nodes(links, best, nodes)[node], **near)
    chains = [[a, *between.of(i).tolist(), b] for i, (a, b) in enumerate(zip(first, last, strict=True)) if reached[i]]
    assert not routes_of(chains).has_turn(banned).any()
    routes_of(chains).check_connected(links)


def best_before(links, shut, best, start):
    """Return the shortest time from the end of a link to the start of each link, by times to the ends of others."""
    before = np.full(len(links), np.inf)
    for following in range(len(links)):
        node = links.from_node[following]
        if links.to_node[start] == node and (start, following) not in shut:
            before[following] = 0.0
            continue
        entering = [a for a in np.flatnonzero(links.to_node == node) if (a, following) not in shut]
        before[following] = best[entering].min(initial=np.inf)
    return before


@pytest.mark.parametrize("seed", range(2))
def test_gravity_draws_by_allowed_times_and_its_trees_give_the_same_routes(seed):
    rng = np.random.default_rng(seed)
    links = random_roads(rng, 40, 160).links
    banned, time_s = draw_bans(rng, links, 0.4), rng.uniform(1, 60, len(links))
    origin = rng.choice(links.from_node, 3000)
    share, mass = rng.random(3000), rng.random(40)
    paths = ShortestPaths(links, banned=banned, time_s=time_s)
    drawn = paths.draw_destinations(origin, share, mass, 40.0)
    times = paths.times(np.arange(40, dtype=np.int32))
    np.fill_diagonal(times, np.inf)
    total = np.cumsum(mass * np.exp(-times / 40.0), axis=1)[origin]
    np.testing.assert_array_equal(drawn, (total <= (share * total[:, -1])[:, None]).sum(axis=1))
    kept = paths.routes(origin, drawn)
    grown = ShortestPaths(links, banned=banned, time_s=time_s).routes(origin, drawn)
    np.testing.assert_array_equal(kept.links, grown.links)
    even = ShortestPaths(links, banned=banned).draw_destinations(origin, share, np.zeros(40), 40.0)
    assert np.isfinite(times[origin, even]).all()


def test_assignment_keeps_to_allowed_turns():
    roads = block((0, 1, 3))
    pairs = OdPairs.summed(ints(0), ints(3), np.array([5.0]))
    volume = load_shortest(roads.links.free_flow_s, pairs, links=roads.links, banned=roads.banned_turns)
    assert volume[link(roads, 1, 3)] == 0
    assert volume[link(roads, 4, 3)] == 5


def drive(engine, roads, routes, trips, **options):
    clock, physics = Clock(), LinkPhysics.build(roads.links, Clock())
    options |= {"every_s": 5.0, "share": 1.0, "rng": np.random.default_rng(1)}
    reactive = ReactiveRouting(roads.links, trips, clock=clock, banned=roads.banned_turns, **options)
    built = engine(roads.links, physics, trips, routes, clock=clock, reactive=reactive)
    run_to(built, 400)
    return built


@pytest.mark.parametrize("engine", ENGINES)
def test_a_vehicle_under_way_turns_as_its_link_allows(engine):
    """On 0 → 1 the left turn to 3 is banned; for the vehicle that comes from 4 over 3, none is."""
    roads = block((0, 1, 3))
    trips = Trips(ints(0, 4), ints(3, 0), ints(0, 0))
    routes = ShortestPaths.of(roads).routes(trips.origin, trips.destination)
    built = drive(engine, roads, routes, trips)
    assert nodes_of(roads, built.routes.of(0)) == [0, 1, 2, 4, 3]
    assert nodes_of(roads, built.routes.of(1)) == [4, 3, 1, 0]
    assert built.totals().arrived == 2


@pytest.mark.parametrize("engine", ENGINES)
def test_a_banned_turn_in_the_route_of_a_file_is_driven_if_no_other_path_leads_on(engine):
    roads = block((0, 1, 2), (0, 1, 3), (0, 1, 0))
    trips = Trips(ints(0, 1), ints(3, 3), ints(0, 0))
    given = routes_of([[link(roads, 0, 1), link(roads, 1, 3)], [link(roads, 1, 3)]])
    assert given.has_turn(roads.banned_turns).tolist() == [True, False]
    built = drive(engine, roads, given, trips, at_departure=False)
    assert nodes_of(roads, built.routes.of(0)) == [0, 1, 3]
    assert built.totals().arrived == 2


@pytest.mark.parametrize("method", ["nearest", "hmm"])
def test_matched_legs_have_allowed_turns(method):
    """Fixes west and north of the crossing: with the left turn banned, the path between them is round the block."""
    driven = []
    for roads in (block(), block((0, 1, 3))):
        x, y = np.array([[-60.0, 0.0], [-20.0, 0.0], [0.0, 40.0], [0.0, 80.0]]).T
        frame = {"vehicle": ["a"] * 4, "time": [0.0, 10.0, 60.0, 70.0], "x": 500_000 + x, "y": 4_500_000 + y}
        trace = Trace.from_frame(pd.DataFrame(frame), crs=roads.crs)
        recording = recording_of(trace, roads=roads, gap_s=100.0, matching=Matching(method, most_m=30.0))
        driven.append(sorted(set(recording.tracks.link.tolist())))
    assert link(roads, 4, 3) not in driven[0]
    assert link(roads, 1, 3) in driven[0]


def test_trips_of_sumo_keep_to_allowed_turns_and_routes_against_them_are_noted(tmp_path):
    ring_ = ["ab", "bc", "cd", "da", "ba", "cb", "dc", "ad"]
    roads = roads_of([(name[0], name[1], {"sumo_edge": name}) for name in ring_])
    of = {data["sumo_edge"]: data["link"] for *_, data in roads.graph.edges(data=True)}
    node = roads.links.to_node[of["ab"]]
    turn = {"node": node, "from_link": of["ab"], "to_link": of["bc"], "allowed": False}
    u_turn = {"node": node, "from_link": of["ab"], "to_link": of["ba"], "allowed": True}
    roads = replace(roads, movements=movement_table([turn, u_turn]))
    file = tmp_path / "demand.rou.xml"
    given = '<vehicle id="given" depart="1"><route edges="da ab bc"/></vehicle>'
    trip = '<trip id="{}" depart="2" from="ab" to="bc"/>'
    file.write_text(f"<routes>{given}{trip.format('one')}{trip.format('two')}</routes>")
    read = read_sumo_routes([file], roads, net=None, clock=Clock(), rng=np.random.default_rng(1))
    edges = {link: edge for edge, link in of.items()}
    driven = [[edges[link] for link in read.routes.of(i).tolist()] for i in range(3)]
    # The trips turn round twice: on ba, and at b, which they reach on cb after three more edges.
    assert driven == [["da", "ab", "bc"]] + [["ab", "ba", "ad", "dc", "cb", "bc"]] * 2
    assert [note for note in read.notes if "do not allow" in note] == [
        "demand.rou.xml: 1 route has a turn that the roads do not allow; the vehicles drive as the file states"
    ]
    shut = replace(roads, movements=movement_table([turn, u_turn | {"allowed": False}]))
    read = read_sumo_routes([file], shut, net=None, clock=Clock(), rng=np.random.default_rng(1))
    assert read.ids == ["given"]
    assert any("2 not driven: no path leads along its edges" in note for note in read.notes)


@pytest.mark.parametrize(
    ("source", "path", "routing"),
    [
        ("osm", "osm_extracts/Helsinki.osm.pbf", "free_flow"),
        ("sumo", "sumo/acosta/acosta_buslanes.net.xml.gz", "reactive"),
    ],
)
def test_no_route_of_a_run_has_a_banned_turn(source, path, routing):
    if not (DATA / path).exists():
        pytest.skip(f"CROWDVEIL_DATA names no folder with {path}: real data is not part of the project")
    overrides = [f"roads.source={source}", f"roads.path=data:{path}", "traffic.vehicles=1500"]
    overrides += [f"traffic.routing={routing}"] if routing == "reactive" else []
    scenario = scenarios.load("helsinki-osm", overrides=overrides)
    city = build_city(scenario)
    banned = city.roads.banned_turns
    assert len(banned) > 20
    engine = build_engine(scenario, city, streams=Streams(1), stopwatch=Stopwatch(), end_s=3600.0)
    before = ShortestPaths(city.roads.links).routes(engine.trips.origin, engine.trips.destination)
    assert before.has_turn(banned).any(), "without the bans, routes would have such turns"
    run_to(engine, 3600)
    assert not engine.routes.has_turn(banned).any()
