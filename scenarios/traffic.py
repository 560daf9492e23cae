"""``[traffic]``: every engine's section, and those of recorded data: ``static`` and ``trace``."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag

from scenarios.cells import Column, PlaceTable
from scenarios.errors import RuleViolation
from scenarios.references import FileOrFolderReference, FileReference
from scenarios.roads import AnyCrs, MetricCrs
from scenarios.section import NotNegative, Positive, Section, ValidFields, rule, text_or_number
from scenarios.simulated_traffic import DrivenTraffic, SumoTraffic
from scenarios.units import TimeUnit

_EXAMPLE = datetime(2013, 11, 28, 17, 42)  # noqa: DTZ001 - written and read back, of no zone


def _time_format(text: str) -> str:
    # What is written and read back is the same only if year, month, day and time of day are all in it, once.
    zone = text.replace("%z", "+0000").replace("%Z", "UTC")
    try:
        back = datetime.strptime(_EXAMPLE.strftime(zone), zone)  # noqa: DTZ007 - as above
    except ValueError:
        back = None
    if back != _EXAMPLE:
        raise rule('must say how a date and a time of day are written, as "%d/%m/%Y %H:%M:%S"')
    return text


TimeFormat = Annotated[str, AfterValidator(_time_format)]
"""How dates with times of day are written, as ``strptime`` has it."""

Word = Annotated[str, Field(min_length=1, max_length=40)]

Called = Annotated[tuple[Word, Word], Field(strict=False)]
"""One of them and several, as ["patient", "patients"]."""

VEHICLES: tuple[str, str] = ("vehicle", "vehicles")

_moment = text_or_number("must be a time as the file has them: text, or a number")


def _window(value: Any) -> Any:
    if isinstance(value, list | tuple) and len(value) == 4:
        return tuple(value)
    raise rule("must be four numbers, [lon_min, lat_min, lon_max, lat_max]")


class OwnerColumns(Section):
    """Which column of the user's table holds what: our name = the file's, or its number."""

    place: Column | None = None
    """Name of the place: a station, a location, a category."""
    lon: Column | None = None
    """Longitude, WGS84 degrees."""
    lat: Column | None = None
    """Latitude, WGS84 degrees."""
    x: Column | None = None
    """Easting, metres in `crs`."""
    y: Column | None = None
    """Northing, metres in `crs`."""
    count: Column | None = None
    """How many data owners the row stands for; left out, one."""
    time: Column | None = None
    """When they are there: a time of day and date, or a number of `time_unit`; left out, throughout the run."""
    owner: Column | None = None
    """Who it is."""
    period: Column | None = None
    """What tells rows of one place apart, as the hour they count in, where it is not the time they are there."""

    def mapping(self) -> dict[str, str | int]:
        """Return our names and the file's, without those left out."""
        return self.model_dump(exclude_none=True)

    @classmethod
    def broken_rules(cls, known: ValidFields) -> Iterator[RuleViolation]:
        """Yield a fault unless the columns say where each owner is, in one way."""
        keys = ("lon", "lat", "x", "y")
        if not all(key in known for key in (*keys, "place")):
            return
        given = tuple(key for key in keys if known[key] is not None)
        if given not in {("lon", "lat"), ("x", "y"), ()}:
            yield RuleViolation((), "must name lon and lat, or x and y, or neither", list(given))
        elif not given and known["place"] is None:
            yield RuleViolation((), "must say where owners are: place, or lon and lat, or x and y")


class StaticTraffic(PlaceTable):
    """Data owners without movement: vehicles counted at a detector, people who checked in at a place."""

    engine: Literal["static"]
    owners: FileReference
    """Table of who is where: one row an owner, or one a place with how many."""
    columns: OwnerColumns
    """Our names and the file's."""
    crs: MetricCrs | None = None
    """Coordinate reference system of x and y: projected, in metres."""
    window: Annotated[tuple[float, float, float, float], BeforeValidator(_window)] | None = None
    """Rows outside these longitudes and latitudes are left out and counted, [lon_min, lat_min, lon_max, lat_max]."""
    duplicates: Literal["refuse", "first", "last", "greatest", "sum"] | None = None
    """What becomes of rows of the same place, period, time and owner; ``sum`` counts each of them.

    Left out: ``refuse`` where rows have counts, ``sum`` where each is an owner. They are counted in any case."""
    fractions: Literal["refuse", "nearest"] = "refuse"
    """What becomes of counts that are not whole; ``nearest`` rounds a place's total at a time, halves to the even."""
    one_per: Literal["row", "owner"] = "row"
    """Whether each row is a data owner, or each owner is one, at the place where it was last."""
    start: Annotated[str | float, Field(union_mode="left_to_right"), BeforeValidator(_moment)] | None = None
    """The time of the file at which the run starts; left out, the earliest."""
    time_unit: TimeUnit = "s"
    """What one is, where times are numbers."""
    dwell_s: Positive | None = None
    """How long an owner stays from its time on, seconds; left out, to the end of the run."""
    step_s: Positive = 1.0
    """Tick of the run's clock, seconds."""
    parked: Literal["silent", "answer"] = "silent"
    """Whether an owner whose time at its place is over still answers queries."""
    called: Called = VEHICLES
    """What the report calls one owner and several, as ["patient", "patients"]."""

    @classmethod
    def broken_rules(cls, known: ValidFields) -> Iterator[RuleViolation]:
        """Yield what is wrong between columns and what is asked of them."""
        columns = known.get("columns")
        if columns is None:
            return
        yield from _places(known, columns)
        if columns.time is None:
            for key in ("start", "dwell_s"):
                if known.has(key):
                    yield RuleViolation((key,), "goes with columns.time", known[key])
        if known.get("one_per") == "owner":
            if columns.owner is None:
                yield RuleViolation(("one_per",), "needs columns.owner, which says who it is", "owner")
            if columns.count is not None:
                yield RuleViolation(
                    ("one_per",), "is for rows that are owners, and columns.count makes rows of many", "owner"
                )
        if columns.count is None and known.get("duplicates") == "greatest":
            yield RuleViolation(
                ("duplicates",), "must not be greatest without columns.count: each row is one", "greatest"
            )


def _places(known: ValidFields, columns: OwnerColumns) -> Iterator[RuleViolation]:
    if "crs" in known:
        if columns.x is not None and known["crs"] is None:
            yield RuleViolation(("crs",), 'x and y need a coordinate reference system, as crs = "EPSG:32618"')
        if columns.x is None and known["crs"] is not None:
            yield RuleViolation(("crs",), "goes with x and y; lon and lat are always WGS84", known["crs"])
    if not known.has("window"):
        return
    window = known["window"]
    if columns.lon is None:
        yield RuleViolation(("window",), "goes with columns.lon and columns.lat", window)
    for axis, low, high in (("lon", window[0], window[2]), ("lat", window[1], window[3])):
        if low >= high:
            yield RuleViolation(("window",), f"{axis}_min must be below {axis}_max", window)


MATCH_M = 50.0
NOISE_M = 10.0


def _several(given: Any) -> Any:
    return [given] if isinstance(given, str) else given


_trace_moment = text_or_number("must be a recorded time: ISO 8601 text, or a number as recorded")


class TraceColumns(Section):
    """Which column of a table holds what: our name = the file's. What is left out is known by its usual names."""

    vehicle: str | None = None
    """Who it is."""
    time: str | None = None
    """When: ISO 8601 text, UTC where it names no zone; seconds since 1970, or milli-, micro- or nanoseconds; or
    seconds from any start."""
    lon: str | None = None
    """Longitude, WGS84 degrees."""
    lat: str | None = None
    """Latitude, WGS84 degrees."""
    x: str | None = None
    """Easting, in `crs`."""
    y: str | None = None
    """Northing, in `crs`."""
    speed_mps: str | None = None
    """Speed, metres per second."""
    speed_kph: str | None = None
    """Speed, kilometres per hour."""
    speed_mph: str | None = None
    """Speed, miles per hour."""

    def mapping(self) -> dict[str, str]:
        """Return our names and the file's, without those left out."""
        return self.model_dump(exclude_none=True)

    @classmethod
    def broken_rules(cls, known: ValidFields) -> Iterator[RuleViolation]:
        """Yield a fault where places or speeds are named twice."""
        named = [key for key in ("lon", "lat", "x", "y") if known.has(key)]
        if {"lon", "lat"} & set(named) and {"x", "y"} & set(named):
            yield RuleViolation((), "must name lon and lat, or x and y", named)
        speeds = [key for key in ("speed_mps", "speed_kph", "speed_mph") if known.has(key)]
        if len(speeds) > 1:
            yield RuleViolation((), "must name one speed", speeds)


class TraceTraffic(Section):
    """Vehicles whose positions were recorded."""

    engine: Literal["trace"]
    trace: Annotated[
        tuple[FileOrFolderReference, ...],
        Field(strict=False, min_length=1),
        BeforeValidator(_several, json_schema_input_type=str | list[str]),
    ]
    """The recording: a file, a folder (every file in it whose name does not begin with ``.`` or ``_``), or a list."""
    format: Literal["auto", "csv", "tdrive", "cabspotting", "parquet", "gpx", "sumo", "json"] = "auto"
    """What the files are; ``auto`` tells each by its name and its beginning."""
    columns: TraceColumns = TraceColumns()
    """Of tables: our names and the file's."""
    crs: AnyCrs | None = None
    """System that x and y are in; left out, places are longitudes and latitudes."""
    time_unit: TimeUnit | None = None
    """What one is, where times are numbers; left out, seconds, or what the size of dates says."""
    time_format: TimeFormat | None = None
    """Of tables: how a time is written, as ``%d/%m/%Y %H:%M:%S``; left out, ISO 8601 or a number."""
    order: Literal["auto", "ascending", "any"] = "auto"
    """What a vehicle's clock may do within a file: ``auto``, go forward only in formats that promise it (SUMO, GPX,
    timed paths), elsewhere wholly forward or wholly backward; ``any``, what it likes, and fixes are sorted."""
    one_vehicle_a_file: bool = False
    """Of tables: whether each is of one vehicle, named as its file."""
    start: Annotated[str | float, Field(union_mode="left_to_right"), BeforeValidator(_trace_moment)] | None = None
    """Recorded time that is second 0 of the run; left out, the first fix."""
    gap_s: Positive = 300.0
    """Between fixes at most so far apart a vehicle moves evenly; after a longer silence begins it is not asked."""
    hold_s: NotNegative = 0.0
    """For so long after a fix a vehicle is taken to be there still, before a long silence and after its last fix."""
    match: Literal["none", "nearest", "hmm"] = "none"
    """How fixes are put on the roads: not, each on the nearest, or a vehicle's together (leuvenmapmatching)."""
    match_m: Positive | None = None
    """Of a match: no road further away is taken, metres; 50 if left out."""
    match_noise_m: Positive | None = None
    """Of ``hmm``: standard deviation of recorded places, metres; 10 if left out."""
    step_s: Positive = 1.0
    """Tick of the run's clock, seconds."""
    parked: Literal["silent", "answer"] = "silent"
    """Whether a vehicle that is not seen any more still answers queries, from where it was seen last."""
    called: Called = VEHICLES
    """What the report calls one of those recorded and several, as ["ship", "ships"]."""

    @classmethod
    def broken_rules(cls, known: ValidFields) -> Iterator[RuleViolation]:
        """Yield what is wrong between places and their system, and what goes with no match."""
        columns = known.get("columns")
        if columns is not None and "crs" in known:
            if columns.x is not None and known["crs"] is None:
                yield RuleViolation(("crs",), 'x and y need a coordinate reference system, as crs = "EPSG:32618"')
            if columns.lon is not None and known["crs"] is not None:
                yield RuleViolation(("crs",), "goes with x and y; lon and lat are always WGS84", known["crs"])
        if known.has("time_format", "time_unit"):
            yield RuleViolation(
                ("time_unit",), "is of numbers, and must be left out with time_format", known["time_unit"]
            )
        if "match" not in known:
            return
        for key, methods in (("match_m", ("nearest", "hmm")), ("match_noise_m", ("hmm",))):
            if known.has(key) and known["match"] not in methods:
                yield RuleViolation((key,), f"goes with match = {' or '.join(methods)}", known[key])


_DRIVEN = ("fleet", "agents")


def traffic_tag(value: Any) -> str | None:
    """Return which of the traffic sections a table is, by its engine; ``fleet`` where it names none."""
    found = value.get("engine", "fleet") if isinstance(value, dict) else getattr(value, "engine", None)
    if found in _DRIVEN:
        return "<driven>"
    return f"<{found}>" if isinstance(found, str) else None


Traffic = Annotated[
    Annotated[DrivenTraffic, Tag("<driven>")]
    | Annotated[SumoTraffic, Tag("<sumo>")]
    | Annotated[TraceTraffic, Tag("<trace>")]
    | Annotated[StaticTraffic, Tag("<static>")],
    Discriminator(
        traffic_tag,
        custom_error_type="choice",
        custom_error_message="must be one of the known engines",
        custom_error_context={"key": "engine", "choices": "fleet, agents, sumo, trace, static"},
    ),
]
