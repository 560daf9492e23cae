"""Rows of links that can be used, and why the others cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simulator.files.row_words import SHOWN_ROWS
from simulator.roads.errors import RoadsError
from simulator.roads.read_report import DroppedRows

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray


def usable_rows(
    reasons: Mapping[str, NDArray[np.bool_]], *, file: str | Path, what: str
) -> tuple[NDArray[np.bool_], tuple[DroppedRows, ...]]:
    """Sort rows into those that can be used and the others; a row is dropped for the first reason that holds.

    Parameters
    ----------
    reasons
        For each reason in words the rows it holds for, shape (rows,); at least one.
    file
        The file, for the message.
    what
        What a row is, "edge" or "link".

    Returns
    -------
    usable : ndarray
        bool, shape (rows,).
    dropped : tuple of DroppedRows
        One entry a reason that holds.

    Raises
    ------
    RoadsError
        If no row can be used; with the reasons.
    """
    usable = np.ones(len(next(iter(reasons.values()))), dtype=np.bool_)
    dropped = []
    for reason, wrong in reasons.items():
        numbers = (np.flatnonzero(wrong & usable) + 1).tolist()
        if numbers:
            dropped.append(DroppedRows(reason, tuple(numbers[:SHOWN_ROWS]), len(numbers)))
        usable &= ~wrong
    if not usable.any():
        said = "; ".join(map(str, dropped))
        raise RoadsError([f"{file}: the road network is empty: no {what} can be used ({said})"])
    return usable, tuple(dropped)
