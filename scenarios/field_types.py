"""Types of fields with limits or patterns, and the words of the rules that their values break."""

import math
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

NAME_PATTERN = r"^[A-Za-z0-9._-]+$"
SERVER_PATTERN = r"^(server:[1-9][0-9]{0,8}|mixer)$"
PARTY_PATTERN = r"^(server:([1-9][0-9]{0,8}|\*)|all|mixer|network|vehicles:[1-9][0-9]{0,8})$"
PLUG_IN_PATTERN = r"^([A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*|[A-Za-z0-9._-]+)$"

PATTERNS = {
    NAME_PATTERN: "must be of letters, digits, '.', '_' and '-' alone, at least one",
    SERVER_PATTERN: 'must name a server: "server:1" and so on, or "mixer"',
    PARTY_PATTERN: 'must name a party: "server:1" …, "server:*", "mixer", "network", "vehicles:100" …, or "all"',
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
