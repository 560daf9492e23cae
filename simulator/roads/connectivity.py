"""Connectivity: the part of a road graph in which every trip can be made."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import networkx as nx

from simulator.files.messages import counted
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


if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    Neighbours = Callable[[Hashable], Iterable[Hashable]]

_FOR_TRIPS = "between whose places routes lead"


def largest_part_for_trips(graph: nx.MultiDiGraph[Any]) -> tuple[nx.MultiDiGraph[Any], Loss]:
    """Keep the largest part of a road graph between whose places routes lead, past no node that none may pass.

    A route passes only nodes whose ``through`` is not False. The core of the part is the largest strongly connected
    set of those. Each other node stays that a route leads to from the core and another from there to the core, and
    with it whatever lies on these two: a slip road that serves one centroid is part of routes to it, though nothing
    comes back along it.

    Parameters
    ----------
    graph
        A road graph whose edges have ``length_m``. It is left as it is.

    Returns
    -------
    graph : networkx.MultiDiGraph
        A copy without the other nodes and their edges, in the same order. Of two cores with as many nodes, the one
        with the node that comes first.
    loss : Loss
        What was removed.

    Raises
    ------
    RoadsError
        If no route leads both ways between any two nodes.
    """
    closed = {node for node, data in graph.nodes(data=True) if not data.get("through", True)}
    if not closed:
        part, loss = largest_strong_component(graph)
        return part, replace(loss, part=_FOR_TRIPS)
    order = {node: position for position, node in enumerate(graph)}
    passable = graph.subgraph([node for node in graph if node not in closed])
    none: set[Hashable] = set()
    core = max(
        nx.strongly_connected_components(passable),
        key=lambda part: (len(part), -min(order[node] for node in part)),
        default=none,
    )
    after, before = _spread(core, passable.successors), _spread(core, passable.predecessors)
    served = {
        node
        for node in closed
        if not after.isdisjoint(graph.predecessors(node)) and not before.isdisjoint(graph.successors(node))
    }
    approaches = after & _spread(served, lambda node: _outside(graph.predecessors(node), closed))
    departures = before & _spread(served, lambda node: _outside(graph.successors(node), closed))
    kept = core | served | approaches | departures
    if len(core | served) < 2:
        fault = (
            f"the road network is empty: of its {counted(graph.number_of_nodes(), 'node')} and "
            f"{counted(graph.number_of_edges(), 'link')}, "
            f"no route leads both ways between any two nodes without passing one of {len(closed)} that none may pass"
        )
        raise RoadsError([fault])
    part = graph.copy()
    part.remove_nodes_from([node for node in graph if node not in kept])
    lengths = [data["length_m"] for start, end, data in graph.edges(data=True) if start not in kept or end not in kept]
    nodes = graph.number_of_nodes() - part.number_of_nodes()
    return part, Loss(nodes, graph.number_of_edges() - part.number_of_edges(), math.fsum(lengths), _FOR_TRIPS)


def lost_zones(whole: nx.MultiDiGraph[Any], part: nx.MultiDiGraph[Any]) -> tuple[int | str, ...]:
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


def _zones(graph: nx.MultiDiGraph[Any]) -> list[int | str]:
    return [data["zone"] for _, data in graph.nodes(data=True) if "zone" in data]


def _spread(start: set[Hashable], neighbours: Neighbours) -> set[Hashable]:
    """Go on from nodes to their neighbours until there is nothing new; the start is part of it."""
    found, waiting = set(start), list(start)
    while waiting:
        for node in neighbours(waiting.pop()):
            if node not in found:
                found.add(node)
                waiting.append(node)
    return found


def _outside(nodes: Iterable[Hashable], closed: set[Hashable]) -> list[Hashable]:
    return [node for node in nodes if node not in closed]
