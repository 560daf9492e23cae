"""Rows by their numbers, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

SHOWN_ROWS = 20


def rows_in_words(chosen: NDArray[np.bool_]) -> str:
    """Name rows by number, the first 20 of many.

    Parameters
    ----------
    chosen
        Which rows, shape (rows,); at least one.

    Returns
    -------
    str
        As in "rows 1, 2, 3 … (31 in all)".
    """
    numbers = (np.flatnonzero(chosen) + 1).tolist()
    return numbers_in_words(numbers[:SHOWN_ROWS], total=len(numbers))


def numbers_in_words(shown: Sequence[int], *, total: int) -> str:
    """Name rows whose first numbers are known.

    Parameters
    ----------
    shown
        The first row numbers, ascending.
    total
        How many rows there are.

    Returns
    -------
    str
        As in "row 4", "rows 1, 2" or "rows 1, 2, 3 … (31 in all)".
    """
    if total == 1:
        return f"row {shown[0]}"
    more = f" … ({total:,} in all)" if total > len(shown) else ""
    return f"rows {', '.join(map(str, shown))}{more}"
