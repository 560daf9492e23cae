"""What files are, recognised by their first bytes, outermost elements or columns: each has roles, likeliest first."""

import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pyogrio  # type: ignore[import-untyped]  # it has no types
import shapely
from pyogrio.errors import DataSourceError  # type: ignore[import-untyped]  # it has no types

from simulator.files.compressed_io import begin_of, unpacked_name
from simulator.files.errors import InputError
from simulator.files.messages import counted
from simulator.files.tables import column_names, comparable_name, find_columns
from simulator.files.xml_elements import root_of
from simulator.formats.column_names import NODE_NAMES, OWNER_NAMES, TRIP_NAMES
from simulator.formats.link_columns import find_link_columns
from simulator.formats.recordings.fixes import are_fixes
from simulator.formats.recordings.reading import format_of
from simulator.formats.tables.trip_points import find_points, geometry_columns

MOST_FILES = 500


class Role(NamedTuple):
    """What a file may be: its title, the section and keys of a scenario that read it, and the key that names it."""

    title: str
    section: str
    keys: Mapping[str, Any]
    key: str


def _roads(title: str, source: str, key: str = "path") -> Role:
    return Role(title, "roads", {"source": source}, key)


def _trips(title: str) -> Role:
    return Role(title, "traffic", {"demand": "trips"}, "trips")


ROLES: Mapping[str, Role] = {
    "osm": _roads("OpenStreetMap", "osm"),
    "sumo": _roads("SUMO network", "sumo"),
    "matsim": _roads("MATSim network", "matsim"),
    "gmns": _roads("GMNS network", "gmns"),
    "tntp": _roads("TNTP network", "tntp", "network"),
    "edges": _roads("tables of nodes and edges", "tables", "edges"),
    "geopackage": _roads("GeoPackage with nodes and links", "geopackage"),
    "lines": _roads("roads drawn as lines", "lines"),
    "events": Role("events of a MATSim run", "traffic", {"engine": "trace"}, "trace"),
    "trace": Role("recorded positions", "traffic", {"engine": "trace"}, "trace"),
    "routes": _trips("SUMO's vehicles, trips, flows or types"),
    "tntp_trips": _trips("TNTP trip table"),
    "trips": _trips("table of trips"),
    "omx": _trips("Open Matrix file (OMX)"),
    "owners": Role("counts or visits at places", "traffic", {"engine": "static"}, "owners"),
    "zones": Role("polygons of zones", "cells", {"kind": "zones"}, "file"),
    "nodes": Role("table of nodes", "", {}, "nodes"),
    "points": Role("points of nodes", "", {}, "nodes"),
    "flows": Role("TNTP's published flows of links", "", {}, "flows"),
}
"""All roles; among files that are equally likely to be of one section, the role that is listed first is preferred."""
_ROOTS = {
    "osm": "osm", "net": "sumo", "network": "matsim", "events": "events", "routes": "routes",
    "additional": "routes", "fcd-export": "trace", "gpx": "trace",
}  # fmt: skip
"""Outermost elements of XML."""
_TNTP = {
    "<number of links>": "tntp", "<total od flow>": "tntp_trips", "origin ": "tntp_trips", "node x y": "points",
    "nodeid xcoord ycoord": "points", "from to volume c": "flows",
}  # fmt: skip
"""Beginnings of lines of TNTP's files."""
_SHAPEFILE = b"\0\0\x27\x0a"
"""Its first bytes; byte 32 is 5, 15 or 25 where shapes are polygons."""
_VEHICLES = re.compile(rb"<(vehicle|trip|flow|route|vType|person)[\s>]")
"""Elements of SUMO's additional files that belong to vehicles; others are detectors, stops or signals."""
_DRAWN = {b"linestring": ("lines", "trace"), b"polygon": ("zones",), b"point": ("points", "trace")}
_GMNS = re.compile(r"(node|link)\.(csv|csv\.gz|parquet)")
"""Names of the two files by which a folder of GMNS is recognised."""
_UNREAD = (".dbf", ".shx", ".prj", ".cpg", ".qpj", ".sbn", ".sbx", ".toml", ".md", ".pdf", ".html", ".png")
_TIMES = ("time", "date", "utc", "epoch")

WHAT_CAN_BE_READ = (
    "roads (OpenStreetMap, SUMO, MATSim, TNTP, GMNS, GeoPackage, Shapefile, GeoJSON, tables of nodes and edges), "
    "trips (CSV, Parquet, TNTP, OMX, SUMO), recorded positions (CSV, Parquet, GPX, floating-car data, "
    "events of MATSim), counts at places, polygons of zones"
)


def roles_of(path: Path) -> tuple[str, ...]:
    """Return the roles that a file may have, the likeliest first; none if it is not recognised."""
    name, begin = unpacked_name(path).lower(), begin_of(path).removeprefix(b"\xef\xbb\xbf").lstrip()
    if begin.startswith(b"PK"):
        with zipfile.ZipFile(path) as archive:
            inside = "\n".join(archive.namelist()).lower()
        return ("lines", "zones") if ".shp" in inside else ()
    by_bytes: Mapping[tuple[str, ...], bool] = {
        ("osm",): name.endswith(".pbf") or b"OSMHeader" in begin[:64],
        ("omx",): begin.startswith(b"\x89HDF"),
        ("trace",): geometries_of(path) in ({"Point"}, {"Point Z"}),
        ("geopackage", "lines", "zones"): begin.startswith(b"SQLite format 3"),
        ("zones",): begin.startswith(_SHAPEFILE) and begin[32:33] in b"\x05\x0f\x19",
        ("lines",): begin.startswith(_SHAPEFILE),
        ("lines", "zones"): bool(geometry_columns(path)),
        (): not begin or (b"\0" in begin and not begin.startswith(b"PAR1")),
    }
    known = next((roles for roles, matches in by_bytes.items() if matches), None)
    if known is not None:
        return known
    if begin.startswith(b"<") and (root := root_of(path)):
        return (_ROOTS[root],) if root in _ROOTS and (root != "additional" or _VEHICLES.search(begin)) else ()
    if begin.startswith((b"{", b"[")):
        drawn = re.search(rb'"type"\s*:\s*"(?:multi)?(point|linestring|polygon)', begin, re.IGNORECASE)
        return _DRAWN[drawn[1].lower()] if drawn else ("trace",)
    lines = [" ".join(line.split()) for line in begin.decode(errors="replace").lower().splitlines()[:20]]
    tntp = [role for line, (start, role) in product(lines, _TNTP.items()) if line.startswith(start)]
    return tuple(tntp[:1]) or tuple(dict.fromkeys(_roles_of_table(path, column_names(path))))


def geometries_of(path: Path) -> set[str]:
    """Return the types of geometries of GeoParquet, a GeoPackage or a Shapefile; none of any other file."""
    if columns := geometry_columns(path):
        stated = json.loads(pq.read_schema(path).metadata[b"geo"])["columns"][columns[0]]
        if not (types := set(stated.get("geometry_types") or ())):
            batch = next(pq.ParquetFile(path).iter_batches(100, columns=columns[:1]), ((),))
            types = {shape.geom_type for shape in shapely.from_wkb(batch[0]) if shape is not None}
        return types
    if path.suffix.lower() not in (".gpkg", ".shp"):
        return set()
    try:
        return {str(kind) for _, kind in pyogrio.list_layers(path)} - {"None"}
    except DataSourceError:
        return set()


def _roles_of_table(path: Path, names: Sequence[str]) -> Iterator[str]:
    links, nodes, trips = find_link_columns(names, {}), find_columns(names, NODE_NAMES), find_columns(names, TRIP_NAMES)
    timed = any(word in comparable_name(name) for name in names for word in _TIMES) or are_fixes(names)
    points, ends = bool(find_points(names, {})), {"from", "to"} <= links.keys()
    if ends and not points and not timed and links.keys() - {"from", "to", "class"} and "trips" not in trips:
        yield "edges"
    if points or {"origin", "destination"} <= trips.keys():
        yield "trips"
    if ends and not points:
        yield "edges"
    located = {"lon", "lat"} <= nodes.keys() or {"x", "y"} <= nodes.keys()
    if located and "node" in nodes and not timed and not points:
        yield "nodes"
    places = find_columns(names, OWNER_NAMES)
    visits = {"time", "owner"} <= places.keys() and comparable_name(places.get("place", "id")) not in {"id", "name"}
    if ({"count", "place"} <= places.keys() and not ends) or visits:
        yield "owners"
    if points or (located and timed) or _without_header(path):
        yield "trace"


def _without_header(path: Path) -> bool:
    try:
        return format_of(path) in {"tdrive", "cabspotting", "geolife"}
    except InputError:
        return False


def find_files(paths: Iterable[Path]) -> tuple[dict[Path, tuple[str, ...]], list[Path]]:
    """Return the roles of files, of folders of known formats, and of the files in other folders; and unknown files.

    Raises
    ------
    InputError
        If a path does not exist, or a file that is named, or every file of a folder, is not recognised.
    """
    found, paths = dict[Path, tuple[str, ...]](), [*paths]
    unknown: list[Path] = []
    for path in map(Path.resolve, paths):
        if not path.exists():
            raise InputError([f"{path}: no such file or folder"])
        inside = sorted(path.rglob("[!._]*"), key=lambda file: (len(file.parts), file)) if path.is_dir() else []
        folders = {folder: _roles_of_folder(folder) for folder in [path, *inside] if folder.is_dir()}
        found |= {folder: roles for folder, roles in folders.items() if roles}
        for file in [one for one in inside if one.is_file()][:MOST_FILES] or [path] * path.is_file():
            if file.suffix.lower() in _UNREAD and file != path:
                continue
            try:
                roles = roles_of(file)
            except (InputError, OSError, zipfile.BadZipFile):
                roles = ()
            if not any(folders.get(above) for above in file.parents) or roles[:1] == ("trips",):
                found |= {file: roles} if roles else {}
                unknown += [] if roles else [file]
    if found and (named := {*map(Path.resolve, paths)} & {*unknown}):
        raise InputError(f"{file}: it is not recognised, and {_looks_like(file)}" for file in sorted(named))
    if not found:
        looks = "; ".join(f"{file.name} {_looks_like(file)}" for file in unknown[:3]) or "no file is in it"
        raise InputError([f"{path}: nothing in it is recognised: {looks}. What can be read is {WHAT_CAN_BE_READ}"])
    return found, unknown


def _roles_of_folder(folder: Path) -> tuple[str, ...]:
    if len({match[1] for file in folder.iterdir() if (match := _GMNS.fullmatch(file.name.lower()))}) > 1:
        return ("gmns",)
    return ("trace",) if any(folder.glob("*/Trajectory/*.plt")) or any(folder.glob("Trajectory/*.plt")) else ()


def _looks_like(file: Path) -> str:
    """Return what is seen of a file that is not recognised, as the rest of a sentence."""
    if not (begin := begin_of(file)):
        return "is empty, or cannot be read or unpacked"
    if begin.lstrip().startswith(b"<") and (root := root_of(file)):
        return f"is XML with the outermost element <{root[:60]}>"
    if b"\0" in begin:
        return f"is binary, and begins with {begin[:8]!r}"
    names = column_names(file)
    return f"is text whose first line has {counted(len(names), 'column')}: {', '.join(map(repr, names[:8]))[:200]}"
