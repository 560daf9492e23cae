"""Columns of tables of links: their usual names in files of others, and values in the units of the schema."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from simulator.files.messages import counted, warning
from simulator.files.tables import Table, comparable_name, find_columns, listed
from simulator.formats.column_names import LINK_NAMES, METRES_PER_UNIT, MPS_PER_UNIT, WORDS_OF_LENGTHS
from simulator.formats.osm_tags import lanes as lanes_of_tags
from simulator.formats.osm_tags import speed_limit
from simulator.roads.plausibility import capacity_warnings
from simulator.roads.raw_network import column_of
from simulator.roads.schema import MOST_LANES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from simulator.files.messages import Note

_NO_UNIT = ("speed", "time", "ffs", "fft")
"""Words in the names of columns whose unit nothing states."""
_QUANTITY = re.compile(r"(\d+(?:[.,]\d+)?)\s*([a-z]+)")


def find_link_columns(names: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """Find the columns of links by their usual names, as `find_columns`.

    A capacity that names no unit is per lane, as GMNS defines it; in a table with the columns of TNTP or Visum it is
    the capacity of the whole link. Visum's lengths are kilometres.
    """
    plain, spellings = {*map(comparable_name, names)}, dict(LINK_NAMES)
    if "fromnodeno" in plain:
        spellings["length_km"] = ("length",)
    if not plain.isdisjoint({"fromnodeno", "initnode"}):
        spellings["capacity_total_vph"] = (*spellings["capacity_total_vph"], "capacity")
    if not {"u", "v", "osmid"} <= plain:
        del spellings["oneway"]
    return find_columns(names, spellings, given=given)


def link_values(
    table: Table, *, lane_vph: float, columns: Mapping[str, str], both_ways: NDArray[np.bool_] | None = None
) -> tuple[pd.DataFrame, dict[str, NDArray[np.bool_]], list[str]]:
    """Read length, speed, lanes, capacity and class of each row, in metres, m/s and vehicles per hour and lane.

    A number may be followed by its unit, as in "0.512km", "50km/h" or "30 mph". The capacity of a whole link is divided
    by its lanes; where those are not stated, they are guessed, one for each `lane_vph`. Lanes of a two-way street in
    OSMnx's tables count both directions, and are halved.

    Parameters
    ----------
    table
        Rows with columns of `LINK_NAMES`.
    lane_vph
        Capacity of a lane for the guess, vehicles per hour.
    columns
        The columns that the user named.
    both_ways
        Rows whose lanes count both directions, bool; None for the rows of two-way streets in OSMnx's tables.

    Returns
    -------
    links
        Columns of :class:`~simulator.roads.raw_network.RawNetwork`, NaN where a value is not known; the index is the
        number of each row.
    reasons
        By reason, the rows that cannot be used, bool.
    remarks
        What was found, guessed and not read.
    """
    links = pd.DataFrame(index=table.number)
    lengths = {name: _quantities(table, name) for name in METRES_PER_UNIT if table.has(name)}
    speeds = {name: _quantities(table, name) for name in MPS_PER_UNIT if table.has(name)}
    negative = [np.zeros(len(table), dtype=np.bool_), *(speed < 0 for speed in speeds.values())]
    reasons = {"its speed is negative": np.any(negative, axis=0)}
    if table.has("systems"):
        reasons["its TSYSSET names no transport system"] = np.array([text is None for text in table.texts("systems")])
    for ours, values, units in (("length", lengths, METRES_PER_UNIT), ("speed", speeds, MPS_PER_UNIT)):
        if values:
            links[ours] = np.nan
        for name, numbers in reversed(values.items()):
            known = (numbers > 0) & np.isfinite(numbers)
            links.loc[known, ours] = numbers[known] * units[name]
    if lengths:
        short = f"{next(iter(lengths))} is not a number above 0"
        reasons = {short: links["length"].isna().to_numpy()} | reasons
    if both_ways is None:
        both_ways = np.array([(text or "").lower() in ("false", "no", "0") for text in table.texts("oneway")])
    lanes = _lanes(table, both_ways)
    total, capacity = table.numbers("capacity_total_vph"), table.numbers("capacity_vph")
    guessed = (total > 0) & np.isfinite(total) & ~(lanes > 0)
    lanes = np.where(guessed, np.clip(np.rint(total / lane_vph), 1, MOST_LANES), lanes)
    if table.has("lanes") or guessed.any():
        links["lanes"] = lanes
    if table.has("capacity_vph") or table.has("capacity_total_vph"):
        with np.errstate(divide="ignore", invalid="ignore"):
            capacity = np.where(capacity > 0, capacity, total / lanes)
        links["capacity"] = np.where(np.isfinite(capacity), capacity, np.nan)
    classes = table.texts("class")
    if "class" not in columns:  # OSMnx lists the classes of streets that it has joined
        classes = [text and _plain(text).partition(";")[0] for text in classes]
    links["class"] = column_of(classes, table.number)
    remarks = found_in_words(table, columns)
    if guessed.any():
        of_all = f"of {counted(len(table), table.unit)}, one for each {lane_vph:g} vehicles/h of capacity_total_vph"
        remarks.append(f"{table.file}: lanes are guessed in {int(guessed.sum()):,} {of_all}")
    return links, reasons, remarks


def found_in_words(table: Table, columns: Mapping[str, str]) -> list[str]:
    """Return a sentence on columns found by their names, and on those not read; none if the user named all."""
    found = [f"{ours} = {name!r}" for ours, name in table.columns.items() if columns.get(ours) != name]
    unread = [name for name in table.names if name not in table.columns.values()]
    rest = f"; not read: {listed(unread)}" if unread else ""
    return [f"{table.file}: columns found by their names: {', '.join(found)}{rest}"] if found else []


def link_warnings(table: Table, links: pd.DataFrame) -> list[Note]:
    """Return warnings of capacities that are not plausible for a lane, and of speeds whose unit is not known."""
    total = table.has("capacity_total_vph")
    warnings = [] if "capacity" not in links else capacity_warnings(links["capacity"], file=table.file, total=total)
    unread = [name for name in table.names if name not in table.columns.values()]
    speeds = [name for name in unread if any(word in comparable_name(name) for word in _NO_UNIT)]
    if speeds and "speed" not in links:
        rule = "no speed is read: name it in roads.columns, as speed_kph, speed_mph or speed_mps; unread columns are"
        warnings.append(warning("speeds", f"{table.file}: {rule} {listed(speeds)}"))
    return warnings


def _quantities(table: Table, name: str) -> NDArray[np.float64]:
    """Return numbers in the unit that `name` names; those that state a unit are converted to it."""
    numbers = table.numbers(name).copy()
    column = table.column(name)
    for row in np.flatnonzero(np.isnan(numbers) & column.map(lambda value: isinstance(value, str))).tolist():
        text = _plain(column.iloc[row])
        if name in MPS_PER_UNIT:
            kph, _ = speed_limit({"maxspeed": text}, along=True)
            numbers[row] = np.nan if kph is None else kph / 3.6 / MPS_PER_UNIT[name]
        elif (found := _QUANTITY.fullmatch(text.lower())) and found[2] in WORDS_OF_LENGTHS:
            numbers[row] = float(found[1].replace(",", ".")) * WORDS_OF_LENGTHS[found[2]] / METRES_PER_UNIT[name]
    return numbers


def _lanes(table: Table, both_ways: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return whole numbers of lanes in one direction of each row; NaN where there is none."""
    numbers = table.numbers("lanes").copy()
    if not table.has("lanes"):
        return numbers
    column = table.column("lanes")
    texts = column.map(lambda value: isinstance(value, str))
    for row in np.flatnonzero((np.isnan(numbers) & texts) | both_ways).tolist():
        tags = {"lanes": _plain(str(column.iloc[row])), "oneway": "no" if both_ways[row] else "yes"}
        numbers[row] = lanes_of_tags(tags, along=True) or np.nan
    return np.where((numbers == np.floor(numbers)) & np.isfinite(numbers), numbers, np.nan)


def _plain(text: str) -> str:
    """Return the values of a list that Python wrote, as "['25 mph', '30 mph']", separated by semicolons."""
    return re.sub(r"[\[\]'\"]", "", text).strip().replace(", ", ";")
