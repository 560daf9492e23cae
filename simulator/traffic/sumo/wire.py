"""What the engine asks of a running SUMO, in few and large requests."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from simulator.traffic.sumo.installation import traci_module

_EVERYWHERE_M = 1e9
Point = tuple[float, float]


class Events(NamedTuple):
    """What happened to vehicles in a step, by id; and how many of them collided or braked in an emergency."""

    loaded: Sequence[str]
    departed: Sequence[str]
    teleport_starts: Sequence[str]
    teleport_ends: Sequence[str]
    arrived: Sequence[str]
    colliding: int
    emergency_stops: int


class Planned(NamedTuple):
    """When a vehicle is to depart, and from which edge to which.

    Attributes
    ----------
    delay_s
        How late it departed; of one that has not, SUMO's time since it should have, or below 0.
    first_edge, last_edge
        Of a vehicle between zones, those of the zones: not the network's.
    """

    delay_s: float
    first_edge: str
    last_edge: str


class Seen(NamedTuple):
    """Vehicles on the road at a moment.

    Attributes
    ----------
    vehicles, edges
        One id each; of a vehicle within a junction, an edge whose name begins with a colon.
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
    """Speaks TraCI over a connection; raises traci's exceptions, which `SumoServer.asking` turns into ours.

    Parameters
    ----------
    connection
        Of `SumoServer.asking`; lent for one request each, so `Wire` is made anew for each.
    """

    def __init__(self, connection: Any) -> None:
        self._sumo = connection
        self._names = traci_module().constants

    def edges(self) -> set[str]:
        """Return the edges that have lanes: none within junctions, and none that only stands for a zone."""
        lanes = self._sumo.lane.getIDList()
        return {lane.rpartition("_")[0] for lane in lanes if not lane.startswith(":")}

    def signals(self) -> int:
        """Count the signals of the network."""
        return len(self._sumo.trafficlight.getIDList())

    def subscribe(self) -> Events:
        """Have SUMO tell its events with every step, and return those of reading its files."""
        names = self._names
        self._sumo.simulation.subscribe(
            [
                names.VAR_LOADED_VEHICLES_IDS,
                names.VAR_DEPARTED_VEHICLES_IDS,
                names.VAR_TELEPORT_STARTING_VEHICLES_IDS,
                names.VAR_TELEPORT_ENDING_VEHICLES_IDS,
                names.VAR_ARRIVED_VEHICLES_IDS,
                names.VAR_COLLIDING_VEHICLES_NUMBER,
                names.VAR_EMERGENCYSTOPPING_VEHICLES_NUMBER,
            ]
        )
        return self._events()

    def step(self) -> Events:
        """Make one step."""
        self._sumo.simulationStep()
        return self._events()

    def _events(self) -> Events:
        names, told = self._names, self._sumo.simulation.getSubscriptionResults()
        return Events(
            told[names.VAR_LOADED_VEHICLES_IDS],
            told[names.VAR_DEPARTED_VEHICLES_IDS],
            told[names.VAR_TELEPORT_STARTING_VEHICLES_IDS],
            told[names.VAR_TELEPORT_ENDING_VEHICLES_IDS],
            told[names.VAR_ARRIVED_VEHICLES_IDS],
            told[names.VAR_COLLIDING_VEHICLES_NUMBER],
            told[names.VAR_EMERGENCYSTOPPING_VEHICLES_NUMBER],
        )

    def planned(self, vehicle: str) -> Planned:
        """Return what is planned for a vehicle that was just loaded."""
        delay_s = float(self._sumo.vehicle.getDepartDelay(vehicle))
        return Planned(delay_s, *self.route_ends(vehicle))

    def pending(self) -> Sequence[str]:
        """Return the vehicles whose departure has come and which SUMO could not insert yet."""
        found: Sequence[str] = self._sumo.simulation.getPendingVehicles()
        return found

    def route_ends(self, vehicle: str) -> tuple[str, str]:
        """Return the first and the last edge of a vehicle's route."""
        route = self._sumo.vehicle.getRoute(vehicle)
        return route[0], route[-1]

    def edge_ends(self, edge: str) -> tuple[Point, Point]:
        """Return where an edge begins and ends, on its rightmost lane, SUMO's coordinates."""
        length_m = self._sumo.lane.getLength(f"{edge}_0")
        begin, end = (self._sumo.simulation.convert2D(edge, at_m) for at_m in (0.0, length_m))
        return (begin[0], begin[1]), (end[0], end[1])

    def vehicles(self) -> Seen:
        """Return all vehicles on the road, in one request: those in a circle about a junction that holds the world.

        For 700 vehicles that takes 7 ms, where asking each for its position alone takes 60.
        """
        names, sumo = self._names, self._sumo
        middle = sumo.junction.getIDList()[0]
        around = (middle, names.CMD_GET_VEHICLE_VARIABLE, _EVERYWHERE_M)
        # SUMO answers a subscription at once; it is ended before the next step would answer it again.
        sumo.junction.subscribeContext(*around, [names.VAR_POSITION, names.VAR_SPEED, names.VAR_ROAD_ID])
        told = sumo.junction.getContextSubscriptionResults(middle)
        sumo.junction.unsubscribeContext(*around)
        rows = [
            (vehicle, said[names.VAR_ROAD_ID], *said[names.VAR_POSITION][:2], said[names.VAR_SPEED])
            for vehicle, said in told.items()
        ]
        # Who is parked beside the road is in no lane, so in no circle.
        for vehicle in sorted(set(sumo.vehicle.getIDList()) - told.keys()):
            place = sumo.vehicle.getPosition(vehicle)
            rows.append((vehicle, sumo.vehicle.getRoadID(vehicle), *place[:2], sumo.vehicle.getSpeed(vehicle)))
        numbers = np.array([row[2:] for row in rows], dtype=np.float64).reshape(-1, 3)
        # SUMO's own "unknown" speed is far below 0.
        return Seen([row[0] for row in rows], [row[1] for row in rows], numbers[:, :2], np.maximum(numbers[:, 2], 0.0))
