"""Plausibility checks on units, coordinate reference system and axis order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyproj

from simulator.files.errors import InputError
from simulator.files.messages import Note, counted, warning

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from simulator.files.tables import Table

FACTOR = 10.0
SHORTEST = 0.9
"""Lower limit of a length, as a multiple of the straight distance. A length cannot be shorter than that distance; a
tenth is allowed for rounded numbers and map projections."""
LONGEST = 2.5
"""Upper limit of a length, as a multiple of the straight distance. Feet read as metres are 3.28 times too long; few
streets make such a detour."""
_SMALL_SPREAD = 0.25
"""Smallest standard deviation of log(length / distance) at which a map may count as schematic: without this limit,
distances would seem not to explain lengths that are nearly all the same."""
SHAPE_TOLERANCE = 0.1
FEWEST_LINKS = 20
_LARGEST_LATITUDE = 90.0
FASTEST_KPH = 140.0
"""The highest general speed limit of a country (Bulgaria, Poland)."""
FAST_SHARE = 0.1
"""Largest accepted share of the length of links that is faster: in published networks, connectors with a few per cent
of the length are."""
SLOWEST_KPH = 14.0
"""Slower than a bicycle. Speed limits of 15 km/h exist; 50 km/h, given in m/s and read as km/h, is 13.9."""

HIGHEST_LANE_VPH, LOWEST_LANE_VPH = 2600.0, 300.0
"""Vehicles per hour of a lane. A lane of a motorway has at most 2,400 passenger cars (Highway Capacity Manual), and 300
is the lowest default of a class of road."""
_PER_LANE = ("per lane", "capacity_total_vph", "the capacity of whole links")


def length_warnings(
    length_m: NDArray[np.float64],
    straight_m: NDArray[np.float64],
    *,
    file: str,
    units: NDArray[np.float64] | None = None,
    without: str = "",
) -> list[Note]:
    """Compare the lengths that a file gives with straight distances between nodes.

    Parameters
    ----------
    length_m, straight_m
        Metres of each link whose length the file gives, shape (n,); pairs with a 0 or an infinite length are left
        out.
    file
        The file's name for the sentence.
    units
        Distance between the nodes of each link in units of the coordinates, shape (n,), if no system of theirs is
        stated; else None.
    without
        How the roads are read without coordinates; empty if there is no way.

    Returns
    -------
    list of Note
        One if in the median lengths are below 0.9 of the distances, or above 2.5 times them; else empty.
        On a schematic map, lengths up to ten times the distances are accepted. A map counts as schematic if
        log(length / distance) varies more than log(length) does, so that distances do not explain lengths.

    Raises
    ------
    InputError
        If no system of the coordinates is stated and distances and lengths differ more than tenfold: the coordinates
        are not what they were taken for, or the lengths are not in the unit stated. It names the factors that fit.
    """
    usable = (length_m > 0) & (straight_m > 0) & np.isfinite(length_m)
    if not usable.any():
        return []
    length, straight = length_m[usable], straight_m[usable]
    with np.errstate(over="ignore"):  # an infinite ratio is implausible, too
        ratio = float(np.median(straight / length))
    schematic = (np.log(straight) - np.log(length)).std() > max(np.log(length).std(), _SMALL_SPREAD)
    if 1 / (FACTOR if schematic else LONGEST) <= ratio <= 1 / SHORTEST:
        return []
    words = f"{ratio:,.3g} times" if ratio >= 1 else f"1/{1 / ratio:,.3g} of"
    observation = f"the straight distance between a link's nodes is, in the median, {words} its length"
    if units is not None and not 1 / FACTOR <= ratio <= FACTOR:
        unit_m = float(np.median(length[units[usable] > 0] / units[usable & (units > 0)]))
        plane = (
            f'"+proj=tmerc +lat_0=LATITUDE +lon_0=LONGITUDE +to_meter={unit_m:.4g}", '
            "with the latitude and longitude of the origin"
        )
        fit = (
            f"they agree if one unit of the coordinates is {unit_m:,.4g} m (as crs = {plane}), or if the lengths are "
            f"multiplied by {ratio:,.4g}: state crs, or correct the unit of length"
        )
        fit += f'; coordinates of a drawing are no places: {without}, with cells.kind = "roads"' if without else ""
        raise InputError([f"{file}: {observation}, and no coordinate system is stated: {fit}"], key="roads.crs")
    checks = "check the unit of length, the coordinate system, and whether its two coordinates are swapped"
    return [warning("coordinates", f"{file}: {observation}: {checks}")]


def shape_warnings(length_m: NDArray[np.float64], shape_m: NDArray[np.float64], *, file: str) -> list[Note]:
    """Compare the lengths that a file gives with the lengths of shapes, which should be the same.

    Parameters
    ----------
    length_m, shape_m
        Metres of each link, NaN or 0 where there is none, shape (n,).
    file
        The file's name for the sentence.

    Returns
    -------
    list of Note
        One if in the median they differ by more than a tenth (Web Mercator lengths do, far from the
        equator); else empty.
    """
    usable = (length_m > 0) & (shape_m > 0)
    if not usable.any():
        return []
    ratio = float(np.median(shape_m[usable] / length_m[usable]))
    if abs(ratio - 1) <= SHAPE_TOLERANCE:
        return []
    observation = (
        f"the shape of a link is, in the median, {ratio:.3g} times as long as its stated length: check the unit"
    )
    mercator = "; lengths measured in Web Mercator are too long by such a factor" if 0.3 < ratio < 1 else ""
    return [warning("lengths", f"{file}: {observation}{mercator}")]


def speed_warnings(speed_mps: NDArray[np.float64], length_m: NDArray[np.float64], *, file: str) -> list[Note]:
    """Check that free-flow speeds are plausible for road vehicles.

    A speed is often the quotient of a length and a time, so this check also detects a wrong unit of either.

    Parameters
    ----------
    speed_mps
        Metres per second of each link whose speed the file gives, NaN of the others, shape (n,).
    length_m
        Metres of each link, shape (n,); used as weights, so that short connectors have little influence.
    file
        The file's name for the sentence.

    Returns
    -------
    list of Note
        One if more than a tenth of the total length has a speed above 140 km/h, or half of it one below
        14 km/h; else empty.
    """
    usable = (speed_mps > 0) & (length_m > 0) & np.isfinite(speed_mps) & np.isfinite(length_m)
    if not usable.any():
        return []
    kph, length = speed_mps[usable] * 3.6, length_m[usable] / length_m[usable].sum()
    order = np.argsort(kph)
    middle = np.searchsorted(np.cumsum(length[order]), 0.5)
    median = float(kph[order[min(int(middle), len(order) - 1)]])
    checks = "check the units of length, time and speed"
    fast = float(length[kph > FASTEST_KPH].sum())
    if fast > FAST_SHARE:
        observation = f"{fast:.0%} of the length of links has a free-flow speed above {FASTEST_KPH:g} km/h"
        speeds = f"median {median:,.0f} km/h, highest {kph.max():,.0f} km/h"
        return [warning("speeds", f"{file}: {observation} ({speeds}): {checks}")]
    if median < SLOWEST_KPH:
        observation = f"half of the length of links has a free-flow speed of {median:,.3g} km/h or less"
        return [warning("speeds", f"{file}: {observation}, slower than a bicycle: {checks}")]
    return []


def capacity_warnings(lane_vph: ArrayLike, *, file: str, total: bool) -> list[Note]:
    """Check that capacities are plausible for one lane.

    Parameters
    ----------
    lane_vph
        Vehicles per hour and lane of each link, NaN where the file gives none, shape (n,).
    file
        The file's name for the sentence.
    total
        Whether the file's capacities are of whole links, divided by lanes.

    Returns
    -------
    list of Note
        One for links above 2,600 vehicles an hour and lane, and one for links below 300; the keys named are keys of
        ``roads.columns``.
    """
    values, warnings = np.asarray(lane_vph, dtype=np.float64), []
    read, key, if_ = ("the capacity of whole links", "capacity_vph", "per lane") if total else _PER_LANE
    other = f"it is read as {read}: if it is {if_}, name the column as {key} in roads.columns"
    for wrong, words in (
        (values > HIGHEST_LANE_VPH, f"above {HIGHEST_LANE_VPH:,.0f}"),
        ((values > 0) & (values < LOWEST_LANE_VPH), f"below {LOWEST_LANE_VPH:,.0f}"),
    ):
        if wrong.any():
            share = f"{int(wrong.sum()):,} of {counted(len(values), 'link')} ({wrong.mean():.0%})"
            extreme = f"median of these {np.median(values[wrong]):,.0f}"
            text = f"{file}: the capacity is {words} vehicles/h per lane in {share}, {extreme}: {other}"
            warnings.append(warning("capacities", text))
    return warnings


def check_axes(
    nodes: Table,
    lonlat: NDArray[np.float64],
    from_row: NDArray[np.integer],
    to_row: NDArray[np.integer],
    length: NDArray[np.float64],
    *,
    rule: str,
) -> None:
    """Raise if the lengths of links indicate that latitude and longitude are swapped.

    With swapped coordinates, distances are stretched along one axis, so that lengths are no longer a constant multiple
    of distances. The coordinates count as swapped if swapping them back halves the mean deviation of
    log(length / distance) from its median; the unit of length does not matter. They do not if too few lengths are
    known to decide, or if swapped coordinates would be out of range.

    Parameters
    ----------
    nodes
        Rows of the nodes, for the message.
    lonlat
        Longitude and latitude in degrees, as read, shape (nodes, 2).
    from_row, to_row
        The nodes of each link whose length is given, shape (links,).
    length
        In any unit, shape (links,).
    rule
        What the coordinates must be, for the message.

    Raises
    ------
    InputError
        If they are swapped.
    """
    if np.abs(lonlat[:, 0]).max(initial=0.0) > _LARGEST_LATITUDE:
        return
    sphere = pyproj.Geod(ellps="WGS84")
    usable = (length > 0) & np.isfinite(length)
    distances, spreads = [], []
    for lon, lat in (lonlat.T, lonlat[:, ::-1].T):
        _, _, distance = sphere.inv(lon[from_row], lat[from_row], lon[to_row], lat[to_row])
        distances.append(np.asarray(distance))
        usable &= distances[-1] > 0
    if usable.sum() < FEWEST_LINKS:
        return
    for distance in distances:
        logs = np.log(length[usable] / distance[usable])
        spreads.append(float(np.abs(logs - np.median(logs)).mean()))
    as_is, swapped = spreads
    if swapped < as_is / 2:
        rows = nodes.rows_in_words(np.ones(len(nodes), dtype=np.bool_))
        fit = "the links' lengths fit far better with the two swapped"
        raise InputError([f"{nodes.file}: {rows}: {rule}; {fit}"])
