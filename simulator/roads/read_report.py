"""Read reports: the rows that a road reader used, replaced and left out, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from simulator.files.errors import InputError
from simulator.files.messages import SHOWN_ROWS, Note, counted, notes_of, numbers_in_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from simulator.roads.connectivity import Loss

SHOWN_ZONES = 20


@dataclass(frozen=True)
class DroppedRows:
    """Rows that could not be used, all for one reason.

    Parameters
    ----------
    reason
        Why, in words.
    rows
        The first 20 row numbers, from 1, header not counted.
    total
        The number of all such rows.
    """

    reason: str
    rows: tuple[int, ...]
    total: int

    def __str__(self) -> str:
        """Return a text with the rows and the reason."""
        return f"{numbers_in_words(self.rows, total=self.total)}: {self.reason}"


@dataclass(frozen=True)
class FilledDefault:
    """Rows in which a value was missing or unusable and was replaced by a default.

    Parameters
    ----------
    name
        The value's name in the schema.
    default
        The value used instead, in words.
    total
        The number of such rows.
    """

    name: str
    default: str
    total: int


@dataclass(frozen=True, kw_only=True)
class ReadReport:
    """Report on reading a road network: rows read, dropped and filled in, losses and warnings.

    Parameters
    ----------
    links_file
        The file of links, as given.
    node_rows, link_rows
        Numbers of nodes and links in the files.
    row
        The word for one entry of the links file: "row" or "link".
    dropped
        Rows of links dropped, one entry per reason.
    defaults
        Values filled in, among the links that were kept.
    remarks
        Further remarks on how the files were read, one sentence each.
    loss
        Nodes and links outside the largest part.
    lost_zones
        Zones that have no node left.
    nodes, links
        Numbers of nodes and links that were kept.
    warnings
        Indications that units or the coordinate system are wrong.
    """

    links_file: str
    node_rows: int
    link_rows: int
    row: str = "link"
    dropped: Sequence[DroppedRows] = ()
    defaults: Sequence[FilledDefault] = ()
    remarks: Sequence[str] = ()
    loss: Loss
    lost_zones: Sequence[int | str] = ()
    nodes: int
    links: int
    warnings: Sequence[Note] = ()

    def notes(self) -> list[Note]:
        """Return the differences between files and network, warnings first.

        Returns
        -------
        list of Note
            Of code "dropped", "filled" or "remark" if not a warning; empty if every row was used unchanged.
        """
        of_all = f"of {counted(self.link_rows, self.row)}"
        taken = (f"{one.name} taken as {one.default} in {one.total:,} {of_all}" for one in self.defaults)
        return [
            *self.warnings,
            *notes_of("dropped", (f"{self.links_file}: dropped {dropped}" for dropped in self.dropped)),
            *notes_of("filled", (f"{self.links_file}: {words}" for words in taken)),
            *notes_of("remark", self.remarks),
        ]


def usable_rows(
    reasons: Mapping[str, NDArray[np.bool_]], *, file: str | Path, what: str, number: NDArray[np.integer] | None = None
) -> tuple[NDArray[np.bool_], tuple[DroppedRows, ...]]:
    """Separate usable rows from all others; a row is dropped for the first reason that applies.

    Parameters
    ----------
    reasons
        For each reason in words, the rows to which it applies, bool, shape (rows,); at least one reason.
    file
        The file, for the message.
    what
        The word for a row, "edge" or "link".
    number
        Number of each row in the file; from 1 if None.

    Returns
    -------
    usable : ndarray
        bool, shape (rows,).
    dropped : tuple of DroppedRows
        One entry per reason that applies.

    Raises
    ------
    InputError
        If no row can be used; it states the reasons.
    """
    usable = np.ones(len(next(iter(reasons.values()))), dtype=np.bool_)
    dropped = []
    for reason, wrong in reasons.items():
        at = np.flatnonzero(wrong & usable)
        numbers = (at + 1 if number is None else number[at]).tolist()
        if numbers:
            dropped.append(DroppedRows(reason, tuple(numbers[:SHOWN_ROWS]), len(numbers)))
        usable &= ~wrong
    if not usable.any():
        listed = "; ".join(map(str, dropped))
        raise InputError([f"{file}: the road network is empty: no {what} can be used ({listed})"])
    return usable, tuple(dropped)
