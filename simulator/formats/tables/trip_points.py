"""Trips between points: columns of their coordinates, and the nodes of the roads at which they begin and end."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import shapely

from simulator.arrays import FloatArray, Int32Array
from simulator.files.errors import InputError
from simulator.files.messages import counted
from simulator.files.tables import Table, check_parquet, find_columns, identifier_list
from simulator.formats.column_names import POINT_NAMES, TRIP_ENDS
from simulator.roads.network import RoadNetwork
from simulator.roads.projection import WGS84, transform
from simulator.traffic.demand.trip_table import TripZones


@dataclass(frozen=True)
class TripPlaces:
    """What places and dates of a table of trips refer to.

    Attributes
    ----------
    roads
        The roads that trips drive on.
    snap_m
        Greatest distance of a point from its link, metres.
    crs
        System of coordinates ``x`` and ``y``.
    zones
        Zones with the names of the table, in place of zones or nodes of the roads.
    time_zone
        Time zone of dates that name none; UTC if None.
    midnight_s
        Seconds from 1970 to second 0 of the clock on which dates become seconds; None for the midnight before the
        first.
    """

    roads: RoadNetwork
    snap_m: float = 300.0
    crs: str | None = None
    zones: TripZones | None = None
    time_zone: str | None = None
    midnight_s: float | None = None

    def midnight(self, dates_s: FloatArray) -> float:
        """Return second 0 of the clock, in seconds since 1970."""
        first = pd.Timestamp(np.nanmin(dates_s), unit="s", tz=self.time_zone or "UTC")
        return float(first.normalize().timestamp() if self.midnight_s is None else self.midnight_s)

    def snapped(self, table: Table) -> tuple[Table, Int32Array, TripZones, list[str]]:
        """Return the rows whose points are near roads, both nodes of each (2, rows), these as zones, and notes.

        A point is moved to the nearest link, and from there to the nearer end of the link.

        Raises
        ------
        InputError
            If `crs` is missing, or no row is left; it states the distance of the nearest point.
        """
        axes = ("x", "y") if table.has("origin_x") else ("lon", "lat")
        if axes[0] == "x" and self.crs is None:
            rule = 'x and y need a coordinate reference system, as trips_crs = "EPSG:32618"'
            raise InputError([f"{table.file}: {rule}"], key="traffic.trips_crs")
        xy = np.stack([[table.numbers(f"{end}_{axis}") for axis in axes] for end in TRIP_ENDS]).transpose(0, 2, 1)
        source, limits = (self.crs, (np.inf, np.inf)) if axes[0] == "x" else (WGS84, (180.0, 90.0))
        known = (np.isfinite(xy) & (np.abs(xy) <= limits)).all(axis=2)
        metres = np.full(xy.shape, np.nan)
        metres[known] = transform(source, self.roads.crs, xy[known])
        known &= np.isfinite(metres).all(axis=2)
        node, distance_m = np.full(known.shape, -1, dtype=np.int32), np.full(known.shape, np.inf)
        node[known], distance_m[known] = _nearest(metres[known], self.roads)
        near = distance_m.max(axis=0) <= self.snap_m
        rows = f"of {counted(len(table), 'trip')}"
        if not near.any():
            words = f"{rows}, none begins and ends within snap_m = {self.snap_m:g} m of a road"
            checks = "check the area, the coordinate system, and whether longitude and latitude are swapped"
            closest = f"the nearest are at {distance_m.min(axis=1).max():,.0f} m: {checks}"
            missing = "no row has four coordinates within their range"
            raise InputError([f"{table.file}: {words}; {closest if known.all(axis=0).any() else missing}"])
        title = Path(table.file).name
        away_m = np.median(distance_m[:, near])
        moved = f"moved to the nearer end of the nearest link, in the median {away_m:,.0f} m away"
        notes = [f"{title}: origins and destinations are {moved}"]
        for words, which in (
            ("a coordinate is missing or out of range", ~known.all(axis=0)),
            (f"an end is more than {self.snap_m:g} m from the nearest road", known.all(axis=0) & ~near),
        ):
            if which.any():
                notes.append(f"{title}: {int(which.sum()):,} {rows} not driven: {words}")
        names = identifier_list(self.roads.node_names)
        each = np.arange(len(names) + 1, dtype=np.int64)
        return table.kept(near), node[:, near], TripZones(names, each, each[:-1].astype(np.int32), "place"), notes


def _nearest(xy: FloatArray, roads: RoadNetwork) -> tuple[Int32Array, FloatArray]:
    """Return the nearer end of the link nearest to each point, and the distance of the link, metres."""
    link, distance_m = roads.nearest_links(xy)
    along = shapely.line_locate_point(roads.shapes.lines()[link], shapely.points(xy), normalized=True)
    return np.where(along < 0.5, roads.links.from_node[link], roads.links.to_node[link]), distance_m


def find_points(names: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """Find the columns of both ends of a trip, or of its path; return none if neither is there."""
    found = find_columns(names, {**POINT_NAMES, "path": ("polyline",)}, given=given)
    for axes in (("lon", "lat"), ("x", "y")):
        four = [f"{end}_{axis}" for end in TRIP_ENDS for axis in axes]
        if len(found.keys() & {*four}) > 1:
            return {name: found.get(name, name) for name in four}
    return {"path": found["path"]} if "path" in found else {}


def with_ends(table: Table) -> Table:
    """Return a table with the first and last place of each path, a JSON list of longitudes and latitudes."""
    ends = np.full((len(table), 4), np.nan)
    for row, written in enumerate(table.texts("path")):
        try:
            places = json.loads(written or "[]")
            ends[row] = [*places[0], *places[-1]] if places else np.nan
        except (ValueError, TypeError, LookupError, RecursionError):
            rule = f"path must be a list of places [longitude, latitude], got {str(written)[:60]!r}"
            table.broken.append(f"{table.file}: {table.unit} {table.number[row]}: {rule}")
            break
    return _with_columns(table, ends)


def geometry_columns(file: Path) -> list[str]:
    """Return the names of the columns of geometries in GeoParquet; none of any other file."""
    try:
        return [*json.loads((pq.read_schema(file).metadata or {})[b"geo"])["columns"]]
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        return []


def read_geometries(file: Path, columns: Sequence[str]) -> Table:
    """Read GeoParquet whose rows are trips: lines from origin to destination, or two points in these columns.

    Raises
    ------
    InputError
        If it cannot be read, or its geometries are neither.
    """
    try:
        check_parquet(pq.ParquetFile(file), file)
        frame = gpd.read_parquet(file)
        points = [frame[name].to_crs(WGS84) for name in columns]
        if len(points) == 1:
            points = [gpd.GeoSeries(shapely.get_point(points[0].to_numpy(), place)) for place in (0, -1)]
        elif any(word in str(points[0].name).lower() for word in TRIP_ENDS["destination"][:2]):
            points = points[::-1]
        ends = np.column_stack([(part.x, part.y)[axis].to_numpy() for part in points[:2] for axis in (0, 1)])
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RuntimeError) as error:
        rule = "needs geometries that are lines, or an origin and a destination that are points"
        raise InputError([f"{file}: cannot be read as trips in GeoParquet, which {rule}: {error}"]) from error
    plain = pd.DataFrame(frame.drop(columns=[*columns]))
    return _with_columns(Table.from_frame(plain, title=str(file)), ends)


def _with_columns(table: Table, ends: FloatArray) -> Table:
    names = [f"{end}_{axis}" for end in TRIP_ENDS for axis in ("lon", "lat")]
    frame = table.frame.assign(**dict(zip(names, ends.T, strict=True)))
    columns = {ours: name for ours, name in table.columns.items() if ours not in POINT_NAMES}
    return replace(table, frame=frame, columns=columns | {name: name for name in names})
