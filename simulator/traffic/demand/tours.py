"""Tours: several trips of each vehicle one after the other, with stays between, repeated from day to day."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from simulator.arrays import FloatArray, Int32Array, IntArray, Mask
from simulator.files.errors import InputError
from simulator.files.messages import counted
from simulator.traffic.clock import DAY_S, Clock
from simulator.traffic.demand.synthetic import Demand, Interval
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.physics import MOST_TICKS
from simulator.traffic.trips import Trips


@dataclass(frozen=True)
class TourOptions:
    """What vehicles do after their first trip, and on the days after the first.

    Attributes
    ----------
    duration_s
        Length of the run.
    stops
        Places that a vehicle visits before it returns to the origin of its first trip, from 1.
    stay_s, stay_sd_s
        Mean and standard deviation of the time between two planned departures of a vehicle, drawn once for each.
    minimum_stop_s
        Least time between an arrival and the next departure.
    departure_sd_s
        Standard deviation of the planned departures from day to day, of each trip by itself.
    skip_share
        Probability that a vehicle does not drive on a day.
    other_share
        Probability that a vehicle visits another place on a day in place of its first destination.
    profiles
        Departures of each day, seconds of the day: the order of the vehicles' first departures is kept, and the profile
        gives their times; on a day with fewer trips than another, fewer vehicles drive. Empty if each day is like the
        first.
    """

    duration_s: float
    stops: int = 1
    stay_s: float = 28_800.0
    stay_sd_s: float = 0.0
    minimum_stop_s: float = 0.0
    departure_sd_s: float = 0.0
    skip_share: float = 0.0
    other_share: float = 0.0
    profiles: Sequence[Sequence[Interval]] = ()


def repeat_tours(
    demand: Demand, options: TourOptions, paths: ShortestPaths, *, clock: Clock, rng: np.random.Generator
) -> Demand:
    """Return the tours of all days of a run.

    Parameters
    ----------
    demand
        The first day. If each vehicle has one trip, its tour is completed: on to the destinations of vehicles that are
        drawn, and back. Vehicles with several trips keep those.
    options
        Stops, stays, and what varies from day to day.
    paths
        Shortest paths over the roads.
    clock
        Conversion between ticks and seconds.
    rng
        The random stream for demand.

    Returns
    -------
    Demand
        Trips without routes. Notes state how many vehicles have no path back, and how many trips would begin after the
        end of the run and are left out.

    Raises
    ------
    InputError
        If the demand states routes, as a file of SUMO's does, or no trip begins within the run.
    """
    if demand.routes is not None:
        raise InputError(["needs trips without routes: SUMO's route files have no return trips"], key="traffic.tours")
    trips, notes = demand.trips, list(demand.notes)
    vehicle, origin, destination, usual_s = _usual(trips, options, paths, notes, clock.step_s, rng=rng)
    first = np.flatnonzero(np.diff(vehicle, prepend=-1))
    most = max((math.fsum(one.share for one in day) for day in options.profiles), default=1.0)
    parts = []
    for day in range(math.ceil(options.duration_s / DAY_S)):
        leave_s, drives = usual_s + day * DAY_S, 1.0 - options.skip_share
        if options.profiles:
            drives *= math.fsum(one.share for one in options.profiles[day]) / most
            leave_s += (_by_profile(usual_s[first], options.profiles[day]) - usual_s[first])[vehicle]
        leave_s += rng.normal(0.0, options.departure_sd_s, len(leave_s))
        driven = (rng.random(trips.vehicles) < drives)[vehicle]
        begins, ends = _elsewhere((vehicle, origin, destination), options.other_share, paths, rng=rng)
        parts.append([column[driven] for column in (vehicle, begins, ends, np.maximum(leave_s, 0.0))])
    vehicle, origin, destination, leave_s = (np.concatenate(column) for column in zip(*parts, strict=True))
    # No trip is planned before the one ahead of it.
    leave_s = np.asarray(pd.Series(leave_s).groupby(vehicle).cummax(), dtype=np.float64)
    inside = leave_s < options.duration_s
    if not inside.any():
        raise InputError(["leave no trip that begins within the run"], key="traffic.tours")
    if not inside.all():
        outside = counted(int(np.count_nonzero(~inside)), "trip")
        notes.append(f"tours: {outside} not driven: planned for after the end of the run")
    stop_ticks = min(max(1, clock.ticks_to_cover(options.minimum_stop_s)), MOST_TICKS)
    ticks = np.floor(leave_s[inside] / clock.step_s)
    kept = Trips.from_unsorted(origin[inside], destination[inside], ticks, vehicle[inside], stop_ticks)
    return Demand(kept, notes=tuple(notes))


def _usual(
    trips: Trips, tours: TourOptions, paths: ShortestPaths, notes: list[str], step_s: float, *, rng: np.random.Generator
) -> tuple[IntArray, Int32Array, Int32Array, FloatArray]:
    """Return vehicle, origin, destination and departure of the trips of a usual day, by vehicle, then in their order.

    A vehicle does without a place from which, or to which, no path leads.
    """
    leave_s = np.multiply(trips.departure_tick, step_s, dtype=np.float64)
    if trips.vehicle is not None:
        order = np.argsort(trips.vehicle, kind="stable")
        return trips.vehicle[order].astype(np.int64), trips.origin[order], trips.destination[order], leave_s[order]
    size, home, here = len(trips), trips.origin, trips.destination.copy()
    rows = [(np.arange(size), home, trips.destination, leave_s)]
    for stop in range(tours.stops):
        back = stop == tours.stops - 1
        there = home if back else trips.destination[rng.integers(size, size=size)]
        goes = _drivable(paths, here, there) & (back | _drivable(paths, there, home))
        leave_s = leave_s + np.maximum(rng.normal(tours.stay_s, tours.stay_sd_s, size), tours.minimum_stop_s)
        rows.append((np.flatnonzero(goes), here[goes], there[goes], leave_s[goes]))
        here[goes] = there[goes]
    if away := int(np.count_nonzero(here != home)):
        notes.append(f"tours: {counted(away, 'vehicle does', 'vehicles do')} not drive back: no path leads back")
    vehicle, origin, destination, leave_s = (np.concatenate(column) for column in zip(*rows, strict=True))
    order = np.argsort(vehicle, kind="stable")
    return vehicle[order], origin[order], destination[order], leave_s[order]


def _drivable(paths: ShortestPaths, origin: Int32Array, destination: Int32Array) -> Mask:
    able: Mask = (origin != destination) & (paths.all_joined or paths.reached(origin, destination))
    return able


def _by_profile(usual_s: FloatArray, profile: Sequence[Interval]) -> FloatArray:
    """Return departures by a profile, (vehicles,) seconds of the day, in the order of the usual ones."""
    if not profile:
        return usual_s
    rank = (np.argsort(np.argsort(usual_s, kind="stable"), kind="stable") + 0.5) / len(usual_s)
    below = np.cumsum([0.0, *(one.share for one in profile)])
    ends = np.ravel([(one.from_s, one.to_s) for one in profile])
    leave_s: FloatArray = np.interp(rank, np.repeat(below / below[-1], 2)[1:-1], ends)
    return leave_s


def _elsewhere(
    legs: tuple[IntArray, Int32Array, Int32Array], share: float, paths: ShortestPaths, *, rng: np.random.Generator
) -> tuple[Int32Array, Int32Array]:
    """Return origins and destinations of trips in which a share of the vehicles visits another one's destination.

    It takes the place of a vehicle's first destination, unless paths to and from there are missing.
    """
    vehicle, origin, destination = legs
    usual = destination[np.flatnonzero(np.diff(vehicle, prepend=-1))]
    there = np.where(rng.random(len(usual)) < share, rng.permutation(usual), usual)
    for _ in range(2):  # again without the vehicles that cannot
        begins, ends = (np.where(at == usual[vehicle], there[vehicle], at) for at in (origin, destination))
        moved = np.flatnonzero((there != usual)[vehicle])
        lost = vehicle[moved[~_drivable(paths, begins[moved], ends[moved])]]
        there[lost] = usual[lost]
    return begins, ends
