"""Poisoning: what corrupted vehicles send to inflate a cell."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanisms.inference import crafted_encodings, forged_reports, inflation


@dataclass(frozen=True, eq=False)
class Forgery:
    """What corrupted vehicles send in place of their reports.

    Parameters
    ----------
    reports
        By round, well-formed; None where vectors are sent.
    vectors
        (rounds, n, *tally_shape) int64, of any form; None where reports are sent.
    per_vehicle
        What one of them adds to the estimate of the cell, in vehicles.
    """

    reports: tuple[Any, ...] | None
    vectors: npt.NDArray[np.int64] | None
    per_vehicle: float


def forge_reports(mechanism: Any, cell: int, devices: int) -> Forgery:
    """Return well-formed reports of so many vehicles that raise a cell's estimate as far as such reports can.

    Raises
    ------
    NoLikelihoodError
        If nobody has said which of the mechanism's reports matter, or none is the greatest.
    """
    found = forged_reports(mechanism, cell, devices)
    return Forgery(found, None, inflation(mechanism, cell, devices, crafted=False).per_vehicle)


def craft_reports(mechanism: Any, cell: int, devices: int, *, magnitude: int) -> Forgery:
    """Return vectors of any form, entries within ±magnitude, that raise a cell's estimate as far as those can."""
    one = crafted_encodings(mechanism, cell, magnitude)
    vectors = np.repeat(np.asarray(one)[:, np.newaxis], devices, axis=1)
    per_vehicle = inflation(mechanism, cell, devices, crafted=True, magnitude=magnitude).per_vehicle
    return Forgery(None, vectors, per_vehicle)
