"""``[[mechanisms]]``: parameters of each mechanism; all of a scenario's mechanisms answer the same queries.

The section of a built-in mechanism is made from its declaration (`mechanisms.declared`).
"""

import math
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, create_model

from mechanisms.declared import MECHANISMS, REQUIRED, Declared, Parameter
from mechanisms.parameter import ParameterError
from scenarios.errors import RuleViolation
from scenarios.field_types import Name, Probability, number, rule, without_default
from scenarios.kinds import sections_of
from scenarios.rules import Condition, among, bounded, must
from scenarios.section import ByKind, NamedByKind, OwnKind, OwnParameters, Section, ValidFields

SUM_TOLERANCE = 1e-9


def _blank_tag(value: Any) -> str:
    return "<list>" if isinstance(value, list | tuple) else "<number>"


Blank = Annotated[
    Annotated[Probability, Tag("<number>")] | Annotated[tuple[Probability, ...], Field(strict=False), Tag("<list>")],
    Discriminator(_blank_tag),
]


def has_silent_blank(sampling_privacy: NamedByKind) -> bool:
    """Return whether a blank is never 0, as far as is known before the cells are built."""
    given = sampling_privacy.parameters
    if "blank_zero" in given:
        return bool(given["blank_zero"] == 0)
    blank = given.get("blank")
    whole_die = isinstance(blank, tuple) or (given["form"] == "binary" and blank is not None)
    return whole_die and abs(given["sampling"] + _total(blank) - 1) <= SUM_TOLERANCE


def _total(blank: float | tuple[float, ...] | None) -> float:
    return math.fsum(blank) if isinstance(blank, tuple) else blank or 0.0


def _die(valid: ValidFields) -> Iterator[RuleViolation]:
    """Yield a fault for probabilities of one categorical draw that do not sum to one, or exceed it."""
    if not (valid.has("sampling") and {"blank_zero", "blank", "form"} <= valid.keys()):
        return
    if valid["form"] == "binary" and isinstance(valid["blank"], tuple):
        return
    zero, blank = valid["blank_zero"], valid["blank"]
    total = math.fsum([valid["sampling"], zero or 0.0, _total(blank)])
    summands = ["sampling"]
    summands += ["blank_zero"] if zero is not None else []
    summands += ["the sum of blank" if isinstance(blank, tuple) else "blank"] if blank is not None else []
    complete = len(summands) == 3 and (isinstance(blank, tuple) or valid["form"] == "binary")
    at = "sampling" if len(summands) == 1 else "blank_zero" if blank is None else "blank"
    if complete and abs(total - 1) > SUM_TOLERANCE:
        yield RuleViolation((at,), f"{' + '.join(summands)} must be 1, and is {number(total)}", valid[at])
    elif not complete and total > 1 + SUM_TOLERANCE:
        yield RuleViolation((at,), f"{' + '.join(summands)} must be at most 1, and is {number(total)}", valid[at])


class MechanismSection(NamedByKind):
    """The parameters of a mechanism."""

    role = "mechanism"


class PlugInSection(MechanismSection, OwnParameters):
    """A user's mechanism, ``package.module:Class``; its other keys are its parameters."""

    kind: OwnKind
    name: Name = Field(default="", json_schema_extra=without_default)
    """Unique name in key paths and results. Default: the name of the class."""


ONE_NUMBER = Condition(lambda value, _: not isinstance(value, tuple), {"not": {"type": "array"}})
_RULES: dict[str, tuple[Callable[[ValidFields], Iterator[RuleViolation]], ...]] = {
    "sampling_privacy": (
        must("refresh", among(0.0), 'needs form = "multi"', form="binary"),
        must("blank", ONE_NUMBER, 'must be one number where form = "binary"', form="binary"),
        _die,
    ),
    "longitudinal_unary": (bounded("epsilon_first", "below", "epsilon_permanent"),),
    "anonymized_first_attempt": (bounded("shift_yes", "at most", "base"), bounded("shift_no", "at most", "base")),
}
"""The rules between the parameters of a mechanism, by its kind."""


def _checked(parameter: Parameter) -> AfterValidator:
    """Return the check of a value that has the right type and is within its bounds."""

    def check(value: Any) -> Any:
        try:
            return parameter.check(value)
        except ParameterError as error:
            raise rule(error.rule) from None

    return AfterValidator(check)


def _type_of(parameter: Parameter) -> Any:
    """Return the type of a parameter's field, with its bounds."""
    match parameter.type:
        case "probability":
            bounds = Field(gt=0, le=1) if parameter.above_zero else Field(ge=0, le=1)
            checked: Any = Annotated[float, bounds, _checked(parameter)]
        case "number":
            checked = Annotated[float, Field(ge=parameter.least, le=parameter.most)]
        case "integer":
            checked = Annotated[int, Field(ge=parameter.least, le=parameter.most)]
        case "choice":
            checked = Literal[parameter.choices]
        case "probabilities":
            shares: Any = tuple[(Probability,) * parameter.length]  # type: ignore[misc]  # the length is data
            checked = Annotated[shares, Field(strict=False), _checked(parameter)]
        case "blanks":
            checked = Blank
    return checked | None if parameter.default is None else checked


def _declare(declared: Declared) -> None:
    """Make the section class of a mechanism, which registers itself."""
    fields: dict[str, Any] = {"kind": (Literal[declared.kind], ...)}
    for parameter in declared.parameters:
        default = ... if parameter.default is REQUIRED else parameter.default
        fields[parameter.name] = (_type_of(parameter), Field(default, description=parameter.about))
    name, about = f"{declared.class_name}Section", declared.about
    made = create_model(name, __base__=MechanismSection, __module__=__name__, __doc__=about, **fields)
    made.title, made.capabilities, made.rules = declared.title, declared.capabilities, _RULES.get(declared.kind, ())


for _declared in MECHANISMS:
    _declare(_declared)


def __getattr__(name: str) -> type[Section]:
    """Return the section class of a mechanism by its name, with which it is pickled."""
    for section in sections_of("mechanism").values():
        if section.__name__ == name:
            return section
    raise AttributeError(name)


Mechanism = Annotated[MechanismSection, ByKind("mechanism", plug_in=PlugInSection)]
