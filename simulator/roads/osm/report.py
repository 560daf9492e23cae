"""Read report of an OpenStreetMap file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simulator.files.messages import Doubt, counted

if TYPE_CHECKING:
    from simulator.roads.connectivity import Loss


@dataclass(frozen=True)
class OsmReport:
    """Report on reading an OpenStreetMap file: data left out, changed and filled in.

    Parameters
    ----------
    file
        The file's name.
    left_out
        Data left out or corrected before edges were joined to links, one sentence each.
    loss
        Nodes and edges outside the largest strongly connected part, counted before edges were joined to links.
    points
        Number of nodes that have become points of a link's geometry.
    loops
        Number of roads from a junction to itself that were cut in two.
    filled
        The defaults used where tags state no value, one sentence per attribute.
    nodes, links
        Numbers of nodes and links that were kept.
    doubts
        Indications that speeds are wrong, one sentence each.
    """

    file: str
    left_out: tuple[str, ...]
    loss: Loss
    points: int
    loops: int
    filled: tuple[str, ...]
    nodes: int
    links: int
    doubts: tuple[Doubt, ...] = ()

    def notes(self) -> list[str]:
        """Return the differences between file and network in plain words.

        Returns
        -------
        list of str
            One sentence each.
        """
        notes: list[str] = [*self.doubts]
        notes += [f"{self.file}: {said}" for said in self.left_out]
        if self.loss.nodes:
            kept = f"kept the largest part {self.loss.part}"
            notes.append(f"{self.file}: {kept}; left out {self.loss.km_words} of streets")
        if self.points:
            points = counted(self.points, "node between them is a point", "nodes between them are points")
            notes.append(f"{self.file}: links lead from junction to junction; {points} of their geometry")
        if self.loops:
            notes.append(f"{self.file}: cut {counted(self.loops, 'link')} from a junction to itself in two")
        return notes + [f"{self.file}: {said}" for said in self.filled]
