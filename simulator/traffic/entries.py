"""Engine `entries`: the vehicles of an earlier run move again, as its log of entries states.

The log has the links that each vehicle entered, by vehicle, and vehicles in the order of departure. So it is read as
time goes on: in memory are the links, as of the routes of any engine, and the times of the vehicles that are driving.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from mechanisms.compiled import compiled
from simulator.arrays import Int32Array, IntArray
from simulator.files.errors import InputError
from simulator.roads.network import Links
from simulator.traffic.clock import Clock
from simulator.traffic.engine import State
from simulator.traffic.fleet import Fleet
from simulator.traffic.kernel import LOG_LANE_BITS, LOG_TIME_BITS
from simulator.traffic.lanes import LinkPhysics
from simulator.traffic.physics import FRACTION_BITS, LONG_AGO, NEVER, ONE_TICK
from simulator.traffic.places import LanePlaces
from simulator.traffic.queue_engine import ARRIVED_AT
from simulator.traffic.routes import Routes
from simulator.traffic.trips import Trips

_COLUMNS = ["vehicle", "time_s", "event", "link", "lane"]
_ROWS = 1 << 16
"""Rows of a file that are read at once."""
_WAITING, _ARRIVED = -1, -2
"""What stands for the lane of a trip that has not entered, or has arrived."""


def read_parts(file: Path, clock: Clock) -> Iterator[pd.DataFrame]:
    """Yield the rows of some vehicles of `entries.parquet` after those of others.

    They have the time `at` in 1/1024 tick, whether a trip `begins`, and the number of `trip` in the order of the file.

    Raises
    ------
    InputError
        If the file cannot be read, or is another.
    """
    rest, trips = pd.DataFrame(), 0
    try:
        for batch in chain(pq.ParquetFile(file).iter_batches(_ROWS, columns=_COLUMNS), [None]):
            rows = rest if batch is None else pd.concat([rest, batch.to_pandas()[_COLUMNS]], ignore_index=True)
            whole = len(rows) if batch is None else int(np.searchsorted(rows["vehicle"], rows["vehicle"].max()))
            part, rest = rows[:whole], rows[whole:]
            if whole:
                begins = (part["event"] == "departure").to_numpy()
                at = np.rint(part["time_s"] / clock.step_s * ONE_TICK).astype(np.int64)
                yield part.assign(at=at, begins=begins, trip=trips + np.cumsum(begins) - 1)
                trips += int(begins.sum())
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise InputError([f"{file}: cannot be read as entries.parquet of a run: {error}"]) from error


def read_trips(file: Path, links: Links, clock: Clock) -> tuple[Trips, Routes, IntArray]:
    """Return trips with the links that they entered so far, and the number of each trip of the file.

    Raises
    ------
    InputError
        If the file has not every vehicle, or is of other roads.
    """
    departed = [pd.DataFrame({"vehicle": [], "at": []})]
    driven, lengths = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
    for part in read_parts(file, clock):
        # The first entry is onto the link of the departure.
        moves = part["begins"] | ((part["event"] == "entry") & ~part["begins"].shift(fill_value=False))
        departed.append(part.loc[part["begins"], ["vehicle", "at"]])
        driven.append(part.loc[moves, "link"].to_numpy(dtype=np.int32))
        lengths.append(np.bincount(part["trip"][moves] - part["trip"].iloc[0]))
    begun, length = pd.concat(departed).astype(np.int64), np.concatenate(lengths)
    if not len(begun) or begun["vehicle"].max() >= begun["vehicle"].nunique():
        rule = "must have the entries of every vehicle; a run with more than about 4,000,000 keeps those of some"
        raise InputError([f"{file}: {rule}"])
    tick = begun["at"].to_numpy() >> FRACTION_BITS
    order = np.argsort(tick, kind="stable")
    routes = Routes.gathered(np.concatenate(driven), (np.cumsum(length) - length)[order], length[order])
    try:
        routes.check_connected(links)
    except ValueError as error:
        raise InputError([f"{file}: it is of other roads: {error}"]) from error
    ends = (links.from_node[routes.links[routes.offsets[:-1]]], links.to_node[routes.links[routes.offsets[1:] - 1]])
    several = begun["vehicle"].to_numpy(dtype=np.int32)[order] if begun["vehicle"].duplicated().any() else None
    return Trips(*ends, tick[order].astype(np.int32), several), routes, np.argsort(order)


class EntryReplay(Fleet):
    """Engine whose vehicles enter links, and arrive, when a log says.

    Between two entries they are where Newell's trajectories put them, as in the engine that drove them. Two things are
    not in a log. One is what a vehicle lost as it started at a junction; see `trajectories`. The other is whether an
    entry that is dated before a tick was decided in that tick or in the next one.

    Parameters
    ----------
    file
        `entries.parquet` of a run.
    links, physics, clock, record_entries
        As of `QueueEngine`.
    vehicles
        The number of vehicles of that run, with those that have not departed; by default, as many as have.

    Raises
    ------
    InputError
        If the file cannot be used.
    """

    def __init__(
        self, file: Path, links: Links, physics: LinkPhysics, *, clock: Clock, vehicles: int | None, record_entries: int
    ) -> None:
        trips, routes, self._number = read_trips(file, links, clock)
        super().__init__(links, physics, trips, routes, clock=clock, record_entries=record_entries)
        if vehicles is not None and vehicles < self.vehicles:
            raise InputError([f"must be at least {self.vehicles:,}, as in {file}, got {vehicles}"], "traffic.vehicles")
        self.vehicles = vehicles or self.vehicles
        self._held_back[:] = False  # each trip begins when it did
        self._cursor[:], self._at = 1, np.full(len(trips), _WAITING, dtype=np.int32)
        self._parts = ((int(part["at"].iloc[0]), self._moves(part)) for part in read_parts(file, clock))
        self._to_come: IntArray = np.empty((0, 5), dtype=np.int64)
        self._ahead = LONG_AGO, self._to_come

    def _moves(self, part: pd.DataFrame) -> IntArray:
        """Return (moves, 5) int64: when a trip moves on, its number, its lane then, since when, and a log's row."""
        after = part[~part["begins"]]
        trip, link = self._number[after["trip"]], after["link"].where(after["event"] == "entry", ARRIVED_AT)
        lane, at = after["lane"].to_numpy(dtype=np.int64).clip(min=0), after["at"].to_numpy()
        row, onto, begins, _, left = self.drives(np.column_stack([trip, link, lane, at]))
        moves = np.full((5, len(after)), _ARRIVED, dtype=np.int64)
        moves[0, row] = left
        moves[0] = np.where(np.diff(trip, prepend=-1) != 0, at, np.roll(moves[0], 1))
        moves[1] = trip
        moves[2, row], moves[3, row] = onto, begins
        moves[4] = trip // max(1, self.record_entries) << (LOG_TIME_BITS + LOG_LANE_BITS) | at << LOG_LANE_BITS | lane
        return moves.T

    def _work(self, start: int, stop: int) -> None:  # noqa: ARG002 - all that was due before has moved
        until, moves, counts = (stop - 1) << self._physics.rules.pass_bits, [self._to_come], self._counts[0]
        while self._ahead[0] <= until:
            moves.append(self._ahead[1])
            self._ahead = next(self._parts, (NEVER, self._to_come[:0]))
        moving = np.concatenate(moves)
        by_now = moving[:, 0] <= until
        self._to_come, due = moving[~by_now], moving[by_now]
        due = due[np.argsort(due[:, 0], kind="stable")]
        counts["crossings"] += follow(due, *self._driving[:3], self._at, self._cursor)
        ended = due[due[:, 2] == _ARRIVED]
        counts["trip_time"] += ended[:, 0].sum() - ONE_TICK * self.departure_tick[ended[:, 1]].sum(dtype=np.int64)
        counts["departed"] = np.searchsorted(self.departure_tick, until >> FRACTION_BITS, side="right")
        at = self._at[: counts["departed"]]
        counts["on_road"], counts["waiting"] = np.count_nonzero(at >= 0), np.count_nonzero(at == _WAITING)
        counts["arrived"] = counts["departed"] - counts["on_road"] - counts["waiting"]
        kept = due[due[:, 1] % self.record_entries == 0, 4] if self.record_entries else due[:0, 4]
        self._log[counts["logged"] : counts["logged"] + len(kept)] = kept
        counts["logged"] += len(kept)

    def _survey(self) -> LanePlaces:
        found = super()._survey()
        waits = np.flatnonzero(self._at[: self._planned_so_far] == _WAITING)
        found.state[waits], found.link[waits], found.fraction[waits] = State.WAITING, self.first_links(waits), 0.0
        return found

    def _due(self) -> None:
        """Return None: the routes of trips that have not ended are not known."""


@compiled
def follow(moves: IntArray, lanes: Any, vehicles: Any, exits: Int32Array, at: Int32Array, cursor: Int32Array) -> int:
    """Move trips from lane to lane, in the order of `moves`, (n, 5) as `EntryReplay` has them; return the crossings.

    `at`, (trips,), is the lane of each trip; `vehicles`, `exits` and `cursor` are as in `kernel.advance`. No turn is
    read, and the turns of a trip that has arrived are not 0, by which `Fleet` knows it.
    """
    crossings = 0
    for i in range(len(moves)):
        trip, onto = moves[i, 1], moves[i, 2]
        if at[trip] >= 0:
            lane = lanes[at[trip]]
            exits[lane.exits + lane.oldest] = moves[i, 0]
            lane.oldest = (lane.oldest + 1) % lane.storage
            lane.head = vehicles[trip].next
            lane.count -= 1
            crossings += 1
            cursor[trip] += 1
        at[trip] = onto
        if onto < 0:
            vehicles[trip].turns = 1
        else:
            vehicles[trip].entry, vehicles[trip].next = moves[i, 3], -1
            lane = lanes[onto]
            if lane.count:
                vehicles[lane.tail].next = trip
            else:
                lane.head = trip
            lane.tail = trip
            lane.count += 1
    return crossings
