"""The clock of a run: the time of day, or the date and time, of each second, and the second of a moment given so."""

import math
import re
from bisect import bisect_left
from calendar import timegm
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import partial
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from scenarios.field_types import rule

_OF_DAY = re.compile(r"(?:day ([1-9]\d*) )?(\d\d?):(\d\d)(?::(\d\d))?")
_DAY = date(2020, 1, 1)
"""The date of second 0 in files that need one, where the run has none."""
_NO_DATE_S = 1e10
"""Seconds from the start from which on no date is written: three centuries."""
_FORM = 'must be a time of day, as "08:00", "08:00:30" or "day 2 08:00", or a date and time, as "2026-03-29T08:00"'


@dataclass(frozen=True)
class RunClock:
    """The time of second 0 of a run.

    Parameters
    ----------
    start
        Date and time of second 0, in its time zone if it has one; None where nothing is known but seconds of the run.
    dated
        Whether the date of `start` means anything.
    zone
        The time zone.
    """

    start: datetime | None = None
    dated: bool = False
    zone: tzinfo | None = None

    @classmethod
    def starting(cls, start: Any, time_zone: Any = None) -> "RunClock":
        """Return the clock of `scenario.start` and `scenario.time_zone`.

        Raises
        ------
        ValueError
            If one of them is no such value; the message is the rule that it breaks.
        """
        zone = find_zone(time_zone)
        if start is None:
            return cls(zone=zone)
        moment, dated, _ = _read(written(start))
        moment = _in_zone(moment, zone)
        return cls(moment, dated, moment.tzinfo)

    def recorded(self, epoch_s: float) -> "RunClock":
        """Return the clock of recorded data whose second 0 is at `epoch_s` seconds since 1970, in UTC or the zone."""
        return RunClock(datetime.fromtimestamp(epoch_s, self.zone or UTC), dated=True, zone=self.zone or UTC)

    @property
    def zone_name(self) -> str | None:
        """The name of the time zone; None of an offset from UTC, which `text` states."""
        return getattr(self.zone, "key", None)

    @property
    def epoch_s(self) -> int:
        """Seconds from 1970 to second 0, which is taken as UTC without a zone, and of 1 January 2020 without a date."""
        start = self.start or datetime.combine(_DAY, time())
        return round((start if start.tzinfo else start.replace(tzinfo=UTC)).timestamp())

    def at(self, seconds: float) -> datetime:
        """Return date and time of a second of the run, on a clock that has a start."""
        start = self.start or datetime.combine(_DAY, time())
        return _plus(start, timedelta(seconds=seconds))

    def text(self, seconds: float | None) -> str:
        """Return the time of a second of the run as text.

        For example ``2026-03-29 03:30:00+02:00``; ``07:30:00``, or ``day 2 00:10:00``, without a date; ``0:30:00``
        from the start if that is not known.
        """
        if seconds is None or not math.isfinite(seconds):
            return "–"
        if abs(seconds) >= _NO_DATE_S:
            return f"{seconds:.3g} s"
        if self.start is None:
            minutes, rest = divmod(round(seconds), 60)
            return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
        moment = self.at(seconds)
        if self.dated:
            return moment.isoformat(" ")
        day = (moment.date() - self.start.date()).days + 1
        return f"day {day} {moment.time()}" if day != 1 else f"{moment.time()}"

    def aside(self, seconds: float) -> str:
        """Return the time in brackets, to be put behind a number of seconds; nothing if the start is not known."""
        return "" if self.start is None else f" ({self.text(seconds)})"

    @property
    def minutes_axis(self) -> str:
        """The label of an axis of minutes."""
        return "minutes from the start" if self.start is None else f"minutes from {self.text(0.0)}"

    def seconds(self, moment: str) -> float:
        """Return the second of the run at a moment: the first at this time of day, or at this date and time.

        Raises
        ------
        ValueError
            If there is no such moment in the run; the message is the rule that it breaks.
        """
        wall, dated, day = _read(moment)
        if self.start is None:
            raise ValueError("must be seconds of the run, since scenario.start does not state its time")
        if dated and not self.dated:
            raise ValueError("must be a time of day, as scenario.start is")
        if wall.tzinfo and not self.zone:
            raise ValueError("must name no time zone, since scenario.start names none")
        walls = [wall]
        if not dated:  # where the clock is put back, the same time comes twice
            days = [self.start.date() + timedelta(days=more) for more in ((day - 1,) if day else (0, 1))]
            walls = [datetime.combine(day, wall.time().replace(fold=fold)) for day in days for fold in (0, 1)]
        for candidate in walls:
            seconds = _between(self.start, _in_zone(candidate, self.zone))
            if seconds >= 0:
                return seconds
        raise ValueError(f"must not be before the run starts, at {self.text(0.0)}")

    def of_page(self, until_s: float) -> dict[str, Any] | None:
        """Return what a page's script needs to write times: where the time zone's offset changes, up to `until_s`.

        Each part is its first second, the number of seconds from 1970 on the clock's face at second 0, and the offset
        as text.
        """
        if self.start is None:
            return None

        def changed(since: int, second: int) -> bool:
            return self.at(second).utcoffset() != self.at(since).utcoffset()

        firsts = [0] + [
            bisect_left(range(hour + 3600), 1, lo=hour, key=partial(changed, hour))
            for hour in range(0, math.ceil(until_s), 3600)
            if changed(hour, hour + 3600)
        ]
        faces = [(first, self.at(first).replace(microsecond=0)) for first in firsts]
        parts = [[first, timegm(face.timetuple()) - first, face.isoformat()[19:]] for first, face in faces]
        return {"dated": self.dated, "parts": parts}


def find_zone(name: Any) -> ZoneInfo | None:
    """Return a time zone by its name.

    Raises
    ------
    ValueError
        If there is none; the message is the rule that it breaks.
    """
    try:
        return None if name is None else ZoneInfo(name)
    except (KeyError, ValueError, TypeError, OSError):
        raise ValueError('must be the name of a time zone, as "Europe/Berlin"') from None


def written(value: Any) -> Any:
    """Return a date or time, as TOML has them without quotes, as text; any other value as it is."""
    return value.isoformat() if isinstance(value, date | time) else value


def clock_of(tables: Mapping[str, Any]) -> RunClock:
    """Return the clock of a scenario's tables; one without a start where they have none, or a faulty one."""
    heading = tables.get("scenario")
    try:
        return RunClock.starting(heading.get("start"), heading.get("time_zone"))  # type: ignore[union-attr]
    except (AttributeError, ValueError):
        return RunClock()


def _read(text: Any) -> tuple[datetime, bool, int | None]:
    """Return a moment, whether it has a date, and its number of the day if it is a time of day that states one."""
    try:
        if match := _OF_DAY.fullmatch(text):
            day, hour, minute, second = (int(part or 0) for part in match.groups())
            return datetime.combine(_DAY, time(hour, minute, second)), False, day or None
        return datetime.fromisoformat(text), True, None
    except (ValueError, TypeError):
        raise ValueError(_FORM) from None


def _in_zone(moment: datetime, zone: tzinfo | None) -> datetime:
    if zone is None:
        return moment
    there = moment.astimezone(zone) if moment.tzinfo else moment.replace(tzinfo=zone)
    if _plus(there, timedelta()).replace(tzinfo=None) != there.replace(tzinfo=None):
        raise ValueError(f"must be a time that there is: in {zone} the clock is put forward over it")
    return there


def _plus(moment: datetime, by: timedelta) -> datetime:
    """Return a moment later by elapsed time; Python's own sum would ignore that the offset changes."""
    return moment + by if moment.tzinfo is None else (moment.astimezone(UTC) + by).astimezone(moment.tzinfo)


def _between(start: datetime, end: datetime) -> float:
    return ((end.astimezone(UTC) - start.astimezone(UTC)) if start.tzinfo else end - start).total_seconds()


def _moment(value: Any, info: ValidationInfo, clock: RunClock | None = None) -> Any:
    value = written(value)
    if not isinstance(value, str):
        return value
    try:
        return (clock or (info.context or {}).get("clock") or RunClock()).seconds(value)
    except ValueError as fault:
        raise rule(str(fault)) from None


def _of_day(value: Any, info: ValidationInfo) -> Any:
    return _moment(value, info, RunClock(datetime.combine(_DAY, time())))


_Seconds = Annotated[float, Field(ge=0)]
Moment = Annotated[_Seconds, BeforeValidator(_moment, json_schema_input_type=_Seconds | str)]
"""A moment of the run: seconds from its start, or text that `RunClock.seconds` converts to them."""
MomentOfDay = Annotated[_Seconds, BeforeValidator(_of_day, json_schema_input_type=_Seconds | str)]
"""A moment on the clock of a file: its seconds, or a time of day, which is seconds from midnight."""


def _time_zone(text: str) -> str:
    try:
        find_zone(text)
    except ValueError as fault:
        raise rule(str(fault)) from None
    return text


TimeZone = Annotated[str, AfterValidator(_time_zone)]
"""Name of a time zone, as "Europe/Berlin"."""
