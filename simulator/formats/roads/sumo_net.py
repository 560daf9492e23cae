"""Reader of roads from a SUMO network."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import networkx as nx
import numpy as np
import shapely

from scenarios.suggestions import suggestion
from simulator.files.errors import InputError, positive_faults
from simulator.files.extras import import_extra
from simulator.files.messages import Note, counted
from simulator.files.xml_elements import elements_of
from simulator.roads.connectivity import Loss, largest_strong_component
from simulator.roads.network import RoadNetwork
from simulator.roads.plausibility import shape_warnings, speed_warnings
from simulator.roads.projection import project
from simulator.roads.read_report import ReadReport
from simulator.roads.sumo_frame import NOWHERE, NetFrame, number_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class SumoNetReport(ReadReport):
    """Report on reading a SUMO network, with remarks on what this project's own engines do not model.

    Parameters
    ----------
    frame
        Conversion between SUMO's coordinates and the city's.
    """

    frame: NetFrame


def read_sumo_net(
    path: str | Path,
    *,
    vehicle_class: str = "passenger",
    anchor: tuple[float, float] | None = None,
    capacity_vph: float = 1800.0,
    keep: Literal["all", "strong"] = "all",
) -> tuple[RoadNetwork, SumoNetReport]:
    """Read a SUMO network with sumolib.

    An edge becomes a link if it has a lane that the vehicle class may use. The link has the number of these lanes, the
    highest of their speeds, and the length and shape of the edge. Edges inside junctions do not become links.

    Parameters
    ----------
    path
        A file ``net.xml``, plain or gzipped (``.gz``).
    vehicle_class
        One of SUMO's vehicle classes.
    anchor
        Longitude and latitude, degrees, of the origin of a network that has no projection; (0, 0) if None.
    capacity_vph
        Vehicles per hour and lane, since a SUMO network has no capacities.
    keep
        "all" for all links, including those at which vehicles can only start or end; "strong" for those of the largest
        strongly connected part, which is required for trips drawn between any two nodes.

    Returns
    -------
    network : RoadNetwork
        Nodes are keyed by the junctions' ids, parallel edges by SUMO's edge id. An edge has the attributes
        ``sumo_edge``, its id in SUMO, and ``class`` and ``name``, its edge type and street in SUMO, if it has them.
    report : SumoNetReport
        What was left out, and the network's coordinate system.

    Raises
    ------
    InputError
        If the file cannot be read, is not a SUMO network, has an edge or a junction that cannot be used (named by
        line), or has no edge for the vehicle class.
    """
    path = Path(path)
    _check_arguments(vehicle_class, capacity_vph, keep)
    net = read_net_file(path)
    location = net._location  # noqa: SLF001 - sumolib gives its parts, but not whether there is a projection
    frame = NetFrame.from_location(location, anchor=anchor, what=str(path))
    edges = net.getEdges()
    usable = [edge for edge in edges if edge.allows(vehicle_class)]
    loops = [edge.getID() for edge in usable if edge.getFromNode() is edge.getToNode()]
    links = [edge for edge in usable if edge.getFromNode() is not edge.getToNode()]
    if not links:
        types = ", ".join(sorted({name for edge in edges for name in _few_classes(edge)})) or "no edge at all"
        rule = f"of its {counted(len(edges), 'edge')}, none has a lane for class {vehicle_class!r}"
        raise InputError([f"{path}: the road network is empty: {rule}; its lanes allow {types}"])
    graph = _graph(net.getNodes(), links, frame, vehicle_class, capacity_vph)
    remarks = project(graph, None, what="projParameter of location")
    loss, part = _outside(graph, keep)
    network = RoadNetwork.from_graph(part)
    if len(usable) < len(edges):
        closed = f"left out {len(edges) - len(usable):,} of {counted(len(edges), 'edge')}"
        remarks.append(f"{closed}, which have no lane for vehicle class {vehicle_class!r}")
    if loops:
        listed = ", ".join(loops[:SHOWN]) + (" …" if len(loops) > SHOWN else "")
        remarks.append(f"left out {counted(len(loops), 'edge')} from a junction to itself: {listed}")
    if location.get("projParameter", "!").strip() in NOWHERE:
        remarks.append(f"it states no location; it was taken as {frame.crs.name}")
    connected, turns = _turns(links, vehicle_class)
    if connected < turns:
        remarks.append(
            f"the file does not connect {turns - connected:,} of {counted(turns, 'turn')} from link to link; only SUMO "
            "itself keeps to that, and to its signals, and counts the way over a junction"
        )
    if loss.links and keep == "all":
        outside = f"{loss.links:,} of {counted(len(network.links), 'link')}, {loss.km_words}"
        remarks.append(f"kept what is outside the largest part {loss.part}: {outside}")
    elif loss.links:
        remarks.append(loss.beside(nodes=len(network.node_names), links=len(network.links)))
    report = SumoNetReport(
        links_file=path.name,
        node_rows=len(net.getNodes()),
        link_rows=len(edges),
        remarks=[f"{path.name}: {remark}" for remark in remarks],
        loss=loss,
        nodes=len(network.node_names),
        links=len(network.links),
        warnings=(
            *speed_warnings(network.links.speed_mps, network.links.length_m, file=path.name),
            *_shape_warnings(graph, path.name),
        ),
        frame=frame,
    )
    return network, report


def links_by_sumo_edge(network: RoadNetwork) -> dict[str, int]:
    """Look up links by SUMO's ids.

    Parameters
    ----------
    network
        A network as returned by :func:`read_sumo_net`.

    Returns
    -------
    dict
        SUMO's edge id to the link's id in :attr:`RoadNetwork.links`.
    """
    return {data["sumo_edge"]: data["link"] for *_, data in network.graph.edges(data=True) if "sumo_edge" in data}


def _check_arguments(vehicle_class: str, capacity_vph: float, keep: str) -> None:
    """Raise all faults of the caller's arguments before the file is opened."""
    known = vehicle_classes()
    faults = []
    if vehicle_class not in known:
        words = f"vehicle_class must be one of SUMO's, {', '.join(sorted(known))}{suggestion(vehicle_class, known)}"
        faults.append(f"{words}; got {vehicle_class!r}")
    faults += positive_faults(capacity_vph=capacity_vph)
    if keep not in {"all", "strong"}:
        faults.append(f'keep must be "all" or "strong", got {keep!r}')
    if faults:
        raise InputError(faults)


def _graph(
    nodes: list[Any], links: list[Any], frame: NetFrame, vehicle_class: str, capacity_vph: float
) -> nx.MultiDiGraph[Any]:
    """Build the graph from the junctions at the ends of links, in the order of the file, and the links."""
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
    """Convert an edge of sumolib to attributes in the schema of :mod:`simulator.roads.schema`."""
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
    if edge.getName():
        data["name"] = edge.getName()
    shape = edge.getShape()
    if len(shape) >= 2:
        data["geometry"] = shapely.LineString(frame.to_city([point[:2] for point in shape]))
    return data


def _shape_warnings(graph: nx.MultiDiGraph[Any], file: str) -> list[Note]:
    """Compare lengths with shapes; SUMO cuts shapes at junctions, so a length may also be that between junctions."""
    node = graph.nodes
    links = [(a, b, data) for a, b, data in graph.edges(data=True) if "geometry" in data]
    length_m = np.array([data["length_m"] for *_, data in links])
    shape_m = np.array([data["geometry"].length for *_, data in links])
    across_m = np.array([np.hypot(node[a]["x"] - node[b]["x"], node[a]["y"] - node[b]["y"]) for a, b, _ in links])
    fitting_m = np.clip(length_m, shape_m, np.maximum(shape_m, across_m))
    return shape_warnings(length_m, fitting_m, file=file)


def _outside(graph: nx.MultiDiGraph[Any], keep: str) -> tuple[Loss, nx.MultiDiGraph[Any]]:
    """Return the loss outside the largest strongly connected part, and the part of the graph to keep."""
    try:
        part, loss = largest_strong_component(graph)
    except InputError:
        if keep == "strong":
            raise
        length_m = float(sum(data["length_m"] for *_, data in graph.edges(data=True)))
        return Loss(graph.number_of_nodes(), graph.number_of_edges(), length_m), graph
    return loss, part if keep == "strong" else graph


def _turns(links: list[Any], vehicle_class: str) -> tuple[int, int]:
    """Count the pairs of links over a junction: those that the file connects, and all pairs."""
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
    """Return the vehicle classes of an edge's lanes, or "others" if they are too many to be named."""
    allowed: set[str] = set().union(*(lane.getPermissions() for lane in edge.getLanes()))
    return allowed if len(allowed) <= 4 else {"others"}


_NUMBERS = {"lane": ("speed", "length"), "junction": ("x", "y")}
_NEEDED = {
    "net": ("version",),
    "location": ("netOffset", "convBoundary", "origBoundary", "projParameter"),
    "junction": ("id", "type", "x", "y", "incLanes"),
    "edge": ("id",),
    "lane": ("id", "speed", "length"),
}


class _NetFile:
    """Passes the elements of a net file to sumolib's reader, and reports the line of an error."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reader = import_sumolib().net.NetReader(withFoes=False)
        self._line = 1
        self._edges: dict[str, int] = {}
        self._junctions: dict[str, int] = {}

    def read(self) -> Any:
        """Read the file, and return sumolib's network of it."""
        for name, attributes, line in elements_of(self._path, root="net"):
            self._line = line
            if attributes is not None:
                self._begins(name, attributes)
                continue
            try:
                self._reader.endElement(name)
            except KeyError as error:
                raise self._fault(f"</{name}>: {_why(error)}") from error
        net = self._reader.getNet()
        if faults := list(self._faults(net)):
            raise InputError(faults)
        return net

    def _begins(self, name: str, attrs: Mapping[str, str]) -> None:
        """Check what sumolib does not check, then pass the start of the element to it."""
        for needed in _NEEDED.get(name, ()):
            if needed not in attrs:
                raise self._fault(f"<{name}> lacks {needed}")
        for number in _NUMBERS.get(name, ()):
            if not math.isfinite(number_of(attrs[number])):
                raise self._fault(f"{number} of <{name} id={attrs.get('id', '')!r}> must be a number", attrs[number])
        if name == "edge" and not attrs.get("function", ""):
            self._once(self._edges, "edge", attrs["id"])
            for end in ("from", "to"):
                if not attrs.get(end):
                    raise self._fault(f"<edge id={attrs['id']!r}> lacks {end}")
        elif name == "junction":
            self._once(self._junctions, "junction", attrs["id"])
        try:
            self._reader.startElement(name, attrs)
        except (KeyError, ValueError, IndexError, AttributeError, TypeError) as error:
            raise self._fault(f"<{name}> cannot be used: {_why(error)}") from error

    def _faults(self, net: Any) -> Iterator[str]:
        """Yield the faults that can be found only after the whole file is read."""
        for edge in net.getEdges():
            where = f"{self._path}: line {self._edges[edge.getID()]}: edge {edge.getID()!r}"
            for end, node in (("from", edge.getFromNode()), ("to", edge.getToNode())):
                if node.getID() not in self._junctions:
                    yield f"{where}: {end} must be a junction of the file, got {node.getID()!r}"
            if not edge.getLanes():
                yield f"{where}: it has no lanes"
            for lane in edge.getLanes():
                for what, value in (("length", lane.getLength()), ("speed", lane.getSpeed())):
                    if not value > 0:
                        yield f"{where}: {what} of a lane must be above 0, got {value:g}"
                shape = lane.getShape()
                if len(shape) < 2 or not np.isfinite(shape).all():
                    yield f"{where}: the shape of a lane must have two points or more, finite, got {len(shape)}"

    def _once(self, seen: dict[str, int], kind: str, name: str) -> None:
        """Record the line in which a name is defined; raise if it was defined before."""
        if name in seen:
            raise self._fault(f"{kind} {name!r} is defined twice, first in line {seen[name]}")
        seen[name] = self._line

    def _fault(self, rule: str, value: str | None = None) -> InputError:
        got = "" if value is None else f", got {value!r}"
        return InputError([f"{self._path}: line {self._line}: {rule}{got}"])


def read_net_file(path: Path) -> Any:
    """Read a SUMO network file.

    Parameters
    ----------
    path
        A file ``net.xml``, plain or gzipped.

    Returns
    -------
    sumolib.net.Net
        The network, checked, without internal edges and with turns.

    Raises
    ------
    InputError
        If the file cannot be read, is not a SUMO network, or contains data that cannot be used; it names the line.
    """
    return _NetFile(path).read()


def _why(error: Exception) -> str:
    return f"nothing has the name {error.args[0]!r}" if isinstance(error, KeyError) else str(error)


def import_sumolib() -> Any:
    """Import sumolib; SUMO itself is not needed.

    Returns
    -------
    module
        The module with ``sumolib.net``.

    Raises
    ------
    InputError
        If it is not installed.
    """
    return import_extra("sumolib", needed="reading a SUMO network needs sumolib", extra="sumo")


def vehicle_classes() -> frozenset[str]:
    """Return the names of SUMO's vehicle classes, without deprecated ones."""
    lane = import_sumolib().net.lane
    return frozenset(lane.SUMO_VEHICLE_CLASSES - lane.SUMO_VEHICLE_CLASSES_DEPRECATED)
