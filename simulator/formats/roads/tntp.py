"""Reader of roads in the format of the Transportation Networks test problems (TNTP)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import networkx as nx
import numpy as np

from simulator.files.errors import InputError, both, positive_faults
from simulator.files.messages import Note, counted, warning
from simulator.files.tntp_text import fields_of, lines_of, read_metadata, row_fault, shown, table_of
from simulator.formats.roads.tntp_files import TntpNodes
from simulator.roads.plausibility import check_axes, length_warnings, speed_warnings
from simulator.roads.projection import WGS84, Projection, crs_about, distances
from simulator.roads.read_report import (
    FilledDefault,
    LinkValues,
    ReadReport,
    network_and_report,
    parallel_remarks,
)

if TYPE_CHECKING:
    from pathlib import Path

    import pyproj
    from numpy.typing import NDArray

    from simulator.files.tables import Table
    from simulator.files.tntp_text import Metadata
    from simulator.roads.network import RoadNetwork

FIELDS = ("init_node", "term_node", "capacity", "length", "free_flow_time", "b", "power", "speed", "toll", "link_type")
_ENDS = ("init_node", "term_node")
_NOT_NEGATIVE = ("capacity", "length", "free_flow_time", "b", "power")


@dataclass(frozen=True, eq=False, repr=False)
class TntpLinks:
    """The links of a network file, in the units of the file.

    Parameters
    ----------
    table
        The rows, with all fields as text.
    zones
        Number of zones; zones are the nodes 1 … zones.
    nodes
        Number of nodes; nodes are numbered 1 … nodes.
    first_through
        Routes may pass through this node and those after it; at those before it, trips only begin or end.
    columns
        Fields of the rows by name, float64, each of shape (links,), ``link_type`` left out.
    """

    table: Table
    zones: int
    nodes: int
    first_through: int
    columns: dict[str, NDArray[np.float64]]

    @classmethod
    def from_file(cls, file: str | Path) -> TntpLinks:
        """Read a network file.

        Parameters
        ----------
        file
            Plain or gzipped text.

        Returns
        -------
        TntpLinks
            As many links as the file's metadata state.

        Raises
        ------
        InputError
            If metadata are missing, a row does not have ten fields, a value is not a number, a node is out of range, a
            link leads from a node to itself, or the number of rows is not ``NUMBER OF LINKS``; it names file, line,
            rule and value.
        """
        lines = lines_of(file)
        metadata = read_metadata(lines, file=str(file))
        nodes = metadata.whole("NUMBER OF NODES", at_least=2)
        rows = list(lines)
        rule = f"a link must have {len(FIELDS)} fields ({' '.join(FIELDS)}), separated by blanks or tabs"
        table = table_of(fields_of(rows), FIELDS, file=str(file), rule=rule)
        uneven = [line for line in rows if line.text.endswith(";") != rows[0].text.endswith(";")]
        if uneven:
            rule = f"all rows must end in ';', or none (is the row cut short?); got {shown(uneven[0].text)}"
            table.broken.append(f"{file}: {row_fault([line.number for line in uneven], rule)}")
        columns = {name: table.numbers(name) for name in _ENDS}
        for name, node in columns.items():
            wrong = ~((node >= 1) & (node <= nodes) & (np.floor(node) == node))
            table.refuse(name, wrong, f"a node, 1 … {nodes:,} (<NUMBER OF NODES>)")
        table.refuse("term_node", columns["init_node"] == columns["term_node"], "another node than init_node")
        for name in FIELDS[2:-1]:
            columns[name] = table.checked_numbers(name, at_least=0 if name in _NOT_NEGATIVE else -np.inf)
        _check_header(metadata, table)
        table.check()
        return cls(
            table=table,
            zones=metadata.whole("NUMBER OF ZONES"),
            nodes=nodes,
            first_through=metadata.whole("FIRST THRU NODE", at_least=1),
            columns=columns,
        )

    @property
    def link_type(self) -> list[str]:
        """Link type of each row, as in the file."""
        return self.table.column("link_type").to_list()


def _check_header(metadata: Metadata, table: Table) -> None:
    """Compare the metadata of a file with its rows, and note what differs."""
    rows, nodes = len(table), metadata.whole("NUMBER OF NODES", at_least=2)
    links, zones = metadata.whole("NUMBER OF LINKS"), metadata.whole("NUMBER OF ZONES")
    first = metadata.whole("FIRST THRU NODE", at_least=1)
    usable = counted(rows, "usable row follows", "usable rows follow")
    for name, wrong, fault in (
        ("NUMBER OF LINKS", rows != links, f"<NUMBER OF LINKS> is {links:,}, and {usable}"),
        ("NUMBER OF LINKS", rows == 0, "the road network is empty: the file holds no usable link"),
        ("NUMBER OF ZONES", zones > nodes, f"<NUMBER OF ZONES> is {zones:,}, more than the {nodes:,} nodes"),
        ("FIRST THRU NODE", first > nodes + 1, f"<FIRST THRU NODE> is {first:,}, and there are {nodes:,} nodes"),
    ):
        if wrong:
            table.broken.append(f"{metadata.file}: line {metadata.values[name].number}: {fault}")


SHORTEST_M = 1.0
"""Length of a link that has no length and whose nodes have the same position."""
MOST_LANES = 1000
"""Largest number of lanes guessed for a link; a larger capacity means that the link is practically unlimited."""
LEAST_LIKELY_VPH = 100.0
"""Vehicles per hour of a whole link; if most links have less, the values are probably not capacities for the period
given."""


def link_values(
    links: TntpLinks,
    *,
    straight_m: NDArray[np.float64],
    length_m: float,
    time_s: float,
    capacity_hours: float,
    lane_capacity_vph: float,
    default_speed_mps: float,
) -> LinkValues:
    """Convert a file's numbers to the units of the schema and fill in missing ones.

    A length of 0 is replaced by the straight distance between the nodes, or by 1 m if they have the same position.
    Speed is length divided by free-flow time, or a default if that time is 0. The file gives the capacity of a whole
    link: lanes = max(1, round(capacity / lane capacity)), at most 1,000, and the capacity of each lane is the link's
    capacity divided by the number of lanes. A capacity of 0 is replaced by one lane with the lane capacity.

    Parameters
    ----------
    links
        The links as read.
    straight_m
        Metres between the nodes of each link, shape (links,).
    length_m, time_s, capacity_hours, lane_capacity_vph, default_speed_mps
        As in :func:`~simulator.formats.roads.tntp.read_tntp`.

    Returns
    -------
    LinkValues
        ``length_m``, ``speed_mps``, ``lanes``, ``capacity_vph`` (per lane), all above 0 and finite, and, as in the
        file, ``capacity_total_vph``, ``free_flow_s``, ``bpr_b``, ``bpr_power`` and ``toll``.

    Raises
    ------
    InputError
        If a number is too large or too small to be represented in the units of the schema.
    """
    with np.errstate(over="ignore"):  # numbers that overflow are reported as faults below
        given_m, free_flow_s = links.columns["length"] * length_m, links.columns["free_flow_time"] * time_s
        total_vph = links.columns["capacity"] / capacity_hours
    no_length, no_time, no_capacity = given_m == 0, free_flow_s == 0, total_vph == 0
    at_one_place = no_length & (straight_m < SHORTEST_M)
    metres = np.where(no_length, np.where(at_one_place, SHORTEST_M, straight_m), given_m)
    with np.errstate(divide="ignore", over="ignore"):
        speed = np.where(no_time, default_speed_mps, metres / free_flow_s)
        guessed = np.rint(total_vph / lane_capacity_vph)
    lanes = np.clip(guessed, 1, MOST_LANES)
    lane_vph = np.where(no_capacity, lane_capacity_vph, total_vph / lanes)
    columns = {
        "length_m": metres,
        "speed_mps": speed,
        "lanes": lanes,
        "capacity_vph": lane_vph,
        "capacity_total_vph": total_vph,
        "free_flow_s": free_flow_s,
    }
    _check(links, columns)
    columns |= {"bpr_b": links.columns["b"], "bpr_power": links.columns["power"], "toll": links.columns["toll"]}
    filled = (
        ("length_m (0 in the file)", "the straight distance between its nodes", no_length & ~at_one_place),
        ("length_m (0 in the file, no distance between its nodes)", f"{SHORTEST_M:g} m", at_one_place),
        ("speed_mps (free-flow time 0 in the file)", f"{default_speed_mps:g} m/s", no_time),
        ("capacity_vph (capacity 0 in the file)", f"{lane_capacity_vph:g} vehicles/h", no_capacity),
        ("lanes (a capacity too high for a road)", f"{MOST_LANES:,}", guessed > MOST_LANES),
    )
    words = "lanes are guessed, one for each {:g} vehicles/h of a link's capacity: {:g} to {:g} lanes"
    given_mps = np.where(no_time | no_length, np.nan, speed)
    warnings = [*speed_warnings(given_mps, metres, file=links.table.file)]
    if (median := float(np.median(total_vph))) < LEAST_LIKELY_VPH:
        observation = f"the capacity of a link is, in the median, {median:.3g} vehicles/h, and queues will form"
        checks = "check capacity_hours, and whether these are capacities at all"
        warnings.append(warning("capacities", f"{links.table.file}: {observation}: {checks}"))
    return LinkValues(
        columns=columns,
        defaults=tuple(FilledDefault(name, taken, int(rows.sum())) for name, taken, rows in filled if rows.any()),
        remarks=(f"{links.table.file}: {words.format(lane_capacity_vph, lanes.min(), lanes.max())}",),
        warnings=tuple(warnings),
    )


def _check(links: TntpLinks, columns: dict[str, NDArray[np.float64]]) -> None:
    """Check that numbers are still finite, and above 0 where required, after conversion to the schema's units."""
    faults = []
    for name, values in columns.items():
        above_zero = name not in ("capacity_total_vph", "free_flow_s")
        wrong = ~np.isfinite(values) | ((values <= 0) if above_zero else (values < 0))
        if wrong.any():
            rule = f"{name} must be a finite number{' above 0' if above_zero else ''}"
            where = f"{links.table.file}: {links.table.rows_in_words(wrong)}"
            faults.append(f"{where}: {rule}, and comes out as {values[wrong][0]:g}")
    if faults:
        raise InputError(faults)


SHOWN_NODES = 10
_SPACING_M = 200.0
"""Distance of neighbours where nodes have no coordinates."""


def read_tntp(
    *,
    network: str | Path,
    nodes: str | Path | None,
    length_m: float,
    time_s: float,
    crs: object = None,
    project_to: object = None,
    capacity_hours: float = 1.0,
    lane_capacity_vph: float = 1800.0,
    default_speed_mps: float = 13.9,
) -> tuple[RoadNetwork, ReadReport]:
    """Read a network of the Transportation Networks test problems.

    Node ``n`` of the file is node ``n`` of the graph. Nodes 1 … zones have ``zone``; those before the first through
    node have ``through = False``. In addition to the attributes of :mod:`simulator.roads.schema`, edges have the
    attributes from which a published equilibrium is computed: ``bpr_b``, ``bpr_power``, ``capacity_total_vph``,
    ``free_flow_s`` and ``toll``, as in the file; ``class`` is the link type. See
    :func:`~simulator.formats.roads.tntp.link_values` for the conversion of lengths, times and capacities.

    Parameters
    ----------
    network
        Network file, plain or gzipped.
    nodes
        Node file: TNTP text or GeoJSON points. None for nodes in a square, in the order of their numbers: only lengths,
        times and what is connected then mean something.
    length_m, time_s
        One unit of the file's lengths in metres, and one of its free-flow times in seconds.
    crs
        The system of the node coordinates, in any units; east (or longitude) first. Longitude and latitude if None.
    project_to
        A projected system in metres; the UTM zone of the network's middle if None.
    capacity_hours
        Hours to which the file's capacities refer.
    lane_capacity_vph
        Vehicles per hour and lane from which lanes are guessed, since capacities are those of whole links.
    default_speed_mps
        Free-flow speed of links whose free-flow time is 0.

    Returns
    -------
    network : RoadNetwork
        The largest part in which routes connect all nodes
        (:func:`~simulator.roads.connectivity.largest_part_for_trips`).
    report : ReadReport
        What was filled in and lost, and warnings.

    Raises
    ------
    InputError
        If arguments or files are faulty; it lists every fault with file, line, rule and value.
    """
    units = {
        "length_m": length_m,
        "time_s": time_s,
        "capacity_hours": capacity_hours,
        "lane_capacity_vph": lane_capacity_vph,
        "default_speed_mps": default_speed_mps,
    }
    if faults := positive_faults(**units):
        raise InputError(faults)
    if nodes is None:
        links = TntpLinks.from_file(network)
        placed = _in_a_square(links)
    else:
        links, places = both(lambda: TntpLinks.from_file(network), lambda: TntpNodes.from_file(nodes))
        placed = _placed(links, places, crs=crs, project_to=project_to, length_m=length_m)
    link_file = links.table.file
    numbers = link_values(links, straight_m=placed.straight_m, **units)
    graph = _graph(links, placed, numbers)
    return network_and_report(
        graph,
        numbers,
        links_file=link_file,
        node_rows=len(placed.node),
        link_rows=len(links.table),
        remarks=[*placed.remarks, *numbers.remarks, *parallel_remarks(link_file, graph)],
        warnings=placed.warnings,
    )


class _PlacedNodes(NamedTuple):
    """Nodes in metres: numbers ascending (nodes,), xy (nodes, 2), the distance between those of each link (links,)."""

    node: NDArray[np.int64]
    xy: NDArray[np.float64]
    crs: pyproj.CRS
    straight_m: NDArray[np.float64]
    remarks: list[str]
    warnings: list[Note]


def _in_a_square(links: TntpLinks) -> _PlacedNodes:
    """Place the nodes of all links in a square; links without a length then have no distance to take it from."""
    node = _used(links)
    at, side = np.arange(len(node)), math.isqrt(len(node) - 1) + 1
    xy = np.column_stack((at % side, at // side)).astype(np.float64) * _SPACING_M
    file = links.table.file
    words = f"{file}: no file of nodes: they are in a square in the order of their numbers; maps show no real places"
    return _PlacedNodes(node, xy, crs_about((0.0, 0.0)), np.zeros(len(links.table)), [], [warning("no_places", words)])


def _used(links: TntpLinks) -> NDArray[np.int64]:
    """Return the nodes of all links, ascending."""
    return np.unique(np.concatenate([links.columns[name] for name in _ENDS])).astype(np.int64)


def _placed(links: TntpLinks, places: TntpNodes, *, crs: object, project_to: object, length_m: float) -> _PlacedNodes:
    """Check the places of nodes and project them."""
    remarks = _check_nodes(links, places)
    order = np.argsort(places.node)
    node, xy = places.node[order], places.xy[order]
    system = WGS84 if crs is None else crs
    projection = Projection.choose(places.xy, crs=system, project_to=project_to, nodes=places.table)
    from_row, to_row = (np.searchsorted(node, links.columns[name]) for name in _ENDS)
    length = links.columns["length"]
    if projection.source.is_geographic:
        check_axes(places.table, xy, from_row, to_row, length, rule="longitude must come before latitude")
    node_xy = projection.metres(xy)
    straight_m = distances(node_xy[from_row], node_xy[to_row])
    units = distances(xy[from_row], xy[to_row]) if crs is None else None
    with np.errstate(over="ignore"):  # numbers that overflow are faults of `link_values`
        given_m = length * length_m
    warnings = [
        *projection.warnings(xy, file=places.table.file),
        *length_warnings(given_m, straight_m, file=links.table.file, units=units),
    ]
    return _PlacedNodes(node, node_xy, projection.target, straight_m, [*remarks, *projection.notes], warnings)


def _check_nodes(links: TntpLinks, places: TntpNodes) -> list[str]:
    """Check that the node file has the nodes of all links, and return a remark if it has fewer than are declared.

    A network may count numbers that it does not use, as those of Winnipeg and Barcelona do. No memory is allocated by
    a declared number.
    """
    nodes, stated = places.table, f"<NUMBER OF NODES> of {links.table.file}"
    beyond = places.node > links.nodes
    if beyond.any():
        first = int(places.node[beyond][0])
        rule = f"nodes must be 1 … {links.nodes:,}, as {stated} states, got {first}"
        raise InputError([f"{nodes.file}: {nodes.rows_in_words(beyond)}: {rule}"])
    used = _used(links)
    absent = used[~np.isin(used, places.node)].tolist()
    if absent:
        listed = ", ".join(map(str, absent[:SHOWN_NODES])) + (" …" if len(absent) > SHOWN_NODES else "")
        held = f"it holds {counted(len(nodes), 'node')}, and links of {links.table.file} use others"
        raise InputError([f"{nodes.file}: {held}; without coordinates: {listed}"])
    unused = links.nodes - len(nodes)
    words = f"{counted(unused, 'number')} up to {stated} without coordinates, which no link uses, left out"
    return [f"{nodes.file}: {words}"] if unused else []


def _graph(links: TntpLinks, placed: _PlacedNodes, numbers: LinkValues) -> nx.MultiDiGraph[Any]:
    """Build the graph from nodes and links."""
    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph(crs=placed.crs)
    for node, (x, y) in zip(placed.node.tolist(), placed.xy.tolist(), strict=True):
        data: dict[str, Any] = {"x": x, "y": y}
        if node <= links.zones:
            data["zone"] = node
        if node < links.first_through:
            data["through"] = False
        graph.add_node(node, **data)
    starts, ends = (links.columns[name].astype(np.int64).tolist() for name in ("init_node", "term_node"))
    for start, end, data in zip(starts, ends, numbers.edges(links.link_type), strict=True):
        graph.add_edge(start, end, **data)
    return graph
