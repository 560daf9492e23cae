"""Partition into zones: polygons of the user's own, as districts, traffic analysis zones or census tracts."""

from __future__ import annotations

import warnings
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyproj
import shapely

from simulator.cells.coarsening import DrawnCells
from simulator.cells.partition import first_match
from simulator.cells.road_segments import numbered
from simulator.files.errors import InputError
from simulator.files.messages import counted
from simulator.files.resources import shortage
from simulator.files.tables import identifier_list

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import geopandas as gpd
    from numpy.typing import ArrayLike, NDArray

_LARGEST_OVERLAP = 0.01
"""Greatest share of the smaller of two zones that may lie in the other: digitised boundaries overlap by slivers."""
_NBYTES_PER_FILE_BYTE = 12
"""Memory of a file of polygons while it is read, for each byte of the file; measured on GeoJSON, the largest."""
_SHOWN = 5
_MOST_LON, _MOST_LAT = 360.0, 90.0 + 1e-9
"""Largest degrees; a file may count longitudes from 0 to 360."""

_FORMATS = {
    ".geojson": ("GeoJSON", b"{"),
    ".json": ("GeoJSON", b"{"),
    ".gpkg": ("GPKG", b"SQLite format 3\x00"),
    ".shp": ("ESRI Shapefile", b"\x00\x00\x27\x0a"),
    ".zip": ("ESRI Shapefile", b"PK"),
    ".parquet": ("GeoParquet", b"PAR1"),
}
"""By suffix: the format, and its first bytes. GDAL would choose a driver by content alone, among them some that open
other files or addresses."""

FORMATS = "GeoJSON (.geojson, .json), GeoPackage (.gpkg), Shapefile (.shp, .zip) or GeoParquet (.parquet)"


class UnprojectableError(InputError):
    """Zones too far from a city for its coordinate system."""


@dataclass(frozen=True, eq=False, repr=False)
class Zones(DrawnCells):
    """Polygons as cells; built by :meth:`build` or :meth:`read`.

    Parameters
    ----------
    crs
        Projected coordinate system, metres.
    shapes
        A polygon or multipolygon for each cell, in ``crs``, shape (V,).
    names
        Name of each cell.
    """

    crs: pyproj.CRS
    shapes: NDArray[np.object_]
    names: list[str]

    kind = "zones"

    @classmethod
    def build(cls, zones: gpd.GeoDataFrame, *, name: str | None, crs: object) -> tuple[Zones, list[str]]:
        """Build cells from polygons.

        Parameters
        ----------
        zones
            A row for each zone, with a coordinate system. Rows without a geometry are left out.
        name
            Column with the names of the zones; None to number them from 1. A repeated name gets ``#2``, ``#3``, ….
        crs
            Projected coordinate system of the city, to which the polygons are transformed.

        Returns
        -------
        zones : Zones
            In the order of the rows.
        notes : list of str
            What was left out or repaired, one sentence each.

        Raises
        ------
        InputError
            If there is no polygon, a geometry is no polygon or invalid, a column or the coordinate system is missing,
            two zones overlap by more than 1 % of the smaller one, or degrees are out of range.
        UnprojectableError
            If zones are too far from the area of `crs`, and have no other fault.
        """
        if name is not None and name not in zones.columns:
            columns = ", ".join(str(column) for column in zones.columns if column != zones.geometry.name)
            raise InputError([f"name: there is no column {name!r}; there are {columns or 'none'}"])
        if zones.crs is None:
            raise InputError(["the zones have no coordinate system"])
        projected = pyproj.CRS.from_user_input(crs)
        present = ~(zones.geometry.isna() | zones.geometry.is_empty).to_numpy()
        kept = zones[present]
        left_out = counted(len(zones) - len(kept), "zone")
        notes = [f"cells: {left_out} without a geometry left out"] if len(kept) < len(zones) else []
        if pyproj.CRS(kept.crs).is_geographic and (fault := no_degrees(kept.total_bounds.tolist())):
            raise InputError([fault])
        numbers = range(1, len(kept) + 1)
        names = [text or "no name" for text in identifier_list(numbers if name is None else kept[name])]
        shapes = np.asarray(shapely.force_2d(kept.geometry.to_crs(projected).to_numpy()), dtype=object)
        faults = [] if len(kept) else ["there is no zone, and so no cell"]
        wrong = np.flatnonzero(~np.isin(shapely.get_type_id(shapes), (3, 6)))
        faults += [f"zone {names[i]!r} must be a polygon" for i in wrong[:_SHOWN].tolist()]
        if faults:
            raise InputError(faults)
        far = np.flatnonzero(~np.isfinite(shapely.bounds(shapes)).all(axis=1))
        if len(far):
            raise UnprojectableError([f"zone {names[far[0]]!r} is outside the area of {projected.name}"])
        broken = ~shapely.is_valid(shapes)
        if broken.any():
            reason = shapely.is_valid_reason(shapes[broken][0])
            notes.append(
                f"cells: {counted(int(broken.sum()), 'zone')} with an invalid boundary repaired, the first "
                f"{names[int(np.argmax(broken))]!r}: {reason}"
            )
            shapes[broken] = shapely.make_valid(shapes[broken], method="structure", keep_collapsed=False)
        overlaps = overlapping(shapes)
        if len(overlaps):
            raise InputError(
                f"zones {names[first]!r} and {names[second]!r} overlap, by {share:.0%} of the smaller one"
                for first, second, share in overlaps[:_SHOWN]
            )
        shapely.prepare(shapes)
        return cls(projected, shapes, numbered(names)), notes

    @classmethod
    def read(cls, path: Path, *, name: str | None, layer: str | None, crs: object) -> tuple[Zones, list[str]]:
        """Read zones from a file: GeoJSON, GeoPackage, Shapefile or GeoParquet.

        Parameters
        ----------
        path
            The file.
        name, crs
            As in `build`.
        layer
            Layer of a GeoPackage with several; None for its only one.

        Returns
        -------
        zones : Zones
            In the order of the file.
        notes : list of str
            As in `build`.

        Raises
        ------
        InputError
            If the file cannot be read as one of these formats, or as in `build`.
        """
        return cls.build(read_features(path, layer), name=name, crs=crs)

    def cell_of(self, xy: ArrayLike) -> NDArray[np.int32]:
        """Return the cell of each point: the zone that contains it; on a common boundary, the first.

        Shapes, units and errors are as in `Partition.cell_of`.
        """
        return first_match(xy, lambda points: self._tree.query(points, predicate="intersects"), count=self.count)

    def __repr__(self) -> str:
        """Describe the number of zones."""
        return f"Zones({self.count} polygons)"


def no_degrees(bounds: Sequence[float]) -> str:
    """Return a fault if coordinates that count as degrees are none: (x_min, y_min, x_max, y_max) out of range."""
    x_min, y_min, x_max, y_max = bounds
    if max(-x_min, x_max) <= _MOST_LON and max(-y_min, y_max) <= _MOST_LAT:
        return ""
    swap = max(-y_min, y_max) <= _MOST_LON and max(-x_min, x_max) <= _MOST_LAT
    mend = (
        "are longitude and latitude swapped?"
        if swap
        else 'are they metres? Then the file must state their coordinate system; GeoJSON without a member "crs" is in '
        "degrees of WGS84"
    )
    got = f"{x_min:.6g} to {x_max:.6g} and {y_min:.6g} to {y_max:.6g}"
    return f"the coordinates must be longitudes and latitudes in degrees, as their system is, got {got}: {mend}"


def read_features(path: Path, layer: str | None) -> gpd.GeoDataFrame:
    """Read the geometries of a file, with their attributes: GeoJSON, GeoPackage, Shapefile or GeoParquet.

    Parameters
    ----------
    path
        The file; a Shapefile may be in a zip archive.
    layer
        Layer of a GeoPackage with several; None for its only one.

    Raises
    ------
    InputError
        If the file cannot be read as one of these formats.
    """
    suffix = path.suffix.lower()
    if suffix not in _FORMATS:
        raise InputError([f"{path.name}: must be {FORMATS}"])
    format_, signature = _FORMATS[suffix]
    with path.open("rb") as file:
        start = file.read(1024)
    if format_ == "GeoJSON":
        start = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start.startswith(signature):
        raise InputError([f"{path.name}: is not {format_}"])
    nbytes = path.stat().st_size
    if suffix == ".zip":
        try:
            with zipfile.ZipFile(path) as packed:
                nbytes = sum(part.file_size for part in packed.infolist())
        except zipfile.BadZipFile as error:
            raise InputError([f"{path.name}: cannot be unpacked: {error}"]) from error
    if fault := shortage(nbytes * _NBYTES_PER_FILE_BYTE, to=f"read {path.name}"):
        raise InputError([fault])
    try:
        return _read_parquet(path) if format_ == "GeoParquet" else _read_layer(path, format_, layer)
    except InputError:
        raise
    # Of pyogrio: RuntimeError, and UnboundLocalError where a coordinate system is no text.
    except (OSError, ValueError, RuntimeError, UnboundLocalError, shapely.errors.GEOSException) as error:
        raise InputError([f"{path.name}: cannot be read as {format_}: {error}"]) from error


def _read_parquet(path: Path) -> gpd.GeoDataFrame:
    import geopandas as gpd  # noqa: PLC0415 - slow to import

    return gpd.read_parquet(path)


def _read_layer(path: Path, format_: str, layer: str | None) -> gpd.GeoDataFrame:
    """Read one layer by GDAL, which must take the file for the format stated."""
    import pyogrio  # type: ignore[import-untyped]  # noqa: PLC0415 - slow to import; it has no types

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # GDAL warns of oddities before the error that states what cannot be read
        layers = [str(name) for name, _ in pyogrio.list_layers(path)]
        if layer is not None and layer not in layers:
            raise InputError([f"layer: {path.name} has no layer {layer!r}; it has {', '.join(layers)}"])
        if layer is None and len(layers) > 1:
            raise InputError([f"layer: {path.name} has several; name one of {', '.join(layers)}"])
        if (driver := pyogrio.read_info(path, layer=layer)["driver"]) != format_:
            raise InputError([f"{path.name}: is {driver}, not {format_}"])
        frame: gpd.GeoDataFrame = pyogrio.read_dataframe(path, layer=layer)
    return frame


def overlapping(shapes: NDArray[np.object_]) -> Sequence[tuple[int, int, float]]:
    """Return the pairs of polygons that overlap by more than 1 % of the smaller one.

    Parameters
    ----------
    shapes
        Polygons, shape (V,).

    Returns
    -------
    sequence of (int, int, float)
        The indices of both, from 0, and the common area as a share of the smaller one's area.
    """
    first, second = shapely.STRtree(shapes).query(shapes, predicate="intersects")
    once = first < second
    first, second = first[once], second[once]
    common = shapely.area(shapely.intersection(shapes[first], shapes[second]))
    areas = shapely.area(shapes)
    share = common / np.maximum(np.minimum(areas[first], areas[second]), np.finfo(np.float64).tiny)
    large = share > _LARGEST_OVERLAP
    return list(zip(first[large].tolist(), second[large].tolist(), share[large].tolist(), strict=True))
