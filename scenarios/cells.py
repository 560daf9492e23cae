"""``[cells]``: how the city is divided into cells: squares, grids, zones, roads, stations or other places."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, WithJsonSchema

from scenarios.errors import RuleViolation
from scenarios.field_types import Count, Name, Positive, rule
from scenarios.references import FileReference
from scenarios.roads import CRS_OF_NAMED_X_Y, LON_LAT_OR_X_Y, ColumnNames, MetricCrs, TextTables
from scenarios.rules import GIVEN, LEFT_OUT, must, needs
from scenarios.section import BrokenRules, ByKind, Place, Rules, Section, ValidFields

HIGHEST = 40


class Levels(Section):
    """Fields that all kinds of cells have in common."""

    role = "cells"
    kind: str
    partition: Name = "cells"
    """Name of this partition of the city; where `[[cells]]` lists several, `campaigns.cells` refers to it."""
    level: Annotated[int, Field(ge=0, le=HIGHEST)] = 0
    """How many times the cells are merged before devices are counted, each time into blocks of about twice the side."""


Scalar = str | int | float | bool

_SCALAR = {"type": ["string", "number", "boolean"]}


def _column(value: Any) -> Any:
    if (isinstance(value, str) and value) or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise rule("must be the name of a column, or its number, from 1")


def _values(value: Any) -> Any:
    values = tuple(value) if isinstance(value, list | tuple) else (value,)
    if values and all(isinstance(value, Scalar) for value in values):
        return values
    raise rule("must be a text, a number, true or false, or a list of them")


Column = Annotated[str | int, Field(union_mode="left_to_right"), BeforeValidator(_column)]
"""A column of a file, by its name or by its number, from 1."""

Wanted = Annotated[
    tuple[Scalar, ...],
    BeforeValidator(_values),
    WithJsonSchema({"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR, "minItems": 1}]}),
]
"""What a column must hold for a row to be used: one value, or any of several."""


class PlaceTable(TextTables):
    """How to read a file of rows: text as ``.csv``, ``.tsv`` and ``.data``, gzipped or not, or Parquet."""

    header: bool = True
    """Whether the first line names the columns; if not, columns are referred to by number, from 1."""
    where: dict[str, Wanted] | None = None
    """Rows to use: a column's name, or its number in quotes, and the value or values it must hold."""


Texts = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(strict=False, min_length=1)]


class PlaceColumns(ColumnNames):
    """Columns of a table of places: name in this schema = the file's name of the column, or its number."""

    name: Column
    """Name of the place."""
    lon: Column | None = None
    """Longitude, WGS84 degrees."""
    lat: Column | None = None
    """Latitude, WGS84 degrees."""
    x: Column | None = None
    """Easting, metres in `crs`."""
    y: Column | None = None
    """Northing, metres in `crs`."""

    rules = (LON_LAT_OR_X_Y,)


Bounds = tuple[float, float, float, float]


def four_numbers(form: str) -> BeforeValidator:
    """Return a validator that takes a list of four numbers; `form` names them."""

    def check(value: Any) -> Any:
        if isinstance(value, list | tuple) and len(value) == 4:
            return tuple(value)
        raise rule(f"must be four numbers, {form}")

    return BeforeValidator(check)


def has_an_area(key: str, *axes: str) -> BrokenRules:
    """Return the rule that the window `key` has width and height; `axes` are its two directions."""

    def broken(valid: ValidFields) -> Iterator[RuleViolation]:
        bounds = valid.get(key) or (0, 0, 1, 1)
        for axis, low, high in zip(axes, bounds[:2], bounds[2:], strict=True):
            if low >= high:
                yield valid.violation(key, f"{axis}_min must be below {axis}_max")

    return broken


class _Windowed(Levels):
    """Cells over the extent of the roads or of the recorded positions, or over a window of it."""

    bounds: Annotated[Bounds, four_numbers("[x_min, y_min, x_max, y_max]")] | None = None
    """Window that is divided into cells, [x_min, y_min, x_max, y_max]; the rest is outside every cell.

    Projected metres; in a generated city, metres from its south-west corner."""

    rules = (has_an_area("bounds", "x", "y"),)


class SquareCells(_Windowed):
    """Squares over the extent of the roads, or over a window of it."""

    kind: Literal["square"]
    size_m: Positive
    """Side of a cell, metres."""


class GeographicCells(Levels):
    """The papers' cells of one size in miles over a square of 9,500 miles, each with a 32-bit identifier."""

    kind: Literal["geographic"]
    size_miles: Positive = 0.15
    """Side of a cell, miles."""
    origin: Place = Place()
    """Centre of the square."""


class HexagonCells(_Windowed):
    """The cells of the global grid H3 that meet the extent of the roads, or a window of it."""

    kind: Literal["h3"]
    needs = ("h3", "h3")
    resolution: Annotated[int, Field(ge=0, le=15)]
    """H3's resolution: the side of a cell is about 531 m at 8, 201 m at 9, 76 m at 10."""


class ZoneCells(Levels):
    """Polygons of a file, as districts or traffic analysis zones; whoever is in none of them is outside."""

    kind: Literal["zones"]
    file: FileReference
    """File of polygons: GeoJSON, GeoPackage, Shapefile or GeoParquet."""
    name: Annotated[str, Field(min_length=1)] | None = None
    """Attribute with the names of the zones. Default: they are numbered from 1."""
    layer: Annotated[str, Field(min_length=1)] | None = None
    """Layer of a GeoPackage that has several."""


class RoadCells(Levels):
    """Road segments: each link is a cell, or the two directions of a street together are one."""

    kind: Literal["roads"]
    per: Literal["link", "road"] = "link"
    """Whether each direction is a cell of its own, or both directions are one cell."""
    classes: Texts | None = None
    """Only roads of these classes are cells; all other roads are outside."""
    top: Count | None = None
    """Maximum number of cells: the segments that can carry the most vehicles per hour; among equals, the longest."""
    within_m: Positive = 30.0
    """A vehicle known by coordinates alone is on the nearest segment within this distance, metres."""


class _Places(PlaceTable, Levels):
    """Fields that stations and locations have in common."""

    names: Texts | None = None
    """Names of the places that are cells, in this order. Default: all places."""
    labels: dict[str, str] | None = None
    """Labels of places in the report: the name in the file, and the name to show."""
    crs: MetricCrs | None = None
    """Coordinate reference system of x and y: projected, in metres."""
    radius_m: Positive = 100.0
    """A vehicle known by coordinates is at the nearest place within this distance, metres, and at none if all places
    are further away."""

    rules: ClassVar[Rules] = CRS_OF_NAMED_X_Y


class StationCells(_Places):
    """The surroundings of each station of a table; where several stations are near, the nearest counts."""

    kind: Literal["stations"]
    file: FileReference
    """Table of stations, one or more rows each."""
    columns: PlaceColumns
    """Columns of the table."""


class LocationCells(_Places):
    """Named locations: the places of a table, or the places where the data owners of engine ``static`` are.

    An owner whose place has a name is in the location of that name. An owner known by coordinates alone is assigned
    to a location as it is to a station.
    """

    kind: Literal["locations"]
    file: FileReference | None = None
    """Table of locations. Default: the places of the table of owners."""
    columns: PlaceColumns | None = None
    """Columns of the table."""
    top: Count | None = None
    """Maximum number of cells: the locations with the most owners; among equals, the first by name."""

    rules = (
        must("columns", GIVEN, "is required with file: it names the columns", file=GIVEN),
        needs(("columns", "separator", "decimal", "where", "crs"), "file"),
        must("header", GIVEN, "needs file", file=LEFT_OUT),
        must("top", LEFT_OUT, "applies to the table of owners, and cannot be used with file", file=GIVEN),
        must("top", LEFT_OUT, "must be left out where names are given", names=GIVEN),
    )


_OneOfCells = Annotated[Levels, ByKind("cells")]


def _listed(value: Any) -> str:
    return "<list>" if isinstance(value, list | tuple) else "<table>"


Cells = Annotated[
    Annotated[_OneOfCells, Tag("<table>")]
    | Annotated[tuple[_OneOfCells, ...], Field(strict=False, min_length=1), Tag("<list>")],
    Discriminator(_listed),
]
"""One partition, or several of the same city, each with its name."""
