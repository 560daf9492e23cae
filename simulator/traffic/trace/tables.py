"""Columns of a trace: given by the user, or recognised by name.

Conversion of tables, from any file format, to fixes.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyproj
from pyproj.exceptions import CRSError

from simulator.files.text_table import numbers_in
from simulator.traffic.errors import TrafficError
from simulator.traffic.trace.fixes import Fixes, Times

METRES_PER_SECOND: Mapping[str, float] = {"speed_mps": 1.0, "speed_kph": 1 / 3.6, "speed_mph": 1609.344 / 3600}
"""Metres per second per unit of a speed column, by our name of the column."""

ROLES = ("vehicle", "time", "lon", "lat", "x", "y", *METRES_PER_SECOND)

_KNOWN: Mapping[str, tuple[frozenset[str], ...]] = {
    "vehicle": (
        frozenset(
            [
                "vehicle",
                "vehicleid",
                "vehid",
                "veh",
                "taxi",
                "taxiid",
                "cab",
                "cabid",
                "car",
                "carid",
                "bus",
                "busid",
                "medallion",
                "device",
                "deviceid",
                "driver",
                "driverid",
                "trajectory",
                "trajectoryid",
                "trajid",
            ]
        ),
        frozenset(["trip", "tripid", "object", "objectid", "user", "userid", "uid", "oid"]),
        frozenset(["id", "name"]),
    ),
    "time": (
        frozenset(
            [
                "time",
                "timestamp",
                "datetime",
                "dateandtime",
                "gpstime",
                "unixtime",
                "unixtimestamp",
                "utc",
                "timesteptime",
                "times",
                "timesec",
                "seconds",
            ]
        ),
        frozenset(["t", "ts", "epoch", "date"]),
    ),
    "lon": (frozenset(["lon", "lng", "long", "longitude"]), frozenset(["x", "vehiclex"])),
    "lat": (frozenset(["lat", "latitude"]), frozenset(["y", "vehicley"])),
    "x": (frozenset(["x", "vehiclex", "easting"]),),
    "y": (frozenset(["y", "vehicley", "northing"]),),
    "speed_mps": (frozenset(["speedmps", "speedms", "vehiclespeed"]),),
    "speed_kph": (frozenset(["speedkph", "speedkmh"]),),
    "speed_mph": (frozenset(["speedmph"]),),
}
"""Column names in lower case, with letters and digits only, the most reliable first."""

_NEEDED = ("vehicle", "time")


@dataclass(frozen=True)
class Columns:
    """Columns of a table by our names.

    Attributes
    ----------
    by_role
        Map from a role in `ROLES` to the file's column, for the columns that exist.
    notes
        Notes on columns that are not used, with the reason.
    """

    by_role: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @classmethod
    def find(
        cls, seen: Sequence[str], *, given: Mapping[str, str], projected: bool, one_vehicle: bool
    ) -> "Columns | list[str]":
        """Select columns as given by the user, and by their names otherwise.

        Parameters
        ----------
        seen
            The table's columns.
        given
            Map from our names to the file's, as given by the user.
        projected
            Whether places are in metres, in columns x and y.
        one_vehicle
            Whether the table is of one vehicle, so that no vehicle column is needed.

        Returns
        -------
        Columns or list of str
            The columns, or one message per broken rule, to follow the file's name.
        """
        faults = [
            f"no column {column!r} for {role}; its columns are {_listed(seen)}"
            for role, column in given.items()
            if column not in seen
        ]
        places = ("x", "y") if projected else ("lon", "lat")
        wanted = (*(() if one_vehicle else ("vehicle",)), "time", *places)
        found = {role: column for role, column in given.items() if role in (*ROLES,)}
        taken = set(found.values())
        for role in (*wanted, *METRES_PER_SECOND):
            if role in found or (role in METRES_PER_SECOND and any(speed in found for speed in METRES_PER_SECOND)):
                continue
            candidates = next(_candidates(role, [name for name in seen if name not in taken]), [])
            if len(candidates) == 1:
                found[role] = candidates[0]
                taken.add(candidates[0])
            elif role in wanted:
                many = f"columns {_listed(candidates)} may each be it" if candidates else "no column is known to be it"
                faults.append(
                    f"{role}: {many}; its columns are {_listed(seen)}; say which one in traffic.columns"
                    f"{_hint(role, seen)}"
                )
        if faults:
            return faults
        unit = [name for name in seen if _plain(name) in ("speed", "velocity") and name not in taken]
        notes = () if not unit or any(speed in found for speed in METRES_PER_SECOND) else (_no_unit(unit[0]),)
        return cls(found, notes)


def plain_names(seen: Sequence[str]) -> set[str]:
    """Return the normalized names of columns: lower case, letters and digits only."""
    return {_plain(name) for name in seen}


def _candidates(role: str, seen: Sequence[str]) -> Iterator[list[str]]:
    for tier in _KNOWN[role]:
        here = [name for name in seen if _plain(name) in tier]
        if here:
            yield here


def _hint(role: str, seen: Sequence[str]) -> str:
    if len(seen) == 1:
        return '; is it separated by something else than ",", ";", tab or "|"?'
    if role in {"lon", "lat"} and {"x", "y"} <= plain_names(seen):
        return "; for places in metres give traffic.crs"
    return "; or is there one file a vehicle: one_vehicle_a_file = true?" if role == "vehicle" else ""


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", str(name).lower())


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(str(name)[:60]) for name in names[:20])
    return shown + (f" … ({len(names)} in all)" if len(names) > 20 else "")


def _no_unit(column: str) -> str:
    return f"column {column!r} says no unit of speed and is left out: name it as speed_mps, speed_kph or speed_mph"


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
