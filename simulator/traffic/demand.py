"""Demand: between which nodes vehicles travel, and when they leave."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from simulator.roads.links import Links
from simulator.traffic.clock import Clock
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.trips import Trips

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]

_PEAK_SHAPE = 4.0


@dataclass(frozen=True)
class Interval:
    """A part of the run in which `share` of all vehicles leave, evenly."""

    from_s: float
    to_s: float
    share: float


Departures = Literal["uniform", "peak"] | Sequence[Interval]


def draw_departures(
    vehicles: int, departures: Departures, *, duration_s: float, rng: np.random.Generator
) -> FloatArray:
    """Draw when each vehicle leaves, in seconds from the start of the run.

    Parameters
    ----------
    vehicles
        How many.
    departures
        "uniform" over the whole run, warm-up included; "peak": Beta(4, 4) over it, one smooth rush around its
        middle; or intervals whose shares sum to 1.
    duration_s
        Length of the run.
    rng
        The demand stream.

    Returns
    -------
    numpy.ndarray
        (vehicles,) float64 in [0, duration_s), unsorted.
    """
    if departures == "uniform":
        return rng.random(vehicles) * duration_s
    if departures == "peak":
        # A draw of exactly 1 would depart at the end of the run, which is no longer in it.
        share = np.minimum(rng.beta(_PEAK_SHAPE, _PEAK_SHAPE, vehicles), np.nextafter(1.0, 0.0))
        return np.asarray(share * duration_s)
    table = [interval for interval in departures if isinstance(interval, Interval)]
    share = np.array([interval.share for interval in table])
    chosen = rng.choice(len(table), size=vehicles, p=share / share.sum())
    start = np.array([interval.from_s for interval in table])[chosen]
    length = np.array([interval.to_s - interval.from_s for interval in table])[chosen]
    return np.asarray(start + rng.random(vehicles) * length, dtype=np.float64)


def draw_uniform(vehicles: int, *, nodes: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw origins and destinations evenly over all ordered pairs of different nodes.

    Returns
    -------
    tuple of numpy.ndarray
        Two (vehicles,) int32 arrays of node indices.
    """
    origin = rng.integers(nodes, size=vehicles, dtype=np.int32)
    other = rng.integers(nodes - 1, size=vehicles, dtype=np.int32)
    return origin, other + (other >= origin)


def draw_gravity(
    vehicles: int, *, links: Links, paths: ShortestPaths, scale_s: float, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Draw origins by their mass, and destinations by mass and nearness.

    A node's mass is the lane-metres of the links that leave it (where there is more road, there is more to
    drive to). P(destination j | origin i) ∝ mass_j · exp(−t_ij / scale_s), j ≠ i, with t_ij the shortest time:
    the singly constrained gravity model with exponential deterrence.

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
        # Relative to the nearest other node, so that a small scale cannot underflow every weight to 0.
        time[np.arange(len(block)), block] = np.inf
        weight = np.exp(-(time - time.min(axis=1, keepdims=True)) / scale_s) * mass
        np.cumsum(weight, axis=1, out=weight)
        for row, node in enumerate(block.tolist()):
            chosen = by_origin[bounds[node] : bounds[node + 1]]
            at = np.searchsorted(weight[row], u[chosen] * weight[row, -1], side="right")
            destination[chosen] = at
    return origin, destination


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
        origin, destination = draw_uniform(vehicles, nodes=paths.nodes, rng=rng)
    else:
        origin, destination = draw_gravity(vehicles, links=links, paths=paths, scale_s=gravity_scale_s, rng=rng)
    leave_s = draw_departures(vehicles, departures, duration_s=duration_s, rng=rng)
    return Trips.from_unsorted(origin, destination, np.floor(leave_s / clock.step_s))
