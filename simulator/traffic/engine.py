"""Interface of traffic engines, and the states of the vehicles that an engine returns."""

from collections.abc import Collection
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, Protocol

import numpy as np
import simpy

from simulator.arrays import FloatArray, Int32Array, IntArray, Mask, StateArray
from simulator.files.messages import Note, counted, warning
from simulator.roads.network import RoadNetwork

FORCED_SHARE = 0.01
"""Maximum share of link crossings that are forced, before gridlock is reported.

On generated and real grids, once between 0.25 % and 1.5 % of the crossings are forced, the number of vehicles that
arrive within a run falls as demand grows. With a trip of about thirty links, 1 % is one trip in four."""
FORCED_PER_VEHICLE = 0.1
"""Maximum forced crossings per vehicle where link crossings are not counted, assuming ten links per trip."""
DUE_SHARE = 0.75
"""Minimum share of arrivals among the vehicles that would have arrived at half of free-flow speed.

A trip through a signal may wait a cycle besides, which can be longer than the trip, and half a cycle at each further
signal. In free-flowing traffic arrivals exceed that number, and cities lose at most about half of the free-flow speed
in their worst hours."""
WAITING_SHARE = 1 / 3
"""Maximum share of departed vehicles that wait: above it, places show where trips start, not where vehicles drive."""
FEWEST_VEHICLES = 20


class State(IntEnum):
    """State of a departed vehicle."""

    WAITING = 1
    ON_ROAD = 2
    ARRIVED = 3
    ABSENT = 4
    """Observed before and perhaps later, but at an unknown place now: never queried, even where parked vehicles are."""


@dataclass(frozen=True, eq=False)
class VehicleStates:
    """Place of every departed vehicle: on a link, at coordinates, or both; vehicles not yet departed do not appear.

    Attributes
    ----------
    state
        (departed,) uint8, a `State`.
    link
        (departed,) int32: the link it is on, waits to enter, or ended its trip on; -1 where the link is unknown.
    fraction
        (departed,) float64, 0 to 1: how far along its link it is; 0 while waiting to enter, 1 once arrived. Beside
        coordinates NaN where unknown.
    xy
        (departed, 2) float64, metres in the city's coordinate system, NaN where unknown; only from engines that know
        coordinates. None where links and fractions are sufficient.
    offset_m
        (departed,) float64: distance of its lane from the middle of the link's lanes, metres to the left; None for 0.
    site
        (departed,) int32: index of the recording's site it is at; only from engines whose vehicles are at known sites.
    """

    state: StateArray
    link: Int32Array
    fraction: FloatArray
    xy: FloatArray | None = None
    site: Int32Array | None = None
    offset_m: FloatArray | None = None

    def within(self, states: Collection[State]) -> Mask:
        """Return which vehicles are in one of some states, (departed,) bool."""
        return np.isin(self.state, [*states])

    def of(self, numbers: IntArray) -> "VehicleStates":
        """Return the rows of some vehicles, in their order; (n,) int64."""
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        return VehicleStates(**{name: column[numbers] for name, column in columns.items() if column is not None})

    def xy_on(self, roads: RoadNetwork) -> FloatArray:
        """Return the places on the links of `roads`, or the coordinates where they are known, (departed, 2) metres."""
        return roads.locate(self.link, self.fraction, self.offset_m) if self.xy is None else self.xy

    def __len__(self) -> int:
        return len(self.state)


@dataclass(frozen=True)
class Totals:
    """Number of vehicles in each state; always departed = waiting + on_road + arrived + absent.

    Where vehicles make several trips, each trip counts as a vehicle. `due` is the number of vehicles that would have
    arrived by then at half of free-flow speed on their first routes, after a wait at the signals; None if the engine
    does not know it. `rotated` counts vehicles that moved on together in a circle of full lanes. `trip_time_s` is the
    sum of the times from departure to arrival of the arrived vehicles, including the time waiting to enter.
    """

    departed: int
    waiting: int = 0
    on_road: int = 0
    arrived: int = 0
    stuck_released: int = 0
    rotated: int = 0
    link_crossings: int = 0
    absent: int = 0
    trip_time_s: float = 0.0
    due: int | None = None

    @classmethod
    def counted(cls, state: StateArray, **counters: Any) -> "Totals":
        """Count the vehicles in each `State`, (departed,); the counters are the other fields."""
        count = np.bincount(state, minlength=max(State) + 1).tolist()
        return cls(
            departed=len(state),
            waiting=count[State.WAITING],
            on_road=count[State.ON_ROAD],
            arrived=count[State.ARRIVED],
            absent=count[State.ABSENT],
            **counters,
        )

    @property
    def mean_trip_s(self) -> float:
        """Mean time from departure to arrival of the arrived vehicles, seconds; NaN if none has arrived."""
        return self.trip_time_s / self.arrived if self.arrived else float("nan")

    @property
    def crowding(self) -> float:
        """Largest ratio of a value to its limit in `gridlock`, broken above 1; with fewer than 20 due, none is late."""
        moves = self.link_crossings * FORCED_SHARE or self.departed * FORCED_PER_VEHICLE
        late = 1 - self.arrived / self.due if self.due and self.due >= FEWEST_VEHICLES else 0.0
        forced, waiting = (self.stuck_released + self.rotated) / moves, self.waiting / (WAITING_SHARE * self.departed)
        return max(forced, waiting, late / (1 - DUE_SHARE))

    def gridlock(self, *, planned: int, when: str = "") -> list[Note]:
        """Report whether the roads were too full for the result to be meaningful.

        Parameters
        ----------
        planned
            Number of vehicles of the whole run.
        when
            The moment in words, if it is not the end of the run.

        Returns
        -------
        list of Note
            One warning with the broken rules, if vehicles were forced on, beyond the storage of a lane or by a
            teleport, or rotated, in more than 1 % of link crossings (a tenth of the departed vehicles, where crossings
            are not counted); if fewer than three quarters of `due` have arrived; or if more than a third of the
            departed vehicles wait to enter. Otherwise, and with fewer than 20 departed vehicles, empty.
        """
        if self.departed < FEWEST_VEHICLES:
            return []
        moves, limit, of_what = self.link_crossings, FORCED_SHARE, "link crossings"
        if not moves:
            moves, limit, of_what = self.departed, FORCED_PER_VEHICLE, "vehicles departed"
        helped = self.stuck_released + self.rotated
        forced = f"blocked vehicles were forced past full links {counted(self.stuck_released, 'time')}"
        if self.rotated:
            forced += f" and moved on in circles of full lanes {counted(self.rotated, 'time')}"
        broken, too_many_forced = [], helped > limit * moves
        if too_many_forced:
            share = f"{100 * helped / moves:.2f} % of {of_what}"
            broken.append(f"{forced} ({share}; the limit is {100 * limit:g} %)")
        if self.due is not None and self.arrived < DUE_SHARE * self.due:
            part = f"{100 * self.arrived / self.due:.2f} % of the {self.due:,}"
            share = f"{part} that would have at half of free-flow speed"
            broken.append(f"only {self.arrived:,} vehicles arrived ({share}; the limit is {100 * DUE_SHARE:g} %)")
        if self.waiting > WAITING_SHARE * self.departed:
            share = f"{100 * self.waiting / self.departed:.2f} % of vehicles departed"
            limit = 100 * WAITING_SHARE
            broken.append(f"{self.waiting:,} vehicles wait to enter ({share}; the limit is {limit:.2f} %)")
        if not broken:
            return []
        also = "" if too_many_forced else f" and {forced}"
        text = (
            f"gridlock{when}: {'; '.join(broken)}; of {self.departed:,} vehicles departed, of {planned:,} planned, "
            f"{self.arrived:,} arrived and {self.waiting:,} still wait to enter{also}. Check the number of vehicles, "
            "capacities and lanes, and the length of the run"
        )
        return [warning("gridlock", text)]


class Engine(Protocol):
    """Engine that moves vehicles in a SimPy environment that counts ticks.

    A vehicle's number is its position in the order of departure. `places` and `speeds` have one row for each departed
    vehicle, so rows are only added at the end.
    """

    @property
    def vehicles(self) -> int:
        """Maximum number of vehicles in the whole run; known before the start."""

    def start(self, env: simpy.Environment) -> None:
        """Add the engine's processes to `env`; called once, at tick 0."""

    def advance(self) -> None:
        """Move every vehicle to `env.now`, tick ⌊now⌋ included."""

    def places(self) -> VehicleStates:
        """Return the place of every departed vehicle at `env.now`; call `advance` first."""

    def place_of(self, numbers: IntArray) -> VehicleStates:
        """Return the places of some departed vehicles at `env.now`; no call of `advance` is needed.

        The rows are equal to those of `places` after `advance`. Beside the moves of a tick, the cost is of these
        vehicles, and of those before them in their queues, not of all vehicles.

        Parameters
        ----------
        numbers
            (n,) int64.

        Raises
        ------
        ValueError
            If a vehicle has not departed.
        """

    def origin_of(self, numbers: IntArray) -> VehicleStates:
        """Return where the first trips, or the recordings, of some departed vehicles begin; `numbers` are (n,) int64.

        Link and coordinates are unknown, -1 and NaN, of a vehicle between zones that SUMO has not inserted yet.
        """

    def class_of(self, numbers: IntArray) -> list[str]:
        """Return the classes of some departed vehicles, (n,) int64, in the words of SUMO's ``vClass``; "" if unknown.

        They are known in SUMO, and where the own engines drive vehicles from SUMO's files.
        """

    def speeds(self) -> FloatArray:
        """Return every departed vehicle's speed at `env.now`, (departed,) m/s, 0 off the road; call `advance` first."""

    def totals(self) -> Totals:
        """Return the number of vehicles in each state, and the counters so far."""

    def notes(self) -> list[Note]:
        """Return notes on this traffic for readers of the result; the list may grow in the run."""

    def close(self) -> None:
        """Release resources the engine holds outside this process; called once, even after an error."""

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes held for vehicles, and bytes held for their routes or, of a recording, for its positions."""


def check_departed(numbers: IntArray, departed: int) -> None:
    """Check that vehicles, (n,) int64, are among the first `departed`.

    Raises
    ------
    ValueError
        If a vehicle has not departed.
    """
    others = numbers[(numbers < 0) | (numbers >= departed)]
    if len(others):
        raise ValueError(f"vehicle {others[0]} has not departed; {counted(departed, 'vehicle has', 'vehicles have')}")


def vehicles_of(engine: Engine) -> int:
    """Return the number of vehicles of the run so far, where the engine knows only their maximum before: else that."""
    number: int = getattr(engine, "scheduled", engine.vehicles)
    return number
