"""Composition of several queries, from one query's pair or δ-curve: a pair on a grid of losses, convolved T times."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechanisms.compiled import Floats, Integers
from mechanisms.parameter import check_epsilon, check_integer
from mechanisms.privacy.claim import LARGEST_CROWD_EPSILON, Claim, ClaimKind, ConstantDelta
from mechanisms.privacy.hockey_stick import Pair, check_distribution

Curve: TypeAlias = Callable[[float], float]
# The curve of one query is taken as flat from where it is at most this, or this share above its last value.
LEAST_DELTA, LEAST_FALL = 1e-22, 1e-3
# How often ε is halved together, in an approximation, and at most, to find the scale of a curve.
HALVINGS, ROUGH_HALVINGS, MOST_HALVINGS = 20, 8, 60
# Points of a curve up to the root mean square loss; above it, times the fineness, those a unit of ln ε. These are about
# a hundred, which make an ε too large by a few tenths of a percent.
FINENESS, PROPORTION = 12, 4
# Intervals of the grid up to the root mean square loss of a pair.
PAIR_FINENESS = 200
# The same for the laws of a query, times the fineness of a curve.
OF_LAWS = 5
# Most steps of the grid of losses.
LARGEST_GRID = 2**17
# Every δ of one query is raised by this share, far more than its rounding error.
ROUNDING = 1e-10
# A window of the summed loss leaves out at most e^−41 of the tilted mass.
LEFT_OUT_LOG = -41.0
UNIT = 2.0**-53
# Places at which Chernoff's bound of a window is computed, from a thousandth of the first tilt to a thousand times it.
SHIFTS = 25
# Far above any logarithm of a δ below 1, and below the range of doubles.
LARGEST_LOG = 700.0
COMPOSED = "; over T queries by composing a pair that dominates one query's, in both directions"


@runtime_checkable
class HasLaws(Protocol):
    """A curve that is known from the laws of outputs."""

    def laws(self) -> Sequence[Pair]:
        """Return pairs of masses (P, Q) of independent outputs, whose product dominates one query in both directions.

        Empty where the curve is not known in this way.
        """


@runtime_checkable
class HasEach(Protocol):
    """A curve that computes δ at many ε faster together than one by one."""

    def each(self, epsilons: Floats) -> Floats:
        """Return δ at each ε ≥ 0."""


@dataclass(frozen=True)
class ComposedDelta:
    """δ(ε) of T queries with the same two distributions of the output, the larger of both directions, rounded up.

    Each loss is divided between the two nearest multiples of an interval w, so that both the mass of P and the mass of
    Q are kept. The δ-curve of this pair is the chords between the values of the pair's curve at the multiples, hence
    nowhere below it (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022, *Connect the Dots*), and the summed loss
    exceeds the exact one by an amount of the order of T·w²/8.

    Parameters
    ----------
    p, q : tuple of float
        Distributions of the output of one query under the two hypotheses.
    queries : int
        T.
    fineness : int
        Intervals up to the root mean square loss; a few suffice for an approximation from above.
    """

    p: tuple[float, ...]
    q: tuple[float, ...]
    queries: int
    fineness: int = PAIR_FINENESS

    @classmethod
    def from_pair(cls, p: ArrayLike, q: ArrayLike, *, queries: int) -> "ComposedDelta":
        """Check a pair and scale its masses to sum to 1 in the last bit."""
        check_integer("queries", queries, at_least=1)
        p, q = check_distribution("p", p), check_distribution("q", q)
        return cls(tuple((p / p.sum()).tolist()), tuple((q / q.sum()).tolist()), queries)

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ at this ε."""
        check_epsilon(epsilon)
        return min(1.0, max(law.delta(epsilon) for law in _both_directions(self)))


@lru_cache(maxsize=64)
def _both_directions(composed: ComposedDelta) -> tuple["SummedLoss", "SummedLoss"]:
    p, q = np.array(composed.p), np.array(composed.q)
    there, back = (on_grid(pair, composed.fineness) for pair in ([(p, q)], [(q, p)]))
    return SummedLoss(there, composed.queries), SummedLoss(back, composed.queries)


def on_grid(pairs: Sequence[Pair], fineness: int, least: float = 0.0) -> tuple["GridPair", ...]:
    """Return pairs whose curves connect the points of those given at the multiples of one interval for all of them.

    Losses that are exceeded with at most the probability `least` are taken as infinite, and the same probability of
    the lowest losses is raised to the next: both bound the pair from above, and shorten the grid.
    """
    given = []
    for p, q in pairs:
        both = (p > 0.0) & (q > 0.0)
        masses, losses, certain = p[both], np.log(p[both] / q[both]), math.fsum(p[q == 0.0])
        if least > 0.0 and len(masses):
            order = np.argsort(losses)
            masses, losses = masses[order], losses[order]
            tails = np.cumsum(masses[::-1])[::-1]
            end = max(int((tails > least).sum()), 1)
            certain += float(tails[end]) if end < len(tails) else 0.0
            masses, losses = masses[:end], losses[:end]
            losses = np.maximum(losses, losses[min(int((np.cumsum(masses) <= least).sum()), end - 1)])
        given.append((masses, losses, certain))
    largest = max(float(np.abs(losses).max(initial=0.0)) for _, losses, _ in given)
    if largest == 0.0:
        return tuple(GridPair(1.0, np.zeros(0, dtype=np.int64), np.zeros(0), certain) for _, _, certain in given)
    squares = sum(float(masses @ losses**2) for masses, losses, _ in given)
    spread = math.sqrt(squares / sum(float(masses.sum()) for masses, _, _ in given))
    width = largest / min(math.ceil(fineness * largest / max(spread, largest / LARGEST_GRID)), LARGEST_GRID)
    return tuple(split(*one, width) for one in given)


def split(masses: Floats, losses: Floats, certain: float, width: float) -> "GridPair":
    """Return the pair in which each loss is divided between the two nearest multiples of an interval."""
    places = losses / width
    # A loss that is a multiple but for its rounding error stays one.
    near = np.rint(places)
    places = np.where(np.abs(places - near) <= 1e-9 * np.maximum(1.0, np.abs(near)), near, places)
    below = np.floor(places)
    above = masses * np.expm1((below - places) * width) / math.expm1(-width)
    first = int(below.min())
    index = below.astype(np.int64) - first
    sums = np.bincount(index, masses - above, index.max() + 2) + np.bincount(index + 1, above, index.max() + 2)
    kept = np.flatnonzero(sums > 0.0)
    return GridPair(width, kept + first, np.asarray(sums[kept], dtype=np.float64), certain)


def at_least_once(probability: float, queries: int) -> float:
    """Return the probability that an event happens in at least one of T queries."""
    if queries == 1 or probability >= 1.0:
        return min(probability, 1.0)
    return -math.expm1(queries * math.log1p(-probability))


def composed(curve: Curve, queries: int, *, limit: float = math.inf, fineness: int = FINENESS) -> Curve:
    """Return δ(ε) of T independent queries as a function of ε, each of them bounded by the same curve.

    Parameters
    ----------
    curve : callable
        δ of one query as a function of ε ≥ 0, hashable: for any two truths in that query, in both directions. So it
        bounds a device that is present at one query and absent at another, or reversed.
    queries : int
        T. For one query the curve itself is returned.
    limit : float
        ε of one query at δ = 0, where that is finite.
    fineness : int
        Points of the curve up to its root mean square loss.
    """
    return curve if queries == 1 else ComposedCurve(curve, queries, limit, fineness)


@dataclass(frozen=True)
class ComposedCurve:
    """A bound of δ(ε) of T queries, from the curve of one.

    Let h(x) be δ(ln x) for x ≥ 1, and 1 − x + x·h(1/x) for x < 1. h is convex, being the maximum of H_x(P‖Q) over the
    pairs of one query and their reverses, and a pair with this h dominates all of them; its T-fold product dominates
    every sequence of them, also where the next pair depends on earlier outputs (Zhu, Dong and Wang 2022, theorem 10
    and corollary). Here h is evaluated at e^kw for chosen multiples kw of an interval w. The chord between two points
    lies above the convex h and is the curve of a pair too, all of whose losses are multiples of w (Doroshenko, Ghazi,
    Kamath, Kumar and Manurangsi 2022, *Connect the Dots*). So no loss is rounded. Where the values are upper bounds and
    not convex, their lower convex hull is used: it is the greatest convex function below them, hence above h.
    After the last point the curve is flat; its height there is the mass of an infinite loss.

    The losses of T queries are summed by a Fourier transform of the masses tilted by e^θℓ, with the θ of least error at
    this ε. The error is bounded and added: M(θ)^T·e^−θε times the rounding error of the transforms and the mass
    outside the window (Chernoff's bound). It is small relative to δ at every ε, in the tail too.

    Parameters
    ----------
    curve : callable
        δ of one query, for both directions of every pair of truths.
    queries : int
        T.
    limit : float
        ε of one query at δ = 0; infinite if there is none.
    fineness : int
        Points of the curve up to its root mean square loss; a few suffice for an approximation from above.
    """

    curve: Curve
    queries: int
    limit: float = math.inf
    fineness: int = FINENESS

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ at this ε; where it is very small, at most T·δ(ε/T) of basic composition."""
        if math.isfinite(self.limit) and check_epsilon(epsilon) >= self.queries * self.limit:
            return 0.0
        delta = min(1.0, self._sums.delta(epsilon))
        if delta <= 2.0 * self._sums.certain:
            delta = min(delta, self.queries * self.curve(epsilon / self.queries))
        return delta

    @cached_property
    def _sums(self) -> "SummedLoss":
        return SummedLoss(_parts(self.curve, self.limit, self.fineness), self.queries)


@lru_cache(maxsize=2048)
def _parts(curve: Curve, limit: float, fineness: int) -> tuple["GridPair", ...]:
    """Return independent pairs whose product dominates one query: pairs of its laws, or one from its curve."""
    laws = curve.laws() if isinstance(curve, HasLaws) else ()
    return on_grid(laws, OF_LAWS * fineness, least=LEAST_DELTA) if laws else (grid_pair(curve, limit, fineness),)


@dataclass(frozen=True, eq=False)
class GridPair:
    """A pair whose losses ln(P/Q) are multiples of an interval; its reverse is the same pair.

    Parameters
    ----------
    interval : float
        w.
    steps : (losses,) int64
        Losses of positive mass, in intervals, ascending; none where one query reveals nothing.
    masses : (losses,) float64
        Their probabilities under P.
    certain : float
        Probability under P of an infinite loss.
    """

    interval: float
    steps: Integers
    masses: Floats
    certain: float


def grid_pair(curve: Curve, limit: float = math.inf, fineness: int = FINENESS, least: float = LEAST_DELTA) -> GridPair:
    """Return a pair whose curve connects points of the curve of one query, and is nowhere below it.

    Where the curve is at most `least`, it is taken as flat.
    """
    # The curve at ε halved again and again, from its end on; more of them where it falls far before its end.
    high = min(limit, LARGEST_CROWD_EPSILON)
    halvings = HALVINGS if fineness >= FINENESS else ROUGH_HALVINGS
    epsilons, deltas = np.zeros(0), np.zeros(0)
    distance = min(curve(0.0), 1.0)
    while not len(epsilons) or (
        len(epsilons) < MOST_HALVINGS and deltas[-1] - deltas[0] < (distance - deltas[0]) / 2.0
    ):
        more = np.asarray(high * 0.5 ** np.arange(len(epsilons), len(epsilons) + halvings), dtype=np.float64)
        epsilons, deltas = np.append(epsilons, more), np.append(deltas, _each(curve, more))
        if high == limit:
            deltas[0] = 0.0
    # It is taken as flat where it hardly falls.
    enough = max(least, float(deltas[0]) * (1.0 + LEAST_FALL))
    flat = deltas <= enough
    first = len(flat) if flat.all() else int(flat.argmin())
    end, last = float(epsilons[first - 1]), float(deltas[first - 1])
    if first < len(flat):
        between = np.linspace(epsilons[first], end, 9)[1:-1]
        heights = _each(curve, between)
        near = np.flatnonzero(heights <= enough)
        if len(near):
            end, last = float(between[near[0]]), float(heights[near[0]])
    if distance - last <= least:
        return GridPair(1.0, np.zeros(0, dtype=np.int64), np.zeros(0), distance)
    # Root mean square loss: half its square is the mean loss under P, ∫ (1 + e^−ε)·δ(ε) dε, here from chords.
    x, y = np.array([end, *epsilons[first:], 0.0]), np.array([last, *deltas[first:], distance])
    spread = math.sqrt(2.0 * -np.trapezoid((1.0 + np.exp(-x)) * y, x))
    grid = min(math.ceil(fineness * end / min(spread, end)), LARGEST_GRID)
    width, points = end / grid, [0]
    while points[-1] < grid:
        points.append(min(points[-1] + max(1, points[-1] // (PROPORTION * fineness)), grid))
    heights = np.array([distance, *_each(curve, np.array(points[1:-1]) * width), last])
    # A convex h with h(x) = 1 − x + x·h(1/x) has a slope of at least (h(1) − 1)/2 from 1 on, so a greater bound of h(1)
    # than the others allow is lowered. Otherwise the masses would add up to more than 1.
    growth = np.expm1(np.array(points[1:]) * width)
    heights[0] = min(distance, float(((2.0 * heights[1:] + growth) / (2.0 + growth)).min()))
    return _connect(width, points, np.minimum(1.0, heights * (1.0 + ROUNDING)).tolist())


@dataclass(frozen=True)
class TogetherDelta:
    """A bound of δ(ε) of several views of one device that are independent given its cells, each with its own curve.

    Each curve is read off as the curve of `ComposedCurve` is, and the losses of the pairs are divided between the
    multiples of one interval, which bounds each pair from above. Their sum is computed as the sum of several queries.

    Parameters
    ----------
    claims : tuple of Claim
        At least one; none is unknown. Each curve is for both directions of every pair of truths.
    """

    claims: tuple[Claim, ...]

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ at this ε."""
        return min(1.0, self._sums.delta(check_epsilon(epsilon)))

    @cached_property
    def _sums(self) -> "SummedLoss":
        pairs = [grid_pair(claim.delta, claim.epsilon) for claim in self.claims]
        telling = [pair for pair in pairs if pair.steps.any()]
        reach = sum(pair.interval * int(pair.steps[-1]) for pair in telling)
        width = max(min((pair.interval for pair in telling), default=1.0), reach / LARGEST_GRID)
        parts = [split(pair.masses, np.asarray(pair.steps * pair.interval), pair.certain, width) for pair in telling]
        return SummedLoss([*parts, *(pair for pair in pairs if not pair.steps.any())], 1)


def together(claims: Sequence[Claim], *, attained: bool) -> Claim:
    """Return the claim of several views of one device together, whose coins are independent given the device's cells.

    Parameters
    ----------
    claims : sequence of Claim
        At least one, all for the same change of the device.
    attained : bool
        Whether the worst cases of all views may happen together, so that the sum of exact ε is exact.

    Returns
    -------
    Claim
        Unknown if a claim is. ε is the sum, infinite where it is proved to be in one view; δ is a bound, but exact
        where every view reveals the truth with its δ and nothing otherwise.
    """
    # A view that reveals nothing adds nothing.
    telling = [claim for claim in claims if claim.epsilon != 0.0] or [claims[0]]
    if unknown := [claim for claim in telling if claim.kind == "unknown"]:
        return unknown[0]
    certain = [claim for claim in telling if claim.delta_kind == "exact" and claim.curve == ConstantDelta(1.0)]
    if certain or len(telling) == 1:
        return (certain or telling)[0]
    epsilon, kinds = math.fsum(claim.epsilon for claim in telling), {claim.kind for claim in telling}
    kind: ClaimKind = "infinite" if "infinite" in kinds else "exact" if attained and kinds == {"exact"} else "bound"
    basis = (
        "Views with coins of their own, given where the device is at each query: ε adds up, and δ is composed from "
        "pairs that dominate each view in both directions. "
    ) + " And: ".join(dict.fromkeys(claim.basis for claim in telling))
    constants = [claim.curve.value for claim in telling if isinstance(claim.curve, ConstantDelta)]
    if len(constants) == len(telling) and kind == "infinite":
        exactly = attained and all(claim.delta_kind == "exact" for claim in telling)
        curve = ConstantDelta(
            -math.expm1(math.fsum(math.log1p(-value) if value < 1.0 else -math.inf for value in constants))
        )
        return Claim(kind, epsilon, "exact" if exactly else "bound", basis, curve)
    return Claim(kind, epsilon, "bound", basis, TogetherDelta(tuple(telling)))


def _each(curve: Any, epsilons: Floats) -> Floats:
    """Return δ at each ε, together where the curve can."""
    if isinstance(curve, HasEach):
        return np.asarray(curve.each(epsilons))
    return np.array([curve(epsilon) for epsilon in epsilons.tolist()])


def _connect(width: float, points: list[int], heights: list[float]) -> GridPair:
    """Return the pair whose curve is the lower convex hull of the points (e^kw, height), and flat after the last."""

    def fall(i: int, j: int) -> float:
        """Return −e^kw times the slope between two points, k the first."""
        return (heights[i] - heights[j]) / math.expm1((points[j] - points[i]) * width)

    hull = [0]
    for i in range(1, len(points)):
        # The last point of the hull is above the chord around it if the slope falls there.
        while len(hull) > 1 and fall(hull[-1], i) >= fall(hull[-2], hull[-1]) * math.exp(
            (points[hull[-1]] - points[hull[-2]]) * width
        ):
            hull.pop()
        hull.append(i)
    steps, height = np.array(points)[hull], np.minimum.accumulate(np.array(heights)[hull])
    drops, gaps = -np.diff(height), np.diff(steps) * width
    # The kinks of the curve at losses from w on, with the masses of P; the masses of Q are e^−ℓ times as great, and are
    # the masses of P at the losses −ℓ.
    up = np.maximum(drops / -np.expm1(-gaps) - np.append(drops[1:] / np.expm1(gaps[1:]), 0.0), 0.0)
    down = up * np.exp(-steps[1:] * width)
    certain = float(height[-1])
    masses = np.concatenate([down[::-1], [max(0.0, 1.0 - certain - math.fsum(up) - math.fsum(down))], up])
    every = np.concatenate([-steps[:0:-1], steps])
    kept = masses > 0.0
    return GridPair(width, every[kept], masses[kept], certain)


class SummedLoss:
    """The law of the sum of T losses of each of several pairs on one grid, in windows under different tilts.

    Parameters
    ----------
    parts : sequence of GridPair
        Of the same interval; the outputs of a query are one of each, independent of each other. A pair may be repeated.
    queries : int
        T.
    """

    def __init__(self, parts: Sequence[GridPair], queries: int) -> None:
        self.parts, self.queries = Counter(part for part in parts if part.steps.any()), queries
        one = parts[0].certain
        for part in parts[1:]:
            one += (1.0 - one) * part.certain
        # The probability that a loss is infinite.
        self.certain = at_least_once(one, queries)
        self.laws: dict[int, tuple[Floats, Floats, float]] = {}
        # The least and the greatest loss of one query, in intervals.
        self.ends = [sum(n * int(part.steps[end]) for part, n in self.parts.items()) for end in (0, -1)]
        if self.parts:
            self.width = next(iter(self.parts)).interval
            self.log_masses = [np.log(part.masses) for part in self.parts]
            spreads = (n * float(part.masses @ (part.steps * self.width) ** 2) for part, n in self.parts.items())
            squares = max(sum(spreads), 1e-300)
            # From one that moves the mean by half its spread, or for rare losses from ½, on.
            first = 0.5 / math.sqrt(queries * squares)
            more = max(0, math.ceil(math.log(first / 0.5, 1.5)))
            self.scale = first
            self.tilts = np.append(0.0, first * 1.5 ** np.arange(-more, 24.0))
            self.log_means = self.log_mean(self.tilts)

    def log_mean(self, tilts: Floats) -> Floats:
        """Return ln Σ P(ℓ)e^θℓ of one query's loss for each θ."""
        total = np.zeros(len(tilts))
        for (part, n), log_masses in zip(self.parts.items(), self.log_masses, strict=True):
            exponents = np.multiply.outer(tilts, part.steps * self.width) + log_masses
            most = exponents.max(axis=-1)
            total += n * (most + np.log(np.exp(exponents - most[:, np.newaxis]).sum(axis=-1)))
        return total

    def delta(self, epsilon: float) -> float:
        """Return a bound of Σ P(ℓ)·[1 − e^(ε − ℓ)]₊ over the summed losses ℓ, the infinite one included."""
        if not self.parts or epsilon >= self.queries * self.width * self.ends[1]:
            return self.certain
        scales = self.queries * self.log_means - self.tilts * min(epsilon, 1e6)
        best = int(scales.argmin())
        if best not in self.laws:
            self.laws[best] = self.law(best)
        losses, tilted, error = self.laws[best]
        beyond = losses[losses > epsilon] - epsilon
        sums = tilted[len(losses) - len(beyond) :] @ (-np.expm1(-beyond) * np.exp(-self.tilts[best] * beyond))
        scale = math.exp(min(float(scales[best]), LARGEST_LOG))
        return self.certain + float(scale * min(1.0, sums + error)) * (1.0 + ROUNDING)

    def law(self, tilt: int) -> tuple[Floats, Floats, float]:
        """Return losses, ascending, their tilted masses, whose sum is 1, and a bound of the error of any sum of them.

        Every output of a transform of log₂ N stages is a sum of N inputs times factors of modulus 1, so its error is at
        most a multiple of log₂ N units in the last place of Σ|inputs|. Hence each error of the first transforms is at
        most γ. The error of the product of n of them is at most n·γ·∏(|F| + γ), with one factor left out, plus its own
        rounding. The sum of N outputs of the second, each the mean of N terms, has at most the sum of these errors.
        """
        width, times = self.width, self.queries
        theta, log_mean = float(self.tilts[tilt]), float(self.log_means[tilt])
        shifts = np.geomspace(1e-3, 1e3, SHIFTS) * self.scale
        above = (times * (self.log_mean(theta + shifts) - log_mean) - LEFT_OUT_LOG) / shifts
        below = -(times * (self.log_mean(theta - shifts) - log_mean) - LEFT_OUT_LOG) / shifts
        last = min(math.ceil(above.min() / width), times * self.ends[1])
        first = max(math.floor(below.max() / width), times * self.ends[0])
        size = 1 << max(4, int(last - first).bit_length())
        stages = 8.0 * UNIT * (size.bit_length() + 4)
        product, moduli = np.ones(size // 2 + 1, dtype=np.complex128), np.ones(size // 2 + 1)
        least = np.full(size // 2 + 1, np.inf)
        for (part, n), log_masses in zip(self.parts.items(), self.log_masses, strict=True):
            exponents = theta * width * part.steps + log_masses
            tilted = np.bincount(part.steps % size, np.exp(exponents - exponents.max()), size)
            factors = np.fft.rfft(tilted / tilted.sum())
            product *= _power(factors, n)
            modulus = np.abs(factors) + stages
            moduli *= modulus**n
            least = np.minimum(least, modulus)
        error = 4.0 * stages * (self.parts.total() * times + 1) * float((moduli**times / least).sum())
        sums = np.roll(np.fft.irfft(_power(product, times), size), -(first % size))
        return (first + np.arange(size)) * width, np.maximum(sums, 0.0), error + 2.0 * math.exp(LEFT_OUT_LOG)


def _power(factors: NDArray[np.complex128], times: int) -> NDArray[np.complex128]:
    """Return powers by repeated squares, which take a tenth of the time of the general function."""
    product = np.ones_like(factors)
    while times:
        if times % 2:
            product = product * factors
        factors, times = factors * factors, times // 2
    return product
