"""Engine `static`: stationary data owners, read from a table with the place and time of each."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self

import numpy as np
import pandas as pd
import pyproj
import simpy

from simulator.arrays import FloatArray, Int32Array, IntArray, Mask
from simulator.files.errors import InputError
from simulator.files.messages import Note, counted, notes_of
from simulator.files.tables import Table
from simulator.formats.recorded.owner_rows import (
    FileFormat,
    expanded,
    read_rows,
    texts_of,
    without_duplicates,
)
from simulator.formats.recorded.places import Sites, place_rows
from simulator.formats.recorded.times import CALENDAR_FROM_S, MIXED_ZONES, NAIVE, Times, moment_of
from simulator.traffic.clock import Clock
from simulator.traffic.engine import State, Totals, VehicleStates


def _arrivals(
    table: Table, *, start: str | float | None, unit_s: float, dwell_s: float | None, time_zone: str | None
) -> tuple[FloatArray | None, Mask, list[str], float | None]:
    """Read the times from which the owners in the rows of a table are present.

    Returns
    -------
    tuple
        (rows,) float64: seconds of the run, below 0 for owners present before it starts, None if the table has no
        times; (rows,) bool: rows whose time is known and not over before the run starts; notes on what was left out;
        seconds from 1970 to second 0, None if times are no dates.

    Raises
    ------
    InputError
        If times cannot be read, `start` names a time zone and they do not, or no owner is present after the start.
    """
    if not table.has("time"):
        return None, np.ones(len(table), dtype=bool), [], None
    at_s, wrong, numeric, naive = _seconds(table, unit_s)
    repeated: list[str] = []
    if naive:
        # No order of rows tells the two passes of a repeated hour apart: each row is on its own.
        local, repeated = Times(at_s, calendar=True, naive=True).in_zone(
            time_zone, np.arange(len(table), dtype=np.int32)
        )
        wrong |= np.isfinite(at_s) & ~np.isfinite(local.seconds)
        at_s = local.seconds
    rule = "a number, as the others are" if numeric else "a date and time, as ISO 8601 has them"
    table.refuse("time", wrong, rule)
    table.check()
    known = np.isfinite(at_s)
    notes = [f"{table.file}: {note}" for note in (repeated if time_zone else [NAIVE] if naive else [])]
    if not known.all():
        untimed = counted(int((~known).sum()), "row")
        notes.append(f"{table.file}: left out {untimed} without a time: {table.rows_in_words(~known)}")
    if not known.any():
        raise InputError([f"{table.file}: no row is left: none that counts has a time"])
    zero = (
        float(at_s[known].min())
        if start is None
        else _start(start, unit_s, time_zone, numeric=numeric, file=table.file)
    )
    if naive and not time_zone and isinstance(start, str) and not Times.from_text(pd.Series([start])).naive:
        raise InputError([f"{table.file}: its times name no time zone, so start must name none, got {start!r}"])
    with np.errstate(invalid="ignore"):
        at_s = at_s - zero
        gone = known & (at_s + (np.inf if dwell_s is None else dwell_s) <= 0)
    if gone.any():
        over = counted(int(gone.sum()), "row")
        notes.append(f"{table.file}: left out {over} whose time ends before the run starts")
    keep = known & ~gone
    if not keep.any():
        raise InputError([f"{table.file}: no row is left: every time ends before start = {start!r}"])
    return at_s, keep, notes, None if numeric and zero < CALENDAR_FROM_S else zero


def _seconds(table: Table, unit_s: float) -> tuple[FloatArray, Mask, bool, bool]:
    """Return times in seconds (NaN if empty), which are unreadable, whether they are numbers, and whether naive.

    Raises
    ------
    InputError
        If some rows name a time zone and others do not.
    """
    column = table.column("time")
    if pd.api.types.is_datetime64_any_dtype(column):
        stamps = Times.from_column(column)
        return stamps.seconds, np.zeros(len(table), dtype=bool), False, stamps.naive
    numbers, odd = table.optional_numbers("time")
    if np.isfinite(numbers).sum() >= odd.sum():
        return numbers * unit_s, odd, True, False
    text = texts_of(table, "time")
    read = Times.from_text(text)
    table.refuse("time", read.without_zone, f"like the others: {MIXED_ZONES}")
    table.check()
    return read.seconds, np.isnan(read.seconds) & text.notna().to_numpy(dtype=bool), False, read.naive


def _start(start: str | float, unit_s: float, time_zone: str | None, *, numeric: bool, file: str) -> float:
    if numeric:
        try:
            return float(start) * unit_s
        except ValueError:
            raise InputError([f"{file}: its times are numbers, so start must be one, got {start!r}"]) from None
    moment = moment_of(start, time_zone) if isinstance(start, str) else None
    if moment is None:
        words = f"its times are dates, so start must be one, as ISO 8601 has them, got {start!r}"
        raise InputError([f"{file}: {words}"])
    return moment


Duplicates = Literal["refuse", "first", "last", "greatest", "sum"]


@dataclass(frozen=True)
class OwnerOptions:
    """Options for reading a table of owners.

    Attributes
    ----------
    columns
        Map from our name of a column to the file's: `place`, `lon`, `lat`, `x`, `y`, `count`, `time`, `owner`,
        `period`.
    ignored
        Columns of numbers that need not be read.
    format
        Format of the file, and which of its rows are used.
    crs
        Coordinate system of `x` and `y`.
    window
        (lon_min, lat_min, lon_max, lat_max) in degrees: rows outside are left out.
    duplicates
        Handling of rows with the same place, period, time and owner; None for "refuse" if rows have counts, and for
        "sum" if each row is an owner.
    fractions
        Handling of counts that are not whole.
    one_per
        Whether each row is one data owner, or each distinct owner is one, at its last place.
    start
        The file's time at second 0 of the run; None for the earliest.
    time_unit_s
        Seconds per unit of time, if times are numbers.
    dwell_s
        Duration of an owner's stay from its time on; None for the rest of the run.
    time_zone
        Time zone of dates that name none, and of such a `start`; None for UTC.
    """

    columns: Mapping[str, str | int]
    format: FileFormat = field(default_factory=FileFormat)
    crs: str | None = None
    window: tuple[float, float, float, float] | None = None
    duplicates: Duplicates | None = None
    fractions: Literal["refuse", "nearest"] = "refuse"
    one_per: Literal["row", "owner"] = "row"
    start: str | float | None = None
    time_unit_s: float = 1.0
    dwell_s: float | None = None
    ignored: Collection[str | int] = ()
    time_zone: str | None = None


@dataclass(frozen=True, eq=False)
class Owners:
    """Data owners, in the order of arrival.

    Attributes
    ----------
    sites
        Every place of the table, including those without owners.
    site
        (owners,) int32: index of each owner's site.
    arrive_s, leave_s
        (owners,) float64: begin and end of each owner's presence, seconds of the run; both None if all owners are
        present throughout. `leave_s` is infinity for owners that never leave.
    remarks
        Notes on what was left out or filled in, one sentence each.
    epoch_s
        Seconds from 1970 to second 0 of the run; None if there are no times, or they are no dates.
    """

    sites: Sites
    site: Int32Array
    arrive_s: FloatArray | None = None
    leave_s: FloatArray | None = None
    remarks: tuple[str, ...] = ()
    epoch_s: float | None = None

    @classmethod
    def from_file(cls, file: str | Path, reading: OwnerOptions, *, crs: pyproj.CRS | None = None) -> Self:
        """Read a table of owners.

        Parameters
        ----------
        file
            One row per owner, or one row per place with a count; see `Table.from_file` for the file formats.
        reading
            Options for reading the file.
        crs
            Coordinate system of the roads; if None, that of `x` and `y`, or the UTM zone of the places.

        Raises
        ------
        InputError
            For any fault in the file, with file, row, rule and value.
        """
        table, chosen = read_rows(file, columns=reading.columns, format_=reading.format)
        table, site, sites, notes = place_rows(table, chosen, crs=crs, given=reading.crs, window=reading.window)
        count = None
        if table.has("count"):
            count = table.checked_numbers("count", at_least=0)
            table.check()
        arrive_s, keep, more, epoch_s = _arrivals(
            table,
            start=reading.start,
            unit_s=reading.time_unit_s,
            dwell_s=reading.dwell_s,
            time_zone=reading.time_zone,
        )
        if count is None and not table.has("owner"):
            words = "name the number of owners of a row as count in traffic.columns, or each row would be one owner"
            table.refuse_unread({*map(str, reading.ignored)}, remedy=f"{words}; and others as ignored = {{0}}")
            table.check()
        table, site, arrive_s, count = table.kept(keep), site[keep], _taken(arrive_s, keep), _taken(count, keep)
        keep, again = without_duplicates(table, site, arrive_s, count, rule=reading.duplicates)
        notes += more + again
        if reading.one_per == "owner":
            last = _last_of_each(table, arrive_s, keep)
            owners, of_rows = counted(int(last.sum()), "owner"), counted(int(keep.sum()), "row")
            notes.append(f"{table.file}: {owners}, each where it was last in {of_rows}")
            keep = last
        table, site, arrive_s, count = table.kept(keep), site[keep], _taken(arrive_s, keep), _taken(count, keep)
        number, rounded = expanded(table, site, arrive_s, count, fractions=reading.fractions)
        notes += rounded
        if number is not None:
            site = np.repeat(site, number)
            arrive_s = None if arrive_s is None else np.repeat(arrive_s, number)
        if not len(site):
            raise InputError([f"{file}: it holds no data owner: every count is 0"])
        if arrive_s is None:
            return cls(sites, site, remarks=tuple(notes))
        order = np.argsort(arrive_s, kind="stable")
        arrive_s = arrive_s[order]
        leave_s = np.full(len(order), np.inf) if reading.dwell_s is None else arrive_s + reading.dwell_s
        return cls(sites, site[order], arrive_s, leave_s, tuple(notes), epoch_s)

    @property
    def crs(self) -> pyproj.CRS:
        """Projected coordinate system, in metres."""
        return self.sites.crs

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Extent of the places that have owners: (x_min, y_min, x_max, y_max) in metres."""
        return self.sites.bounds(self.at_sites() > 0)

    def at_sites(self) -> IntArray:
        """Return the total number of owners of each site, (sites,) int64."""
        return np.bincount(self.site, minlength=len(self.sites))

    def notes(self) -> list[Note]:
        """Return what was left out or filled in while reading."""
        return notes_of("rows", self.remarks)

    def __len__(self) -> int:
        return len(self.site)

    def __repr__(self) -> str:
        return f"<Owners: {len(self):,} at {len(self.sites):,} places>"


def _taken(column: FloatArray | None, keep: Mask) -> FloatArray | None:
    return None if column is None else column[keep]


def _last_of_each(table: Table, arrive_s: FloatArray | None, keep: Mask) -> Mask:
    """Select the row with the last time of each owner, and the last of rows with equal time; (rows,) bool."""
    owner = texts_of(table, "owner")
    table.refuse("owner", owner.isna().to_numpy(dtype=bool) & keep, "the name of an owner")
    table.check()
    moves = pd.DataFrame({"owner": owner.array, "time": 0.0 if arrive_s is None else arrive_s})[keep]
    last = moves.sort_values("time", kind="stable").drop_duplicates("owner", keep="last").index
    return np.isin(np.arange(len(table)), last)


class Static:
    """Engine of stationary data owners, each present from its arrival time until it leaves.

    A present owner counts as on the road. An owner whose time is over counts as arrived, and so answers where parked
    vehicles answer.

    Parameters
    ----------
    owners
        Data owners, with their places and times.
    clock
        Conversion between ticks and seconds.

    Attributes
    ----------
    vehicles
        Number of owners in the table.
    """

    def __init__(self, owners: Owners, *, clock: Clock) -> None:
        self._owners, self._clock, self.vehicles = owners, clock, len(owners)
        self._env = simpy.Environment()
        self._seen: tuple[float, VehicleStates] | None = None

    def start(self, env: simpy.Environment) -> None:
        """Use the clock of `env`."""
        self._env = env

    def advance(self) -> None:
        """Do nothing: data owners do not move."""

    def places(self) -> VehicleStates:
        """Return the place of every owner that has arrived by now."""
        now_s = self._now_s
        if self._seen is not None and (self._seen[0] == now_s or self._owners.arrive_s is None):
            return self._seen[1]
        site = self._owners.site[: self._come(now_s)]
        state = np.full(len(site), State.ON_ROAD, dtype=np.uint8)
        if self._owners.leave_s is not None:
            state[self._owners.leave_s[: len(site)] <= now_s] = State.ARRIVED
        link = np.full(len(site), -1, dtype=np.int32)
        places = VehicleStates(state, link, np.zeros(len(site)), self._owners.sites.xy[site], site)
        self._seen = now_s, places
        return places

    def speeds(self) -> FloatArray:
        """Return 0 m/s for every owner, (departed,): data owners do not move."""
        return np.zeros(self._come(self._now_s))

    def totals(self) -> Totals:
        """Return the numbers of present owners and of those that have left; the trip time is the time of presence."""
        now_s = self._now_s
        departed, arrived, stayed_s = self._come(now_s), 0, 0.0
        arrive_s, leave_s = self._owners.arrive_s, self._owners.leave_s
        if arrive_s is not None and leave_s is not None:
            gone = leave_s[:departed] <= now_s
            arrived = int(np.count_nonzero(gone))
            stayed_s = float((leave_s[:departed][gone] - arrive_s[:departed][gone]).sum())
        return Totals(
            departed=departed,
            on_road=departed - arrived,
            arrived=arrived,
            trip_time_s=stayed_s,
        )

    def notes(self) -> list[Note]:
        """Return notes that owners do not move, and on owners that come after the end of the run."""
        still = "the data owners of a table, at their places: none moves, so nothing depends on roads or speeds"
        notes = [Note("owners_stay", still)]
        missing = self.vehicles - self._come(self._now_s)
        if missing:
            of_all = counted(self.vehicles, "data owner comes", "data owners come")
            notes.append(Note("after_the_end", f"{missing:,} of {of_all} after the end of the run"))
        return notes

    def close(self) -> None:
        """Do nothing: the engine holds no resources outside this process."""

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes held for owners, and for their places."""
        arrays = (self._owners.site, self._owners.arrive_s, self._owners.leave_s)
        return sum(array.nbytes for array in arrays if array is not None), self._owners.sites.xy.nbytes

    @property
    def _now_s(self) -> float:
        return self._clock.seconds(self._env.now)

    def _come(self, now_s: float) -> int:
        """Count the owners that have come by now; owners are numbered in that order."""
        arrive_s = self._owners.arrive_s
        return self.vehicles if arrive_s is None else int(np.searchsorted(arrive_s, now_s, side="right"))

    def __repr__(self) -> str:
        return f"<Static: {self._owners!r}>"
