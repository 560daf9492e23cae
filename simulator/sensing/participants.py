"""Participants: the devices that a query asks, those still present to answer, and when a campaign asks."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Answers = Literal["auto", "reports", "counts"]
"""How answers are simulated: "reports", every device one by one; "counts", all through `sample_counts`; "auto",
vehicles one by one and devices outside through `sample_counts`."""


@dataclass(frozen=True)
class QueriedDevices:
    """The devices of one query, fixed at round one's moment.

    Attributes
    ----------
    vehicles
        The number of vehicles asked.
    outside
        The number of further devices asked that are in no cell (the papers' No population).
    """

    vehicles: int
    outside: int

    @property
    def devices(self) -> int:
        """All devices asked."""
        return self.vehicles + self.outside


@dataclass(frozen=True, eq=False)
class Respondents:
    """The devices still present to answer at a moment.

    Attributes
    ----------
    vehicles
        (vehicles,) bool: whether each vehicle is present.
    outside
        The number of outside devices present; always the first ones.
    """

    vehicles: npt.NDArray[np.bool_]
    outside: int

    @property
    def devices(self) -> int:
        """All devices that answer."""
        return int(np.count_nonzero(self.vehicles)) + self.outside


@dataclass(frozen=True)
class QueriedPopulation:
    """The devices that can be asked.

    Attributes
    ----------
    takes_part
        (vehicles,) bool, drawn once for each vehicle.
    outside
        The number of devices asked that are in no cell.
    parked_answer
        Whether vehicles that have arrived are asked.
    answers
        Whether devices are simulated one by one or by counts.
    """

    takes_part: npt.NDArray[np.bool_]
    outside: int = 0
    parked_answer: bool = False
    answers: Answers = "auto"


@dataclass(frozen=True)
class Schedule:
    """The times at which a campaign asks.

    Attributes
    ----------
    start_s, every_s
        Time of round one of the first query, and seconds from one query to the next.
    queries
        The number of queries.
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
