"""Roads from a table of nodes and a table of edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np

from simulator.files.row_words import rows_in_words
from simulator.roads.component import largest_strong_component
from simulator.roads.doubts import coordinates_swapped, length_doubts
from simulator.roads.edge_rows import EdgeRows
from simulator.roads.errors import RoadsError
from simulator.roads.network import RoadNetwork
from simulator.roads.node_ids import node_ids, node_keys
from simulator.roads.node_rows import NodeRows
from simulator.roads.projection import Projection
from simulator.roads.read_report import ReadReport
from simulator.roads.schema import crs_faults
from simulator.roads.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

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
) -> tuple[RoadNetwork, ReadReport]:
    """Read a node table and an edge table.

    Rows of edges that cannot be used are dropped and reported by number: an end that is no known node, an
    edge from a node to itself, a length that is mapped and not a number above 0 (blank included), two ends
    at one place where lengths are not mapped, a negative speed. The largest strongly connected part is kept.

    Parameters
    ----------
    nodes, edges
        Files in CSV (``.csv``, ``.csv.gz``) or Parquet (``.parquet``).
    columns
        Our names to the files': ``node`` with ``lon`` and ``lat`` (degrees, WGS84) or ``x`` and ``y``
        (metres) in the node file; in the edge file ``from``, ``to`` and, where there are, ``length_m``
        (straight distance if not mapped), ``speed_mps``, ``speed_mph`` and ``speed_kph`` (each row takes the
        first of them that holds a number above 0), ``lanes``, ``capacity_vph`` (per lane), ``class``.
    crs
        The projected system, in metres, of ``x`` and ``y``; required with them. With ``lon`` and ``lat``, the
        system to project to; the UTM zone of the network's middle if None.
    default_speed_mps, default_lanes, capacity_vph
        Where a row has none that can be used; capacity in vehicles per hour and lane.

    Returns
    -------
    network : RoadNetwork
        Node keys are whole numbers if all identifiers are, else text.
    report : ReadReport
        What was dropped, filled in and lost.

    Raises
    ------
    RoadsError
        With all faults found: of the mapping and the defaults, of reading either file, of coordinates and
        identifiers of nodes; or that nothing is left of the network.
    """
    _check_arguments(columns, crs, default_speed_mps, default_lanes, capacity_vph)
    node_table, edge_table = _read_both(nodes, edges, columns)
    places = NodeRows.from_table(node_table, crs=crs)
    ids = {identifier: row for row, identifier in enumerate(places.ids)}
    rows = EdgeRows.from_table(
        edge_table,
        from_row=_rows_of(edge_table, "from", ids),
        to_row=_rows_of(edge_table, "to", ids),
        node_xy=places.xy,
        default_speed_mps=default_speed_mps,
        default_lanes=default_lanes,
        capacity_vph=capacity_vph,
    )
    doubts = _doubts(node_table, edge_table, places, rows)
    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph(crs=places.crs)
    keys = node_keys(places.ids)
    graph.add_nodes_from((key, {"x": x, "y": y}) for key, (x, y) in zip(keys, places.xy.tolist(), strict=True))
    graph.add_edges_from((keys[start], keys[end], data) for start, end, data in rows.edges())
    part, loss = largest_strong_component(graph)
    network = RoadNetwork.from_graph(part)
    report = ReadReport(
        links_file=str(edges),
        node_rows=len(node_table),
        link_rows=len(edge_table),
        row="row",
        dropped=rows.dropped,
        defaults=rows.defaults,
        loss=loss,
        nodes=len(network.node_names),
        links=len(network.links),
        doubts=(*doubts, *rows.doubts),
    )
    return network, report


def _doubts(nodes: Table, edges: Table, places: NodeRows, rows: EdgeRows) -> list[str]:
    """Compare the nodes' places with the area of their system, and with the lengths that the file gives.

    Raises
    ------
    RoadsError
        If they fit far better with latitude and longitude swapped.
    """
    doubts = Projection(places.crs, places.crs).doubts(places.xy, file=str(nodes.file))
    if not edges.has("length_m"):
        return doubts
    length_m = rows.numbers["length_m"]
    if nodes.has("lon"):
        lonlat = np.column_stack((nodes.numbers("lon"), nodes.numbers("lat")))
        if coordinates_swapped(lonlat, rows.from_row, rows.to_row, length_m):
            rule = "lon must be longitude and lat latitude; the edges' lengths fit far better with the two swapped"
            raise RoadsError([f"{nodes.file}: {rows_in_words(np.ones(len(nodes), dtype=np.bool_))}: {rule}"])
    across = places.xy[rows.to_row] - places.xy[rows.from_row]
    return doubts + length_doubts(length_m, np.hypot(across[:, 0], across[:, 1]), file=str(edges.file))


def _check_arguments(
    columns: Mapping[str, str], crs: object, speed_mps: float, lanes: int, capacity_vph: float
) -> None:
    """Raise every fault of what the caller asks for, before a file is opened."""
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
    for name, value in (("default_speed_mps", speed_mps), ("capacity_vph", capacity_vph)):
        if not 0 < value < np.inf:
            faults.append(f"{name} must be a finite number above 0, got {value!r}")
    if not (lanes >= 1 and float(lanes).is_integer()):
        faults.append(f"default_lanes must be a whole number, 1 or more, got {lanes!r}")
    if faults:
        raise RoadsError(faults)


def _read_both(nodes: str | Path, edges: str | Path, columns: Mapping[str, str]) -> tuple[Table, Table]:
    """Read both files, and raise the faults of both together."""
    tables, faults = [], []
    for file, names, ids in ((nodes, NODE_COLUMNS, ["node"]), (edges, EDGE_COLUMNS, ["from", "to"])):
        mapped = {name: columns[name] for name in names if name in columns}
        try:
            tables.append(Table.from_file(file, columns=mapped, ids=ids))
        except RoadsError as error:
            faults += error.faults
    if faults:
        raise RoadsError(faults)
    return tables[0], tables[1]


def _rows_of(table: Table, name: str, rows: Mapping[str, int]) -> NDArray[np.int64]:
    """Look up the node row each identifier of a column stands for; -1 where there is none."""
    ids = node_ids(table.values(name))
    return np.array([rows.get(identifier or "", -1) for identifier in ids], dtype=np.int64)
