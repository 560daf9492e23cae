"""``[traffic]`` of recorded data: engines ``static``, ``trace`` and ``entries``."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from scenarios.cells import Bounds, Column, PlaceTable, four_numbers, has_an_area
from scenarios.field_types import NotNegative, Positive, TimeUnit, WholeNumber, rule, text_or_number
from scenarios.references import FileOrFolderReference, FileReference
from scenarios.roads import CRS_OF_NAMED_X_Y, CRS_OF_X_Y, AnyCrs, ColumnNames, MetricCrs, TextTables
from scenarios.rules import GIVEN, LEFT_OUT, Rule, among, must, needs, one_of, unlike
from scenarios.run_clock import TimeZone
from scenarios.section import ByKind
from scenarios.simulated_traffic import MOST_VEHICLES, EnteringTraffic, TrafficSection

_EXAMPLE = datetime(2013, 11, 28, 17, 42)  # noqa: DTZ001 - only formatted and parsed back, without a zone


def _time_format(text: str) -> str:
    # A date written and read back is unchanged only if the format has year, month, day and time of day, each once.
    zone = text.replace("%z", "+0000").replace("%Z", "UTC")
    try:
        back = datetime.strptime(_EXAMPLE.strftime(zone), zone)  # noqa: DTZ007 - only formatted and parsed back, without a zone
    except ValueError:
        back = None
    if back != _EXAMPLE:
        raise rule('must be the format of a date and a time of day, as "%d/%m/%Y %H:%M:%S"')
    return text


TimeFormat = Annotated[str, AfterValidator(_time_format)]
"""Format of dates with times of day, as for ``strptime``."""


Word = Annotated[str, Field(min_length=1, max_length=40)]

Called = Annotated[tuple[Word, Word], Field(strict=False)]
"""A noun in the singular and the plural, as ["patient", "patients"]."""

VEHICLES: tuple[str, str] = ("vehicle", "vehicles")


MATCH_M = 50.0
NOISE_M = 10.0


def _several(given: Any) -> Any:
    return [given] if isinstance(given, str) else given


_trace_moment = text_or_number("must be a recorded time: ISO 8601 text, or a number as recorded")


_LON_LAT_OR_X_Y = ({"lon": LEFT_OUT, "lat": LEFT_OUT}, {"x": LEFT_OUT, "y": LEFT_OUT})


class TraceColumns(ColumnNames):
    """Columns of a table: name in this schema = the file's. Omitted columns are found by their usual names."""

    vehicle: str | None = None
    """Identifier of the vehicle."""
    time: str | None = None
    """Time: ISO 8601 text, UTC if without a zone; seconds, milli-, micro- or nanoseconds since 1970; or seconds from
    any start."""
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

    rules = (
        Rule((), "must name lon and lat, or x and y", _LON_LAT_OR_X_Y),
        one_of(("speed_mps",), ("speed_kph",), ("speed_mph",), (), words="must name one speed"),
    )


class TraceTraffic(TextTables, TrafficSection):
    """Vehicles whose positions were recorded."""

    engine: Literal["trace"]
    title = "recorded trace"
    capabilities = frozenset({"recorded", "links"})
    trace: Annotated[
        tuple[FileOrFolderReference, ...],
        Field(strict=False, min_length=1),
        BeforeValidator(_several, json_schema_input_type=str | list[str]),
    ]
    """The recording: a file, a folder (every file in it whose name does not begin with ``.`` or ``_``; or, if it holds
    only folders, every ``.plt`` file in them), or a list."""
    format: Literal[
        "auto", "csv", "tdrive", "cabspotting", "geolife", "parquet", "points", "gpx", "sumo", "matsim", "json"
    ] = "auto"
    """Format of the files; ``auto`` detects it from the name and the beginning of each file. ``points`` are points of a
    GeoPackage or Shapefile."""
    columns: TraceColumns = TraceColumns()
    """For tables: the columns."""
    crs: AnyCrs | None = None
    """Coordinate reference system of x and y. Default: positions are longitudes and latitudes."""
    net: FileReference | None = None
    """For SUMO's floating-car data without ``--fcd-output.geo``: the network in whose metres they are. Default: the
    network of the roads, if their source is ``sumo`` and positions are not degrees."""
    time_unit: TimeUnit | None = None
    """Unit of times that are numbers. Default: seconds, or for dates the unit that their magnitude implies."""
    time_format: TimeFormat | None = None
    """For tables: format of times, as ``%d/%m/%Y %H:%M:%S``. Default: ISO 8601 or a number."""
    time_zone: TimeZone | None = None
    """Time zone, with its summer time, of times that name none, as ``"Europe/Berlin"``. Default: `scenario.time_zone`,
    else UTC."""
    order: Literal["auto", "ascending", "any"] = "auto"
    """Order of a vehicle's times within a file: ``auto`` requires ascending times in formats that promise them (SUMO,
    GPX, timed paths), and times that wholly ascend or wholly descend in others; ``any`` accepts every order and sorts
    the fixes."""
    one_vehicle_a_file: bool = False
    """For tables: whether each file is of one vehicle, named like the file."""
    start: Annotated[str | float, Field(union_mode="left_to_right"), BeforeValidator(_trace_moment)] | None = None
    """Recorded time that is second 0 of the run. Default: the first fix."""
    gap_s: Positive = 300.0
    """Longest time between two fixes during which a vehicle moves evenly from one to the other, seconds. In a longer
    gap it is not asked."""
    hold_s: NotNegative = 0.0
    """Time for which a vehicle is assumed to stay at a fix that comes before a longer gap, and at its last fix,
    seconds."""
    highest_mps: Positive = 60.0
    """Speed that no move may exceed, metres per second. Single fixes that are too far from those before and after them
    are left out; at other moves that are too fast the recording is cut, as at a gap."""
    match: Literal["none", "nearest", "hmm"] = "none"
    """Map matching: none, each fix to the nearest road, or all fixes of a vehicle together."""
    match_m: Positive | None = None
    """For map matching: maximum distance from a fix to its road, metres. Default: 50."""
    match_noise_m: Positive | None = None
    """For ``hmm``: standard deviation of recorded positions, metres. Default: 10."""
    called: Called = VEHICLES
    """Nouns of the report for one recorded vehicle and for several, as ["ship", "ships"]."""

    rules = (
        *CRS_OF_X_Y,
        must("crs", LEFT_OUT, "must be left out with net, which states it", net=GIVEN),
        must("time_unit", LEFT_OUT, "is of numbers, and must be left out with time_format", time_format=GIVEN),
        needs("match_m", words="needs match = nearest or hmm", match=("nearest", "hmm")),
        needs("match_noise_m", words="needs match = hmm", match="hmm"),
    )


_moment = text_or_number("must be a time as the file has them: text, or a number")


_ONE_OWNER_EACH = "needs rows of one owner each, but with columns.count a row has several"
_NO_OWNERS = "needs columns.owner, the column of their identifiers"
_NOT_GREATEST = "must not be greatest without columns.count: each row is one"
_POSITIONS = tuple({key: GIVEN} for key in ("place", "lon", "lat", "x", "y"))


class OwnerColumns(ColumnNames):
    """Columns of the user's table: name in this schema = the file's name of the column, or its number."""

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
    """Number of data owners that the row represents. Default: one."""
    time: Column | None = None
    """When they are there: a time of day and date, or a number of `time_unit`. Default: throughout the run."""
    owner: Column | None = None
    """Identifier of the data owner."""
    period: Column | None = None
    """Value that distinguishes rows of one place, such as the hour they count in, if it is not the time of presence."""
    ignored: Annotated[tuple[Column, ...], Field(strict=False)] | None = None
    """Columns of numbers that are not read. A table with any other such column is refused, unless `count` or `owner`
    is given."""

    rules = (
        one_of(("lon", "lat"), ("x", "y"), (), words="must name lon and lat, or x and y, or neither"),
        Rule((), "must give the position of owners: place, or lon and lat, or x and y", _POSITIONS),
    )


class EntriesTraffic(EnteringTraffic):
    """Vehicles that move again as in an earlier run of engine ``fleet`` or ``agents``, on the same roads."""

    title = "entries of an earlier run"
    capabilities = frozenset({"links"})
    engine: Literal["entries"]
    entries: FileReference
    """The ``entries.parquet`` of that run, which must have every vehicle. It is read as time goes on."""
    vehicles: Annotated[WholeNumber, Field(ge=1, le=MOST_VEHICLES)] | None = None
    """Number of vehicles of that run. Default: as ``run.json`` beside the file says, else those that departed."""
    spacing_m: Positive | None = None
    """As of engine ``fleet``, and as it was in that run."""


class StaticTraffic(PlaceTable, TrafficSection):
    """Data owners without movement: vehicles counted at a detector, people who checked in at a place."""

    engine: Literal["static"]
    title = "data owners"
    capabilities = frozenset({"recorded"})
    owners: FileReference
    """Table of the owners' places: one row per owner, or one row per place with the number of owners."""
    columns: OwnerColumns
    """Columns of the table."""
    crs: MetricCrs | None = None
    """Coordinate reference system of x and y: projected, in metres."""
    window: Annotated[Bounds, four_numbers("[lon_min, lat_min, lon_max, lat_max]")] | None = None
    """Rows outside these longitudes and latitudes are left out and counted, [lon_min, lat_min, lon_max, lat_max]."""
    duplicates: Literal["refuse", "first", "last", "greatest", "sum"] | None = None
    """Treatment of rows of the same place, period, time and owner; ``sum`` counts each of them.

    Default: ``refuse`` where rows have counts, ``sum`` where each row is an owner. The number of such rows is reported
    in any case."""
    fractions: Literal["refuse", "nearest"] = "refuse"
    """Treatment of counts that are not whole; ``nearest`` rounds the total of a place at a time, halves to even."""
    one_per: Literal["row", "owner"] = "row"
    """Whether each row is a data owner, or all rows of an owner are one data owner, at its last place."""
    start: Annotated[str | float, Field(union_mode="left_to_right"), BeforeValidator(_moment)] | None = None
    """Time in the file at which the run starts. Default: the earliest."""
    time_unit: TimeUnit = "s"
    """Unit of times that are numbers."""
    time_zone: TimeZone | None = None
    """Time zone, with its summer time, of dates that name none, as ``"Europe/Berlin"``. Default: `scenario.time_zone`,
    else UTC."""
    dwell_s: Positive | None = None
    """How long an owner stays after its time, seconds. Default: to the end of the run."""
    called: Called = VEHICLES
    """Nouns of the report for one owner and for several, as ["patient", "patients"]."""

    rules = (
        *CRS_OF_NAMED_X_Y,
        needs("window", "columns.lon", "needs columns.lon and columns.lat"),
        has_an_area("window", "lon", "lat"),
        needs(("start", "dwell_s", "time_zone"), "columns.time"),
        must("one_per", among("row"), _NO_OWNERS, **{"columns.owner": LEFT_OUT}),
        must("one_per", among("row"), _ONE_OWNER_EACH, **{"columns.count": GIVEN}),
        must("duplicates", unlike("greatest"), _NOT_GREATEST, **{"columns.count": LEFT_OUT}),
    )


Traffic = Annotated[TrafficSection, ByKind("engine", "engine", default="fleet")]
"""Traffic of any engine."""
