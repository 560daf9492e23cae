"""A coordinate system in metres about one place, for networks that lie nowhere in particular."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyproj.crs import ProjectedCRS
from pyproj.crs.coordinate_operation import TransverseMercatorConversion

if TYPE_CHECKING:
    import pyproj


def crs_about(anchor: tuple[float, float], *, at_m: tuple[float, float] = (0.0, 0.0)) -> pyproj.CRS:
    """Make a transverse Mercator in metres whose origin is the anchor.

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
    return ProjectedCRS(conversion=conversion, name=f"transverse Mercator about {lon:g}, {lat:g}")
