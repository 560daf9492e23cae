"""Columns of times in files: text or numbers, converted to seconds."""

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from simulator.files.messages import counted
from simulator.files.tables import Table, numbers_in
from simulator.files.tntp_text import finite_number

CALENDAR_FROM_S = 1e8
"""Numbers from this value on are seconds since 1970 (3 March 1973 and later); smaller numbers are relative."""

_BY_SIZE = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))
"""Smallest numbers that are read as nano-, micro- or milliseconds since 1970, with the unit in seconds."""

LATEST_S = 253_402_300_800.0
"""The end of the year 9999: later values are not times."""

MIXED_UNITS = "of the size of the others: seconds and milliseconds, or dates and relative times, must not be mixed"
DAY_NUMBERS = "no day number of a spreadsheet: write dates and times of day, as 2024-03-05 12:00:00, or seconds"
NAIVE = "times without a time zone are taken as UTC"
LOCAL = 'local times at the end of summer time need their zone: traffic.time_zone = "Europe/Berlin"; others, "UTC"'
TIME_RULE = "a time: ISO 8601 text (2008-02-03 00:00:32), a number, or as time_format states"

DIGITS = "%Y%m%d%H%M%S"
"""Format of numbers of fourteen digits from 1900 on: as milliseconds they would be in the year 2572 or later."""

_DAY_S = 86_400.0
_DAY_NUMBERS_FROM, _DAY_NUMBERS_TO = 20_000.0, 80_000.0
"""Numbers that spreadsheets have for the days of 1954 to 2119."""
_MOST_STEP_DAYS = 0.007
_FEWEST_TIMES = 4
_DIGITS_FROM, _DIGITS_TO = 1.9e13, 2.2e13
_ZONE = r"[T\s]\s*\d.*(?:Z|[+-]\d\d?(?:\d\d|:\d\d?)?)$"
"""Pattern of a time zone after a time of day, so that the last two digits of a date alone are not a zone."""


@dataclass(frozen=True, eq=False)
class Times:
    """Times of the rows of a table.

    Attributes
    ----------
    seconds
        (n,) float64: seconds since 1970 in UTC, or relative; NaN where there is no time.
    calendar
        Whether the times are dates.
    naive
        Whether the times were text or timestamps without a time zone, taken as UTC.
    zoned
        (n,) bool: which times name a time zone, if each may differ; None if all do or none can.
    numbers
        Whether the times are numbers in a unit.
    """

    seconds: NDArray[np.float64]
    calendar: bool
    naive: bool = False
    zoned: NDArray[np.bool_] | None = None
    numbers: bool = False

    @property
    def without_zone(self) -> NDArray[np.bool_]:
        """(n,) bool: times without a time zone, if other times name one."""
        none = np.zeros(len(self.seconds), dtype=bool)
        return none if self.zoned is None or not self.zoned.any() else np.isfinite(self.seconds) & ~self.zoned

    @property
    def in_other_unit(self) -> NDArray[np.bool_]:
        """(n,) bool: numbers in another unit, as milliseconds after seconds, or that are no dates although most are.

        Relative numbers are so where, in the order of size, they and their steps become about 1,000 times as large.
        """
        seconds, none = self.seconds, np.zeros(len(self.seconds), dtype=np.bool_)
        if self.calendar or not self.numbers:
            return (np.abs(seconds) < CALENDAR_FROM_S) if self.numbers else none
        size = np.sort(pd.unique(seconds[seconds > 0.0]))
        last = int(np.argmax(size[1:] / size[:-1])) if len(size) >= _FEWEST_TIMES else 0
        if not 0 < last < len(size) - 2:
            return none
        longer = np.median(np.diff(size[last + 1 :])) / np.median(np.diff(size[: last + 1]))
        goes_on = 500 <= longer <= 2000 and size[last + 1] <= 2000 * size[last]
        return np.asarray(seconds > size[last]) if goes_on else none

    @property
    def are_day_numbers(self) -> bool:
        """Whether the numbers are days of a spreadsheet, or parts of a day, with times of day.

        They are whole seconds of a day, or, rounded, minutes apart, and as seconds would have parts of milliseconds.
        """
        finite = self.seconds[np.isfinite(self.seconds)]
        if not self.numbers or not len(finite) or finite.max() >= _DAY_NUMBERS_TO or finite.min() < 0.0:
            return False
        days = np.sort(pd.unique(finite))
        parts_of_day, dated = days[-1] < 1.0, days[0] >= _DAY_NUMBERS_FROM
        if len(days) < 2 or not (parts_of_day or dated) or np.mean(_off(1000.0 * days) > 1e-3) < 0.5:
            return False
        return bool((_off(_DAY_S * days) < 0.01).all() or (dated and np.median(np.diff(days)) <= _MOST_STEP_DAYS))

    def in_zone(self, zone: str | None, vehicle: NDArray[np.int64]) -> tuple["Times", list[str]]:
        """Return times that name no time zone as times of the clocks of a zone, with its summer time.

        In the hour that the end of summer time repeats, the times of a vehicle are of the first pass until they go
        back, in the order of the source. Where they do not go back, they are of the pass that leaves the shorter gap to
        the vehicle's time before or after.

        Parameters
        ----------
        zone
            Name of the zone; None leaves the times as they are.
        vehicle
            (n,) integers: the vehicle of each time.

        Returns
        -------
        tuple
            The times, NaN where the clock is put forward over them, and notes.
        """
        if zone is None or not self.naive:
            return self, [] if zone is None else [f"its times are numbers or name their time zone: {zone} is not used"]
        wall = pd.Series((self.seconds * 1e6).round()).astype("Int64").astype("datetime64[us]").dt
        passes = [
            wall.tz_localize(zone, ambiguous=np.full(len(self.seconds), summer), nonexistent="NaT")
            for summer in (True, False)
        ]
        first_s, second_s = (_seconds(stamps.dt.tz_convert("UTC")) for stamps in passes)
        frame = pd.DataFrame({"vehicle": vehicle, "wall": self.seconds, "first": first_s, "second": second_s})
        frame = frame[np.isin(vehicle, vehicle[first_s < second_s])]
        second, unsure = _second_passes(frame)
        first_s[second] = second_s[second]
        rule = "in the hour that the end of summer time repeats, and no step back tells which: the nearer pass is taken"
        notes = [f"{counted(unsure, 'time is', 'times are')} {rule}"] if unsure else []
        return replace(self, seconds=first_s, naive=False), notes

    @classmethod
    def from_column(
        cls, column: "pd.Series[Any]", *, unit_s: float | None = None, written: str | None = None
    ) -> "Times":
        """Read a column of times.

        Parameters
        ----------
        column
            Timestamps, numbers, or either as text.
        unit_s
            Seconds per unit of numbers. None recognises seconds, milliseconds, microseconds and nanoseconds since 1970
            by their size and fourteen digits as a date and time, and reads all other numbers as seconds.
        written
            Format of text, as for `strptime`; None for ISO 8601.
        """
        if column.dtype.kind == "M":
            naive = not isinstance(column.dtype, pd.DatetimeTZDtype)
            return cls(_seconds(pd.to_datetime(column, utc=True)), calendar=True, naive=naive)
        if written is not None:
            return cls._from_written(column, written)
        numbers = numbers_in(column).to_numpy(dtype=np.float64, na_value=np.nan)
        if column.dtype.kind in "iuf" or np.isfinite(numbers).sum() * 2 >= column.notna().sum() > 0:
            if unit_s is None and _DIGITS_FROM <= _middle(numbers) < _DIGITS_TO:
                return cls._from_written(pd.Series(np.floor(numbers)), DIGITS)
            return cls.from_numbers(numbers, unit_s=unit_s)
        text = column.astype("str").str.strip().str.replace(r"^(\d{4})/(\d\d?)/", r"\1-\2-", regex=True)
        return cls.from_text(text)

    @classmethod
    def from_text(cls, text: "pd.Series[Any]") -> "Times":
        """Read ISO 8601 text, the letters T and Z in either case; a zone is Z, +01, +0100 or +01:00."""
        plain = text.str.strip().str.upper()
        stamps = pd.to_datetime(plain, format="ISO8601", utc=True, errors="coerce")
        zoned = (stamps.notna() & plain.str.contains(_ZONE, regex=True, na=False)).to_numpy(dtype=np.bool_)
        return cls(_seconds(stamps), calendar=True, naive=not zoned.any(), zoned=zoned)

    @classmethod
    def from_numbers(cls, numbers: NDArray[np.float64], *, unit_s: float | None = None) -> "Times":
        """Convert numeric times, in a unit that is given or derived from their size."""
        middle = _middle(numbers)
        if unit_s is None:
            unit_s = next((unit for least, unit in _BY_SIZE if middle >= least), 1.0)
        seconds = numbers * unit_s if unit_s != 1.0 else numbers
        dated = middle * unit_s >= CALENDAR_FROM_S
        return cls(np.where(np.isfinite(seconds), seconds, np.nan), calendar=dated, numbers=True)

    @classmethod
    def _from_written(cls, column: "pd.Series[Any]", written: str) -> "Times":
        whole = column.dtype.kind == "f" and (column.dropna() % 1 == 0).all()  # with empty values, integers are floats
        text = (column.astype("Int64") if whole else column).astype("string").str.strip()
        stamps = pd.to_datetime(text, format=written, utc=True, errors="coerce")
        return cls(_seconds(stamps), calendar=True, naive="%z" not in written.lower())


def timed(
    table: Table,
    zone: str | None,
    vehicle: NDArray[np.int64],
    *,
    unit_s: float | None,
    written: str | None = None,
    optional: bool = False,
    name: str = "time",
) -> tuple[Times, list[str]]:
    """Read a column of times of a table, and note the rows without a valid time.

    Parameters
    ----------
    table
        Any table with the column.
    zone, vehicle
        As for `Times.in_zone`.
    unit_s, written
        As for `Times.from_column`.
    optional
        Whether times may be missing.
    name
        Our name of the column.

    Returns
    -------
    tuple
        The times, NaN where there is none, and notes.
    """
    column = table.column(name)
    times = Times.from_column(column, unit_s=unit_s, written=written)
    refuse_mixed(table, name, times)
    local, notes = times.in_zone(zone, vehicle)
    skipped = np.isfinite(times.seconds) & np.isnan(local.seconds)
    table.refuse(name, skipped, f"a time that there is: at the begin of summer time the clocks of {zone} skip an hour")
    unknown = np.isnan(times.seconds)
    table.refuse(name, table.stated(name, unknown) if optional else unknown, TIME_RULE)
    late = "within the years to 9999, in seconds since 1970, and in the unit of the others"
    table.refuse(name, np.abs(local.seconds) >= LATEST_S, late)
    return local, notes


def refuse_mixed(table: Table, name: str, times: Times) -> None:
    """Note the rows of a column whose times cannot be of one kind: some with a time zone, or in other units or days."""
    without = times.without_zone
    if without.any() and times.zoned is not None:
        other = int(np.argmax(times.zoned))
        zoned = f"as {table.unit} {table.number[other]}'s {str(table.column(name).iloc[other])[:60]!r}"
        rule = f"some times name a time zone (Z, +01, +01:00), {zoned}, and these do not: give all of them one, or none"
        table.refuse(name, without, f"like the others: {rule}")
    table.refuse(name, times.in_other_unit, MIXED_UNITS)
    table.refuse(name, np.full(len(table), times.are_day_numbers), DAY_NUMBERS)


def moment_of(text: str, zone: str | None = None) -> float | None:
    """Return seconds since 1970 of ISO 8601 text, in `zone`, or UTC, if it names none; None for any other text."""
    read, _ = Times.from_text(pd.Series([text])).in_zone(zone, np.zeros(1, dtype=np.int32))
    seconds = float(read.seconds[0])
    return seconds if np.isfinite(seconds) else None


def in_words(seconds: float, *, calendar: bool) -> str:
    """Format a recorded time as it would be written in a file."""
    if not calendar:
        return f"{seconds:.12g} s"
    return f"{str(np.datetime64(int(seconds), 's')).replace('T', ' ')} UTC"


def _second_passes(frame: pd.DataFrame) -> tuple[NDArray[np.int64], int]:
    """Find the times that are of the second pass of a repeated hour.

    Parameters
    ----------
    frame
        All times of some vehicles, in the order of the source: `vehicle`, the `wall` clock's time, and its `first` and
        `second` reading, which are equal for all times outside the repeated hour.

    Returns
    -------
    tuple
        Their index in the frame, and the number of times in the hour whose pass the order does not tell.
    """
    # A log runs the way in which most of its steps go, forward or newest first.
    steps = np.sign(frame.groupby("vehicle")["wall"].diff())
    newest_first = steps.groupby(frame["vehicle"]).transform("sum") < 0
    frame = frame.iloc[np.lexsort((np.where(newest_first, -1, 1) * np.arange(len(frame)), frame["vehicle"]))]
    frame = frame.assign(hour=(frame["wall"] // _DAY_S).where(frame["first"] < frame["second"]))
    frame = frame[frame["first"].notna()]
    by_hour = [frame["vehicle"], frame["hour"]]
    before, after = frame.shift(), frame.shift(-1)
    from_before = (frame["vehicle"] == before["vehicle"]) & (frame["hour"] != before["hour"])
    to_after = (frame["vehicle"] == after["vehicle"]) & (frame["hour"] != after["hour"])
    back = (
        (frame["vehicle"] == before["vehicle"]) & (frame["hour"] == before["hour"]) & (frame["wall"] < before["wall"])
    )
    passes, told = back.groupby(by_hour).cumsum(), back.groupby(by_hour).transform("any")
    gap_before = (frame["first"] - before["second"]).where(from_before).groupby(by_hour).transform("max")
    gap_after = (after["first"] - frame["second"]).where(to_after).groupby(by_hour).transform("max")
    inside, told = frame["hour"].notna(), told.eq(True)  # noqa: FBT003
    second = inside & np.where(told, passes > 0, gap_after.fillna(np.inf) < gap_before.fillna(np.inf))
    return frame.index[second].to_numpy(), int((inside & ~told).sum())


def _off(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far numbers are from whole numbers."""
    return np.abs(numbers - np.rint(numbers))


def _middle(numbers: NDArray[np.float64]) -> float:
    """Return the median size of the finite numbers; 0 if there are none."""
    finite = numbers[np.isfinite(numbers)]
    return float(np.median(np.abs(finite))) if len(finite) else 0.0


def _seconds(stamps: "pd.Series[pd.Timestamp]") -> NDArray[np.float64]:
    plain = stamps.dt.tz_localize(None).to_numpy().astype("datetime64[us]")
    seconds = plain.astype(np.int64) / 1e6
    seconds[np.isnat(plain)] = np.nan
    return np.asarray(seconds, dtype=np.float64)


_CLOCK = re.compile(r"(?:(\d+):)?(\d{1,2}):([0-5]\d):([0-5]\d(?:\.\d+)?)")
_SUMOS_CLOCK = re.compile(r"(?:(\d+):)?(\d+):(\d+):(\d+(?:\.\d+)?)")
"""Pattern of SUMO's own clock times: SUMO accepts 7:0:0, and 90 minutes."""


def seconds(text: str, *, as_sumo: bool = True) -> float | None:
    """Read seconds, "HH:MM:SS" or "D:HH:MM:SS"; return None for any other text.

    As in SUMO, parts may have fewer digits and be larger than on a clock, unless `as_sumo` is false.
    """
    clock = (_SUMOS_CLOCK if as_sumo else _CLOCK).fullmatch(text.strip())
    if clock:
        days, hours, minutes, rest = (float(part or 0) for part in clock.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + rest
    return finite_number(text)


def time_of_day(text: str) -> float | None:
    """Read "HH:MM", "HH:MM:SS" or seconds, at any hour, as in MATSim; return None for any other text."""
    return seconds(f"{text}:00" if text.count(":") == 1 else text)
