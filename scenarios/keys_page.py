"""Generator of docs/reference/keys.md and schema.json: `python -m scenarios.keys_page docs/reference/keys.md`."""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from scenarios.scenario import schema
from scenarios.section import SELECTORS

SCHEMA_FILE = Path(__file__).with_name("schema.json")
"""The JSON Schema beside the shipped scenarios, which name it so that editors complete and check their keys."""

_HEAD = """# Keys of a scenario

Made from the schema (`crowdveil scenarios schema` prints it as JSON Schema). A section with a choice of kinds has one
table of keys for each.
Lengths are metres, speeds metres per second, unless a key states otherwise.
Times are seconds from the start of the run. A moment, whose value is "number or text", may also be text where
`[scenario] start` states the time of second 0: a time of day, `start_s = "08:00"` or `"08:00:30"`, is the first such
time from the start on; `"day 2 08:00"` is 8 o'clock on the second day; a date and time is as `"2026-03-29T08:00"`, if
the start has a date. On the clock of a file (`begin_s`) a time of day counts from midnight. Rules between the keys of a
table stand below it; `crowdveil check` checks them and others, such as sums of shares. Shipped scenarios begin with
`#:schema`, which editors with a TOML language server use to complete and check keys.
"""

_TYPES = {
    "string": "text",
    "number": "number",
    "integer": "whole number",
    "boolean": "true or false",
    "object": "table",
}
_BOUNDS = {"exclusiveMinimum": "above", "minimum": "at least", "exclusiveMaximum": "below", "maximum": "at most"}


def keys_page() -> str:
    """Return docs/reference/keys.md: every section with its keys, their values, defaults and meanings."""
    definitions = schema()
    models: dict[str, dict[str, Any]] = definitions["$defs"]
    refs = {name: [*dict.fromkeys(_refs(section))] for name, section in definitions["properties"].items()}
    anchors = {model: name for name, its in refs.items() for model in its}
    inner = {name: name.lower() for name in models if name not in anchors}
    anchors |= inner
    parts = [_HEAD]
    for name, section in definitions["properties"].items():
        heading = f"[[{name}]]" if section.get("type") == "array" else f"[{name}]"
        required = "Required." if name in definitions["required"] else "Optional."
        parts.append(f"## `{heading}`\n\n{_line(section)} {required}")
        for ref in refs[name]:
            heading = f"### {_heading(models[ref])}\n\n" if len(refs[name]) > 1 else ""
            parts.append(f"{heading}{_line(models[ref])}\n\n{_table(models[ref], anchors)}")
    parts.append("## Tables within sections")
    parts += [f"### {name}\n\n{_line(models[name])}\n\n{_table(models[name], anchors)}" for name in inner]
    parts += ["## Rules between sections", "\n".join(_rules(definitions))]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _refs(value: Any) -> Iterator[str]:
    """Yield the names of the models that a schema refers to, at any depth."""
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"].rpartition("/")[2]
        for held in value.values():
            yield from _refs(held)
    elif isinstance(value, list):
        for held in value:
            yield from _refs(held)


def _heading(model: dict[str, Any]) -> str:
    """Return the key and the values that select a model."""
    key = next(key for key in SELECTORS if key in model["properties"])
    value = model["properties"][key]
    if "const" in value:
        return f"`{key} = {json.dumps(value['const'])}`"
    return f"`{key}` is {_values(value, {})}" if "enum" in value else f'`{key} = "package.module:Class"`'


def _table(model: dict[str, Any], anchors: Mapping[str, str]) -> str:
    rows = ["| key | value | default | meaning |", "|---|---|---|---|"]
    for key, value in model["properties"].items():
        default = "required" if key in model.get("required", ()) else _default(value.get("default"))
        cells = (f"`{key}`", _values(value, anchors), default, _line(value))
        rows.append("".join(f"| {cell} " if cell else "| " for cell in cells) + "|")
    return "\n".join([*rows, *(["", "Rules:", "", *_rules(model)] if "allOf" in model else [])])


def _rules(model: dict[str, Any]) -> list[str]:
    return [f"- {_line(rule)}" for rule in model["allOf"]]


def _line(described: dict[str, Any]) -> str:
    return " ".join(described.get("description", "").split()).replace("|", "\\|").replace("``", "`")


def _default(value: Any) -> str:
    if isinstance(value, dict):
        value = {key: held for key, held in value.items() if held is not None} or None
    return "" if value in (None, []) else f"`{json.dumps(value, ensure_ascii=False)}`"


def _values(value: dict[str, Any], anchors: Mapping[str, str]) -> str:
    """Return the values that a schema allows, in words; `anchors` are the places of the tables' keys, by model."""
    if "$ref" in value:
        return f"[table](#{anchors[value['$ref'].rpartition('/')[2]]})"
    if choices := value.get("enum", [value["const"]] if "const" in value else []):
        return ", ".join(f"`{json.dumps(choice)}`" for choice in choices)
    for choice in ("anyOf", "oneOf"):
        if choice in value:
            texts = (_values(item, anchors) for item in value[choice] if item != {"type": "null"})
            return " or ".join(dict.fromkeys(texts))
    kind = value.get("type")
    if isinstance(kind, list):
        return " or ".join(_TYPES[name] for name in kind)
    if kind == "array":
        items = value.get("items") or value["prefixItems"][0]
        return f"list, each {_values(items, anchors)}"
    bounds = [f"{comparison} {value[key]:.12g}" for key, comparison in _BOUNDS.items() if key in value]
    return " ".join([_TYPES.get(str(kind), "value"), *bounds])


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(keys_page(), encoding="utf-8")
    SCHEMA_FILE.write_text(json.dumps(schema(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
