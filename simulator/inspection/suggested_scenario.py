"""The scenario that reads a user's files: the schema and the readers of a run try it, and what they refuse is reported.

For keys that a file does not state, such as units, there are alternatives; the one with the fewest warnings is kept.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from difflib import SequenceMatcher
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import tomli_w

import scenarios
from mechanisms.planning import Target, plan
from scenarios import Scenario, ScenarioError
from scenarios.references import relative_to
from scenarios.run_clock import RunClock
from simulator.arrays import FloatArray, IntArray
from simulator.cells.zones import read_features
from simulator.experiment.assembly.city import build_city
from simulator.experiment.assembly.demand import clock_of_trips, plan_traffic
from simulator.experiment.assembly.engine import read_recorded
from simulator.experiment.assembly.roads import build_roads
from simulator.experiment.study_area import Ground
from simulator.files.errors import InputError
from simulator.files.messages import Note, counted, notes_of, warnings_among
from simulator.files.tables import column_names, comparable_name, find_columns, listed
from simulator.files.times import NAIVE
from simulator.formats.column_names import LENGTH_UNITS, MPS_PER_UNIT, NODE_NAMES, OWNER_NAMES, SPEED_UNITS
from simulator.formats.gmns.roads import NO_PLACES, PROVED, open_links
from simulator.formats.link_columns import find_link_columns
from simulator.formats.tables.omx import read_omx
from simulator.formats.tables.trip_points import find_points
from simulator.formats.trip_files import read_trip_table
from simulator.inspection.recognition import ROLES, find_files
from simulator.roads import RoadNetwork
from simulator.roads.projection import LOCAL, WGS84, transform
from simulator.streams import Streams
from simulator.traffic.clock import Clock
from simulator.traffic.demand.synthetic import Demand, draw_uniform
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.recording import Recording
from simulator.traffic.routes import Routes

PLANE = "+proj=tmerc +lat_0=0 +lon_0=0"
"""System of coordinates in metres about which nothing else is known: a plane at longitude 0, latitude 0."""
MOST_VEHICLES = 20_000
_VEHICLES_PER_KM = 10
_CELLS, _OCCUPANCY, _FEWEST_ZONES, _OUTLYING = 100, 30, 4, 0.01
"""Most squares; least vehicles of a mean one at a query; fewest zones of a file; share of outlying fixes."""
_EPSILON, _DELTA = 1.0, 0.1
"""The claim about the linked reports of a query for which the mechanisms are planned."""
_HOUR_S, _DAY_S, _OF_DAY = 3600, 86_400, RunClock.starting("00:00")
_LARGE = 5_000_000
"""Bytes of a file of roads above which no alternative is read after the first that fits."""
_TIME_FORMATS = ("%d/%m/%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%Y%m%d%H%M%S", "%d/%m/%Y %H:%M")
_NAMED = re.compile(r"(\w+)(?: must|: [^:]* has several;) name one of (.*?)(?:, got .*)?$")
"""Faults for which a reader names the values that a key may have."""
NEEDS_ROADS = "roads, on which the vehicles drive: name a file of roads too, or put it into the folder"
NEEDS_NODES = "a table of nodes, with the places of the ends of edges: name it too, or put it into the folder"
NEEDS_MORE = "roads, or recorded vehicles: name a file of them too, or put it into the folder"
_LONG = 60
_QUERIES, _FEW, _MOST_ROUTED = 4, 200, 5000
"""Queries of a campaign; vehicles that are at least on the roads, in the mean; trips whose routes are found."""
_SIDES = tuple(digit * 10.0**power for power in range(1, 7) for digit in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8))[6:]
"""Sides of squares, from 50 m."""
_STRAIGHT, _MERCATOR = "the straight distance between", "EPSG:3857"
"""Words of a warning of networks without a system of coordinates, and the system that often causes it."""
_NETWORKS = {role for role, known in ROLES.items() if known.section == "roads"}
_GUESSED = ("tntp", "gmns")
"""Roles of files of roads whose units no column may state."""
_DETOUR, _UNLIKE, _USUAL_TRIP, _DRAWN = 1.1, 0.15, (10_000.0, 900.0), 500
"""Usual length of a link as a multiple of the distance between its nodes, and how far its logarithm may be from the one
of roads in a known system; metres and seconds of a usual trip; trips that are drawn for a mean."""
_LOAD = 0.6
"""Share of the busiest link's capacity that trips without times use: with more, junctions of small towns jam."""
_UNTIMED = ("trips", "tntp_trips", "omx")
"""Roles of files of trips that may have no departures."""


class Reading(NamedTuple):
    """Files in one of their roles, as they were read.

    Parameters
    ----------
    role, files, keys
        What the files are, and the keys of the section that reads them.
    value
        What the reader returns; None if there are faults.
    notes, faults
        What the reader states, or what it or the schema refuses.
    also
        Other alternatives that fit as well, in words.
    chosen, instead_of
        The alternative that was read, and why it was read instead of the first one.
    misfit
        Of roads whose units are guessed: how unlike streets and trips they are; 0 for others.
    """

    role: str
    files: Sequence[Path]
    keys: Mapping[str, Any]
    value: Any = None
    notes: Sequence[Note] = ()
    faults: Sequence[str] = ()
    also: Sequence[str] = ()
    chosen: Mapping[str, Any] = MappingProxyType({})
    instead_of: str = ""
    misfit: float = 0.0

    @property
    def rank(self) -> tuple[bool, int, float]:
        """Sorting key: the best reading has the least."""
        return bool(self.faults), len(warnings_among(self.notes)), self.misfit


class Inspection(NamedTuple):
    """Rows of names and texts, notes, what is missing, and TOML of a scenario, or of a section if it is incomplete."""

    rows: Sequence[tuple[str, str]]
    notes: Sequence[str]
    missing: Sequence[str]
    toml: str
    complete: bool = True


def _likest(path: Path, others: Iterable[Path], key: str) -> list[dict[str, Any]]:
    """Return the two files as values of a key whose folder and name agree most with a file's."""

    def unlike(other: Path) -> tuple[bool, float]:
        return other.parent != path.parent, -SequenceMatcher(None, other.name.lower(), path.name.lower()).ratio()

    return [{key: str(file)} for file in sorted(others, key=unlike)[:2]] or [{}]


def _alternatives(
    role: str, path: Path, files: Mapping[str, list[Path]], roads: Reading | None
) -> list[dict[str, Any]]:
    """Return keys to add to the section of a role for what its file does not state, the likeliest first."""
    every: Iterable[Sequence[Mapping[str, Any]]]
    none = dict[str, Any]()
    lengths, names = ("mi", "km", "ft", "m"), column_names(path) if path.is_file() else []
    if role == "tntp":
        units = [{"length_unit": length, "time_unit": time} for length in lengths for time in ("min", "h", "s")]
        planes = [none, *({"crs": f"{PLANE} +to_meter={unit}"} for unit in (1, 0.3048, 1609.344, 1000))]
        every = product(planes, _likest(path, files.get("points", ()), "nodes"), units)
    elif role == "gmns":
        with suppress(InputError):
            names = [*open_links(path, length_m=None, speed_mps=None, crs=None)[0].unstated]
        tried = (("length", "length_unit", LENGTH_UNITS), ("free_speed", "speed_unit", SPEED_UNITS))
        units_of = [[{key: unit} for unit in units] if column in names else [none] for column, key, units in tried]
        every = product([none, {"coordinates": "none"}], *units_of)
    elif role == "edges":
        found = find_link_columns(names, {})
        total = [none, *({"capacity_total_vph": found[key]} for key in ("capacity_vph",) if key in found)]
        likely = [*(found[key] for key in MPS_PER_UNIT if key in found)]
        likely += [name for name in names if any(word in comparable_name(name) for word in ("speed", "ffs"))]
        speeds = [none, *({unit: name} for name in likely[:1] for unit in ("speed_kph", "speed_mph", "speed_mps"))]
        columns = [{"columns": {**one, **other}} if one or other else none for one, other in product(speeds, total)]
        every = product([none, {"crs": PLANE}], _likest(path, files.get("nodes", ()), "nodes"), columns)
    elif role == "trips":
        systems = [none, *({"trips_crs": one.value.crs.to_string()} for one in [roads] if one)]
        zones = [
            {"trip_zones": {"file": str(file), "name": name}}
            for file in files.get("zones", ())
            for name in _names(file)
        ]
        left_out = {"undrivable": "leave_out"}
        every = [*product([left_out], zones), *product([none, left_out], systems)]
    elif role == "owners":
        every = [({"columns": find_columns(names, OWNER_NAMES)},)]
    elif role == "trace":
        xy = {axis: name for axis, name in find_columns(names, NODE_NAMES).items() if axis in "xy"}
        systems_of_xy = [*([roads.value.crs.to_string()] if roads else []), PLANE] if len(xy) == 2 else []
        frames = [{"columns": xy, "crs": crs} for crs in systems_of_xy]
        formats = [{"time_format": form} for form in _TIME_FORMATS]
        others: list[dict[str, Any]] = [{"order": "any"}, {"one_vehicle_a_file": True}, *frames, *formats]
        every = [(one,) for one in (none, *others)]
    else:
        every = [(none,), *([({"undrivable": "leave_out"},)] if ROLES[role].key == "trips" else [])]
    return [dict(item for part in parts for item in part.items()) for parts in every]


def _names(file: Path) -> list[str]:
    """Return the attributes that differ between all zones of a file, text attributes first; none if it has no zones."""
    try:
        frame = read_features(file, None)
    except InputError:
        return []
    drawn = getattr(frame, "geom_type", None)  # None of a layer without geometries
    if drawn is None or len(frame) < _FEWEST_ZONES or not drawn.isin(["Polygon", "MultiPolygon"]).all():
        return []
    columns = [name for name in frame.columns.drop(frame.geometry.name) if frame[name].astype("str").is_unique]
    return sorted(columns, key=lambda name: (frame[name].dtype.kind in "fM", "id" not in name.lower()))


def _detour(roads: RoadNetwork) -> float:
    """Return the median length of links as a multiple of the distance between their nodes."""
    links, xy = roads.links, roads.node_xy
    straight_m = np.hypot(*(xy[links.to_node] - xy[links.from_node]).T)
    detours = links.length_m[straight_m > 0] / straight_m[straight_m > 0]
    return float(np.median(detours)) if len(detours) else _DETOUR


def _mean_trip(roads: RoadNetwork) -> tuple[float, float]:
    """Return mean length and free-flow time of trips between nodes that are drawn evenly, metres and seconds."""
    paths, links = ShortestPaths.of(roads), roads.links
    ends = draw_uniform(_DRAWN, paths=paths, rng=np.random.default_rng(1))
    joined = paths.reached(*ends)
    driven = paths.routes(*(end[joined] for end in ends)).links
    return tuple((values[driven].sum() / max(joined.sum(), 1)).item() for values in (links.length_m, links.free_flow_s))


def _misfit(role: str, roads: RoadNetwork, keys: Mapping[str, Any]) -> float:
    """Return how unlike towns roads are whose units are guessed, as a sum of logs: lengths, speeds, trips."""
    speed = abs(math.log(float(np.median(roads.links.speed_mps)) / 14.0))
    if role == "tntp":
        return speed + abs(math.log(_detour(roads) / _DETOUR))
    mixed = {keys.get("length_unit") in {"mi", "ft"}, keys.get("speed_unit") == "mph"} == {True, False}
    trip = (abs(math.log(mean / usual)) / 2 for mean, usual in zip(_mean_trip(roads), _USUAL_TRIP, strict=True))
    return speed + sum(trip) + (mixed and keys.keys() >= {"length_unit", "speed_unit"})


def _tables(
    sections: Mapping[str, Any], *, duration_s: float = _HOUR_S, busy_s: Sequence[float] = (), **heading: Any
) -> dict[str, Any]:
    """Return the tables of a scenario: the sections given, and the rest of `crowdveil scenarios new`'s template."""
    template = scenarios.template()
    from_s, to_s = map(math.floor, busy_s[:2] or (duration_s / 6, duration_s * 2 / 3))
    every_s = max(math.floor((to_s - from_s) / 3), 1)
    gap_s = min(30.0, every_s / 2, duration_s / 20)
    times = {"start_s": from_s, "every_s": every_s, "round_gap_s": gap_s, "deadline_s": gap_s}
    return {
        "scenario": {"name": "inspected", "duration_s": duration_s, **heading},
        "roads": {"source": "none"},
        "cells": {"kind": "square", "size_m": 1000.0},
        "traffic": {"vehicles": 1},
        **sections,
        "campaigns": [{**template["campaigns"][0], **times}],
        "aggregation": template["aggregation"],
        "mechanisms": template["mechanisms"],
    }


def _checked(sections: Mapping[str, Any], **heading: Any) -> Scenario:
    """Return the scenario of sections.

    Raises
    ------
    ScenarioError
        If the schema refuses it.
    """
    checked = Scenario.check(_tables(sections, **heading), Path())
    if isinstance(checked, Scenario):
        return checked
    raise ScenarioError("inspect", checked)


def _roads_of_classes(keys: Mapping[str, Any], roads: Reading) -> tuple[Any, Sequence[Note]]:
    """Return the roads of SUMO's vehicles, whose classes decide which lanes are roads."""
    return build_roads(_checked({"traffic": keys, "roads": roads.keys, "cells": {"kind": "roads"}}))


def _value(
    role: str, keys: Mapping[str, Any], roads: Reading | None, *, duration_s: float
) -> tuple[Any, Sequence[Note]]:
    """Return what the reader of a role returns, on the roads if there are any, and its notes.

    Raises
    ------
    InputError, ScenarioError
        If the schema or the reader refuses the file.
    """
    if role == "edges" and "nodes" not in keys:
        raise InputError([NEEDS_NODES])
    if ROLES[role].section == "roads":
        return build_roads(_checked({"roads": keys, "cells": {"kind": "roads"}}))
    network: Any = None if roads is None else roads.value
    if roads is None and (role == "events" or "engine" not in keys):
        raise InputError([NEEDS_ROADS])
    given = {} if roads is None else {"roads": roads.keys}
    if "engine" not in keys:  # vehicles that are driven may have links as cells, which need no places of nodes
        given["cells"] = {"kind": "roads"}
    scenario = _checked({"traffic": keys, **given}, duration_s=duration_s)
    if "engine" in keys:
        recording = read_recorded(scenario, network)
        return recording, recording.notes() if recording else ()
    if role == "routes" and roads is not None:
        network, _ = _roads_of_classes(keys, roads)
    planned = plan_traffic(scenario, network, ShortestPaths.of(network), clock=Clock(1.0), streams=Streams(1))
    return planned, notes_of("demand", planned.notes)


def _read(role: str, paths: Sequence[Path], files: Mapping[str, list[Path]], roads: Reading | None) -> Reading:
    """Read files in one role, by the alternative with the fewest faults and warnings."""
    known, best, fitting = ROLES[role], Reading(role, paths, {}, faults=["nothing was read"]), list[Reading]()
    large = paths[0].is_file() and paths[0].stat().st_size > _LARGE
    queue, first = _alternatives(role, paths[0], files, roads), best
    for alternative in queue:
        # A warning about roads may be one about units or columns. Of units without a default, all that fit are found.
        guessed = role in _GUESSED or any("speed" in key for key in best.chosen.get("columns", ()))
        wanted = known.section == "roads" and (any(best.rank[:2]) or (guessed and not large))
        if not best.faults and (not wanted or (PLANE in alternative.get("crs", "") and "crs" not in best.chosen)):
            break
        if "coordinates" in alternative and "coordinates" not in best.chosen and NO_PLACES not in "".join(best.faults):
            break
        if any(
            one.faults and {**one.chosen, "speed_unit": alternative.get("speed_unit")} == alternative for one in fitting
        ):
            continue  # what refuses lengths refuses them with every unit of speeds
        named = [str(path) for path in paths] if len(paths) > 1 else str(paths[0])
        keys = {**known.keys, known.key: named, **alternative}
        try:
            days = 7 if role == "trips" else 1
            value, notes = _value(role, keys, roads, duration_s=days * _DAY_S)
            misfit = _misfit(role, value, alternative) if role in _GUESSED else 0.0
            unlike = alternative.get("crs") == _MERCATOR and abs(math.log(_detour(value) / _DETOUR)) > _UNLIKE
            faults = [f"lengths are not those in {_MERCATOR}"] * unlike
            reading = Reading(role, paths, keys, value, notes, faults, chosen=alternative, misfit=misfit)
        except (InputError, ScenarioError) as error:
            reading = Reading(role, paths, keys, faults=[*map(str, error.faults)], chosen=alternative)
            if (match := _NAMED.search(reading.faults[0])) and match[1] not in alternative:
                queue += [{**alternative, match[1]: name} for name in match[2].replace("'", "").split(", ")]
        fitting.append(reading)
        if role == "matsim" and not alternative and any(_STRAIGHT in one.text for one in warnings_among(reading.notes)):
            queue.append({"crs": _MERCATOR})
        first = reading if alternative is queue[0] else first
        best = reading if not best.keys or reading.rank < best.rank else best
    nodes, most = best.keys.get("nodes"), best.rank[1] if role == "gmns" else 0
    others = [one for one in fitting if one is not best and not one.faults and one.keys.get("nodes") == nodes]
    also = [_in_words(one) for one in others if one.rank[1] <= most]
    doubts = [note.text for note in warnings_among(first.notes) if note not in best.notes]
    worse = [*first.faults, *doubts] if first is not best else []
    pairs = ((best.chosen, first.chosen), (first.chosen, best.chosen))
    tried = [inline({key: one[key] for key in one if one[key] != other.get(key)}) for one, other in pairs]
    words = f"read with {tried[0]}, since with {tried[1] or 'no such key'}: "
    instead_of = f"{words}{worse[-1]}" if worse and not best.faults else ""
    return best._replace(also=also, instead_of=instead_of)


def _in_words(reading: Reading) -> str:
    """Return the keys that were chosen for roads whose units are guessed, and the mean trip with them."""
    keys = inline({key: value for key, value in reading.chosen.items() if key != "nodes"})
    if reading.role not in _GUESSED:
        return keys
    length_m, time_s = _mean_trip(reading.value)
    return f"{keys} (mean trip {length_m / 1000:,.3g} km, {time_s / 60:,.3g} min)"


def _read_until_usable(
    section: str, found: Mapping[Path, Sequence[str]], files: Mapping[str, list[Path]], roads: Reading | None
) -> list[Reading]:
    """Return readings of the files of one section, up to the first that can be used, which is then the last."""
    order, used, readings = [*ROLES], {*roads.files} if roads else set(), list[Reading]()
    used |= {Path(roads.keys["nodes"])} if roads and "nodes" in roads.keys else set()
    likely = sorted(
        (roles.index(role), order.index(role), len(path.parts), path)
        for path, roles in found.items()
        for role in roles
        if ROLES[role].section == section and path not in used
    )
    for _, number, _, path in likely:
        role = order[number]
        if (role, path) not in {(reading.role, file) for reading in readings for file in reading.files}:
            beside = [
                other for other in files[role] if other.parent == path.parent and found[other][0] == found[path][0]
            ]
            together = [path, *(other for other in beside if other != path)] if role in {"trace", "routes"} else [path]
            readings.append(_read(role, together, files, roads))
            if not readings[-1].faults:
                break
    return readings


def inspect(paths: Iterable[Path], *, folder: Path, name: str = "") -> Inspection:
    """Inspect files and folders.

    Parameters
    ----------
    paths
        Files and folders that belong to one city.
    folder
        Where the scenario will be stored: files are named relative to it.
    name
        Name of the scenario; the name of the first path if empty.

    Raises
    ------
    InputError
        If there is no such file, no file is recognised, or none can be read.
    """
    paths = [*paths]
    found, unknown = find_files(paths)
    files: dict[str, list[Path]] = {}
    for path, roles in found.items():
        for role in roles:
            files.setdefault(role, []).append(path)
    rows = [(path.name, _described(path, roles[0])) for path, roles in found.items()]
    rows += [(file.name, "not recognised, and left out") for file in unknown]
    networks = _read_until_usable("roads", found, files, None)
    roads = next((reading for reading in networks if not reading.faults), None)
    readings = [*networks, *_read_until_usable("traffic", found, files, roads)]
    traffic = next((reading for reading in readings if reading.role not in _NETWORKS and not reading.faults), None)
    if roads is None and traffic is None:
        return _incomplete(rows, readings, files, folder.resolve())
    used = [reading for reading in (roads, traffic) if reading is not None]
    read = {file for reading in used for file in reading.files}
    _refuse_replaced(readings, found, read, {ROLES[reading.role].section for reading in used})
    notes = [
        note for reading in readings if reading.faults and read.isdisjoint(reading.files) for note in _refused(reading)
    ]
    notes += [text for reading in used for text in (reading.instead_of, *(note.text for note in reading.notes)) if text]
    sections: dict[str, Any] = {ROLES[reading.role].section: reading.keys for reading in used}
    heading: dict[str, Any] = {"duration_s": _HOUR_S}
    comments, missing = dict[str, list[str]](), list[str]()
    if roads is not None:
        comments["roads"] = [_size_of(roads.value), *(f"also fits: {one}" for one in roads.also)]
        unit_keys = [key for key in roads.chosen if key.endswith("_unit")]
        if unit_keys and not any(PROVED in note.text for note in roads.notes):
            comments["roads"].insert(1, f"proposed: no column states the unit: {_in_words(roads)}")
    if traffic is not None:
        heading, keys, text = _timed(traffic, roads)
        sections["traffic"] = {**traffic.keys, **keys}
        others = [path for path in [*found] if ROLES[found[path][0]].section == "traffic" and path not in read]
        comments["traffic"] = [text, *(f"instead: {ROLES[found[path][0]].key} = {path.name}" for path in others)]
    elif roads is not None:
        sections["traffic"], heading["busy_s"] = _drawn(roads)
        missing.append("demand: no file has trips or vehicles, so trips are drawn on the roads; or state trips = FILE")
    ground = Ground(roads and roads.value, traffic.value if traffic and "engine" in traffic.keys else None)
    rows += [*((section, texts[0]) for section, texts in comments.items()), *_extent(ground, used)]
    sections["cells"], cells = _cells(sections, ground, files, heading, notes)
    comments["cells"] = _occupied(heading["busy_s"][2], cells, recorded=ground.recorded is not None)
    rows.append(("cells", "; ".join(comments["cells"])))
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", name or paths[0].resolve().name.partition(".")[0])
    tables = _tables(sections, name=plain.lstrip("-.") or "my-city", **heading)
    if isinstance(faults := Scenario.check(tables, Path()), list):
        raise ScenarioError("inspect", faults)
    tables |= {key: relative_to(tables[key], folder.resolve()) for key in ("roads", "cells", "traffic")}
    tables["mechanisms"], claim = _compared(tables["mechanisms"])
    tables["scenario"]["description"], comments["mechanisms"] = claim, ["set for the claim in the description"]
    toml = _toml(tables, comments, f"Written by crowdveil inspect {' '.join(path.resolve().name for path in paths)}")
    return Inspection(rows, list(dict.fromkeys(notes)), missing, toml)


def _refuse_replaced(
    readings: Sequence[Reading], found: Mapping[Path, Sequence[str]], read: set[Path], sections: Collection[str]
) -> None:
    """Refuse unreadable files that would be replaced by something else: roads by none, trips by drawn trips.

    Raises
    ------
    InputError
        If a file whose likeliest role is one of a section that no file fills is not read.
    """
    failed = [one for one in readings if one.faults and one.role == found[one.files[0]][0]]
    failed = [one for one in failed if ROLES[one.role].section not in sections and read.isdisjoint(one.files)]
    failed = [one for one in failed if NEEDS_NODES not in one.faults and not _names(one.files[0])]
    if failed:
        rest = "; correct the file, or leave it out: nothing is put in its place"
        raise InputError(f"{fault}{rest}" for one in failed for fault in _refused(one))


def _refused(reading: Reading) -> list[str]:
    return [f"{reading.files[0].name}, as {ROLES[reading.role].title}: {fault}" for fault in reading.faults]


def _incomplete(
    rows: list[tuple[str, str]], readings: Sequence[Reading], files: Mapping[str, list[Path]], folder: Path
) -> Inspection:
    """Return an inspection of files that are no scenario by themselves.

    Raises
    ------
    InputError
        If a file cannot be read.
    """
    lacking = [reading for reading in readings if {NEEDS_ROADS, NEEDS_NODES} & {*reading.faults}]
    waiting = {file for reading in lacking for file in reading.files}
    if any(waiting.isdisjoint(reading.files) for reading in readings):
        raise InputError(fault for reading in readings for fault in _refused(reading))
    tables: dict[str, Any] = {ROLES[one.role].section: one.keys for one in lacking[-1:]}
    if not lacking and "zones" in files:
        tables["cells"] = {"kind": "zones", "file": str(files["zones"][0])}
    toml = _toml({key: relative_to(table, folder) for key, table in tables.items()}, {}, "Part of a scenario")
    missing = lacking[-1].faults if lacking else [NEEDS_MORE]
    return Inspection([*rows, *_alone(lacking[-1:], files)], [], missing, toml, complete=False)


def _toml(tables: Mapping[str, Any], comments: Mapping[str, Sequence[str]], title: str) -> str:
    """Return the text of a scenario, with comments above its sections."""
    lines = [f"# {title}\n"]
    for key, table in tables.items():
        lines += [f"# {comment}" for comment in comments.get(key, ())]
        if isinstance(table, list):
            lines += [f"[[{key}]]\n{tomli_w.dumps(one)}" for one in table]
        else:
            lines.append(tomli_w.dumps({key: table}))
    return "\n".join(lines)


def inline(keys: Mapping[str, Any], before: str = "") -> str:
    """Return keys of a section on one line, keys of a table in it with its name before them."""
    parts = [
        inline(value, f"{key}.") if isinstance(value, dict) else f"{before}{key} = {value!r}"
        for key, value in keys.items()
    ]
    return ", ".join(parts)


def _alone(unread: Sequence[Reading], files: Mapping[str, list[Path]]) -> list[tuple[str, str]]:
    """Return rows on files that are no scenario by themselves: trips without roads, or zones.

    Raises
    ------
    InputError
        If a file cannot be read.
    """
    for role, path in [(one.role, one.files[0]) for one in unread]:
        if role in _UNTIMED and not find_points(column_names(path), {}):
            try:
                table = read_omx(path) if role == "omx" else read_trip_table(path, columns={})
            except InputError as error:
                if not _NAMED.search(str(error)):
                    raise
                return [("trips", str(error))]
            times = "" if table.from_s is None else f", which depart from {_OF_DAY.text(table.from_s.min())} on"
            return [("trips", f"{table.trips.sum():,.10g} trips between {len(table.places):,} places{times}")]
    frames = [read_features(file, None) for file in files.get("zones", ())[:1]]
    return [("zones", f"{len(frame):,} polygons; attributes {listed([*frame.columns])}") for frame in frames]


def _described(path: Path, role: str) -> str:
    names = column_names(path) if path.is_file() and role in {"edges", "nodes", "trips", "trace", "owners"} else []
    kind = ROLES[role].title
    return f"{kind}; columns {listed(names)}" if len(names) > 1 else kind


def _size_of(roads: RoadNetwork) -> str:
    zones = {data["zone"] for data in roads.nodes.values() if "zone" in data}
    low, median, high = (np.quantile(roads.links.speed_mps, [0.05, 0.5, 0.95]) * 3.6).tolist()
    size = f"{counted(len(roads.node_names), 'node')}, {counted(len(roads.links), 'link')}"
    length = f"{roads.total_length_m / 1000:,.1f} km, each direction counted"
    speeds = f"speeds {low:.0f} to {high:.0f} km/h, median {median:.0f}"
    return "; ".join([f"{size}, {length}", speeds, *([counted(len(zones), "zone")] if zones else [])])


def _extent(ground: Ground, used: Sequence[Reading]) -> list[tuple[str, str]]:
    """Return rows on coordinate system and extent."""
    x_min, y_min, x_max, y_max = ground.bounds
    size = f"{(x_max - x_min) / 1000:,.2f} km by {(y_max - y_min) / 1000:,.2f} km"
    west, south, east, north = transform(ground.crs, WGS84, np.array([(x_min, y_min), (x_max, y_max)])).ravel().tolist()
    where = f"longitude {west:.5f} to {east:.5f}, latitude {south:.5f} to {north:.5f}"
    unknown = ground.crs.name == f"{LOCAL} 0, 0" or any(PLANE in reading.keys.get("crs", "") for reading in used)
    known = ground.crs_text if len(ground.crs_text) < _LONG else ground.crs.name
    system = "a plane in metres whose place on the globe is not known: state crs" if unknown else known
    return [("extent", size if unknown else f"{size}; {where}"), ("coordinates", system)]


def _timed(traffic: Reading, roads: Reading | None) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Return the times of a run: keys of `[scenario]` and of `[traffic]`, and the times of the file in words."""
    value = traffic.value
    if isinstance(value, Recording):
        return _recorded(value, static="owners" in traffic.keys)
    ticks = value.trips.departure_tick
    found = counted(len(ticks), "vehicle")
    if traffic.role in _UNTIMED and not value.timed:
        _, take_s, carried_s = _driven(traffic, value, roads, np.arange(len(ticks)))
        few_s = float(np.clip(len(ticks) * take_s.mean() / _FEW, 60, _HOUR_S))
        duration_s = 60 * math.ceil(max(few_s, carried_s * min(1.0, MOST_VEHICLES / len(ticks))) / 60)
        planned, _ = _value(traffic.role, traffic.keys, roads, duration_s=duration_s)
        depart_s, take_s, _ = _driven(traffic, planned, roads, np.arange(len(planned.trips)))
        busy_s = _busy(depart_s, depart_s + take_s, duration_s, vehicles=len(ticks))
        within = "an hour" if duration_s == _HOUR_S else f"{duration_s:,} s, so that enough are on the roads at once"
        within += ", and no more than these carry" * (carried_s > few_s)
        text = f"{found}, without times: they depart evenly within {within}"
        return {"duration_s": duration_s, "busy_s": busy_s}, _share(len(ticks)), text + _part(len(ticks))
    hours = np.bincount(ticks // _HOUR_S)
    hour = int(hours.argmax())
    depart_s, take_s, _ = _driven(traffic, value, roads, np.flatnonzero(ticks // _HOUR_S == hour))
    depart_s, vehicles = depart_s - hour * _HOUR_S, int(hours[hour])
    heading = {"duration_s": _HOUR_S, "busy_s": _busy(depart_s, depart_s + take_s, _HOUR_S, vehicles=vehicles)}
    given = {} if roads is None else {"roads": roads.keys, "cells": {"kind": "roads"}}
    clock = clock_of_trips(_checked({"traffic": traffic.keys, **given}), None) or _OF_DAY
    seconds = (*ticks[[0, -1]].tolist(), hour * _HOUR_S, (hour + 1) * _HOUR_S)
    first, last, begin, end = map(clock.text, seconds)
    heading |= {"start": begin} if clock.dated or hour < 24 else {}
    keys = _share(vehicles) | ({} if "start" in heading else {"begin_s": hour * _HOUR_S})
    text = f"{found}, which depart from {first} to {last}, most of them, {vehicles:,}, from {begin} to {end}"
    return heading, keys, text + _part(vehicles)


def _driven(
    traffic: Reading, demand: Demand, roads: Reading | None, trips: IntArray
) -> tuple[FloatArray, FloatArray, float]:
    """Return when trips depart, at most `_MOST_ROUTED` of them, how long they take, and in what time roads carry all.

    All are in seconds. Trips take as long as without others, and are carried if no link has more than `_LOAD` of its
    capacity.
    """
    every = trips[:: len(trips) // _MOST_ROUTED + 1]
    network: Any = None if roads is None else roads.value
    if roads is not None and traffic.role == "routes":
        network, _ = _roads_of_classes(traffic.keys, roads)
    planned = demand.trips
    time_s, take_s = network.links.free_flow_s, np.zeros(len(every))
    if demand.routes is None:
        routes = ShortestPaths.of(network).routes(planned.origin[every], planned.destination[every])
    else:
        first = demand.routes.offsets
        routes = Routes.gathered(demand.routes.links, first[every], first[every + 1] - first[every])
    np.add.at(take_s, np.repeat(np.arange(len(every)), np.diff(routes.offsets)), time_s[routes.links])
    loads = np.bincount(routes.links, minlength=len(time_s)) / network.links.capacity_vph
    carried_s = float(loads.max()) * len(trips) / len(every) * _HOUR_S / _LOAD
    return planned.departure_tick[every].astype(np.float64), take_s, carried_s


def _busy(
    begin_s: FloatArray, end_s: FloatArray, duration_s: float, likely_s: Sequence[float] = (), *, vehicles: int = 0
) -> tuple[float, float, float]:
    """Return the first and the last of four moments at which vehicles are there, and how many are in the mean.

    Parameters
    ----------
    begin_s, end_s
        When each vehicle comes and goes, seconds of the run, of the same shape; one may come and go often.
    duration_s
        Duration of the run, seconds.
    likely_s
        The two moments if vehicles are there; by default a sixth and two thirds of the run.
    vehicles
        Vehicles that these stand for, of which a run drives `MOST_VEHICLES` at most; by default these alone.
    """
    come, gone = np.sort(begin_s), np.sort(end_s)
    likely = likely_s or (duration_s / 6, duration_s * 2 / 3)
    for shorter in 2.0 ** np.arange(15):
        step_s = max((likely[1] - likely[0]) / 3 / shorter, 1.0)
        first_s = np.append(likely[0], np.arange(1.0, 0.85 * duration_s - 3 * step_s, max(step_s / 8, 1.0)))
        at_s = np.floor(first_s)[:, None] + np.floor(step_s) * np.arange(_QUERIES)
        there = (np.searchsorted(come, at_s, "right") - np.searchsorted(gone, at_s, "left")).min(axis=1)
        if there.max() > 0:
            best = at_s[0 if there[0] else int(there.argmax())]
            number = np.searchsorted(come, best, "right") - np.searchsorted(gone, best, "right")
            stands_for = min(vehicles, MOST_VEHICLES) / len(come) if vehicles else 1.0
            return float(best[0]), float(best[-1]), stands_for * float(number.mean())
    return likely[0], likely[1], 0.0


def _drawn(roads: Reading) -> tuple[dict[str, Any], tuple[float, float, float]]:
    """Return the section of traffic with trips drawn on roads, and what `_busy` returns of them."""
    by_length = roads.value.total_length_m / 1000 * _VEHICLES_PER_KM
    on_the_way = _FEW * _HOUR_S / max(_mean_trip(roads.value)[1], 1.0)
    number = int(float(f"{np.clip(max(by_length, on_the_way), 10, MOST_VEHICLES):.1g}"))
    section = {"vehicles": number, "demand": "gravity"}
    planned, _ = _value("trips", section, roads, duration_s=_HOUR_S)
    depart_s, take_s, carried_s = _driven(Reading("trips", (), {}), planned, roads, np.arange(number))
    if carried_s > _HOUR_S:
        number = max(10, int(float(f"{number * _HOUR_S / carried_s:.1g}")))
    return {**section, "vehicles": number}, _busy(depart_s, depart_s + take_s, _HOUR_S, vehicles=number)


def _share(vehicles: int) -> dict[str, float]:
    return {} if vehicles <= MOST_VEHICLES else {"share": float(f"{MOST_VEHICLES / vehicles:.1g}")}


def _part(vehicles: int) -> str:
    """Return in words that a run drives a part of so many vehicles; empty if it drives all."""
    given = _share(vehicles)
    return f"; a run drives {given['share'] * vehicles:,.0f} of them (share = {given['share']:g})" if given else ""


def _recorded(recording: Recording, *, static: bool) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Return the times of a run that replays a recording: all of it, or the day with most fixes."""
    times_s = recording.fix_times_s[np.isfinite(recording.fix_times_s)]
    last_s, first_s = float(times_s.max()), 0.0
    if last_s > _DAY_S and recording.epoch_s is not None:
        first_s = float(np.bincount((times_s[times_s >= 0] // _DAY_S).astype(np.int64)).argmax()) * _DAY_S
    if recording.epoch_s is not None:
        first_s -= (recording.epoch_s + first_s) % 60  # the run starts with a minute
    duration_s = min(max(math.ceil((last_s - first_s) / 60) * 60, 60), _DAY_S) if last_s else _HOUR_S
    within_s = times_s[(times_s >= first_s) & (times_s <= first_s + duration_s)] - first_s
    busy_s = np.clip(np.quantile(within_s, (0.2, 0.7)), 0, 0.8 * duration_s).tolist() if last_s else ()
    tracks, keys = recording.tracks, dict[str, Any]()
    next_s = np.append(tracks.time_s[1:], np.inf)
    next_s[tracks.first[1:-1] - 1] = np.inf
    until_s = np.where(tracks.known, next_s, recording.leaves_s)
    steps_s = np.delete(np.diff(tracks.time_s), tracks.first[1:-1] - 1)
    step_s = float(np.median(steps_s)) if len(steps_s) else 0.0
    if static and recording.epoch_s is not None:
        keys["dwell_s"] = float(_HOUR_S)
        until_s = np.minimum(until_s, tracks.time_s + _HOUR_S)
    elif not static and tracks.link is None and step_s > 150:
        keys["gap_s"] = math.ceil(2 * step_s)
        until_s = np.where(next_s - tracks.time_s <= keys["gap_s"], next_s, until_s)
    busy_s = _busy(tracks.time_s - first_s, until_s - first_s, duration_s, busy_s)
    heading, span = {"duration_s": duration_s, "busy_s": busy_s}, f"{last_s:,.0f} s"
    if recording.epoch_s is not None:
        begin, end, start = (
            datetime.fromtimestamp((recording.epoch_s + second) // 60 * 60, UTC) for second in (0, last_s, first_s)
        )
        if static and any(NAIVE in note.text for note in recording.notes()):
            start = start.replace(tzinfo=None)
        heading["start"], span = start.isoformat(), f"{begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC"
    text = f"{counted(tracks.vehicles, 'vehicle')}, {counted(len(times_s), 'fix', 'fixes')}, {span}"
    return heading, keys, text + (f", {step_s:,.3g} s apart in the median" if step_s else "")


def _cells(
    sections: Mapping[str, Any],
    ground: Ground,
    files: Mapping[str, list[Path]],
    heading: Mapping[str, Any],
    notes: list[str],
) -> tuple[dict[str, Any], int | None]:
    """Return the section of cells and their number: zones of a file, links or places without coordinates, or squares.

    Why a file of zones does not give the cells is added to `notes`.
    """
    for file in files.get("zones", ()):
        for name in (names := _names(file)[:3]):
            zones = {"kind": "zones", "file": str(file), "name": name}
            try:
                city = build_city(_checked({**sections, "cells": zones}, **heading))
            except (InputError, ScenarioError) as error:
                notes += [f"{file.name}, as cells: {fault}" for fault in error.faults if name == names[-1]]
                continue
            return zones, city.cells.count
    roads = sections.get("roads", {})
    if "coordinates" in roads or (roads.get("source") == "tntp" and "nodes" not in roads):
        return {"kind": "roads", "top": _CELLS}, None
    if "owners" in sections["traffic"] and "place" in sections["traffic"]["columns"]:
        return {"kind": "locations"}, None
    x_min, y_min, x_max, y_max = ground.bounds
    window = {}
    if ground.recorded is not None:
        xy = ground.recorded.tracks.xy
        inner = np.nanquantile(xy, [_OUTLYING, 1 - _OUTLYING], axis=0).ravel()
        if np.prod(inner[2:] - inner[:2]) * 4 < (x_max - x_min) * (y_max - y_min):
            x_min, y_min, x_max, y_max = window["bounds"] = np.round(inner).tolist()
    numbers = {side: math.ceil((x_max - x_min) / side) * math.ceil((y_max - y_min) / side) for side in _SIDES}
    fewest = min((number for number in numbers.values() if number > 1), default=1)
    most = np.clip(heading["busy_s"][2] // _OCCUPANCY, fewest, max(fewest, _CELLS))
    size_m = next(side for side, number in numbers.items() if number <= most)
    return {"kind": "square", "size_m": size_m, **window}, max(numbers[size_m], 1)


def _occupied(present: float, cells: int | None, *, recorded: bool) -> list[str]:
    """Return comments on how many vehicles a mean cell holds at a query, and what to do if these are few."""
    source = "as recorded" if recorded else "estimated from departures and times without congestion"
    mean = "" if cells is None else f": {present / cells:,.2g} in a mean cell"
    few = f"fewer than {_OCCUPANCY}: larger cells or more vehicles would show the difference of mechanisms better"
    comment = f"about {float(f'{present:.2g}'):,.10g} vehicles are there at a query, {source}{mean}"
    return [comment, few] if present < _OCCUPANCY * (cells or 0) else [comment]


def _compared(mechanisms: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], str]:
    """Return mechanisms, all but the exact baseline planned for one claim about linked reports, and the claim."""
    target = Target(cells=_CELLS, population=_CELLS * _OCCUPANCY, epsilon=_EPSILON, delta=_DELTA)
    plans = plan(target, [one["kind"] for one in mechanisms if one["kind"] != "no_privacy"], claims=False).plans
    parameters = {made.kind: made.parameters for made in plans}
    equal = f"the linked reports of a query satisfy ε = {_EPSILON:g} with δ = {_DELTA:g}"
    limit = "With Sampling Privacy they reveal the cell of a device with probability δ, so δ = 0 cannot be reached"
    claim = f"Equal claims: with {' and with '.join(made.title for made in plans)}, {equal}. {limit}."
    return [{**one, **parameters.get(one["kind"], {})} for one in mechanisms], claim
