"""Moments: when the owners of a table are there."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from simulator.files.counted import counted
from simulator.traffic.errors import TrafficError
from simulator.traffic.static.rows import Rows
from simulator.traffic.trace.times import MIXED_ZONES, NAIVE, Times, moment_of


@dataclass(frozen=True, eq=False)
class Moments:
    """When the rows of a table begin to count.

    Attributes
    ----------
    arrive_s
        (rows,) float64: seconds of the run, below 0 of those who are there when it starts; None where the table has
        no times.
    keep
        (rows,) bool: whose time is known and not over before the run starts.
    notes
        What was left out, one sentence each.
    """

    arrive_s: npt.NDArray[np.float64] | None
    keep: npt.NDArray[np.bool_]
    notes: tuple[str, ...]

    @classmethod
    def from_rows(cls, rows: Rows, *, start: str | float | None, unit_s: float, dwell_s: float | None) -> Self:
        """Read the times.

        Parameters
        ----------
        rows
            Those that count.
        start
            The time that is the run's 0, as the file writes times; None for the earliest.
        unit_s
            Seconds that one is, where times are numbers.
        dwell_s
            How long an owner stays; None for ever. Who came before the start is there from 0 on, unless gone by then.

        Raises
        ------
        TrafficError
            If times cannot be read, `start` names a time zone and they do not, or no owner is there after the start.
        """
        if not rows.has("time"):
            return cls(None, np.ones(len(rows), dtype=bool), ())
        at_s, wrong, numeric, naive = _seconds(rows, unit_s)
        if wrong.any():
            rule = "must be a number, as the others are" if numeric else "must be a date and time, as ISO 8601 has them"
            raise TrafficError([rows.fault("time", wrong, rule)])
        known = np.isfinite(at_s)
        notes = [f"{rows.file}: {NAIVE}"] if naive else []
        if not known.all():
            untimed = counted(int((~known).sum()), "row")
            notes.append(f"{rows.file}: left out {untimed} without a time: {rows.words(~known)}")
        if not known.any():
            raise TrafficError([f"{rows.file}: no row is left: none that counts has a time"])
        zero = float(at_s[known].min()) if start is None else _start(start, unit_s, numeric=numeric, file=rows.file)
        if naive and isinstance(start, str) and not Times.from_text(pd.Series([start])).naive:
            raise TrafficError([f"{rows.file}: its times name no time zone, so start must name none, got {start!r}"])
        with np.errstate(invalid="ignore"):
            at_s = at_s - zero
            gone = known & (at_s + (np.inf if dwell_s is None else dwell_s) <= 0)
        if gone.any():
            over = counted(int(gone.sum()), "row")
            notes.append(f"{rows.file}: left out {over} whose time is over before the run starts")
        keep = known & ~gone
        if not keep.any():
            raise TrafficError([f"{rows.file}: no row is left: every time is over before start = {start!r}"])
        return cls(at_s, keep, tuple(notes))


def _seconds(rows: Rows, unit_s: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_], bool, bool]:
    """Return times in seconds, NaN of nothing; which are unreadable; whether they are numbers; and whether naive.

    Raises
    ------
    TrafficError
        If some rows name a time zone and others do not.
    """
    column = rows.frame["time"]
    if pd.api.types.is_datetime64_any_dtype(column):
        stamps = Times.from_column(column)
        return stamps.seconds, np.zeros(len(rows), dtype=bool), False, stamps.naive
    numbers, odd = rows.numbers("time")
    if np.isfinite(numbers).sum() >= odd.sum():
        return numbers * unit_s, odd, True, False
    text = rows.texts("time")
    read = Times.from_text(text)
    if read.without_zone.any():
        raise TrafficError([rows.fault("time", read.without_zone, MIXED_ZONES)])
    return read.seconds, np.isnan(read.seconds) & text.notna().to_numpy(dtype=bool), False, read.naive


def _start(start: str | float, unit_s: float, *, numeric: bool, file: str) -> float:
    if numeric:
        try:
            return float(start) * unit_s
        except ValueError:
            raise TrafficError([f"{file}: its times are numbers, so start must be one, got {start!r}"]) from None
    moment = moment_of(start) if isinstance(start, str) else None
    if moment is None:
        words = f"its times are dates, so start must be one, as ISO 8601 has them, got {start!r}"
        raise TrafficError([f"{file}: {words}"])
    return moment
