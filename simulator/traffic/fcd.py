"""Floating-car data: positions of all vehicles at regular moments, and the formats they are written in."""

import gzip
import io
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyproj
import simpy

from simulator.arrays import FloatArray
from simulator.files.resources import Stopwatch
from simulator.roads import RoadNetwork
from simulator.roads.projection import WGS84, transform
from simulator.traffic.clock import Clock, after_traffic
from simulator.traffic.engine import Engine, State, VehicleStates

_MOVED_M = 0.01
_LOOK = {
    "vehicle": "int32",
    "x": "float64",
    "y": "float64",
    "along_x": "float32",
    "along_y": "float32",
    "speed_mps": "float32",
    "link": "int32",
    "along_m": "float32",
}
"""Columns of the vehicles seen at one moment: places, directions of their links, speeds, and positions on the links."""
_NO_LOOK = pd.DataFrame(columns=list(_LOOK)).astype(_LOOK)
_COLUMNS = ["moment", "vehicle", "lon", "lat", "speed_mps", "angle", "link", "along_m"]


@dataclass(frozen=True, eq=False, repr=False)
class Samples:
    """Positions of vehicles at regular moments.

    Attributes
    ----------
    moments_s
        (moments,) float64, ascending: the sampled moments, including those without vehicles.
    table
        One row per moment and vehicle, sorted by moment, then by vehicle: `moment` (int32, index into `moments_s`),
        `vehicle` (int32, its number in the run), `lon` and `lat` (float64, WGS84 degrees), `speed_mps` (float32),
        `angle` (float32, course in degrees clockwise from grid north, as in SUMO), `link` (int32, -1 where no link is
        known), `along_m` (float32, metres from the link's start, NaN where unknown).
    """

    moments_s: FloatArray
    table: pd.DataFrame

    @classmethod
    def gather(cls, moments_s: Sequence[float], looks: Sequence[pd.DataFrame], crs: pyproj.CRS) -> "Samples":
        """Combine the tables of the moments, which `Sampler` makes, into one; there is one per moment."""
        rows = pd.concat([_NO_LOOK, *looks], ignore_index=True)
        counts = [len(look) for look in looks]
        rows.insert(0, "moment", np.repeat(np.arange(len(looks), dtype=np.int32), counts))
        rows["lon"], rows["lat"] = transform(crs, WGS84, rows[["x", "y"]].to_numpy()).T
        rows["angle"] = _angles(rows).astype(np.float32)
        return cls(np.array(moments_s), rows[_COLUMNS])

    def __len__(self) -> int:
        return len(self.table)

    @property
    def time_s(self) -> FloatArray:
        """(rows,) float64: seconds of the run."""
        return self.moments_s[self.table["moment"]]

    def frame(self) -> pd.DataFrame:
        """Return the table written to `fcd.parquet`; `link` and `along_m` are null where unknown."""
        link = self.table["link"].to_numpy()
        frame = self.table.assign(link=pd.arrays.IntegerArray(link.copy(), link < 0)).drop(columns="moment")
        frame.insert(0, "time_s", self.time_s)
        return frame

    def write(self, directory: Path, *, formats: Sequence[str]) -> None:
        """Write one file per format into a directory.

        Parameters
        ----------
        directory
            Directory of the files, named as in `FILES`.
        formats
            Keys of `FILES`.
        """
        writers: Mapping[str, Callable[[Path], None]] = {
            "sumo": lambda file: write_sumo(self, file),
            "parquet": lambda file: self.frame().to_parquet(file, index=False),
        }
        for name in formats:
            writers[name](directory / FILES[name])

    def __repr__(self) -> str:
        return f"<Samples: {len(self):,} places at {len(self.moments_s):,} moments>"


def _angles(rows: pd.DataFrame) -> FloatArray:
    """Return courses, (rows,) degrees: along the link, else by the previous move, else by the next move, else 0."""
    step = rows.groupby("vehicle")[["x", "y"]].diff()
    step[~(np.hypot(step["x"], step["y"]) > _MOVED_M)] = np.nan
    course = step.fillna(step.groupby(rows["vehicle"]).shift(-1))
    # A standing vehicle keeps its previous course.
    course = course.groupby(rows["vehicle"]).ffill().fillna(0.0)
    tangent = rows[["along_x", "along_y"]].to_numpy()
    way = np.where((tangent != 0).any(axis=1)[:, None], tangent, course)
    return np.mod(np.degrees(np.arctan2(way[:, 0], way[:, 1])), 360.0)


_REACH = 1e-3
_NEARLY_WHOLE = 1e-9


class Sampler:
    """Sampler of positions at regular moments; holds 50 bytes per vehicle and moment until they are written.

    It samples the vehicles that a query would ask under full participation: those in the states that answer. A vehicle
    that waits to enter is at the start of its link and has speed 0.

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
    states
        States in which vehicles are sampled.
    every
        Only vehicles whose number is a multiple of this are sampled.
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
        states: Collection[State] = (State.ON_ROAD,),
        every: int = 1,
    ) -> None:
        self._engine, self._clock, self._crs, self._roads, self._states = engine, clock, crs, roads, states
        self.every = every
        count = int(np.floor((to_s - from_s) / every_s * (1 + _NEARLY_WHOLE) + _NEARLY_WHOLE)) + 1
        self._moments_s = [from_s + number * every_s for number in range(max(count, 0))]
        self._looks: list[pd.DataFrame] = []

    def start(self, env: simpy.Environment, stopwatch: Stopwatch, *, phase: str = "fcd") -> None:
        """Add the sampler to `env`; its computing time counts towards a phase of this name."""
        env.process(self._run(env, stopwatch, phase))

    def samples(self) -> Samples:
        """Return the samples, once the run is over."""
        return Samples.gather(self._moments_s[: len(self._looks)], self._looks, self._crs)

    def _run(self, env: simpy.Environment, stopwatch: Stopwatch, phase: str) -> Generator[simpy.Event, None, None]:
        for moment_s in self._moments_s:
            yield after_traffic(env, self._clock.ticks(moment_s))
            self._engine.advance()
            with stopwatch.phase(phase):
                self._looks.append(self._look(self._engine.places(), self._engine.speeds()))

    def _look(self, places: VehicleStates, speeds: FloatArray) -> pd.DataFrame:
        """Return the vehicles seen at one moment: places in metres, and directions of their links, 0 where unknown."""
        seen = places.within(self._states) & (np.arange(len(places)) % self.every == 0)
        fraction = places.fraction
        if places.xy is not None:
            xy, link = places.xy, places.link
            # Courses follow from the coordinates; only some of these engines know how far a vehicle is along its link.
            tangent, along = np.zeros((len(places), 2)), np.full(len(places), np.nan)
            seen &= np.isfinite(xy).all(axis=1)
            if self._roads is not None:
                on_link = link >= 0
                along[on_link] = fraction[on_link] * self._roads.links.length_m[link[on_link]]
        elif self._roads is not None:
            link = places.link
            xy = places.xy_on(self._roads)
            ahead = self._roads.locate(link, np.minimum(fraction + _REACH, 1.0))
            tangent = ahead - self._roads.locate(link, np.maximum(fraction - _REACH, 0.0))
            along = fraction * self._roads.links.length_m[link]
        else:
            raise ValueError("an engine without coordinates needs roads")
        columns = (np.flatnonzero(seen), *xy[seen].T, *tangent[seen].T, speeds[seen], link[seen], along[seen])
        return pd.DataFrame(dict(zip(_LOOK, columns, strict=True))).astype(_LOOK)


FILES: Mapping[str, str] = {"sumo": "fcd.xml.gz", "parquet": "fcd.parquet"}
"""File name by format."""

DIGITS = 8
"""Decimal digits of degrees in text: about a millimetre."""


def write_sumo(samples: Samples, file: Path) -> None:
    """Write the format of ``sumo --fcd-output --fcd-output.geo``; lanes are named LINK_0, as no lanes are simulated."""
    bounds = np.searchsorted(samples.table["moment"], np.arange(len(samples.moments_s) + 1)).tolist()
    # The gzip header has no time stamp, so that a run written twice gives the same bytes.
    with file.open("wb") as raw, gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed:
        text = io.TextIOWrapper(packed, encoding="utf-8", newline="\n")
        text.write(
            '<?xml version="1.0" encoding="UTF-8"?>\n<fcd-export xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
            'xsi:noNamespaceSchemaLocation="http://sumo.dlr.de/xsd/fcd_file.xsd">\n'
        )
        for moment, time_s in enumerate(samples.moments_s.tolist()):
            text.write(f'    <timestep time="{_seconds(time_s)}">\n')
            text.writelines(_vehicles(samples.table.iloc[bounds[moment] : bounds[moment + 1]]))
            text.write("    </timestep>\n")
        text.write("</fcd-export>\n")
        text.flush()
        text.detach()


def _vehicles(rows: pd.DataFrame) -> Iterator[str]:
    columns = [rows[name].tolist() for name in ("vehicle", "lon", "lat", "angle", "speed_mps", "link")]
    columns.append(rows["along_m"].fillna(0.0).tolist())
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
