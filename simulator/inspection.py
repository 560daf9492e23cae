"""What files are, and the scenario that reads them: recognised by their content, and read by the readers of a run.

A file has roles, the likeliest first. For each role there is a section of a scenario, and alternatives for keys that a
file does not state, such as units. The schema and the readers try them: the one with the fewest warnings is kept.
"""

import math
import os
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tomli_w

import scenarios
from scenarios import Fault, Scenario, ScenarioError
from simulator.experiment.build.city import build_city, build_roads
from simulator.experiment.build.demand import plan_traffic
from simulator.experiment.build.engine import read_recorded
from simulator.experiment.study_area import Ground
from simulator.files.compressed_io import begin_of, unpacked_name
from simulator.files.errors import InputError
from simulator.files.messages import Note, counted, notes_of, warnings_among
from simulator.files.tables import column_names, comparable_name, find_columns
from simulator.files.xml_elements import root_of
from simulator.formats.recorded.reading import format_of
from simulator.formats.roads.link_columns import MPS_PER_UNIT, NODE_NAMES, find_link_columns
from simulator.roads import RoadNetwork
from simulator.roads.projection import LOCAL, WGS84, transform
from simulator.streams import Streams
from simulator.traffic.clock import Clock
from simulator.traffic.demand.gtfs import busiest_day
from simulator.traffic.demand.synthetic import Demand
from simulator.traffic.demand.trip_points import find_points
from simulator.traffic.demand.trip_table_readers import NAMES
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.recording import Recording

PLANE = "+proj=tmerc +lat_0=0 +lon_0=0"
"""System of coordinates in metres of which nothing is known: a plane at longitude 0, latitude 0."""
MOST_FILES = 500
MOST_VEHICLES = 20_000
_CELLS = 100
_DAY_S, _HOUR_S = 86_400.0, 3600.0
_ALL_ALTERNATIVES_BYTES = 5_000_000
"""Size of a file up to which all alternatives are read; of larger ones, none after the first without a warning."""


class Role(NamedTuple):
    """What a file may be: its name, the section and keys of a scenario that read it, and the key of the file."""

    title: str
    section: str
    keys: Mapping[str, Any]
    key: str


def _roads(source: str, title: str, key: str = "path") -> Role:
    return Role(title, "roads", {"source": source}, key)


def _trips(title: str) -> Role:
    return Role(title, "traffic", {"demand": "trips"}, "trips")


ROLES = {
    "osm": _roads("osm", "OpenStreetMap"),
    "sumo": _roads("sumo", "a SUMO network"),
    "matsim": _roads("matsim", "a MATSim network"),
    "gmns": _roads("gmns", "a GMNS network"),
    "tntp": _roads("tntp", "a TNTP network", "network"),
    "edges": _roads("tables", "a table of edges", "edges"),
    "geopackage": _roads("geopackage", "a GeoPackage with nodes and links"),
    "geoparquet": _roads("geoparquet", "nodes and links in GeoParquet"),
    "lines": _roads("lines", "roads drawn as lines"),
    "events": Role("events of a MATSim run", "traffic", {"engine": "trace"}, "trace"),
    "trace": Role("recorded positions", "traffic", {"engine": "trace"}, "trace"),
    "routes": _trips("SUMO's vehicles, trips or types"),
    "plans": _trips("plans of MATSim"),
    "trips": _trips("a table of trips"),
    "tntp_trips": _trips("a TNTP table of trips"),
    "omx": _trips("matrices in OMX"),
    "gtfs": _trips("a GTFS feed"),
    "owners": Role("counts or visits at places", "traffic", {"engine": "static"}, "owners"),
    "zones": Role("polygons of zones", "cells", {"kind": "zones"}, "file"),
    "nodes": Role("a table of nodes", "", {}, "nodes"),
    "tntp_nodes": Role("points of nodes", "", {}, "nodes"),
}
"""All roles; of several files with a role of one section, the role that is listed first is preferred."""
_ROOTS = {
    "osm": "osm", "graphml": "osm", "net": "sumo", "network": "matsim", "events": "events", "routes": "routes",
    "additional": "routes", "plans": "plans", "population": "plans", "fcd-export": "trace", "gpx": "trace",
}  # fmt: skip
"""Outermost elements of XML."""
_TNTP = {"<number of links>": "tntp", "<total od flow>": "tntp_trips", "origin": "tntp_trips"}
"""Beginnings of lines of TNTP's files."""
_GEOMETRY = {"linestring": ("lines", "trace"), "polygon": ("zones",), "point": ("tntp_nodes", "trace")}
_FOLDERS = {
    "gmns": ({"node", "link"}, re.compile(r"(\w+)\.(csv|csv\.gz|parquet)")),
    "geoparquet": ({"nodes", "links"}, re.compile(r"(\w+)\.parquet")),
    "gtfs": ({"stops", "trips", "stop_times"}, re.compile(r"(\w+)\.txt")),
}
"""Names of the files by which a folder is recognised."""
_PLACES = {
    "owner": ("user", "user_id", "owner", "device", "person"),
    "time": ("time", "timestamp", "datetime", "date_time", "utc_time"),
    "place": ("place", "station", "venue", "venue_id", "location", "detector", "sensor", "site", "name", "id"),
    "count": ("count", "vehicles", "volume", "flow", "number", "n"),
    "lon": NODE_NAMES["lon"],
    "lat": NODE_NAMES["lat"],
}  # fmt: skip
_SIDECARS = (".dbf", ".shx", ".prj", ".cpg", ".toml", ".md", ".qpj", ".sbn", ".sbx", ".pdf", ".html", ".png")
_TIME_FORMATS = ("%d/%m/%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%Y%m%d%H%M%S", "%d/%m/%Y %H:%M")


class Reading(NamedTuple):
    """Files in one of their roles, as they were read.

    Parameters
    ----------
    role, files, keys
        What they are, and the keys of the section that reads them.
    value
        The roads, recording, demand or zones; None if there are faults.
    faults, notes
        What the schema or the reader refuses, or states.
    also
        Other alternatives that fit without a warning.
    """

    role: str
    files: Sequence[Path]
    keys: Mapping[str, Any]
    value: Any = None
    faults: Sequence[str] = ()
    notes: Sequence[Note] = ()
    also: Sequence[str] = ()

    @property
    def rank(self) -> tuple[bool, int, float]:
        """Sorting key: the best reading is the least."""
        misfit = _misfit(self.value) if isinstance(self.value, RoadNetwork) else 0.0
        return bool(self.faults), len(warnings_among(self.notes)), misfit


class Inspection(NamedTuple):
    """What was found: rows of names and texts, notes, and the TOML of the scenario; None if something is missing."""

    rows: Sequence[tuple[str, str]]
    notes: Sequence[str]
    toml: str | None


def roles_of(path: Path) -> tuple[str, ...]:
    """Return the roles that a file may have, by its beginning, root element or columns, the likeliest first."""
    name, begin = unpacked_name(path).lower(), begin_of(path).removeprefix(b"\xef\xbb\xbf").lstrip()
    if name.endswith(".pbf") or b"OSMHeader" in begin[:64]:
        return ("osm",)
    if begin.startswith(b"PK"):
        with zipfile.ZipFile(path) as archive:
            inside = " ".join(archive.namelist()).lower()
        return ("gtfs",) if "stop_times.txt" in inside else ("lines", "zones") if ".shp" in inside else ()
    if begin.startswith(b"\x89HDF"):
        return ("omx",)
    if begin.startswith(b"SQLite format 3"):
        return "geopackage", "lines", "zones"
    if name.endswith(".shp"):
        return "lines", "zones"
    if begin.startswith(b"<") and (root := root_of(path)):
        return tuple(filter(None, [_ROOTS.get(root)]))
    if begin.startswith((b"{", b"[")):
        drawn = re.search(rb'"type"\s*:\s*"(?:multi)?(point|linestring|polygon)', begin, re.IGNORECASE)
        return _GEOMETRY[drawn[1].decode().lower()] if drawn else ("trace",)
    if b"\0" in begin and not begin.startswith(b"PAR1"):
        return ()
    lines = begin.decode(errors="replace").lower().splitlines()
    for line, (start, role) in product(lines[:20], _TNTP.items()):
        if line.strip().startswith(start) and "," not in line:
            return (role,)
    if lines and re.match(r"node\s+x\s+y", lines[0]):
        return ("tntp_nodes",)
    return tuple(_roles_of_table(path, column_names(path))) if begin else ()


def _roles_of_table(path: Path, names: Sequence[str]) -> Iterator[str]:
    links, nodes, trips = find_link_columns(names, {}), find_columns(names, NODE_NAMES), find_columns(names, NAMES)
    timed = any(word in comparable_name(name) for name in names for word in ("time", "date", "utc", "epoch"))
    located = {"lon", "lat"} <= nodes.keys() or {"x", "y"} <= nodes.keys()
    points = bool(find_points(names, {}))
    edges = {"from", "to"} <= links.keys() and not points
    if edges and not timed and links.keys() - {"from", "to", "class"} and "trips" not in trips:
        yield "edges"
    if points or {"origin", "destination"} <= trips.keys():
        yield "trips"
    if edges:
        yield "edges"
    if located and "node" in nodes and not timed and not points:
        yield "nodes"
    if "count" in (found := find_columns(names, _PLACES)) and ("place" in found or "lon" in found) and not trips.keys() >= {"origin"}:
        yield "owners"
    try:
        recorded = timed or points or format_of(path) != "csv"
    except InputError:
        recorded = False
    if recorded:
        yield "trace"


def find(paths: Iterable[Path]) -> tuple[dict[Path, tuple[str, ...]], list[Path]]:
    """Return the roles of files and folders, and of the files in other folders; and the files without a role.

    Raises
    ------
    InputError
        If a path does not exist, or a folder holds no file.
    """
    found: dict[Path, tuple[str, ...]] = {}
    unknown: list[Path] = []
    for path in paths:
        if not path.exists():
            raise InputError([f"{path}: no such file or folder"])
        inside = sorted(path.rglob("*"), key=lambda file: (len(file.parts), file)) if path.is_dir() else [path]
        kept = [one for one in inside if not any(part.startswith(".") for part in one.relative_to(path).parts)]
        if path.is_dir() and not kept:
            raise InputError([f"{path}: the folder holds no file"])
        folders = {folder: _roles_of_folder(folder) for folder in [path, *kept] if folder.is_dir()}
        found |= {folder: roles for folder, roles in folders.items() if roles}
        for file in [one for one in kept if one.is_file()][:MOST_FILES]:
            if file.suffix.lower() in _SIDECARS and file != path:
                continue
            try:
                roles = roles_of(file)
            except (InputError, OSError, zipfile.BadZipFile):
                roles = ()
            if folders.get(file.parent) and roles[:1] != ("trips",):  # a table of GMNS, GTFS or GeoParquet
                continue
            found |= {file: roles} if roles else {}
            unknown += [] if roles else [file]
    return found, unknown


def _roles_of_folder(folder: Path) -> tuple[str, ...]:
    names = [file.name.lower() for file in folder.iterdir()]
    for role, (needed, form) in _FOLDERS.items():
        if needed <= {match[1] for name in names if (match := form.fullmatch(name))}:
            return (role,)
    return ("trace",) if any(folder.glob("*/Trajectory/*.plt")) else ()


def _alternatives(role: str, path: Path, files: Mapping[str, Sequence[Path]], roads: Reading | None) -> list[dict[str, Any]]:
    """Return keys to add to a section, the likeliest first, for what a file does not state."""
    if role == "tntp":
        nodes = [{"nodes": str(file)} for file in _likest(path, files.get("tntp_nodes", ()))] or [{}]
        units = [{"length_unit": length, "time_unit": time} for length in ("mi", "km", "ft", "m") for time in ("min", "h", "s")]
        planes = [{}, *({"crs": f"{PLANE} +to_meter={unit}"} for unit in (1, 0.3048, 1609.344, 1000) if nodes[0])]
        return [{**these, **given, **plane} for plane in planes for these in nodes for given in units]
    if role == "gmns":
        lengths = [{}, *({"length_unit": unit} for unit in ("mi", "ft", "km"))]
        return [{**length, **speed} for speed in [{}, {"speed_unit": "mph"}, {"speed_unit": "m/s"}] for length in lengths]
    if role == "edges":
        return _columns_of_edges(path, files)
    if role == "trips":
        frames = [{}, *([{"trips_crs": roads.value.crs.to_string()}] if roads else [])]
        zones = [{"trip_zones": zone} for file in files.get("zones", ())[:2] for zone in _zones(file)]
        return [*frames, *({**one, "undrivable": "leave_out"} for one in (*frames, *zones))]
    if role == "owners":
        return [{"columns": find_columns(column_names(path), _PLACES)}]
    if role == "zones":
        return [{"name": zone["name"]} for zone in _zones(path)]
    if role == "trace":
        names = find_columns(column_names(path), NODE_NAMES)
        xy = {axis: names[axis] for axis in ("x", "y") if axis in names and "lon" not in names}
        planes = [roads.value.crs.to_string()] * bool(roads) + [PLANE]
        formats = [{"time_format": form} for form in _TIME_FORMATS]
        return [{}, {"order": "any"}, {"one_vehicle_a_file": True}, *formats, *({"columns": xy, "crs": crs} for crs in planes if xy)]
    return [{}] if role in {"plans", "omx", "tntp_trips", "routes"} and False else [{}, *([{"undrivable": "leave_out"}] if ROLES[role].key == "trips" else [])]


def _columns_of_edges(path: Path, files: Mapping[str, Sequence[Path]]) -> list[dict[str, Any]]:
    """Return tables of nodes, columns whose name states no unit or no kind of capacity, and a plane."""
    names = column_names(path)
    links = find_link_columns(names, {})
    kinds = [{}, *([{"capacity_total_vph": links["capacity_vph"]}] if "capacity_vph" in links else [])]
    speeds = [links[key] for key in MPS_PER_UNIT if key in links]
    speeds = speeds or [name for name in names if "speed" in comparable_name(name) or "ffs" in comparable_name(name)]
    units = [{}, *({unit: name} for name in speeds[:1] for unit in ("speed_kph", "speed_mph", "speed_mps"))]
    columns = [{**kind, **unit} for unit in units for kind in kinds]
    nodes = [{"nodes": str(file)} for file in _likest(path, files.get("nodes", ()))] or [{}]
    planes = [{}, {"crs": PLANE}]
    return [{**these, **plane, **({"columns": one} if one else {})} for these in nodes for plane in planes for one in columns]


def _likest(path: Path, others: Iterable[Path]) -> list[Path]:
    """Return the two files, first of all of the same folder, whose names have the longest beginning in common with a file's."""
    def unlike(other: Path) -> tuple[bool, int]:
        return other.parent != path.parent, -len(os.path.commonprefix([other.name.lower(), path.name.lower()]))

    return sorted(others, key=unlike)[:2]


def _zones(path: Path) -> list[dict[str, str]]:
    """Return the attributes of polygons that may name them."""
    return []


def _misfit(roads: RoadNetwork) -> float:
    """Return how far lengths are from those of streets between the nodes, and speeds from those of towns."""
    links, xy = roads.links, roads.node_xy
    straight_m = np.hypot(*(xy[links.to_node] - xy[links.from_node]).T)
    detours = links.length_m[straight_m > 0] / straight_m[straight_m > 0]
    speeds = np.median(links.speed_mps) * 3.6 / 50.0
    return float(abs(np.log(np.median(detours) / 1.1)) + abs(np.log(speeds))) if len(detours) else abs(math.log(speeds))


def _tables(keys: Mapping[str, Mapping[str, Any]], *, duration_s: float = _DAY_S, **heading: Any) -> dict[str, Any]:
    """Return the tables of a whole scenario: those given, and those of the template of `crowdveil scenarios new`."""
    template = scenarios.template()
    every_s = max(1.0, float(f"{duration_s / 6:.2g}"))
    gap_s = min(30.0, every_s / 2)
    campaign = {**template["campaigns"][0], "start_s": every_s, "every_s": every_s, "round_gap_s": gap_s, "deadline_s": gap_s}
    return {
        "scenario": {"name": "inspected", "duration_s": duration_s, **heading},
        "roads": {"source": "none"},
        "cells": {"kind": "square", "size_m": 1000.0},
        "traffic": {"vehicles": 1},
        **keys,
        "campaigns": [campaign],
        "mechanisms": template["mechanisms"],
    }


def _checked(tables: dict[str, Any], folder: Path) -> Scenario:
    checked = Scenario.check(tables, folder)
    if isinstance(checked, Scenario):
        return checked
    raise ScenarioError("inspect", checked)


def _value(role: str, keys: Mapping[str, Any], roads: Reading | None, **heading: Any) -> tuple[Any, list[Note]]:
    """Read files by the section of a role, on the roads if there are any.

    Raises
    ------
    InputError, ScenarioError
        If the schema or the reader refuses them.
    """
    section = ROLES[role].section
    given = {section: keys, **({"roads": roads.keys} if roads else {})}
    if section == "roads":
        given["cells"] = {"kind": "roads"}
    scenario = _checked(_tables(given, **heading), Path())
    if section == "roads":
        return build_roads(scenario)
    if section == "cells":
        city = build_city(scenario)
        return city.cells, list(city.notes)
    network = None if roads is None else roads.value
    if "engine" in keys:
        recording = read_recorded(scenario, network)
        return recording, recording.notes()
    if network is None:
        raise InputError(["trips need roads: give a network too, as a file or in the same folder"])
    planned = plan_traffic(scenario, network, ShortestPaths.of(network), clock=Clock(1.0), streams=Streams(1))
    return planned, notes_of("demand", planned.notes)


def read(role: str, paths: Sequence[Path], files: Mapping[str, Sequence[Path]], roads: Reading | None) -> Reading:
    """Read files in one role, with the alternative that causes the fewest faults and warnings."""
    known, best, fitting = ROLES[role], None, []
    small = sum(path.stat().st_size for path in paths if path.is_file()) < _ALL_ALTERNATIVES_BYTES
    for alternative in _alternatives(role, paths[0], files, roads):
        if best is not None and not best.rank[0] and (not (small and known.section == "roads") or "crs" in alternative):
            if best.rank[:2] == (False, 0) or known.section != "roads":
                break
        named = [str(path) for path in paths] if len(paths) > 1 else str(paths[0])
        keys = {**known.keys, known.key: named, **alternative}
        try:
            heading = {"start": f"{busiest_day(paths[0])}T00:00"} if role == "gtfs" else {}
            reading = Reading(role, paths, keys, *_value(role, keys, roads, **heading)[:1])._replace(notes=[])
        except (InputError, ScenarioError) as error:
            reading = Reading(role, paths, keys, faults=[str(fault) for fault in error.faults])
        fitting += [] if any(reading.rank[:2]) else [alternative]
        if best is None or reading.rank < best.rank:
            best = reading
    return best
