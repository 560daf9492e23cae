"""Overrides: ``key.path=value`` applied to a scenario before it is checked."""

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from scenarios.errors import Fault, ScenarioError, item_names, suggestion
from scenarios.kinds import name_object
from scenarios.references import is_table, store

DEEPEST = 50
EVERY = "*"
"""In a key path: every item of a list that states the key after it."""
TOO_DEEP = f"tables and lists must nest at most {DEEPEST} deep"

_LEADING_POINT = re.compile(r"""\"[^"]*\"|'[^']*'|(?<![\w.])\.(?=\d)""")
"""A quoted text, which stays as it is, or the point of a number without digits before it."""

Overrides = Iterable[str] | Mapping[str, Any]
"""Texts ``a.b=v``, or values by their key paths: ``{"a.b": v}``."""


def apply_overrides(raw: dict[str, Any], overrides: Overrides) -> list[Fault]:
    """Apply overrides to a parsed file, in their order, and return the faults of those that cannot be applied.

    Parameters
    ----------
    raw
        The file as parsed; changed in place.
    overrides
        Texts ``a.b=v``, whose value is parsed as TOML (``.1`` as ``0.1``), or taken as text if it is not valid TOML; or
        a mapping ``{"a.b": v}``. The path is as in the file, with list items given by name or index; ``*`` stands for
        every item that states the key after it. Missing tables along the path are created.

    Raises
    ------
    TypeError
        If `overrides` is of another type.
    """
    faults: list[Fault] = []
    for override in _listed(overrides):
        try:
            path, value = _split(override)
            _put(raw, path, value)
        except ScenarioError as refused:
            faults.extend(refused.faults)
    return faults


def plain(value: Any) -> Any:
    """Return a copy made of TOML types only, from mappings, lists, numpy numbers and arrays, paths and sections.

    A DataFrame or GeoDataFrame becomes the path of a file that holds it; a class or an object that is given as a kind
    becomes the name under which `scenarios.kinds` finds it.
    """
    if is_table(value):
        return store(value)
    if isinstance(value, BaseModel):
        value = value.model_dump(by_alias=True, exclude_none=True)
    elif hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {key: plain(name_object(held) if key == "kind" else held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [plain(held) for held in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _listed(overrides: Overrides) -> list[str | tuple[str, Any]]:
    if isinstance(overrides, str | bytes) or not isinstance(overrides, Iterable):
        raise TypeError(f'overrides must be a list of texts "a.b=v" or a mapping {{"a.b": v}}, got {overrides!r}')
    keys = list(overrides)
    for key in keys:
        if not isinstance(key, str):
            raise TypeError(f'overrides must be texts "a.b=v", or have key paths "a.b" as keys, got {key!r}')
    return [*overrides.items()] if isinstance(overrides, Mapping) else [*keys]


def _split(override: str | tuple[str, Any]) -> tuple[list[str], Any]:
    if isinstance(override, str):
        left, equals, right = override.partition("=")
        value = toml_value(right.strip())
    else:
        left, equals = override[0], "="
        last = left.rpartition(".")[2]
        value = plain({last: override[1]})[last]
    # Messages write the items of a list as mechanisms[0], so that form is accepted as well.
    path = [key.strip() for key in re.sub(r"\[(\d+)\]", r".\1", left).split(".")]
    if value is None:
        raise ScenarioError("override", [Fault(left, "None is not a value of a scenario; leave the key out")])
    if not equals or not all(path):
        shown = override if isinstance(override, str) else left
        raise ScenarioError("override", [Fault("", "an override has the form key.path=value", shown)])
    return path, value


def nests_too_deeply(value: Any) -> bool:
    """Return whether tables and lists nest deeper than any file of this project needs, and Python's stack permits."""
    level = [value]
    for _ in range(DEEPEST):
        tables = [each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)]
        level = [inner for each in tables for inner in each]
    return bool(level)


def parse_toml(text: str) -> dict[str, Any]:
    """Return the tables of a TOML file.

    Raises
    ------
    ValueError
        If it is not TOML, or nests too deeply.
    """
    try:
        tables = tomllib.loads(text)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    if nests_too_deeply(tables):
        raise ValueError(TOO_DEEP)
    return tables


def toml_value(text: str) -> Any:
    """Return the value that a text is in TOML, where 0 may be left out before a decimal point; else the text itself."""
    for written in (text, _LEADING_POINT.sub(_with_zero, text)):
        try:
            parsed = tomllib.loads(f"value = {written}")
        except (ValueError, RecursionError):
            continue
        return parsed["value"] if parsed.keys() == {"value"} else text
    return text


def _with_zero(match: re.Match[str]) -> str:
    return match[0] if match[0][0] in "\"'" else f"0{match[0]}"


def _put(raw: dict[str, Any], path: list[str], value: Any) -> None:
    here: Any = raw
    key: str | int
    done = 0
    while True:
        if isinstance(here, list) and path[done] == EVERY:
            rest = path[done + 1 :]
            stating = [item for item in here if rest and isinstance(item, dict) and rest[0] in item]
            if not stating:
                rule = f"{EVERY} stands for every item that states the key after it, and no item does"
                raise ScenarioError("override", [Fault(".".join(path), rule)])
            for item in stating:
                _put(item, rest, value)
            return
        if isinstance(here, list):
            key, used = _item(here, path, done)
        elif isinstance(here, dict):
            key, used = path[done], 1
        else:
            raise ScenarioError(
                "override", [Fault(".".join(path[:done]), "has no keys inside, it is a plain value", here)]
            )
        done += used
        if done == len(path):
            here[key] = value
            return
        here = here.setdefault(key, {}) if isinstance(here, dict) else here[key]


def _item(items: list[Any], path: list[str], done: int) -> tuple[int, int]:
    """Return the index of the item that the path refers to, and how many parts of the path its name takes."""
    names = item_names(items, path[done - 1])  # names may hold dots: the longest match is used
    for used in range(len(path) - done, 0, -1):
        wanted = ".".join(path[done : done + used])
        if names.count(wanted) == 1:
            return names.index(wanted), used
        if names.count(wanted) > 1:
            where = ".".join(path[: done + used])
            raise ScenarioError(
                "override", [Fault(where, f"{names.count(wanted)} items have this name: give an index", wanted)]
            )
    wanted = path[done]
    if wanted.isascii() and wanted.isdecimal() and int(wanted) < len(items):
        return int(wanted), 1
    named = [name for name in names if name is not None]
    listed = ", ".join(named) or "none with a name"
    rule = f"there is no such item{suggestion(wanted, named)}; there are {len(items)}: {listed}"
    raise ScenarioError("override", [Fault(".".join(path[: done + 1]), rule, wanted)])
