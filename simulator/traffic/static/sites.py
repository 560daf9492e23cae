"""Sites: the places owners can be at, on the globe or in a row."""

import re
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyproj

from simulator.roads import RoadsError
from simulator.roads.local_crs import crs_about
from simulator.roads.utm import utm_about
from simulator.traffic.errors import TrafficError

SIDE_M = 1000.0
"""Side of the square that stands for a place without coordinates."""
FARTHEST_M = 1_000_000.0
"""Beyond this from their middle, places are not of one city and UTM stretches too much."""
SOUTHERNMOST = -60.0
"""Latitude beyond which nobody lives: a city there has its longitudes and latitudes swapped."""
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sites:
    """Places in the city's coordinate system.

    Attributes
    ----------
    names
        One a site; None where sites are coordinates without names.
    xy
        (sites, 2) float64, metres in `crs`.
    crs
        Projected, in metres.
    side_m
        Where places have no coordinates, the side of the squares they are laid out as, in a row from west to east
        by name; else None.
    """

    names: list[str] | None
    xy: FloatArray
    crs: pyproj.CRS
    side_m: float | None = None

    @classmethod
    def in_a_row(cls, names: list[str]) -> Self:
        """Lay places without coordinates out as a row of squares, west to east in this order."""
        xy = np.column_stack([(np.arange(len(names)) + 0.5) * SIDE_M, np.full(len(names), SIDE_M / 2)])
        return cls(names, xy, crs_about((0.0, 0.0)), SIDE_M)

    @classmethod
    def on_the_globe(
        cls, names: list[str] | None, lon: FloatArray, lat: FloatArray, *, crs: pyproj.CRS | None, file: str
    ) -> Self:
        """Project places.

        Parameters
        ----------
        names
            One a place, or None.
        lon, lat
            (places,) float64, WGS84 degrees.
        crs
            The system to project to; if None, the UTM zone of their middle.
        file
            Named in messages.

        Raises
        ------
        TrafficError
            If they are too far apart for one city, or where none is.
        """
        if crs is None:
            check_one_city(lon, lat, file=file)
            try:
                crs = utm_about(lon, lat, what=file)
            except RoadsError as error:
                raise TrafficError(error.faults) from error
        return cls(names, transformed(lon, lat, "EPSG:4326", crs), crs)

    @classmethod
    def on_the_plane(
        cls, names: list[str] | None, x: FloatArray, y: FloatArray, *, given: str, crs: pyproj.CRS | None
    ) -> Self:
        """Take planar places, (places,) metres in the system `given`, to `crs` where that is another."""
        known = pyproj.CRS.from_user_input(given)
        if crs is None or crs == known:
            return cls(names, np.column_stack([x, y]), known)
        return cls(names, transformed(x, y, known, crs), crs)

    def __len__(self) -> int:
        return len(self.xy)

    def bounds(self, used: npt.NDArray[np.bool_]) -> tuple[float, float, float, float]:
        """Smallest rectangle around these sites, (sites,) bool, in metres; of squares, all of them."""
        if self.side_m is not None:
            return 0.0, 0.0, len(self) * self.side_m, self.side_m
        there = self.xy[used & np.isfinite(self.xy).all(axis=1)]
        (x_min, y_min), (x_max, y_max) = there.min(axis=0).tolist(), there.max(axis=0).tolist()
        return x_min, y_min, x_max, y_max


def transformed(x: FloatArray, y: FloatArray, source: Any, target: pyproj.CRS) -> FloatArray:
    """Take coordinates, (n,) each, from one system to another; (n, 2), NaN where it does not reach."""
    if not len(x):
        return np.empty((0, 2))
    transformer = pyproj.Transformer.from_crs(source, target, always_xy=True)
    # pyproj takes an array of one number for a number, which numpy has deprecated: one place goes in twice.
    sent = (x, y) if len(x) != 1 else (x.repeat(2), y.repeat(2))
    xy = np.column_stack(transformer.transform(*sent))[: len(x)]
    xy[~np.isfinite(xy).all(axis=1)] = np.nan
    return xy


def check_degrees(lon: FloatArray, lat: FloatArray) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_], str]:
    """Say which longitudes and latitudes are out of range, (n,) bool each, and what may be the reason."""
    wrong_lon, wrong_lat = np.abs(lon) > 180, np.abs(lat) > 90
    swapped = wrong_lat.any() and not (np.abs(lat) > 180).any() and not (np.abs(lon) > 90).any()
    return wrong_lon, wrong_lat, ": are lon and lat swapped?" if swapped else ""


def check_one_city(lon: FloatArray, lat: FloatArray, *, file: str) -> None:
    """Refuse places of no city, (n,) degrees, in range.

    Raises
    ------
    TrafficError
        If they are all in Antarctica, or more than a thousand kilometres from their middle.
    """
    if lat.max() < SOUTHERNMOST:
        words = f"{file}: every latitude is beyond {SOUTHERNMOST:g}, as {lat[0]:.4f} at longitude {lon[0]:.4f}"
        raise TrafficError([f"{words}: are lon and lat swapped?"])
    middle_lon = float(np.degrees(np.angle(np.exp(1j * np.radians(lon)).mean())))
    middle_lat = float(np.median(lat))
    n = len(lon)
    geod = pyproj.Geod(ellps="WGS84")
    _, _, away = geod.inv(np.full(n, middle_lon), np.full(n, middle_lat), lon, lat)
    worst = int(np.argmax(away))
    if away[worst] > FARTHEST_M:
        where = f"longitude {lon[worst]:.4f}, latitude {lat[worst]:.4f}"
        words = f"places must be of one city, within {FARTHEST_M / 1000:,.0f} km of their middle; {where} is "
        raise TrafficError([f"{file}: {words}{away[worst] / 1000:,.0f} km off: choose rows with window or where"])


def natural_order(names: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Order names as people do: numbers in them by value; (names,) int64."""
    texts = [str(name) for name in np.asarray(names, dtype=object)]
    return np.array(sorted(range(len(texts)), key=lambda i: _natural(texts[i])), dtype=np.int64)


def _natural(text: str) -> tuple[list[tuple[int, str]], str]:
    parts = re.split(r"([0-9]{1,18})", text)
    return [(int(part), "") if i % 2 else (-1, part.casefold()) for i, part in enumerate(parts) if part], text
