"""Detectors: the vehicles that pass positions on links, counted by interval, from the traversals of links."""

import numpy as np
import pandas as pd

from simulator.arrays import FloatArray
from simulator.traffic.link_intervals import Traversals
from simulator.traffic.places import passing_times


def passages(driven: Traversals, length_m: FloatArray, rows: pd.DataFrame, *, end_s: float) -> pd.DataFrame:
    """Count the vehicles that pass positions in intervals.

    A vehicle passes the start of a link (0) when it enters the link, its end (1) when it leaves it, onto another link
    or at its destination, and a position between them when its trajectory (Newell 2002) reaches it: in a queue, when
    the vehicles ahead let it move up; see `passing_times`. A recorded vehicle moves evenly. A trip that begins on a
    link enters at its start.

    Parameters
    ----------
    driven
        All traversals of the run.
    length_m
        (links,) float64.
    rows
        Positions, `link` and `fraction` of its length, and intervals that begin with `from_s` and end before `to_s`;
        the end of the run belongs to the interval that ends with it.
    end_s
        End of the run.

    Returns
    -------
    DataFrame
        With the index of `rows`: `count`, int64; and `speed_mps`, float64: length of the link over the mean time on it
        of the vehicles counted, without those that are still there at the end of the run, NaN without any. This is the
        harmonic mean of their speeds over the link, its queue included.
    """
    entry_s, leave_s = (np.minimum(column, end_s) for column in (driven.entry_s, driven.leave_s))
    passed = pd.DataFrame({"count": 0, "speed_mps": np.nan}, index=rows.index)
    for at in rows.reset_index().groupby(["link", "fraction"]).indices.values():
        link, fraction = (rows[name].iloc[at[0]] for name in ("link", "fraction"))
        here = slice(*np.searchsorted(driven.link, [link, link + 1]))
        entered, left = entry_s[here], leave_s[here]
        if 0.0 < fraction < 1.0:
            time_s = passing_times(driven.trajectories, here.start, here.stop, fraction)
        else:
            time_s = left if fraction else entered
        order = np.argsort(time_s)[: int((time_s <= end_s).sum())]  # NaN, of vehicles still there, comes last
        spent_s = (left - entered)[order]
        sums_s, timed = (np.append(0, np.cumsum(values)) for values in (np.nan_to_num(spent_s), ~np.isnan(spent_s)))
        from_s, to_s = rows["from_s"].to_numpy()[at], rows["to_s"].to_numpy()[at]
        low, high = np.searchsorted(time_s[order], [from_s, np.where(to_s >= end_s, np.inf, to_s)])
        with np.errstate(invalid="ignore", divide="ignore"):
            speed_mps = length_m[link] * (timed[high] - timed[low]) / (sums_s[high] - sums_s[low])
        passed.iloc[at] = np.column_stack([high - low, speed_mps])
    return passed


def detector_table(driven: Traversals, length_m: FloatArray, detectors: pd.DataFrame, *, end_s: float) -> pd.DataFrame:
    """Return the table `detectors` of a run (docs/columns.md): every interval of every detector, in their order.

    Parameters
    ----------
    driven, length_m, end_s
        As for `passages`.
    detectors
        `name`, `link`, `fraction` and `every_s` of each.
    """
    rows = detectors.loc[detectors.index.repeat(np.ceil(end_s / detectors["every_s"]).astype(np.int64))]
    from_s = rows.groupby(level=0).cumcount() * rows["every_s"]
    rows = rows.assign(from_s=from_s, to_s=np.minimum(from_s + rows["every_s"], end_s)).reset_index(drop=True)
    rows = rows.join(passages(driven, length_m, rows, end_s=end_s)).rename(columns={"name": "detector"})
    rows.insert(2, "position_m", rows["fraction"] * length_m[rows["link"]])
    return rows.drop(columns=["fraction", "every_s"])
