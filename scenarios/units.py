"""Units of length, time and speed, with their factors to metres and seconds."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from scenarios.section import rule, text_or_number

METRES: Mapping[str, float] = {
    "m": 1.0,
    "metre": 1.0,
    "metres": 1.0,
    "meter": 1.0,
    "meters": 1.0,
    "km": 1000.0,
    "kilometre": 1000.0,
    "kilometres": 1000.0,
    "kilometer": 1000.0,
    "kilometers": 1000.0,
    "ft": 0.3048,
    "foot": 0.3048,
    "feet": 0.3048,
    "mi": 1609.344,
    "mile": 1609.344,
    "miles": 1609.344,
}
"""Number of metres by name of the unit; feet and miles are the international ones."""

SECONDS: Mapping[str, float] = {
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "seconds": 1.0,
    "min": 60.0,
    "minute": 60.0,
    "minutes": 60.0,
    "h": 3600.0,
    "hr": 3600.0,
    "hour": 3600.0,
    "hours": 3600.0,
}
"""Number of seconds by name of the unit."""

METRES_PER_SECOND: Mapping[str, float] = {
    "mps": 1.0,
    "kph": 1000.0 / 3600.0,
    "mph": 1609.344 / 3600.0,
}
"""Number of metres per second by name of the unit."""


_text_or_number = text_or_number("must be the name of a unit, or how much one unit is")


def _one_of(units: Mapping[str, float], base: str) -> Any:
    def check(value: str | float) -> str | float:
        if isinstance(value, str) and value not in units:
            raise rule(f"must be one of {', '.join(units)}, or the number of {base} that one unit is")
        if not isinstance(value, str) and not value > 0:
            raise rule(f"must be above 0: the number of {base} that one unit is")
        return value

    return check


LengthUnit = Annotated[
    str | float,
    Field(union_mode="left_to_right"),
    BeforeValidator(_text_or_number),
    AfterValidator(_one_of(METRES, "metres")),
]
"""A name in `METRES`, or the number of metres that one unit is."""
TimeUnit = Annotated[
    str | float,
    Field(union_mode="left_to_right"),
    BeforeValidator(_text_or_number),
    AfterValidator(_one_of(SECONDS, "seconds")),
]
"""A name in `SECONDS`, or the number of seconds that one unit is."""
SpeedUnit = Annotated[
    str | float,
    Field(union_mode="left_to_right"),
    BeforeValidator(_text_or_number),
    AfterValidator(_one_of(METRES_PER_SECOND, "metres per second")),
]
"""A name in `METRES_PER_SECOND`, or the number of metres per second that one unit is."""


def in_metres(unit: str | float) -> float:
    """Return the number of metres in one `unit`."""
    return METRES[unit] if isinstance(unit, str) else unit


def in_seconds(unit: str | float) -> float:
    """Return the number of seconds in one `unit`."""
    return SECONDS[unit] if isinstance(unit, str) else unit


def in_mps(unit: str | float) -> float:
    """Return the number of metres per second in one `unit`."""
    return METRES_PER_SECOND[unit] if isinstance(unit, str) else unit
