"""Trips: vehicle, origin, destination and departure."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from simulator.arrays import FloatArray, Int32Array, Mask
from simulator.files.resources import shortage

MOST_VEHICLES = 2**31 - 1
"""Maximum number of vehicles: their numbers have 32 bits."""
_VEHICLE_NBYTES, _ROUTE_LINK_NBYTES = 64.0, 12.7
"""Memory per vehicle, and per link of its route, including temporary copies; see `vehicles_nbytes`."""


def typical_links(nodes: int) -> float:
    """Return the approximate number of links per trip: two thirds of the side of a square grid with as many nodes."""
    return 2 / 3 * math.sqrt(nodes)


def vehicles_nbytes(vehicles: float, *, nodes: int = 0) -> float:
    """Estimate the memory of vehicles and their routes, bytes.

    Fitted to the peak resident memory of runs of 1,000,000 and 3,000,000 vehicles on grids of 400 and 1,024 nodes.

    Parameters
    ----------
    vehicles
        Number of vehicles.
    nodes
        Number of nodes of the roads; 0 if vehicles have no routes.
    """
    return vehicles * (_VEHICLE_NBYTES + _ROUTE_LINK_NBYTES * typical_links(nodes))


def too_many(vehicles: float, *, nodes: int = 0) -> str | None:
    """Return why so many vehicles are not possible, None if they are. Parameters as in `vehicles_nbytes`."""
    if vehicles > MOST_VEHICLES:
        return f"there must be at most {MOST_VEHICLES:,} vehicles, got {vehicles:,.10g}"
    return shortage(vehicles_nbytes(vehicles, nodes=nodes), to=f"hold {vehicles:,.10g} vehicles")


class VehicleClasses(NamedTuple):
    """What vehicles differ in: the lanes and turns that are open to them, and how fast they can drive.

    Attributes
    ----------
    names
        The classes, which a network's movements name.
    of
        (vehicles,) uint8: the class of each vehicle, an index of `names`.
    speed_mps
        (vehicles,) float64: the highest speed of each vehicle.
    spacing_m
        Mean length of the vehicles and the gap before each in a queue.
    """

    names: tuple[str, ...]
    of: npt.NDArray[np.uint8]
    speed_mps: FloatArray
    spacing_m: float


@dataclass(frozen=True, eq=False)
class Trips:
    """Trips in the order of departure: one per vehicle, or several, which it drives one after the other.

    A vehicle's number is its position in the order of the first departures. The order matters: vehicles that are on the
    road at the same time are adjacent in memory, and the rule of the origin queues (first-in first-out by departure,
    then trip) is the order of the array.

    Parameters
    ----------
    origin, destination
        (trips,) int32, node indices. They are equal only where a trip's route is given and leads back to its origin:
        no shortest path does so, and the path search rejects such a trip.
    departure_tick
        (trips,) int32, ascending: the planned departures. Where a vehicle is still on the way from the trip before, the
        trip begins `stop_ticks` after it arrives.
    vehicle
        (trips,) int32: the vehicle of each trip; None if each has its own.
    stop_ticks
        Least number of ticks between the arrival and the next departure of a vehicle, from 1.

    Raises
    ------
    ValueError
        If lengths differ, departures are not ascending from 0, or vehicles are not numbered by their first departure.
    """

    origin: Int32Array
    destination: Int32Array
    departure_tick: Int32Array
    vehicle: Int32Array | None = None
    stop_ticks: int = 1

    def __post_init__(self) -> None:
        if not (len(self.origin) == len(self.destination) == len(self.departure_tick)):
            raise ValueError(
                "origin, destination and departure_tick must have one length, received "
                f"{len(self.origin)}, {len(self.destination)}, {len(self.departure_tick)}"
            )
        if len(self) and (self.departure_tick[0] < 0 or np.any(np.diff(self.departure_tick) < 0)):
            raise ValueError("departure_tick must ascend from 0 on")
        if self.vehicle is not None and not np.array_equal(pd.factorize(self.vehicle)[0], self.vehicle):
            raise ValueError("vehicle must be the number of each trip's vehicle, in the order of the first departures")

    @classmethod
    def from_unsorted(
        cls,
        origin: npt.ArrayLike,
        destination: npt.ArrayLike,
        tick: npt.ArrayLike,
        vehicle: npt.ArrayLike | None = None,
        stop_ticks: int = 1,
    ) -> "Trips":
        """Return trips in the order of departure; trips of the same tick keep the given order.

        Vehicles, if given, are whole numbers, equal for the trips of one vehicle.
        """
        ticks = np.asarray(tick, dtype=np.int32)
        order = np.argsort(ticks, kind="stable")
        return cls(
            np.ascontiguousarray(np.asarray(origin, dtype=np.int32)[order]),
            np.ascontiguousarray(np.asarray(destination, dtype=np.int32)[order]),
            ticks[order],
            None if vehicle is None else pd.factorize(np.asarray(vehicle)[order])[0].astype(np.int32),
            stop_ticks,
        )

    @property
    def vehicles(self) -> int:
        """Number of vehicles."""
        return len(self) if self.vehicle is None else int(self.vehicle.max(initial=-1)) + 1

    def following(self) -> tuple[Int32Array, Mask]:
        """Return the order of the trips of each vehicle.

        Returns
        -------
        following : ndarray
            (trips,) int32: the next trip of the same vehicle, −1 after the last one; empty if each has only one.
        follows : ndarray
            (trips,) bool: whether the vehicle has a trip before.
        """
        if self.vehicle is None:
            return np.empty(0, dtype=np.int32), np.zeros(len(self), dtype=np.bool_)
        number = pd.Series(np.arange(len(self), dtype=np.int32))
        following = np.array(number.groupby(self.vehicle).shift(-1, fill_value=-1), dtype=np.int32)
        return following, np.array(pd.Series(self.vehicle).duplicated(), dtype=np.bool_)

    def __len__(self) -> int:
        return len(self.departure_tick)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        of_vehicles = 0 if self.vehicle is None else self.vehicle.nbytes
        return self.origin.nbytes + self.destination.nbytes + self.departure_tick.nbytes + of_vehicles

    def __repr__(self) -> str:
        return f"<Trips: {len(self):,} of {self.vehicles:,} vehicles>"
