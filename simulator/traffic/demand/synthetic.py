"""Synthetic demand: uniform or gravity trips derived from the road network alone."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from simulator.roads.network import Links
from simulator.traffic.clock import Clock
from simulator.traffic.demand.departures import Departures, draw_departures
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.routes import Routes
from simulator.traffic.trips import Trips

IntArray = npt.NDArray[np.int32]


def draw_gravity(
    vehicles: int, *, links: Links, paths: ShortestPaths, scale_s: float, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Draw origins by their mass, and destinations by mass and travel time.

    A node's mass is the lane-metres of its outgoing links (more road means more destinations).
    P(destination j | origin i) ∝ mass_j · exp(−t_ij / scale_s), j ≠ i, with t_ij the shortest time: the singly
    constrained gravity model with exponential deterrence. If no reachable node has a mass (all of them lack outgoing
    links), the destination is drawn evenly from the reachable nodes.

    Returns
    -------
    tuple of numpy.ndarray
        Two (vehicles,) int32 arrays of node indices.
    """
    mass = np.bincount(links.from_node, weights=links.length_m * links.lanes, minlength=paths.nodes)
    cumulative = np.cumsum(mass)
    origin = np.searchsorted(cumulative, rng.random(vehicles) * cumulative[-1], side="right").astype(np.int32)
    u = rng.random(vehicles)
    destination = np.empty(vehicles, dtype=np.int32)
    by_origin = np.argsort(origin, kind="stable")
    bounds = np.searchsorted(origin[by_origin], np.arange(paths.nodes + 1))
    for block in paths.blocks(origin):
        time = paths.times(block)
        # Times are relative to the nearest other node, so that a small scale cannot underflow every weight to 0.
        time[np.arange(len(block)), block] = np.inf
        weight = np.exp(-(time - time.min(axis=1, keepdims=True)) / scale_s) * mass
        stranded = ~(weight.sum(axis=1) > 0)
        weight[stranded] = np.isfinite(time[stranded])
        np.cumsum(weight, axis=1, out=weight)
        for row, node in enumerate(block.tolist()):
            chosen = by_origin[bounds[node] : bounds[node + 1]]
            at = np.searchsorted(weight[row], u[chosen] * weight[row, -1], side="right")
            destination[chosen] = at
    return origin, destination


_MOST_ROUNDS = 400
"""Maximum number of redraws per vehicle, after which an unconnected pair is kept.

If one pair in ten is connected, this affects none of a million vehicles.
"""


def draw_uniform(vehicles: int, *, paths: ShortestPaths, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw origins and destinations evenly from all ordered pairs of different nodes that a path joins.

    Unconnected pairs, such as those to a node without incoming links, are drawn again. In a network where hardly any
    two nodes are connected, a few such pairs may remain, and routing reports them.

    Returns
    -------
    tuple of numpy.ndarray
        Two (vehicles,) int32 arrays of node indices.
    """
    origin, destination = _pairs(vehicles, paths.nodes, rng)
    if paths.all_joined:
        return origin, destination
    waiting = np.flatnonzero(~paths.reached(origin, destination))
    for _ in range(_MOST_ROUNDS):
        if len(waiting) == 0:
            break
        origin[waiting], destination[waiting] = _pairs(len(waiting), paths.nodes, rng)
        waiting = waiting[~paths.reached(origin[waiting], destination[waiting])]
    return origin, destination


def _pairs(number: int, nodes: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw ordered pairs of different nodes."""
    origin = rng.integers(nodes, size=number, dtype=np.int32)
    other = rng.integers(nodes - 1, size=number, dtype=np.int32)
    return origin, other + (other >= origin)


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


@dataclass(frozen=True, eq=False)
class Demand:
    """Demand of a run: trips, and routes if given.

    Attributes
    ----------
    trips
        In the order of departure.
    routes
        One per trip, if the demand gives them; None if they are still to be computed.
    notes
        What was left out, summed or filled in, one sentence each.
    """

    trips: Trips
    routes: Routes | None = None
    notes: tuple[str, ...] = ()
