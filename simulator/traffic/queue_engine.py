"""Queue engine: what `Fleet` and `Agents`, the two engines with one physics, have in common."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from simulator.arrays import FloatArray, Int32Array, IntArray, LinkIds, Mask, StateArray
from simulator.files.messages import Note, counted, notes_of
from simulator.roads.network import Links
from simulator.traffic.clock import Clock
from simulator.traffic.engine import State, Totals, VehicleStates, check_departed
from simulator.traffic.kernel import LOG_LANE_BITS, LOG_TIME_BITS
from simulator.traffic.lanes import LinkPhysics
from simulator.traffic.physics import NEVER, ONE_TICK
from simulator.traffic.places import LanePlaces, Trajectories
from simulator.traffic.reactive import ReactiveRouting
from simulator.traffic.routes import RouteBook, Routes
from simulator.traffic.trips import Trips, VehicleClasses

LANE_WIDTH_M = 3.2
ARRIVED_AT = -1
"""Link, in a log, of the row that says when a vehicle arrived."""


class QueueEngine(ABC):
    """Base class of the engines with queues on lanes: vehicles with trips and routes on links with `LinkPhysics`.

    Parameters
    ----------
    links
        The compiled network.
    physics
        Its queue model.
    trips, routes
        One row per trip, in the order of departure. Inside the engines, and in their logs, each trip counts as a
        vehicle of its own; `places` and `speeds` have one row per vehicle.
    clock
        Conversion between ticks and seconds.
    reactive
        Re-routes vehicles as traffic changes; by default, all vehicles keep their first routes. A `ReactiveRouting`
        object serves one engine only.
    notes
        Notes on what the demand left out, one sentence each.
    record_entries
        Keep the link entries and arrivals of every n-th trip, in order of departure: 8 bytes per link driven; 0
        keeps none, and other numbers are powers of 2.

    Attributes
    ----------
    trips
        The trips being driven.
    vehicles
        Number of vehicles in the whole run.
    departure_tick
        (trips,) int32: when each trip departs; later than planned where its vehicle arrives too late for it.
    record_entries
        The entries of every n-th trip are kept; 0 if none are.
    classes
        The classes of the vehicles; None if their demand states none.

    Raises
    ------
    ValueError
        If trips and routes differ in length, a route cannot be driven, or `record_entries` is no power of 2.
    """

    classes: VehicleClasses | None = None

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
        self.trips, self.vehicles, self._clock, self._physics = trips, trips.vehicles, clock, physics
        self.departure_tick = trips.departure_tick.copy()
        self._following, self._held_back = trips.following()
        self._first_trips = np.flatnonzero(~self._held_back) if len(self._following) else None
        self._book, self._reactive, self._notes = RouteBook(routes), reactive, tuple(notes)
        self._road_links = links
        self._closures: list[tuple[int, int, int]] = []  # link, first tick, tick of the reopening
        self._closed_s: list[tuple[int, float, float]] = []  # the same as given, in seconds
        free = np.add.reduceat(physics.free[routes.links], routes.offsets[:-1], dtype=np.int64)
        due = trips.departure_tick + 2 * free / ONE_TICK + _signal_waits(physics, routes)
        self._due_tick = due if len(self._following) else np.sort(due)
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
            *self.totals().gridlock(planned=len(self.trips)),
            *self._physics.notes,
            *notes_of("tours", self._tours()),
            *notes_of("rotated", self._rotations()),
            *notes_of("demand", self._notes),
            *rerouted,
            *notes_of("closed_link", closed),
        ]

    def _tours(self) -> list[str]:
        if not len(self._following):
            return []
        late = int(np.count_nonzero(self.departure_tick > self.trips.departure_tick))
        drive = f"{counted(self.vehicles, 'vehicle drives', 'vehicles drive')} {counted(len(self.trips), 'trip')}"
        began = (
            f" {counted(late, 'trip')} began later than planned, as the vehicle was still on its way." if late else ""
        )
        return [f"{drive}; departures and arrivals are counted by trip.{began}"]

    def _rotations(self) -> list[str]:
        number = self.totals().rotated
        return [f"Vehicles moved on together, in circles of full lanes, {counted(number, 'time')}."] if number else []

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

    def _due(self) -> int | None:
        """Count the trips that would have ended by now at half of free-flow speed, with waits at signals."""
        if len(self._following):
            late = self.departure_tick - self.trips.departure_tick
            return int(np.count_nonzero((self._due_tick + late)[self.begun()] <= self._now))
        return int(np.searchsorted(self._due_tick, self._now, side="right"))

    def close(self) -> None:  # noqa: B027 - not every engine has resources to release
        """Do nothing: the engine holds no resources outside this process."""

    @property
    def _time(self) -> int:
        """The current moment, in 1/1024 tick."""
        return math.floor(self._now * ONE_TICK)

    def begun(self) -> IntArray:
        """Return the numbers of the trips that have departed, (trips,) int64, ascending."""
        return np.flatnonzero(~self._held_back[: self._planned_so_far])

    def trip_states(self) -> StateArray:
        """Return the state of each trip in `begun`, (trips,) uint8."""
        return self._survey().state[self.begun()]

    def _survey_vehicles(self) -> LanePlaces:
        """Return the state and place of every departed vehicle: of the trip that it began last."""
        found = self._survey()
        if self._first_trips is None:
            return found
        last = self._last_trips(np.arange(self._departed))
        return LanePlaces._make(column[last] for column in found)

    @property
    def _departed(self) -> int:
        """Number of vehicles that have departed."""
        planned = self._planned_so_far
        return planned if self._first_trips is None else int(np.searchsorted(self._first_trips, planned))

    def _last_trips(self, vehicles: IntArray) -> IntArray:
        """Return the trip that each of some departed vehicles began last."""
        trips = vehicles if self._first_trips is None else self._first_trips[vehicles]
        while len(self._following):
            onto = self._following[trips]
            goes_on = (onto >= 0) & (onto < self._planned_so_far) & ~self._held_back[onto]
            if not goes_on.any():
                break
            trips = np.where(goes_on, onto, trips)
        return trips

    def places(self) -> VehicleStates:
        """Return the place of every departed vehicle at `env.now`; call `advance` first."""
        return self._states(self._survey_vehicles())

    def place_of(self, numbers: IntArray) -> VehicleStates:
        """Return the places of some departed vehicles at `env.now`; see `Engine.place_of`."""
        self.advance()
        check_departed(numbers, self._departed)
        return self._states(self._locate(self._last_trips(numbers)))

    def origin_of(self, numbers: IntArray) -> VehicleStates:
        """Return the beginnings of the first links of some vehicles; see `Engine.origin_of`."""
        link = self.first_links(numbers if self._first_trips is None else self._first_trips[numbers])
        return VehicleStates(np.full(len(link), State.WAITING, dtype=np.uint8), link, np.zeros(len(link)))

    def class_of(self, numbers: IntArray) -> list[str]:
        """Return the classes of some vehicles; see `Engine.class_of`."""
        classes = self._physics.classes  # only of vehicles with one trip
        return [""] * len(numbers) if classes is None else [classes.names[one] for one in classes.of[numbers]]

    def _states(self, found: LanePlaces) -> VehicleStates:
        lane = found.lane - self._physics.links["first_lane"][found.link]
        middle = (self._physics.links["lanes"][found.link] - 1) / 2
        to_left = -1.0 if self._physics.left_hand else 1.0
        offset_m = np.where(found.state == State.ON_ROAD, to_left * (lane - middle) * LANE_WIDTH_M, 0.0)
        return VehicleStates(found.state, found.link, found.fraction, offset_m=offset_m)

    def speeds(self) -> FloatArray:
        """Return every departed vehicle's speed at `env.now`, (departed,) m/s, 0 off the road; call `advance` first.

        It is the distance that the vehicle drove on its lane in the last headway, or since it entered, over that time.
        """
        found = self._survey_vehicles()
        driving = found.state == State.ON_ROAD
        link = found.link[driving]
        since = self._time - found.entry[driving] + found.longer[driving]
        elapsed = np.minimum(self._physics.lanes["headway"][found.lane[driving]], since)
        driven_m = (found.fraction - found.past)[driving] * self._road_links.length_m[link]
        alone = self._physics.free[link]
        free = self._physics.speed_mps[link] * alone / (alone + found.longer[driving])
        seconds = np.maximum(elapsed, 1) / ONE_TICK * self._clock.step_s
        speed = np.zeros(len(found.state))
        speed[driving] = np.where(elapsed > 0, np.clip(driven_m / seconds, 0.0, free), free)
        return speed

    @property
    def length_m(self) -> FloatArray:
        """(links,) float64: the lengths of the links."""
        return self._road_links.length_m

    def free_s(self, vehicle: Int32Array, link: LinkIds) -> FloatArray:
        """Return the time that vehicles take for links when nothing holds them, (n,) seconds, as ids (n,) each."""
        physics = self._physics
        free = physics.free[link].astype(np.float64)
        if len(physics.pace):
            free = np.maximum(free, physics.pace[vehicle] * self.length_m[link])
        return free / ONE_TICK * self._clock.step_s

    def first_links(self, trips: IntArray) -> Int32Array:
        """Return the first link of the routes of some trips, (trips,) int32."""
        return self._book.links[self._book.start[trips]].astype(np.int32)

    @property
    @abstractmethod
    def _logged(self) -> IntArray:
        """(rows,) int64: a `log_row` of every entry and arrival that is kept."""

    def _longest_losses(self, found: LanePlaces, position: Int32Array, tick: int) -> IntArray:
        """Return the longest time lost so far by a vehicle that enters each link next, (links,) int64."""
        driving, book = np.flatnonzero(found.state == State.ON_ROAD), self._book
        onto = book.links[np.minimum(book.start[driving] + position[driving] + 1, book.end[driving] - 1)]
        longest = np.zeros(len(self._road_links), dtype=np.int64)
        spent = tick * ONE_TICK - found.entry[driving].astype(np.int64)
        np.maximum.at(longest, onto, spent - self._physics.free[found.link[driving]])
        return longest

    def queues(self) -> tuple[FloatArray, FloatArray]:
        """Return how vehicles queue on each link.

        Returns
        -------
        spacing_m
            (links,) float64: the distance between two vehicles that stand in one queue; less than the distance of
            vehicles in a lane if the queue is of several lanes.
        wave_s
            (links,) float64: the time after which a vehicle in a queue repeats the motion of the one ahead.
        """
        physics, first = self._physics, self._physics.links["first_lane"]
        wave = physics.lanes["hole"][first] / physics.lanes["storage"][first]
        return physics.spacing[first] * self._road_links.length_m, wave / ONE_TICK * self._clock.step_s

    def trajectories(self, log: IntArray) -> tuple[IntArray, Trajectories]:
        """Return the link entries of a log by lane, in the order of the vehicles on it, and how they drove there.

        What a vehicle loses as it starts behind a signal or another vehicle is not in the log. It is taken to be what
        it was late at the end of the link that it entered then, or nothing if it was later than a start can cost; but
        whoever comes from a stop has lost a start.

        Parameters
        ----------
        log
            `log_by_vehicle()` of an engine that logs every trip.

        Returns
        -------
        tuple
            (entries,) int64: rows of the log; and their `Trajectories`.
        """
        physics, unit_s = self._physics, self._clock.step_s / ONE_TICK
        row, lane, begin, free, exit_ = self.drives(log)
        order = np.argsort(lane << 32 | exit_)
        begin_s, free_s, exit_s = unit_s * np.array([begin, free, exit_])[:, order]
        exit_s[exit_[order] >= NEVER] = np.inf
        wave_s = unit_s * physics.lanes["hole"] / physics.lanes["storage"]
        lane_of = lane[order].astype(np.int32)
        return row[order], Trajectories(lane_of, begin_s, free_s, exit_s, physics.spacing, wave_s)

    def drives(self, log: IntArray) -> tuple[IntArray, IntArray, FloatArray, FloatArray, IntArray]:
        """Return how the vehicles of a log drive on the lanes that they enter, in the order of the log.

        Returns
        -------
        tuple
            For each entry: the row of the log, the number of the lane, when free driving begins, how long it takes, and
            when the vehicle leaves the lane, `NEVER` after its entry if it is still there. Times are in 1/1024 tick.
        """
        physics = self._physics
        row = np.flatnonzero(log[:, 1] != ARRIVED_AT)
        trip, link, lane, entry = log[row].T
        lane = physics.links["first_lane"][link] + lane
        first = physics.lanes["first_movement"][lane]
        free = self.free_s(trip, link) / (self._clock.step_s / ONE_TICK)
        exit_ = NEVER + entry  # of a vehicle that is still there
        follows = np.flatnonzero(np.append(log[1:, 0] == log[:-1, 0], False)[row])
        onto, exit_[follows] = log[row[follows] + 1, 1], log[row[follows] + 1, 3]
        crosses = (onto != ARRIVED_AT) & (first[follows] >= 0)
        onto, crosses = onto[crosses], follows[crosses]
        movement = physics.movements[first[crosses] + onto - physics.lanes["first_out"][lane[crosses]]]
        crossing, stops = movement["crossing"], movement["control"] != 0
        if self.totals().rotated:  # without time on the junction, in a pass, as another vehicle enters the lane
            leaves = lane[crosses] << 32 | exit_[crosses]
            circles = np.isin(leaves, lane << 32 | entry) & (leaves % (1 << physics.rules.pass_bits) == 0)
            crossing, stops = np.where(circles, 0, crossing), stops & ~circles
        exit_[crosses] -= crossing
        late, start_loss = exit_ - entry - free, physics.rules.start_loss
        starts = np.append(True, trip[1:] != trip[:-1])
        turned = ~starts & (np.append(-1, first[:-1]) >= 0) & (late <= start_loss)
        turned[crosses[stops] + 1] = True
        loss = np.where(starts, physics.rules.entry_loss, np.where(turned, np.clip(late, 0.0, start_loss), 0.0))
        return row, lane, entry + loss, free, exit_

    def log_by_vehicle(self) -> IntArray:
        """Return trip, link, lane and time of the link entries kept so far, and with link −1 of the arrivals.

        Returns
        -------
        ndarray
            (rows, 4) int64, by trip, then by time. Lanes are counted from the edge of the road, from 0; times are in
            1/1024 tick.
        """
        rows = np.sort(self._logged)
        lane, time = rows & ((1 << LOG_LANE_BITS) - 1), (rows >> LOG_LANE_BITS) & ((1 << LOG_TIME_BITS) - 1)
        vehicle = (rows >> (LOG_LANE_BITS + LOG_TIME_BITS)) * max(1, self.record_entries)
        # The links come from the route, which is kept as it was driven.
        first = np.flatnonzero(np.append(True, vehicle[1:] != vehicle[:-1])[: len(rows)])
        number = np.diff(np.append(first, len(rows)))
        place = np.arange(len(rows)) + np.repeat(self._book.start[vehicle[first]] - first, number)
        arrived = place == self._book.end[vehicle]
        link = np.where(arrived, ARRIVED_AT, self._book.links[place - arrived].astype(np.int64))
        return np.stack([vehicle, link, lane, time]).T  # each column in one piece

    @property
    def log(self) -> IntArray:
        """(rows, 4) int64: as `log_by_vehicle`, in chronological order."""
        rows = self.log_by_vehicle()
        ordered: IntArray = rows[np.argsort(rows[:, 3], kind="stable")]
        return ordered

    @property
    def entries(self) -> IntArray:
        """(entries, 4) int64: trip, link, lane and time of the link entries kept so far, in chronological order."""
        log = self.log
        entered: IntArray = log[log[:, 1] != ARRIVED_AT]
        return entered

    @abstractmethod
    def advance(self) -> None:
        """Move every vehicle to `env.now`, tick ⌊now⌋ included."""

    @abstractmethod
    def totals(self) -> Totals:
        """Return the number of trips in each state, and the counters so far."""

    @property
    @abstractmethod
    def _now(self) -> float:
        """Return the current moment in ticks."""

    @property
    @abstractmethod
    def _planned_so_far(self) -> int:
        """Return how many trips should have departed by now as planned."""

    @abstractmethod
    def _survey(self) -> LanePlaces:
        """Return the state and place of each trip that should have departed; those held back count as arrived."""

    @abstractmethod
    def _locate(self, trips: IntArray) -> LanePlaces:
        """Return the rows of `_survey` for some trips that have departed, without the others."""


def _signal_waits(physics: LinkPhysics, routes: Routes) -> FloatArray | float:
    """Return the ticks that trips may wait at signals without a jam: a cycle at one, half a cycle at each other.

    A vehicle that meets red waits nearly a cycle at worst, and half a cycle on average. The signal at the end of a
    route's last link holds nobody.
    """
    timed = physics.movements[physics.movements["cycle"] > 1]
    if not len(timed):
        return 0.0
    longest, starts = np.zeros(len(physics), dtype=np.float32), routes.offsets[:-1]
    np.maximum.at(longest, physics.lanes["link"][timed["lane"]], timed["cycle"] / ONE_TICK)
    met = longest[routes.links]
    met[routes.offsets[1:] - 1] = 0.0
    return (np.add.reduceat(met, starts, dtype=np.float64) + np.maximum.reduceat(met, starts)) / 2.0
