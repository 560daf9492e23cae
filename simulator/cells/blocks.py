"""Blocks: cells merged by the square of a plane that their middles lie in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simulator.cells.division import check_level

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LEAST_M = 1.0


def blocks_of(
    middles: NDArray[np.float64], *, corner: tuple[float, float], spacing_m: float, level: int
) -> NDArray[np.int64]:
    """Merge cells whose middles lie in one square of a side of ``spacing_m`` · 2^level.

    Parameters
    ----------
    middles
        Of the cells 1 … V in order, metres, shape (V, 2).
    corner
        South-west corner of the first square, metres.
    spacing_m
        Side of a square of level 0, metres.
    level
        How often the side is doubled, 0 or more; 0 is the cells themselves.

    Returns
    -------
    ndarray
        The block of each cell, 0 … blocks - 1, row by row from the south-west; int64, shape (V,). Squares of a level
        are made of four of the level before, so each block of a level lies within one of the next.

    Raises
    ------
    CellsError
        If the level is negative.
    """
    level = check_level(level)
    if level == 0:
        return np.arange(len(middles), dtype=np.int64)
    squares = np.floor((middles - np.asarray(corner)) / spacing_m).astype(np.int64)[:, ::-1] >> level
    return np.unique(squares, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def spacing_of(middles: NDArray[np.float64]) -> float:
    """Say how far apart places are about: the side of the square each would have of their extent.

    Parameters
    ----------
    middles
        Metres, shape (V, 2), V ≥ 1.

    Returns
    -------
    float
        Metres, at least 1; of places in a line, the line's length over their number.
    """
    width, height = (middles.max(axis=0) - middles.min(axis=0)).tolist()
    return float(max(np.sqrt(width * height / len(middles)), max(width, height) / len(middles), _LEAST_M))
