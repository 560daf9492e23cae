"""Projection: conversion of coordinates of any reference system to metres of a projected one, UTM or local."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyproj
import shapely
from pyproj.aoi import AreaOfInterest
from pyproj.crs import ProjectedCRS
from pyproj.crs.coordinate_operation import TransverseMercatorConversion
from pyproj.database import query_utm_crs_info
from pyproj.exceptions import CRSError, ProjError

from simulator.files.errors import InputError
from simulator.files.messages import Note, warning
from simulator.roads.schema import crs_faults

if TYPE_CHECKING:
    import networkx as nx
    from numpy.typing import NDArray

    from simulator.files.tables import Table


def utm_about(lon: NDArray[np.float64], lat: NDArray[np.float64], *, what: str) -> pyproj.CRS:
    """Choose the WGS84 UTM zone of the middle of some points, with longitudes averaged as angles on the circle.

    Parameters
    ----------
    lon, lat
        WGS84 degrees, finite, shape (n,), n ≥ 1.
    what
        Source of the points, with which an error message begins.

    Returns
    -------
    pyproj.CRS
        Projected, in metres.

    Raises
    ------
    InputError
        If UTM has no zone there, that is near the poles.
    """
    middle_lon = float(np.degrees(np.angle(np.exp(1j * np.radians(lon)).mean())))
    middle_lat = float((lat.min() + lat.max()) / 2)
    middle = AreaOfInterest(middle_lon, middle_lat, middle_lon, middle_lat)
    if not (zones := query_utm_crs_info(datum_name="WGS 84", area_of_interest=middle)):
        where = f"longitude {middle_lon:.4f}, latitude {middle_lat:.4f}"
        raise InputError([f"{what}: no UTM zone about {where}; set crs to a projected system in metres"])
    return pyproj.CRS.from_authority(zones[0].auth_name, zones[0].code)


WGS84 = "EPSG:4326"
_NAMES_A_FILE = re.compile(r"(init|grids)\s*=[^+]*[/\\~]", re.IGNORECASE)
"""Matches the text of a coordinate reference system for which PROJ would open a file."""
_SMALLEST_MARGIN_DEG = 1.0
_BESIDE_LAT_DEG, _BESIDE_LON_SHARE = 1.0, 0.15
"""Distance outside its area at which a system is still assumed to be used on purpose: degrees of latitude, and a share
of the area's width in longitude. Zones of another datum mostly differ in their false easting, which shifts points in
longitude."""


@dataclass(frozen=True, eq=False)
class Projection:
    """Conversion of a file's coordinates to a network's coordinates.

    Parameters
    ----------
    source
        The system of the file's coordinates, in any units.
    target
        The system of the network: projected, in metres.
    notes
        Whether another system than the given one was chosen, and why: none or one sentence.
    """

    source: pyproj.CRS
    target: pyproj.CRS
    notes: tuple[str, ...] = ()

    @classmethod
    def choose(cls, xy: NDArray[np.float64], *, crs: object, project_to: object, nodes: Table) -> Projection:
        """Check coordinates and choose the system to which they are projected.

        Parameters
        ----------
        xy
            The file's coordinates, east (or longitude) before north (or latitude), finite, shape (n, 2), n ≥ 1.
        crs
            The system of these coordinates; anything from which a :class:`pyproj.CRS` can be made.
        project_to
            A projected system in metres, used unless its metres are not those on the ground there (`true_plane`);
            None for the UTM zone of the network's middle.
        nodes
            The table of the points, for messages.

        Returns
        -------
        Projection
            A projection that converts every point to finite metres.

        Raises
        ------
        InputError
            If a point cannot be in `crs`: its degrees are out of range, or it lies farther outside the area for which
            the system is made than that area is wide.
        """
        source = known_crs(crs, "crs")
        if project_to is not None and (faults := crs_faults(project_to)):
            raise InputError([f"project_to: {fault}" for fault in faults])
        if faults := _faults(xy, source, nodes):
            raise InputError(faults)
        notes: list[str] = []
        lonlat = transform(source, WGS84, xy)
        if project_to is None:
            target = utm_about(*lonlat.T, what=nodes.file)
        else:
            target, notes = true_plane(known_crs(project_to, "project_to"), lonlat, what=nodes.file)
        chosen = cls(source, target, tuple(notes))
        lost = np.asarray(~np.isfinite(chosen.metres(xy)).all(axis=1))
        if lost.any():
            raise InputError([_fault(nodes, lost, f"within the range of {target.name}", xy)])
        return chosen

    def metres(self, xy: NDArray[np.float64]) -> NDArray[np.float64]:
        """Project points.

        Parameters
        ----------
        xy
            In `source`, shape (n, 2).

        Returns
        -------
        ndarray
            Metres in `target`, shape (n, 2); not finite where a point cannot be projected.
        """
        return transform(self.source, self.target, xy)

    def lines(self, lines: NDArray[np.object_]) -> NDArray[np.object_]:
        """Project every line to metres; a line that cannot be projected becomes None."""
        xy, of = shapely.get_coordinates(lines, return_index=True)
        metres = self.metres(xy)
        lost = np.asarray(~np.isfinite(metres).all(axis=1))
        projected = shapely.set_coordinates(lines.copy(), np.where(lost[:, None], 0.0, metres))
        projected[of[lost]] = None
        return np.asarray(projected)

    def warnings(self, xy: NDArray[np.float64], *, file: str) -> list[Note]:
        """Check whether the middle of a network lies clearly outside the area for which its system is made.

        A neighbouring zone is often used on purpose, so up to a degree of latitude and 0.15 of the area's width are
        accepted. A system in another kind of feet, or of another datum, is a mistake.

        Parameters
        ----------
        xy
            In `source`, shape (n, 2), n ≥ 1.
        file
            The file's name for the sentence.

        Returns
        -------
        list of Note
            Empty, or one.
        """
        area = self.source.area_of_use
        middle = np.median(transform(self.source, WGS84, xy), axis=0)
        if area is None:
            return []
        if not _beyond(area.bounds, middle, _BESIDE_LON_SHARE * (area.east - area.west), _BESIDE_LAT_DEG):
            return []
        lon, lat = middle.tolist()
        place = f"the middle of the network, longitude {lon:.4f} and latitude {lat:.4f}"
        beyond = f"is outside the area of use of {self.source.name!r}: is it the crs of this file?"
        return [warning("coordinates", f"{file}: {place}, {beyond}")]


LARGEST_SCALE_ERROR = 0.01
"""Greatest accepted difference of a plane's scale from 1: UTM's, within its zone, is at most a thousandth."""
_STEPS_M = ((50.0, 0.0), (0.0, 50.0), (50.0, 50.0), (50.0, -50.0))
"""Steps along which the scale is measured: a sheared plane may be true east and north, and not between."""


def scale_error(crs: pyproj.CRS, lonlat: NDArray[np.float64]) -> float:
    """Compare distances of a plane with those on the ground, along geodesics of the WGS84 ellipsoid.

    Parameters
    ----------
    crs
        Projected, in metres.
    lonlat
        Degrees of WGS84, shape (n, 2).

    Returns
    -------
    float
        What is to be subtracted from a plane distance of 1 at a point to get the distance on the ground, in the
        direction where it is greatest in absolute value, in the median over the points; 0 if no point is in the plane.
    """
    xy = transform(WGS84, crs, lonlat)
    xy = xy[np.isfinite(xy).all(axis=1)]
    if not len(xy):
        return 0.0
    lon, lat = transform(crs, WGS84, xy).T
    errors = []
    for step in _STEPS_M:
        there = transform(crs, WGS84, xy + step)
        _, _, ground_m = pyproj.Geod(ellps="WGS84").inv(lon, lat, *there.T)
        errors.append(1.0 - np.asarray(ground_m) / np.hypot(*step))
    each = np.array(errors)
    return float(np.nanmedian(each[np.abs(each).argmax(axis=0), np.arange(len(xy))]))


def true_plane(crs: pyproj.CRS, lonlat: NDArray[np.float64], *, what: str) -> tuple[pyproj.CRS, list[str]]:
    """Replace a plane whose metres are not metres on the ground, such as Web Mercator's away from the equator.

    All roads and places pass here before any length, area or cell is computed.

    Parameters
    ----------
    crs
        Projected, in metres.
    lonlat
        The places, degrees of WGS84, shape (n, 2), n ≥ 1.
    what
        Source of the places, with which a message begins.

    Returns
    -------
    crs : pyproj.CRS
        The plane; the UTM zone of the places' middle if the scale of the plane is off there by more than 1 %, and by
        more than the zone's scale.
    notes : list of str
        One sentence if the plane was replaced.
    """
    error = scale_error(crs, lonlat)
    if abs(error) <= LARGEST_SCALE_ERROR:
        return crs, []
    utm = utm_about(*lonlat[np.isfinite(lonlat).all(axis=1)].T, what=what)
    if abs(scale_error(utm, lonlat)) >= abs(error):
        return crs, []
    off = f"a metre of {crs.name!r} is {1.0 - error:.3g} m on the ground there"
    return utm, [f"{what}: projected to {utm.name!r} ({utm.to_string()}), as {off}; x and y of the run are in it"]


def project(graph: nx.MultiDiGraph[Any], crs: object, *, what: str) -> list[str]:
    """Convert a graph's nodes and geometries to a projected system, in place.

    Parameters
    ----------
    graph
        A graph with nodes; its attribute ``crs`` is the system of their coordinates.
    crs
        A projected system in metres; None for the graph's own system if that is projected in metres, else for the UTM
        zone of the graph's middle. One whose metres are not those on the ground is replaced (`true_plane`).
    what
        Source of the graph, with which a message begins.

    Returns
    -------
    list of str
        One sentence if another system was chosen; else empty.

    Raises
    ------
    InputError
        If nodes cannot be projected to the system, or UTM has no zone there.
    """
    own = pyproj.CRS.from_user_input(graph.graph["crs"])
    graph.graph["crs"] = own
    wanted = own if crs is None and not crs_faults(own) else crs
    xy = np.array([(data["x"], data["y"]) for _, data in graph.nodes(data=True)], dtype=np.float64)
    lonlat = transform(own, WGS84, xy)
    notes: list[str] = []
    if wanted is None:
        target = utm_about(*lonlat.T, what=what)
    else:
        target, notes = true_plane(pyproj.CRS.from_user_input(wanted), lonlat, what=what)
    if target == own:
        return notes
    projection = Projection(own, target)
    metres = projection.metres(xy)
    far = ~np.isfinite(metres).all(axis=1)
    if far.any():
        node = list(graph)[int(np.flatnonzero(far)[0])]
        raise InputError([f"{what}: node {node!r} is outside the range of {target.name}"])
    for data, (x, y) in zip((data for _, data in graph.nodes(data=True)), metres.tolist(), strict=True):
        data["x"], data["y"] = x, y
    curved = [data for *_, data in graph.edges(data=True) if data.get("geometry") is not None]
    lines = shapely.transform(np.array([data["geometry"] for data in curved], dtype=object), projection.metres)
    for data, line in zip(curved, lines, strict=True):
        data["geometry"] = line
    graph.graph["crs"] = target
    return notes


def known_crs(crs: object, name: str) -> pyproj.CRS:
    """Make a coordinate reference system; pyproj's warnings about deprecated notations are suppressed.

    Raises
    ------
    InputError
        If pyproj does not know it, or PROJ would open a file for it.
    """
    if isinstance(crs, str) and _NAMES_A_FILE.search(crs):
        raise InputError([f"{name}: it must not name a file, got {crs!r}"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return pyproj.CRS.from_user_input(crs)
        except (CRSError, RecursionError) as error:  # JSON may nest deeply
            raise InputError([f"{name}: not a coordinate system pyproj knows: {crs!r} ({error})"]) from error


def transform(source: object, target: object, xy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Transform coordinates, east before north in both systems; the result is infinite where PROJ cannot transform."""
    try:
        transformer = pyproj.Transformer.from_crs(source, target, always_xy=True)
    except ProjError as error:
        name = pyproj.CRS.from_user_input(source).name
        raise InputError([f"crs: there is no transformation from {name} to another system ({error})"]) from error
    # pyproj treats an array of one number as a scalar, which numpy has deprecated: a single point is passed twice.
    sent = xy if len(xy) != 1 else xy.repeat(2, axis=0)
    east, north = (values[: len(xy)] for values in transformer.transform(sent[:, 0], sent[:, 1]))
    return np.column_stack((east, north))


def coordinates(
    table: Table, axes: tuple[str, str], *, chosen: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Read both coordinates of each row of a table, and note the rows where they cannot be used.

    Parameters
    ----------
    table
        Any table with the columns `axes`.
    axes
        ``("lon", "lat")``, in degrees, or ``("x", "y")``.
    chosen
        The rows that are checked, bool, shape (rows,), in which coordinates may be missing. If None, all rows are
        checked, and have coordinates.

    Returns
    -------
    tuple of ndarray
        float64, shape (rows,) each; NaN where a coordinate is missing or wrong.
    """
    used = np.ones(len(table), dtype=np.bool_) if chosen is None else chosen
    (east, wrong_east), (north, wrong_north) = map(table.optional_numbers, axes)
    for axis, values, wrong in ((axes[0], east, wrong_east), (axes[1], north, wrong_north)):
        table.refuse(axis, used & (wrong if chosen is not None else np.isnan(values)), "a finite number")
    if axes[0] == "lon":
        far_east, far_north = np.abs(east) > 180, np.abs(north) > 90
        swapped = used & far_north & (np.abs(north) <= 180) & (np.abs(east) <= 90)
        hint = "; are lon and lat swapped?" if swapped.sum() * 2 > (used & far_north).sum() else ""
        table.refuse("lon", used & far_east, f"degrees from -180 to 180{hint}")
        table.refuse("lat", used & far_north, f"degrees from -90 to 90{hint}")
        east[far_east | far_north] = north[far_east | far_north] = np.nan
    return east, north


def _faults(xy: NDArray[np.float64], crs: pyproj.CRS, nodes: Table) -> list[str]:
    """Return a fault that names the points that cannot be in a system; empty if there are none."""
    if crs.is_geographic:
        unit = crs.axis_info[0].unit_conversion_factor if crs.axis_info else np.pi / 180
        with np.errstate(over="ignore"):  # infinite degrees are out of range, like large ones
            lon, lat = np.degrees(xy * unit).T
        elsewhere = (np.abs(lon) > 360) | (np.abs(lat) > 360)
        anywhere = "a longitude from -180 to 180 and a latitude from -90 to 90 (for another system, set crs)"
        swapped = "a longitude and a latitude from -90 to 90 (are the two swapped?)"
        for wrong, rule in ((elsewhere, anywhere), (np.abs(lat) > 90 + 1e-9, swapped)):
            if wrong.any():
                return [_fault(nodes, wrong, rule, xy)]
    try:
        lonlat = transform(crs, WGS84, xy)
    except InputError:
        return [f"crs: places in {crs.name!r} cannot be converted to longitude and latitude"]
    wrong = ~np.isfinite(lonlat).all(axis=1)
    if not wrong.any() and (area := crs.area_of_use) is not None:
        sides = (max(side, _SMALLEST_MARGIN_DEG) for side in (area.east - area.west, area.north - area.south))
        wrong = _beyond(area.bounds, lonlat, *sides)
    if not wrong.any():
        return []
    return [_fault(nodes, wrong, f"within the area of use of {crs.name!r} (is it the crs of this file?)", xy)]


def _beyond(
    bounds: tuple[float, float, float, float], lonlat: NDArray[np.float64], margin_lon: float, margin_lat: float
) -> NDArray[np.bool_]:
    """Return which points lie outside an area by more than margins in degrees; shape (..., 2) to (...)."""
    west, south, east, north = bounds
    lon, lat = lonlat[..., 0], lonlat[..., 1]
    beyond = (lat < south - margin_lat) | (lat > north + margin_lat)
    if west <= east:  # else it crosses the antimeridian
        beyond |= (lon < west - margin_lon) | (lon > east + margin_lon)
    return np.asarray(beyond)


def _fault(nodes: Table, wrong: NDArray[np.bool_], rule: str, xy: NDArray[np.float64]) -> str:
    x, y = xy[int(np.flatnonzero(wrong)[0])].tolist()
    return f"{nodes.file}: {nodes.rows_in_words(wrong)}: coordinates must be {rule}, got {x:.10g}, {y:.10g}"


def distances(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distance between the points of each pair: two arrays of shape (n, 2) to one of shape (n,)."""
    across = b - a
    return np.asarray(np.hypot(across[:, 0], across[:, 1]))


LOCAL = "transverse Mercator about"
"""Beginning of the names of systems that `crs_about` makes."""


def crs_about(anchor: tuple[float, float], *, at_m: tuple[float, float] = (0.0, 0.0)) -> pyproj.CRS:
    """Make a transverse Mercator projection in metres whose origin is the anchor.

    Parameters
    ----------
    anchor
        Longitude and latitude of WGS84, degrees; a latitude within (-90, 90).
    at_m
        Coordinates of the anchor, metres east and north.

    Returns
    -------
    pyproj.CRS
        Projected, in metres.
    """
    lon, lat = anchor
    conversion = TransverseMercatorConversion(
        latitude_natural_origin=lat,
        longitude_natural_origin=lon,
        false_easting=at_m[0],
        false_northing=at_m[1],
        scale_factor_natural_origin=1.0,
    )
    return ProjectedCRS(conversion=conversion, name=f"{LOCAL} {lon:g}, {lat:g}")
