"""Readers of trip tables: origin-destination tables in CSV or Parquet, and TNTP trip tables."""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from simulator.arrays import FloatArray, IntArray
from simulator.files.errors import InputError
from simulator.files.tables import (
    NAMELESS,
    RECOGNIZED,
    Table,
    TextFormat,
    column_names,
    comparable_name,
    find_columns,
    identifiers,
)
from simulator.files.times import CALENDAR_FROM_S, Times, in_words, refuse_mixed, seconds, timed
from simulator.formats.column_names import POINT_NAMES, TRIP_NAMES
from simulator.formats.tables.trip_points import TripPlaces, find_points, geometry_columns, read_geometries, with_ends
from simulator.traffic.demand.trip_table import SHOWN, TripTable

_AMOUNTS = ("trips", "rate_vph", "rate_vps")
_UNIT_S = {"rate_vph": 3600.0, "rate_vps": 1.0}
_MOST_VPS = 2.0
"""Greatest rate that a column called q may have as vehicles per second: more leave no zone, so they are per hour."""


def columns_of(file: Path, given: Mapping[str, str], *, text: TextFormat = RECOGNIZED) -> dict[str, str]:
    """Identify the columns of a table.

    Parameters
    ----------
    file
        A CSV file, plain or gzipped, or a Parquet file.
    given
        Map from our name of a column to the file's, for the columns named by the user.
    text
        Separator of a CSV file.

    Returns
    -------
    dict
        Map from our name to the file's, for the given columns and those recognized by name. ``from_s`` and ``to_s``
        occur both or not at all, and not together with ``departure_s``, unless they were given. A rate occurs with
        ``from_s`` and ``to_s`` and without ``trips``, unless it was given; ``vehicle`` with a time and without trips or
        a rate, unless these were given.
    """
    found = find_columns(column_names(file, format_=text), TRIP_NAMES, given=given)
    windows = {"from_s", "to_s"}
    if ("departure_s" in found and not windows & given.keys()) or not windows <= found.keys() | given.keys():
        for name in windows - given.keys():
            found.pop(name, None)
    if windows & given.keys() and "departure_s" not in given:
        found.pop("departure_s", None)
    for name in {*_UNIT_S} - given.keys():
        if not windows <= found.keys() or any(other in found for other in _AMOUNTS if other != name):
            found.pop(name, None)
    if given.keys() & _UNIT_S.keys() and "trips" not in given:
        found.pop("trips", None)
    _decide_vehicles(found, given)
    for name in ("origin", "destination"):
        found.setdefault(name, name)
    return found


def _decide_vehicles(found: dict[str, str], given: Mapping[str, str]) -> None:
    """Keep the column of vehicles, or the columns of numbers of trips."""
    # With numbers of trips the column may hold kinds of vehicles; without times its trips have no order.
    if "vehicle" not in given and (found.keys() & {*_AMOUNTS} or not found.keys() & {"departure_s", "from_s"}):
        found.pop("vehicle", None)
    for name in {*_AMOUNTS} - given.keys() if "vehicle" in found else {"household"} - given.keys():
        found.pop(name, None)


_ENDS = ("origin", "destination")
_VEHICLES = ("vehicle", "household")
_HOURS_AND_MINUTES = re.compile(r"\s*\d{1,2}:\d{2}\s*")
_TIME = "seconds, HH:MM or HH:MM:SS, 0 or more, or a date and time as 2026-03-29T08:00:00"
_TAXI_ZONE = "pulocationid"
"""Column of New York's taxi trips: each row is one trip, whatever numbers it has."""


def read_od_table(
    file: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    ignored: Collection[str] = (),
    text: TextFormat = RECOGNIZED,
    places: TripPlaces | None = None,
) -> TripTable:
    """Read trips between zones, nodes or points; GMNS's ``demand.csv`` is such a table.

    Parameters
    ----------
    file
        ``.csv``, ``.csv.gz`` or ``.parquet``. Columns: ``origin`` and ``destination``; ``trips``, or ``rate_vph`` or
        ``rate_vps``, vehicles per hour or second between ``from_s`` and ``to_s``; without any of these, each row is one
        trip, and may name its ``vehicle``, or its person as that and the ``household``; ``departure_s``, the departure
        time of a row's trips, or ``from_s`` and ``to_s``, between which they depart. Times are seconds, HH:MM or
        HH:MM:SS, or, with `places`, dates and times. With `places`, a file without origin and destination may have
        ``origin_lon``, ``origin_lat``, ``destination_lon``, ``destination_lat``, the same with ``_x`` and ``_y``, or
        ``path``, a JSON list of places; or be GeoParquet of lines or of two points. Other common names are recognized:
        see :data:`~simulator.formats.tables.trips.NAMES`.
    columns
        Map from our name of a column to the file's, where the file uses another name.
    ignored
        Names of columns of numbers that need not be read.
    text
        Separator and decimal sign of a CSV file.
    places
        What points, zones and dates refer to; None if the table has none of these.

    Returns
    -------
    TripTable
        Rows with equal origin, destination and time are added up; rows without trips are left out.

    Raises
    ------
    InputError
        If the file cannot be read, lacks a column or has another one of numbers, or a row has no origin or destination,
        an invalid or negative number of trips, or an invalid time.
    """
    path, given = Path(file), columns or {}
    table = _opened(path, given, text, points=places is not None)
    found = table.columns
    taxi = "origin" not in given and comparable_name(found.get("origin")) == _TAXI_ZONE
    if taxi and (places is None or places.zones is None):
        polygons = 'their polygons, as traffic.trip_zones = {file = "taxi_zones.shp", name = "LocationID"}'
        raise InputError([f"{path}: {found['origin']!r} names taxi zones: state {polygons}"], key="traffic.trip_zones")
    single = taxi or not table.has("origin")
    if given.keys().isdisjoint(_AMOUNTS) and not single:  # otherwise the user has said which number counts
        times = find_columns(table.unread, {name: TRIP_NAMES[name] for name in ("departure_s", "from_s", "to_s")})
        rows = "" if not found.keys().isdisjoint(_AMOUNTS) else ", or each row would be one trip"
        remedy = f"name the number of trips in traffic.trip_columns{rows}: as trips, or as rate_vph or rate_vps with "
        table.refuse_unread({*ignored, *times.values()}, remedy=remedy + "from_s and to_s; and others as ignored = {0}")
    if "rate_vps" in found and "rate_vps" not in given and comparable_name(found["rate_vps"]) == "q":
        rule = (
            f"at most {_MOST_VPS:g} to be vehicles per second; name it in traffic.trip_columns, as rate_vph or rate_vps"
        )
        table.refuse("rate_vps", table.numbers("rate_vps") > _MOST_VPS, rule)
    return _checked(table, ignored, places)


def _opened(path: Path, given: Mapping[str, str], text: TextFormat, *, points: bool) -> Table:
    """Read a table whose places are named, or else, where that is allowed, points: columns, a path, or geometries."""
    drawn = geometry_columns(path) if points and path.suffix.lower() == ".parquet" else []
    names = [name for name in column_names(path, format_=text) if name not in drawn]
    found = columns_of(path, given, text=text)
    by_name = {*map(found.get, _ENDS)} <= {*names} and given.keys().isdisjoint({*POINT_NAMES, "path"})
    ends = find_points(names, given)
    if by_name or not points or not (ends or drawn):
        named = [name for name in (*_ENDS, *_VEHICLES) if name in found]
        return Table.from_file(path, columns=found, identifiers=named, format_=text)
    # The start and the end of one trip are no interval of departures, unless they are given as one.
    departs = {} if "from_s" in given else {"departure_s": (*TRIP_NAMES["departure_s"], *TRIP_NAMES["from_s"])}
    known = {name: TRIP_NAMES[name] for name in ("trips", *_VEHICLES)} | departs
    found = find_columns(names, known, given=given)
    _decide_vehicles(found, given)
    found |= ends
    if not ends:
        table = read_geometries(path, drawn)
        return replace(table, columns=found | {name: name for name in POINT_NAMES if name in table.frame})
    vehicles = [name for name in _VEHICLES if name in found]
    table = Table.from_file(path, columns=found, text=(), identifiers=vehicles, format_=text)
    return with_ends(table) if "path" in found else table


def departures_of(file: Path, columns: Mapping[str, str], text: TextFormat, time_zone: str | None) -> Times | None:
    """Return the times of departure in a table, None if it has none; parameters are as for `read_od_table`."""
    table = _opened(file, columns, text, points=True)
    name = next((name for name in ("departure_s", "from_s") if table.has(name)), None)
    if name is None:
        return None
    return Times.from_column(table.column(name)).in_zone(time_zone, np.arange(len(table)))[0]


def _checked(table: Table, ignored: Collection[str] = (), setting: TripPlaces | None = None) -> TripTable:
    zones, notes = None if setting is None else setting.zones, list[str]()
    if setting is not None and not table.has("origin"):
        table.check()
        table, ends_nodes, zones, notes = setting.snapped(table)
        used, codes = np.unique(ends_nodes, return_inverse=True)
        places = [zones.names[node] for node in used.tolist()]
        origin, destination = codes.astype(np.int32).reshape(2, -1)
    else:
        ends = pd.api.types.union_categoricals([table.categories(name) for name in _ENDS])
        places = ends.categories.tolist()
        origin, destination = ends.codes.astype(np.int32).reshape(2, -1)
        for name, end in zip(_ENDS, (origin, destination), strict=True):
            table.refuse(name, end < 0, "the identifier of a zone or node")
    from_s, to_s, zero = _times(table, setting, notes)
    amount = next((name for name in _AMOUNTS if table.has(name)), None)
    trips = np.ones(len(table))
    if amount is not None:
        trips = table.checked_numbers(amount, at_least=0)
        if amount != "trips" and from_s is None:
            table.broken.append(f"{table.file}: {amount} is a rate, so from_s and to_s must be columns too")
        elif amount != "trips" and from_s is not None and to_s is not None:
            trips *= (to_s - from_s) / _UNIT_S[amount]
        with np.errstate(over="ignore"):
            total = trips.sum()
        if (trips >= 0).all() and not total:
            table.broken.append(f"{table.file}: it holds no trips: all of its rows have 0")
        elif (trips >= 0).all() and not np.isfinite(total):
            table.broken.append(f"{table.file}: its trips must sum to a finite number")
    vehicle = _vehicles(table) if table.has("vehicle") else None
    if vehicle is not None and amount is not None:
        table.refuse(amount, trips != 1, "1 where each row names its vehicle")
    table.check()
    entries = (origin, destination, trips, table.number, "row", from_s, to_s)
    trip_table = TripTable(table.file, places, *entries, notes, zones=zones, second_0=zero, vehicle=vehicle)
    driven = trip_table.kept(trips > 0)
    built = driven.sorted() if amount is None or vehicle is not None else driven.summed()
    read = {*table.columns.values(), *ignored}
    unread = [name for name in table.names if name not in read and not name.startswith(NAMELESS)]
    if unread:
        more = f" … ({len(unread)} in all)" if len(unread) > SHOWN else ""
        built.notes.append(f"{built.title}: columns not read: {', '.join(map(repr, unread[:SHOWN]))}{more}")
    return built


def _vehicles(table: Table) -> IntArray:
    """Return the number of the vehicle of each row; numbers of persons may begin anew in each household."""
    if not table.has("departure_s") and not table.has("from_s"):
        table.broken.append(f"{table.file}: departure_s, or from_s and to_s, must be columns where vehicle is one")
    keys = [table.categories(name).codes for name in _VEHICLES if table.has(name)]
    table.refuse("vehicle", keys[0] < 0, "the identifier of a vehicle or person")
    return pd.MultiIndex.from_arrays(keys).factorize()[0].astype(np.int64)


def _times(
    table: Table, setting: TripPlaces | None, notes: list[str]
) -> tuple[FloatArray | None, FloatArray | None, str]:
    """Return the interval in which the trips of each row depart, and the date of second 0 if the times are dates."""
    names = ["departure_s"] if table.has("departure_s") else ["from_s", "to_s"]
    if not all(map(table.has, names)):
        return None, None, ""
    read, zero = [_seconds(table, name, setting, notes) for name in names], ""
    if len({one.naive for one in read}) > 1:
        table.broken.append(f"{table.file}: from_s and to_s must both name a time zone, or neither")
    times = [np.where(one.seconds >= 0, one.seconds, np.nan) for one in read]
    if setting is not None and read[0].calendar and np.isfinite(times[0]).any():
        zero_s = setting.midnight(times[0])
        times, zero = [seconds - zero_s for seconds in times], in_words(zero_s, calendar=True)
    if len(times) > 1:
        table.refuse("to_s", times[1] <= times[0], "after from_s")
    return times[0], times[-1], zero


def _seconds(table: Table, name: str, setting: TripPlaces | None, notes: list[str]) -> Times:
    """Read a column of times, of dates since 1970; NaN where there is no time."""
    column, read = table.column(name), table.numbers(name)
    if column.dtype.kind not in "iufM":
        written = identifiers(column)
        read = np.array([*map(_one_time, written.categories), np.nan])[written.codes]
    if setting is not None and (not np.isfinite(read).any() or np.nanmedian(read) >= CALENDAR_FROM_S):
        times, repeated = timed(table, setting.time_zone, np.arange(len(table)), unit_s=None, name=name)
        notes += [f"{table.file}: {note}" for note in repeated if times.calendar and not times.numbers]
        return times
    times = Times(read, calendar=False, numbers=True)
    refuse_mixed(table, name, times)
    table.refuse(name, ~(np.isfinite(read) & (read >= 0)), _TIME)
    return times


def _one_time(text: str) -> float:
    read = seconds(f"{text}:00" if _HOURS_AND_MINUTES.fullmatch(text) else text, as_sumo=False)
    return np.nan if read is None else read
