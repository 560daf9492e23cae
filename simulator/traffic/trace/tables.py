"""Tables of fixes: rows and columns of any format, converted to fixes."""

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
    """How files are to be read.

    Attributes
    ----------
    columns
        Our name of a column to the file's, for those the user names.
    crs
        Of columns x and y, in metres; None where places are longitudes and latitudes.
    time_unit_s
        Seconds that one of a number of time is; None tells it by size.
    one_vehicle_a_file
        Whether a file is of one vehicle, named as the file.
    time_format
        How times are written in text, as `strptime` has it; None for ISO 8601, or numbers.
    """

    columns: Mapping[str, str]
    crs: pyproj.CRS | None = None
    time_unit_s: float | None = None
    one_vehicle_a_file: bool = False
    time_format: str | None = None


def system_of(crs: object | None) -> pyproj.CRS | None:
    """Return the coordinate system that something names; None where nothing does.

    Raises
    ------
    TrafficError
        If it names none.
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
    """Take a table of one fix a row.

    Parameters
    ----------
    frame
        Rows.
    reading
        What the user says of them.
    source
        The file's name.
    vehicle
        Name of the vehicle, where the table is of one.
    place, place_word
        The line or row of each, and which of the two it is.
    ascending
        Whether the format promises that clocks go forward.
    notes
        What was left out before.

    Raises
    ------
    TrafficError
        If columns are not there or cannot be told, or a value in them is not what it should be.
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
    """Refuse fixes that are wrong one by one; `received` are the columns they came from, to quote.

    Raises
    ------
    TrafficError
        With every rule that is broken and where.
    """
    faults = list(fixes.faults(received))
    if faults:
        raise TrafficError(faults)


def vehicles_of(column: "pd.Series[Any]") -> tuple[npt.NDArray[np.int32], list[str]]:
    """Return vehicles of a column as indices of their names, -1 where there is none; a float 7.0 is vehicle 7."""
    codes, found = pd.factorize(column, use_na_sentinel=True)
    names = [str(int(name)) if isinstance(name, float) and name.is_integer() else str(name).strip() for name in found]
    blank = np.array([not name for name in names], dtype=bool)
    numbers: npt.NDArray[np.int32] = codes.astype(np.int32)
    if blank.any():
        numbers[blank[codes] & (codes >= 0)] = -1
    return numbers, names


def numbers_of(column: "pd.Series[Any]") -> FloatArray:
    """Return a column as numbers, NaN where there is none, infinities included."""
    if column.dtype.kind not in "iuf":
        column = numbers_in(column)
    numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def to_wgs84(x: FloatArray, y: FloatArray, crs: pyproj.CRS) -> tuple[FloatArray, FloatArray]:
    """Return longitudes and latitudes of places in `crs`; NaN where it has none."""
    transformer = pyproj.Transformer.from_crs(crs, "EPSG:4326", always_xy=True)
    lon, lat = transformer.transform(np.append(x, x[:1]), np.append(y, y[:1]))
    lon, lat = np.asarray(lon)[: len(x)], np.asarray(lat)[: len(x)]
    return np.where(np.isfinite(lon), lon, np.nan), np.where(np.isfinite(lat), lat, np.nan)
