"""What a caller hands a mechanism with its coins: rounds, truths and masks, checked cheaply."""

import numpy as np
from numpy.typing import NDArray

from mechanisms.parameter import ParameterError

OUTSIDE = 0


def check_round(round_: int, rounds: int) -> int:
    """Return the round, from 1, if the mechanism has it."""
    if round_ not in range(1, rounds + 1):
        raise ParameterError("round", f"must be in 1..{rounds}", round_)
    return round_


def check_truth(truth: NDArray[np.int32], *, devices: int, cells: int) -> NDArray[np.int32]:
    """Return the cell of every device, (n,) int32 in 0…V, if it is just that."""
    if not isinstance(truth, np.ndarray) or truth.dtype != np.int32:
        raise ParameterError("truth", "must be an int32 array", getattr(truth, "dtype", type(truth).__name__))
    if truth.shape != (devices,):
        raise ParameterError("truth", f"must have one cell a device, shape {(devices,)}", truth.shape)
    if devices:
        least, greatest = int(truth.min()), int(truth.max())
        if least < OUTSIDE or greatest > cells:
            rule = f"must be a cell in 1..{cells}, or 0 outside every cell"
            raise ParameterError("truth", rule, least if least < OUTSIDE else greatest)
    return truth


def check_values(reports: NDArray[np.int32], *, outputs: int) -> NDArray[np.int32]:
    """Return one output a device, (n,) int32 in 0…outputs − 1, if reports are just that.

    Reports come from elsewhere by the time they are added up: an output the tally has no place for must not
    reach a compiled kernel.
    """
    if not isinstance(reports, np.ndarray) or reports.dtype != np.int32 or reports.ndim != 1:
        raise ParameterError(
            "reports", "must be an (n,) int32 array", getattr(reports, "dtype", type(reports).__name__)
        )
    if reports.size:
        least, greatest = int(reports.min()), int(reports.max())
        if least < 0 or greatest >= outputs:
            raise ParameterError("reports", f"must be outputs in 0..{outputs - 1}", least if least < 0 else greatest)
    return reports


def check_where(where: NDArray[np.bool_] | None, *, devices: int) -> NDArray[np.bool_]:
    """Return the mask of the devices to count; an empty one stands for all of them."""
    if where is None:
        return np.empty(0, dtype=np.bool_)
    if not isinstance(where, np.ndarray) or where.dtype != np.bool_ or where.shape != (devices,):
        raise ParameterError("where", f"must be a boolean array of shape {(devices,)}", getattr(where, "shape", where))
    return where
