"""Planned traffic: trips, their routes where those are given, and what was left out."""

from dataclasses import dataclass

from simulator.traffic.routes import Routes
from simulator.traffic.trips import Trips


@dataclass(frozen=True, eq=False)
class Planned:
    """What is to be driven.

    Attributes
    ----------
    trips
        In the order of departure.
    routes
        One a trip, where the demand gives them; None where they are still to be found.
    notes
        What was left out, summed or filled in, one sentence each.
    """

    trips: Trips
    routes: Routes | None = None
    notes: tuple[str, ...] = ()
