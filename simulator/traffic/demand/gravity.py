"""Gravity demand between nodes: more to where there is more road, less to what is far."""

import numpy as np
import numpy.typing as npt

from simulator.roads.links import Links
from simulator.traffic.paths import ShortestPaths

IntArray = npt.NDArray[np.int32]


def draw_gravity(
    vehicles: int, *, links: Links, paths: ShortestPaths, scale_s: float, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Draw origins by their mass, and destinations by mass and nearness.

    A node's mass is the lane-metres of the links that leave it (where there is more road, there is more to
    drive to). P(destination j | origin i) ∝ mass_j · exp(−t_ij / scale_s), j ≠ i, with t_ij the shortest time:
    the singly constrained gravity model with exponential deterrence. Where nothing that can be reached has a mass (a
    way that only leads out), evenly over what can be reached.

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
        stranded = ~(weight.sum(axis=1) > 0)
        weight[stranded] = np.isfinite(time[stranded])
        np.cumsum(weight, axis=1, out=weight)
        for row, node in enumerate(block.tolist()):
            chosen = by_origin[bounds[node] : bounds[node + 1]]
            at = np.searchsorted(weight[row], u[chosen] * weight[row, -1], side="right")
            destination[chosen] = at
    return origin, destination
