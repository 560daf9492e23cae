"""OpenStreetMap XML files: ways and the nodes along them.

OSMnx reads these files too, but keeps every building in memory, does not check ids and coordinates, and does not name
the line of an error. The tests check that its graphs are equal to those of this module.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simulator.files.errors import InputError
from simulator.files.xml_elements import elements_of
from simulator.roads.osm.tags import WAY_TAGS, open_to_cars

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
        Its tags, as far as they are in :data:`~simulator.roads.osm.tags.WAY_TAGS`.
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
    """

    nodes: dict[int, tuple[float, float]]
    ways: list[OsmWay]
    others: int
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


class _OsmFile:
    """Collects nodes and the ways that are open to cars."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.nodes: dict[int, tuple[float, float]] = {}
        self.ways: dict[int, OsmWay | None] = {}
        self.faults: list[str] = []
        self._line = 1
        self._root = ""
        self._way: int | None = None
        self._tags: dict[str, str] = {}
        self._refs: list[int] = []

    def read(self) -> None:
        for name, attributes, line in elements_of(self.path):
            self._line = line
            if attributes is None:
                self._over(name)
            else:
                self._begins(name, attributes)

    def _begins(self, name: str, attrs: Mapping[str, str]) -> None:
        if not self._root and name != "osm":
            rule = f"an OpenStreetMap file begins with <osm>, this one with <{name}>"
            raise InputError([f"{self.path}: line {self._line}: {rule}"])
        self._root = name
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

    def _over(self, name: str) -> None:
        if name == "way" and self._way is not None:
            way = OsmWay(self._way, self._tags, tuple(self._refs)) if open_to_cars(self._tags) else None
            self.ways[self._way] = way
            self._way = None

    def _node(self, attrs: Mapping[str, str]) -> None:
        node = self._id(attrs, "node", "id")
        lon, lat = (self._degrees(attrs, name, limit) for name, limit in (("lon", 180.0), ("lat", 90.0)))
        if node is None or lon is None or lat is None:
            return
        if node in self.nodes:
            self._fault(f"node {node} is there twice")
        self.nodes[node] = (lon, lat)

    def _id(self, attrs: Mapping[str, str], element: str, name: str) -> int | None:
        said = attrs.get(name)
        try:
            return int(said or "")
        except ValueError:
            self._fault(f"{name} of <{element}> must be a whole number, got {said!r}")
            return None

    def _degrees(self, attrs: Mapping[str, str], name: str, limit: float) -> float | None:
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
    return OsmWays(file.nodes, ways, others=len(file.ways) - len(ways))
