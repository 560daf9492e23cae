"""Tables of detectors, and of measured counts and speeds: their places on links, intervals and values."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from scenarios.run_clock import RunClock
from simulator.arrays import FloatArray, Mask
from simulator.files.errors import InputError
from simulator.files.messages import counted
from simulator.files.tables import FileFormat, Table, column_names, find_columns, listed
from simulator.files.times import timed
from simulator.formats.column_names import COUNT_NAMES, MPS_PER_UNIT
from simulator.formats.recordings.places import read_rows
from simulator.roads import RoadNetwork
from simulator.roads.projection import WGS84, coordinates, transform
from simulator.traffic.clock import DAY_S

_INSTEAD = (
    ("link", "lon", "x"),
    ("position_m", "fraction"),
    ("from_s", "hour"),
    ("count", "flow_vph"),
    (*MPS_PER_UNIT,),
)
"""Columns that replace each other: the one that is named is read, else the first that is found."""
_VALUES = ("count", "flow_vph", *MPS_PER_UNIT)
_COMPASS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")
_OF_DAY = re.compile(r"(day \d+ )?\d\d?:\d\d(:\d\d)?")
_HOUR_S = 3_600.0


def read_table(file: Path, *, columns: Mapping[str, str | int], format_: FileFormat) -> Table:
    """Read the mapped columns of a table of detectors or counts, and those with usual names.

    Raises
    ------
    InputError
        If the file cannot be read, lacks a mapped column, or holds no row to use.
    """
    header = column_names(file, format_=format_) if format_.header else []
    found = find_columns(header, COUNT_NAMES, given=cast("Mapping[str, str]", columns))  # numbers are left as they are
    for group in _INSTEAD:
        for other in sorted(found.keys() & group, key=lambda name: (name not in columns, group.index(name)))[1:]:
            del found[other]
    table, chosen = read_rows(file, columns=found, format_=format_, numbers=COUNT_NAMES.keys() - {"name", "link"})
    return table.kept(chosen)


def read_detectors(
    table: Table, roads: RoadNetwork, *, within_m: float, allowed: Mask, known: pd.DataFrame | None = None
) -> tuple[pd.DataFrame, list[str]]:
    """Put the rows of a table on links: by link, else by coordinates, else by the names of detectors.

    Parameters
    ----------
    table
        Columns as of `COUNT_NAMES`.
    roads
        The network.
    within_m, allowed
        As for `RoadNetwork.nearest_positions`.
    known
        `name`, `link` and `fraction` of detectors that rows may name.

    Returns
    -------
    tuple
        `name`, `link` and `fraction` of each row that is on a link, by its place in the table; and notes.

    Raises
    ------
    InputError
        If the table states no places, one is faulty, or none is on a link.
    """
    notes: list[str] = []
    where = f"within {within_m:g} m of a link that it may be on"
    places = pd.DataFrame({"name": pd.Series(table.identifiers("name"), dtype="str"), "link": -1, "fraction": 0.5})
    axes = ("lon", "lat") if table.has("lon") else ("x", "y")
    if table.has("link"):
        places["link"] = [roads.link_ids.get(name, -1) for name in table.identifiers("link")]
        rule = "the identifier of one link or, where the roads have none, its number"
        table.refuse("link", places["link"].to_numpy() < 0, rule)
    elif all(map(table.has, axes)):
        xy = np.column_stack(coordinates(table, axes, chosen=np.ones(len(table), dtype=np.bool_)))
        headings = table.numbers("heading_deg")
        texts = pd.Series(table.texts("heading_deg"), dtype="str").str.upper().str.replace(r"B(OUND)?$", "", regex=True)
        texts = texts.replace(r"(?<=[NSEW])(ORTH|OUTH|AST|EST)", "", regex=True).str.strip()
        words = texts.map({name: 45.0 * place for place, name in enumerate(_COMPASS)})
        places["link"], places["fraction"] = roads.nearest_positions(
            transform(WGS84, roads.crs, xy) if axes[0] == "lon" else xy,
            within_m=within_m,
            heading_deg=np.where(np.isfinite(headings), headings, words),
            allowed=allowed,
        )
    elif known is not None and (table.has("name") or len(known) == 1):
        places["name"] = places["name"] if table.has("name") else known["name"].iloc[0]
        found = known.set_index("name").reindex(places["name"])
        places[["link", "fraction"]] = found[["link", "fraction"]].fillna(-1).to_numpy()
        where = "at a detector of this name"
    else:
        rule = "its places need columns link, lon and lat, or x and y"
        raise InputError([f"{table.file}: {rule}; its columns are {listed(table.names)}"])
    if table.has("fraction"):
        places["fraction"] = table.checked_numbers("fraction", at_least=0.0, at_most=1.0)
    elif table.has("position_m"):
        places["fraction"] = table.checked_numbers("position_m", at_least=0.0) / roads.links.length_m[places["link"]]
        table.refuse("position_m", places["fraction"].to_numpy() > 1.0, "at most the length of its link")
    table.check()
    places = places[places["link"] >= 0].astype({"link": np.int32})
    if places.empty:
        raise InputError([f"{table.file}: no place is {where}"])
    if len(places) < len(table):
        notes.append(f"{table.file}: left out {counted(len(table) - len(places), 'row')} not {where}")
    places["name"] = places["name"].where(places["name"] != "", "link " + places["link"].astype("str"))
    return places, notes


def read_counts(
    table: Table,
    roads: RoadNetwork,
    clock: RunClock,
    *,
    within: tuple[float, float],
    interval_s: float | None,
    time_format: str | None,
    **placing: Any,
) -> tuple[pd.DataFrame, list[str]]:
    """Read measured counts and speeds.

    Parameters
    ----------
    table
        Columns as of `COUNT_NAMES`.
    roads, **placing
        As for `read_detectors`.
    clock
        The clock of the run.
    within
        Seconds of the run between which intervals lie that are used.
    interval_s
        Duration of an interval, where the table has no column of its end.
    time_format
        Format of times that are text; None for times of day and ISO 8601.

    Returns
    -------
    tuple
        `name`, `link`, `fraction`, `from_s`, `to_s`, `count` and `speed_mps` of each row, NaN for what was not
        measured; and notes on what was left out.

    Raises
    ------
    InputError
        For any fault in the table, or if no row is left.
    """
    if not any(map(table.has, _VALUES)):
        rule = "name a count, flow_vph or a speed in counts.columns"
        raise InputError([f"{table.file}: it has no known column of values: {rule}; there are {listed(table.names)}"])
    rows, notes = read_detectors(table, roads, **placing)
    table, rows = table.kept(np.isin(np.arange(len(table)), rows.index)), rows.reset_index(drop=True)
    from_s, of_day = _moments(table, "from_s" if table.has("from_s") else "hour", clock, time_format)
    to_s = from_s + (interval_s or _HOUR_S)
    if table.has("to_s"):
        to_s, _ = _moments(table, "to_s", clock, time_format)
        to_s = np.where(of_day & (to_s <= from_s), to_s + DAY_S, to_s)
        table.refuse("to_s", to_s <= from_s, "after from_s")
    elif interval_s is None and not table.has("hour"):
        table.broken.append(f"{table.file}: give counts.interval_s, the duration of an interval, or a column to_s")
    values = {name: table.checked_numbers(name, at_least=0.0, optional=True) for name in _VALUES if table.has(name)}
    table.check()
    rows["from_s"], rows["to_s"] = from_s, to_s
    if "flow_vph" in values:
        values["count"] = values["flow_vph"] * (to_s - from_s) / _HOUR_S
    speeds = [values[name] * unit for name, unit in MPS_PER_UNIT.items() if name in values]
    rows["count"], rows["speed_mps"] = values.get("count", np.nan), speeds[0] if speeds else np.nan
    bare = rows[["count", "speed_mps"]].isna().all(axis=1)
    outside = ~bare & ((rows["from_s"] < within[0]) | (rows["to_s"] > within[1]))
    again = rows[~bare & ~outside].duplicated(["name", "link", "from_s", "to_s"]).reindex(rows.index, fill_value=False)
    span = f"{clock.text(within[0])} to {clock.text(within[1])}, the run after warm-up"
    whys = ("without a value", f"whose interval is not within {span}", "of the place and interval of an earlier one")
    for drop, why in zip((bare, outside, again), whys, strict=True):
        notes += [f"{table.file}: left out {counted(int(drop.sum()), 'row')} {why}"] if drop.any() else []
    rows = rows[~(bare | outside | again)]
    if rows.empty:
        raise InputError([*notes, f"{table.file}: no row is left to compare"])
    return rows.reset_index(drop=True), notes


def _moments(table: Table, name: str, clock: RunClock, time_format: str | None) -> tuple[FloatArray, bool]:
    """Return a column of times as seconds of the run, and whether they are times of day."""
    if not table.has(name):
        rule = "name the beginning of intervals as from_s or hour in counts.columns"
        raise InputError([f"{table.file}: {rule}; there are {listed(table.names)}"])
    texts = pd.Series(table.texts(name), dtype="str")
    if name == "hour":
        texts = pd.Series([f"{hour}:00" for hour in table.integers("hour", at_most=23).tolist()], dtype="str")
    if texts.str.fullmatch(_OF_DAY).all():
        try:
            return texts.map({text: clock.seconds(text) for text in texts.unique()}).to_numpy(), True
        except ValueError as fault:
            raise InputError([f"{table.file}: {name}: a time of day {fault}"]) from None
    column = replace(table, columns={**table.columns, "time": table.columns[name]})
    times, _ = timed(column, clock.zone_name, np.arange(len(table)), unit_s=None, written=time_format)
    if times.calendar and not clock.dated:
        raise InputError([f"{table.file}: {name}: its times have dates, and scenario.start has none"])
    offset = clock.start.utcoffset() if clock.start and times.naive and not clock.zone_name else None
    zero_s = clock.epoch_s + (offset.total_seconds() if offset else 0.0) if times.calendar else 0.0
    return times.seconds - zero_s, False
