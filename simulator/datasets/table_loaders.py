"""Loaders of tables in formats of their owners: check-ins, detectors, patients, street graphs and GMNS tables."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from simulator.files.errors import InputError
from simulator.files.tables import Table, TextFormat, column_names

METRES_PER_MILE = 1609.344
_MPH, _KPH = METRES_PER_MILE / 3600, 1 / 3.6


def _read(file: Path, columns: Sequence[str] | None = None, *, missing: Sequence[str] = ("",), **how: Any) -> Table:
    """Read every column as text; a blank line is a row without values, and no number is guessed."""
    return Table.from_file(file, columns=columns, missing=missing, keep_blank=True, **how)


def _places(table: Table, lon: str, lat: str, *, optional: bool = False) -> dict[str, npt.NDArray[np.float64]]:
    """Read longitudes and latitudes, degrees, as columns ``lon`` and ``lat``."""
    return {
        "lon": table.checked_numbers(lon, at_least=-180, at_most=180, optional=optional),
        "lat": table.checked_numbers(lat, at_least=-90, at_most=90, optional=optional),
    }


def _texts(table: Table, name: str) -> "pd.Series[Any]":
    """Read a column as it is in the file, and note rows without a value."""
    column = table.column(name)
    table.refuse(name, column.isna().to_numpy(dtype=np.bool_), "text")
    return column.astype(object)


def _unique(table: Table, name: str) -> npt.NDArray[np.int64]:
    """Read whole numbers that must differ."""
    numbers = table.integers(name)
    table.refuse(name, pd.Series(numbers).duplicated().to_numpy(), "unique")
    return numbers


def _checked(rows: Table, columns: Mapping[str, Any]) -> pd.DataFrame:
    """Return columns as a frame, after all rules on the rows are checked."""
    rows.check()
    return pd.DataFrame(columns)


def _distinct(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Leave out rows that equal an earlier one, and return a note on them."""
    again = frame.duplicated()
    notes = [f"{int(again.sum()):,} rows equal to an earlier one, left out"] if again.any() else []
    return frame[~again].reset_index(drop=True), notes


def _refuse_others(table: Table, name: str, groups: Sequence[str], *, optional: bool = False) -> None:
    """Note rows with a value that is none of `groups`."""
    values = table.column(name)
    wrong = ~values.isin(groups) & values.notna() if optional else ~values.isin(groups)
    table.refuse(name, wrong.to_numpy(dtype=np.bool_), f"one of {', '.join(groups)}")


_SNAP = ("user", "time", "lat", "lon", "place")


def read_check_ins(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read check-ins, in the format of SNAP's loc-gowalla or as CSV.

    A row that equals an earlier one in every field is left out. If a place has more than one pair of coordinates, all
    its check-ins get the most frequent pair; among equally frequent ones, the first in the file.

    Parameters
    ----------
    file
        Tab-separated, no header: user, time, latitude, longitude, place (a number); or CSV with a header that names
        ``user``, ``time``, ``lon``, ``lat``, ``place`` (text). The format is detected from the first row.

    Returns
    -------
    frame : DataFrame
        ``user`` (int64), ``time`` (UTC), ``lon``, ``lat`` (degrees, WGS84), ``place`` (int64, or
        text); in the order of the file.
    notes : list of str
        What was left out or replaced.

    Raises
    ------
    InputError
        If a field is invalid.
    """
    rows = _read(file, format_=TextFormat("\t"), header=_SNAP, quoted=False)
    first = rows.frame.iloc[0]
    named = first[list(_SNAP[1:])].isna().all() and "user" in str(first["user"]).split(",")
    if named:
        rows = _read(file, _SNAP)
    columns = {
        "user": rows.integers("user"),
        "time": rows.times("time", form="ISO8601", utc=True),
        **_places(rows, "lon", "lat"),
        "place": _texts(rows, "place") if named else rows.integers("place"),
    }
    frame, notes = _distinct(_checked(rows, columns))
    each = frame.groupby(["place", "lon", "lat"], sort=False).size().reset_index(name="count")
    several = each["place"].duplicated(keep=False)
    if several.any():
        # groupby keeps the order of first appearance, and a stable sort keeps it among equally frequent pairs.
        chosen = each.sort_values("count", ascending=False, kind="stable").drop_duplicates("place").set_index("place")
        place = chosen.loc[frame["place"], ["lon", "lat"]].to_numpy(dtype=np.float64)
        moved = (frame[["lon", "lat"]].to_numpy() != place).any(axis=1)
        frame["lon"], frame["lat"] = place[:, 0], place[:, 1]
        notes.append(
            f"{each.loc[several, 'place'].nunique():,} places with more than one coordinate take the most frequent "
            f"one: replaced in {int(moved.sum()):,} rows"
        )
    return frame, notes


def read_places(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read the names and positions of places.

    Parameters
    ----------
    file
        Tab-separated, no header: place, name, latitude, longitude. Quotation marks are part of a name.

    Returns
    -------
    frame : DataFrame
        ``place`` (int64), ``name``, ``lon``, ``lat``.
    notes : list of str
        Empty.

    Raises
    ------
    InputError
        If a field is invalid, or a place occurs twice.
    """
    rows = _read(file, format_=TextFormat("\t"), header=("place", "name", "lat", "lon"), quoted=False)
    columns = {"place": _unique(rows, "place"), "name": _texts(rows, "name"), **_places(rows, "lon", "lat")}
    return _checked(rows, columns), []


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
    header = column_names(file)
    moments = [name for name in ("hour", "time_period") if name in header]
    rows = _read(file, (*_NEEDED, *moments))
    if len(moments) != 1:
        raise InputError([f"{file}: must have a column 'hour' or 'time_period', and not both"])
    moment = "hour" if moments == ["hour"] else "period"
    if moment == "hour":
        when: npt.NDArray[np.integer[Any]] = rows.integers("hour", at_most=23)
    else:
        _refuse_others(rows, "time_period", PERIODS)
        when = pd.Index(PERIODS).get_indexer(pd.Index(rows.column("time_period")))
    frame = _checked(
        rows,
        {
            "station": rows.integers("station"),
            moment: when,
            "vehicles": rows.checked_numbers("median_flow", at_least=0),
            "mean_vehicles": rows.checked_numbers("avg_flow", at_least=0),
            "sd_vehicles": rows.checked_numbers("sd_flow", at_least=0, optional=True),
            "speed_mps": rows.checked_numbers("median_speed", at_least=0, optional=True) * METRES_PER_MILE / 3600,
            "occupancy": rows.checked_numbers("median_occup", at_least=0, at_most=1, optional=True),
            "lanes": rows.integers("lanes", at_least=1),
            "days": rows.integers("days_observed", at_least=1),
            "district": rows.integers("district"),
            "route": rows.integers("route"),
            "direction": _texts(rows, "direction"),
            "type": _texts(rows, "type"),
            "postmile_m": rows.checked_numbers("abs_pm", optional=True) * METRES_PER_MILE,
            **_places(rows, "longitude", "latitude", optional=True),
        },
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
        notes.append(f"{int(nowhere.sum()):,} rows, of {stations:,} stations, have no coordinates and are kept without")
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
    rows = _read(file, ("5 Minutes", count, points, share))
    frame = pd.DataFrame(
        {
            "time": rows.times("5 Minutes", form="%d/%m/%Y %H:%M"),
            "vehicles": rows.integers(count),
            "lane_points": rows.integers(points),
            "observed": rows.checked_numbers(share, at_least=0, at_most=100) / 100,
        }
    )
    steps = frame["time"].diff()
    rows.refuse("5 Minutes", (steps <= pd.Timedelta(0)).to_numpy(), "later than the row before")
    rows.check()
    jumps = int((steps > pd.Timedelta(minutes=5)).sum())
    return frame, [f"the clock jumps {jumps} times, over days that are not in the file"] if jumps else []


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
    rows = _read(file)
    seen = {column.lower(): column for column in rows.names}
    if "latitude" not in seen:
        rows, seen = _read(file, header=_BAY), {column: column for column in _BAY}
    identifier = next((seen[name] for name in ("sensor_id", "id", "sensor") if name in seen), "sensor_id")
    lon = seen.get("longitude", "longitude")
    if absent := [column for column in (identifier, lon) if column not in rows.names]:
        raise InputError(f"{file}: no column {column!r}; its columns are {', '.join(seen)}" for column in absent)
    columns: dict[str, Any] = {"sensor": _unique(rows, identifier), **_places(rows, lon, seen["latitude"])}
    if "fwy" in seen and "dir" in seen:
        columns |= {"route": rows.integers(seen["fwy"]), "direction": _texts(rows, seen["dir"])}
    return _checked(rows, columns), []


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
    rows = _read(file)
    rows = rows if set(_DISTANCES) <= set(rows.names) else _read(file, header=_DISTANCES)
    ends = {"from_sensor": rows.integers("from"), "to_sensor": rows.integers("to")}
    return _distinct(_checked(rows, ends | {"distance_m": rows.checked_numbers("cost", at_least=0)}))


TUMOR_SIZES = ("0-4", "5-9", "10-14", "15-19", "20-24", "25-29", "30-34", "35-39", "40-44", "45-49", "50-54")
"""Tumour sizes, millimetres; the eleven groups of SP Figs 4 and 6."""
AGES = ("20-29", "30-39", "40-49", "50-59", "60-69", "70-79")
"""Ages, years; the six groups of SP Figs 5 and 7."""
_NODES = ("0-2", "3-5", "6-8", "9-11", "12-14", "15-17", "18-20", "21-23", "24-26", "27-29", "30-32", "33-35", "36-39")
_QUADRANTS = ("left_up", "left_low", "right_up", "right_low", "central")
_ORDERED = {"age": AGES, "tumor-size": TUMOR_SIZES, "inv-nodes": _NODES}
_PLAIN = {
    "menopause": ("lt40", "ge40", "premeno"),
    "node-caps": ("yes", "no"),
    "breast": ("left", "right"),
    "breast-quad": _QUADRANTS,
    "irradiat": ("yes", "no"),
}
_EVENTS = ("no-recurrence-events", "recurrence-events")
_ARFF = ("age", "menopause", "tumor-size", "inv-nodes", "node-caps", "deg-malig", "breast", "breast-quad", "irradiat")


def read_patients(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read the patients; rows with equal values are different patients, and are kept.

    Parameters
    ----------
    file
        ``.arff``, or CSV with a header.

    Returns
    -------
    frame : DataFrame
        ``recurrence`` (bool); ``age`` (`AGES`), ``tumor_size`` (`TUMOR_SIZES`), ``inv_nodes``: ordered categories;
        ``menopause``, ``node_caps``, ``breast``, ``breast_quad``, ``irradiat``: categories, missing where not known;
        ``deg_malig`` (int64, 1 to 3).
    notes : list of str
        The number of unknown values.

    Raises
    ------
    InputError
        If a value is not one of its column's categories.
    """
    names = (*_ARFF, "event")
    is_arff = file.name.endswith(".arff")
    rows = _read(file, names, missing=("", "?"), header=names if is_arff else True)
    _refuse_others(rows, "event", _EVENTS)
    columns: dict[str, object] = {"recurrence": (rows.column("event") == "recurrence-events").to_numpy(dtype=np.bool_)}
    unknown = 0
    for column, groups in (*_ORDERED.items(), *_PLAIN.items()):
        values = rows.column(column)
        _refuse_others(rows, column, groups, optional=column in _PLAIN)
        unknown += int(values.isna().sum())
        known = values.where(values.isin(groups)).astype(object)
        columns[column.replace("-", "_")] = pd.Categorical(known, categories=groups, ordered=column in _ORDERED)
    columns["deg_malig"] = rows.integers("deg-malig", at_least=1, at_most=3)
    return _checked(rows, columns), [f"{unknown} values are not known"] if unknown else []


def read_drive_nodes(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read nodes.

    Parameters
    ----------
    file
        CSV: ``idx,osm_idx,lat,lon``.

    Returns
    -------
    frame : DataFrame
        ``node``, ``osm_id`` (int64), ``lon``, ``lat``.
    notes : list of str
        Empty.

    Raises
    ------
    InputError
        If a field is invalid, or a node occurs twice.
    """
    rows = _read(file, ("idx", "osm_idx", "lat", "lon"))
    columns = {"node": _unique(rows, "idx"), "osm_id": rows.integers("osm_idx"), **_places(rows, "lon", "lat")}
    return _checked(rows, columns), []


def read_drive_edges(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read edges, with speeds in their correct unit.

    The speed is ``maxspeed``, in miles per hour, if the edge has one. The file's ``speed_kph``, which repeats that
    number as km/h, is used only otherwise. The free-flow time is computed from length and speed. Capacities are
    divided by the number of lanes.

    Parameters
    ----------
    file
        CSV: ``src,dst,length,highway,maxspeed,lanes,oneway,speed_kph,capacity_vph`` and others.

    Returns
    -------
    frame : DataFrame
        ``from_node``, ``to_node`` (int64), ``length_m``, ``speed_mps``, ``free_flow_s``, ``lanes`` (int64),
        ``capacity_vph`` (per lane), ``one_way`` (bool), ``class``.
    notes : list of str
        The number of speeds from each source.

    Raises
    ------
    InputError
        If a field is invalid.
    """
    needed = ("src", "dst", "length", "highway", "maxspeed", "lanes", "oneway", "speed_kph", "capacity_vph")
    rows = _read(file, needed)
    posted = rows.checked_numbers("maxspeed", at_least=0, optional=True)
    speed = np.where(np.isnan(posted), rows.checked_numbers("speed_kph", at_least=0) * _KPH, posted * _MPH)
    rows.refuse("maxspeed", speed <= 0, "above 0, or speed_kph where there is none")
    rows.refuse("oneway", ~rows.column("oneway").isin(["True", "False"]).to_numpy(), "True or False")
    frame = _checked(
        rows,
        {
            "from_node": rows.integers("src"),
            "to_node": rows.integers("dst"),
            "length_m": rows.checked_numbers("length", at_least=0),
            "speed_mps": speed,
            "free_flow_s": np.nan,
            "lanes": rows.integers("lanes", at_least=1),
            "capacity_vph": rows.checked_numbers("capacity_vph", at_least=0),
            "one_way": (rows.column("oneway") == "True").to_numpy(dtype=np.bool_),
            "class": _texts(rows, "highway"),
        },
    )
    frame["free_flow_s"] = frame["length_m"] / speed
    frame["capacity_vph"] /= frame["lanes"]
    signs = int(np.isfinite(posted).sum())
    return frame, [f"speeds of {signs:,} edges are maxspeed in mph, of {len(frame) - signs:,} the file's guess in km/h"]


COLUMNS = (
    *("node_id", "name", "x_coord", "y_coord", "z_coord", "node_type", "ctrl_type", "zone_id", "parent_node_id"),
    *("link_id", "parent_link_id", "from_node_id", "to_node_id", "directed", "geometry_id", "geometry", "dir_flag"),
    *("length", "grade", "facility_type", "capacity", "free_speed", "lanes", "bike_facility", "ped_facility"),
    *("parking", "allowed_uses", "toll", "jurisdiction", "row_width"),
)
"""Columns of the node, link and geometry tables of the specification."""
_DEMAND_COLUMNS = ("o_zone_id", "d_zone_id", "orig_taz", "dest_taz", "total", "volume")
_FEWEST_COLUMNS = 2
_CUT_AT = 10  # shapefiles truncate a column's name to this many characters
_NUMBERS = (
    *("x_coord", "y_coord", "z_coord", "length", "grade", "capacity", "free_speed", "lanes", "toll", "row_width"),
    "total",
)


def read_gmns_table(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read a node, link, geometry or demand table.

    A name truncated to ten characters, as in shapefiles, is restored if exactly one column of the specification begins
    with it. Blank fields are missing values.

    Parameters
    ----------
    file
        CSV, with or without a byte order mark.

    Returns
    -------
    frame : DataFrame
        The file's columns; coordinates, lengths, speeds, capacities, lanes and trips are float64 (NaN if missing), all
        others text (None if missing).
    notes : list of str
        The names that were restored.

    Raises
    ------
    InputError
        If the file cannot be read, is not a GMNS table, or has an invalid number.
    """
    rows = _read(file)
    restored = {}
    for column in rows.names:
        whole = [name for name in COLUMNS if name[:_CUT_AT] == column and name != column]
        if len(column) == _CUT_AT and len(whole) == 1 and whole[0] not in rows.names:
            restored[column] = whole[0]
    frame = rows.frame.rename(columns=restored)
    known = [column for column in frame.columns if column in (*COLUMNS, *_DEMAND_COLUMNS)]
    if len(known) < _FEWEST_COLUMNS:
        words = f"a GMNS table must name at least {_FEWEST_COLUMNS} columns of the specification, as node_id, x_coord"
        raise InputError([f"{file.name}: {words}; got {', '.join(map(repr, frame.columns[:8]))}"])
    rows = replace(rows, frame=frame, columns={name: name for name in frame.columns})
    numbers = {name: rows.checked_numbers(name, optional=True) for name in _NUMBERS if name in frame.columns}
    rows.check()
    texts = {name: pd.Series(rows.texts(name), dtype=object) for name in frame.columns if name not in numbers}
    frame = frame.assign(**texts, **numbers)
    words = ", ".join(f"{cut} is {whole}" for cut, whole in restored.items())
    return frame, [f"column names cut short are restored: {words}"] if words else []
