"""Roads whose nodes belong to zones, are closed to through traffic, or came from SUMO."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np

from simulator.roads import RoadNetwork

EDGE = {"length_m": 100.0, "speed_mps": 10.0, "lanes": 1, "capacity_vph": 1800.0}


def roads_of(
    edges: Sequence[tuple[Any, ...]], *, zones: Mapping[Any, Any] | None = None, closed: Sequence[Any] = ()
) -> RoadNetwork:
    """Edges (from, to) or (from, to, attributes); nodes in the order they are named."""
    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph(crs="EPSG:32618")
    for node in dict.fromkeys(itertools.chain.from_iterable(edge[:2] for edge in edges)):
        graph.add_node(node, x=500_000.0 + 10.0 * graph.number_of_nodes(), y=4_500_000.0)
        if zones is not None and node in zones:
            graph.nodes[node]["zone"] = zones[node]
        if node in closed:
            graph.nodes[node]["through"] = False
    for edge in edges:
        graph.add_edge(*edge[:2], **{**EDGE, **(edge[2] if len(edge) > 2 else {})})
    return RoadNetwork.from_graph(graph)


def ring(nodes: int, **zoned: Any) -> RoadNetwork:
    """A two-way ring of nodes 1 … nodes."""
    around = [(i, i % nodes + 1) for i in range(1, nodes + 1)]
    return roads_of([*around, *((b, a) for a, b in around)], **zoned)


def random_roads(seed: int, *, nodes: int, degree: int) -> RoadNetwork:
    """A random directed graph, not always connected, some of its nodes closed."""
    rng = np.random.default_rng(seed)
    edges = [
        (a, b, {"length_m": float(rng.integers(10, 1000))})
        for a in range(nodes)
        for b in rng.choice(nodes, size=degree, replace=False).tolist()
        if a != b
    ]
    return roads_of(edges, closed=rng.choice(nodes, size=nodes // 3, replace=False).tolist())
