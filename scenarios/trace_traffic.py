"""``[traffic]`` of engine ``trace``: recorded positions, replayed."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from scenarios.called import VEHICLES, Called
from scenarios.faults import Breach
from scenarios.moments import TimeFormat
from scenarios.references import FileOrFolderReference
from scenarios.road_files import AnyCrs
from scenarios.section import Known, NotNegative, Positive, Section, text_or_number
from scenarios.units import TimeUnit

MATCH_M = 50.0
NOISE_M = 10.0


def _several(given: Any) -> Any:
    return [given] if isinstance(given, str) else given


_moment = text_or_number("must be a recorded time: ISO 8601 text, or a number as recorded")


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
    def broken_rules(cls, known: Known) -> Iterator[Breach]:
        """Yield a fault where places or speeds are named twice."""
        named = [key for key in ("lon", "lat", "x", "y") if known.has(key)]
        if {"lon", "lat"} & set(named) and {"x", "y"} & set(named):
            yield Breach((), "must name lon and lat, or x and y", named)
        speeds = [key for key in ("speed_mps", "speed_kph", "speed_mph") if known.has(key)]
        if len(speeds) > 1:
            yield Breach((), "must name one speed", speeds)


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
    start: Annotated[str | float, Field(union_mode="left_to_right"), BeforeValidator(_moment)] | None = None
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
    def broken_rules(cls, known: Known) -> Iterator[Breach]:
        """Yield what is wrong between places and their system, and what goes with no match."""
        columns = known.get("columns")
        if columns is not None and "crs" in known:
            if columns.x is not None and known["crs"] is None:
                yield Breach(("crs",), 'x and y need a coordinate reference system, as crs = "EPSG:32618"')
            if columns.lon is not None and known["crs"] is not None:
                yield Breach(("crs",), "goes with x and y; lon and lat are always WGS84", known["crs"])
        if known.has("time_format", "time_unit"):
            yield Breach(("time_unit",), "is of numbers, and must be left out with time_format", known["time_unit"])
        if "match" not in known:
            return
        for key, methods in (("match_m", ("nearest", "hmm")), ("match_noise_m", ("hmm",))):
            if known.has(key) and known["match"] not in methods:
                yield Breach((key,), f"goes with match = {' or '.join(methods)}", known[key])
