"""Data sets that entries read; none is part of this project."""

import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

import scenarios
from scenarios import ScenarioError
from simulator.papers.published_results import DataError

GOWALLA = "gowalla_nyc/gowalla_events.csv.gz"
PEMS = "pems_typical_weekday/pems_hour_d04_2019.csv.gz"


def locate(inside: str) -> Path:
    """Return a file under the folder that CROWDVEIL_DATA names.

    Parameters
    ----------
    inside
        FOLDER/FILE, as the manifest of data sets lists it.

    Raises
    ------
    DataError
        If the file is missing; the message states what it is and where it belongs.
    """
    try:
        return scenarios.locate(f"data:{inside}")
    except ScenarioError as error:
        raise DataError(error.faults[0].rule) from None


def without_folder(text: str) -> str:
    """Return a text without the folder that CROWDVEIL_DATA names, which is specific to this machine."""
    folder = os.environ.get("CROWDVEIL_DATA")
    return text.replace(f" = {folder}", "").replace(f"{Path(folder)}{os.sep}", "") if folder else text


def read_table(inside: str, *, columns: Sequence[str], header: bool, separator: str = ",", **how: Any) -> pd.DataFrame:
    """Read some columns of a gzipped table.

    Parameters
    ----------
    inside
        FOLDER/FILE.
    columns
        The columns needed; for a file without a header, the names of all columns.
    header
        Whether the first line names the columns.
    separator
        The separator between fields.
    **how
        Further arguments of `pandas.read_csv`.

    Raises
    ------
    DataError
        If the file is missing, is truncated, is not a table, lacks a column, or has no row.
    """
    path = locate(inside)
    named: dict[str, Any] = {"usecols": list(columns)} if header else {"names": list(columns), "header": None}
    try:
        table: pd.DataFrame = pd.read_csv(path, sep=separator, compression="gzip", **named, **how)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        message = " ".join(str(error).split())
        raise DataError(f"{path} cannot be parsed: {message}") from error
    if table.empty:
        raise DataError(f"{path} holds no row")
    return table
