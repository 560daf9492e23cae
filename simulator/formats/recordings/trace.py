"""Trace: recorded fixes in one table, sorted by vehicle and time, read from files or given from Python."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from simulator.arrays import FloatArray, Int32Array, IntArray, Mask
from simulator.files.errors import InputError
from simulator.files.messages import Note, counted, warning
from simulator.files.tables import Table
from simulator.files.times import LOCAL, NAIVE, in_words
from simulator.formats.recordings.fixes import Source, TraceOptions, checked_fixes, in_degrees
from simulator.roads.projection import known_crs

Order = Literal["auto", "ascending", "any"]

_COLUMNS = ("time_s", "lon", "lat", "speed_mps")

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
    piece
        (fixes,) int64: piece of its vehicle's recording; between two pieces its way is not recorded.
    left_out
        Notes on what was left out and how values were interpreted, one sentence each.
    """

    names: Sequence[str]
    first: IntArray
    time_s: FloatArray
    lon: FloatArray
    lat: FloatArray
    speed_mps: FloatArray
    calendar: bool
    piece: IntArray
    left_out: tuple[Note, ...] = ()

    @classmethod
    def from_sources(cls, parts: Sequence[Source], *, order: Order = "auto") -> "Trace":
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
        InputError
            If a vehicle's times violate the order, dates are mixed with relative times, or no fix is left.
        """
        faults = [fault for part in parts for fault in _turns(part, order)] if parts else ["it has no files"]
        clocks = {part.calendar for part in parts}
        if len(clocks) > 1:
            dated, other = (next(p.name for p in parts if p.calendar is dates) for dates in (True, False))
            faults.append(f"{other}: its times are relative, and those of {dated} are dates: they cannot be combined")
        if faults:
            raise InputError(faults)
        fixes = pd.concat([part.fixes for part in parts], ignore_index=True)
        unnamed = np.repeat([part.unnamed for part in parts], [len(part.fixes) for part in parts])
        numbers, found = pd.factorize(fixes["vehicle"])
        names, unnamed_vehicles = found.tolist(), np.unique(numbers[unnamed])
        fixes["vehicle"] = numbers.astype(np.int32)
        notes = [Note("fixes", text) for part in parts for text in part.notes]
        naive = [part.name for part in parts if part.naive]
        if naive:
            notes.append(Note("no_time_zone", NAIVE))
        zoned = [part.name for part in parts if part.calendar and not part.naive]
        if naive and zoned:
            rule = f"its times name no time zone and are taken as UTC, but the times of {zoned[0]} are in UTC"
            notes.append(
                warning("mixed_time_zones", f"{naive[0]}: {rule}: a file in local time is hours off the other")
            )
        nowhere = _at_null_island(fixes["lon"].to_numpy(), fixes["lat"].to_numpy())
        if nowhere.any():
            why = "at longitude 0, latitude 0, or other equal whole degrees, far from all others, left out: no position"
            notes.append(Note("no_position", f"{_fixes(nowhere)} {why}"))
            fixes = fixes[~nowhere]
        vehicle, time = fixes["vehicle"].to_numpy(), fixes["time_s"].to_numpy()
        together = vehicle[1:] == vehicle[:-1]
        if not np.all((vehicle[1:] > vehicle[:-1]) | (together & (time[1:] >= time[:-1]))):
            fixes = fixes.iloc[np.lexsort((time, vehicle))]
        again, elsewhere = _repeated(fixes)
        if (again & ~elsewhere).any():
            notes.append(Note("repeated", f"{_fixes(again & ~elsewhere)} repeated, left out"))
        if elsewhere.any():
            one = fixes[elsewhere].iloc[0]
            there = (
                "of a vehicle that is elsewhere at the same moment, left out: the first in the file is kept; the first"
            )
            there += (
                f" is of {names[int(one['vehicle'])]!r} at {in_words(float(one['time_s']), calendar=True in clocks)}"
            )
            notes.append(Note("elsewhere", f"{_fixes(elsewhere)} {there}"))
        fixes = fixes[~again]
        if copy_of := _copies(fixes[fixes["vehicle"].isin(unnamed_vehicles)]):
            first, second = next((names[other], names[copy]) for copy, other in copy_of.items())
            recorded = counted(len(copy_of), "recording is a copy", "recordings are copies")
            copied = f"{recorded} of another, fix by fix, as {second!r} is of {first!r}: left out"
            notes.append(Note("copies", copied))
            fixes = fixes[~fixes["vehicle"].isin(copy_of)]
        vehicle, piece = fixes["vehicle"].to_numpy(), fixes["piece"].to_numpy()
        if breaks := np.count_nonzero((vehicle[1:] == vehicle[:-1]) & (piece[1:] != piece[:-1])):
            between = counted(int(breaks), "break", "breaks")
            notes.append(Note("breaks", f"{between} between segments of a recording: the vehicle is absent there"))
        return cls._numbered(names, fixes, clocks.pop(), tuple(notes))

    @classmethod
    def _numbered(
        cls,
        names: Sequence[str],
        fixes: pd.DataFrame,
        calendar: bool,  # noqa: FBT001 - of a private constructor
        notes: tuple[Note, ...],
    ) -> "Trace":
        """Return a trace with vehicles numbered by their first fix; `fixes` are sorted by vehicle, then by time."""
        starts = np.flatnonzero(np.diff(fixes["vehicle"].to_numpy(), prepend=-1))
        present, lengths = fixes["vehicle"].to_numpy()[starts], np.diff(np.append(starts, len(fixes)))
        by_first = np.argsort(fixes["time_s"].to_numpy()[starts], kind="stable")
        lengths = lengths[by_first]
        first = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        if (np.diff(by_first) < 0).any():
            fixes = fixes.take(np.repeat(starts[by_first] - first[:-1], lengths) + np.arange(len(fixes)))
        time, lon, lat, speed, piece = (fixes[name].to_numpy() for name in (*_COLUMNS, "piece"))
        return cls([names[v] for v in present[by_first]], first, time, lon, lat, speed, calendar, piece, notes)

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
        options = TraceOptions(columns or {}, None if crs is None else known_crs(crs, "crs"))
        return cls.from_sources([checked_fixes(Table.from_frame(frame, title=source), options)], order=order)

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
            As in `from_sources`.

        Raises
        ------
        InputError
            If geometries are not points, the coordinate system is unknown, or a column is missing.
        """
        source, plain = "the GeoDataFrame", in_degrees(frame, "the GeoDataFrame")
        if time is None and isinstance(frame.index, pd.RangeIndex):
            raise InputError([f"{source}: its index holds row numbers, not times: name the column of times as time"])
        if time is None:
            plain["time"] = frame.index
        wanted = {"vehicle": vehicle, "time": "time" if time is None else time, "speed_mps": speed_mps}
        columns = {role: str(column) for role, column in wanted.items() if column is not None}
        return cls.from_frame(plain, columns=columns | {"lon": "lon", "lat": "lat"}, order=order, source=source)

    @classmethod
    def from_trajectories(cls, collection: Any, *, order: Order = "auto") -> "Trace":
        """Build a trace from a MovingPandas TrajectoryCollection: one vehicle per trajectory, named by its id."""
        if not (trajectories := list(collection.trajectories)):
            raise InputError(["the collection: it holds no trajectory"])
        together = pd.concat([one.df[[one.df.geometry.name]].assign(vehicle=str(one.id)) for one in trajectories])
        return cls.from_geodataframe(together, vehicle="vehicle", order=order)

    def only(self, kept: Mask) -> "Trace":
        """Return the trace of selected fixes, (fixes,) bool with at least one; vehicles are renumbered."""
        fixes = pd.DataFrame({name: getattr(self, name)[kept] for name in ("vehicle", *_COLUMNS, "piece")})
        return self._numbered(self.names, fixes, self.calendar, self.left_out)

    @property
    def vehicle(self) -> Int32Array:
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
        columns = {name: getattr(self, name) for name in _COLUMNS}
        return pd.DataFrame({"vehicle": np.array(self.names, dtype=object)[self.vehicle], **columns})

    @property
    def span_words(self) -> str:
        """Describe the times of the first and the last fix in words."""
        ends = (float(self.time_s.min()), float(self.time_s.max()))
        return " to ".join(in_words(end, calendar=self.calendar) for end in ends)

    def __repr__(self) -> str:
        return f"<Trace: {self.vehicles:,} vehicles, {len(self):,} fixes, {self.span_words}>"


def _turns(part: Source, order: Order) -> Iterator[str]:
    """Yield messages on times that violate the permitted order of a vehicle within one source."""
    if order == "any" and not part.naive:
        return
    codes, names = pd.factorize(part.fixes["vehicle"])
    by_vehicle = np.argsort(codes, kind="stable")
    vehicle, time = codes[by_vehicle], part.fixes["time_s"].to_numpy()[by_vehicle]
    turn = np.where(vehicle[1:] == vehicle[:-1], np.sign(np.diff(time)), 0.0)
    steps = np.flatnonzero(turn)
    forth = np.ones(len(steps))
    if order != "ascending" and not part.ascending:
        # The first step of a vehicle determines the direction of its log; steps in the other direction are faults.
        forth = pd.Series(turn[steps]).groupby(vehicle[1:][steps]).transform("first").to_numpy()
    found = steps[turn[steps] != forth]
    summer_ends = part.naive and _repeat_an_hour(time[found], time[found + 1])
    if order == "any" and not summer_ends:
        return
    for step in found[:_MOST_FAULTS].tolist():
        stamps = [in_words(float(time[at]), calendar=part.calendar) for at in (step + 1, step)]
        way = "forward again in a log that runs backward" if turn[step] > 0 else "back"
        hint = "" if part.ascending else '; order = "any" sorts such logs'
        hint = f"; {LOCAL}" if summer_ends else hint
        here, before = part.fixes.index[by_vehicle[[step + 1, step]]]
        yield (
            f"{part.name}: {part.place_word} {here}: the clock of vehicle {names[vehicle[step]]!r} must not go {way}, "
            f"got {stamps[0]} after {part.place_word} {before}'s {stamps[1]}{hint}"
        )
    if len(found) > _MOST_FAULTS:
        yield f"{part.name}: {len(found):,} such steps of clocks in all"


def _repeat_an_hour(before: FloatArray, after: FloatArray) -> bool:
    """Return whether all steps of clocks against their direction are alike those at the end of summer time.

    They are of a quarter of an hour to an hour, in one night, between 23:00 and 4:00.
    """
    later, back_s = np.maximum(before, after), np.abs(after - before)
    night = (later + 3600.0) // 86_400.0
    at_night = (later + 3600.0) % 86_400.0 <= 5 * 3600.0
    return len(later) > 0 and bool((at_night & (back_s >= 900.0) & (back_s <= 3600.0) & (night == night[0])).all())


def _repeated(fixes: pd.DataFrame) -> tuple[Mask, Mask]:
    """Return which fixes, sorted by vehicle and time, repeat the moment of an earlier one, and which are elsewhere."""
    vehicle, time, lon, lat = (fixes[name].to_numpy() for name in ("vehicle", "time_s", "lon", "lat"))
    again = np.zeros(len(fixes), dtype=bool)
    again[1:] = (vehicle[1:] == vehicle[:-1]) & (time[1:] == time[:-1])
    # Each fix is compared with the first fix of the same moment, which is the one kept.
    kept = np.maximum.accumulate(np.where(again, 0, np.arange(len(again))))
    return again, again & ((lon != lon[kept]) | (lat != lat[kept]))


def _copies(fixes: pd.DataFrame) -> dict[int, int]:
    """Return the vehicles that copy an earlier vehicle, and the vehicle that each copies, by number."""
    hashed = fixes[["vehicle"]].assign(fix=pd.util.hash_pandas_object(fixes[["time_s", "lon", "lat"]], index=False))
    alike = hashed.groupby("vehicle")["fix"].agg(["sum", "size"])
    first = pd.Series(alike.index, index=alike.index).groupby([alike["sum"], alike["size"]]).transform("first")
    return {copy: other for copy, other in zip(alike.index.tolist(), first.tolist(), strict=True) if copy != other}


def _at_null_island(lon: FloatArray, lat: FloatArray) -> Mask:
    """Return which places are the 0, 0, or -1, -1, that receivers write without a position: no city is nearby."""
    code = (lon == lat) & (lon % 1.0 == 0.0)
    if code.all() or not code.any():
        return np.zeros(len(lon), dtype=bool)
    away = [np.abs(axis - np.median(axis[~code])) for axis in (lon, lat)]
    return np.asarray(code & (np.maximum(*away) > _NULL_ISLAND_DEGREES))


def _fixes(chosen: Mask) -> str:
    return counted(int(np.count_nonzero(chosen)), "fix", "fixes")
