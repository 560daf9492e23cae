"""Roads that lead from a junction back to it, which no route can take in one piece."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

if TYPE_CHECKING:
    from collections.abc import Mapping

    import networkx as nx

MIDDLE = "split at"
"""First part of the key of a node that is none of the file's."""


def split_loops(graph: nx.MultiDiGraph[Any], known: Mapping[tuple[float, float], Any]) -> tuple[int, int]:
    """Cut every loop in two at a point of its geometry, in place; both directions of a road at the same point.

    Parameters
    ----------
    graph
        A road graph; edges with ``length_m`` and perhaps ``geometry``.
    known
        Nodes of the file by place: the new node takes the name of the one it lies on.

    Returns
    -------
    cut, dropped : int
        How many loops were cut, and how many removed because they have no geometry.
    """
    loops = [(node, key, data) for node, end, key, data in graph.edges(keys=True, data=True) if node == end]
    cut = 0
    for node, key, data in loops:
        graph.remove_edge(node, node, key)
        line = data.get("geometry")
        points = np.empty((0, 2)) if line is None else shapely.get_coordinates(line)
        inside = [tuple(point) for point in points[1:-1].tolist()]
        away = [point for point in inside if point not in (tuple(points[0].tolist()), tuple(points[-1].tolist()))]
        if not away:
            continue
        place = min(away)
        at = inside.index(place) + 1
        middle = known.get(place, f"{MIDDLE} {place[0]:.1f}, {place[1]:.1f}")
        if middle not in graph:
            graph.add_node(middle, x=place[0], y=place[1])
        first, second = shapely.LineString(points[: at + 1]), shapely.LineString(points[at:])
        share = first.length / (first.length + second.length)
        graph.add_edge(node, middle, **data | {"geometry": first, "length_m": data["length_m"] * share})
        graph.add_edge(middle, node, **data | {"geometry": second, "length_m": data["length_m"] * (1 - share)})
        cut += 1
    return cut, len(loops) - cut
