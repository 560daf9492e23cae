"""``[cells]`` that are places: road segments, stations, named locations."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from scenarios.cell_levels import Levels
from scenarios.faults import Breach
from scenarios.place_table import Column, PlaceTable
from scenarios.references import FileReference
from scenarios.road_files import MetricCrs
from scenarios.section import Count, Known, Positive, Section

Texts = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(strict=False, min_length=1)]


class RoadCells(Levels):
    """Segments of road: every link a cell, or the two directions of a street together."""

    kind: Literal["roads"]
    per: Literal["link", "road"] = "link"
    """Whether each direction is a cell, or both together."""
    classes: Texts | None = None
    """Only roads of these classes are cells; all else is outside."""
    top: Count | None = None
    """Only so many are cells: those that can carry the most vehicles an hour, of equals the longest."""
    within_m: Positive = 30.0
    """A vehicle known by coordinates alone is on the nearest segment no further off than this, metres."""


class PlaceColumns(Section):
    """Which column of a table of places holds what: our name = the file's, or its number."""

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

    def mapping(self) -> dict[str, str | int]:
        """Return our names and the file's, without those left out."""
        return self.model_dump(exclude_none=True)

    @classmethod
    def broken_rules(cls, known: Known) -> Iterator[Breach]:
        """Yield a fault unless exactly one pair of coordinates is named."""
        keys = ("lon", "lat", "x", "y")
        if not all(key in known for key in keys):
            return
        given = tuple(key for key in keys if known[key] is not None)
        if given not in {("lon", "lat"), ("x", "y")}:
            yield Breach((), "must name either lon and lat, or x and y", list(given) or None)


class _Places(PlaceTable, Levels):
    """What stations and locations have in common."""

    names: Texts | None = None
    """Only the places of these names are cells, in this order; left out, all of them."""
    labels: dict[str, str] | None = None
    """What to call places in the report: the name in the file, and the one to show."""
    crs: MetricCrs | None = None
    """Coordinate reference system of x and y: projected, in metres."""
    radius_m: Positive = 100.0
    """A vehicle known by coordinates is at the nearest place no further off than this, metres; else at none."""

    @classmethod
    def broken_rules(cls, known: Known) -> Iterator[Breach]:
        """Yield a fault unless planar coordinates come with their reference system, and only they do."""
        if "crs" not in known or not known.has("columns"):
            return
        if known["columns"].x is not None and known["crs"] is None:
            yield Breach(("crs",), 'x and y need a coordinate reference system, as crs = "EPSG:32618"')
        if known["columns"].x is None and known["crs"] is not None:
            yield Breach(("crs",), "goes with x and y; lon and lat are always WGS84", known["crs"])


class StationCells(_Places):
    """What is near each station of a table; where several are near, at the nearest."""

    kind: Literal["stations"]
    file: FileReference
    """Table of stations, one or more rows each."""
    columns: PlaceColumns
    """Our names and the file's."""


class LocationCells(_Places):
    """Named locations: of a table, or those where the data owners of engine ``static`` are.

    An owner whose place has a name is in the location of that name; whoever is known by coordinates alone, as at
    stations.
    """

    kind: Literal["locations"]
    file: FileReference | None = None
    """Table of locations; left out, the places of the table of owners."""
    columns: PlaceColumns | None = None
    """Our names and the file's."""
    top: Count | None = None
    """Only so many are cells: those with the most owners, of equals the first by name."""

    @classmethod
    def broken_rules(cls, known: Known) -> Iterator[Breach]:
        """Yield what is wrong between the file and what is said of it."""
        yield from super().broken_rules(known)
        if not all(key in known for key in ("file", "columns", "names", "top")):
            return
        if known["file"] is not None and known["columns"] is None:
            yield Breach(("columns",), "is required with file: which column holds what")
        if known["file"] is None:
            for key in ("columns", "separator", "where", "crs"):
                if known.has(key):
                    yield Breach((key,), "goes with file", known[key])
            if known.get("header") is False:
                yield Breach(("header",), "goes with file", value=False)
        elif known["top"] is not None:
            yield Breach(("top",), "is of the table of owners, and goes without file", known["top"])
        if known["names"] is not None and known["top"] is not None:
            yield Breach(("top",), "must be left out where names are given", known["top"])
