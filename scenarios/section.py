"""Base class of a scenario's sections: strict types, frozen values, and rules between fields, in plain messages.

Every fault is reported where it is found: a section turns the errors of its fields into plain messages, and checks its
rules between fields for those that are valid, so that a fault in one field does not hide a broken rule about others.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from inspect import get_annotations
from typing import Annotated, Any, ClassVar, Literal, Self, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)
from pydantic_core import CoreSchema, ErrorDetails, InitErrorDetails, PydanticCustomError, core_schema

from scenarios.errors import RuleViolation, suggestion
from scenarios.field_types import PATTERNS, PLUG_IN_PATTERN, Name, unit_of, without_default
from scenarios.kinds import is_own_kind, names_of, register, sections_of
from scenarios.references import trusted_only


class ValidFields(dict[str, Any]):
    """The fields of a section that are valid by themselves, by name; ``None`` for omitted ones."""

    def __init__(self, fields: Iterable[tuple[str, Any]] | Mapping[str, Any] = ()) -> None:
        super().__init__(fields)
        self.inside: dict[str, list[ValidFields]] = {}
        """By field that was given: the valid fields of each section in it, also of sections that have faults."""
        self.checked = ""
        """The field that is being validated."""
        self.outer = self
        """The fields among which missing fields are looked up: for a campaign, the fields of the scenario."""

    def has(self, *names: str) -> bool:
        """Return whether every one of these fields is valid and was given, or has a default."""
        return all(self.get(name) is not None for name in names)

    def violation(self, name: str, rule: str) -> RuleViolation:
        """Return the violation of a rule by the value of one of these fields."""
        return RuleViolation((name,), rule, self.get(name))

    def sections(self, name: str) -> list["ValidFields"]:
        """Return the valid fields of each section in the field `name`; some sections may be invalid."""
        value = self.get(name)
        if name in self.inside or value is None:
            return self.inside.get(name, [])
        sections = value if isinstance(value, tuple) else (value,)
        return [known_of(section) for section in sections if isinstance(section, BaseModel)]

    def section(self, name: str) -> "ValidFields":
        """Return the valid fields of the one section in the field `name`."""
        sections = self.sections(name)
        return sections[0] if len(sections) == 1 else ValidFields()

    def find(self, path: str) -> Any:
        """Return the value of a key, which may be in a section inside this one, as ``columns.lon``.

        Raises
        ------
        KeyError
            If the key is invalid, or there is no such section.
        """
        if self.outer is not self and path.partition(".")[0] not in self:
            return self.outer.find(path)
        *sections, name = path.split(".")
        held = self
        for section in sections:
            held = held.section(section)
        return held[name]


SELECTORS = ("kind", "source", "engine")
"""Keys whose values select the class of a section."""
BrokenRules = Callable[[ValidFields], Iterator[RuleViolation]]
Rules = tuple[BrokenRules, ...]
_open: ContextVar[ValidFields | None] = ContextVar("_open", default=None)
"""The valid fields of the section that is being validated, as far as they are known."""


class Section(BaseModel):
    """A table of the file. Unknown keys, numbers in quotes, NaN and infinities are refused.

    Its validator is built when a section of its class is first read.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)

    @classmethod
    def resolve(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Fill in defaults that depend on other keys, so that a dumped scenario contains them."""
        return given

    rules: ClassVar[Rules] = ()
    """What yields broken rules between the fields of the section: rules of `scenarios.rules`, or functions."""

    role: ClassVar[str] = ""
    """The role of the kinds that extend this class, each under the names in the literal of its key."""
    title: ClassVar[str | Mapping[str, str]] = ""
    """The name, or of attacks what they do, in reports; of a class with several kinds, by kind."""
    capabilities: ClassVar[frozenset[str] | Mapping[str, frozenset[str]]] = frozenset()
    """What other modules ask about a kind; of a class with several kinds, by kind."""
    needs: ClassVar[tuple[str, str] | None] = None
    """A package that may not be installed, and the extra of this project that installs it."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: object) -> None:
        """Register the class as the kinds that its own key names."""
        for key in {*SELECTORS} & get_annotations(cls).keys() if cls.role else ():
            type_ = cls.model_fields[key].annotation
            if get_origin(type_) is Literal:
                register(cls, get_args(type_))

    @classmethod
    def every_rule(cls) -> list[BrokenRules]:
        """Return the rules of the section, after the rules of the sections that it extends."""
        return [rule for base in reversed(cls.__mro__) for rule in vars(base).get("rules", ())]

    @classmethod
    def broken_rules(cls, valid: ValidFields) -> Iterator[RuleViolation]:
        """Yield each broken rule between the fields of the section; paths are relative to it."""
        for rule in cls.every_rule():
            yield from rule(valid)

    @field_validator("*", mode="wrap")
    @classmethod
    def _record(cls, value: Any, validate: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        valid, name = _open.get(), info.field_name
        if valid is None or name is None:
            return validate(value)
        valid.checked, valid.inside[name] = name, []
        valid[name] = checked = validate(value)
        return checked

    @model_validator(mode="wrap")
    @classmethod
    def _check(cls, data: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(data, cls):
            report_inside(known_of(data))
            return validate(data)
        given = cls.resolve(dict(data)) if isinstance(data, dict) else data
        valid, faults = ValidFields(), []
        token = _open.set(valid)
        try:
            section = validate(given)
        except ValidationError as error:
            faults = [fault for details in error.errors(include_url=False) for fault in cls._fault(details, data)]
        finally:
            _open.reset(token)
        if isinstance(data, dict):
            valid.update(cls._omitted(given))
            faults += cls.broken_rules(valid)
        report_inside(valid)
        if faults:
            raise error_of(faults)
        return section

    @classmethod
    def _omitted(cls, given: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """Yield the defaults of omitted fields, and the extra keys of a section that allows them."""
        fields = {info.alias or name: (name, info) for name, info in cls.model_fields.items()}
        for key, (name, info) in fields.items():
            if key not in given and not info.is_required():
                yield name, info.get_default(call_default_factory=True)
        if cls.model_config.get("extra") == "allow":
            yield from ((key, value) for key, value in given.items() if key not in fields)

    @classmethod
    def _fault(cls, error: ErrorDetails, data: Any) -> Iterator[RuleViolation]:
        """Yield the plain fault of a validation error, unless the fault is elsewhere."""
        kind, at, received = error["type"], error["loc"], error["input"]
        if kind == "fault":  # of a section inside this one
            yield RuleViolation((*_without_tags(at[:-1]), *at[-1:]), error["ctx"]["rule"], received)
        elif kind == "extra_forbidden":
            keys = [info.alias or name for name, info in cls.model_fields.items()]
            hint = suggestion(at[-1], keys) or f"; known here: {', '.join(keys)}"
            yield RuleViolation(at, f"unknown key{hint}", received)
        elif kind == "missing":
            yield RuleViolation(at, "is required")
        elif kind == "too_short" and received:
            pass  # pydantic counts valid items only, and each invalid item has a fault of its own
        elif (
            not at or not isinstance(data, dict) or at[0] in data
        ):  # a value filled in from another key has no fault of its own
            yield RuleViolation(_without_tags(at), _words(kind, error), received)


def _without_tags(at: Sequence[str | int]) -> tuple[str | int, ...]:
    """Return a path without the tags of unions, which are written in angle brackets."""
    return tuple(step for step in at if isinstance(step, int) or not step.startswith("<"))


def report_inside(valid: ValidFields) -> None:
    """Add a section's valid fields to the valid fields of the section that it is in."""
    if (outer := _open.get()) is not None:
        outer.inside.setdefault(outer.checked, []).append(valid)


def error_of(faults: Sequence[RuleViolation]) -> ValidationError:
    """Return the validation error with these faults, which an outer section places under its own field."""
    errors = [PydanticCustomError("fault", "{rule}", {"rule": fault.rule}) for fault in faults]
    details = [InitErrorDetails(type=e, loc=f.at, input=f.value) for e, f in zip(errors, faults, strict=True)]
    return ValidationError.from_exception_data("section", details)


@dataclass(frozen=True)
class ByKind:
    """Annotation of a field: its table is read by the section class of its kind, built when it is first needed.

    Parameters
    ----------
    role
        The role of the kinds.
    key
        The key that selects the kind.
    default
        The kind of a table without this key; None if the key is required.
    shape
        The rule for a value that is not a table.
    plug_in
        The section class of a user's own kind; None if there are none.
    """

    role: str
    key: str = "kind"
    default: str | None = None
    shape: str = "must be a table"
    plug_in: type[Section] | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Validate by a function, so that no model is built before it is needed."""
        return core_schema.with_info_plain_validator_function(self._validate)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Describe the union of all models."""
        models = [*dict.fromkeys(sections_of(self.role).values()), *([self.plug_in] if self.plug_in else [])]
        for model in models:
            model.model_rebuild()
        choices = {model.__name__: model.__pydantic_core_schema__ for model in models}
        union = handler(core_schema.tagged_union_schema(choices, discriminator=str))
        for choice in union["oneOf"]:
            selector = handler.resolve_ref_schema(choice)["properties"][self.key]
            if "pattern" in selector:  # a user's own kind, which has none of these names
                selector["not"] = {"enum": [*names_of(self.role)]}
        return union

    def _validate(self, value: Any, info: ValidationInfo) -> Section:
        if isinstance(value, dict):
            name = value.get(self.key, self.default)
        elif isinstance(value, Section):
            name = getattr(value, self.key, None)
        else:
            raise self._refused((), self.shape, value)
        model = sections_of(self.role).get(name) if isinstance(name, str) else None
        if self.plug_in and is_own_kind(self.role, name):
            model = self.plug_in
        if model is None:
            missing = "" if self.key in value else "is required, and "
            raise self._refused((self.key,), missing + self._choices(name), name)
        return model.model_validate(value, context=info.context)

    def _refused(self, at: tuple[str, ...], rule: str, value: Any) -> ValidationError:
        report_inside(ValidFields())
        return error_of([RuleViolation(at, rule, value)])

    def _choices(self, received: Any) -> str:
        names = names_of(self.role)
        or_else = ", or a class of your own as package.module:Class" if self.plug_in else ""
        listed = ", ".join(f'"{name}"' for name in names)
        return f"must be one of {listed}{or_else}{suggestion(received, names)}"


def known_of(section: BaseModel) -> ValidFields:
    """Return every field of a valid section, extra keys included."""
    return ValidFields({**vars(section), **(section.model_extra or {})})


_RULES = {
    "int_type": "must be a whole number{of}",
    "int_from_float": "must be a whole number{of}",
    "int_parsing_size": "must be a smaller whole number",
    "float_type": "must be a number{of}",
    "finite_number": "must be a finite number{of}",
    "string_type": "must be a text in quotes",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "greater_than": "must be above {gt:.12g}{unit}",
    "greater_than_equal": "must be at least {ge:.12g}{unit}",
    "less_than": "must be below {lt:.12g}{unit}",
    "less_than_equal": "must be at most {le:.12g}{unit}",
    "too_short": "must have at least {min_length} item",
    "rule": "{rule}",
}
"""The rule that is broken, by the type of pydantic's error, with the names of the error's context in braces.

``unit`` is the unit of the field, ``of`` the same after "number": " of seconds"; both are empty if it has none.
"""


def _words(kind: str, error: ErrorDetails) -> str:
    """Return the rule that a field breaks, in plain words."""
    context = error.get("ctx", {})
    if kind in _RULES:
        unit = unit_of(next((step for step in reversed(error["loc"]) if isinstance(step, str)), ""))
        return _RULES[kind].format(**context, unit=f" {unit}" if unit else "", of=f" of {unit}" if unit else "")
    if kind == "string_pattern_mismatch":
        return PATTERNS[context["pattern"]]
    if kind == "literal_error":
        expected: str = context["expected"]
        listed = expected.replace("'", '"')
        choices = expected.split("'")[1::2]
        return f"must be {listed}{suggestion(error['input'], choices)}"
    return error["msg"][:1].lower() + error["msg"][1:]


def broken_names(section: ValidFields) -> Iterator[RuleViolation]:
    """Yield a fault for each name in a section's list of mechanisms or campaigns that none of the scenario has."""
    for key in ("mechanisms", "campaigns"):
        items = section.outer.sections(key)
        names = [item["name"] for item in items if item.has("name")]
        for place, wanted in enumerate(section.get(key) or ()):
            if len(names) == len(items) and wanted not in names:
                hint = suggestion(wanted, names) or f"; there are {', '.join(names)}"
                yield RuleViolation((key, place), f"there is no such {key.removesuffix('s')}{hint}", wanted)


class Place(Section):
    """A place on the globe, WGS84 degrees. Latitudes are limited to the range of UTM, to which roads are projected."""

    lon: Annotated[float, Field(ge=-180, le=180)] = 0.0
    """Longitude, degrees east."""
    lat: Annotated[float, Field(ge=-80, le=80)] = 0.0
    """Latitude, degrees north."""


class NamedByKind(Section):
    """A section whose name is its kind if no name is given."""

    kind: str
    name: Name = Field(default="", json_schema_extra=without_default)
    """Unique name in key paths and results. Default: the kind."""

    @classmethod
    def resolve(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Set the name to the kind, or to the class that it names, if no name is given."""
        return {"name": short_name(given.get("kind")), **given}

    @property
    def parameters(self) -> dict[str, Any]:
        """Every key given or defaulted, except name and kind."""
        return self.model_dump(exclude={"name", "kind"}, exclude_none=True)


OwnKind = Annotated[str, Field(pattern=PLUG_IN_PATTERN), trusted_only("its class would have to be imported")]
"""A user's own kind: ``package.module:Class``, or the name under which an installed package provides it."""


def broken_parameters(valid: ValidFields) -> Iterator[RuleViolation]:
    """Yield a fault for each parameter of a user's own kind that is NaN or infinite."""
    for key, value in valid.items():
        yield from _not_finite((key,), value)


def _not_finite(at: tuple[str | int, ...], value: Any) -> Iterator[RuleViolation]:
    if isinstance(value, float) and not math.isfinite(value):
        yield RuleViolation(at, "must be a finite number", value)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _not_finite((*at, key), item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _not_finite((*at, index), item)


class OwnParameters(Section):
    """A user's own kind, whose other keys are its parameters; the last of the sections that it extends."""

    model_config = ConfigDict(extra="allow")

    rules: ClassVar[Rules] = (broken_parameters,)


def short_name(kind: object) -> str:
    """Return the name of the class in the name of a user's kind, or the whole name of an installed kind."""
    return str(kind).rpartition(":")[2]
