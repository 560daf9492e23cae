"""Reader of roads from a table of nodes and a table of edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from simulator.files.errors import InputError, both
from simulator.files.tables import RECOGNIZED, Table, TextFormat
from simulator.roads.projection import WGS84, coordinates
from simulator.roads.raw_network import Defaults, RawNetwork, column_of
from simulator.roads.read_report import DroppedRows, usable_rows
from simulator.roads.schema import node_keys

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


MPS_PER_UNIT = {"speed_mps": 1.0, "speed_mph": 1609.344 / 3600, "speed_kph": 1000 / 3600}


SUFFIXES = (".csv", ".csv.gz", ".parquet")
NODE_COLUMNS = ("node", "lon", "lat", "x", "y")
EDGE_COLUMNS = (
    "from",
    "to",
    "length_m",
    "speed_mps",
    "speed_mph",
    "speed_kph",
    "lanes",
    "capacity_vph",
    "class",
)


def read_tables(
    *,
    nodes: str | Path,
    edges: str | Path,
    columns: Mapping[str, str],
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
        The project's column names to those of the files. In the node file: ``node`` with ``lon`` and ``lat`` (degrees,
        WGS84) or ``x`` and ``y`` (metres). In the edge file: ``from``, ``to`` and, optionally, ``length_m``
        (straight distance if not mapped), ``speed_mps``, ``speed_mph`` and ``speed_kph`` (of these, the first with a
        number above 0 is used in each row), ``lanes``, ``capacity_vph`` (per lane), ``class``.
    crs
        The projected system, in metres, of ``x`` and ``y``; required with them. With ``lon`` and ``lat``, the
        system to which they are projected; the UTM zone of the network's middle if None, or if a metre of the system
        is not one on the ground (`simulator.roads.projection.true_plane`).
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
    node_table, edge_table = both(
        lambda: _read(nodes, columns, NODE_COLUMNS, ids=["node"], text=text),
        lambda: _read(edges, columns, EDGE_COLUMNS, ids=["from", "to"], text=text),
    )
    names = node_table.unique_identifiers("node")
    axes = ("lon", "lat") if "lon" in columns else ("x", "y")
    x, y = coordinates(node_table, axes)
    node_table.check()
    links, dropped = _links(edge_table, {name: row for row, name in enumerate(names)})
    return RawNetwork(
        nodes=pd.DataFrame({"node": column_of(node_keys(names)), "x": x, "y": y}),
        links=links,
        crs=WGS84 if "lon" in columns else crs,
        file=edge_table.file,
        node_table=node_table,
        axes=axes,
        project_to=crs,
        defaults=Defaults(default_speed_mps, default_lanes, capacity_vph),
        link_rows=len(edge_table),
        row="row",
        dropped=dropped,
    )


def _links(table: Table, node_rows: Mapping[str, int]) -> tuple[pd.DataFrame, tuple[DroppedRows, ...]]:
    """Read the rows of an edge table that can be used, and return all others by reason."""
    start, end = (
        np.array([node_rows.get(node, -1) for node in table.identifiers(name)], dtype=np.int64)
        for name in ("from", "to")
    )
    links = pd.DataFrame({"from": start, "to": end}, index=table.number)
    length_m = table.numbers("length_m")
    speeds = {name: table.numbers(name) for name in MPS_PER_UNIT if table.has(name)}
    reasons = {
        "from or to is not in the node file": (start < 0) | (end < 0),
        "it leads from a node to itself": start == end,
        "length_m is not a number above 0": table.has("length_m") & ~((length_m > 0) & np.isfinite(length_m)),
        "its speed is negative": np.any([speed < 0 for speed in speeds.values()] or [start < -1], axis=0),
    }
    usable, dropped = usable_rows(reasons, file=table.file, what="edge")
    if table.has("length_m"):
        links["length"] = length_m
    if speeds:
        links["speed"] = np.nan
    for name, values in reversed(speeds.items()):
        known = (values > 0) & np.isfinite(values)
        links.loc[known, "speed"] = values[known] * MPS_PER_UNIT[name]
    lanes, capacity = table.numbers("lanes"), table.numbers("capacity_vph")
    if table.has("lanes"):
        links["lanes"] = np.where((lanes == np.floor(lanes)) & np.isfinite(lanes), lanes, np.nan)
    if table.has("capacity_vph"):
        links["capacity"] = np.where(np.isfinite(capacity), capacity, np.nan)
    links["class"] = column_of(table.texts("class"), table.number)
    return links[usable], dropped


def _read(
    file: str | Path, columns: Mapping[str, str], known: Sequence[str], *, ids: Sequence[str], text: TextFormat
) -> Table:
    if not str(file).lower().endswith(SUFFIXES):
        raise InputError([f"{file}: the name must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"])
    mapped = {name: columns[name] for name in known if name in columns}
    return Table.from_file(file, columns=mapped, identifiers=ids, format_=text)
