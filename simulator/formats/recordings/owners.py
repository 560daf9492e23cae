"""Stationary data owners, such as vehicles counted at detectors and people who checked in, read from a table."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyproj

from simulator.arrays import FloatArray, Mask
from simulator.files.errors import InputError
from simulator.files.messages import counted, notes_of
from simulator.files.tables import FileFormat, Table
from simulator.files.times import CALENDAR_FROM_S, NAIVE, Times, moment_of, timed
from simulator.formats.recordings.places import owners_of, place_rows, read_rows, without_duplicates
from simulator.roads import RoadNetwork
from simulator.traffic.recording import Recording

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


def read_recording(*, file: Path, roads: RoadNetwork | None, **reading: Any) -> Recording:
    """Read owners as a scenario specifies: `reading` is as for `OwnerOptions`, in the coordinates of the roads."""
    return read_owners(file, OwnerOptions(**reading), crs=None if roads is None else roads.crs)


def read_owners(file: str | Path, reading: OwnerOptions, *, crs: pyproj.CRS | None = None) -> Recording:
    """Read a table of owners; they are in the order of arrival.

    Parameters
    ----------
    file
        One row per owner, or one row per place with a count; see `Table.from_file` for the file formats.
    reading
        Options for reading the file.
    crs
        Coordinate system of the roads; if None, the system of `x` and `y`, or the UTM zone of the places.

    Raises
    ------
    InputError
        For any fault in the file, with file, row, rule and value.
    """
    table, chosen = read_rows(file, columns=reading.columns, format_=reading.format)
    table, site, sites, notes = place_rows(table, chosen, crs=crs, given=reading.crs, window=reading.window)
    rows = pd.DataFrame({"site": site, "count": 1.0})
    if table.has("count"):
        rows["count"] = table.checked_numbers("count", at_least=0)
        table.check()
    rows["arrive_s"], keep, more, epoch_s = _arrivals(table, reading)
    if not table.has("count") and not table.has("owner"):
        words = "name the number of owners of a row as count in traffic.columns, or each row would be one owner"
        table.refuse_unread({*map(str, reading.ignored)}, remedy=f"{words}; and others as ignored = {{0}}")
        table.check()
    table, rows = table.kept(keep), rows[keep]
    keep, again = without_duplicates(table, rows, rule=reading.duplicates)
    notes += more + again
    if reading.one_per == "owner":
        last = _last_of_each(table, rows, keep)
        owners, of_rows = counted(int(last.sum()), "owner"), counted(int(keep.sum()), "row")
        notes.append(f"{table.file}: {owners}, each where it was last in {of_rows}")
        keep = last
    table, rows = table.kept(keep), rows[keep]
    number, rounded = owners_of(table, rows, fractions=reading.fractions)
    notes += rounded
    if not number.any():
        raise InputError([f"{file}: it holds no data owner: every count is 0"])
    each = rows.loc[rows.index.repeat(number)].sort_values("arrive_s", kind="stable")
    arrive_s = np.nan_to_num(each["arrive_s"].to_numpy())
    leave_s = arrive_s + (reading.dwell_s if table.has("time") and reading.dwell_s is not None else np.inf)
    sites = replace(sites, of_owner=each["site"].to_numpy())
    return Recording.of_owners(sites, arrive_s, leave_s, read=notes_of("rows", notes), epoch_s=epoch_s)


def _arrivals(table: Table, reading: OwnerOptions) -> tuple[FloatArray, Mask, list[str], float | None]:
    """Read the times from which the owners in the rows of a table are present.

    Returns
    -------
    tuple
        (rows,) float64: seconds of the run, below 0 for owners present before it starts, NaN if the table has no
        times; (rows,) bool: rows whose time is known and not over before the run starts; notes on what was left out;
        seconds from 1970 to second 0, None if times are no dates.

    Raises
    ------
    InputError
        If times cannot be read, `start` names a time zone and they do not, or no owner is present after the start.
    """
    if not table.has("time"):
        return np.full(len(table), np.nan), np.ones(len(table), dtype=bool), [], None
    start, time_zone = reading.start, reading.time_zone
    # No order of rows tells the two passes of a repeated hour apart: each row is on its own.
    times, repeated = timed(table, time_zone, np.arange(len(table)), unit_s=reading.time_unit_s, optional=True)
    table.check()
    at_s = times.seconds
    known = np.isfinite(at_s)
    notes = [f"{table.file}: {note}" for note in ([NAIVE] if times.naive else repeated)]
    if not known.all():
        untimed = counted(int((~known).sum()), "row")
        notes.append(f"{table.file}: left out {untimed} without a time: {table.rows_in_words(~known)}")
    if not known.any():
        raise InputError([f"{table.file}: no row is left: none that counts has a time"])
    zero = float(at_s[known].min()) if start is None else _start(start, reading, numeric=times.numbers, file=table.file)
    if times.naive and isinstance(start, str) and not Times.from_text(pd.Series([start])).naive:
        raise InputError([f"{table.file}: its times name no time zone, so start must name none, got {start!r}"])
    with np.errstate(invalid="ignore"):
        at_s = at_s - zero
        gone = known & (at_s + (np.inf if reading.dwell_s is None else reading.dwell_s) <= 0)
    if gone.any():
        over = counted(int(gone.sum()), "row")
        notes.append(f"{table.file}: left out {over} whose time ends before the run starts")
    keep = known & ~gone
    if not keep.any():
        raise InputError([f"{table.file}: no row is left: every time ends before start = {start!r}"])
    return at_s, keep, notes, None if times.numbers and zero < CALENDAR_FROM_S else zero


def _start(start: str | float, reading: OwnerOptions, *, numeric: bool, file: str) -> float:
    if numeric:
        try:
            return float(start) * reading.time_unit_s
        except ValueError:
            raise InputError([f"{file}: its times are numbers, so start must be one, got {start!r}"]) from None
    moment = moment_of(start, reading.time_zone) if isinstance(start, str) else None
    if moment is None:
        words = f"its times are dates, so start must be one, as ISO 8601 has them, that no clock skips, got {start!r}"
        raise InputError([f"{file}: {words}"])
    return moment


def _last_of_each(table: Table, rows: pd.DataFrame, keep: Mask) -> Mask:
    """Select the row with the last time of each owner, and the last of rows with equal time; (rows,) bool."""
    owner = table.categories("owner")
    table.refuse("owner", owner.isna() & keep, "the name of an owner")
    table.check()
    moves = pd.DataFrame({"owner": owner, "time": rows["arrive_s"].array})[keep]
    last = moves.sort_values("time", kind="stable").drop_duplicates("owner", keep="last").index
    return np.isin(np.arange(len(table)), last)
