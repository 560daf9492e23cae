"""Asked: whom a query asks, and who is still there to answer."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Answers = Literal["auto", "reports", "counts"]
"""How devices answer: "reports", every device one by one; "counts", all through `sample_counts`; "auto", vehicles one
by one and devices outside through counts."""


@dataclass(frozen=True)
class Asked:
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
class Present:
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
