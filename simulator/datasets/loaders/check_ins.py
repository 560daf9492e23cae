"""Loader of check-ins: users, places and times."""

from pathlib import Path

import numpy as np
import pandas as pd

from simulator.datasets.rows import DatasetRows

_SNAP = ("user", "time", "lat", "lon", "place")


def read_check_ins(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read check-ins, in the format of SNAP's loc-gowalla or as CSV.

    A row that equals an earlier one in every field is left out. If a place has more than one pair of coordinates, all
    its check-ins get the most frequent pair; among equally frequent ones, the first in the file.

    Parameters
    ----------
    file
        Tab-separated, no header: user, time, latitude, longitude, place (a number); or CSV with a header that names
        ``user``, ``time``, ``lon``, ``lat``, ``place`` (text). The format is detected from the first row.

    Returns
    -------
    frame : DataFrame
        ``user`` (int64), ``time`` (UTC), ``lon``, ``lat`` (degrees, WGS84), ``place`` (int64, or
        text); in the order of the file.
    notes : list of str
        What was left out or replaced.

    Raises
    ------
    InputError
        If a field is invalid.
    """
    rows = DatasetRows.from_file(file, separator="\t", names=_SNAP, quoted=False)
    first = rows.frame.iloc[0]
    named = first[list(_SNAP[1:])].isna().all() and "user" in str(first["user"]).split(",")
    if named:
        rows = DatasetRows.from_file(file, needed=_SNAP)
    frame = pd.DataFrame(
        {
            "user": rows.integers("user"),
            "time": rows.times("time", form="ISO8601", zone="UTC"),
            **rows.places("lon", "lat"),
            "place": rows.texts("place") if named else rows.integers("place"),
        }
    )
    notes = []
    again = frame.duplicated()
    if again.any():
        notes.append(f"{int(again.sum()):,} rows equal to an earlier one, left out")
        frame = frame[~again].reset_index(drop=True)
    each = frame.groupby(["place", "lon", "lat"], sort=False).size().reset_index(name="count")
    several = each["place"].duplicated(keep=False)
    if several.any():
        # groupby keeps the order of first appearance, and a stable sort keeps it among equally frequent pairs.
        chosen = each.sort_values("count", ascending=False, kind="stable").drop_duplicates("place").set_index("place")
        place = chosen.loc[frame["place"], ["lon", "lat"]].to_numpy(dtype=np.float64)
        moved = (frame[["lon", "lat"]].to_numpy() != place).any(axis=1)
        frame["lon"], frame["lat"] = place[:, 0], place[:, 1]
        notes.append(
            f"{each.loc[several, 'place'].nunique():,} places with more than one coordinate have the commonest: "
            f"replaced in {int(moved.sum()):,} rows"
        )
    return frame, notes


def read_places(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read the names and positions of places.

    Parameters
    ----------
    file
        Tab-separated, no header: place, name, latitude, longitude. Quotation marks are part of a name.

    Returns
    -------
    frame : DataFrame
        ``place`` (int64), ``name``, ``lon``, ``lat``.
    notes : list of str
        Empty.

    Raises
    ------
    InputError
        If a field is invalid, or a place occurs twice.
    """
    rows = DatasetRows.from_file(file, separator="\t", names=("place", "name", "lat", "lon"), quoted=False)
    place = rows.integers("place")
    rows.refuse("place", pd.Series(place).duplicated().to_numpy(), "there once")
    return pd.DataFrame({"place": place, "name": rows.texts("name"), **rows.places("lon", "lat")}), []
