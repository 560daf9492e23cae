"""Search for a family's parameters: a root in its privacy parameter, and the least error over its other parameters."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Literal, TypeAlias

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit

from mechanisms.parameter import ParameterError
from mechanisms.planning.candidate import IMPOSSIBLE, INFINITE, Candidate
from mechanisms.planning.target import Target

Shape: TypeAlias = tuple[float, ...]
Make: TypeAlias = Callable[[Target, Shape, float], Candidate]
Scale = Literal["log", "logit"]

# Grid points per axis for shapes of one number and of two; for more numbers, points of a Sobol sequence.
GRID = {1: 17, 2: 7}
SPREAD_POINTS = 256
# Direction numbers of a Sobol sequence of 256 points in up to 7 dimensions (Joe & Kuo 2008). `scipy.stats`, which has
# them, takes half a second to import.
_ROWS = (
    "8040201008040201 80c0a0f088ccaaff 80c06090e85c8ec5 80c02050f874a293 "
    "804020b0f8dc7a9d 80406030c82456fb 80c0a0d058943ee3"
)
SOBOL = np.frombuffer(bytes.fromhex(_ROWS), dtype=np.uint8).reshape(7, 8)
# The local search ends when its step is this small, and accepts a shape only if its score is better by this share.
LEAST_STEP, LEAST_GAIN = 5e-4, 1e-4
# Exact evaluations by which a dial set approximately is moved on, and the least step worth one.
MOST_ADVANCES, LEAST_ADVANCE = 5, 2e-4
# The search for a shape uses at most this crowd: a larger one costs time and does not change the best shape.
SEARCHED_CROWD = 10_000
DIGITS = 6
# A mechanism is left out only if its error is so many times another's; approximate claims may cause less.
NEAR = 1.05
# Most candidates a search evaluates: for views of one device and one query, and for others (milliseconds each).
MOST, MOST_SLOW, MOST_COMPOSED = 2_000, 700, 150


@dataclass(frozen=True)
class Dial:
    """The range and scale of a family's privacy parameter, its dial: a greater value means less privacy and less error.

    Parameters
    ----------
    low, high : float
        The ends of the range.
    scale : {"log", "logit"}
        Logarithmic, or logistic for a probability, which may be near 0 or near 1.
    near : float, optional
        Where a search begins, if evaluations at the ends take long.
    """

    low: float
    high: float
    scale: Scale = "log"
    near: float | None = None

    def place(self, value: float) -> float:
        """Return the place of a value on the scale: its logarithm or logit."""
        return math.log(value) if self.scale == "log" else float(logit(min(value, 1.0 - 1e-16)))

    def value(self, place: float) -> float:
        """Return the value at a place; at the places of the ends, the ends themselves without rounding error."""
        if place >= self.place(self.high):
            return self.high
        if place <= self.place(self.low):
            return self.low
        exact = math.exp(place) if self.scale == "log" else float(expit(place))
        return min(max(exact, self.low), self.high)

    def rounded(self, value: float, *, up: bool | None) -> float:
        """Return the value rounded to six significant digits: up, down, or to the nearest if `up` is None.

        On the logistic scale, these are digits of the distance to the nearer of 0 and 1.
        """
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


BUDGET = Dial(1e-6, 50.0)
"""The dial of mechanisms with a budget ε."""


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
    """Set the dial as far as the target allows, or return None if no value meets the target.

    For a privacy target this is the greatest value of the dial, for an error target the least.

    Parameters
    ----------
    make : callable
    dial : Dial
    target : Target
    shape : tuple of float
    fine : bool
        If True, round the dial so that the target stays met, and check the rounded candidate against the target. If
        False, the result is approximate, as a search needs it.
    near : float, optional
        A value of the dial near which the result is expected.
    least : float, optional
        A value of the dial that must be reached; the low end, if not given.
    """

    @cache
    def at(value: float) -> Candidate | None:
        try:
            return replace(make(target, shape, value), dial=value)
        except ParameterError:
            return None

    @cache
    def rough(place: float) -> float:
        candidate = at(dial.value(place))
        return _excess(candidate and replace(candidate, rough=True))

    # The side of the root on which the target is met: below it for privacy, above it for an error.
    met = -1.0 if target.error is None else 1.0
    start = dial.place(dial.low if least is None else least)
    if least is not None and _fails(at(dial.value(start))):
        return None
    low, high = sorted((-met * start, -met * dial.place(dial.high)))
    near = dial.near if near is None else near
    root = last_met(
        lambda x: rough(-met * x),
        low,
        high,
        near=None if near is None else -met * dial.place(near),
        tolerance=1e-8 if fine else 3e-5,
    )
    if root is None:
        return None
    if not fine:
        # δ may rise from 0 to its limit within a millionth: the target is then met only on one side of the root.
        places = (-met * root + met * step for step in (0.0, 2e-5, 1e-4, 1e-2))
        place = next((place for place in places if rough(place) < 1e-3), -met * low)
        candidate = at(dial.value(place))
        return candidate and replace(candidate, rough=True)
    exact = _set_exactly(at, rough, dial, -met * root, back=met) or at(dial.value(-met * low))
    return exact if _excess(exact) <= 0.0 else None


def last_met(
    excess: Callable[[float], float], low: float, high: float, *, near: float | None = None, tolerance: float
) -> float | None:
    """Return the last place at which an increasing function is at most 0, to a tolerance, or None if there is none.

    Parameters
    ----------
    excess : callable
        The function.
    low, high : float
        The ends of the interval.
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
    at: Callable[[float], Candidate | None], rough: Callable[[float], float], dial: Dial, root: float, *, back: float
) -> Candidate | None:
    """Return the candidate nearest to a root that meets the target, with a rounded dial; None if none near does."""
    value = dial.value(root)
    nearest = at(dial.rounded(value, up=None))
    excess = _excess(nearest)
    slope = (rough(root) - rough(root + back * 1e-3)) / 1e-3
    if excess <= 0.0:
        return _advance(at, dial, nearest, root, -back, slope=slope)
    value = dial.rounded(value, up=back > 0.0)
    for least in 10.0 ** np.arange(-12.0, 1.0):
        candidate = at(value)
        if candidate is not nearest and (excess := _excess(candidate)) <= 0.0:
            return candidate
        step = max(least, 1.05 * excess / slope) if slope > 0.1 else least
        value = dial.value(dial.place(value) + back * min(step, 1.0))
    return None


def _advance(
    at: Callable[[float], Candidate | None],
    dial: Dial,
    best: Candidate | None,
    place: float,
    forward: float,
    *,
    slope: float,
) -> Candidate | None:
    """Return a candidate that meets the target, as far forward from one that does as is worth a few evaluations.

    The approximate claims of a search may be greater than the claims, so the dial may be set further.
    """
    step = -_excess(best) / slope if slope > 0.1 else 0.0
    for _ in range(MOST_ADVANCES):
        if step < LEAST_ADVANCE:
            break
        candidate = at(dial.rounded(dial.value(place + forward * min(step, 0.5)), up=forward < 0.0))
        excess = _excess(candidate)
        if excess <= 0.0:
            best, place, step = candidate, place + forward * min(step, 0.5), -excess / slope
        else:
            less = step - 1.1 * excess / slope
            step = less if less > 0.0 else step / 2.0
    return best


def _excess(candidate: Candidate | None) -> float:
    """Return a candidate's excess, clipped to ±60; 60 if there is no candidate or its numbers are out of range."""
    try:
        return 60.0 if candidate is None else max(min(candidate.excess, 60.0), -60.0)
    except ParameterError:
        return 60.0


def _fails(candidate: Candidate | None) -> bool:
    """Return whether a candidate is known not to meet a privacy target, by its approximate bounds."""
    try:
        return candidate is None or replace(candidate, rough=True).fails()
    except ParameterError:
        return True


@lru_cache(maxsize=256)
def find_best(
    make: Make, dial: Dial, target: Target, starts: tuple[Shape, ...], limit: float = math.inf
) -> Candidate | None:
    """Return the best candidate over all shapes, with its dial set: of least error, or of least ε for an error target.

    Parameters
    ----------
    make : callable
    dial : Dial
    target : Target
    starts : tuple of shapes
        Shapes to start from, of numbers in [0, 1]. The search also tries the points of `spread_out`: a grid for shapes
        of one or two numbers. It then refines the best shape step by step. Empty for a family without a shape.
    limit : float
        For a privacy target, a score above which a candidate is of no use: shapes that do not reach it are left early.

    Returns
    -------
    Candidate or None
        Its `cut_short` is set if the search stopped at its limit, a number of candidates that is the same on every
        machine. None if no shape is found that meets the target.
    """
    if len(starts) < 2:
        shape = starts[0] if starts else ()
        search = Search(make, dial, target, MOST, limit)
        useful = math.isinf(limit) or search.as_good(shape, limit, None) is not None
        return set_dial(make, dial, target, shape, fine=True) if useful else None
    quick = target.queries == 1 and target.view.startswith(("report", "linked"))
    # Reports and what is published of them, both over several queries: a candidate takes a twentieth of a second.
    slowest = target.queries > 1 and target.published and target.view.startswith(("report", "shuffled"))
    most = MOST if quick else MOST_COMPOSED if slowest else MOST_SLOW
    search = Search(make, dial, target.small_crowd(SEARCHED_CROWD), most, limit)
    search.run(starts)
    if search.best is None:
        return None
    candidate = set_dial(make, dial, target, search.shape, fine=True, near=search.best.dial)
    return None if candidate is None else replace(candidate, cut_short=search.cut_short)


class Search:
    """A search for the best shape, over a grid and then step by step; shapes that cannot be the best are left early.

    Parameters
    ----------
    make : callable
    dial : Dial
    goal : Target
    most : int
        The greatest number of candidates to evaluate.
    limit : float
        A score to reach.
    """

    def __init__(self, make: Make, dial: Dial, goal: Target, most: int, limit: float = math.inf) -> None:
        self.make, self.dial, self.goal, self.most, self.limit = make, dial, goal, most, limit
        self.best: Candidate | None = None
        self.shape: Shape = ()
        self.cut_short: str | None = None
        self._made: list[float] = []  # the best score so far when each candidate was made
        self._tried: set[str] = set()

    def run(self, starts: tuple[Shape, ...]) -> None:
        """Search from the given shapes, until the step is small enough or the limit of candidates is reached."""
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
        """Yield the shapes one step from the best, in all directions or along each axis.

        The best shape may change during the iteration; the next shapes are then around the new one.
        """
        size = len(self.shape)
        moves = (
            itertools.product((0.0, -1.0, 1.0), repeat=size)
            if size <= len(GRID)
            else (tuple(sign * (i == j) for j in range(size)) for i in range(size) for sign in (1.0, -1.0))
        )
        for move in moves:
            yield tuple(x + step * y for x, y in zip(self.shape, move, strict=True))

    def _offer(self, shape: Shape) -> None:
        """Clip a shape to the unit cube, evaluate it if it is new, and keep it if it is the best so far.

        Shapes that are rounded to the same parameters, such as a threshold, are the same.
        """
        shape = tuple(min(max(x, 0.0), 1.0) for x in shape)
        try:
            made = self.make(self.goal, shape, self.dial.value(0.0))
            parameters = f"{made.parameters} {made.release}"
        except ParameterError:
            parameters = f"{shape}"
        if parameters in self._tried:
            return
        self._tried.add(parameters)
        improvement = self._improvement(shape)
        if improvement is not None and (self.best is None or improvement.score < self.best.score * (1.0 - LEAST_GAIN)):
            self.best, self.shape = improvement, shape

    def _improvement(self, shape: Shape) -> Candidate | None:
        """Return a shape's candidate with its dial set approximately, or None if it cannot be the best."""
        near, score = None, self.limit
        if self.best is not None and self.best.score < IMPOSSIBLE:
            near, score = self.best.dial, self.best.score * (1.0 - LEAST_GAIN)
        if math.isinf(score):
            return set_dial(self._counted, self.dial, self.goal, shape, fine=False)
        if score == 0.0:
            return None
        if self.goal.error is not None:
            improvement = set_dial(self._counted, self.dial, self.goal, shape, fine=False, near=near)
            worse = improvement is None or (score < INFINITE and not improvement.holds(score))
            return None if worse else improvement
        return self.as_good(shape, score, near)

    def as_good(self, shape: Shape, score: float, near: float | None) -> Candidate | None:
        """Return a shape's candidate for a privacy target, or None if its error is above the score.

        The dial is first set where the error is the score: to be as good, the shape must meet the privacy there.
        """
        goal = replace(self.goal, epsilon=None, error=score)
        found = set_dial(self.make, self.dial, goal, shape, fine=False, near=near)
        if found is None:
            return None
        return set_dial(self._counted, self.dial, self.goal, shape, fine=False, near=found.dial, least=found.dial)

    def _counted(self, target: Target, shape: Shape, value: float) -> Candidate:
        """Make a candidate; raise `_CutShortError` if the limit is reached."""
        if len(self._made) >= self.most:
            raise _CutShortError
        self._made.append(math.inf if self.best is None else self.best.score)
        return self.make(target, shape, value)


def spread_out(size: int) -> Iterator[Shape]:
    """Return shapes spread over the unit cube: a grid, or a Sobol sequence with a fifth of its numbers 0, a fifth 1."""
    if size in GRID:
        return itertools.product(np.linspace(0.0, 1.0, GRID[size]).tolist(), repeat=size)
    numbers = np.arange(SPREAD_POINTS)
    bits = (numbers ^ (numbers >> 1))[:, np.newaxis] >> np.arange(8) & 1  # of the Gray code
    points = np.bitwise_xor.reduce(bits * SOBOL[:size, np.newaxis], axis=2).T / SPREAD_POINTS
    return map(tuple, np.clip(1.67 * points - 0.335, 0.0, 1.0).tolist())


class _CutShortError(Exception):
    """Raised when a search has evaluated its greatest number of candidates."""


def _no_shapes(_: Target) -> Sequence[Shape]:
    return ()


def _nothing(*_: object) -> None:
    return None


@dataclass(frozen=True)
class Family:
    """A family of mechanisms that can be planned: its parameters, and how to search them.

    Parameters
    ----------
    name : str
        Its name in a plan.
    dial : Dial
        Its privacy parameter.
    letter : str
        What the dial is, in words and its symbol: "the sampling probability π_s".
    makes : sequence of callable
        Each makes a candidate from a target, a shape and a value of the dial; the best of all is used.
    starts : callable
        Returns the shapes that a search starts from, given the target. Empty if the family has no shape; a single shape
        is used without a search.
    refusal : callable
        Returns why the family does not apply to a target, as a sentence; None if it applies.
    reason : callable, optional
        Returns why no parameters meet a target, as a sentence; None for a general reason.
    guess : callable
        Returns the best value of the dial, if the search of another family has found it; else None. It is used if the
        target is met there.
    shared : bool
        Whether other families start from what its search finds, which therefore has no limit.
    bound : callable
        Returns the score of a simpler mechanism, which it must reach to be of use; infinite if there is none.
    pointless : callable
        Returns why the candidate found is no better than a simpler mechanism, as a sentence; None if it is better.
    kind : str, optional
        Its kind in a scenario file; its name, if not given.
    """

    name: str
    dial: Dial
    letter: str
    makes: Sequence[Make]
    starts: Callable[[Target], Sequence[Shape]] = _no_shapes
    refusal: Callable[[Target], str | None] = _nothing
    reason: Callable[[Target], str | None] = _nothing
    guess: Callable[[Target], float | None] = _nothing
    shared: bool = False
    bound: Callable[[Target], float] = lambda _: math.inf
    pointless: Callable[[Target, Candidate], str | None] = _nothing
    kind: str = ""

    def __post_init__(self) -> None:
        """Fill in the kind."""
        object.__setattr__(self, "kind", self.kind or self.name)

    @property
    def is_searched(self) -> bool:
        """Whether it has shapes to search."""
        return self.starts is not _no_shapes

    def best(self, target: Target, limit: float = math.inf) -> Candidate | None:
        """Return the best candidate that meets the target, or None; one above a limit of the score may be left out."""
        starts, candidates = tuple(self.starts(target)), list[Candidate]()
        limit = min(limit, NEAR * self.bound(target))
        guess = self.guess(target)
        if guess is not None:
            guessed = replace(self.makes[0](target, (), guess), dial=guess)
            if guessed.excess <= 0.0 and len(starts) < 2:
                return guessed
            candidates += [guessed] if guessed.excess <= 0.0 else []
        for make in self.makes:
            candidate = find_best(make, self.dial, target, starts, math.inf if self.shared else limit)
            if candidate is not None:
                candidates.append(candidate)
        return min(candidates, key=lambda candidate: candidate.score, default=None)

    def at(self, target: Target, value: float) -> Candidate:
        """Return the candidate with its dial at this value, and the first shape that a search starts from."""
        starts = self.starts(target)
        return self.makes[0](target, starts[0] if starts else (), value)
