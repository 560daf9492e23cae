"""Reactive routing: new routes by current travel times, identical in every engine."""

from dataclasses import dataclass

import numpy as np

from simulator.arrays import FloatArray, Int32Array, IntArray, Mask, StateArray
from simulator.files.messages import Note, counted
from simulator.files.resources import Stopwatch
from simulator.roads.network import Links
from simulator.traffic.clock import Clock
from simulator.traffic.engine import State
from simulator.traffic.paths import NoPathError, ShortestPaths
from simulator.traffic.physics import ONE_TICK
from simulator.traffic.routes import RouteBook
from simulator.traffic.trips import Trips

CLOSED_S = 1e9
"""Travel time of a closed link in the search, seconds: more than any detour, yet finite, so a path always exists."""


@dataclass(frozen=True, eq=False)
class Flow:
    """Measurements of an engine's traffic at a moment of re-routing.

    Attributes
    ----------
    entered
        (links,) int64: vehicles that have entered each link from another one, or ended their trips on it, so far.
    lost
        (links,) int64: total time those vehicles lost on the link before, in 1/1024 tick.
    longest_loss
        (links,) int64: the longest time lost so far by a vehicle that enters each link next, in 1/1024 tick.
    state
        (departed,) uint8, a `State`.
    position
        (departed,) int32: position in its row of the link a vehicle is on or waits to enter; undefined once arrived.
    closed
        (links,) bool: links that no vehicle may enter now; by default, none.
    """

    entered: IntArray
    lost: IntArray
    longest_loss: IntArray
    state: StateArray
    position: Int32Array
    closed: Mask | None = None


class ReactiveRouting:
    """Reactive routing: vehicles take the route that is shortest by the latest measured travel times.

    Every `every_s`, before the vehicles of that tick move, the delay before each link is measured: the mean time over
    free flow, on the link before, of the vehicles that have entered it since the last measurement, or the longest such
    time so far of a vehicle that enters it next, whichever is longer. A vehicle loses time where it waits for the next
    link, so this is where drivers see a queue. A link that no vehicle enters has no delay. A link's travel time is its
    free-flow time plus this delay, so that on empty roads routes are the same as without re-routing. Vehicles
    that depart before the next measurement take the shortest route by these times. Of the vehicles on the road or
    waiting to enter, each takes a new route with probability `share`, from the end of the link it is on or waits for,
    by the turns that are allowed there; it keeps its route if none leads to its destination. While links are closed,
    every vehicle whose route has a closed link after the link it is on or waits for takes a new route too. A closed
    link costs `CLOSED_S`, so routes contain it only where there is no other path; vehicles on such a route wait until
    it is open. A vehicle that waits to enter a closed link from its origin stays there.

    SUMO's `device.rerouting` also has travel times averaged over the last interval, and a share of drivers that use
    them; MATSim averages link times over such intervals (its `TravelTimeCalculator`). There is no smoothing over
    several intervals: on Sioux Falls, smoothing made queues longer and moved flows away from equilibrium.

    Parameters
    ----------
    links, trips, clock
        The same objects as in the engine.
    every_s
        Seconds between two measurements, at least one tick.
    share
        Probability with which a departed vehicle re-routes at a measurement, 0 to 1.
    through
        (nodes,) bool: whether routes may pass through a node; by default, through every node.
    banned
        (turns, 2) int32: pairs of links that no new route has one after the other; by default, none.
    at_departure
        Whether vehicles about to depart choose a route too. Where a file gives their routes, they keep those until they
        re-route under way.
    rng
        The random stream for routing.
    stopwatch
        Records the computing time of re-routing as phase "rerouting"; by default, it is not recorded.

    Attributes
    ----------
    every_ticks
        Ticks between two moments of re-routing; the first is this many ticks after the start.

    Raises
    ------
    ValueError
        If `every_s` is less than a tick or `share` is not a probability.
    """

    def __init__(
        self,
        links: Links,
        trips: Trips,
        *,
        clock: Clock,
        every_s: float,
        share: float,
        through: Mask | None = None,
        banned: Int32Array | None = None,
        at_departure: bool = True,
        rng: np.random.Generator,
        stopwatch: Stopwatch | None = None,
    ) -> None:
        every_ticks = clock.whole_ticks(every_s)
        if every_ticks < 1:
            raise ValueError(f"every_s must be at least a tick of {clock.step_s:g} s, received {every_s!r}")
        if not 0 <= share <= 1:
            raise ValueError(f"share must be between 0 and 1, received {share!r}")
        self._links, self._trips, self._clock = links, trips, clock
        self.every_ticks, self._share, self._rng = every_ticks, share, rng
        self._through, self._banned = through, banned
        self._at_departure = at_departure
        self._entered = np.zeros(len(links), dtype=np.int64)
        self._lost = np.zeros(len(links), dtype=np.int64)
        self._delay_s = np.zeros(len(links))
        self._asked = self._changed = 0
        self._stopwatch = stopwatch or Stopwatch()

    @property
    def time_s(self) -> FloatArray:
        """(links,) float64: seconds to enter and cross each link, by the latest measurement."""
        return self._links.free_flow_s + self._delay_s

    def reroute(self, tick: int, book: RouteBook, flow: Flow) -> IntArray:
        """Measure travel times and write new routes into `book`, before the vehicles of `tick` move.

        Returns
        -------
        numpy.ndarray
            The departed vehicles whose route changed, ascending.
        """
        with self._stopwatch.phase("rerouting"):
            self._measure(flow)
            return self._choose(tick, book, flow)

    def _choose(self, tick: int, book: RouteBook, flow: Flow) -> IntArray:
        """Assign the currently shortest routes to the vehicles that re-route; return the departed ones that changed."""
        departed, links, trips = len(flow.state), self._links, self._trips
        on_way = np.flatnonzero(flow.state != State.ARRIVED)
        looks = self._rng.random(len(on_way)) < self._share
        time_s = self.time_s
        if flow.closed is not None and flow.closed.any():
            looks |= book.has_ahead(on_way, flow.position[on_way], flow.closed)
            time_s = np.where(flow.closed, CLOSED_S, time_s)
        looking = on_way[looks]
        on = book.at(looking, flow.position[looking])
        until = np.searchsorted(trips.departure_tick, tick + self.every_ticks) if self._at_departure else departed
        leaving = np.arange(departed, until, dtype=np.int64)
        vehicles: IntArray = np.concatenate([looking, leaving])
        node = np.concatenate([links.to_node[on], trips.origin[leaving]])
        keep = np.concatenate([flow.position[looking].astype(np.int64) + 1, np.zeros(len(leaving), dtype=np.int64)])
        going = node != trips.destination[vehicles]
        if not going.any():
            return np.empty(0, dtype=np.int64)
        paths = ShortestPaths(links, through=self._through, banned=self._banned, time_s=time_s)
        origin = np.concatenate([paths.after(on), trips.origin[leaving]])
        vehicles, origin, keep = vehicles[going], origin[going], keep[going]
        try:
            rest = paths.routes(origin, trips.destination[vehicles])
        except NoPathError:  # a banned turn in the route of a file may be the only way on: these vehicles make it
            joined = paths.reached(origin, trips.destination[vehicles])
            vehicles, origin, keep = vehicles[joined], origin[joined], keep[joined]
            rest = paths.routes(origin, trips.destination[vehicles])
        changed = vehicles[book.replace(vehicles, keep, rest)]
        under_way: IntArray = changed[changed < departed]
        self._asked += int(np.count_nonzero(vehicles < departed))
        self._changed += len(under_way)
        return under_way

    def _measure(self, flow: Flow) -> None:
        entered = flow.entered - self._entered
        mean = np.divide(flow.lost - self._lost, entered, out=np.zeros(len(entered)), where=entered > 0)
        self._delay_s = np.maximum(mean, flow.longest_loss) / ONE_TICK * self._clock.step_s
        self._entered, self._lost = flow.entered, flow.lost

    def notes(self) -> list[Note]:
        """Return one note on how often vehicles re-routed, and how often their route changed."""
        looked = f"Vehicles under way searched for a faster route {counted(self._asked, 'time')}"
        return [Note("rerouted", f"{looked}, and changed their route {counted(self._changed, 'time')}.")]

    def __repr__(self) -> str:
        return f"<ReactiveRouting: every {self.every_ticks} ticks, share {self._share:g}>"
