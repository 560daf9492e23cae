"""The least batch or crowd, or number of honest servers, with which a mechanism meets privacy and error."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from mechanisms.planning.families import FAMILIES, SLOW, families_named
from mechanisms.planning.plan import PlanRecord, plan
from mechanisms.planning.target import Target

Number = Literal["batch", "crowd", "honest"]
# The search for a least number ends when its interval is this narrow, as a share.
PRECISION = 0.01


@dataclass(frozen=True)
class LeastNumber(PlanRecord):
    """The least number with which one mechanism meets a privacy target and an error.

    Parameters
    ----------
    mechanism : str
    least : int, optional
        At most 1 % above the least one; None if no number up to the greatest meets both.
    std_error : float
        The error there, or at the greatest number.
    """

    mechanism: str
    least: int | None
    std_error: float


def find_least(
    target: Target,
    *,
    error: float,
    number: Number,
    mechanisms: Sequence[str] = (),
    progress: Callable[[float], object] = lambda _: None,
) -> list[LeastNumber]:
    """Return the least batch, crowd in the cell or number of honest servers that meets privacy and error.

    Parameters
    ----------
    target : Target
        With the privacy to meet. For a batch, its population is the greatest one tried, and all of the batch answer.
        For a crowd, its occupancy is the greatest one tried; for honest servers, all of its servers.
    error : float
        Root mean square error allowed for a cell of the occupancy, in vehicles.
    number : {"batch", "crowd", "honest"}
    mechanisms : sequence of str
        Names of families or kinds; by default all but those whose search takes long.
    progress : callable
        Is called after each mechanism with its share of the work; the shares add up to 1.

    Raises
    ------
    ParameterError
        If a name is neither a family nor a kind.
    """
    named = families_named(tuple(mechanisms)) if mechanisms else [f for f in FAMILIES if f.name not in SLOW]

    greatest = {"batch": target.population, "crowd": max(1, target.expected), "honest": target.servers}[number]
    smallest = max(1, target.expected) if number == "batch" else 1

    def error_at(name: str, at: int) -> float:
        sizes: dict[str, Any] = {number: at}
        if number == "batch":  # all of the batch are asked
            sizes = {"population": at, "occupancy": target.expected, "batch": None}
        plans = plan(replace(target, **sizes), (name,), claims=False).plans
        return min((made.std_error for made in plans if made.meets), default=math.inf)

    found = []
    for family in named:
        found.append(LeastNumber(family.name, *_bisect(partial(error_at, family.name), smallest, greatest, error)))
        progress(1 / len(named))
    return found


def _bisect(error_at: Callable[[int], float], low: int, high: int, error: float) -> tuple[int | None, float]:
    """Return the least number in low…high with at most this error, to 1 %, and its error."""
    reached = error_at(high)
    if reached > error:
        return None, reached
    if error_at(low) <= error:
        return low, error_at(low)
    while high - low > max(1, PRECISION * low):
        middle = round(math.sqrt(low * high)) if high > 4 * low else (low + high) // 2
        middle = min(max(middle, low + 1), high - 1)
        at = error_at(middle)
        if at <= error:
            high, reached = middle, at
        else:
            low = middle
    return high, reached
