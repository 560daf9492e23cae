"""Claims about published counts and differences of two rounds: exact for one query, bounded for several."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mechanisms.parameter import check_epsilon, check_integer, check_probability
from mechanisms.privacy.binomial import LEFT_OUT, Whole, mass_above, mass_at, mass_up_to, window
from mechanisms.privacy.claim import LARGEST_CROWD_EPSILON, ConstantDelta, PrivacyClaim
from mechanisms.privacy.composition import COMPOSED, composed
from mechanisms.privacy.hockey_stick import Pair, pair_of_curve
from mechanisms.privacy.published_sums import CellLaw, moved_delta
from mechanisms.privacy.shuffled import CrowdRatioDelta
from mechanisms.privacy.view import ReleasedCounts, ReleasedDifferences


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


def _cell_law(n: int, beta: float, least: int) -> CellLaw:
    """Return the law of a cell's published difference; differences below `least` are one output."""
    first, present = window(n, beta)
    left_out = LEFT_OUT if len(present) <= n or not present.all() else 0.0
    a = np.arange(first, first + len(present), dtype=np.float64)[present > 0.0]
    first, present = int(a[0]), present[present > 0.0]
    # Bin(n − 1, β) at a is Bin(n, β) at a, times (n − a)/(n(1 − β)).
    absent: NDArray[np.float64] = present * ((n - a) / (n * (1.0 - beta)))
    below = max(min(least - first, len(a)), 0)
    if below > 0:
        present = np.append(present[:below].sum(), present[below:])
        absent = np.append(absent[:below].sum(), absent[below:])
    return CellLaw(present, absent, left_out)


def released_counts_delta(*, crowd: int, sampling: float, seen: float, epsilon: float) -> float:
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
        π_s, in (0, 1].
    seen : float
        s, probability that an unsampled device's blank is in R, in [0, 1].
    epsilon : float
        At least 0.

    Returns
    -------
    float
        Accurate to 1e-15, and at least π_sⁿ.

    Raises
    ------
    ParameterError
        If a value is out of range.
    """
    n = check_integer("crowd", crowd, at_least=1)
    beta = check_probability("sampling", sampling, above_zero=True)
    check_probability("seen", seen)
    if beta == 1.0:
        return 1.0  # the counts are the truth
    return _curve(n, beta, seen)(epsilon)


def _curve(crowd: int, sampling: float, seen: float) -> CrowdRatioDelta:
    """Return δ(ε) of both rounds' counts, for π_s below 1."""
    rest = (1.0 - sampling) * (1.0 - seen)
    return CrowdRatioDelta(
        crowd=crowd,
        up=sampling,
        still=rest,
        up_ratio=0.0,
        still_ratio=1.0 + sampling / rest if rest > 0.0 else 1.0,
        apart=0.0 if rest > 0.0 else sampling,
    )


def released_counts_claim(view: ReleasedCounts, *, sampling: float, seen: float) -> PrivacyClaim:
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

    Returns
    -------
    PrivacyClaim
        "infinite" at δ = 0, since δ(ε) ≥ π_sⁿ; δ a bound, attained for one query where only the crowd was asked. For a
        move a bound from its two steps.
    """
    if view.adjacency == "move":
        leaving = replace(view, adjacency="enter_leave")
        return released_counts_claim(leaving, sampling=sampling, seen=seen).of_move()
    basis = (
        "K and the unsampled blanks of round one, for one device between the cell and outside, all others known "
        "(from SP eqs 6-16)"
    )
    if sampling == 1.0:
        return PrivacyClaim.exact(math.inf, ConstantDelta(1.0), f"{basis}; with π_s = 1 the counts are the truth.")
    more = "" if view.queries == 1 else COMPOSED
    return PrivacyClaim.bound(
        math.inf,
        composed(_curve(view.crowd or 1, sampling, seen), view.queries),
        f"{basis}; exact where no other device was queried; every other queried device only lowers δ{more}.",
    )


# n·e^ε overflows a double for ε above this; there δ comes only from outputs that reveal the truth with certainty.
# A worst crowd above this has a δ of 0 to the last digit.
LARGEST_CROWD = 10**15


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
    one = np.array([epsilon])
    return max(float(direction(n, beta, one, least)[0]) for direction in (_present, _absent))


def worst_crowd_delta(*, k: int, sampling: float, epsilon: float, at_least: int = 1) -> float:
    """Return the greatest δ(ε) of a cell's suppressed difference over every crowd, for an unknown crowd.

    With suppression below k, differences of small crowds are never published and those of large crowds reveal little,
    so the worst crowd lies between. While t stays at k − 1, the δ of the first direction grows with one more device as
    long as n < (k − 1)/γ, γ = 1 − (1−β)e^−ε. From t ≥ k − 1 on it is the δ without suppression, which never grows. The
    same holds for the second direction, with 1 − (1−β)e^ε for γ where that is positive. So each direction has one
    maximum, at n = ⌈(k − 1)/γ⌉, or at k if that is more. (LQS theorem 5 bounds the same quantity from
    above: `mechanisms.privacy.subsampling`.)

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
    known = check_integer("at_least", at_least, at_least=1)
    beta = check_probability("sampling", sampling, above_zero=True)
    one = np.array([min(check_epsilon(epsilon), LARGEST_CROWD_EPSILON)])
    if beta == 1.0:
        return 1.0  # the difference is the count itself
    return max(float(_worst(direction, least, known, beta, one)[0]) for direction in (_present, _absent))


def _worst(
    direction: "Direction", least: int, known: int, beta: float, epsilon: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the greatest δ of one direction over all crowds of at least `known`, at each ε ≥ 0."""
    slope = 1.0 - (1.0 - beta) * np.exp(-epsilon if direction is _present else epsilon)
    peak = np.ceil(np.minimum((least - 1) / np.where(slope > 0.0, slope, 1.0), LARGEST_CROWD))
    # One more crowd on either side, because the peak may be rounded.
    crowds = np.maximum(peak + np.array([[-1.0], [0.0], [1.0]]), max(least, known))
    greatest: NDArray[np.float64] = np.where(slope > 0.0, direction(crowds, beta, epsilon, least), 0.0).max(axis=0)
    return greatest


def _present(n: Whole, beta: float, epsilon: NDArray[np.float64], least: int) -> NDArray[np.float64]:
    """Return the hockey-stick divergence of Bin(n, β) against Bin(n − 1, β): large differences reveal presence."""
    # t = n is reached only by rounding, when ε is so large that only the output n, all sampled, contributes to δ.
    t = np.maximum(np.minimum(np.floor(n * (1.0 - (1.0 - beta) * np.exp(-epsilon))), np.asarray(n) - 1), least - 1)
    others = np.asarray(n, dtype=np.float64) - 1.0
    return np.maximum(beta * mass_at(t, others, beta) - np.expm1(epsilon) * mass_above(t, others, beta), 0.0)


def _absent(n: Whole, beta: float, epsilon: NDArray[np.float64], least: int) -> NDArray[np.float64]:
    """Return the hockey-stick divergence of Bin(n − 1, β) against Bin(n, β): small differences reveal absence."""
    s = np.ceil(n * (1.0 - (1.0 - beta) * np.exp(epsilon))) - 1.0
    possible = s >= 0.0  # up to ε = −ln(1 − β)
    s = np.maximum(s, least - 1)
    # P[Bin(n) ≤ s] = P[Bin(n−1) ≤ s] − β P[Bin(n−1) = s]
    others = np.asarray(n, dtype=np.float64) - 1.0
    gain = np.exp(epsilon) * beta * mass_at(s, others, beta) - np.expm1(epsilon) * mass_up_to(s, others, beta)
    return np.where(possible, np.maximum(gain, 0.0), 0.0)


Direction = Callable[[Whole, float, NDArray[np.float64], int], NDArray[np.float64]]

# Points at which the curve of the worst crowd is evaluated, on either side of ε = 0.
POINTS = 1_500
# Beyond the last point the curve is taken as flat: it ends where it falls by less than this share of δ from there on.
END_SHARE = 1e-5


def worst_move_delta(*, k: int, sampling: float, epsilon: float) -> float:
    """Return a bound of δ(ε) of the suppressed differences for a device that moves, over all crowds of both cells.

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

    Returns
    -------
    float
        At least the δ of every pair of crowds (`moved_differences_delta`), and at least `worst_crowd_delta`. No single
        crowd is the worst at every x, so it is not attained.
    """
    least = check_integer("k", k, at_least=1)
    beta = check_probability("sampling", sampling, above_zero=True)
    epsilon = min(check_epsilon(epsilon), LARGEST_CROWD_EPSILON)
    if beta == 1.0:
        return 1.0  # the differences are the counts themselves
    absent, present = _worst_pair(least, beta, epsilon)
    law = CellLaw(present, absent)
    return moved_delta(law, law, epsilon)


@lru_cache(maxsize=64)
def _worst_pair(least: int, beta: float, epsilon: float) -> Pair:
    """Return a pair, absent and present, that dominates every crowd, with its detail where δ(ε) of a move needs it."""
    lowest = -math.log1p(-beta)
    ends = np.minimum(epsilon + lowest * np.geomspace(0.01, 1e5, 200), LARGEST_CROWD_EPSILON)
    tails = _worst(_present, least, 1, beta, np.append(epsilon, ends))
    end = ends[int(np.argmax(tails[1:] - tails[-1] <= END_SHARE * tails[0]))]
    up, down = _distinct(np.linspace(0.0, end, POINTS)), _distinct(np.linspace(0.0, lowest, POINTS))
    present, absent = pair_of_curve(
        np.exp(up), _worst(_present, least, 1, beta, up), np.exp(down), _worst(_absent, least, 1, beta, down)
    )
    return absent, present


def _distinct(epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ascending ε without those whose e^ε is the same number as that of the one before: β may be 1e-11."""
    kept: NDArray[np.float64] = epsilons[np.append(True, np.diff(np.exp(epsilons)) > 0.0)]
    return kept


@dataclass(frozen=True)
class ReleasedDelta:
    """δ(ε) of the published differences of one query as a function of ε.

    Parameters
    ----------
    view : ReleasedDifferences
        Crowds and threshold.
    sampling : float
        π_s.
    """

    view: ReleasedDifferences
    sampling: float

    def __call__(self, epsilon: float) -> float:
        """Return δ at this ε."""
        crowd, k = self.view.crowd, self.view.k
        if crowd is None:
            worst = worst_move_delta if self.view.adjacency == "move" else worst_crowd_delta
            return worst(k=k or 1, sampling=self.sampling, epsilon=epsilon)
        if self.view.other_crowd is None:
            return released_differences_delta(crowd=crowd, sampling=self.sampling, epsilon=epsilon, k=k)
        return moved_differences_delta(
            crowd=crowd, other_crowd=self.view.other_crowd, sampling=self.sampling, epsilon=epsilon, k=k
        )


def released_differences_claim(view: ReleasedDifferences, sampling: float) -> PrivacyClaim:
    """Return the claim of published differences about one device: in its cell, or where the view states instead.

    Parameters
    ----------
    view : ReleasedDifferences
        The crowds, the threshold and the queries.
    sampling : float
        π_s.

    Returns
    -------
    PrivacyClaim
        "infinite" at δ = 0, since δ(ε) ≥ π_sⁿ; δ exact for one query and a bound for more. For a move between any two
        crowds δ is a bound (`worst_move_delta`).
    """
    crowds = [crowd for crowd in (view.crowd, view.other_crowd) if crowd is not None]
    if view.k is not None and crowds and max(crowds) < view.k:
        return PrivacyClaim.exact(0.0, ConstantDelta(0.0), "A difference of fewer than k devices is never published.")
    basis = _basis(view)
    if sampling == 1.0:
        return PrivacyClaim.exact(math.inf, ConstantDelta(1.0), f"{basis}; with π_s = 1, D is the count itself.")
    curve = ReleasedDelta(replace(view, queries=1), sampling)
    if view.queries == 1:
        kind = PrivacyClaim.bound if view.crowd is None and view.adjacency == "move" else PrivacyClaim.exact
        return kind(math.inf, curve, f"{basis}.")
    return PrivacyClaim.bound(math.inf, composed(curve, view.queries), f"{basis}{COMPOSED}.")


def _basis(view: ReleasedDifferences) -> str:
    """Return the basis of the claim, without a full stop."""
    suppressed = "" if view.k is None else f", differences below {view.k} suppressed"
    known = f"the number queried fixed, all others known{suppressed} (from SP eqs 11-16)"
    if view.crowd is None and view.adjacency == "move":
        return (
            "Two differences, (Bin(n, π_s), Bin(m − 1, π_s)) against (Bin(n − 1, π_s), Bin(m, π_s)), for one device "
            f"between two cells, bounded for all n and m by a pair that dominates every crowd, {known}"
        )
    if view.crowd is None:
        return (
            "D is Bin(n, π_s) against Bin(n − 1, π_s) for one device between the cell and outside every cell, at the "
            f"worst n of all, {known}; LQS theorem 5 bounds the same from above"
        )
    if view.other_crowd is not None:
        return (
            "Two differences, (Bin(n, π_s), Bin(m − 1, π_s)) against (Bin(n − 1, π_s), Bin(m, π_s)), for one device "
            f"between two cells, {known}; δ(ε) ≥ π_s^min(n, m) where that is published, so no ε is finite"
        )
    return (
        f"D is Bin(n, π_s) against Bin(n − 1, π_s) for one device between the cell and outside every cell, {known}; "
        "δ(ε) ≥ π_sⁿ, so no ε is finite"
    )
