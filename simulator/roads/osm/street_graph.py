"""Street graph: links between junctions built from OpenStreetMap ways; self-loops are split."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pyproj
import shapely

from simulator.files.errors import InputError
from simulator.roads.osm.packages import import_osmnx
from simulator.roads.osm.tags import Street, directions
from simulator.roads.projection import utm_about
from simulator.roads.schema import crs_faults

if TYPE_CHECKING:
    from collections.abc import Mapping

    import networkx as nx

    from simulator.roads.osm.xml import OsmWays

WGS84 = "EPSG:4326"


def ways_graph(ways: OsmWays, *, capacity_vph: float) -> nx.MultiDiGraph[Any]:
    """Build a graph of ways, with an edge from node to node for each direction in which a way may be driven.

    Parameters
    ----------
    ways
        The ways, after :meth:`~simulator.roads.osm.xml.OsmWays.merge_places`.
    capacity_vph
        As for :meth:`Street.from_tags`.

    Returns
    -------
    networkx.MultiDiGraph
        Nodes with ``x`` and ``y`` (degrees), edges with ``length_m`` (great-circle, as OSMnx computes it) and
        ``streets``, one :class:`Street`.
    """
    segments = [list(ways.segments(way)) for way in ways.ways]
    ends = np.array(list(chain.from_iterable(segments)), dtype=np.int64).reshape(-1, 2)
    places = np.array([ways.nodes[node] for node in ends.ravel().tolist()]).reshape(-1, 4)
    lon, lat, to_lon, to_lat = places.T
    lengths = iter(import_osmnx().distance.great_circle(lat, lon, to_lat, to_lon).tolist())
    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph(crs=WGS84)
    graph.add_nodes_from(
        (node, {"x": ways.nodes[node][0], "y": ways.nodes[node][1]}) for node in dict.fromkeys(ends.ravel().tolist())
    )
    for way, pairs in zip(ways.ways, segments, strict=True):
        driven = {
            along: Street.from_tags(way.tags, way=str(way.way), length_m=0.0, along=along, capacity_vph=capacity_vph)
            for along, leads in zip((True, False), directions(way.tags), strict=True)
            if leads
        }
        for (start, end), length_m in zip(pairs, lengths, strict=False):  # the next way continues the same iterator
            for along, street in driven.items():
                here, there = (start, end) if along else (end, start)
                graph.add_edge(here, there, length_m=length_m, streets=(street._replace(length_m=length_m),))
    return graph


def project(graph: nx.MultiDiGraph[Any], crs: object, *, what: str) -> None:
    """Convert a graph's nodes and geometries to a projected system, in place.

    Parameters
    ----------
    graph
        A graph with nodes; its attribute ``crs`` is the system of their coordinates.
    crs
        A projected system in metres; None for the graph's own system if that is projected in metres, else for the UTM
        zone of the graph's middle.
    what
        Source of the graph, with which an error message begins.

    Raises
    ------
    InputError
        If nodes cannot be projected to the system, or UTM has no zone there.
    """
    own = pyproj.CRS.from_user_input(graph.graph["crs"])
    x, y = (np.array([data[name] for _, data in graph.nodes(data=True)], dtype=np.float64) for name in ("x", "y"))
    if crs is None and not crs_faults(own):
        graph.graph["crs"] = own
        return
    to_wgs84 = pyproj.Transformer.from_crs(own, WGS84, always_xy=True)
    target = utm_about(*to_wgs84.transform(x, y), what=what) if crs is None else pyproj.CRS.from_user_input(crs)
    transformer = pyproj.Transformer.from_crs(own, target, always_xy=True)
    x, y = transformer.transform(x, y)
    far = ~(np.isfinite(x) & np.isfinite(y))
    if far.any():
        node = list(graph)[int(np.flatnonzero(far)[0])]
        raise InputError([f"{what}: node {node!r} is out of reach of {target.name}"])
    for data, east, north in zip((data for _, data in graph.nodes(data=True)), x.tolist(), y.tolist(), strict=True):
        data["x"], data["y"] = east, north
    for *_, data in graph.edges(data=True):
        if data.get("geometry") is not None:
            points = transformer.transform(*shapely.get_coordinates(data["geometry"]).T)
            data["geometry"] = shapely.LineString(np.column_stack(points))
    graph.graph["crs"] = target


def simplified(graph: nx.MultiDiGraph[Any]) -> nx.MultiDiGraph[Any]:
    """Join the edges between junctions with OSMnx.

    Parameters
    ----------
    graph
        A graph as returned by :func:`ways_graph`.

    Returns
    -------
    networkx.MultiDiGraph
        A copy in which every node with two neighbours, at which no street begins, ends or changes between one-way and
        two-way, has become a point of the joined edge's ``geometry``; ``streets`` are concatenated in order.
    """
    joined: nx.MultiDiGraph[Any] = import_osmnx().simplify_graph(
        graph,
        remove_rings=False,
        edge_attr_aggs={"length_m": sum, "streets": lambda parts: tuple(chain.from_iterable(parts))},
    )
    joined.graph.pop("simplified", None)
    return joined


MIDDLE = "split at"
"""First part of the key of a node that is not in the file."""


def split_loops(graph: nx.MultiDiGraph[Any], known: Mapping[tuple[float, float], Any]) -> tuple[int, int]:
    """Cut every loop in two at a point of its geometry, in place; both directions of a road at the same point.

    Parameters
    ----------
    graph
        A road graph; edges with ``length_m`` and optionally ``geometry``.
    known
        Nodes of the file by position: the new node takes the key of the node at its position.

    Returns
    -------
    cut, dropped : int
        Number of loops that were cut, and of those removed because their geometry has no point other than its ends.
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
