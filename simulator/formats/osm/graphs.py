"""Graphs of networkx: directed or not, as the directed multigraphs that roads are; and graphs of OSMnx, as streets."""

from __future__ import annotations

import math
from collections import Counter
from numbers import Real
from typing import Any

import networkx as nx
import shapely

from simulator.files.errors import InputError
from simulator.files.messages import counted
from simulator.formats.osm.roads import joined_streets
from simulator.formats.osm.streets import Street
from simulator.formats.osm.ways import OsmWays
from simulator.formats.osm_tags import WAY_TAGS, directions, noted, noted_in_words, open_to_cars
from simulator.roads.projection import known_crs, project
from simulator.roads.raw_network import RawNetwork, known_attributes
from simulator.roads.schema import node_faults

_FILE = "graph of OSMnx"
_CAPACITY_VPH = 1800.0
"""Vehicles per hour and lane of links whose class has no default."""


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


def read_streets(graph: nx.MultiDiGraph[Any]) -> RawNetwork:
    """Read a graph of OSMnx: the tags of its edges are read as tags of OpenStreetMap's ways.

    Parameters
    ----------
    graph
        A graph as returned by :func:`directed`; it is projected to metres in place, to the UTM zone of its middle if
        its system is not one in metres.

    Returns
    -------
    RawNetwork
        In metres; with movements by lanes for turns and roundabouts, and without turn restrictions and surroundings.

    Raises
    ------
    InputError
        If the coordinate system is not known, or no edge is a street open to cars.
    """
    known_crs(graph.graph["crs"], f"{_FILE}: crs")
    left_out = project(graph, None, what=_FILE)
    streets: nx.MultiDiGraph[Any] = nx.MultiDiGraph(crs=graph.graph["crs"])
    streets.add_nodes_from((node, {"x": data["x"], "y": data["y"]}) for node, data in graph.nodes(data=True))
    closed = unusable = 0
    found: Counter[tuple[str, str]] = Counter()
    for start, end, data in graph.edges(data=True):
        tags = {tag: text for tag in WAY_TAGS if (text := _tag_text(data.get(tag, "")))}
        along = _tag_text(data.get("reversed", False)) != "True"
        found.update(noted(tags) if "highway" in tags else ())
        # OSMnx makes an edge for each direction that `oneway` leaves open; other keys may close one of them.
        leads = directions(tags | {"oneway": "no"})[0 if along else 1]
        if "highway" in tags and not (open_to_cars(tags) and leads):
            closed += 1
            continue
        line = data.get("geometry")
        if not isinstance(line, shapely.LineString) or line.is_empty:
            line = None
        across = [graph.nodes[end][name] - graph.nodes[start][name] for name in ("x", "y")]
        drawn_m = math.hypot(*across) if line is None else line.length
        length_m = float(given) if isinstance(given := data.get("length"), Real) else drawn_m
        if not 0 < length_m < math.inf:
            unusable += 1
            continue
        street = Street.from_tags(
            tags, way=_tag_text(data.get("osmid", "")), length_m=length_m, along=along, capacity_vph=_CAPACITY_VPH
        )
        geometry = {} if line is None else {"geometry": line}
        streets.add_edge(start, end, length_m=length_m, streets=(street,), **geometry)
    streets.remove_nodes_from([node for node, degree in list(streets.degree()) if degree == 0])
    if closed:
        left_out.append(f"left out {counted(closed, 'edge that is', 'edges that are')} not open to cars")
    left_out += noted_in_words(found, ("edge", "edges"))
    if unusable:
        left_out.append(f"left out {counted(unusable, 'edge')} whose length is not above 0")
    if streets.number_of_edges() == 0:
        raise InputError([f"{_FILE}: the road network is empty: {'; '.join(left_out)}"])
    streets.graph["simplified"] = bool(graph.graph.get("simplified"))
    return joined_streets(streets, left_out, ways=OsmWays({}, [], 0), file=_FILE)


def _tag_text(value: Any) -> str:
    """Return the text of a tag; of several values of joined ways, all if they are numbers, else the first."""
    if isinstance(value, list):
        parts = [str(part) for part in value]
        numbers = all(part[:1].isdigit() for part in parts)
        return ";".join(parts) if numbers else parts[0] if parts else ""
    return str(value)
