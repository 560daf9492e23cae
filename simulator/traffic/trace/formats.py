"""Readers of traces in text files: tables with a header, T-Drive and cabspotting, and New York's taxi trips.

Readers of traces in GPX, Parquet, GeoParquet, deck.gl's trips and kepler.gl's trip layer.

Readers of SUMO's floating-car data (``--fcd-output``) in XML, CSV and Parquet.
"""

import csv
import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from simulator.extras import import_extra
from simulator.files.compressed_io import JSON_TIMES, TABLE_TIMES, opened, unpacked_name
from simulator.files.messages import counted
from simulator.files.text_table import check_parquet
from simulator.files.xml_elements import elements_of
from simulator.traffic.errors import TrafficError
from simulator.traffic.trace.fixes import Fixes, Times
from simulator.traffic.trace.tables import TraceOptions, check, fixes_of, numbers_of, plain_names, to_wgs84, vehicles_of

WITHOUT_GEO = "x and y look like metres: let SUMO write --fcd-output.geo, or give the system they are in as traffic.crs"

_PLAIN = {"time", "id", "x", "y", "speed"}


def is_sumo(seen: Sequence[str]) -> bool:
    """Return whether columns are those of ``sumo --fcd-output``, with or without the names of their elements."""
    return {"timestep_time", "vehicle_id"} <= set(seen) or (
        set(seen) >= _PLAIN and not {"lane", "edge"}.isdisjoint(seen)
    )


def fixes_of_sumo(
    frame: pd.DataFrame, reading: TraceOptions, *, source: str, place: npt.NDArray[np.int64], place_word: str
) -> Fixes:
    """Convert SUMO's table to fixes; x and y are longitude and latitude unless a system in metres is given.

    A timestep without vehicles is a row without a vehicle; such rows, and rows of persons, are left out.

    Raises
    ------
    TrafficError
        If columns or values are invalid.
    """
    named = "vehicle_" if "vehicle_id" in frame.columns else ""
    time = "timestep_time" if "timestep_time" in frame.columns else "time"
    columns = {role: f"{named}{column}" for role, column in (("vehicle", "id"), ("x", "x"), ("y", "y"))}
    if f"{named}speed" in frame.columns:
        columns["speed_mps"] = f"{named}speed"
    faults = [f"{source}: no column {name!r}" for name in [*columns.values(), time] if name not in frame.columns]
    if faults:
        raise TrafficError(faults)
    x, y = (numbers_of(frame[columns[role]]) for role in "xy")
    empty = frame[columns["vehicle"]].isna().to_numpy() & np.isnan(x) & np.isnan(y)
    if empty.all():
        raise TrafficError([f"{source}: it holds no vehicle"])
    metres = bool((np.abs(x[~empty]) > 180).any() and (np.abs(y[~empty]) > 90).any())
    if reading.crs is None:
        if metres:
            raise TrafficError([f"{source}: {WITHOUT_GEO}"])
        columns["lon"], columns["lat"] = columns.pop("x"), columns.pop("y")
    own = TraceOptions({**columns, "time": time}, crs=reading.crs, time_unit_s=reading.time_unit_s or 1.0)
    there = frame[~empty]
    return fixes_of(there, own, source=source, vehicle="", place=place[~empty], place_word=place_word, ascending=True)


_OTHERS = frozenset(["person", "container"])


class _Rows:
    """Collector of vehicles while a document is parsed."""

    def __init__(self, file: Path, unit_s: float) -> None:
        self._file, self._unit_s = file, unit_s
        self._time, self._last = float("nan"), float("-inf")
        self.codes: dict[str, int] = {}
        self.vehicle: list[int] = []
        self.time: list[float] = []
        self.x: list[float] = []
        self.y: list[float] = []
        self.speed: list[float] = []
        self.line: list[int] = []
        self.others = 0
        self.root = ""

    def started(self, name: str, attributes: Mapping[str, str], line: int) -> None:
        if name == "vehicle" and self.root:
            self._vehicle(attributes, line)
        elif name == "timestep":
            self._time = self._number(attributes, "time", "timestep", line) * self._unit_s
            if self._time < self._last:
                rule = f"time must not go back, got {self._time:g} s after {self._last:g} s"
                raise TrafficError([f"{self._file}: line {line}: timestep: {rule}"])
            self._last = self._time
        elif name in _OTHERS:
            self.others += 1
        if not self.root:
            self.root = name
            if name != "fcd-export":
                rule = f"the outermost element must be fcd-export, got {name}"
                raise TrafficError([f"{self._file}: line {line}: {rule}"])

    def _vehicle(self, attributes: Mapping[str, str], line: int) -> None:
        if math.isnan(self._time):  # no timestep yet
            raise TrafficError([f"{self._file}: line {line}: vehicle must be within a timestep"])
        if "id" not in attributes:
            raise TrafficError([f"{self._file}: line {line}: vehicle must have an id"])
        self.vehicle.append(self.codes.setdefault(attributes["id"], len(self.codes)))
        self.time.append(self._time)
        self.x.append(self._number(attributes, "x", "vehicle", line))
        self.y.append(self._number(attributes, "y", "vehicle", line))
        self.speed.append(self._number(attributes, "speed", "vehicle", line) if "speed" in attributes else float("nan"))
        self.line.append(line)

    def _number(self, attributes: Mapping[str, str], name: str, element: str, line: int) -> float:
        text = attributes.get(name)
        try:
            number = float(text or "")
        except ValueError:
            number = float("nan")
        if not np.isfinite(number):
            got = "nothing" if text is None else repr(text[:40])
            raise TrafficError([f"{self._file}: line {line}: {element}: {name} must be a number, got {got}"])
        return number


def read_sumo_fcd(file: Path, reading: TraceOptions) -> list[Fixes]:
    """Read SUMO's XML, one element after another; x and y are degrees unless a system in metres is given.

    Persons and containers are left out.

    Raises
    ------
    TrafficError
        If the file is not such a document, or its times go back.
    """
    rows = _Rows(file, reading.time_unit_s or 1.0)
    for element in elements_of(file, error=TrafficError):
        if element.attributes is not None:
            rows.started(element.local_name, element.attributes, element.line)
    if not rows.vehicle:
        raise TrafficError([f"{file}: it holds no vehicle"])
    x, y = np.array(rows.x), np.array(rows.y)
    if reading.crs is not None:
        x, y = to_wgs84(x, y, reading.crs)
    elif (np.abs(x) > 180).any() and (np.abs(y) > 90).any():
        raise TrafficError([f"{file}: {WITHOUT_GEO}"])
    fixes = Fixes(
        str(file),
        np.array(rows.vehicle, dtype=np.int32),
        list(rows.codes),
        Times(np.array(rows.time), calendar=bool(np.median(rows.time) >= 1e8)),
        x,
        y,
        np.array(rows.speed),
        np.array(rows.line, dtype=np.int64),
        "line",
        ascending=True,
        notes=(f"{file}: left out {counted(rows.others, 'place')} of persons and containers",) if rows.others else (),
    )
    check(fixes)
    return [fixes]


_ENDS = ("pickup", "dropoff")


def holds_trips(plain: set[str]) -> bool:
    """Return whether column names, in lower case letters and digits, are those of pick-ups and drop-offs."""
    return {f"{end}{what}" for end in _ENDS for what in ("longitude", "latitude")} <= plain


def fixes_of_trips(frame: pd.DataFrame, reading: TraceOptions, *, source: str, place: npt.NDArray[np.int64]) -> Fixes:
    """Convert pick-ups and drop-offs to fixes; the vehicle is the medallion, else the trip's id, else the line.

    Raises
    ------
    TrafficError
        If columns or values are invalid.
    """
    by_plain = {"".join(ch for ch in str(name).lower() if ch.isalnum()): str(name) for name in frame.columns}

    def named(*names: str) -> str | None:
        return next((by_plain[name] for name in names if name in by_plain), None)

    moments = [named(f"{end}datetime", f"tpep{end}datetime", f"lpep{end}datetime") for end in _ENDS]
    if frame.empty or None in moments:
        why = "it holds no rows" if frame.empty else "pickup_datetime and dropoff_datetime must be columns"
        raise TrafficError([f"{source}: {why}"])
    who = named("medallion", "taxiid", "vehicleid")
    trip = who or named("id", "tripid")
    names: Sequence[str] = [f"line {line}" for line in place.tolist()]
    codes = np.arange(len(frame), dtype=np.int32)
    if trip is not None:
        codes, names = vehicles_of(frame[trip])
    stamps = [
        Times.from_column(frame[str(moment)], unit_s=reading.time_unit_s, written=reading.time_format)
        for moment in moments
    ]
    zoned = [stamp.zoned for stamp in stamps if stamp.zoned is not None]
    # Both ends of a trip are adjacent, so that the order of a taxi's times is checked as in the file.
    both = np.arange(2 * len(frame)).reshape(2, -1).T.ravel()
    fixes = Fixes(
        source,
        np.tile(codes, 2)[both],
        names,
        Times(
            np.concatenate([stamp.seconds for stamp in stamps])[both],
            calendar=stamps[0].calendar,
            naive=stamps[0].naive,
            zoned=np.concatenate(zoned)[both] if len(zoned) == len(stamps) else None,
        ),
        _both(frame, by_plain, "longitude")[both],
        _both(frame, by_plain, "latitude")[both],
        np.full(len(both), np.nan),
        np.tile(place, 2)[both],
        "line",
        notes=() if who else (f"{source}: no column names the taxi, so every trip is a vehicle of its own",),
    )
    check(fixes)
    return fixes


def _both(frame: pd.DataFrame, by_plain: dict[str, str], what: str) -> npt.NDArray[np.float64]:
    return np.concatenate([numbers_of(frame[by_plain[f"{end}{what}"]]) for end in _ENDS])


def plain_name(file: Path) -> str:
    """Return a file's name in lower case, without ``.gz`` and the like."""
    return unpacked_name(file).lower()


def stem(file: Path) -> str:
    """Return a file's name without ``.gz`` and its suffix: the vehicle's name, if each file is one vehicle."""
    return Path(unpacked_name(file)).stem


def first_lines(file: Path, lines: int = 3, *, most_nbytes: int = 1 << 16) -> list[str]:
    """Read the first lines of a text file that are not blank, at most 64 KiB, to recognise its format.

    Raises
    ------
    TrafficError
        If the file cannot be read.
    """
    with opened(file, error=TrafficError) as stream:
        start = stream.read(most_nbytes)
    text = start.decode("utf-8-sig", errors="replace")
    return [line for line in text.splitlines() if line.strip()][:lines]


SEPARATORS = (",", ";", "\t", "|")

T_DRIVE = ("vehicle", "time", "lon", "lat")
CABSPOTTING = ("lat", "lon", "occupied", "time")


def read_csv(file: Path, reading: TraceOptions) -> list[Fixes]:
    """Read a table with a header, separated by comma, semicolon, tab or bar.

    SUMO's floating-car data and taxi trips (pick-up and drop-off in one row) are recognised by their columns.
    """
    lines = first_lines(file, 1)
    if not lines:
        raise TrafficError([f"{file}: it is empty"])
    names = [name.strip() for name in next(csv.reader([lines[0]], delimiter=separator_of(lines[0])), [])]
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise TrafficError([f"{file}: line 1: columns must differ in name, and {twice[0]!r} is there twice"])
    frame = _frame(file, separator=separator_of(lines[0]))
    # The header is the first line that is not blank; a quoted field that spans several lines counts as one line.
    place = frame.index.to_numpy().astype(np.int64) + 2
    if is_sumo(list(frame.columns)) and not reading.columns:
        return [fixes_of_sumo(frame, reading, source=str(file), place=place, place_word="line")]
    if holds_trips(plain_names(list(frame.columns))) and not reading.columns:
        return [fixes_of_trips(frame, reading, source=str(file), place=place)]
    return [fixes_of(frame, reading, source=str(file), vehicle=stem(file), place=place, place_word="line")]


def read_tdrive(file: Path, reading: TraceOptions) -> list[Fixes]:
    """Read the T-Drive format: vehicle, time, longitude, latitude, separated by commas, without a header."""
    frame = _frame(file, separator=",", names=T_DRIVE)
    place = frame.index.to_numpy().astype(np.int64) + 1
    own = TraceOptions(
        dict(zip(T_DRIVE, T_DRIVE, strict=True)), time_unit_s=reading.time_unit_s, time_format=reading.time_format
    )
    return [fixes_of(frame, own, source=str(file), vehicle=stem(file), place=place, place_word="line")]


def read_cabspotting(file: Path, reading: TraceOptions) -> list[Fixes]:
    """Read the cabspotting format: latitude, longitude, occupied, seconds since 1970, one file per cab.

    A cab is named after its file, without the prefix ``new_``.
    """
    frame = _frame(file, separator=" ", names=CABSPOTTING)
    place = frame.index.to_numpy().astype(np.int64) + 1
    columns = {"time": "time", "lon": "lon", "lat": "lat"}
    own = TraceOptions(columns, time_unit_s=reading.time_unit_s, one_vehicle_a_file=True)
    cab = stem(file).removeprefix("new_")
    return [fixes_of(frame, own, source=str(file), vehicle=cab, place=place, place_word="line")]


def is_tdrive(line: str) -> bool:
    """Return whether a first line has the T-Drive format: four fields, with a time in the second, then degrees."""
    fields = line.split(",")
    if len(fields) != 4 or not (_is_number(fields[2]) and _is_number(fields[3])):
        return False
    return bool(np.isfinite(Times.from_column(pd.Series([fields[1]])).seconds[0]))


def is_cabspotting(line: str) -> bool:
    """Return whether a first line has the cabspotting format: four numbers separated by blanks, the third 0 or 1."""
    fields = line.split()
    return len(fields) == 4 and all(map(_is_number, fields)) and fields[2] in {"0", "1"}


def separator_of(header: str) -> str:
    """Return the separator of a header: the one that occurs in it most often, comma if there is none."""
    return max(SEPARATORS, key=header.count)


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _frame(file: Path, *, separator: str, names: Sequence[str] | None = None) -> pd.DataFrame:
    """Read rows; blank lines are left out, and the index still counts them."""
    text: dict[str, Any] = {"header": None, "names": list(names)} if names else {}
    try:
        with opened(file, error=TrafficError, lines=True, times=TABLE_TIMES) as stream, warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                stream,
                sep=separator,
                index_col=False,
                skip_blank_lines=False,
                encoding="utf-8-sig",
                dtype=_text_columns(file, separator) if names is None else {"vehicle": "str"},
                low_memory=False,
                **text,
            )
    except pd.errors.EmptyDataError:
        raise TrafficError([f"{file}: it is empty"]) from None
    except (pd.errors.ParserError, pd.errors.ParserWarning, csv.Error, ValueError, OverflowError) as error:
        if isinstance(error, TrafficError):
            raise
        why = " ".join(str(error).split())
        raise TrafficError([f"{file}: cannot be read as a table separated by {separator!r}: {why}"]) from None
    rows: pd.DataFrame = frame.dropna(how="all")
    return rows


def _text_columns(file: Path, separator: str) -> dict[str, str]:
    """Return text as the type of all columns that may name a vehicle, so that 007 stays 007."""
    header = first_lines(file, 1)[0].split(separator)
    times = ("time", "date", "utc")
    plain = [name.strip().strip('"') for name in header]
    return {
        name: "str"
        for name in plain
        if not any(word in name.lower() for word in (*times, "lon", "lng", "lat", "speed", "_x", "_y"))
        and name.lower() not in {"x", "y", "t", "ts", "epoch", "velocity"}
    }


def read_gpx(file: Path, reading: TraceOptions) -> list[Fixes]:  # noqa: ARG001 - a GPX file says all of it itself
    """Read the tracks of a GPX file, one vehicle per track, named after the file, and numbered if there are several.

    Routes and waypoints do not have a time for every point, and are left out.

    Raises
    ------
    TrafficError
        If the file is not GPX, or a point of a track has no time.
    """
    gpxpy = import_extra("gpxpy", needed=f"{file}: reading GPX needs gpxpy", extra="traces", error=TrafficError)
    elements = elements_of(file, error=TrafficError)
    lines = [element.line for element in elements if element.local_name == "trkpt" and not element.ends]
    with opened(file, error=TrafficError) as stream:
        content = stream.read()
    try:
        tracks = gpxpy.parse(content).tracks
    except (gpxpy.gpx.GPXException, ValueError, TypeError, AttributeError, LookupError) as error:
        raise TrafficError([f"{file}: cannot be read as GPX: {error}"]) from None
    points = [(number, point) for number, track in enumerate(tracks, 1) for s in track.segments for point in s.points]
    if not points:
        raise TrafficError([f"{file}: it holds no point of a track"])
    if len(lines) != len(points):
        lines = list(range(1, len(points) + 1))
    zoned = np.array([point.time is not None and point.time.tzinfo is not None for _, point in points])
    several = len({number for number, _ in points}) > 1
    fixes = Fixes.from_lists(
        str(file),
        [f"{stem(file)}/{number}" if several else stem(file) for number, _ in points],
        Times(
            np.array([_seconds(point.time) for _, point in points]),
            calendar=True,
            naive=not zoned.any(),
            zoned=zoned,
        ),
        [point.longitude for _, point in points],
        [point.latitude for _, point in points],
        speed_mps=[np.nan if point.speed is None else point.speed for _, point in points],
        place=lines,
        place_word="line",
    )
    check(fixes)
    return [fixes]


def _seconds(time: Any) -> float:
    """Return seconds since 1970, UTC if the time names no zone; NaN if there is no time."""
    if time is None:
        return float("nan")
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return float(aware.timestamp())


def read_parquet(file: Path, reading: TraceOptions) -> list[Fixes]:
    """Read a table, SUMO's floating-car data, or points (GeoParquet), which are converted to longitude and latitude.

    Raises
    ------
    TrafficError
        If the file is not Parquet, or its columns are invalid.
    """
    try:
        stored = pq.ParquetFile(file)
        check_parquet(stored, file, error=TrafficError)
        frame = _points(file) if b"geo" in (stored.schema_arrow.metadata or {}) else pd.read_parquet(file)
    except FileNotFoundError:
        raise TrafficError([f"{file}: no such file"]) from None
    except TrafficError:
        raise
    except (OSError, ValueError, TypeError, LookupError, pa.ArrowException) as error:
        why = " ".join(str(error).split())
        raise TrafficError([f"{file}: cannot be read as Parquet: {why}"]) from None
    if frame.index.names != [None]:
        frame = frame.reset_index()
    place = np.arange(1, len(frame) + 1, dtype=np.int64)
    if is_sumo(list(frame.columns)) and not reading.columns:
        return [fixes_of_sumo(frame, reading, source=str(file), place=place, place_word="row")]
    return [fixes_of(frame, reading, source=str(file), vehicle=stem(file), place=place, place_word="row")]


def _points(file: Path) -> pd.DataFrame:
    import geopandas as gpd  # noqa: PLC0415 - heavy, and most Parquet has no geometry

    frame = gpd.read_parquet(file)
    points = frame.geometry
    if frame.crs is None or not (points.geom_type == "Point").all():
        raise ValueError("its geometry must be points in a known coordinate system")
    degrees = points.to_crs("EPSG:4326")
    plain = pd.DataFrame(frame.drop(columns=points.name))
    return plain.drop(columns=["lon", "lat"], errors="ignore").assign(
        lon=degrees.x.to_numpy(), lat=degrees.y.to_numpy()
    )


TimedPath = tuple[str, Sequence[Any], Sequence[Any]]
"""Name of a vehicle, its places [lon, lat …] and its times."""


class _BrokenError(Exception):
    """Error with the rule that a path breaks."""


def read_json_paths(file: Path, reading: TraceOptions) -> list[Fixes]:
    """Read timed paths in JSON, one vehicle per path.

    deck.gl: a list of ``{"path": [[lon, lat], …], "timestamps": […]}`` or ``{"waypoints": [{"coordinates",
    "timestamp"}, …]}``. kepler.gl: GeoJSON LineStrings whose points are [lon, lat, altitude, time]; a property
    ``vehicle`` names the vehicle, and features with the same name belong to the same vehicle.

    Raises
    ------
    TrafficError
        If the file is not JSON of these forms; messages give a path's number, from 1.
    """
    try:
        with opened(file, error=TrafficError, times=JSON_TIMES) as stream:
            content = json.load(stream)
    except TrafficError:
        raise
    except (ValueError, RecursionError) as error:
        why = "it nests too deeply" if isinstance(error, RecursionError) else str(error)
        if isinstance(error, json.JSONDecodeError):
            why = f"line {error.lineno}: {error.msg}"
        raise TrafficError([f"{file}: must be JSON: {why}"]) from None
    kepler = isinstance(content, dict)
    items = content.get("features") if kepler else content
    if not isinstance(items, list) or not items:
        raise TrafficError([f"{file}: must be a list of paths with timestamps, or a GeoJSON FeatureCollection"])
    names: list[str] = []
    times: list[float] = []
    places: list[tuple[float, float]] = []
    place: list[int] = []
    for number, item in enumerate(items, 1):
        try:
            for vehicle, at, moment in _kepler(number, item) if kepler else _deck(number, item):
                names.append(vehicle)
                places.append((_number(at, 0), _number(at, 1)))
                times.append(float(moment) if isinstance(moment, int | float) else float("nan"))
                place.append(number)
        except (_BrokenError, OverflowError) as error:
            raise TrafficError([f"{file}: path {number}: {error}"]) from None
    if not names:
        raise TrafficError([f"{file}: it holds no point of a path"])
    lon, lat = np.array(places, dtype=np.float64).T
    moments = Times.from_numbers(np.array(times), unit_s=reading.time_unit_s)
    fixes = Fixes.from_lists(str(file), names, moments, lon, lat, place=place, place_word="path")
    check(fixes)
    return [fixes]


def _deck(number: int, item: Any) -> Iterator[tuple[str, Any, Any]]:
    if not isinstance(item, dict):
        raise _BrokenError("must be a table with path and timestamps")
    path, stamps = item.get("path"), item.get("timestamps")
    waypoints = item.get("waypoints")
    if isinstance(waypoints, list) and all(isinstance(point, dict) for point in waypoints):
        path = [point.get("coordinates") for point in waypoints]
        stamps = [point.get("timestamp") for point in waypoints]
    if not isinstance(path, list) or not isinstance(stamps, list):
        raise _BrokenError("must have a path and its timestamps")
    if len(path) != len(stamps):
        raise _BrokenError(f"must have as many timestamps as places, got {len(stamps):,} for {len(path):,}")
    yield from ((f"trip {number}", at, moment) for at, moment in zip(path, stamps, strict=True))


def _kepler(number: int, item: Any) -> Iterator[tuple[str, Any, Any]]:
    geometry = item.get("geometry") if isinstance(item, dict) else None
    if not isinstance(geometry, dict) or geometry.get("type") != "LineString":
        raise _BrokenError("must be a feature with a LineString")
    properties = item.get("properties")
    named = properties.get("vehicle") if isinstance(properties, dict) else None
    vehicle = f"trip {number}" if named is None else str(named)
    points = geometry.get("coordinates")
    if not isinstance(points, list) or any(not isinstance(point, list) or len(point) < 4 for point in points):
        raise _BrokenError("points must be [longitude, latitude, altitude, time]")
    yield from ((vehicle, point, point[3]) for point in points)


def _number(at: Any, index: int) -> float:
    if not isinstance(at, list) or len(at) < 2 or isinstance(at[index], bool):
        raise _BrokenError("places must be [longitude, latitude]")
    return float(at[index]) if isinstance(at[index], int | float) else float("nan")
