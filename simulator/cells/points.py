"""Points whose cells a partition is asked for."""

import numpy as np
import numpy.typing as npt


def points_of(xy: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return points as an array of pairs of coordinates.

    Parameters
    ----------
    xy
        Shape (n, 2).

    Returns
    -------
    numpy.ndarray
        The same, (n, 2) float64, contiguous.

    Raises
    ------
    ValueError
        If the points are not pairs.
    """
    points = np.ascontiguousarray(xy, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"xy must be of shape (n, 2), got {points.shape}")
    return points
