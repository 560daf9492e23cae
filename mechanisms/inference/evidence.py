"""Reports as an observer holds them, plain or as the encodings that shares add up to, read as small integers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.local.parts.answer_rows import AnswerReports
from mechanisms.local.parts.bit_rows import BitReports
from mechanisms.local.parts.checks import check_values
from mechanisms.parameter import ParameterError

# What no mechanism sends: an encoding that is not one, such as a sum of some of the shares only.
INVALID = -1


def read_values(reports: Any, *, outputs: int) -> NDArray[np.int64]:
    """Return one value a device, (n,) int64 in 0…outputs − 1, or INVALID.

    Parameters
    ----------
    reports : (n,) int32, or (n, outputs) int64 or uint64
        Values, or encodings, which are one-hot where they are honest.
    outputs : int

    Raises
    ------
    ParameterError
        If they have another shape, or a value is out of range.
    """
    if isinstance(reports, np.ndarray) and reports.ndim == 2:
        return _place_of_one(check_vectors(reports, (outputs,)))
    return check_values(reports, outputs=outputs).astype(np.int64)


def read_answers(reports: Any, *, cells: int, outputs: int) -> NDArray[np.int64]:
    """Return the answer about every cell, (n, cells) int64 in 0…outputs − 1, or INVALID.

    Parameters
    ----------
    reports : BitReports, AnswerReports, or (n, cells, outputs) int64 or uint64
    cells, outputs : int
    """
    if isinstance(reports, np.ndarray):
        return _place_of_one(check_vectors(reports, (cells, outputs)))
    if isinstance(reports, BitReports | AnswerReports) and reports.cells == cells:
        held = 2 if isinstance(reports, BitReports) else reports.outputs
        if held == outputs:
            return reports.to_dense().astype(np.int64)
    raise ParameterError("reports", f"must be answers about {cells} cells, {outputs} outputs", reports)


def check_vectors(reports: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return encodings (n, *shape) of 64-bit integers, if they are just that."""
    if reports.dtype not in {np.dtype(np.int64), np.dtype(np.uint64)}:
        raise ParameterError("reports", "must be encodings of 64-bit integers", str(reports.dtype))
    if reports.shape[1:] != shape:
        raise ParameterError("reports", f"must have encodings of shape {shape}", reports.shape)
    return reports


def _place_of_one(vectors: NDArray[Any]) -> NDArray[np.int64]:
    """Return where the last axis has its 1, INVALID where it is not one-hot."""
    ones = vectors == 1
    fine = (ones.sum(axis=-1) == 1) & ((vectors == 0) | ones).all(axis=-1)
    return np.where(fine, ones.argmax(axis=-1), INVALID)
