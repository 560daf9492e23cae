"""Engine `agents`: one SimPy process per vehicle; the readable reference implementation of the physics."""

from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import simpy

from simulator.arrays import FloatArray, Int32Array, IntArray
from simulator.roads.network import Links
from simulator.traffic.clock import PriorityEvent
from simulator.traffic.engine import State, Totals
from simulator.traffic.kernel import log_row
from simulator.traffic.lanes import LinkPhysics
from simulator.traffic.physics import (
    ALL_WAY,
    CONTESTED_PASSES,
    FIRST_COME,
    FRACTION_BITS,
    FREE,
    FULL,
    GAP,
    LONG_AGO,
    NEVER,
    NO_CONFLICT,
    ONE_TICK,
    PERMISSIVE,
    PROTECTED,
    RED,
    SAME_RIGHT,
    accepted_gap,
    entry_slot,
    gap_begin,
    green_at,
    lane_cost,
    lead,
    next_headway,
    next_visit,
    slower,
)
from simulator.traffic.places import LanePlaces, lane_positions
from simulator.traffic.queue_engine import QueueEngine
from simulator.traffic.reactive import Flow, ReactiveRouting

_BEFORE_ALL, _LATE, _FIRST_LANE = 0, 2, 16
"""Priorities within a tick: re-routing, SimPy's own events (0 and 1) with the tick's departures, departures later than
planned, lane 0, lane 1 …"""


@dataclass(eq=False, slots=True)
class _Vehicle:
    number: int
    turn: PriorityEvent
    """Event that happens when the vehicle reaches the head of its queue and may try to leave the lane."""
    route: list[int]
    departure: int
    state: State = State.ARRIVED  # until it departs, where its vehicle is on the way there
    process: Any = None
    position: int = 0  # of the link it is on, or waits to enter, in its route
    lane: "_Lane | None" = None
    entry: int = 0

    # What holds it at the end of its lane:
    ready_since: int = -1
    why: int = FREE
    full_pass: int = -2
    full_lane: "_Lane | None" = None
    blocked_since: int = -1
    not_before: int = LONG_AGO

    @property
    def link(self) -> int:
        """Number of the link it is on, waits to enter, or ended its trip on."""
        return self.route[self.position]

    @property
    def on_lane(self) -> "_Lane":
        """Return its lane while it is on the road."""
        if self.lane is None:
            raise RuntimeError(f"vehicle {self.number} is on no lane")
        return self.lane

    def after(self, links: int) -> int:
        """Return the link `links` after the present one in its route, -1 after its end."""
        place = self.position + links
        return self.route[place] if place < len(self.route) else -1


@dataclass(eq=False, slots=True)
class _Movement:
    number: int
    lane: "_Lane"
    crossing: int
    headway: int
    stride: int
    window_first: int
    window_last: int
    cycle: int
    offset: int
    control: int
    gap: int
    follow_up: int
    onto_lanes: int
    foes: list[tuple[int, int]]
    """Movements to look at, and what is owed to them."""
    served: int = 0
    last_pass: int = LONG_AGO


@dataclass(eq=False, slots=True)
class _Claim:
    """A vehicle that wants to enter a link in this pass: the first one of a lane, or the first trip that waits."""

    vehicle: _Vehicle
    lane: "_Lane | None"
    granted: PriorityEvent
    target: "_Lane | None" = None
    slot: int = NEVER


@dataclass(eq=False, slots=True)
class _Lane:
    number: int
    link: "_Link"
    storage: int
    free: int
    headway: int
    hole: int
    critical: int
    movements: dict[int, _Movement] = field(default_factory=dict)
    """By the next link; empty where every lane leads everywhere."""
    last_in: int = LONG_AGO
    discharge: int = 0
    loss: int = 0
    served: int = 0
    served_onto: int = -1
    virtual: int = 0
    entered_from: "_Lane | None" = None
    queue: deque[_Vehicle] = field(default_factory=deque)
    exits: deque[int] = field(default_factory=deque)  # the last one first

    def ready(self, vehicle: _Vehicle) -> int:
        """Return when `vehicle`, at the head of the queue, may leave if nothing holds it."""
        return max(vehicle.entry + self.free, self.discharge)

    def slot(self) -> int:
        """Return when the lane can take one more vehicle, `NEVER` while it is full."""
        before = LONG_AGO
        ahead = self.storage - len(self.queue) - 1
        if len(self.queue) >= self.critical and 0 <= ahead < len(self.exits):
            before = self.exits[ahead]
        return entry_slot(self.last_in, self.headway, len(self.queue), self.storage, self.hole, before)


@dataclass(eq=False, slots=True)
class _Link:
    number: int
    lanes: list[_Lane] = field(default_factory=list)
    turns: list[dict[int, int]] = field(default_factory=list)
    """Lanes that allow the turn onto a link, a bit each, by class; onto -1 for those on which a trip may end."""
    contested: int = -1
    claims: list[_Claim] = field(default_factory=list)
    entered: int = 0
    lost: int = 0
    waiting: deque[_Vehicle] = field(default_factory=deque)
    origin_served: int = 0
    origin_stride: int = 0
    closures: list[tuple[int, int]] = field(default_factory=list)

    def is_closed(self, tick: int) -> bool:
        """Return whether no vehicle may enter in `tick`."""
        return any(start <= tick < end for start, end in self.closures)


class Agents(QueueEngine):
    """Engine that moves `trips` along `routes` with one process per vehicle, by the same rules as `Fleet` in each pass.

    It is fast enough for about 10⁵ vehicles. It serves reading and teaching, and is the reference the kernel is tested
    against. The priority of the events sets the order within a tick (lanes ascending, then origin queues).
    """

    def _prepare(self) -> None:
        self._links = _links_of(self._physics, self._road_links)
        self._lanes = [lane for link in self._links for lane in link.lanes]
        self._movements = _movements_of(self._physics, self._lanes)
        self._vehicles: list[_Vehicle] = []
        self._stuck = self._rotated = self._trip_time = 0
        self._log: list[int] = []
        self._env = simpy.Environment()
        self._claimed: list[_Link] = []

    def start(self, env: simpy.Environment) -> None:
        """Add the process that starts the vehicles to `env`."""
        self._env = env
        env.process(self._send_off(env))
        if self._reactive is not None:
            env.process(self._reroute(self._reactive))

    def advance(self) -> None:
        """Do nothing: the SimPy environment moves these vehicles."""

    def close_link(self, link: int, from_s: float, to_s: float) -> None:
        """Close a link for a time; see `QueueEngine.close_link`."""
        super().close_link(link, from_s, to_s)
        self._links[link].closures.append(self._closures[-1][1:])

    @property
    def _pass(self) -> int:
        """Number of the present pass."""
        return round(self._env.now * self._physics.rules.passes)

    @property
    def _tick(self) -> int:
        """The tick that the present pass belongs to: those after the tick before it."""
        return -(-self._pass // self._physics.rules.passes)

    @property
    def _earliest(self) -> int:
        """The first time after the pass before the present one: trips and those that a junction refused move then."""
        return ((self._pass - 1) << self._physics.rules.pass_bits) + 1

    def _later(self, passes: int, priority: int) -> PriorityEvent:
        """Return an event some passes from now."""
        delay = passes / self._physics.rules.passes
        return PriorityEvent(self._env).schedule(delay=delay, priority=priority)

    def _send_off(self, env: simpy.Environment) -> Generator[simpy.Event, None, None]:
        """Start the vehicles that depart in the same tick together, in the order of their numbers."""
        for number, tick in enumerate(self.trips.departure_tick.tolist()):
            if tick > env.now:
                yield env.timeout(tick - env.now)
            vehicle = _Vehicle(number, PriorityEvent(env), self._book.of(number).tolist(), tick)
            self._vehicles.append(vehicle)
            if not self._held_back[number]:
                self._depart(vehicle)

    def _depart(self, vehicle: _Vehicle) -> None:
        vehicle.state = State.WAITING
        vehicle.process = self._env.process(self._drive(vehicle))

    def _depart_late(self, number: int, tick: int) -> Generator[simpy.Event, None, None]:
        """Start a trip later than planned; trips that do so in one tick follow each other in the order of the calls."""
        yield PriorityEvent(self._env).schedule(delay=tick - self._env.now, priority=_LATE)
        self._held_back[number], self._vehicles[number].departure = False, tick
        self._depart(self._vehicles[number])

    def _drive(self, vehicle: _Vehicle) -> Generator[simpy.Event, None, None]:
        """Simulate one trip: wait to enter, drive lane by lane, arrive."""
        yield from self._wait_to_enter(vehicle, self._links[vehicle.link])
        while vehicle.state == State.ON_ROAD:
            lane = vehicle.on_lane
            priority = _FIRST_LANE + lane.number
            try:
                yield vehicle.turn
                while (time := (yield from self._try_to_cross(vehicle, lane))) is not None:
                    visit = next_visit(time, self._pass, self._physics.rules.pass_bits)
                    yield self._later(visit - self._pass, priority)
            except simpy.Interrupt:
                pass  # it has moved on in a rotation

    def _claim(
        self, link: _Link, vehicle: _Vehicle, lane: _Lane | None
    ) -> Generator[simpy.Event, None, tuple[_Lane, int]]:
        """Wait until all that are due in this pass have come, and for one's turn; return a lane and its slot."""
        claim = _Claim(vehicle, lane, PriorityEvent(self._env))
        link.claims.insert(len(link.claims) if lane is None else 0, claim)
        if link not in self._claimed:
            self._claimed.append(link)
            if len(self._claimed) == 1:
                self._env.process(self._grant())
        yield claim.granted
        return claim.target or link.lanes[0], claim.slot

    def _grant(self) -> Generator[simpy.Event, None, None]:
        """Let those enter links in turn who want to in this pass."""
        last = _FIRST_LANE + len(self._lanes) + len(self._links)
        yield self._later(0, last)
        while self._claimed:
            link = self._claimed[0]
            if not link.claims:
                self._claimed.pop(0)
                continue
            self._next_to_enter(link).granted.schedule(delay=0, priority=_BEFORE_ALL)
            yield self._later(0, last)

    def _next_to_enter(self, link: _Link) -> _Claim:
        """Take the claim that is next from a link, and state its lane and slot.

        Whoever cannot enter in this pass is next at once. Of the others it is the first to enter, then the one with the
        least lead, then the one with the lowest number; trips are last.
        """
        now, able = self._pass << self._physics.rules.pass_bits, []
        for claim in link.claims:
            vehicle, lane = claim.vehicle, claim.lane
            number, crossing, movement = len(self._lanes), 0, None
            if lane is None:
                ready = max(vehicle.departure << FRACTION_BITS, self._earliest)
            elif lane.queue and lane.queue[0] is vehicle:
                number, movement = lane.number, lane.movements.get(link.number)
                ready, crossing = self._soonest(vehicle, lane), movement.crossing if movement else 0
            else:  # it has moved on in a rotation
                chosen = claim
                break
            target, claim.slot = self._choose_lane(link, vehicle, 0 if lane is None else 1, ready + crossing)
            claim.target, entry = target, max(ready + crossing, claim.slot)
            if entry - crossing > now:
                chosen = claim
                break
            if lane is None:
                ahead = lead(link.origin_served, target.virtual, link.origin_stride, len(link.lanes))
            else:
                ahead = _lead(lane, movement, target)
            able.append((entry, ahead, number, claim))
        else:
            *_, chosen = min(able, key=lambda one: one[:3])
        link.claims.remove(chosen)
        return chosen

    def _soonest(self, vehicle: _Vehicle, lane: _Lane) -> int:
        """Return when the first vehicle of a lane may cross, not in the past if a junction refused it."""
        time = max(lane.ready(vehicle), vehicle.not_before)
        return max(time, self._earliest) if vehicle.why >= RED else time

    def _try_to_cross(  # noqa: C901, PLR0911, PLR0912, PLR0915  # the rules of a crossing in their order
        self, vehicle: _Vehicle, lane: _Lane
    ) -> Generator[simpy.Event, None, int | None]:
        """Move the first vehicle of a lane on if nothing holds it in this pass; else return when to try again."""
        pass_no, rules = self._pass, self._physics.rules
        now, ready = pass_no << rules.pass_bits, lane.ready(vehicle)
        if ready > now:
            return ready
        onto = vehicle.after(1)
        if onto < 0:
            self._leave(vehicle, lane, ready, lane.headway)
            self._arrive(vehicle, ready)
            return None
        ahead = self._links[onto]
        movement = lane.movements.get(onto)
        crossing, headway = (movement.crossing, movement.headway) if movement else (0, lane.headway)
        if ahead.is_closed(self._tick):
            self._hold(vehicle, ready, FULL)
            vehicle.full_pass, vehicle.full_lane, vehicle.blocked_since = pass_no, None, -1
            vehicle.not_before = now + 1
            return now + 1
        time = self._soonest(vehicle, lane)
        if ahead.contested >= pass_no:
            target, slot = yield from self._claim(ahead, vehicle, lane)
        else:
            target, slot = self._choose_lane(ahead, vehicle, 1, time + crossing)
        forced = False
        if slot == NEVER:
            ahead.contested = max(ahead.contested, pass_no + CONTESTED_PASSES)
            self._hold(vehicle, ready, FULL)
            vehicle.full_pass, vehicle.full_lane = pass_no, target
            if vehicle.blocked_since < 0:
                vehicle.blocked_since = pass_no
            blocked = pass_no - vehicle.blocked_since
            if rules.stuck_passes < 0 or blocked < rules.stuck_passes:
                if blocked > 0 and blocked % rules.rotation_passes == 0 and self._rotate(vehicle, lane, pass_no):
                    return None
                return now + 1
            slot = max(now + crossing, target.last_in + target.headway)
            forced = True
        time = max(time, slot - crossing)
        if time > now:
            visit = next_visit(time, pass_no, rules.pass_bits)
            ahead.contested = max(ahead.contested, visit + CONTESTED_PASSES)
            self._hold(vehicle, ready, FREE)
            return time
        if movement is not None:
            time, holds, headway, refused = self._junction(vehicle, lane, movement, time, ready, pass_no)
            if holds != FREE:
                self._hold(vehicle, ready, holds)
                vehicle.not_before = max(vehicle.not_before, refused)
                return time
        if ahead.contested >= pass_no:
            before = _lead(lane, movement, target)
            if movement is None:
                lane.served, lane.served_onto = target.virtual + before + headway, onto
            else:
                movement.served = target.virtual + before + movement.stride
            target.virtual += max(before, 0)
            if target.entered_from is not lane and (movement is None or not movement.foes):
                headway = next_headway(headway, time - ready, time + crossing, target.last_in, target.headway)
            target.entered_from = lane
        self._stuck += forced
        loss = 0
        if movement is not None:
            if vehicle.why >= RED or movement.control:
                loss = rules.start_loss
            elif vehicle.why == FREE:
                loss = lane.loss * rules.loss_kept >> FRACTION_BITS
            lane.loss = loss
            movement.last_pass = time
        self._leave(vehicle, lane, time, headway)
        vehicle.position += 1
        self._enter(vehicle, target, time + crossing, loss)
        return None

    def _junction(
        self, vehicle: _Vehicle, lane: _Lane, movement: _Movement, time: int, ready: int, pass_no: int
    ) -> tuple[int, int, int, int]:
        """Return when a vehicle that may cross from `time` on does, or tries again, and what the junction does to it.

        Returns
        -------
        time
            Of the crossing, or of the next try.
        holds
            FREE if it crosses, else RED or GAP.
        headway
            After it, until the next vehicle of its lane can follow.
        refused
            Time before which it does not cross any more, if it is held.
        """
        now, rules, right = pass_no << self._physics.rules.pass_bits, self._physics.rules, PROTECTED
        signal = movement.window_first >= 0
        if signal:
            green, right = self._green(movement, time)
            if green > now:
                return green, RED, movement.headway, time
            time = green
        if not movement.foes or (signal and right == PROTECTED):
            return time, FREE, movement.headway, time
        all_way = movement.control == ALL_WAY
        passed = max(
            (self._movements[foe].last_pass for foe, owed in movement.foes if owed != NO_CONFLICT), default=LONG_AGO
        )
        time = refused = max(time, passed + (rules.all_way_clearance if all_way else rules.clearance))
        if signal:  # it may no longer be green
            time, right = self._green(movement, time)
        if time > now:
            return time, GAP, movement.headway, refused
        if signal and right != PERMISSIVE:
            return time, FREE, movement.headway, refused
        since = vehicle.ready_since if vehicle.ready_since >= 0 else ready
        begin = gap_begin(time, ready, passed, movement.follow_up)
        until = begin + accepted_gap(movement.gap, time - since, rules.impatience)
        if any(
            self._foe_takes(self._movements[foe], time, until, ready, lane, pass_no, owed)
            for foe, owed in movement.foes
            if owed != NO_CONFLICT
        ):
            return now + 1, GAP, movement.headway, refused
        headway = begin + movement.follow_up - time
        if all_way:
            headway = max(self._all_way_headway(movement, time), movement.headway)
        return time, FREE, headway, refused

    def _all_way_headway(self, movement: _Movement, time: int) -> int:
        """Return the time that the next vehicle of the lane follows at an all-way stop, by the other approaches in use.

        An approach is in use while a vehicle waits at its end, and for the shortest headway after one has left.
        """
        headways, met, used = self._physics.rules.all_way, False, set()
        for number, owed in movement.foes:
            foe = self._movements[number]
            first = foe.lane.queue[0] if foe.lane.queue else None
            waits = first is not None and first.entry + foe.lane.free <= time
            wants = first is not None and foe.lane.movements.get(first.after(1)) is foe
            if foe.last_pass > time - headways[0] or (waits and wants):
                used.add(foe.lane.link.number)
                met = met or owed != NO_CONFLICT
        return headways[min(len(used) + (len(used) > 1 or met), 4)]

    def _foe_takes(  # noqa: PLR0911  # the reasons for which one does not
        self, foe: _Movement, time: int, until: int, ready: int, lane: _Lane, pass_no: int, owed: int
    ) -> bool:
        """Return whether a vehicle that has the right of way, and no red at `time`, could cross before `until`.

        On a lane that others share with the movement, it may follow those that nothing holds.
        """
        theirs, right = foe.lane.discharge, PROTECTED
        for other in foe.lane.queue:
            theirs = max(other.entry + foe.lane.free, theirs)
            if theirs >= until:
                return False
            onto = other.after(1)
            wanted = foe.lane.movements.get(onto)
            if wanted is foe:
                break
            if other.ready_since >= 0:
                return False
            theirs += foe.lane.headway if wanted is None else wanted.headway
        else:
            return False
        # Of vehicles that yield to each other in a circle, the first ready goes.
        later, held = (theirs, foe.lane.number) > (ready, lane.number), other.ready_since >= 0
        if held and (other.full_pass >= pass_no - 1 or (other.why == GAP and (owed == SAME_RIGHT or later))):
            return False
        if foe.window_first >= 0:
            if self._green(foe, time)[0] > time:
                return False
            theirs, right = self._green(foe, theirs)
            if theirs >= until:
                return False
        first_come = owed == FIRST_COME and (foe.window_first < 0 or right != PROTECTED)
        return not (first_come and (theirs, foe.lane.number) > (ready, lane.number))

    def _green(self, movement: _Movement, time: int) -> tuple[int, int]:
        first, last = movement.window_first, movement.window_last
        return green_at(time, self._physics.windows, first, last, movement.cycle, movement.offset)

    def _choose_lane(self, link: _Link, vehicle: _Vehicle, ahead: int, earliest: int) -> tuple[_Lane, int]:
        """Return the lane of `link`, `ahead` links after the present one, that costs least, and when it has a place.

        If all are full, these are the first lane and NEVER.
        """
        if len(link.lanes) == 1:
            return link.lanes[0], link.lanes[0].slot()
        allowed, preferred = self._lanes_ahead(link, vehicle, ahead, 3)
        found, full = [], []
        for place, lane in enumerate(link.lanes):
            if allowed >> place & 1:
                slot = lane.slot()
                change = 0 if preferred >> place & 1 else self._physics.rules.other_lane
                if slot == NEVER:
                    full.append(lane)
                else:
                    found.append((lane_cost(len(lane.queue), lane.storage, slot - earliest, change), place, slot))
        if found:
            _, place, slot = min(found)
            return link.lanes[place], slot
        return full[0], NEVER

    def _lanes_ahead(self, link: _Link, vehicle: _Vehicle, ahead: int, turns: int) -> tuple[int, int]:
        """Return the lanes of a link that allow the next turn, and those that also lead on for `turns` − 1 more."""
        following = vehicle.after(ahead + 1)
        of_class = self._physics.vehicle_class
        allowed = link.turns[of_class[vehicle.number] if len(of_class) else 0][following]
        if following < 0 or turns == 1 or not link.lanes[0].movements:
            return allowed, allowed
        goal = self._lanes_ahead(self._links[following], vehicle, ahead + 1, turns - 1)[1]
        best = sum(
            1 << place
            for place, lane in enumerate(link.lanes)
            if allowed >> place & 1 and lane.movements[following].onto_lanes & goal
        )
        return allowed, best or allowed

    def _hold(self, vehicle: _Vehicle, ready: int, why: int) -> None:
        """Note what holds a vehicle."""
        if vehicle.ready_since < 0:
            vehicle.ready_since = ready
        vehicle.why = why
        if why >= RED:
            vehicle.full_pass = -2

    def _rotate(self, vehicle: _Vehicle, lane: _Lane, pass_no: int) -> bool:
        """Move the first vehicles of a cycle of full lanes through `lane` on together; return whether there is one."""
        cycle: list[tuple[_Vehicle, _Lane]] = []
        while not cycle or lane is not cycle[0][1]:
            first = lane.queue[0] if lane.queue else None
            if (
                first is None
                or first.full_pass < pass_no - 1
                or first.full_lane is None
                or len(cycle) == len(self._lanes)
            ):
                return False
            cycle.append((first, lane))
            lane = first.full_lane
            # The route may have changed, or the link have closed, since the lane ahead was found to be full.
            if lane.link.number != first.after(1) or lane.link.is_closed(self._tick):
                return False
        time = pass_no << self._physics.rules.pass_bits
        for moving, here in cycle:
            if here.movements:
                here.movements[moving.after(1)].last_pass = time
            self._leave(moving, here, time, here.headway, follow=False)
            moving.position += 1
        for (moving, _), (_, onto) in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
            if moving is not vehicle:
                moving.process.interrupt()
            # A vehicle that was forced onto the lane may enter it later than now.
            entry = time if onto.last_in <= time else onto.last_in + onto.headway
            self._enter(moving, onto, entry, 0, call=False)
        for _, here in cycle:
            self._call(here, later=True)
        self._rotated += len(cycle)
        return True

    def _wait_to_enter(self, vehicle: _Vehicle, link: _Link) -> Generator[simpy.Event, None, None]:
        priority = _FIRST_LANE + len(self._lanes) + link.number
        link.waiting.append(vehicle)
        if link.waiting[0] is vehicle:
            vehicle.turn.schedule(delay=0, priority=priority)
        yield vehicle.turn
        while not (yield from self._try_to_enter(vehicle, link)):
            yield self._later(1, priority)
        link.waiting.popleft()
        if link.waiting:
            link.waiting[0].turn.schedule(delay=0, priority=priority)

    def _try_to_enter(self, vehicle: _Vehicle, link: _Link) -> Generator[simpy.Event, None, bool]:
        pass_no, bits = self._pass, self._physics.rules.pass_bits
        if link.is_closed(self._tick):
            return False
        ready = max(vehicle.departure << FRACTION_BITS, self._earliest)
        if link.contested >= pass_no:
            target, slot = yield from self._claim(link, vehicle, None)
        else:
            target, slot = self._choose_lane(link, vehicle, 0, ready)
        time = max(ready, slot)
        if time > pass_no << bits:
            link.contested = max(link.contested, next_visit(time, pass_no, bits) + CONTESTED_PASSES)
            return False
        if link.contested >= pass_no:
            before = lead(link.origin_served, target.virtual, link.origin_stride, len(link.lanes))
            link.origin_served = target.virtual + before + link.origin_stride
            target.virtual += max(before, 0)
            target.entered_from = None
        vehicle.state = State.ON_ROAD
        self._enter(vehicle, target, time, self._physics.rules.entry_loss)
        return True

    def _leave(self, vehicle: _Vehicle, lane: _Lane, time: int, headway: int, *, follow: bool = True) -> None:
        """Take the first vehicle from its lane; the next one may follow one headway later."""
        lane.queue.popleft()
        lane.exits.appendleft(time)
        lane.discharge = time + headway
        following = vehicle.after(1)
        onto = lane.link if following < 0 else self._links[following]
        onto.entered += 1
        onto.lost += max(0, time - vehicle.entry - lane.free)
        vehicle.ready_since, vehicle.why, vehicle.blocked_since = -1, FREE, -1
        vehicle.full_pass, vehicle.full_lane, vehicle.not_before = -2, None, LONG_AGO
        if follow:
            self._call(lane)

    def _enter(self, vehicle: _Vehicle, lane: _Lane, time: int, loss: int, *, call: bool = True) -> None:
        vehicle.entry, vehicle.turn = time + loss + self._longer(vehicle, lane), PriorityEvent(self._env)
        vehicle.lane, lane.last_in = lane, time
        lane.queue.append(vehicle)
        if call and lane.queue[0] is vehicle:
            self._call(lane, later=True)
        self._keep(vehicle, time, lane.link.lanes.index(lane))

    def _longer(self, vehicle: _Vehicle, lane: _Lane) -> int:
        """Return how much longer than others the vehicle takes for a lane."""
        physics = self._physics
        return slower(vehicle.number, lane.link.number, physics.pace, physics.length_m, lane.free)

    def _call(self, lane: _Lane, *, later: bool = False) -> None:
        """Let the first vehicle of a lane try to leave it as soon as it is ready, and not in this pass if `later`."""
        if lane.queue:
            bits, ready = self._physics.rules.pass_bits, lane.ready(lane.queue[0])
            visit = next_visit(ready, self._pass, bits) if later or ready > self._pass << bits else self._pass
            delay = (visit - self._pass) / self._physics.rules.passes
            lane.queue[0].turn.schedule(delay=delay, priority=_FIRST_LANE + lane.number)

    def _arrive(self, vehicle: _Vehicle, time: int) -> None:
        vehicle.state, vehicle.lane = State.ARRIVED, None
        self._trip_time += time - (vehicle.departure << FRACTION_BITS)
        self._keep(vehicle, time, 0)
        following = int(self._following[vehicle.number]) if len(self._following) else -1
        if following >= 0:
            tick = self._tick + self.trips.stop_ticks
            if tick <= self.trips.departure_tick[following]:
                self._held_back[following] = False
            else:
                self.departure_tick[following] = tick
                self._env.process(self._depart_late(following, tick))

    def _keep(self, vehicle: _Vehicle, time: int, lane: int) -> None:
        if self.record_entries and vehicle.number % self.record_entries == 0:
            self._log.append(int(log_row(vehicle.number // self.record_entries, time, lane)))

    def _reroute(self, reactive: ReactiveRouting) -> Generator[simpy.Event, None, None]:
        """Re-route vehicles at regular ticks, before the vehicles of that tick move or depart."""
        passes, tick = self._physics.rules.passes, 0
        while True:
            tick += reactive.every_ticks
            first = (tick - 1) * passes + 1
            yield self._later(first - self._pass, _BEFORE_ALL)
            found = self._survey()
            position = np.array([vehicle.position for vehicle in self._vehicles], dtype=np.int32)
            flow = Flow(
                entered=np.array([link.entered for link in self._links], dtype=np.int64),
                lost=np.array([link.lost for link in self._links], dtype=np.int64),
                longest_loss=self._longest_losses(found, position, tick),
                state=found.state,
                position=position,
                closed=self._closed_at(tick),
            )
            for number in reactive.reroute(tick, self._book, flow).tolist():
                self._vehicles[number].route = self._book.of(number).tolist()

    @property
    def _now(self) -> float:
        return self._env.now

    def _survey(self) -> LanePlaces:
        found = _rows_of(self._vehicles)
        for lane in self._lanes:
            if lane.queue:
                numbers = [vehicle.number for vehicle in lane.queue]
                found.longer[numbers], found.fraction[numbers], found.past[numbers] = self._on_lane(lane, len(numbers))
        return found

    def _locate(self, trips: IntArray) -> LanePlaces:
        vehicles = [self._vehicles[trip] for trip in trips.tolist()]
        found = _rows_of(vehicles)
        for row, vehicle in enumerate(vehicles):
            if vehicle.lane is not None:
                columns = self._on_lane(vehicle.lane, vehicle.lane.queue.index(vehicle) + 1)
                found.longer[row], found.fraction[row], found.past[row] = (column[-1] for column in columns)
        return found

    def _on_lane(self, lane: _Lane, count: int) -> tuple[Int32Array, FloatArray, FloatArray]:
        """Return `longer`, `fraction` and `past` of `LanePlaces` of the first `count` vehicles of a lane."""
        first = [*islice(lane.queue, count)]
        entries = np.array([vehicle.entry for vehicle in first], dtype=np.int32)
        longer = np.array([self._longer(vehicle, lane) for vehicle in first], dtype=np.int32)
        exits, now, ago = np.array(lane.exits, dtype=np.int32), np.empty(count), np.empty(count)
        wave, spacing, time = lane.hole / lane.storage, float(self._physics.spacing[lane.number]), self._time
        lane_positions(time, time - lane.headway, entries, longer, exits, lane.free, wave, spacing, now, ago)
        return longer, now, ago

    def totals(self) -> Totals:
        """Return the number of trips in each state, and the counters so far."""
        return Totals.counted(
            np.array([self._vehicles[number].state for number in self.begun()], dtype=np.uint8),
            stuck_released=self._stuck,
            rotated=self._rotated,
            link_crossings=sum(link.entered for link in self._links),
            trip_time_s=self._trip_time / ONE_TICK * self._clock.step_s,
            due=self._due(),
        )

    @property
    def _planned_so_far(self) -> int:
        return len(self._vehicles)

    @property
    def _logged(self) -> IntArray:
        return np.array(self._log, dtype=np.int64)

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes held for vehicles and their trips, about 1 kB of Python objects per vehicle; and for routes."""
        return self.trips.nbytes + 1024 * len(self._vehicles), self._book.nbytes

    def __repr__(self) -> str:
        return f"<Agents: {self.vehicles:,} vehicles on {len(self._links):,} links>"


def _rows_of(vehicles: Sequence[_Vehicle]) -> LanePlaces:
    """Return the states and links of vehicles; their places on their lanes are then written in."""
    found = LanePlaces.arrived(np.array([vehicle.link for vehicle in vehicles], dtype=np.int32))
    for row, vehicle in enumerate(vehicles):
        found.state[row], found.entry[row] = vehicle.state, vehicle.entry
        found.lane[row] = -1 if vehicle.lane is None else vehicle.lane.number
    found.fraction[found.state == State.WAITING] = 0.0
    return found


def _lead(lane: _Lane, movement: _Movement | None, target: _Lane) -> int:
    """Return the lead of the tag of a lane, or of its movement, over the clock of a lane of the next link."""
    link = target.link
    if movement is not None:
        return lead(movement.served, target.virtual, movement.stride, len(link.lanes))
    return lead(lane.served, target.virtual, lane.headway, len(link.lanes)) if lane.served_onto == link.number else 0


def _links_of(physics: LinkPhysics, roads: Links) -> list[_Link]:
    """Make the links and lanes of the arrays."""
    links = [_Link(number, origin_stride=int(record["stride"])) for number, record in enumerate(physics.entries)]
    lanes = physics.lanes
    for number, on in enumerate(lanes["link"].tolist()):
        link, record = links[on], lanes[number]
        storage, free, headway = int(record["storage"]), int(record["free"]), int(record["headway"])
        lane = _Lane(number, link, storage, free, headway, int(record["hole"]), int(record["critical"]))
        lane.exits = deque(maxlen=lane.storage)
        link.lanes.append(lane)
    for link, record in zip(links, physics.links, strict=True):
        node = roads.to_node[link.number]
        turns = (-1, *range(roads.first_out[node], roads.first_out[node + 1]))
        for lanes_of in physics.turn_lanes[:, record["first_turn"] :]:
            link.turns.append(dict(zip(turns, lanes_of[: len(turns)].tolist(), strict=True)))
    return links


def _movements_of(physics: LinkPhysics, lanes: list[_Lane]) -> list[_Movement]:
    """Make the movements of the arrays, and give them to their lanes."""
    names = (
        *("crossing", "headway", "stride", "window_first", "window_last", "cycle", "offset"),
        *("control", "gap", "follow_up", "onto_lanes"),
    )
    movements = []
    for number, record in enumerate(physics.movements):
        pairs = physics.foes[record["foe_first"] : record["foe_first"] + record["foes"]].tolist()
        foes = [(foe, owed) for foe, _, owed in pairs]
        values = {name: int(record[name]) for name in names}
        movements.append(_Movement(number, lanes[record["lane"]], **values, foes=foes))
    for lane, first in zip(lanes, physics.lanes["first_movement"].tolist(), strict=True):
        if first >= 0:
            turns = enumerate(lane.link.turns[0], start=first - 1)
            lane.movements = {onto: movements[number] for number, onto in turns if onto >= 0}
    return movements
