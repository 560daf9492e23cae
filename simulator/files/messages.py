"""Parts of messages: counted nouns, lists of rows, and which notes are doubts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class Doubt(str):
    """A note on something that may mislead the reader of a result; any other note only informs.

    Doubts travel in the same lists as notes. A run repeats them in its warnings.
    """

    __slots__ = ()


def doubts_of(notes: Iterable[str]) -> list[str]:
    """Return the doubts among notes, in their order."""
    return [str(note) for note in notes if isinstance(note, Doubt)]


def counted(number: float, noun: str, plural: str | None = None) -> str:
    """Write a number with its noun, and with the verb where the noun brings one along.

    Parameters
    ----------
    number
        How many; a float is written with at most ten digits.
    noun
        Of one.
    plural
        Of any other number; ``noun`` with an s if None.

    Returns
    -------
    str
        As in "1 link", "2,950 links" or, with "link leads" and "links lead", "0 links lead".
    """
    shown = f"{number:,.10g}" if isinstance(number, float) else f"{number:,}"
    return f"{shown} {noun if shown == '1' else plural or noun + 's'}"


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
