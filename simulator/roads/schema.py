"""Schema of a road graph, and the check of a graph against it.

A road network is a :class:`networkx.MultiDiGraph`. A node is a junction, an edge one direction of one road.

========  ==================  ================================================================
of        attribute           meaning
========  ==================  ================================================================
graph     ``crs``             projected, in metres; anything :class:`pyproj.CRS` can be made of
node      ``x``, ``y``        metres east and north, finite
node      ``zone``            optional; the zone of a trip table that the node represents or lies in,
                              a whole number or text
node      ``through``         optional, True if missing; False where no route may pass: trips only
                              begin or end there (a centroid)
edge      ``length_m``        metres driven, above 0; may exceed the length of the geometry
edge      ``speed_mps``       free-flow speed, metres per second, above 0
edge      ``lanes``           lanes in this direction, whole, 1 … 10,000
edge      ``capacity_vph``    vehicles per hour **and lane**, above 0
edge      ``class``           optional; kind of road, text
edge      ``name``            optional; name of the street, text, for maps
edge      ``geometry``        optional; :class:`shapely.LineString` in ``crs``, from the edge's
                              first node to its last
edge      ``link``            set on compilation: the link's id in
                              :class:`~simulator.roads.network.Links`
========  ==================  ================================================================

No edge may lead from a node to itself: it could not be part of a route. Ends of a geometry need not lie on the nodes.

Names of nodes: conversion to one type for all file formats, JSON values included.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyproj
import shapely
from pyproj.exceptions import CRSError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

EDGE_NUMBERS = ("length_m", "speed_mps", "lanes", "capacity_vph")
MOST_LANES = 10_000
_NUMBER_TYPES = (int, float, np.integer, np.floating)


def faults_of(graph: object) -> list[str]:
    """Return all faults of a graph against the schema.

    Parameters
    ----------
    graph
        The object to check; it should be a road graph.

    Returns
    -------
    list of str
        One sentence per fault, naming node or edge, attribute, rule and value; empty for a valid road graph.
    """
    import networkx as nx  # noqa: PLC0415 - slow to import, and generated roads need no graph

    if not isinstance(graph, nx.MultiDiGraph):
        return [f"a road graph must be a networkx.MultiDiGraph, got {type(graph).__name__}"]
    faults = crs_faults(graph.graph.get("crs"))
    if graph.number_of_edges() == 0:
        faults.append("the road graph is empty: it has no edge")
    faults += [fault for node, data in graph.nodes(data=True) for fault in node_faults(node, data)]
    faults += [fault for *edge, data in graph.edges(keys=True, data=True) for fault in edge_faults(tuple(edge), data)]
    return faults


def crs_faults(crs: object) -> list[str]:
    """Return why a coordinate system cannot be used for roads: it must be projected, in metres.

    Parameters
    ----------
    crs
        Anything that :meth:`pyproj.CRS.from_user_input` accepts.

    Returns
    -------
    list of str
        Empty, or one sentence.
    """
    if crs is None:
        return ["crs is missing: roads need a projected coordinate system in metres"]
    try:
        known = pyproj.CRS.from_user_input(crs)
    except (CRSError, RecursionError) as error:  # JSON may nest deeply
        return [f"crs is not a coordinate system pyproj knows: {crs!r} ({error})"]
    axes = known.axis_info[:2]
    if not known.is_projected or any(axis.unit_conversion_factor != 1.0 for axis in axes):
        units = ", ".join(sorted({axis.unit_name for axis in axes})) or "none"
        return [f"crs must be projected, in metres, got {known.name!r} in units: {units}"]
    return []


def node_faults(node: object, data: dict[str, Any]) -> Iterator[str]:
    """Yield the faults of a node: coordinates must be finite, a zone a whole number or text, ``through`` a bool."""
    for name in ("x", "y"):
        if name not in data:
            yield f"node {node!r}: {name} is missing"
        elif not (isinstance(data[name], _NUMBER_TYPES) and np.isfinite(data[name])):
            yield f"node {node!r}: {name} must be a finite number of metres, got {data[name]!r}"
    zone, through = data.get("zone"), data.get("through", True)
    if zone is not None and (isinstance(zone, bool) or not isinstance(zone, int | np.integer | str)):
        yield f"node {node!r}: zone must be a whole number or text, got {zone!r}"
    if not isinstance(through, bool | np.bool_):
        yield f"node {node!r}: through must be True or False, got {through!r}"


def edge_faults(edge: tuple[object, ...], data: dict[str, Any]) -> Iterator[str]:
    """Yield the faults of an edge: numbers must be above 0, lanes whole, and a geometry a line of finite points."""
    if edge[0] == edge[1]:
        yield f"edge {edge!r}: a road from a node to itself cannot be part of a route"
    for name in EDGE_NUMBERS:
        if name not in data:
            yield f"edge {edge!r}: {name} is missing"
            continue
        value = data[name]
        usable = isinstance(value, _NUMBER_TYPES) and not isinstance(value, bool) and 0 < value < np.inf
        if name == "lanes" and not (usable and float(value).is_integer()):
            yield f"edge {edge!r}: lanes must be a whole number, 1 or more, got {value!r}"
        elif name == "lanes" and value > MOST_LANES:
            yield f"edge {edge!r}: lanes must be at most {MOST_LANES:,}, got {value!r}"
        elif not usable:
            yield f"edge {edge!r}: {name} must be a finite number above 0, got {value!r}"
    if (geometry := data.get("geometry")) is None:
        return
    if not isinstance(geometry, shapely.LineString) or geometry.is_empty:
        yield f"edge {edge!r}: geometry must be a LineString with points, got {geometry!r}"
    elif not np.isfinite(shapely.get_coordinates(geometry)).all():
        yield f"edge {edge!r}: geometry must have finite coordinates, got {geometry.wkt}"


_WHOLE = re.compile(r"0|-?[1-9]\d{0,999}")  # Python converts 4,300 digits and no more


def node_keys(ids: Iterable[str]) -> list[Hashable]:
    """Convert identifiers back to whole numbers, if all of them are whole numbers.

    Parameters
    ----------
    ids
        Identifiers as text.

    Returns
    -------
    list
        Integers, or the same text.
    """
    texts = list(ids)
    return [int(text) for text in texts] if all(_WHOLE.fullmatch(text) for text in texts) else [*texts]


def tupled(value: Any) -> Any:
    """Convert lists, as JSON has, recursively to tuples, which can be keys; return other values unchanged."""
    return tuple(tupled(part) for part in value) if isinstance(value, list) else value
