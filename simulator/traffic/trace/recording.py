"""Recording: a trace in the coordinates of a city and the time of a run."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyproj

from simulator.files.errors import InputError
from simulator.files.messages import counted
from simulator.roads import RoadNetwork
from simulator.roads.projection import utm_about
from simulator.traffic.errors import TrafficError
from simulator.traffic.trace.fixes import Tracks
from simulator.traffic.trace.matching import Matching, match_trace
from simulator.traffic.trace.times import in_words, moment_of
from simulator.traffic.trace.trace import Trace

FloatArray = npt.NDArray[np.float64]

_PADDING = 0.1


@dataclass(frozen=True, eq=False, repr=False)
class Recording:
    """Trace in a city's coordinates and a run's time, for the replay and for the extent of the cells.

    Attributes
    ----------
    crs
        Projected coordinate system, in metres.
    bounds
        Extent of every fix: (x_min, y_min, x_max, y_max) in metres.
    tracks
        Tracks of the vehicles.
    fix_times_s
        (fixes,) float64: seconds of the run of the recording's fixes.
    """

    crs: pyproj.CRS
    bounds: tuple[float, float, float, float]
    tracks: Tracks
    fix_times_s: FloatArray
    _notes: tuple[str, ...]

    @classmethod
    def build(
        cls,
        trace: Trace,
        roads: RoadNetwork | None,
        *,
        gap_s: float,
        start: str | float | None = None,
        matching: Matching | None = None,
    ) -> "Recording":
        """Project a trace, convert its times to seconds of the run, and match it to the roads if requested.

        Parameters
        ----------
        trace
            The recorded fixes.
        roads
            Roads whose coordinate system is used; None for the UTM zone of the trace's middle.
        gap_s
            Maximum time between two fixes: between fixes further apart, a vehicle's place is unknown.
        start
            Recorded time of second 0 of the run: ISO 8601 text, or a number as recorded; None for the first fix.
        matching
            Options of map matching; None leaves fixes where they were recorded.

        Raises
        ------
        TrafficError
            If nothing was recorded from `start` on or in the area of the roads, or there are no roads to match to.
        """
        start_s = _start(trace, start)
        time_s = trace.time_s - start_s
        kept = (time_s >= 0.0) | _leads_into_run(trace.first, time_s, gap_s)
        if not kept.any():
            raise TrafficError(
                [f"start must be before the last fix, got {start!r}; the fixes are from {trace.span_words}"]
            )
        early = int(np.count_nonzero(~kept))
        if early:
            trace = trace.only(kept)
        crs, xy = _projected(trace, roads)
        time_s = trace.time_s - start_s
        tracks = Tracks.straight(trace.first, time_s, xy, trace.speed_mps, gap_s=gap_s)
        fixes = counted(len(trace), "fix", "fixes")
        held = (
            f"the trace holds {fixes} of {counted(trace.vehicles, 'vehicle')}; second 0 is "
            f"{in_words(start_s, calendar=trace.calendar)}, and its last fix is at {time_s.max():,.0f} s"
        )
        notes = [held, *(f"trace: {note}" for note in trace.left_out)]
        if early:
            notes.append(f"trace: {counted(early, 'fix is', 'fixes are')} before second 0 and left out")
        if matching is not None:
            if roads is None:
                raise TrafficError(["match needs roads to match to, and there are none"])
            tracks, said = match_trace(tracks, roads, matching)
            notes += said
        (x_min, y_min), (x_max, y_max) = xy.min(axis=0).tolist(), xy.max(axis=0).tolist()
        return cls(crs, (x_min, y_min, x_max, y_max), tracks, time_s, tuple(notes))

    def notes(self) -> list[str]:
        """Return what was read, left out and matched, one sentence each."""
        return list(self._notes)

    def __repr__(self) -> str:
        return f"<Recording: {self.tracks.vehicles:,} vehicles, {len(self.fix_times_s):,} fixes>"


def _start(trace: Trace, start: str | float | None) -> float:
    if start is None:
        return float(trace.time_s.min())
    if not isinstance(start, str):
        return float(start)
    moment = moment_of(start)
    if moment is None:
        raise TrafficError([f"start must be ISO 8601 text or a number as recorded, got {start!r}"])
    if not trace.calendar:
        raise TrafficError(
            [f"start must be a number of seconds, as the recorded times are ({trace.span_words}), got {start!r}"]
        )
    return moment


def _leads_into_run(first: npt.NDArray[np.int64], time_s: FloatArray, gap_s: float) -> npt.NDArray[np.bool_]:
    """Return which fixes before second 0 determine a vehicle's place at second 0."""
    leads = np.zeros(len(time_s), dtype=bool)
    leads[:-1] = (time_s[:-1] < 0.0) & (time_s[1:] > 0.0) & (np.diff(time_s) <= gap_s)
    leads[first[1:] - 1] = False
    return leads


def _projected(trace: Trace, roads: RoadNetwork | None) -> tuple[pyproj.CRS, FloatArray]:
    try:
        crs = utm_about(trace.lon, trace.lat, what="the trace") if roads is None else roads.crs
    except InputError as error:
        raise TrafficError(error.faults) from None
    xy = _project(trace.lon, trace.lat, crs)
    if roads is None:
        far = ~np.isfinite(xy).all(axis=1)
        if far.any():
            where = f"longitude {trace.lon[far][0]:g}, latitude {trace.lat[far][0]:g}"
            fixes = counted(int(np.count_nonzero(far)), "fix is", "fixes are")
            raise TrafficError([f"the trace: {fixes} too far from the others, as at {where}"])
    elif not _within(xy, roads.bounds).any():
        swapped = _within(_project(trace.lat, trace.lon, crs), roads.bounds).any()
        hint = "; longitude and latitude look swapped" if swapped else ""
        where = f"longitude {np.median(trace.lon):.5f}, latitude {np.median(trace.lat):.5f}"
        raise TrafficError([f"the trace: no fix is where the roads are; its middle is at {where}{hint}"])
    return crs, xy


def _project(lon: FloatArray, lat: FloatArray, crs: pyproj.CRS) -> FloatArray:
    """Return projected places, (n, 2) metres; infinite outside the area of the coordinate system."""
    transformer = pyproj.Transformer.from_crs("EPSG:4326", crs, always_xy=True)
    # One place is sent twice: pyproj treats an array of one number as a scalar, which numpy has deprecated.
    x, y = transformer.transform(np.append(lon, lon[:1]), np.append(lat, lat[:1]))
    return np.column_stack((x, y))[:-1]


def _within(xy: FloatArray, bounds: tuple[float, float, float, float]) -> npt.NDArray[np.bool_]:
    x_min, y_min, x_max, y_max = bounds
    padding = _PADDING * max(x_max - x_min, y_max - y_min) + 1000.0
    low, high = np.array([x_min, y_min]) - padding, np.array([x_max, y_max]) + padding
    inside: npt.NDArray[np.bool_] = np.all((xy >= low) & (xy <= high), axis=1)
    return inside
