"""Ways of OpenStreetMap that are open to cars, the nodes along them, water and places, read by pyosmium.

Files are XML or PBF. They are read twice, so that neither the order of their elements matters nor nodes that no street
has take memory. Coordinates are libosmium's, multiples of 1e-7 degrees (1 cm), as in OpenStreetMap itself.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import shapely

from simulator.files.compressed_io import chunks_of
from simulator.files.errors import InputError
from simulator.files.extras import import_extra
from simulator.files.xml_elements import elements_of
from simulator.formats.osm.movements import CONTROLS, Restriction
from simulator.formats.osm_tags import WAY_TAGS, noted, open_to_cars
from simulator.roads.surroundings import PLACES, SURROUNDING_TAGS, WATER, is_water

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    Tags = Mapping[str, str]


@dataclass(frozen=True, eq=False)
class OsmWay:
    """One way that is open to cars.

    Parameters
    ----------
    way
        OpenStreetMap's id.
    tags
        Its tags, as far as they are in :data:`~simulator.formats.osm_tags.WAY_TAGS`.
    nodes
        Node ids along the way, in its order.
    """

    way: int
    tags: Tags
    nodes: tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class OsmWays:
    """The ways of a file that are open to cars, and the positions of the nodes along them.

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
    controls
        Node id to the tags of a signal or a sign on a street.
    restrictions
        Turn restrictions for cars.
    noted
        What was left out of ways, or not understood, of :func:`~simulator.formats.osm_tags.noted`.
    """

    nodes: dict[int, tuple[float, float]]
    ways: list[OsmWay]
    others: int
    features: list[tuple[Tags, shapely.Geometry]] = field(default_factory=list)
    controls: dict[int, Tags] = field(default_factory=dict)
    restrictions: list[Restriction] = field(default_factory=list)
    noted: Counter[tuple[str, str]] = field(default_factory=Counter)
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

_DELETED = re.compile(rb"\baction\s{0,9}=\s{0,9}[\"']delete")
_LONGEST_MARK = 40
_TAGS = WAY_TAGS | SURROUNDING_TAGS | {"building"}


def read_ways(path: Path) -> OsmWays:
    """Read the ways of an OpenStreetMap file that are open to cars.

    Parameters
    ----------
    path
        A file ``.osm.pbf``, or XML of any other name, plain or compressed.

    Returns
    -------
    OsmWays
        The ways and nodes, without elements marked as deleted (by ``visible``, or by an editor's ``action``).

    Raises
    ------
    InputError
        If the file is damaged or not one of OpenStreetMap, or is one of changes; or if an id occurs twice, or a
        coordinate of a street or a place is missing or out of range: up to 20 of these faults.
    """
    osmium = import_extra("osmium", needed="reading OpenStreetMap needs osmium", extra="osm")
    pbf = path.suffix.lower() == ".pbf"
    try:
        with TemporaryDirectory() as folder:
            file, deleted = (path, set()) if pbf else _plain_xml(path, Path(folder) / "map.osm")
            return _OsmFile(osmium, path, file, deleted).read()
    except FileNotFoundError:
        raise InputError([f"{path}: no such file"]) from None
    except InputError:
        raise
    except (OSError, RuntimeError, ValueError, osmium.InvalidLocationError) as error:
        raise InputError([f"{path}: cannot be read as OpenStreetMap's {'PBF' if pbf else 'XML'}: {error}"]) from None


def _plain_xml(path: Path, unpacked: Path) -> tuple[Path, set[tuple[str, int]]]:
    """Return a plain file of some XML, and the letter and id of the elements that an editor has marked as deleted.

    A compressed file is unpacked: libosmium does not read several short streams in one file.
    """
    chunks = chunks_of(path)
    begin = next(chunks, b"")
    marked, end = False, b""
    with path.open("rb") as raw, unpacked.open("wb") as file:
        packed = raw.read(len(begin)) != begin
        for chunk in chain((begin,), chunks):
            marked = marked or _DELETED.search(end + chunk) is not None
            end = chunk[-_LONGEST_MARK:]
            if packed:
                file.write(chunk)
    deleted = {
        (name[0], int(attributes["id"]))
        for name, attributes, _ in (elements_of(path) if marked else ())
        if attributes is not None and attributes.get("action") == "delete"
    }
    return unpacked if packed else path, deleted


def _tags_of(element: Any) -> dict[str, str]:
    """Return the tags that are read; of a building that is neither a street nor water, as most ways are, only that."""
    if "building" in element.tags and not any(key in element.tags for key in ("highway", *WATER)):
        return {"building": ""}
    return {tag.k: tag.v for tag in element.tags if tag.k in _TAGS}


class _OsmFile:
    """Collects the ways that are open to cars, water and places in a first reading, and their nodes in a second."""

    def __init__(self, osmium: Any, path: Path, plain: Path, deleted: set[tuple[str, int]]) -> None:
        self._osmium, self._path, self._plain, self._deleted = osmium, path, plain, deleted
        self._ways: dict[int, OsmWay | None] = {}
        self._lines: dict[int, list[int]] = {}  # nodes of the ways that may be part of an area of water
        self._found: list[tuple[Tags, Any]] = []
        self._nodes: dict[int, tuple[float, float]] = {}
        self._controls: dict[int, Tags] = {}
        self._restrictions: list[Restriction] = []
        self._noted: Counter[tuple[str, str]] = Counter()
        self._faults: list[str] = []

    def read(self) -> OsmWays:
        if self._plain.stat().st_size == 0:
            raise InputError([f"{self._path}: it is empty"])
        kinds, filters = self._osmium.osm, self._osmium.filter
        places = filters.KeyFilter("place").enable_for(kinds.NODE)
        relations = filters.TagFilter(("type", "multipolygon"), ("type", "restriction")).enable_for(kinds.RELATION)
        for element in self._elements(kinds.NODE | kinds.WAY | kinds.RELATION, places, relations):
            tags = _tags_of(element)
            if element.is_way():
                self._add_way(element, tags)
            elif element.is_node() and tags.get("place") in PLACES:
                self._found.append((tags, [("", [element.id])]))
            elif element.is_relation() and element.tags["type"] == "restriction":
                restriction = Restriction.from_relation(element)
                self._restrictions += [] if restriction is None else [restriction]
            elif element.is_relation() and is_water(tags):
                members = [(member.role, member.ref) for member in element.members if member.type == "w"]
                self._found.append((tags, members))
        self._found = [
            (tags, [(role, self._lines.get(line, []) if isinstance(line, int) else line) for role, line in lines])
            for tags, lines in self._found
        ]
        self._lines.clear()
        ways = [way for way in self._ways.values() if way is not None]
        wanted = {node for way in ways for node in way.nodes}
        wanted.update(node for _, lines in self._found for _, line in lines for node in line)
        for node in self._elements(kinds.NODE, wanted=wanted):
            self._add_node(node)
        if self._faults:
            raise InputError(self._faults)
        others, features = len(self._ways) - len(ways), list(self._features())
        return OsmWays(self._nodes, ways, others, features, self._controls, self._restrictions, self._noted)

    def _elements(self, kinds: Any, *filters: Any, wanted: Container[int] | None = None) -> Iterator[Any]:
        """Yield the elements of some kinds that are not deleted; only the wanted elements if `wanted` is given."""
        form = "pbf" if self._plain.suffix.lower() == ".pbf" else "osm"
        elements = self._osmium.FileProcessor(self._osmium.io.File(str(self._plain), form), kinds)
        if elements.header.has_multiple_object_versions:
            raise InputError([f"{self._path}: must be a map, and is a file of changes or of history"])
        for condition in filters:
            elements.with_filter(condition)
        for element in elements:
            if wanted is not None and element.id not in wanted:
                continue
            if element.visible and not (self._deleted and (element.type_str(), element.id) in self._deleted):
                yield element

    def _add_way(self, way: Any, tags: Tags) -> None:
        if way.id in self._ways:
            self._fault(f"way {way.id} occurs twice")
        fit, water = open_to_cars(tags), is_water(tags)
        self._noted.update(noted(tags))
        line = not tags.keys() & {"building", "highway"}  # perhaps of an area of water
        nodes = [node.ref for node in way.nodes] if fit or water or line else []
        self._ways[way.id] = OsmWay(way.id, tags, tuple(nodes)) if fit else None
        if line:
            self._lines[way.id] = nodes
        if water:
            self._found.append((tags, [("outer", nodes)]))

    def _add_node(self, node: Any) -> None:
        place = node.location
        if node.id in self._nodes:
            self._fault(f"node {node.id} occurs twice")
        elif place.valid():
            self._nodes[node.id] = (place.lon, place.lat)
            if node.tags.get("highway") in CONTROLS:
                self._controls[node.id] = {tag.k: tag.v for tag in node.tags}
        else:
            lon, lat = place.lon_without_check(), place.lat_without_check()
            swapped = " (are lat and lon swapped?)" if 90 < abs(lat) <= 180 else ""
            rule = f"lon must be degrees from -180 to 180 and lat from -90 to 90, got {lon:g} and {lat:g}{swapped}"
            self._fault(f"node {node.id}: {rule}")

    def _fault(self, rule: str) -> None:
        self._faults.append(f"{self._path}: {rule}")
        if len(self._faults) == MOST_FAULTS:
            raise InputError([*self._faults, f"{self._path}: and perhaps more: reading stopped here"])

    def _features(self) -> Iterator[tuple[Tags, shapely.Geometry]]:
        """Yield tags and shape of every place and water, as far as the file contains the parts."""
        for tags, lines in self._found:
            outer: list[shapely.LineString] = []
            inner: list[shapely.LineString] = []
            for role, nodes in lines:
                line = [self._nodes[node] for node in nodes if node in self._nodes]
                if role == "" and line and "place" in tags and len(nodes) == 1:
                    yield tags, shapely.Point(line[0])
                elif len(line) > 1:
                    (inner if role == "inner" else outer).append(shapely.LineString(line))
            if len(outer) == 1 and outer[0].is_closed and not inner and len(outer[0].coords) > 3:
                area: shapely.Geometry = shapely.Polygon(outer[0])
            else:
                filled, holes = (shapely.get_parts(shapely.polygonize(lines)) for lines in (outer, inner))
                area = shapely.difference(shapely.union_all(filled), shapely.union_all(holes))
            if not shapely.is_empty(area) and tags.get("natural") != "coastline":
                yield tags, area
            elif outer and "type" not in tags:  # a way
                yield tags, outer[0]
