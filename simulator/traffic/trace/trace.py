"""Trace: recorded fixes in one table, sorted by vehicle and time."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from simulator.files.messages import Doubt, counted
from simulator.traffic.errors import TrafficError
from simulator.traffic.trace.fixes import Fixes
from simulator.traffic.trace.tables import TraceOptions, fixes_of, system_of
from simulator.traffic.trace.times import NAIVE, in_words

Order = Literal["auto", "ascending", "any"]

FloatArray = npt.NDArray[np.float64]

_NULL_ISLAND_DEGREES = 1.0
_MOST_FAULTS = 20


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """Fixes of many vehicles, sorted by vehicle, and by time within each vehicle.

    Vehicles are numbered in the order of their first fixes; ties are resolved by their order in the files.

    Attributes
    ----------
    names
        Names of the vehicles, by number.
    first
        (vehicles + 1,) int64: vehicle v owns the fixes first[v]:first[v + 1], at least one.
    time_s
        (fixes,) float64: seconds since 1970 in UTC if `calendar`, else as recorded; ascending within a vehicle.
    lon, lat
        (fixes,) float64, WGS84 degrees.
    speed_mps
        (fixes,) float64, NaN where no speed was recorded.
    calendar
        Whether times are dates.
    left_out
        Notes on what was left out and how values were interpreted, one sentence each.
    """

    names: Sequence[str]
    first: npt.NDArray[np.int64]
    time_s: FloatArray
    lon: FloatArray
    lat: FloatArray
    speed_mps: FloatArray
    calendar: bool
    left_out: tuple[str, ...] = ()

    @classmethod
    def from_fixes(cls, parts: Sequence[Fixes], *, order: Order = "auto") -> "Trace":
        """Combine the fixes of several sources.

        Parameters
        ----------
        parts
            Fixes of each source.
        order
            Permitted order of a vehicle's times within a source. "ascending": ascending only. "any": any order, and
            fixes are sorted. "auto": ascending only in formats that guarantee it (SUMO, GPX, timed paths); in other
            formats entirely ascending or entirely descending, as in newest-first logs, but not mixed.

        Raises
        ------
        TrafficError
            If a vehicle's times violate the order, dates are mixed with relative times, or no fix is left.
        """
        faults = [fault for part in parts for fault in _turns(part, order)] if parts else ["it has no files"]
        clocks = {part.times.calendar for part in parts}
        if len(clocks) > 1:
            dated, other = (next(p.source for p in parts if p.times.calendar is dates) for dates in (True, False))
            faults.append(
                f"{other}: its times are relative, and those of {dated} are dates: they cannot be put together"
            )
        if faults:
            raise TrafficError(faults)
        number: dict[str, int] = {}
        vehicle = np.concatenate(
            [np.array([number.setdefault(n, len(number)) for n in p.names], dtype=np.int32)[p.vehicle] for p in parts]
        )
        time = np.concatenate([part.times.seconds for part in parts])
        lon, lat, speed = (np.concatenate([getattr(p, name) for p in parts]) for name in ("lon", "lat", "speed_mps"))
        notes = [note for part in parts for note in part.notes]
        naive = [part.source for part in parts if part.times.naive]
        if naive:
            notes.append(NAIVE)
        zoned = [part.source for part in parts if part.times.calendar and not part.times.naive]
        if naive and zoned:
            rule = f"its times name no time zone and are taken as UTC, and those of {zoned[0]} are known in UTC"
            notes.append(Doubt(f"{naive[0]}: {rule}: a file in local time is hours off the other"))
        there = ~_at_null_island(lon, lat)
        if not there.all():
            notes.append(f"{_fixes(~there)} at longitude 0, latitude 0, far from all others, left out: no position")
            vehicle, time, lon, lat, speed = (values[there] for values in (vehicle, time, lon, lat, speed))
        together = vehicle[1:] == vehicle[:-1]
        if not np.all((vehicle[1:] > vehicle[:-1]) | (together & (time[1:] >= time[:-1]))):
            sequence = np.lexsort((time, vehicle))
            vehicle, time, lon, lat, speed = (values[sequence] for values in (vehicle, time, lon, lat, speed))
        again = np.zeros(len(vehicle), dtype=bool)
        again[1:] = (vehicle[1:] == vehicle[:-1]) & (time[1:] == time[:-1])
        # Each fix is compared with the first fix of the same moment, which is the one kept.
        kept = np.maximum.accumulate(np.where(again, 0, np.arange(len(again))))
        elsewhere = again & ((lon != lon[kept]) | (lat != lat[kept]))
        if (again & ~elsewhere).any():
            notes.append(f"{_fixes(again & ~elsewhere)} repeated, left out")
        if elsewhere.any():
            notes.append(
                f"{_fixes(elsewhere)} of a vehicle that is elsewhere at the same moment, left out: the first in the "
                "file is kept"
            )
        if again.any():
            vehicle, time, lon, lat, speed = (values[~again] for values in (vehicle, time, lon, lat, speed))
        return cls._numbered(list(number), vehicle, (time, lon, lat, speed), clocks.pop(), tuple(notes))

    @classmethod
    def _numbered(
        cls,
        names: Sequence[str],
        vehicle: npt.NDArray[np.int32],
        columns: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
        calendar: bool,  # noqa: FBT001 - of a private maker
        notes: tuple[str, ...],
    ) -> "Trace":
        """Return a trace with vehicles numbered by their first fix; `vehicle` ascends, and so do times within each."""
        present, starts, lengths = np.unique(vehicle, return_index=True, return_counts=True)
        by_first = np.argsort(columns[0][starts], kind="stable")
        lengths = lengths[by_first]
        first = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        gather = np.repeat(starts[by_first] - first[:-1], lengths) + np.arange(len(vehicle))
        time, lon, lat, speed = (values[gather] for values in columns)
        return cls([names[v] for v in present[by_first]], first, time, lon, lat, speed, calendar, notes)

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        *,
        columns: dict[str, str] | None = None,
        crs: object | None = None,
        order: Order = "auto",
        source: str = "the table",
    ) -> "Trace":
        """Build a trace from a table with one fix per row; columns as in `read_trace`."""
        how, place = TraceOptions(columns or {}, system_of(crs)), np.arange(1, len(frame) + 1, dtype=np.int64)
        fixes = fixes_of(frame, how, source=source, vehicle="", place=place, place_word="row")
        return cls.from_fixes([fixes], order=order)

    @classmethod
    def from_geodataframe(
        cls,
        frame: Any,
        *,
        vehicle: Hashable,
        time: Hashable | None = None,
        speed_mps: Hashable | None = None,
        order: Order = "auto",
    ) -> "Trace":
        """Build a trace from a GeoDataFrame of points.

        Parameters
        ----------
        frame
            Points, in any coordinate system that the frame names.
        vehicle
            Column of vehicles.
        time
            Column of times; None if the index holds the times.
        speed_mps
            Column of speeds, if any.
        order
            As in `from_fixes`.

        Raises
        ------
        TrafficError
            If geometries are not points, the coordinate system is unknown, or a column is missing.
        """
        source = "the GeoDataFrame"
        if frame.crs is None:
            raise TrafficError([f"{source}: its coordinate system (crs) must be known"])
        empty = frame.geometry.isna() | frame.geometry.is_empty
        if not (frame.geometry[~empty].geom_type == "Point").all():
            raise TrafficError([f"{source}: its geometry must be points"])
        wanted = {"vehicle": vehicle, "speed_mps": speed_mps, "time": time}
        named = {role: column for role, column in wanted.items() if column is not None}
        faults = [f"{source}: no column {column!r} for {role}" for role, column in named.items() if column not in frame]
        if faults:
            raise TrafficError(faults)
        degrees = frame.geometry.to_crs("EPSG:4326")
        plain = pd.DataFrame({role: frame[column].to_numpy() for role, column in named.items()})
        if time is None and isinstance(frame.index, pd.RangeIndex):
            raise TrafficError([f"{source}: its index numbers rows, and holds no times: name their column as time"])
        plain["time"] = frame.index if time is None else frame[time].reset_index(drop=True)
        plain["lon"], plain["lat"] = degrees.x.to_numpy(), degrees.y.to_numpy()
        return cls.from_frame(plain, columns={name: name for name in plain.columns}, order=order, source=source)

    @classmethod
    def from_trajectories(cls, collection: Any, *, order: Order = "auto") -> "Trace":
        """Build a trace from a MovingPandas TrajectoryCollection: one vehicle per trajectory, named by its id."""
        trajectories = list(collection.trajectories)
        if not trajectories:
            raise TrafficError(["the collection: it holds no trajectory"])
        together = pd.concat([one.df[[one.df.geometry.name]].assign(vehicle=str(one.id)) for one in trajectories])
        return cls.from_geodataframe(together, vehicle="vehicle", order=order)

    def only(self, kept: npt.NDArray[np.bool_]) -> "Trace":
        """Return the trace of selected fixes, (fixes,) bool with at least one; vehicles are renumbered."""
        who = self.vehicle[kept]
        columns = (self.time_s[kept], self.lon[kept], self.lat[kept], self.speed_mps[kept])
        return self._numbered(self.names, who, columns, self.calendar, self.left_out)

    @property
    def vehicle(self) -> npt.NDArray[np.int32]:
        """(fixes,) int32: the vehicle of each fix."""
        return np.repeat(np.arange(self.vehicles, dtype=np.int32), np.diff(self.first))

    @property
    def vehicles(self) -> int:
        """Number of vehicles."""
        return len(self.names)

    def __len__(self) -> int:
        """Return the number of fixes."""
        return len(self.time_s)

    def frame(self) -> pd.DataFrame:
        """Return one row per fix: `vehicle` (text), `time_s`, `lon`, `lat`, `speed_mps` (NaN where not recorded)."""
        return pd.DataFrame(
            {
                "vehicle": np.array(self.names, dtype=object)[self.vehicle],
                "time_s": self.time_s,
                "lon": self.lon,
                "lat": self.lat,
                "speed_mps": self.speed_mps,
            }
        )

    @property
    def span_words(self) -> str:
        """Describe the times of the first and the last fix in words."""
        ends = (float(self.time_s.min()), float(self.time_s.max()))
        return " to ".join(in_words(end, calendar=self.calendar) for end in ends)

    def __repr__(self) -> str:
        return f"<Trace: {self.vehicles:,} vehicles, {len(self):,} fixes, {self.span_words}>"


def _turns(part: Fixes, order: Order) -> Iterator[str]:
    """Yield messages on times that violate the permitted order of a vehicle within one source."""
    if order == "any":
        return
    by_vehicle = np.argsort(part.vehicle, kind="stable")
    vehicle, time = part.vehicle[by_vehicle], part.times.seconds[by_vehicle]
    same = vehicle[1:] == vehicle[:-1]
    back, forth = same & (time[1:] < time[:-1]), same & (time[1:] > time[:-1])
    wrong = back
    if order == "auto" and not part.ascending:
        wrong = np.zeros(len(back), dtype=bool)
        for way in (back, forth):
            # The first step of a vehicle determines the direction of its log; steps in the other direction are faults.
            steps = np.flatnonzero(back | forth)
            leading = np.unique(vehicle[1:][steps], return_index=True)[1]
            runs_otherwise = np.isin(vehicle[1:], vehicle[1:][steps[leading]][~way[steps[leading]]])
            wrong |= way & runs_otherwise
    found = np.flatnonzero(wrong)
    for step in found[:_MOST_FAULTS].tolist():
        here, before = by_vehicle[step + 1], by_vehicle[step]
        stamps = [in_words(float(part.times.seconds[i]), calendar=part.times.calendar) for i in (here, before)]
        chosen = np.zeros(len(part), dtype=bool)
        chosen[here] = True
        forward = part.times.seconds[here] > part.times.seconds[before]
        way = "forward again in a log that runs backward" if forward else "back"
        hint = "" if part.ascending else '; order = "any" sorts such logs'
        name = part.names[part.vehicle[here]]
        yield (
            f"{part.where(chosen)}: the clock of vehicle {name!r} must not go {way}, got {stamps[0]} after "
            f"{part.place_word} {part.place[before]}'s {stamps[1]}{hint}"
        )
    if len(found) > _MOST_FAULTS:
        yield f"{part.source}: {len(found):,} such steps of clocks in all"


def _at_null_island(lon: FloatArray, lat: FloatArray) -> npt.NDArray[np.bool_]:
    """Return which places are the 0, 0 that receivers write without a position: there is no city nearby."""
    zero = (lon == 0.0) & (lat == 0.0)
    if not zero.any() or zero.all():
        return np.zeros(len(lon), dtype=bool)
    middle = max(abs(float(np.median(lon[~zero]))), abs(float(np.median(lat[~zero]))))
    return zero if middle > _NULL_ISLAND_DEGREES else np.zeros(len(lon), dtype=bool)


def _fixes(chosen: npt.NDArray[np.bool_]) -> str:
    return counted(int(np.count_nonzero(chosen)), "fix", "fixes")
