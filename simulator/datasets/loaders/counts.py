"""Loader of detector counts by hour, by part of the day, or by five minutes."""

from pathlib import Path

import numpy as np
import pandas as pd

from simulator.datasets.rows import DatasetRows
from simulator.files.errors import InputError

METRES_PER_MILE = 1609.344
_NEEDED = (
    *("station", "district", "route", "direction", "type", "lanes", "median_flow", "avg_flow", "sd_flow"),
    *("median_speed", "median_occup", "days_observed", "abs_pm", "latitude", "longitude"),
)
PERIODS = ("EA", "AM", "MD", "PM", "EV")
"""Parts of the day, in chronological order: early, morning, midday, afternoon, evening."""


def read_counts(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read the counts of a typical weekday from Caltrans PeMS.

    A station whose lanes changed during the year has two rows for an hour. Of these, the row observed on more days is
    used; if the days are equal, the row with more lanes; if these are equal too, the first row. Rows without
    coordinates are kept.

    Parameters
    ----------
    file
        CSV with a column ``hour`` (0 to 23) or ``time_period`` (`PERIODS`).

    Returns
    -------
    frame : DataFrame
        ``station`` (int64); ``hour`` (int64) or ``period`` (text); ``vehicles`` (median over the days, all lanes),
        ``mean_vehicles``, ``sd_vehicles`` (NaN if only one day was observed); ``speed_mps``, ``occupancy`` (share of
        time, 0 to 1), NaN where not measured; ``lanes``, ``days``; ``district``, ``route`` (int64), ``direction``,
        ``type`` (ML is mainline); ``postmile_m`` (along the route), ``lon``, ``lat``, NaN where not known. Ordered by
        station and time of day.
    notes : list of str
        What was left out, and how many rows have no coordinates.

    Raises
    ------
    InputError
        If a field is invalid.
    """
    rows = DatasetRows.from_file(file, needed=_NEEDED)
    moments = [name for name in ("hour", "time_period") if name in rows.frame.columns]
    if len(moments) != 1:
        raise InputError([f"{file}: must have a column 'hour' or 'time_period', and not both"])
    if moments == ["hour"]:
        moment = "hour"
        when = rows.numbers("hour", at_least=0, at_most=23, whole=True).astype(np.int64)
    else:
        moment = "period"
        rows.refuse("time_period", ~rows.frame["time_period"].isin(PERIODS).to_numpy(), f"one of {', '.join(PERIODS)}")
        when = rows.frame["time_period"].map(PERIODS.index).to_numpy(dtype=np.int64)
    frame = pd.DataFrame(
        {
            "station": rows.integers("station"),
            moment: when,
            "vehicles": rows.numbers("median_flow", at_least=0),
            "mean_vehicles": rows.numbers("avg_flow", at_least=0),
            "sd_vehicles": rows.numbers("sd_flow", at_least=0, empty=True),
            "speed_mps": rows.numbers("median_speed", at_least=0, empty=True) * METRES_PER_MILE / 3600,
            "occupancy": rows.numbers("median_occup", at_least=0, at_most=1, empty=True),
            "lanes": rows.integers("lanes", at_least=1),
            "days": rows.integers("days_observed", at_least=1),
            "district": rows.integers("district"),
            "route": rows.integers("route"),
            "direction": rows.texts("direction"),
            "type": rows.texts("type"),
            "postmile_m": rows.numbers("abs_pm", empty=True) * METRES_PER_MILE,
            **rows.places("longitude", "latitude", empty=True),
        }
    )
    best_first = frame.sort_values(
        ["station", moment, "days", "lanes"], ascending=[True, True, False, False], kind="stable"
    )
    again = best_first.duplicated(["station", moment])
    notes = []
    if again.any():
        notes.append(
            f"{int(again.sum()):,} rows of a station and {moment} that another row has too, left out: the one observed "
            "on more days is kept"
        )
    frame = best_first[~again].reset_index(drop=True)
    if moment == "period":
        frame["period"] = frame["period"].map(dict(enumerate(PERIODS)))
    nowhere = frame["lon"].isna() | frame["lat"].isna()
    if nowhere.any():
        stations = frame.loc[nowhere, "station"].nunique()
        notes.append(f"{int(nowhere.sum()):,} rows, of {stations:,} stations, have no coordinates: kept, with none")
    return frame, notes


def read_five_minutes(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read 5-minute counts of one lane.

    Parameters
    ----------
    file
        CSV, with or without a byte order mark; dates are written dd/mm/yyyy.

    Returns
    -------
    frame : DataFrame
        ``time`` (start of the interval, local time of California, no zone), ``vehicles`` (int64), ``lane_points``
        (int64), ``observed`` (share, 0 to 1).
    notes : list of str
        How many times there is a gap in the times.

    Raises
    ------
    InputError
        If a field is invalid, or the times do not ascend.
    """
    count, points, share = "Lane 1 Flow (Veh/5 Minutes)", "# Lane Points", "% Observed"
    rows = DatasetRows.from_file(file, needed=("5 Minutes", count, points, share))
    frame = pd.DataFrame(
        {
            "time": rows.times("5 Minutes", form="%d/%m/%Y %H:%M"),
            "vehicles": rows.integers(count),
            "lane_points": rows.integers(points),
            "observed": rows.numbers(share, at_least=0, at_most=100) / 100,
        }
    )
    steps = frame["time"].diff()
    rows.refuse("5 Minutes", (steps <= pd.Timedelta(0)).to_numpy(), "later than the row before")
    jumps = int((steps > pd.Timedelta(minutes=5)).sum())
    return frame, [f"the clock jumps {jumps} times, over days that are not in it"] if jumps else []
