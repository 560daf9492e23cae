"""``[roads]``: a generated rectangular city, node and edge tables, or a file in one of the field's formats."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from scenarios.faults import Breach
from scenarios.references import FileReference
from scenarios.road_files import (
    CAPACITY_VPH,
    STREET_SPEED_MPS,
    GeoPackageRoads,
    GeoParquetRoads,
    GmnsRoads,
    MetricCrs,
    NoRoads,
    OsmRoads,
    SumoRoads,
    TntpRoads,
)
from scenarios.section import Count, Known, Place, Positive, Section, tag_by


class Grid(Section):
    """A generated rectangular city: `columns` avenues running north, `rows` streets running east."""

    source: Literal["grid"]
    rows: Count
    """Streets, counted from the south."""
    columns: Count
    """Avenues, counted from the west."""
    spacing_m: Positive | None = None
    """Length of every link, metres; or give `spacing_x_m` and `spacing_y_m`."""
    spacing_x_m: Positive | None = None
    """Distance between avenues, metres: the length of a street's link."""
    spacing_y_m: Positive | None = None
    """Distance between streets, metres: the length of an avenue's link."""
    speed_mps: Positive = STREET_SPEED_MPS
    """Free-flow speed, metres per second."""
    lanes: Count = 1
    """Lanes in each direction."""
    avenue_speed_mps: Positive | None = None
    """Free-flow speed of avenues; left out, that of streets."""
    avenue_lanes: Count | None = None
    """Lanes of avenues in each direction; left out, those of streets."""
    one_way: bool = False
    """Avenues run one way, alternately north and south; streets stay two-way."""
    capacity_vph: Positive = CAPACITY_VPH
    """Vehicles an hour that can leave a link, per lane."""
    anchor: Place = Place()
    """Where the south-west corner is on the globe."""

    @property
    def spacings_m(self) -> tuple[float, float]:
        """Distance between avenues and between streets (x, y), metres."""
        if self.spacing_x_m is not None and self.spacing_y_m is not None:
            return self.spacing_x_m, self.spacing_y_m
        both = self.spacing_m or 0.0
        return both, both

    @property
    def avenues(self) -> tuple[float, int]:
        """Speed (metres per second) and lanes of avenues, those of streets where left out."""
        speed = self.speed_mps if self.avenue_speed_mps is None else self.avenue_speed_mps
        return speed, self.lanes if self.avenue_lanes is None else self.avenue_lanes

    @classmethod
    def broken_rules(cls, known: Known) -> Iterator[Breach]:
        """Yield what is wrong between size, spacing and directions."""
        if known.has("rows", "columns"):
            rows, columns = known["rows"], known["columns"]
            if rows * columns < 2:
                yield Breach(("rows",), "rows times columns must be at least 2, or there is no road", rows)
            elif known.get("one_way") and min(rows, columns) < 2:
                yield Breach(
                    ("one_way",),
                    f"one-way avenues need at least 2 rows and 2 columns (here {rows} and {columns}): "
                    "nobody could come back on the only one",
                    value=True,
                )
        yield from _spacing(known)


def _spacing(known: Known) -> Iterator[Breach]:
    keys = ("spacing_m", "spacing_x_m", "spacing_y_m")
    if not all(key in known for key in keys):
        return
    both, x, y = (known[key] is not None for key in keys)
    if (both and not x and not y) or (x and y and not both):
        return
    given = {key: known[key] for key in keys if known[key] is not None}
    yield Breach(("spacing_m",), "give either spacing_m, or both spacing_x_m and spacing_y_m", given or None)


class Columns(Section):
    """Which column of the user's tables holds what: our name = the file's.

    Nodes: `node`, and `lon` with `lat` or `x` with `y`. Edges: the rest. Where several speed columns are
    named, each row takes the first of `speed_mps`, `speed_mph`, `speed_kph` that holds a positive number.
    """

    node: str
    """Identifier of a node."""
    lon: str | None = None
    """Longitude, WGS84 degrees."""
    lat: str | None = None
    """Latitude, WGS84 degrees."""
    x: str | None = None
    """Easting, metres in `crs`."""
    y: str | None = None
    """Northing, metres in `crs`."""
    from_: str = Field(alias="from")
    """Node an edge starts at."""
    to: str
    """Node an edge ends at."""
    length_m: str | None = None
    """Length, metres; left out, the straight line between the nodes."""
    speed_mps: str | None = None
    """Free-flow speed, metres per second."""
    speed_kph: str | None = None
    """Free-flow speed, kilometres per hour."""
    speed_mph: str | None = None
    """Free-flow speed, miles per hour."""
    lanes: str | None = None
    """Lanes in the direction of the edge."""
    capacity_vph: str | None = None
    """Vehicles an hour that can leave the edge, per lane."""
    class_: str | None = Field(default=None, alias="class")
    """Class of road, kept as it is."""

    def mapping(self) -> dict[str, str]:
        """Return our names and the file's, without those left out."""
        return self.model_dump(by_alias=True, exclude_none=True)

    @classmethod
    def broken_rules(cls, known: Known) -> Iterator[Breach]:
        """Yield a fault unless exactly one pair of coordinates is named."""
        keys = ("lon", "lat", "x", "y")
        if not all(key in known for key in keys):
            return
        given = tuple(key for key in keys if known[key] is not None)
        if given not in {("lon", "lat"), ("x", "y")}:
            yield Breach((), "must name either lon and lat, or x and y", list(given) or None)


class Tables(Section):
    """Roads from a table of nodes and a table of edges (CSV, gzipped CSV or Parquet)."""

    source: Literal["tables"]
    nodes: FileReference
    """File of nodes: relative to the scenario's folder, absolute, or ``data:FOLDER/FILE``."""
    edges: FileReference
    """File of edges, likewise."""
    columns: Columns
    """Our names and the files'."""
    crs: MetricCrs | None = None
    """Coordinate reference system of x and y: projected, in metres."""
    default_speed_mps: Positive = STREET_SPEED_MPS
    """Free-flow speed of an edge whose row has none, metres per second."""
    default_lanes: Count = 1
    """Lanes of an edge whose row has none."""
    capacity_vph: Positive = CAPACITY_VPH
    """Vehicles an hour that can leave an edge whose row has none, per lane."""

    @classmethod
    def broken_rules(cls, known: Known) -> Iterator[Breach]:
        """Yield a fault unless planar coordinates come with their reference system, and only they do."""
        if "crs" not in known or not known.has("columns"):
            return
        if known["columns"].x is not None and known["crs"] is None:
            yield Breach(("crs",), 'x and y need a coordinate reference system, as crs = "EPSG:32618"')
        if known["columns"].x is None and known["crs"] is not None:
            yield Breach(("crs",), "goes with x and y; lon and lat are always WGS84", known["crs"])


roads_tag = tag_by("source")

Roads = Annotated[
    Annotated[Grid, Tag("<grid>")]
    | Annotated[Tables, Tag("<tables>")]
    | Annotated[OsmRoads, Tag("<osm>")]
    | Annotated[SumoRoads, Tag("<sumo>")]
    | Annotated[TntpRoads, Tag("<tntp>")]
    | Annotated[GmnsRoads, Tag("<gmns>")]
    | Annotated[GeoPackageRoads, Tag("<geopackage>")]
    | Annotated[GeoParquetRoads, Tag("<geoparquet>")]
    | Annotated[NoRoads, Tag("<none>")],
    Discriminator(
        roads_tag,
        custom_error_type="choice",
        custom_error_message="must be one of the known sources",
        custom_error_context={
            "key": "source",
            "choices": "grid, tables, osm, sumo, tntp, gmns, geopackage, geoparquet, none",
        },
    ),
]
