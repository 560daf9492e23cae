"""Engine `fleet`: all vehicles in arrays, moved by the compiled kernel; the default engine."""

import math
from collections.abc import Generator

import numpy as np
import simpy

from simulator.arrays import IntArray, Mask
from simulator.traffic import kernel, places
from simulator.traffic.clock import after_traffic
from simulator.traffic.engine import State, Totals, VehicleStates
from simulator.traffic.physics import LONG_AGO, ONE_TICK
from simulator.traffic.places import LanePlaces
from simulator.traffic.queue_engine import QueueEngine
from simulator.traffic.reactive import Flow, ReactiveRouting

BEAT_TICKS = 256


class Fleet(QueueEngine):
    """Engine that moves `trips` along `routes` by the rules of `LinkPhysics`, in arrays of the whole fleet."""

    def _prepare(self) -> None:
        vehicles, physics = len(self.trips), self._physics
        self._lanes, self._held, self._links = physics.lanes.copy(), physics.held(), physics.links.copy()
        self._entries = physics.entries.copy()
        self._measured = np.zeros((0 if self._reactive is None else len(physics), 2), dtype=np.int64)
        self._movements = physics.movements.copy()
        self._exits = np.full(int(physics.lanes["storage"].sum(dtype=np.int64)), LONG_AGO, dtype=np.int32)
        self._vehicles = np.zeros(vehicles, dtype=kernel.VEHICLE)
        self._driving = (self._lanes, self._vehicles, self._exits, physics.spacing, physics.pace, physics.length_m)
        self._cursor = np.zeros(vehicles, dtype=np.int32)
        self._ring, self._origins = kernel.empty_calendar(len(self._lanes), len(physics))
        self._counts = np.zeros(1, dtype=kernel.COUNTS)
        self._counts["late_head"] = self._counts["late_tail"] = -1
        self._log = np.full(self._log_rows(), -1, dtype=np.int64)  # touches its pages before time is measured
        self._bits = kernel.turn_bits(int(np.diff(self._road_links.first_out).max()))
        out = self._road_links
        self._turn_codes = (np.arange(1, len(out) + 1) - out.first_out[out.from_node]).astype(np.uint16)
        self._passes, self._next = physics.rules.passes, 0
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
        self._advance_to(math.floor(self._env.now * self._passes))

    def compile(self) -> None:
        """Compile the kernel, or load it from numba's cache, before timing starts."""
        self._work(0, 0)
        self.places_on(np.zeros(len(self._physics), dtype=np.bool_))

    def advance_to(self, tick: int) -> None:
        """Simulate every tick up to and including `tick`; do nothing if it is past."""
        self._advance_to(tick * self._passes)

    def _advance_to(self, last: int) -> None:
        """Simulate every pass up to and including `last`; a tick's passes are those after the tick before it."""
        while self._next <= last:
            tick, stop = -(-self._next // self._passes), last + 1
            if self._closures:
                self._links["closed"] = self._closed_at(tick)
                edges = (edge for _, *both in self._closures for edge in both if edge > tick)
                stop = min([stop, *(self._first_pass(edge) for edge in edges)])
            if self._reactive is not None:
                every = self._reactive.every_ticks
                if tick % every == 0 and tick > 0 and self._next == self._first_pass(tick):
                    self._reroute(self._reactive, tick)
                stop = min(stop, self._first_pass((tick // every + 1) * every))
            self._work(self._next, stop)
            self._next = stop

    def _first_pass(self, tick: int) -> int:
        return (tick - 1) * self._passes + 1

    def _reroute(self, reactive: ReactiveRouting, tick: int) -> None:
        """Re-route vehicles; the turn words of those with a new route are refilled."""
        found = self._survey()
        position = places.positions(self._vehicles, self._cursor, np.arange(len(found.state)), self._bits)
        flow = Flow(
            entered=self._measured[:, 0].copy(),
            lost=self._measured[:, 1].copy(),
            longest_loss=self._longest_losses(found, position, tick),
            state=found.state,
            position=position,
            closed=self._closed_at(tick),
        )
        turned = reactive.reroute(tick, self._book, flow)
        self._cursor[turned] = position[turned] + 1
        book = self._book
        kernel.refill(
            turned, self._vehicles, self._cursor, book.start, book.end, book.links, self._turn_codes, self._bits
        )
        if (rows := self._log_rows()) > len(self._log):
            self._log = np.concatenate([self._log, np.full(rows - len(self._log), -1, dtype=np.int64)])

    def _log_rows(self) -> int:
        """Return how many entries and arrivals the vehicles that are logged can have on their present routes."""
        if not self.record_entries:
            return 0
        logged = slice(None, None, self.record_entries)
        return int((self._book.end[logged] - self._book.start[logged] + 1).sum())

    def _work(self, start: int, stop: int) -> None:
        physics, book, trips = self._physics, self._book, self.trips
        roads = self._lanes, self._held, self._links, self._entries, self._movements
        rights = physics.windows, physics.foes, physics.turn_lanes, physics.turn_reach
        paces = physics.vehicle_class, physics.pace, physics.length_m
        vehicles = self._exits, self._vehicles, self._cursor
        routes = book.start, book.end, book.links, self._turn_codes
        departures = trips.departure_tick, self.departure_tick, self._following, self._held_back, trips.stop_ticks
        kept = self._ring, self._origins, self._counts, self._measured, self._log, max(1, self.record_entries)
        moved = *roads, *rights, *paces, *vehicles, *routes, *departures, *kept
        kernel.advance(*moved, self._bits, physics.rules, start, stop)

    @property
    def _now(self) -> float:
        return (self._next - 1) / self._passes if self._env is None else self._env.now

    def _survey(self) -> LanePlaces:
        found = LanePlaces.arrived(self._book.last(self._planned_so_far))
        places.survey(self._driving, self._time, found[:], np.empty(0, dtype=np.bool_))
        places.survey_waiting(self._entries, self._vehicles, found.state, found.link)
        found.fraction[found.state == State.WAITING] = 0.0
        return found

    def places_on(self, links: Mask) -> VehicleStates:
        """Return the places of the vehicles on the road on some links, (links,) bool; call `advance` first."""
        number = self._lanes["count"][links[self._lanes["link"]]].sum()
        found = LanePlaces.arrived(np.empty(number, dtype=np.int32))
        places.survey(self._driving, self._time, found[:], links)
        return self._states(found)

    def _locate(self, trips: IntArray) -> LanePlaces:
        book, position = self._book, places.positions(self._vehicles, self._cursor, trips, self._bits)
        found = LanePlaces.arrived(book.at(trips, position))
        places.survey_some(trips, self._links, self._driving, self._time, found[:])
        # A trip of one link has read its turns once it has arrived; one that waits has not, unless it is the next.
        unread = (self._vehicles["turns"][trips] == 0) | (self._entries["head"][found.link] == trips)
        begins = (position == 0) & (unread | (book.end[trips] - book.start[trips] > 1))
        found.state[begins & (found.lane < 0)] = State.WAITING
        found.fraction[found.state == State.WAITING] = 0.0
        return found

    def totals(self) -> Totals:
        """Return the number of trips in each state, and the counters so far."""
        counts = self._counts[0]
        return Totals(
            departed=int(counts["departed"] - counts["held"]),
            waiting=int(counts["waiting"]),
            on_road=int(counts["on_road"]),
            arrived=int(counts["arrived"]),
            stuck_released=int(counts["stuck"]),
            rotated=int(counts["rotated"]),
            link_crossings=int(counts["crossings"]),
            trip_time_s=int(counts["trip_time"]) / ONE_TICK * self._clock.step_s,
            due=self._due(),
        )

    @property
    def _planned_so_far(self) -> int:
        return int(self._counts["departed"][0])

    @property
    def _logged(self) -> IntArray:
        return self._log[: int(self._counts["logged"][0])]

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes held for vehicles and their trips, and for routes."""
        of_trips = (self.trips, self._vehicles, self._cursor, self.departure_tick, self._held_back)
        return sum(one.nbytes for one in of_trips), self._book.nbytes

    def __repr__(self) -> str:
        return f"<Fleet: {self.vehicles:,} vehicles on {len(self._physics):,} links, tick {self._now:g}>"
