"""Street graphs that OSMnx saved as GraphML."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import networkx as nx
import shapely
from pyproj.exceptions import CRSError

from simulator.files.errors import InputError
from simulator.files.xml_elements import elements_of
from simulator.roads.osm.packages import import_osmnx
from simulator.roads.osm.tags import WAY_TAGS, Street, open_to_cars
from simulator.roads.projection import parsed_crs

if TYPE_CHECKING:
    from pathlib import Path

MOST_FAULTS = 20


def read_graphml(path: Path) -> nx.MultiDiGraph[Any]:
    """Load a graph with OSMnx, and check what OSMnx does not check.

    Parameters
    ----------
    path
        A file ``.graphml``.

    Returns
    -------
    networkx.MultiDiGraph
        Nodes with finite ``x`` and ``y`` in the graph's ``crs``; edges as in the file.

    Raises
    ------
    InputError
        If the file cannot be read, is not a directed graph with a coordinate system, or the coordinates of a node are
        not finite or out of range.
    """
    _check_xml(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # networkx warns of keys without a type; those that matter are checked below
        try:
            graph = import_osmnx().load_graphml(path)
        except InputError:
            raise
        except Exception as error:  # OSMnx converts attributes by name, and each conversion has its own errors
            said = f"{type(error).__name__}: {error}"
            raise InputError([f"{path}: OSMnx cannot read it as its GraphML: {said}"]) from error
    if not isinstance(graph, nx.MultiDiGraph):
        raise InputError([f"{path}: its edges must be directed"])
    try:
        crs = parsed_crs(graph.graph.get("crs"))
    except CRSError:
        said = repr(graph.graph.get("crs"))
        raise InputError([f"{path}: the graph must have a crs that PROJ knows, got {said}"]) from None
    limits = {"x": 180.0, "y": 90.0} if crs.is_geographic else {"x": math.inf, "y": math.inf}
    faults = [
        f"{path}: node {node!r}: {name} must be a finite number, in degrees at most {limit:g}, got {data.get(name)!r}"
        for node, data in graph.nodes(data=True)
        for name, limit in limits.items()
        if not (isinstance(data.get(name), float) and math.isfinite(data[name]) and abs(data[name]) <= limit)
    ]
    if faults:
        raise InputError(faults[:MOST_FAULTS])
    return graph


def _check_xml(path: Path) -> None:
    """Parse the file once before networkx, which expands entities and does not name the line of an error."""
    for number, element in enumerate(elements_of(path)):
        if number == 0 and element.local_name != "graphml":
            rule = f"a GraphML file begins with <graphml>, this one with <{element.name}>"
            raise InputError([f"{path}: line {element.line}: {rule}"])


def lay_streets(graph: nx.MultiDiGraph[Any], *, capacity_vph: float) -> tuple[nx.MultiDiGraph[Any], int, int]:
    """Build the street graph from the tags of a loaded and projected graph's edges.

    Parameters
    ----------
    graph
        A graph as returned by :func:`read_graphml`, projected to metres.
    capacity_vph
        As for :meth:`Street.from_tags`.

    Returns
    -------
    streets : networkx.MultiDiGraph
        The edges that are open to cars; each with ``length_m``, ``streets`` and optionally ``geometry``.
    closed, unusable : int
        Numbers of edges left out because they are not open to cars, and because their length is not above 0.
    """
    streets: nx.MultiDiGraph[Any] = nx.MultiDiGraph(crs=graph.graph["crs"])
    streets.add_nodes_from((node, {"x": data["x"], "y": data["y"]}) for node, data in graph.nodes(data=True))
    closed = unusable = 0
    for start, end, data in graph.edges(data=True):
        tags = {tag: _text(data[tag]) for tag in WAY_TAGS if tag in data}
        if "highway" in tags and not open_to_cars(tags):
            closed += 1
            continue
        line = data.get("geometry")
        if not isinstance(line, shapely.LineString) or line.is_empty:
            line = None
        length_m = data.get("length")
        if not isinstance(length_m, float):
            across = [graph.nodes[end][name] - graph.nodes[start][name] for name in ("x", "y")]
            length_m = math.hypot(*across) if line is None else line.length
        if not 0 < length_m < math.inf:
            unusable += 1
            continue
        street = Street.from_tags(
            tags,
            way=_text(data.get("osmid", "")),
            length_m=length_m,
            along=_text(data.get("reversed", False)) != "True",
            capacity_vph=capacity_vph,
        )
        geometry = {} if line is None else {"geometry": line}
        streets.add_edge(start, end, length_m=length_m, streets=(street,), **geometry)
    streets.remove_nodes_from([node for node, degree in list(streets.degree()) if degree == 0])
    return streets, closed, unusable


def _text(value: Any) -> str:
    """Return the text of a tag; of several values of joined ways, all if they are numbers, else the first."""
    if isinstance(value, list):
        parts = [str(part) for part in value]
        numbers = all(part[:1].isdigit() for part in parts)
        return ";".join(parts) if numbers else parts[0] if parts else ""
    return str(value)
