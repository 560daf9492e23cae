"""Conversion of the coordinates of a SUMO network to the coordinates of the city."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyproj

from simulator.files.errors import InputError
from simulator.files.xml_elements import elements_of
from simulator.roads.projection import crs_about, known_crs
from simulator.roads.schema import crs_faults

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

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
        name = f"{what}: projParameter of location"
        crs = known_crs(projection, name)
        faults = [f"{name}: {fault}" for fault in crs_faults(crs)]
        written = location.get("netOffset", "0,0")
        offset = [number_of(part) for part in written.split(",")]
        if len(offset) != 2 or not all(map(math.isfinite, offset)):
            faults.append(f"{what}: netOffset of location must be two numbers of metres, got {written!r}")
        if faults:
            raise InputError(faults)
        code = crs.to_epsg()
        return cls(crs if code is None else pyproj.CRS.from_epsg(code), offset[0], offset[1])

    @classmethod
    def from_file(cls, net: Path, *, anchor: tuple[float, float] | None = None) -> NetFrame:
        """Read the frame of a net file; `anchor` as in `from_location`.

        Raises
        ------
        InputError
            If the file has no ``<location>``, or one that `from_location` refuses.
        """
        for element in elements_of(net):
            if element.name == "location" and element.attributes is not None:
                return cls.from_location(element.attributes, anchor=anchor, what=str(net))
        raise InputError([f"{net}: has no <location>; is it a SUMO network?"])

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


def number_of(text: str) -> float:
    """Return the number that a text states; NaN if it is no number."""
    try:
        return float(text)
    except ValueError:
        return math.nan
