"""Readers of trip tables: origin-destination tables in CSV or Parquet, and TNTP trip tables."""

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd

from simulator.arrays import FloatArray, IntArray
from simulator.files.compressed_io import begin_of
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
from simulator.files.times import CALENDAR_FROM_S, Times, in_words, refuse_mixed, timed
from simulator.files.tntp_text import finite_number, lines_of, read_metadata, row_fault, shown
from simulator.traffic.demand.sumo_attributes import seconds
from simulator.traffic.demand.trip_points import (
    POINT_NAMES,
    TripPlaces,
    find_points,
    geometry_columns,
    read_geometries,
    with_ends,
)
from simulator.traffic.demand.trip_table import SHOWN, TripTable

NAMES: Mapping[str, tuple[str, ...]] = {
    "origin": (
        "origin", "o_zone_id", "origin_zone", "origin_id", "orig_taz", "orig_zone", "from_zone", "from_zone_id",
        "from_node", "from", "orig", "o", "o_zone", "o_id", "o_node", "origin_node", "orig_id", "orig_node", "from_id",
        "pulocationid",
    ),
    "destination": (
        "destination", "d_zone_id", "destination_zone", "destination_id", "dest_taz", "dest_zone", "to_zone",
        "to_zone_id", "to_node", "to", "dest", "d", "d_zone", "d_id", "d_node", "destination_node", "dest_id",
        "dest_node", "to_id", "dolocationid",
    ),
    "trips": (
        "trips", "volume", "flow", "demand", "total", "vehicles", "count", "ton", "num_trips", "total_trips",
        "n_trips", "number_of_trips", "number", "volumes", "flows", "trip_count", "vehicle_count", "veh",
    ),
    "rate_vph": (
        "rate_vph", "vph", "flow_vph", "q_vph", "demand_vph", "volume_vph", "trips_vph", "veh_h", "flow_veh_h",
        "q_veh_h", "demand_veh_h", "volume_veh_h", "veh_hr", "veh_per_hour", "vehs_per_hour", "vehicles_per_hour",
        "vehsperhour", "trips_per_hour", "flow_per_hour",
    ),
    "rate_vps": (
        "rate_vps", "q", "vps", "flow_vps", "q_vps", "demand_vps", "veh_s", "flow_veh_s", "q_veh_s", "veh_per_second",
        "vehicles_per_second",
    ),
    "departure_s": (
        "departure_s", "depart_s", "departure_time", "depart_time", "departure", "depart", "pickup_datetime",
        "tpep_pickup_datetime", "lpep_pickup_datetime", "trip_pickup_datetime", "started_at", "trip_start_timestamp",
        "departure_datetime", "pickup_time", "starttime", "timestamp",
    ),
    "from_s": ("from_s", "begin_s", "start_s", "start_t", "t_start", "start_time", "begin_time", "from_time", "begin"),
    "to_s": ("to_s", "end_s", "end_t", "t_end", "end_time", "to_time", "end"),
    "vehicle": (
        "vehicle", "vehicle_id", "person_id", "person", "veh_id", "agent_id", "agent", "traveler_id", "traveller_id",
        "driver_id", "per_id",
    ),
    "household": ("household", "household_id", "hh_id", "house_id", "hh"),
}  # fmt: skip
"""Map from our name of a column to its common names, the most likely first; case, blanks and signs do not matter."""
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
    found = find_columns(column_names(file, format_=text), NAMES, given=given)
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
    """Keep the column of vehicles, or those of numbers of trips."""
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
        see :data:`~simulator.traffic.demand.trip_table_readers.NAMES`.
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
        times = find_columns(table.unread, {name: NAMES[name] for name in ("departure_s", "from_s", "to_s")})
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
    departs = {} if "from_s" in given else {"departure_s": (*NAMES["departure_s"], *NAMES["from_s"])}
    known = {name: NAMES[name] for name in ("trips", *_VEHICLES)} | departs
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
    """Return the number of the vehicle of each row; those of persons may begin anew in each household."""
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


_ORIGIN = re.compile(r"origin\b\s*(.*)", re.IGNORECASE)
_ZONE = re.compile(r"\d{1,18}")
_ZONES, _TOTAL = "NUMBER OF ZONES", "TOTAL OD FLOW"
_SIGMAS = 6.0


def read_tntp_trips(file: str | Path) -> TripTable:
    """Read a TNTP trip table: blocks ``Origin n`` of pairs ``destination : trips;``, any number of pairs per line.

    If the metadata have ``<NUMBER OF ZONES>``, zones must be in 1 … that number. If they have ``<TOTAL OD FLOW>``,
    trips must sum to it within the error from rounding each number to its written digits.

    Parameters
    ----------
    file
        Plain text or gzipped.

    Returns
    -------
    TripTable
        Pairs without trips are left out; pairs within a zone are kept.

    Raises
    ------
    InputError
        If the file does not have this form, a number is invalid or negative, or the sum differs from the declared one.
    """
    lines = lines_of(file)
    metadata = read_metadata(lines, file=str(file))
    zones = metadata.whole(_ZONES, at_least=1) if metadata.has(_ZONES) else None
    declared = metadata.number(_TOTAL) if metadata.has(_TOTAL) else None
    half_digit = 0.0 if declared is None else _digit(metadata.values[_TOTAL].text) / 2.0
    broken: dict[str, tuple[list[int], str]] = {}
    pairs: list[tuple[int, int, float, float, int]] = []
    blocks, origin, end = 0, 0, ""
    for line in lines:
        end = f"{file}: line {line.number}"
        if opening := _ORIGIN.fullmatch(line.text):
            blocks += 1
            origin, wrong = _zone(opening[1], zones)
        elif blocks == 0:
            wrong = [("must be the Origin of a block", shown(line.text))]
        else:
            found, wrong = _pairs(line.text, zones)
            pairs += [(origin, *pair, line.number) for pair in found]
        for rule, got in wrong:
            numbers, _ = broken.setdefault(rule, ([], got))
            numbers.extend([] if numbers[-1:] == [line.number] else [line.number])
        if len(broken) >= SHOWN:
            break
    if broken:
        raise InputError(f"{file}: {row_fault(numbers, rule)}, got {got}" for rule, (numbers, got) in broken.items())
    if not blocks:
        raise InputError([f"{file}: it holds no trips: no line begins with Origin"])
    rest = line.text.rpartition(";")[2].strip()
    if declared is None and ":" in rest:
        rule = "the last pair of the file must be ended by a semicolon, or it may be cut off"
        raise InputError([f"{end}: {rule}; got {shown(rest)}"])
    frame = pd.DataFrame(pairs, columns=["origin", "destination", "trips", "variance", "line"])
    total = math.fsum(frame["trips"])
    if declared is not None:
        error = _SIGMAS * math.sqrt(frame["variance"].sum()) + half_digit + 1e-9 * max(total, declared)
        if abs(total - declared) > error:
            rule = f"<{_TOTAL}> must be the sum of the trips, {total:,.10g}, within rounding"
            raise InputError([f"{file}: {rule}; got {declared:,.10g}"])
    frame = frame[frame["trips"] > 0]
    places, codes = np.unique(frame[["origin", "destination"]].to_numpy(dtype=np.int64).T, return_inverse=True)
    from_zone, to_zone = codes.reshape(2, -1).astype(np.int32)
    trips, rows = frame["trips"].to_numpy(dtype=np.float64), frame["line"].to_numpy(dtype=np.int64)
    return TripTable(str(file), list(map(str, places.tolist())), from_zone, to_zone, trips, rows, unit="line").summed()


_Broken = list[tuple[str, str]]
"""Rules that a line breaks, and what it has instead."""


def _zone(text: str, zones: int | None) -> tuple[int, _Broken]:
    """Read the number of a zone; return also the rules that the text breaks."""
    if not _ZONE.fullmatch(text.strip()):
        return 0, [("a zone must be a whole number", shown(text.strip()))]
    zone = int(text)
    if zones is not None and not 1 <= zone <= zones:
        rule = f"a zone must be from 1 to <{_ZONES}> = {zones} (renumber them as the network's nodes are)"
        return zone, [(rule, str(zone))]
    return zone, []


def _pairs(text: str, zones: int | None) -> tuple[list[tuple[int, float, float]], _Broken]:
    """Read a line's destinations and trips, with the variance of each number's rounding error, and the rules broken."""
    pairs: list[tuple[int, float, float]] = []
    broken: _Broken = []
    for pair in filter(str.strip, text.split(";")):
        name, colon, amount = (part.strip() for part in pair.partition(":"))
        if not colon:
            broken.append(("must be pairs of destination : trips, each ended by a semicolon", shown(name)))
            break
        destination, wrong = _zone(name, zones)
        trips = finite_number(amount)
        if trips is None or trips < 0:
            wrong.append(("trips to a zone must be a finite number, 0 or more", f"{shown(amount)} to zone {name}"))
        else:
            pairs.append((destination, trips, _digit(amount) ** 2 / 12.0))
        broken += wrong
    return pairs, broken


def _digit(written: str) -> float:
    """Return the value of 1 in the last digit of a number: 0.01 for 2.16, 100 for 2.52257e+007.

    A number with an exponent has at least six digits, as C's ``%g`` writes it, which leaves out zeros at the end.
    """
    number = Decimal(written)
    exponent = int(number.as_tuple().exponent)
    if "e" in written.lower():
        exponent = min(exponent, number.adjusted() - 5)
    return 10.0 ** min(max(exponent, -18), 150)


TABLES = (".csv", ".csv.gz", ".parquet")
_ROUTES = (".xml", ".xml.gz")
_PLANS = re.compile(rb"<(plans|population)[\s>]")
_XML = (b"<?xml", b"<!--", b"<!doctype", b"<routes", b"<additional")


def is_sumo_routes(file: Path) -> bool:
    """Return whether a file is a SUMO route file: by its suffix, or else by its beginning."""
    name = file.name.lower()
    if name.endswith(_ROUTES):
        return not is_matsim_plans(file)
    return not name.endswith(TABLES) and _begin(file).startswith(_XML)


def is_matsim_plans(file: Path) -> bool:
    """Return whether a file is XML whose beginning has the outermost element of MATSim's plans."""
    begin = _begin(file)
    return begin.startswith(b"<") and _PLANS.search(begin) is not None


def read_trip_table(
    file: Path,
    *,
    columns: Mapping[str, str],
    ignored: Collection[str] = (),
    text: TextFormat = RECOGNIZED,
    places: TripPlaces | None = None,
) -> TripTable:
    """Read an origin-destination table in CSV or Parquet (GMNS's too), or a TNTP trip table.

    Parameters
    ----------
    file
        ``.csv``, ``.csv.gz`` and ``.parquet`` are tables; any other file that begins with ``<`` is TNTP.
    columns
        Map from our name of a table's column to the file's.
    ignored, text, places
        As for `read_od_table`.

    Raises
    ------
    InputError
        If the file has none of these formats, or cannot be used.
    """
    if file.name.lower().endswith(TABLES):
        return read_od_table(file, columns=columns, ignored=ignored, text=text, places=places)
    if columns:
        raise InputError([f"{file}: trip_columns apply only to a table in CSV or Parquet"])
    begin = _begin(file)
    if begin and not begin.startswith((b"<", b"~")):
        rule = "must be a table (.csv, .csv.gz, .parquet), SUMO routes (XML) or a TNTP trip table, which begins with <"
        raise InputError([f"{file}: {rule}; got {begin[:20].decode(errors='replace')!r}"])
    return read_tntp_trips(file)


def _begin(file: Path) -> bytes:
    """Return a file's beginning in lower case without blanks; empty if the file cannot be read."""
    return begin_of(file).removeprefix(b"\xef\xbb\xbf").lstrip().lower()
