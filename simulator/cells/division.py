"""How many pieces of one size a length takes."""

from __future__ import annotations

import math

_SLACK = 1e-9
_LARGEST = 1e18


def pieces(length: float, size: float) -> int:
    """Count the pieces that cover a length.

    Parameters
    ----------
    length
        0 or more, in any unit.
    size
        Length of a piece, above 0, in the same unit.

    Returns
    -------
    int
        At least 1. A length that exceeds a whole number of pieces by a rounding error, up to one part in 10⁹,
        takes that number. Beyond 10¹⁸, that.
    """
    ratio = min(length / size, _LARGEST)
    nearest = round(ratio)
    if abs(ratio - nearest) <= _SLACK * max(1, nearest):
        return max(1, nearest)
    return math.ceil(ratio)
