"""Rules between the keys of a section, as data: checked, and stated in the JSON Schema and on the keys page.

A section lists its rules in its class variable ``rules``. A key of a table inside the section is named by its path,
``columns.lon``. A rule about a key that is invalid, or whose table is not given, is not applied.
"""

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from scenarios.errors import RuleViolation
from scenarios.field_types import exceeds, number, without_default
from scenarios.overrides import plain
from scenarios.section import BrokenRules, Section, ValidFields


class Condition(NamedTuple):
    """What the value of a key must be: a test, which gets the section too, and its JSON Schema if there is one."""

    passes: Callable[[Any, ValidFields], bool]
    schema: dict[str, Any]

    def negated(self) -> "Condition":
        """Return the condition that this one is not met."""
        schema = self.schema.get("not", {"not": self.schema})
        return Condition(lambda value, valid: not self.passes(value, valid), schema)


def among(*values: Any) -> Condition:
    """Return the condition that a value is one of these."""
    return Condition(lambda value, _: value in values, {"enum": list(values)})


def unlike(*values: Any) -> Condition:
    """Return the condition that a value is none of these."""
    return among(*values).negated()


Where = Mapping[str, Condition]
"""Conditions by key; all must be met."""
LEFT_OUT = Condition(lambda value, _: value is None or value is False or value == (), {"enum": [None, False, []]})
"""The key is not given, or is false, or an empty list."""
GIVEN = LEFT_OUT.negated()


@dataclass(frozen=True)
class Rule:
    """Keys must meet a condition, unless other conditions are met.

    Parameters
    ----------
    keys
        The keys; each may be at fault; if empty, nothing but `unless` is allowed.
    words
        What they break; ``{queries}`` stands for the key `queries`, with its value in a message.
    unless
        Alternatives, each of conditions by key.
    be
        What each of `keys` must be.
    at
        The key that has the fault if `keys` is empty; if this is empty too, the section.
    """

    keys: tuple[str, ...]
    words: str
    unless: tuple[Where, ...] = ()
    be: Condition = GIVEN
    at: tuple[str, ...] = ()

    def __call__(self, valid: ValidFields) -> Iterator[RuleViolation]:
        """Yield the faults of the keys if no alternative holds."""
        if any(_all_met(conditions, valid) for conditions in self.unless):
            return
        for key in self.keys:
            if not _all_met({key: self.be}, valid):
                value = valid.find(key)
                words = _NAMED.sub(lambda name: f"{name[1]} = {_shown(name[1], valid.find(name[1]))}", self.words)
                yield RuleViolation(tuple(key.split(".")), words, None if value == () else plain(value))
        if not self.keys:
            given = {key: plain(valid[key]) for conditions in self.unless for key in conditions if valid.has(key)}
            yield RuleViolation(self.at, self.words, given or None)

    def sentence(self) -> str:
        """Return the rule for people who read about the keys."""
        return _at(self.keys or self.at) + _NAMED.sub(r"\1", self.words)

    def schema(self, section: type[Section]) -> dict[str, Any]:
        """Return the rule as a JSON Schema of the section, which everything meets if none can say it."""
        if not self.be.schema:
            return {}
        known = {name: field for name, field in section.model_fields.items() if not field.is_required()}
        defaults = {name: it.default for name, it in known.items() if it.json_schema_extra is not without_default}
        allowed = (*self.unless, dict.fromkeys(self.keys, self.be)) if self.keys else self.unless
        return {"anyOf": [_schema_of(conditions, defaults) for conditions in allowed]}


@dataclass(frozen=True)
class EachOnce:
    """Lists must name each thing once."""

    keys: tuple[str, ...]

    def __call__(self, valid: ValidFields) -> Iterator[RuleViolation]:
        """Yield a fault for each name that is more than once in a list."""
        for key in self.keys:
            names = [name if isinstance(name, str | int) else name.party for name in valid.get(key) or ()]
            for name in dict.fromkeys(name for name in names if names.count(name) > 1):
                yield RuleViolation((key,), f"must name each once, and {name} occurs {names.count(name)} times")

    def sentence(self) -> str:
        """Return the rule for people who read about the keys."""
        return f"{_at(self.keys)}must name each once"

    def schema(self, _: type[Section]) -> dict[str, Any]:
        """Return the rule as a JSON Schema of the section."""
        return {"properties": {key: {"uniqueItems": True} for key in self.keys}}


@dataclass(frozen=True)
class Each:
    """Rules of each section of a list; a key that it lacks is one of the scenario: ``scenario.duration_s``."""

    path: str
    rules: tuple[BrokenRules, ...]

    def __call__(self, scenario: ValidFields) -> Iterator[RuleViolation]:
        """Yield the faults of each section."""
        *outer, name = self.path.split(".")
        holder = scenario.section(outer[0]) if outer else scenario
        for index, section in enumerate(holder.sections(name)):
            section.outer = scenario
            for rule in self.rules:
                for breach in rule(section):
                    yield breach._replace(at=(*outer, name, index, *breach.at))


def must(keys: str | Sequence[str], be: Condition, words: str, **where: Any) -> Rule:
    """Return the rule that keys must meet a condition where all others meet theirs, or have these values.

    A key of an inner table is given as ``**{"columns.x": GIVEN}``.
    """
    listed = (keys,) if isinstance(keys, str) else tuple(keys)
    conditions = {key: held if isinstance(held, Condition) else among(held) for key, held in where.items()}
    unless = tuple({key: held.negated()} for key, held in conditions.items())
    return Rule(listed, words, unless, be)


def needs(keys: str | Sequence[str], other: str = "", words: str = "", **values: Any) -> Rule:
    """Return the rule that keys may be given only with another key, or where a key has one of some values."""
    listed = (keys,) if isinstance(keys, str) else tuple(keys)
    choices = {key: value if isinstance(value, tuple) else (value,) for key, value in values.items()}
    allowed = [f"{key} = {' or '.join(map(json.dumps, choice))}" for key, choice in choices.items()]
    wanted = {other: GIVEN} if other else {key: among(*choice) for key, choice in choices.items()}
    return Rule(listed, words or f"needs {other or allowed[0]}", (wanted,), LEFT_OUT)


def one_of(*groups: tuple[str, ...], words: str, at: tuple[str, ...] = ()) -> Rule:
    """Return the rule that all keys of exactly one group are given; an empty group allows for none."""
    every = [key for group in groups for key in group]
    each = tuple({key: GIVEN if key in group else LEFT_OUT for key in every} for group in groups)
    return Rule((), words, each, at=at)


_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "above": operator.gt,
    "below": operator.lt,
    "before": operator.lt,
    "at least": lambda value, bound: not exceeds(bound, value),
    "at most": lambda value, bound: not exceeds(value, bound),
}


def bounded(key: str, comparison: str, bound: str, why: str = "") -> Rule:
    """Return the rule that a number is ``above``, ``below``, ``at least`` or ``at most`` another key's, if both are."""
    holds = _COMPARISONS[comparison]

    def passes(value: Any, valid: ValidFields) -> bool:
        limit = valid.find(bound)
        return value is None or limit is None or holds(value, limit)

    return Rule((key,), f"must be {comparison} {{{bound}}}{why}", be=Condition(passes, {}))


def described_rules(section: type[Section]) -> list[dict[str, Any]]:
    """Return the rules of a section as JSON Schemas, with their words as descriptions."""
    every = section.every_rule()
    rules = [rule for rule in every if isinstance(rule, Rule | EachOnce)]
    inner = [(each.path, rule) for each in every if isinstance(each, Each) for rule in each.rules]
    return [
        *({"description": rule.sentence(), **rule.schema(section)} for rule in rules),
        *({"description": f"in `{path}`, {rule.sentence()}"} for path, rule in inner if isinstance(rule, Rule)),
    ]


_NAMED = re.compile(r"{([\w.]+)}")
_UNITS = {"s": " s", "mps": " m/s"}


def _at(keys: Sequence[str]) -> str:
    return f"{', '.join(f'`{key}`' for key in keys)}: " if keys else ""


def _shown(key: str, value: Any) -> str:
    text = number(value) if isinstance(value, float) else json.dumps(value)
    return text + _UNITS.get(key.rpartition("_")[2], "")


def _all_met(conditions: Where, valid: ValidFields) -> bool:
    """Return whether keys meet their conditions, as far as they are valid."""
    with suppress(KeyError):
        return all(condition.passes(valid.find(key), valid) for key, condition in conditions.items())
    return True


def _schema_of(conditions: Where, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a table whose keys meet conditions, by themselves or by their defaults."""
    properties, required = {}, []
    for path, condition in conditions.items():
        key, _, inner = path.partition(".")
        properties[key] = _schema_of({inner: condition}, {}) if inner else condition.schema
        if not condition.passes(None if inner else defaults.get(key), ValidFields()):
            required.append(key)
    return {"properties": properties, "required": required} if required else {"properties": properties}
