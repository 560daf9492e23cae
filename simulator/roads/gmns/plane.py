"""Coordinates of a GMNS folder that are no degrees, in a system that nobody names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyproj

from simulator.roads.local_crs import crs_about

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_DEGREES = 360.0


def are_no_degrees(xy: NDArray[np.float64]) -> bool:
    """Say whether most places are beyond any degree: a few are mistakes, not another system.

    Parameters
    ----------
    xy
        Coordinates as the file has them, shape (n, 2), n ≥ 1.
    """
    return bool(np.median(np.abs(xy).max(axis=1)) > MOST_DEGREES)


def plane_about(xy: NDArray[np.float64], unit_m: float) -> tuple[pyproj.CRS, pyproj.CRS]:
    """Take coordinates as those of a plane that touches the globe at longitude 0, latitude 0, in their middle.

    Parameters
    ----------
    xy
        Coordinates as the file has them, finite, shape (n, 2), n ≥ 1.
    unit_m
        Metres that one unit of them is.

    Returns
    -------
    source, target : pyproj.CRS
        In the unit of the file and in metres, of one origin: a target's coordinate is the file's by `unit_m`.
    """
    east_m, north_m = ((xy.min(axis=0) + xy.max(axis=0)) / 2 * unit_m).tolist()
    metric = crs_about((0.0, 0.0), at_m=(east_m, north_m))
    parts = metric.to_json_dict()
    unit = {"type": "LinearUnit", "name": "unit of the file", "conversion_factor": unit_m}
    for axis in parts["coordinate_system"]["axis"]:
        axis["unit"] = unit
    return pyproj.CRS.from_json_dict(parts), metric


def said_of_plane(file: str) -> str:
    """Say what was made of such coordinates, and what to do about it."""
    return (
        f"{file}: the coordinates are not degrees and no crs is given, so the map is placed at longitude 0, latitude 0 "
        'and measured in the unit of length; set roads.crs: name it, as in crs = "EPSG:32618"'
    )
