"""Reader of roads from a table of nodes and a table of edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pandas as pd

from simulator.files.errors import InputError, both, positive_faults
from simulator.files.tables import RECOGNIZED, Table, TextFormat
from simulator.roads.connectivity import largest_strong_component
from simulator.roads.plausibility import check_axes, length_warnings, speed_warnings
from simulator.roads.projection import WGS84, Projection, distances
from simulator.roads.read_report import (
    DroppedRows,
    FilledDefault,
    LinkValues,
    ReadReport,
    network_and_report,
    usable_rows,
)
from simulator.roads.schema import crs_faults, node_ids, node_keys

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from simulator.roads.network import RoadNetwork

MPS_PER_UNIT = {"speed_mps": 1.0, "speed_mph": 1609.344 / 3600, "speed_kph": 1000 / 3600}


def edge_values(
    table: Table,
    *,
    from_row: NDArray[np.int64],
    to_row: NDArray[np.int64],
    node_xy: NDArray[np.float64],
    defaults: Mapping[str, float],
) -> tuple[LinkValues, NDArray[np.bool_], tuple[DroppedRows, ...]]:
    """Select the usable rows of an edge table and convert their values.

    Parameters
    ----------
    table
        A table with ``from``, ``to`` and any of the other edge columns.
    from_row, to_row
        The node row of each end, -1 where the node is not known, shape (rows,).
    node_xy
        Positions of the nodes, in metres, shape (nodes, 2).
    defaults
        ``speed_mps``, ``lanes`` and ``capacity_vph`` of rows without a usable value.

    Returns
    -------
    values : LinkValues
        ``length_m``, ``speed_mps``, ``lanes`` and ``capacity_vph`` of at least one edge.
    usable : ndarray
        The rows of these edges, bool, shape (rows,).
    dropped : tuple of DroppedRows
        All other rows, by reason.

    Raises
    ------
    InputError
        If no row can be used; it states the reasons.
    """
    # The straight distance is meaningless where an end is not known; such a row is dropped.
    given = table.has("length_m")
    length_m = table.numbers("length_m") if given else distances(node_xy[from_row], node_xy[to_row])
    speeds = {name: table.numbers(name) for name in MPS_PER_UNIT if table.has(name)}
    negative = np.zeros(len(table), dtype=np.bool_)
    for speed in speeds.values():
        negative |= speed < 0
    at_one_place = "its two ends are at the same place and no length is given"
    no_length = "length_m is not a number above 0" if given else at_one_place
    reasons = {
        "from or to is not in the node file": (from_row < 0) | (to_row < 0),
        "it leads from a node to itself": from_row == to_row,
        no_length: ~((length_m > 0) & np.isfinite(length_m)),
        "its speed is negative": negative,
    }
    usable, dropped = usable_rows(reasons, file=table.file, what="edge")

    speed_mps = np.full(len(table), np.nan)
    for name, values in reversed(speeds.items()):
        known = (values > 0) & np.isfinite(values)
        speed_mps[known] = values[known] * MPS_PER_UNIT[name]
    lanes = table.numbers("lanes")
    columns = {"length_m": length_m[usable]}
    filled = []
    for name, values, mapped, unit in (
        ("speed_mps", speed_mps, bool(speeds), " m/s"),
        ("lanes", np.where(lanes == np.floor(lanes), lanes, np.nan), table.has("lanes"), ""),
        ("capacity_vph", table.numbers("capacity_vph"), table.has("capacity_vph"), " vehicles/h/lane"),
    ):
        kept = values[usable]
        missing = ~((kept > 0) & np.isfinite(kept))
        columns[name] = np.where(missing, float(defaults[name]), kept)
        if mapped and missing.any():
            filled.append(FilledDefault(name, f"{defaults[name]:g}{unit}", int(missing.sum())))
    warnings = speed_warnings(speed_mps[usable], length_m[usable], file=table.file)
    return LinkValues(columns, tuple(filled), (), tuple(warnings)), usable, dropped


def unique_ids(table: Table, name: str) -> list[str]:
    """Read a column of identifiers, and note rows without one, or with that of another row.

    Parameters
    ----------
    table
        The table.
    name
        Our name of the column.

    Returns
    -------
    list of str
        As :func:`~simulator.roads.schema.node_ids` returns them, and "" for a missing one.
    """
    ids = [identifier or "" for identifier in node_ids(table.values(name))]
    column = pd.Series(ids, dtype="object")
    missing = (column == "").to_numpy(dtype=np.bool_)
    table.refuse(name, missing, "an identifier")
    table.refuse(name, column.duplicated(keep=False).to_numpy() & ~missing, "an identifier no other row has")
    return ids


def _places(table: Table, crs: object) -> tuple[NDArray[np.float64], Projection]:
    """Check the places of a node table, and choose their plane.

    Parameters
    ----------
    table
        A table with ``lon`` and ``lat``, or ``x`` and ``y``.
    crs
        System of ``x`` and ``y``, or the one to which ``lon`` and ``lat`` are projected; None for their UTM zone.

    Returns
    -------
    xy : ndarray
        As in the table, float64, shape (nodes, 2).
    projection : Projection
        To the plane of the roads.

    Raises
    ------
    InputError
        If a coordinate is not finite or out of range; with the faults that were noted before.
    """
    named = ("lon", "lat") if table.has("lon") else ("x", "y")
    xy = np.column_stack([table.numbers(name) for name in named])
    for name, values in zip(named, xy.T, strict=True):
        finite = np.isfinite(values)
        table.refuse(name, ~finite, "a finite number")
        limit = {"lon": 180.0, "lat": 90.0}.get(name, np.inf)
        table.refuse(name, finite & (np.abs(values) > limit), f"degrees from {-limit:g} to {limit:g}")
    table.check()
    source = WGS84 if named == ("lon", "lat") else crs
    return xy, Projection.choose(xy, crs=source, project_to=crs, nodes=table)


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
) -> tuple[RoadNetwork, ReadReport]:
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
    network : RoadNetwork
        Node keys are whole numbers if all identifiers are, else text.
    report : ReadReport
        What was dropped, filled in and lost.

    Raises
    ------
    InputError
        If the mapping or a default is faulty, a file cannot be read, coordinates or identifiers of nodes are faulty,
        or nothing is left of the network; it lists all faults found.
    """
    faults = [
        f"columns: unknown name {name!r}; known are {', '.join(NODE_COLUMNS + EDGE_COLUMNS)}"
        for name in columns
        if name not in NODE_COLUMNS + EDGE_COLUMNS
    ]
    faults += [f"columns: {name} is missing" for name in ("node", "from", "to") if name not in columns]
    named = {name for name in ("lon", "lat", "x", "y") if name in columns}
    if named not in ({"lon", "lat"}, {"x", "y"}):
        faults.append(f"columns: must map either lon and lat, or x and y, got {', '.join(sorted(named)) or 'none'}")
    if crs is not None or "x" in named:
        faults += crs_faults(crs)
    faults += positive_faults(default_speed_mps=default_speed_mps, capacity_vph=capacity_vph)
    if not (default_lanes >= 1 and float(default_lanes).is_integer()):
        faults.append(f"default_lanes must be a whole number, 1 or more, got {default_lanes!r}")
    if faults:
        raise InputError(faults)
    node_table, edge_table = both(
        lambda: _read(nodes, columns, NODE_COLUMNS, ids=["node"], text=text),
        lambda: _read(edges, columns, EDGE_COLUMNS, ids=["from", "to"], text=text),
    )
    names = unique_ids(node_table, "node")
    places, projection = _places(node_table, crs)
    node_xy = projection.metres(places)
    ids = {name: row for row, name in enumerate(names)}
    from_row, to_row = (_rows_of(edge_table, name, ids) for name in ("from", "to"))
    values, usable, dropped = edge_values(
        edge_table,
        from_row=from_row,
        to_row=to_row,
        node_xy=node_xy,
        defaults={"speed_mps": default_speed_mps, "lanes": default_lanes, "capacity_vph": capacity_vph},
    )
    from_row, to_row = from_row[usable], to_row[usable]
    warnings = projection.warnings(places, file=node_table.file)
    if edge_table.has("length_m"):
        length_m = values.columns["length_m"]
        if node_table.has("lon"):
            check_axes(node_table, places, from_row, to_row, length_m, rule="lon must be longitude and lat latitude")
        warnings += length_warnings(length_m, distances(node_xy[from_row], node_xy[to_row]), file=edge_table.file)
    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph(crs=projection.target)
    keys = node_keys(names)
    graph.add_nodes_from((key, {"x": x, "y": y}) for key, (x, y) in zip(keys, node_xy.tolist(), strict=True))
    classes = edge_table.texts("class")
    edges_data = values.edges([classes[row] for row in np.flatnonzero(usable).tolist()])
    graph.add_edges_from(
        (keys[start], keys[end], data)
        for start, end, data in zip(from_row.tolist(), to_row.tolist(), edges_data, strict=True)
    )
    return network_and_report(
        graph,
        values,
        part_of=largest_strong_component,
        links_file=str(edges),
        node_rows=len(node_table),
        link_rows=len(edge_table),
        row="row",
        dropped=dropped,
        remarks=projection.notes,
        warnings=warnings,
    )


def _read(
    file: str | Path, columns: Mapping[str, str], known: Sequence[str], *, ids: Sequence[str], text: TextFormat
) -> Table:
    if not str(file).lower().endswith(SUFFIXES):
        raise InputError([f"{file}: the name must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"])
    mapped = {name: columns[name] for name in known if name in columns}
    return Table.from_file(file, columns=mapped, identifiers=ids, format_=text)


def _rows_of(table: Table, name: str, rows: Mapping[str, int]) -> NDArray[np.int64]:
    """Look up the node row of each identifier in a column; -1 where there is none."""
    ids = node_ids(table.values(name))
    return np.array([rows.get(identifier or "", -1) for identifier in ids], dtype=np.int64)
