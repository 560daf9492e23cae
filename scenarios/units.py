"""Units of length, time and speed, with their factors to metres and seconds."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from scenarios.field_types import rule, text_or_number
from scenarios.suggestions import suggestion

METRES: Mapping[str, float] = {
    **dict.fromkeys(("m", "metre", "metres", "meter", "meters"), 1.0),
    **dict.fromkeys(("km", "kilometre", "kilometres", "kilometer", "kilometers"), 1000.0),
    **dict.fromkeys(("ft", "foot", "feet"), 0.3048),
    **dict.fromkeys(("mi", "mile", "miles"), 1609.344),
}
"""Number of metres by name of the unit; feet and miles are the international ones."""

SECONDS: Mapping[str, float] = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3600.0),
}
"""Number of seconds by name of the unit."""

METRES_PER_SECOND: Mapping[str, float] = {"mps": 1.0, "kph": 1000.0 / 3600.0, "mph": 1609.344 / 3600.0}
"""Number of metres per second by name of the unit."""


def _unit(units: Mapping[str, float], base: str) -> BeforeValidator:
    def check(value: Any) -> Any:
        text_or_number("must be the name of a unit, or how much one unit is")(value)
        if isinstance(value, str) and value not in units:
            text = f"must be one of {', '.join(units)}, or the number of {base} that one unit is"
            raise rule(text + suggestion(value, units))
        if not isinstance(value, str) and value <= 0:
            raise rule(f"must be above 0: the number of {base} that one unit is")
        return value

    return BeforeValidator(check)


_EITHER = Field(union_mode="left_to_right")

LengthUnit = Annotated[str | float, _EITHER, _unit(METRES, "metres")]
"""A name in `METRES`, or the number of metres that one unit is."""
TimeUnit = Annotated[str | float, _EITHER, _unit(SECONDS, "seconds")]
"""A name in `SECONDS`, or the number of seconds that one unit is."""
SpeedUnit = Annotated[str | float, _EITHER, _unit(METRES_PER_SECOND, "metres per second")]
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
