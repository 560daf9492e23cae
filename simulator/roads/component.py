"""The part of a road graph in which every place can be reached from every other."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import networkx as nx

from simulator.files.counted import counted
from simulator.roads.errors import RoadsError

if TYPE_CHECKING:
    from collections.abc import Hashable


@dataclass(frozen=True)
class Loss:
    """What a road graph lost when its largest strongly connected part was kept.

    Parameters
    ----------
    nodes, links
        How many were removed.
    length_m
        Metres of link removed.
    part
        What makes the part that was kept one, in words.
    """

    nodes: int
    links: int
    length_m: float
    part: str = "in which every node can be reached from every other"

    @property
    def km_words(self) -> str:
        """Length of the links removed, in words."""
        return f"{self.length_m / 1000:,.1f} km"

    def beside(self, *, nodes: int, links: int) -> str:
        """Say what is left, and what was left out."""
        return (
            f"kept the {counted(nodes, 'node')} and {counted(links, 'link')} of the largest part {self.part}; "
            f"left out {counted(self.nodes, 'node')} and {counted(self.links, 'link')}, {self.km_words}"
        )


def largest_strong_component(graph: nx.MultiDiGraph[Any]) -> tuple[nx.MultiDiGraph[Any], Loss]:
    """Keep the largest set of nodes between any two of which a path leads both ways.

    Parameters
    ----------
    graph
        A road graph whose edges have ``length_m``. It is left as it is.

    Returns
    -------
    graph : networkx.MultiDiGraph
        A copy without the other nodes and their edges, in the same order. Of two parts with as many nodes,
        the one with the node that comes first.
    loss : Loss
        What was removed.

    Raises
    ------
    RoadsError
        If no two nodes are connected both ways.
    """
    order = {node: position for position, node in enumerate(graph)}
    parts = nx.strongly_connected_components(graph)
    none: set[Hashable] = set()
    kept = max(parts, key=lambda part: (len(part), -min(order[node] for node in part)), default=none)
    if len(kept) < 2:
        fault = (
            f"the road network is empty: of its {counted(graph.number_of_nodes(), 'node')} and "
            f"{counted(graph.number_of_edges(), 'link')}, no path leads both ways between any two nodes"
        )
        raise RoadsError([fault])
    part = graph.copy()
    part.remove_nodes_from([node for node in graph if node not in kept])
    lengths: list[float] = [
        data["length_m"] for start, end, data in graph.edges(data=True) if start not in kept or end not in kept
    ]
    loss = Loss(
        nodes=graph.number_of_nodes() - part.number_of_nodes(),
        links=graph.number_of_edges() - part.number_of_edges(),
        length_m=math.fsum(lengths),
    )
    return part, loss
