"""Connectivity: the part of a road graph in which every trip has a route."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from simulator.files.errors import InputError
from simulator.files.messages import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    import networkx as nx

    Neighbours = Callable[[Hashable], Iterable[Hashable]]

_FOR_TRIPS = "whose origins and destinations are connected by routes"


@dataclass(frozen=True)
class Loss:
    """The nodes and links removed from a road graph when its largest connected part was kept.

    Parameters
    ----------
    nodes, links
        Numbers of nodes and links removed.
    length_m
        Total length of the links removed, metres.
    part
        The property that defines the part that was kept, in words.
    """

    nodes: int
    links: int
    length_m: float
    part: str = "in which every node can be reached from every other"

    @property
    def km_words(self) -> str:
        """Length of the links removed, as text."""
        return f"{self.length_m / 1000:,.1f} km"

    def beside(self, *, nodes: int, links: int) -> str:
        """Return a sentence that states what was kept and what was left out."""
        return (
            f"kept the {counted(nodes, 'node')} and {counted(links, 'link')} of the largest part {self.part}; "
            f"left out {counted(self.nodes, 'node')} and {counted(self.links, 'link')}, {self.km_words}"
        )


def largest_strong_component(graph: nx.MultiDiGraph[Any]) -> tuple[nx.MultiDiGraph[Any], Loss]:
    """Keep the largest set of nodes where any two nodes are connected by paths in both directions.

    Parameters
    ----------
    graph
        A road graph whose edges have ``length_m``. It is not changed.

    Returns
    -------
    graph : networkx.MultiDiGraph
        A copy without the other nodes and their edges, in the same order. Of two parts with equally many nodes,
        the one that contains the first node in the order of the graph.
    loss : Loss
        What was removed.

    Raises
    ------
    InputError
        If no two nodes are connected in both directions.
    """
    kept = _largest_core(graph)
    if len(kept) < 2:
        raise _empty(graph, "no two nodes are connected in both directions")
    return _part(graph, kept, Loss.part)


def _largest_core(graph: nx.MultiDiGraph[Any]) -> set[Hashable]:
    """Return the largest strongly connected set; of equally large ones, that with the graph's first node."""
    import networkx as nx  # noqa: PLC0415 - slow to import, and generated roads need no graph

    order = {node: position for position, node in enumerate(graph)}
    none: set[Hashable] = set()
    parts = nx.strongly_connected_components(graph)
    return max(parts, key=lambda part: (len(part), -min(order[node] for node in part)), default=none)


def _part(graph: nx.MultiDiGraph[Any], kept: set[Hashable], words: str) -> tuple[nx.MultiDiGraph[Any], Loss]:
    """Return a copy of a graph with the nodes in `kept`, and what it lacks."""
    part = graph.copy()
    part.remove_nodes_from([node for node in graph if node not in kept])
    lengths = [data["length_m"] for start, end, data in graph.edges(data=True) if start not in kept or end not in kept]
    nodes = graph.number_of_nodes() - part.number_of_nodes()
    return part, Loss(nodes, graph.number_of_edges() - part.number_of_edges(), math.fsum(lengths), words)


def _empty(graph: nx.MultiDiGraph[Any], reason: str) -> InputError:
    size = f"{counted(graph.number_of_nodes(), 'node')} and {counted(graph.number_of_edges(), 'link')}"
    return InputError([f"the road network is empty: of its {size}, {reason}"])


def largest_part_for_trips(graph: nx.MultiDiGraph[Any]) -> tuple[nx.MultiDiGraph[Any], Loss]:
    """Keep the largest part of a road graph whose nodes are connected by routes that pass no closed node.

    A node is closed if its ``through`` is False. The core of the part is the largest strongly connected set of all
    other nodes. A closed node is kept if one route leads to it from the core and another leads
    from it to the core; the nodes on these two routes are kept with it. For example, a slip road that serves one
    centroid is kept because it is part of routes to it, even if no route leads back along it.

    Parameters
    ----------
    graph
        A road graph whose edges have ``length_m``. It is not changed.

    Returns
    -------
    graph : networkx.MultiDiGraph
        A copy without the other nodes and their edges, in the same order. Of two cores with equally many nodes, the
        one that contains the first node in the order of the graph.
    loss : Loss
        What was removed.

    Raises
    ------
    InputError
        If no two nodes are connected by routes in both directions.
    """
    closed = {node for node, data in graph.nodes(data=True) if not data.get("through", True)}
    if not closed:
        part, loss = largest_strong_component(graph)
        return part, replace(loss, part=_FOR_TRIPS)
    passable = graph.subgraph([node for node in graph if node not in closed])
    core = _largest_core(passable)
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
        closed_nodes = f"the {len(closed)} nodes that no route may pass"
        raise _empty(graph, f"no two nodes are connected in both directions without passing one of {closed_nodes}")
    return _part(graph, kept, _FOR_TRIPS)


def lost_zones(whole: nx.MultiDiGraph[Any], part: nx.MultiDiGraph[Any]) -> tuple[int | str, ...]:
    """Return the zones of a graph that have no node left in a part of it.

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
    """Return all nodes that can be reached over neighbours from the start nodes, these included."""
    found, waiting = set(start), list(start)
    while waiting:
        for node in neighbours(waiting.pop()):
            if node not in found:
                found.add(node)
                waiting.append(node)
    return found


def _outside(nodes: Iterable[Hashable], closed: set[Hashable]) -> list[Hashable]:
    return [node for node in nodes if node not in closed]
