"""The page of columns has every table and column that runs write, with its type and its nulls, and no other."""

import json
import re
import tomllib
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

import crowdveil as cv
from reference_pages import REFERENCE, columns_pages
from simulator.attacks.reconstruction import RoundAttack
from simulator.results.run_record import RunRecord

ROOT = Path(__file__).parents[2]
PAGES = {name: (REFERENCE / name).read_text(encoding="utf-8") for name in columns_pages("")}
SECTIONS = dict(re.findall(r"(?ms)^## `([\w.]+)`\n(.*?)(?=^## |\Z)", "\n".join(PAGES.values())))
TYPES = {
    "large_string": "str",
    "double": "float64",
    "float": "float32",
    "binary": "geometry",
    "dictionary<values=string, indices=int8, ordered=0>": "category",
}
"""Types of the page by their names in Parquet, where these differ."""


class WithoutProbability(RoundAttack):
    """An attack of the user's own that states no probabilities."""

    def guess(self, observation, prior, *, rng):
        return [replace(one, probability=None) for one in super().guess(observation, prior, rng=rng)]


TINY = tomllib.loads((ROOT / "scenarios" / "tiny.toml").read_text(encoding="utf-8"))
ASKED = TINY["campaigns"][0]
SERVER = {"coalition": ["server:1"], "campaigns": ["occupancy"]}
COUNTS = {
    "campaigns": [
        ASKED,
        {**ASKED, "name": "shared", "aggregation": {"kind": "secret_shared", "servers": 2}},
        {**ASKED, "name": "suppressed", "release": {"kind": "suppress", "k": 3, "sampling": 0.45}},
    ],
    "mechanisms": [
        *TINY["mechanisms"],
        {"name": "refreshed", "kind": "sampling_privacy", "sampling": 0.45, "refresh": 0.2},
        {"name": "one-sided", "kind": "randomized_response", "first_coin": 0.8, "second_coin": 0},
        {"name": "moves", "kind": "anonymized_first_attempt", "base": 0.6, "shift_yes": 0.2, "shift_no": 0.1},
    ],
    "refinements": [{"name": "clipped", "kind": "clip"}],
    "attacks": [
        {"name": "first", "kind": "round_one", **SERVER},
        {"name": "linked", "kind": "link_rounds", **SERVER},
        {"name": "false", "kind": "poisoning", "coalition": ["vehicles:5"], "campaigns": ["occupancy"]},
        {"name": "own", "kind": WithoutProbability, **SERVER},
    ],
    "fcd": {"every_s": 60, "formats": ["parquet"]},
    "report": {"link_interval_s": 60},
    "detectors": [{"name": "first", "link": 0, "every_s": 1}],
}
MEASURED = "link,from_s,to_s,count,speed_mps\n0,60,300,90,\n0,60,61,,9\n"
"""Counts without a speed, and a speed without a count, when no vehicle passes."""
LAKESIDE = """<osm version="0.6">
<node id="1" lat="60.170" lon="24.940"/><node id="2" lat="60.170" lon="24.945"/><node id="3" lat="60.173" lon="24.945"/>
<way id="1"><nd ref="1"/><nd ref="2"/><nd ref="3"/><nd ref="1"/><tag k="highway" v="primary"/></way>
<way id="2"><nd ref="1"/><nd ref="3"/><tag k="waterway" v="canal"/></way>
</osm>
"""
LAKE_TOWN = """<osm version="0.6">
<node id="1" lon="11.30" lat="44.50"/><node id="2" lon="11.31" lat="44.50"/>
<node id="3" lon="11.31" lat="44.51"/><node id="4" lon="11.30" lat="44.51"/>
<node id="5" lon="11.303" lat="44.503"/><node id="6" lon="11.306" lat="44.503"/><node id="7" lon="11.306" lat="44.506"/>
<way id="1"><nd ref="1"/><nd ref="2"/><nd ref="3"/><nd ref="4"/><nd ref="1"/>
<tag k="highway" v="primary"/><tag k="name" v="Ring"/></way>
<way id="2"><nd ref="5"/><nd ref="6"/><nd ref="7"/><nd ref="5"/><tag k="natural" v="water"/></way></osm>"""
SPEEDS = {"campaigns": [{**ASKED, "statistic": "mean_speed", "min_vehicles": 1000}]}
"""No cell ever has so many vehicles, so that the scores are null."""


OPTIONAL = {"expected_bias"}
"""Columns that only some runs have."""
SELECTED = {"population": {"rates": [{"rate": 0.5, "cells": ["r1c1"]}]}, "refinements": COUNTS["refinements"]}


def rows_of(name):
    """Return the rows of a table of the page as lists of cells, the first without its backticks."""
    rows = [re.split(r" ?\| ?", row)[1:-1] for row in re.findall(r"(?m)^\| `.*$", SECTIONS[name])]
    return [[row[0].strip("`"), *row[1:]] for row in rows]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Directories of runs that together have every table, every type and every null."""
    folder = tmp_path_factory.mktemp("runs")

    (folder / "lake.osm").write_text(LAKE_TOWN)
    (folder / "counts.csv").write_text(MEASURED)

    def saved(name, **changed):
        return cv.run(cv.Scenario.model_validate({**TINY, **changed})).save(folder / name)

    counts = saved("counts", **COUNTS, counts={"file": str(folder / "counts.csv")})
    lakeside = folder / "lakeside.osm"
    lakeside.write_text(LAKESIDE, encoding="utf-8")
    replayed = {"engine": "trace", "trace": str(counts / "fcd.parquet"), "gap_s": 60, "start": 0}
    return [
        counts,
        saved("speeds", **SPEEDS),
        saved("selected", **SELECTED),
        saved(
            "mixed",
            campaigns=[
                {**ASKED, "operator": "A"},
                {**ASKED, "name": "no-operator"},
                {**ASKED, "name": "speeds", "statistic": "median_speed"},
            ],
            ledger=[{"epsilon": 1, "delta": 0.5, "exceeded": "skip", "mechanisms": ["sampling"]}],
        ),
        saved("lakeside", roads={"source": "osm", "path": str(lakeside)}),
        saved("replayed", traffic=replayed, roads={"source": "none"}, fcd=COUNTS["fcd"], report={"vehicles": True}),
        saved(
            "crowded", traffic={**TINY["traffic"], "vehicles": 5000}, report=COUNTS["report"]
        ),  # some wait at the end
        saved("lake", roads={"source": "osm", "path": str(folder / "lake.osm")}),
    ]


def test_pages_are_those_of_the_schema():
    assert columns_pages(PAGES["columns.md"]) == PAGES, "run python docs/reference_pages.py"


def test_page_has_the_files_that_runs_write(runs):
    written = {path.name for run in runs for path in run.iterdir() if path.suffix in {".parquet", ".json"}}
    assert written == set(SECTIONS)


@pytest.mark.parametrize("name", sorted(name for name in SECTIONS if name.endswith(".parquet")))
def test_columns_are_those_of_the_file(name, runs):
    documented = rows_of(name)
    types, nulls = defaultdict(set), defaultdict(bool)
    for path in (run / name for run in runs if (run / name).exists()):
        schema, table = pq.read_schema(path), pd.read_parquet(path)
        listed = [row[0] for row in documented]
        assert schema.names == [column for column in listed if column not in OPTIONAL or column in schema.names]
        for field in schema:
            types[field.name].add(TYPES.get(str(field.type), str(field.type)))
            nulls[field.name] |= bool(table[field.name].isna().any())
    for column, type_, _, null, meaning in documented:
        assert set(type_.split(" or ")) == types[column], column
        assert bool(null) == nulls[column], column
        assert meaning, column


def test_keys_are_those_of_the_run_record(runs):
    documented = {key: (type_, meaning) for key, type_, meaning in rows_of("run.json")}
    schema = RunRecord.model_json_schema(by_alias=True)["properties"]
    assert set(documented) == set(schema)
    for run in runs:
        assert list(json.loads((run / "run.json").read_text(encoding="utf-8"))) == list(documented)
    for key, value in schema.items():
        kinds = [one.get("type", "object") for one in value.get("anyOf", [value])]
        assert documented[key][0] == " or ".join(kinds), key
        assert documented[key][1], key
