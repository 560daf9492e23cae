"""Data sets that entries read; none is part of this project."""

import os
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

from simulator.reproduction.entry import Reproduction

if TYPE_CHECKING:
    import pandas as pd

VARIABLE = "CROWDVEIL_DATA"
GOWALLA = "gowalla_nyc/gowalla_events.csv.gz"
PEMS = "pems_typical_weekday/pems_hour_d04_2019.csv.gz"
ORIGINS = {
    GOWALLA: "the check-ins of SNAP's loc-gowalla (snap.stanford.edu/data) within New York City: user, time, latitude, "
    "longitude and location, tab-separated, gzipped",
    PEMS: "Caltrans PeMS, a typical weekday of 2019 by station and hour, district 4: pems_hour_d04_2019 of "
    "github.com/BayAreaMetro/pems-typical-weekday as gzipped CSV",
}

P = ParamSpec("P")


class DataError(Exception):
    """A data set that is not there, or is not what it should be; the message names the file."""


def skips_without_data(reproduce: Callable[P, Reproduction]) -> Callable[P, Reproduction]:
    """Make an entry that cannot have its data say so instead of failing."""

    @wraps(reproduce)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> Reproduction:
        try:
            return reproduce(*args, **kwargs)
        except DataError as error:
            return Reproduction(skipped=str(error))

    return guarded


def locate(inside: str) -> Path:
    """Return a file under the folder that CROWDVEIL_DATA names.

    Parameters
    ----------
    inside
        FOLDER/FILE, one of `ORIGINS`.

    Raises
    ------
    DataError
        If it is not there; the message says what it is and where it belongs.
    """
    folder = os.environ.get(VARIABLE)
    what = f"It is {ORIGINS[inside]}."
    if not folder:
        raise DataError(f"needs the file {inside}, and {VARIABLE}, the folder of data sets, is not set. {what}")
    path = Path(folder, inside)
    if not path.is_file():
        raise DataError(f"there is no file {inside} under {VARIABLE} = {folder}. {what}")
    return path


def read_table(
    inside: str, *, columns: Sequence[str], header: bool, separator: str = ",", **how: Any
) -> "pd.DataFrame":
    """Read some columns of a gzipped table.

    Parameters
    ----------
    inside
        FOLDER/FILE.
    columns
        Those needed; without a header, the names of all.
    header
        Whether the first line names the columns.
    separator
        Between fields.
    **how
        For `pandas.read_csv`.

    Raises
    ------
    DataError
        If it is not there, cut short, no table, lacks a column, or holds no row.
    """
    import zlib  # noqa: PLC0415  imports wait until needed: a list of entries computes nothing

    import pandas as pd  # noqa: PLC0415

    path = locate(inside)
    named: dict[str, Any] = {"usecols": list(columns)} if header else {"names": list(columns), "header": None}
    try:
        table: pd.DataFrame = pd.read_csv(path, sep=separator, compression="gzip", **named, **how)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        said = " ".join(str(error).split())
        raise DataError(f"{path} cannot be read as it should be: {said}. It is {ORIGINS[inside]}.") from error
    if table.empty:
        raise DataError(f"{path} holds no row. It is {ORIGINS[inside]}.")
    return table
