"""Samples: where vehicles were at the moments somebody looked."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyproj

FloatArray = npt.NDArray[np.float64]

_MOVED_M = 0.01


@dataclass(frozen=True, eq=False, repr=False)
class Samples:
    """One row a vehicle and moment, by moment, then by vehicle.

    Attributes
    ----------
    moments_s
        (moments,) float64, ascending: when somebody looked, whether there was a vehicle or not.
    moment
        (rows,) int32, index into `moments_s`.
    vehicle
        (rows,) int32: the vehicle's number in the run.
    lon, lat
        (rows,) float64, WGS84 degrees.
    speed_mps
        (rows,) float32.
    angle
        (rows,) float32: course in degrees clockwise from the grid's north, as SUMO's.
    link
        (rows,) int32, -1 where none is known.
    along_m
        (rows,) float32: metres from the link's start, NaN where not known.
    """

    moments_s: FloatArray
    moment: npt.NDArray[np.int32]
    vehicle: npt.NDArray[np.int32]
    lon: FloatArray
    lat: FloatArray
    speed_mps: npt.NDArray[np.float32]
    angle: npt.NDArray[np.float32]
    link: npt.NDArray[np.int32]
    along_m: npt.NDArray[np.float32]

    @classmethod
    def gather(cls, moments_s: Sequence[float], looks: "Sequence[Look]", crs: pyproj.CRS) -> "Samples":
        """Put looks together, one a moment."""
        counts = np.array([len(look.vehicle) for look in looks], dtype=np.int64)
        moment = np.repeat(np.arange(len(looks), dtype=np.int32), counts)
        if len(moment) == 0:
            none = np.empty(0)
            whole, short = none.astype(np.int32), none.astype(np.float32)
            return cls(np.array(moments_s), moment, whole, none, none, short, short, whole, short)
        vehicle = np.concatenate([look.vehicle for look in looks])
        xy = np.concatenate([look.xy for look in looks])
        tangent = np.concatenate([look.tangent for look in looks])
        angle = _angles(vehicle, moment, xy, tangent)
        transformer = pyproj.Transformer.from_crs(crs, "EPSG:4326", always_xy=True)
        # One place goes in twice: pyproj takes an array of one number for a number, which numpy has deprecated.
        lon, lat = transformer.transform(np.append(xy[:, 0], xy[0, 0]), np.append(xy[:, 1], xy[0, 1]))
        return cls(
            np.array(moments_s),
            moment,
            vehicle,
            lon[:-1],
            lat[:-1],
            np.concatenate([look.speed_mps for look in looks]),
            angle.astype(np.float32),
            np.concatenate([look.link for look in looks]),
            np.concatenate([look.along_m for look in looks]),
        )

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.vehicle)

    @property
    def time_s(self) -> FloatArray:
        """(rows,) float64: seconds of the run."""
        return self.moments_s[self.moment]

    def frame(self) -> pd.DataFrame:
        """Return the table that `fcd.parquet` holds; `link` and `along_m` null where they are not known."""
        return pd.DataFrame(
            {
                "time_s": self.time_s,
                "vehicle": self.vehicle,
                "lon": self.lon,
                "lat": self.lat,
                "speed_mps": self.speed_mps,
                "angle": self.angle,
                "link": pd.arrays.IntegerArray(self.link.copy(), self.link < 0),
                "along_m": self.along_m,
            }
        )

    def __repr__(self) -> str:
        return f"<Samples: {len(self):,} places at {len(self.moments_s):,} moments>"


@dataclass(frozen=True, eq=False)
class Look:
    """One moment: vehicles, (n,); their places, (n, 2) metres; and the way their links run, (n, 2), 0 where unknown."""

    vehicle: npt.NDArray[np.int32]
    xy: FloatArray
    tangent: npt.NDArray[np.float32]
    speed_mps: npt.NDArray[np.float32]
    link: npt.NDArray[np.int32]
    along_m: npt.NDArray[np.float32]


def _angles(
    vehicle: npt.NDArray[np.int32],
    moment: npt.NDArray[np.int32],
    xy: FloatArray,
    tangent: npt.NDArray[np.float32],
) -> FloatArray:
    """Return courses, (rows,) degrees: the link's, else from the moment before, else to the next, else 0."""
    order = np.lexsort((moment, vehicle))
    step = np.diff(xy[order], axis=0)
    follows = vehicle[order][1:] == vehicle[order][:-1]
    moved = follows & (np.hypot(step[:, 0], step[:, 1]) > _MOVED_M)
    course = np.zeros((len(vehicle), 2))
    course[:-1][moved] = step[moved]
    course[1:][moved] = step[moved]
    # Where a vehicle stands it keeps the course it had.
    has = np.hypot(course[:, 0], course[:, 1]) > 0
    last = np.maximum.accumulate(np.where(has, np.arange(len(has)), -1))
    same = (last >= 0) & (vehicle[order][last] == vehicle[order])
    course = np.where(same[:, None], course[last], 0.0)
    unsorted = np.empty_like(course)
    unsorted[order] = course
    way = np.where((tangent != 0).any(axis=1)[:, None], tangent, unsorted)
    return np.mod(np.degrees(np.arctan2(way[:, 0], way[:, 1])), 360.0)
