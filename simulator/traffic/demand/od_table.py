"""Origin-destination tables in CSV or Parquet, one row per pair or per trip, with common column names."""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from simulator.files.errors import InputError
from simulator.files.tables import Table, column_names
from simulator.roads.schema import node_ids
from simulator.traffic.demand.sumo_file import seconds
from simulator.traffic.demand.trip_table import SHOWN, TripTable
from simulator.traffic.errors import TrafficError

NAMES: Mapping[str, tuple[str, ...]] = {
    "origin": (
        "origin", "o_zone_id", "origin_zone", "origin_id", "orig_taz", "orig_zone", "from_zone", "from_zone_id",
        "from_node", "from", "orig", "o",
    ),
    "destination": (
        "destination", "d_zone_id", "destination_zone", "destination_id", "dest_taz", "dest_zone", "to_zone",
        "to_zone_id", "to_node", "to", "dest", "d",
    ),
    "trips": ("trips", "volume", "flow", "demand", "total", "vehicles", "count"),
    "departure_s": ("departure_s", "depart_s", "departure_time", "depart_time", "departure", "depart"),
    "from_s": ("from_s", "begin_s", "start_s"),
    "to_s": ("to_s", "end_s"),
}  # fmt: skip
"""Map from our name of a column to its common names, the most likely first; case is ignored."""


def columns_of(file: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Identify the columns of a table.

    Parameters
    ----------
    file
        A CSV file, plain or gzipped, or a Parquet file.
    given
        Map from our name of a column to the file's, for the columns named by the user.

    Returns
    -------
    dict
        Map from our name to the file's, for the given columns and those recognized by name. ``from_s`` and ``to_s``
        occur both or not at all, and not together with ``departure_s``, unless they were given.
    """
    header = {name.strip().lower(): name for name in reversed(column_names(file))}
    found = dict(given)
    for name, known in NAMES.items():
        if name not in found:
            match = next((header[other] for other in known if other in header), None)
            if match is not None and match not in found.values():
                found[name] = match
    windows = {"from_s", "to_s"}
    if ("departure_s" in found and not windows & given.keys()) or not windows <= found.keys() | given.keys():
        for name in windows - given.keys():
            found.pop(name, None)
    if windows & given.keys() and "departure_s" not in given:
        found.pop("departure_s", None)
    for name in ("origin", "destination"):
        found.setdefault(name, name)
    return found


FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]

_HOURS_AND_MINUTES = re.compile(r"\s*\d{1,2}:\d{2}\s*")
_TIME = "seconds, HH:MM or HH:MM:SS, 0 or more"


def read_od_table(file: str | Path, *, columns: Mapping[str, str] | None = None) -> TripTable:
    """Read trips between zones or nodes; GMNS's ``demand.csv`` is such a table.

    Parameters
    ----------
    file
        ``.csv``, ``.csv.gz`` or ``.parquet``. Columns: ``origin`` and ``destination``; ``trips``, without which each
        row is one trip; ``departure_s``, the departure time of a row's trips, or ``from_s`` and ``to_s``, between which
        they depart. Times are seconds, HH:MM or HH:MM:SS. Other common names are recognized: see
        :data:`~simulator.traffic.demand.od_table.NAMES`.
    columns
        Map from our name of a column to the file's, where the file uses another name.

    Returns
    -------
    TripTable
        Rows with equal origin, destination and time are added up; rows without trips are left out.

    Raises
    ------
    TrafficError
        If the file cannot be read or lacks a column, or a row has no origin or destination, an invalid or negative
        number of trips, or an invalid time.
    """
    path = Path(file)
    try:
        found = columns_of(path, columns or {})
        return _checked(Table.from_file(path, columns=found, text=("origin", "destination")))
    except InputError as error:
        raise TrafficError(error.faults) from error


def _checked(table: Table) -> TripTable:
    faults: list[str] = []
    ends = [_codes(table, name) for name in ("origin", "destination")]
    for name, (code, ids) in zip(("origin", "destination"), ends, strict=True):
        absent = np.array([known is None for known in [*ids, None]])[code]
        faults += table.faults(name, absent, "the identifier of a zone or node")
    trips = np.ones(len(table))
    if table.has("trips"):
        trips = table.numbers("trips")
        fine = np.isfinite(trips) & (trips >= 0) & _is_number(table, "trips")
        faults += table.faults("trips", ~fine, "a finite number, 0 or more")
        if fine.all() and not trips.any():
            faults.append(f"{table.file}: it holds no trips: all of its rows have 0")
        with np.errstate(over="ignore"):
            if fine.all() and not np.isfinite(trips.sum()):
                faults.append(f"{table.file}: its trips must sum to a finite number")
    from_s, to_s = _times(table, faults)
    if faults:
        raise TrafficError(faults)
    (origin, origins), (destination, destinations) = ends
    places = list(dict.fromkeys(known for known in [*origins, *destinations] if known is not None))
    at = {place: number for number, place in enumerate(places)}
    origin, destination = (
        np.array([at.get(known or "", -1) for known in ids], dtype=np.int32)[code]
        for code, ids in ((origin, origins), (destination, destinations))
    )
    driven = trips > 0
    row = np.arange(1, len(table) + 1, dtype=np.int64)
    if from_s is not None and to_s is not None:
        from_s, to_s = from_s[driven], to_s[driven]
    build = TripTable.summed if table.has("trips") else TripTable.sorted
    built = build(
        table.file,
        places,
        origin[driven],
        destination[driven],
        trips[driven],
        row[driven],
        unit="row",
        from_s=from_s,
        to_s=to_s,
    )
    read = set(table.columns.values())
    # pandas gives this name to a nameless column, such as one created by a comma at the end of each line.
    unread = [str(name) for name in table.names if name not in read and not str(name).startswith("Unnamed: ")]
    if unread:
        more = f" … ({len(unread)} in all)" if len(unread) > SHOWN else ""
        built.notes.append(f"{built.title}: columns not read: {', '.join(map(repr, unread[:SHOWN]))}{more}")
    return built


def _codes(table: Table, name: str) -> tuple[IntArray, list[str | None]]:
    """Return the index of each row's identifier, −1 where there is none, and the identifiers."""
    code, values = _factorized(table, name)
    return code.astype(np.int32), node_ids(values.tolist())


def _factorized(table: Table, name: str) -> tuple[npt.NDArray[np.intp], pd.Index]:
    """Return the index of each row's value, −1 where there is none, and the values."""
    column = table.frame[table.columns[name]]
    try:
        code, values = pd.factorize(column)
    except TypeError:  # lists, which Parquet may hold: use their text
        code, values = pd.factorize(pd.Series(table.values(name), dtype="object"))
    return code, pd.Index(values)


def _is_number(table: Table, name: str) -> npt.NDArray[np.bool_]:
    """Return, for each row, whether the column's type can hold numbers: dates and booleans are not numbers."""
    kind = table.frame[table.columns[name]].dtype
    fine = not (pd.api.types.is_datetime64_any_dtype(kind) or pd.api.types.is_bool_dtype(kind))
    return np.full(len(table), fine and not pd.api.types.is_timedelta64_dtype(kind))


def _times(table: Table, faults: list[str]) -> tuple[FloatArray | None, FloatArray | None]:
    if table.has("departure_s"):
        leave = _seconds(table, "departure_s", faults)
        return leave, leave
    if not table.has("from_s") or not table.has("to_s"):
        return None, None
    from_s, to_s = (_seconds(table, name, faults) for name in ("from_s", "to_s"))
    faults += table.faults("to_s", to_s <= from_s, "after from_s")
    return from_s, to_s


def _seconds(table: Table, name: str, faults: list[str]) -> FloatArray:
    """Read a column of times; NaN where there is no time."""
    column = table.frame[table.columns[name]]
    if pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype):
        read = table.numbers(name)
    else:
        code, values = _factorized(table, name)
        read = np.array([*(_one_time(value) for value in values), np.nan])[code]
    fine = np.isfinite(read) & (read >= 0)
    faults += table.faults(name, ~fine, _TIME)
    return np.where(fine, read, np.nan)


def _one_time(value: object) -> float:
    text = str(value)
    read = seconds(f"{text.strip()}:00" if _HOURS_AND_MINUTES.fullmatch(text) else text, as_sumo=False)
    return np.nan if read is None else read
