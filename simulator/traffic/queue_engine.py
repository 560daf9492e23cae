"""Queue engine: what `Fleet` and `Agents`, the two engines of the spatial queue, have in common."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from simulator.arrays import FloatArray, Int32Array, IntArray, Mask, StateArray
from simulator.files.messages import Note, notes_of
from simulator.roads.network import Links
from simulator.traffic.clock import Clock
from simulator.traffic.engine import State, Totals, VehicleStates
from simulator.traffic.physics import LinkPhysics
from simulator.traffic.reactive import ReactiveRouting
from simulator.traffic.routes import RouteBook, Routes
from simulator.traffic.trips import Trips

ARRIVED_AT = -1
"""Link, in a log, of the row that says when a vehicle arrived."""
LOG_BITS = 32
"""Bits of the tick in the word of a log's row, above which is the vehicle."""


class QueueEngine(ABC):
    """Base class of the spatial queue engines: vehicles with trips and routes on links with `LinkPhysics`.

    Parameters
    ----------
    links
        The compiled network.
    physics
        Its queue model.
    trips, routes
        One row per vehicle, in the order of departure.
    clock
        Conversion between ticks and seconds.
    reactive
        Re-routes vehicles as traffic changes; by default, all vehicles keep their first routes. A `ReactiveRouting`
        object serves one engine only.
    notes
        Notes on what the demand left out, one sentence each.
    record_entries
        Keep the link entries and arrivals of every n-th vehicle, in order of departure: 8 bytes per link driven; 0
        keeps none, and other numbers are powers of 2.

    Attributes
    ----------
    trips
        The trips being driven.
    vehicles
        Number of vehicles in the whole run: one per trip.
    record_entries
        The entries of every n-th vehicle are kept; 0 if none are.

    Raises
    ------
    ValueError
        If trips and routes differ in length, a route cannot be driven, or `record_entries` is no power of 2.
    """

    def __init__(
        self,
        links: Links,
        physics: LinkPhysics,
        trips: Trips,
        routes: Routes,
        *,
        clock: Clock,
        reactive: ReactiveRouting | None = None,
        notes: Sequence[str] = (),
        record_entries: int = 0,
    ) -> None:
        if len(trips) != len(routes):
            raise ValueError(f"trips and routes must be as many, received {len(trips)} and {len(routes)}")
        routes.check_connected(links)
        self.trips, self.vehicles, self._clock, self._physics = trips, len(trips), clock, physics
        self._book, self._reactive, self._notes = RouteBook(routes), reactive, tuple(notes)
        self._road_links = links
        self._closures: list[tuple[int, int, int]] = []  # link, first tick, tick of the reopening
        self._closed_s: list[tuple[int, float, float]] = []  # the same as given, in seconds
        trip_ticks = np.add.reduceat(physics.free_ticks[routes.links], routes.offsets[:-1], dtype=np.int64)
        self._due_tick = np.sort(trips.departure_tick + 2 * trip_ticks)
        if record_entries & (record_entries - 1):
            raise ValueError(f"record_entries must be 0 or a power of 2, received {record_entries}")
        self.record_entries = int(record_entries)
        self._prepare()

    @abstractmethod
    def _prepare(self) -> None:
        """Create the links and vehicles of the engine, with empty roads."""

    @property
    def routes(self) -> Routes:
        """Routes of the vehicles: as driven so far, and as planned from there on."""
        return self._book.routes

    def notes(self) -> list[Note]:
        """Return notes on gridlock, on what the demand left out, on the effect of re-routing and on closed links."""
        rerouted = [] if self._reactive is None else self._reactive.notes()
        closed = (f"Link {link} was closed from {start:g} s to {end:g} s." for link, start, end in self._closed_s)
        return [
            *self.totals().gridlock(planned=self.vehicles),
            *notes_of("demand", self._notes),
            *rerouted,
            *notes_of("closed_link", closed),
        ]

    def close_link(self, link: int, from_s: float, to_s: float) -> None:
        """Close a link for a time: no vehicle enters it, from another link or from its origin queue.

        Vehicles on the link drive on and leave it. A vehicle whose next link is closed stays at the head of its queue;
        it is never forced on, and its `stuck_ticks` are counted from the reopening. With reactive routing, vehicles
        whose route has a closed link ahead re-route at the next measurement; see `ReactiveRouting`. A link is closed
        while any of its closures lasts.

        Parameters
        ----------
        link
            Number of the link, from 0.
        from_s, to_s
            Seconds: the link is closed in every tick at or after `from_s` and before `to_s`. In the current tick
            vehicles may have moved, so a closure from now on begins with the next tick.

        Raises
        ------
        KeyError
            If there is no such link.
        ValueError
            If `from_s` is past, `to_s` is not a finite time after it, or no tick is left between them.
        """
        if isinstance(link, bool) or not isinstance(link, int | np.integer) or not 0 <= link < len(self._physics):
            raise KeyError(f"there is no link {link!r}; links are 0 to {len(self._physics) - 1}")
        now = max(self._now, 0)
        now_s = self._clock.seconds(now)
        if not from_s >= now_s:
            raise ValueError(f"from_s must be at least {now_s:g}, the current time, got {from_s:g}")
        if not from_s < to_s < math.inf:
            raise ValueError(f"to_s must be a finite time after from_s = {from_s:g}, got {to_s:g}")
        first, end = max(self._clock.ticks_to_cover(from_s), int(now) + 1), self._clock.ticks_to_cover(to_s)
        if first >= end:
            next_s = self._clock.seconds(first)
            raise ValueError(f"to_s must be after {next_s:g}, the first tick that can be closed, got {to_s:g}")
        self._closures.append((int(link), first, end))
        self._closed_s.append((int(link), from_s, to_s))

    def _closed_at(self, tick: int) -> Mask:
        """Return whether each link is closed in a tick, (links,) bool."""
        closed = np.zeros(len(self._physics), dtype=np.bool_)
        closed[[link for link, first, end in self._closures if first <= tick < end]] = True
        return closed

    def _due(self) -> int:
        """Count the vehicles that would have arrived by now at half of free-flow speed on their first routes."""
        return int(np.searchsorted(self._due_tick, self._now, side="right"))

    def close(self) -> None:  # noqa: B027 - not every engine has resources to release
        """Do nothing: the engine holds no resources outside this process."""

    def places(self) -> VehicleStates:
        """Return the place of every departed vehicle at `env.now`; call `advance` first."""
        state, link, entry_tick = self._entries_now()
        elapsed_s = (self._now - entry_tick) * self._clock.step_s
        fraction = np.asarray(elapsed_s / self._physics.free_flow_s[link], dtype=np.float64)
        np.minimum(fraction, 1.0, out=fraction)
        fraction[state == State.WAITING] = 0.0
        fraction[state == State.ARRIVED] = 1.0
        return VehicleStates(state, link, fraction)

    def speeds(self) -> FloatArray:
        """Return every departed vehicle's speed at `env.now`, (departed,) m/s, 0 off the road; call `advance` first.

        The spatial queue only knows when a vehicle entered its link, so speed is derived from that. It is the free-flow
        speed until the free-flow ticks are over. From then on the vehicle stands in the queue at the link's end, and
        its speed is its average since it entered, length / (t − entry), which falls the longer it stands.
        """
        state, link, entry_tick = self._entries_now()
        speed: FloatArray = self._road_links.speed_mps[link]
        elapsed = self._now - entry_tick
        queued = elapsed >= self._physics.free_ticks[link]
        # By rounding, a link of exactly n ticks may take slightly more than n: cap its average at the free-flow speed.
        average = self._road_links.length_m[link[queued]] / (elapsed[queued] * self._clock.step_s)
        speed[queued] = np.minimum(average, speed[queued])
        speed[state != State.ON_ROAD] = 0.0
        return speed

    def first_links(self, vehicles: Int32Array) -> Int32Array:
        """Return the first link of the routes of some vehicles, (vehicles,) int32."""
        return self._book.links[self._book.start[vehicles]].astype(np.int32)

    @property
    @abstractmethod
    def _logged(self) -> IntArray:
        """(rows,) int64: vehicle · 2³² + tick of every entry and arrival that is kept, in chronological order."""

    def log_by_vehicle(self) -> Int32Array:
        """Return vehicle, link and tick of the link entries kept so far, and with link −1 of the arrivals.

        Returns
        -------
        ndarray
            (rows, 3) int32, by vehicle, then by time.
        """
        rows = np.sort(self._logged)  # a vehicle enters at most one link in a tick
        vehicle, tick = rows >> LOG_BITS, rows & ((1 << LOG_BITS) - 1)
        # The links are those of the route, which is kept as it was driven.
        place = np.arange(len(rows)) - np.searchsorted(vehicle, vehicle) + self._book.start[vehicle]
        arrived = place == self._book.end[vehicle]
        link = np.where(arrived, ARRIVED_AT, self._book.links[place - arrived].astype(np.int64))
        return np.column_stack([vehicle, link, tick]).astype(np.int32)

    @property
    def log(self) -> Int32Array:
        """(rows, 3) int32: as `log_by_vehicle`, in chronological order."""
        rows = np.empty((len(self._logged), 3), dtype=np.int32)
        rows[np.argsort(self._logged)] = self.log_by_vehicle()
        return rows

    @property
    def entries(self) -> Int32Array:
        """(entries, 3) int32: vehicle, link and tick of the link entries kept so far, in chronological order."""
        log: Int32Array = self.log
        entered: Int32Array = log[log[:, 1] != ARRIVED_AT]
        return entered

    @abstractmethod
    def totals(self) -> Totals:
        """Return the number of vehicles in each state, and the counters so far."""

    @property
    @abstractmethod
    def _now(self) -> float:
        """Return the current moment in ticks."""

    @abstractmethod
    def _entries_now(self) -> tuple[StateArray, Int32Array, Int32Array]:
        """Return the state, link and entry tick of every departed vehicle."""
