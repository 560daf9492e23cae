"""What refined counts sum to."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mechanisms.parameter import ParameterError, check_integer

Total = Literal["estimated", "asked"]


def total_of(count: NDArray[np.float64], total: Total, *, asked: int) -> float:
    """Return the sum that refined counts shall have.

    Parameters
    ----------
    count : (cells,) float64
        The unrefined estimates.
    total : {"estimated", "asked"}
        "estimated": the sum of the estimates, within 0 and `asked`. "asked": every device asked, which is right
        only where every one of them is in some cell.
    asked : int
        Devices asked, at least 0.

    Raises
    ------
    ParameterError
        If `total` is neither, or `asked` no such number.
    """
    asked = check_integer("asked", asked, at_least=0)
    if total == "asked":
        return float(asked)
    if total != "estimated":
        raise ParameterError("total", 'must be "estimated" or "asked"', total)
    return min(max(float(count.sum()), 0.0), float(asked))
