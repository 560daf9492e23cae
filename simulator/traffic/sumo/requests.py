"""Requests to a running SUMO, combined into a few large ones."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from simulator.traffic.sumo.inputs import traci_constants

_EVERYWHERE_M = 1e9
Point = tuple[float, float]
_EVENTS = (
    "VAR_LOADED_VEHICLES_IDS",
    "VAR_DEPARTED_VEHICLES_IDS",
    "VAR_TELEPORT_STARTING_VEHICLES_IDS",
    "VAR_TELEPORT_ENDING_VEHICLES_IDS",
    "VAR_ARRIVED_VEHICLES_IDS",
    "VAR_COLLIDING_VEHICLES_NUMBER",
    "VAR_EMERGENCYSTOPPING_VEHICLES_NUMBER",
)
"""SUMO's variables, in the order of the fields of `Events`."""


class Events(NamedTuple):
    """Events of a step: ids of the vehicles concerned, and numbers of collisions and emergency stops."""

    loaded: Sequence[str]
    departed: Sequence[str]
    teleport_starts: Sequence[str]
    teleport_ends: Sequence[str]
    arrived: Sequence[str]
    colliding: int
    emergency_stops: int


class PlannedVehicles(NamedTuple):
    """Planned departure of a vehicle, and the first and last edge of its trip.

    Attributes
    ----------
    delay_s
        Delay of its departure; before departure, SUMO's time since the planned departure, below 0 if it is in the
        future.
    first_edge, last_edge
        First and last edge; for a vehicle between zones, those of the zones, which are not edges of the network.
    """

    delay_s: float
    first_edge: str
    last_edge: str


class ObservedVehicles(NamedTuple):
    """Vehicles on the road at a moment.

    Attributes
    ----------
    vehicles, edges
        Ids of the vehicles and of their edges; within a junction, the edge's name begins with a colon.
    xy
        (vehicles, 2) float64, SUMO's coordinates of the vehicle's front, metres.
    speed_mps
        (vehicles,) float64.
    """

    vehicles: list[str]
    edges: list[str]
    xy: npt.NDArray[np.float64]
    speed_mps: npt.NDArray[np.float64]


class Wire:
    """Requests to SUMO by the functions of its library; `SumoServer.asking` converts their exceptions to our errors.

    Parameters
    ----------
    ask
        Function from `SumoServer.asking`. It is valid for a few requests only, so each group needs a new `Wire`.
    """

    def __init__(self, ask: Callable[..., Any]) -> None:
        self._ask = ask
        self._numbers = traci_constants()

    def edges(self) -> set[str]:
        """Return the edges that have lanes, without edges within junctions and edges that only represent a zone."""
        return {lane.rpartition("_")[0] for lane in self._ask("lane.getIDList") if not lane.startswith(":")}

    def signals(self) -> int:
        """Count the signals of the network."""
        return len(self._ask("trafficlight.getIDList"))

    def subscribe(self) -> Events:
        """Make SUMO collect its events in every step, and return the events from reading its files."""
        self._ask("simulation.subscribe", [getattr(self._numbers, name) for name in _EVENTS])
        return self._events()

    def step(self) -> Events:
        """Advance SUMO by one step, and return its events."""
        self._ask("simulationStep")
        return self._events()

    def _events(self) -> Events:
        told = self._ask("simulation.getSubscriptionResults")
        return Events(*(told[self._key(name)] for name in _EVENTS))

    def _key(self, name: str) -> str:
        """Return a variable's key in an answer, as text because JSON keys are text."""
        return str(getattr(self._numbers, name))

    def planned(self, vehicle: str) -> PlannedVehicles:
        """Return the planned trip of a vehicle that was just loaded."""
        return PlannedVehicles(float(self._ask("vehicle.getDepartDelay", vehicle)), *self.route_ends(vehicle))

    def pending(self) -> Sequence[str]:
        """Return the vehicles whose departure time has come but which SUMO could not insert yet."""
        found: Sequence[str] = self._ask("simulation.getPendingVehicles")
        return found

    def route_ends(self, vehicle: str) -> tuple[str, str]:
        """Return the first and the last edge of a vehicle's route."""
        route = self._ask("vehicle.getRoute", vehicle)
        return route[0], route[-1]

    def edge_ends(self, edge: str) -> tuple[Point, Point]:
        """Return the start and end points of an edge, on its rightmost lane, in SUMO's coordinates."""
        length_m = self._ask("lane.getLength", f"{edge}_0")
        begin, end = (self._ask("simulation.convert2D", edge, at_m) for at_m in (0.0, length_m))
        return (begin[0], begin[1]), (end[0], end[1])

    def vehicles(self) -> ObservedVehicles:
        """Return all vehicles on the road, by one request for a circle around a junction that contains the network.

        For 700 vehicles this takes 7 ms, while requesting the position of each vehicle separately takes 60 ms.
        """
        ask, numbers = self._ask, self._numbers
        middle = ask("junction.getIDList")[0]
        around = (middle, numbers.CMD_GET_VEHICLE_VARIABLE, _EVERYWHERE_M)
        # SUMO answers a subscription at once; it is cancelled before the next step would answer it again.
        ask("junction.subscribeContext", *around, [numbers.VAR_POSITION, numbers.VAR_SPEED, numbers.VAR_ROAD_ID])
        told = ask("junction.getContextSubscriptionResults", middle)
        ask("junction.unsubscribeContext", *around)
        road, position, speed = map(self._key, ("VAR_ROAD_ID", "VAR_POSITION", "VAR_SPEED"))
        rows = [(vehicle, said[road], *said[position][:2], said[speed]) for vehicle, said in told.items()]
        # Vehicles parked beside the road are in no lane, so the circle does not contain them.
        for vehicle in sorted(set(ask("vehicle.getIDList")) - told.keys()):
            place = ask("vehicle.getPosition", vehicle)
            rows.append((vehicle, ask("vehicle.getRoadID", vehicle), *place[:2], ask("vehicle.getSpeed", vehicle)))
        xyv = np.array([row[2:] for row in rows], dtype=np.float64).reshape(-1, 3)
        # SUMO's value for an unknown speed is far below 0.
        return ObservedVehicles(
            [row[0] for row in rows], [row[1] for row in rows], xyv[:, :2], np.maximum(xyv[:, 2], 0.0)
        )
