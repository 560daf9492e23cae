"""Times of a recording: text or numbers, converted to seconds.

Fixes (recorded positions) of one source in their original order, and the tracks of the vehicles between them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from simulator.files.text_table import numbers_in

CALENDAR_FROM_S = 1e8
"""Numbers from this value on are seconds since 1970 (3 March 1973 and later); smaller numbers are relative."""

_BY_SIZE = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))
"""Smallest numbers that are read as nano-, micro- or milliseconds since 1970, with the unit in seconds."""

LATEST_S = 253_402_300_800.0
"""The end of the year 9999: later values are not times."""

MIXED_ZONES = "some times name a time zone (Z, +01, +01:00) and these do not: give all of them one, or none"
NAIVE = "times without a time zone are taken as UTC"
RULE = "a time: ISO 8601 text (2008-02-03 00:00:32), a number, or as time_format says"

DIGITS = "%Y%m%d%H%M%S"
"""Format of numbers of fourteen digits from 1900 on: as milliseconds they would be in the year 2572 or later."""

_DIGITS_FROM, _DIGITS_TO = 1.9e13, 2.2e13
_ZONE = r"[T\s]\s*\d.*(?:Z|[+-]\d\d?(?:\d\d|:\d\d?)?)$"
"""Pattern of a time zone after a time of day, so that the last two digits of a date alone are not a zone."""


@dataclass(frozen=True, eq=False)
class Times:
    """Times of fixes.

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
    """

    seconds: npt.NDArray[np.float64]
    calendar: bool
    naive: bool = False
    zoned: npt.NDArray[np.bool_] | None = None

    @property
    def without_zone(self) -> npt.NDArray[np.bool_]:
        """(n,) bool: times without a time zone, if other times name one."""
        none = np.zeros(len(self.seconds), dtype=bool)
        return none if self.zoned is None or not self.zoned.any() else np.isfinite(self.seconds) & ~self.zoned

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
        if isinstance(column.dtype, pd.DatetimeTZDtype) or column.dtype.kind == "M":
            return cls._from_stamps(column)
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
    def from_numbers(cls, numbers: npt.NDArray[np.float64], *, unit_s: float | None = None) -> "Times":
        """Convert numeric times, in a unit that is given or derived from their size."""
        middle = _middle(numbers)
        if unit_s is None:
            unit_s = next((unit for least, unit in _BY_SIZE if middle >= least), 1.0)
        seconds = numbers * unit_s if unit_s != 1.0 else numbers
        return cls(np.where(np.isfinite(seconds), seconds, np.nan), calendar=middle * unit_s >= CALENDAR_FROM_S)

    @classmethod
    def _from_written(cls, column: "pd.Series[Any]", written: str) -> "Times":
        whole = column.dtype.kind == "f" and (column.dropna() % 1 == 0).all()  # with empty values, integers are floats
        text = (column.astype("Int64") if whole else column).astype("string").str.strip()
        stamps = pd.to_datetime(text, format=written, utc=True, errors="coerce")
        return cls(_seconds(stamps), calendar=True, naive="%z" not in written.lower())

    @classmethod
    def _from_stamps(cls, column: "pd.Series[Any]") -> "Times":
        naive = not isinstance(column.dtype, pd.DatetimeTZDtype)
        stamps = pd.to_datetime(column, utc=True)
        return cls(_seconds(stamps), calendar=True, naive=naive)


def moment_of(text: str) -> float | None:
    """Return seconds since 1970 of ISO 8601 text, UTC if it names no zone; None for any other text."""
    seconds = float(Times.from_text(pd.Series([text])).seconds[0])
    return seconds if np.isfinite(seconds) else None


def in_words(seconds: float, *, calendar: bool) -> str:
    """Format a recorded time as it would be written in a file."""
    if not calendar:
        return f"{seconds:.12g} s"
    return f"{str(np.datetime64(int(seconds), 's')).replace('T', ' ')} UTC"


def _middle(numbers: npt.NDArray[np.float64]) -> float:
    """Return the median size of the finite numbers; 0 if there are none."""
    finite = numbers[np.isfinite(numbers)]
    return float(np.median(np.abs(finite))) if len(finite) else 0.0


def _seconds(stamps: "pd.Series[pd.Timestamp]") -> npt.NDArray[np.float64]:
    plain = stamps.dt.tz_localize(None).to_numpy().astype("datetime64[us]")
    seconds = plain.astype(np.int64) / 1e6
    seconds[np.isnat(plain)] = np.nan
    return np.asarray(seconds, dtype=np.float64)


SHOWN = 20

FloatArray = npt.NDArray[np.float64]
Chosen = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Fixes:
    """Fixes of one file, or of a table given from Python.

    Attributes
    ----------
    source
        Name of the file, for the beginning of messages.
    vehicle
        (n,) int32, index into `names`; -1 where the source names no vehicle.
    names
        Names of the vehicles.
    times
        (n,) seconds.
    lon, lat
        (n,) float64, WGS84 degrees.
    speed_mps
        (n,) float64, NaN where no speed was recorded.
    place
        (n,) int64: line or row number of each fix.
    place_word
        "line", "row" or "point".
    ascending
        Whether the format guarantees ascending times.
    notes
        Notes on what was left out while reading.
    """

    source: str
    vehicle: npt.NDArray[np.int32]
    names: Sequence[str]
    times: Times
    lon: FloatArray
    lat: FloatArray
    speed_mps: FloatArray
    place: npt.NDArray[np.int64]
    place_word: str = "row"
    ascending: bool = False
    notes: tuple[str, ...] = ()

    @classmethod
    def from_lists(
        cls,
        source: str,
        vehicle: Sequence[str],
        times: Times,
        lon: Sequence[float] | FloatArray,
        lat: Sequence[float] | FloatArray,
        *,
        place: Sequence[int],
        place_word: str,
        speed_mps: Sequence[float] | FloatArray | None = None,
        ascending: bool = True,
        notes: tuple[str, ...] = (),
    ) -> "Fixes":
        """Build fixes from lists, with vehicles by name."""
        codes, names = pd.factorize(np.asarray(vehicle, dtype=object))
        return cls(
            source,
            codes.astype(np.int32),
            [str(name) for name in names],
            times,
            np.asarray(lon, dtype=np.float64),
            np.asarray(lat, dtype=np.float64),
            np.full(len(codes), np.nan) if speed_mps is None else np.asarray(speed_mps, dtype=np.float64),
            np.asarray(place, dtype=np.int64),
            place_word,
            ascending,
            notes,
        )

    def __len__(self) -> int:
        return len(self.vehicle)

    def faults(self, received: Mapping[str, "pd.Series[Any]"] | None = None) -> Iterator[str]:
        """Yield the faults of individual fixes: source, lines or rows, rule, first value received.

        Parameters
        ----------
        received
            Original columns, by "time", "lon" and "lat", to quote invalid times and numbers.
        """
        yield from self._fault(self.vehicle < 0, "vehicle must be named", None)
        yield from self._unread(~np.isfinite(self.times.seconds), f"time must be {RULE}", ("time",), received)
        yield from self._unread(self.times.without_zone, MIXED_ZONES, ("time",), received)
        far = np.abs(self.times.seconds) >= LATEST_S
        yield from self._fault(far, "time must be within the years to 9999, in seconds since 1970", self.times.seconds)
        lost = ~(np.isfinite(self.lon) & np.isfinite(self.lat))
        yield from self._unread(lost, "lon and lat must be numbers", ("lon", "lat"), received)
        high = np.abs(self.lat) > 90
        swapped = high & (np.abs(self.lat) <= 180) & (np.abs(self.lon) <= 90)
        hint = "; longitude and latitude look swapped" if high.any() and swapped.sum() * 2 > high.sum() else ""
        yield from self._fault(high, f"lat must be -90 … 90 degrees{hint}", self.lat)
        yield from self._fault(np.abs(self.lon) > 180, "lon must be -180 … 180 degrees", self.lon)
        with np.errstate(invalid="ignore"):
            yield from self._fault(self.speed_mps < 0, "speed must not be below 0", self.speed_mps)

    def where(self, chosen: Chosen) -> str:
        """Return the source and the lines or rows of some fixes, at most the first 20."""
        places = self.place[chosen]
        shown = ", ".join(map(str, places[:SHOWN].tolist()))
        many = f" … ({len(places):,} in all)" if len(places) > SHOWN else ""
        return f"{self.source}: {self.place_word}{'s' if len(places) > 1 else ''} {shown}{many}"

    def _unread(
        self, wrong: Chosen, rule: str, names: Sequence[str], received: Mapping[str, "pd.Series[Any]"] | None
    ) -> Iterator[str]:
        if wrong.any():
            row = int(np.argmax(wrong))
            came = {} if received is None else {name: received[name].iloc[row] for name in names}
            values = ["nothing" if pd.isna(value) else repr(str(value)[:60]) for value in came.values()]
            yield f"{self.where(wrong)}: {rule}{', got ' + ' and '.join(values) if values else ''}"

    def _fault(self, wrong: Chosen, rule: str, values: FloatArray | None) -> Iterator[str]:
        if wrong.any():
            got = "" if values is None else f", got {values[wrong][0]:.12g}"
            yield f"{self.where(wrong)}: {rule}{got}"


@dataclass(frozen=True, eq=False, repr=False)
class Tracks:
    """Tracks of vehicles: one leg between consecutive waypoints. A waypoint is a fix, or the end of a link on a path.

    Attributes
    ----------
    first
        (vehicles + 1,) int64: vehicle v owns the waypoints first[v]:first[v + 1].
    time_s
        (waypoints,) float64, seconds of the run, ascending within a vehicle.
    xy
        (waypoints, 2) float64, metres.
    known
        (waypoints,) bool: whether the leg from here is known; false if the next fix is too late, and at the last one.
    recorded_mps
        (waypoints,) float32: recorded speed, NaN where no speed was recorded.
    going_mps
        (waypoints,) float32: distance divided by time of the leg from here, 0 where the leg is not known.
    link
        (waypoints,) int32: link of the leg, -1 for a straight line; None if the tracks are not matched.
    leaves_at, comes_to
        (waypoints,) float64: fractions of that link at which the leg begins and ends; None if `link` is None.
    """

    first: npt.NDArray[np.int64]
    time_s: FloatArray
    xy: FloatArray
    known: npt.NDArray[np.bool_]
    recorded_mps: npt.NDArray[np.float32]
    going_mps: npt.NDArray[np.float32]
    link: npt.NDArray[np.int32] | None = None
    leaves_at: FloatArray | None = None
    comes_to: FloatArray | None = None

    @classmethod
    def straight(
        cls, first: npt.NDArray[np.int64], time_s: FloatArray, xy: FloatArray, speed_mps: FloatArray, *, gap_s: float
    ) -> "Tracks":
        """Join consecutive fixes by straight lines if they are at most `gap_s` apart in time."""
        follows = np.ones(len(time_s), dtype=bool)
        follows[first[1:] - 1] = False
        lasts_s = np.append(np.diff(time_s), np.inf)
        known = follows & (lasts_s <= gap_s)
        metres = np.append(np.hypot(*np.diff(xy, axis=0).T), 0.0)
        going = np.zeros(len(time_s))
        going[known] = metres[known] / lasts_s[known]
        return cls(first, time_s, xy, known, speed_mps.astype(np.float32), going.astype(np.float32))

    @property
    def vehicles(self) -> int:
        """Number of vehicles."""
        return len(self.first) - 1

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(held.nbytes for field in fields(self) if (held := getattr(self, field.name)) is not None)
