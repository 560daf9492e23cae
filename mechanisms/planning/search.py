"""Search for a family's parameters: a root in its privacy parameter, and least error over its other parameters."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import qmc

from mechanisms.parameter import ParameterError
from mechanisms.planning.candidate import IMPOSSIBLE, INFINITE, Candidate, PlannableMechanism
from mechanisms.planning.target import Target

Shape: TypeAlias = tuple[float, ...]
Make: TypeAlias = Callable[[Target, Shape, float], Candidate]
Scale = Literal["log", "logit"]

# Points a side of the grid over a shape of one number, and of two; over more, points of a Sobol sequence.
GRID = {1: 17, 2: 7}
SPREAD_POINTS = 256
# The local search ends where its step is this, and counts only what is better by this share.
LEAST_STEP, LEAST_GAIN = 5e-4, 1e-4
# Where the search for a shape looks at no larger crowd: it costs time and changes no shape.
SEARCHED_CROWD = 10_000
DIGITS = 6
# Candidates a search may look at: of views of one device and one query, and of others, which take milliseconds each.
MOST, MOST_SLOW = 2_000, 700


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


def set_dial(
    make: Make,
    dial: Dial,
    target: Target,
    shape: Shape,
    *,
    fine: bool,
    near: float | None = None,
    least: float | None = None,
) -> Candidate | None:
    """Turn the dial as far as the target allows: up for privacy, down for an error; None where nothing meets it.

    Parameters
    ----------
    make : callable
    dial : Dial
    target : Target
    shape : tuple of float
    fine : bool
        Round the dial towards the target, and check that it is met by what comes out; else good to search with.
    near : float, optional
        A value of the dial near to which the answer is expected.
    least : float, optional
        A value of the dial that must be reached; the low end, if not given.
    """

    @cache
    def at(value: float) -> Candidate | None:
        try:
            return replace(make(target, shape, value), dial=value)
        except ParameterError:
            return None

    def rough(place: float) -> float:
        candidate = at(dial.value(place))
        return _excess(candidate and replace(candidate, rough=True))

    # The side of the root on which the target is met: below it for privacy, above it for an error.
    met = -1.0 if target.error is None else 1.0
    start = dial.place(dial.low if least is None else least)
    low, high = sorted((-met * start, -met * dial.place(dial.high)))
    root = last_met(
        lambda x: rough(-met * x),
        low,
        high,
        near=None if near is None else -met * dial.place(near),
        tolerance=1e-8 if fine else 1e-5,
    )
    if root is None:
        return None
    if not fine:
        # δ may rise from 0 to its limit within a millionth: the root is then met on one side of it only.
        places = (-met * root + met * step for step in (0.0, 2e-5, 1e-4, 1e-2))
        place = next((place for place in places if rough(place) < 1e-3), -met * low)
        candidate = at(dial.value(place))
        return candidate and replace(candidate, rough=True)
    found = _set_exactly(at, rough, dial, -met * root, back=met) or at(dial.value(-met * low))
    return found if _excess(found) <= 0.0 else None


def last_met(
    excess: Callable[[float], float], low: float, high: float, *, near: float | None = None, tolerance: float
) -> float | None:
    """Return the last place at which a rising function is 0 or less, to a tolerance; None where it is nowhere.

    Parameters
    ----------
    excess : callable
    low, high : float
        Where places end.
    near : float, optional
        Where to begin; at the ends, if not given.
    tolerance : float
    """
    if near is None:
        below, above = low, high
        if excess(high) <= 0.0:
            return high
        if excess(low) > 0.0:
            return None
    else:
        below = above = min(max(near, low), high)
        up = excess(below) <= 0.0
        step = 0.02
        while (excess(above) <= 0.0) if up else (excess(below) > 0.0):
            if (above >= high) if up else (below <= low):
                return high if up else None
            below, above = (above, min(above + step, high)) if up else (max(below - step, low), below)
            step *= 4.0
    return float(brentq(excess, below, above, xtol=tolerance, rtol=1e-12, maxiter=100))


def _set_exactly(
    at: Callable[[float], Candidate | None],
    rough: Callable[[float], float],
    dial: Dial,
    root: float,
    *,
    back: float,
) -> Candidate | None:
    """Return the candidate nearest to a root that meets the target, with few digits; None if none near does."""
    value = dial.value(root)
    nearest = at(dial.rounded(value, up=None))
    if (excess := _excess(nearest)) <= 0.0:
        return nearest
    slope = (rough(root) - rough(root + back * 1e-3)) / 1e-3
    value = dial.rounded(value, up=back > 0.0)
    for least in 10.0 ** np.arange(-12.0, 1.0):
        candidate = at(value)
        if candidate is not nearest and (excess := _excess(candidate)) <= 0.0:
            return candidate
        step = max(least, 1.05 * excess / slope) if slope > 0.1 else least
        value = dial.value(dial.place(value) + back * min(step, 1.0))
    return None


def _excess(candidate: Candidate | None) -> float:
    """Return how far a candidate is from the target, within ±60; 60 where its numbers leave what doubles hold."""
    try:
        return 60.0 if candidate is None else max(min(candidate.excess, 60.0), -60.0)
    except ParameterError:
        return 60.0


@lru_cache(maxsize=256)
def find_best(make: Make, dial: Dial, target: Target, starts: tuple[Shape, ...]) -> Candidate | None:
    """Return the best candidate over shapes, its dial set: of least error, or for an error of least ε.

    Parameters
    ----------
    make : callable
    dial : Dial
    target : Target
    starts : tuple of shapes
        Numbers in [0, 1]. Beside these a grid is searched, if they are of one number or two; the best is then refined
        step by step. Empty for a family without.

    Returns
    -------
    Candidate or None
        It says so if the search was cut short, after as many candidates on every machine. None where no shape is found
        that meets the target.
    """
    if not starts:
        return set_dial(make, dial, target, (), fine=True)
    quick = target.queries == 1 and target.view.startswith(("report", "linked"))
    search = Search(make, dial, target.small_crowd(SEARCHED_CROWD), MOST if quick else MOST_SLOW)
    search.run(starts)
    if search.best is None:
        return None
    found = set_dial(make, dial, target, search.shape, fine=True, near=search.best.dial)
    return None if found is None else replace(found, cut_short=search.cut_short)


class Search:
    """A search for the best shape: over a grid, then step by step, each shape only as far as it may be the best.

    Parameters
    ----------
    make : callable
    dial : Dial
    goal : Target
    most : int
        Candidates it may look at.
    """

    def __init__(self, make: Make, dial: Dial, goal: Target, most: int) -> None:
        self.make, self.dial, self.goal, self.most = make, dial, goal, most
        self.best: Candidate | None = None
        self.shape: Shape = ()
        self.cut_short: str | None = None
        self._made: list[float] = []  # the best score as each candidate was looked at
        self._tried: set[Shape] = set()

    def run(self, starts: tuple[Shape, ...]) -> None:
        """Search from the starts."""
        step = 0.5 / (GRID[len(starts[0])] - 1) if len(starts[0]) in GRID else 0.1
        try:
            for shape in (*starts, *spread_out(len(starts[0]))):
                self._offer(shape)
            while self.best is not None and step > LEAST_STEP:
                before = self.shape
                for shape in self._around(step):
                    self._offer(shape)
                if self.shape == before:
                    step /= 2.0
                while self.shape != before:  # as long as it gets better, on in the same direction
                    ahead = tuple(2.0 * x - y for x, y in zip(self.shape, before, strict=True))
                    before = self.shape
                    self._offer(ahead)
        except _CutShortError:
            earlier = self._made[-len(self._made) // 4]
            gained = 1.0 - self._made[-1] / earlier if 0.0 < earlier < IMPOSSIBLE else 1.0
            self.cut_short = (
                f"Its search was cut short after {self.most:,} candidates, the last quarter of which improved it by "
                f"{gained:.1%}."
            )

    def _around(self, step: float) -> Iterator[Shape]:
        """Yield the shapes a step from the best, which may change meanwhile: in all directions, or along each axis."""
        size = len(self.shape)
        moves = (
            itertools.product((0.0, -1.0, 1.0), repeat=size)
            if size <= len(GRID)
            else (tuple(sign * (i == j) for j in range(size)) for i in range(size) for sign in (1.0, -1.0))
        )
        for move in moves:
            yield tuple(x + step * y for x, y in zip(self.shape, move, strict=True))

    def _offer(self, shape: Shape) -> None:
        """Take a shape, brought into the unit cube, if it is the best so far."""
        shape = tuple(min(max(x, 0.0), 1.0) for x in shape)
        if shape in self._tried:
            return
        self._tried.add(shape)
        rival = self._rival(shape)
        if rival is not None and (self.best is None or rival.score < self.best.score * (1.0 - LEAST_GAIN)):
            self.best, self.shape = rival, shape

    def _rival(self, shape: Shape) -> Candidate | None:
        """Return a shape's candidate, its dial set roughly; None where it is seen early that it is not the best."""
        if self.best is None or self.best.score >= IMPOSSIBLE:
            return set_dial(self._counted, self.dial, self.goal, shape, fine=False)
        near, score = self.best.dial, self.best.score * (1.0 - LEAST_GAIN)
        if score == 0.0:
            return None
        if self.goal.error is not None:
            rival = set_dial(self._counted, self.dial, self.goal, shape, fine=False, near=near)
            worse = rival is None or (score < INFINITE and not rival.holds(score))
            return None if worse else rival
        # Where its error would be the best so far, it must keep the privacy.
        goal = replace(self.goal, epsilon=None, error=score)
        as_good = set_dial(self.make, self.dial, goal, shape, fine=False, near=near)
        if as_good is None:
            return None
        return set_dial(self._counted, self.dial, self.goal, shape, fine=False, near=as_good.dial, least=as_good.dial)

    def _counted(self, target: Target, shape: Shape, value: float) -> Candidate:
        """Make a candidate, if there may be one more."""
        if len(self._made) >= self.most:
            raise _CutShortError
        self._made.append(math.inf if self.best is None else self.best.score)
        return self.make(target, shape, value)


def spread_out(size: int) -> Iterator[Shape]:
    """Return shapes all over the unit cube: a grid, or a sequence of which a fifth of the numbers are 0, a fifth 1."""
    if size in GRID:
        return itertools.product(np.linspace(0.0, 1.0, GRID[size]).tolist(), repeat=size)
    points = qmc.Sobol(size, scramble=False).random(SPREAD_POINTS)
    return map(tuple, np.clip(1.67 * points - 0.335, 0.0, 1.0).tolist())


class _CutShortError(Exception):
    """A search has looked at all the candidates it may."""


def _no_shape(target: Target) -> Sequence[Shape]:  # noqa: ARG001 - others look at it
    return ()


def _never(target: Target) -> str | None:  # noqa: ARG001 - others look at it
    return None


def _no_guess(target: Target) -> float | None:  # noqa: ARG001 - others look at it
    return None


def _not_pointless(target: Target, found: Candidate) -> str | None:  # noqa: ARG001 - others look at them
    return None


@dataclass(frozen=True)
class Family:
    """What a plan knows of a kind of mechanism.

    Parameters
    ----------
    name : str
        As a plan calls it.
    kind : str
        As a scenario file calls it.
    dial : Dial
    letter : str
        What the dial is, in words and its letter: "the sampling probability π_s".
    makes : sequence of callable
        Makes a candidate from a target, a shape and the dial; of several the best is taken.
    starts : callable
        Shapes a search starts from, given the target; none where there is nothing to choose, one where it is chosen.
    refusal : callable
        Why the family is not for a target at all, a sentence; None where it is.
    reason : callable, optional
        Why nothing meets a target, a sentence, given the target; None leaves it to what can be said of any.
    finish : callable, optional
        Makes the mechanism from a target and parameters, where a search looks at a sketch of it.
    guess : callable
        Where the dial stands best if the target is met there, as another family has shown; None if none has.
    pointless : callable
        Why what was found is no better than a simpler mechanism, a sentence; None where it is.
    """

    name: str
    kind: str
    dial: Dial
    letter: str
    makes: Sequence[Make]
    starts: Callable[[Target], Sequence[Shape]] = _no_shape
    refusal: Callable[[Target], str | None] = _never
    reason: Callable[[Target], str | None] = _never
    finish: Callable[[Target, Mapping[str, Any]], PlannableMechanism] | None = None
    guess: Callable[[Target], float | None] = _no_guess
    pointless: Callable[[Target, Candidate], str | None] = _not_pointless

    def best(self, target: Target) -> Candidate | None:
        """Return the best candidate that meets the target; None where none does."""
        guess = self.guess(target)
        if guess is not None:
            guessed = self.makes[0](target, (), guess)
            if guessed.excess <= 0.0:
                return replace(guessed, dial=guess)
        found: list[Candidate] = []
        for make in self.makes:
            starts = tuple(self.starts(target))
            candidate = (
                set_dial(make, self.dial, target, starts[0], fine=True)
                if len(starts) == 1
                else find_best(make, self.dial, target, starts)
            )
            if candidate is not None:
                found.append(candidate)
        return min(found, key=lambda candidate: candidate.score, default=None)

    def least_telling(self, target: Target) -> Candidate | None:
        """Return the candidate with its dial at its low end: what remains, where nothing meets a target."""
        return self._at(target, self.dial.low)

    def most_telling(self, target: Target) -> Candidate | None:
        """Return the candidate with its dial at its high end."""
        return self._at(target, self.dial.high)

    def _at(self, target: Target, value: float) -> Candidate | None:
        starts = self.starts(target)
        return self.makes[0](target, starts[0] if starts else (), value)
