"""Whole vehicles of fractional flows."""

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
LongArray = npt.NDArray[np.int64]


def whole_vehicles(flows: FloatArray, *, total: int | None = None, rng: np.random.Generator) -> LongArray:
    """Round flows to whole vehicles by systematic sampling: expectations exact, totals as near as whole numbers can be.

    With one u ~ U[0, 1) and C_i the sum of the first i flows, flow i becomes ⌊C_i + u⌋ − ⌊C_{i−1} + u⌋. So each
    becomes the whole number below or above it, its expectation is the flow itself, and the sum over any run of
    neighbours (all of them; all from one origin, where they lie together) is within 1 of theirs.

    Parameters
    ----------
    flows
        (flows,) float64, not negative, finite.
    total
        Vehicles wanted in all: flows are scaled to it, and it is met exactly. Left out, flows stay as they are.
    rng
        Draws the one u.

    Returns
    -------
    numpy.ndarray
        (flows,) int64.

    Raises
    ------
    ValueError
        If a total is wanted of flows that sum to 0.

    References
    ----------
    W. G. Madow, On the theory of systematic sampling, II, Annals of Mathematical Statistics 20 (1949) 333-354.
    """
    bounds = np.concatenate([[0.0], np.cumsum(flows)])
    if total is not None:
        if total and not bounds[-1] > 0:
            raise ValueError("flows that sum to 0 cannot be scaled")
        # The last bound is the total itself, not what rounding makes of it.
        bounds = bounds / bounds[-1] * total if total else np.zeros_like(bounds)
        bounds[-1] = total
    whole = np.floor(bounds + rng.random()).astype(np.int64)
    return whole[1:] - whole[:-1]
