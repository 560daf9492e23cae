"""Traffic on the left of a mirrored city, in both engines: the same vehicles on the same links as on the right."""

from dataclasses import replace

import numpy as np
import simpy
from roads_by_hand import ENGINES

import scenarios
from simulator.experiment.assembly.engine import build_physics
from simulator.roads import RoadNetwork, build_grid
from simulator.roads.driving_side import DrivingSide
from simulator.traffic.clock import Clock
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.trips import Trips


def mirrored(roads: RoadNetwork) -> RoadNetwork:
    """Return a network as it is in a mirror, with the same movements: none of them states a turn."""
    graph = roads.graph.copy()
    for _, data in graph.nodes(data=True):
        data["x"] = -data["x"]
    image = replace(RoadNetwork.from_graph(graph), movements=roads.movements, signals=roads.signals)
    return replace(image, side=DrivingSide(left=True))


def logs(roads: RoadNetwork) -> list[np.ndarray]:
    """Return the link entries of each engine, and where its vehicles are, in metres."""
    clock, found = Clock(1.0), []
    physics = build_physics(scenarios.load("tiny"), roads, clock)
    rng = np.random.default_rng(8)
    ends = rng.integers(len(roads.node_names), size=(2, 500))
    ends = ends[:, ends[0] != ends[1]].astype(np.int32)
    trips = Trips(*ends, np.sort(rng.integers(0, 120, ends.shape[1])).astype(np.int32))
    routes = ShortestPaths(roads.links).routes(trips.origin, trips.destination)
    for engine in ENGINES:
        built = engine(roads.links, physics, trips, routes, clock=clock, record_entries=True)
        env = simpy.Environment()
        built.start(env)
        env.run(until=200.51)
        built.advance()
        found += [built.log, built.places().xy_on(roads)]
    return found


def test_a_mirrored_city_with_traffic_on_the_left_has_the_same_occupancy():
    sizes = {"rows": 4, "columns": 4, "spacing_x_m": 150.0, "spacing_y_m": 120.0}
    roads = build_grid(**sizes, speed_mps=12.0, lanes=2, avenue_lanes=3, signals=True)
    right, left = logs(roads), logs(mirrored(roads))
    wrong = logs(replace(mirrored(roads), side=DrivingSide()))
    assert len(right[0]) > 500
    for place in (0, 2):  # the link entries of each engine
        np.testing.assert_array_equal(right[place], left[place])
    assert not np.array_equal(right[0], wrong[0]), "the side matters"
    for place in (1, 3):
        np.testing.assert_allclose(right[place] * [-1, 1], left[place], atol=1e-6)
