"""Tables of a run as frames: figures of all vehicles, moments as text, and what pages and plots select."""

from typing import Any

import numpy as np
import pandas as pd

from scenarios.run_clock import RunClock

SCALED = ("estimate", "std_error", "lower", "upper")
"""Columns of `estimates.parquet` that have a scaled one beside them."""
SCALED_SCORES = ("mae", "rmse", "bias", "max_error", "coverage", "theory_rmse")
"""Columns of `scores.parquet` that have a scaled one beside them."""

MOBILITY_SCORES = ("earth_movers_m", "jensen_shannon", "kendall_tau", "top_n_overlap")
"""Columns of `scores.parquet` with scores of mobility research."""


def is_partial(scores: pd.DataFrame) -> bool:
    """Return whether fewer than all vehicles take part, or are assumed to, in a run with these `scores`.

    Scores of earlier versions do not state it: they are those of the devices asked.
    """
    stated = [name for name in ("participation", "assumed_participation") if name in scores]
    return bool((scores[stated] != 1.0).any(axis=None))


def of_all_vehicles(table: pd.DataFrame) -> pd.DataFrame:
    """Return `estimates` or `scores` with the figures of all vehicles in place of those of the devices asked.

    Rows without them, which are those of speeds, stay as they are: who takes part does not change a mean speed on
    average.
    """
    if "scaled_rmse" in table:
        counts, pairs = table["scaled_rmse"].notna(), {name: f"scaled_{name}" for name in SCALED_SCORES}
    else:
        counts = table["scaled_estimate"].notna()
        pairs = {"truth": "vehicles", **{name: f"scaled_{name}" for name in SCALED}}
    return table.assign(**{name: table[scaled].where(counts, table[name]) for name, scaled in pairs.items()})


def with_times(table: pd.DataFrame, clock: RunClock) -> pd.DataFrame:
    """Return a table with the column `time` beside `time_s`, as text (`RunClock.text`)."""
    moments, of_rows = np.unique(table["time_s"], return_inverse=True)
    texts = pd.Series([clock.text(moment) for moment in moments.tolist()], dtype="str").array
    timed, place = table.copy(deep=False), [*table].index("time_s") + 1
    timed.insert(place, "time", pd.Series(texts.take(of_rows), index=table.index))
    return timed


def mean_asked(rounds: pd.DataFrame) -> dict[tuple[str, str], float]:
    """Return the mean number of devices asked per query, by campaign and mechanism."""
    keys = ["campaign", "mechanism"]
    asked = rounds[rounds["asked"] > 0]  # of a budget, some questions are not asked
    by_query = asked.groupby([*keys, "query"], sort=False, observed=True)["asked"].max().reset_index()
    means = by_query.groupby(keys, sort=False, observed=True)["asked"].mean().reset_index()
    names = zip(means["campaign"].astype(str), means["mechanism"].astype(str), strict=True)
    return dict(zip(names, means["asked"].astype(float), strict=True))


def records(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the rows of a frame by column, with None for each missing value."""
    rows = frame.to_dict("records")
    return [{name: None if pd.isna(value) else value for name, value in row.items()} for row in rows]
