"""Reader of roads from a table of nodes and a table of edges."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from simulator.files.errors import InputError, both
from simulator.files.tables import RECOGNIZED, Table, TextFormat, column_names, find_columns
from simulator.formats.column_names import LINK_NAMES, NODE_NAMES
from simulator.formats.link_columns import find_link_columns, found_in_words, link_values, link_warnings
from simulator.formats.planes import are_no_degrees
from simulator.roads.projection import WGS84, coordinates
from simulator.roads.raw_network import Defaults, RawNetwork, column_of
from simulator.roads.read_report import DroppedRows, usable_rows
from simulator.roads.schema import node_keys

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


SUFFIXES = (".csv", ".csv.gz", ".parquet")


def read_tables(
    *,
    nodes: str | Path,
    edges: str | Path,
    columns: Mapping[str, str] = MappingProxyType({}),
    crs: object = None,
    default_speed_mps: float = 13.9,
    default_lanes: int = 1,
    capacity_vph: float = 1800.0,
    text: TextFormat = RECOGNIZED,
) -> RawNetwork:
    """Read a node table and an edge table.

    Rows of edges that cannot be used are dropped and reported by number. A row is dropped if an end is not a known
    node, if the edge leads from a node to itself, if a mapped length is not a number above 0 (blank included), if
    lengths are not mapped and both ends have the same position, or if a speed is negative. The largest strongly
    connected part is kept.

    Parameters
    ----------
    nodes, edges
        Files in CSV (``.csv``, ``.csv.gz``) or Parquet (``.parquet``).
    columns
        The project's column names to the files' names. In the node file: ``node`` with ``lon`` and ``lat`` (degrees,
        WGS84) or ``x`` and ``y`` (metres). In the edge file: ``from``, ``to`` and, optionally, ``length_m``,
        ``length_km``, ``length_ft`` or ``length_mi`` (straight distance if there is none), ``speed_mps``, ``speed_mph``
        and ``speed_kph`` (of these, the first with a number above 0 is used in each row), ``lanes``,
        ``capacity_vph`` (per lane), ``capacity_total_vph`` (of the whole edge), ``class``. Columns that
        are left out are found by their usual names (:mod:`~simulator.formats.link_columns`), unless ``node``,
        coordinates, ``from`` and ``to`` are all named: then no others are read. Coordinates ``x`` and ``y`` that are
        found and are degrees are longitude and latitude.
    crs
        The projected system, in metres, of ``x`` and ``y``; required with them. With degrees, the system to which they
        are projected; the UTM zone of the network's middle if None, or if a metre of the system is not one on the
        ground (`simulator.roads.projection.true_plane`).
    default_speed_mps, default_lanes, capacity_vph
        Defaults for rows without a usable value; capacity in vehicles per hour and lane.
    text
        Separator and decimal sign of CSV files.

    Returns
    -------
    RawNetwork
        Node keys are whole numbers if all identifiers are, else text.

    Raises
    ------
    InputError
        If a file cannot be read, coordinates or identifiers of nodes are faulty, or no edge can be used; it lists all
        faults found.
    """
    node_columns, edge_columns = _columns(nodes, edges, columns, text)
    node_table, edge_table = both(
        lambda: _read(nodes, node_columns, ids=["node"], text=text),
        lambda: _read(edges, edge_columns, ids=["from", "to"], text=text),
    )
    names = node_table.unique_identifiers("node")
    axes = ("lon", "lat") if node_table.has("lon") else ("x", "y")
    degrees = axes[0] == "lon"
    if not degrees and "x" not in columns:
        degrees = not are_no_degrees(np.column_stack([node_table.numbers(axis) for axis in axes]))
        if not degrees and crs is None:
            rule = 'x and y are not degrees, and need a coordinate reference system, as crs = "EPSG:32618"'
            raise InputError([f"{nodes}: {rule}"], key="roads.crs")
    x, y = coordinates(node_table, axes)
    node_table.check()
    links, dropped, remarks = _links(edge_table, {name: row for row, name in enumerate(names)}, capacity_vph, columns)
    by_class = edge_table.has("class") and "class" not in columns
    return RawNetwork(
        nodes=pd.DataFrame({"node": column_of(node_keys(names)), "x": x, "y": y}),
        links=links,
        crs=WGS84 if degrees else crs,
        file=edge_table.file,
        node_table=node_table,
        axes=axes,
        project_to=crs,
        defaults=Defaults(default_speed_mps, default_lanes, capacity_vph, by_class=by_class),
        link_rows=len(edge_table),
        row="row",
        dropped=dropped,
        remarks=[*found_in_words(node_table, columns), *remarks],
        warnings=link_warnings(edge_table, links),
    )


def _columns(
    nodes: str | Path, edges: str | Path, given: Mapping[str, str], text: TextFormat
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the columns of both files: those given, and those found by their usual names."""
    node_columns, edge_columns = (
        {name: given[name] for name in names if name in given} for names in (NODE_NAMES, LINK_NAMES)
    )
    if {"node", "from", "to"} <= given.keys() and not {"lat", "y"}.isdisjoint(given):
        return node_columns, edge_columns
    placed = not {"lon", "lat", "x", "y"}.isdisjoint(given)
    known = {name: names for name, names in NODE_NAMES.items() if name == "node" or not placed}
    found = find_columns(column_names(Path(nodes), format_=text), known, given=node_columns)
    axes = ("lon", "lat") if {"lon", "lat"} <= found.keys() or {"x", "y"}.isdisjoint(found) else ("x", "y")
    node_columns = {name: found.get(name, name) for name in ("node", *axes)}
    found = find_link_columns(column_names(Path(edges), format_=text), edge_columns)
    return node_columns, {"from": "from", "to": "to"} | found


def _links(
    table: Table, node_rows: Mapping[str, int], lane_vph: float, columns: Mapping[str, str]
) -> tuple[pd.DataFrame, tuple[DroppedRows, ...], list[str]]:
    """Read the rows of an edge table that can be used, and return all others by reason."""
    start, end = (
        np.array([node_rows.get(node, -1) for node in table.identifiers(name)], dtype=np.int64)
        for name in ("from", "to")
    )
    links, reasons, remarks = link_values(table, lane_vph=lane_vph, columns=columns)
    ends = {
        "from or to is not in the node file": (start < 0) | (end < 0),
        "it leads from a node to itself": start == end,
    }
    usable, dropped = usable_rows(ends | reasons, file=table.file, what="edge")
    return links.assign(**{"from": start, "to": end})[usable], dropped, remarks


def _read(file: str | Path, columns: Mapping[str, str], *, ids: Sequence[str], text: TextFormat) -> Table:
    if not str(file).lower().endswith(SUFFIXES):
        raise InputError([f"{file}: the name must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"])
    return Table.from_file(file, columns=columns, identifiers=ids, format_=text)
