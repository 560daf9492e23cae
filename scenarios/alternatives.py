"""The models a field of the schema may hold, and a walk along the path of a validation error."""

from collections.abc import Mapping
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, Tag

UNTAGGED = ""

Alternatives = Mapping[str, type[BaseModel]]
"""Models by the tag that tells them apart; the only one of a field without a choice is `UNTAGGED`."""


def alternatives(annotation: Any, tag: str = UNTAGGED) -> Alternatives:
    """Return the models inside a type: of a union its members, of a list its items."""
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
        Path of the error, with the tags of unions in it.
    key_last
        Whether the path is sure to end on a key, known or not.

    Returns
    -------
    at : tuple
        The path without the tags, as it is in the file.
    models : Alternatives
        What the table that holds the last key may be; narrowed to `UNTAGGED` by a tag on the way.
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
