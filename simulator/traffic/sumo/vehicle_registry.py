"""Vehicle registry: SUMO's vehicles in order of departure, and the state of each."""

import heapq
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from simulator.files.errors import InputError
from simulator.files.messages import counted
from simulator.traffic.engine import State
from simulator.traffic.sumo.inputs import UNKNOWN

_NEARLY = 1e-9


class Roster:
    """Registry that numbers every vehicle at its scheduled departure, whether or not SUMO can insert it then.

    So numbers depend on SUMO's traffic only, not on the times of queries. Vehicles with equal departures are numbered
    in the order in which SUMO loaded them.

    Parameters
    ----------
    most
        Maximum number of vehicles.
    unscheduled
        Ids of vehicles whose scheduled departure is their actual departure.
    """

    def __init__(self, most: int, unscheduled: frozenset[str] = frozenset()) -> None:
        self._most, self._unscheduled = most, unscheduled
        # Rows of vehicles that wait, are on the road or are teleporting; an id may recur once its vehicle has arrived.
        self._row: dict[str, int] = {}
        self._due: list[tuple[float, int, str, int, int]] = []
        self._loaded = 0
        self.departed = 0
        self._state = np.zeros(0, dtype=np.uint8)
        self._first_edge = np.zeros(0, dtype=np.int32)
        self._last_edge = np.zeros(0, dtype=np.int32)
        self._scheduled_s = np.zeros(0, dtype=np.float64)
        self._count = dict.fromkeys(State, 0)
        self.trip_time_s = 0.0

    def load(self, vehicle: str, scheduled_s: float, first_edge: int, last_edge: int) -> None:
        """Record a vehicle that will depart at `scheduled_s`, and the numbers of its trip's first and last edges."""
        if vehicle not in self._unscheduled:
            heapq.heappush(self._due, (scheduled_s, self._loaded, vehicle, first_edge, last_edge))
            self._loaded += 1

    def schedule(self, now_s: float) -> None:
        """Assign numbers to all vehicles whose scheduled departure has come."""
        while self._due and self._due[0][0] <= now_s + _NEARLY:
            scheduled_s, _, vehicle, first_edge, last_edge = heapq.heappop(self._due)
            self.settle(self._add(vehicle, scheduled_s), first_edge, last_edge)

    def depart(self, vehicle: str, now_s: float) -> int:
        """Put a vehicle on the road, and return its number."""
        row = self._row.get(vehicle)
        if row is None:
            row = self._add(vehicle, now_s)
        self._turn(row, State.ON_ROAD)
        return row

    def settle(self, row: int, first_edge: int, last_edge: int) -> None:
        """Record the first and last edges of a vehicle's trip."""
        self._first_edge[row], self._last_edge[row] = first_edge, last_edge

    def vanish(self, vehicle: str) -> None:
        """Mark a vehicle that has not arrived as absent: it may come back."""
        if vehicle in self._row:
            self._turn(self._row[vehicle], State.ABSENT)

    def reappear(self, vehicle: str) -> None:
        """Put an absent vehicle back on the road."""
        if vehicle in self._row:
            self._turn(self._row[vehicle], State.ON_ROAD)

    def arrive(self, vehicle: str, now_s: float) -> None:
        """End a vehicle's trip; do nothing for a vehicle without a number."""
        row = self._row.pop(vehicle, None)
        if row is not None:
            self._turn(row, State.ARRIVED)
            self.trip_time_s += now_s - float(self._scheduled_s[row])

    def reconcile_waiting(self, pending: Iterable[str]) -> None:
        """Correct the waiting vehicles: SUMO may discard a vehicle that it could not insert, or resume one."""
        rows = {self._row[vehicle] for vehicle in pending if vehicle in self._row}
        for row in np.flatnonzero(self.state == State.WAITING).tolist():
            if row not in rows:
                self._turn(row, State.ABSENT)
        for row in rows:
            self._turn(row, State.WAITING)

    def row_of(self, vehicle: str) -> int | None:
        """Return the number of a vehicle that has not arrived, None if it has no number."""
        return self._row.get(vehicle)

    @property
    def state(self) -> npt.NDArray[np.uint8]:
        """(departed,) uint8, a `State`; a view."""
        return self._state[: self.departed]

    @property
    def first_edge(self) -> npt.NDArray[np.int32]:
        """(departed,) int32, number of a trip's first edge, -1 where unknown; a view."""
        return self._first_edge[: self.departed]

    @property
    def last_edge(self) -> npt.NDArray[np.int32]:
        """(departed,) int32, number of a trip's last edge, -1 where unknown; a view."""
        return self._last_edge[: self.departed]

    def count(self, state: State) -> int:
        """Return the number of vehicles in `state`."""
        return self._count[state]

    @property
    def nbytes(self) -> int:
        """Bytes held by the arrays."""
        return self._state.nbytes + self._first_edge.nbytes + self._last_edge.nbytes + self._scheduled_s.nbytes

    def _turn(self, row: int, state: State) -> None:
        self._count[State(self._state[row])] -= 1
        self._state[row] = state
        self._count[state] += 1

    def _add(self, vehicle: str, scheduled_s: float) -> int:
        row = self.departed
        if row == self._most:
            rule = f"its files were taken to hold at most {counted(self._most, 'vehicle')} until the end of the run"
            raise InputError([f"SUMO drives more vehicles than expected: {rule}; it inserted {vehicle!r} beyond"])
        if row == len(self._state):
            self._grow()
        self._row[vehicle] = row
        self._state[row] = State.WAITING
        self._scheduled_s[row] = scheduled_s
        self._count[State.WAITING] += 1
        self.departed += 1
        return row

    def _grow(self) -> None:
        size = min(self._most, max(1024, 2 * len(self._state)))
        more = size - len(self._state)
        self._state = np.concatenate([self._state, np.zeros(more, dtype=np.uint8)])
        self._first_edge = np.concatenate([self._first_edge, np.full(more, UNKNOWN, dtype=np.int32)])
        self._last_edge = np.concatenate([self._last_edge, np.full(more, UNKNOWN, dtype=np.int32)])
        self._scheduled_s = np.concatenate([self._scheduled_s, np.zeros(more, dtype=np.float64)])
