"""Errors of a scenario: each fault with its key path and the rule it breaks, and the name that was probably meant."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, NamedTuple

_LONGEST_VALUE = 240  # long enough to show a path in full


@dataclass(frozen=True)
class Fault:
    """One fault of a scenario.

    Parameters
    ----------
    path
        Key path in the file: ``campaigns.rush.deadline_s``. Items of a list are given by their name where they have
        one, else by their index: ``campaigns[0]``. Empty for the file as a whole.
    rule
        The rule that should hold, in plain words.
    value
        The value received; ``None`` where there was none (TOML has no null).
    """

    path: str
    rule: str
    value: Any = None

    def __str__(self) -> str:
        """Write the fault on one line: key path, rule, value received."""
        where = f"{self.path}: " if self.path else ""
        received = "" if self.value is None else f"; got {written(self.value)}"
        return _one_line(f"{where}{self.rule}{received}")


class RuleViolation(NamedTuple):
    """A rule broken at a place inside a section, before that place is written as a key path."""

    at: tuple[str | int, ...]
    rule: str
    value: Any = None


class ScenarioError(ValueError):
    """A scenario that cannot be used, with every fault found.

    Parameters
    ----------
    source
        The shipped name or the file that the scenario was read from.
    faults
        All faults, in the order of the file's sections.
    """

    def __init__(self, source: str, faults: Iterable[Fault]) -> None:
        self.source = source
        self.faults = tuple(faults)
        count = len(self.faults)
        heading = f"scenario {_one_line(source)}: {count} fault{'' if count == 1 else 's'}"
        super().__init__("\n".join([heading, *(f"  {fault}" for fault in self.faults)]))

    def __reduce__(self) -> tuple[type["ScenarioError"], tuple[str, tuple[Fault, ...]]]:
        """Pickle by source and faults, so that another process can send the error back."""
        return type(self), (self.source, self.faults)


def written(value: object) -> str:
    """Write a value in the form it has in the file, on one line, cut to a readable length."""
    text = _toml(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def _toml(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return '"' + _one_line(value.replace("\\", r"\\").replace('"', r"\"")) + '"'
        case dict():
            return "{" + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_toml, value)) + "]"
        case int() if value.bit_length() > 4 * _LONGEST_VALUE:
            return f"a number of {value.bit_length()} bits"
        case _:
            return str(value)


def _one_line(text: str) -> str:
    """Escape characters that would break the line or be invisible, and cut very long words."""
    line = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
    return re.sub(rf"\S{{{_LONGEST_VALUE + 1},}}", lambda word: f"{word[0][: _LONGEST_VALUE - 1]}…", line)


def write_path(at: Sequence[str | int], raw: Any) -> str:
    """Write a place as a key path.

    Parameters
    ----------
    at
        Keys and list indices from the root.
    raw
        The file as parsed, in which the names of list items are looked up.

    Returns
    -------
    str
        Keys joined by dots; an item of a list is given by its own name if that name is unique in the list.
    """
    text = ""
    here = raw
    for step in at:
        if isinstance(step, int):
            inside = isinstance(here, list) and step < len(here)
            name = _own_name(here, step) if inside else None
            text += f"[{step}]" if name is None else f".{name}"
            here = here[step] if inside else None
        else:
            text += f".{step}" if text else step
            here = here.get(step) if isinstance(here, dict) else None
    return text


def _own_name(items: list[Any], index: int) -> str | None:
    names = [item.get("partition", item.get("name")) if isinstance(item, dict) else None for item in items]
    name = names[index]
    return name if isinstance(name, str) and name and names.count(name) == 1 else None


def item_names(items: list[Any], section: str) -> list[str | None]:
    """Return the names of the items of a list, default names included; ``None`` for an item without a name."""
    return [_name(item, section) for item in items]


def _name(item: Any, section: str) -> str | None:
    if not isinstance(item, dict):
        return None
    name = item.get("partition" if section == "cells" else "name")
    if name is None and section in {"behaviours", "mechanisms", "refinements", "attacks"}:
        name = str(item.get("kind")).rpartition(":")[2]
    if name is None and section == "campaigns":
        name = "campaign"
    return name if isinstance(name, str) else None


def suggestion(received: object, valid: Iterable[str], *, instead: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return a question that names the known text closest to the one received, or "" if none is close.

    Case and the dashes of options are ignored. `instead` has the text to suggest in place of a known one.
    """
    folded = {name.casefold().lstrip("-"): name for name in valid}
    near = get_close_matches(received.casefold().lstrip("-"), folded, n=1) if isinstance(received, str) else []
    name = folded[near[0]] if near else ""
    return f" (did you mean {instead.get(name, name)}?)" if near else ""
