"""PBF files of OpenStreetMap: the ways that are open to cars, the nodes along them, water and places.

A PBF file is read with pyrosm. It is a sequence of blobs: four bytes with the size of a header, the header with the
blob's type and size, the blob with its content raw or compressed. pyrosm decodes in compiled code, so the file is
checked before: it must be complete, within the limits of the format (a header of at most 64 KiB, a blob of at most 32
MiB, compressed or not), and compressed content must match its checksum. See
https://wiki.openstreetmap.org/wiki/PBF_Format.
"""

from __future__ import annotations

import json
import warnings
import zlib
from itertools import groupby
from typing import TYPE_CHECKING, Any, BinaryIO

import shapely

from simulator.files.errors import InputError
from simulator.files.extras import import_extra
from simulator.files.messages import counted
from simulator.roads.readers.osm_files import OsmWay, OsmWays
from simulator.roads.readers.osm_streets import WAY_TAGS, open_to_cars
from simulator.roads.surroundings import PLACES, SURROUNDING_TAGS, WATER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import pandas as pd

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
