"""Rows: one answer beside the truth, cell by cell, whatever was asked."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from simulator.aggregation.cell_values import CellValues
from simulator.sensing.query import Answer, Query

FloatArray = npt.NDArray[np.float64]


class Rows(NamedTuple):
    """What an answer says of each cell it has a row for; all of one length.

    Attributes
    ----------
    cell
        int64, 1…V.
    truth
        Vehicles, int64; or m/s, float64.
    estimate, std_error, lower, upper
        float64, as estimated or published.
    theory
        float64, the standard error from the truth.
    """

    cell: npt.NDArray[np.int64]
    truth: npt.NDArray[np.int64] | FloatArray
    estimate: FloatArray
    std_error: FloatArray
    lower: FloatArray
    upper: FloatArray
    theory: FloatArray


def rows_of(query: Query, answer: Answer) -> Rows:
    """Return the rows of an answer: every cell of a count, and of speeds the cells with enough vehicles."""
    made = answer.estimate
    if isinstance(made, CellValues):
        return Rows(made.cell, made.truth, made.value, made.std_error, made.lower, made.upper, answer.std_error)
    cells = np.arange(1, len(made) + 1)
    return Rows(cells, query.truth[1:], made.count, made.std_error, made.lower, made.upper, answer.std_error)
