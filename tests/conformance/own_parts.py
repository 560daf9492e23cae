"""Users' own cells, engine and demand, correct ones: rings, drones, and trips to the middle."""

from itertools import pairwise

import numpy as np
import pandas as pd
import shapely

from simulator.traffic.engine import State, VehicleStates


class Rings:
    """Rings about the middle of the city."""

    def __init__(self, width_m=150.0, *, bounds):
        west, south, east, north = bounds
        self.middle, self.width_m = np.array([west + east, south + north]) / 2, width_m
        self.count = int(np.ceil(np.hypot(east - west, north - south) / 2 / width_m))
        self.names = [f"ring {ring}" for ring in range(1, self.count + 1)]

    def cell_of(self, xy):
        ring = np.hypot(*(xy - self.middle).T) // self.width_m
        return np.where(ring < self.count, ring + 1, 0).astype(int)

    def polygons(self):
        discs = [shapely.Point(self.middle).buffer(n * self.width_m, quad_segs=64) for n in range(self.count + 1)]
        return [outer - inner for inner, outer in pairwise(discs)]


class Drones:
    """Drones that fly straight from one place to another."""

    def __init__(self, flights=100, speed_mps=5.0, *, bounds, duration_s, rng):
        self.vehicles, self.speed_mps = flights, speed_mps
        low, high = np.reshape(bounds, (2, 2))
        self.from_xy, self.to_xy = rng.uniform(low, high, size=(2, flights, 2))
        self.departure_s = np.sort(rng.uniform(0.0, duration_s, flights))
        self.flight_s = np.hypot(*(self.to_xy - self.from_xy).T) / speed_mps

    def at(self, time_s):
        share = (time_s - self.departure_s[self.departure_s <= time_s]) / self.flight_s[self.departure_s <= time_s]
        share = np.minimum(share, 1.0)[:, None]
        xy = self.from_xy[: len(share)] * (1.0 - share) + self.to_xy[: len(share)] * share
        return VehicleStates.from_coordinates(np.where(share[:, 0] < 1.0, State.ON_ROAD, State.ARRIVED), xy)

    def speeds(self, time_s):
        return np.where(self.at(time_s).state == State.ON_ROAD, self.speed_mps, 0.0)


class ToTheMiddle:
    """Trips from all other nodes to the one nearest to the middle."""

    def trips(self, roads, *, vehicles, duration_s, rng):
        middle, *others = np.argsort(np.hypot(*(roads.node_xy - roads.node_xy.mean(axis=0)).T))
        return pd.DataFrame(
            {
                "origin": [roads.node_names[node] for node in rng.choice(others, vehicles)],
                "destination": [roads.node_names[middle]] * vehicles,
                "departure_s": rng.uniform(0.0, duration_s / 2, vehicles),
            }
        )
