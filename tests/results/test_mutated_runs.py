"""Run directories of strangers: each command uses one or refuses it in one line that names the file, exit code 2."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
import traceback
import warnings
from typing import TYPE_CHECKING

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from mutated_runs import make_runs, mutate

import crowdveil as cv
from simulator.cli import main
from simulator.results.store import UnfinishedRunError

if TYPE_CHECKING:
    from pathlib import Path

SEED = int(os.environ.get("CROWDVEIL_MUTATION_SEED", "1"))
RUNS = int(os.environ.get("CROWDVEIL_MUTATED_RUNS", os.environ.get("CROWDVEIL_MUTATED_INPUTS", "1000")))
SHARDS = max(1, min(4, RUNS // 50))
EXPORTS = ("geopackage", "edgedata", "gmns")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return make_runs(tmp_path_factory.mktemp("whole"))


def call(*arguments: object) -> tuple[int, str]:
    """Call the command line in this process; return its exit code and what it wrote on standard error."""
    before, sys.argv = sys.argv, ["crowdveil", *map(str, arguments)]
    error = io.StringIO()
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(error):
            main()
    except SystemExit as leaving:
        return leaving.code or 0, error.getvalue()
    finally:
        sys.argv = before
    return 0, error.getvalue()


def compare(directory: Path, other: Path) -> tuple[int, str]:
    """Do in Python what no command does."""
    try:
        run = cv.load(directory)
        cv.compare(run, cv.load(other))
        run.summary()
    except UnfinishedRunError as error:
        return 2, f"crowdveil: {error}"
    return 0, ""


def use(directory: Path, other: Path, number: int) -> tuple[int, str]:
    """Do one of the things that can be done with a run."""
    match number:
        case 0:
            return call("figures", directory, "--format", "svg")
        case 1 | 2 | 3:
            return call("export", directory, "--to", EXPORTS[number - 1])
        case 4 | 5:
            return compare(directory, other)
        case _:
            return call("report", directory)


WAYS = 30
"""Numbers that `use` is called with: the figures, which take seconds, are made of one run in thirty."""


def outcome(directory: Path, other: Path, number: int) -> tuple[bool, str]:
    """Return whether a run directory was refused, and what is wrong with how it was used or refused, if anything."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code, error = use(directory, other, number)
    except BaseException:  # noqa: BLE001 - any other exception is what the test searches for
        return False, traceback.format_exc(limit=-6)
    lines = [line for line in error.splitlines() if not line.startswith("note: ")]
    if code == 0 or (code == 2 and ("this run has no " in error or "this run kept no " in error)):
        return False, ""
    named = len(lines) == 1 and lines[0].startswith("crowdveil: ") and str(directory) in lines[0]
    return True, "" if code == 2 and named and len(lines[0]) < 2_500 else f"exit code {code}: {error[:1000]}"


def mutate_runs(whole: list[Path], folder: Path, numbers: range) -> None:
    faults, refused = {}, 0
    for number in numbers:
        rng, run = np.random.default_rng([SEED, number]), whole[number % 5 == 0]
        here = folder / str(number) / "run"
        shutil.copytree(run, here)
        what = mutate(here, rng)
        refusal, fault = outcome(here, run, int(rng.integers(WAYS)))
        refused += refusal
        if fault:
            faults[f"{number}: {what}"] = fault
        shutil.rmtree(here.parent)
    assert not faults, "\n\n".join(f"{name}\n{fault}" for name, fault in faults.items())
    assert 0 < refused < len(numbers)


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, 1])
def test_an_undamaged_run_can_be_used(whole, tmp_path, which):
    shutil.copytree(whole[which], tmp_path / "run")
    for number in range(9):
        assert outcome(tmp_path / "run", whole[which], number) == (False, "")


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_mutated_runs(whole, tmp_path, shard):
    mutate_runs(whole, tmp_path, range(shard, RUNS, SHARDS))


def record(change):
    def damage(folder):
        facts = json.loads((folder / "run.json").read_text())
        change(facts)
        (folder / "run.json").write_text(json.dumps(facts))

    return damage


def table(name, change):
    def damage(folder):
        read = gpd.read_parquet if name in {"cells", "roads"} else pd.read_parquet
        change(read(folder / f"{name}.parquet")).to_parquet(folder / f"{name}.parquet")

    return damage


def cut_shapes(folder):
    whole = pq.read_table(folder / "cells.parquet")
    shapes = [shape[: len(shape) // 2] for shape in whole["geometry"].to_pylist()]
    cut = whole.set_column(whole.column_names.index("geometry"), "geometry", [shapes])
    pq.write_table(cut, folder / "cells.parquet")


DAMAGES = {
    "learns": (
        record(lambda facts: facts["deployments"][0]["mechanisms"][0].update(learns=["a", 1])),
        r"run\.json: deployments\.0\.mechanisms\.0\.learns\.0: ",
    ),
    "lists of two lengths": (
        record(lambda facts: facts["traffic"].update(on_road=[1])),
        r"run\.json: traffic: .*must have one length",
    ),
    "an infinite number": (record(lambda facts: facts.update(participation=float("inf"))), r"run\.json: not JSON"),
    "cut WKB": (cut_shapes, r"cells\.parquet: cannot be read as Parquet"),
    "a scenario that is no text": (
        lambda folder: (folder / "scenario.toml").write_bytes(b"\xff\xfe\x00"),
        r"scenario\.toml: not TOML",
    ),
    "a step below 0": (
        lambda folder: (folder / "scenario.toml").write_text("[traffic]\nstep_s = -1\n"),
        r"scenario\.toml: traffic\.step_s: .*greater than 0",
    ),
    "links that are not there": (
        table("entries", lambda rows: rows.assign(link=rows["link"] + 40)),
        r"entries\.parquet: column link must be from 0 to 47",
    ),
    "fewer roads": (table("roads", lambda rows: rows.iloc[3:]), r"roads\.parquet: the links must be numbered from 0"),
    "fewer cells": (table("cells", lambda rows: rows.iloc[3:]), r"cells\.parquet: must have 48 rows"),
    "no scores of a campaign": (
        table("scores", lambda rows: rows[rows["campaign"] != "shared"]),
        r"estimates\.parquet: scores\.parquet lacks one",
    ),
    "rows twice": (
        table("estimates", lambda rows: pd.concat([rows, rows])),
        r"estimates\.parquet: two rows have the same campaign, query, mechanism, cell",
    ),
    "no departure": (
        table("entries", lambda rows: rows[rows["event"] != "departure"]),
        r"entries\.parquet: the first event of each vehicle must be its departure",
    ),
    "a moment that is none": (
        table("places", lambda rows: rows.assign(time_s=np.nan)),
        r"places\.parquet: column time_s must have a value in every row",
    ),
    "half a vehicle": (
        table("entries", lambda rows: rows.assign(vehicle=rows["vehicle"] + 0.5)),
        r"entries\.parquet: column vehicle must have whole numbers",
    ),
    "an unknown event": (
        table("entries", lambda rows: rows.assign(event="flight")),
        r"entries\.parquet: column event must be one of departure, entry, arrival",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_run_is_refused_in_one_line_that_names_the_file(whole, tmp_path, name):
    damage, message = DAMAGES[name]
    shutil.copytree(whole["places" in message], tmp_path / "run")
    damage(tmp_path / "run")
    code, error = call("report", tmp_path / "run")
    assert code == 2
    assert error.startswith(f"crowdveil: {tmp_path / 'run'}")
    assert error.count("\n") == 1
    with pytest.raises(UnfinishedRunError, match=message):
        raise UnfinishedRunError(error)
