"""A coordinate system in metres about one place, for networks that lie nowhere in particular."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyproj.crs import ProjectedCRS
from pyproj.crs.coordinate_operation import TransverseMercatorConversion

if TYPE_CHECKING:
    import pyproj


def crs_about(anchor: tuple[float, float]) -> pyproj.CRS:
    """Make a transverse Mercator in metres whose origin is the anchor.

    Parameters
    ----------
    anchor
        Longitude and latitude of WGS84, degrees; a latitude within (-90, 90).

    Returns
    -------
    pyproj.CRS
        Projected, in metres; (0, 0) is the anchor.
    """
    lon, lat = anchor
    conversion = TransverseMercatorConversion(
        latitude_natural_origin=lat,
        longitude_natural_origin=lon,
        false_easting=0.0,
        false_northing=0.0,
        scale_factor_natural_origin=1.0,
    )
    return ProjectedCRS(conversion=conversion, name=f"transverse Mercator about {lon:g}, {lat:g}")
