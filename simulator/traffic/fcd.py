"""Floating-car data: positions of all vehicles at regular moments, and the formats they are written in."""

import gzip
import io
import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyproj
import simpy

from simulator.roads import RoadNetwork
from simulator.stopwatch import Stopwatch
from simulator.traffic.clock import Clock, after_traffic
from simulator.traffic.engine import Engine, State, VehicleStates

FloatArray = npt.NDArray[np.float64]

_MOVED_M = 0.01


@dataclass(frozen=True, eq=False, repr=False)
class Samples:
    """Positions, one row per moment and vehicle, sorted by moment, then by vehicle.

    Attributes
    ----------
    moments_s
        (moments,) float64, ascending: the sampled moments, including those without vehicles.
    moment
        (rows,) int32, index into `moments_s`.
    vehicle
        (rows,) int32: the vehicle's number in the run.
    lon, lat
        (rows,) float64, WGS84 degrees.
    speed_mps
        (rows,) float32.
    angle
        (rows,) float32: course in degrees clockwise from grid north, as in SUMO.
    link
        (rows,) int32, -1 where no link is known.
    along_m
        (rows,) float32: metres from the link's start, NaN where unknown.
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
        """Combine the looks into one table; there is one look per moment."""
        counts = np.array([len(after_traffic.vehicle) for after_traffic in looks], dtype=np.int64)
        moment = np.repeat(np.arange(len(looks), dtype=np.int32), counts)
        if len(moment) == 0:
            none = np.empty(0)
            whole, short = none.astype(np.int32), none.astype(np.float32)
            return cls(np.array(moments_s), moment, whole, none, none, short, short, whole, short)
        vehicle = np.concatenate([after_traffic.vehicle for after_traffic in looks])
        xy = np.concatenate([after_traffic.xy for after_traffic in looks])
        tangent = np.concatenate([after_traffic.tangent for after_traffic in looks])
        angle = _angles(vehicle, moment, xy, tangent)
        transformer = pyproj.Transformer.from_crs(crs, "EPSG:4326", always_xy=True)
        # One place is sent twice: pyproj treats an array of one number as a scalar, which numpy has deprecated.
        lon, lat = transformer.transform(np.append(xy[:, 0], xy[0, 0]), np.append(xy[:, 1], xy[0, 1]))
        return cls(
            np.array(moments_s),
            moment,
            vehicle,
            lon[:-1],
            lat[:-1],
            np.concatenate([after_traffic.speed_mps for after_traffic in looks]),
            angle.astype(np.float32),
            np.concatenate([after_traffic.link for after_traffic in looks]),
            np.concatenate([after_traffic.along_m for after_traffic in looks]),
        )

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.vehicle)

    @property
    def time_s(self) -> FloatArray:
        """(rows,) float64: seconds of the run."""
        return self.moments_s[self.moment]

    def frame(self) -> pd.DataFrame:
        """Return the table written to `fcd.parquet`; `link` and `along_m` are null where unknown."""
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
    """Sample of one moment: vehicles, (n,); places, (n, 2) metres; and link directions, (n, 2), 0 where unknown."""

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
    """Return courses, (rows,) degrees: along the link, else by the previous move, else by the next move, else 0."""
    order = np.lexsort((moment, vehicle))
    step = np.diff(xy[order], axis=0)
    follows = vehicle[order][1:] == vehicle[order][:-1]
    moved = follows & (np.hypot(step[:, 0], step[:, 1]) > _MOVED_M)
    course = np.zeros((len(vehicle), 2))
    course[:-1][moved] = step[moved]
    course[1:][moved] = step[moved]
    # A standing vehicle keeps its previous course.
    has = np.hypot(course[:, 0], course[:, 1]) > 0
    last = np.maximum.accumulate(np.where(has, np.arange(len(has)), -1))
    same = (last >= 0) & (vehicle[order][last] == vehicle[order])
    course = np.where(same[:, None], course[last], 0.0)
    unsorted = np.empty_like(course)
    unsorted[order] = course
    way = np.where((tangent != 0).any(axis=1)[:, None], tangent, unsorted)
    return np.mod(np.degrees(np.arctan2(way[:, 0], way[:, 1])), 360.0)


_REACH = 1e-3
_NEARLY_WHOLE = 1e-9


class Sampler:
    """Sampler of positions at regular moments; holds 50 bytes per vehicle and moment until they are written.

    It samples the vehicles that a query would ask under full participation: vehicles on the road, vehicles that wait to
    enter it (at the start of their link, speed 0) and, if parked vehicles answer, arrived vehicles where they are
    parked.

    Parameters
    ----------
    engine
        Engine that moves the vehicles.
    clock
        Clock of the run.
    every_s, from_s, to_s
        Sampling interval, first moment, and the time after which there is no moment.
    crs
        Coordinate system of the places.
    roads
        The network, or None if there is none.
    parked
        Whether arrived vehicles are sampled.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        clock: Clock,
        every_s: float,
        from_s: float,
        to_s: float,
        crs: pyproj.CRS,
        roads: RoadNetwork | None = None,
        parked: bool = False,
    ) -> None:
        self._engine, self._clock, self._crs, self._roads, self._parked = engine, clock, crs, roads, parked
        count = int(np.floor((to_s - from_s) / every_s * (1 + _NEARLY_WHOLE) + _NEARLY_WHOLE)) + 1
        self._moments_s = [from_s + number * every_s for number in range(max(count, 0))]
        self._looks: list[Look] = []

    def start(self, env: simpy.Environment, stopwatch: Stopwatch) -> None:
        """Add the sampler to `env`; its computing time counts towards the phase "fcd"."""
        env.process(self._run(env, stopwatch))

    def samples(self) -> Samples:
        """Return the samples, once the run is over."""
        return Samples.gather(self._moments_s[: len(self._looks)], self._looks, self._crs)

    def _run(self, env: simpy.Environment, stopwatch: Stopwatch) -> Generator[simpy.Event, None, None]:
        for moment_s in self._moments_s:
            yield after_traffic(env, self._clock.ticks(moment_s))
            self._engine.advance()
            with stopwatch.phase("fcd"):
                self._looks.append(self._look(self._engine.places(), self._engine.speeds()))

    def _look(self, places: VehicleStates, speeds: npt.NDArray[np.float64]) -> Look:
        seen = (places.state == State.ON_ROAD) | (places.state == State.WAITING)
        if self._parked:
            seen |= places.state == State.ARRIVED
        fraction = places.fraction
        if places.xy is not None:
            xy, link = places.xy, places.link
            # Courses follow from the coordinates; only some of these engines know how far a vehicle is along its link.
            tangent, along = np.zeros((len(places), 2)), np.full(len(places), np.nan)
            seen &= np.isfinite(xy).all(axis=1)
            if self._roads is not None:
                exact = (link >= 0) & (fraction > 0)
                along[exact] = fraction[exact] * self._roads.links.length_m[link[exact]]
        elif self._roads is not None:
            link = places.link
            xy = self._roads.locate(link, fraction)
            ahead = self._roads.locate(link, np.minimum(fraction + _REACH, 1.0))
            tangent = ahead - self._roads.locate(link, np.maximum(fraction - _REACH, 0.0))
            along = fraction * self._roads.links.length_m[link]
        else:
            raise ValueError("an engine without coordinates needs roads")
        return Look(
            np.flatnonzero(seen).astype(np.int32),
            xy[seen],
            tangent[seen].astype(np.float32),
            speeds[seen].astype(np.float32),
            link[seen].astype(np.int32),
            along[seen].astype(np.float32),
        )


FILES: Mapping[str, str] = {"sumo": "fcd.xml.gz", "kepler": "trips.geojson", "parquet": "fcd.parquet"}
"""File name by format."""

DIGITS = 8
"""Decimal digits of degrees in text: about a millimetre."""

_BLOCK = 100_000


def write_samples(samples: Samples, directory: Path, *, formats: Sequence[str], epoch_s: int) -> None:
    """Write one file per format into a directory.

    Parameters
    ----------
    samples
        Positions of the vehicles.
    directory
        Directory of the files, named as in `FILES`.
    formats
        Keys of `FILES`.
    epoch_s
        Second 0 of the run in seconds since 1970, for kepler.gl.
    """
    writers: Mapping[str, Callable[[Path], None]] = {
        "sumo": lambda file: write_sumo(samples, file),
        "kepler": lambda file: write_kepler(samples, file, epoch_s=epoch_s),
        "parquet": lambda file: samples.frame().to_parquet(file, index=False),
    }
    for name in formats:
        writers[name](directory / FILES[name])


def write_sumo(samples: Samples, file: Path) -> None:
    """Write the format of ``sumo --fcd-output --fcd-output.geo``; lanes are named LINK_0, as no lanes are simulated."""
    bounds = np.searchsorted(samples.moment, np.arange(len(samples.moments_s) + 1))
    # The gzip header has no time stamp, so that a run written twice gives the same bytes.
    with file.open("wb") as raw, gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed:
        text = io.TextIOWrapper(packed, encoding="utf-8", newline="\n")
        text.write(
            '<?xml version="1.0" encoding="UTF-8"?>\n<fcd-export xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
            'xsi:noNamespaceSchemaLocation="http://sumo.dlr.de/xsd/fcd_file.xsd">\n'
        )
        for moment, time_s in enumerate(samples.moments_s.tolist()):
            text.write(f'    <timestep time="{_seconds(time_s)}">\n')
            text.writelines(_vehicles(samples, slice(int(bounds[moment]), int(bounds[moment + 1]))))
            text.write("    </timestep>\n")
        text.write("</fcd-export>\n")
        text.flush()
        text.detach()


def write_kepler(samples: Samples, file: Path, *, epoch_s: int) -> None:
    """Write GeoJSON lines of [lon, lat, 0, seconds since 1970]: one per vehicle, and one more after each absence.

    A vehicle that was sampled only once between two absences has no line for that period.
    """
    order = np.lexsort((samples.moment, samples.vehicle))
    vehicle, moment = samples.vehicle[order], samples.moment[order]
    breaks = np.flatnonzero((vehicle[1:] != vehicle[:-1]) | (moment[1:] != moment[:-1] + 1)) + 1
    starts = np.concatenate(([0], breaks)) if len(order) else np.empty(0, dtype=np.int64)
    ends = np.append(breaks, len(order)) if len(order) else starts
    stamps = epoch_s + np.rint(samples.moments_s[moment]).astype(np.int64)
    lon, lat = np.round(samples.lon[order], DIGITS), np.round(samples.lat[order], DIGITS)
    with file.open("w", encoding="utf-8", newline="\n") as text:
        text.write('{"type": "FeatureCollection", "features": [')
        first = True
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            if end - start < 2:
                continue
            mine = slice(start, end)
            points = [
                [x, y, 0, t]
                for x, y, t in zip(lon[mine].tolist(), lat[mine].tolist(), stamps[mine].tolist(), strict=True)
            ]
            feature = {
                "type": "Feature",
                "properties": {"vehicle": str(int(vehicle[start]))},
                "geometry": {"type": "LineString", "coordinates": points},
            }
            text.write(("\n" if first else ",\n") + json.dumps(feature))
            first = False
        text.write("\n]}\n")


def _vehicles(samples: Samples, rows: slice) -> Iterator[str]:
    columns = (
        samples.vehicle[rows].tolist(),
        samples.lon[rows].tolist(),
        samples.lat[rows].tolist(),
        samples.angle[rows].tolist(),
        samples.speed_mps[rows].tolist(),
        samples.link[rows].tolist(),
        np.nan_to_num(samples.along_m[rows]).tolist(),
    )
    for vehicle, lon, lat, angle, speed, link, along in zip(*columns, strict=True):
        lane = f' pos="{along:.2f}" lane="{link}_0"' if link >= 0 else ' pos="0.00" lane=""'
        yield (
            f'        <vehicle id="{vehicle}" x="{lon:.{DIGITS}f}" y="{lat:.{DIGITS}f}" angle="{angle:.2f}" '
            f'type="DEFAULT_VEHTYPE" speed="{speed:.2f}"{lane} slope="0.00"/>\n'
        )


def _seconds(time_s: float) -> str:
    """Format a moment as SUMO does: two decimals, and more only if needed."""
    short = f"{time_s:.2f}"
    return short if float(short) == time_s else repr(time_s)
