"""Participants: the devices that a query asks, those still present to answer, and when a campaign asks."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Answers = Literal["auto", "reports", "counts"]
"""How devices answer: "reports", every device one by one; "counts", all through `sample_counts`; "auto", vehicles one
by one and devices outside through counts."""


@dataclass(frozen=True)
class QueriedDevices:
    """The devices of one query, fixed at round one's moment.

    Attributes
    ----------
    vehicles
        How many vehicles are asked.
    outside
        How many devices besides are asked that are in no cell (the papers' No population).
    """

    vehicles: int
    outside: int

    @property
    def devices(self) -> int:
        """All devices asked."""
        return self.vehicles + self.outside


@dataclass(frozen=True, eq=False)
class Respondents:
    """Who is still there to answer at a moment.

    Attributes
    ----------
    vehicles
        (vehicles,) bool.
    outside
        How many of the outside devices, always the first ones.
    """

    vehicles: npt.NDArray[np.bool_]
    outside: int

    @property
    def devices(self) -> int:
        """All devices that answer."""
        return int(np.count_nonzero(self.vehicles)) + self.outside


@dataclass(frozen=True)
class QueriedPopulation:
    """Who can be asked.

    Attributes
    ----------
    takes_part
        (vehicles,) bool, drawn once a vehicle.
    outside
        Devices asked that are in no cell.
    parked_answer
        Whether vehicles that have arrived are asked.
    answers
        One by one, or by counts.
    """

    takes_part: npt.NDArray[np.bool_]
    outside: int = 0
    parked_answer: bool = False
    answers: Answers = "auto"


@dataclass(frozen=True)
class Schedule:
    """When a campaign asks.

    Attributes
    ----------
    start_s, every_s
        Round one of the first query, and seconds from query to query.
    queries
        How many.
    round_gap_s
        Seconds between two rounds.
    deadline_s
        Seconds a round stays open after it is asked.
    """

    start_s: float
    every_s: float
    queries: int
    round_gap_s: float
    deadline_s: float
