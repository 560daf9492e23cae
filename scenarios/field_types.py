"""Types of fields with limits, patterns or units, and the words of the rules that their values break."""

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from scenarios.errors import suggestion

NAME_PATTERN = r"^[A-Za-z0-9._-]+$"
SERVER_PATTERN = r"^(operator:[A-Za-z0-9._-]+/)?(server:[1-9][0-9]{0,8}|mixer)$"
PARTY_PATTERN = (
    r"^((operator:[A-Za-z0-9.*_-]+/)?(server:([1-9][0-9]{0,8}|\*)|mixer|\*)|all|network|vehicles:[1-9][0-9]{0,8})$"
)
PLUG_IN_PATTERN = r"^([A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*|[A-Za-z0-9._-]+)$"

PATTERNS = {
    NAME_PATTERN: "must be of letters, digits, '.', '_' and '-' alone, at least one",
    SERVER_PATTERN: 'must name a server: "server:1" and so on, or "mixer"; of an operator, "operator:A/server:1"',
    PARTY_PATTERN: 'must name a party: "server:1", "operator:A/server:1", "server:*", "mixer", "vehicles:100" or "all"',
    PLUG_IN_PATTERN: "a plug-in is named as package.module:Class, or by the name that an installed package gives it",
}

Name = Annotated[str, Field(pattern=NAME_PATTERN)]
"""Letters, digits, ``.``, ``_`` and ``-``: it goes into file names and key paths."""
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Probability = Annotated[float, Field(ge=0, le=1)]
PositiveProbability = Annotated[float, Field(gt=0, le=1)]
WholeNumber = Annotated[int, BeforeValidator(lambda value: int(value) if _is_whole(value) else value)]
"""A whole number, which may be written as 1e9."""
Whole = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]

_UNITS = {
    "s": "seconds",
    "hours": "hours",
    "m": "metres",
    "miles": "miles",
    "mps": "metres per second",
    "vph": "vehicles per hour",
    "lon": "degrees",
    "lat": "degrees",
}
"""Units of numbers, by the last part of a key's name."""


def unit_of(key: str) -> str:
    """Return the unit of the numbers of a key, in the plural: "seconds" of ``deadline_s``; "" if it has none."""
    return _UNITS.get(key.rpartition("_")[2], "")


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()


def rule(text: str) -> PydanticCustomError:
    """Return the error of one field that breaks a rule."""
    return PydanticCustomError("rule", "{rule}", {"rule": text})


def text_or_number(text: str) -> Callable[[Any], Any]:
    """Return a validator of values that are text or a number, but not a boolean; `words` state the rule."""

    def check(value: Any) -> Any:
        if isinstance(value, str) or (isinstance(value, int | float) and not isinstance(value, bool)):
            return value
        raise rule(text)

    return check


def without_default(schema: dict[str, Any]) -> None:
    """Remove the default from a field's JSON Schema, because it depends on another key."""
    del schema["default"]


def exceeds(left: float, right: float) -> bool:
    """Return whether `left` is above `right` by more than a rounding error; for times or sums of probabilities."""
    return left > right and not math.isclose(left, right, rel_tol=1e-12, abs_tol=1e-12)


def number(value: float) -> str:
    """Return a number as text for a message: shortest form, no trailing ``.0``."""
    return f"{value:.12g}"


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


def size_of(unit: str | float, named: Mapping[str, float]) -> float:
    """Return how many metres, seconds or metres per second one `unit` is, by `METRES` or another table of names."""
    return named[unit] if isinstance(unit, str) else unit
