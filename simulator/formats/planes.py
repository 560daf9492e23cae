"""Coordinates whose system no file names, and that are no degrees: a plane that is placed somewhere on the globe."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyproj

from simulator.roads.projection import crs_about

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_DEGREES = 360.0


def are_no_degrees(xy: NDArray[np.float64]) -> bool:
    """Return whether most coordinates are too large for degrees; a few too large ones are mistakes of the file.

    Parameters
    ----------
    xy
        Coordinates as in the file, shape (n, 2), n ≥ 1.
    """
    return bool(np.median(np.abs(xy).max(axis=1)) > MOST_DEGREES)


def plane_about(xy: NDArray[np.float64], unit_m: float) -> tuple[pyproj.CRS, pyproj.CRS]:
    """Make systems for planar coordinates: a plane whose middle touches the globe at longitude 0, latitude 0.

    Parameters
    ----------
    xy
        Coordinates as in the file, finite, shape (n, 2), n ≥ 1.
    unit_m
        Length of one unit of the coordinates in metres.

    Returns
    -------
    source, target : pyproj.CRS
        Systems with the same origin, in the unit of the file and in metres: a coordinate in `target` is the file's
        coordinate times `unit_m`.
    """
    east_m, north_m = ((xy.min(axis=0) + xy.max(axis=0)) / 2 * unit_m).tolist()
    metric = crs_about((0.0, 0.0), at_m=(east_m, north_m))
    parts = metric.to_json_dict()
    unit = {"type": "LinearUnit", "name": "unit of the file", "conversion_factor": unit_m}
    for axis in parts["coordinate_system"]["axis"]:
        axis["unit"] = unit
    return pyproj.CRS.from_json_dict(parts), metric


def remarks_on_plane(file: str) -> str:
    """Return a sentence that states how planar coordinates were placed, and how to set their system."""
    return (
        f"{file}: the coordinates are not degrees and no crs is given, so the map is placed at longitude 0, latitude 0 "
        'and measured in the unit of length; set roads.crs, for example crs = "EPSG:32618"'
    )
