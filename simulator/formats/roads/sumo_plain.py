"""Writer of road networks as SUMO's plain XML, for netconvert."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import shapely

from simulator.files.atomic_write import export_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyproj

    from simulator.roads.network import RoadNetwork

NAME = "roads"
_NOT_IN_ID = re.compile(r"[\s|\\'\";,<>&:!]+")


def write_sumo_plain(network: RoadNetwork, folder: str | Path, *, overwrite: bool = False) -> None:
    """Write ``roads.{nod,edg,typ}.xml``, ``roads.con.xml`` if there are movements, and ``roads.netccfg``, or nothing.

    ``netconvert -c roads.netccfg`` builds ``roads.net.xml`` from them. The id of an edge is the number of its link. An
    edge keeps its length, lanes, speed and shape; its type is its class of road. SUMO has no attribute for the capacity
    of a lane, which in SUMO results from vehicles, junctions and signals; it is written as a parameter of the edge.
    Movements become connections; netconvert guesses right of way and signals.

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
    files = {"nod": _nodes(network, ids), "edg": _edges(edges, ids, types), "typ": classes}
    if not network.movements.empty:
        files["con"] = _connections(network)
    config = ET.Element("configuration")
    inputs = ET.SubElement(config, "input")
    options = {"nod": "node-files", "edg": "edge-files", "typ": "type-files", "con": "connection-files"}
    for kind in files:
        ET.SubElement(inputs, options[kind], value=f"{NAME}.{kind}.xml")
    ET.SubElement(ET.SubElement(config, "output"), "output-file", value=f"{NAME}.net.xml")

    def fill(staging: Path) -> None:
        for kind, root in files.items():
            _write(root, staging / f"{NAME}.{kind}.xml")
        _write(config, staging / f"{NAME}.netccfg")

    export_folder(Path(folder), fill, overwrite=overwrite)


def _nodes(network: RoadNetwork, ids: dict[Any, str]) -> ET.Element:
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
    for name, (x, y) in zip(network.node_names, network.node_xy.tolist(), strict=True):
        ET.SubElement(root, "node", id=ids[name], x=repr(x), y=repr(y))
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
