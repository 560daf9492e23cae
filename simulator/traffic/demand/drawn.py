"""Drawn demand: trips made up from a network alone."""

from typing import Literal

import numpy as np

from simulator.roads.links import Links
from simulator.traffic.clock import Clock
from simulator.traffic.demand.departures import Departures, draw_departures
from simulator.traffic.demand.gravity import draw_gravity
from simulator.traffic.demand.uniform import draw_uniform
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.trips import Trips


def draw_trips(
    vehicles: int,
    *,
    links: Links,
    paths: ShortestPaths,
    demand: Literal["uniform", "gravity"],
    gravity_scale_s: float,
    departures: Departures,
    duration_s: float,
    clock: Clock,
    rng: np.random.Generator,
) -> Trips:
    """Draw every vehicle's trip.

    Returns
    -------
    Trips
        In the order of departure.
    """
    if demand == "uniform":
        origin, destination = draw_uniform(vehicles, paths=paths, rng=rng)
    else:
        origin, destination = draw_gravity(vehicles, links=links, paths=paths, scale_s=gravity_scale_s, rng=rng)
    leave_s = draw_departures(vehicles, departures, duration_s=duration_s, rng=rng)
    return Trips.from_unsorted(origin, destination, np.floor(leave_s / clock.step_s))
