"""Ways of an OpenStreetMap XML file.

OSMnx reads these files too, but keeps every building in memory, takes ids and coordinates on trust and names no line;
its graphs and ours are the same (the tests hold them against each other).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from simulator.roads.errors import RoadsError
from simulator.roads.osm.tags import WAY_TAGS, open_to_cars
from simulator.roads.osm.ways import OsmWay, OsmWays
from simulator.roads.xml_source import XmlElements, parse_xml

if TYPE_CHECKING:
    from pathlib import Path
    from xml.sax.xmlreader import AttributesImpl

MOST_FAULTS = 20
"""Reading stops at so many."""


class _OsmFile(XmlElements):
    """Collects nodes and the ways that are open to cars."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.nodes: dict[int, tuple[float, float]] = {}
        self.ways: dict[int, OsmWay | None] = {}
        self.faults: list[str] = []
        self._depth = 0
        self._way: int | None = None
        self._tags: dict[str, str] = {}
        self._refs: list[int] = []

    def startElement(self, name: str, attrs: AttributesImpl) -> None:  # noqa: N802 - the parser's own name
        if self._depth == 0 and name != "osm":
            rule = f"an OpenStreetMap file begins with <osm>, this one with <{name}>"
            raise RoadsError([f"{self.path}: line {self.line}: {rule}"])
        self._depth += 1
        if attrs.get("action") == "delete" or attrs.get("visible") == "false":
            return
        if name == "node":
            self._node(attrs)
        elif name == "way":
            self._way = self._id(attrs, "way", "id")
            if self._way in self.ways:
                self._fault(f"way {self._way} is there twice")
            self._tags, self._refs = {}, []
        elif self._way is not None and name == "nd":
            ref = self._id(attrs, "nd", "ref")
            if ref is not None:
                self._refs.append(ref)
        elif self._way is not None and name == "tag" and attrs.get("k") in WAY_TAGS:
            self._tags[attrs["k"]] = attrs.get("v", "")

    def endElement(self, name: str) -> None:  # noqa: N802 - the parser's own name
        self._depth -= 1
        if name == "way" and self._way is not None:
            way = OsmWay(self._way, self._tags, tuple(self._refs)) if open_to_cars(self._tags) else None
            self.ways[self._way] = way
            self._way = None

    def _node(self, attrs: AttributesImpl) -> None:
        node = self._id(attrs, "node", "id")
        lon, lat = (self._degrees(attrs, name, limit) for name, limit in (("lon", 180.0), ("lat", 90.0)))
        if node is None or lon is None or lat is None:
            return
        if node in self.nodes:
            self._fault(f"node {node} is there twice")
        self.nodes[node] = (lon, lat)

    def _id(self, attrs: AttributesImpl, element: str, name: str) -> int | None:
        said = attrs.get(name)
        try:
            return int(said or "")
        except ValueError:
            self._fault(f"{name} of <{element}> must be a whole number, got {said!r}")
            return None

    def _degrees(self, attrs: AttributesImpl, name: str, limit: float) -> float | None:
        said = attrs.get(name)
        try:
            value = float(said or "")
        except ValueError:
            value = math.nan
        if abs(value) <= limit:
            return value
        swapped = " (are lat and lon swapped?)" if name == "lat" and abs(value) <= 180 else ""
        self._fault(f"{name} of <node> must be degrees from {-limit:g} to {limit:g}, got {said!r}{swapped}")
        return None

    def _fault(self, rule: str) -> None:
        self.faults.append(f"{self.path}: line {self.line}: {rule}")
        if len(self.faults) == MOST_FAULTS:
            raise RoadsError([*self.faults, f"{self.path}: and perhaps more: reading stopped here"])


def read_xml_ways(path: Path) -> OsmWays:
    """Read the ways of an OpenStreetMap XML file that are open to cars.

    Parameters
    ----------
    path
        ``.osm``, ``.osm.bz2`` or ``.osm.gz``.

    Returns
    -------
    OsmWays
        Elements marked as deleted left out.

    Raises
    ------
    RoadsError
        If the file cannot be read or is no such file; if an id is there twice or no number, or a coordinate is out
        of range: up to 20 of these, by line.
    """
    file = _OsmFile(path)
    parse_xml(path, file)
    if file.faults:
        raise RoadsError(file.faults)
    ways = [way for way in file.ways.values() if way is not None]
    return OsmWays(file.nodes, ways, others=len(file.ways) - len(ways))
