"""Golden tables: short records of what the shipped scenarios produce, in tests/golden/NAME.json.

    python tests/golden_tables.py            all scenarios whose data are present, and the template
    python tests/golden_tables.py tiny speeds

A record holds, for each table of the run directory, its number of rows and for each column

- text: type, missing values, and a hash of the values;
- integers and truth values: type, missing values, a hash of the values, and their sum;
- numbers and coordinates of geometries: type, missing values, the sum, a sum that depends on the order
  (Σ value · (i·φ mod 1), i from 1), the sum of magnitudes, and a hash of the places that are missing or infinite;

and in full the scores of each mechanism and its root mean square error in each query, and what `run.json` says of the
traffic at the queries, in the form of a table. Sentences are not part.
"""

import hashlib
import json
import os
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import shapely

import crowdveil
import scenarios

GOLDEN = Path(__file__).parent / "golden"
TEMPLATE = "template"
SENTENCES = {"claims": {"basis", "reason"}}
FACTS = ("vehicles", "participation", "assumed_participation", "link_crossings", "queries", "device_answers")
CITY = ("nodes", "links", "length_km", "cells")
RELATIVE = 1e-9
"""Other machines' mathematical functions differ in the last digits."""
GOLDEN_RATIO = (np.sqrt(5.0) - 1.0) / 2.0
SCORE_KEYS = ("campaign", "mechanism")


def names() -> list[str]:
    """Return the names of the shipped scenarios, and that of the template."""
    return [*(item.name for item in scenarios.shipped()), TEMPLATE]


def missing_data(name: str) -> list[str]:
    """Return the data files that a scenario names and that are not present."""
    if name == TEMPLATE:
        return []
    text = next(item.path for item in scenarios.shipped() if item.name == name).read_text(encoding="utf-8")
    folder = Path(os.environ.get("CROWDVEIL_DATA", "/nowhere"))
    return [file for file in re.findall(r'"data:([^"]+)"', text) if not (folder / file).exists()]


def run_scenario(name: str, folder: Path) -> Path:
    """Run a shipped scenario and return the directory that holds its tables, inside `folder`."""
    source: str | Path = name
    if name == TEMPLATE:
        source = folder / "template.toml"
        scenarios.write_template(source)
    return crowdveil.run(source, assume_yes=True).save(folder / name)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def _short(number: float) -> float:
    return float(f"{number:.13g}")


def _numbers(values: np.ndarray) -> list:
    """Return the four figures of an array of numbers."""
    finite = np.isfinite(values)
    kept = np.where(finite, values, 0.0)
    weights = np.arange(1, len(kept) + 1) * GOLDEN_RATIO % 1.0
    places = np.where(np.isnan(values), 2, np.sign(np.where(finite, 0.0, values))).astype(np.int8)
    figures = [_short(kept.sum()), _short(kept @ weights), _short(np.abs(kept).sum())]
    return [*figures, "" if finite.all() else _digest(places.tobytes())]


def _column(column: pa.ChunkedArray) -> list:
    """Return the figures of a column: its type, its missing values, and what the module's text says."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    name, missing = str(kind).removeprefix("large_"), column.null_count
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        coordinates = shapely.get_coordinates(shapely.from_wkb(column.to_numpy()))
        return ["geometry", missing, len(coordinates), *_numbers(coordinates.ravel())]
    if pa.types.is_floating(kind):
        return [name, missing, *_numbers(column.to_pandas().to_numpy(float))]
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        values = column.to_pandas().fillna(0).to_numpy(np.int64)
        return [name, missing, _digest(values.astype("<i8").tobytes()), int(values.sum())]
    texts = ["\0" if value is None else value for value in column.to_pylist()]
    return [name, missing, _digest("\n".join(texts).encode())]


def _rows(frame: pd.DataFrame) -> list[dict]:
    """Return the rows of a frame as mappings of plain values."""
    return [
        {key: _short(value) if isinstance(value, float) else value for key, value in row.items()}
        for row in json.loads(frame.to_json(orient="records", double_precision=15))
    ]


def _query_errors(estimates: pd.DataFrame) -> dict[str, list[float]]:
    """Return the root mean square error in each query, by campaign and mechanism."""
    squares = (estimates["estimate"] - estimates["truth"]) ** 2
    errors = np.sqrt(squares.groupby([estimates[key] for key in (*SCORE_KEYS, "query")], sort=False).mean())
    of_mechanism: dict[str, list[float]] = {}
    for (campaign, mechanism, _), error in errors.items():
        of_mechanism.setdefault(f"{campaign}/{mechanism}", []).append(float(f"{error:.11g}"))
    return of_mechanism


def summary(directory: Path) -> dict:
    """Return the record of a run directory."""
    tables = {}
    for path in sorted(directory.glob("*.parquet")):
        table = pq.read_table(path)
        kept = [name for name in table.column_names if name not in SENTENCES.get(path.stem, ())]
        tables[path.stem] = {"rows": len(table), "columns": {name: _column(table[name]) for name in kept}}
    record = json.loads((directory / "run.json").read_text(encoding="utf-8"))
    facts = {key: record[key] for key in FACTS} | {key: record["city"][key] for key in CITY}
    traffic = pa.Table.from_pylist(record["traffic_at_queries"])
    columns = {name: _column(traffic[name]) for name in traffic.column_names}
    tables["traffic_at_queries"] = {"rows": len(traffic), "columns": columns}
    estimates = pd.read_parquet(directory / "estimates.parquet")
    return {
        "facts": facts,
        "scores": _rows(pd.read_parquet(directory / "scores.parquet")),
        "query_errors": _query_errors(estimates),
        "tables": tables,
    }


def _same(golden: object, now: object, scale: float = 0.0) -> bool:
    if isinstance(golden, float) and isinstance(now, int | float):
        return abs(golden - now) <= RELATIVE * max(abs(golden), scale)
    return golden == now


def _score_changes(golden: list[dict], now: list[dict]) -> list[str]:
    changes = [] if len(golden) == len(now) else [f"scores: {len(golden)} rows, now {len(now)}"]
    for before, after in zip(golden, now, strict=False):
        where = " ".join(before[key] for key in SCORE_KEYS)
        changes += [
            f"scores of {where}: {key} {before[key]!r}, now {after.get(key)!r}"
            for key in before
            if not _same(before[key], after.get(key), before["rmse"] or 0.0)
        ]
    return changes


def _error_changes(golden: dict[str, list[float]], now: dict[str, list[float]]) -> list[str]:
    changes = []
    for where, before in golden.items():
        after = now.get(where, [])
        if len(before) != len(after):
            changes.append(f"errors of {where}: {len(before)} queries, now {len(after)}")
        pairs = list(zip(before, after, strict=False))
        unequal = [i for i, pair in enumerate(pairs) if not _same(*pair, max(before))]
        if unequal:
            first = unequal[0]
            value, current = pairs[first]
            changes.append(f"errors of {where}: {len(unequal)} queries, query {first + 1} {value}, now {current}")
    return changes


def _table_changes(name: str, golden: dict, now: dict | None) -> list[str]:
    if now is None:
        return [f"{name}: the table is lost"]
    changes = [] if golden["rows"] == now["rows"] else [f"{name}: {golden['rows']} rows, now {now['rows']}"]
    for column, before in golden["columns"].items():
        after = now["columns"].get(column)
        if after is None:
            changes.append(f"{name}: the column {column} is lost")
            continue
        scale = max((abs(figure) for figure in before if isinstance(figure, float)), default=0.0)
        if not all(_same(*pair, scale) for pair in zip(before, after, strict=False)):
            changes.append(f"{name}.{column}: {before}, now {after}")
    return changes


def differences(golden: dict, now: dict) -> list[str]:
    """Return where a run differs from its record. Tables and columns added since do not count."""
    facts, current = golden["facts"], now["facts"]
    changes = [f"{k}: {facts[k]}, now {current.get(k)}" for k in facts if not _same(facts[k], current.get(k))]
    changes += _score_changes(golden["scores"], now["scores"])
    changes += _error_changes(golden["query_errors"], now["query_errors"])
    for name, table in golden["tables"].items():
        changes += _table_changes(name, table, now["tables"].get(name))
    return changes


def read(name: str) -> dict:
    """Return the record of a scenario."""
    return json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))


def write(name: str, record: dict) -> None:
    """Write the record of a scenario, a table or a mechanism a line."""
    lines = ["{", f'"facts": {json.dumps(record["facts"])},', '"scores": [']
    lines += [",\n".join(json.dumps(row, ensure_ascii=False) for row in record["scores"]), "],", '"query_errors": {']
    lines += [",\n".join(f"{json.dumps(key)}: {json.dumps(row)}" for key, row in record["query_errors"].items()), "},"]
    lines += ['"tables": {']
    blocks = []
    for key, table in record["tables"].items():
        columns = ",\n".join(f"  {json.dumps(column)}: {json.dumps(row)}" for column, row in table["columns"].items())
        blocks.append(f'{json.dumps(key)}: {{"rows": {table["rows"]}, "columns": {{\n{columns}}}}}')
    lines += [",\n".join(blocks), "}", "}"]
    (GOLDEN / f"{name}.json").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(chosen: list[str]) -> None:
    """Write the records of the chosen scenarios, or of all whose data are present."""
    for name in chosen or names():
        if absent := missing_data(name):
            print(f"{name}: {absent[0]} is not present")
            continue
        with tempfile.TemporaryDirectory() as folder:
            record = summary(run_scenario(name, Path(folder)))
        changes = differences(read(name), record) if (GOLDEN / f"{name}.json").exists() else ["new"]
        write(name, record)
        print(f"{name}: {'; '.join(changes) or 'as before'}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
