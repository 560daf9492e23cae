"""Layers: conversion of a road network to tables of nodes and links with typed columns, and back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import geopandas as gpd
import numpy as np
import pandas as pd
import shapely

from simulator.files.errors import InputError
from simulator.roads.movements import (
    MOVEMENT_COLUMNS,
    RIGHTS_OF_WAY,
    SIGNAL_COLUMNS,
    TURNS,
    UNKNOWN,
    are_places,
    movement_table,
    signal_table,
)
from simulator.roads.projection import known_crs
from simulator.roads.raw_network import RawNetwork, column_of
from simulator.roads.schema import EDGE_NUMBERS, crs_faults, edge_faults, node_faults, tupled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simulator.roads.network import RoadNetwork

IN_JSON = "_json"
"""Suffix of a column of JSON, for an attribute whose values are not all numbers, all text or all booleans."""


def to_columns(rows: Sequence[Mapping[str, Any]], *, reserved: frozenset[str], what: str) -> dict[str, pd.Series[Any]]:
    """Make a column of every attribute that any row has.

    Parameters
    ----------
    rows
        Attributes of each node or link; None, NaN or a missing one becomes a missing value.
    reserved
        Names of the table's own columns; attributes must have other names.
    what
        "node" or "link", for messages.

    Returns
    -------
    dict
        Columns by name, each of ``len(rows)`` values: whole numbers, numbers, booleans, text, or JSON under a name that
        ends in ``_json``.

    Raises
    ------
    InputError
        If an attribute has the name of a column of the table, names differ only in case, or a value cannot be written
        as JSON.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    lower = [str(name).lower() for name in names]
    taken = "the table has a column of that name, or another attribute differs from it in case only"
    faults = []
    for name, small in zip(names, lower, strict=True):
        if not isinstance(name, str) or not name:
            faults.append(f"{what}s: attribute {name!r} cannot be written: its name is not text")
        elif small in reserved or lower.count(small) > 1 or small.endswith(IN_JSON):
            faults.append(f"{what}s: attribute {name!r} cannot be written: {taken}")
    if faults:
        raise InputError(faults)
    columns = {}
    for name in names:
        values = [row.get(name) for row in rows]
        if all(value is None for value in values):
            continue
        if (dtype := _dtype(values)) is None:
            columns[f"{name}{IN_JSON}"] = pd.Series([in_json(value, name, what) for value in values], dtype="string")
        else:
            columns[name] = pd.Series([plain(value) for value in values], dtype=dtype)
    return columns


def from_rows(rows: Sequence[dict[str, Any]], *, file: str) -> list[dict[str, Any]]:
    """Convert rows back to attributes: None values are left out, and JSON is parsed.

    Parameters
    ----------
    rows
        Column to value, one dict per row.
    file
        The file's name for messages.

    Returns
    -------
    list of dict
        Attributes of each row; lists of JSON as tuples, so that they can be keys.

    Raises
    ------
    InputError
        If a column whose name ends in ``_json`` has a value that is not JSON; it names file and row.
    """
    read: list[dict[str, Any]] = []
    for number, row in enumerate(rows, start=1):
        data = {}
        for name, value in row.items():
            if value is None:
                continue
            if not name.endswith(IN_JSON):
                data[name] = value
                continue
            try:
                data[name.removesuffix(IN_JSON)] = tupled(json.loads(value))
            except (TypeError, ValueError, RecursionError):
                raise InputError([f"{file}: row {number}: {name} must be JSON, got {str(value)[:60]!r}"]) from None
        read.append(data)
    return read


def plain(value: object) -> object:
    """Convert numpy's scalars to Python's; return other values unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def _dtype(values: Sequence[object]) -> str | None:
    """Return the type of a column; None if the values can only be written as JSON."""
    present: list[Any] = [plain(value) for value in values if value is not None]
    kinds = {type(value) for value in present}
    if kinds == {bool}:
        return "boolean"
    if kinds == {int} and all(abs(value) < 2**63 for value in present):
        return "Int64"
    if kinds == {float} or (
        kinds == {int, float} and all(abs(value) <= 2**53 for value in present if type(value) is int)
    ):
        return "float64"
    if kinds == {str} and all(_writable(value) for value in present):
        return "string"
    return None


def _writable(text: str) -> bool:
    """Return whether text can be written to a file: a lone surrogate or a zero byte cannot."""
    try:
        return b"\0" not in text.encode("utf-8")
    except UnicodeEncodeError:
        return False


def _plainly(value: object) -> object:
    """Convert numpy's scalars within lists for JSON; raise TypeError for any other value."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not JSON")


def in_json(value: object, name: str, what: str) -> str | None:
    """Write a value as JSON; None stays None.

    Raises
    ------
    InputError
        If the value cannot be written as JSON.
    """
    if value is None:
        return None
    try:
        return json.dumps(plain(value), default=_plainly)
    except (TypeError, ValueError) as error:
        raise InputError([f"{what}s: attribute {name!r} cannot be written as JSON, got {value!r}"]) from error


NODE_COLUMNS = frozenset({"node", "x", "y", "geometry", "geom", "fid", "ogc_fid"})
LINK_COLUMNS = frozenset({"link", "from", "to", "key", "straight", "geometry", "geom", "fid", "ogc_fid"})
NODES, LINKS, MOVEMENTS, SIGNALS = "nodes", "links", "movements", "signals"
_WANTED = (("node", "x", "y"), ("from", "to", *EDGE_NUMBERS))


def layers_of(network: RoadNetwork) -> dict[str, gpd.GeoDataFrame]:
    """Convert a network to tables with geometries.

    Parameters
    ----------
    network
        Any network.

    Returns
    -------
    dict
        ``nodes`` has ``node`` (its key in the graph), ``x``, ``y`` and its other attributes, in the order of node
        index. ``links`` has ``link`` (its id), ``from``, ``to``, ``key`` (of parallel links), ``straight`` (True if the
        link has no geometry of its own and is drawn from node to node) and its attributes, in the order of link id. An
        attribute whose values are not all numbers, all text or all booleans is written as JSON, in a column whose name
        ends in ``_json``.

    Raises
    ------
    InputError
        If an attribute cannot be stored as a column.
    """
    names = [{"node": name} for name in network.node_names]
    node_data = [
        {key: value for key, value in data.items() if key not in ("x", "y")} for data in network.nodes.values()
    ]
    nodes = to_columns(names, reserved=frozenset(), what="node")
    nodes |= {axis: pd.Series(network.node_xy[:, column]) for column, axis in enumerate(("x", "y"))}
    nodes |= to_columns(node_data, reserved=NODE_COLUMNS, what="node")
    edges = sorted(network.edges, key=lambda edge: edge[3]["link"])
    ends = [{"from": start, "to": end, "key": key} for start, end, key, _ in edges]
    data = [{name: value for name, value in row.items() if name not in ("link", "geometry")} for *_, row in edges]
    shapes = [row.get("geometry") for *_, row in edges]
    links: dict[str, Any] = {"link": pd.Series(range(len(edges)), dtype="int64")}
    links |= to_columns(ends, reserved=frozenset(), what="link")
    links["straight"] = pd.Series([shape is None for shape in shapes], dtype="bool")
    links |= to_columns(data, reserved=LINK_COLUMNS, what="link")
    place = {name: (data["x"], data["y"]) for name, data in network.nodes.items()}
    lines = [
        shapely.LineString([place[start], place[end]])
        if shape is None
        else shapely.LineString(shapely.get_coordinates(shape))
        for (start, end, _, _), shape in zip(edges, shapes, strict=True)
    ]
    points = [shapely.Point(xy) for xy in network.node_xy]
    return {
        NODES: gpd.GeoDataFrame(pd.DataFrame(nodes), geometry=points, crs=network.crs),
        LINKS: gpd.GeoDataFrame(pd.DataFrame(links), geometry=lines, crs=network.crs),
    }


def junction_layers(network: RoadNetwork) -> dict[str, pd.DataFrame]:
    """Convert movements and signals to tables without geometries, ``movements`` and ``signals``; none of an empty one.

    Links are the links of `layers_of`; the node of a movement is the node at which its first link ends. Places to which
    a movement yields are written as JSON.
    """
    tables: dict[str, list[Any]] = {
        MOVEMENTS: network.movements.drop(columns="node").to_dict("records"),
        SIGNALS: network.signals.to_dict("records"),
    }
    return {
        name: pd.DataFrame(to_columns(rows, reserved=frozenset(), what=name[:-1]))
        for name, rows in tables.items()
        if rows
    }


def junctions_of(
    layers: Mapping[str, Sequence[dict[str, Any]]], links: pd.DataFrame, *, file: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Convert layers of movements and signals back to tables.

    Parameters
    ----------
    layers
        The rows of each layer that there is, by name.
    links
        The links of the network, as in :class:`~simulator.roads.raw_network.RawNetwork`, in the order of their ids.
    file
        The file's name for messages.

    Returns
    -------
    tuple of pandas.DataFrame
        Movements and signals, as in :class:`~simulator.roads.raw_network.RawNetwork`.

    Raises
    ------
    InputError
        If a column is missing, or a value cannot be used; it names file, layer, row and rule.
    """
    faults, read = [], {}
    for name, kinds in ((MOVEMENTS, MOVEMENT_COLUMNS), (SIGNALS, SIGNAL_COLUMNS)):
        where = f"{file}: layer {name}"
        read[name] = from_rows(layers.get(name, ()), file=where)
        for number, row in enumerate(read[name], start=1):
            values = (UNKNOWN if name == MOVEMENTS else {}) | row
            for column, kind in kinds.items():
                rule = _rule_broken(column, kind, values.get(column), len(links))
                faults += [f"{where}: row {number}: {column} must be {rule}, got {row.get(column)!r}"] if rule else []
    if faults:
        raise InputError(faults[:20])
    labels, ends = links.index.tolist(), links["to"].tolist()
    rows = [
        row | {"node": ends[row["from_link"]], **{end: labels[row[end]] for end in ("from_link", "to_link")}}
        for row in read[MOVEMENTS]
    ]
    return movement_table(rows), signal_table(read[SIGNALS])


_CHOICES = {"turn": TURNS, "right_of_way": RIGHTS_OF_WAY}
_NUMBERS = {"bool": (bool,), "int64": (int,), "float64": (int, float)}


def _rule_broken(column: str, kind: str, value: Any, links: int) -> str | None:
    """Return the rule for a value of a movement or signal that it breaks; None if it breaks none."""
    if column in ("from_link", "to_link"):
        return None if type(value) is int and 0 <= value < links else f"a link of layer {LINKS}"
    if column in _CHOICES:
        return None if value in (None, *_CHOICES[column]) else f"one of {', '.join(_CHOICES[column])}"
    if column == "yields_to":
        return None if are_places(value) else "a list of whole numbers of at least 0"
    if kind == "object":
        return None if column == "node" or value is None or isinstance(value, str | int) else "text or a whole number"
    words = {"bool": "true or false", "int64": "a whole number", "float64": "a number"}
    return None if type(value) in _NUMBERS[kind] else words[kind]


class Layer(NamedTuple):
    """Rows of one layer as they were read.

    ``rows`` has a dict of column to value for each row, None where there is no value. ``shapes`` has the geometries,
    ``crs`` their coordinate system, None if the file does not state it.
    """

    rows: Sequence[dict[str, Any]]
    shapes: Sequence[Any]
    crs: object


def network_of(nodes: Layer, links: Layer, *, files: tuple[str, str], name: str, crs: object = None) -> RawNetwork:
    """Convert layers back to a network.

    Parameters
    ----------
    nodes, links
        The two layers.
    files
        Names of the two for messages.
    name
        Name of the network in notes.
    crs
        The coordinate system of the network; the layers' coordinate system if None.

    Returns
    -------
    RawNetwork
        The network that was written; nothing is left out.

    Raises
    ------
    InputError
        If a column is missing, a node or a link occurs twice, an end is not a node, or the coordinate systems of the
        layers differ; or if a row violates the schema. It names file, row and rule.
    """
    common = _common_crs(nodes.crs, links.crs, files=files)
    for layer, wanted, file in zip((nodes, links), _WANTED, files, strict=True):
        if not layer.rows:
            raise InputError([f"{file}: it holds no rows"])
        names = layer.rows[0]
        absent = [name for name in wanted if name not in names and f"{name}_json" not in names]
        if absent:
            raise InputError([f"{file}: no column {name!r}; its columns are {', '.join(names)}" for name in absent])
    faults = [f"{files[0]}: {fault}" for fault in crs_faults(crs or common)]
    rows: dict[object, int] = {}
    node_data = from_rows(nodes.rows, file=files[0])
    for number, data in enumerate(node_data, start=1):
        node, where = data.get("node"), f"{files[0]}: row {number}"
        if node is None or not _is_key(node) or node in rows:
            faults.append(f"{where}: node must be a name that no other row has, got {node!r}")
        else:
            rows[node] = number - 1
        faults += [f"{where}: {fault}" for fault in node_faults(node, data)]
    link_data = from_rows(links.rows, file=files[1])
    edges: set[tuple[object, ...]] = set()
    for number, (data, line) in enumerate(zip(link_data, links.shapes, strict=True), start=1):
        where = f"{files[1]}: row {number}"
        unknown = [end for end in (data.get("from"), data.get("to")) if not _is_key(end) or end not in rows]
        if unknown:
            faults.append(f"{where}: from and to must be in {files[0]}, got {unknown[0]!r}")
            continue
        edge = (data["from"], data["to"], data.get("key"))
        if not _is_key(edge) or edge in edges:
            rule = "key must be one that no other link from and to the same nodes has"
            faults.append(f"{where}: {rule}, got {edge[-1]!r}")
            continue
        edges |= {edge} if edge[-1] is not None else set()
        if line is not None and not data.pop("straight", False):
            data["geometry"] = line
        faults += [f"{where}: {fault}" for fault in edge_faults(edge, data)]
    if faults:
        raise InputError(faults[:20])
    ends = {end: [rows[data.pop(end)] for data in link_data] for end in ("from", "to")}
    named = {
        "key": [data.pop("key", None) for data in link_data],
        "shape": [data.pop("geometry", None) for data in link_data],
    }
    numbers = {
        column: [float(data.pop(attribute)) for data in link_data]
        for column, attribute in zip(("length", "speed", "lanes", "capacity"), EDGE_NUMBERS, strict=True)
    }
    own = [{key: value for key, value in data.items() if key not in ("link", "straight")} for data in link_data]
    xy = {axis: [float(data.pop(axis)) for data in node_data] for axis in ("x", "y")}
    keys = column_of([data.pop("node") for data in node_data])
    columns = {column: column_of(values) for column, values in {**named, "attributes": own}.items()}
    table = pd.DataFrame({**ends, **numbers, **columns})
    return RawNetwork(
        nodes=pd.DataFrame({"node": keys, **xy, "attributes": column_of(node_data)}),
        links=table.set_axis(range(1, len(table) + 1)),
        crs=crs or common,
        file=name,
        keep="whole",
    )


def _common_crs(nodes: object, links: object, *, files: tuple[str, str]) -> object:
    """Return the common coordinate system of both layers.

    Raises
    ------
    InputError
        If the systems differ: nodes and shapes would not match.
    """
    if nodes is None or links is None:
        return links if nodes is None else nodes
    if known_crs(nodes, files[0]) != known_crs(links, files[1]):
        names = [known_crs(crs, file).name for crs, file in zip((nodes, links), files, strict=True)]
        raise InputError([f"{files[1]}: crs must be that of {files[0]}, {names[0]!r}, got {names[1]!r}"])
    return nodes


def _is_key(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
