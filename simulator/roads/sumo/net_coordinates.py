"""Coordinates of a SUMO network in a city's reference system, and the import of sumolib."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyproj
from pyproj.exceptions import CRSError

from simulator.extras import import_extra
from simulator.files.errors import InputError
from simulator.roads.projection import crs_about, parsed_crs
from simulator.roads.schema import crs_faults

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

NOWHERE = ("!", "-", "")
"""Values that SUMO writes as the projection of a network without one, or with only SUMO's own flat-earth formula."""
DEFAULT_ANCHOR = (0.0, 0.0)


@dataclass(frozen=True)
class NetFrame:
    """Conversion between SUMO's x and y, as in shapes and from TraCI, and coordinates of the city.

    Parameters
    ----------
    crs
        The city's system: the projection with which the network was made, or a transverse Mercator about an anchor.
    offset_x, offset_y
        SUMO's ``netOffset``, metres: the offset that was added to projected coordinates when the network was made.
    """

    crs: pyproj.CRS
    offset_x: float
    offset_y: float

    @classmethod
    def from_location(
        cls, location: Mapping[str, str], *, anchor: tuple[float, float] | None = None, what: str = "the network"
    ) -> NetFrame:
        """Read the frame from a network's ``<location>``.

        Parameters
        ----------
        location
            ``projParameter`` and ``netOffset``, as in a net file.
        anchor
            Longitude and latitude of the origin of a network without a projection, degrees; (0, 0) if None.
        what
            Source of the location, with which an error message begins.

        Returns
        -------
        NetFrame
            The conversion, in metres.

        Raises
        ------
        InputError
            If the projection is not one in metres that PROJ knows, the offset is not two numbers, or the anchor
            is out of range.
        """
        projection = location.get("projParameter", "!").strip()
        if projection in NOWHERE:
            lon, lat = anchor or DEFAULT_ANCHOR
            if not (-180 <= lon <= 180 and -90 < lat < 90):
                rule = "must be a longitude in [-180, 180] and a latitude in (-90, 90)"
                raise InputError([f"anchor {rule}, got {anchor}"])
            return cls(crs_about((lon, lat)), 0.0, 0.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pyproj warns of deprecated notations, which it still understands
            try:
                crs = parsed_crs(projection)
            except CRSError:
                fault = f"{what}: projParameter of location must be a projection that PROJ knows, got {projection!r}"
                raise InputError([fault]) from None
        faults = [f"{what}: projParameter of location: {fault}" for fault in crs_faults(crs)]
        written = location.get("netOffset", "0,0")
        offset = [_number(part) for part in written.split(",")]
        if len(offset) != 2 or not all(map(math.isfinite, offset)):
            faults.append(f"{what}: netOffset of location must be two numbers of metres, got {written!r}")
        if faults:
            raise InputError(faults)
        code = crs.to_epsg()
        return cls(crs if code is None else pyproj.CRS.from_epsg(code), offset[0], offset[1])

    def to_city(self, xy: ArrayLike) -> NDArray[np.float64]:
        """Convert SUMO's coordinates to the city's.

        Parameters
        ----------
        xy
            Metres in the SUMO network, shape (..., 2).

        Returns
        -------
        ndarray
            Metres in ``crs``, float64, same shape.
        """
        return np.subtract(xy, (self.offset_x, self.offset_y), dtype=np.float64)

    def to_net(self, xy: ArrayLike) -> NDArray[np.float64]:
        """Convert the city's coordinates to SUMO's; the inverse of :meth:`to_city`."""
        return np.add(xy, (self.offset_x, self.offset_y), dtype=np.float64)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def import_sumolib() -> Any:
    """Import sumolib; SUMO itself is not needed.

    Returns
    -------
    module
        The module with ``sumolib.net``.

    Raises
    ------
    InputError
        If it is not installed.
    """
    return import_extra("sumolib", needed="reading a SUMO network needs sumolib", extra="sumo")


def vehicle_classes() -> frozenset[str]:
    """Return the names of SUMO's vehicle classes, without deprecated ones."""
    lane = import_sumolib().net.lane
    return frozenset(lane.SUMO_VEHICLE_CLASSES - lane.SUMO_VEHICLE_CLASSES_DEPRECATED)
