"""Program that runs SUMO's library in a child process; `SumoProcess` starts it, and no module imports it.

Its arguments are SUMO's. It reads requests from its standard input and writes answers to its standard output, one JSON
value per line. A request is a list: the name of a method of `Requests`, and its arguments. The first answer, without a
request, is SUMO's version, once SUMO has read its files. The program listens on no port. It ends when its input ends:
when the parent process closes SUMO, or has ended for any reason.
"""

import json
import os
import sys
from typing import Any


class Requests:
    """Requests to SUMO; each returns a JSON value; positions are in SUMO's coordinates.

    Parameters
    ----------
    sumo
        The library libsumo.
    """

    def __init__(self, sumo: Any) -> None:
        self._sumo = sumo
        self._length_m: dict[str, float] = {}

    def edges(self) -> dict[str, list[float]]:
        """Return x and y of the start and end of each edge, on its rightmost lane.

        Edges within junctions, and edges that only represent a zone, are left out.
        """
        lanes = (lane for lane in self._sumo.lane.getIDList() if not lane.startswith(":"))
        return {edge: self._ends(edge) for edge in sorted({lane.rpartition("_")[0] for lane in lanes})}

    def _ends(self, edge: str) -> list[float]:
        length_m = self._edge_length_m(edge)
        convert = self._sumo.simulation.convert2D
        return [*convert(edge, 0.0)[:2], *convert(edge, length_m)[:2]]

    def signals(self) -> int:
        """Count the signals of the network."""
        return len(self._sumo.trafficlight.getIDList())

    def events(self) -> list[object]:
        """Return the events of the last step, or of reading the files: the fields of `Events`."""
        simulation = self._sumo.simulation
        delay_s = self._sumo.vehicle.getDepartDelay
        return [
            [(vehicle, delay_s(vehicle), *self._trip(vehicle)) for vehicle in simulation.getLoadedIDList()],
            [(vehicle, *self._trip(vehicle)) for vehicle in simulation.getDepartedIDList()],
            simulation.getStartingTeleportIDList(),
            simulation.getEndingTeleportIDList(),
            simulation.getArrivedIDList(),
            simulation.getCollidingVehiclesNumber(),
            simulation.getEmergencyStoppingVehiclesNumber(),
        ]

    def _trip(self, vehicle: str) -> tuple[str, str, str]:
        route = self._sumo.vehicle.getRoute(vehicle)
        return self._sumo.vehicle.getVehicleClass(vehicle), route[0], route[-1]

    def step(self) -> list[object]:
        """Advance SUMO by one step, and return its events."""
        self._sumo.simulationStep()
        return self.events()

    def pending(self) -> list[str]:
        """Return the vehicles whose departure time has come but which SUMO could not insert yet."""
        return list(self._sumo.simulation.getPendingVehicles())

    def vehicles(self) -> list[list[Any]]:
        """Return the vehicles on the road, parked ones included.

        Returns
        -------
        list
            Lists of their ids, edges, fractions of the edge that they have driven, x, y and speeds in m/s. A vehicle
            within a junction is at the end of the edge that it leaves. The speed is below 0 where SUMO does not know
            it.
        """
        vehicle = self._sumo.vehicle
        ids = list(vehicle.getIDList())
        edges, fractions = [], []
        for each in ids:
            edge, fraction = vehicle.getRoadID(each), 1.0
            if edge.startswith(":"):
                edge = vehicle.getRoute(each)[vehicle.getRouteIndex(each)]
            else:
                fraction = min(max(vehicle.getLanePosition(each) / self._edge_length_m(edge), 0.0), 1.0)
            edges.append(edge)
            fractions.append(fraction)
        places = [vehicle.getPosition(each) for each in ids]
        x, y = [place[0] for place in places], [place[1] for place in places]
        return [ids, edges, fractions, x, y, [vehicle.getSpeed(each) for each in ids]]

    def _edge_length_m(self, edge: str) -> float:
        if edge not in self._length_m:
            self._length_m[edge] = self._sumo.lane.getLength(f"{edge}_0")
        return self._length_m[edge]

    def draw(self, steps: int) -> list[Any]:
        """Advance SUMO by a number of steps, and remove each vehicle when it departs, so that the roads stay empty.

        Returns
        -------
        list
            The departed vehicles: lists of their ids, scheduled departures in seconds, and numbers of their routes;
            and the edges of these routes.
        """
        simulation, vehicle = self._sumo.simulation, self._sumo.vehicle
        ids, depart_s, numbers = [], [], []
        routes: dict[tuple[str, ...], int] = {}
        for _ in range(steps):
            self._sumo.simulationStep()
            for each in simulation.getDepartedIDList():
                ids.append(each)
                depart_s.append(vehicle.getDeparture(each) - vehicle.getDepartDelay(each))
                numbers.append(routes.setdefault(tuple(vehicle.getRoute(each)), len(routes)))
                vehicle.remove(each)
        return [ids, depart_s, numbers, list(routes)]


def main() -> int:
    """Run SUMO with the program's arguments and answer requests until there are no more; return the exit code."""
    with os.fdopen(os.dup(1), "w", encoding="ascii") as answers:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # libsumo prints to it

        def answer(kind: str, value: object) -> None:
            answers.write(json.dumps([kind, value]) + "\n")
            answers.flush()

        # libsumo imports sumolib, which imports these if available. They are not used here, and cost half of the start
        # time.
        sys.modules.update(dict.fromkeys(("numpy", "pyproj")))  # type: ignore[arg-type]  # None forbids the import
        try:
            import libsumo  # noqa: PLC0415 - may lack a library of the system
        except ImportError as error:
            sys.stderr.write(f"Error: {error}\n")
            return 1
        try:
            answer("answer", libsumo.start(["sumo", *sys.argv[1:]])[1])
        except libsumo.TraCIException as error:
            sys.stderr.write(f"Error: {error}\n")
            return 1
        requests = Requests(libsumo)
        for line in sys.stdin:
            name, arguments = json.loads(line)
            try:
                answer("answer", getattr(requests, name)(*arguments))
            except (libsumo.TraCIException, libsumo.FatalTraCIError) as error:
                answer("error", str(error))
        libsumo.close()  # this writes the outputs of its configuration
    return 0


if __name__ == "__main__":
    sys.exit(main())
