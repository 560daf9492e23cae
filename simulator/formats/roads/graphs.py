"""Graphs of networkx, directed or not, as the directed multigraphs that roads are."""

from __future__ import annotations

from typing import Any

import networkx as nx
import shapely

from simulator.files.errors import InputError
from simulator.formats.roads.osm_tags import directions
from simulator.roads.raw_network import known_attributes
from simulator.roads.schema import node_faults


def directed(graph: object) -> nx.MultiDiGraph[Any]:
    """Return a graph as a directed multigraph, without attributes that are missing: None, NaN and pandas.NA.

    An edge of an undirected graph becomes a road in both directions, unless its attribute ``oneway`` states one. Its
    direction is then from the node that its attribute ``from`` names to the node of ``to``, as OSMnx stores them.

    Raises
    ------
    InputError
        If it is no graph of networkx, has no coordinate system or no edges, a node has no coordinates, or the direction
        of a one-way edge of an undirected graph is unknown.
    """
    if not isinstance(graph, nx.Graph):
        raise InputError([f"a road graph must be a graph of networkx, got {type(graph).__name__}"])
    faults = [] if graph.graph.get("crs") else ["crs of the graph is missing, as in graph.graph['crs'] = 'EPSG:4326'"]
    faults += [] if graph.number_of_edges() else ["the road graph is empty: it has no edge"]
    faults += [fault for node, data in graph.nodes(data=True) for fault in node_faults(node, data)]
    if faults:
        raise InputError(faults[:20])
    roads: nx.MultiDiGraph[Any] = nx.MultiDiGraph(**graph.graph)
    roads.add_nodes_from((node, known_attributes(data)) for node, data in graph.nodes(data=True))
    both_ways: nx.MultiDiGraph[Any] = nx.MultiDiGraph(graph)  # of undirected edges
    for start, end, key, given in both_ways.edges(keys=True, data=True):
        data = known_attributes(given)
        leads = directions({"oneway": str(data.get("oneway", ""))})
        data |= {"oneway": not all(leads)} if "oneway" in data else {}
        if not graph.is_directed():
            ends = data.pop("from", None), data.pop("to", None)
            if not all(leads) and {*ends} != {start, end}:
                rule = "an undirected graph does not say from which node it leads: give a DiGraph or MultiDiGraph"
                raise InputError([f"edge {(start, end)!r}: oneway = {given['oneway']!r}, but {rule}"])
            against = ends == (end, start)
            if not leads[against]:
                continue
            line, begin = data.get("geometry"), shapely.Point(roads.nodes[start]["x"], roads.nodes[start]["y"])
            if isinstance(line, shapely.LineString):
                first, last = (shapely.distance(begin, shapely.get_point(line, at)) for at in (0, -1))
                data["geometry"] = shapely.reverse(line) if first > last else line
            data["reversed"] = against
        roads.add_edge(start, end, key)
        roads.edges[start, end, key].update(data)
    return roads
