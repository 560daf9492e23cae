"""Loader of traces in all formats of the trace engine."""

from pathlib import Path

import numpy as np
import pandas as pd

from simulator.datasets.errors import DatasetError
from simulator.traffic.errors import TrafficError
from simulator.traffic.trace.trace import read_trace

NEW_YORK = (-74.2589, 40.4774, -73.7004, 40.9176)
"""Western, southern, eastern and northern limit of New York City, degrees."""
MARGIN_DEGREES = 0.05
"""How far outside these limits a trip may go and still count as a trip of New York City, degrees."""


def read_traces(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read recorded positions as the trace engine does.

    Parameters
    ----------
    file
        Any format of `simulator.traffic.trace.trace.read_trace`.

    Returns
    -------
    frame : DataFrame
        ``vehicle`` (text); ``time_s`` (seconds since 1970 where the file has dates, else as recorded) and, for dates,
        ``time`` (UTC); ``lon``, ``lat``; ``speed_mps`` (NaN where not recorded). Sorted by vehicle, then time.
    notes : list of str
        What was left out, and how ambiguous data were read.

    Raises
    ------
    DatasetError
        If the file is not a recording.
    """
    try:
        trace = read_trace(file)
    except TrafficError as error:
        raise DatasetError(error.faults) from None
    frame = trace.frame()
    if trace.calendar:
        frame.insert(2, "time", pd.to_datetime(frame["time_s"], unit="s", utc=True))
    return frame, list(trace.left_out)


def read_timed_paths(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read taxi trips of New York City; a trip that leaves the city by more than `MARGIN_DEGREES` is left out.

    Parameters, returns and errors are those of `read_traces`.
    """
    frame, notes = read_traces(file)
    west, south, east, north = NEW_YORK
    lon, lat = frame["lon"].to_numpy(), frame["lat"].to_numpy()
    away = np.maximum.reduce([west - lon, lon - east, south - lat, lat - north]) > MARGIN_DEGREES
    gone = frame["vehicle"].isin(frame.loc[away, "vehicle"].unique())
    if gone.any():
        names = ", ".join(sorted(frame.loc[gone, "vehicle"].unique())[:20])
        notes.append(f"trips that leave New York City, left out: {names} ({int(gone.sum()):,} points)")
    return frame[~gone].reset_index(drop=True), notes
