"""Files of OpenStreetMap, XML and PBF: the ways that are open to cars, the nodes along them, water and places.

OSMnx reads XML files too, but keeps every building in memory, does not check ids and coordinates, and does not name
the line of an error. The tests check that its graphs are equal to those of this module.

A PBF file is read with pyrosm. It is a sequence of blobs: four bytes with the size of a header, the header with the
blob's type and size, the blob with its content raw or compressed. pyrosm decodes in compiled code, so the file is
checked before: it must be complete, within the limits of the format (a header of at most 64 KiB, a blob of at most 32
MiB, compressed or not), and compressed content must match its checksum. See
https://wiki.openstreetmap.org/wiki/PBF_Format.
"""

from __future__ import annotations

import json
import math
import warnings
import zlib
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, BinaryIO

import shapely

from simulator.files.errors import InputError
from simulator.files.extras import import_extra
from simulator.files.messages import counted
from simulator.files.xml_elements import elements_of
from simulator.roads.readers.osm_streets import WAY_TAGS, open_to_cars
from simulator.roads.surroundings import PLACES, SURROUNDING_TAGS, WATER, is_water

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import pandas as pd


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


MOST_HEADER_BYTES = 64 * 2**10
MOST_BLOB_BYTES = 32 * 2**20
MOST_IN_MEMORY_NBYTES = 50 * 10**6
_KNOWN = ("OSMHeader", "OSMData")
_HEADER_TYPE, _HEADER_SIZE = 1, 3
_RAW, _RAW_SIZE, _ZLIB = 1, 2, 3
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def check_pbf(path: Path) -> None:
    """Check that a file is complete and that the sizes it states are correct.

    Parameters
    ----------
    path
        A file ``.osm.pbf``.

    Raises
    ------
    InputError
        If the file does not exist, is empty, truncated or not a PBF file of OpenStreetMap, or if its stated or
        decompressed sizes exceed the limits of the format; it names the blob's number and the byte at which it begins.
    """
    at = blob = 0
    try:
        with path.open("rb") as file:
            while _blob(file, first=blob == 0):
                at, blob = file.tell(), blob + 1
    except InputError as error:
        raise InputError([f"{path}: blob {blob + 1}, at byte {at:,}: {error}"]) from error
    except FileNotFoundError:
        raise InputError([f"{path}: no such file"]) from None
    except OSError as error:
        raise InputError([f"{path}: cannot be read: {error}"]) from error
    if blob == 0:
        raise InputError([f"{path}: the file is empty"])


def _blob(file: BinaryIO, *, first: bool) -> bool:
    """Check the next blob; False at the end of the file."""
    prefix = file.read(4)
    if not prefix:
        return False
    header_bytes = int.from_bytes(prefix, "big")
    if len(prefix) < 4 or header_bytes > MOST_HEADER_BYTES:
        limit = f"a header must have at most {MOST_HEADER_BYTES:,} bytes"
        raise InputError([f"{limit}, but it states {header_bytes:,}: is this a .osm.pbf?"])
    header = dict(_fields(_exactly(file, header_bytes)))
    kind, size = header.get(_HEADER_TYPE), header.get(_HEADER_SIZE)
    if not isinstance(kind, bytes) or not isinstance(size, int):
        raise InputError(["its header lacks a type or a size: is this a .osm.pbf?"])
    name = kind.decode("utf-8", "replace")
    if name not in _KNOWN or (first and name != _KNOWN[0]):
        raise InputError([f"its type must be {_KNOWN[0] if first else ' or '.join(_KNOWN)}, got {name!r}"])
    if size > MOST_BLOB_BYTES:
        raise InputError([f"a blob must have at most {MOST_BLOB_BYTES:,} bytes, but it states {size:,}"])
    content = dict(_fields(_exactly(file, size)))
    packed = content.get(_ZLIB)
    if isinstance(packed, bytes):
        _unpack(packed, content.get(_RAW_SIZE))
    elif not isinstance(content.get(_RAW), bytes):
        raise InputError(["its content must be raw or compressed by zlib"])
    return True


def _exactly(file: BinaryIO, size: int) -> bytes:
    """Read exactly `size` bytes."""
    data = file.read(size)
    if len(data) < size:
        raise InputError([f"the file ends after {len(data):,} of the {size:,} bytes announced"])
    return data


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the number and value of each field of a protocol buffer."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield number, value
            continue
        if kind == _BYTES:
            size, at = _varint(message, at)
        elif kind in {_FIXED64, _FIXED32}:
            size = 8 if kind == _FIXED64 else 4
        else:
            raise InputError([f"it is not a protocol buffer: wire type {kind}"])
        if at + size > len(message):
            raise InputError([f"a field of {size:,} bytes does not fit into the {len(message):,} it is part of"])
        yield number, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Read a whole number of variable length; return it and the position after it."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            raise InputError(["a number is cut short"])
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise InputError(["a number has more than 10 bytes"])


def _unpack(packed: bytes, announced: int | bytes | None) -> None:
    """Decompress, within limits, and check size and checksum."""
    unpacker = zlib.decompressobj()
    try:
        size = len(unpacker.decompress(packed, MOST_BLOB_BYTES + 1))
    except zlib.error as error:
        raise InputError([f"its content cannot be decompressed: {error}"]) from error
    if size > MOST_BLOB_BYTES:
        raise InputError([f"a blob must decompress to at most {MOST_BLOB_BYTES:,} bytes"])
    if not unpacker.eof:
        raise InputError(["its compressed content is cut short"])
    if announced != size:
        raise InputError([f"it decompresses to {size:,} bytes, but it states {announced!r}"])


def read_pbf_ways(path: Path) -> OsmWays:
    """Read the ways of a PBF file that are open to cars.

    Parameters
    ----------
    path
        A file ``.osm.pbf``.

    Returns
    -------
    OsmWays
        The ways of pyrosm's "driving" network that :func:`~simulator.roads.readers.osm_streets.open_to_cars` accepts.

    Raises
    ------
    InputError
        If the file does not exist, is damaged or not a PBF file of OpenStreetMap, or has a coordinate out of range.
    """
    check_pbf(path)
    # Decoded once for both readings, unless that takes much memory.
    engine = "in_memory" if path.stat().st_size < MOST_IN_MEMORY_NBYTES else "out_of_core"
    pyrosm = import_extra("pyrosm", needed="reading .osm.pbf needs pyrosm", extra="osm")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyrosm warns if it finds no ways, which the caller reports itself
        try:
            osm = pyrosm.OSM(str(path), progress=False, engine=engine)
            read = osm.get_network(network_type="driving", nodes=True)
            found = osm.get_data_by_custom_criteria(
                custom_filter={**{key: list(values) for key, values in WATER.items()}, "place": list(PLACES)},
                tags_as_columns=sorted(SURROUNDING_TAGS - {"type"}),
            )
        except Exception as error:  # its decoder may raise any exception
            given = f"{type(error).__name__}: {error}"
            raise InputError([f"{path}: pyrosm cannot read it: {given}"]) from error
    nodes, edges = read or (None, None)
    if nodes is None or edges is None or len(edges) == 0:
        return OsmWays({}, [], others=0)
    for name, limit in (("lon", 180.0), ("lat", 90.0)):
        outside = nodes[~(nodes[name].abs() <= limit)]
        if len(outside):
            node, value = outside[["id", name]].iloc[0].tolist()
            rule = f"{name} must be degrees from {-limit:g} to {limit:g}, got {value:g}"
            raise InputError([f"{path}: node {int(node)}: {rule} ({counted(len(outside), 'such node')})"])
    places = dict(
        zip(nodes["id"].tolist(), zip(nodes["lon"].tolist(), nodes["lat"].tolist(), strict=True), strict=True)
    )
    ways = list(_ways(edges))
    kept = [way for way in ways if open_to_cars(way.tags)]
    others = len({way.way for way in ways}) - len({way.way for way in kept})
    return OsmWays(places, kept, others, [] if found is None else _features(found))


def _features(found: pd.DataFrame) -> list[tuple[Mapping[str, str], shapely.Geometry]]:
    """Return tags and shape of water and places; pyrosm has assembled the areas of relations."""
    rows = found[[tag for tag in found.columns if tag in SURROUNDING_TAGS]].to_dict("records")
    tags = [{str(tag): value for tag, value in row.items() if isinstance(value, str)} for row in rows]
    return list(zip(tags, found.geometry, strict=True))


def _ways(edges: pd.DataFrame) -> Iterator[OsmWay]:
    """Join the pairs of nodes into which pyrosm splits ways."""
    named = [tag for tag in edges.columns if tag in WAY_TAGS]
    columns = [edges[column].tolist() for column in ("id", "u", "v")]
    own = edges[named].to_dict("records")
    # pyrosm returns this column only if at least one way has a tag without a column of its own.
    rest = edges["tags"].tolist() if "tags" in edges.columns else [None] * len(edges)
    tags = [_tags(row, others) for row, others in zip(own, rest, strict=True)]
    rows = zip(*columns, tags, strict=True)
    for way, pairs in groupby(rows, key=lambda row: row[0]):
        path: list[int] = []
        given: dict[str, str] = {}
        for _, start, end, given in pairs:
            if path and path[-1] != start:
                yield OsmWay(way, given, tuple(path))
                path = []
            path = path or [start]
            path.append(end)
        yield OsmWay(way, given, tuple(path))


def _tags(row: Mapping[Any, Any], others: object) -> dict[str, str]:
    """Combine a way's tags from columns and from the JSON of all others; keep only tags that are read."""
    given = {tag: value for tag, value in row.items() if isinstance(value, str)}
    rest = json.loads(others) if isinstance(others, str) else {}
    return given | {tag: str(value) for tag, value in rest.items() if tag in WAY_TAGS}
