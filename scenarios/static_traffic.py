"""``[traffic]`` of engine ``static``: data owners that are somewhere and do not move."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from scenarios.called import VEHICLES, Called
from scenarios.faults import Breach
from scenarios.place_table import Column, PlaceTable
from scenarios.references import FileReference
from scenarios.road_files import MetricCrs
from scenarios.section import Known, Positive, Section, rule, text_or_number
from scenarios.units import TimeUnit

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
    def broken_rules(cls, known: Known) -> Iterator[Breach]:
        """Yield a fault unless the columns say where each owner is, in one way."""
        keys = ("lon", "lat", "x", "y")
        if not all(key in known for key in (*keys, "place")):
            return
        given = tuple(key for key in keys if known[key] is not None)
        if given not in {("lon", "lat"), ("x", "y"), ()}:
            yield Breach((), "must name lon and lat, or x and y, or neither", list(given))
        elif not given and known["place"] is None:
            yield Breach((), "must say where owners are: place, or lon and lat, or x and y")


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
    def broken_rules(cls, known: Known) -> Iterator[Breach]:
        """Yield what is wrong between columns and what is asked of them."""
        columns = known.get("columns")
        if columns is None:
            return
        yield from _places(known, columns)
        if columns.time is None:
            for key in ("start", "dwell_s"):
                if known.has(key):
                    yield Breach((key,), "goes with columns.time", known[key])
        if known.get("one_per") == "owner":
            if columns.owner is None:
                yield Breach(("one_per",), "needs columns.owner, which says who it is", "owner")
            if columns.count is not None:
                yield Breach(("one_per",), "is for rows that are owners, and columns.count makes rows of many", "owner")
        if columns.count is None and known.get("duplicates") == "greatest":
            yield Breach(("duplicates",), "must not be greatest without columns.count: each row is one", "greatest")


def _places(known: Known, columns: OwnerColumns) -> Iterator[Breach]:
    if "crs" in known:
        if columns.x is not None and known["crs"] is None:
            yield Breach(("crs",), 'x and y need a coordinate reference system, as crs = "EPSG:32618"')
        if columns.x is None and known["crs"] is not None:
            yield Breach(("crs",), "goes with x and y; lon and lat are always WGS84", known["crs"])
    if not known.has("window"):
        return
    window = known["window"]
    if columns.lon is None:
        yield Breach(("window",), "goes with columns.lon and columns.lat", window)
    for axis, low, high in (("lon", window[0], window[2]), ("lat", window[1], window[3])):
        if low >= high:
            yield Breach(("window",), f"{axis}_min must be below {axis}_max", window)
