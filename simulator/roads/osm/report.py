"""Read report of an OpenStreetMap file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simulator.files.messages import Doubt, counted

if TYPE_CHECKING:
    from simulator.roads.connectivity import Loss


@dataclass(frozen=True)
class OsmReport:
    """What was left out, changed and filled in.

    Parameters
    ----------
    file
        The file's name.
    left_out
        What was left out or mended before the network was joined, one sentence each.
    loss
        What lies outside the largest strongly connected part, in pieces from node to node.
    points
        Nodes that have become points of a link's geometry.
    loops
        Roads from a junction to itself that were cut in two.
    filled
        Which defaults stand for what tags do not say, one sentence an attribute.
    nodes, links
        What was kept.
    doubts
        What speaks against the speeds, a sentence each.
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
        """Say in plain words what is not as the file has it.

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
