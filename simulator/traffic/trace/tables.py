"""Conversion of tables, from any file format, to fixes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyproj
from pyproj.exceptions import CRSError

from simulator.files.text_table import numbers_in
from simulator.traffic.errors import TrafficError
from simulator.traffic.trace.columns import METRES_PER_SECOND, Columns
from simulator.traffic.trace.fixes import Fixes
from simulator.traffic.trace.times import Times

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TraceOptions:
    """Options for reading trace files.

    Attributes
    ----------
    columns
        Map from our name of a column to the file's, for the columns given by the user.
    crs
        Coordinate system of columns x and y, in metres; None if places are longitudes and latitudes.
    time_unit_s
        Seconds per unit of numeric times; None to derive it from their size.
    one_vehicle_a_file
        Whether a file is of one vehicle, named after the file.
    time_format
        Format of times in text, as for `strptime`; None for ISO 8601, or numbers.
    """

    columns: Mapping[str, str]
    crs: pyproj.CRS | None = None
    time_unit_s: float | None = None
    one_vehicle_a_file: bool = False
    time_format: str | None = None


def system_of(crs: object | None) -> pyproj.CRS | None:
    """Return the coordinate system named by `crs`; None if `crs` is None.

    Raises
    ------
    TrafficError
        If it names no coordinate system.
    """
    try:
        return None if crs is None else pyproj.CRS.from_user_input(crs)
    except CRSError as error:
        raise TrafficError([f"crs must name a coordinate system, got {crs!r}: {error}"]) from None


def fixes_of(
    frame: pd.DataFrame,
    reading: TraceOptions,
    *,
    source: str,
    vehicle: str,
    place: npt.NDArray[np.int64],
    place_word: str,
    ascending: bool = False,
    notes: tuple[str, ...] = (),
) -> Fixes:
    """Convert a table with one fix per row to fixes.

    Parameters
    ----------
    frame
        Table of fixes.
    reading
        Options for reading the table.
    source
        The file's name.
    vehicle
        Name of the vehicle, if the table is of one vehicle.
    place, place_word
        Line or row number of each fix, and which of the two it is.
    ascending
        Whether the format guarantees ascending times.
    notes
        Notes on what was left out before.

    Raises
    ------
    TrafficError
        If columns are missing or not recognised, or a value in them is invalid.
    """
    found = Columns.find(
        [str(name) for name in frame.columns],
        given=reading.columns,
        projected=reading.crs is not None,
        one_vehicle=reading.one_vehicle_a_file,
    )
    if isinstance(found, list):
        raise TrafficError(f"{source}: {fault}" for fault in found)
    if frame.empty:
        raise TrafficError([f"{source}: it holds no rows"])
    by_role = found.by_role
    codes, names = np.zeros(len(frame), dtype=np.int32), [vehicle]
    if not reading.one_vehicle_a_file:
        codes, names = vehicles_of(frame[by_role["vehicle"]])
    axes = ("lon", "lat") if reading.crs is None else ("x", "y")
    places = [numbers_of(frame[by_role[role]]) for role in axes]
    if reading.crs is not None:
        places = list(to_wgs84(places[0], places[1], reading.crs))
    speed = np.full(len(frame), np.nan)
    for role in (role for role in METRES_PER_SECOND if role in by_role):
        speed = numbers_of(frame[by_role[role]]) * METRES_PER_SECOND[role]
        break
    times = Times.from_column(frame[by_role["time"]], unit_s=reading.time_unit_s, written=reading.time_format)
    notes = (*notes, *(f"{source}: {note}" for note in found.notes))
    fixes = Fixes(source, codes, names, times, places[0], places[1], speed, place, place_word, ascending, notes)
    came = {"time": by_role["time"], "lon": by_role[axes[0]], "lat": by_role[axes[1]]}
    check(fixes, {name: frame[column] for name, column in came.items()})
    return fixes


def check(fixes: Fixes, received: Mapping[str, "pd.Series[Any]"] | None = None) -> None:
    """Check fixes individually; `received` holds the original columns, for quotations in messages.

    Raises
    ------
    TrafficError
        If any fix is invalid, with every broken rule and its rows.
    """
    faults = list(fixes.faults(received))
    if faults:
        raise TrafficError(faults)


def vehicles_of(column: "pd.Series[Any]") -> tuple[npt.NDArray[np.int32], list[str]]:
    """Return a column's vehicles as indices of their names, -1 if empty, and the names; a float 7.0 is vehicle 7."""
    codes, found = pd.factorize(column, use_na_sentinel=True)
    names = [str(int(name)) if isinstance(name, float) and name.is_integer() else str(name).strip() for name in found]
    blank = np.array([not name for name in names], dtype=bool)
    numbers: npt.NDArray[np.int32] = codes.astype(np.int32)
    if blank.any():
        numbers[blank[codes] & (codes >= 0)] = -1
    return numbers, names


def numbers_of(column: "pd.Series[Any]") -> FloatArray:
    """Return a column as numbers, NaN where there is no finite number."""
    if column.dtype.kind not in "iuf":
        column = numbers_in(column)
    numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def to_wgs84(x: FloatArray, y: FloatArray, crs: pyproj.CRS) -> tuple[FloatArray, FloatArray]:
    """Return longitudes and latitudes of places in `crs`; NaN outside the area of `crs`."""
    transformer = pyproj.Transformer.from_crs(crs, "EPSG:4326", always_xy=True)
    lon, lat = transformer.transform(np.append(x, x[:1]), np.append(y, y[:1]))
    lon, lat = np.asarray(lon)[: len(x)], np.asarray(lat)[: len(x)]
    return np.where(np.isfinite(lon), lon, np.nan), np.where(np.isfinite(lat), lat, np.nan)
