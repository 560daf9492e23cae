"""Rows of a table of data owners, and their sites: coordinates or named places, of the table or of a list."""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyproj

from simulator.arrays import FloatArray, Int32Array, IntArray, Mask
from simulator.files.errors import InputError
from simulator.files.messages import counted
from simulator.files.tables import FileFormat, Table, numbers_in
from simulator.roads.projection import WGS84, coordinates, crs_about, transform, true_plane, utm_about
from simulator.traffic.recording import Sites
from simulator.traffic.trips import too_many

NUMBERS = ("lon", "lat", "x", "y", "count", "time")
_WHOLE = 1e-9


def read_rows(
    file: str | Path, *, columns: Mapping[str, str | int], format_: FileFormat, numbers: Collection[str] = NUMBERS
) -> tuple[Table, Mask]:
    """Read the mapped columns of a file.

    Parameters
    ----------
    file
        File to read; its suffix determines the format, as in `Table.from_file`.
    columns
        Map from our name of a column to the file's name or number.
    format_
        Format of the file, and which rows are used.
    numbers
        Our names of the columns that hold numbers or times; all others identify something.

    Returns
    -------
    tuple
        The mapped columns: text, or the types of a Parquet file (`where` followed by a column's name is a filter); and
        (rows,) bool: rows that satisfy `where`, at least one.

    Raises
    ------
    InputError
        If the file cannot be read, lacks a column, or holds no row to use.
    """
    if not format_.header and (named := [name for name in columns.values() if isinstance(name, str)]):
        words = "columns of a file without header are known by number"
        raise InputError(f"{file}: {words}, not by name, got {name!r}" for name in named)
    filters = {f"where {column}": column if format_.header else _number(column, str(file)) for column in format_.where}
    wanted = {**columns, **filters}
    names = wanted.keys() - set(numbers)
    header = 0 if format_.header else None
    table = Table.from_file(file, columns=wanted, text=tuple(wanted), identifiers=names, format_=format_, header=header)
    chosen = np.ones(len(table), dtype=bool)
    for name, values in zip(filters, format_.where.values(), strict=True):
        chosen &= _holds(table.column(name), values)
    if not chosen.any():
        conditions = ", ".join(f"{column} = {' or '.join(map(repr, to))}" for column, to in format_.where.items())
        raise InputError([f"{file}: of its {counted(len(table), 'row')}, none has {conditions}"])
    return table, chosen


def _number(column: str, file: str) -> int:
    if column.isascii() and column.isdigit() and 0 < int(column[:9]) < 10**8:
        return int(column)
    raise InputError([f"{file}: columns of a file without header are known by number, got {column!r} in where"])


def _holds(column: "pd.Series[Any]", values: tuple[Any, ...]) -> Mask:
    """Return which rows hold one of the values: numbers are compared as numbers, all other values as text."""
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    truths = [str(value).lower() for value in values if isinstance(value, bool)]
    text = column.astype("string").str.strip()
    found = text.isin([value for value in values if isinstance(value, str)]) | text.str.lower().isin(truths)
    if numbers:
        found |= numbers_in(column).isin(numbers)
    return found.to_numpy(dtype=bool)


def without_duplicates(table: Table, rows: pd.DataFrame, *, rule: str | None) -> tuple[Mask, list[str]]:
    """Select among rows with the same place, period, time and owner.

    Parameters
    ----------
    table
        Rows to use.
    rows
        The `site`, `arrive_s` (NaN if the file has no times) and `count` (1 if it has none) of each.
    rule
        "refuse", "first", "last", "greatest" or "sum"; None for "refuse" if rows have counts, else "sum".

    Returns
    -------
    tuple
        (rows,) bool: rows to keep; and notes.

    Raises
    ------
    InputError
        If there are duplicates and the rule refuses them.
    """
    everything = np.ones(len(table), dtype=bool)
    distinct_by = [name for name in ("period", "time", "owner") if table.has(name)]
    if not table.has("count") and not distinct_by:
        return everything, []  # only the owners' places are known
    frame = pd.DataFrame({"site": rows["site"].array})
    for name in distinct_by:
        frame[name] = rows["arrive_s"].array if name == "time" else table.categories(name)
    repeated = frame.duplicated(keep="first").to_numpy()
    if not repeated.any():
        return everything, []
    alike = " and ".join(["place", *distinct_by])
    rule = rule or ("refuse" if table.has("count") else "sum")
    number = f"{counted(int(repeated.sum()), 'row')} of the same {alike} as an earlier one"
    if rule == "refuse":
        missing = "" if distinct_by else "; name the column that distinguishes rows of a place as columns.period"
        request = f"{table.file}: {number}: {table.rows_in_words(repeated)}; state how to treat them: duplicates = "
        raise InputError([f'{request}"first", "last", "greatest" or "sum"{missing}'])
    if rule == "sum":
        return everything, [f"{table.file}: {number}: each counts"]
    order = np.argsort(-rows["count"].to_numpy(), kind="stable") if rule == "greatest" else np.arange(len(table))
    keep = np.empty(len(table), dtype=bool)
    keep[order] = ~frame.iloc[order].duplicated(keep="last" if rule == "last" else "first").to_numpy()
    return keep, [f"{table.file}: {number}: the {rule} of each counts"]


def owners_of(table: Table, rows: pd.DataFrame, *, fractions: str) -> tuple[IntArray, list[str]]:
    """Return the number of owners each row stands for.

    Parameters
    ----------
    table, rows
        Rows, as for `without_duplicates`.
    fractions
        "refuse", or "nearest": the total of each place and time is rounded, halves to even, and the last row takes the
        remainder.

    Returns
    -------
    tuple
        (rows,) int64; and notes.

    Raises
    ------
    InputError
        If counts are not whole and `fractions` is "refuse", or there are too many owners.
    """
    count = rows["count"].to_numpy()
    if fault := too_many(float(count.sum())):
        hint = "choose rows with where or window, or take a part of them"
        raise InputError([f"{table.file}: a vehicle is a data owner: {fault}; {hint}"])
    broken = np.abs(count - np.rint(count)) > _WHOLE
    if not broken.any():
        return np.rint(count).astype(np.int64), []
    if fractions == "refuse":
        raise InputError(table.faults("count", broken, 'whole; or take the nearest, fractions = "nearest"'))
    keys = ["arrive_s", "site"] if table.has("time") else ["site"]
    # Rounding the running total of each place gives whole numbers that add up to the rounded total.
    running = rows.groupby(keys)["count"].cumsum().round(6).round()
    whole = running.groupby([rows[key] for key in keys]).diff().fillna(running).to_numpy().astype(np.int64)
    counts = counted(int(broken.sum()), "count is", "counts are")
    return whole, [f"{table.file}: {counts} not whole: the total of each place is rounded"]


SIDE_M = 1000.0
"""Side of the square that represents a place without coordinates."""
FARTHEST_M = 1_000_000.0
"""Maximum distance of places from their middle: beyond it, they are not in one city and UTM distorts too much."""
SOUTHERNMOST = -60.0
"""Southern limit of latitude for cities: data beyond it have longitudes and latitudes swapped."""


def check_one_city(lon: FloatArray, lat: FloatArray, *, file: str) -> None:
    """Check that places, (n,) degrees, in range, can be in one city.

    Raises
    ------
    InputError
        If all places are in Antarctica, or some are more than a thousand kilometres from their middle.
    """
    if lat.max() < SOUTHERNMOST:
        words = f"{file}: every latitude is beyond {SOUTHERNMOST:g}, as {lat[0]:.4f} at longitude {lon[0]:.4f}"
        raise InputError([f"{words}: are lon and lat swapped?"])
    middle_lon = float(np.degrees(np.angle(np.exp(1j * np.radians(lon)).mean())))
    middle_lat = float(np.median(lat))
    n = len(lon)
    geod = pyproj.Geod(ellps="WGS84")
    _, _, away = geod.inv(np.full(n, middle_lon), np.full(n, middle_lat), lon, lat)
    worst = int(np.argmax(away))
    if away[worst] > FARTHEST_M:
        where = f"longitude {lon[worst]:.4f}, latitude {lat[worst]:.4f}"
        words = f"places must be of one city, within {FARTHEST_M / 1000:,.0f} km of their middle; {where} is "
        raise InputError([f"{file}: {words}{away[worst] / 1000:,.0f} km off: choose rows with window or where"])


def natural_order(names: npt.ArrayLike) -> IntArray:
    """Return the natural order of names, with numbers in them compared by value; (names,) int64."""
    texts = [str(name) for name in np.asarray(names, dtype=object)]
    return np.array(sorted(range(len(texts)), key=lambda i: _natural(texts[i])), dtype=np.int64)


def _natural(text: str) -> tuple[list[tuple[int, str]], str]:
    parts = re.split(r"([0-9]{1,18})", text)
    return [(int(part), "") if i % 2 else (-1, part.casefold()) for i, part in enumerate(parts) if part], text


def place_rows(
    table: Table,
    chosen: Mask,
    *,
    crs: pyproj.CRS | None,
    given: str | None,
    window: tuple[float, float, float, float] | None = None,
) -> tuple[Table, Int32Array, Sites, list[str]]:
    """Determine the sites of rows.

    Parameters
    ----------
    table
        Rows with `place`, or `lon` and `lat`, or `x` and `y`, or a place and coordinates.
    chosen
        (rows,) bool: rows whose sites are used.
    crs
        Coordinate system to project to; None to choose one.
    given
        Coordinate system of `x` and `y`.
    window
        (lon_min, lat_min, lon_max, lat_max), degrees: rows outside are left out.

    Returns
    -------
    tuple
        The rows that are used and have a place; (rows,) int32, index of each row's site; every site of the file,
        including the sites of unused rows; and what was left out, one sentence each.

    Raises
    ------
    InputError
        If coordinates are not numbers or are out of range, or no row is left.
    """
    notes: list[str] = []
    axes = ("lon", "lat") if table.has("lon") else ("x", "y") if table.has("x") else ()
    keep = np.ones(len(table), dtype=bool)
    east, north = coordinates(table, axes, chosen=chosen) if axes else (np.zeros(0), np.zeros(0))
    if axes:
        table.check()
        known = np.isfinite(east) & np.isfinite(north)
        _left_out(notes, table, chosen & ~known, f"without {axes[0]} and {axes[1]}")
        keep &= known
    if window is not None:
        inside = (east >= window[0]) & (east <= window[2]) & (north >= window[1]) & (north <= window[3])
        _left_out(notes, table, chosen & keep & ~inside, "outside the window")
        keep &= inside
    name = table.categories("place") if table.has("place") else None
    if name is not None:
        named = name.notna()
        _left_out(notes, table, chosen & keep & ~named, "without a place")
        keep &= named
    if not (keep & chosen).any():
        within = "" if window is None else f" in the window {list(window)}"
        raise InputError([f"{table.file}: no row is left: none of the selected rows has a place{within}"])
    site, first, names = _distinct(name, east, north, keep)
    used = keep & chosen
    if not axes:
        # Places without coordinates are a row of squares, from west to east in the order of their names.
        xy = np.column_stack([(np.arange(len(first)) + 0.5) * SIDE_M, np.full(len(first), SIDE_M / 2)])
        sites = Sites(names, xy, crs_about((0.0, 0.0)), SIDE_M)
    else:
        xy = np.column_stack([east[first], north[first]])
        written_in = pyproj.CRS.from_user_input(WGS84 if axes[0] == "lon" else given)
        if crs is None and axes[0] == "x":
            crs, replaced = true_plane(written_in, transform(written_in, WGS84, xy), what=table.file)
            notes += replaced
        elif crs is None:
            # The UTM zone is the zone of the places in use; other places may be far away.
            lon, lat = xy[np.unique(site[used])].T
            check_one_city(lon, lat, file=table.file)
            crs = utm_about(lon, lat, what=table.file)
        sites = Sites(names, xy if crs == written_in else transform(written_in, crs, xy), crs)
        several = (
            len(np.unique(site[((east != east[first[site]]) | (north != north[first[site]])) & used]))
            if names is not None
            else 0
        )
        if several:
            places_have = counted(several, "place has", "places have")
            notes.append(f"{table.file}: {places_have} more than one coordinate; each is where it is first")
    return table.kept(used), site[used].astype(np.int32), sites, notes


def _left_out(notes: list[str], table: Table, which: Mask, why: str) -> None:
    if which.any():
        notes.append(f"{table.file}: left out {counted(int(which.sum()), 'row')} {why}: {table.rows_in_words(which)}")


def _distinct(
    name: pd.Categorical | None, east: FloatArray, north: FloatArray, keep: Mask
) -> tuple[IntArray, IntArray, list[str] | None]:
    """Return the site of each row, numbered in natural order, and the first row and the name of each site."""
    rows = np.flatnonzero(keep)
    site = np.zeros(len(keep), dtype=np.int64)
    if name is None:
        pairs = east[rows] + 1j * north[rows]
        _, first, inverse = np.unique(pairs, return_index=True, return_inverse=True)
        site[rows] = inverse
        return site, rows[first], None
    codes, found = pd.factorize(name[keep])
    order = natural_order(found)
    site[rows] = np.argsort(order)[codes]
    first = rows[np.unique(site[rows], return_index=True)[1]]
    return site, first, [str(found[i]) for i in order]


def read_places(
    file: str | Path, *, columns: Mapping[str, str | int], format_: FileFormat, given: str | None, crs: pyproj.CRS
) -> tuple[Sites, list[str]]:
    """Read a table of named places, each once, at the coordinates in its first row.

    Parameters
    ----------
    file
        One or more rows per place.
    columns
        Map from `name`, and `lon` and `lat` or `x` and `y`, to the file's names or numbers.
    format_
        Format of the file, and which rows are used.
    given
        Coordinate system of `x` and `y`.
    crs
        Coordinate system of the city.

    Returns
    -------
    tuple
        The places, in the city's coordinate system, in natural order of their names; and what was left out, one
        sentence each.

    Raises
    ------
    InputError
        For any fault in the file, with file, row, rule and value.
    """
    ours = {"place" if key == "name" else key: column for key, column in columns.items()}
    table, chosen = read_rows(file, columns=ours, format_=format_)
    _, site, sites, notes = place_rows(table, chosen, crs=crs, given=given)
    used = np.unique(site)
    names = sites.names or []
    return Sites([names[place] for place in used.tolist()], sites.xy[used], sites.crs), notes
