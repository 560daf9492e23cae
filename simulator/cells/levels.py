"""Levels: which block of a coarser level each block of a finer one lies in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simulator.cells.errors import CellsError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simulator.cells.partition import Partition


def between_levels(cells: Partition, *, finer: int, coarser: int) -> NDArray[np.int64]:
    """Map the blocks of one level to those of a coarser one.

    Parameters
    ----------
    cells
        Any partition.
    finer, coarser
        Two of its levels, ``finer`` at most ``coarser``; level 0 is the cells themselves.

    Returns
    -------
    ndarray
        For each block 0 … of the finer level, the block of the coarser level it lies in; int64, shape (blocks,).

    Raises
    ------
    CellsError
        If a level is negative, or the finer one is coarser than the other.
    """
    if finer > coarser:
        raise CellsError([f"finer must be at most coarser, got {finer} and {coarser}"])
    from_, to = cells.coarsened(finer), cells.coarsened(coarser)
    mapped = np.zeros(int(from_.max()) + 1, dtype=np.int64)
    mapped[from_] = to
    return mapped
