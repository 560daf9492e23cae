"""Counted rows: how many owners a row stands for, once duplicates and fractions are dealt with."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from simulator.files.counted import counted
from simulator.traffic.errors import TrafficError
from simulator.traffic.static.rows import Rows
from simulator.traffic.trips import too_many

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
_WHOLE = 1e-9


def counts_of(rows: Rows) -> FloatArray:
    """Read the counts, (rows,) float64, finite and 0 or more.

    Raises
    ------
    TrafficError
        Naming the rows where something else stands.
    """
    count, wrong = rows.numbers("count")
    faults = []
    for broken, rule in (
        (wrong, "must be a number"),
        (np.isnan(count) & ~wrong, "is missing"),
        (count < 0, "must be at least 0"),
    ):
        if broken.any():
            faults.append(rows.fault("count", broken, rule))
    if faults:
        raise TrafficError(faults)
    return count


def without_duplicates(
    rows: Rows,
    site: npt.NDArray[np.int32],
    arrive_s: FloatArray | None,
    count: FloatArray | None,
    *,
    rule: str | None,
) -> tuple[BoolArray, list[str]]:
    """Choose among rows of the same place, period, time and owner.

    Parameters
    ----------
    rows
        Those that count.
    site, arrive_s, count
        (rows,) each, or None where the file does not have it.
    rule
        "refuse", "first", "last", "greatest" or "sum"; None for "refuse" where rows have counts, else "sum".

    Returns
    -------
    tuple
        (rows,) bool: which to take; and what there was to say.

    Raises
    ------
    TrafficError
        If there are duplicates and the rule refuses them.
    """
    everything = np.ones(len(rows), dtype=bool)
    told_apart = [name for name in ("period", "time", "owner") if rows.has(name)]
    if count is None and not told_apart:
        return everything, []  # rows of owners nothing is known about but the place
    keys: dict[str, object] = {"site": site}
    for name in told_apart:
        keys[name] = arrive_s if name == "time" else pd.factorize(rows.texts(name))[0]
    frame = pd.DataFrame(keys)
    repeated = frame.duplicated(keep="first").to_numpy()
    if not repeated.any():
        return everything, []
    alike = " and ".join(["place", *told_apart])
    rule = rule or ("sum" if count is None else "refuse")
    number = f"{counted(int(repeated.sum()), 'row')} of the same {alike} as an earlier one"
    if rule == "refuse":
        missing = "" if told_apart else "; name the column that tells rows of a place apart as columns.period"
        say = f"{rows.file}: {number}: {rows.words(repeated)}; say what to do with them as duplicates = "
        raise TrafficError([f'{say}"first", "last", "greatest" or "sum"{missing}'])
    if rule == "sum":
        return everything, [f"{rows.file}: {number}: each counts"]
    if rule == "greatest" and count is not None:
        frame["less"], frame["row"] = -count, np.arange(len(rows))
        order = frame.sort_values([*keys, "less", "row"], kind="stable")
        keep = np.zeros(len(rows), dtype=bool)
        keep[order["row"][~order.duplicated(list(keys))].to_numpy()] = True
    else:
        keep = ~frame.duplicated(keep="last" if rule == "last" else "first").to_numpy()
    return keep, [f"{rows.file}: {number}: the {rule} of each counts"]


def expanded(
    rows: Rows,
    site: npt.NDArray[np.int32],
    arrive_s: FloatArray | None,
    count: FloatArray | None,
    *,
    fractions: str,
) -> tuple[IntArray | None, list[str]]:
    """Say how many owners each row stands for.

    Parameters
    ----------
    rows, site, arrive_s, count
        Of each row.
    fractions
        "refuse", or "nearest": the total of a place at a time is rounded, halves to the even, and the row that the
        remainder falls to is the last of them.

    Returns
    -------
    tuple
        (rows,) int64, None where each is one; and what there was to say.

    Raises
    ------
    TrafficError
        If counts are not whole and that is refused, or there are more owners than can be meant.
    """
    total = float(len(rows)) if count is None else float(count.sum())
    if fault := too_many(total):
        hint = "choose rows with where or window, or take a part of them"
        raise TrafficError([f"{rows.file}: a vehicle is a data owner: {fault}; {hint}"])
    if count is None:
        return None, []
    broken = np.abs(count - np.rint(count)) > _WHOLE
    if not broken.any():
        return np.rint(count).astype(np.int64), []
    if fractions == "refuse":
        say = 'must be whole; or take the nearest, fractions = "nearest"'
        raise TrafficError([rows.fault("count", broken, say)])
    keys: list[npt.NDArray[Any]] = [site] if arrive_s is None else [arrive_s, site]
    order = np.lexsort(keys[::-1])
    first = np.ones(len(order), dtype=bool)
    first[1:] = np.any([key[order[1:]] != key[order[:-1]] for key in keys], axis=0)
    # Rounding the running total of each place gives whole numbers that add up to the rounded total.
    so_far = np.cumsum(count[order])
    starts = np.flatnonzero(first)
    before = np.concatenate(([0.0], so_far))[starts]
    sizes = np.diff(np.append(starts, len(order)))
    running = np.rint(np.round(so_far - np.repeat(before, sizes), 6)).astype(np.int64)
    number = np.diff(running, prepend=0)
    number[starts] = running[starts]
    whole = np.empty(len(order), dtype=np.int64)
    whole[order] = number
    counts = counted(int(broken.sum()), "count is", "counts are")
    return whole, [f"{rows.file}: {counts} not whole: the total of each place is rounded"]
