"""How many pieces of one size a length takes, and how often pieces are merged."""

from __future__ import annotations

import math

from simulator.cells.errors import CellsError

_SLACK = 1e-9
_LARGEST = 1e18
_LARGEST_LEVEL = 62  # more bits than an int64 can lose


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


def check_level(level: int) -> int:
    """Return how often the side of a cell is doubled; raise `CellsError` unless it is 0 or more."""
    if level < 0:
        raise CellsError([f"level must be at least 0, got {level!r}"])
    return min(level, _LARGEST_LEVEL)
