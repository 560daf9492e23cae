"""Cell values: one published statistic a cell, beside the truth it is scored against."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CellValues:
    """A statistic of the devices of each cell that has a row; cells with too few devices have none.

    Attributes
    ----------
    cell
        (rows,) int64, ascending, 1…V.
    truth
        (rows,) float64: the statistic over all devices asked that are in the cell, heard or not.
    value, std_error, lower, upper
        (rows,) float64: as published.
    interval
        How the interval was made, in a few words.
    """

    cell: npt.NDArray[np.int64]
    truth: FloatArray
    value: FloatArray
    std_error: FloatArray
    lower: FloatArray
    upper: FloatArray
    interval: str

    def __len__(self) -> int:
        return len(self.cell)
