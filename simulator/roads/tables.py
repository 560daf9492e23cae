"""Reader of roads from a table of nodes and a table of edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pandas as pd
import pyproj

from simulator.files.errors import InputError
from simulator.files.messages import rows_in_words
from simulator.files.tables import Table
from simulator.roads.connectivity import largest_strong_component
from simulator.roads.network import RoadNetwork
from simulator.roads.node_ids import node_ids, node_keys
from simulator.roads.plausibility import coordinates_swapped, length_doubts, speed_doubts
from simulator.roads.projection import Projection, utm_about
from simulator.roads.read_report import DroppedRows, FilledDefault, ReadReport, usable_rows
from simulator.roads.schema import crs_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from simulator.files.tables import Table

MPS_PER_UNIT = {"speed_mps": 1.0, "speed_mph": 1609.344 / 3600, "speed_kph": 1000 / 3600}


@dataclass(frozen=True, eq=False, repr=False)
class EdgeRows:
    """The edge rows that can be used, in the order of the file.

    Parameters
    ----------
    from_row, to_row
        Rows of the nodes from and to which each edge leads, shape (edges,).
    numbers
        ``length_m``, ``speed_mps``, ``lanes``, ``capacity_vph``, each of shape (edges,).
    classes
        Class of road of each edge, None where the file has none.
    dropped
        Rows left out, by reason.
    defaults
        Values filled in, among the edges kept.
    doubts
        Indications that the unit of the speeds is wrong.
    """

    from_row: NDArray[np.int64]
    to_row: NDArray[np.int64]
    numbers: dict[str, NDArray[np.float64]]
    classes: list[str | None]
    dropped: tuple[DroppedRows, ...]
    defaults: tuple[FilledDefault, ...]
    doubts: tuple[str, ...]

    @classmethod
    def from_table(
        cls,
        table: Table,
        *,
        from_row: NDArray[np.int64],
        to_row: NDArray[np.int64],
        node_xy: NDArray[np.float64],
        default_speed_mps: float,
        default_lanes: int,
        capacity_vph: float,
    ) -> EdgeRows:
        """Select the usable rows of an edge table and convert their values.

        Parameters
        ----------
        table
            A table with ``from``, ``to`` and any of the other edge columns.
        from_row, to_row
            The node row of each end, -1 where the node is not known, shape (rows,).
        node_xy
            Positions of the nodes, in metres, shape (nodes, 2).
        default_speed_mps, default_lanes, capacity_vph
            Defaults for rows without a usable value.

        Returns
        -------
        EdgeRows
            At least one edge.

        Raises
        ------
        InputError
            If no row can be used; it states the reasons.
        """
        length_m = _lengths(table, from_row, to_row, node_xy)
        speeds = {name: table.numbers(name) for name in MPS_PER_UNIT if table.has(name)}
        negative = np.zeros(len(table), dtype=np.bool_)
        for speed in speeds.values():
            negative |= speed < 0
        no_length = (
            "length_m is not a number above 0"
            if table.has("length_m")
            else "its two ends are at the same place and no length is given"
        )
        reasons = {
            "from or to is not in the node file": (from_row < 0) | (to_row < 0),
            "it leads from a node to itself": from_row == to_row,
            no_length: ~((length_m > 0) & np.isfinite(length_m)),
            "its speed is negative": negative,
        }
        usable, dropped = usable_rows(reasons, file=table.file, what="edge")

        speed_mps = np.full(len(table), np.nan)
        for name, values in reversed(speeds.items()):
            given = (values > 0) & np.isfinite(values)
            speed_mps[given] = values[given] * MPS_PER_UNIT[name]
        numbers_by_name = {"length_m": length_m[usable]}
        defaults = []
        for name, values, default, unit in (
            ("speed_mps", speed_mps, default_speed_mps, "m/s"),
            ("lanes", _whole(_column(table, "lanes")), default_lanes, ""),
            ("capacity_vph", _column(table, "capacity_vph"), capacity_vph, "vehicles/h/lane"),
        ):
            kept = values[usable]
            missing = ~((kept > 0) & np.isfinite(kept))
            numbers_by_name[name] = np.where(missing, float(default), kept)
            mapped = bool(speeds) if name == "speed_mps" else table.has(name)
            if mapped and missing.any():
                defaults.append(FilledDefault(name, f"{default:g} {unit}".rstrip(), int(missing.sum())))
        classes = table.texts("class") if table.has("class") else [None] * len(table)
        return cls(
            from_row=from_row[usable],
            to_row=to_row[usable],
            numbers=numbers_by_name,
            classes=[classes[row] for row in np.flatnonzero(usable).tolist()],
            dropped=dropped,
            defaults=tuple(defaults),
            doubts=tuple(speed_doubts(speed_mps[usable], length_m[usable], file=table.file)),
        )

    def edges(self) -> Iterator[tuple[int, int, dict[str, Any]]]:
        """Yield the edges in the form in which they are added to a graph.

        Yields
        ------
        tuple
            From row, to row, and the edge's attributes in the schema of :mod:`simulator.roads.schema`.
        """
        columns = [values.tolist() for values in self.numbers.values()]
        ends = zip(self.from_row.tolist(), self.to_row.tolist(), strict=True)
        for (start, end), kind, *values in zip(ends, self.classes, *columns, strict=True):
            data = dict(zip(self.numbers, values, strict=True))
            data["lanes"] = int(data["lanes"])
            if kind is not None:
                data["class"] = kind
            yield start, end, data


def _lengths(
    table: Table, from_row: NDArray[np.int64], to_row: NDArray[np.int64], node_xy: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return lengths as given, or straight distances; these are meaningless where an end is not known."""
    if table.has("length_m"):
        return table.numbers("length_m")
    across = node_xy[to_row] - node_xy[from_row]
    return np.hypot(across[:, 0], across[:, 1])


def _column(table: Table, name: str) -> NDArray[np.float64]:
    """Return the numbers of a column, all NaN if it is not mapped."""
    return table.numbers(name) if table.has(name) else np.full(len(table), np.nan)


def _whole(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the values that are whole numbers, NaN for all others."""
    return np.where(values == np.floor(values), values, np.nan)


@dataclass(frozen=True, eq=False, repr=False)
class NodeRows:
    """Nodes in the order of their rows.

    Parameters
    ----------
    ids
        Identifiers, all different, as :func:`~simulator.roads.node_ids.node_ids` returns them.
    xy
        Metres, float64, shape (nodes, 2).
    crs
        The projected system of ``xy``.
    """

    ids: list[str]
    xy: NDArray[np.float64]
    crs: pyproj.CRS

    @classmethod
    def from_table(cls, table: Table, *, crs: object) -> NodeRows:
        """Check and project a node table.

        Parameters
        ----------
        table
            A table with ``node``, and ``lon`` and ``lat`` or ``x`` and ``y``.
        crs
            System of ``x`` and ``y``, or the one to which ``lon`` and ``lat`` are projected; None for their UTM zone.

        Returns
        -------
        NodeRows
            Every row of the table.

        Raises
        ------
        InputError
            If an identifier is missing or occurs twice, or a coordinate is not finite or out of range.
        """
        ids = node_ids(table.values("node"))
        missing = np.array([identifier is None for identifier in ids])
        twice = pd.Series(ids, dtype="object").duplicated(keep=False).to_numpy(dtype=np.bool_) & ~missing
        faults = table.faults("node", missing, "an identifier")
        faults += table.faults("node", twice, "an identifier no other row has")
        named = ("lon", "lat") if table.has("lon") else ("x", "y")
        coordinates = {name: table.numbers(name) for name in named}
        for name, values in coordinates.items():
            finite = np.isfinite(values)
            faults += table.faults(name, ~finite, "a finite number")
            limit = {"lon": 180.0, "lat": 90.0}.get(name, np.inf)
            rule = f"degrees from {-limit:g} to {limit:g}"
            faults += table.faults(name, finite & (np.abs(values) > limit), rule)
        if faults:
            raise InputError(faults)
        first, second = (coordinates[name] for name in named)
        if named == ("lon", "lat"):
            projected = utm_about(first, second, what=table.file) if crs is None else pyproj.CRS.from_user_input(crs)
            project = pyproj.Transformer.from_crs("EPSG:4326", projected, always_xy=True)
            first, second = project.transform(first, second)
            outside = ~(np.isfinite(first) & np.isfinite(second))
            if outside.any():
                raise InputError(table.faults("lon", outside, f"within reach of {projected.name}"))
        else:
            projected = pyproj.CRS.from_user_input(crs)
        return cls([str(identifier) for identifier in ids], np.column_stack((first, second)), projected)


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
        system to which they are projected; the UTM zone of the network's middle if None.
    default_speed_mps, default_lanes, capacity_vph
        Defaults for rows without a usable value; capacity in vehicles per hour and lane.

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
    """Compare the nodes' positions with the area of their system, and with the lengths that the file gives.

    Raises
    ------
    InputError
        If the positions fit the lengths far better with latitude and longitude swapped.
    """
    doubts = Projection(places.crs, places.crs).doubts(places.xy, file=str(nodes.file))
    if not edges.has("length_m"):
        return doubts
    length_m = rows.numbers["length_m"]
    if nodes.has("lon"):
        lonlat = np.column_stack((nodes.numbers("lon"), nodes.numbers("lat")))
        if coordinates_swapped(lonlat, rows.from_row, rows.to_row, length_m):
            rule = "lon must be longitude and lat latitude; the edges' lengths fit far better with the two swapped"
            raise InputError([f"{nodes.file}: {rows_in_words(np.ones(len(nodes), dtype=np.bool_))}: {rule}"])
    across = places.xy[rows.to_row] - places.xy[rows.from_row]
    return doubts + length_doubts(length_m, np.hypot(across[:, 0], across[:, 1]), file=str(edges.file))


def _check_arguments(
    columns: Mapping[str, str], crs: object, speed_mps: float, lanes: int, capacity_vph: float
) -> None:
    """Raise all faults of the caller's arguments before a file is opened."""
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
        raise InputError(faults)


def _read_both(nodes: str | Path, edges: str | Path, columns: Mapping[str, str]) -> tuple[Table, Table]:
    """Read both files, and raise the faults of both together."""
    tables, faults = [], []
    for file, names, ids in ((nodes, NODE_COLUMNS, ["node"]), (edges, EDGE_COLUMNS, ["from", "to"])):
        mapped = {name: columns[name] for name in names if name in columns}
        if not str(file).lower().endswith(SUFFIXES):
            faults.append(f"{file}: the name must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
            continue
        try:
            tables.append(Table.from_file(file, columns=mapped, text=ids))
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(faults)
    return tables[0], tables[1]


def _rows_of(table: Table, name: str, rows: Mapping[str, int]) -> NDArray[np.int64]:
    """Look up the node row of each identifier in a column; -1 where there is none."""
    ids = node_ids(table.values(name))
    return np.array([rows.get(identifier or "", -1) for identifier in ids], dtype=np.int64)
