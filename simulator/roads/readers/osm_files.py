"""Ways of OpenStreetMap that are open to cars, the nodes along them, water and places, and their XML files.

OSMnx reads XML files too, but keeps every building in memory, does not check ids and coordinates, and does not name
the line of an error. The tests check that its graphs are equal to those of this module.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import shapely

from simulator.files.errors import InputError
from simulator.files.xml_elements import elements_of
from simulator.roads.readers.osm_streets import WAY_TAGS, open_to_cars
from simulator.roads.surroundings import PLACES, SURROUNDING_TAGS, is_water

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


@dataclass(frozen=True, eq=False)
class OsmWay:
    """One way that is open to cars.

    Parameters
    ----------
    way
        OpenStreetMap's id.
    tags
        Its tags, as far as they are in :data:`~simulator.roads.readers.osm_streets.WAY_TAGS`.
    nodes
        Node ids along the way, in its order.
    """

    way: int
    tags: Mapping[str, str]
    nodes: tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class OsmWays:
    """The ways of a file that are open to cars, and the positions of its nodes.

    Parameters
    ----------
    nodes
        Node id to longitude and latitude, WGS84 degrees.
    ways
        The ways that are open to cars, in the order of the file.
    others
        Number of all other ways of the file.
    features
        Tags and shape, WGS84, of water and of places, for :func:`~simulator.roads.surroundings.surroundings_of`.
    """

    nodes: dict[int, tuple[float, float]]
    ways: list[OsmWay]
    others: int
    features: list[tuple[Mapping[str, str], shapely.Geometry]] = field(default_factory=list)
    _stands_for: dict[int, int] = field(default_factory=dict)

    def segments(self, way: OsmWay) -> Iterator[tuple[int, int]]:
        """Yield the pairs of successive nodes along a way.

        A way is interrupted at a node that the file does not contain; neighbours merged by `merge_places` count as one
        node.

        Parameters
        ----------
        way
            One of :attr:`ways`.

        Yields
        ------
        tuple of int
            Two node ids, at different positions.
        """
        before = None
        for node in way.nodes:
            here = self._first_at(node) if node in self.nodes else None
            if here is not None and before is not None and here != before:
                yield before, here
            before = here

    def merge_places(self) -> int:
        """Merge neighbouring nodes of a way that have exactly the same position.

        Returns
        -------
        int
            Number of nodes that are replaced by another.
        """
        for way in self.ways:
            for before, here in zip(way.nodes, way.nodes[1:], strict=False):
                if before != here and before in self.nodes and self.nodes[before] == self.nodes.get(here):
                    one, other = sorted((self._first_at(before), self._first_at(here)))
                    if one != other:
                        self._stands_for[other] = one
        return len(self._stands_for)

    def missing(self) -> int:
        """Return the number of nodes that ways name and the file does not contain."""
        return len({node for way in self.ways for node in way.nodes if node not in self.nodes})

    def _first_at(self, node: int) -> int:
        """Return the node that replaces this one, or the node itself."""
        while node in self._stands_for:
            node = self._stands_for[node]
        return node


MOST_FAULTS = 20
"""Reading stops after this number of faults."""


_XML_TAGS = WAY_TAGS | SURROUNDING_TAGS | {"building"}
_ELEMENTS = ("node", "way", "relation")


class _OsmFile:
    """Collects nodes, the ways that are open to cars, water and places."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.nodes: dict[int, tuple[float, float]] = {}
        self.ways: dict[int, OsmWay | None] = {}
        self.faults: list[str] = []
        self._line = 1
        self._kept = False  # whether the element that is being read is not marked as deleted
        self._node: tuple[float, float] | None = None
        self._way: int | None = None
        self._tags: dict[str, str] = {}
        self._refs: list[int] = []
        self._members: list[tuple[str, str]] = []
        self._lines: dict[str, list[int]] = {}  # nodes of the ways that may be part of an area of water
        self._found: list[tuple[Mapping[str, str], Any]] = []

    def read(self) -> None:
        for name, attributes, line in elements_of(self.path, root="osm"):
            self._line = line
            if attributes is not None:
                self._begins(name, attributes)
            elif self._tags and self._kept and name in _ELEMENTS:
                self._found_in(name)
            if attributes is None and name == "way" and self._way is not None:
                fit = open_to_cars(self._tags)
                self.ways[self._way] = OsmWay(self._way, self._tags, tuple(self._refs)) if fit else None
                if not fit and not self._tags.keys() & {"building", "highway"}:
                    self._lines[str(self._way)] = self._refs
                self._way = None

    def _begins(self, name: str, attrs: Mapping[str, str]) -> None:
        if name in _ELEMENTS:
            self._kept = attrs.get("action") != "delete" and attrs.get("visible") != "false"
            self._tags, self._refs, self._members = {}, [], []
        if not self._kept:
            return
        if name == "node":
            self._node = self._place_of_node(attrs)
        elif name == "way":
            self._way = self._id(attrs, "way", "id")
            if self._way in self.ways:
                self._fault(f"way {self._way} occurs twice")
        elif self._way is not None and name == "nd":
            ref = self._id(attrs, "nd", "ref")
            if ref is not None:
                self._refs.append(ref)
        elif name == "tag" and attrs.get("k") in _XML_TAGS:
            self._tags[attrs["k"]] = attrs.get("v", "")
        elif name == "member" and attrs.get("type") == "way":
            self._members.append((attrs.get("role", ""), attrs.get("ref", "")))

    def _found_in(self, element: str) -> None:
        """Keep the element that ends if it is a place or water."""
        if element == "node":
            if self._tags.get("place") in PLACES and self._node is not None:
                self._found.append((self._tags, shapely.Point(self._node)))
        elif element == "way" and is_water(self._tags):
            self._found.append((self._tags, [("outer", self._refs)]))
        elif self._tags.get("type") == "multipolygon" and is_water(self._tags):
            self._found.append((self._tags, self._members))

    def features(self) -> Iterator[tuple[Mapping[str, str], shapely.Geometry]]:
        """Yield tags and shape of every place and water, as far as the file contains the parts."""
        for tags, source in self._found:
            if isinstance(source, shapely.Point):
                yield tags, source
                continue
            outer: list[shapely.LineString] = []
            inner: list[shapely.LineString] = []
            for role, way in source:
                refs = self._lines.get(way, []) if isinstance(way, str) else way
                line = [self.nodes[node] for node in refs if node in self.nodes]
                if len(line) > 1:
                    (inner if role == "inner" else outer).append(shapely.LineString(line))
            filled, holes = (shapely.get_parts(shapely.polygonize(lines)) for lines in (outer, inner))
            area = shapely.difference(shapely.union_all(filled), shapely.union_all(holes))
            if not area.is_empty and tags.get("natural") != "coastline":
                yield tags, area
            elif outer and "type" not in tags:  # a way
                yield tags, outer[0]

    def _place_of_node(self, attrs: Mapping[str, str]) -> tuple[float, float] | None:
        node = self._id(attrs, "node", "id")
        lon, lat = (self._degrees(attrs, name, limit) for name, limit in (("lon", 180.0), ("lat", 90.0)))
        if node is None or lon is None or lat is None:
            return None
        if node in self.nodes:
            self._fault(f"node {node} occurs twice")
        self.nodes[node] = (lon, lat)
        return lon, lat

    def _id(self, attrs: Mapping[str, str], element: str, name: str) -> int | None:
        given = attrs.get(name)
        try:
            return int(given or "")
        except ValueError:
            self._fault(f"{name} of <{element}> must be a whole number, got {given!r}")
            return None

    def _degrees(self, attrs: Mapping[str, str], name: str, limit: float) -> float | None:
        given = attrs.get(name)
        try:
            value = float(given or "")
        except ValueError:
            value = math.nan
        if abs(value) <= limit:
            return value
        swapped = " (are lat and lon swapped?)" if name == "lat" and abs(value) <= 180 else ""
        self._fault(f"{name} of <node> must be degrees from {-limit:g} to {limit:g}, got {given!r}{swapped}")
        return None

    def _fault(self, rule: str) -> None:
        self.faults.append(f"{self.path}: line {self._line}: {rule}")
        if len(self.faults) == MOST_FAULTS:
            raise InputError([*self.faults, f"{self.path}: and perhaps more: reading stopped here"])


def read_xml_ways(path: Path) -> OsmWays:
    """Read the ways of an OpenStreetMap XML file that are open to cars.

    Parameters
    ----------
    path
        A file ``.osm``, ``.osm.bz2`` or ``.osm.gz``.

    Returns
    -------
    OsmWays
        The ways and nodes, without elements marked as deleted.

    Raises
    ------
    InputError
        If the file cannot be read or is not OpenStreetMap XML; or if an id occurs twice or is not a number, or a
        coordinate is out of range: up to 20 of these faults, each with its line.
    """
    file = _OsmFile(path)
    file.read()
    if file.faults:
        raise InputError(file.faults)
    ways = [way for way in file.ways.values() if way is not None]
    return OsmWays(file.nodes, ways, len(file.ways) - len(ways), list(file.features()))
