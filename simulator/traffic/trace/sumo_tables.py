"""SUMO's floating-car data as a table: CSV with semicolons, or Parquet."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from simulator.traffic.errors import TrafficError
from simulator.traffic.trace.fixes import Fixes
from simulator.traffic.trace.tables import Reading, fixes_of, numbers_of

WITHOUT_GEO = "x and y look like metres: let SUMO write --fcd-output.geo, or give the system they are in as traffic.crs"

_PLAIN = {"time", "id", "x", "y", "speed"}


def is_sumo(seen: Sequence[str]) -> bool:
    """Say whether columns are those of ``sumo --fcd-output``, with or without the names of their elements."""
    return {"timestep_time", "vehicle_id"} <= set(seen) or (
        set(seen) >= _PLAIN and not {"lane", "edge"}.isdisjoint(seen)
    )


def fixes_of_sumo(
    frame: pd.DataFrame, reading: Reading, *, source: str, place: npt.NDArray[np.int64], place_word: str
) -> Fixes:
    """Take a table of SUMO's; x and y are longitude and latitude unless a system of metres is given.

    A timestep without vehicles is a row without one; such rows, and those of persons, are left out.

    Raises
    ------
    TrafficError
        If columns or values are not what they should be.
    """
    named = "vehicle_" if "vehicle_id" in frame.columns else ""
    time = "timestep_time" if "timestep_time" in frame.columns else "time"
    columns = {role: f"{named}{column}" for role, column in (("vehicle", "id"), ("x", "x"), ("y", "y"))}
    if f"{named}speed" in frame.columns:
        columns["speed_mps"] = f"{named}speed"
    faults = [f"{source}: no column {name!r}" for name in [*columns.values(), time] if name not in frame.columns]
    if faults:
        raise TrafficError(faults)
    x, y = (numbers_of(frame[columns[role]]) for role in "xy")
    empty = frame[columns["vehicle"]].isna().to_numpy() & np.isnan(x) & np.isnan(y)
    if empty.all():
        raise TrafficError([f"{source}: it holds no vehicle"])
    metres = bool((np.abs(x[~empty]) > 180).any() and (np.abs(y[~empty]) > 90).any())
    if reading.crs is None:
        if metres:
            raise TrafficError([f"{source}: {WITHOUT_GEO}"])
        columns["lon"], columns["lat"] = columns.pop("x"), columns.pop("y")
    own = Reading({**columns, "time": time}, crs=reading.crs, time_unit_s=reading.time_unit_s or 1.0)
    there = frame[~empty]
    return fixes_of(there, own, source=source, vehicle="", place=place[~empty], place_word=place_word, ascending=True)
