"""``[[detectors]]`` and ``[counts]``: places at which passing vehicles are counted, and measured counts and speeds."""

from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from scenarios.cells import Column, PlaceTable, Texts
from scenarios.field_types import Name, NotNegative, Positive, Probability
from scenarios.recorded_traffic import TimeFormat
from scenarios.references import FileReference
from scenarios.roads import ColumnNames
from scenarios.rules import GIVEN, LEFT_OUT, must, needs, one_of
from scenarios.section import Rules

LinkName = Annotated[
    str, BeforeValidator(lambda value: str(value) if type(value) is int else value, json_schema_input_type=str | int)
]
"""A link, by its identifier or number, which may be written without quotes."""


class DetectorColumns(ColumnNames):
    """Columns of a table: name in this schema = the file's. Omitted columns are found by their usual names."""

    name: Column | None = None
    """Name of the detector, station or place."""
    link: Column | None = None
    """The link, as `[[detectors]] link` names it."""
    position_m: Column | None = None
    """Distance from the start of the link, metres."""
    fraction: Column | None = None
    """The same as a share of the link's length."""
    lon: Column | None = None
    """Longitude, WGS84 degrees."""
    lat: Column | None = None
    """Latitude, WGS84 degrees."""
    x: Column | None = None
    """Easting, metres in the coordinate system of the roads."""
    y: Column | None = None
    """Northing, metres in the same system."""
    heading_deg: Column | None = None
    """Direction of traffic: degrees clockwise from north, or one of N, NE, E, SE, S, SW, W and NW, to which ``B`` or
    ``bound`` may be added."""

    rules: ClassVar[Rules] = (
        one_of(("lon", "lat"), ("x", "y"), ("link",), (), words="must name link, or lon and lat, or x and y, or none"),
        must("fraction", LEFT_OUT, "must be left out with position_m", position_m=GIVEN),
    )


class CountColumns(DetectorColumns):
    """Columns of a table of counts: name in this schema = the file's. Omitted ones are found by their usual names."""

    from_s: Column | None = None
    """Beginning of the interval: seconds of the run, a time of day, or a date and time."""
    to_s: Column | None = None
    """End of the interval."""
    hour: Column | None = None
    """Hour of the day, 0 to 23, in place of `from_s` and `to_s`."""
    count: Column | None = None
    """Number of vehicles in the interval."""
    flow_vph: Column | None = None
    """Vehicles per hour, in place of `count`."""
    speed_mps: Column | None = None
    """Mean speed, metres per second."""
    speed_kph: Column | None = None
    """Mean speed, kilometres per hour, in place of `speed_mps`."""
    speed_mph: Column | None = None
    """Mean speed, miles per hour, in place of `speed_mps`."""

    rules = (
        one_of(("count",), ("flow_vph",), (), words="must name one of count and flow_vph"),
        one_of(("speed_mps",), ("speed_kph",), ("speed_mph",), (), words="must name one speed"),
        must(("from_s", "to_s"), LEFT_OUT, "must be left out with hour", hour=GIVEN),
    )


class PlacedTable(PlaceTable):
    """A table of places, and how they are put on links."""

    within_m: Positive = 50.0
    """Maximum distance of coordinates from their link, metres."""
    classes: Texts | None = None
    """Only links of these classes of road are near coordinates."""


class DetectorSection(PlacedTable):
    """A loop that counts the vehicles that pass, or a table of them."""

    name: Name | None = None
    """Unique name; of a single detector only."""
    link: LinkName | None = None
    """The link: where the source of the roads has identifiers (SUMO's edge, GMNS's link), its identifier, else its
    number in `roads.parquet`."""
    position_m: NotNegative | None = None
    """Distance from the start of the link, metres."""
    fraction: Probability | None = None
    """The same as a share of the link's length. Default: 0.5, the middle."""
    lon: Annotated[float, Field(ge=-180, le=180)] | None = None
    """Longitude, WGS84 degrees: the detector is at the nearest point of the nearest link."""
    lat: Annotated[float, Field(ge=-90, le=90)] | None = None
    """Latitude, WGS84 degrees."""
    x: float | None = None
    """Easting, metres in the coordinate system of the roads."""
    y: float | None = None
    """Northing, metres in the same system."""
    heading_deg: Annotated[float, Field(ge=0, le=360)] | None = None
    """For coordinates: direction of traffic, clockwise from north; links that differ from it by a right angle or more
    are not near. Default: any, and of two links at one place the first."""
    file: FileReference | None = None
    """Table of detectors, one a row."""
    columns: DetectorColumns | None = None
    """Columns of the table."""
    every_s: Positive = 300.0
    """Duration of an interval, seconds."""

    rules = (
        one_of(
            ("file",), ("link",), ("lon", "lat"), ("x", "y"), words="must give a file, link, lon and lat, or x and y"
        ),
        one_of(("file",), ("name",), words="must have a name, or a file, whose rows have names"),
        needs(("position_m", "fraction"), "link"),
        must("fraction", LEFT_OUT, "must be left out with position_m", position_m=GIVEN),
        must("heading_deg", LEFT_OUT, "needs lon and lat, or x and y", lon=LEFT_OUT, x=LEFT_OUT),
        needs(("columns", "where"), "file"),
    )


class CountsSection(PlacedTable):
    """Measured counts and speeds, with which the run's are compared."""

    file: FileReference
    """Table of measured values, one place and interval a row."""
    columns: CountColumns = CountColumns()
    """Columns of the table."""
    interval_s: Positive | None = None
    """Duration of an interval, where the table has no column of its end. Default: an hour if it has one of hours."""
    time_format: TimeFormat | None = None
    """Format of times that are text, as ``%m/%d/%Y %H:%M:%S``. Default: a time of day, or ISO 8601."""
    scale: Positive = 1.0
    """Vehicles that each vehicle of the run represents: its counts are multiplied by it before they are compared."""
