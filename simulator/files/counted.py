"""Sentences for a user: things by their number, in words; and which notes are doubts."""

from collections.abc import Iterable


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
