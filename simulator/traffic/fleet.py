"""Engine `fleet`: all vehicles in arrays, moved by the compiled kernel; the default engine."""

from collections.abc import Generator

import numpy as np
import numpy.typing as npt
import simpy

from simulator.arrays import Int32Array, IntArray, StateArray
from simulator.roads.network import Links
from simulator.traffic import spatial_queue
from simulator.traffic.clock import after_traffic
from simulator.traffic.engine import State, Totals
from simulator.traffic.physics import LinkPhysics
from simulator.traffic.queue_engine import QueueEngine
from simulator.traffic.reactive import Flow, ReactiveRouting

BEAT_TICKS = 256


class Fleet(QueueEngine):
    """Engine that moves `trips` along `routes` by the spatial queue of `LinkPhysics`, in arrays of the whole fleet."""

    def _prepare(self) -> None:
        vehicles = len(self.trips)
        self._links = _link_records(self._road_links, self._physics)
        self._vehicles = np.zeros(vehicles, dtype=spatial_queue.VEHICLE)
        self._cursor = np.zeros(vehicles, dtype=np.int32)
        self._ring, self._origins = spatial_queue.empty_calendar(len(self._physics))
        self._counts = np.zeros(1, dtype=spatial_queue.COUNTS)
        self._log = np.full(self._log_rows(), -1, dtype=np.int64)  # touches its pages before time is measured
        self._bits = spatial_queue.turn_bits(int(np.diff(self._road_links.first_out).max()))
        self._next_tick = 0
        self._env: simpy.Environment | None = None

    def start(self, env: simpy.Environment) -> None:
        """Add the process that moves the fleet to `env`."""
        self._env = env
        env.process(self._drive(env))

    def _drive(self, env: simpy.Environment) -> Generator[simpy.Event, None, None]:
        """Advance the fleet at regular intervals, so that a long run shows its progress and can be interrupted.

        Code that needs positions between two of these moments calls `advance`.
        """
        while True:
            yield after_traffic(env, env.now + BEAT_TICKS)
            self.advance_to(int(env.now))

    def advance(self) -> None:
        """Move every vehicle to `env.now`, tick ⌊now⌋ included."""
        if self._env is None:
            raise RuntimeError("the fleet has not been started: call start(env) first")
        self.advance_to(int(self._env.now))

    def compile(self) -> None:
        """Compile the kernel, or load it from numba's cache, before timing starts."""
        self._work(0, 0)

    def advance_to(self, tick: int) -> None:
        """Simulate every tick up to and including `tick`; do nothing if it is past."""
        while self._next_tick <= tick:
            stop = tick + 1
            if self._closures:
                closed = self._closed_at(self._next_tick)
                self._links["storage"] = np.where(closed, -1, self._physics.storage)
                edges = (edge for _, *both in self._closures for edge in both if edge > self._next_tick)
                stop = min([stop, *edges])
            if self._reactive is not None:
                every = self._reactive.every_ticks
                if self._next_tick % every == 0 and self._next_tick > 0:
                    self._reroute(self._reactive)
                stop = min(stop, (self._next_tick // every + 1) * every)
            self._work(self._next_tick, stop)
            self._next_tick = stop

    def _reroute(self, reactive: ReactiveRouting) -> None:
        """Re-route vehicles; the turn words of those with a new route are refilled."""
        links, (state, _, _) = self._links, self._entries_now()
        position = spatial_queue.positions(self._vehicles, self._cursor, len(state), self._bits)
        entry = self._vehicles["entry"][links["head"]]
        flow = Flow(
            left=links["passed"] // spatial_queue.ONE_PASSED,
            spent_ticks=links["passed"] % spatial_queue.ONE_PASSED,
            head_entry=np.where(links["head"] >= 0, entry, -1),
            state=state,
            position=position,
            closed=self._closed_at(self._next_tick),
        )
        turned = reactive.reroute(self._next_tick, self._book, flow)
        self._cursor[turned] = position[turned] + 1
        self._vehicles["turns"][turned] = 0
        if (rows := self._log_rows()) > len(self._log):
            self._log = np.concatenate([self._log, np.full(rows - len(self._log), -1, dtype=np.int64)])

    def _log_rows(self) -> int:
        """Return how many entries and arrivals the vehicles that are logged can have on their present routes."""
        if not self.record_entries:
            return 0
        logged = slice(None, None, self.record_entries)
        return int((self._book.end[logged] - self._book.start[logged] + 1).sum())

    def _work(self, start: int, stop: int) -> None:
        spatial_queue.advance(
            self._links,
            self._vehicles,
            self._cursor,
            self._book.start,
            self._book.end,
            self._book.links,
            self.trips.departure_tick,
            self._ring,
            self._origins,
            self._counts,
            self._log,
            max(1, self.record_entries),
            self._bits,
            self._physics.stuck_ticks,
            start,
            stop,
        )

    @property
    def _now(self) -> float:
        return self._next_tick - 1 if self._env is None else self._env.now

    def _entries_now(self) -> tuple[StateArray, Int32Array, Int32Array]:
        """Return the state, link and entry tick of every departed vehicle."""
        departed = int(self._counts["departed"][0])
        state = np.full(departed, State.ARRIVED, dtype=np.uint8)
        where = self._book.last(departed)
        entry = np.zeros(departed, dtype=np.int32)
        spatial_queue.survey(self._links, self._vehicles, state, where, entry)
        return state, where, entry

    def totals(self) -> Totals:
        """Return the number of vehicles in each state, and the counters so far."""
        counts = self._counts[0]
        return Totals(
            departed=int(counts["departed"]),
            waiting=int(counts["waiting"]),
            on_road=int(counts["on_road"]),
            arrived=int(counts["arrived"]),
            stuck_released=int(counts["stuck"]),
            link_crossings=int((self._links["passed"] // spatial_queue.ONE_PASSED).sum()),
            trip_time_s=int(counts["trip_ticks"]) * self._clock.step_s,
            due=self._due(),
        )

    @property
    def _logged(self) -> IntArray:
        return self._log[: int(self._counts["logged"][0])]

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes held for vehicles and their trips, and for routes."""
        return self.trips.nbytes + self._vehicles.nbytes + self._cursor.nbytes, self._book.nbytes

    def __repr__(self) -> str:
        return f"<Fleet: {len(self.trips):,} vehicles on {len(self._physics):,} links, tick {self._next_tick - 1}>"


def _link_records(links: Links, physics: LinkPhysics) -> npt.NDArray[np.void]:
    """Return one record per link that holds all its data for the kernel in one cache line."""
    records = np.zeros(len(physics), dtype=spatial_queue.LINK)
    records["head"] = records["tail"] = records["origin_head"] = records["origin_tail"] = -1
    records["blocked_since"] = records["freed_tick"] = -1
    records["storage"] = physics.storage
    records["free_ticks"] = physics.free_ticks
    records["headway"] = physics.headway
    records["first_out"] = links.first_out[links.to_node]
    return records
