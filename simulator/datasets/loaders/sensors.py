"""Loader of detector positions and distances."""

from pathlib import Path

import pandas as pd

from simulator.datasets.rows import DatasetRows
from simulator.files.errors import InputError

_BAY = ("sensor", "latitude", "longitude")
_DISTANCES = ("from", "to", "cost")


def read_sensors(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read the positions of sensors.

    Parameters
    ----------
    file
        CSV: ``ID,Fwy,Dir,District,Latitude,Longitude``, ``index,sensor_id,latitude,longitude``, or, without a header,
        sensor, latitude, longitude.

    Returns
    -------
    frame : DataFrame
        ``sensor`` (int64), ``lon``, ``lat``; if the file has them, ``route`` (int64), ``direction``.
    notes : list of str
        Empty.

    Raises
    ------
    InputError
        If a field is invalid, or a sensor occurs twice.
    """
    rows = DatasetRows.from_file(file)
    seen = {str(column).lower(): str(column) for column in rows.frame.columns}
    if "latitude" not in seen:
        rows, seen = DatasetRows.from_file(file, names=_BAY), {column: column for column in _BAY}
    identifier = next((seen[name] for name in ("sensor_id", "id", "sensor") if name in seen), "sensor_id")
    lon = seen.get("longitude", "longitude")
    if absent := [column for column in (identifier, lon) if column not in rows.frame.columns]:
        raise InputError(f"{file}: no column {column!r}; its columns are {', '.join(seen)}" for column in absent)
    sensor = rows.integers(identifier)
    rows.refuse(identifier, pd.Series(sensor).duplicated().to_numpy(), "there once")
    frame = pd.DataFrame({"sensor": sensor, **rows.places(lon, seen["latitude"])})
    if "fwy" in seen and "dir" in seen:
        frame["route"], frame["direction"] = rows.integers(seen["fwy"]), rows.texts(seen["dir"])
    return frame, []


def read_sensor_distances(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read road distances between sensors; a row that equals an earlier one is left out.

    Parameters
    ----------
    file
        CSV: ``from,to,cost``, with that header or without.

    Returns
    -------
    frame : DataFrame
        ``from_sensor``, ``to_sensor`` (int64), ``distance_m``.
    notes : list of str
        What was left out.

    Raises
    ------
    InputError
        If a field is invalid.
    """
    rows = DatasetRows.from_file(file)
    rows = rows if set(_DISTANCES) <= set(rows.frame.columns) else DatasetRows.from_file(file, names=_DISTANCES)
    frame = pd.DataFrame(
        {
            "from_sensor": rows.integers("from"),
            "to_sensor": rows.integers("to"),
            "distance_m": rows.numbers("cost", at_least=0),
        }
    )
    again = frame.duplicated()
    notes = [f"{int(again.sum()):,} rows equal to an earlier one, left out"] if again.any() else []
    return frame[~again].reset_index(drop=True), notes
