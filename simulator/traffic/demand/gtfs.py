"""Demand from a GTFS feed: the buses of a date, on the fastest paths through their stops."""

from __future__ import annotations

import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd

from simulator.arrays import FloatArray
from simulator.files.available_memory import in_words, shortage
from simulator.files.compressed_io import TABLE_TIMES
from simulator.files.errors import InputError
from simulator.files.messages import counted
from simulator.files.tables import Table
from simulator.roads.network import RoadNetwork
from simulator.roads.projection import WGS84, transform
from simulator.traffic.clock import DAY_S
from simulator.traffic.demand.courses import CourseVehicles, course_routes, trips_on_courses
from simulator.traffic.demand.sumo_attributes import time_of_day
from simulator.traffic.demand.sumo_file import Course
from simulator.traffic.demand.synthetic import Demand
from simulator.traffic.paths import ShortestPaths

BUSES = (3, *range(700, 800))
"""Route types of buses, with those of the extended list."""
_FAR_M = 200.0
_LATEST_S = 3 * DAY_S
"""Time of a service after which no repeated trip begins."""
_SHORT = "fewer than two of their stops are on the roads"
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_REQUIRED = {
    "stops.txt": ("stop_id", "stop_lat", "stop_lon"),
    "routes.txt": ("route_id", "route_type"),
    "trips.txt": ("trip_id", "route_id", "service_id"),
    "stop_times.txt": ("trip_id", "stop_id", "stop_sequence", "departure_time"),
}
_TABLES = {
    **_REQUIRED,
    "calendar.txt": ("service_id", "start_date", "end_date", *_DAYS),
    "calendar_dates.txt": ("service_id", "date", "exception_type"),
    "frequencies.txt": ("trip_id", "start_time", "end_time", "headway_secs"),
}


def is_gtfs(path: Path) -> bool:
    """Return whether a path is a folder or a zip archive, as only GTFS feeds are among files of trips."""
    return path.is_dir() or path.name.lower().endswith(".zip")


def read_gtfs(
    path: Path,
    network: RoadNetwork,
    *,
    day: date,
    route_types: Collection[int] = BUSES,
    paths: ShortestPaths | None = None,
    **run: Any,
) -> Demand:
    """Read a GTFS feed: a vehicle for each trip that departs within the run, by calendar, exceptions and frequencies.

    A vehicle departs when the trip leaves its first stop on the roads, and takes the free-flow shortest-time path
    through the links nearest to its stops; of the two directions of a street, in that of the trip. Stops farther than
    200 m from every link are left out. Times at further stops, stays at stops, and shapes are not used. Times beyond
    24:00:00 belong to the day of the service.

    The project's own reader of tables is used: partridge and gtfs_kit read feeds into data frames of text as they are,
    without limits for files that are not trusted, and neither puts trips on roads.

    Parameters
    ----------
    path
        A zip archive, or a folder, with the tables of the feed.
    network
        The roads.
    day
        Date on which the run starts.
    route_types
        Types of routes whose trips are driven.
    paths
        Shortest paths of the network, if already available.
    **run
        As for :func:`~simulator.traffic.demand.courses.trips_on_courses`.

    Returns
    -------
    Demand
        Trips, routes and notes.

    Raises
    ------
    InputError
        If the feed cannot be read, a table is faulty, or no trip departs within the run.
    """
    feed = _read_tables(path)
    begin_s, end_s = run["begin_s"], run["begin_s"] + run["duration_s"]
    days = {ahead: _services(feed, day + timedelta(days=ahead)) for ahead in range(-1, int(end_s // DAY_S) + 1)}
    rows = _stop_times(feed, route_types, set().union(*days.values()))
    trips = rows.groupby("trip_id").agg(service=("service_id", "first"), starts_s=("departure_time", "first"))
    rows[["x", "y"]] = transform(WGS84, network.crs, rows[["stop_lon", "stop_lat"]].to_numpy())
    on = network.nearest_links(rows[["x", "y"]].to_numpy())[1] <= _FAR_M
    xy = rows.loc[on, ["x", "y"]]
    others = xy.groupby(rows["trip_id"][on])
    along = others.shift(-1).fillna(xy) - others.shift(1).fillna(xy)
    link, _ = network.nearest_links(xy.to_numpy(), along=along.to_numpy())
    stays = rows[on].assign(link=link.astype("str")).groupby("trip_id")
    edges = stays["link"].agg(tuple)
    edges = edges[edges.map(set).map(len) > 1]
    kept = trips.loc[edges.index]
    late_s = (stays["departure_time"].first() - kept["starts_s"])[edges.index].to_numpy()
    course, passed = pd.factorize(edges)
    courses = [Course(links, given=False, where=f"{path.name}: links of {len(links)} stops") for links in passed]
    names = {str(number): number for number in range(len(network.links))}
    driven, faults = course_routes(courses, network, names, paths=paths)
    first_s = _departures(feed, kept["starts_s"])
    which, depart_s = list[int](), list[float]()
    for ahead, services in days.items():
        for trip in np.flatnonzero(kept["service"].isin(services)).tolist():
            moments = first_s[trip] + late_s[trip] + ahead * DAY_S
            moments = moments[(moments >= begin_s) & (moments < end_s)]
            which.extend([trip] * len(moments))
            depart_s.extend(moments.tolist())
    stops, far = rows["stop_id"].nunique(), rows["stop_id"][~on].nunique()
    notes = [f"{path.name}: left out {far:,} of {counted(stops, 'stop')}, more than {_FAR_M:g} m from every link"]
    notes += [f"{path.name}: left out {len(trips) - len(kept):,} of {counted(len(trips), 'trip')}: {_SHORT}"]
    notes = [note for note, number in zip(notes, (far, len(trips) - len(kept)), strict=True) if number]
    notes += _other_types(feed, path, route_types, set().union(*days.values()))
    if not which:
        rule = f"no trip of the route types departs on {day} within the run; see its calendar"
        raise InputError([f"{path}: {rule}", *notes])
    read = CourseVehicles(
        path.name, kept.index[which].tolist(), np.array(depart_s), course[which].astype(np.int32), courses
    )
    made, routes, _, more = trips_on_courses(read, driven, faults, network, unused=Counter(), **run)
    return Demand(made, routes, (*more, *notes))


def _read_tables(path: Path) -> dict[str, Table]:
    """Read the tables of a feed that are needed, and those of the optional ones that have a row."""
    with _unpacked(path) as folder:
        read = {}
        for name, columns in _TABLES.items():
            file = folder / name
            if name in _REQUIRED or (file.is_file() and b"\n" in file.read_bytes().strip()):
                try:
                    table = Table.from_file(file, columns=columns, text=columns)
                except InputError as error:
                    raise InputError([fault.replace(str(folder), str(path)) for fault in error.faults]) from None
                read[name] = replace(table, file=f"{path}/{name}")
        return read


@contextmanager
def _unpacked(path: Path) -> Iterator[Path]:
    """Yield the folder of a feed, for the time of the context if it is an archive."""
    if path.is_dir():
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            with zipfile.ZipFile(path) as archive:
                for member in archive.infolist():
                    name = PurePosixPath(member.filename).name
                    if name in _TABLES and "__MACOSX" not in member.filename:
                        if fault := shortage(TABLE_TIMES * member.file_size, to=f"read {in_words(member.file_size)}"):
                            raise InputError([f"{path}/{name}: {fault}"])
                        (Path(folder) / name).write_bytes(archive.read(member))
        except (zipfile.BadZipFile, zlib.error, OSError, RuntimeError) as error:
            raise InputError([f"{path}: cannot be read as a zip archive: {error}"]) from None
        yield Path(folder)


def _stop_times(feed: Mapping[str, Table], route_types: Collection[int], services: Collection[str]) -> pd.DataFrame:
    """Return the stops of the trips of some services, by trip in driving order, with places and times of departure.

    Trips, routes and stops that are not defined have no rows. Only the first and the last stop of a trip must have a
    time; those between are interpolated.
    """
    stops, routes, trips, times = (feed[name] for name in _REQUIRED)
    stops.unique_identifiers("stop_id"), routes.unique_identifiers("route_id"), trips.unique_identifiers("trip_id")
    types = routes.frame.assign(route_type=routes.integers("route_type"))
    places = stops.frame.assign(
        **{name: stops.checked_numbers(name, optional=True) for name in ("stop_lon", "stop_lat")}
    )
    rows = times.frame.assign(
        stop_sequence=times.integers("stop_sequence"), departure_time=_times(times, "departure_time", optional=True)
    )
    for table in (stops, routes, trips, times):
        table.check()
    driven = trips.frame[trips.frame["service_id"].isin(services)]
    driven = driven.merge(types[types["route_type"].isin(route_types)], on="route_id")
    rows = rows.merge(driven, on="trip_id").merge(places, on="stop_id").sort_values(["trip_id", "stop_sequence"])
    timed = np.flatnonzero(rows["departure_time"].notna())
    if len(timed):
        rows["departure_time"] = np.interp(np.arange(len(rows)), timed, rows["departure_time"].iloc[timed])
    return rows.reset_index(drop=True)


def _other_types(
    feed: Mapping[str, Table], path: Path, route_types: Collection[int], services: Collection[str]
) -> list[str]:
    """Return a note that counts the trips of some services that are not driven, by the type of their route."""
    routes, trips = feed["routes.txt"], feed["trips.txt"].frame
    types = pd.Series(routes.integers("route_type"), index=routes.column("route_id"))
    counts = trips.loc[trips["service_id"].isin(services), "route_id"].map(types).value_counts().sort_index()
    others = counts[~counts.index.isin([*route_types])]
    listed = ", ".join(f"{kind:.0f} ({number:,})" for kind, number in others.items())
    return [f"{path.name}: left out trips of other route types: {listed}"] if listed else []


def _times(table: Table, name: str, *, optional: bool = False) -> FloatArray:
    """Return a column of times in seconds, NaN where there is none, and note what is no time, or missing."""
    texts = table.texts(name)
    known = {text: np.nan if text is None and optional else time_of_day(text or "") for text in set(texts)}
    table.refuse(name, np.array([known[text] is None for text in texts]), "a time, HH:MM:SS")
    return np.array([known[text] for text in texts], dtype=np.float64)


def _departures(feed: Mapping[str, Table], starts_s: pd.Series[float]) -> list[FloatArray]:
    """Return when each trip leaves its first stop, seconds of the service day: once, or as `frequencies.txt` states."""
    repeated: dict[str, list[FloatArray]] = {}
    if (table := feed.get("frequencies.txt")) is not None:
        every_s = table.integers("headway_secs", at_least=1)
        begin_s, end_s = _times(table, "start_time"), np.minimum(_times(table, "end_time"), _LATEST_S)
        table.check()
        for trip, *span in zip(table.identifiers("trip_id"), begin_s, end_s, every_s, strict=True):
            repeated.setdefault(trip, []).append(np.arange(*span))
    return [np.concatenate(repeated.get(str(trip), [np.array([start_s])])) for trip, start_s in starts_s.items()]


def _services(feed: Mapping[str, Table], day: date) -> set[str]:
    """Return the services of a date."""
    today, running = int(f"{day:%Y%m%d}"), set[str]()
    if (table := feed.get("calendar.txt")) is not None:
        on = (table.numbers("start_date") <= today) & (table.numbers("end_date") >= today)
        running = {*table.frame["service_id"][on & (table.numbers(_DAYS[day.weekday()]) == 1)]}
    if (table := feed.get("calendar_dates.txt")) is not None:
        changed = table.frame.assign(kind=np.where(table.numbers("date") == today, table.numbers("exception_type"), 0))
        running |= {*changed["service_id"][changed["kind"] == 1]}
        running -= {*changed["service_id"][changed["kind"] == 2]}
    return running


def busiest_day(path: Path) -> date:
    """Return the date on which most trips of a feed run, the first of several, within a year of its first date.

    Raises
    ------
    InputError
        If the feed cannot be read, or has no date.
    """
    feed = _read_tables(path)
    columns = (("calendar.txt", "start_date"), ("calendar.txt", "end_date"), ("calendar_dates.txt", "date"))
    numbers = [number for name, column in columns if name in feed for number in feed[name].numbers(column).tolist()]
    dates = [date.fromisoformat(f"{number:.0f}") for number in numbers if 19000101 <= number <= 99991231]
    if not dates:
        raise InputError([f"{path}: it has no calendar.txt or calendar_dates.txt with a date"])
    trips = Counter(feed["trips.txt"].frame["service_id"])
    days = [min(dates) + timedelta(days=after) for after in range(min((max(dates) - min(dates)).days, 366) + 1)]
    return max(days, key=lambda day: sum(trips[service] for service in _services(feed, day)))
