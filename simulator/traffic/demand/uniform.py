"""Uniform demand: every pair of places alike."""

import numpy as np
import numpy.typing as npt

from simulator.traffic.paths import ShortestPaths

IntArray = npt.NDArray[np.int32]

_MOST_ROUNDS = 400
"""Draws after which a vehicle keeps a pair that no path joins: of a million vehicles none, if one pair in ten is."""


def draw_uniform(vehicles: int, *, paths: ShortestPaths, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw origins and destinations evenly over all ordered pairs of different nodes that a path joins.

    Pairs that none joins, as of a node that is only left and never entered, are drawn anew. Where hardly any two
    nodes are joined a few may remain, and routing says so.

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
