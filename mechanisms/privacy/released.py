"""Claims about published counts and differences of two rounds: exact for one query, bounded for several."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mechanisms.privacy.claim import ConstantDelta, PrivacyClaim
from mechanisms.privacy.composition import COMPOSED, composed
from mechanisms.privacy.hockey_stick import Pair
from mechanisms.privacy.published_differences import (
    POINTS,
    differences_law,
    dominating_move_delta,
    moved_differences_delta,
    released_differences_delta,
    worst_crowd_delta,
    worst_move_delta,
)
from mechanisms.privacy.shuffled import CrowdRatioDelta
from mechanisms.privacy.view import ReleasedCounts, ReleasedDifferences


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


def released_counts_claim(view: ReleasedCounts, *, sampling: float, seen: float, by_cell: bool = False) -> PrivacyClaim:
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
    PrivacyClaim
        "infinite" at δ = 0, since δ(ε) ≥ π_sⁿ; δ a bound, attained for one query where only the crowds were asked.
    """
    basis = (
        "K and the unsampled blanks of round one, for one device between the cell and outside, all others known "
        "(from SP eqs 6-16)"
    )
    if sampling == 1.0:
        return PrivacyClaim.exact(math.inf, ConstantDelta(1.0), f"{basis}; with π_s = 1 the counts are the truth.")
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
    return PrivacyClaim.bound(
        math.inf,
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

    def each(self, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return δ of one query at each ε."""
        crowds = {"crowd": self.crowd, "other_crowd": self.crowd}
        between = [moved_differences_delta(**crowds, sampling=self.sampling, epsilon=e) for e in epsilons.tolist()]
        return np.maximum(between, self.leaving.each(epsilons))


@dataclass(frozen=True)
class ReleasedDelta:
    """δ(ε) of the published differences of one query as a function of ε, for crowds of at least the view's.

    Without suppression it is that of the least crowds, since one more device never reveals more. With suppression it is
    the greatest over all crowds from these on.

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


def released_differences_claim(view: ReleasedDifferences, sampling: float) -> PrivacyClaim:
    """Return the claim of published differences about one device: in its cell, or where the view states instead.

    Parameters
    ----------
    view : ReleasedDifferences
        The least crowds, the threshold and the queries.
    sampling : float
        π_s.

    Returns
    -------
    PrivacyClaim
        "infinite" at δ = 0, since δ(ε) ≥ π_sⁿ for the least n that may be published; δ exact for one query, but for a
        suppressed move a bound, usually within 0.1 % (`worst_move_delta`); a bound for more queries.
    """
    basis = _basis(view)
    if sampling == 1.0:
        return PrivacyClaim.exact(math.inf, ConstantDelta(1.0), f"{basis}; with π_s = 1, D is the count itself.")
    suppressed_move = view.k is not None and view.adjacency == "move"
    curve = ReleasedDelta(replace(view, queries=1), sampling, searched=view.queries == 1)
    if view.queries == 1:
        kind = PrivacyClaim.bound if suppressed_move else PrivacyClaim.exact
        return kind(math.inf, curve, f"{basis}.")
    return PrivacyClaim.bound(math.inf, composed(curve, view.queries), f"{basis}{COMPOSED}.")


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
