"""Engine `agents`: one SimPy process per vehicle; the readable reference implementation of the queue model."""

from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, field

import numpy as np
import simpy

from simulator.arrays import Int32Array, IntArray, StateArray
from simulator.traffic.clock import PriorityEvent
from simulator.traffic.engine import State, Totals
from simulator.traffic.physics import FRACTION_BITS
from simulator.traffic.queue_engine import LOG_BITS, QueueEngine
from simulator.traffic.reactive import Flow, ReactiveRouting

_BEFORE_ALL, _FIRST_LINK = 0, 16
"""Priorities within a tick: re-routing, SimPy's own events (0 and 1) with the tick's departures, link 0, link 1 …"""


@dataclass(eq=False, slots=True)
class _Vehicle:
    number: int
    turn: PriorityEvent
    """Event that happens when the vehicle reaches the head of its queue and may try to leave the link."""
    route: list[int]
    departure: int
    state: State = State.WAITING
    position: int = 0  # of the link it is on, or waits to enter, in its route
    entry: int = 0

    @property
    def link(self) -> int:
        """Number of the link it is on, waits to enter, or ended its trip on."""
        return self.route[self.position]


@dataclass(eq=False, slots=True)
class _Link:
    number: int
    free_ticks: int
    storage: int
    headway: int
    discharge: int = 0
    blocked_since: int = -1
    freed_tick: int = -1
    freed_count: int = 0
    left: int = 0
    spent_ticks: int = 0
    queue: deque[_Vehicle] = field(default_factory=deque)
    waiting: deque[_Vehicle] = field(default_factory=deque)
    closures: list[tuple[int, int]] = field(default_factory=list)

    def is_closed(self, tick: int) -> bool:
        """Return whether no vehicle may enter in `tick`, however many places are free."""
        return any(start <= tick < end for start, end in self.closures)

    def has_room(self, tick: int) -> bool:
        """Return whether one more vehicle may enter in `tick`: a place freed in that tick counts from the next tick."""
        freed_now = self.freed_count if self.freed_tick == tick else 0
        return len(self.queue) + freed_now < self.storage and not self.is_closed(tick)

    def ready_tick(self, vehicle: _Vehicle) -> int:
        """Return the first tick in which `vehicle`, at the head of the queue, may leave if the next link has room."""
        return max(vehicle.entry + self.free_ticks, self.discharge >> FRACTION_BITS)

    def release_head(self, tick: int) -> None:
        """Remove the head: its place is free from the next tick; the next vehicle may follow one headway later."""
        head = self.queue.popleft()
        self.left += 1
        self.spent_ticks += tick - head.entry
        if self.freed_tick == tick:
            self.freed_count += 1
        else:
            self.freed_tick, self.freed_count = tick, 1
        self.discharge = max(self.discharge, tick << FRACTION_BITS) + self.headway
        self.blocked_since = -1


class Agents(QueueEngine):
    """Engine that moves `trips` along `routes` with one process per vehicle, by the same rules as `Fleet` in each tick.

    It is fast enough for about 10⁵ vehicles. It serves reading and teaching, and is the reference the kernel is tested
    against. The priority of the events sets the order within a tick (links ascending, then origin queues).
    """

    def _prepare(self) -> None:
        physics = self._physics
        numbers = (values.tolist() for values in (physics.free_ticks, physics.storage, physics.headway))
        self._links = [_Link(*values) for values in zip(range(len(physics)), *numbers, strict=True)]
        self._vehicles: list[_Vehicle] = []
        self._stuck = self._trip_ticks = 0
        self._log: list[int] = []
        self._env = simpy.Environment()

    def start(self, env: simpy.Environment) -> None:
        """Add the process that starts the vehicles to `env`."""
        self._env = env
        env.process(self._send_off(env))
        if self._reactive is not None:
            env.process(self._reroute(env, self._reactive))

    def advance(self) -> None:
        """Do nothing: the SimPy environment moves these vehicles."""

    def close_link(self, link: int, from_s: float, to_s: float) -> None:
        """Close a link for a time; see `QueueEngine.close_link`."""
        super().close_link(link, from_s, to_s)
        self._links[link].closures.append(self._closures[-1][1:])

    def _send_off(self, env: simpy.Environment) -> Generator[simpy.Event, None, None]:
        """Start the vehicles that depart in the same tick together, in the order of their numbers."""
        for number, tick in enumerate(self.trips.departure_tick.tolist()):
            if tick > env.now:
                yield env.timeout(tick - env.now)
            vehicle = _Vehicle(number, PriorityEvent(env), self._book.of(number).tolist(), tick)
            self._vehicles.append(vehicle)
            env.process(self._drive(env, vehicle))

    def _drive(self, env: simpy.Environment, vehicle: _Vehicle) -> Generator[simpy.Event, None, None]:
        """Simulate one trip: wait to enter, drive link by link, arrive."""
        yield from self._wait_to_enter(env, vehicle, self._links[vehicle.link])
        driving = True
        while driving:
            driving = yield from self._cross(env, vehicle, self._links[vehicle.link])
        self._trip_ticks += int(env.now) - vehicle.departure
        vehicle.state = State.ARRIVED
        self._keep(vehicle)

    def _reroute(self, env: simpy.Environment, reactive: ReactiveRouting) -> Generator[simpy.Event, None, None]:
        """Re-route vehicles at regular ticks, before the vehicles of that tick move or depart."""
        while True:
            yield PriorityEvent(env).schedule(delay=reactive.every_ticks, priority=_BEFORE_ALL)
            flow = Flow(
                left=np.array([link.left for link in self._links], dtype=np.int64),
                spent_ticks=np.array([link.spent_ticks for link in self._links], dtype=np.int64),
                head_entry=np.array([link.queue[0].entry if link.queue else -1 for link in self._links], np.int32),
                state=np.array([vehicle.state for vehicle in self._vehicles], dtype=np.uint8),
                position=np.array([vehicle.position for vehicle in self._vehicles], dtype=np.int32),
                closed=self._closed_at(int(env.now)),
            )
            for number in reactive.reroute(int(env.now), self._book, flow).tolist():
                self._vehicles[number].route = self._book.of(number).tolist()

    def _wait_to_enter(
        self, env: simpy.Environment, vehicle: _Vehicle, link: _Link
    ) -> Generator[simpy.Event, None, None]:
        priority = _FIRST_LINK + len(self._links) + link.number
        link.waiting.append(vehicle)
        if link.waiting[0] is vehicle:
            vehicle.turn.schedule(delay=0, priority=priority)
        yield vehicle.turn
        while not link.has_room(int(env.now)):
            yield PriorityEvent(env).schedule(delay=1, priority=priority)
        link.waiting.popleft()
        if link.waiting:
            link.waiting[0].turn.schedule(delay=0, priority=priority)
        vehicle.state = State.ON_ROAD
        self._enter(env, vehicle, link)

    def _ahead(self, vehicle: _Vehicle) -> _Link | None:
        """Return the link after the one `vehicle` is on, None at its trip's end."""
        after = vehicle.position + 1
        return self._links[vehicle.route[after]] if after < len(vehicle.route) else None

    def _cross(self, env: simpy.Environment, vehicle: _Vehicle, link: _Link) -> Generator[simpy.Event, None, bool]:
        """Drive one link and enter the next; return whether there was a next link."""
        priority = _FIRST_LINK + link.number
        yield vehicle.turn
        tick = int(env.now)
        # A blocked vehicle may be given another route while it waits.
        while (ahead := self._ahead(vehicle)) is not None and not ahead.has_room(tick):
            if ahead.is_closed(tick):  # nothing is forced onto it, and the wait is not counted
                link.blocked_since = -1
            else:
                if link.blocked_since < 0:
                    link.blocked_since = tick
                if tick - link.blocked_since >= self._physics.stuck_ticks:
                    self._stuck += 1
                    break
            yield PriorityEvent(env).schedule(delay=1, priority=priority)
            tick += 1
        link.release_head(tick)
        if link.queue:
            follower = link.queue[0]
            follower.turn.schedule(delay=max(0, link.ready_tick(follower) - tick), priority=priority)
        if ahead is None:
            return False
        vehicle.position += 1
        self._enter(env, vehicle, ahead)
        return True

    def _enter(self, env: simpy.Environment, vehicle: _Vehicle, link: _Link) -> None:
        tick = int(env.now)
        vehicle.entry, vehicle.turn = tick, PriorityEvent(env)
        link.queue.append(vehicle)
        if link.queue[0] is vehicle:
            delay = link.ready_tick(vehicle) - tick
            vehicle.turn.schedule(delay=delay, priority=_FIRST_LINK + link.number)
        self._keep(vehicle)

    def _keep(self, vehicle: _Vehicle) -> None:
        if self.record_entries and vehicle.number % self.record_entries == 0:
            self._log.append((vehicle.number << LOG_BITS) + int(self._env.now))

    @property
    def _now(self) -> float:
        return self._env.now

    def _entries_now(self) -> tuple[StateArray, Int32Array, Int32Array]:
        """Return the state, link and entry tick of every departed vehicle."""
        return (
            np.array([vehicle.state for vehicle in self._vehicles], dtype=np.uint8),
            np.array([vehicle.link for vehicle in self._vehicles], dtype=np.int32),
            np.array([vehicle.entry for vehicle in self._vehicles], dtype=np.int32),
        )

    def totals(self) -> Totals:
        """Return the number of vehicles in each state, and the counters so far."""
        return Totals.counted(
            self._entries_now()[0],
            stuck_released=self._stuck,
            link_crossings=sum(link.left for link in self._links),
            trip_time_s=self._trip_ticks * self._clock.step_s,
            due=self._due(),
        )

    @property
    def _logged(self) -> IntArray:
        return np.array(self._log, dtype=np.int64)

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes held for vehicles and their trips, about 1 kB of Python objects per vehicle; and for routes."""
        return self.trips.nbytes + 1024 * len(self._vehicles), self._book.nbytes

    def __repr__(self) -> str:
        return f"<Agents: {len(self.trips):,} vehicles on {len(self._links):,} links>"
