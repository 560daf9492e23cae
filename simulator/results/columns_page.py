"""Generator of docs/columns.md from the schema: `python -m simulator.results.columns_page docs/columns.md`."""

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from textwrap import dedent, fill

from simulator.results.run_record import RunRecord
from simulator.results.schema import FILES, TableSchema

_RECORD = """## `run.json`

A JSON object. The keys of the records within it are described in `simulator/results/record.py`.
"""


def columns_page(page: str) -> str:
    """Return docs/columns.md with its own introduction, every table with its columns, and the keys of `run.json`."""
    parts = [page.partition("\n## ")[0], *(_section(name, table) for name, table in FILES.items()), _RECORD]
    keys = RunRecord.model_json_schema(by_alias=True)["properties"]
    described = re.findall(r"(?m)^    (\w+)\n((?: {8}.*\n)+)", RunRecord.__doc__ or "")
    meanings = {key: " ".join(dedent(text).split()).removesuffix(".") for key, text in described}
    rows = [(key, " or ".join(_kinds(value)), meanings[key]) for key, value in keys.items()]
    parts.append(_rows("key | type | meaning", rows))
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _section(name: str, table: TableSchema) -> str:
    rows = [(c.name, c.type.lower(), c.unit, c.null, c.meaning) for c in table.columns]
    columns = _rows("column | type | unit | null | meaning", rows)
    notes = "\n\n".join(_wrapped(paragraph) for paragraph in table.notes.strip().split("\n\n"))
    return f"## `{name}.parquet`\n\n{_wrapped(table.about)}\n\n{columns}\n\n{notes}"


def _rows(heads: str, rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {heads} |", f"|{'---|' * (heads.count('|') + 1)}"]
    lines += [
        f"| `{name}` | {' | '.join(others)} |".replace("|  |", "| |").replace("|  |", "| |") for name, *others in rows
    ]
    return "\n".join(lines)


def _wrapped(paragraph: str) -> str:
    return fill(paragraph, 120, break_long_words=False, break_on_hyphens=False)


def _kinds(value: dict[str, object]) -> list[str]:
    """Return the JSON types of a key."""
    choices = value.get("anyOf", [value])
    return [str(one.get("type", "object")) for one in choices] if isinstance(choices, list) else []


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(columns_page(file.read_text(encoding="utf-8")), encoding="utf-8")
