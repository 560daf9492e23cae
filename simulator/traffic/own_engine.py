"""A user's own traffic engine: what its class must have, and the engine of a run that it becomes."""

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np
import simpy

from simulator.arrays import FloatArray
from simulator.files.errors import InputError
from simulator.files.messages import Note, notes_of
from simulator.roads import RoadNetwork
from simulator.traffic.clock import Clock
from simulator.traffic.engine import State, Totals, VehicleStates
from simulator.traffic.trips import too_many


@runtime_checkable
class OwnEngine(Protocol):
    """Traffic of a user's own: `vehicles` and `at`.

    The constructor may have any of the parameters ``roads`` (`RoadNetwork`), ``duration_s`` and ``step_s`` (seconds),
    ``rng`` (`numpy.random.Generator`) and ``bounds`` (x_min, y_min, x_max and y_max of the roads, metres), and
    parameters of its own, which are keys of ``[traffic]``. An object serves one run.

    It may also have ``speeds(time_s)``, the speed of every departed vehicle, (departed,) m/s and 0 off the road, which
    campaigns of speeds and floating-car data need; ``start(env)``, which adds SimPy processes of its own to an
    environment whose time is in ticks of ``step_s``; ``notes()``, sentences for the report; and ``close()``.

    Attributes
    ----------
    vehicles
        Maximum number of vehicles in the whole run, at least 1.
    """

    vehicles: int

    def at(self, time_s: float, /) -> VehicleStates:
        """Return the states of all vehicles that have departed by a time; `VehicleStates.from_coordinates` makes them.

        Parameters
        ----------
        time_s
            Seconds since the start of the run. Times ascend from call to call, and may exceed ``duration_s`` by the
            deadlines of the last query.

        Returns
        -------
        VehicleStates
            In the order of departure: a vehicle keeps its place in the arrays. Coordinates are metres in the
            coordinate system of the roads. The result depends on the time alone, not on the times of earlier calls.
        """
        ...


class UserEngine:
    """Engine of a run over a user's own, whose states are checked.

    Parameters
    ----------
    own
        The user's engine.
    kind
        The name of its kind.
    roads
        The roads.
    clock
        Conversion between ticks and seconds.

    Attributes
    ----------
    vehicles
        Maximum number of vehicles in the whole run.

    Raises
    ------
    InputError
        If `vehicles` is no whole number above 0, or more than memory allows.
    """

    def __init__(self, own: OwnEngine, *, kind: str, roads: RoadNetwork, clock: Clock) -> None:
        number: Any = getattr(own, "vehicles", None)
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
            raise InputError([f"{kind}: vehicles must be a whole number, at least 1, got {number!r}"])
        if fault := too_many(float(number)):
            raise InputError([f"{kind}: {fault}"])
        self._own, self._kind, self._links, self._clock = own, kind, len(roads.links), clock
        self.vehicles = int(number)
        self._env = simpy.Environment()
        self._now_s = -np.inf
        self._states = VehicleStates.from_coordinates(np.empty(0, dtype=np.uint8), np.empty((0, 2)))

    def start(self, env: simpy.Environment) -> None:
        """Use the clock of `env`, and add the user's processes to it, if any."""
        self._env = env
        self._call("start", env)

    def advance(self) -> None:
        """Get the states at `env.now` from the user's engine.

        Raises
        ------
        InputError
            If they are no states, or contradict earlier ones, the roads or the number of vehicles.
        """
        now_s = self._clock.seconds(self._env.now)
        if now_s == self._now_s:
            return
        try:
            states = copied(self._own.at(now_s))
        except InputError as error:
            faults = error.faults
        else:
            faults = [
                fault for _, fault in state_faults(states, self._states, vehicles=self.vehicles, links=self._links)
            ]
        if faults:
            raise InputError(f"{self._kind}: at({now_s:g}) {fault}" for fault in faults)
        self._now_s, self._states = now_s, states

    def places(self) -> VehicleStates:
        """Return the place of every departed vehicle at `env.now`; call `advance` first."""
        return self._states

    def speeds(self) -> FloatArray:
        """Return every departed vehicle's speed at `env.now`, (departed,) m/s; call `advance` first.

        Raises
        ------
        InputError
            If the user's speeds have another shape, or are negative or not finite.
        """
        speeds = np.array(self._call("speeds", self._now_s), dtype=np.float64)
        if fault := speeds_fault(speeds, self._states):
            raise InputError([f"{self._kind}: speeds({self._now_s:g}) {fault}"])
        return speeds

    def totals(self) -> Totals:
        """Return the number of vehicles in each state."""
        return Totals.counted(self._states.state)

    def notes(self) -> list[Note]:
        """Return the notes of the user's engine, if any, and those on vehicles that wait."""
        return [*self.totals().gridlock(planned=self.vehicles), *notes_of("own", map(str, self._call("notes") or ()))]

    def close(self) -> None:
        """Close the user's engine, if it can be closed."""
        self._call("close")

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes held for the states of the vehicles; nothing is held for routes."""
        arrays = (self._states.state, self._states.link, self._states.fraction, self._states.xy)
        return sum(array.nbytes for array in arrays if array is not None), 0

    def _call(self, name: str, *given: object) -> Any:
        method = getattr(self._own, name, None)
        return method(*given) if callable(method) else None

    def __repr__(self) -> str:
        return f"<UserEngine: {self._kind}, {self.vehicles:,} vehicles>"


def copied(states: Any) -> VehicleStates:
    """Return states as arrays of the types of `VehicleStates`, not shared with the user's engine.

    Raises
    ------
    InputError
        If they are no `VehicleStates`, or their arrays have a wrong type or shape.
    """
    if not isinstance(states, VehicleStates):
        raise InputError([f"must return VehicleStates, got {type(states).__name__}"])
    count = np.size(states.state)
    wanted: dict[str, tuple[str, tuple[int, ...]]] = {
        "state": ("iu", (count,)),
        "link": ("iu", (count,)),
        "fraction": ("iuf", (count,)),
    }
    wanted |= {} if states.xy is None else {"xy": ("iuf", (count, 2))}
    faults = [] if states.site is None else ["must leave out site, which only data owners have"]
    for name, (types, shape) in wanted.items():
        array = np.asarray(getattr(states, name))
        if array.shape != shape or (array.dtype.kind not in types and count):
            words = "numbers" if "f" in types else "whole numbers"
            faults.append(f"must return {words} of shape {shape} as {name}, got {array.dtype} of {array.shape}")
    if faults:
        raise InputError(faults)
    xy = None if states.xy is None else np.array(states.xy, dtype=np.float64)
    state, link = np.clip(states.state, 0, 255).astype(np.uint8), np.array(states.link, dtype=np.int32)
    return VehicleStates(state, link, np.array(states.fraction, dtype=np.float64), xy)


def state_faults(
    states: VehicleStates, before: VehicleStates, *, vehicles: int, links: int
) -> Iterator[tuple[str, str]]:
    """Yield the faults of states: what each is about, ``vehicles``, ``states``, ``arrived`` or ``places``, and words.

    Parameters
    ----------
    states
        The states at a time.
    before
        The states at an earlier time.
    vehicles
        Maximum number of vehicles.
    links
        Number of links of the roads.
    """
    if len(states) > vehicles:
        yield "vehicles", f"has {len(states):,} departed vehicles, more than vehicles = {vehicles:,}"
    if len(states) < len(before):
        yield "vehicles", f"has {len(states):,} departed vehicles, fewer than the {len(before):,} at an earlier time"
    common = min(len(states), len(before))
    wrong = ~np.isin(states.state, [*State])
    if wrong.any():
        yield "states", f"has state {states.state[wrong][0]} of vehicle {wrong.argmax()}, which is no State"
    again = (before.state[:common] == State.ARRIVED) & (states.state[:common] != State.ARRIVED)
    if again.any():
        yield "arrived", f"has vehicle {again.argmax()} under way again, which had arrived"
    wrong = (states.link < (-1 if states.xy is not None else 0)) | (states.link >= links)
    if wrong.any():
        known = "" if states.xy is not None else " of every vehicle, as there are no coordinates"
        rule = f"must be 0 to {links - 1}{known or ', or -1 where unknown'}"
        yield "places", f"has link {states.link[wrong][0]} of vehicle {wrong.argmax()}; links {rule}"
    wrong = ~((states.fraction >= 0) & (states.fraction <= 1))
    if states.xy is not None:
        wrong &= ~np.isnan(states.fraction)
    if wrong.any():
        yield "places", f"has fraction {states.fraction[wrong][0]} of vehicle {wrong.argmax()}, not 0 to 1"
    if states.xy is not None:
        wrong = (states.state != State.ABSENT) & ~np.isfinite(states.xy).all(axis=1)
        if wrong.any():
            yield "places", f"has no finite coordinates of vehicle {wrong.argmax()}, which is not absent"


def speeds_fault(speeds: FloatArray, states: VehicleStates) -> str:
    """Return why speeds, m/s, are not those of the departed vehicles of states; "" if they may be."""
    if speeds.shape != (len(states),):
        return f"must return one speed for each departed vehicle, shape {(len(states),)}, got {speeds.shape}"
    if not (np.isfinite(speeds) & (speeds >= 0)).all():
        return "must return finite speeds, at least 0"
    return ""
