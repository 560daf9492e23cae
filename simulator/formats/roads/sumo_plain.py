"""Writer of road networks as SUMO's plain XML, for netconvert."""

from __future__ import annotations

import re
import warnings
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import shapely

from simulator.files.atomic_write import export_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    import pyproj

    from simulator.roads.network import RoadNetwork

NAME = "roads"
_YELLOW_S = 3.0
_NOT_IN_ID = re.compile(r"[\s|\\'\";,<>&:!]+")


def write_sumo_plain(network: RoadNetwork, folder: str | Path, *, overwrite: bool = False) -> None:
    """Write ``roads.{nod,edg,typ}.xml``, ``roads.{con,tll}.xml`` of movements and signals, and ``roads.netccfg``.

    Either all of them are written, or nothing. The last two are left out where the network has none.

    ``netconvert -c roads.netccfg`` builds ``roads.net.xml`` from them. The id of an edge is the number of its link. An
    edge keeps its length, lanes, speed and shape; its type is its class of road. SUMO has no attribute for the capacity
    of a lane, which in SUMO results from vehicles, junctions and signals; it is written as a parameter of the edge.
    Movements become connections, and nodes at which they have a signal ``traffic_light`` junctions. A signal gets the
    program of its green windows if the lanes and the group of each of its movements are known; netconvert guesses other
    programs, and right of way. After green, up to 3 s until the next green of the group are yellow.

    Parameters
    ----------
    network
        Any network.
    folder
        The target folder; created if it does not exist.
    overwrite
        Whether existing files with these names are replaced.

    Raises
    ------
    InputError
        If the folder already contains files, or cannot be written to.
    """
    ids = dict(zip(network.node_names, _ids(network.node_names), strict=True))
    edges = sorted(network.graph.edges(keys=True, data=True), key=lambda edge: edge[3]["link"])
    kinds = dict.fromkeys(data.get("class") for *_, data in edges)
    types = {kind: _NOT_IN_ID.sub("_", str(kind)) or "_" for kind in kinds if kind is not None}
    classes = ET.Element("types")
    for kind in dict.fromkeys(types.values()):
        ET.SubElement(classes, "type", id=kind)
    signals = _signal_of_nodes(network)
    files = {"nod": _nodes(network, ids, signals), "edg": _edges(edges, ids, types), "typ": classes}
    if not network.movements.empty:
        files["con"] = _connections(network)
    programs = _programs(network, signals)
    if len(programs):
        files["tll"] = programs
    config = ET.Element("configuration")
    inputs = ET.SubElement(config, "input")
    options = {"nod": "node-files", "edg": "edge-files", "typ": "type-files", "con": "connection-files"}
    options["tll"] = "tllogic-files"
    for kind in files:
        ET.SubElement(inputs, options[kind], value=f"{NAME}.{kind}.xml")
    ET.SubElement(ET.SubElement(config, "output"), "output-file", value=f"{NAME}.net.xml")
    if network.side.left:
        ET.SubElement(ET.SubElement(config, "processing"), "lefthand", value="true")

    def fill(staging: Path) -> None:
        for kind, root in files.items():
            _write(root, staging / f"{NAME}.{kind}.xml")
        _write(config, staging / f"{NAME}.netccfg")

    export_folder(Path(folder), fill, overwrite=overwrite)


def _nodes(network: RoadNetwork, ids: dict[Any, str], signals: Mapping[int, str]) -> ET.Element:
    root = ET.Element("nodes")
    west, south, east, north = network.bounds
    corners = network.to_wgs84([(west, south), (east, north)])
    projection = _proj_string(network.crs)
    if projection is not None:
        ET.SubElement(
            root,
            "location",
            netOffset="0.00,0.00",
            convBoundary=f"{west:.2f},{south:.2f},{east:.2f},{north:.2f}",
            origBoundary=",".join(f"{value:.6f}" for value in corners.ravel()),
            projParameter=projection,
        )
    for node, (name, (x, y)) in enumerate(zip(network.node_names, network.node_xy.tolist(), strict=True)):
        signal = {"type": "traffic_light", "tl": signals[node]} if node in signals else {}
        ET.SubElement(root, "node", {"id": ids[name], "x": repr(x), "y": repr(y)} | signal)
    return root


def _edges(edges: Sequence[Any], ids: dict[Any, str], types: dict[Any, str]) -> ET.Element:
    root = ET.Element("edges")
    for start, end, _, data in edges:
        attributes = {
            "id": str(data["link"]),
            "from": ids[start],
            "to": ids[end],
            "numLanes": str(int(data["lanes"])),
            "speed": repr(float(data["speed_mps"])),
            "length": repr(float(data["length_m"])),
        }
        if data.get("class") is not None:
            attributes["type"] = types[data["class"]]
        if data.get("geometry") is not None:
            points = shapely.get_coordinates(data["geometry"]).tolist()
            attributes["shape"] = " ".join(f"{x!r},{y!r}" for x, y in points)
        edge = ET.SubElement(root, "edge", attributes)
        ET.SubElement(edge, "param", key="capacity_vph", value=repr(float(data["capacity_vph"])))
    return root


def _connections(network: RoadNetwork) -> ET.Element:
    """Return a connection for each movement, and a deletion for each turn that is not allowed."""
    root = ET.Element("connections")
    columns = (network.movements[name] for name in ("from_link", "to_link", "allowed", "from_lane", "to_lane"))
    for start, end, allowed, *lanes in dict.fromkeys(zip(*columns, strict=True)):
        stated = dict(zip(("fromLane", "toLane"), map(str, lanes), strict=True)) if min(lanes) >= 0 else {}
        ends = {"from": str(start), "to": str(end)}
        ET.SubElement(root, "connection" if allowed else "delete", ends | stated)
    return root


def _signal_of_nodes(network: RoadNetwork) -> dict[int, str]:
    """Return the id of the signal of each node that has one; of several, SUMO controls a node by one."""
    controlled = network.movements.dropna(subset="signal").drop_duplicates("node")
    names = controlled["signal"].tolist()
    ids = dict(zip(dict.fromkeys(names), _ids([*dict.fromkeys(names)]), strict=True))
    return {node: ids[name] for node, name in zip(controlled["node"].tolist(), names, strict=True)}


def _programs(network: RoadNetwork, signals: Mapping[int, str]) -> ET.Element:
    """Return the programs of signals of which all is known, and the connections that they control."""
    root = ET.Element("tlLogics")
    movements = network.movements[network.movements["allowed"]].dropna(subset="signal")
    windows = dict(list(network.signals.groupby("signal", sort=False)))
    controlled = []
    for signal, rows in movements.groupby("signal", sort=False):
        ids = {signals[node] for node in rows["node"].tolist()}
        unknown = rows[["from_lane", "to_lane", "group"]].lt(0).any(axis=None)
        if signal not in windows or unknown or len(ids) > 1:
            continue
        (name,) = ids
        controlled.append((name, rows))
        root.append(_program(name, windows[signal], int(rows["group"].max()) + 1))
    for name, rows in controlled:
        for row in rows.itertuples(index=False):
            ends = {"from": str(row.from_link), "to": str(row.to_link)}
            lanes = {"fromLane": str(row.from_lane), "toLane": str(row.to_lane)}
            ET.SubElement(root, "connection", ends | lanes, tl=name, linkIndex=str(row.group))
    return root


def _program(name: str, windows: pd.DataFrame, groups: int) -> ET.Element:
    """Return the phases between which no group's right changes."""
    first = windows.iloc[0]
    cycle_s, offset_s = float(first["cycle_s"]), float(first["offset_s"])
    kind = "actuated" if first["actuated"] else "static"
    logic = ET.Element("tlLogic", id=name, type=kind, programID="0", offset=repr(offset_s))
    shown = [
        (group, begin, end, "G" if protected else "g")
        for group, begin, end, protected in windows[["group", "from_s", "to_s", "protected"]].itertuples(index=False)
    ]
    starts: dict[int, list[float]] = {}
    for group, begin, *_ in shown:
        starts.setdefault(group, []).append(begin)
    for group, _, end, _ in list(shown):
        yellow_s = min(_YELLOW_S, *((begin - end) % cycle_s for begin in starts[group]))
        begin = end % cycle_s
        shown.append((group, begin, min(begin + yellow_s, cycle_s), "y"))
        shown.append((group, 0.0, begin + yellow_s - cycle_s, "y"))
    changes = {time for _, begin, end, _ in shown for time in (begin, end) if 0 < time < cycle_s}
    times = [0.0, *sorted(changes), cycle_s]
    for begin, end in pairwise(times):
        state = ["r"] * groups
        for group, first, last, letter in shown:
            if first <= begin < last:
                state[group] = letter
        ET.SubElement(logic, "phase", duration=repr(float(end - begin)), state="".join(state))
    return logic


def _ids(names: Sequence[object]) -> list[str]:
    """Return the nodes' names as ids if SUMO accepts them, else ids made from their numbers."""
    texts = ["_".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in names]
    accepted = all(text and text.isascii() and not _NOT_IN_ID.search(text) for text in texts)
    return texts if accepted and len(set(texts)) == len(texts) else [f"n{index}" for index in range(len(texts))]


def _proj_string(crs: pyproj.CRS) -> str | None:
    """Return a coordinate system in the notation of SUMO; None if that is not possible."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyproj warns that such a string does not describe the system completely
        return crs.to_proj4() or None


def _write(root: ET.Element, file: Path) -> None:
    ET.indent(root)
    ET.ElementTree(root).write(file, encoding="UTF-8", xml_declaration=True)
