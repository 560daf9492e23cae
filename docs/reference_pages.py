"""Writer of the reference pages that are made from the source: keys of a scenario, columns of its tables, data sets.

    python docs/reference_pages.py

It writes docs/reference/keys.md, columns.md and data.md, the pages in the folders of these names, and the JSON Schema
`scenarios/schema.json`, which the shipped scenarios name so that editors complete and check their keys.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from textwrap import dedent, fill
from typing import Any

from scenarios import schema
from scenarios.section import SELECTORS
from simulator.datasets.manifest import DataSet, Manifest, read_manifest
from simulator.files.errors import InputError
from simulator.results.run_record import RunRecord
from simulator.results.schema import FILES, TableSchema

REFERENCE = Path(__file__).with_name("reference")
SCHEMA_FILE = Path(__file__).parents[1] / "scenarios" / "schema.json"
BEGIN, END = "<!-- from the manifest: begin -->", "<!-- from the manifest: end -->"
"""Lines of data.md between which the table of data sets is written."""

_LONG = 25_000
"""Sections whose schemas have more characters than this have a page of their own for the tables within them."""

Schema = dict[str, Any]
"""A part of the JSON Schema."""

_KEYS = """# Keys of a scenario

A scenario is a file of sections. Each section has its own page, with a table of its keys. A section with a choice of
kinds has one table for each kind, after a table of the keys that every kind has. The pages are made from the schema
(`crowdveil scenarios schema` prints it as JSON Schema).

*Value* states what a key may hold, with its unit. A number without a unit is a count, a share, a probability or an ε,
as its meaning states. Lengths are in metres, speeds in metres per second, times in seconds from the start of the run.

A moment, whose value is "number or text", may also be text where `[scenario] start` states the time of second 0:

- A time of day, `start_s = "08:00"` or `"08:00:30"`, is the first such time from the start on.
- `"day 2 08:00"` is 8 o'clock on the second day.
- A date and time is as `"2026-03-29T08:00"`, if the start has a date.
- On the clock of a file (`begin_s`) a time of day counts from midnight.

Rules between the keys of a table stand below it. `crowdveil check` checks them and others, such as sums of shares.
Shipped scenarios begin with `#:schema`, which editors with a TOML language server use to complete and check keys.
"""
_TOCTREE = """```{{toctree}}
:hidden:
:glob:

{}/*
```"""
_TYPES = {
    "string": "text",
    "number": "number",
    "integer": "whole number",
    "boolean": "true or false",
    "object": "table",
}
_BOUNDS = {"exclusiveMinimum": "above", "minimum": "at least", "exclusiveMaximum": "below", "maximum": "at most"}
_UNITS = {
    "s": "s",
    "m": "m",
    "mps": "m/s",
    "miles": "miles",
    "kph": "km/h",
    "vph": "vehicles/h",
    "vps": "vehicles/s",
    "deg": "degrees",
    "hours": "h",
}
"""Units of numbers by the ends of their keys' names."""

_COLUMN_PAGES = {
    "traffic": "cells roads surroundings entries links trips detectors counts places fcd",
    "campaigns": "estimates rounds servers scores claims ledger",
    "attacks": "attacks guesses",
}
"""The tables of each page of columns."""
_RECORD = """## `run.json`

A JSON object. The keys of the records within it are described in `simulator/results/record.py`.
"""


def pages(columns: str, data: str) -> dict[str, str]:
    """Return every page by its path in docs/reference; `columns` and `data` are columns.md and data.md as they are."""
    return {**keys_pages(), **columns_pages(columns), **data_pages(data, read_manifest())}


def keys_pages() -> dict[str, str]:
    """Return keys.md and a page for each section of a scenario: its keys with their values, defaults and meanings."""
    whole = schema()
    models: dict[str, Schema] = whole["$defs"]
    kinds = {name: [*dict.fromkeys(_refs(section))] for name, section in whole["properties"].items()}
    inner = _inner_tables(kinds, models)
    long = {name for name in kinds if sum(len(json.dumps(models[one])) for one in (*kinds[name], *inner[name])) > _LONG}
    home = {model: name for name, its in kinds.items() for model in its}
    sections = {*home}
    home |= {one: f"{name}_tables" if name in long else name for name, its in inner.items() for one in its}
    pages, rows = {}, []
    for name, section in whole["properties"].items():
        heading = f"[[{name}]]" if section.get("type") == "array" else f"[{name}]"
        required = "required" if name in whole["required"] else "optional"
        parts = [f"# `{heading}`", f"{_line(section)} The section is {required}; [all sections](../keys.md)."]
        parts += _described(kinds[name], models, _anchors(home, sections, name))
        if inner[name]:
            place = home[inner[name][0]]
            anchors = _anchors(home, sections, place)
            tables = [f"## {one}\n\n{_line(models[one])}\n\n{_table(models[one], anchors)}" for one in inner[name]]
            if place == name:
                parts += tables
            else:
                title = f"# Tables within `{heading}`"
                pages[f"keys/{place}.md"] = _page([title, f"The section is [`{heading}`]({name}.md).", *tables])
        pages[f"keys/{name}.md"] = _page(parts)
        rows.append((f"[`{heading}`](keys/{name}.md)", required, _line(section)))
    index = [
        _KEYS,
        _rows("section | presence | what it states", rows),
        "## Rules between sections",
        "\n".join(_rules(whole)),
    ]
    return {"keys.md": _page([*index, _TOCTREE.format("keys")]), **pages}


def _anchors(home: Mapping[str, str], kinds: Collection[str], page: str) -> dict[str, str]:
    """Return the address of each table from a page: a heading, or the page of the section whose kind it is."""
    return {
        model: f"{place}.md" if model in kinds else f"{'' if place == page else f'{place}.md'}#{model.lower()}"
        for model, place in home.items()
    }


def _inner_tables(kinds: Mapping[str, list[str]], models: Mapping[str, Schema]) -> dict[str, list[str]]:
    """Return the tables within each section, each once, in the first section that refers to it."""
    placed = {model for its in kinds.values() for model in its}
    inner: dict[str, list[str]] = {}
    for name, its in kinds.items():
        inner[name] = []
        queue = [*its]
        while queue:
            found = [one for one in dict.fromkeys(_refs(models[queue.pop(0)])) if one not in placed]
            placed |= {*found}
            inner[name] += found
            queue += found
    return inner


def _described(kinds: list[str], models: Mapping[str, Schema], anchors: Mapping[str, str]) -> list[str]:
    """Return the parts of a section's page: what all its kinds have in common, then each kind."""
    if len(kinds) == 1:
        described = models[kinds[0]]
        return [_line(described), _table(described, anchors)]
    each = [dict.fromkeys(_key_rows(models[kind], anchors)) for kind in kinds]
    common = [row for row in each[0] if all(row in rows for rows in each)]
    shared = [rule for rule in _rules(models[kinds[0]]) if all(rule in _rules(models[kind]) for kind in kinds)]
    parts = ["## Every kind", _table_of(common, shared)] if common else []
    for kind, rows in zip(kinds, each, strict=True):
        model = models[kind]
        own = [rule for rule in _rules(model) if rule not in shared]
        parts.append(f"## {_heading(model)}\n\n{_line(model)}")
        parts.append(_table_of([row for row in rows if row not in common], own))
    return parts


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


def _heading(model: Schema) -> str:
    """Return the key and the values that select a model."""
    key = next(key for key in SELECTORS if key in model["properties"])
    value = model["properties"][key]
    if "const" in value:
        return f"`{key} = {json.dumps(value['const'])}`"
    return f"`{key}` is {_values(value, {})}" if "enum" in value else f'`{key} = "package.module:Class"`'


def _table(model: Schema, anchors: Mapping[str, str]) -> str:
    return _table_of(_key_rows(model, anchors), _rules(model))


def _table_of(rows: Iterable[tuple[str, ...]], rules: list[str]) -> str:
    table = _rows("key | value | default | meaning", rows)
    return "\n".join([table, "", "Rules:", "", *rules] if rules else [table])


def _key_rows(model: Schema, anchors: Mapping[str, str]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for key, value in model["properties"].items():
        if key in SELECTORS and "const" in value:
            continue  # the heading has it
        default = "required" if key in model.get("required", ()) else _default(value.get("default"))
        values = _values(value, anchors)
        unit = _UNITS.get(key.rpartition("_")[2]) if "_" in key and "number" in values else None
        rows.append((f"`{key}`", f"{values}, in {unit}" if unit else values, default, _line(value)))
    return rows


def _rules(model: Schema) -> list[str]:
    return [f"- {_line(rule)}" for rule in model.get("allOf", ())]


def _line(described: Schema) -> str:
    return " ".join(described.get("description", "").split()).replace("|", "\\|").replace("``", "`")


def _default(value: Any) -> str:
    if isinstance(value, dict):
        value = {key: held for key, held in value.items() if held is not None} or None
    return "" if value in (None, []) else f"`{json.dumps(value, ensure_ascii=False)}`"


def _values(value: Schema, anchors: Mapping[str, str]) -> str:
    """Return the values that a schema allows, in words; `anchors` are the places of the tables' keys, by model."""
    if "$ref" in value:
        return f"[table]({anchors[value['$ref'].rpartition('/')[2]]})"
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


def columns_pages(page: str) -> dict[str, str]:
    """
    Return columns.md and the pages of its tables, with every column of each.

    Parameters
    ----------
    page
        columns.md, of which the introduction is kept.
    """
    rows, made = [], {}
    for name, tables in _COLUMN_PAGES.items():
        sections = [_section(table, FILES[table]) for table in tables.split()]
        sections = [re.sub(r"\]\((?=[\w./]+\.md)", "](../", section) for section in sections]  # a folder deeper
        made[f"columns/{name}.md"] = _page([f"# Columns: {name}", "[All tables](../columns.md).", *sections])
        for table in tables.split():
            link = f"[`{table}.parquet`](columns/{name}.md#{table}parquet)"
            rows.append((link, _row_of(FILES[table].about)))
    intro = page.partition("\n## ")[0]
    index = [intro, "## Tables", _rows("table | what a row is", rows), _RECORD, _record(), _TOCTREE.format("columns")]
    return {"columns.md": _page(index), **made}


def _row_of(about: str) -> str:
    """Return in words what a row of a table is."""
    found = re.search(r"[Oo]ne row (?:for|of) [^.:;]*|[^.:;]*", _cell(about))
    return found[0][:1].upper() + found[0][1:] if found else ""


def _record() -> str:
    """Return the table of the keys of `run.json`."""
    keys = RunRecord.model_json_schema(by_alias=True)["properties"]
    described = re.findall(r"(?m)^    (\w+)\n((?: {8}.*\n)+)", RunRecord.__doc__ or "")
    meanings = {key: _cell(dedent(text)).removesuffix(".") for key, text in described}
    rows = [(f"`{key}`", " or ".join(_kinds(value)), meanings[key]) for key, value in keys.items()]
    return _rows("key | type | meaning", rows)


def _section(name: str, table: TableSchema) -> str:
    rows = [(f"`{c.name}`", c.type.lower(), c.unit, c.null, c.meaning) for c in table.columns]
    columns = _rows("column | type | unit | null | meaning", rows)
    notes = "\n\n".join(_wrapped(paragraph) for paragraph in table.notes.strip().split("\n\n"))
    return f"## `{name}.parquet`\n\n{_wrapped(table.about)}\n\n{columns}\n\n{notes}"


def _kinds(value: dict[str, object]) -> list[str]:
    """Return the JSON types of a key."""
    choices = value.get("anyOf", [value])
    return [str(one.get("type", "object")) for one in choices] if isinstance(choices, list) else []


def data_pages(page: str, manifest: Manifest) -> dict[str, str]:
    """
    Return data.md and a page for each data set: its owner and terms, how to get it, its defects and its files.

    Parameters
    ----------
    page
        data.md, of which all is kept but the table of data sets.
    manifest
        What is known of each data set.

    Raises
    ------
    InputError
        If the page does not have the lines `BEGIN` and `END`, in this order.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InputError([f"the page must have a line {BEGIN}, and after it a line {END}"])
    rows = [
        (f"[`{known.folder}`](data/{known.folder}.md)", known.title, *_extent(known), known.licence)
        for known in manifest
    ]
    table = _rows("folder | what it is | files | `fetch` | licence", rows)
    index = f"{before}{BEGIN}\n{table}\n\n{_TOCTREE.format('data')}\n{END}{after}"
    return {"data.md": index, **{f"data/{known.folder}.md": _data_page(known) for known in manifest}}


def _extent(known: DataSet) -> tuple[str, str]:
    """Return the number of files of a data set, and how many of them `crowdveil data fetch` gets."""
    every, fetched = len(known.files), len(known.fetchable)
    partly = "by hand" if not fetched else "all" if fetched == every else f"{fetched} of them"
    return str(every or "not listed"), "shipped" if known.folder == "samples" else partly


def _data_page(known: DataSet) -> str:
    owner = "" if known.owner_page == "none" else f"Owner: <{known.owner_page}>. "
    terms = (
        f"{owner}Used here: {known.origin}. Licence: {known.licence}. Cite: {known.citation}. "
        f"Under a figure: “{known.attribution}”."
    )
    files = [
        (
            f"`{file.name}`",
            "" if file.rows is None else f"{file.rows:,}",
            "" if file.format is None else f"[`{file.format}`](../data.md#reading-the-files)",
            file.about + ("" if file.licence is None else f" (licence: {file.licence})"),
        )
        for file in known.files
    ]
    table = _rows("file | rows | format | what it holds", files) if files else ""
    title = f"# {known.folder}\n\n{known.title[:1].upper()}{known.title[1:]}. [All data sets](../data.md#data-sets)."
    defects = "\n".join(f"- {defect}" for defect in known.defects)
    return _page([title, terms, f"To get it: {known.how_to_obtain}.", defects, table])


def _rows(heads: str, rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table of Markdown."""
    lines = [f"| {heads} |", f"|{'---|' * (heads.count('|') + 1)}"]
    lines += ["".join(f"| {cell} " if cell else "| " for cell in cells) + "|" for cells in rows]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split())


def _wrapped(paragraph: str) -> str:
    return fill(paragraph, 120, break_long_words=False, break_on_hyphens=False)


def _page(parts: Iterable[str]) -> str:
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def main() -> None:
    """Write all pages and the JSON Schema."""
    old = {name: (REFERENCE / name).read_text(encoding="utf-8") for name in ("columns.md", "data.md")}
    for name, text in pages(old["columns.md"], old["data.md"]).items():
        (REFERENCE / name).parent.mkdir(exist_ok=True)
        (REFERENCE / name).write_text(text, encoding="utf-8")
    SCHEMA_FILE.write_text(json.dumps(schema(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
