"""Synthetic demand: uniform or gravity trips on a road network, and departure times, drawn or from a daily profile."""

import calendar
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from simulator.arrays import FloatArray, Int32Array, IntArray
from simulator.files.errors import InputError
from simulator.files.tables import RECOGNIZED, Table, TextFormat, column_names, find_columns
from simulator.roads.network import Links
from simulator.traffic.clock import DAY_S, Clock
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.routes import Routes
from simulator.traffic.trips import Trips, VehicleClasses

_PEAK_SHAPE = 4.0


@dataclass(frozen=True)
class Interval:
    """Part of the run in which a share `share` of all vehicles departs, evenly in time."""

    from_s: float
    to_s: float
    share: float


Departures = Literal["uniform", "peak"] | Sequence[Interval]


def draw_departures(
    vehicles: int, departures: Departures, *, duration_s: float, rng: np.random.Generator
) -> FloatArray:
    """Draw the departure time of each vehicle, in seconds from the start of the run.

    Parameters
    ----------
    vehicles
        Number of vehicles.
    departures
        "uniform" over the whole run, warm-up included; "peak": Beta(4, 4) over the run, one smooth peak around its
        middle; or intervals whose shares sum to 1.
    duration_s
        Length of the run.
    rng
        The random stream for demand.

    Returns
    -------
    numpy.ndarray
        (vehicles,) float64 in [0, duration_s), unsorted.
    """
    if departures == "uniform":
        return rng.random(vehicles) * duration_s
    if departures == "peak":
        # A draw of exactly 1 would depart at the end of the run, which is not part of it.
        share = np.minimum(rng.beta(_PEAK_SHAPE, _PEAK_SHAPE, vehicles), np.nextafter(1.0, 0.0))
        return np.asarray(share * duration_s)
    table = [interval for interval in departures if isinstance(interval, Interval)]
    share = np.array([interval.share for interval in table])
    chosen = rng.choice(len(table), size=vehicles, p=share / share.sum())
    start = np.array([interval.from_s for interval in table])[chosen]
    length = np.array([interval.to_s - interval.from_s for interval in table])[chosen]
    return np.asarray(start + rng.random(vehicles) * length, dtype=np.float64)


_HOUR_S = 3600.0
_WEEKDAYS = ("weekday", "day_of_week", "dayofweek", "dow")
_SHARES = ("share", "trips", "vehicles", "volume", "flow", "count")


def read_profile(
    file: str | Path, *, text: TextFormat = RECOGNIZED, days: Sequence[int | None] = (None,), repeat: bool = False
) -> tuple[Interval, ...]:
    """Read the profile of departures over the day.

    Parameters
    ----------
    file
        ``.csv``, ``.csv.gz`` or ``.parquet`` with the columns ``hour``, 0 to 23, or ``from_s`` and ``to_s``, seconds of
        the day or of the clock in which the run's begin is given; and ``share``, or ``trips``, ``vehicles``,
        ``volume``, ``flow`` or ``count``: only the relative size of the values matters. With ``weekday``, the name of
        a day or 1 to 7 from Monday on, a row is for that day of the week.
    text
        Separator and decimal sign of a CSV file.
    days
        Days of the week of the run, 0 for Monday; None where they are not known.
    repeat
        Whether a profile without weekdays is repeated on each of them; else it is for the first only.

    Returns
    -------
    tuple of Interval
        Intervals in chronological order, without overlaps, with shares that sum to 1; intervals with share 0 are
        left out.

    Raises
    ------
    InputError
        If the file cannot be read or lacks a column, or a row has an invalid hour or number, or overlaps another row.
    """
    path = Path(file)
    found = find_columns(
        column_names(path, format_=text),
        {"hour": ("hour",), "from_s": ("from_s",), "to_s": ("to_s",), "share": _SHARES, "weekday": _WEEKDAYS},
    )
    by_hour = "hour" in found or not {"from_s", "to_s"} <= found.keys()
    columns = {name: found.get(name, name) for name in (*(("hour",) if by_hour else ("from_s", "to_s")), "share")}
    columns |= {name: found[name] for name in ("weekday",) if name in found}
    table = Table.from_file(path, columns=columns, text=columns.keys() & {"weekday"}, format_=text)
    share = table.checked_numbers("share", at_least=0)
    if by_hour:
        hour = table.checked_numbers("hour", at_least=0, at_most=23, whole=True)
        from_s, to_s, last = hour * _HOUR_S, (hour + 1.0) * _HOUR_S, "hour"
    else:
        from_s, to_s, last = table.checked_numbers("from_s", at_least=0), table.numbers("to_s"), "to_s"
        table.refuse("to_s", ~(np.isfinite(to_s) & (to_s > from_s)), "a finite number above from_s")
    weekday = _weekdays(table, days) if table.has("weekday") else np.zeros(len(table), dtype=np.int64)
    table.check()
    order = np.lexsort([from_s, weekday])
    again = np.zeros(len(table), dtype=np.bool_)
    apart = weekday * (to_s.max(initial=0.0) + 1.0)
    again[order[1:]] = (from_s + apart)[order[1:]] < np.maximum.accumulate((to_s + apart)[order])[:-1]
    table.refuse(last, again, "of an interval that overlaps no other row's")
    table.check()
    wanted = days if table.has("weekday") else [0] * (len(days) if repeat else 1)
    rows = [(day, row) for day, of in enumerate(wanted) for row in order[weekday[order] == of].tolist()]
    day, row = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    from_s, to_s, share = from_s[row] + day * DAY_S, to_s[row] + day * DAY_S, share[row]
    with np.errstate(over="ignore"):
        total = float(share.sum())
    if not 0 < total < np.inf:
        raise InputError([f"{table.file}: shares must sum to more than 0, and to a finite number, got {total:g}"])
    shares = zip(from_s.tolist(), to_s.tolist(), share.tolist(), strict=True)
    return tuple(Interval(begin, end, part / total) for begin, end, part in shares if part > 0)


def _weekdays(table: Table, days: Sequence[int | None]) -> IntArray:
    """Return the day of the week of each row, 0 for Monday."""
    if None in days:
        table.broken.append(f"{table.file}: weekday needs scenario.start with a date, which states the day of the week")
    names = [name.lower() for name in calendar.day_name]
    known = {form: day for day, name in enumerate(names) for form in (name, name[:3], str(day + 1))}
    weekday = np.array([known.get(str(text).strip().lower(), -1) for text in table.column("weekday")], dtype=np.int64)
    table.refuse("weekday", weekday < 0, "the name of a day, or 1 to 7 from Monday on")
    return weekday


def within_run(profile: Sequence[Interval], *, begin_s: float, duration_s: float) -> list[Interval]:
    """Clip a profile to the run, in seconds of the run; shares still refer to all trips of the profile."""
    cut = []
    for interval in profile:
        from_s, to_s = max(interval.from_s - begin_s, 0.0), min(interval.to_s - begin_s, duration_s)
        if to_s > from_s:
            share = interval.share * (to_s - from_s) / (interval.to_s - interval.from_s)
            cut.append(Interval(from_s, to_s, share))
    return cut


def draw_gravity(
    vehicles: int, *, links: Links, paths: ShortestPaths, scale_s: float, rng: np.random.Generator
) -> tuple[Int32Array, Int32Array]:
    """Draw origins by their mass, and destinations by mass and travel time.

    A node's mass is the lane-metres of its outgoing links (more road means more destinations).
    P(destination j | origin i) ∝ mass_j · exp(−t_ij / scale_s), j ≠ i, with t_ij the shortest time: the singly
    constrained gravity model with exponential deterrence. If no reachable node has a mass (all of them lack outgoing
    links), the destination is drawn evenly from the reachable nodes.

    Returns
    -------
    tuple of numpy.ndarray
        Two (vehicles,) int32 arrays of node indices.
    """
    mass = np.bincount(links.from_node, weights=links.length_m * links.lanes, minlength=paths.nodes)
    cumulative = np.cumsum(mass)
    origin = np.searchsorted(cumulative, rng.random(vehicles) * cumulative[-1], side="right").astype(np.int32)
    share: FloatArray = rng.random(vehicles)
    return origin, paths.draw_destinations(origin, share, mass.astype(np.float64), scale_s)


_MOST_ROUNDS = 400
"""Maximum number of redraws per vehicle, after which an unconnected pair is kept.

If one pair in ten is connected, this affects none of a million vehicles.
"""


def draw_uniform(vehicles: int, *, paths: ShortestPaths, rng: np.random.Generator) -> tuple[Int32Array, Int32Array]:
    """Draw origins and destinations evenly from all ordered pairs of different nodes that a path joins.

    Unconnected pairs, such as those to a node without incoming links, are drawn again. In a network where hardly any
    two nodes are connected, a few such pairs may remain, and routing reports them.

    Returns
    -------
    tuple of numpy.ndarray
        Two (vehicles,) int32 arrays of node indices.
    """
    origin, destination = _pairs(vehicles, paths.nodes, rng)
    if paths.all_joined:
        return origin, destination
    waiting = np.flatnonzero(~paths.reached(origin, destination))
    for _ in range(_MOST_ROUNDS):
        if len(waiting) == 0:
            break
        origin[waiting], destination[waiting] = _pairs(len(waiting), paths.nodes, rng)
        waiting = waiting[~paths.reached(origin[waiting], destination[waiting])]
    return origin, destination


def _pairs(number: int, nodes: int, rng: np.random.Generator) -> tuple[Int32Array, Int32Array]:
    """Draw ordered pairs of different nodes."""
    origin = rng.integers(nodes, size=number, dtype=np.int32)
    other = rng.integers(nodes - 1, size=number, dtype=np.int32)
    return origin, other + (other >= origin)


def draw_trips(
    vehicles: int,
    *,
    links: Links,
    paths: ShortestPaths,
    demand: Literal["uniform", "gravity"],
    gravity_scale_s: float,
    departures: Departures,
    duration_s: float,
    clock: Clock,
    rng: np.random.Generator,
) -> Trips:
    """Draw every vehicle's trip.

    Returns
    -------
    Trips
        In the order of departure.
    """
    if demand == "uniform":
        origin, destination = draw_uniform(vehicles, paths=paths, rng=rng)
    else:
        origin, destination = draw_gravity(vehicles, links=links, paths=paths, scale_s=gravity_scale_s, rng=rng)
    leave_s = draw_departures(vehicles, departures, duration_s=duration_s, rng=rng)
    return Trips.from_unsorted(origin, destination, np.floor(leave_s / clock.step_s))


@dataclass(frozen=True, eq=False)
class Demand:
    """Demand of a run: trips, and routes if given.

    Attributes
    ----------
    trips
        In the order of departure.
    routes
        One per trip, if the demand gives them; None if they are still to be computed.
    notes
        What was left out, summed or filled in, one sentence each.
    classes
        Classes, speeds and sizes of the vehicles; None if the demand does not state them.
    timed
        Whether the departures come from a file.
    """

    trips: Trips
    routes: Routes | None = None
    notes: tuple[str, ...] = ()
    classes: VehicleClasses | None = None
    timed: bool = False
