"""Engine `entries`: the vehicles of an earlier run move again, as its log of entries states.

The log has the links that each vehicle entered, by vehicle, and vehicles in the order of departure. So it is read as
time goes on: in memory are the links, as of the routes of any engine, and the times of the vehicles that are driving.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import simpy

from mechanisms.compiled import compiled
from simulator.arrays import Int32Array, IntArray
from simulator.files.errors import InputError
from simulator.roads.network import Links
from simulator.traffic import kernel, places
from simulator.traffic.clock import Clock
from simulator.traffic.engine import State, Totals
from simulator.traffic.kernel import LOG_LANE_BITS, LOG_TIME_BITS
from simulator.traffic.lanes import LinkPhysics
from simulator.traffic.physics import FRACTION_BITS, LONG_AGO, MOST_TICKS, NEVER, ONE_TICK
from simulator.traffic.places import LanePlaces
from simulator.traffic.queue_engine import ARRIVED_AT, QueueEngine
from simulator.traffic.routes import Routes
from simulator.traffic.trips import Trips

_COLUMNS = ["vehicle", "time_s", "event", "link", "lane"]
_ROWS = 1 << 16
_WAITING, _ARRIVED = -1, -2
"""What stands for the lane of a trip that has not entered, or has arrived."""


class EntryLog:
    """A file of entries, `entries.parquet` of a run, of which no more than a part is in memory.

    Parameters
    ----------
    file
        The file.
    clock
        Clock of the run.

    Raises
    ------
    InputError
        If it cannot be read, or is no such file.
    """

    def __init__(self, file: Path, *, clock: Clock) -> None:
        self.file, self._clock = file, clock
        try:
            stored = pq.ParquetFile(file)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise InputError([f"{file}: cannot be read as Parquet: {error}"]) from error
        if lacking := [name for name in _COLUMNS if name not in stored.schema_arrow.names]:
            raise InputError([f"{file}: must be entries.parquet of a run; it has no column {lacking[0]!r}"])

    def parts(self) -> Iterator[pd.DataFrame]:
        """Yield the rows of some vehicles after those of others, with `time` in 1/1024 tick and the number of `trip`.

        Trips are counted in the order of the file.
        """
        rest, trips = pd.DataFrame(), 0
        for batch in (*pq.ParquetFile(self.file).iter_batches(_ROWS, columns=_COLUMNS), None):
            frame = rest if batch is None else pd.concat([rest, batch.to_pandas()], ignore_index=True)
            last = len(frame) if batch is None else int(np.searchsorted(frame["vehicle"], frame["vehicle"].max()))
            frame, rest = frame[:last], frame[last:]
            if len(frame):
                time = np.rint(frame["time_s"] / self._clock.step_s * ONE_TICK).astype(np.int64)
                begins = (frame["event"] == "departure").to_numpy()
                yield frame.assign(time=time, begins=begins, trip=trips + np.cumsum(begins) - 1)
                trips += int(begins.sum())

    def trips(self, links: Links, *, vehicles: int | None = None) -> tuple[Trips, Routes, IntArray]:
        """Return trips with the links that they entered, and the number of each trip of the file.

        Parameters
        ----------
        links
            Of the roads.
        vehicles
            The number of vehicles of the run, with those that have not departed; by default, as many as have.

        Raises
        ------
        InputError
            If the file has not every vehicle, has vehicles of other roads, or has more than `vehicles`.
        """
        departed, driven, lengths = [], [], [np.empty(0, dtype=np.int64)]
        for part in self.parts():
            # The first entry is onto the link of the departure.
            moves = part["begins"] | ((part["event"] == "entry") & ~part["begins"].shift(fill_value=False))
            departed.append(part.loc[part["begins"], ["vehicle", "time", "link"]])
            driven.append(part.loc[moves, "link"].to_numpy(dtype=np.int32))
            lengths.append(np.bincount(part["trip"][moves] - part["trip"].iloc[0]))
        begun, length = pd.concat([pd.DataFrame(columns=["vehicle", "time"]), *departed]), np.concatenate(lengths)
        vehicle, tick = (
            begun["vehicle"].to_numpy(dtype=np.int64),
            begun["time"].to_numpy(dtype=np.int64) >> FRACTION_BITS,
        )
        fleet = len(np.unique(vehicle))
        if not fleet or int(vehicle.max()) >= fleet:
            rule = "must have the entries of every vehicle; a run with more than about 4,000,000 keeps those of some"
            raise InputError([f"{self.file}: {rule}"])
        if (more := (vehicles or fleet) - fleet) < 0:
            raise InputError([f"traffic.vehicles: must be at least {fleet:,}, as in {self.file}, got {vehicles}"])
        order = np.argsort(tick, kind="stable")
        later = np.zeros(more, dtype=np.int64)
        every = Routes.gathered(
            np.append(np.concatenate(driven), np.int32(0)),
            np.append((np.cumsum(length) - length)[order], later + length.sum()),
            np.append(length[order], later + 1),
        )
        try:
            every.check_connected(links)
        except ValueError as error:
            raise InputError([f"{self.file}: it is of other roads: {error}"]) from error
        trips = Trips(
            links.from_node[every.links[every.offsets[:-1]]],
            links.to_node[every.links[every.offsets[1:] - 1]],
            np.append(tick[order], later + MOST_TICKS).astype(np.int32),
            None if fleet == len(tick) else np.append(vehicle[order], fleet + np.arange(more)).astype(np.int32),
        )
        return trips, every, np.argsort(order)


class EntryReplay(QueueEngine):
    """Engine whose vehicles enter links, and arrive, when a log says.

    Between two entries they are where Newell's trajectories put them, as in the engine that drove them. Two things are
    not in a log. One is what a vehicle lost as it started at a junction; see `trajectories`. The other is whether an
    entry that is dated before a tick was decided in that tick or in the next one.

    Parameters
    ----------
    log, links, physics, clock, record_entries
        The log, and as of `QueueEngine`.
    vehicles
        As of `EntryLog.trips`.
    """

    def __init__(
        self,
        log: EntryLog,
        links: Links,
        physics: LinkPhysics,
        *,
        clock: Clock,
        vehicles: int | None = None,
        record_entries: int = 0,
    ) -> None:
        trips, routes, self._number = log.trips(links, vehicles=vehicles)
        super().__init__(links, physics, trips, routes, clock=clock, record_entries=record_entries)
        self._held_back[:] = False  # each trip begins when it did
        self._parts = ((int(part["time"].iloc[0]), self._moves(part)) for part in log.parts())
        self._ahead = LONG_AGO, np.empty((0, 5), dtype=np.int64)
        self._to_come = self._ahead[1]

    def _prepare(self) -> None:
        physics, trips = self._physics, len(self.trips)
        self._lanes, self._vehicles = physics.lanes.copy(), np.zeros(trips, dtype=kernel.VEHICLE)
        exits = np.full(int(physics.lanes["storage"].sum(dtype=np.int64)), LONG_AGO, dtype=np.int32)
        self._driving = (self._lanes, self._vehicles, exits, physics.spacing, physics.pace, physics.length_m)
        self._at, self._position = np.full((2, trips), _WAITING, dtype=np.int32)
        self._env, self._until, self._crossings, self._trip_time = simpy.Environment(), LONG_AGO, 0, 0
        self._kept = [np.empty(0, dtype=np.int64)]

    def _moves(self, part: pd.DataFrame) -> IntArray:
        """Return (moves, 5) int64: when a trip moves on, its number, its lane then, since when, and a log's row."""
        after = part[~part["begins"]]
        trip, arrives = self._number[after["trip"]], (after["event"] == "arrival").to_numpy()
        lane, time = after["lane"].to_numpy(dtype=np.int64).clip(min=0), after["time"].to_numpy()
        log = np.column_stack([trip, np.where(arrives, ARRIVED_AT, after["link"]), lane, time])
        drives = self.drives(log)
        moves = np.full((5, len(log)), _ARRIVED, dtype=np.int64)
        left = np.zeros(len(log), dtype=np.int64)
        left[drives.row] = drives.exit
        moves[0] = np.where(np.diff(trip, prepend=-1) != 0, time, np.roll(left, 1))
        moves[1], moves[4] = trip, trip << (LOG_TIME_BITS + LOG_LANE_BITS) | time << LOG_LANE_BITS | lane
        moves[2, drives.row], moves[3, drives.row] = drives.lane, drives.entry + drives.loss
        return moves.T

    def start(self, env: simpy.Environment) -> None:
        """Use the clock of `env`; a log needs no process."""
        self._env = env

    def advance(self) -> None:
        """Move every vehicle to `env.now`, as far as was decided by then."""
        rules = self._physics.rules
        self._until, moves = math.floor(self._env.now * rules.passes) << rules.pass_bits, [self._to_come]
        while self._ahead[0] <= self._until:
            moves.append(self._ahead[1])
            self._ahead = next(self._parts, (NEVER, self._ahead[1][:0]))
        waiting = np.concatenate(moves)
        by_now = waiting[:, 0] <= self._until
        self._to_come, due = waiting[~by_now], waiting[by_now]
        due = due[np.argsort(due[:, 0], kind="stable")]
        self._crossings += follow(due, *self._driving[:3], self._at, self._position)
        ended = due[due[:, 2] == _ARRIVED]
        self._trip_time += int(ended[:, 0].sum() - ONE_TICK * self.departure_tick[ended[:, 1]].sum(dtype=np.int64))
        if self.record_entries:
            self._kept.append(due[due[:, 1] % self.record_entries == 0, 4])

    @property
    def _logged(self) -> IntArray:
        rows, shift = np.concatenate(self._kept), LOG_TIME_BITS + LOG_LANE_BITS
        logged: IntArray = (rows >> shift) // max(1, self.record_entries) << shift | rows & ((1 << shift) - 1)
        return logged

    @property
    def _now(self) -> float:
        return float(self._env.now)

    @property
    def _planned_so_far(self) -> int:
        return int(np.searchsorted(self.departure_tick, self._until >> FRACTION_BITS, side="right"))

    def _survey(self) -> LanePlaces:
        trips = np.arange(self._planned_so_far)
        found = LanePlaces.arrived(self._book.at(trips, self._position[trips].clip(min=0)))
        places.survey(self._driving, self._time, found[:])
        return self._with_waiting(found, trips)

    def _locate(self, trips: IntArray) -> LanePlaces:
        found = LanePlaces.arrived(self._book.at(trips, self._position[trips].clip(min=0)))
        places.survey_some(trips, self._physics.links, self._driving, self._time, found[:])
        return self._with_waiting(found, trips)

    def _with_waiting(self, found: LanePlaces, trips: IntArray) -> LanePlaces:
        waits = self._at[trips] == _WAITING
        found.state[waits], found.fraction[waits] = State.WAITING, 0.0
        return found

    def totals(self) -> Totals:
        """Return the number of trips in each state, and what is known of the counters: none is forced, or due."""
        at = self._at[: self._planned_so_far]
        state = np.where(at >= 0, State.ON_ROAD, np.where(at == _WAITING, State.WAITING, State.ARRIVED))
        trip_time_s = self._trip_time / ONE_TICK * self._clock.step_s
        return Totals.counted(state, link_crossings=self._crossings, trip_time_s=trip_time_s)

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes held for vehicles and moves that are to come, and for routes."""
        held = (self.trips, self._vehicles, self._at, self._position, self._number, self._to_come)
        return sum(one.nbytes for one in held), self._book.nbytes

    def __repr__(self) -> str:
        return f"<EntryReplay: {self.vehicles:,} vehicles, tick {self._now:g}>"


@compiled
def follow(moves: IntArray, lanes: Any, vehicles: Any, exits: Int32Array, at: Int32Array, position: Int32Array) -> int:
    """Move trips from lane to lane, in the order of `moves`, (n, 5) as `EntryReplay` has them; return the crossings.

    `at`, (trips,), is the lane of each trip, and `position`, (trips,), of its link among the links of its route.
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
        at[trip] = onto
        if onto < 0:
            continue
        position[trip] += 1
        vehicles[trip].entry, vehicles[trip].next = moves[i, 3], -1
        lane = lanes[onto]
        if lane.count:
            vehicles[lane.tail].next = trip
        else:
            lane.head = trip
        lane.tail = trip
        lane.count += 1
    return crossings
