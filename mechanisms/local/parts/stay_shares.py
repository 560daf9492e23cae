"""What devices that are not shifted answer, every time the same: the three shares of it."""

import math
from collections.abc import Sequence
from typing import TypeAlias

from mechanisms.local.parts.question import ROUNDING
from mechanisms.parameter import ParameterError, check_probability

Stay: TypeAlias = tuple[float, float, float]


def stay_shares(shift: float, stay: Sequence[float] | None) -> Stay:
    """Return π_⊥1, π_⊥2 and π_⊥3, which sum to 1 − shift: as given, or equal if none are.

    Raises
    ------
    ParameterError
        If they are not three probabilities, or do not sum to 1 − shift within 1e-9.
    """
    left = 1.0 - shift
    if stay is None:
        return (left / 3, left / 3, left / 3)
    if not isinstance(stay, list | tuple) or len(stay) != 3:
        raise ParameterError("stay", "must be three probabilities", stay)
    one, two, three = (check_probability("stay", share) for share in stay)
    if abs(math.fsum((one, two, three)) - left) > ROUNDING:
        raise ParameterError("stay", f"must sum to 1 − shift = {left:g}", tuple(stay))
    return one, two, three
