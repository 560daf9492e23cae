"""Reader of roads from a SUMO network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import shapely

from scenarios.errors import suggestion
from simulator.files.errors import InputError
from simulator.files.extras import import_extra
from simulator.files.messages import counted
from simulator.files.xml_elements import elements_of
from simulator.formats.sumo.movements import IGNORING, InternalLanes, movements_of, signals_of, usable_lanes
from simulator.roads.raw_network import Defaults, RawNetwork, column_of
from simulator.roads.sumo_frame import NOWHERE, NetFrame

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SHOWN = 20


def read_sumo_net(
    path: str | Path,
    *,
    additional: str | Path | None = None,
    vehicle_class: str | Sequence[str] | None = None,
    anchor: tuple[float, float] | None = None,
    capacity_vph: float = 1800.0,
    keep: Literal["all", "strong"] = "all",
) -> RawNetwork:
    """Read a SUMO network with sumolib.

    An edge becomes a link if it has a lane that one of the vehicle classes may use. The link has the number of these
    lanes, the highest of their speeds, and the length and shape of the edge. Edges inside junctions do not become
    links. Connections of lanes become movements, which name their classes if they are not open to all, and programs of
    signals green windows.

    Parameters
    ----------
    path
        A file ``net.xml``, plain or gzipped (``.gz``).
    additional
        An additional file of SUMO: its programs of signals replace the network's programs, which are used if None.
    vehicle_class
        One or more of SUMO's vehicle classes; "passenger" if None.
    anchor
        Longitude and latitude, degrees, of the origin of a network that has no projection; (0, 0) if None.
    capacity_vph
        Vehicles per hour and lane, since a SUMO network has no capacities.
    keep
        "all" for all links, including links at which vehicles can only start or end; "strong" for links of the largest
        strongly connected part, which is required for trips drawn between any two nodes.

    Returns
    -------
    RawNetwork
        Nodes are keyed by the junctions' ids, parallel edges by SUMO's edge id. An edge has the attributes
        ``sumo_edge``, its id in SUMO, and ``class`` and ``name``, its edge type and street in SUMO, if it has them.

    Raises
    ------
    InputError
        If a file cannot be read, is not a SUMO network, has an edge, a junction or a program that cannot be used, or
        has no edge for the vehicle classes.
    """
    path = Path(path)
    named = vehicle_class or "passenger"
    classes = [named] if isinstance(named, str) else named
    for name in classes:
        if name not in (known := vehicle_classes()):
            words = f"vehicle_class must be one of SUMO's, {', '.join(sorted(known))}{suggestion(name, known)}"
            raise InputError([f"{words}; got {name!r}"])
    net, internal = read_net_file(path, None if additional is None else Path(additional))
    location = net._location  # noqa: SLF001 - sumolib gives its parts, but not whether there is a projection
    frame = NetFrame.from_location(location, anchor=anchor, what=str(path))
    edges = net.getEdges()
    usable = [edge for edge in edges if usable_lanes(edge, classes)]
    loops = [edge.getID() for edge in usable if edge.getFromNode() is edge.getToNode()]
    links = [edge for edge in usable if edge.getFromNode() is not edge.getToNode()]
    wanted = " or ".join(map(repr, classes))
    if not links:
        types = ", ".join(sorted({name for edge in edges for name in _few_classes(edge)})) or "no edge at all"
        rule = f"of its {counted(len(edges), 'edge')}, none has a lane for class {wanted}"
        raise InputError([f"{path}: the road network is empty: {rule}; its lanes allow {types}"])
    remarks = []
    if len(usable) < len(edges):
        closed = f"left out {len(edges) - len(usable):,} of {counted(len(edges), 'edge')}"
        remarks.append(f"{closed}, which have no lane for vehicle class {wanted}")
    if loops:
        listed = ", ".join(loops[:SHOWN]) + (" …" if len(loops) > SHOWN else "")
        remarks.append(f"left out {counted(len(loops), 'edge')} from a junction to itself: {listed}")
    if location.get("projParameter", "!").strip() in NOWHERE:
        remarks.append(f"it states no location; it was taken as {frame.crs.name}")
    ends = {node.getID() for edge in links for node in (edge.getFromNode(), edge.getToNode())}
    nodes = [node for node in net.getNodes() if node.getID() in ends]
    rows = {node.getID(): row for row, node in enumerate(nodes)}
    link_table = _link_table(links, rows, frame, classes)
    movements, closed_turns, turns = movements_of(links, link_table, classes, rows, internal)
    if closed_turns:
        remarks.append(
            f"the file does not connect {closed_turns:,} of {counted(turns, 'turn')} from link to link, and no "
            "route has such a turn"
        )
    return RawNetwork(
        nodes=_node_table(nodes, frame),
        links=link_table,
        movements=movements,
        signals=signals_of(net, str(path if additional is None else additional)),
        crs=frame.crs,
        file=path.name,
        defaults=Defaults(capacity_vph=capacity_vph),
        keep=keep,
        driving_side="left" if internal.left_hand else "right",
        node_rows=len(net.getNodes()),
        link_rows=len(edges),
        remarks=[f"{path.name}: {remark}" for remark in remarks],
    )


def _node_table(nodes: list[Any], frame: NetFrame) -> pd.DataFrame:
    """Return the junctions in the order of the file."""
    xy = frame.to_city([node.getCoord()[:2] for node in nodes])
    return pd.DataFrame({"node": column_of([node.getID() for node in nodes]), "x": xy[:, 0], "y": xy[:, 1]})


def _link_table(links: list[Any], rows: Mapping[str, int], frame: NetFrame, classes: Sequence[str]) -> pd.DataFrame:
    """Return the edges of sumolib, by the lanes that one of the vehicle classes may use."""
    lanes = [usable_lanes(edge, classes) for edge in links]
    shapes = [[point[:2] for point in edge.getShape()] for edge in links]
    names = [edge.getID() for edge in links]
    return pd.DataFrame(
        {
            "from": [rows[edge.getFromNode().getID()] for edge in links],
            "to": [rows[edge.getToNode().getID()] for edge in links],
            "key": column_of(names),
            "length": [edge.getLength() for edge in links],
            "speed": [max(lane.getSpeed() for lane in usable) for usable in lanes],
            "lanes": [len(usable) for usable in lanes],
            "sumo_edge": column_of(names),
            "class": column_of([edge.getType() or None for edge in links]),
            "name": column_of([edge.getName() or None for edge in links]),
            "shape": column_of([shapely.LineString(frame.to_city(line)) if len(line) > 1 else None for line in shapes]),
        }
    )


def _few_classes(edge: Any) -> set[str]:
    """Return the vehicle classes of an edge's lanes, or "others" if they are too many to be named."""
    allowed: set[str] = set().union(*(lane.getPermissions() for lane in edge.getLanes()))
    return allowed if len(allowed) <= 4 else {"others"}


def read_net_file(path: Path, additional: Path | None = None) -> tuple[Any, InternalLanes]:
    """Read a SUMO network file.

    Parameters
    ----------
    path
        A file ``net.xml``, plain or gzipped.
    additional
        An additional file with programs of signals, which replace the network's programs.

    Returns
    -------
    net : sumolib.net.Net
        The network, checked, without internal edges, with turns, right of way, and for each signal the program loaded
        last.
    internal : InternalLanes
        The lanes within its junctions.

    Raises
    ------
    InputError
        If a file cannot be read, is not a SUMO network, or contains data that cannot be used.
    """
    reader = import_sumolib().net.NetReader(withLatestPrograms=True)
    reader._currentProgram = None  # noqa: SLF001 - sumolib reads it before it sets it
    internal = InternalLanes()
    _read_elements(reader, path, root="net", internal=internal)
    net = reader.getNet()
    if faults := [f"{path}: {fault}" for edge in net.getEdges() for fault in _faults(edge)]:
        raise InputError(faults)
    if additional is not None:
        known = {signal.getID() for signal in net.getTrafficLights()}
        _read_elements(reader, additional, only=("tlLogic", "phase"))
        if unknown := [signal.getID() for signal in net.getTrafficLights() if signal.getID() not in known]:
            rule = f"a program must be for a signal of {path}"
            raise InputError([f"{additional}: tlLogic {signal!r}: {rule}" for signal in unknown[:SHOWN]])
    return net, internal


def _read_elements(
    reader: Any,
    path: Path,
    *,
    root: str | None = None,
    only: tuple[str, ...] | None = None,
    internal: InternalLanes | None = None,
) -> None:
    """Give the elements of a file to sumolib, all or those with some names, and collect internal lanes."""
    defined: dict[tuple[str, str | None], int] = {}
    for name, attributes, line in elements_of(path, root=root):
        if only is not None and name not in only:
            continue
        fault = None
        try:
            if attributes is None:
                reader.endElement(name)
                continue
            reader.startElement(name, attributes)
            if internal is not None:
                internal.add(name, attributes)
        except KeyError as error:
            fault = f"<{name}> cannot be used: it lacks, or nothing has the name, {error.args[0]!r}"
        except (ValueError, OverflowError, IndexError, AttributeError, TypeError) as error:
            fault = f"<{name}> cannot be used: {error}"
        element = (name, attributes.get("id") if attributes else None)
        if fault is None and name in ("edge", "junction") and defined.setdefault(element, line) != line:
            fault = f"{name} {element[1]!r} is defined twice, first in line {defined[element]}"
        if fault is not None:
            raise InputError([f"{path}: line {line}: {fault}"])


def _faults(edge: Any) -> Iterator[str]:
    """Yield the faults of an edge that sumolib accepts."""
    name = f"edge {edge.getID()!r}"
    for end, node in (("from", edge.getFromNode()), ("to", edge.getToNode())):
        if node is None or node._coord is None:  # noqa: SLF001 - getCoord() needs one
            got = "none" if node is None else repr(node.getID())
            yield f"{name}: {end} must be a junction of the file, got {got}"
        elif not np.isfinite(node.getCoord()).all():
            yield f"{name}: junction {node.getID()!r} must have finite coordinates, got {node.getCoord()}"
    if not edge.getLanes():
        yield f"{name}: it has no lanes"
    for lane in edge.getLanes():
        for what, value in (("length", lane.getLength()), ("speed", lane.getSpeed())):
            if not 0 < value < np.inf:
                yield f"{name}: {what} of a lane must be above 0, got {value:g}"
        shape = lane.getShape()
        if len(shape) < 2 or not np.isfinite(shape).all():
            yield f"{name}: the shape of a lane must have two points or more, finite, got {len(shape)}"


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
    return frozenset((lane.SUMO_VEHICLE_CLASSES - lane.SUMO_VEHICLE_CLASSES_DEPRECATED) | {IGNORING})
