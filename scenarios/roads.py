"""``[roads]``: a generated grid, node and edge tables, OpenStreetMap, SUMO, TNTP, MATSim, GMNS, or no roads."""

import re
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from scenarios.errors import RuleViolation
from scenarios.field_types import Count, LengthUnit, NotNegative, Positive, SpeedUnit, TimeUnit, rule
from scenarios.references import FileReference, FolderReference
from scenarios.rules import GIVEN, LEFT_OUT, Rule, needs, one_of, unlike
from scenarios.section import ByKind, Place, Section, ValidFields

if TYPE_CHECKING:
    import pyproj

STREET_SPEED_MPS = 13.9
CAPACITY_VPH = 1800.0


_NAMES_A_FILE = re.compile(r"(init|grids)\s*=[^+]*[/\\~]", re.IGNORECASE)
"""Pattern of a coordinate reference system for which PROJ would open a file."""


def _known_crs(crs: str) -> "pyproj.CRS":
    import pyproj  # noqa: PLC0415  # slow to import, and most scenarios name no reference system

    if _NAMES_A_FILE.search(crs):
        raise rule('must not name a file, but a coordinate reference system, as "EPSG:32618"')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyproj warns of deprecated notations that it understands
        try:
            return pyproj.CRS.from_user_input(crs)
        except pyproj.exceptions.CRSError:
            raise rule('must be a coordinate reference system that PROJ knows, as "EPSG:32618"') from None


def _metric(crs: str) -> str:
    system = _known_crs(crs)
    if not system.is_projected or any(axis.unit_conversion_factor != 1 for axis in system.axis_info[:2]):
        raise rule('must be a projected coordinate reference system in metres, as "EPSG:32618"')
    return crs


def _any_crs(crs: str) -> str:
    _known_crs(crs)
    return crs


MetricCrs = Annotated[str, AfterValidator(_metric)]
"""A projected coordinate reference system in metres."""
AnyCrs = Annotated[str, AfterValidator(_any_crs)]
"""The coordinate reference system of a file's coordinates, in any units."""


class RoadSection(Section):
    """The source of the roads, and how to read it."""

    role = "roads"
    source: str


class PlacedRoads(RoadSection):
    """Roads, which traffic drives on one side."""

    driving_side: Literal["left", "right"] | None = None
    """Side of the road on which traffic drives; priorities, gaps, turns and lanes depend on it. Default: the side that
    a SUMO network states; else the side of the country in which the middle of the network is."""


def _size(valid: ValidFields) -> Iterator[RuleViolation]:
    """Yield a fault for a grid without roads, and for avenues on which no vehicle could come back."""
    if not valid.has("rows", "columns"):
        return
    rows, columns = valid["rows"], valid["columns"]
    if rows * columns < 2:
        yield valid.violation("rows", "rows times columns must be at least 2, or there is no road")
    elif valid.get("one_way") and min(rows, columns) < 2:
        size = f"at least 2 rows and 2 columns (here {rows} and {columns})"
        yield valid.violation("one_way", f"one-way avenues need {size}: no vehicle could come back on the only one")


_SPACINGS = (("spacing_m",), ("spacing_x_m", "spacing_y_m"))


class GridSection(PlacedRoads):
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
    """Free-flow speed of avenues, metres per second. Default: the speed of the streets."""
    avenue_lanes: Count | None = None
    """Lanes of avenues in each direction. Default: the lanes of the streets."""
    one_way: bool = False
    """Whether avenues are one-way, alternately north and south; streets stay two-way."""
    signals: bool = False
    """Whether crossings have signals: a cycle of 90 s, with 40 s of green for each road in turn."""
    capacity_vph: Positive = CAPACITY_VPH
    """Vehicles per hour and lane that can leave a link."""
    anchor: Place = Place()
    """Position of the south-west corner on the globe."""

    @property
    def spacings_m(self) -> tuple[float, float]:
        """Distance between avenues and between streets (x, y), metres."""
        if self.spacing_x_m is not None and self.spacing_y_m is not None:
            return self.spacing_x_m, self.spacing_y_m
        both = self.spacing_m or 0.0
        return both, both

    rules = (
        _size,
        one_of(*_SPACINGS, words="give either spacing_m, or both spacing_x_m and spacing_y_m", at=("spacing_m",)),
    )


def _separator(value: Any) -> Any:
    if isinstance(value, str) and len(value) == 1 and value not in '\r\n"':
        return value
    raise rule('must be one character, as ";" or "\\t"')


class TextTables(Section):
    """How tables of text are written."""

    separator: Annotated[str, BeforeValidator(_separator)] | None = None
    """Character between columns of tables of text. Default: recognised: a tab, ``;``, ``|`` or ``,``."""
    decimal: Literal[".", ","] | None = None
    """Decimal sign of numbers in tables of text. Default: recognised."""


class ColumnNames(Section):
    """Columns of the user's tables: name in this schema = the file's."""

    def mapping(self) -> dict[str, Any]:
        """Return the columns that are given: name in this schema to the file's name, or to the column's number."""
        return self.model_dump(by_alias=True, exclude_none=True, exclude={"ignored"})


LON_LAT_OR_X_Y = one_of(("lon", "lat"), ("x", "y"), words="must name either lon and lat, or x and y")
X_Y_NEED_CRS = Rule(
    ("crs",),
    'x and y need a coordinate reference system, as crs = "EPSG:32618"',
    ({"columns": LEFT_OUT}, {"columns.x": LEFT_OUT}),
)
CRS_ALONE = "needs x and y; lon and lat are always WGS84"
_NAMED_X_Y = ({"columns": LEFT_OUT}, {"columns.x": GIVEN})
CRS_OF_NAMED_X_Y = (X_Y_NEED_CRS, Rule(("crs",), CRS_ALONE, _NAMED_X_Y, LEFT_OUT))
CRS_OF_X_Y = (X_Y_NEED_CRS, Rule(("crs",), CRS_ALONE, (*_NAMED_X_Y, {"columns.lon": LEFT_OUT}), LEFT_OUT))
"""The same where x and y may also be found by their usual names."""


class LinkColumns(ColumnNames):
    """Columns of roads."""

    length_m: str | None = None
    """Length, metres. Default: the length of the line, which is straight between the nodes of a table."""
    length_km: str | None = None
    """Length, kilometres."""
    length_ft: str | None = None
    """Length, feet."""
    length_mi: str | None = None
    """Length, miles."""
    speed_mps: str | None = None
    """Free-flow speed, metres per second."""
    speed_kph: str | None = None
    """Free-flow speed, kilometres per hour."""
    speed_mph: str | None = None
    """Free-flow speed, miles per hour."""
    lanes: str | None = None
    """Lanes in the direction of the edge; of both directions of a line that is driven in both."""
    capacity_vph: str | None = None
    """Vehicles per hour and lane that can leave the edge."""
    capacity_total_vph: str | None = None
    """Vehicles per hour that can leave the edge on all of its lanes together. Where the lanes are not known, they are
    guessed: one for each `roads.capacity_vph`."""
    class_: str | None = Field(default=None, alias="class")
    """Class of road, kept unchanged."""


class Columns(LinkColumns):
    """Columns of the user's tables: name in this schema = the file's name of the column.

    Nodes: `node`, and `lon` with `lat` or `x` with `y`. Edges: the rest. Where several lengths or speeds are named,
    each row takes the first that holds a positive number, of speeds in the order `speed_mps`, `speed_mph`, `speed_kph`.
    Columns that are left out are found by their usual names, unless `node`, coordinates, `from` and `to` are all named:
    then no others are read.
    """

    node: str | None = None
    """Identifier of a node."""
    lon: str | None = None
    """Longitude, WGS84 degrees."""
    lat: str | None = None
    """Latitude, WGS84 degrees."""
    x: str | None = None
    """Easting, metres in `crs`."""
    y: str | None = None
    """Northing, metres in `crs`."""
    from_: str | None = Field(default=None, alias="from")
    """Node at which an edge starts."""
    to: str | None = None
    """Node at which an edge ends."""

    rules = (one_of(("lon", "lat"), ("x", "y"), (), words="must name lon and lat, or x and y"),)


class Tables(TextTables, PlacedRoads):
    """Roads from a table of nodes and a table of edges (CSV, gzipped CSV or Parquet)."""

    source: Literal["tables"]
    nodes: FileReference
    """File of nodes: relative to the scenario's folder, absolute, or ``data:FOLDER/FILE``."""
    edges: FileReference
    """File of edges: relative to the scenario's folder, absolute, or ``data:FOLDER/FILE``."""
    columns: Columns = Columns()
    """Columns of both files. Default: found by their usual names."""
    crs: MetricCrs | None = None
    """Coordinate reference system of x and y: projected, in metres. x and y that are found by their names may also be
    degrees of WGS84; this is then the system to which they are projected."""
    default_speed_mps: Positive = STREET_SPEED_MPS
    """Free-flow speed of an edge whose row gives none, metres per second."""
    default_lanes: Count = 1
    """Lanes of an edge whose row gives none."""
    capacity_vph: Positive = CAPACITY_VPH
    """Vehicles per hour and lane that can leave an edge whose row gives no capacity."""

    rules = CRS_OF_X_Y


class LineColumns(LinkColumns):
    """Columns of lines: name in this schema = the file's name. Omitted columns are found by their usual names."""

    oneway: str | None = None
    """Whether a line is driven in one direction, and in which: see `roads.along` and `roads.against`."""


_Values = Annotated[tuple[str, ...], Field(strict=False)]


class LineRoads(PlacedRoads):
    """Roads drawn as lines: Shapefile (also zipped), GeoJSON, GeoPackage or GeoParquet."""

    source: Literal["lines"]
    path: FileReference
    """File: relative to the scenario's folder, absolute, or ``data:FOLDER/FILE``."""
    layer: str | None = None
    """Layer of a GeoPackage that has several."""
    columns: LineColumns = LineColumns()
    """Columns of the file. Default: found by their usual names."""
    crs: AnyCrs | None = None
    """Coordinate reference system of the file, in any units. Default: the one that it states."""
    join_m: NotNegative = 1.0
    """Maximum distance of ends of lines that become one node, metres."""
    along: _Values = ("yes", "true", "1", "f", "ft", "forward", "along")
    """Values of the column `oneway` of lines that are driven in the order of their vertices only."""
    against: _Values = ("-1", "reverse", "t", "tf", "backward", "against")
    """Values of the column `oneway` of lines that are driven in the opposite order only. Others: both directions."""
    classes: _Values | None = None
    """Classes of road that are kept. Default: all; of OpenStreetMap's, those on which cars may drive."""
    default_speed_mps: Positive = STREET_SPEED_MPS
    """Free-flow speed of a line that has none, metres per second, if its class has no default."""
    default_lanes: Count = 1
    """Lanes in each direction of a line that has none, if its class has no default."""
    capacity_vph: Positive = CAPACITY_VPH
    """Vehicles per hour and lane that can leave a line that has no capacity, if its class has no default."""


class OsmRoads(PlacedRoads):
    """OpenStreetMap: ``.osm``, ``.osm.bz2``, ``.osm.gz`` or ``.pbf``."""

    source: Literal["osm"]
    needs = ("osmnx", "osm")
    path: FileReference
    """File: relative to the scenario's folder, absolute, or ``data:FOLDER/FILE``."""
    crs: MetricCrs | None = None
    """Coordinate reference system to project to. Default: the UTM zone of the network's middle."""
    capacity_vph: Positive = CAPACITY_VPH
    """Vehicles per hour and lane that can leave a link whose class of road has no default of its own."""


class SumoRoads(PlacedRoads):
    """A SUMO network, ``net.xml`` or ``net.xml.gz``."""

    source: Literal["sumo"]
    needs = ("sumolib", "sumo")
    path: FileReference
    """File: relative to the scenario's folder, absolute, or ``data:FOLDER/FILE``."""
    additional: FileReference | None = None
    """Additional file with programs of signals, which replace the network's programs, as in SUMO."""
    vehicle_class: str | None = None
    """SUMO vehicle class; lanes that it may not use are left out. Default: the classes of the vehicles in SUMO's route
    files, and each vehicle keeps to its lanes; without such files, passenger cars."""
    anchor: Place | None = None
    """Position on the globe of the origin of a network without a projection. Default: longitude 0, latitude 0."""
    keep: Literal["all", "strong"] = "all"
    """All links, or the links of the largest part in which every node can be reached from every other; trips and routes
    of SUMO's own may begin and end outside it."""
    capacity_vph: Positive = CAPACITY_VPH
    """Vehicles per hour and lane that can leave a link."""


class TntpRoads(PlacedRoads):
    """A network in the format of the Transportation Networks test problems (TNTP)."""

    source: Literal["tntp"]
    network: FileReference
    """Network file."""
    nodes: FileReference | None = None
    """Node file: TNTP text, or GeoJSON points with an ``id`` or ``node``. Required unless cells are links (kind
    ``roads``), which need no coordinates."""
    length_unit: LengthUnit
    """Unit of the network's lengths."""
    time_unit: TimeUnit
    """Unit of the network's free-flow times."""
    crs: AnyCrs | None = None
    """Coordinate reference system of the nodes, in any units. Default: longitude and latitude."""
    project_to: MetricCrs | None = None
    """Coordinate reference system to project to. Default: the UTM zone of the network's middle."""
    capacity_hours: Positive = 1.0
    """Hours that the file's capacities and trips refer to."""
    capacity_vph: Positive = CAPACITY_VPH
    """Vehicles per hour and lane from which the number of lanes of a link is guessed, since the file gives capacities
    of whole links; also the capacity of a link whose capacity is 0."""
    default_speed_mps: Positive = STREET_SPEED_MPS
    """Free-flow speed of a link whose free-flow time is 0, as a centroid's connectors may have."""

    rules = (needs(("crs", "project_to"), "nodes", "needs nodes, the file of coordinates"),)


class MatsimRoads(PlacedRoads):
    """A MATSim network, ``network.xml`` or ``network.xml.gz``."""

    source: Literal["matsim"]
    path: FileReference
    """File: relative to the scenario's folder, absolute, or ``data:FOLDER/FILE``."""
    crs: AnyCrs | None = None
    """Coordinate reference system of the coordinates. Default: the system in the file's attribute
    ``coordinateReferenceSystem``, else a plane in metres."""
    project_to: MetricCrs | None = None
    """Coordinate reference system to project to. Default: `crs` if it is projected, else the UTM zone of the network's
    middle."""
    modes: Annotated[tuple[str, ...], Field(strict=False, min_length=1)] = ("car",)
    """Links that are open to one of these modes are kept; if the key is stated, also the vehicles of these modes are
    read from MATSim's events."""
    keep: Literal["all", "strong"] = "all"
    """All links, or the links of the largest part in which every node can be reached from every other."""


class GmnsRoads(PlacedRoads):
    """A network in the General Modeling Network Specification (GMNS)."""

    source: Literal["gmns"]
    path: FolderReference
    """Folder with node, link and, where links name their geometry, geometry tables (CSV, gzipped CSV or Parquet)."""
    coordinates: Literal["places", "none"] = "places"
    """Whether the coordinates of nodes are coordinates of places. ``none`` if they are coordinates of a drawing, or
    missing: cells must then be links (kind ``roads``), which need no coordinates."""
    crs: AnyCrs | None = None
    """Coordinate reference system of the coordinates. Default: the system of the folder's config table, else longitude
    and latitude, or a plane in the unit of the lengths if the coordinates are not degrees."""
    project_to: MetricCrs | None = None
    """Coordinate reference system to project to. Default: `crs` if it is projected, else the UTM zone of the network's
    middle."""
    length_unit: LengthUnit | None = None
    """Unit of the links' ``length``. Default: the unit of the config table, else metres."""
    speed_unit: SpeedUnit | None = None
    """Unit of the links' ``free_speed``. Default: the unit of the config table, else kilometres per hour."""
    modes: Annotated[tuple[str, ...], Field(strict=False, min_length=1)] = ("auto", "a", "all", "car", "c")
    """Links whose ``allowed_uses`` name one of these modes, or name no mode at all, are kept."""
    default_speed_mps: Positive = STREET_SPEED_MPS
    """Free-flow speed of a link that has neither a speed nor a class of road with a known one."""
    default_lanes: Count = 1
    """Number of lanes of a link for which the file gives none."""
    capacity_vph: Positive = CAPACITY_VPH
    """Vehicles per hour and lane of a link for which the file gives no capacity."""
    keep: Literal["all", "strong"] = "strong"
    """All links, or only the largest part in which every node can be reached from every other."""

    rules = (Rule(("crs", "project_to"), "needs coordinates of places", ({"coordinates": unlike("none")},), LEFT_OUT),)


class GeoPackageRoads(PlacedRoads):
    """A GeoPackage with layers ``nodes`` and ``links``, as `crowdveil roads export` writes it."""

    source: Literal["geopackage"]
    path: FileReference
    """File: relative to the scenario's folder, absolute, or ``data:FOLDER/FILE``."""


class NoRoads(RoadSection):
    """No roads: for vehicles whose positions come from another source (engines ``trace`` and ``static``)."""

    source: Literal["none"]


Roads = Annotated[RoadSection, ByKind("roads", "source")]
