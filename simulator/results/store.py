"""Run directory: written completely or not at all, and the reader of its `run.json`."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api.types import is_numeric_dtype
from pydantic import ValidationError
from pyproj import CRS
from pyproj.exceptions import CRSError

from simulator.experiment.mobility_scores import MobilityScores
from simulator.files.atomic_write import publish, publish_numbered, remove_leftovers, staging_directory
from simulator.results.record import RUN_FORMAT, RunRecord

COMPLETE = "run.json"
"""File that is written last, so that its presence means a complete run."""

ROADS = "roads.parquet"
"""File with the links of the roads, if the scenario has any."""

SURROUNDINGS = "surroundings.parquet"
"""File with water, places and streets for maps, if the source of the roads has any."""

TABLES = ("estimates", "rounds", "servers", "scores", "claims", "attacks")
"""The tables, each in a Parquet file of its name."""

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
"""Tables about single vehicles, in files of their names too; a run may have none of them."""

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


def read_table(folder: Path, name: str, record: RunRecord, read: Callable[[Path], Any] = pd.read_parquet) -> Any:
    """Read a table of a run directory.

    Parameters
    ----------
    folder
        The directory.
    name
        Name of the table; its file is ``NAME.parquet``.
    record
        Content of `run.json`.
    read
        Reads the file.

    Returns
    -------
    pandas.DataFrame
        What `read` returns; it has the columns that such a table has in every format, of their types, and the
        mechanisms and cells of the record. Scores of earlier formats lack those of mobility research, and may not state
        that they are of counts: these are added.

    Raises
    ------
    UnfinishedRunError
        If the file is missing, cannot be read, lacks such a column, or has another mechanism or cell.
    """
    path = folder / f"{name}.parquet"
    if not path.is_file():
        raise UnfinishedRunError(f"{folder}: {path.name} is not in it")
    remedy = "restore the file, or run the scenario again"
    try:
        table = read(path)
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
    added = {**dict.fromkeys(MobilityScores._fields, np.nan), "statistic": "count"} if name == "scores" else {}
    return table.assign(**{column: value for column, value in added.items() if column not in table})
