"""Search: the best parameters of a family of mechanisms, by a root in its dial and least error over its shape.

A family has one dial, which takes privacy for accuracy, and perhaps a shape: what else can be chosen. For every
shape the dial is turned just as far as the target allows, and the shape is chosen that does best there.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.special import expit, logit

from mechanisms.parameter import ParameterError
from mechanisms.planning.candidate import IMPOSSIBLE, Candidate
from mechanisms.planning.target import Target

Shape: TypeAlias = tuple[float, ...]
Make: TypeAlias = Callable[[Target, Shape, float], Candidate]
Point: TypeAlias = Sequence[float] | NDArray[np.float64]
Scale = Literal["log", "logit"]

GRID = 9
# Where the search for a shape looks at no larger crowd: it costs time and changes no shape.
SEARCHED_CROWD = 10_000
DIGITS = 6


@dataclass(frozen=True)
class Dial:
    """A dial: the greater, the more is told and the less the error.

    Parameters
    ----------
    low, high : float
        Its ends.
    scale : {"log", "logit"}
        Logarithmic, or logistic for a probability, where both ends may be near.
    """

    low: float
    high: float
    scale: Scale = "log"

    def place(self, value: float) -> float:
        """Return where on the scale a value is."""
        return math.log(value) if self.scale == "log" else float(logit(min(value, 1.0 - 1e-16)))

    def value(self, place: float) -> float:
        """Return the value at a place, at the places of the ends the ends themselves, which doubles may miss."""
        if place >= self.place(self.high):
            return self.high
        if place <= self.place(self.low):
            return self.low
        exact = math.exp(place) if self.scale == "log" else float(expit(place))
        return min(max(exact, self.low), self.high)

    def rounded(self, value: float, *, up: bool | None) -> float:
        """Return the value with few digits: up, down or the nearest, within a millionth of its distance to an end."""
        size = min(value, 1.0 - value) if self.scale == "logit" else value
        if size <= 0.0:
            return value
        digits = DIGITS - 1 - math.floor(math.log10(size))
        if digits > 15:
            return value
        unit = 10.0**-digits
        near = (
            round(value, digits)
            if up is None
            else round((math.ceil if up else math.floor)(value / unit) * unit, digits)
        )
        return min(max(near, self.low), self.high)


def set_dial(make: Make, dial: Dial, target: Target, shape: Shape, *, fine: bool) -> Candidate | None:
    """Turn the dial as far as the target allows: up for privacy, down for an error; None where nothing meets it.

    Parameters
    ----------
    make : callable
    dial : Dial
    target : Target
    shape : tuple of float
    fine : bool
        Round the dial towards the target, and check that it is met by what comes out; else good to search with.
    """

    def at(value: float) -> Candidate | None:
        try:
            return replace(make(target, shape, value), dial=value)
        except ParameterError:
            return None

    def excess(value: float) -> float:
        return _excess(at(value))

    private = target.error is None
    if private and target.queries > 1 and target.delta > 0.0:
        return _set_slowly(at, make, dial, target, shape, fine=fine)
    best, least = (dial.high, dial.low) if private else (dial.low, dial.high)
    if excess(best) <= 0.0:
        return at(best)
    if excess(least) > 0.0:
        return None
    low, high = dial.place(dial.low), dial.place(dial.high)
    root = brentq(lambda x: excess(dial.value(x)), low, high, xtol=1e-10 if fine else 1e-6, rtol=1e-12, maxiter=100)
    return _beside(at, dial, float(root), back=-1.0 if private else 1.0, fine=fine) or at(least)


def _beside(
    at: Callable[[float], Candidate | None], dial: Dial, root: float, *, back: float, fine: bool
) -> Candidate | None:
    """Return the candidate nearest to a root that meets the target, with few digits if fine; None if none near does."""
    if not fine:
        # δ may rise from 0 to its limit within a millionth: the root is then met on one side of it only.
        near = (at(dial.value(root + back * step)) for step in (0.0, 2e-6, 1e-4, 1e-2))
        return next((candidate for candidate in near if _excess(candidate) < 1e-3), None)
    value = dial.value(root)
    nearest = at(dial.rounded(value, up=None))
    if _excess(nearest) <= 0.0:
        return nearest
    value = dial.rounded(value, up=back > 0.0)
    for step in 10.0 ** np.arange(-12.0, 1.0):
        candidate = at(value)
        if _excess(candidate) <= 0.0:
            return candidate
        value = dial.value(dial.place(value) + back * step)
    return None


def _excess(candidate: Candidate | None) -> float:
    """Return how far a candidate is from the target, within ±60; 60 where its numbers leave what doubles hold."""
    try:
        return 60.0 if candidate is None else max(min(candidate.excess, 60.0), -60.0)
    except ParameterError:
        return 60.0


def _set_slowly(
    at: Callable[[float], Candidate | None], make: Make, dial: Dial, target: Target, shape: Shape, *, fine: bool
) -> Candidate | None:
    """Turn the dial up from where basic composition leaves it: far above, composed claims take minutes."""

    def excess(place: float) -> float:
        return _excess(at(dial.value(place)))

    added = set_dial(make, dial, target.single, shape, fine=False)
    first, last = dial.place(dial.low), dial.place(dial.high)
    low = first if added is None else dial.place(added.dial)
    if excess(low) > 0.0:
        low, last = first, low
        if low == last or excess(low) > 0.0:
            return None
    high, step = low, 0.5
    while high < last:
        high = min(high + step, last)
        if excess(high) > 0.0:
            break
        low, step = high, step * 1.5
    else:
        return at(dial.value(low))
    root = float(brentq(excess, low, high, xtol=1e-4 if fine else 1e-2, rtol=1e-12))
    for back in (0.0, 2e-4, 1e-3, 1e-2, 0.1):
        candidate = at(dial.rounded(dial.value(root - back), up=False))
        if _excess(candidate) <= 0.0:
            return candidate
    return at(dial.value(low))


def find_best(make: Make, dial: Dial, target: Target, starts: Sequence[Shape], *, tries: int = 60) -> Candidate | None:
    """Return the best candidate over shapes, its dial set: of least error, or for an error of least ε.

    Parameters
    ----------
    make : callable
    dial : Dial
    target : Target
    starts : sequence of shapes
        Numbers in [0, 1]: of one, a grid is searched and then refined; of more, Nelder and Mead's simplex starts from
        each. None, or an empty shape, for a family without.
    tries : int
        Shapes a simplex may try, a dimension.
    """
    if not starts or not starts[0]:
        return set_dial(make, dial, target, (), fine=True)
    goals = [target.small_crowd(SEARCHED_CROWD)]
    if target.queries > 1:
        goals = [goals[0].spread, goals[0].single]
    for goal in goals:

        def score(point: Point, goal: Target = goal) -> float:
            shape = tuple(min(max(float(x), 0.0), 1.0) for x in point)
            found = set_dial(make, dial, goal, shape, fine=False)
            return IMPOSSIBLE if found is None else found.score

        shapes = _search(score, starts, tries)
        if score(shapes[-1]) < IMPOSSIBLE:
            break
    if target.queries > 1:
        shapes = shapes[-1:]
    found = [candidate for shape in shapes if (candidate := set_dial(make, dial, target, shape, fine=True)) is not None]
    return min(found, key=lambda candidate: candidate.score, default=None)


def _search(score: Callable[[Point], float], starts: Sequence[Shape], tries: int) -> list[Shape]:
    """Return the shapes worth setting the dial of finely: the best found, and where the search began."""
    if len(starts[0]) == 1:
        grid = [start[0] for start in starts] + np.linspace(0.0, 1.0, GRID).tolist()
        grid = sorted(set(grid))
        scores = [score((x,)) for x in grid]
        best = int(np.argmin(scores))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        fine = minimize_scalar(
            lambda x: score((x,)), bounds=(low, high), method="bounded", options={"xatol": 1e-3, "maxiter": 15}
        )
        return [(grid[best],), (float(fine.x),)]
    best_start = min(starts, key=score)
    size = len(best_start)
    simplex = np.array(
        [best_start]
        + [[x + (0.15 if x < 0.5 else -0.15) * (i == j) for j, x in enumerate(best_start)] for i in range(size)]
    )
    found = minimize(
        score,
        np.array(best_start),
        method="Nelder-Mead",
        options={"initial_simplex": simplex, "maxfev": tries * size, "xatol": 1e-4, "fatol": 1e-9},
    )
    return [best_start, tuple(min(max(float(x), 0.0), 1.0) for x in found.x)]
