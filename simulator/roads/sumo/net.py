"""Reader of roads from a SUMO network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import networkx as nx
import numpy as np
import shapely

from simulator.files.messages import Doubt, counted
from simulator.roads.connectivity import Loss, largest_strong_component
from simulator.roads.errors import RoadsError
from simulator.roads.network import RoadNetwork
from simulator.roads.plausibility import shape_doubts, speed_doubts
from simulator.roads.sumo.net_coordinates import NOWHERE, NetFrame, vehicle_classes
from simulator.roads.sumo.net_file import read_net_file

SHOWN = 20


@dataclass(frozen=True)
class SumoNetReport:
    """What was read of a SUMO network, and what it holds that our engines do not.

    Parameters
    ----------
    file
        The file's name.
    vehicle_class
        Whose lanes were kept.
    frame
        How SUMO's coordinates become the city's.
    placed
        Whether the file says where on the globe it lies.
    file_edges
        Edges of the file, internal ones not counted.
    closed
        Edges with no lane for the vehicle class.
    loops
        Edges from a junction to itself, left out, by id.
    barred_turns
        Pairs of links over a junction that the file does not connect for the vehicle class.
    turns
        All such pairs, turning round included.
    keep
        What was kept: "all", or the largest "strong"ly connected part.
    loss
        What lies, or with ``keep = "strong"`` lay, outside the largest strongly connected part.
    nodes, links
        What was kept.
    doubts
        What speaks against the speeds or the lengths, a sentence each.
    """

    file: str
    vehicle_class: str
    frame: NetFrame
    placed: bool
    file_edges: int
    closed: int
    loops: tuple[str, ...]
    barred_turns: int
    turns: int
    keep: Literal["all", "strong"]
    loss: Loss
    nodes: int
    links: int
    doubts: tuple[Doubt, ...] = ()

    def notes(self) -> list[str]:
        """Say in plain words what is not as the file has it.

        Returns
        -------
        list of str
            One sentence each.
        """
        notes: list[str] = [*self.doubts]
        if self.closed:
            notes.append(
                f"{self.file}: left out {self.closed:,} of {counted(self.file_edges, 'edge')}, which have no lane for "
                f"vehicle class {self.vehicle_class!r}"
            )
        if self.loops:
            listed = ", ".join(self.loops[:SHOWN]) + (" …" if len(self.loops) > SHOWN else "")
            notes.append(
                f"{self.file}: left out {counted(len(self.loops), 'edge')} from a junction to itself: {listed}"
            )
        if not self.placed:
            notes.append(f"{self.file}: it does not say where it lies; it was taken as {self.frame.crs.name}")
        if self.barred_turns:
            notes.append(
                f"{self.file}: the file does not connect {self.barred_turns:,} of {counted(self.turns, 'turn')} from "
                "link to link; only SUMO itself keeps to that, and to its signals, and counts the way over a junction"
            )
        if self.loss.links and self.keep == "all":
            notes.append(
                f"{self.file}: kept what lies outside the largest part {self.loss.part}: {self.loss.links:,} of "
                f"{counted(self.links, 'link')}, {self.loss.km_words}"
            )
        elif self.loss.links:
            notes.append(f"{self.file}: {self.loss.beside(nodes=self.nodes, links=self.links)}")
        return notes


def read_sumo_net(
    path: str | Path,
    *,
    vehicle_class: str = "passenger",
    anchor: tuple[float, float] | None = None,
    capacity_vph: float = 1800.0,
    keep: Literal["all", "strong"] = "all",
) -> tuple[RoadNetwork, SumoNetReport]:
    """Read a SUMO network by sumolib.

    A link is an edge with a lane that the vehicle class may use; it has as many lanes as may be used, the
    fastest of their speeds, the length of the edge and its shape. Edges inside junctions are no links.

    Parameters
    ----------
    path
        ``net.xml``, plain or gzipped (``.gz``).
    vehicle_class
        One of SUMO's vehicle classes.
    anchor
        Longitude and latitude, degrees, of the origin of a network that has no projection; (0, 0) if None.
    capacity_vph
        Vehicles per hour and lane: a SUMO network has no capacities.
    keep
        "all" links, those at which vehicles only start or end included; or those of the largest "strong"ly
        connected part, as trips drawn between any two nodes need it.

    Returns
    -------
    network : RoadNetwork
        Nodes are keyed by the junctions' ids, parallel edges by SUMO's edge id. An edge carries ``sumo_edge``,
        SUMO's id of it, and ``class``, SUMO's edge type, where it has one.
    report : SumoNetReport
        What was left out; where the network lies.

    Raises
    ------
    RoadsError
        If the file cannot be read, is no SUMO network, holds an edge or a junction that cannot be used (named by
        line), or no edge for the vehicle class.
    """
    path = Path(path)
    _check_arguments(vehicle_class, capacity_vph, keep)
    net = read_net_file(path)
    frame = NetFrame.from_location(net.location, anchor=anchor, what=str(path))
    edges = net.edges
    usable = [edge for edge in edges if edge.allows(vehicle_class)]
    loops = tuple(edge.getID() for edge in usable if edge.getFromNode() is edge.getToNode())
    links = [edge for edge in usable if edge.getFromNode() is not edge.getToNode()]
    if not links:
        types = ", ".join(sorted({name for edge in edges for name in _few_classes(edge)})) or "no edge at all"
        rule = f"of its {counted(len(edges), 'edge')}, none has a lane for class {vehicle_class!r}"
        raise RoadsError([f"{path}: the road network is empty: {rule}; its lanes allow {types}"])
    graph = _graph(net.nodes, links, frame, vehicle_class, capacity_vph)
    loss, part = _outside(graph, keep)
    network = RoadNetwork.from_graph(part)
    connected, turns = _turns(links, vehicle_class)
    report = SumoNetReport(
        file=path.name,
        vehicle_class=vehicle_class,
        frame=frame,
        placed=net.location.get("projParameter", "!").strip() not in NOWHERE,
        file_edges=len(edges),
        closed=len(edges) - len(usable),
        loops=loops,
        barred_turns=turns - connected,
        turns=turns,
        keep=keep,
        loss=loss,
        nodes=len(network.node_names),
        links=len(network.links),
        doubts=(
            *speed_doubts(network.links.speed_mps, network.links.length_m, file=path.name),
            *_shape_doubts(graph, path.name),
        ),
    )
    return network, report


def links_by_sumo_edge(network: RoadNetwork) -> dict[str, int]:
    """Look up links by SUMO's ids.

    Parameters
    ----------
    network
        As :func:`read_sumo_net` gives it.

    Returns
    -------
    dict
        SUMO's edge id to the link's id in :attr:`RoadNetwork.links`.
    """
    return {data["sumo_edge"]: data["link"] for *_, data in network.graph.edges(data=True) if "sumo_edge" in data}


def _check_arguments(vehicle_class: str, capacity_vph: float, keep: str) -> None:
    """Raise every fault of what the caller asks for, before the file is opened."""
    known = vehicle_classes()
    faults = []
    if vehicle_class not in known:
        faults.append(f"vehicle_class must be one of SUMO's, {', '.join(sorted(known))}; got {vehicle_class!r}")
    if not 0 < capacity_vph < np.inf:
        faults.append(f"capacity_vph must be a finite number above 0, got {capacity_vph!r}")
    if keep not in {"all", "strong"}:
        faults.append(f'keep must be "all" or "strong", got {keep!r}')
    if faults:
        raise RoadsError(faults)


def _graph(
    nodes: list[Any], links: list[Any], frame: NetFrame, vehicle_class: str, capacity_vph: float
) -> nx.MultiDiGraph[Any]:
    """Lay the junctions at the ends of links, in the order of the file, and the links."""
    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph(crs=frame.crs)
    ends = {id(node) for edge in links for node in (edge.getFromNode(), edge.getToNode())}
    for node in nodes:
        if id(node) in ends:
            x, y = frame.to_city(node.getCoord()).tolist()
            graph.add_node(node.getID(), x=x, y=y)
    for edge in links:
        data = _attributes(edge, frame, vehicle_class, capacity_vph)
        graph.add_edge(edge.getFromNode().getID(), edge.getToNode().getID(), edge.getID(), **data)
    return graph


def _attributes(edge: Any, frame: NetFrame, vehicle_class: str, capacity_vph: float) -> dict[str, Any]:
    """Write an edge of sumolib in the schema of :mod:`simulator.roads.schema`."""
    lanes = [lane for lane in edge.getLanes() if lane.allows(vehicle_class)]
    data = {
        "length_m": edge.getLength(),
        "speed_mps": max(lane.getSpeed() for lane in lanes),
        "lanes": len(lanes),
        "capacity_vph": float(capacity_vph),
        "sumo_edge": edge.getID(),
    }
    if edge.getType():
        data["class"] = edge.getType()
    shape = edge.getShape()
    if len(shape) >= 2:
        data["geometry"] = shapely.LineString(frame.to_city([point[:2] for point in shape]))
    return data


def _shape_doubts(graph: nx.MultiDiGraph[Any], file: str) -> list[Doubt]:
    """Compare lengths with shapes; a length may also be that between junctions, where SUMO cuts shapes."""
    node = graph.nodes
    links = [(a, b, data) for a, b, data in graph.edges(data=True) if "geometry" in data]
    length_m = np.array([data["length_m"] for *_, data in links])
    shape_m = np.array([data["geometry"].length for *_, data in links])
    across_m = np.array([np.hypot(node[a]["x"] - node[b]["x"], node[a]["y"] - node[b]["y"]) for a, b, _ in links])
    fitting_m = np.clip(length_m, shape_m, np.maximum(shape_m, across_m))
    return [Doubt(doubt) for doubt in shape_doubts(length_m, fitting_m, file=file)]


def _outside(graph: nx.MultiDiGraph[Any], keep: str) -> tuple[Loss, nx.MultiDiGraph[Any]]:
    """Say what is outside the largest strong part, and take what is to be kept."""
    try:
        part, loss = largest_strong_component(graph)
    except RoadsError:
        if keep == "strong":
            raise
        length_m = float(sum(data["length_m"] for *_, data in graph.edges(data=True)))
        return Loss(graph.number_of_nodes(), graph.number_of_edges(), length_m), graph
    return loss, part if keep == "strong" else graph


def _turns(links: list[Any], vehicle_class: str) -> tuple[int, int]:
    """Count the pairs of links over a junction: those the file connects, and all."""
    known = {id(edge) for edge in links}
    arriving: dict[int, int] = {}
    for edge in links:
        node = id(edge.getToNode())
        arriving[node] = arriving.get(node, 0) + 1
    turns = sum(arriving.get(id(edge.getFromNode()), 0) for edge in links)
    connected = sum(
        id(following) in known
        and any(c.getFromLane().allows(vehicle_class) and c.getToLane().allows(vehicle_class) for c in connections)
        for edge in links
        for following, connections in edge.getOutgoing().items()
    )
    return connected, turns


def _few_classes(edge: Any) -> set[str]:
    """Vehicle classes of an edge's lanes, where these are few enough to be named."""
    allowed: set[str] = set().union(*(lane.getPermissions() for lane in edge.getLanes()))
    return allowed if len(allowed) <= 4 else {"others"}
