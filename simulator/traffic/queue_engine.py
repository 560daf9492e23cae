"""Queue engine: what `Fleet` and `Agents`, the two engines of the spatial queue, have in common."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from simulator.arrays import FloatArray, Int32Array, StateArray
from simulator.roads.network import Links
from simulator.traffic.clock import Clock
from simulator.traffic.engine import State, Totals, VehicleStates
from simulator.traffic.physics import LinkPhysics
from simulator.traffic.reactive import ReactiveRouting
from simulator.traffic.routes import RouteBook, Routes
from simulator.traffic.trips import Trips


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
        Keep every (vehicle, link, tick) entry, for tests and for drawing trajectories: 12 bytes per link driven.

    Attributes
    ----------
    trips
        The trips being driven.
    vehicles
        Number of vehicles in the whole run: one per trip.

    Raises
    ------
    ValueError
        If trips and routes differ in length or a route cannot be driven.
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
        record_entries: bool = False,
    ) -> None:
        if len(trips) != len(routes):
            raise ValueError(f"trips and routes must be as many, received {len(trips)} and {len(routes)}")
        routes.check_connected(links)
        self.trips, self.vehicles, self._clock, self._physics = trips, len(trips), clock, physics
        self._book, self._reactive, self._notes = RouteBook(routes), reactive, tuple(notes)
        self._road_links = links
        trip_ticks = np.add.reduceat(physics.free_ticks[routes.links], routes.offsets[:-1], dtype=np.int64)
        self._due_tick = np.sort(trips.departure_tick + 2 * trip_ticks)
        self._prepare(record_entries=record_entries)

    @abstractmethod
    def _prepare(self, *, record_entries: bool) -> None:
        """Create the links and vehicles of the engine, with empty roads."""

    @property
    def routes(self) -> Routes:
        """Routes of the vehicles: as driven so far, and as planned from there on."""
        return self._book.routes

    def notes(self) -> list[str]:
        """Return notes on what the demand left out, on the effect of re-routing, if any, and on gridlock."""
        rerouted = [] if self._reactive is None else self._reactive.notes()
        return [*self.totals().gridlock(planned=self.vehicles), *self._notes, *rerouted]

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
