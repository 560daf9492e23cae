"""The UTM zone about some places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyproj
from pyproj.aoi import AreaOfInterest
from pyproj.database import query_utm_crs_info

from simulator.roads.errors import RoadsError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def utm_about(lon: NDArray[np.float64], lat: NDArray[np.float64], *, what: str) -> pyproj.CRS:
    """Choose the WGS84 UTM zone of the middle of some places, longitudes averaged around the circle.

    Parameters
    ----------
    lon, lat
        WGS84 degrees, finite, shape (n,), n ≥ 1.
    what
        Whose places they are, to begin a message with.

    Returns
    -------
    pyproj.CRS
        Projected, in metres.

    Raises
    ------
    RoadsError
        If UTM has no zone there: near the poles.
    """
    middle_lon = float(np.degrees(np.angle(np.exp(1j * np.radians(lon)).mean())))
    middle_lat = float((lat.min() + lat.max()) / 2)
    middle = AreaOfInterest(middle_lon, middle_lat, middle_lon, middle_lat)
    zones = query_utm_crs_info(datum_name="WGS 84", area_of_interest=middle)
    if not zones:
        where = f"longitude {middle_lon:.4f}, latitude {middle_lat:.4f}"
        raise RoadsError([f"{what}: no UTM zone about {where}; set crs to a projected system in metres"])
    return pyproj.CRS.from_authority(zones[0].auth_name, zones[0].code)
