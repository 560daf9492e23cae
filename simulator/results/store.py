"""Run directory: written completely or not at all, and the reader of its `run.json`."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api.types import is_numeric_dtype
from pydantic import ValidationError
from pyproj import CRS
from pyproj.exceptions import CRSError

import scenarios
from scenarios import Scenario
from simulator.files.atomic_write import publish, publish_numbered, remove_leftovers, staging_directory
from simulator.results.record import RUN_FORMAT, RunRecord
from simulator.results.tables import MOBILITY_SCORES, with_times

COMPLETE = "run.json"
"""File that is written last, so that its presence means a complete run."""

SCENARIO = "scenario.toml"
"""File with the scenario, all values resolved."""

SHAPES = ("cells", "roads", "surroundings")
"""Tables with shapes: the cells, the links of the roads, and water, places and streets for maps."""

ALWAYS = ("estimates", "rounds", "servers", "scores", "claims", "attacks")
"""Tables that every run has."""

_COLUMNS = {
    "estimates": ("campaign mechanism", "query time_s cell truth estimate std_error lower upper"),
    "rounds": ("campaign mechanism", "query round asked answered counted late lost rejected unpaired bytes_up"),
    "servers": ("campaign mechanism server", "query round sent arrived late lost used"),
    "scores": ("campaign mechanism interval", "mae rmse bias max_error coverage hot_cells_recall theory_rmse"),
    "claims": ("mechanism view kind basis", "queries crowd k colluding servers epsilon delta"),
    "attacks": ("name coalition mechanism", "prior success theory"),
    "cells": ("name geometry", "cell"),
}
"""Columns of a table in every format: those of texts, and those of numbers."""

OF_VEHICLES = ("entries", "places", "guesses")
"""Tables about single vehicles; a run may have none of them."""

TABLES = (*SHAPES, *ALWAYS, *OF_VEHICLES)
"""All tables, each in a Parquet file of its name."""

LATEST = "latest"
"""Name of the link to the newest run in the same folder."""


class DirectoryError(ValueError):
    """A run directory that may not be written."""


def check_free(directory: Path, *, overwrite: bool, numbered: bool = False) -> None:
    """Check that a run may be written to `directory`, or with `numbered` beside it, before it is simulated.

    Files that a killed process left beside it are removed or restored first.

    Raises
    ------
    DirectoryError
        If the path is taken: by a run, unless `overwrite` is set; or by anything else, since replacing would lose it.
    """
    remove_leftovers(directory.parent)
    above = next(parent for parent in directory.absolute().parents if parent.exists())
    obstacle = ""
    if not above.is_dir() or not os.access(above, os.W_OK):
        why = f"{above} cannot" if above.is_dir() else f"{above} is a file"
        obstacle = f"must be in a directory that can be written, and {why}"
    elif numbered or not os.path.lexists(directory):
        return
    elif directory.is_symlink():
        # The directory that the link leads to would be replaced although the user did not name it.
        obstacle = "must not be a link; name the directory itself"
    elif not directory.is_dir():
        obstacle = "must be a directory, but is a file"
    elif any(directory.iterdir()) and not (directory / COMPLETE).is_file():
        obstacle = "must be a new directory or an earlier run, and this one has other files"
    elif any(directory.iterdir()) and not overwrite:
        obstacle = "it contains an earlier run; overwrite it (--overwrite), or name another"
    if obstacle:
        raise DirectoryError(f"out (--out): {obstacle}; got {directory}")


def fill_directory(directory: Path, fill: Callable[[Path], None], *, overwrite: bool, numbered: bool = False) -> Path:
    """Let `fill` write into a staging directory, then move that into place in one step.

    After any failure, Ctrl-C included, `directory` is unchanged and the staging directory is removed; that of a killed
    process is removed by the next run beside it.
    With `numbered`, the path is the first of `directory`, `directory-2`, `directory-3` … that is free at the end.

    Returns
    -------
    Path
        The directory that was filled.

    Raises
    ------
    DirectoryError
        If the path is taken and may not be replaced; it may have been taken since `check_free`. The run is then kept in
        the first of `directory-2`, `directory-3` … that is free, and the message names it.
    OSError
        If it cannot be written.
    """
    with staging_directory(directory) as staging:
        fill(staging)
        if numbered:
            return publish_numbered(staging, directory)
        try:
            check_free(directory, overwrite=overwrite)
            publish(staging, directory, replace=overwrite)
        except (DirectoryError, FileExistsError) as error:
            kept = publish_numbered(staging, directory)
            raise DirectoryError(
                f"out (--out): something exists already and is not replaced, so this run is kept in {kept}; "
                f"got {directory}"
            ) from error
    return directory


def link_latest(directory: Path) -> None:
    """Point the link `latest` beside a run to this run, in one step; do nothing if links cannot be made."""
    link = directory.with_name(LATEST)
    if link.exists() and not link.is_symlink():
        return  # a file or a run to which a user gave this name
    with suppress(OSError), staging_directory(link) as staging:
        made = staging / LATEST
        made.symlink_to(directory.name, target_is_directory=True)
        made.replace(link)


class UnfinishedRunError(ValueError):
    """The directory holds no finished run that can be read; the message states why."""


def read_record(path: Path) -> RunRecord:
    """
    Read `run.json` in the current format or an earlier one.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    record
        Its content; what earlier formats lack has its default.

    Raises
    ------
    UnfinishedRunError
        If the file is missing, is not a run record, or has a later format.
    """
    if not path.is_file():
        raise UnfinishedRunError(f"{path.parent}: no finished run here: run.json is not in it")
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UnfinishedRunError(f"{path}: not JSON: {error}") from error
    if not isinstance(facts, dict):
        raise UnfinishedRunError(f"{path}: must be a JSON object")
    number = facts.get("format", 1)
    if number not in range(1, RUN_FORMAT + 1):
        rule = f"must be a whole number from 1 to {RUN_FORMAT}, the formats that this version of crowdveil reads"
        raise UnfinishedRunError(
            f"{path}: format: {rule}; got {number!r}, written by version {facts.get('version', 'unknown')}"
        )
    try:
        record = RunRecord.model_validate(facts)
        if record.city.crs is not None:
            CRS.from_user_input(record.city.crs)
    except CRSError as error:
        words = "must be a coordinate system, as crowdveil wrote it"
        raise UnfinishedRunError(f"{path}: city.crs: {words}: {' '.join(str(error).split())[:200]}") from error
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise UnfinishedRunError(f"{path}: {faults}") from error
    return record


def write_record(record: RunRecord, directory: Path) -> None:
    """Write `run.json` in one step, with the fields that were set."""
    facts = record.model_dump(mode="json", by_alias=True, exclude_unset=True)
    staged = directory / f"{COMPLETE}.partial"
    staged.write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    staged.replace(directory / COMPLETE)


def read_scenario(directory: Path) -> Scenario:
    """Read the scenario of a run, whose data files need not exist any more.

    Raises
    ------
    UnfinishedRunError
        If the directory has none.
    """
    if not (directory / SCENARIO).is_file():
        raise UnfinishedRunError(f"{directory}: {SCENARIO} is not in it")
    return scenarios.load(directory / SCENARIO, files_exist=False)


class StoredTables(dict[str, Any]):
    """The tables of a run directory by name, each of which is read when it is first asked for; None if a run has none.

    Parameters
    ----------
    directory
        The directory.
    record
        Content of its `run.json`.

    Raises
    ------
    UnfinishedRunError
        If a file is missing; and when a table is read, if that cannot be, lacks a column that such a table has in every
        format, or has another type, mechanism or cell than `run.json`.
    """

    def __init__(self, directory: Path, record: RunRecord) -> None:
        super().__init__()
        self._directory, self._record = directory, record
        held = {path.stem for path in directory.glob("*.parquet")}
        self.update(dict.fromkeys({"roads", "surroundings", *OF_VEHICLES} - held))
        if record.format == 1:  # which may lack these
            self.update({name: pd.DataFrame() for name in ("servers", "attacks") if name not in held})
        if missing := [name for name in TABLES if name not in held | self.keys()]:
            raise UnfinishedRunError(f"{directory}: {missing[0]}.parquet is not in it")

    def __missing__(self, name: str) -> Any:
        """Read a table."""
        self[name] = _in_current_form(name, _read_table(self._directory, name, self._record), self._record)
        return self[name]


def _read_table(folder: Path, name: str, record: RunRecord) -> Any:
    """Read a table and check it."""
    path = folder / f"{name}.parquet"
    remedy = "restore the file, or run the scenario again"
    try:
        table = gpd.read_parquet(path) if name in SHAPES else pd.read_parquet(path)
    except (OSError, ValueError, TypeError, LookupError, RuntimeError, AttributeError, pa.ArrowException) as error:
        why = " ".join(str(error).split())
        raise UnfinishedRunError(f"{path}: cannot be read as Parquet: {why}; {remedy}") from error
    texts, numbers = (names.split() for names in _COLUMNS.get(name, ("", "")))
    if missing := [column for column in (*texts, *numbers) if column not in table]:
        raise UnfinishedRunError(f"{path}: without the columns {', '.join(missing)}: {remedy}")
    for column in (*texts, *numbers):
        if table[column].notna().any() and is_numeric_dtype(table[column]) != (column in numbers):
            kind = "numbers" if column in numbers else "texts"
            raise UnfinishedRunError(f"{path}: column {column} must have {kind}: {remedy}")
    known = {*(one.name for one in record.mechanisms), *(one.name for one in record.refinements)}
    if "mechanism" in texts and (others := {*map(str, table["mechanism"].dropna())} - known):
        raise UnfinishedRunError(f"{path}: {COMPLETE} has no mechanism {', '.join(sorted(others))}: {remedy}")
    if "cell" in numbers and record.city.cells and not table["cell"].between(1, record.city.cells).all():
        raise UnfinishedRunError(f"{path}: column cell must be from 1 to {record.city.cells}: {remedy}")
    return table


_RELEASED_BY = r"Released by (?P<release>.+?), campaigns? (?P<campaign>[^:]+): "
"""How the basis of a claim about a release begins, which in earlier runs alone names the release and its campaigns."""


def _in_current_form(name: str, table: Any, record: RunRecord) -> Any:
    """Return a table of any version with the columns that later ones have, as far as they are known.

    Scores of earlier versions lack those of mobility research, and may not state that they are of counts. Claims name
    a release and its campaigns in the basis only, and do not state their adjacency: those of published values hide at
    least a device that enters or leaves a cell.
    """
    if name == "cells":
        return table.to_crs(4326).sort_values("cell").reset_index(drop=True)
    if name == "estimates" and "time" not in table:
        return with_times(table, record.clock)
    if name == "scores":
        added = {**dict.fromkeys(MOBILITY_SCORES, np.nan), "statistic": "count"}
        return table.assign(**{column: value for column, value in added.items() if column not in table})
    if name != "claims":
        return table
    claims = table if "campaign" in table else table.assign(campaign=None)
    if "release" not in claims:
        named = claims["basis"].fillna("").str.extract(_RELEASED_BY)
        campaigns = named["campaign"].str.split(", ").where(named["release"].notna(), claims["campaign"])
        claims = claims.assign(release=named["release"], campaign=campaigns).explode("campaign", ignore_index=True)
    if "adjacency" not in claims:
        released = claims["view"].str.startswith("released")
        claims = claims.assign(adjacency=np.where(released, "enter_leave", "move"))
    return claims
