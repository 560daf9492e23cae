"""Registries of SUMO's vehicles in order of departure, with the state of each, and of the edges of their trips."""

import heapq
from collections.abc import Iterable, KeysView, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from simulator.arrays import FloatArray, Int32Array
from simulator.files.errors import RejectionError
from simulator.files.messages import counted
from simulator.traffic.engine import State

_NEARLY = 1e-9
UNKNOWN = -1
_ROW = np.dtype([("state", np.uint8), ("first_edge", np.int32), ("last_edge", np.int32), ("scheduled_s", np.float64)])


class VehicleRegistry:
    """Registry that numbers every vehicle at its scheduled departure, whether or not SUMO can insert it then.

    So numbers depend on SUMO's traffic only, not on the times of queries. Vehicles with equal departures are numbered
    in the order in which SUMO loaded them.

    Parameters
    ----------
    most
        Maximum number of vehicles.
    unscheduled
        Ids of vehicles whose scheduled departure is their actual departure.

    Attributes
    ----------
    departed
        Number of vehicles that have a number.
    names, classes
        SUMO's ids and classes by number.
    """

    def __init__(self, most: int, unscheduled: frozenset[str] = frozenset()) -> None:
        self._most, self._unscheduled = most, unscheduled
        # Rows of vehicles that wait, are on the road or are teleporting; an id may recur once its vehicle has arrived.
        self._row: dict[str, int] = {}
        self._due: list[tuple[float, int, str, str, int, int]] = []
        self._loaded = 0
        self.departed = 0
        self.names: list[str] = []
        self.classes: list[str] = []
        self._rows = np.zeros(0, dtype=_ROW)
        self.trip_time_s = 0.0

    def load(self, vehicle: str, scheduled_s: float, class_: str, first_edge: int, last_edge: int) -> None:
        """Record a vehicle that will depart at `scheduled_s`, its class, and its trip's first and last edges."""
        if vehicle not in self._unscheduled:
            heapq.heappush(self._due, (scheduled_s, self._loaded, vehicle, class_, first_edge, last_edge))
            self._loaded += 1

    def schedule(self, now_s: float) -> None:
        """Assign numbers to all vehicles whose scheduled departure has come."""
        while self._due and self._due[0][0] <= now_s + _NEARLY:
            scheduled_s, _, vehicle, class_, first_edge, last_edge = heapq.heappop(self._due)
            self.settle(self._add(vehicle, scheduled_s, class_), first_edge, last_edge)

    def depart(self, vehicle: str, now_s: float, class_: str) -> int:
        """Put a vehicle on the road, and return its number."""
        if (row := self._row.get(vehicle)) is None:
            row = self._add(vehicle, now_s, class_)
        self._rows["state"][row] = State.ON_ROAD
        return row

    def settle(self, row: int, first_edge: int, last_edge: int) -> None:
        """Record the first and last edges of a vehicle's trip."""
        self._rows["first_edge"][row], self._rows["last_edge"][row] = first_edge, last_edge

    def change(self, vehicle: str, state: State) -> None:
        """Change the state of a vehicle that has not arrived, which may be absent for a while."""
        if vehicle in self._row:
            self.rows["state"][self._row[vehicle]] = state

    def arrive(self, vehicle: str, now_s: float) -> None:
        """End a vehicle's trip; do nothing for a vehicle without a number."""
        if (row := self._row.pop(vehicle, None)) is not None:
            self._rows["state"][row] = State.ARRIVED
            self.trip_time_s += now_s - float(self._rows["scheduled_s"][row])

    def reconcile_waiting(self, pending: Iterable[str]) -> None:
        """Correct the waiting vehicles: SUMO may discard a vehicle that it could not insert, or resume one."""
        state = self.rows["state"]
        state[state == State.WAITING] = State.ABSENT
        state[[self._row[vehicle] for vehicle in pending if vehicle in self._row]] = State.WAITING

    def row_of(self, vehicle: str) -> int:
        """Return the number of a vehicle that has not arrived, -1 if it has no number."""
        return self._row.get(vehicle, UNKNOWN)

    @property
    def rows(self) -> npt.NDArray[np.void]:
        """(departed,) records, a view: `state`, a `State`; `first_edge`, `last_edge`, -1 if unknown; `scheduled_s`."""
        return self._rows[: self.departed]

    def count(self, state: State) -> int:
        """Return the number of vehicles in `state`."""
        return int(np.count_nonzero(self.rows["state"] == state))

    @property
    def nbytes(self) -> int:
        """Bytes held by the arrays."""
        return self._rows.nbytes

    def _add(self, vehicle: str, scheduled_s: float, class_: str) -> int:
        row = self.departed
        if row == self._most:
            rule = f"its files were taken to hold at most {counted(self._most, 'vehicle')} until the end of the run"
            raise RejectionError([f"SUMO drives more vehicles than expected: {rule}; it inserted {vehicle!r} beyond"])
        if row == len(self._rows):
            more = min(self._most, max(1024, 2 * row)) - row
            self._rows = np.concatenate([self._rows, np.zeros(more, dtype=_ROW)])
        self._row[vehicle] = row
        self.names.append(vehicle)
        self.classes.append(class_)
        self._rows[row] = State.WAITING, UNKNOWN, UNKNOWN, scheduled_s
        self.departed += 1
        return row


class Edges:
    """Numbering of the edges that trips name, with their links and end points.

    Parameters
    ----------
    ends
        x and y of the start and end of each edge of the network, by SUMO's id, in SUMO's coordinates.
    link_of
        The city's link of each edge that is part of the city.
    """

    def __init__(self, ends: Mapping[str, Sequence[float]], link_of: Mapping[str, int]) -> None:
        self._link_of = link_of
        self._number = {edge: number for number, edge in enumerate(ends)}
        # Number -1 selects the last row.
        self._places = np.array([*ends.values(), (np.nan,) * 4], dtype=np.float64)
        self._links = np.array([*map(self.link, ends), -1], dtype=np.int32)

    @property
    def names(self) -> KeysView[str]:
        """SUMO's ids of the network's edges."""
        return self._number.keys()

    def number(self, edge: str) -> int:
        """Return the edge's number, -1 if the network has no such edge."""
        return self._number.get(edge, UNKNOWN)

    def link(self, edge: str) -> int:
        """Return the city's link of an edge; -1 if it is not part of the city."""
        return self._link_of.get(edge, -1)

    def places(self, numbers: Int32Array) -> tuple[Int32Array, FloatArray]:
        """Return the links of edges, and x and y of their start and end points in SUMO's coordinates, (n, 4).

        Number -1 gives -1 and NaN.
        """
        return self._links[numbers], self._places[numbers]
