"""Population: who can be asked."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simulator.sensing.asked import Answers


@dataclass(frozen=True)
class Population:
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
