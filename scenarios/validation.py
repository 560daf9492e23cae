"""Validation of a parsed file: a scenario, or all faults with their key paths."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Tag, TypeAdapter, ValidationError, create_model

from scenarios.attacks import attack_tag
from scenarios.cells import cells_tag
from scenarios.error_messages import choice_words, suggestion, words_for
from scenarios.errors import Fault, RuleViolation, write_path
from scenarios.mechanisms import mechanism_tag
from scenarios.permissions import Permissions
from scenarios.refinements import refinement_tag
from scenarios.release import release_tag
from scenarios.roads import roads_tag
from scenarios.rules import Outline, broken_between_sections
from scenarios.scenario import Scenario
from scenarios.section import Section, ValidFields, known_of
from scenarios.traffic import traffic_tag

UNTAGGED = ""

Alternatives = Mapping[str, type[BaseModel]]
"""Models by the tag that selects them; the tag of a field with only one model is `UNTAGGED`."""


def alternatives(annotation: Any, tag: str = UNTAGGED) -> Alternatives:
    """Return the models inside a type: the members of a union, the items of a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {tag: annotation}
    found: dict[str, type[BaseModel]] = {}
    if get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        tags = [mark.tag for mark in metadata if isinstance(mark, Tag)]
        return alternatives(inner, tags[0] if tags else tag)
    for inner in get_args(annotation):
        found |= alternatives(inner, tag)
    return found


def models_along(
    root: type[BaseModel], loc: tuple[str | int, ...], *, key_last: bool
) -> tuple[tuple[str | int, ...], Alternatives]:
    """Follow the path of a validation error through the schema.

    Parameters
    ----------
    root
        Model of the whole file.
    loc
        Path of the error, including the tags of unions.
    key_last
        Whether the path is certain to end with a key, known or unknown.

    Returns
    -------
    at : tuple
        The path without the tags, as it is in the file.
    models : Alternatives
        Possible models of the table that holds the last key; narrowed to one, `UNTAGGED`, by a tag along the path.
    """
    at: list[str | int] = []
    models: Alternatives = {UNTAGGED: root}
    owner = models
    for depth, step in enumerate(loc):
        last = depth == len(loc) - 1
        if isinstance(step, int):
            at.append(step)
        elif step.startswith("<") and not (last and key_last):
            chosen = models.get(step)
            models = {} if chosen is None else {UNTAGGED: chosen}
        else:
            at.append(step)
            owner = models
            models = _inside(models.get(UNTAGGED), step)
    return tuple(at), owner


def _inside(model: type[BaseModel] | None, key: str) -> Alternatives:
    fields = {} if model is None else model.model_fields
    for name, info in fields.items():
        if key == (info.alias or name):
            return alternatives(info.annotation)
    return {}


At = tuple[str | int, ...]

_TAGS: Mapping[str, Callable[[Any], str | None]] = {
    "roads": roads_tag,
    "cells": cells_tag,
    "traffic": traffic_tag,
    "mechanisms": mechanism_tag,
    "refinements": refinement_tag,
    "release": release_tag,
    "attacks": attack_tag,
}


_LISTS = ("campaigns", "mechanisms", "refinements", "attacks")

_SCENARIO = TypeAdapter(Scenario)


class _Error(NamedTuple):
    """A validation error at a place in the file; its path has no tags of unions."""

    at: At
    kind: str
    message: str
    context: Mapping[str, Any]
    received: Any
    models: Alternatives


def validate(
    raw: dict[str, Any], folder: Path, *, permissions: Permissions | None = None, **options: Any
) -> Scenario | list[Fault]:
    """Check a parsed file.

    Parameters
    ----------
    raw
        The file as parsed.
    folder
        Folder to which file references are relative.
    permissions
        Permissions of the scenario; if None, those of the environment variables.
    options
        Options of pydantic's `model_validate`.

    Returns
    -------
    Scenario or list of Fault
        The scenario if it has no fault; else all faults, in the order of the sections.
    """
    permissions = permissions or Permissions.of("given as tables")
    context = {"folder": folder, "given": raw, "told": set(), "permissions": permissions}
    try:
        return _SCENARIO.validate_python(raw, context=context, **options)
    except ValidationError as error:
        errors = [_located(details["loc"], details) for details in error.errors(include_url=False)]
    breaches = [*_from_errors(errors, raw), *_from_rules(errors, raw, folder)]
    breaches.sort(key=lambda breach: _order(breach.at))
    return [Fault(write_path(breach.at, raw), breach.rule, _received(breach, raw)) for breach in breaches]


def _located(loc: At, details: Mapping[str, Any]) -> _Error:
    kind = details["type"]
    at, models = models_along(Scenario, loc, key_last=kind in {"missing", "extra_forbidden"})
    received = None if kind == "missing" else details["input"]
    return _Error(at, kind, details["msg"], details.get("ctx", {}), received, models)


def _from_errors(errors: Iterable[_Error], raw: dict[str, Any]) -> Iterator[RuleViolation]:
    """Yield the faults of single fields, and the broken rules of sections whose fields are all valid."""
    for error in errors:
        match error.kind:
            case "broken_rules":
                if error.at:  # rules between sections are checked in _from_rules
                    for breach in error.context["breaches"]:
                        yield breach._replace(at=(*error.at, *breach.at))
            case "extra_forbidden":
                known = [info.alias or name for name, info in error.models[UNTAGGED].model_fields.items()]
                hint = suggestion(error.at[-1], known) or f"; known here: {', '.join(known)}"
                yield RuleViolation(error.at, f"unknown key{hint}", error.received)
            case "choice":
                yield _choice(error)
            case "missing":
                yield RuleViolation(error.at, words_for(error.kind, error.message, error.context, None))
            case "too_short" if error.received:
                pass  # pydantic counts valid items only, and each invalid item has a fault of its own
            case _:
                at = _as_written(error.at, raw)
                if at is not None:
                    words = words_for(error.kind, error.message, error.context, error.received)
                    yield RuleViolation(at, _section_words(error, words), error.received)


def _section_words(error: _Error, words: str) -> str:
    listed = error.kind in {"tuple_type", "too_short"} and error.at in {(name,) for name in _LISTS}
    return f"{words}, of tables written [[{error.at[0]}]]" if listed else words


def _choice(error: _Error) -> RuleViolation:
    key = error.context["key"]
    if not isinstance(error.received, dict):
        return RuleViolation(error.at, error.context.get("shape", "must be a table"), error.received)
    at = (*error.at, key)
    if key not in error.received:
        return RuleViolation(at, f"is required, and {choice_words(error.context, None)}")
    return RuleViolation(at, choice_words(error.context, error.received[key]), error.received[key])


def _as_written(at: At, raw: Any) -> At | None:
    """Return the place in the file; ``None`` for a key filled in from another key, which then has the fault."""
    here = raw
    for depth, step in enumerate(at):
        if isinstance(here, dict):
            if step not in here:
                return None
            here = here[step]
        elif isinstance(here, list) and isinstance(step, int):
            here = here[step]
        else:  # a plain value used in place of a table
            return at[:depth]
    return at


def _from_rules(errors: list[_Error], raw: dict[str, Any], folder: Path) -> Iterator[RuleViolation]:
    """Yield the broken rules that pydantic did not check because another field is invalid."""
    known: dict[str, list[ValidFields]] = {}
    for name, info in Scenario.model_fields.items():
        models = alternatives(info.annotation)
        value = raw.get(name, {})
        known[name] = []
        if isinstance(value, list) != (name in _LISTS):
            continue
        items = value if isinstance(value, list) else [value]
        for index, item in enumerate(items):
            prefix: At = (name, index) if isinstance(value, list) else (name,)
            model = _chosen(name, models, item)
            within = [error for error in errors if error.at[: len(prefix)] == prefix]
            fields = _known_fields(model, item, prefix, within, folder) if model else ValidFields()
            known[name].append(fields)
            if model and name in raw and any(error.kind != "broken_rules" or error.at != prefix for error in within):
                for breach in model.broken_rules(fields):
                    yield breach._replace(at=(*prefix, *breach.at))
    yield from broken_between_sections(
        Outline(
            heading=_only(known["scenario"]),
            traffic=_only(known["traffic"]),
            campaigns=known["campaigns"],
            mechanisms=known["mechanisms"],
            population=_only(known["population"]),
            channel=_only(known["channel"]),
            release=_only(known["release"]),
            aggregation=_only(known["aggregation"]),
            refinements=known["refinements"],
            attacks=known["attacks"],
            fcd=_only(known["fcd"]),
        )
    )


def _received(breach: RuleViolation, raw: Any) -> Any:
    """Return the value as written in the file, if the rule received it as a number of another type."""
    here = raw
    for step in breach.at:
        inside = here if isinstance(here, dict) else dict(enumerate(here)) if isinstance(here, list) else {}
        if step not in inside:
            return breach.value
        here = inside[step]
    return here if here == breach.value else breach.value


def _only(sections: list[ValidFields]) -> ValidFields:
    return sections[0] if len(sections) == 1 else ValidFields()


def _chosen(name: str, models: Alternatives, item: Any) -> type[Section] | None:
    tag = _TAGS[name](item) if name in _TAGS else UNTAGGED
    model = models.get(tag or "")
    return model if isinstance(item, dict) and model is not None and issubclass(model, Section) else None


def _known_fields(
    model: type[Section], item: dict[str, Any], prefix: At, errors: list[_Error], folder: Path
) -> ValidFields:
    """Validate the fields of a section that have no error."""
    faulty = {error.at[len(prefix)] for error in errors if len(error.at) > len(prefix)}
    fields: dict[str, Any] = {
        name: (info.annotation, info) for name, info in model.model_fields.items() if (info.alias or name) not in faulty
    }
    config = ConfigDict(strict=True, allow_inf_nan=False)
    config["extra"] = "allow" if model.model_config.get("extra") == "allow" else "ignore"
    partial: type[BaseModel] = create_model(model.__name__, __config__=config, **fields)
    try:
        return known_of(partial.model_validate(model.resolve(dict(item)), context={"folder": folder}))
    except ValidationError:
        return ValidFields()


def _order(at: At) -> tuple[int, int]:
    sections = list(Scenario.model_fields)
    section = sections.index(str(at[0])) if at and at[0] in sections else len(sections)
    index = at[1] if len(at) > 1 and isinstance(at[1], int) else -1
    return section, index
