"""Uniform demand: every pair of places alike."""

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int32]


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
