"""The blank faces of the Sampling Privacy die, from as many of them as were given."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechanisms.parameter import ParameterError, check_probability

SUM_TOLERANCE = 1e-9


def resolve_blanks(
    *, cells: int, sampling: float, blank_zero: float | None, blank: ArrayLike | None
) -> NDArray[np.float64]:
    """Return π_0…π_V, (cells + 1,) float64, which with π_s sum to 1.

    Parameters
    ----------
    cells : int
        V.
    sampling : float
        π_s.
    blank_zero : float, optional
        π_0.
    blank : float or (cells,) float, optional
        π_v of each cell. With neither, all V + 1 blanks are equal; with one of them, the other takes what is
        left.

    Raises
    ------
    ParameterError
        If a blank is no probability, there is not one a cell, or the faces do not sum to 1 within 1e-9.
    """
    left = 1.0 - sampling
    if blank is None:
        if blank_zero is None:
            return np.full(cells + 1, left / (cells + 1))
        zero = _check_share("blank_zero", blank_zero, left)
        blanks = np.full(cells + 1, max(left - zero, 0.0) / cells)
        blanks[0] = min(zero, left)
        return blanks
    values = _check_cells(blank, cells)
    total = float(values.sum())
    zero = left - total if blank_zero is None else check_probability("blank_zero", blank_zero)
    if blank_zero is None and zero < -SUM_TOLERANCE:
        raise ParameterError("blank", f"must sum over the cells to at most 1 − sampling = {left:g}", total)
    if abs(sampling + zero + total - 1.0) > SUM_TOLERANCE:
        rule = f"must make sampling ({sampling:g}), blank_zero ({zero:g}) and the cells' blanks ({total:g}) sum to 1"
        raise ParameterError("blank", rule, sampling + zero + total)
    # A remainder of rounding is no face: a claim must not rest on it.
    return np.concatenate([[zero if zero > SUM_TOLERANCE or blank_zero is not None else 0.0], values])


def _check_share(field: str, value: float, left: float) -> float:
    """Return a probability no larger than what is left for it."""
    share = check_probability(field, value)
    if share > left + SUM_TOLERANCE:
        raise ParameterError(field, f"must be at most 1 − sampling = {left:g}", value)
    return share


def _check_cells(blank: ArrayLike, cells: int) -> NDArray[np.float64]:
    """Return one probability a cell."""
    given = np.asarray(blank)
    if given.dtype.kind not in "fiu":
        raise ParameterError("blank", "must be a number, or one a cell", blank)
    if given.ndim and given.shape != (cells,):
        raise ParameterError("blank", f"must be a number, or one a cell, shape {(cells,)}", given.shape)
    values = np.array(np.broadcast_to(given, (cells,)), dtype=np.float64)
    wrong = ~((values >= 0.0) & (values <= 1.0))
    if wrong.any():
        cell = int(wrong.argmax())
        raise ParameterError("blank", f"must be a probability, 0 to 1, at cell {cell + 1}", float(values[cell]))
    return values
