"""Parts of messages: counted nouns, lists of rows, and notes that are warnings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class WarningNote(str):
    """A note on something that may mislead the reader of a result; any other note is for information only.

    Warnings are kept in the same lists as notes. A run repeats them in its warnings.
    """

    __slots__ = ()


def warnings_in(notes: Iterable[str]) -> list[str]:
    """Return the warnings among notes, in their order."""
    return [str(note) for note in notes if isinstance(note, WarningNote)]


def counted(number: float, noun: str, plural: str | None = None) -> str:
    """Write a number with its noun, or with a noun and verb.

    Parameters
    ----------
    number
        The number; a float is written with at most ten digits.
    noun
        Noun for the number 1.
    plural
        Noun for any other number; ``noun`` with an s if None.

    Returns
    -------
    str
        As in "1 link", "2,950 links" or, with "link leads" and "links lead", "0 links lead".
    """
    shown = f"{number:,.10g}" if isinstance(number, float) else f"{number:,}"
    return f"{shown} {noun if shown == '1' else plural or noun + 's'}"


SHOWN_ROWS = 20


def numbers_in_words(shown: Sequence[int], *, total: int, unit: str = "row") -> str:
    """Return a list of row numbers as text, from the first numbers and the number of rows.

    Parameters
    ----------
    shown
        The first row numbers, ascending.
    total
        Number of rows in the list.
    unit
        What is numbered: "row" or "line".

    Returns
    -------
    str
        As in "row 4", "rows 1, 2" or "rows 1, 2, 3 … (31 in all)".
    """
    if total == 1:
        return f"{unit} {shown[0]}"
    more = f" … ({total:,} in all)" if total > len(shown) else ""
    return f"{unit}s {', '.join(map(str, shown))}{more}"
