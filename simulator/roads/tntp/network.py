"""Reader of roads from a TNTP network file and its nodes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np

from simulator.files.errors import InputError
from simulator.files.messages import counted
from simulator.roads.connectivity import largest_part_for_trips, lost_zones
from simulator.roads.network import RoadNetwork
from simulator.roads.plausibility import coordinates_swapped, length_doubts
from simulator.roads.projection import WGS84, Projection
from simulator.roads.read_report import ReadReport, parallel_remarks
from simulator.roads.tntp.links import LinkNumbers, TntpLinks
from simulator.roads.tntp.nodes import TntpNodes

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

SHOWN_NODES = 10


def read_tntp(
    *,
    network: str | Path,
    nodes: str | Path,
    length_m: float,
    time_s: float,
    crs: object = WGS84,
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
    :class:`~simulator.roads.tntp.links.LinkNumbers` for the conversion of lengths, times and capacities.

    Parameters
    ----------
    network
        Network file, plain or gzipped.
    nodes
        Node file: TNTP text or GeoJSON points.
    length_m, time_s
        One unit of the file's lengths in metres, and one of its free-flow times in seconds.
    crs
        The system of the node coordinates, in any units; east (or longitude) first.
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
        What was filled in, lost and doubted.

    Raises
    ------
    InputError
        If arguments or files are faulty; it lists every fault with file, line, rule and value.
    """
    _check_arguments(
        length_m=length_m,
        time_s=time_s,
        capacity_hours=capacity_hours,
        lane_capacity_vph=lane_capacity_vph,
        default_speed_mps=default_speed_mps,
    )
    links, places = _read_both(network, nodes)
    _check_nodes(links, places)
    order = np.argsort(places.node)
    xy = places.xy[order]
    projection = Projection.choose(places.xy, crs=crs, project_to=project_to, file=places.file, where=places.where)
    from_row = links.columns["init_node"].astype(np.int64) - 1
    to_row = links.columns["term_node"].astype(np.int64) - 1
    length = links.columns["length"]
    if projection.source.is_geographic and coordinates_swapped(xy, from_row, to_row, length):
        rule = "longitude must come before latitude; the links' lengths fit far better with the two swapped"
        raise InputError([f"{places.file}: {places.where(np.ones(len(places), dtype=np.bool_))}: {rule}"])
    node_xy = projection.metres(xy)
    across = node_xy[to_row] - node_xy[from_row]
    straight_m = np.hypot(across[:, 0], across[:, 1])
    numbers = LinkNumbers.from_links(
        links,
        straight_m=straight_m,
        length_m=length_m,
        time_s=time_s,
        capacity_hours=capacity_hours,
        lane_capacity_vph=lane_capacity_vph,
        default_speed_mps=default_speed_mps,
    )
    graph = _graph(links, node_xy, numbers, projection)
    part, loss = largest_part_for_trips(graph)
    built = RoadNetwork.from_graph(part)
    report = ReadReport(
        links_file=links.file,
        node_rows=len(places),
        link_rows=len(links),
        remarks=(*numbers.remarks, *parallel_remarks(links.file, graph)),
        dropped=(),
        defaults=numbers.defaults,
        loss=loss,
        lost_zones=lost_zones(graph, part),
        doubts=(
            *projection.doubts(xy, file=places.file),
            *length_doubts(length * length_m, straight_m, file=links.file),
            *numbers.doubts,
        ),
        nodes=len(built.node_names),
        links=len(built.links),
    )
    return built, report


def _check_arguments(**values: float) -> None:
    faults = [
        f"{name} must be a finite number above 0, got {value!r}"
        for name, value in values.items()
        if not (value > 0 and math.isfinite(value))
    ]
    if faults:
        raise InputError(faults)


def _read_both(network: str | Path, nodes: str | Path) -> tuple[TntpLinks, TntpNodes]:
    """Read both files, and raise the faults of both together."""
    faults: list[str] = []
    links = places = None
    try:
        links = TntpLinks.from_file(network)
    except InputError as error:
        faults += error.faults
    try:
        places = TntpNodes.from_file(nodes)
    except InputError as error:
        faults += error.faults
    if links is None or places is None or faults:
        raise InputError(faults)
    return links, places


def _check_nodes(links: TntpLinks, places: TntpNodes) -> None:
    """Check that the node file has the nodes declared, without allocating memory by either number."""
    beyond = places.node > links.nodes
    faults = []
    if beyond.any():
        first = int(places.node[np.flatnonzero(beyond)[0]])
        rule = f"nodes must be 1 … {links.nodes:,}, as <NUMBER OF NODES> of {links.file} says, got {first}"
        faults.append(f"{places.file}: {places.where(beyond)}: {rule}")
    elif len(places) != links.nodes:
        absent = []
        present = set(places.node.tolist())
        for node in range(1, links.nodes + 1):
            if node not in present:
                absent.append(node)
            if len(absent) > SHOWN_NODES:
                break
        shown = ", ".join(map(str, absent[:SHOWN_NODES])) + (" …" if len(absent) > SHOWN_NODES else "")
        says = f"<NUMBER OF NODES> of {links.file} is {links.nodes:,}"
        faults.append(f"{places.file}: it holds {counted(len(places), 'node')}, and {says}; without a place: {shown}")
    if faults:
        raise InputError(faults)


def _graph(
    links: TntpLinks, node_xy: NDArray[np.float64], numbers: LinkNumbers, projection: Projection
) -> nx.MultiDiGraph[Any]:
    """Build the graph from nodes and links."""
    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph(crs=projection.target)
    for node, (x, y) in enumerate(node_xy.tolist(), start=1):
        data: dict[str, Any] = {"x": x, "y": y}
        if node <= links.zones:
            data["zone"] = node
        if node < links.first_through:
            data["through"] = False
        graph.add_node(node, **data)
    starts, ends = (links.columns[name].astype(np.int64).tolist() for name in ("init_node", "term_node"))
    for start, end, data in zip(starts, ends, numbers.edges(links), strict=True):
        graph.add_edge(start, end, **data)
    return graph
