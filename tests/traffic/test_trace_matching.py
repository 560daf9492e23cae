"""Traces of vehicles whose links are known are matched to those links."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import networkx as nx
import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import shapely
import simpy
from single_places import advance_and_compare

from simulator.files.errors import InputError
from simulator.files.messages import texts_of
from simulator.formats.recordings import Matching, Trace, recording_of
from simulator.formats.recordings.hidden_markov import match_hmm
from simulator.roads import RoadNetwork, build_grid
from simulator.traffic.clock import Clock, after_traffic
from simulator.traffic.engine import State
from simulator.traffic.fleet import Fleet
from simulator.traffic.lanes import LinkPhysics
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.recording import Recording, Replay, Tracks
from simulator.traffic.trips import Trips

CLOCK = Clock(1.0)
JUNCTION_M = 30.0
EVERY_S = 10


@dataclass(frozen=True)
class Driven:
    """Output of a fleet: fixes, and the link and fraction at each."""

    roads: RoadNetwork
    fixes: pd.DataFrame
    link: npt.NDArray[np.int32]
    fraction: npt.NDArray[np.float64]

    @property
    def away(self) -> npt.NDArray[np.bool_]:
        """Fixes away from junctions, of vehicles seen more than once: a single fix has no direction."""
        length = self.roads.links.length_m[self.link]
        inner = (self.fraction * length > JUNCTION_M) & ((1 - self.fraction) * length > JUNCTION_M)
        seen = self.fixes.groupby("vehicle")["time"].transform("size").to_numpy()
        return inner & (seen > 1)

    def trace(self, noise_m: float = 0.0) -> Trace:
        noise = np.random.default_rng(5).normal(0.0, noise_m, (len(self.fixes), 2))
        moved = self.fixes.assign(x=self.fixes["x"] + noise[:, 0], y=self.fixes["y"] + noise[:, 1])
        return Trace.from_frame(moved, crs=self.roads.crs)


def _engine(roads: RoadNetwork, vehicles: int) -> Fleet:
    rng = np.random.default_rng(1)
    nodes = len(roads.node_names)
    origin = rng.integers(0, nodes, vehicles).astype(np.int32)
    destination = ((origin + rng.integers(1, nodes, vehicles)) % nodes).astype(np.int32)
    trips = Trips(origin, destination, np.sort(rng.integers(0, 300, vehicles)).astype(np.int32))
    physics = LinkPhysics.build(roads.links, CLOCK, stuck_s=30.0)
    return Fleet(
        roads.links, physics, trips, ShortestPaths(roads.links).routes(trips.origin, trips.destination), clock=CLOCK
    )


def _drive(vehicles: int) -> Driven:
    roads = build_grid(
        rows=6, columns=6, spacing_x_m=200, spacing_y_m=150, speed_mps=13.9, lanes=1, anchor=(11.3, 44.5)
    )
    engine, env = _engine(roads, vehicles), simpy.Environment()
    engine.start(env)
    frames, links, fractions = [], [], []
    for time_s in range(0, 600, EVERY_S):
        env.run(until=after_traffic(env, time_s))
        engine.advance()
        places = engine.places()
        on = np.flatnonzero(places.state == State.ON_ROAD)
        xy = roads.locate(places.link[on], places.fraction[on])
        frames.append(pd.DataFrame({"vehicle": on, "time": float(time_s), "x": xy[:, 0], "y": xy[:, 1]}))
        links.append(places.link[on])
        fractions.append(places.fraction[on])
    return Driven(roads, pd.concat(frames, ignore_index=True), np.concatenate(links), np.concatenate(fractions))


@pytest.fixture(scope="module")
def driven() -> Driven:
    return _drive(120)


def _matched(driven: Driven, trace: Trace, matching: Matching | None) -> tuple[pd.DataFrame, Recording]:
    """Links and positions at the times of the fixes, in the order of `driven.fixes`."""
    recording = recording_of(trace, driven.roads, gap_s=60.0, start=0.0, matching=matching)
    engine, env = Replay(recording, roads=driven.roads, clock=CLOCK, duration_s=600), simpy.Environment()
    engine.start(env)
    number = {int(name): place for place, name in enumerate(trace.names)}
    rows = []
    for time_s, group in driven.fixes.groupby("time", sort=True):
        departed = len(engine.places())
        env.run(until=after_traffic(env, float(time_s)))
        places = advance_and_compare(engine, departed=departed)
        who = [number[vehicle] for vehicle in group["vehicle"]]
        xy = places.xy[who]
        rows.append(pd.DataFrame({"link": places.link[who], "x": xy[:, 0], "y": xy[:, 1]}, index=group.index))
    return pd.concat(rows).sort_index(), recording


@pytest.mark.parametrize("method", ["nearest", "hmm"])
def test_matching_without_noise_is_exact_away_from_junctions(driven, method):
    found, recording = _matched(driven, driven.trace(), Matching(method, 50.0, 2.0))
    assert (found["link"].to_numpy() == driven.link)[driven.away].mean() == 1.0
    assert np.hypot(found["x"] - driven.fixes["x"], found["y"] - driven.fixes["y"]).max() < 1e-3
    assert any(
        f"{len(driven.link):,} of {len(driven.link):,} fixes are matched" in note
        for note in texts_of(recording.notes())
    )


@pytest.mark.parametrize("method", ["nearest", "hmm"])
def test_matching_with_noise_finds_most_links(driven, method):
    found, _ = _matched(driven, driven.trace(6.0), Matching(method, 50.0, 6.0))
    assert (found["link"].to_numpy() == driven.link)[driven.away].mean() > 0.97
    apart = np.hypot(found["x"] - driven.fixes["x"], found["y"] - driven.fixes["y"])
    # Of noise in two directions only the component along the street remains.
    assert apart.mean() < 6.0


def test_hidden_markov_matching_beats_the_nearest_link_where_noise_is_large(driven):
    right = {}
    for method in ("nearest", "hmm"):
        found, _ = _matched(driven, driven.trace(25.0), Matching(method, 100.0, 25.0))
        right[method] = (found["link"].to_numpy() == driven.link)[driven.away].mean()
    assert right["hmm"] > right["nearest"] + 0.05


def test_the_most_probable_sequence_of_links_is_that_of_all_sequences():
    """Viterbi against every sequence of links, with the route lengths of networkx."""
    roads = build_grid(rows=3, columns=3, spacing_x_m=60, spacing_y_m=50, speed_mps=10, lanes=1, anchor=(11.3, 44.5))
    west, south, _, _ = roads.bounds
    xy = np.array([west, south]) + np.array([[10.0, 8], [50, 21], [66, 44]])
    tracks = Tracks.straight(
        np.array([0, 3]), np.arange(3.0), xy, np.full(3, np.nan), known=np.array([True, True, False])
    )
    most_m, noise_m, detour = 30.0, 8.0, 3.0
    link, fraction = match_hmm(tracks, roads, most_m=most_m, noise_m=noise_m, detour=detour)
    lines, length = roads.shapes.lines(), roads.links.length_m
    metres = dict(nx.all_pairs_dijkstra_path_length(nx.DiGraph(roads.graph), weight="length_m"))
    names = list(roads.node_names)
    points = [shapely.Point(*place) for place in xy]
    near = [[n for n, line in enumerate(lines) if line.distance(point) <= most_m] for point in points]
    assert max(map(len, near)) <= 12

    def logarithm(sequence):
        shares = [lines[n].project(point, normalized=True) for n, point in zip(sequence, points, strict=True)]
        total = -0.5 * sum((lines[n].distance(point) / noise_m) ** 2 for n, point in zip(sequence, points, strict=True))
        for leg, (a, b) in enumerate(itertools.pairwise(sequence)):
            between = metres[names[roads.links.to_node[a]]][names[roads.links.from_node[b]]]
            ahead = (shares[leg + 1] - shares[leg]) * length[a]
            over = (1 - shares[leg]) * length[a] + between + shares[leg + 1] * length[b]
            route_m = ahead if a == b and ahead >= -most_m else over
            straight_m = points[leg].distance(points[leg + 1])
            if route_m > detour * straight_m + 4 * most_m:
                return -np.inf
            total -= abs(route_m - straight_m) / (2 * noise_m)
        return total

    best = max(map(logarithm, itertools.product(*near)))
    assert logarithm(link.tolist()) == pytest.approx(best)
    assert fraction.tolist() == pytest.approx(
        [lines[n].project(p, normalized=True) for n, p in zip(link, points, strict=True)]
    )


def test_between_fixes_a_vehicle_follows_the_roads(driven):
    """Fixes of every third time: between them the vehicle is on the route driven, if that was the fastest."""
    sparse = Driven(driven.roads, *_every_third(driven))
    recording = recording_of(sparse.trace(), driven.roads, gap_s=60.0, start=0.0, matching=Matching("nearest"))
    engine, env = Replay(recording, roads=driven.roads, clock=CLOCK, duration_s=600), simpy.Environment()
    engine.start(env)
    number = {int(name): place for place, name in enumerate(sparse.trace().names)}
    right = total = 0
    for time_s, group in driven.fixes.groupby("time", sort=True):
        env.run(until=after_traffic(env, float(time_s)))
        engine.advance()
        places = engine.places()
        known = [
            v in number and number[v] < len(places) and places.state[number[v]] == State.ON_ROAD
            for v in group["vehicle"]
        ]
        who = [number[vehicle] for vehicle in group["vehicle"][known]]
        on = places.link[who] >= 0
        assert on.all()
        np.testing.assert_allclose(
            places.xy[who], driven.roads.locate(places.link[who], places.fraction[who]), atol=1e-6
        )
        away = driven.away[group.index[known]]
        right += int((places.link[who] == driven.link[group.index[known]])[away].sum())
        total += int(away.sum())
    assert total > 200
    assert right / total > 0.9


def test_recorded_speeds_are_interpolated_between_fixes(driven):
    sparse, _, _ = _every_third(driven)
    trace = Trace.from_frame(sparse.assign(speed_mps=7.0), crs=driven.roads.crs)
    recording = recording_of(trace, driven.roads, gap_s=60.0, start=0.0, matching=Matching("nearest"))
    assert len(recording.tracks.recorded_mps) > len(sparse)
    np.testing.assert_allclose(recording.tracks.recorded_mps, 7.0, rtol=1e-6)


def _every_third(driven: Driven) -> tuple[pd.DataFrame, npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    kept = (driven.fixes["time"] % (3 * EVERY_S) == 0).to_numpy()
    return driven.fixes[kept].reset_index(drop=True), driven.link[kept], driven.fraction[kept]


@pytest.mark.parametrize("method", ["nearest", "hmm"])
def test_fixes_off_the_roads_keep_their_position_and_are_counted(driven, method):
    west, south, _, _ = driven.roads.bounds
    frame = pd.DataFrame(
        {
            "vehicle": "v",
            "time": [0.0, 10.0, 20.0, 30.0],
            "x": [west + 50, west + 100, west + 100, west + 150],
            "y": [south, south, south - 400, south],
        }
    )
    trace = Trace.from_frame(frame, crs=driven.roads.crs)
    recording = recording_of(trace, driven.roads, gap_s=60.0, matching=Matching(method, 30.0, 3.0))
    assert any(
        "3 of 4 fixes are matched" in note and "1 with no road within 30 m" in note
        for note in texts_of(recording.notes())
    )
    assert any("2 legs between fixes have no likely route" in note for note in texts_of(recording.notes()))
    engine, env = Replay(recording, roads=driven.roads, clock=CLOCK, duration_s=60), simpy.Environment()
    engine.start(env)
    for time_s, on_road, y in ((12, True, 0), (18, False, -400), (22, False, -400), (28, True, 0)):
        env.run(until=after_traffic(env, time_s))
        engine.advance()
        places = engine.places()
        assert (places.link[0] >= 0) == on_road
        assert places.xy[0, 1] == pytest.approx(south + y, abs=1e-3)


def test_matching_needs_roads(driven):
    with pytest.raises(InputError, match="match needs roads"):
        recording_of(driven.trace(), None, gap_s=60.0, matching=Matching("nearest"))
