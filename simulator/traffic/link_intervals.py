"""Links by interval, and trips, from the complete log of a queue engine or from recorded tracks on links.

The vehicles of a queue engine are where Newell's trajectories put them (`simulator.traffic.places`), and on a junction
at the end of the link that they left. A vehicle is in the queue from the moment at which those ahead of it, or the end
of the link, first hold it up until it leaves its lane. A recorded vehicle covers its part of a link at constant speed.
Densities and speeds follow Edie's definitions (1963): of all vehicles on a link during an interval, the time spent over
length and duration, and the distance covered over the time spent. SUMO makes these tables itself
(`simulator.sumo.outputs`).
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from simulator.arrays import FloatArray, Int32Array, IntArray, StateArray
from simulator.roads.network import Links
from simulator.traffic.clock import Clock
from simulator.traffic.engine import State
from simulator.traffic.physics import ONE_TICK
from simulator.traffic.places import Trajectories, passing_times, places_at, queued_from
from simulator.traffic.queue_engine import QueueEngine
from simulator.traffic.recording import Replay, Tracks

LINK_COLUMNS = (
    "link", "from_s", "to_s", "entered", "left", "mean_speed_mps", "density_vpkm", "travel_time_s", "queue_vehicles",
    "occupied_s",
)  # fmt: skip
_ROUNDING_S = 0.01
"""A shorter delay is no queue: times are rounded to 1/1024 tick."""
_AT_ONCE = 1_000_000
"""Traversals that are cut into intervals together, about 100 bytes each."""


@runtime_checkable
class LinkTables(Protocol):
    """An engine that makes the tables itself."""

    def link_tables(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the tables `links` and `trips` at the end of the run, `trips` without `takes_part`."""


class Traversals(NamedTuple):
    """Links that vehicles have entered, by link: of an engine by lane, and in the order of the vehicles on it.

    Attributes
    ----------
    trip, link
        (traversals,) int32.
    entry_s, leave_s
        (traversals,) float64, seconds from the start of the run; `leave_s`, the entry into the next link or the
        arrival, is NaN for a vehicle that is still there.
    share
        (traversals,) float64: the part of the link that it covers; less than 1 where a recorded track begins or ends
        on the link.
    trajectories
        How vehicles drove on their lanes. A recorded vehicle covers its part at constant speed, and none holds it.
    """

    trip: Int32Array
    link: Int32Array
    entry_s: FloatArray
    leave_s: FloatArray
    share: FloatArray
    trajectories: Trajectories

    @classmethod
    def of(cls, engine: QueueEngine, clock: Clock, log: IntArray) -> "Traversals":
        """Return the traversals of an engine that has logged the entries of every vehicle, at the end of its run.

        `log` is the engine's `log_by_vehicle()`, which a caller may need for more.

        Raises
        ------
        ValueError
            If the engine has not logged every vehicle.
        """
        if engine.record_entries != 1:
            raise ValueError(f"the engine must log every vehicle, got record_entries = {engine.record_entries}")
        row, driven = engine.trajectories(log)
        trip, link, _, time = log.T
        time_s = time / ONE_TICK * clock.step_s
        follows = np.append(trip[1:] == trip[:-1], False)
        leave_s = np.where(follows, np.append(time_s[1:], np.nan), np.nan)[row]
        columns = trip[row].astype(np.int32), link[row].astype(np.int32), time_s[row], leave_s
        return cls(*columns, np.ones(len(row)), driven)

    @classmethod
    def of_tracks(cls, tracks: Tracks, *, end_s: float) -> "Traversals":
        """Return the traversals of recorded tracks on links, from second 0 to the end of the run.

        A vehicle that is first observed on a link enters it there; one that is last observed on it, or for so long that
        its way is not known, leaves it there.
        """
        if tracks.link is None or tracks.leaves_at is None or tracks.comes_to is None:
            raise ValueError("the tracks must be on links")
        known = tracks.known.copy()
        known[tracks.first[1:] - 1] = False
        leg = np.flatnonzero(known & (tracks.link >= 0))
        of = np.searchsorted(tracks.first, leg, side="right") - 1
        on, start, stop = tracks.link[leg], tracks.leaves_at[leg], tracks.comes_to[leg]
        # Legs of a vehicle that follow each other on a link are one traversal, unless it has come round to the link.
        same = (leg[1:] == leg[:-1] + 1) & (on[1:] == on[:-1]) & (of[1:] == of[:-1])
        begins = np.flatnonzero(np.append(True, ~same | ((stop[:-1] == 1.0) & (start[1:] == 0.0)))[: len(leg)])
        ends = np.append(begins[1:], len(leg))[: len(begins)] - 1
        entry_s, leave_s = tracks.time_s[leg[begins]], tracks.time_s[leg[ends] + 1]
        share = np.maximum(stop[ends] - start[begins], 0.0)
        inside = np.flatnonzero((leave_s >= 0.0) & (entry_s <= end_s))
        inside = inside[np.argsort(on[begins[inside]], kind="stable")]
        entry_s, leave_s, share, at = entry_s[inside], leave_s[inside], share[inside], begins[inside]
        free_s = leave_s - np.maximum(entry_s, 0.0)
        share *= np.divide(free_s, leave_s - entry_s, out=np.ones(len(share)), where=leave_s > entry_s)
        leave_s[leave_s > end_s] = np.nan
        entry_s, exit_s = np.maximum(entry_s, 0.0), np.where(np.isnan(leave_s), np.inf, leave_s)
        driven = Trajectories(np.full(len(at), -1, np.int32), entry_s, free_s, exit_s, np.empty(0), np.empty(0))
        return cls(of[at].astype(np.int32), on[at], entry_s, leave_s, share, driven)

    def __len__(self) -> int:
        return len(self.trip)


def links_by_interval(
    driven: Traversals, length_m: FloatArray, *, every_s: float, end_s: float, queued: bool = True
) -> pd.DataFrame:
    """Return what happened on each link in each interval.

    Parameters
    ----------
    driven
        All traversals of the run.
    length_m
        (links,) float64.
    every_s
        Duration of an interval; the last one ends with the run.
    end_s
        End of the run.
    queued
        Whether the vehicles' queues are known.

    Returns
    -------
    DataFrame
        The table `links` of a run, by link, then by time; without intervals in which no vehicle was
        on the link.
    """
    queued_s = queued_from(driven.trajectories, _ROUNDING_S) if queued else driven.trajectories.exit_s
    parts = [_pieces(driven, length_m, queued_s, rows, every_s=every_s, end_s=end_s) for rows in _batches(len(driven))]
    sums = pd.concat(parts).groupby(level=["link", "interval"]).sum()
    link, interval = (sums.index.get_level_values(level).to_numpy() for level in ("link", "interval"))
    from_s = interval * every_s
    to_s = np.minimum(from_s + every_s, end_s)
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN where no vehicle was there for any time, or left
        return pd.DataFrame(
            {
                "link": link.astype(np.int32),
                "from_s": from_s,
                "to_s": to_s,
                "entered": sums["entered"].to_numpy(dtype=np.int64),
                "left": sums["left"].to_numpy(dtype=np.int64),
                "mean_speed_mps": (sums["driven_m"] / sums["occupied_s"]).to_numpy(),
                "density_vpkm": sums["occupied_s"].to_numpy() / (to_s - from_s) / length_m[link] * 1000.0,
                "travel_time_s": (sums["travel_s"] / sums["left"]).to_numpy(),
                "queue_vehicles": sums["queued_s"].to_numpy() / (to_s - from_s) if queued else np.nan,
                "occupied_s": sums["occupied_s"].to_numpy(),
            }
        )


def _batches(traversals: int) -> Iterator[slice]:
    for start in range(0, max(1, traversals), _AT_ONCE):
        yield slice(start, start + _AT_ONCE)


def _pieces(
    driven: Traversals, length_m: FloatArray, queued_from_s: FloatArray, rows: slice, *, every_s: float, end_s: float
) -> pd.DataFrame:
    """Cut traversals at the ends of intervals, and return sums by link and interval."""
    _, link, entry_s, leave_s, share = (column[rows] for column in driven[:5])
    has_left = ~np.isnan(leave_s)
    # A vehicle that is on a junction at the end of the run enters the next link a moment later.
    entry_s, until_s = np.minimum(entry_s, end_s), np.where(has_left, np.minimum(leave_s, end_s), end_s)
    most = int(np.ceil(end_s / every_s)) - 1
    first, last = (np.clip(time // every_s, 0, most).astype(np.int64) for time in (entry_s, until_s))
    piece, interval = _spread(first, last)
    begins, leaves = interval == first[piece], has_left[piece] & (interval == last[piece])
    from_s = np.where(begins, entry_s[piece], interval * every_s)
    to_s = np.where(interval == last[piece], until_s[piece], (interval + 1) * every_s)
    at = piece + rows.start
    part = np.where(leaves, 1.0, places_at(driven.trajectories, at, to_s))
    part[1:] -= np.where(begins[1:], 0.0, part[:-1])
    exit_s = driven.trajectories.exit_s[at]
    values = {
        "entered": begins,
        "left": leaves,
        "occupied_s": to_s - from_s,
        "queued_s": np.maximum(np.minimum(to_s, exit_s) - np.maximum(from_s, queued_from_s[at]), 0.0),
        "driven_m": part * share[piece] * length_m[link[piece]],
        "travel_s": np.where(leaves, (leave_s - entry_s)[piece], 0.0),
    }
    table = pd.DataFrame({"link": link[piece], "interval": interval} | values)
    return table.groupby(["link", "interval"]).sum()


def _spread(first: IntArray, last: IntArray) -> tuple[IntArray, IntArray]:
    """Return each number from `first` to `last` of each row, and before it the row."""
    count = last - first + 1
    row = np.repeat(np.arange(len(count)), count)
    begins = np.cumsum(count) - count
    return row, first[row] + np.arange(len(row)) - begins[row]


def trip_table(driven: Traversals, engine: QueueEngine, clock: Clock) -> pd.DataFrame:
    """Return the trips that have departed, at the end of the run.

    Parameters
    ----------
    driven
        All traversals of the run.
    engine
        The engine that drove them.
    clock
        Its clock.

    Returns
    -------
    DataFrame
        The table `trips` of a run (docs/reference/columns.md) without `takes_part`, by vehicle, then by departure.
    """
    begun, routes = engine.begun(), engine.routes
    trip = np.repeat(np.arange(len(routes), dtype=np.int32), np.diff(routes.offsets))
    length_m = np.add.reduceat(engine.length_m[routes.links], routes.offsets[:-1])[begun]
    free_s = np.add.reduceat(engine.free_s(trip, routes.links), routes.offsets[:-1])[begun]
    departure_s = engine.departure_tick[begun].astype(np.float64) * clock.step_s
    entry_s, arrival_s = (ends[begun] for ends in _ends(driven, len(routes)))
    vehicle = begun.astype(np.int32) if engine.trips.vehicle is None else engine.trips.vehicle[begun]
    table = trips_frame(vehicle, engine.trip_states(), departure_s, entry_s, arrival_s, length_m, free_s)
    return table.sort_values("vehicle", kind="stable", ignore_index=True)


def recorded_trips(driven: Traversals, engine: Replay, links: Links) -> pd.DataFrame:
    """Return the trips of all recorded vehicles that have been observed, as `trip_table`.

    A trip lasts from the first fix to the last one. Its length and its time at free speed are the sums over its
    traversals.
    """
    state, tracks = engine.places().state, engine.tracks
    departed = len(state)
    arrival_s = np.where(state == State.ARRIVED, tracks.time_s[tracks.first[1 : departed + 1] - 1], np.nan)
    driven_m = driven.share * links.length_m[driven.link]
    length_m, free_s = np.zeros(departed), np.zeros(departed)
    np.add.at(length_m, driven.trip, driven_m)
    np.add.at(free_s, driven.trip, driven_m / links.speed_mps[driven.link])
    departure_s = tracks.time_s[tracks.first[:departed]]
    vehicle = np.arange(departed, dtype=np.int32)
    return trips_frame(vehicle, state, departure_s, _ends(driven, departed)[0], arrival_s, length_m, free_s)


def _ends(driven: Traversals, trips: int) -> tuple[FloatArray, FloatArray]:
    """Return when each trip entered its first link and left its last one, (trips,) seconds, NaN if it did not."""
    entry_s, leave_s = np.full(trips, np.nan), np.full(trips, np.nan)
    if len(driven):
        order = np.lexsort((driven.entry_s, driven.trip))
        entered, begins = np.unique(driven.trip[order], return_index=True)
        entry_s[entered] = driven.entry_s[order[begins]]
        leave_s[entered] = driven.leave_s[order[np.append(begins[1:], len(driven)) - 1]]
    return entry_s, leave_s


def trips_frame(
    vehicle: Int32Array,
    state: StateArray,
    departure_s: FloatArray,
    entry_s: FloatArray,
    arrival_s: FloatArray,
    length_m: FloatArray,
    free_s: FloatArray,
) -> pd.DataFrame:
    """Return the columns of `trips` of trips with these vehicles, states and times, (trips,) each."""
    names = pd.Index([each.name.lower() for each in State])
    return pd.DataFrame(
        {
            "vehicle": vehicle,
            "departure_s": departure_s,
            "entry_s": entry_s,
            "arrival_s": arrival_s,
            "route_length_m": length_m,
            "free_flow_s": free_s,
            "trip_s": arrival_s - departure_s,
            "state": pd.Categorical.from_codes(state.astype(np.int64) - min(State), categories=names),
        }
    )


def passages(driven: Traversals, length_m: FloatArray, rows: pd.DataFrame, *, end_s: float) -> pd.DataFrame:
    """Count the vehicles that pass positions in intervals.

    A vehicle passes the start of a link (0) when it enters the link, its end (1) when it leaves it, onto another link
    or at its destination, and a position between them when its trajectory (Newell 2002) reaches it: in a queue, when
    the vehicles ahead let it move up; see `passing_times`. A recorded vehicle moves evenly. A trip that begins on a
    link enters at its start.

    Parameters
    ----------
    driven
        All traversals of the run.
    length_m
        (links,) float64.
    rows
        Positions, `link` and `fraction` of its length, and intervals that begin with `from_s` and end before `to_s`;
        the end of the run belongs to the interval that ends with it.
    end_s
        End of the run.

    Returns
    -------
    DataFrame
        With the index of `rows`: `count`, int64; and `speed_mps`, float64: length of the link over the mean time on it
        of the vehicles counted, without those that are still there at the end of the run, NaN without any. This is the
        harmonic mean of their speeds over the link, its queue included.
    """
    entry_s, leave_s = (np.minimum(column, end_s) for column in (driven.entry_s, driven.leave_s))
    passed = pd.DataFrame({"count": 0, "speed_mps": np.nan}, index=rows.index)
    for at in rows.reset_index().groupby(["link", "fraction"]).indices.values():
        link, fraction = (rows[name].iloc[at[0]] for name in ("link", "fraction"))
        here = slice(*np.searchsorted(driven.link, [link, link + 1]))
        entered, left = entry_s[here], leave_s[here]
        if 0.0 < fraction < 1.0:
            time_s = passing_times(driven.trajectories, here.start, here.stop, fraction)
        else:
            time_s = left if fraction else entered
        order = np.argsort(time_s)[: int((time_s <= end_s).sum())]  # NaN, of vehicles still there, comes last
        spent_s = (left - entered)[order]
        sums_s, timed = (np.append(0, np.cumsum(values)) for values in (np.nan_to_num(spent_s), ~np.isnan(spent_s)))
        from_s, to_s = rows["from_s"].to_numpy()[at], rows["to_s"].to_numpy()[at]
        low, high = np.searchsorted(time_s[order], [from_s, np.where(to_s >= end_s, np.inf, to_s)])
        with np.errstate(invalid="ignore", divide="ignore"):
            speed_mps = length_m[link] * (timed[high] - timed[low]) / (sums_s[high] - sums_s[low])
        passed.iloc[at] = np.column_stack([high - low, speed_mps])
    return passed


def detector_table(driven: Traversals, length_m: FloatArray, detectors: pd.DataFrame, *, end_s: float) -> pd.DataFrame:
    """Return the table `detectors` of a run: every interval of every detector, in their order.

    Parameters
    ----------
    driven, length_m, end_s
        As for `passages`.
    detectors
        `name`, `link`, `fraction` and `every_s` of each.
    """
    rows = detectors.loc[detectors.index.repeat(np.ceil(end_s / detectors["every_s"]).astype(np.int64))]
    from_s = rows.groupby(level=0).cumcount() * rows["every_s"]
    rows = rows.assign(from_s=from_s, to_s=np.minimum(from_s + rows["every_s"], end_s)).reset_index(drop=True)
    rows = rows.join(passages(driven, length_m, rows, end_s=end_s)).rename(columns={"name": "detector"})
    rows.insert(2, "position_m", rows["fraction"] * length_m[rows["link"]])
    return rows.drop(columns=["fraction", "every_s"])
