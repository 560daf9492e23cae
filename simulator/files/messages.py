"""Notes on a run, and parts of messages: counted nouns and lists of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class Note(NamedTuple):
    """Something noticed while a run was built or made.

    Parameters
    ----------
    code
        What it is, for whoever decides by it; the package that notices it chooses the code.
    text
        One sentence for readers, made where it was noticed.
    level
        ``warning`` for what may mislead the reader of a result; ``note`` for what is for information only.
    where
        Path of the scenario's section or key that it is about; empty where only the caller knows it.
    """

    code: str
    text: str
    level: Literal["note", "warning"] = "note"
    where: str = ""

    def __str__(self) -> str:
        return self.text

    def at(self, where: str, *, before: str = "") -> Note:
        """Return the note with its place, and words before its text."""
        return self._replace(where=where, text=f"{before}{self.text}")


def warning(code: str, text: str, where: str = "") -> Note:
    """Return a note that is a warning."""
    return Note(code, text, "warning", where)


def notes_of(code: str, texts: Iterable[str], where: str = "") -> list[Note]:
    """Return texts as notes of one code, for information only."""
    return [Note(code, text, where=where) for text in texts]


def warnings_among(notes: Iterable[Note]) -> list[Note]:
    """Return the notes that are warnings, in their order."""
    return [note for note in notes if note.level == "warning"]


def texts_of(notes: Iterable[Note]) -> list[str]:
    """Return the texts of notes, in their order."""
    return [note.text for note in notes]


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


def counted_by(values: Mapping[str, int]) -> str:
    """Return the number of each value as text, sorted by value, as in "1 bicycle, 2,950 car"."""
    return ", ".join(f"{number:,} {value}" for value, number in sorted(values.items()))


SHOWN_VALUES = 40
"""The most values of a tag or a column that a note lists."""


def values_in_words(numbers: Mapping[Any, int]) -> str:
    """Return values with their numbers, the most frequent 40 of them."""
    listed = sorted(numbers.items(), key=lambda item: (-item[1], item[0]))
    more = f" and {counted(len(listed) - SHOWN_VALUES, 'other value')}" if len(listed) > SHOWN_VALUES else ""
    return ", ".join(f"{value} ({number:,})" for value, number in listed[:SHOWN_VALUES]) + more


QUESTION = ("lower_mps", "upper_mps", "min_vehicles")
"""Parameters of a campaign of speeds that are not part of its release."""


def release_parameters(release: Mapping[str, object]) -> str:
    """Return the numbers that a release is specified with, without its `kind`, as in ``k = 6, sampling = 0.4``."""
    return ", ".join(
        f"{key} = {value:g}"
        for key, value in release.items()
        if isinstance(value, int | float) and key not in QUESTION and (key, value) != ("sample", 1.0)
    )


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
