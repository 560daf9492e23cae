"""Two small runs with every table, and ways to damage a run directory."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tomli_w

from simulator import run

if TYPE_CHECKING:
    from collections.abc import Callable

sys.path.append(str(Path(__file__).parents[1] / "files"))
from mutated_inputs import damaged

QUERIES = {"name": "shared", "start_s": 60, "queries": 3, "every_s": 120, "round_gap_s": 20}
MECHANISMS = [
    {"name": "sampling", "kind": "sampling_privacy", "sampling": 0.45},
    {"name": "baseline", "kind": "no_privacy"},
]
GRID = {"source": "grid", "rows": 4, "columns": 4, "spacing_m": 200, "speed_mps": 5}
LAPLACE = {"kind": "laplace", "epsilon": 1.0, "mechanisms": ["baseline"]}
SERVERS = ["server:1", "server:2", "server:3"]
DRIVEN = {
    "scenario": {"name": "driven", "duration_s": 600, "start": "2026-03-02T07:00+01:00"},
    "roads": {**GRID, "anchor": {"lon": 8.0, "lat": 50.0}},
    "cells": {"kind": "roads"},
    "traffic": {"vehicles": 80},
    "report": {"vehicles": True, "link_interval_s": 120},
    "campaigns": [
        {**QUERIES, "aggregation": {"kind": "secret_shared", "servers": 3}},
        {**QUERIES, "name": "trusted", "queries": 2, "every_s": 200, "release": LAPLACE},
        {**QUERIES, "name": "speeds", "statistic": "mean_speed", "round_gap_s": 3, "min_vehicles": 1},
    ],
    "mechanisms": MECHANISMS,
    "population": {"outside": 500, "participation": 0.8},
    "attacks": [
        {"name": "together", "kind": "shares", "coalition": SERVERS, "campaigns": ["shared"], "growing": True},
        {"name": "linked", "kind": "link_rounds", "coalition": ["server:1"], "campaigns": ["trusted"]},
    ],
    "refinements": [{"name": "clipped", "kind": "clip", "mechanisms": ["sampling"]}],
    "detectors": [{"name": "in", "link": 5, "fraction": 0, "every_s": 300}],
    "counts": {"file": "counts.csv"},
}
RECORDED = {
    "scenario": {"name": "recorded", "duration_s": 600},
    "roads": {"source": "none"},
    "cells": {"kind": "square", "size_m": 300},
    "traffic": {"engine": "trace", "trace": "fixes.csv"},
    "report": {"vehicles": True},
    "campaigns": [QUERIES],
    "mechanisms": MECHANISMS,
}
FIXES = "".join(
    f"{vehicle},{moment},{8 + vehicle / 1000 + moment / 100_000:.5f},{50 + vehicle / 2000:.5f}\n"
    for vehicle in range(9)
    for moment in range(0, 600, 20)
)
FILES = {
    "driven.toml": tomli_w.dumps(DRIVEN),
    "recorded.toml": tomli_w.dumps(RECORDED),
    "fixes.csv": f"vehicle,time,lon,lat\n{FIXES}",
    "counts.csv": "detector,from,to,count,speed_kph\nin,07:00,07:05,10,15\n",
}


def make_runs(folder: Path) -> list[Path]:
    """Make a run of vehicles on roads, and one of recorded vehicles."""
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    made = [folder / "driven", folder / "recorded"]
    for out in made:
        run(f"{out}.toml", out=out)
    return made


VALUES = (None, -1, 0, 1, 2.5, 10**7, -(10**18), 1e300, float("nan"), float("inf"), True, "", "x", "a\nb", [], [1], {})
VALUES += ({"a": 1}, [[]], [{}], [None], ["x"])


def places(node: Any) -> list[tuple[Any, Any]]:
    keys = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
    return [(node, key) for key in keys] + [place for key in keys for place in places(node[key])]


def change_tree(raw: Any, rng: np.random.Generator) -> None:
    """Change a value of a JSON or TOML file, remove it, or put one from elsewhere in its place."""
    container, key = (every := places(raw))[int(rng.integers(len(every)))]
    other, there = every[int(rng.integers(len(every)))]
    match int(rng.integers(5)):
        case 0:
            del container[key]
        case 1:
            container[key] = json.loads(json.dumps(other[there], default=str))
        case 2 if isinstance(container[key], list):
            container[key] = container[key][: len(container[key]) // 2]
        case _:
            container[key] = VALUES[int(rng.integers(len(VALUES)))]


def change_record(path: Path, rng: np.random.Generator) -> str:
    raw = json.loads(path.read_text(encoding="utf-8"))
    change_tree(raw, rng)
    path.write_text(json.dumps(raw), encoding="utf-8")
    return "a value"


def change_scenario(path: Path, rng: np.random.Generator) -> str:
    raw = tomllib.loads(path.read_text(encoding="utf-8"))
    for _ in range(20):
        change_tree(raw, rng)
        try:
            path.write_text(tomli_w.dumps(raw), encoding="utf-8")
        except TypeError:  # TOML has no null
            raw = tomllib.loads(path.read_text(encoding="utf-8"))
            continue
        break
    return "a value"


def odd_values(kind: pa.DataType) -> list[Any]:
    if pa.types.is_integer(kind):
        return [-1, 0, 2, 100, None] if kind.bit_width == 8 else [-1, 0, 2, 100, 1_000_000, None]
    if pa.types.is_floating(kind):
        return [float("nan"), float("inf"), -float("inf"), -1.0, 1e300, 1e18, 0.0, None]
    if pa.types.is_boolean(kind):
        return [True, False, None]
    if pa.types.is_binary(kind):
        return [b"", b"\x01", b"\x01\x03\x00\x00\x00\x01\x00\x00\x00", None]
    return ["", "x", "sampling", "a\nb", None]


def change_table(path: Path, rng: np.random.Generator) -> str:
    """Change columns, rows or values of a table; the file's own description of its columns stays."""
    table = pq.read_table(path)
    name = table.column_names[int(rng.integers(table.num_columns))]
    at, column = table.column_names.index(name), table[name]
    plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    rows = table.num_rows
    match int(rng.integers(8)):
        case 0:
            what, table = "left out", table.drop_columns([name])
        case 1:
            kept = np.sort(rng.choice(rows, rows * int(rng.integers(4)) // 4, replace=False))
            what, table = f"{len(kept)} rows kept", table.take(pa.array(kept, type=pa.int64()))
        case 2:
            what, table = "rows in another order", table.take(pa.array(rng.permutation(rows), type=pa.int64()))
        case 3:
            what, table = "rows twice", pa.concat_tables([table, table])
        case 4 if not pa.types.is_binary(plain.type):
            kind = [pa.string(), pa.float64(), pa.int64(), pa.bool_()][int(rng.integers(4))]
            text, numbers = plain.cast(pa.string()), pa.array(rng.integers(-1, 5, rows))
            what, table = f"as {kind}", table.set_column(at, name, text if kind == pa.string() else numbers.cast(kind))
        case 5 if pa.types.is_binary(plain.type) and rows:
            values = plain.to_pylist()
            row = int(rng.integers(rows))
            values[row] = damaged(values[row], rng) if values[row] else b""
            what, table = "a damaged shape", table.set_column(at, name, pa.array(values, type=plain.type))
        case _:
            values, odd = plain.to_pylist(), odd_values(plain.type)
            value = odd[int(rng.integers(len(odd)))]
            for row in range(rows) if rng.random() < 0.3 else rng.integers(rows, size=min(rows, 2)).tolist():
                values[row] = value
            what, table = f"{value!r:.40}", table.set_column(at, name, pa.array(values, type=plain.type))
    pq.write_table(table, path)
    return f"{name}: {what}"


CHANGES: dict[str, Callable[[Path, np.random.Generator], str]] = {".json": change_record, ".toml": change_scenario}


def mutate(directory: Path, rng: np.random.Generator) -> str:
    """Damage one file of a run directory, and say how."""
    files = sorted(path for path in directory.iterdir() if path.suffix in {".json", ".toml", ".parquet"})
    path = files[int(rng.integers(len(files)))]
    if rng.random() < 0.25:
        path = directory / ("run.json" if rng.random() < 0.7 else "scenario.toml")
    kind = rng.random()
    if kind < 0.02:
        path.unlink()
        return f"{path.name}: removed"
    if kind < 0.03:
        path.unlink()
        path.mkdir()
        return f"{path.name}: a folder"
    if kind < 0.3:
        path.write_bytes(damaged(path.read_bytes(), rng))
        return f"{path.name}: bytes"
    return f"{path.name}: {CHANGES.get(path.suffix, change_table)(path, rng)}"
