"""``[roads]`` read from the field's own formats: OpenStreetMap, SUMO, TNTP, GMNS; or no roads at all."""

import re
import warnings
from collections.abc import Iterator
from typing import Annotated, Literal

import pyproj
from pydantic import AfterValidator, Field

from scenarios.faults import Breach
from scenarios.references import FileReference, FolderReference
from scenarios.section import Count, Known, Place, Positive, Section, rule
from scenarios.units import LengthUnit, SpeedUnit, TimeUnit

STREET_SPEED_MPS = 13.9
CAPACITY_VPH = 1800.0


_NAMES_A_FILE = re.compile(r"(init|grids)\s*=[^+]*[/\\~]", re.IGNORECASE)
"""In a coordinate reference system that PROJ would open a file for."""


def _known_crs(crs: str) -> pyproj.CRS:
    if _NAMES_A_FILE.search(crs):
        raise rule('must not name a file, but a coordinate reference system, as "EPSG:32618"')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyproj warns of deprecated ways to write one it understands
        try:
            return pyproj.CRS.from_user_input(crs)
        except pyproj.exceptions.CRSError:
            raise rule('must be a coordinate reference system that PROJ knows, as "EPSG:32618"') from None


def _metric(crs: str) -> str:
    known = _known_crs(crs)
    if not known.is_projected or any(axis.unit_conversion_factor != 1 for axis in known.axis_info[:2]):
        raise rule('must be a projected coordinate reference system in metres, as "EPSG:32618"')
    return crs


def _any_crs(crs: str) -> str:
    _known_crs(crs)
    return crs


MetricCrs = Annotated[str, AfterValidator(_metric)]
"""A projected coordinate reference system in metres."""
AnyCrs = Annotated[str, AfterValidator(_any_crs)]
"""A coordinate reference system of any units: what the coordinates of a file are in."""


class NoRoads(Section):
    """No roads: for vehicles whose places are known from elsewhere (engines ``trace`` and ``static``)."""

    source: Literal["none"]


class OsmRoads(Section):
    """OpenStreetMap: ``.osm``, ``.osm.bz2``, ``.osm.gz``, ``.osm.pbf``, or GraphML as OSMnx writes it."""

    source: Literal["osm"]
    path: FileReference
    """File: relative to the scenario's folder, absolute, or ``data:FOLDER/FILE``."""
    crs: MetricCrs | None = None
    """System to project to; left out, the UTM zone of the network's middle."""
    capacity_vph: Positive = CAPACITY_VPH
    """Vehicles an hour that can leave a link, per lane, where its class of road has no default of its own."""


class SumoRoads(Section):
    """A SUMO network, ``net.xml`` or ``net.xml.gz``."""

    source: Literal["sumo"]
    path: FileReference
    """File: relative to the scenario's folder, absolute, or ``data:FOLDER/FILE``."""
    vehicle_class: str = "passenger"
    """Lanes that this SUMO vehicle class may use; others are left out."""
    anchor: Place | None = None
    """Where the origin of a network without a projection is on the globe; longitude 0, latitude 0 if left out."""
    keep: Literal["all", "strong"] = "all"
    """All links, or those of the largest part in which every node can be reached from every other; trips and routes
    of SUMO's own may begin and end outside it."""
    capacity_vph: Positive = CAPACITY_VPH
    """Vehicles an hour that can leave a link, per lane."""


class TntpRoads(Section):
    """A network in the format of the Transportation Networks test problems (TNTP)."""

    source: Literal["tntp"]
    network: FileReference
    """Network file."""
    nodes: FileReference
    """Node file: TNTP text, or GeoJSON points with an ``id`` or ``node``."""
    flows: FileReference | None = None
    """Published equilibrium flows, to hold the run's link volumes against."""
    length_unit: LengthUnit
    """Unit of the network's lengths."""
    time_unit: TimeUnit
    """Unit of the network's free-flow times."""
    crs: AnyCrs = "EPSG:4326"
    """What the node coordinates are in, of any units; longitude and latitude if left out."""
    project_to: MetricCrs | None = None
    """System to project to; left out, the UTM zone of the network's middle."""
    capacity_hours: Positive = 1.0
    """Hours that the file's capacities and trips are for."""
    capacity_vph: Positive = CAPACITY_VPH
    """Vehicles an hour and lane from which a link's lanes are guessed, as the file gives capacities of whole links;
    and of a link whose capacity is 0."""
    default_speed_mps: Positive = STREET_SPEED_MPS
    """Free-flow speed of a link whose free-flow time is 0, as a centroid's connectors may have."""


class GmnsRoads(Section):
    """A network in the General Modeling Network Specification (GMNS)."""

    source: Literal["gmns"]
    path: FolderReference
    """Folder with node, link and, where links name their geometry, geometry tables (CSV, gzipped CSV or Parquet)."""
    crs: AnyCrs | None = None
    """What the coordinates are in; left out, what the folder's config table says, else longitude and latitude, or a
    plane in the unit of the lengths where they are no degrees."""
    project_to: MetricCrs | None = None
    """System to project to; left out, `crs` if that is one, else the UTM zone of the network's middle."""
    length_unit: LengthUnit | None = None
    """Unit of the links' ``length``; left out, what the config table says, else metres."""
    speed_unit: SpeedUnit | None = None
    """Unit of the links' ``free_speed``; left out, what the config table says, else kilometres per hour."""
    modes: Annotated[tuple[str, ...], Field(strict=False)] = ("auto", "a", "all", "car", "c")
    """Links whose ``allowed_uses`` name one of these are kept; those that name none are too."""
    default_speed_mps: Positive = STREET_SPEED_MPS
    """Free-flow speed of a link that has neither a speed nor a class of road with a known one."""
    default_lanes: Count = 1
    """Lanes of a link that has none."""
    capacity_vph: Positive = CAPACITY_VPH
    """Vehicles an hour and lane of a link that has none."""
    keep: Literal["all", "strong"] | None = None
    """All links, or only the largest part between whose places routes lead; left out, the latter unless we wrote it."""

    @classmethod
    def broken_rules(cls, known: Known) -> Iterator[Breach]:
        """Yield a fault for a list of modes that names none."""
        if known.get("modes") == ():
            yield Breach(("modes",), "must name at least one mode", [])


class GeoPackageRoads(Section):
    """A GeoPackage with layers ``nodes`` and ``links``, as `crowdveil roads export` writes it."""

    source: Literal["geopackage"]
    path: FileReference
    """File: relative to the scenario's folder, absolute, or ``data:FOLDER/FILE``."""


class GeoParquetRoads(Section):
    """A folder with ``nodes.parquet`` and ``links.parquet`` in GeoParquet, as `crowdveil roads export` writes it."""

    source: Literal["geoparquet"]
    path: FolderReference
    """Folder: relative to the scenario's folder, absolute, or ``data:FOLDER``."""
