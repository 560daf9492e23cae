"""Claims about published differences: one query exactly, several bounded, and the worst crowd where none is known."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.privacy.binomial import mass_at
from mechanisms.privacy.claim import ConstantDelta, PrivacyClaim
from mechanisms.privacy.composition import ComposedDelta
from mechanisms.privacy.dominating_pair import dominating_pair
from mechanisms.privacy.moved_differences import moved_differences_delta
from mechanisms.privacy.released_differences import released_differences_delta, worst_crowd_delta
from mechanisms.privacy.view import ReleasedDifferences

# Crowds whose whole distribution is composed over queries; for larger ones δs are simply added up.
LARGEST_COMPOSED = 2_000


@dataclass(frozen=True)
class ReleasedDelta:
    """δ(ε) of published differences as a function of ε; over several queries a bound, the least of those given.

    Parameters
    ----------
    view : ReleasedDifferences
        Crowds, threshold and queries: over T of them ε and δ add up (basic composition), T·δ(ε/T), which is
        the better bound where δ is tiny.
    sampling : float
        π_s.
    composed : ComposedDelta, optional
        A bound by numerical composition, better elsewhere.
    """

    view: ReleasedDifferences
    sampling: float
    composed: ComposedDelta | None = None

    def __call__(self, epsilon: float) -> float:
        """Return δ, or the bound of it."""
        queries = self.view.queries
        added = min(1.0, queries * self._single(epsilon / queries))
        return added if self.composed is None else min(added, self.composed(epsilon))

    def _single(self, epsilon: float) -> float:
        """Return δ for one query."""
        crowd, k = self.view.crowd, self.view.k
        if crowd is None:
            return worst_crowd_delta(k=k or 1, sampling=self.sampling, epsilon=epsilon)
        if self.view.other_crowd is None:
            return released_differences_delta(crowd=crowd, sampling=self.sampling, epsilon=epsilon, k=k)
        return moved_differences_delta(
            crowd=crowd, other_crowd=self.view.other_crowd, sampling=self.sampling, epsilon=epsilon, k=k
        )


def released_differences_claim(view: ReleasedDifferences, sampling: float) -> PrivacyClaim:
    """Return what published differences tell about one device: in its cell, or where the view says instead.

    Parameters
    ----------
    view : ReleasedDifferences
        The crowds, the threshold and the queries.
    sampling : float
        π_s.

    Returns
    -------
    PrivacyClaim
        "infinite" at δ = 0, since δ(ε) ≥ π_sⁿ; δ exact for one query and a bound for more.
    """
    crowds = [crowd for crowd in (view.crowd, view.other_crowd) if crowd is not None]
    if view.k is not None and crowds and max(crowds) < view.k:
        return PrivacyClaim.exact(0.0, ConstantDelta(0.0), "A difference of fewer than k devices is never published.")
    basis = _basis(view)
    if sampling == 1.0:
        return PrivacyClaim.exact(math.inf, ConstantDelta(1.0), f"{basis}; with π_s = 1, D is the count itself.")
    curve = ReleasedDelta(view, sampling)
    if view.queries == 1:
        return PrivacyClaim.exact(math.inf, curve, f"{basis}.")
    if view.crowd is None or view.other_crowd is not None or view.crowd > LARGEST_COMPOSED:
        return PrivacyClaim.bound(math.inf, curve, f"{basis}; over T queries T·δ(ε/T), by basic composition.")
    present, absent = (_published(n, view.crowd, view.k, sampling) for n in (view.crowd, view.crowd - 1))
    # The device may come at one query and go at another, so both directions must be dominated at once.
    p, q = dominating_pair([(present, absent), (absent, present)])
    composed = ComposedDelta.from_pair(p, q, queries=view.queries)
    return PrivacyClaim.bound(
        math.inf,
        ReleasedDelta(view, sampling, composed),
        f"{basis}; over T queries the lesser of T·δ(ε/T) and the composed privacy loss distribution of a pair that "
        "dominates both directions.",
    )


def _basis(view: ReleasedDifferences) -> str:
    """Return why, without a full stop."""
    suppressed = "" if view.k is None else f", differences below {view.k} suppressed"
    known = f"the number queried fixed, everyone else known{suppressed} (from SP eqs 11-16)"
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


def _published(n: int, crowd: int, k: int | None, beta: float) -> NDArray[np.float64]:
    """Return the probabilities of 0…crowd under Bin(n, β), those below k taken together, as a float64 vector."""
    masses = mass_at(np.arange(crowd + 1), n, beta)
    masses /= masses.sum()
    return masses if k is None else np.append(masses[:k].sum(), masses[k:])
