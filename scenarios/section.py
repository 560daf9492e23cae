"""Base classes of a scenario's sections: strict types, frozen values, and rules between fields."""

import math
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from scenarios.errors import RuleViolation

NAME_PATTERN = r"^[A-Za-z0-9._-]+$"

SERVER_PATTERN = r"^(server:[1-9][0-9]{0,8}|mixer)$"

PARTY_PATTERN = r"^(server:[1-9][0-9]{0,8}|mixer|network|vehicles:[1-9][0-9]{0,8})$"

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


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()


class ValidFields(dict[str, Any]):
    """The fields of a section that are valid by themselves, by name; ``None`` for omitted ones."""

    def has(self, *names: str) -> bool:
        """Return whether every one of these fields is valid and was given, or has a default."""
        return all(self.get(name) is not None for name in names)


class Section(BaseModel):
    """A table of the file. Unknown keys, numbers in quotes, NaN and infinities are refused.

    Rules between fields are stated once, in `broken_rules`, for the fields that are valid. They are therefore checked
    however a section is made, and a fault in one field does not hide a broken rule about the others.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    @classmethod
    def resolve(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Fill in defaults that depend on other keys, so that a dumped scenario contains them."""
        return given

    @classmethod
    def broken_rules(cls, known: ValidFields) -> Iterator[RuleViolation]:  # noqa: ARG003 - for subclasses
        """Yield each broken rule between the fields of the section; paths are relative to it."""
        yield from ()

    @model_validator(mode="before")
    @classmethod
    def _resolve(cls, data: Any) -> Any:
        return cls.resolve(dict(data)) if isinstance(data, dict) else data

    @model_validator(mode="after")
    def _keep_rules(self) -> Self:
        refuse(list(self.broken_rules(known_of(self))))
        return self


class Place(Section):
    """A place on the globe, WGS84 degrees. Latitudes are limited to the range of UTM, to which roads are projected."""

    lon: Annotated[float, Field(ge=-180, le=180)] = 0.0
    """Longitude, degrees east."""
    lat: Annotated[float, Field(ge=-80, le=80)] = 0.0
    """Latitude, degrees north."""


def known_of(section: BaseModel) -> ValidFields:
    """Return every field of a valid section, extra keys included."""
    return ValidFields({**vars(section), **(section.model_extra or {})})


def refuse(breaches: list[RuleViolation]) -> None:
    """Raise one error with all `breaches`, if there are any, which pydantic turns into a validation error."""
    if breaches:
        rules = "; ".join(breach.rule for breach in breaches)
        raise PydanticCustomError("broken_rules", "{rules}", {"rules": rules, "breaches": breaches})


def rule(words: str) -> PydanticCustomError:
    """Return the error of one field that breaks the rule in `words`."""
    return PydanticCustomError("rule", "{rule}", {"rule": words})


def text_or_number(words: str) -> Callable[[Any], Any]:
    """Return a validator of values that are text or a number, but not a boolean; `words` state the rule."""

    def check(value: Any) -> Any:
        if isinstance(value, str) or (isinstance(value, int | float) and not isinstance(value, bool)):
            return value
        raise rule(words)

    return check


def tag_by(key: str) -> Callable[[Any], str | None]:
    """Return the function that selects the member of a union by the text at `key`.

    Tags are written in angle brackets, which a bare key of a TOML file cannot contain, so they can be distinguished
    from keys in the path of an error.
    """

    def tag(value: Any) -> str | None:
        found = value.get(key) if isinstance(value, dict) else getattr(value, key, None)
        return f"<{found}>" if isinstance(found, str) else None

    return tag


def without_default(schema: dict[str, Any]) -> None:
    """Remove the default from a field's JSON Schema, because it depends on another key."""
    del schema["default"]


def exceeds(left: float, right: float) -> bool:
    """Return whether `left` is above `right` by more than a rounding error; for times or sums of probabilities."""
    return left > right and not math.isclose(left, right, rel_tol=1e-12, abs_tol=1e-12)


def number(value: float) -> str:
    """Return a number as text for a message: shortest form, no trailing ``.0``."""
    return f"{value:.12g}"


class MechanismSection(Section):
    """A mechanism: its kind, its name in results, and its parameters."""

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the mechanism: every key given or defaulted, except its name and kind."""
        return self.model_dump(exclude={"name", "kind"}, exclude_none=True)


class NamedByKind(MechanismSection):
    """A mechanism whose name is its kind if no name is given."""

    kind: str
    name: Name = Field(default="", json_schema_extra=without_default)
    """Unique name in key paths and results. Default: the kind."""

    @classmethod
    def resolve(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Set the name to the kind if no name is given."""
        return {"name": str(given.get("kind")), **given}
