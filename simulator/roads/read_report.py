"""What a reader made of the files it was given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simulator.files.row_words import numbers_in_words

if TYPE_CHECKING:
    from simulator.roads.component import Loss


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
        How many rows.
    """

    reason: str
    rows: tuple[int, ...]
    total: int

    def __str__(self) -> str:
        """Say which rows, and why."""
        return f"{numbers_in_words(self.rows, total=self.total)}: {self.reason}"


@dataclass(frozen=True)
class FilledDefault:
    """Rows in which a value was missing or unusable and a default stands for it.

    Parameters
    ----------
    name
        Our name of the value.
    default
        What was taken instead, in words.
    total
        How many rows.
    """

    name: str
    default: str
    total: int


@dataclass(frozen=True)
class ReadReport:
    """What was read, dropped, filled in and lost.

    Parameters
    ----------
    nodes_file, edges_file
        The files, as given.
    node_rows, edge_rows
        Rows they hold.
    dropped
        Edge rows dropped, one entry a reason.
    defaults
        Values filled in, among the edge rows that were kept.
    loss
        What the largest strongly connected part leaves out.
    nodes, links
        What is left.
    doubts
        What speaks against units or coordinates.
    """

    nodes_file: str
    edges_file: str
    node_rows: int
    edge_rows: int
    dropped: tuple[DroppedRows, ...]
    defaults: tuple[FilledDefault, ...]
    loss: Loss
    nodes: int
    links: int
    doubts: tuple[str, ...] = ()

    def notes(self) -> list[str]:
        """Say in plain words what is not as the files have it, doubts first.

        Returns
        -------
        list of str
            Empty if every row was used as it stands.
        """
        notes = [*self.doubts]
        notes += [f"{self.edges_file}: dropped {dropped}" for dropped in self.dropped]
        notes += [
            f"{self.edges_file}: {filled.name} taken as {filled.default} in {filled.total:,} of {self.edge_rows:,} rows"
            for filled in self.defaults
        ]
        if self.loss.nodes:
            notes.append(
                f"kept the {self.nodes:,} nodes and {self.links:,} links of the largest part in which every "
                f"node can be reached from every other; left out {_counted(self.loss.nodes, 'node')} and "
                f"{_counted(self.loss.links, 'link')}, {self.loss.length_m / 1000:,.1f} km"
            )
        return notes


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
