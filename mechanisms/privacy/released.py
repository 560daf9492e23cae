"""Claims about published counts and differences of two rounds, of known crowds and of the worst of many.

They are exact for one query, and bounds for several.
"""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from mechanisms.compiled import Floats
from mechanisms.parameter import check_epsilon, check_integer, check_probability
from mechanisms.privacy.binomial import LEFT_OUT, Whole, mass_above, mass_at, mass_up_to, window
from mechanisms.privacy.claim import LARGEST_CROWD_EPSILON, Claim, ConstantDelta
from mechanisms.privacy.composition import COMPOSED, composed
from mechanisms.privacy.hockey_stick import Pair, pair_of_curve
from mechanisms.privacy.shuffled import CrowdRatioDelta
from mechanisms.privacy.sum_laws import SummedCellLaw, moved_delta
from mechanisms.privacy.view import ReleasedCounts, ReleasedDifferences

# A worst crowd above this has a δ of 0 to the last digit.
LARGEST_CROWD = 10**15
# Least and greatest number of devices in a cell, the device in question included.
Crowds: TypeAlias = tuple[int, int]
# Share by which the certified maximum over two crowds may exceed the greatest δ found, and most divisions of ranges.
GAP, MOST_RANGES = 0.001, 400


def moved_differences_delta(
    *, crowd: int, other_crowd: int, sampling: float, epsilon: float, k: int | None = None
) -> float:
    """Return δ(ε) of the published differences for a device in one of two cells, the larger of both directions.

    With the device in the first cell the differences are (D, D') = (Bin(n, β), Bin(m − 1, β)); with the device in the
    second cell they are (Bin(n − 1, β), Bin(m, β)). n and m are the two crowds with the device included (derived from
    SP eqs 12-16; the paper states no δ). The likelihood ratio of (a, b) is

    n/((n − a)/(1 − β)) · (m − b)/(m(1 − β)) = n(m − b)/(m(n − a)),

    for every β. It rises with a and falls with b. So for each a the ratio exceeds e^ε for all b up to a bound, and δ is
    one sum over a of a mass times a distribution function, under both hypotheses. Where a cell's distribution is cut to
    a window, the mass left out, at most 1e-30, is added.

    Parameters
    ----------
    crowd, other_crowd : int
        n and m, devices in each cell, the device in question included; at least 1.
    sampling : float
        β = π_s, in (0, 1].
    epsilon : float
        At least 0.
    k : int, optional
        Differences below `k` are suppressed. By default no difference is suppressed.

    Returns
    -------
    float
        Never below the exact value, and accurate to 1e-15; at least β to the power of the smaller crowd, if that is at
        least k.

    Raises
    ------
    ParameterError
        If a value is out of range.
    """
    n = check_integer("crowd", crowd, at_least=1)
    m = check_integer("other_crowd", other_crowd, at_least=1)
    beta = check_probability("sampling", sampling, above_zero=True)
    check_epsilon(epsilon)
    least = 0 if k is None else check_integer("k", k, at_least=1)
    if max(n, m) < least:
        return 0.0  # nothing is ever published
    if beta == 1.0:
        return 1.0  # the differences are the counts themselves
    certain = max((beta**crowd for crowd in (n, m) if crowd >= least), default=0.0)
    return max(moved_delta(_cell_law(n, beta, least), _cell_law(m, beta, least), epsilon), certain)


@lru_cache(maxsize=64)
def _cell_law(n: int, beta: float, least: int) -> SummedCellLaw:
    """Return the law of a cell's published difference; differences below `least` are one output."""
    first, present = window(n, beta)
    left_out = LEFT_OUT if len(present) <= n or not present.all() else 0.0
    a = np.arange(first, first + len(present), dtype=np.float64)[present > 0.0]
    first, present = int(a[0]), present[present > 0.0]
    # Bin(n − 1, β) at a is Bin(n, β) at a, times (n − a)/(n(1 − β)).
    absent: Floats = present * ((n - a) / (n * (1.0 - beta)))
    below = max(min(least - first, len(a)), 0)
    if below > 0:
        present = np.append(present[:below].sum(), present[below:])
        absent = np.append(absent[:below].sum(), absent[below:])
    return SummedCellLaw(present, absent, left_out)


def released_differences_delta(*, crowd: int, sampling: float, epsilon: float, k: int | None = None) -> float:
    """Return the exact δ(ε) of a cell's published difference, the larger of both directions.

    The difference D = C₂ − C₁ of a cell with n devices is Bin(n, π_s) for any blanks: an unsampled device repeats its
    report, which cancels (SP eqs 12-16 and 11; the δ is derived here, the paper states none). Neighbours are one device
    in the cell or outside every cell, with the number queried fixed and all other devices known. So the pair is
    Bin(n, β) and Bin(n − 1, β) with β = π_s:

    δ(ε) = max( P[Bin(n,β) > t] − e^ε P[Bin(n−1,β) > t],  P[Bin(n−1,β) ≤ s] − e^ε P[Bin(n,β) ≤ s] ),
    t = ⌊n(1 − (1−β)e^−ε)⌋, s = ⌈n(1 − (1−β)e^ε)⌉ − 1.

    The difference of the two binomials is taken analytically (P[Bin(n) > t] = P[Bin(n−1) > t] + β P[Bin(n−1) = t]).
    This leaves two terms that are not nearly equal, so a small δ keeps its digits.

    Suppressed differences below k are one output. It is less likely with the device than without, so it adds nothing to
    the first direction, and it counts as a whole or not at all in the second. So the same formulas hold with t and s
    raised to k − 1, and with a negative δ replaced by 0.

    One more device in the crowd adds an independent Bernoulli(β) under both hypotheses, so without suppression δ
    never grows with the crowd.

    Parameters
    ----------
    crowd : int
        n, devices in the cell, the device in question included; at least 1.
    sampling : float
        β = π_s, in (0, 1].
    epsilon : float
        At least 0.
    k : int, optional
        Differences below `k` are suppressed. By default no difference is suppressed.

    Returns
    -------
    float
        At least βⁿ for every ε, if n ≥ k: if all n are sampled, the device must be in the cell.

    Raises
    ------
    ParameterError
        If a value is out of range.
    """
    n = check_integer("crowd", crowd, at_least=1)
    beta = check_probability("sampling", sampling, above_zero=True)
    epsilon = min(check_epsilon(epsilon), LARGEST_CROWD_EPSILON)
    least = 0 if k is None else check_integer("k", k, at_least=1)
    if n < least:
        return 0.0  # nothing is ever published
    if beta == 1.0:
        return 1.0  # the difference is the count itself
    epsilons = np.array([epsilon])
    return max(float(direction(n, beta, epsilons, least)[0]) for direction in (_present, _absent))


def worst_crowd_delta(*, k: int, sampling: float, epsilon: float, at_least: int = 1) -> float:
    """Return the greatest δ(ε) of a cell's suppressed difference over every crowd, for an unknown crowd.

    With suppression below k, differences of small crowds are never published and differences of large crowds reveal
    little, so the worst crowd lies between. While t stays at k − 1, the δ of the first direction grows with one more
    device as long as n < (k − 1)/γ, γ = 1 − (1−β)e^−ε. From t ≥ k − 1 on it is the δ without suppression, which never
    grows. The same holds for the second direction, with 1 − (1−β)e^ε for γ where that is positive. So each direction
    has one maximum, at n = ⌈(k − 1)/γ⌉, or at k if that is more. (LQS theorem 5 bounds the same quantity from above:
    `mechanisms.privacy.subsampling`.)

    Parameters
    ----------
    k : int
        Differences below `k` are suppressed; at least 1.
    sampling : float
        β = π_s, in (0, 1].
    epsilon : float
        At least 0.
    at_least : int
        Devices known to be in the cell, the device in question included; only crowds of at least this size count.

    Returns
    -------
    float
    """
    least = check_integer("k", k, at_least=1)
    certain = check_integer("at_least", at_least, at_least=1)
    beta = check_probability("sampling", sampling, above_zero=True)
    epsilons = np.array([min(check_epsilon(epsilon), LARGEST_CROWD_EPSILON)])
    if beta == 1.0:
        return 1.0  # the difference is the count itself
    crowds = (certain, LARGEST_CROWD)
    return max(float(_worst(direction, least, crowds, beta, epsilons)[0]) for direction in (_present, _absent))


def _worst(direction: "Direction", least: int, crowds: Crowds, beta: float, epsilon: Floats) -> Floats:
    """Return the greatest δ of one direction over a range of crowds, at each ε ≥ 0."""
    low, high = max(least, crowds[0]), crowds[1]
    if low > high:
        return np.zeros_like(epsilon)  # nothing is ever published
    slope = 1.0 - (1.0 - beta) * np.exp(-epsilon if direction is _present else epsilon)
    peak = np.ceil(np.minimum((least - 1) / np.where(slope > 0.0, slope, 1.0), LARGEST_CROWD))
    # One more crowd on either side, because the peak may be rounded.
    near = np.clip(peak + np.array([[-1.0], [0.0], [1.0]]), low, high)
    return np.asarray(np.where(slope > 0.0, direction(near, beta, epsilon, least), 0.0).max(axis=0))


def _present(n: Whole, beta: float, epsilon: Floats, least: int) -> Floats:
    """Return the hockey-stick divergence of Bin(n, β) against Bin(n − 1, β): large differences reveal presence."""
    # t = n is reached only by rounding, when ε is so large that only the output n, all sampled, contributes to δ.
    t = np.maximum(np.minimum(np.floor(n * (1.0 - (1.0 - beta) * np.exp(-epsilon))), np.asarray(n) - 1), least - 1)
    others = np.asarray(n, dtype=np.float64) - 1.0
    at, above = _each_once(t, others, beta, mass_above)
    return np.maximum(beta * at - np.expm1(epsilon) * above, 0.0)


def _absent(n: Whole, beta: float, epsilon: Floats, least: int) -> Floats:
    """Return the hockey-stick divergence of Bin(n − 1, β) against Bin(n, β): small differences reveal absence."""
    s = np.ceil(n * (1.0 - (1.0 - beta) * np.exp(epsilon))) - 1.0
    possible = s >= 0.0  # up to ε = −ln(1 − β)
    s = np.maximum(s, least - 1)
    # P[Bin(n) ≤ s] = P[Bin(n−1) ≤ s] − β P[Bin(n−1) = s]
    others = np.asarray(n, dtype=np.float64) - 1.0
    at, up_to = _each_once(s, others, beta, mass_up_to)
    gain = np.exp(epsilon) * beta * at - np.expm1(epsilon) * up_to
    return np.where(possible, np.maximum(gain, 0.0), 0.0)


def _each_once(k: Floats, n: Floats, p: float, tail: Callable[[Whole, Whole, float], Floats]) -> tuple[Floats, Floats]:
    """Return P[Bin(n, p) = k] and a tail at k, computed once for neighbouring entries with equal k and n.

    Along a curve in ε, k is a bound that is rounded to a whole number and kept above the threshold of suppression, so
    a thousand values of ε may have only tens of values of k.
    """
    successes, trials = np.broadcast_arrays(k, n)
    flat, several = successes.ravel(), trials.ravel()
    new = np.append(True, (np.diff(flat) != 0.0) | (np.diff(several) != 0.0))
    where = (np.cumsum(new) - 1).reshape(successes.shape)
    return mass_at(flat[new], several[new], p)[where], tail(flat[new], several[new], p)[where]


Direction = Callable[[Whole, float, Floats, int], Floats]

# Points at which the curve of the worst crowd is evaluated, on either side of ε = 0.
POINTS = 1_500
# Beyond the last point the curve is taken as flat: it ends where it falls by less than this share of δ from there on.
END_SHARE = 1e-5
# The same for a curve that is composed over queries.
COMPOSED_SHARE = 1e-16


def dominating_move_delta(
    *, k: int, sampling: float, epsilon: float, crowd: int = 1, other_crowd: int = 1, points: int = POINTS
) -> float:
    """Return a bound of δ(ε) of the suppressed differences for a device that moves, from a pair that covers all crowds.

    A move between two cells changes two independent differences: one as if a device left, the other as if it entered.
    Let h(x) be the greatest H_x(Bin(n, β)‖Bin(n − 1, β)) over all crowds n, at every x = e^ε, ε of any sign
    (`worst_crowd_delta` finds the greatest for each direction). A pair with this h dominates every crowd, so the
    product of the pair and its reverse dominates every move (Zhu, Dong and Wang, theorem 10). h is convex. Between the
    points at which it is evaluated its chord is used, which lies above it, and beyond the last its last value.

    Parameters
    ----------
    k : int
        Differences below `k` are suppressed; at least 1.
    sampling : float
        β = π_s, in (0, 1].
    epsilon : float
        At least 0.
    crowd, other_crowd : int
        At least this many devices are in each cell while the device is in it, the device included.
    points : int
        Points of the curve on either side of ε = 0; fewer are faster and give a greater bound.

    Returns
    -------
    float
        At least `worst_move_delta`. No single crowd is the worst at every x, so it is not attained.
    """
    search = MoveSearch(k, sampling, min(epsilon, LARGEST_CROWD_EPSILON), points)
    return 1.0 if sampling == 1.0 else search.bound(((crowd, LARGEST_CROWD), (other_crowd, LARGEST_CROWD)))


@lru_cache(maxsize=1024)
def worst_move_delta(*, k: int, sampling: float, epsilon: float, crowd: int = 1, other_crowd: int = 1) -> float:
    """Return the greatest δ(ε) of the suppressed differences for a device that moves, over all crowds of both cells.

    The worst two crowds differ in general: at k = 10, β = .45 and ε = .5 they are 15 and 20. They are searched by
    branch and bound. The pair of `dominating_move_delta` for a range of crowds of each cell bounds every two crowds in
    the ranges, because the δ of one cell has a single maximum over the crowds, which is moved into the range. The
    ranges are divided until the greatest bound is within 0.1 % of the greatest δ found, or 400 times.

    Parameters
    ----------
    k, sampling, epsilon, crowd, other_crowd
        As in `dominating_move_delta`.

    Returns
    -------
    float
        Never below the δ of any two crowds of at least these sizes (`moved_differences_delta`), and usually at most
        0.1 % above the greatest.

    Raises
    ------
    ParameterError
        If a value is out of range.
    """
    check_integer("k", k, at_least=1)
    least = tuple(
        check_integer(field, number, at_least=1) for field, number in (("crowd", crowd), ("other_crowd", other_crowd))
    )
    if check_probability("sampling", sampling, above_zero=True) == 1.0:
        return 1.0  # the differences are the counts themselves
    epsilon = min(check_epsilon(epsilon), LARGEST_CROWD_EPSILON)
    return MoveSearch(k, sampling, epsilon).maximum(((least[0], LARGEST_CROWD), (least[1], LARGEST_CROWD)))


@dataclass(frozen=True)
class MoveSearch:
    """The search for the two crowds between which a move is revealed most (`worst_move_delta`).

    Parameters
    ----------
    k : int
        Differences below `k` are suppressed.
    sampling : float
        β = π_s, below 1.
    epsilon : float
        ε.
    points : int
        Points of a curve that bounds a range of crowds.
    """

    k: int
    sampling: float
    epsilon: float
    points: int = POINTS

    def maximum(self, everything: tuple[Crowds, Crowds]) -> float:
        """Return the certified greatest δ over two ranges of crowds."""
        reached = self._climb(everything)
        ranges = [(-self.bound(everything), everything)]
        for _ in range(MOST_RANGES):
            if -ranges[0][0] <= reached * (1.0 + GAP):
                break
            _, both = heapq.heappop(ranges)
            wider = int(both[1][1] / both[1][0] > both[0][1] / both[0][0])
            low, high = both[wider]
            middle = min((low + high) // 2, 2 * max(low, self.k))
            for part in ((low, middle), (middle + 1, high)):
                offered = (both[0], part) if wider else (part, both[1])
                if part[0] <= part[1] and (bound := self.bound(offered)) > reached:
                    reached = max(reached, self.at(offered[0][0], offered[1][0]))
                    heapq.heappush(ranges, (-bound, offered))
            if not ranges:
                return reached
        return max(reached, -ranges[0][0])

    def at(self, crowd: int, other_crowd: int) -> float:
        """Return the exact δ for two crowds."""
        return moved_differences_delta(
            crowd=crowd, other_crowd=other_crowd, sampling=self.sampling, epsilon=self.epsilon, k=self.k
        )

    def bound(self, both: tuple[Crowds, Crowds]) -> float:
        """Return a bound of δ for every two crowds of two ranges."""
        if all(low == high for low, high in both):
            return self.at(both[0][0], both[1][0])
        first, second = (self._law(crowds) for crowds in both)
        return moved_delta(first, second, self.epsilon)

    def _law(self, crowds: Crowds) -> SummedCellLaw:
        """Return a law that dominates the law of every crowd of a range."""
        low, high = crowds
        if high < self.k:
            return SummedCellLaw(np.ones(1), np.ones(1))  # nothing is ever published
        if low == high:
            return _cell_law(low, self.sampling, self.k)
        absent, present = _worst_pair(self.k, crowds, self.sampling, self.epsilon, self.points)
        return SummedCellLaw(present, absent)

    def _climb(self, everything: tuple[Crowds, Crowds]) -> float:
        """Return the δ of a local maximum, from the worst crowd of one cell by steps that are halved."""
        (low, _), (other_low, _) = everything
        slope = -math.expm1(math.log1p(-self.sampling) - self.epsilon)
        peak = math.ceil(min(self.k / slope, LARGEST_CROWD))
        best, place = 0.0, (0, 0)
        for start in ((max(low, peak), max(other_low, peak)), (max(low, peak), other_low), (low, max(other_low, peak))):
            (n, m), here, step = start, self.at(*start), max(peak // 2, 1)
            while step:
                around = [(n + step, m), (n - step, m), (n, m + step), (n, m - step)]
                heights = [(self.at(a, b), (a, b)) for a, b in around if a >= low and b >= other_low]
                height, there = max(heights)
                if height > here:
                    here, (n, m) = height, there
                else:
                    step //= 2
            best, place = max((best, place), (here, (n, m)))
        return best


def differences_law(*, sampling: float, crowd: int, k: int | None, moves: bool, points: int) -> SummedCellLaw:
    """Return a law that dominates one cell's published difference for every crowd from this one on.

    Without suppression, it is the law of the least crowd. Its tail goes on until it hardly falls even after many
    queries. Unless the device moves, a law of several crowds dominates both directions at once.
    """
    if k is None:
        return _cell_law(crowd, sampling, 0)
    absent, present = _worst_pair(k, (crowd, LARGEST_CROWD), sampling, 0.0, points, COMPOSED_SHARE, mirrored=not moves)
    return SummedCellLaw(present, absent, mirrored=not moves)


@lru_cache(maxsize=1024)
def _worst_pair(
    least: int,
    crowds: Crowds,
    beta: float,
    epsilon: float,
    points: int,
    end_share: float = END_SHARE,
    *,
    mirrored: bool = False,
) -> Pair:
    """Return a pair, absent and present, that dominates a range of crowds, with detail where a move needs it."""
    lowest = -math.log1p(-beta)
    ends = np.minimum(epsilon + lowest * np.geomspace(0.01, 1e5, min(points, 200)), LARGEST_CROWD_EPSILON)
    tails = _worst(_present, least, crowds, beta, np.append(epsilon, ends))
    end = ends[int(np.argmax(tails[1:] - tails[-1] <= end_share * tails[0]))]
    up, down = _distinct(np.linspace(0.0, end, points)), _distinct(np.linspace(0.0, lowest, points))
    if mirrored:
        up = down = _distinct(np.linspace(0.0, max(end, lowest), points))
    there, elsewhere = _worst(_present, least, crowds, beta, up), _worst(_absent, least, crowds, beta, down)
    if mirrored:
        there = elsewhere = np.maximum(there, elsewhere)
    present, absent = pair_of_curve(np.exp(up), there, np.exp(down), elsewhere)
    return absent, present


def _distinct(epsilons: Floats) -> Floats:
    """Return ascending ε; an ε whose e^ε equals the one before is left out: β may be 1e-11."""
    return np.asarray(epsilons[np.append(True, np.diff(np.exp(epsilons)) > 0.0)])


def counts_curve(*, crowd: int, sampling: float, seen: float) -> CrowdRatioDelta:
    """Return δ(ε) of both rounds' published counts when only the crowd was asked, the larger of both directions.

    The device is in the cell or outside every cell, the number asked is fixed, and all other devices are known. Let K
    be the difference, the number of sampled devices of the cell. In addition to K the counts reveal how many unsampled
    devices gave a blank that can be distinguished from a sampled device's 0:

    - multi-valued: R = Σ_{v≥1} C_v,₁, the devices whose blank is not 0; the counts of 0 follow from K, R and
      n, and the division of R among the cells is the same under both hypotheses;
    - one question: R = C1₁, the devices whose blank is 1.

    In both cases a device outside is in R with probability (1 − π_s)s, s = `seen`, as often as a device in the cell,
    and it is never in K. So K is the number of devices that answer up, with π_s or never, and n − K − R is the number
    that answer still, with z = 1 − π_s − (1 − π_s)s or with π_s more (`CrowdRatioDelta`). With z = 0 only a device that
    is outside and sampled answers still: δ ≥ π_s.

    Parameters
    ----------
    crowd : int
        n, the device in question included, at least 1.
    sampling : float
        π_s, in (0, 1).
    seen : float
        s, probability that an unsampled device's blank is in R, in [0, 1].
    """
    rest = (1.0 - sampling) * (1.0 - seen)
    return CrowdRatioDelta(
        crowd=crowd,
        up=sampling,
        still=rest,
        up_ratio=0.0,
        still_ratio=1.0 + sampling / rest if rest > 0.0 else 1.0,
        apart=0.0 if rest > 0.0 else sampling,
    )


def released_counts_claim(view: ReleasedCounts, *, sampling: float, seen: float, by_cell: bool = False) -> Claim:
    """Return the claim of both rounds' published counts about one device, in its cell or outside every cell.

    Every other device asked adds the same independent counts under both hypotheses. So a crowd that is asked alone is
    the worst case, and its δ bounds every case with more devices.

    Parameters
    ----------
    view : ReleasedCounts
        The crowd and the queries.
    sampling : float
        π_s.
    seen : float
        (1 − π_s − π_0)/(1 − π_s): probability that an unsampled device's blank is not 0.
    by_cell : bool
        Whether a device answers about each cell apart, with coins of its own. Then the counts of the two cells of a
        move are independent, and the two are composed.

    Returns
    -------
    Claim
        "infinite" at δ = 0, since δ(ε) ≥ π_sⁿ; δ a bound, attained for one query where only the crowds were asked.
    """
    basis = (
        "K and the unsampled blanks of round one, for one device between the cell and outside, all others known "
        "(from SP eqs 6-16)"
    )
    if sampling == 1.0:
        return Claim.exact(math.inf, ConstantDelta(1.0), f"{basis}; with π_s = 1 the counts are the truth.")
    leaving = counts_curve(crowd=view.crowd or 1, sampling=sampling, seen=seen)
    curve: CrowdRatioDelta | MovedCountsDelta = leaving
    times = view.queries
    if view.adjacency == "move" and by_cell:
        times *= 2
        basis += "; a move changes the counts about two cells, which are independent"
    elif view.adjacency == "move":
        curve = MovedCountsDelta(view.crowd or 1, sampling, leaving)
        basis += "; between two cells K of both, since the blanks depend on their sum only"
    more = "" if times == 1 else COMPOSED
    return Claim.infinite(
        composed(curve, times),
        f"{basis}; exact where no other device was queried; every other queried device only lowers δ{more}.",
    )


@dataclass(frozen=True)
class MovedCountsDelta:
    """δ(ε) of both rounds' counts for a device that moves between two cells, or between one and outside.

    Let K and K' be the differences of the two cells. The devices that are not sampled answer blanks, whatever their
    cells. Their number is the number of devices less K + K', which does not depend on the device's cell. So given
    K and K', round one's counts have the same distribution under both hypotheses, and a move between two cells is
    revealed by the two differences alone (`moved_differences_delta`).

    Parameters
    ----------
    crowd : int
        n, devices in each of the two cells while the device is in it, the device included.
    sampling : float
        π_s, below 1.
    leaving : CrowdRatioDelta
        δ(ε) for a device in its cell or outside.
    """

    crowd: int
    sampling: float
    leaving: CrowdRatioDelta

    def __call__(self, epsilon: float) -> float:
        """Return δ of one query."""
        return float(self.each(np.array([epsilon]))[0])

    def each(self, epsilons: Floats) -> Floats:
        """Return δ of one query at each ε."""
        crowds = {"crowd": self.crowd, "other_crowd": self.crowd}
        between = [moved_differences_delta(**crowds, sampling=self.sampling, epsilon=e) for e in epsilons.tolist()]
        return np.maximum(between, self.leaving.each(epsilons))


@dataclass(frozen=True)
class ReleasedDelta:
    """δ(ε) of the published differences of one query as a function of ε, for crowds of at least the view's.

    Without suppression it is the δ of the least crowds, since one more device never reveals more. With suppression it
    is the greatest over all crowds from these on.

    Parameters
    ----------
    view : ReleasedDifferences
        Crowds and threshold.
    sampling : float
        π_s.
    searched : bool
        Whether the two worst crowds of a move are searched, or a pair that covers all crowds is used.
    points : int
        Of that pair's curve, on either side of ε = 0.
    """

    view: ReleasedDifferences
    sampling: float
    searched: bool = True
    points: int = POINTS

    def __call__(self, epsilon: float) -> float:
        """Return δ at this ε."""
        crowd, other, k = self.view.crowd or 1, self.view.other_crowd or 1, self.view.k
        moves = self.view.adjacency == "move"
        if k is None and moves:
            return moved_differences_delta(crowd=crowd, other_crowd=other, sampling=self.sampling, epsilon=epsilon)
        if k is None:
            return released_differences_delta(crowd=crowd, sampling=self.sampling, epsilon=epsilon)
        if not moves:
            return worst_crowd_delta(k=k, sampling=self.sampling, epsilon=epsilon, at_least=crowd)
        beta, points = self.sampling, self.points
        if self.searched:
            return worst_move_delta(k=k, sampling=beta, epsilon=epsilon, crowd=crowd, other_crowd=other)
        return dominating_move_delta(k=k, sampling=beta, epsilon=epsilon, crowd=crowd, other_crowd=other, points=points)

    def laws(self) -> tuple[Pair, ...]:
        """Return the pairs that dominate one query for every crowd from the view's on; none if two crowds differ."""
        crowd, moves = self.view.crowd or 1, self.view.adjacency == "move"
        if moves and crowd != (self.view.other_crowd or 1):
            return ()
        law = differences_law(sampling=self.sampling, crowd=crowd, k=self.view.k, moves=moves, points=self.points)
        return law.laws(moves=moves)


def released_differences_claim(view: ReleasedDifferences, sampling: float) -> Claim:
    """Return the claim of published differences about one device: in its cell, or where the view states instead.

    Parameters
    ----------
    view : ReleasedDifferences
        The least crowds, the threshold and the queries.
    sampling : float
        π_s.

    Returns
    -------
    Claim
        "infinite" at δ = 0, since δ(ε) ≥ π_sⁿ for the least n that may be published; δ exact for one query, but for a
        suppressed move a bound, usually within 0.1 % (`worst_move_delta`); a bound for more queries.
    """
    basis = _basis(view)
    if sampling == 1.0:
        return Claim.exact(math.inf, ConstantDelta(1.0), f"{basis}; with π_s = 1, D is the count itself.")
    suppressed_move = view.k is not None and view.adjacency == "move"
    curve = ReleasedDelta(replace(view, queries=1), sampling, searched=view.queries == 1)
    if view.queries == 1:
        if suppressed_move:
            return Claim.infinite(curve, f"{basis}.")
        return Claim.exact(math.inf, curve, f"{basis}.")
    return Claim.infinite(composed(curve, view.queries), f"{basis}{COMPOSED}.")


def _basis(view: ReleasedDifferences) -> str:
    """Return the basis of the claim, without a full stop."""
    suppressed = "" if view.k is None else f", differences below {view.k} suppressed"
    given = f"the number queried fixed, all others known{suppressed} (from SP eqs 11-16)"
    crowds = [crowd for crowd in (view.crowd, view.other_crowd) if crowd is not None]
    least = " and ".join(f"{crowd:,}" for crowd in dict.fromkeys(crowds))
    from_on = f"from {least} on" if crowds else "of all"
    if view.adjacency == "move":
        worst = "" if view.k is None else f", at the worst n and m {from_on}, searched with a certified bound"
        return (
            "Two differences, (Bin(n, π_s), Bin(m − 1, π_s)) against (Bin(n − 1, π_s), Bin(m, π_s)), for one device "
            f"between two cells{worst}, {given}; δ(ε) ≥ π_s^min(n, m) where that is published, so no ε is finite"
        )
    worst = "" if view.k is None else f", at the worst n {from_on} (LQS theorem 5 bounds it)"
    return (
        f"D is Bin(n, π_s) against Bin(n − 1, π_s) for one device between the cell and outside every cell{worst}, "
        f"{given}; δ(ε) ≥ π_sⁿ where that is published, so no ε is finite"
    )
