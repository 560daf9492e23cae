"""What a reader of a network format made of its files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    import networkx as nx

    from simulator.roads.component import Loss
    from simulator.roads.read_report import DroppedRows, FilledDefault

SHOWN_ZONES = 20


@dataclass(frozen=True)
class FormatReport:
    """What was read, filled in, dropped, lost and doubted.

    Parameters
    ----------
    links_file
        The file of links, as given.
    node_rows, link_rows
        Nodes and links the files hold.
    remarks
        What else is to be known of how the files were read, a sentence each.
    dropped
        Rows of links dropped, one entry a reason.
    defaults
        Values filled in, among the links that were kept.
    loss
        What the largest part leaves out between whose places routes lead.
    lost_zones
        Zones of which no node is left.
    doubts
        What speaks against the units or the coordinate system, a sentence each.
    nodes, links
        What is left.
    """

    links_file: str
    node_rows: int
    link_rows: int
    remarks: tuple[str, ...]
    dropped: tuple[DroppedRows, ...]
    defaults: tuple[FilledDefault, ...]
    loss: Loss
    lost_zones: tuple[int | str, ...]
    doubts: tuple[str, ...]
    nodes: int
    links: int

    def notes(self) -> list[str]:
        """Say in plain words what is not as the files have it, doubts first.

        Returns
        -------
        list of str
            One sentence each.
        """
        notes = [*self.doubts]
        notes += [f"{self.links_file}: dropped {dropped}" for dropped in self.dropped]
        of_all = f"of {self.link_rows:,} links"
        notes += [
            f"{self.links_file}: {filled.name} taken as {filled.default} in {filled.total:,} {of_all}"
            for filled in self.defaults
        ]
        notes += self.remarks
        if self.loss.nodes:
            notes.append(
                f"kept the {self.nodes:,} nodes and {self.links:,} links of the largest part between whose places "
                f"routes lead; left out {_counted(self.loss.nodes, 'node')} and "
                f"{_counted(self.loss.links, 'link')}, {self.loss.length_m / 1000:,.1f} km"
            )
        if self.lost_zones:
            shown = ", ".join(map(str, self.lost_zones[:SHOWN_ZONES]))
            more = " …" if len(self.lost_zones) > SHOWN_ZONES else ""
            what = f"{_counted(len(self.lost_zones), 'zone')} cannot be reached, or not be left"
            notes.append(f"{what}, and no trip to or from there can be made: {shown}{more}")
        return notes


def lost_zones(whole: nx.MultiDiGraph[Hashable], part: nx.MultiDiGraph[Hashable]) -> tuple[int | str, ...]:
    """Say which zones of a graph have no node left in a part of it.

    Parameters
    ----------
    whole, part
        Road graphs whose nodes may have ``zone``.

    Returns
    -------
    tuple
        Zones in the order of the graph.
    """
    left = set(_zones(part))
    return tuple(dict.fromkeys(zone for zone in _zones(whole) if zone not in left))


def _zones(graph: nx.MultiDiGraph[Hashable]) -> Iterable[int | str]:
    return [data["zone"] for _, data in graph.nodes(data=True) if "zone" in data]


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
